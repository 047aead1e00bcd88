// kernel/split_pack: see split_pack.h.
#if defined(__x86_64__)

#include "kernel/split_pack.h"

#include <math.h>

#define AHEAD 16    // rows that are read ahead
#define LARGEST 50  // exponent of the largest number

// Up to 16 x 16 numbers of an operand. What misses counts as zero.
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

// The exponent of the factor by which the largest number becomes 2^50 to 2^51.
static float exponent_of(const cpu_kernel_split_lines *l)
{
  const bool across = l->apart == 1;
  const int64_t rows = across ? l->inner : l->n;
  const int64_t n = across ? l->n : l->inner;
  const int64_t stride = across ? l->next : l->apart;
  __m512 most = _mm512_setzero_ps();
  for (int64_t i = 0; i < rows; i++) {
    const float *row = l->from + i * stride;
    const float *ahead = i + AHEAD < rows ? row + AHEAD * stride : row;
    for (int64_t j = 0; j < n; j += SIDE) {
      _mm_prefetch((const char *)(ahead + j), _MM_HINT_T0);
      const __mmask16 mask = (__mmask16)mask_of(least(n - j, SIDE));
      const __m512 x = _mm512_abs_ps(_mm512_maskz_loadu_ps(mask, row + j));
      // As integers: a NaN is the largest.
      most = (__m512)_mm512_max_epu32((__m512i)most, (__m512i)x);
    }
  }
  const uint32_t bits = _mm512_reduce_max_epu32((__m512i)most);
  if (bits >= 0x7f800000) return NAN;
  const __m512 e = _mm512_getexp_ps((__m512)_mm512_set1_epi32((int)bits));
  return bits == 0 ? 0 : LARGEST - _mm512_cvtss_f32(e);
}

// The upper halves of both, in pairs, which they are subtracted from.
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

// A row of the three tiles, `to` the first's.
static inline void pack_row(__m512 x, __m512 y, __m512 exponent,
                            unsigned char *to)
{
  x = _mm512_scalef_ps(x, exponent);
  y = _mm512_scalef_ps(y, exponent);
  _mm512_store_si512(to, take_part(&x, &y, 0x8000));
  _mm512_store_si512(to + TILE, take_part(&x, &y, 0));
  _mm512_store_si512(to + 2 * TILE, take_part(&x, &y, 0));
}

static void pack_squares(const square *x, const square *y, __m512 exponent,
                         unsigned char *to)
{
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
  to->exponent = exponent_of(l);
  const __m512 exponent = _mm512_set1_ps(to->exponent);
  unsigned char *at = to->tiles;
  for (int64_t k = 0; k < l->inner; k += STEP, at += STEP_BYTES) {
    pack_tiles(l, 0, k, exponent, at);
    pack_tiles(l, SIDE, k, exponent, at + PARTS * TILE);
  }
}

#endif
