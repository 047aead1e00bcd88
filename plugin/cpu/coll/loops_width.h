// coll/loops_width: the loops of loops.h for one vector width, which compiler
// options set. LOOPS_NAME: the table of functions. LOOPS_COMPLEX: whether this
// file has the loops of complex numbers. Only one width has them, which all
// widths use, because gcc 12 contracts complex products for AVX-512 in spite of
// its options.
//
// bf16 and f16 are widened before and rounded once. A NaN is the result of
// maximum and minimum; integers wrap. Products and sums are not contracted, so
// that all widths give the same bits.
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "coll/loops.h"
#include "kernel/half.h"

enum { KINDS = 7 };

// ---- elements ----

// y may be a. So the compiler is told that no element depends on another one.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define LOOP(name, type, value)                                      \
  static void name(void *out, const void *first, const void *second, \
                   int64_t n)                                        \
  {                                                                  \
    type *y = out;                                                   \
    const type *a = first, *x = second;                              \
    INDEPENDENT                                                      \
    for (int64_t i = 0; i < n; i++) y[i] = (type)(value);            \
  }

// Tables are indexed by index_of().
#define INTEGER_LOOPS(bits)                                        \
  LOOP(add_##bits, uint##bits##_t, a[i] + x[i])                    \
  LOOP(multiply_##bits, uint##bits##_t, (uint64_t)a[i] * x[i])     \
  LOOP(and_##bits, uint##bits##_t, a[i] & x[i])                    \
  LOOP(or_##bits, uint##bits##_t, a[i] | x[i])                     \
  LOOP(xor_##bits, uint##bits##_t, a[i] ^ x[i])                    \
  LOOP(maximum_s##bits, int##bits##_t, a[i] > x[i] ? a[i] : x[i])  \
  LOOP(minimum_s##bits, int##bits##_t, a[i] < x[i] ? a[i] : x[i])  \
  LOOP(maximum_u##bits, uint##bits##_t, a[i] > x[i] ? a[i] : x[i]) \
  LOOP(minimum_u##bits, uint##bits##_t, a[i] < x[i] ? a[i] : x[i]) \
  static cpu_coll_loop *const loops_s##bits[KINDS] = {             \
    add_##bits, multiply_##bits, maximum_s##bits, minimum_s##bits, \
    and_##bits, or_##bits,       xor_##bits                        \
  };                                                               \
  static cpu_coll_loop *const loops_u##bits[KINDS] = {             \
    add_##bits, multiply_##bits, maximum_u##bits, minimum_u##bits, \
    and_##bits, or_##bits,       xor_##bits                        \
  };

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)

// i1 is stored as bytes of 0 and 1: a sum is "or", a product is "and".
static cpu_coll_loop *const loops_bool[KINDS] = { or_8,  and_8, or_8, and_8,
                                                  and_8, or_8,  xor_8 };

// A NaN on the left stays. For one on the right the comparison fails, so that
// it becomes the result.
#define FLOAT_LOOPS(type)                                                    \
  LOOP(add_##type, type, a[i] + x[i])                                        \
  LOOP(multiply_##type, type, a[i] * x[i])                                   \
  LOOP(maximum_##type, type, ((a[i] > x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  LOOP(minimum_##type, type, ((a[i] < x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  static cpu_coll_loop *const loops_##type[KINDS] = {                        \
    add_##type, multiply_##type, maximum_##type, minimum_##type              \
  };

FLOAT_LOOPS(float)
FLOAT_LOOPS(double)

#ifdef LOOPS_COMPLEX
// Complex numbers are stored as real and imaginary part.
#define COMPLEX_LOOPS(type)                                             \
  static void add_complex_##type(void *y, const void *a, const void *x, \
                                 int64_t n)                             \
  {                                                                     \
    add_##type(y, a, x, 2 * n);                                         \
  }                                                                     \
  static void multiply_complex_##type(void *out, const void *first,     \
                                      const void *second, int64_t n)    \
  {                                                                     \
    type *y = out;                                                      \
    const type *a = first, *x = second;                                 \
    INDEPENDENT                                                         \
    for (int64_t i = 0; i < 2 * n; i += 2) {                            \
      const type real = a[i] * x[i] - a[i + 1] * x[i + 1];              \
      y[i + 1] = a[i] * x[i + 1] + a[i + 1] * x[i];                     \
      y[i] = real;                                                      \
    }                                                                   \
  }                                                                     \
  static cpu_coll_loop *const loops_complex_##type[KINDS] = {           \
    add_complex_##type, multiply_complex_##type                         \
  };

COMPLEX_LOOPS(float)
COMPLEX_LOOPS(double)
#endif

static cpu_coll_loop *const *const loops[] = {
  [CX_HLO_I1] = loops_bool,           [CX_HLO_I8] = loops_s8,
  [CX_HLO_I16] = loops_s16,           [CX_HLO_I32] = loops_s32,
  [CX_HLO_I64] = loops_s64,           [CX_HLO_UI8] = loops_u8,
  [CX_HLO_UI16] = loops_u16,          [CX_HLO_UI32] = loops_u32,
  [CX_HLO_UI64] = loops_u64,          [CX_HLO_BF16] = loops_float,
  [CX_HLO_F16] = loops_float,         [CX_HLO_F32] = loops_float,
  [CX_HLO_F64] = loops_double,
#ifdef LOOPS_COMPLEX
  [CX_HLO_C64] = loops_complex_float, [CX_HLO_C128] = loops_complex_double
#endif
};

static int index_of(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_ADD: return 0;
    case CX_HLO_OP_MULTIPLY: return 1;
    case CX_HLO_OP_MAXIMUM: return 2;
    case CX_HLO_OP_MINIMUM: return 3;
    case CX_HLO_OP_AND: return 4;
    case CX_HLO_OP_OR: return 5;
    case CX_HLO_OP_XOR: return 6;
    default: return -1;
  }
}

static cpu_coll_loop *loop_of(cx_hlo_op_kind kind, cx_hlo_elem e)
{
  const int index = index_of(kind);
#ifndef LOOPS_COMPLEX
  if (cx_hlo_elem_is_complex(e)) return cpu_coll_loops_16.of(kind, e);
#endif
  if (index < 0 || (size_t)e >= sizeof loops / sizeof *loops) return NULL;
  return loops[e] == NULL ? NULL : loops[e][index];
}

// ---- 16-bit floats ----

// f16 is converted by the processor's instructions, eight elements at a time
// where the width has them, and the remaining elements by plain functions. Both
// give the same bits; vectors of 64 bytes would be no faster. The
// instructions make a signalling NaN quiet, which is undone; narrowing gives
// one NaN for all.
#if defined(__F16C__) && defined(__AVX2__)
enum { SOME = 8 };
#define HAS_F16

static void widen_some(const uint16_t *x, float *out)
{
  const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)x);
  const __m256 f = _mm256_cvtph_ps(h);
  const __m256i bits = _mm256_castps_si256(f);
  const __m256i quiet = _mm256_set1_epi32(0x400000);
  const __m256i own =
      _mm256_and_si256(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 13), quiet);
  const __m256i exact = _mm256_or_si256(_mm256_andnot_si256(quiet, bits), own);
  _mm256_storeu_ps(out, _mm256_blendv_ps(f, _mm256_castsi256_ps(exact),
                                         _mm256_cmp_ps(f, f, _CMP_UNORD_Q)));
}

static void narrow_some(const float *x, uint16_t *out)
{
  const __m256 f = _mm256_loadu_ps(x);
  const __m128i h = _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT);
  const __m128i sign = _mm_and_si128(h, _mm_set1_epi16(INT16_MIN));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(is_nan),
                                         _mm256_extracti128_si256(is_nan, 1));
  _mm_storeu_si128(
      (__m128i *)(void *)out,
      _mm_blendv_epi8(h, _mm_or_si128(sign, _mm_set1_epi16(0x7e00)), halves));
}
#endif

static void widen_f16(const uint16_t *restrict x, int64_t n,
                      float *restrict out)
{
  int64_t i = 0;
#ifdef HAS_F16
  for (; n - i >= SOME; i += SOME) widen_some(x + i, out + i);
#endif
  for (; i < n; i++) out[i] = cpu_kernel_f16_widen(x[i]);
}

static void narrow_f16(const float *restrict x, int64_t n,
                       uint16_t *restrict out)
{
  int64_t i = 0;
#ifdef HAS_F16
  for (; n - i >= SOME; i += SOME) narrow_some(x + i, out + i);
#endif
  for (; i < n; i++) out[i] = cpu_kernel_f16_round(x[i]);
}

static void widen(cx_hlo_elem e, const uint16_t *restrict x, int64_t n,
                  float *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cpu_kernel_bf16_widen(x[i]);
  } else {
    widen_f16(x, n, out);
  }
}

static void narrow(cx_hlo_elem e, const float *restrict x, int64_t n,
                   uint16_t *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cpu_kernel_bf16_round(x[i]);
  } else {
    narrow_f16(x, n, out);
  }
}

const cpu_coll_loops LOOPS_NAME = { loop_of, widen, narrow };
