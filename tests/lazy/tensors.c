// Handles: what has no value and how that travels, host tensors, tensors of two
// devices, absent tensors, queries.
#include "fixture.h"
#include "lazy/lazy.h"

static calx_tensor *matrix(int64_t rows, int64_t cols)
{
  return calx_reshape(lazy_vector(rows * cols, 0), CALX_SHAPE(rows, cols));
}

static calx_tensor *image(void)
{
  return calx_reshape(lazy_vector(16, 0), CALX_SHAPE(1, 1, 4, 4));
}

static calx_tensor *host(int64_t n)
{
  const float data[64] = { 0 };
  return calx_host_tensor(data, CALX_F32, CALX_SHAPE(n));
}

static calx_tensor *host_matrix(int64_t rows, int64_t cols)
{
  const float data[64] = { 0 };
  return calx_host_tensor(data, CALX_F32, CALX_SHAPE(rows, cols));
}

// ---- poison -----------------------------------------------------------------

static void check_poison(calx_tensor *t)
{
  assert_non_null(t);
  assert_true(cx_lazy_tensor_poisoned(t));
  assert_non_null(calx_tensor_error(t));
  assert_int_equal(calx_tensor_rank(t), 0);
  assert_int_equal(calx_tensor_numel(t), 0);
  assert_int_equal(calx_tensor_dim(t, 0), 0);
  assert_int_equal(calx_tensor_shape(t).count, 0);
  assert_null(calx_tensor_device(t));
  assert_false(calx_tensor_is_host(t));
  assert_null(calx_host_data(t));
}

// The result of a failed op says which op, where it was called, what was found,
// and what it was made of.
static void test_message(void **state)
{
  (void)state;
  calx_tensor *a = lazy_vector(3, 0), *b = lazy_vector(4, 0);
  int made = __LINE__ + 1;
  calx_tensor *c = calx_neg(a);
  int line = __LINE__ + 1;
  calx_tensor *bad = calx_mul(c, b);
  char where[80], maker[80];
  snprintf(where, sizeof where, "tensors.c:%d: in test_message: mul: ", line);
  snprintf(maker, sizeof maker, "operand 0 f32[3] (made by neg at ");
  check_poison(bad);
  const char *message = calx_status_message(calx_tensor_error(bad));
  assert_non_null(strstr(message, where));
  assert_non_null(strstr(message, maker));
  snprintf(maker, sizeof maker, "tensors.c:%d)", made);
  assert_non_null(strstr(message, maker));
  assert_non_null(strstr(message, "f32[4]"));
  assert_int_equal(calx_status_code(calx_tensor_error(bad)),
                   CALX_INVALID_ARGUMENT);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), where);
}

// Ops on a poisoned operand do nothing: no node, no launch, the same reason.
static void test_propagation(void **state)
{
  (void)state;
  calx_tensor *bad = calx_add(lazy_vector(3, 0), lazy_vector(4, 0));
  calx_tensor *good = lazy_vector(4, 0);
  long nodes = cx_graph_node_live(), launches = lazy_launches();
  calx_tensor *far = calx_sum(calx_relu(calx_add(good, calx_neg(bad))));
  check_poison(far);
  assert_int_equal(cx_graph_node_live(), nodes);
  assert_non_null(strstr(calx_status_message(calx_tensor_error(far)), "add: "));
  double item = calx_item(far);
  assert_true(item != item);
  assert_int_equal(calx_item_int(far), 0);
  assert_null(calx_tensor_str(far));
  assert_int_equal(lazy_launches(), launches);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "add: ");
}

// Poison of an ended scope makes a later one fail, with the place of the use.
static void test_later_scope(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *bad =
      calx_retain(calx_add(lazy_vector(3, 0), lazy_vector(4, 0)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "add: ");
  scope = calx_scope_begin();
  int line = __LINE__ + 1;
  calx_relu(bad);
  char where[64];
  snprintf(where, sizeof where, "tensors.c:%d: ", line);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), where,
               "relu: operand 0", "add: ");
  calx_release(bad);
}

// A message does not grow with the chain of its consequences.
static void test_message_stays_short(void **state)
{
  (void)state;
  calx_tensor *t = calx_add(lazy_vector(3, 0), lazy_vector(4, 0));
  for (int i = 0; i < 1000; i++) t = calx_neg(calx_relu(t));
  assert_true(strlen(calx_status_message(calx_tensor_error(t))) < 1000);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "add: ");
}

static void test_poison_not_assigned(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *scope = calx_scope_begin();
  calx_assign(w, calx_add(w, lazy_vector(3, 0)));
  assert_false(cx_lazy_tensor_poisoned(w));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "add: ");
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// ---- host tensors -----------------------------------------------------------

#define CHECK_HOST(op, call)                                               \
  do {                                                                     \
    check_poison(call);                                                    \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), op ": ",  \
                 "Input tensor is not an XLA tensor: ", "calx_to", "f32[", \
                 "tensors.c:", __func__);                                  \
  } while (0)

static void test_host_elementwise(void **state)
{
  (void)state;
  calx_tensor *t = lazy_vector(4, 0), *h = host(4);
  CHECK_HOST("add", calx_add(t, h));
  CHECK_HOST("add", calx_add(h, t));
  CHECK_HOST("add", calx_add(h, 1.0));
  CHECK_HOST("sub", calx_sub(1, h));
  CHECK_HOST("mul", calx_mul(h, h));
  CHECK_HOST("div", calx_div(t, h));
  CHECK_HOST("pow", calx_pow(h, 2));
  CHECK_HOST("maximum", calx_maximum(t, h));
  CHECK_HOST("lt", calx_lt(h, 0.5));
  CHECK_HOST("where", calx_where(calx_gt(t, 0.0), t, h));
  CHECK_HOST("neg", calx_neg(h));
  CHECK_HOST("exp", calx_exp(h));
  CHECK_HOST("relu", calx_relu(h));
  CHECK_HOST("isnan", calx_isnan(h));
  CHECK_HOST("to_dtype", calx_to_dtype(h, CALX_F64));
  CHECK_HOST("detach", calx_detach(h));
}

static void test_host_shapes(void **state)
{
  (void)state;
  calx_tensor *t = lazy_vector(4, 0), *h = host(4), *m = host_matrix(2, 2);
  CHECK_HOST("sum", calx_sum(h));
  CHECK_HOST("mean", calx_mean(h));
  CHECK_HOST("amax", calx_amax(h));
  CHECK_HOST("argmax", calx_argmax(h));
  CHECK_HOST("max_dim", calx_max_dim(h, 0, false, NULL));
  CHECK_HOST("reshape", calx_reshape(h, CALX_SHAPE(2, 2)));
  CHECK_HOST("flatten", calx_flatten(m));
  CHECK_HOST("transpose", calx_transpose(m, 0, 1));
  CHECK_HOST("permute", calx_permute(m, CALX_DIMS(1, 0)));
  CHECK_HOST("expand", calx_expand(h, CALX_SHAPE(2, 4)));
  CHECK_HOST("unsqueeze", calx_unsqueeze(h, 0));
  CHECK_HOST("squeeze", calx_squeeze(h, 0));
  CHECK_HOST("slice", calx_slice(h, 0, 1, 3, 1));
  CHECK_HOST("select", calx_select(h, 0, 1));
  CHECK_HOST("cat", calx_cat(((calx_tensor *[]){ t, h }), 2, 0));
  CHECK_HOST("stack", calx_stack(((calx_tensor *[]){ h, t }), 2, 0));
}

static void test_host_layers(void **state)
{
  (void)state;
  calx_tensor *m = matrix(2, 2), *h = host_matrix(2, 2), *v = host(2);
  const float pixels[16] = { 0 };
  calx_tensor *hi = calx_host_tensor(pixels, CALX_F32, CALX_SHAPE(1, 1, 4, 4));
  calx_tensor *i = image();
  CHECK_HOST("mm", calx_mm(m, h));
  CHECK_HOST("mm", calx_mm(h, m));
  CHECK_HOST("matmul", calx_matmul(m, h));
  CHECK_HOST("linear", calx_linear(h, m, NULL));
  CHECK_HOST("linear", calx_linear(m, h, NULL));
  CHECK_HOST("linear", calx_linear(m, m, v));
  CHECK_HOST("conv2d", calx_conv2d(hi, i));
  CHECK_HOST("conv2d", calx_conv2d(i, hi));
  calx_tensor *bias = host(1);
  CHECK_HOST("conv2d", calx_conv2d(i, i, .bias = bias));
  CHECK_HOST("max_pool2d", calx_max_pool2d(hi, 2));
  CHECK_HOST("batch_norm", calx_batch_norm(h, .training = true));
  CHECK_HOST("log_softmax", calx_log_softmax(h, 1));
  CHECK_HOST("softmax", calx_softmax(h, 1));
  const int64_t label[2] = { 0, 1 };
  calx_tensor *y = calx_host_tensor(label, CALX_I64, CALX_SHAPE(2));
  check_poison(calx_nll_loss(m, y));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "nll_loss: ", "Input tensor is not an XLA tensor: ", "i64[2]");
  check_poison(calx_cross_entropy(m, y));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "Input tensor is not an XLA tensor: ", "i64[2]");
}

static void test_host_calls(void **state)
{
  (void)state;
  calx_tensor *t = lazy_vector(4, 5), *h = host(4);
  calx_assign(t, h);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "assign: ", "not an XLA tensor", "operand 1");
  calx_assign(h, t);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "assign: ", "not an XLA tensor", "operand 0");
  assert_true(lazy_holds(t, 5));
  calx_backward(h);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "backward",
               "not an XLA tensor");
  calx_sync(h);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "sync",
               "not an XLA tensor");
}

// What may be done with one: to be read, printed, moved.
static void test_host_transfer(void **state)
{
  (void)state;
  const float data[2] = { 3, 4 };
  calx_tensor *h = calx_host_tensor(data, CALX_F32, CALX_SHAPE(2));
  assert_true(calx_tensor_is_host(h));
  assert_null(calx_tensor_device(h));
  assert_int_equal(calx_tensor_numel(h), 2);
  assert_memory_equal(calx_host_data(h), data, sizeof data);
  assert_int_equal((uintptr_t)calx_host_data(h) % 64, 0);
  assert_ptr_equal(calx_cpu(h), h);
  assert_true(lazy_holds(h, 3));
  assert_true(calx_is_ready(h));
  calx_tensor *t = calx_to(h, NULL);
  assert_false(calx_tensor_is_host(t));
  assert_string_equal(calx_device_name(calx_tensor_device(t)), "xla:0");
  assert_ptr_equal(calx_to(t, NULL), t);
  calx_tensor *back = calx_cpu(t);
  assert_true(calx_tensor_is_host(back));
  assert_memory_equal(calx_host_data(back), data, sizeof data);
  assert_null(calx_host_data(t));
  calx_tensor *one = calx_host_tensor(data, CALX_F32, CALX_SHAPE(1));
  assert_true(calx_item(one) == 3);
  assert_null(calx_scope_error());
}

// ---- two devices ------------------------------------------------------------

static void test_two_devices(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "2", 1);
  lazy_set("devices=2;platform=cpu");
  assert_int_equal(calx_device_count(), 2);
  calx_device *second;
  CHECK_STATUS_OK(calx_device_open("xla:1", &second));
  calx_tensor *a = lazy_vector(4, 1);
  calx_tensor *b = calx_to(lazy_vector(4, 2), second);
  assert_ptr_equal(calx_tensor_device(b), second);
  int line = __LINE__ + 1;
  check_poison(calx_add(a, b));
  char where[64];
  snprintf(where, sizeof where,
           "tensors.c:%d: in test_two_devices: add: ", line);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), where,
               "operand 1 is on xla:1", "on xla:0", "calx_to");
  check_poison(calx_cat(((calx_tensor *[]){ b, a }), 2, 0));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "cat: ", "operand 1 is on xla:0", "on xla:1");
  calx_tensor *w = calx_retain(a);
  calx_assign(w, b);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "assign: ", "xla:1", "xla:0");
  assert_true(lazy_holds(w, 1));
  calx_release(w);
  calx_tensor *c = calx_add(a, calx_to(b, NULL));
  assert_null(calx_tensor_error(c));
  // Each device syncs its own; a stranger's tensor is not forgotten in silence.
  calx_sync(b);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "sync",
               "operand 0 is on xla:1", "xla:0");
  calx_tensor *n = calx_neg(b);
  assert_ptr_equal(calx_tensor_device(n), second);
  calx_device_set_current(second);
  calx_sync(n);
  calx_device_set_current(NULL);
  assert_null(calx_scope_error());
  assert_true(lazy_holds(n, 2));
  unsetenv("CPU_NUM_DEVICES");
}

// A number follows the tensor that it meets.
static void test_numbers_follow(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "2", 1);
  lazy_set("devices=2;platform=cpu");
  calx_device *second;
  CHECK_STATUS_OK(calx_device_open("xla:1", &second));
  calx_tensor *b = calx_to(lazy_vector(4, 2), second);
  assert_ptr_equal(calx_tensor_device(calx_mul(b, 0.5)), second);
  assert_ptr_equal(calx_tensor_device(calx_sub(1, b)), second);
  assert_null(calx_scope_error());
  unsetenv("CPU_NUM_DEVICES");
}

static void test_device_names(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    calx_code code;
  } cases[] = { { "xla", CALX_OK },
                { NULL, CALX_OK },
                { "xla:0", CALX_OK },
                { "xla:1", CALX_OUT_OF_RANGE },
                { "xla:99999999999999999999", CALX_OUT_OF_RANGE },
                { "xla:-1", CALX_INVALID_ARGUMENT },
                { "xla: 0", CALX_INVALID_ARGUMENT },
                { "xla:", CALX_INVALID_ARGUMENT },
                { "xla:0x", CALX_INVALID_ARGUMENT },
                { "x", CALX_INVALID_ARGUMENT },
                { "", CALX_INVALID_ARGUMENT },
                { "cuda:0", CALX_INVALID_ARGUMENT } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_device *d = NULL;
    calx_status *status = calx_device_open(cases[i].name, &d);
    if (cases[i].code == CALX_OK) {
      CHECK_STATUS_OK(status);
      assert_non_null(d);
    } else {
      assert_null(d);
      CHECK_STATUS(cases[i].code, status, cases[i].name, "xla:0");
    }
  }
}

// ---- absent tensors ---------------------------------------------------------

static void test_null(void **state)
{
  (void)state;
  double item = calx_item(NULL);
  assert_true(item != item);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "item: ", "NULL");
  assert_int_equal(calx_item_int(NULL), 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "item_int: ");
  char byte;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_tensor_read(NULL, &byte, 1), "NULL");
  calx_tensor *t = lazy_vector(4, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_tensor_read(t, NULL, 16), "NULL");
  check_poison(calx_cpu(NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "cpu: ");
  check_poison(calx_to(NULL, NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "to: ");
  assert_null(calx_tensor_str(NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "print: ");
  calx_print(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "print: ");
  calx_tensor *absent = NULL;
  check_poison(calx_add(t, absent));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "add: ", "operand 1 is NULL");
  check_poison(calx_tensor_from(NULL, CALX_F32, CALX_SHAPE(2)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  check_poison(calx_host_tensor(NULL, CALX_F32, CALX_SHAPE(2)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  assert_true(calx_is_ready(NULL));
  calx_sync(NULL);
  calx_string_free(NULL);
  assert_null(calx_scope_error());
}

static void test_null_queries(void **state)
{
  (void)state;
  assert_int_equal(calx_tensor_rank(NULL), 0);
  assert_int_equal(calx_tensor_dim(NULL, 0), 0);
  assert_int_equal(calx_tensor_numel(NULL), 0);
  assert_int_equal(calx_tensor_shape(NULL).count, 0);
  assert_int_equal(calx_tensor_dtype(NULL), CALX_F32);
  assert_null(calx_tensor_device(NULL));
  assert_null(calx_tensor_error(NULL));
  assert_null(calx_host_data(NULL));
  assert_false(calx_tensor_is_host(NULL));
  assert_string_equal(calx_device_name(NULL), "xla");
  assert_string_equal(calx_device_platform(NULL), "?");
}

static void test_queries(void **state)
{
  (void)state;
  calx_tensor *t = calx_reshape(lazy_vector(6, 0), CALX_SHAPE(2, 3));
  assert_int_equal(calx_tensor_rank(t), 2);
  assert_int_equal(calx_tensor_numel(t), 6);
  assert_int_equal(calx_tensor_dim(t, 0), 2);
  assert_int_equal(calx_tensor_dim(t, -1), 3);
  assert_int_equal(calx_tensor_dim(t, -2), 2);
  assert_int_equal(calx_tensor_dim(t, 2), 0);
  assert_int_equal(calx_tensor_dim(t, -3), 0);
  assert_int_equal(calx_tensor_dim(t, INT32_MIN), 0);
  assert_int_equal(calx_tensor_shape(t).values[1], 3);
  assert_int_equal(calx_tensor_dtype(t), CALX_F32);
  calx_tensor *empty = calx_zeros(CALX_SHAPE(0, 3));
  assert_int_equal(calx_tensor_numel(empty), 0);
}

// ---- bad data ---------------------------------------------------------------

static void test_bad_shapes(void **state)
{
  (void)state;
  const float data[4] = { 0 };
  check_poison(calx_tensor_from(data, CALX_F32, CALX_SHAPE(-1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "-1");
  static const int64_t ones[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
  check_poison(calx_tensor_from(data, CALX_F32, calx_dims_of(ones, 9)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "rank 9", "8");
  check_poison(calx_tensor_from(data, (calx_dtype)99, CALX_SHAPE(1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "99");
  check_poison(calx_tensor_from(data, CALX_DTYPE_DEFAULT, CALX_SHAPE(1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "element type");
  check_poison(
      calx_tensor_from(data, CALX_F64, CALX_SHAPE(INT64_MAX, INT64_MAX)));
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_take_error(), "too large");
  check_poison(calx_host_tensor(data, CALX_F32, CALX_SHAPE(INT64_MAX / 4)));
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_take_error(), "");
}

static void test_read_sizes(void **state)
{
  (void)state;
  calx_tensor *t = lazy_vector(4, 0);
  float data[4];
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_tensor_read(t, data, 12), "f32[4]",
               "16 bytes", "12");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_tensor_read(t, data, 17), "17");
  double item = calx_item(t);
  assert_true(item != item);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "item: ", "f32[4]", "4 elements");
  calx_tensor *empty = calx_zeros(CALX_SHAPE(0));
  CHECK_STATUS_OK(calx_tensor_read(empty, NULL, 0));
}

// A failed read is told once, by its status.
static void test_read_fails_once(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(lazy_vector(4, 0));
  lazy_set("fail=PJRT_LoadedExecutable_Execute@1:13:no luck");
  float data[4];
  CHECK_STATUS(CALX_INTERNAL, calx_tensor_read(n, data, sizeof data),
               "no luck");
  assert_null(calx_scope_error());
  CHECK_STATUS_OK(calx_tensor_read(n, data, sizeof data));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_message),
    LAZY_TEST(test_propagation),
    LAZY_TEST(test_later_scope),
    LAZY_TEST(test_message_stays_short),
    LAZY_TEST(test_poison_not_assigned),
    LAZY_TEST(test_host_elementwise),
    LAZY_TEST(test_host_shapes),
    LAZY_TEST(test_host_layers),
    LAZY_TEST(test_host_calls),
    LAZY_TEST(test_host_transfer),
    LAZY_TEST(test_two_devices),
    LAZY_TEST(test_numbers_follow),
    LAZY_TEST(test_device_names),
    LAZY_TEST(test_null),
    LAZY_TEST(test_null_queries),
    LAZY_TEST(test_queries),
    LAZY_TEST(test_bad_shapes),
    LAZY_TEST(test_read_sizes),
    LAZY_TEST(test_read_fails_once),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
