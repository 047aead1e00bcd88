// dataset: datasets of callbacks, of tensors, and ranges of others.
#include "check.h"

// Sample i is the two floats i and 10 i, and the label i; sample `bad` fails.
typedef struct numbers {
  int64_t bad;
  int freed;
} numbers;

static calx_status *get_numbers(void *user, int64_t index, void *const *fields)
{
  const numbers *n = user;
  if (index == n->bad) return cx_error(CALX_DATA_LOSS, "it is broken");
  ((float *)fields[0])[0] = (float)index;
  ((float *)fields[0])[1] = (float)(10 * index);
  *(int64_t *)fields[1] = index;
  return NULL;
}

static void count_free(void *user)
{
  ((numbers *)user)->freed++;
}

static const calx_field pair[] = {
  { .name = "x", .dtype = CALX_F32, .rank = 1, .dims = { 2 } },
  { .dtype = CALX_I64 },
};

static void test_callback(void **state)
{
  (void)state;
  numbers n = { .bad = 3 };
  calx_dataset *d = calx_dataset_new(5, pair, 2, get_numbers, &n, count_free);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 5);
  assert_int_equal(calx_dataset_field_count(d), 2);
  assert_string_equal(calx_dataset_field(d, 0)->name, "x");
  assert_string_equal(calx_dataset_field(d, 1)->name, "target");
  assert_int_equal(calx_dataset_field(d, 0)->dims[0], 2);
  assert_int_equal(calx_dataset_field(d, 1)->rank, 0);
  assert_null(calx_dataset_field(d, 2));
  float x[2] = { 0 };
  int64_t y = 0;
  void *fields[] = { x, &y };
  CHECK_OK(calx_dataset_get(d, 4, fields));
  assert_true(x[0] == 4.0f && x[1] == 40.0f && y == 4);
  CHECK_FAILS(CALX_DATA_LOSS, calx_dataset_get(d, 3, fields), "it is broken");
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(d, 5, fields),
              "sample 5 was asked for, there are 5");
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(d, -1, fields), "sample -1");
  assert_int_equal(n.freed, 0);
  calx_dataset_free(d);
  assert_int_equal(n.freed, 1);
  calx_dataset_free(NULL);
}

static void test_names_are_copied(void **state)
{
  (void)state;
  char name[] = "first";
  const calx_field field = { .name = name, .dtype = CALX_U8 };
  calx_dataset *d = calx_dataset_new(0, &field, 1, get_numbers, NULL, NULL);
  memset(name, 'x', 5);
  assert_string_equal(calx_dataset_field(d, 0)->name, "first");
  calx_dataset_free(d);
}

// A failed dataset tells why, has nothing in it, and frees the user's data.
static void check_refused(int64_t size, const calx_field *fields, size_t n,
                          calx_dataset_get_fn *get, const char *why)
{
  numbers user = { 0 };
  calx_dataset *d = calx_dataset_new(size, fields, n, get, &user, count_free);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), why, "dataset.c:");
  assert_int_equal(calx_dataset_size(d), 0);
  assert_int_equal(calx_dataset_field_count(d), 0);
  assert_null(calx_dataset_field(d, 0));
  float x[2];
  int64_t y;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              calx_dataset_get(d, 0, (void *const[]){ x, &y }), why);
  calx_dataset_free(d);
  assert_int_equal(user.freed, 1);
}

static void test_refused(void **state)
{
  (void)state;
  check_refused(-1, pair, 2, get_numbers, "a size of -1");
  check_refused(1, pair, 2, NULL, "get is NULL");
  check_refused(1, pair, 0, get_numbers, "0 fields, there must be 1 to 8");
  check_refused(1, NULL, 2, get_numbers, "0 fields");
  const calx_field many[CALX_MAX_FIELDS + 1] = { { .dtype = CALX_U8 } };
  check_refused(1, many, CALX_MAX_FIELDS + 1, get_numbers, "9 fields");
  const calx_field type[] = { pair[0], { .name = "y", .dtype = 99 } };
  check_refused(1, type, 2, get_numbers,
                "field 1, 'y', has no such dtype as 99");
  const calx_field none = { .name = "y" };
  check_refused(1, &none, 1, get_numbers, "no such dtype as 0");
  const calx_field deep = { .dtype = CALX_F32, .rank = 8 };
  check_refused(1, &deep, 1, get_numbers, "rank 8");
  const calx_field minus = { .dtype = CALX_F32, .rank = 1, .dims = { -2 } };
  check_refused(1, &minus, 1, get_numbers, "negative size");
  const calx_field huge = { .dtype = CALX_F32,
                            .rank = 2,
                            .dims = { INT64_MAX, 2 } };
  check_refused(1, &huge, 1, get_numbers, "too many bytes");
}

static void test_range(void **state)
{
  (void)state;
  numbers n = { .bad = 3 };
  calx_dataset *d = calx_dataset_new(10, pair, 2, get_numbers, &n, NULL);
  calx_dataset *r = calx_dataset_range(d, 2, 7);
  calx_dataset *rr = calx_dataset_range(r, 2, 5);
  assert_int_equal(calx_dataset_size(r), 5);
  assert_int_equal(calx_dataset_size(rr), 3);
  assert_string_equal(calx_dataset_field(rr, 0)->name, "x");
  float x[2];
  int64_t y = 0;
  void *fields[] = { x, &y };
  CHECK_OK(calx_dataset_get(r, 0, fields));
  assert_int_equal(y, 2);
  CHECK_OK(calx_dataset_get(rr, 2, fields));
  assert_int_equal(y, 6);
  CHECK_FAILS(CALX_DATA_LOSS, calx_dataset_get(r, 1, fields), "broken");
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(rr, 3, fields),
              "there are 3");
  calx_dataset_free(rr);
  calx_dataset_free(r);
  const int64_t bad[][2] = { { -1, 2 }, { 3, 2 }, { 0, 11 }, { 11, 11 } };
  for (size_t k = 0; k < 4; k++) {
    r = calx_dataset_range(d, bad[k][0], bad[k][1]);
    CHECK_SAYS(CALX_OUT_OF_RANGE, calx_dataset_error(r), "of 10 were asked");
    calx_dataset_free(r);
  }
  r = calx_dataset_range(d, 10, 10);
  assert_null(calx_dataset_error(r));
  assert_int_equal(calx_dataset_size(r), 0);
  calx_dataset_free(r);
  calx_dataset_free(d);
  calx_dataset *failed = calx_dataset_new(-4, pair, 2, get_numbers, &n, NULL);
  r = calx_dataset_range(failed, 0, 0);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(r), "a size of -4");
  calx_dataset_free(r);
  calx_dataset_free(failed);
}

static void test_tensors(void **state)
{
  (void)state;
  const float a[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
  const int16_t b[] = { -1, -2, -3 };
  calx_tensor *list[] = {
    calx_host_tensor(a, CALX_F32, CALX_SHAPE(3, 2, 2)),
    calx_host_tensor(b, CALX_I16, CALX_SHAPE(3)),
  };
  calx_dataset *d = calx_dataset_tensors(list, 2);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 3);
  const calx_field *f = calx_dataset_field(d, 0);
  assert_int_equal(f->rank, 2);
  assert_int_equal(f->dims[1], 2);
  assert_string_equal(f->name, "data");
  f = calx_dataset_field(d, 1);
  assert_int_equal(f->dtype, CALX_I16);
  assert_int_equal(f->rank, 0);
  for (int64_t i = 0; i < 3; i++) {
    float x[4];
    int16_t y;
    CHECK_OK(calx_dataset_get(d, i, (void *const[]){ x, &y }));
    assert_memory_equal(x, a + 4 * i, sizeof x);
    assert_int_equal(y, b[i]);
  }
  calx_dataset_free(d);
}

static void test_tensors_refused(void **state)
{
  (void)state;
  const float a[12] = { 0 };
  calx_tensor *three = calx_host_tensor(a, CALX_F32, CALX_SHAPE(3, 4));
  calx_tensor *two = calx_host_tensor(a, CALX_F32, CALX_SHAPE(2));
  calx_tensor *scalar = calx_host_tensor(a, CALX_F32, CALX_SCALAR);
  calx_tensor *poison = calx_host_tensor(a, 77, CALX_SHAPE(3));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "77");
  const struct {
    calx_tensor *list[2];
    size_t count;
    const char *why;
  } cases[] = {
    { { three, two }, 2, "tensor 1 has 2 rows, tensor 0 has 3" },
    { { three, NULL }, 2, "tensor 1 is NULL" },
    { { NULL, NULL }, 2, "tensor 0 is NULL" },
    { { scalar, NULL }, 1, "tensor 0 has no rows: its rank is 0" },
    { { three, poison }, 2, "77" },
    { { three, two }, 0, "0 tensors" },
    { { three, two }, 9, "9 tensors" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    calx_dataset *d = calx_dataset_tensors(cases[k].list, cases[k].count);
    CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), cases[k].why,
               "tensor dataset", "dataset.c:");
    calx_dataset_free(d);
  }
  calx_dataset *d = calx_dataset_tensors(NULL, 1);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "0 tensors");
  calx_dataset_free(d);
}

// Without memory each constructor still gives something that tells so.
static void test_no_memory(void **state)
{
  (void)state;
  const float a[6] = { 0 };
  calx_tensor *t = calx_host_tensor(a, CALX_F32, CALX_SHAPE(3, 2));
  numbers user = { .bad = -1 };
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 100);
    user.freed = 0;
    cx_alloc_fail_at(n);
    calx_dataset *d =
        calx_dataset_new(5, pair, 2, get_numbers, &user, count_free);
    calx_dataset *r = calx_dataset_range(d, 1, 2);
    calx_dataset *tensors = calx_dataset_tensors(&t, 1);
    calx_dataset *digits = calx_dataset_digits(3, 1);
    cx_alloc_fail_at(-1);
    whole = calx_dataset_error(d) == NULL && calx_dataset_error(r) == NULL &&
            calx_dataset_error(tensors) == NULL &&
            calx_dataset_error(digits) == NULL;
    calx_dataset *const all[] = { r, tensors, digits, d };
    for (size_t k = 0; k < 4; k++) {
      const calx_status *error = calx_dataset_error(all[k]);
      if (error != NULL) {
        CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
        assert_int_equal(calx_dataset_size(all[k]), 0);
        assert_int_equal(calx_dataset_field_count(all[k]), 0);
      }
      calx_dataset_free(all[k]);
    }
    assert_int_equal(user.freed, 1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_callback),  CHECK_TEST(test_names_are_copied),
    CHECK_TEST(test_refused),   CHECK_TEST(test_range),
    CHECK_TEST(test_tensors),   CHECK_TEST(test_tensors_refused),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_dataset", tests, NULL, NULL);
}
