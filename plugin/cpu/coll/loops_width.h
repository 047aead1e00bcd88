// coll/loops_width: the loops of loops.h for one vector width, which compiler
// options set. LOOPS_NAME: the table of functions. LOOPS_PAIRS: whether this
// file has the loops of complex numbers. Only one width has them, for all to
// share, because gcc 12 contracts complex products for AVX-512 in spite of its
// options.
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

// ---- elements ----

// sum[i] = sum[i] op x[i]; and y[i] = a[i] op x[i] where the three do not
// overlap.
#define LOOP(name, type, value)                                          \
  static void name(void *sum, const void *in, int64_t n)                 \
  {                                                                      \
    type *restrict a = sum;                                              \
    const type *restrict x = in;                                         \
    for (int64_t i = 0; i < n; i++) a[i] = (type)(value);                \
  }                                                                      \
  static void name##_first(void *sum, const void *first, const void *in, \
                           int64_t n)                                    \
  {                                                                      \
    type *restrict y = sum;                                              \
    const type *restrict a = first;                                      \
    const type *restrict x = in;                                         \
    for (int64_t i = 0; i < n; i++) y[i] = (type)(value);                \
  }

#define BOTH(name)     \
  {                    \
    name, name##_first \
  }

#define INTEGER_LOOPS(bits)                                              \
  LOOP(add_##bits, uint##bits##_t, a[i] + x[i])                          \
  LOOP(multiply_##bits, uint##bits##_t, (uint64_t)a[i] * x[i])           \
  LOOP(and_##bits, uint##bits##_t, a[i] & x[i])                          \
  LOOP(or_##bits, uint##bits##_t, a[i] | x[i])                           \
  LOOP(xor_##bits, uint##bits##_t, a[i] ^ x[i])                          \
  LOOP(maximum_s##bits, int##bits##_t, a[i] > x[i] ? a[i] : x[i])        \
  LOOP(minimum_s##bits, int##bits##_t, a[i] < x[i] ? a[i] : x[i])        \
  LOOP(maximum_u##bits, uint##bits##_t, a[i] > x[i] ? a[i] : x[i])       \
  LOOP(minimum_u##bits, uint##bits##_t, a[i] < x[i] ? a[i] : x[i])       \
  static const cpu_coll_loop loops_s##bits[] = {                         \
    BOTH(add_##bits),      BOTH(multiply_##bits), BOTH(maximum_s##bits), \
    BOTH(minimum_s##bits), BOTH(and_##bits),      BOTH(or_##bits),       \
    BOTH(xor_##bits)                                                     \
  };                                                                     \
  static const cpu_coll_loop loops_u##bits[] = {                         \
    BOTH(add_##bits),      BOTH(multiply_##bits), BOTH(maximum_u##bits), \
    BOTH(minimum_u##bits), BOTH(and_##bits),      BOTH(or_##bits),       \
    BOTH(xor_##bits)                                                     \
  };

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)

// i1 is stored as bytes of 0 and 1: a sum is "or", a product is "and".
static const cpu_coll_loop loops_bool[] = { BOTH(or_8),  BOTH(and_8),
                                            BOTH(or_8),  BOTH(and_8),
                                            BOTH(and_8), BOTH(or_8),
                                            BOTH(xor_8) };

// A NaN on the left stays. For one on the right the comparison fails, so that
// it becomes the result.
#define FLOAT_LOOPS(type)                                                    \
  LOOP(add_##type, type, a[i] + x[i])                                        \
  LOOP(multiply_##type, type, a[i] * x[i])                                   \
  LOOP(maximum_##type, type, ((a[i] > x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  LOOP(minimum_##type, type, ((a[i] < x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  static const cpu_coll_loop loops_##type[] = {                              \
    BOTH(add_##type),     BOTH(multiply_##type), BOTH(maximum_##type),       \
    BOTH(minimum_##type), { NULL, NULL },        { NULL, NULL },             \
    { NULL, NULL }                                                           \
  };

FLOAT_LOOPS(float)
FLOAT_LOOPS(double)

#ifdef LOOPS_PAIRS
// Complex numbers: pairs of real and imaginary part.
#define COMPLEX_LOOPS(type)                                                   \
  static void add_pairs_##type(void *a, const void *x, int64_t n)             \
  {                                                                           \
    add_##type(a, x, 2 * n);                                                  \
  }                                                                           \
  static void add_pairs_##type##_first(void *y, const void *a, const void *x, \
                                       int64_t n)                             \
  {                                                                           \
    add_##type##_first(y, a, x, 2 * n);                                       \
  }                                                                           \
  static void multiply_pairs_##type(void *out, const void *in, int64_t n)     \
  {                                                                           \
    type *restrict a = out;                                                   \
    const type *restrict x = in;                                              \
    for (int64_t i = 0; i < 2 * n; i += 2) {                                  \
      const type real = a[i] * x[i] - a[i + 1] * x[i + 1];                    \
      a[i + 1] = a[i] * x[i + 1] + a[i + 1] * x[i];                           \
      a[i] = real;                                                            \
    }                                                                         \
  }                                                                           \
  static void multiply_pairs_##type##_first(void *y, const void *a,           \
                                            const void *x, int64_t n)         \
  {                                                                           \
    memcpy(y, a, 2 * (size_t)n * sizeof(type));                               \
    multiply_pairs_##type(y, x, n);                                           \
  }                                                                           \
  static const cpu_coll_loop loops_pairs_##type[] = {                         \
    BOTH(add_pairs_##type), BOTH(multiply_pairs_##type),                      \
    { NULL, NULL },         { NULL, NULL },                                   \
    { NULL, NULL },         { NULL, NULL },                                   \
    { NULL, NULL }                                                            \
  };

COMPLEX_LOOPS(float)
COMPLEX_LOOPS(double)
#endif

static int index_of(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_ADD: return 0;
    case CX_HLO_OP_MULTIPLY: return 1;
    case CX_HLO_OP_MAXIMUM: return 2;
    case CX_HLO_OP_MINIMUM: return 3;
    case CX_HLO_OP_AND: return 4;
    case CX_HLO_OP_OR: return 5;
    default: return 6;
  }
}

static cpu_coll_loop loop_of(cx_hlo_op_kind kind, cx_hlo_elem e)
{
  const cpu_coll_loop *loops = NULL;
  switch (e) {
    case CX_HLO_I1: loops = loops_bool; break;
    case CX_HLO_I8: loops = loops_s8; break;
    case CX_HLO_I16: loops = loops_s16; break;
    case CX_HLO_I32: loops = loops_s32; break;
    case CX_HLO_I64: loops = loops_s64; break;
    case CX_HLO_UI8: loops = loops_u8; break;
    case CX_HLO_UI16: loops = loops_u16; break;
    case CX_HLO_UI32: loops = loops_u32; break;
    case CX_HLO_UI64: loops = loops_u64; break;
    case CX_HLO_BF16:
    case CX_HLO_F16:
    case CX_HLO_F32: loops = loops_float; break;
    case CX_HLO_F64: loops = loops_double; break;
#ifdef LOOPS_PAIRS
    case CX_HLO_C64: loops = loops_pairs_float; break;
    case CX_HLO_C128: loops = loops_pairs_double; break;
#else
    case CX_HLO_C64:
    case CX_HLO_C128: return cpu_coll_loops_16.of(kind, e);
#endif
    default: return (cpu_coll_loop){ NULL, NULL };
  }
  if (kind == CX_HLO_OP_OTHER) return (cpu_coll_loop){ NULL, NULL };
  return loops[index_of(kind)];
}

// ---- 16-bit floats ----

// f16 is converted by the processor's instructions if the width has them, and
// the remaining elements by plain functions. Both give the same bits. The
// instructions make a signalling NaN quiet, which is undone; narrowing gives
// one NaN for all.
#if defined(__AVX512F__)
#define LOOPS_F16 16

static void widen_some(const uint16_t *x, float *out)
{
  const __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)x);
  const __m512 f = _mm512_cvtph_ps(h);
  const __m512i bits = _mm512_castps_si512(f);
  const __m512i quiet = _mm512_set1_epi32(0x400000);
  const __m512i own =
      _mm512_and_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 13), quiet);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
  const __m512i exact =
      _mm512_mask_or_epi32(bits, is_nan, _mm512_andnot_si512(quiet, bits), own);
  _mm512_storeu_si512(out, exact);
}

static void narrow_some(const float *x, uint16_t *out)
{
  const __m512 f = _mm512_loadu_ps(x);
  const __m256i h = _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT);
  const __m256i sign = _mm256_and_si256(h, _mm256_set1_epi16(INT16_MIN));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
  _mm256_storeu_si256(
      (__m256i *)(void *)out,
      _mm256_mask_blend_epi16(
          is_nan, h, _mm256_or_si256(sign, _mm256_set1_epi16(0x7e00))));
}

#elif defined(__F16C__) && defined(__AVX2__)
#define LOOPS_F16 8

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
#ifdef LOOPS_F16
  for (; n - i >= LOOPS_F16; i += LOOPS_F16) widen_some(x + i, out + i);
#endif
  for (; i < n; i++) out[i] = cpu_kernel_f16_widen(x[i]);
}

static void narrow_f16(const float *restrict x, int64_t n,
                       uint16_t *restrict out)
{
  int64_t i = 0;
#ifdef LOOPS_F16
  for (; n - i >= LOOPS_F16; i += LOOPS_F16) narrow_some(x + i, out + i);
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
