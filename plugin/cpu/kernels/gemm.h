// kernels/gemm: matrix products of our own, for the types that oneDNN does not
// have, and for matrices so small that its preparations would take longer.
#ifndef CX_KERNELS_GEMM_H
#define CX_KERNELS_GEMM_H

#include "kernels/internal.h"

typedef enum cx_gemm_mode {
  CX_GEMM_SET,
  CX_GEMM_ADD,
  CX_GEMM_SUB
} cx_gemm_mode;

// c (m, n) with rows ldc apart = a (m, k) * b (k, n), with any strides, in
// elements; or it is added to c, or taken from it.
typedef struct cx_gemm {
  int64_t m, n, k;
  const void *a, *b;
  int64_t a_row, a_column, b_row, b_column;
  void *c;
  int64_t ldc;
  cx_gemm_mode mode;
} cx_gemm;

// On the calling thread. `panels` are cx_gemm_panels() bytes, 64-byte aligned.
void cx_gemm_run(cx_math math, const cx_gemm *g, void *panels);
size_t cx_gemm_panels(cx_math math, int64_t m, int64_t n, int64_t k);

// ---- one vector width; see gemm_width.h ----

// Blocks of a: rows x inner; of b: inner x columns.
#define CX_GEMM_ROWS 64
#define CX_GEMM_INNER 256
#define CX_GEMM_COLUMNS 384

typedef void cx_gemm_fn(const cx_gemm *g, void *panels);
extern cx_gemm_fn *const cx_gemm_16[CX_MATH_COUNT];  // 16-byte vectors
extern cx_gemm_fn *const cx_gemm_32[CX_MATH_COUNT];
extern cx_gemm_fn *const cx_gemm_64[CX_MATH_COUNT];

#endif
