// kernel/split_pack: see split_pack.h.
#if defined(__x86_64__)

#include "kernel/split_pack.h"

#include <math.h>

#define AHEAD 16    // rows that are read ahead
#define LARGEST 50  // exponent of the largest number

// `rows` rows of `n` numbers, up to 16 of each; zeros for those that miss.
static void load(const float *from, int64_t stride, int64_t rows, int64_t n,
                 __m512i out[SIDE])
{
  const __mmask16 mask = n > 0 ? (__mmask16)mask_of(least(n, SIDE)) : 0;
  for (int64_t i = 0; i < SIDE; i++) {
    const __mmask16 there = i < rows ? mask : 0;
    out[i] =
        _mm512_maskz_loadu_epi32(there, i < rows ? from + i * stride : from);
  }
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

// The next part of both, in pairs, which it is subtracted from.
static inline __m512i take_part(__m512 *io_x, __m512 *io_y)
{
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                         26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_set1_epi32(-65536);
  const __m512i part = _mm512_permutexvar_epi16(
      order, (__m512i)_mm512_cvtne2ps_pbh(*io_y, *io_x));
  *io_x = _mm512_sub_ps(*io_x, (__m512)_mm512_slli_epi32(part, 16));
  *io_y = _mm512_sub_ps(*io_y, (__m512)_mm512_and_si512(part, high));
  return part;
}

// The three tiles of 16 lines and up to 32 inner elements from `k` on.
static void pack_tiles(const cpu_kernel_split_lines *l, int64_t line, int64_t k,
                       __m512 exponent, unsigned char *to)
{
  __m512i v[2 * SIDE];
  const int64_t n = l->n - line, inner = l->inner - k;
  const float *from = l->from + k * l->next + (n > 0 ? line * l->apart : 0);
  for (int64_t i = 0; i < 2; i++) {
    const int64_t left = inner - i * SIDE;
    const float *at = left > 0 ? from + i * SIDE * l->next : from;
    if (l->apart == 1) {
      load(at, l->next, left, n, v + i * SIDE);
    } else {
      load(at, l->apart, n, left, v + i * SIDE);
    }
    if ((l->apart == 1) != l->pairs) transpose(v + i * SIDE);
  }
  for (int64_t i = 0; i < SIDE; i++, to += 64) {
    __m512 x = _mm512_scalef_ps((__m512)v[i], exponent);
    __m512 y = _mm512_scalef_ps((__m512)v[i + SIDE], exponent);
    for (int64_t part = 0; part < PARTS; part++) {
      _mm512_store_si512(to + part * TILE, take_part(&x, &y));
    }
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
