// kernel/amx: what matrix products on AMX share. Only files that are compiled
// for these instructions include it.
//
// A tile has 16 rows of 64 bytes: of a left operand, 32 inner elements of each
// of 16 rows; of a right one, 16 pairs of inner elements of each of 16 columns.
#ifndef CPU_KERNEL_AMX_H
#define CPU_KERNEL_AMX_H

#include <immintrin.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIDE 16    // rows of a tile, and columns of a product of two
#define STEP 32    // inner elements of a tile
#define TILE 1024  // bytes
#define BAND 32    // rows or columns, of two tiles

// Numbers of tiles: four of sums, two of each operand.
#define C00 0
#define C01 1
#define C10 2
#define C11 3
#define A0 4
#define A1 5
#define B0 6
#define B1 7

static inline int64_t parts_of(int64_t n, int64_t each)
{
  return (n + each - 1) / each;
}

static inline int64_t least(int64_t x, int64_t y)
{
  return x < y ? x : y;
}

static inline __mmask32 mask_of(int64_t n)
{
  return n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;
}

// Rows become columns: of 16 x 16 words of 32 bits.
static inline void transpose(__m512i v[SIDE])
{
  const __m512i at =
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int d = 1; d < SIDE; d *= 2) {
    const __mmask16 odd = _mm512_test_epi32_mask(at, _mm512_set1_epi32(d));
    const __m512i by = _mm512_set1_epi32(SIDE - d);
    const __m512i low = _mm512_mask_add_epi32(at, odd, at, by);
    const __m512i high =
        _mm512_mask_add_epi32(_mm512_add_epi32(at, _mm512_set1_epi32(d)), odd,
                              at, _mm512_set1_epi32(SIDE));
    for (int i = 0; i < SIDE; i++) {
      if ((i & d) != 0) continue;
      const __m512i x = v[i], y = v[i + d];
      v[i] = _mm512_permutex2var_epi32(x, low, y);
      v[i + d] = _mm512_permutex2var_epi32(x, high, y);
    }
  }
}

// Between the stores to what tiles are loaded from, and loading them: gcc 12
// may move stores behind _tile_loadd(), which does not say that it reads
// memory.
static inline void finish_stores(void)
{
  atomic_signal_fence(memory_order_seq_cst);
}

// Of the calling thread, until _tile_release(). The configuration is a
// constant, because gcc 12 drops stores to a variable: its _tile_loadconfig()
// does not say that it reads all 64 bytes.
static inline void configure(void)
{
  static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t columns[16];  // bytes
    uint8_t rows[16];
  } config = { .palette = 1,
               .columns = { 64, 64, 64, 64, 64, 64, 64, 64 },
               .rows = { SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE } };
  _tile_loadconfig(&config);
}

#endif
