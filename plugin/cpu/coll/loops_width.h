// coll/loops_width: the loops of loops.h for one width of vectors, which is the
// compiler's to use; LOOPS_NAME is the table of functions,
// LOOPS_PAIRS that complex numbers are among its own: gcc 12 contracts their
// products for AVX-512 whatever it is told, so all widths share one loop.
//
// bf16 and f16 are widened before, and rounded once. NaN wins in maximum and
// minimum; integers wrap. Products and sums are not contracted, so that all
// widths give the same bits.
#include <string.h>

#include "coll/loops.h"
#include "kernels/half.h"

// ---- elements ----

// sum[i] = sum[i] op x[i], and y[i] = a[i] op x[i] that overlap nothing.
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
  static const cx_coll_loop loops_s##bits[] = {                          \
    BOTH(add_##bits),      BOTH(multiply_##bits), BOTH(maximum_s##bits), \
    BOTH(minimum_s##bits), BOTH(and_##bits),      BOTH(or_##bits),       \
    BOTH(xor_##bits)                                                     \
  };                                                                     \
  static const cx_coll_loop loops_u##bits[] = {                          \
    BOTH(add_##bits),      BOTH(multiply_##bits), BOTH(maximum_u##bits), \
    BOTH(minimum_u##bits), BOTH(and_##bits),      BOTH(or_##bits),       \
    BOTH(xor_##bits)                                                     \
  };

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)

// i1 as bytes of 0 and 1: sums are "or", products "and".
static const cx_coll_loop loops_bool[] = { BOTH(or_8),  BOTH(and_8), BOTH(or_8),
                                           BOTH(and_8), BOTH(and_8), BOTH(or_8),
                                           BOTH(xor_8) };

// A NaN on the left stays; on the right, the comparison fails and it is taken.
#define FLOAT_LOOPS(type)                                                    \
  LOOP(add_##type, type, a[i] + x[i])                                        \
  LOOP(multiply_##type, type, a[i] * x[i])                                   \
  LOOP(maximum_##type, type, ((a[i] > x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  LOOP(minimum_##type, type, ((a[i] < x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  static const cx_coll_loop loops_##type[] = {                               \
    BOTH(add_##type),     BOTH(multiply_##type), BOTH(maximum_##type),       \
    BOTH(minimum_##type), { NULL, NULL },        { NULL, NULL },             \
    { NULL, NULL }                                                           \
  };

FLOAT_LOOPS(float)
FLOAT_LOOPS(double)

#ifdef LOOPS_PAIRS
// Pairs: real, imaginary.
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
  static const cx_coll_loop loops_pairs_##type[] = {                          \
    BOTH(add_pairs_##type), BOTH(multiply_pairs_##type),                      \
    { NULL, NULL },         { NULL, NULL },                                   \
    { NULL, NULL },         { NULL, NULL },                                   \
    { NULL, NULL }                                                            \
  };

COMPLEX_LOOPS(float)
COMPLEX_LOOPS(double)
#endif

static int place(cx_hlo_op_kind kind)
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

static cx_coll_loop loop_of(cx_hlo_op_kind kind, cx_hlo_elem e)
{
  const cx_coll_loop *loops = NULL;
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
    case CX_HLO_C128: return cx_coll_loops_16.of(kind, e);
#endif
    default: return (cx_coll_loop){ NULL, NULL };
  }
  if (kind == CX_HLO_OP_OTHER) return (cx_coll_loop){ NULL, NULL };
  return loops[place(kind)];
}

// ---- 16-bit floats ----

static void widen(cx_hlo_elem e, const uint16_t *restrict x, int64_t n,
                  float *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cx_bf16_widen(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = cx_f16_widen(x[i]);
  }
}

static void narrow(cx_hlo_elem e, const float *restrict x, int64_t n,
                   uint16_t *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cx_bf16_round(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = cx_f16_round(x[i]);
  }
}

const cx_coll_loops LOOPS_NAME = { loop_of, widen, narrow };
