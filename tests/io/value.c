// value: the tree of a saved state. Without a device.
#include "calx/io.h"
#include "support/support.h"

static void test_scalars(void **state)
{
  (void)state;
  calx_value *v = calx_value_int(7);
  assert_int_equal(calx_value_kind(v), CALX_KIND_INT);
  assert_int_equal(calx_value_as_int(v), 7);
  CHECK_CLOSE(calx_value_as_float(v), 7, 0);
  assert_true(calx_value_as_bool(v));
  assert_null(calx_value_as_string(v));
  assert_null(calx_value_as_tensor(v));
  calx_value_free(v);
  v = calx_value_float(-2.5);
  assert_int_equal(calx_value_as_int(v), -2);
  calx_value_free(v);
  v = calx_value_float(1e300);
  assert_int_equal(calx_value_as_int(v), INT64_MAX);
  calx_value_free(v);
  v = calx_value_bytes("a\0b", 3);
  assert_int_equal(calx_value_count(v), 3);
  assert_memory_equal(calx_value_as_string(v), "a\0b", 4);
  calx_value_free(v);
  v = calx_value_none();
  assert_int_equal(calx_value_kind(v), CALX_KIND_NONE);
  assert_true(isnan(calx_value_as_float(v)));
  assert_false(calx_value_as_bool(v));
  calx_value_free(v);
  calx_value_free(NULL);
  assert_int_equal(calx_value_kind(NULL), CALX_KIND_NONE);
  assert_null(calx_value_container(CALX_KIND_INT));
  assert_string_equal(calx_kind_name(CALX_KIND_DICT), "dict");
  assert_string_equal(calx_kind_name((calx_kind)99), "?");
}

static void test_lists(void **state)
{
  (void)state;
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  for (int i = 0; i < 100; i++) {
    CHECK_STATUS_OK(calx_value_append(list, calx_value_int(i)));
  }
  assert_int_equal(calx_value_count(list), 100);
  assert_int_equal(calx_value_as_int(calx_value_item(list, 42)), 42);
  assert_null(calx_value_item(list, 100));
  assert_null(calx_value_key(list, 0));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_value_set(list, "a", calx_value_int(1)), "list");
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_value_append(list, NULL), "");
  calx_value_free(list);
}

// The order of putting stays, also where an item is replaced, with few items
// and with many.
static void test_dicts(void **state)
{
  (void)state;
  for (int n = 1; n <= 3000; n = n * 3 + 1) {
    calx_value *dict = calx_value_container(CALX_KIND_DICT);
    char key[32];
    for (int round = 0; round < 2; round++) {
      for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "layer.%d", i * 7);
        CHECK_STATUS_OK(calx_value_set(dict, key, calx_value_int(i + round)));
        CHECK_STATUS_OK(calx_value_set_at(dict, i, calx_value_float(i)));
      }
    }
    assert_int_equal(calx_value_count(dict), 2 * n);
    for (int i = 0; i < n; i++) {
      snprintf(key, sizeof key, "layer.%d", i * 7);
      assert_int_equal(calx_value_as_int(calx_value_get(dict, key)), i + 1);
      assert_string_equal(calx_value_key(dict, (size_t)i * 2), key);
      assert_null(calx_value_key(dict, (size_t)i * 2 + 1));
      assert_int_equal(calx_value_key_number(dict, (size_t)i * 2 + 1), i);
      CHECK_CLOSE(calx_value_as_float(calx_value_get_at(dict, i)), i, 0);
    }
    assert_null(calx_value_get(dict, "layer"));
    assert_null(calx_value_get_at(dict, n));
    calx_value_free(dict);
  }
}

// An item is in one container; what is in another one is not freed by itself.
static void test_one_owner(void **state)
{
  (void)state;
  calx_value *a = calx_value_container(CALX_KIND_TUPLE);
  calx_value *b = calx_value_container(CALX_KIND_LIST);
  calx_value *x = calx_value_int(1);
  CHECK_STATUS_OK(calx_value_append(a, x));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_value_append(b, x), "int",
               "in a container already");
  calx_value_free(x);
  assert_int_equal(calx_value_as_int(calx_value_item(a, 0)), 1);
  calx_value_free(a);
  calx_value_free(b);
}

// Freeing does not recurse.
static void test_deep(void **state)
{
  (void)state;
  calx_value *root = calx_value_container(CALX_KIND_LIST), *v = root;
  for (int i = 0; i < 300000; i++) {
    calx_value *next = calx_value_container(CALX_KIND_LIST);
    CHECK_STATUS_OK(calx_value_append(v, next));
    v = next;
  }
  calx_value_free(root);
}

// Every allocation fails once: nothing is left, nothing is half put.
static void test_without_memory(void **state)
{
  (void)state;
  for (long n = 0; n < 200; n++) {
    calx_value *dict = calx_value_container(CALX_KIND_DICT);
    cx_alloc_fail_at(n);
    calx_status *status = NULL;
    char key[16];
    for (int i = 0; i < 20 && status == NULL; i++) {
      snprintf(key, sizeof key, "%d", i);
      status = calx_value_set(dict, key, calx_value_string(key));
    }
    cx_alloc_fail_at(-1);
    if (status != NULL) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    for (size_t i = 0; i < calx_value_count(dict); i++) {
      const char *k = calx_value_key(dict, i);
      assert_ptr_equal(calx_value_get(dict, k), calx_value_item(dict, i));
    }
    bool done = status == NULL;
    calx_status_free(status);
    calx_value_free(dict);
    if (done) return;
  }
  fail_msg("it never had enough memory");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_scalars), SUPPORT_TEST(test_lists),
    SUPPORT_TEST(test_dicts),   SUPPORT_TEST(test_one_owner),
    SUPPORT_TEST(test_deep),    SUPPORT_TEST(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
