// kernel/split_pack: see split_pack.h.
#if defined(__x86_64__)

#include "kernel/split_pack.h"

#include <math.h>
#include <string.h>

#define AHEAD 16    // rows that are read ahead
#define ROWS 8      // that are read at a time
#define LARGEST 50  // exponent of the largest number

// ---- exponents --------------------------------------------------------------

static inline __m512i larger(__m512i x, const float *from, __mmask16 mask)
{
  return _mm512_max_epu32(
      x, (__m512i)_mm512_abs_ps(_mm512_maskz_loadu_ps(mask, from)));
}

static inline __mmask16 mask_of_row(int64_t left)
{
  return (__mmask16)mask_of(least(left, SIDE));
}

// The exponent of the factor by which the largest number becomes 2^50 to 2^51.
// Magnitudes are compared as integers: a NaN is the largest.
static float exponent_of(__m512i most)
{
  const uint32_t bits = _mm512_reduce_max_epu32(most);
  if (bits >= 0x7f800000) return NAN;
  const __m512 e = _mm512_getexp_ps((__m512)_mm512_set1_epi32((int)bits));
  return bits == 0 ? 0 : LARGEST - _mm512_cvtss_f32(e);
}

// Of lines whose inner elements are next to each other.
static void find_along(const cpu_kernel_split_lines *l, float *out)
{
  for (int64_t first = 0; first < l->n; first += BAND) {
    const int64_t end = least(first + BAND, l->n);
    __m512i most = _mm512_setzero_si512();
    for (int64_t i = first; i < end; i++) {
      const float *row = l->from + i * l->apart;
      const float *ahead = i + AHEAD < l->n ? row + AHEAD * l->apart : row;
      for (int64_t k = 0; k < l->inner; k += SIDE) {
        _mm_prefetch((const char *)(ahead + k), _MM_HINT_T0);
        most = larger(most, row + k, mask_of_row(l->inner - k));
      }
    }
    *out++ = exponent_of(most);
  }
}

// Of lines that are next to each other. Several rows at a time are read whole,
// so that the processor reads ahead.
static void find_across(const cpu_kernel_split_lines *l, float *out)
{
  __m512i most[CPU_KERNEL_SPLIT_MOST_LINES / SIDE];
  memset(most, 0, sizeof most);
  for (int64_t k = 0; k < l->inner; k += ROWS) {
    const int64_t rows = least(l->inner - k, ROWS);
    for (int64_t n = 0; n < l->n; n += SIDE) {
      const __mmask16 mask = mask_of_row(l->n - n);
      const float *from = l->from + k * l->next + n;
      __m512i m = most[n / SIDE];
      for (int64_t i = 0; i < rows; i++) {
        m = larger(m, from + i * l->next, mask);
      }
      most[n / SIDE] = m;
    }
  }
  for (int64_t n = 0; n < l->n; n += BAND) {
    *out++ = exponent_of(_mm512_max_epu32(most[n / SIDE], most[n / SIDE + 1]));
  }
}

void cpu_kernel_split_find_exponents(const cpu_kernel_split_lines *l,
                                     float *out)
{
  if (l->apart == 1) {
    find_across(l, out);
  } else {
    find_along(l, out);
  }
}

// ---- tiles ------------------------------------------------------------------

// Up to 16 x 16 numbers of an operand. Missing ones count as zero.
typedef struct square {
  const float *from;
  int64_t stride, rows;
  __mmask16 mask;  // of the columns
} square;

static square square_of(const float *from, int64_t stride, int64_t rows,
                        int64_t columns)
{
  const bool any = rows > 0 && columns > 0;
  return (square){ .from = from,
                   .stride = stride,
                   .rows = any ? rows : 0,
                   .mask = any ? (__mmask16)mask_of(least(columns, SIDE)) : 0 };
}

static inline __m512 load_row(const square *s, int64_t i)
{
  const bool there = i < s->rows;
  return _mm512_maskz_loadu_ps(there ? s->mask : 0,
                               there ? s->from + i * s->stride : s->from);
}

// The upper halves of both, after `rounding` is added, in pairs. Both keep what
// is left of them.
static inline __m512i take_part(__m512 *io_x, __m512 *io_y, int rounding)
{
  const __m512i high = _mm512_set1_epi32(-65536);
  const __m512i half = _mm512_set1_epi32(rounding);
  const __m512i x = _mm512_add_epi32((__m512i)*io_x, half);
  const __m512i y = _mm512_add_epi32((__m512i)*io_y, half);
  *io_x = _mm512_sub_ps(*io_x, (__m512)_mm512_and_si512(x, high));
  *io_y = _mm512_sub_ps(*io_y, (__m512)_mm512_and_si512(y, high));
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(x, 16), y, high,
                                   0xf8);  // x | (y & high)
}

// A row of the three tiles, `to` the first's. The first part is rounded: so the
// second has either sign, and the products that are left out cancel.
static inline void pack_row(__m512 x, __m512 y, __m512 exponent,
                            unsigned char *to)
{
  x = _mm512_scalef_ps(x, exponent);
  y = _mm512_scalef_ps(y, exponent);
  _mm512_store_si512(to, take_part(&x, &y, 0x8000));
  _mm512_store_si512(to + TILE, take_part(&x, &y, 0));
  _mm512_store_si512(to + 2 * TILE, take_part(&x, &y, 0));
}

static bool is_full(const square *s)
{
  return s->rows >= SIDE && s->mask == 0xffff;
}

// Loads without masks take less time.
static void pack_squares(const square *x, const square *y, __m512 exponent,
                         unsigned char *to)
{
  if (is_full(x) && is_full(y)) {
    for (int64_t i = 0; i < SIDE; i++) {
      pack_row(_mm512_loadu_ps(x->from + i * x->stride),
               _mm512_loadu_ps(y->from + i * y->stride), exponent, to + i * 64);
    }
    return;
  }
  for (int64_t i = 0; i < SIDE; i++) {
    pack_row(load_row(x, i), load_row(y, i), exponent, to + i * 64);
  }
}

static void pack_transposed(const square *x, const square *y, __m512 exponent,
                            unsigned char *to)
{
  __m512i v[2][SIDE];
  for (int64_t i = 0; i < SIDE; i++) {
    v[0][i] = (__m512i)load_row(x, i);
    v[1][i] = (__m512i)load_row(y, i);
  }
  transpose(v[0]);
  transpose(v[1]);
  for (int64_t i = 0; i < SIDE; i++) {
    pack_row((__m512)v[0][i], (__m512)v[1][i], exponent, to + i * 64);
  }
}

// The three tiles of 16 lines and up to 32 inner elements from `k` on.
static void pack_tiles(const cpu_kernel_split_lines *l, int64_t line, int64_t k,
                       __m512 exponent, unsigned char *to)
{
  const bool across = l->apart == 1;
  const int64_t n = l->n - line;
  square halves[2];
  for (int64_t i = 0; i < 2; i++, k += SIDE) {
    const int64_t inner = l->inner - k;
    const float *from = l->from;
    if (n > 0 && inner > 0) from += k * l->next + line * l->apart;
    halves[i] = across ? square_of(from, l->next, inner, n)
                       : square_of(from, l->apart, n, inner);
  }
  if (across == l->pairs) {
    pack_squares(&halves[0], &halves[1], exponent, to);
  } else {
    pack_transposed(&halves[0], &halves[1], exponent, to);
  }
}

void cpu_kernel_split_pack_lines(const cpu_kernel_split_lines *l,
                                 cpu_kernel_split_packed *to)
{
  const __m512 exponent = _mm512_set1_ps(to->exponent);
  unsigned char *at = to->tiles;
  for (int64_t k = 0; k < l->inner; k += STEP, at += STEP_BYTES) {
    pack_tiles(l, 0, k, exponent, at);
    pack_tiles(l, SIDE, k, exponent, at + PARTS * TILE);
  }
}

#endif
