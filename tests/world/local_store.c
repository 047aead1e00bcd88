// The store of a world of one process, and its table.
#include "base/thread.h"
#include "check.h"
#include "store/table.h"
#include "world/state.h"

static void test_table(void **state)
{
  (void)state;
  enum { KEYS = 1000 };
  cx_store_table table = { 0 };
  char key[32];
  for (int i = 0; i < KEYS; i++) {
    snprintf(key, sizeof key, "key/%d", i);
    check_ok(cx_store_table_put(&table, key, &i, sizeof i));
  }
  for (int i = 0; i < KEYS; i += 2) {
    snprintf(key, sizeof key, "key/%d", i);
    cx_store_table_drop(&table, key);
    cx_store_table_drop(&table, key);
  }
  for (int i = 0; i < KEYS; i++) {
    snprintf(key, sizeof key, "key/%d", i);
    const cx_store_entry *entry = cx_store_table_find(&table, key);
    assert_int_equal(entry != NULL, i % 2 == 1);
    if (entry == NULL) continue;
    assert_int_equal(entry->size, sizeof i);
    assert_memory_equal(entry->value, &i, sizeof i);
  }
  assert_int_equal(table.count, KEYS / 2);
  size_t bytes = 0;
  for (int i = 1; i < KEYS; i += 2) {
    bytes += (size_t)snprintf(key, sizeof key, "key/%d", i) + 1;
    bytes += sizeof(cx_store_entry) + sizeof i + 1;
  }
  assert_int_equal(table.bytes, bytes);
  cx_store_table_free(&table);
  assert_null(cx_store_table_find(&table, "key/1"));
  cx_store_table_drop(&table, "key/1");
}

static void test_limits(void **state)
{
  (void)state;
  cx_store_table table = { 0 };
  char key[CX_STORE_TABLE_KEY + 2];
  memset(key, 'k', sizeof key);
  key[CX_STORE_TABLE_KEY + 1] = '\0';
  check_fails(cx_store_table_put(&table, key, "", 0), CALX_INVALID_ARGUMENT,
              "1 to 1024 bytes");
  key[CX_STORE_TABLE_KEY] = '\0';
  check_ok(cx_store_table_put(&table, key, "", 0));
  check_fails(cx_store_table_put(&table, "", "", 0), CALX_INVALID_ARGUMENT,
              "a key of 0");
  check_fails(cx_store_table_put(&table, "large", "", CX_STORE_TABLE_VALUE + 1),
              CALX_INVALID_ARGUMENT, "a value of 67108865");
  // A key without a value takes memory as well.
  table.bytes = CX_STORE_TABLE_BYTES - (sizeof(cx_store_entry) + 5 + 1);
  check_fails(cx_store_table_put(&table, "empty", "", 0),
              CALX_RESOURCE_EXHAUSTED, "key 'empty' of 0 bytes");
  table.bytes = CX_STORE_TABLE_BYTES - (sizeof(cx_store_entry) + 5 + 2);
  check_fails(cx_store_table_put(&table, "last", "ab", 2),
              CALX_RESOURCE_EXHAUSTED, "key 'last' of 2 bytes");
  check_ok(cx_store_table_put(&table, "last", "a", 1));
  cx_store_table_free(&table);
}

static void test_put_get(void **state)
{
  (void)state;
  char *value;
  size_t size;
  check_ok(cx_world_join());
  check_ok(cx_world_store_put("a", "x\0y", 3));
  check_ok(cx_world_store_put("a", "x\0y", 3));
  check_fails(cx_world_store_put("a", "x", 1), CALX_ALREADY_EXISTS, "'a'");
  check_ok(cx_world_store_get("a", 0, &value, &size));
  assert_int_equal(size, 3);
  assert_memory_equal(value, "x\0y", 4);
  cx_free(value);
  check_fails(cx_world_store_try_get("b", &value, &size), CALX_NOT_FOUND,
              "'b'");
  assert_null(value);
  check_fails(cx_world_store_get("b", 10, &value, &size),
              CALX_DEADLINE_EXCEEDED, "key 'b' within 10 ms");
  assert_null(value);
  check_ok(cx_world_store_put("b", NULL, 0));
  check_ok(cx_world_store_try_get("b", &value, &size));
  assert_int_equal(size, 0);
  assert_string_equal(value, "");
  cx_free(value);
  cx_world_store_drop("a");
  check_fails(cx_world_store_try_get("a", &value, &size), CALX_NOT_FOUND,
              "'a'");
  cx_world_store_drop("b");
  check_ok(cx_world_barrier("all", 0));
  cx_world_leave(NULL);
}

typedef struct getter {
  calx_status *status;
  char *value;
  size_t size;
} getter;

static void get_late(void *user)
{
  getter *g = user;
  g->status = cx_world_store_get("late", 60000, &g->value, &g->size);
}

static void test_waiting(void **state)
{
  (void)state;
  check_ok(cx_world_join());
  getter g[3] = { { 0 } };
  cx_thread threads[3];
  for (int i = 0; i < 3; i++) {
    check_ok(cx_thread_start(&threads[i], get_late, &g[i]));
  }
  check_ok(cx_world_store_put("late", "value", 5));
  for (int i = 0; i < 3; i++) {
    cx_thread_join(&threads[i]);
    check_ok(g[i].status);
    assert_string_equal(g[i].value, "value");
    cx_free(g[i].value);
  }
  cx_world_leave(NULL);
}

static void test_failure(void **state)
{
  (void)state;
  check_ok(cx_world_join());
  getter g = { 0 };
  cx_thread thread;
  check_ok(cx_thread_start(&thread, get_late, &g));
  calx_status *why = calx_status_new(CALX_DATA_LOSS, "all is lost");
  // Leaving with a failure wakes threads that wait; it may also precede the
  // wait.
  cx_world_fail(CALX_ABORTED, calx_status_message(why));
  cx_thread_join(&thread);
  check_fails(g.status, CALX_ABORTED, "all is lost");
  cx_world_leave(why);
  calx_status_free(why);
  check_ok(cx_world_failure());
}

static void test_joining(void **state)
{
  (void)state;
  assert_false(cx_world_joined());
  assert_int_equal(cx_world_size(cx_world_self()), 1);
  cx_world_leave(NULL);  // nothing
  check_ok(cx_world_join());
  assert_true(cx_world_joined());
  check_fails(cx_world_join(), CALX_FAILED_PRECONDITION,
              "joined the world already");
  check_ok(cx_world_ranks(4));
  assert_int_equal(cx_world_size(cx_world_self()), 4);
  cx_world_leave(NULL);
  assert_false(cx_world_joined());
  assert_int_equal(cx_world_size(cx_world_self()), 1);
}

static void test_timeout(void **state)
{
  (void)state;
  assert_int_equal(cx_world_timeout_ms(), 1800000);
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "2.5", 1);
  assert_int_equal(cx_world_timeout_ms(), 2500);
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "soon", 1);
  assert_int_equal(cx_world_timeout_ms(), 1800000);
}

static void test_no_memory(void **state)
{
  (void)state;
  cx_store_table table = { 0 };
  for (long n = 0;; n++) {
    cx_alloc_fail_at(n);
    calx_status *status = cx_store_table_put(&table, "key", "value", 5);
    cx_alloc_fail_at(-1);
    if (status == NULL) break;
    check_fails(status, CALX_RESOURCE_EXHAUSTED, "memory");
    assert_null(cx_store_table_find(&table, "key"));
  }
  cx_store_table_free(&table);
  cx_alloc_fail_at(0);
  check_fails(cx_world_ranks(2), CALX_RESOURCE_EXHAUSTED, "memory");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_table),   CHECK_TEST(test_limits),
    CHECK_TEST(test_put_get), CHECK_TEST(test_waiting),
    CHECK_TEST(test_failure), CHECK_TEST(test_joining),
    CHECK_TEST(test_timeout), CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("world: the store of one process", tests,
                                     NULL, NULL);
}
