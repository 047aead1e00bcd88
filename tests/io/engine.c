// engine: models that are saved from a device and loaded to it.
#include "calx/io.h"
#include "files.h"

static calx_module *make(void)
{
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_nn_conv2d(m, "conv", 1, 4, 3);
  calx_nn_batch_norm2d(m, "bn", 4);
  calx_nn_linear(m, "fc", 16, 8, .dtype = CALX_BF16);
  CHECK_STATUS_OK(calx_module_error(m));
  return m;
}

static void check_same(calx_module *a, calx_module *b)
{
  calx_value *x, *y;
  CHECK_STATUS_OK(calx_module_state_dict(a, &x));
  CHECK_STATUS_OK(calx_module_state_dict(b, &y));
  assert_int_equal(calx_value_count(x), calx_value_count(y));
  for (size_t i = 0; i < calx_value_count(x); i++) {
    calx_tensor *p = calx_value_as_tensor(calx_value_item(x, i));
    calx_tensor *q = calx_value_as_tensor(calx_value_item(y, i));
    unsigned char u[4096], v[4096];
    size_t n =
        (size_t)calx_tensor_numel(p) * calx_dtype_size(calx_tensor_dtype(p));
    CHECK_STATUS_OK(calx_tensor_read(p, u, n));
    CHECK_STATUS_OK(calx_tensor_read(q, v, n));
    assert_memory_equal(u, v, n);
  }
  calx_value_free(x);
  calx_value_free(y);
}

// Also while the initial values are pending.
static void test_model(void **state)
{
  (void)state;
  calx_manual_seed(1);
  calx_module *a = make(), *b = make();
  const char *path = file_in_folder("m.safetensors");
  calx_value *d;
  CHECK_STATUS_OK(calx_module_state_dict(a, &d));
  CHECK_STATUS_OK(calx_save(d, path));
  calx_value_free(d);
  CHECK_STATUS_OK(calx_load(path, &d));
  CHECK_STATUS_OK(calx_module_load_state_dict(b, d));
  calx_value_free(d);
  check_same(a, b);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_take_error());
  check_same(a, b);
  calx_module_free(a);
  calx_module_free(b);
  files_in_folder(true);
}

// From a model of another type, on the device.
static void test_other_type(void **state)
{
  (void)state;
  calx_module *a = calx_module_new("Net", NULL, NULL);
  calx_module *b = calx_module_new("Net", NULL, NULL);
  calx_nn_linear(a, "fc", 2, 1, .dtype = CALX_F64);
  calx_nn_linear(b, "fc", 2, 1);
  calx_value *d;
  CHECK_STATUS_OK(calx_module_state_dict(a, &d));
  CHECK_STATUS_OK(calx_module_load_state_dict(b, d));
  calx_value_free(d);
  calx_sync(NULL);
  double x = calx_item(calx_module_find(a, "fc.bias"));
  CHECK_CLOSE(calx_item(calx_module_find(b, "fc.bias")), (double)(float)x, 0);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_module_free(a);
  calx_module_free(b);
}

// A line of /proc/self/status, in kB; -1: there is none.
static long memory(const char *what)
{
  char line[256];
  long kb = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, what, strlen(what)) == 0) {
      kb = strtol(line + strlen(what), NULL, 10);
    }
  }
  if (f != NULL) fclose(f);
  return kb;
}

// The peak of what a save needs: its largest tensor and 16 MB.
static void check_peak(const char *name)
{
  enum { N = 12, MB = 16 };
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  calx_scope *s = calx_scope_begin();
  for (int i = 0; i < N; i++) {
    char key[16];
    snprintf(key, sizeof key, "t%d", i);
    calx_tensor *t = calx_full(CALX_SHAPE(MB << 18), i);
    CHECK_STATUS_OK(calx_value_set(d, key, calx_value_tensor(t)));
  }
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_device *device = calx_device_current();
  CHECK_STATUS_OK(calx_device_wait(device));
  FILE *f = fopen("/proc/self/clear_refs", "w");  // the peak begins anew
  if (f == NULL || fputs("5", f) < 0 || fclose(f) != 0) {
    print_message("the peak of memory can't be had here\n");
  }
  long before = memory("VmRSS:");
  CHECK_STATUS_OK(calx_save(d, file_in_folder(name)));
  long more = memory("VmHWM:") - before;
  print_message("%s: %d MB more for %d tensors of %d MB\n", name,
                (int)(more >> 10), N, MB);
  assert_true(more <= (MB + 16) << 10);
  calx_value_free(d);
  files_in_folder(true);
}

static void test_one_tensor_at_a_time(void **state)
{
  (void)state;
  check_peak("peak.safetensors");
  check_peak("peak.pt");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_model),
    SUPPORT_TEST(test_other_type),
    SUPPORT_TEST(test_one_tensor_at_a_time),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
