// hlo/number: the formats of single elements.
//
// The small float types differ in three widths and in the meaning of their
// largest codes, so one encoder and one decoder serve all of them. f32 and f64
// are the machine's types.
#include "hlo/number.h"

#include <math.h>
#include <string.h>

#include "hlo/format.h"

// ---- integers ----

int64_t cx_hlo_load_int(cx_hlo_elem e, const void *p)
{
  const unsigned char *b = p;
  uint64_t v = 0;
  const size_t n = cx_hlo_elem_bytes(e);
  memcpy(&v, b, n < sizeof v ? n : sizeof v);
  if (e == CX_HLO_I1) return v != 0;
  const unsigned bits = cx_hlo_elem_bits(e);
  if (bits < 64) v &= (UINT64_C(1) << bits) - 1;
  if (!cx_hlo_elem_is_unsigned(e) && bits < 64 && v >> (bits - 1) != 0) {
    v |= ~UINT64_C(0) << bits;
  }
  return (int64_t)v;
}

void cx_hlo_store_int(cx_hlo_elem e, void *p, int64_t v)
{
  if (e == CX_HLO_I1) v = v != 0;
  const unsigned bits = cx_hlo_elem_bits(e);
  uint64_t u = (uint64_t)v;
  if (bits < 8 && cx_hlo_elem_is_unsigned(e)) u &= (1u << bits) - 1;
  memcpy(p, &u, cx_hlo_elem_bytes(e));
  if (bits < 8 && e != CX_HLO_I1 && !cx_hlo_elem_is_unsigned(e)) {
    // A byte holds the sign-extended number.
    const int64_t low = cx_hlo_load_int(e, p);
    memcpy(p, &low, 1);
  }
}

bool cx_hlo_int_fits(cx_hlo_elem e, int64_t v)
{
  const unsigned bits = cx_hlo_elem_bits(e);
  if (bits >= 64) return true;
  if (e == CX_HLO_I1) return v == 0 || v == 1;
  const int64_t half = INT64_C(1) << (bits - 1);
  if (cx_hlo_elem_is_unsigned(e)) return v >= 0 && v < 2 * half;
  return v >= -half && v < half;
}

// ---- floats ----

uint64_t cx_hlo_load_bits(cx_hlo_elem e, const void *p)
{
  uint64_t bits = 0;
  memcpy(&bits, p, cx_hlo_elem_bytes(e));
  return bits;
}

void cx_hlo_store_bits(cx_hlo_elem e, void *p, uint64_t bits)
{
  memcpy(p, &bits, cx_hlo_elem_bytes(e));
}

// Source: the OCP 8-bit and microscaling formats, and LLVM's APFloat names.
const cx_hlo_format *cx_hlo_format_of(cx_hlo_elem e)
{
  static const cx_hlo_format formats[CX_HLO_ELEM_COUNT] = {
    [CX_HLO_BF16] = { 8, 7, 127, CX_HLO_FORMAT_IEEE },
    [CX_HLO_F16] = { 5, 10, 15, CX_HLO_FORMAT_IEEE },
    [CX_HLO_F8E5M2] = { 5, 2, 15, CX_HLO_FORMAT_IEEE },
    [CX_HLO_F8E4M3] = { 4, 3, 7, CX_HLO_FORMAT_IEEE },
    [CX_HLO_F8E3M4] = { 3, 4, 3, CX_HLO_FORMAT_IEEE },
    [CX_HLO_F8E4M3FN] = { 4, 3, 7, CX_HLO_FORMAT_NAN_FN },
    [CX_HLO_F8E4M3B11FNUZ] = { 4, 3, 11, CX_HLO_FORMAT_FNUZ },
    [CX_HLO_F8E5M2FNUZ] = { 5, 2, 16, CX_HLO_FORMAT_FNUZ },
    [CX_HLO_F8E4M3FNUZ] = { 4, 3, 8, CX_HLO_FORMAT_FNUZ },
    [CX_HLO_F4E2M1FN] = { 2, 1, 1, CX_HLO_FORMAT_FINITE },
    [CX_HLO_F6E2M3FN] = { 2, 3, 1, CX_HLO_FORMAT_FINITE },
    [CX_HLO_F6E3M2FN] = { 3, 2, 3, CX_HLO_FORMAT_FINITE },
  };
  return &formats[e];
}

uint64_t cx_hlo_format_largest(const cx_hlo_format *f)
{
  const uint64_t all = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
  switch (f->specials) {
    case CX_HLO_FORMAT_IEEE: return all - (UINT64_C(1) << f->mantissa);
    case CX_HLO_FORMAT_NAN_FN: return all - 1;
    case CX_HLO_FORMAT_FNUZ:
    case CX_HLO_FORMAT_FINITE: break;
  }
  return all;
}

// |v| in units of 2^unit, rounded to nearest even; |v| is below 2^(unit+53).
static uint64_t round_to_unit(double v, int unit)
{
  const double scaled = ldexp(v, -unit);
  uint64_t n = (uint64_t)scaled;
  const double rest = scaled - (double)n;
  if (rest > 0.5 || (rest == 0.5 && (n & 1) != 0)) n++;
  return n;
}

// f8E8M0FNU holds powers of two only: code c is 2^(c-127), 255 is NaN.
static uint64_t encode_exponent(double v)
{
  if (isnan(v) || isinf(v)) return 0xff;
  if (!(v > 0)) return 0;
  int e = 0;
  const double m = frexp(v, &e);  // v = m 2^e, 0.5 <= m < 1
  // Ties go to the even code: halfway is m = 0.75.
  int code = e - 1 + 127;
  if (m > 0.75 || (m == 0.75 && (code & 1) != 0)) code++;
  if (code < 0) return 0;
  return code > 0xff ? 0xff : (uint64_t)code;
}

static uint64_t encode(const cx_hlo_format *f, double v)
{
  const uint64_t sign = UINT64_C(1) << (f->exponent + f->mantissa);
  const uint64_t inf = cx_hlo_format_largest(f) + 1;  // IEEE only
  uint64_t out = signbit(v) ? sign : 0;
  const uint64_t nan =
      f->specials == CX_HLO_FORMAT_IEEE
          ? out | inf | inf >> 1 | UINT64_C(1) << (f->mantissa - 1)
      : f->specials == CX_HLO_FORMAT_NAN_FN ? out | (sign - 1)
                                            : sign;
  if (isnan(v)) return nan;
  const double a = fabs(v);
  if (a == 0) return f->specials == CX_HLO_FORMAT_FNUZ ? 0 : out;
  if (!isinf(a)) {
    int e = 0;
    frexp(a, &e);
    e--;  // a is in [2^e, 2^(e+1))
    const int lowest = 1 - f->bias;
    if (e < lowest) e = lowest;
    if (e <= f->bias + 1) {
      // One addition makes the exponent field and the mantissa: a carry out of
      // the mantissa increments the exponent. Subnormals have field 0.
      const uint64_t n = round_to_unit(a, e - f->mantissa);
      const uint64_t code = ((uint64_t)(e + f->bias - 1) << f->mantissa) + n;
      if (code <= cx_hlo_format_largest(f)) {
        if (code == 0 && f->specials == CX_HLO_FORMAT_FNUZ) return 0;
        return out | code;
      }
    }
  }
  switch (f->specials) {
    case CX_HLO_FORMAT_IEEE: return out | inf;
    case CX_HLO_FORMAT_FINITE: return out | cx_hlo_format_largest(f);
    case CX_HLO_FORMAT_NAN_FN:
    case CX_HLO_FORMAT_FNUZ: break;
  }
  return nan;
}

static double decode(const cx_hlo_format *f, uint64_t bits)
{
  const uint64_t sign = UINT64_C(1) << (f->exponent + f->mantissa);
  const uint64_t code = bits & (sign - 1);
  const bool negative = (bits & sign) != 0;
  if (f->specials == CX_HLO_FORMAT_FNUZ && negative && code == 0)
    return (double)NAN;
  if (code > cx_hlo_format_largest(f)) {
    const bool inf = f->specials == CX_HLO_FORMAT_IEEE &&
                     code == cx_hlo_format_largest(f) + 1;
    return inf ? (negative ? -HUGE_VAL : HUGE_VAL) : (double)NAN;
  }
  const uint64_t field = code >> f->mantissa;
  const uint64_t one = UINT64_C(1) << f->mantissa;
  const uint64_t n = (code & (one - 1)) + (field == 0 ? 0 : one);
  const int e = (field == 0 ? 1 : (int)field) - f->bias - f->mantissa;
  const double v = ldexp((double)n, e);
  return negative ? -v : v;
}

uint64_t cx_hlo_real_to_bits(cx_hlo_elem e, double v)
{
  uint64_t bits = 0;
  if (e == CX_HLO_F64) {
    memcpy(&bits, &v, sizeof v);
  } else if (e == CX_HLO_F32) {
    const float f = (float)v;
    memcpy(&bits, &f, sizeof f);
  } else if (e == CX_HLO_F8E8M0FNU) {
    bits = encode_exponent(v);
  } else {
    bits = encode(cx_hlo_format_of(e), v);
  }
  return bits;
}

double cx_hlo_bits_to_real(cx_hlo_elem e, uint64_t bits)
{
  if (e == CX_HLO_F64) {
    double v = 0;
    memcpy(&v, &bits, sizeof v);
    return v;
  }
  if (e == CX_HLO_F32) {
    float v = 0;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
  }
  if (e == CX_HLO_F8E8M0FNU) {
    return bits == 0xff ? (double)NAN : ldexp(1.0, (int)bits - 127);
  }
  return decode(cx_hlo_format_of(e), bits);
}

double cx_hlo_load_real(cx_hlo_elem e, const void *p)
{
  return cx_hlo_bits_to_real(e, cx_hlo_load_bits(e, p));
}

void cx_hlo_store_real(cx_hlo_elem e, void *p, double v)
{
  cx_hlo_store_bits(e, p, cx_hlo_real_to_bits(e, v));
}

double cx_hlo_highest_real(cx_hlo_elem e)
{
  if (e == CX_HLO_F32 || e == CX_HLO_F64) return HUGE_VAL;
  if (e == CX_HLO_F8E8M0FNU) return cx_hlo_bits_to_real(e, 0xfe);
  const cx_hlo_format *f = cx_hlo_format_of(e);
  return f->specials == CX_HLO_FORMAT_IEEE
             ? HUGE_VAL
             : decode(f, cx_hlo_format_largest(f));
}

double cx_hlo_lowest_real(cx_hlo_elem e)
{
  if (e == CX_HLO_F8E8M0FNU) return cx_hlo_bits_to_real(e, 0);
  return -cx_hlo_highest_real(e);
}

static void store_saturated(cx_hlo_elem e, void *p, double v)
{
  const bool is_unsigned = cx_hlo_elem_is_unsigned(e);
  const unsigned bits = cx_hlo_elem_bits(e);
  const double top = ldexp(1.0, (int)bits - (is_unsigned ? 0 : 1));
  const double bottom = is_unsigned ? 0 : -top;
  uint64_t n = 0;
  if (v >= top) {
    n = is_unsigned ? ~UINT64_C(0) : (UINT64_C(1) << (bits - 1)) - 1;
  } else if (v <= bottom) {
    n = is_unsigned ? 0 : ~UINT64_C(0) << (bits - 1);
  } else if (!isnan(v)) {
    n = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
  }
  cx_hlo_store_int(e, p, (int64_t)n);
}

void cx_hlo_store_number(cx_hlo_elem e, void *p, double v)
{
  if (cx_hlo_elem_is_complex(e)) {
    const cx_hlo_elem part = cx_hlo_elem_part(e);
    cx_hlo_store_real(part, p, v);
    cx_hlo_store_real(part, (char *)p + cx_hlo_elem_bytes(part), 0);
  } else if (cx_hlo_elem_is_float(e)) {
    cx_hlo_store_real(e, p, v);
  } else if (e == CX_HLO_I1) {
    cx_hlo_store_int(e, p, v != 0);
  } else {
    store_saturated(e, p, v);
  }
}
