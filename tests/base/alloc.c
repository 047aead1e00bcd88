// Memory: counting, the n-th failure, growth, arenas.
#include <sys/mman.h>

#include "base/arena.h"
#include "check.h"

static void test_counts(void **state)
{
  (void)state;
  long all = cx_alloc_count(), live = cx_alloc_live();
  void *a = cx_alloc(10), *b = cx_calloc(3, 5), *c = cx_strdup("abc");
  assert_int_equal(cx_alloc_live(), live + 3);
  a = cx_realloc(a, 1000);
  void *d = cx_realloc(NULL, 7);
  assert_int_equal(cx_alloc_live(), live + 4);
  assert_int_equal(cx_alloc_count(), all + 5);
  cx_free(a);
  cx_free(b);
  cx_free(c);
  cx_free(d);
  cx_free(NULL);
  assert_int_equal(cx_alloc_live(), live);
}

static void test_contents(void **state)
{
  (void)state;
  char *zero = cx_calloc(100, 3);
  for (int i = 0; i < 300; i++) assert_int_equal(zero[i], 0);
  char *text = cx_strndup("hello", 3);
  assert_string_equal(text, "hel");
  text = cx_realloc(text, 100);
  assert_string_equal(text, "hel");
  void *a = cx_alloc(0), *b = cx_calloc(0, 5);
  assert_true(a != NULL && b != NULL && a != b);
  cx_free(zero);
  cx_free(text);
  cx_free(a);
  cx_free(b);
}

// Zeroed, aligned to huge pages, and given back in parts.
static void test_pages(void **state)
{
  (void)state;
  const size_t bytes = CX_HUGE_PAGE + 5;
  unsigned char *p = cx_alloc_pages(bytes);
  assert_non_null(p);
  assert_int_equal((uintptr_t)p % CX_HUGE_PAGE, 0);
  for (size_t i = 0; i < 2 * CX_HUGE_PAGE; i++) assert_int_equal(p[i], 0);
  memset(p, 7, 2 * CX_HUGE_PAGE);
  cx_free_pages(p + 65536, CX_HUGE_PAGE);
  assert_int_equal(p[65535], 7);
  assert_int_equal(p[CX_HUGE_PAGE + 65536], 7);
  cx_free_pages(p, 65536);
  cx_free_pages(p + CX_HUGE_PAGE + 65536, CX_HUGE_PAGE - 65536);
  assert_null(cx_alloc_pages(SIZE_MAX));
  assert_null(cx_alloc_pages((size_t)PTRDIFF_MAX));
  cx_alloc_fail_at(0);
  assert_null(cx_alloc_pages(1));
}

static void test_too_much(void **state)
{
  (void)state;
  assert_null(cx_calloc(SIZE_MAX / 2, 3));
  assert_null(cx_alloc(SIZE_MAX));
  size_t out = 7;
  assert_false(cx_mul_size(SIZE_MAX, 2, &out));
  assert_true(cx_mul_size(SIZE_MAX, 1, &out));
  assert_true(out == SIZE_MAX);
  assert_false(cx_add_size(SIZE_MAX, 1, &out));
  assert_true(cx_add_size(SIZE_MAX - 1, 1, &out));
}

// The n-th from now fails, once.
static void test_fail_at(void **state)
{
  (void)state;
  for (long n = 0; n < 5; n++) {
    cx_alloc_fail_at(n);
    void *p[8];
    for (long i = 0; i < 8; i++) {
      p[i] = i % 2 != 0 ? cx_calloc(1, 8) : cx_alloc(8);
      assert_true((p[i] == NULL) == (i == n));
    }
    for (int i = 0; i < 8; i++) cx_free(p[i]);
  }
  char *s = cx_strdup("kept");
  cx_alloc_fail_at(0);
  assert_null(cx_realloc(s, 1000));
  assert_string_equal(s, "kept");
  cx_alloc_fail_at(0);
  cx_alloc_fail_at(-1);
  cx_free(cx_realloc(s, 1000));
}

static void test_grow(void **state)
{
  (void)state;
  int *items = NULL;
  size_t capacity = 0;
  for (int i = 0; i < 1000; i++) {
    assert_true(cx_grow(&items, &capacity, (size_t)i + 1, sizeof *items));
    assert_true(capacity > (size_t)i);
    items[i] = i;
  }
  for (int i = 0; i < 1000; i++) assert_int_equal(items[i], i);
  size_t before = capacity;
  cx_alloc_fail_at(0);
  assert_false(cx_grow(&items, &capacity, capacity + 1, sizeof *items));
  cx_alloc_fail_at(-1);
  assert_true(capacity == before && items[999] == 999);
  assert_false(cx_grow(&items, &capacity, SIZE_MAX / 2, sizeof *items));
  assert_true(cx_grow(&items, &capacity, 5, sizeof *items));
  assert_true(capacity == before);
  cx_free(items);
}

// Growth is geometric: few allocations for many items.
static void test_grow_seldom(void **state)
{
  (void)state;
  char *items = NULL;
  size_t capacity = 0;
  long before = cx_alloc_count();
  for (size_t i = 1; i < 100000; i++) {
    assert_true(cx_grow(&items, &capacity, i, 1));
  }
  assert_true(cx_alloc_count() - before < 40);
  cx_free(items);
}

// ---- arenas -----------------------------------------------------------------

static void test_arena(void **state)
{
  (void)state;
  cx_arena arena = { 0 };
  for (size_t n = 0; n < 3000; n++) {
    unsigned char *p = cx_arena_alloc(&arena, n);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (size_t i = 0; i < n; i += 97) assert_int_equal(p[i], 0);
    memset(p, 0xff, n);
  }
  char *big = CX_ARENA_ARRAY(&arena, char, (size_t)1 << 22);
  assert_non_null(big);
  big[(1 << 22) - 1] = 1;
  assert_string_equal(cx_arena_strndup(&arena, "hello", 4), "hell");
  assert_null(CX_ARENA_ARRAY(&arena, uint64_t, SIZE_MAX / 4));
  assert_null(cx_arena_alloc(&arena, SIZE_MAX));
  assert_null(cx_arena_strndup(&arena, "x", SIZE_MAX));
  cx_arena_free(&arena);
  cx_arena_free(&arena);
  assert_null(arena.blocks);
}

static void test_arena_limit(void **state)
{
  (void)state;
  cx_arena arena = { .limit = 100 };
  assert_non_null(cx_arena_alloc(&arena, 50));
  assert_null(cx_arena_alloc(&arena, 60));
  assert_non_null(cx_arena_alloc(&arena, 30));
  assert_null(cx_arena_alloc(&arena, 16));
  cx_arena_reset(&arena);
  assert_non_null(cx_arena_alloc(&arena, 90));
  cx_arena_free(&arena);
  assert_int_equal(arena.limit, 100);
}

// A reset arena is empty, zeroed anew, and needs no memory for as much again.
static void test_arena_reset(void **state)
{
  (void)state;
  cx_arena arena = { 0 };
  cx_arena_reset(&arena);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 100; i++) {
      unsigned char *p = cx_arena_alloc(&arena, 100);
      assert_int_equal(p[99], 0);
      memset(p, 0xee, 100);
    }
    cx_arena_reset(&arena);
    assert_int_equal(arena.used, 0);
  }
  cx_alloc_fail_at(0);
  assert_non_null(cx_arena_alloc(&arena, 100));
  cx_alloc_fail_at(-1);
  cx_arena_free(&arena);
  cx_alloc_fail_at(0);
  assert_null(cx_arena_alloc(&arena, 100));
}

#define HOLES ((size_t)70000)  // Linux lets a process have 65,530 mappings
#define PAGE ((size_t)4096)

// A part that cannot be unmapped, which would cut a mapping in two, gives its
// memory back all the same.
static void test_many_mappings(void **state)
{
  (void)state;
  const size_t bytes = cx_whole_pages(2 * HOLES * PAGE);
  unsigned char *p = cx_alloc_pages(bytes);
  assert_non_null(p);
  unsigned char *last = p + 2 * (HOLES - 1) * PAGE;
  *last = 1;
  for (size_t i = 0; i < HOLES; i++) cx_free_pages(p + 2 * i * PAGE, PAGE);
  unsigned char resident;
  const bool is_mapped = mincore(last, PAGE, &resident) == 0;
  const int left = is_mapped ? *last : 0;
  cx_free_pages(p, bytes);
  assert_int_equal(left, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_counts),        CHECK_TEST(test_contents),
    CHECK_TEST(test_pages),         CHECK_TEST(test_too_much),
    CHECK_TEST(test_fail_at),       CHECK_TEST(test_grow),
    CHECK_TEST(test_grow_seldom),   CHECK_TEST(test_arena),
    CHECK_TEST(test_arena_limit),   CHECK_TEST(test_arena_reset),
    CHECK_TEST(test_many_mappings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
