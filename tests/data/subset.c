// subset: listed samples of another dataset.
#include "calx/dataset.h"
#include "check.h"

static calx_status *get_number(void *user, int64_t index, void *const *fields)
{
  (void)user;
  *(int64_t *)fields[0] = 10 * index;
  return NULL;
}

static const calx_field number[] = { { .name = "n", .dtype = CALX_I64 } };

static void test_order(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_new(5, number, 1, get_number, NULL, NULL);
  int64_t indices[] = { 4, 0, 0, 3 };
  const int64_t expected[] = { 40, 0, 0, 30 };
  calx_dataset *s = calx_dataset_subset(d, indices, 4);
  indices[0] = 1;  // the list is copied
  assert_null(calx_dataset_error(s));
  assert_int_equal(calx_dataset_size(s), 4);
  assert_string_equal(calx_dataset_field(s, 0)->name, "n");
  int64_t n = -1;
  void *fields[] = { &n };
  for (int64_t i = 0; i < 4; i++) {
    CHECK_OK(calx_dataset_get(s, i, fields));
    assert_int_equal(n, expected[i]);
  }
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(s, 4, fields), "there are 4");
  calx_dataset_free(s);
  s = calx_dataset_subset(d, NULL, 0);
  assert_null(calx_dataset_error(s));
  assert_int_equal(calx_dataset_size(s), 0);
  calx_dataset_free(s);
  calx_dataset_free(d);
}

static void check_refused(calx_dataset *d, const int64_t *indices,
                          int64_t count, calx_code code, const char *says)
{
  calx_dataset *s = calx_dataset_subset(d, indices, count);
  CHECK_SAYS(code, calx_dataset_error(s), says);
  assert_int_equal(calx_dataset_size(s), 0);
  calx_dataset_free(s);
}

static void test_refused(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_new(5, number, 1, get_number, NULL, NULL);
  const int64_t past[] = { 0, 5 };
  const int64_t negative[] = { -1 };
  check_refused(d, past, 2, CALX_OUT_OF_RANGE, "index 1 is 5");
  check_refused(d, negative, 1, CALX_OUT_OF_RANGE, "index 0 is -1");
  check_refused(d, past, -1, CALX_INVALID_ARGUMENT, "a count of -1");
  check_refused(d, NULL, 2, CALX_INVALID_ARGUMENT, "indices are NULL");
  calx_dataset_free(d);
  d = calx_dataset_new(-4, number, 1, get_number, NULL, NULL);
  check_refused(d, past, 1, CALX_INVALID_ARGUMENT, "a size of -4");
  calx_dataset_free(d);
  calx_dataset *s = calx_dataset_subset(NULL, past, 1);
  assert_non_null(calx_dataset_error(s));
  calx_dataset_free(s);
}

static void test_no_memory(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_new(5, number, 1, get_number, NULL, NULL);
  const int64_t indices[] = { 4, 0 };
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 20);
    cx_alloc_fail_at(n);
    calx_dataset *s = calx_dataset_subset(d, indices, 2);
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_dataset_error(s);
    whole = error == NULL;
    if (!whole) CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
    calx_dataset_free(s);
  }
  calx_dataset_free(d);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_order),
    CHECK_TEST(test_refused),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_subset", tests, NULL, NULL);
}
