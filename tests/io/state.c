// state: a model's tensors by name, out of it and into it, on the fake plugin,
// which keeps what is uploaded.
#include "calx/autograd.h"
#include "calx/io.h"
#include "support/support.h"

static calx_module *make(void)
{
  calx_module *m = calx_module_new("MNIST", NULL, NULL);
  calx_nn_linear(m, "fc1", 3, 2);
  calx_nn_linear(m, "fc2", 2, 2);
  CHECK_STATUS_OK(calx_module_error(m));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_take_error());
  return m;
}

static void set(calx_value *dict, const char *key, calx_dtype dtype,
                calx_dims shape, double first)
{
  double values[64];
  for (int i = 0; i < 64; i++) values[i] = first + i;
  calx_scope *s = calx_scope_begin();
  unsigned char data[512];
  int64_t n;
  size_t bytes, size = calx_dtype_size(dtype);
  assert_true(cx_dims_bytes(dtype, shape.values, shape.count, &n, &bytes));
  for (int64_t i = 0; i < n; i++) {
    cx_store_double(dtype, data + (size_t)i * size, values[i]);
  }
  calx_tensor *t = calx_host_tensor(data, dtype, shape);
  CHECK_STATUS_OK(calx_value_set(dict, key, calx_value_tensor(t)));
  CHECK_STATUS_OK(calx_scope_end(s));
}

static calx_value *fitting(calx_dtype dtype)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  set(d, "fc1.weight", dtype, CALX_SHAPE(2, 3), 1);
  set(d, "fc1.bias", dtype, CALX_SHAPE(2), 10);
  set(d, "fc2.weight", dtype, CALX_SHAPE(2, 2), 20);
  set(d, "fc2.bias", dtype, CALX_SHAPE(2), 30);
  return d;
}

static void check_loaded(calx_module *m)
{
  CHECK_VALUES(calx_module_find(m, "fc1.weight"), 0, 1, 2, 3, 4, 5, 6);
  CHECK_VALUES(calx_module_find(m, "fc1.bias"), 0, 10, 11);
  CHECK_VALUES(calx_module_find(m, "fc2.weight"), 0, 20, 21, 22, 23);
  CHECK_VALUES(calx_module_find(m, "fc2.bias"), 0, 30, 31);
}

static void test_state_dict(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *d;
  CHECK_STATUS_OK(calx_module_state_dict(m, &d));
  assert_int_equal(calx_value_kind(d), CALX_KIND_DICT);
  assert_int_equal(calx_value_count(d), 4);
  const char *const keys[] = { "fc1.weight", "fc1.bias", "fc2.weight",
                               "fc2.bias" };
  for (size_t i = 0; i < 4; i++) {
    assert_string_equal(calx_value_key(d, i), keys[i]);
    // The model's own, not a copy.
    assert_ptr_equal(calx_value_as_tensor(calx_value_item(d, i)),
                     calx_module_find(m, keys[i]));
  }
  calx_module_free(m);
  // It outlives the model.
  assert_int_equal(
      calx_tensor_numel(calx_value_as_tensor(calx_value_get(d, "fc1.weight"))),
      6);
  calx_value_free(d);
  m = calx_module_new("Net", NULL, NULL);
  calx_nn_linear(m, "a.b", 1, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_state_dict(m, &d),
               "so it has no state dict");
  assert_null(d);
  calx_module_free(m);
}

static void test_load(void **state)
{
  (void)state;
  const calx_dtype types[] = { CALX_F32, CALX_F64, CALX_BF16, CALX_I64,
                               CALX_U8 };
  for (size_t i = 0; i < 5; i++) {
    calx_module *m = make();
    calx_value *d = fitting(types[i]);
    CHECK_STATUS_OK(calx_module_load_state_dict(m, d));
    check_loaded(m);
    calx_tensor *w = calx_module_find(m, "fc1.weight");
    assert_int_equal(calx_tensor_dtype(w), CALX_F32);
    assert_true(cx_lazy_tensor_requires_grad(w) && cx_lazy_tensor_is_leaf(w));
    calx_value_free(d);
    calx_module_free(m);
  }
}

// What was loaded counts as computed: a failed step goes back to it.
static void test_failed_step_keeps_it(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *d = fitting(CALX_F32);
  CHECK_STATUS_OK(calx_module_load_state_dict(m, d));
  calx_tensor *w = calx_module_find(m, "fc1.weight");
  calx_scope *s = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_assign(w, calx_mul(w, calx_ones(CALX_SHAPE(2, 3))));
  cx_lazy_no_grad_end();
  calx_tensor *bad = calx_matmul(w, w);
  calx_sync(bad);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "");
  check_loaded(m);
  calx_value_free(d);
  calx_module_free(m);
}

// From another model's tensors: later values of those are not seen.
static void test_from_a_model(void **state)
{
  (void)state;
  calx_module *a = make(), *b = make();
  calx_value *d = fitting(CALX_F32), *of_a;
  CHECK_STATUS_OK(calx_module_load_state_dict(a, d));
  calx_value_free(d);
  CHECK_STATUS_OK(calx_module_state_dict(a, &of_a));
  CHECK_STATUS_OK(calx_module_load_state_dict(b, of_a));
  check_loaded(b);
  CHECK_STATUS_OK(calx_module_load_state_dict(a, of_a));  // itself
  check_loaded(a);
  calx_value_free(of_a);
  calx_module_free(a);
  check_loaded(b);
  calx_module_free(b);
}

// A model that is part of another: the prefix is before each of its keys.
static void test_prefix(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *d = fitting(CALX_F32), *outer;
  outer = calx_value_container(CALX_KIND_DICT);
  for (size_t i = 0; i < calx_value_count(d); i++) {
    char key[32];
    snprintf(key, sizeof key, "net.%s", calx_value_key(d, i));
    calx_tensor *t = calx_value_as_tensor(calx_value_item(d, i));
    CHECK_STATUS_OK(calx_value_set(outer, key, calx_value_tensor(t)));
  }
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_module_load_state_dict(m, d, .prefix = "net."),
               "Missing key(s) in state_dict: \"net.fc1.weight\", ",
               "Unexpected key(s) in state_dict: \"fc1.weight\", ");
  CHECK_STATUS_OK(calx_module_load_state_dict(m, outer, .prefix = "net."));
  check_loaded(m);
  calx_value_free(outer);
  calx_value_free(d);
  calx_module_free(m);
}

// PyTorch's text, word for word; and nothing is changed.
static void test_wrong(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *d = fitting(CALX_F32);
  CHECK_STATUS_OK(calx_module_load_state_dict(m, d));
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  set(d, "fc1.weight", CALX_F32, CALX_SHAPE(2, 5), 100);
  set(d, "fc1.bias", CALX_F32, CALX_SCALAR, 100);
  set(d, "fc2.weight", CALX_F32, CALX_SHAPE(2, 2), 100);
  set(d, "x.y", CALX_F32, CALX_SHAPE(1), 100);
  set(d, "z", CALX_F32, CALX_SHAPE(1), 100);
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT, calx_module_load_state_dict(m, d),
      "Error(s) in loading state_dict for MNIST:\n\tMissing key(s) in "
      "state_dict: \"fc2.bias\". \n\tUnexpected key(s) in state_dict: \"x.y\", "
      "\"z\". \n\tsize mismatch for fc1.weight: copying a param with shape "
      "torch.Size([2, 5]) from checkpoint, the shape in current model is "
      "torch.Size([2, 3]).\n\tsize mismatch for fc1.bias: copying a param with "
      "shape torch.Size([]) from checkpoint, the shape in current model is "
      "torch.Size([2]).");
  check_loaded(m);
  // Sizes matter without strictness too.
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_module_load_state_dict(m, d, .not_strict = true),
               "loading state_dict for MNIST:\n\tsize mismatch for fc1.weight");
  CHECK_STATUS_OK(calx_value_set(d, "fc2.weight", calx_value_int(1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_load_state_dict(m, d),
               "named \"fc2.weight\", expected torch.Tensor", "received int");
  check_loaded(m);
  calx_value_free(d);
  d = calx_value_int(3);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_load_state_dict(m, d),
               "dict-like, got int");
  calx_value_free(d);
  calx_module_free(m);
}

static void test_not_strict(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *d = fitting(CALX_F32), *missing, *unexpected;
  CHECK_STATUS_OK(calx_module_load_state_dict(m, d, .out_missing = &missing,
                                              .out_unexpected = &unexpected));
  assert_int_equal(calx_value_count(missing), 0);
  assert_int_equal(calx_value_count(unexpected), 0);
  calx_value_free(missing);
  calx_value_free(unexpected);
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  set(d, "fc2.bias", CALX_F32, CALX_SHAPE(2), 50);
  set(d, "more", CALX_F32, CALX_SHAPE(2), 50);
  CHECK_STATUS_OK(calx_value_set_at(d, 5, calx_value_int(1)));
  CHECK_STATUS_OK(calx_module_load_state_dict(m, d, .not_strict = true,
                                              .out_missing = &missing,
                                              .out_unexpected = &unexpected));
  assert_int_equal(calx_value_count(missing), 3);
  assert_string_equal(calx_value_as_string(calx_value_item(missing, 2)),
                      "fc2.weight");
  assert_int_equal(calx_value_count(unexpected), 2);
  assert_string_equal(calx_value_as_string(calx_value_item(unexpected, 0)),
                      "more");
  assert_string_equal(calx_value_as_string(calx_value_item(unexpected, 1)),
                      "5");
  CHECK_VALUES(calx_module_find(m, "fc2.bias"), 0, 50, 51);
  CHECK_VALUES(calx_module_find(m, "fc1.bias"), 0, 10, 11);
  calx_value_free(missing);
  calx_value_free(unexpected);
  calx_value_free(d);
  calx_module_free(m);
}

// Every allocation fails once: all of the model is loaded, or nothing.
static void test_without_memory(void **state)
{
  (void)state;
  calx_module *m = make();
  calx_value *old = fitting(CALX_F32), *d = fitting(CALX_F64);
  set(d, "fc1.bias", CALX_F64, CALX_SHAPE(2), 70);
  bool done = false;
  for (long n = 0; !done; n++) {
    assert_true(n < 1000);
    CHECK_STATUS_OK(calx_module_load_state_dict(m, old));
    cx_alloc_fail_at(n);
    calx_status *status = calx_module_load_state_dict(m, d);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) check_loaded(m);
    calx_status_free(status);
    CHECK_STATUS_OK(calx_scope_take_error());
  }
  CHECK_VALUES(calx_module_find(m, "fc1.bias"), 0, 70, 71);
  calx_value_free(old);
  calx_value_free(d);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_state_dict),
    SUPPORT_TEST(test_load),
    SUPPORT_TEST(test_failed_step_keeps_it),
    SUPPORT_TEST(test_from_a_model),
    SUPPORT_TEST(test_prefix),
    SUPPORT_TEST(test_wrong),
    SUPPORT_TEST(test_not_strict),
    SUPPORT_TEST(test_without_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
