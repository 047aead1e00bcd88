// samplers: the public ones.
#include "check.h"

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

static int64_t *order_of(const calx_sampler *sampler)
{
  assert_null(calx_sampler_error(sampler));
  int64_t n = calx_sampler_size(sampler);
  int64_t *order = test_malloc((size_t)(n + 1) * sizeof *order);
  order[n] = -7;
  CHECK_OK(calx_sampler_order(sampler, order));
  assert_int_equal(order[n], -7);
  return order;
}

// ---- kinds ------------------------------------------------------------------

static void test_sequential(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(5);
  calx_sampler *s = calx_sequential_sampler(d);
  assert_int_equal(calx_sampler_size(s), 5);
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    calx_sampler_set_epoch(s, epoch);
    assert_int_equal(calx_sampler_epoch(s), epoch);
    int64_t *order = order_of(s);
    for (int64_t i = 0; i < 5; i++) assert_int_equal(order[i], i);
    test_free(order);
  }
  calx_sampler_free(s);
  calx_sampler_free(NULL);
  calx_dataset_free(d);
}

static void test_random(void **state)
{
  (void)state;
  enum { SIZE = 40 };
  calx_dataset *d = dataset_of(SIZE);
  calx_sampler *s = calx_random_sampler(d, .seed = 3);
  calx_sampler *other = calx_random_sampler(d, .seed = 4);
  int64_t *orders[3];
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    calx_sampler_set_epoch(s, epoch);
    orders[epoch] = order_of(s);
    bool seen[SIZE] = { false };
    for (int i = 0; i < SIZE; i++) {
      assert_in_range(orders[epoch][i], 0, SIZE - 1);
      assert_false(seen[orders[epoch][i]]);
      seen[orders[epoch][i]] = true;
    }
  }
  orders[2] = order_of(other);
  assert_memory_not_equal(orders[0], orders[1], sizeof(int64_t[SIZE]));
  assert_memory_not_equal(orders[0], orders[2], sizeof(int64_t[SIZE]));
  for (int i = 0; i < 3; i++) test_free(orders[i]);
  calx_sampler_free(s);
  calx_sampler_free(other);
  calx_dataset_free(d);
}

// ---- distributed ------------------------------------------------------------

// All ranks get equally many, and together every sample; what is padded or
// dropped is less than one for each rank.
static void check_shares(int64_t size, int ranks, bool shuffle, bool drop_last)
{
  calx_dataset *d = dataset_of(size);
  int *seen = test_calloc((size_t)size + 1, sizeof *seen);
  int64_t each = drop_last ? size / ranks : (size + ranks - 1) / ranks;
  for (int rank = 0; rank < ranks; rank++) {
    calx_sampler *s = calx_distributed_sampler(
        d, .num_replicas = ranks, .rank = rank, .no_shuffle = !shuffle,
        .drop_last = drop_last, .seed = 8);
    assert_int_equal(calx_sampler_size(s), each);
    int64_t *order = order_of(s);
    for (int64_t i = 0; i < each; i++) {
      assert_in_range(order[i], 0, size - 1);
      seen[order[i]]++;
    }
    test_free(order);
    calx_sampler_free(s);
  }
  int64_t missing = 0, twice = 0;
  for (int64_t i = 0; i < size; i++) {
    missing += seen[i] == 0;
    twice += seen[i] > 1 ? seen[i] - 1 : 0;
  }
  assert_int_equal(missing, drop_last ? size % ranks : 0);
  assert_int_equal(twice, drop_last || size == 0 ? 0 : each * ranks - size);
  test_free(seen);
  calx_dataset_free(d);
}

static void test_shares(void **state)
{
  (void)state;
  const int64_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 100, 1023 };
  const int ranks[] = { 1, 2, 3, 4, 8, 13 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
      for (int how = 0; how < 4; how++) {
        check_shares(sizes[i], ranks[k], how % 2 == 0, how / 2 == 0);
      }
    }
  }
}

// The world of a program that nobody launched has one rank.
static void test_defaults(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(8);
  calx_sampler *s = calx_distributed_sampler(d);
  const int64_t wanted[] = { 4, 0, 7, 3, 2, 5, 1, 6 };  // as the oracle has it
  int64_t *order = order_of(s);
  assert_int_equal(calx_sampler_size(s), 8);
  assert_memory_equal(order, wanted, sizeof wanted);
  test_free(order);
  calx_sampler_free(s);
  s = calx_distributed_sampler_with(d, NULL);
  assert_int_equal(calx_sampler_size(s), 8);
  calx_sampler_free(s);
  calx_dataset_free(d);
}

static void check_refused(calx_sampler *s, const char *why)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_sampler_error(s), why, "samplers.c:");
  assert_int_equal(calx_sampler_size(s), 0);
  int64_t order;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_order(s, &order), why);
  calx_sampler_set_epoch(s, 1);
  calx_sampler_free(s);
}

static void test_refused(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(8), *bad = dataset_of(-1);
  check_refused(calx_sequential_sampler(NULL), "the dataset is NULL");
  check_refused(calx_random_sampler(bad), "a size of -1");
  check_refused(calx_distributed_sampler(bad), "a size of -1");
  check_refused(calx_distributed_sampler(d, .num_replicas = -2),
                "num_replicas is -2");
  check_refused(calx_distributed_sampler(d, .num_replicas = 4, .rank = 4),
                "rank is 4, it must be 0 to 3");
  check_refused(calx_distributed_sampler(d, .num_replicas = 4, .rank = -1),
                "rank is -1");
  check_refused(calx_distributed_sampler(d, .rank = 1), "rank is 1");
  check_refused(
      calx_random_sampler_with(d, &(calx_random_sampler_options){ .size = 1 }),
      "set .size");
  calx_dataset_free(d);
  calx_dataset_free(bad);
}

static void test_no_memory(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(8);
  int64_t order[8];
  cx_alloc_fail_at(0);
  calx_sampler *s = calx_distributed_sampler(d);
  cx_alloc_fail_at(-1);
  CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, calx_sampler_error(s), "memory");
  calx_sampler_set_epoch(s, 4);
  calx_sampler_free(s);
  s = calx_distributed_sampler(d);
  cx_alloc_fail_at(0);
  calx_status *status = calx_sampler_order(s, order);
  cx_alloc_fail_at(-1);
  CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
  calx_sampler_free(s);
  calx_dataset_free(d);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_sequential), CHECK_TEST(test_random),
    CHECK_TEST(test_shares),     CHECK_TEST(test_defaults),
    CHECK_TEST(test_refused),    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_samplers", tests, NULL, NULL);
}
