// fuzz/cache_entry: any bytes as a file of the disk cache.
//
// Damage is mostly found by the checksum, so the bytes are also read with a
// right one: then the sizes and the label before it are what is tried.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lazy/cache/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHECKSUM_AT = 16, BODY_AT = 56 };

static void check(int right)
{
  if (!right) abort();
}

static void check_part(const char *data, size_t size, const char *part,
                       size_t bytes)
{
  check(part >= data && (size_t)(part - data) <= size &&
        bytes <= size - (size_t)(part - data));
}

static void read_entry(const char *data, size_t size)
{
  cx_lazy_cache_entry e;
  if (cx_lazy_cache_entry_read(data, size, &e) != CX_LAZY_CACHE_WHOLE) return;
  check_part(data, size, e.plugin, strlen(e.plugin) + 1);
  check_part(data, size, e.platform, strlen(e.platform) + 1);
  check_part(data, size, e.program, strlen(e.program) + 1);
  check_part(data, size, e.key, e.key_size);
  check_part(data, size, e.options, e.options_size);
  check_part(data, size, e.bytes, e.n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  read_entry((const char *)data, size);
  if (size < BODY_AT) return 0;
  char *copy = malloc(size);
  check(copy != NULL);
  memcpy(copy, data, size);
  cx_hash sum = cx_hash_bytes(copy + BODY_AT, size - BODY_AT, 0);
  memcpy(copy + CHECKSUM_AT, &sum, sizeof sum);
  read_entry(copy, size);
  free(copy);
  return 0;
}
