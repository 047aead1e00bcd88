// idx: contents of IDX files in the making, for the two halves of their tests.
#ifndef CX_TESTS_DATA_IDX_H
#define CX_TESTS_DATA_IDX_H

#include <zlib.h>

#include "check.h"

// A file's content in the making.
typedef struct bytes {
  uint8_t *data;
  size_t size;
} bytes;

static inline void put_u32(uint8_t *p, uint32_t v)
{
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

// The header for these sizes, then `count` elements: 0, 1, 2, … modulo `wrap`.
static inline bytes make_idx(size_t rank, const uint32_t *dims, size_t count,
                             int wrap)
{
  bytes b = { .size = 4 + 4 * rank + count };
  b.data = test_calloc(b.size, 1);
  b.data[2] = 8;
  b.data[3] = (uint8_t)rank;
  for (size_t d = 0; d < rank; d++) put_u32(b.data + 4 + 4 * d, dims[d]);
  for (size_t i = 0; i < count; i++) {
    b.data[4 + 4 * rank + i] = (uint8_t)((int)i % wrap);
  }
  return b;
}

static inline bytes make_images(void)
{
  return make_idx(3, (uint32_t[]){ 5, 2, 3 }, 30, 256);
}

static inline bytes make_labels(void)
{
  return make_idx(1, (uint32_t[]){ 5 }, 5, 10);
}

// One gzip member of it.
static inline bytes pack(const void *data, size_t size)
{
  z_stream z = { 0 };
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY),
                   Z_OK);
  bytes b = { .size = deflateBound(&z, size) };
  b.data = test_malloc(b.size);
  z.next_in = (z_const Bytef *)data;
  z.avail_in = (uInt)size;
  z.next_out = b.data;
  z.avail_out = (uInt)b.size;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  b.size = z.total_out;
  deflateEnd(&z);
  return b;
}

static inline void drop(bytes b)
{
  test_free(b.data);
}

#endif
