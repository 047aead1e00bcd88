// sampler_kinds: samplers of lists, weights and the caller's, and batch
// samplers. What PyTorch's give is chance, so the frequencies are compared with
// what the weights say, in five standard errors.
#include <math.h>

#include "calx/sampler.h"
#include "check.h"

static calx_dataset *dataset_of(int64_t size)
{
  return calx_dataset_fake(size, .image_size = CALX_SHAPE(1));
}

static int by_number(const void *left, const void *right)
{
  int64_t x = *(const int64_t *)left, y = *(const int64_t *)right;
  return (x > y) - (x < y);
}

// The order of the epoch, which is the same whenever it is asked for.
static void order_of(calx_sampler *s, int64_t epoch, int64_t count,
                     int64_t *out)
{
  assert_null(calx_sampler_error(s));
  assert_int_equal(calx_sampler_size(s), count);
  int64_t *again = test_malloc((size_t)count * sizeof *again);
  calx_sampler_set_epoch(s, epoch);
  CHECK_OK(calx_sampler_order(s, out));
  CHECK_OK(calx_sampler_order(s, again));
  assert_memory_equal(out, again, (size_t)count * sizeof *again);
  test_free(again);
}

static void check_failed(calx_sampler *s, const char *says)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_sampler_error(s), says);
  assert_int_equal(calx_sampler_size(s), 0);
  calx_sampler_free(s);
}

// ---- random -----------------------------------------------------------------

static void test_num_samples(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(10);
  int64_t order[25], sorted[25], more[40];
  // All come twice before one comes a third time.
  calx_sampler *s = calx_random_sampler(d, .num_samples = 25, .seed = 1);
  order_of(s, 0, 25, order);
  for (int part = 0; part < 20; part += 10) {
    memcpy(sorted, order + part, 10 * sizeof *sorted);
    qsort(sorted, 10, sizeof *sorted, by_number);
    for (int i = 0; i < 10; i++) assert_int_equal(sorted[i], i);
  }
  memcpy(sorted, order + 20, 5 * sizeof *sorted);
  qsort(sorted, 5, sizeof *sorted, by_number);
  for (int i = 1; i < 5; i++) assert_true(sorted[i] > sorted[i - 1]);
  assert_memory_not_equal(order, order + 10, 10 * sizeof *order);
  calx_sampler_free(s);
  s = calx_random_sampler(d, .num_samples = 3);
  order_of(s, 5, 3, order);
  calx_sampler_free(s);
  s = calx_random_sampler(d, .replacement = true, .num_samples = 40);
  order_of(s, 0, 40, more);
  for (int i = 0; i < 40; i++) assert_in_range(more[i], 0, 9);
  calx_sampler_free(s);
  s = calx_random_sampler(d, .replacement = true);
  int64_t seen[10] = { 0 };
  for (int64_t epoch = 0; epoch < 1000; epoch++) {
    order_of(s, epoch, 10, order);
    for (int i = 0; i < 10; i++) seen[order[i]]++;
  }
  int uneven = 0;
  for (int i = 0; i < 10; i++) {
    assert_in_range(seen[i], 850, 1150);
    uneven += seen[i] != 1000;
  }
  assert_true(uneven > 0);
  calx_sampler_free(s);
  check_failed(calx_random_sampler(d, .num_samples = -1), "num_samples is -1");
  calx_dataset_free(d);
  d = dataset_of(0);
  check_failed(calx_random_sampler(d, .num_samples = 1), "1 of 0 samples");
  calx_dataset_free(d);
}

static void test_subset(void **state)
{
  (void)state;
  const int64_t indices[] = { 9, 2, 4, 4, 0 };
  const int64_t expected[] = { 0, 2, 4, 4, 9 };
  int64_t order[5], other[5];
  calx_sampler *s = calx_subset_random_sampler(indices, 5, .seed = 2);
  int differ = 0;
  for (int64_t epoch = 0; epoch < 4; epoch++) {
    order_of(s, epoch, 5, order);
    if (epoch > 0) differ += memcmp(order, other, sizeof order) != 0;
    memcpy(other, order, sizeof order);
    qsort(order, 5, sizeof *order, by_number);
    assert_memory_equal(order, expected, sizeof order);
  }
  assert_true(differ > 0);
  calx_sampler_free(s);
  s = calx_subset_random_sampler(NULL, 0);
  assert_null(calx_sampler_error(s));
  calx_sampler_free(s);
  check_failed(calx_subset_random_sampler(NULL, 2), "NULL");
  check_failed(calx_subset_random_sampler(indices, -2), "-2 indices");
  check_failed(calx_subset_random_sampler((int64_t[]){ -3 }, 1),
               "index 0 is -3");
}

// ---- weights ----------------------------------------------------------------

static void test_weighted(void **state)
{
  (void)state;
  enum { N = 20000 };
  const double weights[] = { 1, 0, 3, 6 };  // a tenth, none, …
  static int64_t order[N];
  int64_t seen[4] = { 0 };
  calx_sampler *s = calx_weighted_random_sampler(weights, 4, N, .seed = 3);
  order_of(s, 7, N, order);
  for (int i = 0; i < N; i++) {
    assert_in_range(order[i], 0, 3);
    seen[order[i]]++;
  }
  assert_int_equal(seen[1], 0);
  for (int k = 0; k < 4; k++) {
    double p = weights[k] / 10;
    assert_true(fabs((double)seen[k] / N - p) <= 5 * sqrt(p * (1 - p) / N));
  }
  calx_sampler_free(s);
}

// The first of two is 2 with probability 0.6; then the second is 1 with 1/4.
static void test_weighted_once(void **state)
{
  (void)state;
  enum { N = 20000 };
  const double weights[] = { 3, 1, 6, 0 };
  calx_sampler *s = calx_weighted_random_sampler(weights, 4, 2, .seed = 3,
                                                 .no_replacement = true);
  int first = 0, both = 0;
  for (int64_t epoch = 0; epoch < N; epoch++) {
    int64_t order[2];
    calx_sampler_set_epoch(s, epoch);
    CHECK_OK(calx_sampler_order(s, order));
    assert_true(order[0] != order[1] && order[0] != 3 && order[1] != 3);
    first += order[0] == 2;
    both += order[0] == 2 && order[1] == 1;
  }
  assert_true(fabs((double)first / N - 0.6) < 5 * sqrt(0.24 / N));
  assert_true(fabs((double)both / N - 0.15) < 5 * sqrt(0.1275 / N));
  calx_sampler_free(s);
}

static void test_weights_refused(void **state)
{
  (void)state;
  const double w[] = { 1, 0, 2 };
  check_failed(calx_weighted_random_sampler(NULL, 2, 1), "NULL");
  check_failed(calx_weighted_random_sampler(w, 0, 1), "0 weights");
  check_failed(calx_weighted_random_sampler(w, 3, 0), "num_samples is 0");
  check_failed(calx_weighted_random_sampler(w, 3, 3, .no_replacement = true),
               "2 of 3 weights are above 0");
  double bad[] = { 1, (double)NAN };
  check_failed(calx_weighted_random_sampler(bad, 2, 1), "weight 1 is nan");
  bad[1] = -1;
  check_failed(calx_weighted_random_sampler(bad, 2, 1), "weight 1 is -1");
  bad[1] = (double)INFINITY;
  check_failed(calx_weighted_random_sampler(bad, 2, 1), "weight 1 is inf");
  bad[0] = bad[1] = 1.5e308;
  check_failed(calx_weighted_random_sampler(bad, 2, 1), "is inf");
  bad[0] = bad[1] = 0;
  check_failed(calx_weighted_random_sampler(bad, 2, 1), "is 0");
}

// ---- the caller's -----------------------------------------------------------

static calx_status *count_down(void *user, int64_t epoch, int64_t *out_order)
{
  if (epoch == 3) return cx_error(CALX_ABORTED, "no epoch 3");
  for (int64_t i = 0; i < 4; i++) out_order[i] = 3 - i + epoch;
  ++*(int *)user;
  return NULL;
}

static void count_free(void *user)
{
  *(int *)user += 100;
}

static void test_own(void **state)
{
  (void)state;
  int calls = 0;
  int64_t order[4];
  calx_sampler *s = calx_sampler_new(4, count_down, &calls, count_free);
  order_of(s, 2, 4, order);
  assert_int_equal(order[0], 5);
  calx_sampler_set_epoch(s, 3);
  CHECK_FAILS(CALX_ABORTED, calx_sampler_order(s, order), "no epoch 3");
  calx_sampler_free(s);
  assert_int_equal(calls, 102);
  check_failed(calx_sampler_new(-1, count_down, &calls, count_free), "-1");
  assert_int_equal(calls, 202);
  check_failed(calx_sampler_new(1, NULL, &calls, NULL), "order is NULL");
}

// ---- batches ----------------------------------------------------------------

static void check_sizes(calx_sampler *s, int64_t count, int64_t batches,
                        int64_t last)
{
  int64_t order[10], sizes[4];
  assert_null(calx_sampler_error(s));
  assert_int_equal(calx_sampler_size(s), count);
  assert_int_equal(calx_sampler_batches(s), batches);
  CHECK_OK(calx_sampler_batch_order(s, order, sizes));
  for (int64_t i = 0; i < count; i++) assert_int_equal(order[i], i);
  for (int64_t b = 0; b < batches; b++) {
    assert_int_equal(sizes[b], b + 1 < batches ? 3 : last);
  }
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_order(s, order),
              "calx_sampler_batch_order");
  calx_sampler_free(s);
}

static void test_batch(void **state)
{
  (void)state;
  calx_dataset *d = dataset_of(10);
  calx_sampler *s = calx_sequential_sampler(d);
  check_sizes(calx_batch_sampler(s, 3), 10, 4, 1);
  check_sizes(calx_batch_sampler(s, 3, .drop_last = true), 9, 3, 3);
  check_sizes(calx_batch_sampler(s, INT64_MAX), 10, 1, 10);
  check_failed(calx_batch_sampler(s, 0), "a batch size of 0");
  check_failed(calx_batch_sampler(NULL, 3), "NULL");
  calx_sampler *b = calx_batch_sampler(s, 2);
  check_failed(calx_batch_sampler(b, 2), "a batch sampler already");
  int64_t order[10];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_batch_order(b, order, NULL),
              "no room for the sizes");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_batch_order(s, order, order),
              "no batch sampler");
  assert_int_equal(calx_sampler_batches(s), 0);
  calx_sampler_free(b);
  calx_sampler_free(s);
  calx_dataset_free(d);
}

static calx_status *own_batches(void *user, int64_t epoch, int64_t *out_order,
                                int64_t *out_sizes)
{
  (void)epoch;
  for (int64_t i = 0; i < 5; i++) out_order[i] = i;
  memcpy(out_sizes, user, 2 * sizeof *out_sizes);
  return NULL;
}

static void check_own(int64_t first, int64_t second, const char *says)
{
  int64_t sizes[] = { first, second }, order[5], out[2];
  calx_sampler *s = calx_batch_sampler_new(5, 2, 4, own_batches, sizes, NULL);
  assert_null(calx_sampler_error(s));
  calx_status *status = calx_sampler_batch_order(s, order, out);
  if (says == NULL) {
    CHECK_OK(status);
    assert_memory_equal(out, sizes, sizeof sizes);
  } else {
    CHECK_FAILS(CALX_INVALID_ARGUMENT, status, says);
  }
  calx_sampler_free(s);
}

static void test_own_batches(void **state)
{
  (void)state;
  check_own(4, 1, NULL);
  check_own(5, 0, "batch 0 of epoch 0 has 5 samples; at most 4");
  check_own(0, 5, "batch 0 of epoch 0 has 0 samples");
  check_own(4, 3, "batch 1 of epoch 0 has 3 samples");
  check_own(2, 2, "have 4 samples, the epoch has 5");
  check_own(-1, 6, "batch 0");
  const int64_t bad[][3] = { { -1, 0, 1 }, { 5, 0, 1 }, { 0, 1, 1 },
                             { 5, 6, 1 },  { 5, 2, 2 }, { 5, 2, 0 } };
  for (int i = 0; i < 6; i++) {
    check_failed(calx_batch_sampler_new(bad[i][0], bad[i][1], bad[i][2],
                                        own_batches, NULL, NULL),
                 "batch sampler: ");
  }
  check_failed(calx_batch_sampler_new(1, 1, 1, NULL, NULL, NULL),
               "order is NULL");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_num_samples),     CHECK_TEST(test_subset),
    CHECK_TEST(test_weighted),        CHECK_TEST(test_weighted_once),
    CHECK_TEST(test_weights_refused), CHECK_TEST(test_own),
    CHECK_TEST(test_batch),           CHECK_TEST(test_own_batches),
  };
  return cmocka_run_group_tests_name("data_sampler_kinds", tests, NULL, NULL);
}
