// samplers_oracle: PyTorch's lists of the oracle (CALX_SHARED,
// oracle/train.json), for each rank.
#include "check.h"
#include "support/safetensors.h"

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  (void)user;
  *(int64_t *)fields[0] = index;
  return NULL;
}

static calx_dataset *dataset_of(int64_t size)
{
  const calx_field field = { .dtype = CALX_I64 };
  return calx_dataset_new(size, &field, 1, get, NULL, NULL);
}

static int64_t number(const json_t *c, const char *name)
{
  return json_integer_value(json_object_get(c, name));
}

static void check_case(const json_t *c)
{
  calx_dataset *d = dataset_of(number(c, "len"));
  const json_t *lists = json_object_get(c, "indices_by_rank");
  int ranks = (int)number(c, "num_replicas");
  assert_int_equal(json_array_size(lists), ranks);
  for (int rank = 0; rank < ranks; rank++) {
    calx_sampler *s = calx_distributed_sampler(
        d, .num_replicas = ranks, .rank = rank,
        .no_shuffle = !json_is_true(json_object_get(c, "shuffle")),
        .drop_last = json_is_true(json_object_get(c, "drop_last")),
        .seed = (uint64_t)number(c, "seed"));
    calx_sampler_set_epoch(s, number(c, "epoch"));
    const json_t *list = json_array_get(lists, (size_t)rank);
    assert_int_equal(calx_sampler_size(s), json_array_size(list));
    int64_t order[64];
    assert_in_range(calx_sampler_size(s), 0, 64);
    CHECK_OK(calx_sampler_order(s, order));
    for (size_t i = 0; i < json_array_size(list); i++) {
      assert_int_equal(order[i], json_integer_value(json_array_get(list, i)));
    }
    calx_sampler_free(s);
  }
  calx_dataset_free(d);
}

static void test_oracle(void **state)
{
  (void)state;
  json_t *root = safetensors_json("oracle/train.json");
  const json_t *cases = json_object_get(root, "distributed_sampler");
  size_t n = json_array_size(cases);
  assert_true(n >= 8);
  for (size_t i = 0; i < n; i++) check_case(json_array_get(cases, i));
  print_message("%zu cases ran, 0 skipped\n", n);
  json_decref(root);
}

int main(void)
{
  const struct CMUnitTest tests[] = { CHECK_TEST(test_oracle) };
  return cmocka_run_group_tests_name("data_samplers_oracle", tests, NULL, NULL);
}
