// kernel/split: matrix products of f32 on AMX, which multiplies bf16.
//
// A number of f32 is the sum of three of bf16, of 8 bits each: x = x1 + x2 +
// x3. Of a product the six products of parts that count in f32 are added:
//
//   a b = a1 b1 + a1 b2 + a2 b1 + a2 b2 + a1 b3 + a3 b1
//
// The three that are left out are about 2^-22 of it at most, of either sign.
// AMX adds in f32. (Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial
// Intelligence Datatype For Higher-Precision Computations, 2019.)
//
// AMX takes numbers below f32's least normal one for zero. So blocks of 32 rows
// or columns are multiplied by a power of two first, after which their largest
// number is 2^50 to 2^51, and the sums are divided by both powers. In a block
// then only numbers below 2^-150 of its largest lose bits.
#ifndef CPU_KERNEL_SPLIT_H
#define CPU_KERNEL_SPLIT_H

#include "kernel/internal.h"

// Inner elements and rows or columns that are packed at a time.
#define CPU_KERNEL_SPLIT_INNER 384
#define CPU_KERNEL_SPLIT_LINES 32
// Inner elements that one instruction multiplies.
#define CPU_KERNEL_SPLIT_STEP 32
// The most parts of the inner elements. Of each part: the fewest blocks, and
// the fewest elements of both operands for each sum.
#define CPU_KERNEL_SPLIT_MOST_DEPTH 8
#define CPU_KERNEL_SPLIT_PART_BLOCKS 2
#define CPU_KERNEL_SPLIT_PART_RATIO 8
// The ratio of computed to wanted products up to which split ones are faster.
#define CPU_KERNEL_SPLIT_WASTE 1.35

// Copies rows or columns [first, first + n) of an operand and their inner
// elements [k, k + inner). If inner elements are next to each other in the
// operand, to (n, inner), else to (inner, SPLIT_LINES).
typedef void cpu_kernel_split_gather(void *user, int64_t first, int64_t n,
                                     int64_t k, int64_t inner, float *to);

// c = a * b with a (m, k), b (k, n) and c (m, n). Of a's and b's two strides,
// in elements, one is 1.
typedef struct cpu_kernel_split {
  int64_t m, n, k;
  const float *a, *b;
  int64_t a_row, a_column, b_row, b_column;
  // If the operand is no such matrix; NULL: it is.
  cpu_kernel_split_gather *gather_a, *gather_b;
  void *user;
  unsigned char *packed;  // what cpu_kernel_split_pack() made of b; or NULL
  // cpu_kernel_split_sums_bytes() for the sums of parts of the inner elements;
  // NULL: those are not divided.
  float *sums;
  float *c;
  const int64_t *c_rows;  // where c's rows begin; NULL: they are n apart
} cpu_kernel_split;

// Bytes of 32 packed columns: of a header, and of each step.
#define CPU_KERNEL_SPLIT_HEADER 64
#define CPU_KERNEL_SPLIT_STEP_BYTES 6144

// Bytes of 32 columns of b. Blocks of inner elements have equally many steps,
// or one more or less.
static inline int64_t cpu_kernel_split_panel_bytes(int64_t k)
{
  const int64_t steps = (k + CPU_KERNEL_SPLIT_STEP - 1) / CPU_KERNEL_SPLIT_STEP;
  const int64_t blocks =
      (k + CPU_KERNEL_SPLIT_INNER - 1) / CPU_KERNEL_SPLIT_INNER;
  return CPU_KERNEL_SPLIT_HEADER +
         (steps + blocks - 1) / blocks * CPU_KERNEL_SPLIT_STEP_BYTES;
}

// How many of the last `each` there are not.
static inline int64_t cpu_kernel_split_missing(int64_t n, int64_t each)
{
  return (each - n % each) % each;
}

// Whether little is computed that nobody wants: rows and columns are packed,
// and inner elements multiplied, so many at a time.
static inline bool cpu_kernel_split_fills(int64_t m, int64_t n, int64_t k)
{
  const int64_t sizes[3] = { m, n, k };
  const int64_t each[3] = { CPU_KERNEL_SPLIT_LINES, CPU_KERNEL_SPLIT_LINES,
                            CPU_KERNEL_SPLIT_STEP };
  double waste = 1;
  for (int i = 0; i < 3; i++) {
    waste *= 1 + (double)cpu_kernel_split_missing(sizes[i], each[i]) /
                     (double)sizes[i];
  }
  return waste <= CPU_KERNEL_SPLIT_WASTE;
}

// Of b, if it is packed for many products; a multiple of 64.
static inline int64_t cpu_kernel_split_packed_bytes(int64_t n, int64_t k)
{
  return (n + CPU_KERNEL_SPLIT_LINES - 1) / CPU_KERNEL_SPLIT_LINES *
         ((k + CPU_KERNEL_SPLIT_INNER - 1) / CPU_KERNEL_SPLIT_INNER) *
         cpu_kernel_split_panel_bytes(k);
}

// How many parts the inner elements are divided into; their sums are added at
// the end. A gradient by weights has many more inner elements than rows and
// columns, and with parts each thread reads its own elements of both operands.
// The number of threads does not matter, so the results do not depend on it.
static inline int64_t cpu_kernel_split_depth(int64_t m, int64_t n, int64_t k)
{
  const int64_t blocks = k / CPU_KERNEL_SPLIT_INNER;
  const double ratio = (double)k * (double)(m + n) / ((double)m * (double)n);
  int64_t depth = 1;
  while (depth < CPU_KERNEL_SPLIT_MOST_DEPTH &&
         blocks >= 2 * depth * CPU_KERNEL_SPLIT_PART_BLOCKS &&
         ratio >= (double)(2 * depth * CPU_KERNEL_SPLIT_PART_RATIO)) {
    depth *= 2;
  }
  return depth;
}

static inline size_t cpu_kernel_split_sums_bytes(int64_t m, int64_t n,
                                                 int64_t k)
{
  return sizeof(float) *
         (size_t)((cpu_kernel_split_depth(m, n, k) - 1) * m * n);
}

// The rest only where cpu_kernel_has_tiles(). Memory is aligned to 64.

// Bytes of scratch of a thread; a multiple of 64. n: 0: b is packed.
size_t cpu_kernel_split_scratch(int64_t n, int64_t k);
// Packs b, of a product without functions that gather; a and c are not used.
void cpu_kernel_split_pack(const cpu_kernel_split *s, cpu_threads *pool);
// Each thread uses `each` bytes of the memory, as many as it needs or more.
// False: an operand has an infinity or NaN, for which the sum of parts is not
// defined. Then c is undefined.
bool cpu_kernel_split_run(const cpu_kernel_split *s, cpu_threads *pool,
                          unsigned char *memory, size_t each);

#endif
