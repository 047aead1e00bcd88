// kernel/sort_radix: radix sorts of keys, alone and with what goes with them.
#include <string.h>

#include "kernel/sort.h"

#define LONG_DIGITS 4096  // items from which on digits are long

static int64_t chunk_begin(const cpu_kernel_sort_memory *m, int64_t chunk)
{
  return m->n * chunk / m->chunks;  // below 2^38
}

static void each_chunk(const cpu_kernel_sort_memory *m, cpu_threads_body *body,
                       void *user)
{
  if (m->chunks == 1) {
    body(user, 0, 1);
  } else {
    cpu_threads_for(m->pool, m->chunks, 1, body, user);
  }
}

// Turns counts into the slots of the first item of each digit and chunk;
// false: all items have the same digit.
static bool first_slots(const cpu_kernel_sort_memory *m, uint32_t *counts,
                        int bits)
{
  uint32_t sum = 0;
  for (int64_t d = 0; d < (int64_t)1 << bits; d++) {
    const uint32_t before = sum;
    for (int64_t c = 0; c < m->chunks; c++) {
      uint32_t *count = &counts[(c << CPU_KERNEL_SORT_DIGIT) + d];
      const uint32_t n = *count;
      *count = sum;
      sum += n;
    }
    if ((int64_t)(sum - before) == m->n) return false;
  }
  return true;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define ITEM uint32_t
#define KEY(x) (x)
#define BITS 32
#define RADIX_OF(x) PASTE(x, _keys_32)
#include "kernel/sort_radix.h"
#define ITEM uint64_t
#define KEY(x) (x)
#define BITS 64
#define RADIX_OF(x) PASTE(x, _keys_64)
#include "kernel/sort_radix.h"
#define ITEM uint64_t
#define KEY(x) ((x) >> 32)
#define BITS 32
#define RADIX_OF(x) PASTE(x, _pairs_32)
#include "kernel/sort_radix.h"
#define ITEM cpu_kernel_sort_pair
#define KEY(x) ((x).key)
#define BITS 64
#define RADIX_OF(x) PASTE(x, _pairs_64)
#include "kernel/sort_radix.h"
