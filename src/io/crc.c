// io/crc: CRC-32 at the speed of memory.
//
// zlib's takes as long as writing the bytes does. Where the processor
// multiplies polynomials over GF(2), 64 bytes are folded at a time into the
// next 64, which leaves the remainder as it is (V. Gopal et al., Fast CRC
// computation for generic polynomials using PCLMULQDQ instruction, Intel 2009).
// The constants are x^n mod P of zip's polynomial 0x04c11db7, bits reflected.
#include "io/crc.h"

#include <stdbool.h>
#include <zlib.h>

static uint32_t by_table(uint32_t crc, const unsigned char *p, size_t size)
{
  while (size > 0) {
    uInt n = size < (1u << 30) ? (uInt)size : 1u << 30;
    crc = (uint32_t)crc32(crc, p, n);
    p += n;
    size -= n;
  }
  return crc;
}

#ifdef __x86_64__
#include <immintrin.h>

enum { LANE = 16, BLOCK = 4 * LANE };
#define FOLDS __attribute__((target("pclmul,sse2")))

static bool can_fold(void)
{
  return __builtin_cpu_supports("pclmul") != 0;
}

FOLDS static __m128i load(const unsigned char *p)
{
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}

// Multiplies the remainder x by x^n mod P, which k holds for both halves, and
// adds the next 16 bytes.
FOLDS static __m128i fold(__m128i x, __m128i k, __m128i next)
{
  __m128i low = _mm_clmulepi64_si128(x, k, 0x00);
  __m128i high = _mm_clmulepi64_si128(x, k, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// `size` is a multiple of BLOCK.
FOLDS static uint32_t by_folds(uint32_t crc, const unsigned char *p,
                               size_t size)
{
  // n = 512 + 32 and 512 - 32; 128 + 32 and 128 - 32.
  const __m128i by_block = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_lane = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i x[4];
  for (int i = 0; i < 4; i++) x[i] = load(p + i * LANE);
  // The remainder of the bytes before is added to the first 32 bits.
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)~crc));
  for (size_t at = BLOCK; at < size; at += BLOCK) {
    for (int i = 0; i < 4; i++) {
      x[i] = fold(x[i], by_block, load(p + at + (size_t)i * LANE));
    }
  }
  for (int i = 1; i < 4; i++) x[i] = fold(x[i - 1], by_lane, x[i]);
  unsigned char rest[LANE];
  _mm_storeu_si128((__m128i *)(void *)rest, x[3]);
  return by_table(UINT32_MAX, rest, LANE);  // which begins at 0
}
#else
enum { BLOCK = 64 };

static bool can_fold(void)
{
  return false;
}

static uint32_t by_folds(uint32_t crc, const unsigned char *p, size_t size)
{
  return by_table(crc, p, size);
}
#endif

uint32_t cx_io_crc32(uint32_t crc, const void *data, size_t size)
{
  const unsigned char *p = data;
  size_t folded = can_fold() ? size - size % BLOCK : 0;
  if (folded != 0) crc = by_folds(crc, p, folded);
  return size > folded ? by_table(crc, p + folded, size - folded) : crc;
}
