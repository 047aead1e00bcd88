// kernel/sort: sorting lines by keys that are integers. A comparator that is an
// order of numbers becomes one of unsigned integers; lines are then sorted
// digit by digit, short ones by counting, and of few first elements only the
// candidates.
#ifndef CPU_KERNEL_SORT_H
#define CPU_KERNEL_SORT_H

#include <stdatomic.h>

#include "kernel/internal.h"

// How the bits of an element become a key, whose order is that of unsigned
// integers.
typedef struct cpu_kernel_sort_order {
  int bits;  // of an element
  bool is_signed, is_float;
  bool equal;  // of floats: zeros are equal, and NaNs are equal and the largest
  bool descending;
  uint64_t infinity;  // its bits
} cpu_kernel_sort_order;

#define CPU_KERNEL_SORT_BLOCK 256  // elements whose keys are made at once
#define CPU_KERNEL_SORT_SHORT 96   // longest line that is sorted by counting

// Keys of 32 bits (of elements of up to 32) and of 64; see sort_width.h.
typedef struct cpu_kernel_sort_fns {
  // The keys of n elements, `stride` bytes apart. Returns whether an element is
  // not what its key says: -0 or NaN in an order where these are equal.
  bool (*keys)(const cpu_kernel_sort_order *o, const unsigned char *from,
               int64_t stride, int64_t n, void *out);
  // The elements of n keys, where they have the keys' size.
  void (*numbers)(const cpu_kernel_sort_order *o, const void *keys, int64_t n,
                  void *out);
  // Where each of n <= SHORT keys goes. There is room for a whole vector.
  void (*slots)(const void *keys, int64_t n, uint32_t *out);
  // Whether one of n <= BLOCK keys is below the limit.
  bool (*below)(const void *keys, int64_t n, uint64_t limit);
} cpu_kernel_sort_fns;
extern const cpu_kernel_sort_fns cpu_kernel_sort_16[2];
extern const cpu_kernel_sort_fns cpu_kernel_sort_32[2];
extern const cpu_kernel_sort_fns cpu_kernel_sort_64[2];

// The order of a described sort.
cpu_kernel_sort_order cpu_kernel_sort_order_of(const cpu_kernel_sort_desc *d);

// A stable radix sort of items from[0 .. n), between two memories, by many
// threads: each has a chunk of the items and counts of its own.
#define CPU_KERNEL_SORT_DIGIT 11  // most bits of a digit
#define CPU_KERNEL_SORT_DIGITS 8  // most digits of a key
typedef struct cpu_kernel_sort_memory {
  void *items[2];    // aligned to 16 bytes
  uint32_t *counts;  // chunks << DIGIT; of one chunk DIGITS << DIGIT
  int64_t n;
  int chunks;
  cpu_threads *pool;
} cpu_kernel_sort_memory;
// The items are keys of 32 or 64 bits, a key of 32 bits above 32 others, or a
// key of 64 bits and 64 others. Returns in which memory they are.
int cpu_kernel_sort_keys_32(const cpu_kernel_sort_memory *m);
int cpu_kernel_sort_keys_64(const cpu_kernel_sort_memory *m);
int cpu_kernel_sort_pairs_32(const cpu_kernel_sort_memory *m);
int cpu_kernel_sort_pairs_64(const cpu_kernel_sort_memory *m);
typedef struct cpu_kernel_sort_pair {
  uint64_t key, value;
} cpu_kernel_sort_pair;

// ---- sort.c and sort_line.c ----

typedef struct cpu_kernel_sort_plan {
  cpu_kernel_sort_desc d;
  cpu_kernel_sort_order order;
  const cpu_kernel_sort_fns *fns;
  bool wide;     // keys of 64 bits
  bool selects;  // the first `room` candidates
  int chunks;
  int64_t size[2];                       // of the operands' elements
  int64_t room;                          // items
  size_t items_each, counts_each, each;  // bytes of one thread
} cpu_kernel_sort_plan;

// A line in progress.
typedef struct cpu_kernel_sort_line {
  const cpu_kernel_sort_plan *p;
  const unsigned char *in[2];
  unsigned char *out[2];
  int64_t stride[2];  // bytes between neighbours
  cpu_kernel_sort_memory m;
  bool pairs, slots;  // the items have values, which are slots
  atomic_bool odd;    // a key does not say what its element is
  int side;           // the memory with the result
} cpu_kernel_sort_line;
void cpu_kernel_sort_line_run(cpu_kernel_sort_line *l);
// Of both results.
static inline int64_t cpu_kernel_sort_kept(const cpu_kernel_sort_desc *d)
{
  return d->keep[0] > d->keep[1] ? d->keep[0] : d->keep[1];
}

#endif
