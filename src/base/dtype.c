// base/dtype: facts about element types; bf16 and f16 by their bits.
#include "base/dtype.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  size_t size;
} facts[] = {
  [CALX_DTYPE_DEFAULT] = { "?", 0 }, [CALX_BOOL] = { "bool", 1 },
  [CALX_I8] = { "i8", 1 },           [CALX_I16] = { "i16", 2 },
  [CALX_I32] = { "i32", 4 },         [CALX_I64] = { "i64", 8 },
  [CALX_U8] = { "u8", 1 },           [CALX_U16] = { "u16", 2 },
  [CALX_U32] = { "u32", 4 },         [CALX_U64] = { "u64", 8 },
  [CALX_BF16] = { "bf16", 2 },       [CALX_F16] = { "f16", 2 },
  [CALX_F32] = { "f32", 4 },         [CALX_F64] = { "f64", 8 },
  [CALX_C64] = { "c64", 8 },         [CALX_C128] = { "c128", 16 },
};

bool cx_dtype_valid(calx_dtype d)
{
  return d >= CALX_BOOL && d <= CALX_C128;
}

const char *calx_dtype_name(calx_dtype d)
{
  return cx_dtype_valid(d) ? facts[d].name : "?";
}

calx_dtype cx_dtype_of_name(const char *name)
{
  calx_dtype d = CALX_C128;
  while (d != CALX_DTYPE_DEFAULT && strcmp(facts[d].name, name) != 0) d--;
  return d;
}

size_t calx_dtype_size(calx_dtype d)
{
  return cx_dtype_valid(d) ? facts[d].size : 0;
}

bool cx_dtype_is_float(calx_dtype d)
{
  return d >= CALX_BF16 && d <= CALX_F64;
}
bool cx_dtype_is_complex(calx_dtype d)
{
  return d == CALX_C64 || d == CALX_C128;
}
bool cx_dtype_is_inexact(calx_dtype d)
{
  return cx_dtype_is_float(d) || cx_dtype_is_complex(d);
}
bool cx_dtype_is_int(calx_dtype d)
{
  return d >= CALX_I8 && d <= CALX_U64;
}
bool cx_dtype_is_unsigned(calx_dtype d)
{
  return d >= CALX_U8 && d <= CALX_U64;
}

calx_dtype cx_dtype_part(calx_dtype d)
{
  return d == CALX_C64 ? CALX_F32 : d == CALX_C128 ? CALX_F64 : d;
}

calx_dtype cx_dtype_complex_of(calx_dtype d)
{
  return d == CALX_F64 || d == CALX_C128 ? CALX_C128 : CALX_C64;
}

// PyTorch's table (torch.promote_types): bool < integers < floats < complex; an
// unsigned type with a signed one no wider gives the next wider signed one;
// bf16 with f16 gives f32, and f64 with c64 gives c128.
calx_dtype cx_dtype_promote(calx_dtype a, calx_dtype b)
{
  if (a == b) return a;
  if (cx_dtype_is_complex(a) || cx_dtype_is_complex(b)) {
    return cx_dtype_complex_of(cx_dtype_part(a) == CALX_F64 ? a : b);
  }
  bool fa = cx_dtype_is_float(a), fb = cx_dtype_is_float(b);
  if (fa != fb) return fa ? a : b;
  if (fa) {
    if (calx_dtype_size(a) == calx_dtype_size(b)) return CALX_F32;
    return calx_dtype_size(a) > calx_dtype_size(b) ? a : b;
  }
  if (a == CALX_BOOL) return b;
  if (b == CALX_BOOL) return a;
  bool ua = cx_dtype_is_unsigned(a), ub = cx_dtype_is_unsigned(b);
  if (ua == ub) return calx_dtype_size(a) > calx_dtype_size(b) ? a : b;
  calx_dtype s = ua ? b : a, u = ua ? a : b;
  if (calx_dtype_size(s) > calx_dtype_size(u)) return s;
  switch (u) {
    case CALX_U8: return CALX_I16;
    case CALX_U16: return CALX_I32;
    default: return CALX_I64;
  }
}

static float from_half(uint16_t h)
{
  uint32_t sign = (uint32_t)(h >> 15) << 31;
  int exponent = (h >> 10) & 31;
  uint32_t mantissa = h & 1023u;
  if (exponent == 0) {
    float v = ldexpf((float)mantissa, -24);
    return sign != 0 ? -v : v;
  }
  uint32_t bits =
      exponent == 31 ? sign | 0x7f800000u | mantissa << 13
                     : sign | (uint32_t)(exponent + 112) << 23 | mantissa << 13;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

// The nearest half to v, ties to even; scaling by powers of two is exact, and
// nearbyint rounds once, from the double.
static uint16_t to_half(double v)
{
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  double a = fabs(v);
  if (isnan(v)) return (uint16_t)(sign | 0x7e00);
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00);
  if (a < 0x1p-14) return (uint16_t)(sign | (uint16_t)nearbyint(a * 0x1p24));
  int exponent;
  double m = frexp(a, &exponent);  // a = m * 2^exponent, m in [0.5, 1)
  long steps = (long)nearbyint(m * 2048.0) - 1024;  // may carry to the next
  return (uint16_t)(sign | ((exponent + 14) * 1024 + steps));
}

static float from_brain(uint16_t h)
{
  uint32_t bits = (uint32_t)h << 16;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static uint16_t to_brain(double v)
{
  if (isnan(v)) return signbit(v) ? 0xffc0 : 0x7fc0;
  // Round to odd in f32 first, so that the second rounding is the only one.
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((double)f != v && isfinite(f)) {
    if (fabs((double)f) > fabs(v)) bits--;
    bits |= 1;
  }
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  if (isinf(v)) rounded = bits;
  return (uint16_t)(rounded >> 16);
}

// The nearest integer towards zero that the type holds; NaN is 0.
static int64_t saturate(calx_dtype d, double v)
{
  int bits = 8 * (int)calx_dtype_size(d);
  bool is_unsigned = cx_dtype_is_unsigned(d);
  double high = ldexp(1.0, is_unsigned ? bits : bits - 1);
  double low = is_unsigned ? 0.0 : -high;
  if (isnan(v)) return 0;
  if (v <= low) return is_unsigned ? 0 : (int64_t)(UINT64_MAX << (bits - 1));
  if (v >= high) return (int64_t)(UINT64_MAX >> (64 - bits + !is_unsigned));
  return is_unsigned ? (int64_t)(uint64_t)v : (int64_t)v;
}

double cx_load_double(calx_dtype d, const void *p)
{
  uint16_t h;
  float f;
  double v;
  switch (cx_dtype_part(d)) {
    case CALX_BF16: memcpy(&h, p, 2); return (double)from_brain(h);
    case CALX_F16: memcpy(&h, p, 2); return (double)from_half(h);
    case CALX_F32: memcpy(&f, p, 4); return (double)f;
    case CALX_F64: memcpy(&v, p, 8); return v;
    case CALX_U64: {
      uint64_t u;
      memcpy(&u, p, 8);
      return (double)u;
    }
    default: return (double)cx_load_int(d, p);
  }
}

int64_t cx_load_int(calx_dtype d, const void *p)
{
  int64_t v = 0;
  size_t size = calx_dtype_size(d);
  if (cx_dtype_is_inexact(d)) return saturate(CALX_I64, cx_load_double(d, p));
  memcpy(&v, p, size);  // little-endian: the low bytes
  if (cx_dtype_is_unsigned(d) || d == CALX_BOOL || size == 8) return v;
  int shift = 64 - 8 * (int)size;
  return (int64_t)((uint64_t)v << shift) >> shift;
}

void cx_store_double(calx_dtype d, void *p, double v)
{
  uint16_t h;
  float f;
  if (cx_dtype_is_complex(d)) memset(p, 0, calx_dtype_size(d));
  switch (cx_dtype_part(d)) {
    case CALX_BF16:
      h = to_brain(v);
      memcpy(p, &h, 2);
      break;
    case CALX_F16:
      h = to_half(v);
      memcpy(p, &h, 2);
      break;
    case CALX_F32:
      f = (float)v;
      memcpy(p, &f, 4);
      break;
    case CALX_F64: memcpy(p, &v, 8); break;
    case CALX_BOOL: *(unsigned char *)p = v != 0.0; break;
    default: cx_store_int(d, p, saturate(d, v)); break;
  }
}

void cx_store_int(calx_dtype d, void *p, int64_t v)
{
  if (cx_dtype_is_inexact(d)) {
    cx_store_double(d, p, (double)v);
  } else if (d == CALX_BOOL) {
    *(unsigned char *)p = v != 0;
  } else {
    memcpy(p, &v, calx_dtype_size(d));
  }
}

bool cx_dims_bytes(calx_dtype d, const int64_t *dims, size_t rank,
                   int64_t *out_elements, size_t *out_bytes)
{
  int64_t count = 1, bytes;
  bool empty = false, fits = true;
  for (size_t i = 0; i < rank; i++) {
    empty |= dims[i] == 0;
    fits &= dims[i] >= 0 && !__builtin_mul_overflow(count, dims[i], &count);
  }
  if (empty) count = 0;  // also where the other sizes' product does not fit
  if (!(fits || empty) ||
      __builtin_mul_overflow(count, (int64_t)calx_dtype_size(d), &bytes)) {
    return false;
  }
  *out_elements = count;
  *out_bytes = (size_t)bytes;
  return true;
}
