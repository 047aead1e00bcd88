// Tensors as text: PyTorch's own texts (print_cases.txt, made by
// print_cases.py), of host tensors and of tensors on a device.
#include "base/dtype.h"
#include "base/file.h"
#include "fixture.h"

typedef struct print_case {
  char device[8], dtype[8], shape[64], fill[8];
  int64_t dims[CALX_MAX_RANK];
  size_t rank;
  int64_t count;
  calx_dtype type;
  const char *values;  // the rest of the line
  const char *text;
  size_t text_size;
} print_case;

static calx_dtype type_named(const char *name)
{
  for (int d = CALX_BOOL; d <= CALX_F64; d++) {
    if (strcmp(calx_dtype_name((calx_dtype)d), name) == 0) {
      return (calx_dtype)d;
    }
  }
  fail_msg("no type '%s'", name);
  return CALX_DTYPE_DEFAULT;
}

// The case at p; the next one. NULL: the file is at its end.
static const char *read_case(const char *p, print_case *out)
{
  int used = 0;
  if (sscanf(p, "%7s %7s %63s %7s%n", out->device, out->dtype, out->shape,
             out->fill, &used) != 4) {
    return NULL;
  }
  out->type = type_named(out->dtype);
  out->rank = 0;
  out->count = 1;
  for (char *s = out->shape; *s != '-' && *s != '\0'; s += *s == 'x') {
    out->dims[out->rank] = strtoll(s, &s, 10);
    out->count *= out->dims[out->rank++];
  }
  out->values = p + used;
  out->text = strchr(p, '\n') + 1;
  const char *end = strstr(out->text, "\n----\n");
  assert_non_null(end);
  out->text_size = (size_t)(end - out->text);
  return end + 6;
}

static void fill(const print_case *c, unsigned char *data)
{
  size_t size = calx_dtype_size(c->type);
  bool is_float = cx_dtype_is_float(c->type);
  char *p = (char *)(uintptr_t)c->values;
  if (strcmp(c->fill, "ramp") == 0) {
    double a = strtod(p, &p), b = strtod(p, &p), n = strtod(p, &p);
    for (int64_t i = 0; i < c->count; i++) {
      cx_store_double(c->type, data + (size_t)i * size,
                      a + b * (double)(i % (int64_t)n));
    }
    return;
  }
  for (int64_t i = 0; i < c->count; i++) {
    void *at = data + (size_t)i * size;
    if (is_float)
      cx_store_double(c->type, at, strtod(p, &p));
    else
      cx_store_int(c->type, at, strtoll(p, &p, 10));
  }
}

static bool is_right(const print_case *c)
{
  unsigned char *data = test_calloc((size_t)c->count * 8 + 1, 1);
  fill(c, data);
  calx_dims shape = calx_dims_of(c->dims, c->rank);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = strcmp(c->device, "xla") == 0
                       ? calx_tensor_from(data, c->type, shape)
                       : calx_host_tensor(data, c->type, shape);
  char *text = calx_tensor_str(t);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_non_null(text);
  bool right =
      strlen(text) == c->text_size && memcmp(text, c->text, c->text_size) == 0;
  if (!right) {
    print_error("%s %s %s %s:\n%.*s\nwanted:\n%.*s\n", c->device, c->dtype,
                c->shape, c->fill, 2000, text, (int)c->text_size, c->text);
  }
  calx_string_free(text);
  test_free(data);
  return right;
}

static void test_torch(void **state)
{
  (void)state;
  char *file;
  size_t size;
  CHECK_STATUS_OK(
      cx_file_read(CX_TEST_DIR "/print_cases.txt", 0, &file, &size));
  print_case c;
  int ran = 0, wrong = 0;
  for (const char *p = read_case(file, &c); p != NULL; p = read_case(p, &c)) {
    wrong += !is_right(&c);
    ran++;
  }
  print_message("%d texts, %d wrong\n", ran, wrong);
  assert_true(ran >= 832);
  assert_int_equal(wrong, 0);
  cx_free(file);
}

static void check_text(calx_tensor *t, const char *wanted)
{
  char *text = calx_tensor_str(t);
  assert_non_null(text);
  assert_string_equal(text, wanted);
  calx_string_free(text);
}

static void check_complex(const double *values, size_t n, double by,
                          calx_dtype dtype, const char *wanted)
{
  calx_dtype part = cx_dtype_part(dtype);
  unsigned char *data = test_calloc(2 * n * 8 + 1, 1);
  for (size_t i = 0; i < 2 * n; i++) {
    const double v = values != NULL ? values[i] : (double)(i / 2);
    cx_store_double(part, data + i * calx_dtype_size(part),
                    values == NULL && i % 2 == 1 ? v * by : v);
  }
  int64_t dim = (int64_t)n;
  check_text(calx_host_tensor(data, dtype, calx_dims_of(&dim, 1)), wanted);
  test_free(data);
}

// PyTorch's texts: each part has its own format.
static void test_complex(void **state)
{
  (void)state;
  const double a[] = { 1.5, -2, 3e-5, 1 }, b[] = { 1, 2, -3, -0.0 };
  const double c[] = { (double)NAN, (double)INFINITY, 0, 1 };
  const double d[] = { 1e10, 1e-5, 1, 0 };
  check_complex(a, 2, 0, CALX_C64, "tensor([1.5000e+00-2.j, 3.0000e-05+1.j])");
  check_complex(b, 2, 0, CALX_C128,
                "tensor([ 1.+2.j, -3.-0.j], dtype=torch.complex128)");
  check_complex(c, 2, 0, CALX_C64, "tensor([nan+infj, 0.+1.j])");
  check_complex(d, 2, 0, CALX_C64,
                "tensor([1.0000e+10+1.0000e-05j, 1.0000e+00+0.0000e+00j])");
  check_complex(
      NULL, 2000, 1000, CALX_C64,
      "tensor([0.0000e+00+0.0000e+00j, 1.0000e+00+1.0000e+03j, "
      "2.0000e+00+2.0000e+03j,\n         ..., 1.9970e+03+1.9970e+06j, "
      "1.9980e+03+1.9980e+06j,\n        1.9990e+03+1.9990e+06j])");
}

// On the tape: as PyTorch names the function that made it.
static void test_gradients(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(2, 1);
  calx_requires_grad(w, true);
  check_text(w, "tensor([1., 2.], device='xla:0', requires_grad=True)");
  check_text(calx_add(w, w),
             "tensor([1., 2.], device='xla:0', grad_fn=<AddBackward0>)");
  calx_tensor *row = calx_reshape(w, CALX_SHAPE(1, 2));
  check_text(calx_log_softmax(row, 1),
             "tensor([[0., 0.]], device='xla:0', "
             "grad_fn=<LogSoftmaxBackward0>)");
  check_text(calx_detach(w), "tensor([1., 2.], device='xla:0')");
  calx_no_grad_begin();
  check_text(calx_neg(w), "tensor([1., 2.], device='xla:0')");
  calx_no_grad_end();
  calx_release(w);
}

static void test_other_device(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "2", 1);
  lazy_set("devices=2;platform=cpu");
  calx_device *d;
  CHECK_STATUS_OK(calx_device_open("xla:1", &d));
  check_text(calx_to(lazy_vector(2, 1), d), "tensor([1., 2.], device='xla:1')");
  unsetenv("CPU_NUM_DEVICES");
}

// Printing runs what is needed, once.
static void test_pending(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(lazy_vector(2, 1));
  long launches = lazy_launches();
  for (int i = 0; i < 3; i++) check_text(n, "tensor([1., 2.], device='xla:0')");
  assert_int_equal(lazy_launches(), launches + 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_torch),     LAZY_TEST(test_complex),
    LAZY_TEST(test_gradients), LAZY_TEST(test_other_device),
    LAZY_TEST(test_pending),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
