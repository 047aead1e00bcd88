// kernel/narrow_width: products of 8-bit integers for one vector width. Each of
// narrow_16.c, narrow_32.c and narrow_64.c is this text, with
//   NARROW_NAME    the function
//   NARROW_BYTES   of a vector
//
// The blocking is that of gemm_width.h. A pair has the element of the even
// inner index in its low half; where the inner elements are odd in number, the
// last high half is 0.
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernel/gemm.h"
#include "kernel/narrow.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define INLINE static inline __attribute__((always_inline))
#define LANES ((int64_t)(NARROW_BYTES / sizeof(uint32_t)))
// The tile that 16 registers hold, or 32 of AVX-512: rows, vectors of columns.
#define ROWS (NARROW_BYTES == 64 ? 8 : 4)
#define VECTORS 3
#define WIDE (VECTORS * LANES)

typedef uint32_t cpu_kernel_narrow_vec
    __attribute__((vector_size(NARROW_BYTES), aligned(4)));
typedef int32_t cpu_kernel_narrow_ints
    __attribute__((vector_size(NARROW_BYTES)));

// ---- one tile ---------------------------------------------------------------

// The sum of the two products of 16-bit numbers in each lane.
INLINE cpu_kernel_narrow_vec products(cpu_kernel_narrow_vec x,
                                      cpu_kernel_narrow_vec y)
{
#if NARROW_BYTES == 32 && defined(__AVX2__)
  return (cpu_kernel_narrow_vec)_mm256_madd_epi16((__m256i)x, (__m256i)y);
#elif NARROW_BYTES == 16 && defined(__SSE2__)
  return (cpu_kernel_narrow_vec)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
  const cpu_kernel_narrow_vec low_x =
      (cpu_kernel_narrow_vec)((cpu_kernel_narrow_ints)(x << 16) >> 16);
  const cpu_kernel_narrow_vec low_y =
      (cpu_kernel_narrow_vec)((cpu_kernel_narrow_ints)(y << 16) >> 16);
  return low_x * low_y +
         (cpu_kernel_narrow_vec)((cpu_kernel_narrow_ints)x >> 16) *
             (cpu_kernel_narrow_vec)((cpu_kernel_narrow_ints)y >> 16);
#endif
}

// The sum, and both products of each lane.
INLINE cpu_kernel_narrow_vec sum_with(cpu_kernel_narrow_vec sum,
                                      cpu_kernel_narrow_vec x,
                                      cpu_kernel_narrow_vec y)
{
#if NARROW_BYTES == 64 && defined(__AVX512VNNI__)
  return (cpu_kernel_narrow_vec)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x,
                                                    (__m512i)y);
#else
  return sum + products(x, y);
#endif
}

// c = or, with `add`, c += rows of a, each of `pairs`, times a panel of b of
// `vectors` vectors.
INLINE void tile(int64_t pairs, const uint32_t *restrict a,
                 const uint32_t *restrict b, int vectors, uint32_t *restrict c,
                 int64_t ldc, bool add)
{
  cpu_kernel_narrow_vec sum[ROWS][VECTORS];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < vectors; j++) sum[i][j] = (cpu_kernel_narrow_vec){ 0 };
  }
  for (int64_t p = 0; p < pairs; p++) {
    for (int i = 0; i < ROWS; i++) {
      const cpu_kernel_narrow_vec x =
          (cpu_kernel_narrow_vec){ 0 } + a[i * pairs + p];
      for (int j = 0; j < vectors; j++) {
        const uint32_t *y = b + (p * vectors + j) * LANES;
        sum[i][j] = sum_with(sum[i][j], *(const cpu_kernel_narrow_vec *)y, x);
      }
    }
  }
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < vectors; j++) {
      cpu_kernel_narrow_vec *to =
          (cpu_kernel_narrow_vec *)(c + i * ldc + j * LANES);
      *to = add ? *to + sum[i][j] : sum[i][j];
    }
  }
}

static void tile_wide(int64_t pairs, const uint32_t *a, const uint32_t *b,
                      uint32_t *c, int64_t ldc, bool add)
{
  tile(pairs, a, b, VECTORS, c, ldc, add);
}

static void tile_one(int64_t pairs, const uint32_t *a, const uint32_t *b,
                     uint32_t *c, int64_t ldc, bool add)
{
  tile(pairs, a, b, 1, c, ldc, add);
}

// The first rows and columns of a tile, which is `width` wide.
static void put_tile(int64_t pairs, const uint32_t *a, const uint32_t *b,
                     int64_t width, uint32_t *c, int64_t ldc, int64_t rows,
                     int64_t columns, bool add)
{
  uint32_t part[ROWS * WIDE];
  const bool whole = rows == ROWS && columns == width;
  (width == WIDE ? tile_wide : tile_one)(pairs, a, b, whole ? c : part,
                                         whole ? ldc : width, whole && add);
  for (int64_t i = 0; i < rows && !whole; i++) {
    for (int64_t j = 0; j < columns; j++) {
      const uint32_t sum = part[i * width + j];
      c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
    }
  }
}

// ---- packing ----------------------------------------------------------------

INLINE uint32_t word(const uint8_t *p, bool is_signed)
{
  return is_signed ? (uint32_t)(int32_t)(int8_t)*p : (uint32_t)*p;
}

INLINE uint32_t pair(uint32_t low, uint32_t high)
{
  return (low & 0xffff) | high << 16;
}

// k elements `step` apart as 16-bit numbers, and a 0 behind them.
INLINE void widen(const uint8_t *from, int64_t step, int64_t k, bool is_signed,
                  uint16_t *restrict to)
{
  if (step == 1) {
    for (int64_t p = 0; p < k; p++) to[p] = (uint16_t)word(from + p, is_signed);
  } else {
    for (int64_t p = 0; p < k; p++) {
      to[p] = (uint16_t)word(from + p * step, is_signed);
    }
  }
  to[k] = 0;
}

// `lines` lines of k elements become a panel [pairs][width].
INLINE void pack_lines(const uint8_t *from, int64_t line, int64_t step,
                       int64_t lines, int64_t k, bool is_signed, int64_t width,
                       uint32_t *to)
{
  uint16_t wide[2 * CPU_KERNEL_GEMM_INNER + 1];
  const int64_t pairs = (k + 1) / 2;
  if (lines < width) memset(to, 0, sizeof *to * (size_t)(width * pairs));
  for (int64_t i = 0; i < lines; i++) {
    widen(from + i * line, step, k, is_signed, wide);
    for (int64_t p = 0; p < pairs; p++) {
      to[p * width + i] = pair(wide[2 * p], wide[2 * p + 1]);
    }
  }
}

// The same of lines side by side, each `step` long.
INLINE void pack_beside(const uint8_t *from, int64_t step, int64_t lines,
                        int64_t k, bool is_signed, int64_t width, uint32_t *to)
{
  const int64_t pairs = (k + 1) / 2;
  if (lines < width) memset(to, 0, sizeof *to * (size_t)(width * pairs));
  for (int64_t p = 0; p < k / 2; p++, to += width) {
    const uint8_t *low = from + 2 * p * step, *high = low + step;
    for (int64_t i = 0; i < lines; i++) {
      to[i] = pair(word(low + i, is_signed), word(high + i, is_signed));
    }
  }
  for (int64_t i = 0; i < lines && k % 2 == 1; i++) {
    to[i] = pair(word(from + (k - 1) * step + i, is_signed), 0);
  }
}

INLINE void pack_as(const uint8_t *from, int64_t line, int64_t step,
                    int64_t lines, int64_t k, bool is_signed, int64_t width,
                    uint32_t *to)
{
  if (line == 1) {
    pack_beside(from, step, lines, k, is_signed, width, to);
  } else {
    pack_lines(from, line, step, lines, k, is_signed, width, to);
  }
}

// ROWS lines of k elements become lines of pairs; missing ones are zeros.
INLINE void pack_rows(const uint8_t *from, int64_t line, int64_t step,
                      int64_t lines, int64_t k, bool is_signed, uint32_t *to)
{
  uint16_t wide[2 * CPU_KERNEL_GEMM_INNER + 1];
  const int64_t pairs = (k + 1) / 2;
  for (int64_t i = 0; i < ROWS; i++, to += pairs) {
    if (i < lines) {
      widen(from + i * line, step, k, is_signed, wide);
      memcpy(to, wide, sizeof *to * (size_t)pairs);
    } else {
      memset(to, 0, sizeof *to * (size_t)pairs);
    }
  }
}

// One copy of the loops for each sign.
static void pack_a(const uint8_t *from, int64_t line, int64_t step,
                   int64_t lines, int64_t k, bool is_signed, uint32_t *to)
{
  if (is_signed) {
    pack_rows(from, line, step, lines, k, true, to);
  } else {
    pack_rows(from, line, step, lines, k, false, to);
  }
}

static void pack(const uint8_t *from, int64_t line, int64_t step, int64_t lines,
                 int64_t k, bool is_signed, int64_t width, uint32_t *to)
{
  if (is_signed) {
    pack_as(from, line, step, lines, k, true, width, to);
  } else {
    pack_as(from, line, step, lines, k, false, width, to);
  }
}

// ---- blocks -----------------------------------------------------------------

static int64_t width_of(int64_t columns)
{
  return columns > LANES ? WIDE : LANES;
}

// Panels of columns [j, j + n), inner elements [p, p + k).
static void pack_b(const cpu_kernel_narrow *g, int64_t j, int64_t n, int64_t p,
                   int64_t k, uint32_t *to)
{
  for (int64_t i = 0; i < n;) {
    const int64_t width = width_of(n - i);
    pack(g->b + p * g->b_row + (j + i) * g->b_column, g->b_column, g->b_row,
         MIN(width, n - i), k, g->b_signed, width, to);
    to += width * ((k + 1) / 2);
    i += width;
  }
}

// Rows [row, row + m) times the packed block of b, to c's columns from j on.
static void multiply_rows(const cpu_kernel_narrow *g, int64_t row, int64_t m,
                          int64_t j, int64_t n, int64_t p, int64_t k,
                          uint32_t *pa, const uint32_t *pb)
{
  const int64_t pairs = (k + 1) / 2;
  for (int64_t i = 0; i < m; i += ROWS) {
    pack_a(g->a + (row + i) * g->a_row + p * g->a_column, g->a_row, g->a_column,
           MIN(ROWS, m - i), k, g->a_signed, pa + i * pairs);
  }
  for (int64_t l = 0; l < n;) {
    const int64_t width = width_of(n - l);
    for (int64_t i = 0; i < m; i += ROWS) {
      put_tile(pairs, pa + i * pairs, pb, width,
               g->c + (row + i) * g->ldc + j + l, g->ldc, MIN(ROWS, m - i),
               MIN(width, n - l), p != 0);
    }
    pb += width * pairs;
    l += width;
  }
}

void NARROW_NAME(const cpu_kernel_narrow *g, void *panels)
{
  const int64_t block_k = 2 * CPU_KERNEL_GEMM_INNER;
  const int64_t inner = MIN((g->k + 1) / 2, CPU_KERNEL_GEMM_INNER);
  const int64_t block_n = MIN(g->n, CPU_KERNEL_GEMM_COLUMNS);
  uint32_t *pb = panels;
  uint32_t *pa = pb + (block_n + WIDE) * inner;
  for (int64_t j = 0; j < g->n; j += block_n) {
    const int64_t n = MIN(block_n, g->n - j);
    for (int64_t p = 0; p < g->k; p += block_k) {
      const int64_t k = MIN(block_k, g->k - p);
      pack_b(g, j, n, p, k, pb);
      for (int64_t i = 0; i < g->m; i += CPU_KERNEL_GEMM_ROWS) {
        multiply_rows(g, i, MIN(CPU_KERNEL_GEMM_ROWS, g->m - i), j, n, p, k, pa,
                      pb);
      }
    }
  }
}
