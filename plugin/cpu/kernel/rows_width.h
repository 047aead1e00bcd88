// kernel/rows_width: products of few rows for one vector width. Each of
// rows_16.c, rows_32.c and rows_64.c is this text, with
//   ROWS_NAME    the function
//   ROWS_BYTES   of a vector
#include <string.h>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernel/half.h"
#include "kernel/rows.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define LANES ((int64_t)(ROWS_BYTES / sizeof(float)))
#define INLINE static inline __attribute__((always_inline))
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

// Products that are added up in f32.
#define BLOCK 128
// Columns that are computed together: what is added up fits in the cache.
#define COLUMNS 512
// Rows of b that are read side by side.
#define BESIDE 8
// Bytes from one row of b to the next up to which rows, if they are a block or
// more, are read one by one, in vectors of which PANEL are computed together
// for PANEL_ROWS rows of a.
#define SHORT_ROW 512
#define PANEL 4
#define PANEL_ROWS 2
// Columns of b, if these are dense, that are read side by side.
#define COLUMNS_BESIDE 4
// Rows of a that are computed together with them.
#define TOGETHER 4

typedef float cpu_kernel_rows_vec
    __attribute__((vector_size(ROWS_BYTES), aligned(4)));
typedef float cpu_kernel_rows_quad __attribute__((vector_size(16)));
typedef uint32_t cpu_kernel_rows_words __attribute__((vector_size(ROWS_BYTES)));
typedef int16_t cpu_kernel_rows_shorts
    __attribute__((vector_size(ROWS_BYTES / 2)));
typedef int32_t cpu_kernel_rows_ints __attribute__((vector_size(ROWS_BYTES)));
typedef uint16_t cpu_kernel_rows_halves
    __attribute__((vector_size(ROWS_BYTES / 2), aligned(2)));
typedef int8_t cpu_kernel_rows_bytes
    __attribute__((vector_size(ROWS_BYTES / 4), aligned(1)));

INLINE cpu_kernel_rows_vec load_f32(const float *p)
{
  return *(const cpu_kernel_rows_vec *)p;
}

INLINE float one_f32(const float *p)
{
  return *p;
}

INLINE cpu_kernel_rows_vec load_bf16(const uint16_t *p)
{
  return (cpu_kernel_rows_vec)(__builtin_convertvector(
                                   *(const cpu_kernel_rows_halves *)p,
                                   cpu_kernel_rows_words)
                               << 16);
}

INLINE float one_bf16(const uint16_t *p)
{
  return cpu_kernel_bf16_widen(*p);
}

INLINE float one_f16(const uint16_t *p)
{
  return cpu_kernel_f16_widen(*p);
}

INLINE cpu_kernel_rows_vec load_f16(const uint16_t *p)
{
#if ROWS_BYTES == 64 && defined(__AVX512F__)
  return (cpu_kernel_rows_vec)_mm512_cvtph_ps(
      _mm256_loadu_si256((const __m256i *)(const void *)p));
#elif ROWS_BYTES == 32 && defined(__F16C__)
  return (cpu_kernel_rows_vec)_mm256_cvtph_ps(
      _mm_loadu_si128((const __m128i *)(const void *)p));
#else
  cpu_kernel_rows_vec x;
  for (int i = 0; i < LANES; i++) x[i] = one_f16(p + i);
  return x;
#endif
}

// Without such an instruction, in steps for which compilers have some.
INLINE cpu_kernel_rows_vec load_i8(const int8_t *p)
{
#if ROWS_BYTES == 64 && defined(__AVX512F__)
  return (cpu_kernel_rows_vec)_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
#elif ROWS_BYTES == 32 && defined(__AVX2__)
  return (cpu_kernel_rows_vec)_mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
#else
  const cpu_kernel_rows_shorts wide = __builtin_convertvector(
      *(const cpu_kernel_rows_bytes *)p, cpu_kernel_rows_shorts);
  return __builtin_convertvector(
      __builtin_convertvector(wide, cpu_kernel_rows_ints), cpu_kernel_rows_vec);
#endif
}

INLINE float one_i8(const int8_t *p)
{
  return (float)*p;
}

INLINE float sum_lanes(cpu_kernel_rows_vec x)
{
  cpu_kernel_rows_quad part[ROWS_BYTES / sizeof(cpu_kernel_rows_quad)];
  memcpy(part, &x, sizeof part);
  for (size_t n = ROWS_BYTES / sizeof(cpu_kernel_rows_quad) / 2; n > 0;
       n /= 2) {
    for (size_t i = 0; i < n; i++) part[i] += part[i + n];
  }
  return (part[0][0] + part[0][1]) + (part[0][2] + part[0][3]);
}

#define T float
#define NAME(x) PASTE(x, _f32)
#include "kernel/rows_type.h"
#define T uint16_t
#define NAME(x) PASTE(x, _bf16)
#include "kernel/rows_type.h"
#define T uint16_t
#define NAME(x) PASTE(x, _f16)
#include "kernel/rows_type.h"
#define T int8_t
#define NAME(x) PASTE(x, _i8)
#include "kernel/rows_type.h"

void ROWS_NAME(const cpu_kernel_rows *r)
{
  switch (r->type) {
    case CX_HLO_BF16: multiply_bf16(r); break;
    case CX_HLO_F16: multiply_f16(r); break;
    case CX_HLO_I8: multiply_i8(r); break;
    default: multiply_f32(r); break;
  }
}
