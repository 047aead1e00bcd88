// combine: datasets made of others, and drawn ones. What random_split gives is
// compared with lists that torch.utils.data.random_split gave (PyTorch 2.13,
// generator=torch.Generator().manual_seed(seed)).
#include <math.h>

#include "calx/dataset.h"
#include "check.h"

static calx_status *get_number(void *user, int64_t index, void *const *fields)
{
  *(int64_t *)fields[0] = *(const int64_t *)user + index;
  return NULL;
}

static calx_dataset *numbers(int64_t size, const int64_t *first)
{
  static const calx_field field = { .name = "n", .dtype = CALX_I64 };
  return calx_dataset_new(size, &field, 1, get_number, (void *)first, NULL);
}

static int64_t number_at(const calx_dataset *d, int64_t index)
{
  int64_t n = -1;
  CHECK_OK(calx_dataset_get(d, index, (void *[]){ &n }));
  return n;
}

// ---- concat -----------------------------------------------------------------

static void test_concat(void **state)
{
  (void)state;
  const int64_t firsts[] = { 0, 100, 200, 300 };
  const int64_t sizes[] = { 3, 0, 1, 2 };
  calx_dataset *parts[4];
  for (int i = 0; i < 4; i++) parts[i] = numbers(sizes[i], &firsts[i]);
  calx_dataset *d = calx_dataset_concat(parts, 4);
  assert_null(calx_dataset_error(d));
  const int64_t expected[] = { 0, 1, 2, 200, 300, 301 };
  assert_int_equal(calx_dataset_size(d), 6);
  assert_string_equal(calx_dataset_field(d, 0)->name, "n");
  for (int i = 0; i < 6; i++) assert_int_equal(number_at(d, i), expected[i]);
  int64_t n;
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(d, 6, (void *[]){ &n }),
              "there are 6");
  calx_dataset_free(d);
  d = calx_dataset_concat((calx_dataset *[]){ parts[1], parts[1] }, 2);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 0);
  calx_dataset_free(d);
  for (int i = 0; i < 4; i++) calx_dataset_free(parts[i]);
}

static void check_concat(calx_dataset *a, calx_dataset *b, const char *says)
{
  calx_dataset *d = calx_dataset_concat((calx_dataset *[]){ a, b }, 2);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_concat_refused(void **state)
{
  (void)state;
  const int64_t first = 0;
  const calx_field wide[] = { { .dtype = CALX_I64, .rank = 1, .dims = { 2 } } };
  const calx_field wider[] = { { .dtype = CALX_I64, .rank = 1, .dims = { 3 } },
                               { .dtype = CALX_I64 } };
  calx_dataset *d = numbers(3, &first);
  calx_dataset *w = calx_dataset_new(3, wide, 1, get_number, NULL, NULL);
  calx_dataset *x = calx_dataset_new(3, wider, 1, get_number, NULL, NULL);
  calx_dataset *y = calx_dataset_new(3, wider, 2, get_number, NULL, NULL);
  calx_dataset *huge = numbers(INT64_MAX, &first);
  calx_dataset *bad = numbers(-1, &first);
  check_concat(d, w, "field 0, 'data', has another dtype or shape");
  check_concat(w, x, "dataset 1");
  check_concat(x, y, "dataset 1 has 2 fields, dataset 0 has 1");
  check_concat(huge, d, "too many samples");
  check_concat(d, bad, "dataset 1: ");
  check_concat(d, NULL, "dataset 1: ");
  calx_dataset *none = calx_dataset_concat(NULL, 0);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(none), "no datasets");
  calx_dataset_free(none);
  calx_dataset *all[] = { d, w, x, y, huge, bad };
  for (size_t i = 0; i < 6; i++) calx_dataset_free(all[i]);
}

// ---- random_split -----------------------------------------------------------

static void check_split(int64_t size, const double *lengths, size_t n,
                        uint64_t seed, const int64_t *sizes,
                        const int64_t *expected)
{
  const int64_t first = 0;
  calx_dataset *d = numbers(size, &first), *parts[4];
  CHECK_OK(calx_random_split(d, lengths, n, parts, .seed = seed));
  for (size_t k = 0; k < n; k++) {
    assert_int_equal(calx_dataset_size(parts[k]), sizes[k]);
    for (int64_t i = 0; i < sizes[k]; i++) {
      assert_int_equal(number_at(parts[k], i), *expected++);
    }
    calx_dataset_free(parts[k]);
  }
  calx_dataset_free(d);
}

static void test_split(void **state)
{
  (void)state;
  check_split(10, (double[]){ 7, 3 }, 2, 42, (int64_t[]){ 7, 3 },
              (int64_t[]){ 2, 6, 1, 8, 4, 5, 0, 9, 3, 7 });
  check_split(10, (double[]){ 0.7, 0.3 }, 2, 0, (int64_t[]){ 7, 3 },
              (int64_t[]){ 4, 1, 7, 5, 3, 9, 0, 8, 6, 2 });
  check_split(11, (double[]){ 0.5, 0.3, 0.2 }, 3, 7, (int64_t[]){ 6, 3, 2 },
              (int64_t[]){ 3, 0, 9, 2, 5, 8, 4, 10, 1, 7, 6 });
  check_split(7, (double[]){ 0.25, 0.25, 0.25, 0.25 }, 4, 123,
              (int64_t[]){ 2, 2, 2, 1 }, (int64_t[]){ 2, 0, 4, 5, 3, 1, 6 });
  check_split(1, (double[]){ 1.0 }, 1, 3, (int64_t[]){ 1 }, (int64_t[]){ 0 });
  check_split(6, (double[]){ 6, 0 }, 2, 5, (int64_t[]){ 6, 0 },
              (int64_t[]){ 5, 0, 1, 3, 4, 2 });
}

static void check_split_refused(const double *lengths, size_t n,
                                const char *says)
{
  const int64_t first = 0;
  calx_dataset *d = numbers(10, &first);
  calx_dataset *parts[4] = { d, d, d, d };
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_random_split(d, lengths, n, parts),
              says);
  for (size_t k = 0; k < n; k++) assert_null(parts[k]);
  calx_dataset_free(d);
}

static void test_split_refused(void **state)
{
  (void)state;
  check_split_refused((double[]){ 3, 4 }, 2, "the sum of the lengths is 7");
  check_split_refused((double[]){ 12, -2 }, 2, "length 0 is 12");
  check_split_refused((double[]){ 2, -2, 10 }, 3, "length 1 is -2");
  check_split_refused((double[]){ 1.5, -0.5 }, 2, "length 0 is 1.5");
  check_split_refused((double[]){ 2.5, 7.5 }, 2, "whole numbers");
  check_split_refused((double[]){ (double)NAN, 1 }, 2, "length 0 is nan");
  check_split_refused((double[]){ (double)INFINITY }, 1, "length 0 is inf");
  check_split_refused(NULL, 0, "no lengths");
  calx_dataset *part;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              calx_random_split(NULL, (double[]){ 1 }, 1, &part), "NULL");
  const int64_t first = 0;
  calx_dataset *d = numbers(10, &first);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              calx_random_split(d, (double[]){ 1 }, 1, NULL), "no room");
  calx_dataset_free(d);
}

static void test_no_memory(void **state)
{
  (void)state;
  const int64_t first = 0;
  calx_dataset *d = numbers(10, &first), *parts[2];
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 40);
    cx_alloc_fail_at(n);
    calx_status *status =
        calx_random_split(d, ((double[]){ 0.5, 0.5 }), 2, parts);
    cx_alloc_fail_at(-1);
    whole = status == NULL;
    if (!whole) {
      CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
      assert_null(parts[0]);
    }
  }
  for (int n = 0; n < 10; n++) {
    cx_alloc_fail_at(n);
    calx_dataset *c = calx_dataset_concat(parts, 2);
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_dataset_error(c);
    if (error != NULL) CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
    calx_dataset_free(c);
  }
  calx_dataset_free(parts[0]);
  calx_dataset_free(parts[1]);
  calx_dataset_free(d);
}

// ---- drawn samples ----------------------------------------------------------

static void test_fake(void **state)
{
  (void)state;
  enum { N = 200, E = 3 * 8 * 8 };
  calx_dataset *d =
      calx_dataset_fake(N, .image_size = CALX_SHAPE(3, 8, 8), .num_classes = 4);
  calx_dataset *later = calx_dataset_fake(N, .image_size = CALX_SHAPE(3, 8, 8),
                                          .num_classes = 4, .random_offset = 7);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), N);
  assert_int_equal(calx_dataset_field(d, 0)->rank, 3);
  double sum = 0, squares = 0;
  int64_t label, again, seen[4] = { 0 };
  float image[E], same[E];
  for (int64_t i = 0; i < N; i++) {
    CHECK_OK(calx_dataset_get(d, i, (void *[]){ image, &label }));
    assert_in_range(label, 0, 3);
    seen[label]++;
    for (int k = 0; k < E; k++) {
      sum += (double)image[k];
      squares += (double)image[k] * (double)image[k];
    }
    if (i < 7) continue;
    CHECK_OK(calx_dataset_get(later, i - 7, (void *[]){ same, &again }));
    assert_memory_equal(image, same, sizeof image);
    assert_int_equal(label, again);
  }
  // 38,400 normal numbers: 5 standard errors of the mean and of the variance.
  assert_true(fabs(sum / (N * E)) < 5 / sqrt(N * E));
  assert_true(fabs(squares / (N * E) - 1) < 5 * sqrt(2.0 / (N * E)));
  for (int c = 0; c < 4; c++) assert_in_range(seen[c], 25, 75);
  calx_dataset_free(later);
  calx_dataset_free(d);
}

static void test_fake_integers(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_fake(50, .image_size = CALX_SHAPE(16),
                                      .dtype = CALX_I64, .high = 5);
  int64_t tokens[16], label, seen[5] = { 0 };
  for (int64_t i = 0; i < 50; i++) {
    CHECK_OK(calx_dataset_get(d, i, (void *[]){ tokens, &label }));
    assert_in_range(label, 0, 9);
    for (int k = 0; k < 16; k++) {
      assert_in_range(tokens[k], 0, 4);
      seen[tokens[k]]++;
    }
  }
  for (int c = 0; c < 5; c++) assert_in_range(seen[c], 100, 220);
  calx_dataset_free(d);
  d = calx_dataset_fake(1);
  assert_int_equal(calx_dataset_field(d, 0)->dims[2], 224);
  assert_int_equal(calx_dataset_field(d, 0)->dtype, CALX_F32);
  calx_dataset_free(d);
}

static void check_fake(calx_dataset *d, const char *says)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_fake_refused(void **state)
{
  (void)state;
  check_fake(calx_dataset_fake(-1), "a size of -1");
  check_fake(calx_dataset_fake(1, .num_classes = -2), "num_classes is -2");
  check_fake(calx_dataset_fake(1, .dtype = (calx_dtype)99), "as 99");
  check_fake(calx_dataset_fake(1, .dtype = CALX_I8, .high = 129),
             "high is 129, i8 has 0 to 127");
  check_fake(calx_dataset_fake(1, .image_size = CALX_SHAPE(-1)), "negative");
  check_fake(calx_dataset_fake(1, .image_size = CALX_SHAPE(INT64_MAX / 2, 3)),
             "too many bytes");
  check_fake(
      calx_dataset_fake(1, .image_size = CALX_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)),
      "8 is the most");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_concat),        CHECK_TEST(test_concat_refused),
    CHECK_TEST(test_split),         CHECK_TEST(test_split_refused),
    CHECK_TEST(test_no_memory),     CHECK_TEST(test_fake),
    CHECK_TEST(test_fake_integers), CHECK_TEST(test_fake_refused),
  };
  return cmocka_run_group_tests_name("data_combine", tests, NULL, NULL);
}
