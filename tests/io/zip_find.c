// zip_find: where entries lie, with zip64's fields and without; and in damaged
// archives nothing is read that is not there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/zip.h"

#define LIMIT 0xffffffffu

typedef struct archive {
  unsigned char data[1024];
  size_t size;
} archive;

static void put(archive *a, uint64_t n, int bytes)
{
  assert_true(a->size + (size_t)bytes <= sizeof a->data);
  for (int i = 0; i < bytes; i++) {
    a->data[a->size++] = (unsigned char)(n >> (8 * i));
  }
}

static void zeros(archive *a, int bytes)
{
  for (int i = 0; i < bytes; i++) put(a, 0, 1);
}

// A header, a name of 3 bytes, `extra` bytes more, and 5 of content. Returns
// where the content begins.
static size_t add_local(archive *a, int extra)
{
  put(a, 0x04034b50, 4);
  zeros(a, 22);
  put(a, 3, 2);
  put(a, (uint64_t)extra, 2);
  zeros(a, 3 + extra);
  size_t place = a->size;
  put(a, 0x0102030405, 5);
  return place;
}

// large: the place is in zip64's field, behind another one; larger: behind both
// sizes as well.
static void add_central(archive *a, size_t place, bool large, bool larger)
{
  int extra = large ? 6 + 4 + (larger ? 24 : 8) : 0;
  put(a, 0x02014b50, 4);
  zeros(a, 16);
  put(a, larger ? LIMIT : 5, 4);
  put(a, larger ? LIMIT : 5, 4);
  put(a, 3, 2);
  put(a, (uint64_t)extra, 2);
  put(a, 2, 2);  // of a comment
  zeros(a, 8);
  put(a, large ? LIMIT : place, 4);
  zeros(a, 3);
  if (large) {
    put(a, 0x7777, 2);
    put(a, 2, 2);
    put(a, 0, 2);
    put(a, 1, 2);
    put(a, larger ? 24 : 8, 2);
    if (larger) put(a, 5, 8);
    if (larger) put(a, 5, 8);
    put(a, place, 8);
  }
  zeros(a, 2);
}

static void add_end(archive *a, size_t directory, bool large, int comment)
{
  if (large) {
    size_t end = a->size;
    put(a, 0x06064b50, 4);
    zeros(a, 44);
    put(a, directory, 8);
    put(a, 0x07064b50, 4);
    put(a, 0, 4);
    put(a, end, 8);
    put(a, 1, 4);
  }
  put(a, 0x06054b50, 4);
  zeros(a, 12);
  put(a, large ? LIMIT : directory, 4);
  put(a, (uint64_t)comment, 2);
  zeros(a, comment);
}

enum { ENTRIES = 3 };

static archive make(bool large_entries, bool large_end, int comment,
                    uint64_t places[ENTRIES])
{
  archive a = { .size = 0 };
  size_t headers[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) {
    headers[i] = a.size;
    places[i] = add_local(&a, 7 * i);
  }
  size_t directory = a.size;
  for (int i = 0; i < ENTRIES; i++) {
    add_central(&a, headers[i], large_entries && i > 0, i > 1);
  }
  add_end(&a, directory, large_end, comment);
  return a;
}

static void test_places(void **state)
{
  (void)state;
  for (int k = 0; k < 12; k++) {
    uint64_t wanted[ENTRIES], got[ENTRIES + 1];
    archive a = make(k & 1, k & 2, 9 * (k / 4), wanted);
    cx_io_zip_offsets(a.data, a.size, ENTRIES, got);
    assert_memory_equal(got, wanted, sizeof wanted);
    // One more than there are, and one less.
    cx_io_zip_offsets(a.data, a.size, ENTRIES + 1, got);
    assert_memory_equal(got, wanted, sizeof wanted);
    assert_int_equal(got[ENTRIES], 0);
    cx_io_zip_offsets(a.data, a.size, ENTRIES - 1, got);
    assert_memory_equal(got, wanted, (ENTRIES - 1) * sizeof *wanted);
  }
}

// From memory of exactly that size, where a sanitizer sees a read too far.
static void find(const archive *a, size_t size)
{
  uint64_t got[ENTRIES];
  unsigned char *data = test_malloc(size + 1);
  memcpy(data + 1, a->data, size);
  cx_io_zip_offsets(data + 1, size, ENTRIES, got);
  test_free(data);
}

static void test_damaged(void **state)
{
  (void)state;
  uint64_t places[ENTRIES];
  archive a = make(true, true, 4, places);
  static const unsigned char values[] = { 0, 0x7f, 0x80, 0xff };
  for (size_t i = 0; i < a.size; i++) {
    find(&a, i);
    unsigned char was = a.data[i];
    for (size_t k = 0; k < sizeof values; k++) {
      a.data[i] = values[k];
      find(&a, a.size);
    }
    a.data[i] = was;
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_places),
    cmocka_unit_test(test_damaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
