// ref/element_int: integer and boolean operations.
//
// Numbers come sign- or zero-extended to 64 bits; all arithmetic is done
// unsigned and wraps, and storing cuts it to the type's width.
#include "ref/inner.h"

#define EACH(expression)                                         \
  for (size_t i = 0; i < n; i++) out[i] = (int64_t)(expression); \
  return

#define A ((uint64_t)a[i])
#define B ((uint64_t)b[i])

static void bools(cx_hlo_op_kind kind, const int64_t *a, const int64_t *b,
                  int64_t *out, size_t n)
{
  switch (kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_OR: EACH(a[i] | b[i]);
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_AND: EACH(a[i] & b[i]);
    case CX_HLO_OP_SUBTRACT:
    case CX_HLO_OP_XOR: EACH(a[i] ^ b[i]);
    case CX_HLO_OP_NOT: EACH(a[i] ^ 1);
    default: EACH(a[i]);
  }
}

// Toward zero; by zero it is -1, and the lowest by -1 is itself.
static int64_t divide(int64_t x, int64_t y, bool is_unsigned)
{
  if (y == 0) return -1;
  if (is_unsigned) return (int64_t)((uint64_t)x / (uint64_t)y);
  if (y == -1) return (int64_t)(0 - (uint64_t)x);
  return x / y;
}

static int64_t remainder_of(int64_t x, int64_t y, bool is_unsigned)
{
  if (y == 0) return x;
  if (is_unsigned) return (int64_t)((uint64_t)x % (uint64_t)y);
  return y == -1 ? 0 : x % y;
}

static int64_t power(int64_t x, int64_t y, bool is_unsigned)
{
  if (!is_unsigned && y < 0) {
    if (x == -1) return (y & 1) != 0 ? -1 : 1;
    return x == 1;
  }
  uint64_t result = 1;
  uint64_t square = (uint64_t)x;
  for (uint64_t e = (uint64_t)y; e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

static int64_t shifted(cx_hlo_op_kind kind, int64_t x, int64_t y, unsigned bits)
{
  const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
  const bool over = (uint64_t)y >= bits;
  const uint64_t u = (uint64_t)x & all;
  if (kind == CX_HLO_OP_SHIFT_LEFT) return over ? 0 : (int64_t)(u << y);
  if (kind == CX_HLO_OP_SHIFT_RIGHT_LOGICAL)
    return over ? 0 : (int64_t)(u >> y);
  // The sign is the top bit, in unsigned types too.
  const uint64_t sign = u >> (bits - 1) != 0 ? ~all : 0;
  const int64_t s = (int64_t)(u | sign);
  const unsigned by = over ? bits - 1 : (unsigned)y;
  return s < 0 ? (int64_t) ~(~(uint64_t)s >> by) : s >> by;
}

static int64_t leading_zeros(int64_t x, unsigned bits)
{
  const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
  const uint64_t u = (uint64_t)x & all;
  return u == 0 ? (int64_t)bits : __builtin_clzll(u) - (64 - (int64_t)bits);
}

static int64_t ones(int64_t x, unsigned bits)
{
  const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
  return __builtin_popcountll((uint64_t)x & all);
}

static void extremes(cx_hlo_op_kind kind, bool is_unsigned, const int64_t *a,
                     const int64_t *b, int64_t *out, size_t n)
{
  const bool max = kind == CX_HLO_OP_MAXIMUM;
  if (is_unsigned) {
    EACH((A > B) == max ? A : B);
  }
  EACH((a[i] > b[i]) == max ? a[i] : b[i]);
}

void cpu_ref_ints(cx_hlo_op_kind kind, cx_hlo_elem e, const int64_t *a,
                  const int64_t *b, int64_t *out, size_t n)
{
  const bool is_unsigned = cx_hlo_elem_is_unsigned(e);
  const unsigned bits = cx_hlo_elem_bits(e);
  if (e == CX_HLO_I1) {
    bools(kind, a, b, out, n);
    return;
  }
  switch (kind) {
    case CX_HLO_OP_ADD: EACH(A + B);
    case CX_HLO_OP_SUBTRACT: EACH(A - B);
    case CX_HLO_OP_MULTIPLY: EACH(A * B);
    case CX_HLO_OP_DIVIDE: EACH(divide(a[i], b[i], is_unsigned));
    case CX_HLO_OP_REMAINDER: EACH(remainder_of(a[i], b[i], is_unsigned));
    case CX_HLO_OP_POWER: EACH(power(a[i], b[i], is_unsigned));
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM: extremes(kind, is_unsigned, a, b, out, n); return;
    case CX_HLO_OP_AND: EACH(A & B);
    case CX_HLO_OP_OR: EACH(A | B);
    case CX_HLO_OP_XOR: EACH(A ^ B);
    case CX_HLO_OP_NOT: EACH(~A);
    case CX_HLO_OP_NEGATE: EACH(0 - A);
    case CX_HLO_OP_ABS: EACH(a[i] < 0 && !is_unsigned ? 0 - A : A);
    case CX_HLO_OP_SIGN:
      EACH(is_unsigned ? a[i] != 0 : (a[i] > 0) - (a[i] < 0));
    case CX_HLO_OP_POPCNT: EACH(ones(a[i], bits));
    case CX_HLO_OP_COUNT_LEADING_ZEROS: EACH(leading_zeros(a[i], bits));
    case CX_HLO_OP_SHIFT_LEFT:
    case CX_HLO_OP_SHIFT_RIGHT_LOGICAL:
    case CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC:
      EACH(shifted(kind, a[i], b[i], bits));
    default: EACH(a[i]);
  }
}
