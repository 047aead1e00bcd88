// ref/element_int: integer and boolean operations.
//
// Numbers come sign- or zero-extended to 64 bits; all arithmetic is done
// unsigned and wraps, and storing cuts it to the type's width.
#include <string.h>

#include "ref/inner.h"

#define U(x) ((uint64_t)(x))

// Toward zero; by zero it is -1, and the lowest by -1 is itself.
static int64_t divide(int64_t x, int64_t y, bool is_unsigned)
{
  if (y == 0) return -1;
  if (is_unsigned) return (int64_t)(U(x) / U(y));
  if (y == -1) return (int64_t)(0 - U(x));
  return x / y;
}

static int64_t remainder_of(int64_t x, int64_t y, bool is_unsigned)
{
  if (y == 0) return x;
  if (is_unsigned) return (int64_t)(U(x) % U(y));
  return y == -1 ? 0 : x % y;
}

static int64_t power(int64_t x, int64_t y, bool is_unsigned)
{
  if (!is_unsigned && y < 0) {
    if (x == -1) return (y & 1) != 0 ? -1 : 1;
    return x == 1;
  }
  uint64_t result = 1;
  uint64_t square = U(x);
  for (uint64_t e = U(y); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

// The low `bits` of x.
static uint64_t low_bits(int64_t x, unsigned bits)
{
  return bits < 64 ? U(x) & ((UINT64_C(1) << bits) - 1) : U(x);
}

static int64_t shift_left(int64_t x, int64_t y, unsigned bits)
{
  return U(y) >= bits ? 0 : (int64_t)(U(x) << y);
}

static int64_t shift_right(int64_t x, int64_t y, unsigned bits)
{
  return U(y) >= bits ? 0 : (int64_t)(low_bits(x, bits) >> y);
}

// The sign is the top bit, in unsigned types too.
static int64_t shift_arithmetic(int64_t x, int64_t y, unsigned bits)
{
  const bool negative = low_bits(x, bits) >> (bits - 1) != 0;
  const uint64_t above = negative ? ~low_bits(-1, bits) : 0;
  const uint64_t s = low_bits(x, bits) | above;
  const unsigned by = U(y) >= bits ? bits - 1 : (unsigned)y;
  return (int64_t)(negative ? ~(~s >> by) : s >> by);
}

static int64_t leading_zeros(int64_t x, unsigned bits)
{
  const uint64_t u = low_bits(x, bits);
  return u == 0 ? (int64_t)bits : __builtin_clzll(u) - (64 - (int64_t)bits);
}

static int64_t ones(int64_t x, unsigned bits)
{
  return __builtin_popcountll(low_bits(x, bits));
}

static int64_t extreme(int64_t x, int64_t y, bool is_unsigned, bool max)
{
  const bool above = is_unsigned ? U(x) > U(y) : x > y;
  return above == max ? x : y;
}

#define EACH(value)                   \
  for (size_t i = 0; i < n; i++) {    \
    const int64_t x = a[i], y = b[i]; \
    (void)x, (void)y;                 \
    out[i] = (int64_t)(value);        \
  }                                   \
  return
#define NONE break
#define BOOL(value, code) EACH(value)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: truth;

static void bools(cx_hlo_op_kind kind, const int64_t *a, const int64_t *b,
                  int64_t *out, size_t n)
{
  switch (kind) {
#include "ref/element.def"
    default: break;
  }
  memmove(out, a, n * sizeof *a);
}

#undef CPU_ELEMENT
#define INT(value, code) EACH(value)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: integer;

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
#include "ref/element.def"
    default: break;
  }
  memmove(out, a, n * sizeof *a);
}
