// oracle: files that PyTorch and safetensors wrote, read as they were meant.
#include "calx/io.h"
#include "files.h"
#include "support/safetensors.h"

// Every tensor of the file as the tests' own reader gives it.
static void test_state_dict(void **state)
{
  (void)state;
  const char *const names[] = { "mnist_state.safetensors", "mnist.safetensors",
                                "ops.safetensors", "train.safetensors" };
  for (size_t k = 0; k < 4; k++) {
    char name[64];
    snprintf(name, sizeof name, "oracle/%s", names[k]);
    safetensors *expected = safetensors_open(name);
    calx_value *v;
    CHECK_STATUS_OK(calx_load(oracle_file(names[k]), &v));
    size_t n = calx_value_count(v);
    assert_true(n >= 18);
    for (size_t i = 0; i < n; i++) {
      safetensors_entry e;
      const calx_tensor *t = calx_value_as_tensor(calx_value_item(v, i));
      assert_true(safetensors_find(expected, calx_value_key(v, i), &e));
      assert_int_equal(calx_tensor_dtype(t), e.dtype);
      assert_int_equal(calx_tensor_rank(t), e.rank);
      for (size_t d = 0; d < e.rank; d++) {
        assert_int_equal(calx_tensor_dim(t, (int)d), e.dims[d]);
      }
      if (e.bytes != 0) {
        assert_memory_equal(calx_host_data(t), e.data, e.bytes);
      }
    }
    print_message("%s: %zu tensors\n", names[k], n);
    calx_value_free(v);
    safetensors_close(expected);
  }
}

static calx_tensor *at(const calx_value *v, const char *key)
{
  calx_tensor *t = calx_value_as_tensor(calx_value_get(v, key));
  assert_non_null(t);
  return t;
}

// The same state dict, as torch.save and xm.save wrote it.
static void test_pt_state_dict(void **state)
{
  (void)state;
  const char *const names[] = { "mnist_torch_save.pt", "mnist_xm_save.pt" };
  calx_value *expected, *v;
  CHECK_STATUS_OK(calx_load(oracle_file("mnist_state.safetensors"), &expected));
  for (size_t k = 0; k < 2; k++) {
    CHECK_STATUS_OK(calx_load(oracle_file(names[k]), &v));
    assert_int_equal(calx_value_count(v), 18);
    assert_string_equal(calx_value_key(v, 0), "conv1.weight");
    for (size_t i = 0; i < 18; i++) {
      const calx_tensor *t = calx_value_as_tensor(calx_value_item(v, i));
      const calx_tensor *e = at(expected, calx_value_key(v, i));
      assert_true(cx_graph_shape_equal(cx_lazy_tensor_shape(t),
                                       cx_lazy_tensor_shape(e)));
      assert_memory_equal(
          calx_host_data(t), calx_host_data(e),
          (size_t)calx_tensor_numel(t) * calx_dtype_size(calx_tensor_dtype(t)));
    }
    calx_value_free(v);
  }
  calx_value_free(expected);
}

static void test_checkpoint(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS_OK(calx_load(oracle_file("checkpoint_mixed.pt"), &v));
  assert_int_equal(calx_value_as_int(calx_value_get(v, "epoch")), 3);
  assert_int_equal(calx_value_as_int(calx_value_get(v, "global_step")), 12);
  const calx_value *model = calx_value_get(v, "model");
  CHECK_VALUES(at(model, "bias"), 1e-12, 0.36805036664009094,
               -0.3187769949436188);
  const calx_value *opt = calx_value_get(v, "optimizer");
  const calx_value *one = calx_value_get_at(calx_value_get(opt, "state"), 1);
  CHECK_VALUES(at(one, "step"), 0, 1);
  CHECK_VALUES(at(one, "exp_avg"), 1e-8, 0.1, 0.1);
  const calx_value *group =
      calx_value_item(calx_value_get(opt, "param_groups"), 0);
  CHECK_CLOSE(calx_value_as_float(calx_value_get(group, "lr")), 1e-3, 0);
  const calx_value *betas = calx_value_get(group, "betas");
  assert_int_equal(calx_value_kind(betas), CALX_KIND_TUPLE);
  CHECK_CLOSE(calx_value_as_float(calx_value_item(betas, 1)), 0.999, 0);
  assert_int_equal(calx_value_kind(calx_value_get(group, "foreach")),
                   CALX_KIND_NONE);
  assert_true(
      calx_value_as_bool(calx_value_get(group, "decoupled_weight_decay")));
  assert_int_equal(calx_tensor_dtype(at(v, "bf16")), CALX_BF16);
  CHECK_VALUES(at(v, "bf16"), 0, 0, 1, 2, 3);
  CHECK_VALUES(at(v, "half"), 0, 0, 1, 2, 3);
  CHECK_VALUES(at(v, "i32"), 0, 0, 1, 2);
  CHECK_VALUES(at(v, "bool"), 0, 1, 0);
  CHECK_VALUES(at(v, "f64"), 0, 0, 1);
  CHECK_VALUES(at(v, "rank0"), 0, 2.5);
  assert_int_equal(calx_tensor_rank(at(v, "rank0")), 0);
  assert_int_equal(calx_tensor_dim(at(v, "empty"), 1), 3);
  assert_int_equal(calx_tensor_dim(at(v, "transposed"), 0), 3);
  CHECK_VALUES(at(v, "transposed"), 0, 0, 3, 1, 4, 2, 5);
  CHECK_VALUES(at(v, "slice_of_storage"), 0, 2, 3, 4);
  const calx_value *nested = calx_value_get(v, "nested");
  assert_int_equal(calx_value_kind(nested), CALX_KIND_LIST);
  assert_string_equal(calx_value_as_string(calx_value_item(nested, 1)), "two");
  const calx_value *tuple = calx_value_item(nested, 2);
  assert_int_equal(calx_value_kind(tuple), CALX_KIND_TUPLE);
  CHECK_CLOSE(calx_value_as_float(calx_value_item(tuple, 0)), 3.5, 0);
  calx_value_free(v);
}

static void test_tied(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS_OK(calx_load(oracle_file("tied.pt"), &v));
  CHECK_VALUES(at(v, "a"), 0, 0, 1, 2, 3);
  CHECK_VALUES(at(v, "view"), 0, 1, 2);
  const char *a = calx_host_data(at(v, "a"));
  assert_ptr_equal(a, calx_host_data(at(v, "b")));
  assert_ptr_equal(a + 4, calx_host_data(at(v, "view")));
  calx_value_free(v);
}

static void test_old_format(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS(CALX_UNIMPLEMENTED,
               calx_load(oracle_file("linear_legacy.pt"), &v),
               "before PyTorch 1.6");
  assert_null(v);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_state_dict), SUPPORT_TEST(test_pt_state_dict),
    SUPPORT_TEST(test_checkpoint), SUPPORT_TEST(test_tied),
    SUPPORT_TEST(test_old_format),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
