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

// The planes of a product that runs. A product of complex numbers is several
// products of real ones.
typedef struct cpu_kernel_planes {
  const unsigned char *lhs, *rhs;
  unsigned char *out;
  cpu_kernel_gemm_mode mode;
} cpu_kernel_planes;
// Calls run(user) for each product of real numbers, after it has set `planes`,
// which `user` holds. When called, these are the first planes of lhs, rhs and
// result, the operands.
void cpu_kernel_gemm_planes(cpu_kernel_planes *planes,
                            const cpu_kernel_operand operands[3],
                            void (*run)(void *user), void *user);

// Runs on the calling thread. `panels` has cpu_kernel_gemm_panels() bytes,
// aligned to 64.
void cpu_kernel_gemm_run(cpu_kernel_math math, const cpu_kernel_gemm *g,
                         void *panels);
size_t cpu_kernel_gemm_panels(cpu_kernel_math math, int64_t m, int64_t n,
                              int64_t k);

// Many products whose inner elements and columns are at most
// CPU_KERNEL_MANY_MOST each: the result of each is dense and stands behind the
// one before.
#define CPU_KERNEL_MANY_MOST 4
typedef struct cpu_kernel_many {
  cpu_kernel_gemm one;     // the first; mode is SET
  int64_t a_step, b_step;  // elements from one product's operand to the next's
  int64_t products;
} cpu_kernel_many;
void cpu_kernel_many_run(cpu_kernel_math math, const cpu_kernel_many *q);

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

typedef void cpu_kernel_many_fn(const cpu_kernel_many *q);
extern cpu_kernel_many_fn *const cpu_kernel_many_16[CPU_KERNEL_MATH_COUNT];
extern cpu_kernel_many_fn *const cpu_kernel_many_32[CPU_KERNEL_MATH_COUNT];
extern cpu_kernel_many_fn *const cpu_kernel_many_64[CPU_KERNEL_MATH_COUNT];

#endif
