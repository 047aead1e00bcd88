// kernel/gemm_width: the matrix product for one vector width. Each of
// gemm_16.c, gemm_32.c and gemm_64.c is this text, compiled for other
// processors, with
//   GEMM_NAME, GEMM_MANY_NAME   the arrays of functions
//   GEMM_BYTES   of a vector
//   GEMM_MR, GEMM_NV   the tile that the registers hold: rows, vectors of
//                columns
//
// The blocking is Goto's (ACM TOMS 34(3), 2008): a block of b is packed into
// panels of as many columns as a tile, a block of a into panels of its rows,
// both padded with zeros, and each tile of c is one pass over two panels.
#include <string.h>

#include "kernel/gemm.h"
#include "kernel/lanes.h"

#define ROUND_UP(x, to) (((x) + (to)-1) / (to) * (to))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
// Panels of b up to which packing rows of a does not pay.
#define GEMM_IN_PLACE 8
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

// A product of at most so many multiplications and inner elements is not
// packed: packing would take longer.
#define GEMM_TINY 128
#define GEMM_TINY_INNER 8

// Products that are added up in T; their sums are added up in TOTAL, so that
// the rounding error of a long sum stays small.
#define GEMM_BLOCK 128
// Inner elements whose blocks are added to the result directly.
#define GEMM_LONG ((int64_t)32 * CPU_KERNEL_GEMM_INNER)
// Rows and columns of a result that is added up in TOTAL: 24 KiB of doubles.
#define GEMM_LONG_ROWS 64
#define GEMM_LONG_COLUMNS 48

#define T float
#define TOTAL double
#define NAME(x) PASTE(x, _f32)
#include "kernel/gemm_type.h"
#define T double
#define TOTAL double
#define NAME(x) PASTE(x, _f64)
#include "kernel/gemm_type.h"
#define T uint32_t
#define TOTAL uint32_t
#define NAME(x) PASTE(x, _u32)
#include "kernel/gemm_type.h"
#define T uint64_t
#define TOTAL uint64_t
#define NAME(x) PASTE(x, _u64)
#include "kernel/gemm_type.h"

#define INLINE static inline __attribute__((always_inline))
#define MANY_MOST CPU_KERNEL_MANY_MOST
#define T float
#define NAME(x) PASTE(x, _f32)
#include "kernel/many_type.h"
#define T double
#define NAME(x) PASTE(x, _f64)
#include "kernel/many_type.h"
#define T uint32_t
#define NAME(x) PASTE(x, _u32)
#include "kernel/many_type.h"
#define T uint64_t
#define NAME(x) PASTE(x, _u64)
#include "kernel/many_type.h"

cpu_kernel_gemm_fn *const GEMM_NAME[CPU_KERNEL_MATH_COUNT] = {
  [CPU_KERNEL_F32] = multiply_f32,
  [CPU_KERNEL_F64] = multiply_f64,
  [CPU_KERNEL_U32] = multiply_u32,
  [CPU_KERNEL_U64] = multiply_u64,
};

cpu_kernel_many_fn *const GEMM_MANY_NAME[CPU_KERNEL_MATH_COUNT] = {
  [CPU_KERNEL_F32] = products_f32,
  [CPU_KERNEL_F64] = products_f64,
  [CPU_KERNEL_U32] = products_u32,
  [CPU_KERNEL_U64] = products_u64,
};
