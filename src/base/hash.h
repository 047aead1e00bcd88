// base/hash: 128-bit content hash (xxHash's XXH3) and its hexadecimal name.
#ifndef CX_BASE_HASH_H
#define CX_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

typedef struct cx_hash {
  uint64_t low, high;
} cx_hash;

cx_hash cx_hash_bytes(const void *data, size_t size, uint64_t seed);
static inline bool cx_hash_equal(cx_hash a, cx_hash b)
{
  return a.low == b.low && a.high == b.high;
}
void cx_hash_hex(cx_hash hash, char out[33]);

// Of a whole file's content, read in pieces.
calx_status *cx_hash_file(const char *path, cx_hash *out_hash) CALX_MUST_USE;

#endif
