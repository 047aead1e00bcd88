// kernel/split_tiles: see split_tiles.h.
#if defined(__x86_64__)

#include "kernel/split_tiles.h"

void cpu_kernel_split_write(const cpu_kernel_split *s, cpu_kernel_split_sums *x,
                            int64_t end)
{
  const __m512 by = _mm512_set1_ps(-x->exponent);
  const __mmask32 mask = mask_of(least(BAND, s->n - x->n));
  end = least(end, x->rows);
  for (; x->written < end; x->written++) {
    const int64_t m = x->m + x->written;
    float *row = s->c + (s->c_rows != NULL ? s->c_rows[m] : m * s->n) + x->n;
    for (int64_t half = 0; half < BAND; half += SIDE) {
      const __mmask16 there = (__mmask16)(mask >> half);
      if (there == 0) break;
      const float *from = x->value + x->written * BAND + half;
      __m512 sum = _mm512_scalef_ps(_mm512_load_ps(from), by);
      if (!x->first) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, row + half));
      }
      _mm512_mask_storeu_ps(row + half, there, sum);
    }
  }
}

// Reads a tile of the next step of both into the first cache.
static inline void prefetch(const unsigned char *a, const unsigned char *b)
{
  for (int64_t i = 0; i < TILE; i += 64) {
    _mm_prefetch((const char *)a + STEP_BYTES + i, _MM_HINT_T0);
    _mm_prefetch((const char *)b + STEP_BYTES + i, _MM_HINT_T0);
  }
}

#define LOAD_A(part)                          \
  _tile_loadd(A0, a + ((part)-1) * TILE, 64); \
  _tile_loadd(A1, a + (PARTS + (part)-1) * TILE, 64)
#define LOAD_B(part)                          \
  _tile_loadd(B0, b + ((part)-1) * TILE, 64); \
  _tile_loadd(B1, b + (PARTS + (part)-1) * TILE, 64)
// number: of the next step's six tiles the one that is read ahead.
#define MULTIPLY(number)                          \
  prefetch(a + (number)*TILE, b + (number)*TILE); \
  _tile_dpbf16ps(C00, A0, B0);                    \
  _tile_dpbf16ps(C01, A0, B1);                    \
  _tile_dpbf16ps(C10, A1, B0);                    \
  _tile_dpbf16ps(C11, A1, B1)

// Small products come first, so that adding them loses fewer bits.
void cpu_kernel_split_multiply(const cpu_kernel_split *s, int64_t inner,
                               const cpu_kernel_split_packed *band,
                               const cpu_kernel_split_packed *panel,
                               cpu_kernel_split_sums *before,
                               cpu_kernel_split_sums *out)
{
  const unsigned char *a = band->tiles, *b = panel->tiles;
  const int64_t rows = parts_of(BAND, parts_of(inner, STEP));
  _tile_zero(C00);
  _tile_zero(C01);
  _tile_zero(C10);
  _tile_zero(C11);
  for (int64_t k = 0; k < inner; k += STEP) {
    LOAD_A(1);
    LOAD_B(3);
    MULTIPLY(0);
    LOAD_B(2);
    MULTIPLY(1);
    LOAD_A(2);
    MULTIPLY(2);
    LOAD_B(1);
    MULTIPLY(3);
    LOAD_A(3);
    MULTIPLY(4);
    LOAD_A(1);
    MULTIPLY(5);
    cpu_kernel_split_write(s, before, before->written + rows);
    a += STEP_BYTES;
    b += STEP_BYTES;
  }
  _tile_stored(C00, out->value, BAND * sizeof(float));
  _tile_stored(C01, out->value + SIDE, BAND * sizeof(float));
  _tile_stored(C10, out->value + SIDE * BAND, BAND * sizeof(float));
  _tile_stored(C11, out->value + SIDE * BAND + SIDE, BAND * sizeof(float));
}

#endif
