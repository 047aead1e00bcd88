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

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_state_dict) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
