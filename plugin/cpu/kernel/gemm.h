// kernel/gemm: matrix products for types that oneDNN does not have, and for
// matrices so small that its preparations would take longer.
#ifndef CPU_KERNEL_GEMM_H
#define CPU_KERNEL_GEMM_H

#include "kernel/internal.h"

typedef enum cpu_kernel_gemm_mode {
  CPU_KERNEL_GEMM_SET,
  CPU_KERNEL_GEMM_ADD,
  CPU_KERNEL_GEMM_SUB
} cpu_kernel_gemm_mode;

// c = a * b, c + a * b or c - a * b, with a (m, k), b (k, n) of any strides and
// c (m, n) with rows ldc apart, in elements.
typedef struct cpu_kernel_gemm {
  int64_t m, n, k;
  const void *a, *b;
  int64_t a_row, a_column, b_row, b_column;
  void *c;
  int64_t ldc;
  cpu_kernel_gemm_mode mode;
} cpu_kernel_gemm;

// A product of complex numbers, as products of real ones: each operand is a
// real plane and, if `imaginary`, an imaginary one, the result is both.
typedef struct cpu_kernel_planes {
  const unsigned char *lhs, *rhs;  // the planes of the product that runs
  unsigned char *out;
  cpu_kernel_gemm_mode mode;
} cpu_kernel_planes;
// Calls run(user) for each product, after `planes`, which user has, is set. Its
// present planes are the real ones; the others are plane[] bytes behind.
void cpu_kernel_gemm_complex(cpu_kernel_planes *planes, const bool imaginary[2],
                             const size_t plane[3], void (*run)(void *user),
                             void *user);

// Runs on the calling thread. `panels` has cpu_kernel_gemm_panels() bytes,
// aligned to 64.
void cpu_kernel_gemm_run(cpu_kernel_math math, const cpu_kernel_gemm *g,
                         void *panels);
size_t cpu_kernel_gemm_panels(cpu_kernel_math math, int64_t m, int64_t n,
                              int64_t k);

// ---- one vector width; see gemm_width.h ----

// Blocks of a: rows x inner; of b: inner x columns.
#define CPU_KERNEL_GEMM_ROWS 64
#define CPU_KERNEL_GEMM_INNER 256
#define CPU_KERNEL_GEMM_COLUMNS 384

typedef void cpu_kernel_gemm_fn(const cpu_kernel_gemm *g, void *panels);
extern cpu_kernel_gemm_fn
    *const cpu_kernel_gemm_16[CPU_KERNEL_MATH_COUNT];  // 16-byte vectors
extern cpu_kernel_gemm_fn *const cpu_kernel_gemm_32[CPU_KERNEL_MATH_COUNT];
extern cpu_kernel_gemm_fn *const cpu_kernel_gemm_64[CPU_KERNEL_MATH_COUNT];

#endif
