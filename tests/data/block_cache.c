// cache: blocks of host memory, reused, aligned, and home when all is over.
#include "data/block_cache.h"

#include "check.h"

static const size_t bytes[] = { 100, 0, 8, 1 };

static void test_blocks(void **state)
{
  (void)state;
  cx_data_block_cache *cache = cx_data_block_cache_new(4, bytes, 2);
  cx_data_block *a = cx_data_block_cache_take(cache);
  for (size_t k = 0; k < 4; k++) {
    assert_int_equal((uintptr_t)a->fields[k] % 64, 0);
    memset(a->fields[k], (int)k, bytes[k]);
  }
  // The fields do not overlap.
  for (size_t k = 0; k < 4; k++) {
    for (size_t i = 0; i < bytes[k]; i++) {
      assert_int_equal(((unsigned char *)a->fields[k])[i], k);
    }
  }
  cx_data_block_hold(a, 2);
  cx_data_block_release(a);
  cx_data_block_release(a);
  cx_data_block *b = cx_data_block_cache_take(cache);
  assert_ptr_not_equal(a, b);  // one hold on `a` is left
  cx_data_block_release(a);
  cx_data_block *c = cx_data_block_cache_take(cache);
  assert_ptr_equal(a, c);
  cx_data_block_release(b);
  cx_data_block_release(c);
  cx_data_block_cache_free(cache);
}

static void test_keeps_few(void **state)
{
  (void)state;
  cx_data_block_cache *cache = cx_data_block_cache_new(4, bytes, 2);
  long before = cx_alloc_live();
  cx_data_block *blocks[5];
  for (int i = 0; i < 5; i++) blocks[i] = cx_data_block_cache_take(cache);
  assert_int_equal(cx_alloc_live(), before + 5);
  for (int i = 0; i < 5; i++) cx_data_block_release(blocks[i]);
  assert_int_equal(cx_alloc_live(), before + 2);
  cx_data_block_cache_free(cache);
}

static void test_outlived(void **state)
{
  (void)state;
  cx_data_block_cache *cache = cx_data_block_cache_new(4, bytes, 2);
  cx_data_block *a = cx_data_block_cache_take(cache),
                *b = cx_data_block_cache_take(cache);
  cx_data_block_cache_free(cache);
  memset(a->fields[0], 1, bytes[0]);
  cx_data_block_release(a);
  cx_data_block_release(b);
}

static void test_no_memory(void **state)
{
  (void)state;
  const size_t huge[] = { SIZE_MAX - 100, 200 };
  assert_null(cx_data_block_cache_new(2, huge, 1));
  cx_alloc_fail_at(0);
  assert_null(cx_data_block_cache_new(4, bytes, 1));
  cx_data_block_cache *cache = cx_data_block_cache_new(4, bytes, 1);
  cx_alloc_fail_at(0);
  assert_null(cx_data_block_cache_take(cache));
  cx_data_block_cache_free(cache);
  cx_data_block_cache_free(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_blocks),
    CHECK_TEST(test_keeps_few),
    CHECK_TEST(test_outlived),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_block_cache", tests, NULL, NULL);
}
