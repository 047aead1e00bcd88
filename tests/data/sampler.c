// sampler: the module's generator, permutations and batch counts.
#include "data/sampler.h"

#include "check.h"
#include "data/random.h"
#include "data/randperm.h"

// The reference implementation's first values (S. Vigna, splitmix64.c).
static void test_known_values(void **state)
{
  (void)state;
  const uint64_t of_zero[] = { UINT64_C(0xe220a8397b1dcdaf),
                               UINT64_C(0x6e789e6aa1b965f4),
                               UINT64_C(0x06c45d188009454f) };
  const uint64_t of_many[] = { UINT64_C(6457827717110365317),
                               UINT64_C(3203168211198807973),
                               UINT64_C(9817491932198370423),
                               UINT64_C(4593380528125082431),
                               UINT64_C(16408922859458223821) };
  for (uint64_t k = 0; k < 3; k++) {
    assert_true(cx_data_random_out(0, k) == of_zero[k]);
  }
  for (uint64_t k = 0; k < 5; k++) {
    assert_true(cx_data_random_out(1234567, k) == of_many[k]);
  }
}

static void test_product(void **state)
{
  (void)state;
  uint64_t low;
  assert_true(cx_data_random_mul(UINT64_MAX, UINT64_MAX, &low) ==
              UINT64_MAX - 1);
  assert_true(low == 1);
  assert_true(cx_data_random_mul(UINT64_C(1) << 63, 6, &low) == 3);
  assert_true(low == 0);
  assert_true(cx_data_random_mul(0x123456789, 0x987654321, &low) == 10);
  assert_true(low == UINT64_C(0x123456789) * UINT64_C(0x987654321));
}

static void test_below(void **state)
{
  (void)state;
  cx_data_random r = cx_data_random_new(7, 0);
  int count[6] = { 0 };
  for (int i = 0; i < 60000; i++) {
    uint64_t x = cx_data_random_below(&r, 6);
    assert_true(x < 6);
    count[x]++;
  }
  // Five standard deviations: sqrt(60000 · 1/6 · 5/6) = 91.
  for (int k = 0; k < 6; k++) assert_in_range(count[k], 10000 - 455, 10455);
  assert_true(cx_data_random_below(&r, 1) == 0);
  // Nearly half of all numbers must be drawn again for this one.
  const uint64_t n = (UINT64_C(1) << 63) + 1;
  uint64_t before = r.at;
  for (int i = 0; i < 100; i++) assert_true(cx_data_random_below(&r, n) < n);
  assert_in_range(r.at - before, 150, 260);
}

static void check_permutation(const int64_t *order, int64_t n)
{
  bool *seen = test_calloc((size_t)n + 1, sizeof *seen);
  for (int64_t i = 0; i < n; i++) {
    assert_true(order[i] >= 0 && order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = true;
  }
  test_free(seen);
}

static void test_permutation(void **state)
{
  (void)state;
  int64_t a[1000], b[1000];
  const int64_t sizes[] = { 0, 1, 2, 3, 10, 1000 };
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    cx_data_permutation(5, 0, sizes[k], a);
    check_permutation(a, sizes[k]);
  }
  cx_data_permutation(5, 0, 1000, b);
  assert_memory_equal(a, b, sizeof a);  // repeatable
  cx_data_permutation(5, 1, 1000, b);
  check_permutation(b, 1000);
  assert_memory_not_equal(a, b, sizeof a);  // another epoch
  cx_data_permutation(6, 0, 1000, b);
  assert_memory_not_equal(a, b, sizeof a);  // another seed
  cx_data_permutation(1, 5, 1000, b);
  assert_memory_not_equal(a, b, sizeof a);  // seed and epoch are not exchanged
}

// What was trained yesterday is trained again tomorrow: the order is promised.
static void test_recorded_order(void **state)
{
  (void)state;
  const int64_t recorded[2][10] = { { 5, 1, 9, 6, 7, 2, 4, 0, 8, 3 },
                                    { 7, 3, 1, 8, 2, 5, 9, 4, 6, 0 } };
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    int64_t order[10];
    cx_data_permutation(42, epoch, 10, order);
    assert_memory_equal(order, recorded[epoch], sizeof order);
  }
}

// Every order of four is equally likely over the epochs.
static void test_all_orders(void **state)
{
  (void)state;
  int count[256] = { 0 };
  for (int64_t epoch = 0; epoch < 24000; epoch++) {
    int64_t o[4];
    cx_data_permutation(9, epoch, 4, o);
    count[o[0] * 64 + o[1] * 16 + o[2] * 4 + o[3]]++;
  }
  int orders = 0;
  for (int k = 0; k < 256; k++) {
    if (count[k] == 0) continue;
    orders++;
    assert_in_range(count[k], 1000 - 155, 1155);  // five deviations of 31
  }
  assert_int_equal(orders, 24);
}

// ---- PyTorch's orders -------------------------------------------------------

typedef struct torch_order {
  uint64_t seed;
  int64_t n, first[4], last;
  uint64_t sum;  // of (i + 1) order[i], modulo 2^64
} torch_order;

static void check_torch_order(const torch_order *wanted)
{
  int64_t n = wanted->n;
  int64_t *order = test_malloc((size_t)n * sizeof *order);
  cx_data_randperm(wanted->seed, n, order);
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (uint64_t)(i + 1) * (uint64_t)order[i];
  assert_memory_equal(order, wanted->first, sizeof wanted->first);
  assert_true(order[n - 1] == wanted->last);
  assert_true(sum == wanted->sum);
  test_free(order);
}

// Recorded from torch.randperm of PyTorch 2.13: seeds of which the lower half
// counts, a negative one, and sizes above a twister's words.
static void test_randperm(void **state)
{
  (void)state;
  const torch_order orders[] = {
    { 7, 1000, { 615, 284, 599, 580 }, 409, 251546465 },
    { (UINT64_C(1) << 32) + 5,
      100003,
      { 24809, 92077, 29372, 25888 },
      64735,
      UINT64_C(250279272543763) },
    { INT64_MAX,
      60000,
      { 46371, 14968, 5104, 10485 },
      22013,
      UINT64_C(53926229799124) },
    { (uint64_t)-3,
      1000000,
      { 407651, 768690, 949953, 129137 },
      521050,
      UINT64_C(250073024309839081) },
  };
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
    check_torch_order(&orders[k]);
  }
  int64_t none = 17;
  cx_data_randperm(0, 0, &none);
  assert_int_equal(none, 17);
}

// The algorithm of sizes from 2^32/20 on, on a small one; the numbers are drawn
// with numpy's Mersenne Twister.
static void test_randperm_wide(void **state)
{
  (void)state;
  const int64_t wanted[] = { 7, 10, 4, 11, 6, 0, 5, 2, 1, 3, 9, 8 };
  int64_t order[12];
  cx_data_randperm_wide(5, 12, order);
  assert_memory_equal(order, wanted, sizeof wanted);
}

// PyTorch's own lists on both sides of the limit, 1.7 GB each: a run of its
// own, of the long ones.
static void test_randperm_limit(void **state)
{
  (void)state;
  const torch_order orders[] = {
    { 11,
      CX_DATA_RANDPERM_WIDE - 1,
      { 130007352, 78627318, 83645522, 63223350 },
      212904092,
      UINT64_C(9794242387395691499) },
    { 11,
      CX_DATA_RANDPERM_WIDE,
      { 189915727, 188338941, 57361543, 6609080 },
      65490602,
      UINT64_C(4429951519840598336) },
  };
  for (size_t k = 0; k < 2; k++) check_torch_order(&orders[k]);
}

static void test_batch_count(void **state)
{
  (void)state;
  assert_int_equal(cx_data_batch_count(10, 3, false), 4);
  assert_int_equal(cx_data_batch_count(10, 3, true), 3);
  assert_int_equal(cx_data_batch_count(9, 3, false), 3);
  assert_int_equal(cx_data_batch_count(9, 3, true), 3);
  assert_int_equal(cx_data_batch_count(2, 3, false), 1);
  assert_int_equal(cx_data_batch_count(2, 3, true), 0);
  assert_int_equal(cx_data_batch_count(0, 3, false), 0);
  assert_int_equal(cx_data_batch_count(INT64_MAX, INT64_MAX, false), 1);
  assert_int_equal(cx_data_batch_count(5, INT64_MAX, false), 1);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest limit[] = { CHECK_TEST(test_randperm_limit) };
  if (argc == 2 && strcmp(argv[1], "limit") == 0) {
    return cmocka_run_group_tests_name("data_sampler_limit", limit, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_known_values),   CHECK_TEST(test_product),
    CHECK_TEST(test_below),          CHECK_TEST(test_permutation),
    CHECK_TEST(test_recorded_order), CHECK_TEST(test_all_orders),
    CHECK_TEST(test_batch_count),    CHECK_TEST(test_randperm),
    CHECK_TEST(test_randperm_wide),
  };
  return cmocka_run_group_tests_name("data_sampler", tests, NULL, NULL);
}
