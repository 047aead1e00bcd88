// ref/number: elements of every type as numbers, many at a time, so that the
// type is looked at once for a chunk and not once for an element.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

cpu_ref_class cpu_ref_class_of(cx_hlo_elem e)
{
  if (cx_hlo_elem_is_complex(e)) return CPU_REF_COMPLEX;
  return cx_hlo_elem_is_float(e) ? CPU_REF_REAL : CPU_REF_INT;
}

// Reads `type` elements wherever they lie, and makes numbers of them.
#define LOAD(type, number)                     \
  for (size_t i = 0; i < n; i++) {             \
    type x;                                    \
    memcpy(&x, from + i * sizeof x, sizeof x); \
    out[i] = (number)x;                        \
  }                                            \
  return

#define STORE(type, value)                   \
  for (size_t i = 0; i < n; i++) {           \
    const type x = (type)(value);            \
    memcpy(to + i * sizeof x, &x, sizeof x); \
  }                                          \
  return

// ---- integers ----

void cpu_ref_load_ints(cx_hlo_elem e, const void *p, size_t n, int64_t *out)
{
  const unsigned char *from = p;
  switch (e) {
    case CX_HLO_I8: LOAD(int8_t, int64_t);
    case CX_HLO_I16: LOAD(int16_t, int64_t);
    case CX_HLO_I32: LOAD(int32_t, int64_t);
    case CX_HLO_UI8: LOAD(uint8_t, int64_t);
    case CX_HLO_UI16: LOAD(uint16_t, int64_t);
    case CX_HLO_UI32: LOAD(uint32_t, int64_t);
    case CX_HLO_I64:
    case CX_HLO_UI64:
    case CX_HLO_INDEX: memcpy(out, p, n * sizeof *out); return;
    default: break;
  }
  const size_t bytes = cx_hlo_elem_bytes(e);
  for (size_t i = 0; i < n; i++) out[i] = cx_hlo_load_int(e, from + i * bytes);
}

void cpu_ref_store_ints(cx_hlo_elem e, void *p, size_t n, const int64_t *v)
{
  unsigned char *to = p;
  switch (e) {
    case CX_HLO_I1: STORE(uint8_t, v[i] != 0);
    case CX_HLO_I8:
    case CX_HLO_UI8: STORE(uint8_t, (uint64_t)v[i]);
    case CX_HLO_I16:
    case CX_HLO_UI16: STORE(uint16_t, (uint64_t)v[i]);
    case CX_HLO_I32:
    case CX_HLO_UI32: STORE(uint32_t, (uint64_t)v[i]);
    case CX_HLO_I64:
    case CX_HLO_UI64:
    case CX_HLO_INDEX: memcpy(p, v, n * sizeof *v); return;
    default: break;
  }
  const size_t bytes = cx_hlo_elem_bytes(e);
  for (size_t i = 0; i < n; i++) cx_hlo_store_int(e, to + i * bytes, v[i]);
}

// ---- floats of 16 bits ----

// Of an IEEE format with m mantissa bits and this bias, in 16 bits. Like
// cx_hlo_real_to_bits, but without ldexp() for each element.
static uint16_t narrow(double v, unsigned m, unsigned bias)
{
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  const uint16_t sign = (uint16_t)(u >> 48 & 0x8000);
  u &= INT64_MAX;
  const uint16_t inf = (uint16_t)(0x7fff >> m << m);
  if (u > UINT64_C(0x7ff) << 52) {
    return (uint16_t)(sign | inf | 1u << (m - 1));
  }
  const unsigned rebias = 1023 - bias;
  if (u >> 52 <= rebias) {  // below the smallest normal number
    if (u >> 52 < rebias - m - 1) return sign;
    const double a = fabs(v) * ldexp(1.0, (int)(bias - 1 + m));
    return (uint16_t)(sign | (uint16_t)nearbyint(a));
  }
  const unsigned drop = 52 - m;
  u += (UINT64_C(1) << (drop - 1)) - 1 + (u >> drop & 1);
  const uint64_t code = (u >> drop) - ((uint64_t)rebias << m);
  return (uint16_t)(sign | (code < inf ? (uint16_t)code : inf));
}

static double widen_f16(uint16_t h)
{
  const unsigned e = h >> 10 & 31;
  const double sign = h >> 15 ? -1.0 : 1.0;
  if (e == 0) return sign * (double)(h & 1023) * 0x1p-24;
  if (e == 31) return (h & 1023) != 0 ? (double)NAN : sign * HUGE_VAL;
  const uint64_t u = (uint64_t)(e + 1023 - 15) << 52 | (uint64_t)(h & 1023)
                                                           << 42;
  double v;
  memcpy(&v, &u, sizeof v);
  return sign * v;
}

static double widen_bf16(uint16_t h)
{
  const uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return (double)f;
}

// ---- reals ----

void cpu_ref_load_reals(cx_hlo_elem e, const void *p, size_t n, double *out)
{
  const unsigned char *from = p;
  const size_t bytes = cx_hlo_elem_bytes(e);
  switch (e) {
    case CX_HLO_F32: LOAD(float, double);
    case CX_HLO_F64: memcpy(out, p, n * sizeof *out); return;
    case CX_HLO_I32: LOAD(int32_t, double);
    case CX_HLO_I64:
    case CX_HLO_INDEX: LOAD(int64_t, double);
    case CX_HLO_UI64: LOAD(uint64_t, double);
    case CX_HLO_C64:
    case CX_HLO_C128:
      for (size_t i = 0; i < n; i++) {
        out[i] = cx_hlo_load_real(cx_hlo_elem_part(e), from + i * bytes);
      }
      return;
    case CX_HLO_F16:
    case CX_HLO_BF16:
      for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + i * sizeof h, sizeof h);
        out[i] = e == CX_HLO_F16 ? widen_f16(h) : widen_bf16(h);
      }
      return;
    default: break;
  }
  const bool real = cx_hlo_elem_is_float(e);
  for (size_t i = 0; i < n; i++) {
    const void *at = from + i * bytes;
    out[i] = real ? cx_hlo_load_real(e, at) : (double)cx_hlo_load_int(e, at);
  }
}

void cpu_ref_store_reals(cx_hlo_elem e, void *p, size_t n, const double *v)
{
  unsigned char *to = p;
  switch (e) {
    case CX_HLO_F32: STORE(float, v[i]);
    case CX_HLO_F64: memcpy(p, v, n * sizeof *v); return;
    case CX_HLO_F16: STORE(uint16_t, narrow(v[i], 10, 15));
    case CX_HLO_BF16: STORE(uint16_t, narrow(v[i], 7, 127));
    default: break;
  }
  const size_t bytes = cx_hlo_elem_bytes(e);
  for (size_t i = 0; i < n; i++) cx_hlo_store_real(e, to + i * bytes, v[i]);
}

// ---- complex ----

void cpu_ref_load_complex(cx_hlo_elem e, const void *p, size_t n,
                          double complex *out)
{
  const unsigned char *from = p;
  const bool wide = e == CX_HLO_C128;
  if (!wide && e != CX_HLO_C64) {
    for (size_t i = 0; i < n; i++) {
      double x;
      cpu_ref_load_reals(e, from + i * cx_hlo_elem_bytes(e), 1, &x);
      out[i] = cpu_ref_pair(x, 0);
    }
    return;
  }
  if (wide) {
    memcpy(out, p, n * sizeof *out);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    float x[2];
    memcpy(x, from + i * sizeof x, sizeof x);
    out[i] = cpu_ref_pair((double)x[0], (double)x[1]);
  }
}

void cpu_ref_store_complex(cx_hlo_elem e, void *p, size_t n,
                           const double complex *v)
{
  unsigned char *to = p;
  if (e == CX_HLO_C128) {
    memcpy(p, v, n * sizeof *v);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const float x[2] = { (float)creal(v[i]), (float)cimag(v[i]) };
    memcpy(to + i * sizeof x, x, sizeof x);
  }
}

// ---- by class ----

size_t cpu_ref_number_bytes(cpu_ref_class class)
{
  return class == CPU_REF_COMPLEX ? sizeof(double complex) : sizeof(double);
}

void cpu_ref_load_numbers(cpu_ref_class class, cx_hlo_elem e, const void *p,
                          size_t n, void *out)
{
  switch (class) {
    case CPU_REF_INT: cpu_ref_load_ints(e, p, n, out); break;
    case CPU_REF_REAL: cpu_ref_load_reals(e, p, n, out); break;
    case CPU_REF_COMPLEX: cpu_ref_load_complex(e, p, n, out); break;
  }
}

void cpu_ref_store_numbers(cpu_ref_class class, cx_hlo_elem e, void *p,
                           size_t n, const void *v)
{
  switch (class) {
    case CPU_REF_INT: cpu_ref_store_ints(e, p, n, v); break;
    case CPU_REF_REAL: cpu_ref_store_reals(e, p, n, v); break;
    case CPU_REF_COMPLEX: cpu_ref_store_complex(e, p, n, v); break;
  }
}

// ---- conversion ----

// v as a double that rounds to any narrower float as v itself would: where
// not all 64 bits fit, the lowest one says whether there was more.
static double sticky(int64_t v, bool is_unsigned)
{
  const bool negative = !is_unsigned && v < 0;
  uint64_t u = negative ? 0 - (uint64_t)v : (uint64_t)v;
  if (u >> 53 != 0) u = (u & ~UINT64_C(2047)) | ((u & 2047) != 0 ? 2048 : 0);
  return negative ? -(double)u : (double)u;
}

static int64_t saturated(double v, cx_hlo_elem to)
{
  const bool is_unsigned = cx_hlo_elem_is_unsigned(to);
  const unsigned bits = cx_hlo_elem_bits(to);
  const double top = ldexp(1.0, (int)bits - (is_unsigned ? 0 : 1));
  if (isnan(v)) return 0;
  if (v >= top) {
    const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    return (int64_t)(is_unsigned ? all : all >> 1);
  }
  if (is_unsigned) return v <= 0 ? 0 : (int64_t)(uint64_t)v;
  return v <= -top ? (int64_t)(~UINT64_C(0) << (bits - 1)) : (int64_t)v;
}

// Numbers of a class become those of the other one; storing rounds them.
static void convert_chunk(cx_hlo_elem from, const void *p, cx_hlo_elem to,
                          void *out, size_t n)
{
  const cpu_ref_class class = cpu_ref_class_of(to);
  const bool from_int = cpu_ref_class_of(from) == CPU_REF_INT;
  cpu_ref_chunk v, w;
  if (from_int && class != CPU_REF_INT) {
    const bool exact = cx_hlo_elem_part(to) == CX_HLO_F64;
    const bool is_unsigned = from == CX_HLO_UI64;
    cpu_ref_load_ints(from, p, n, w.i);
    for (size_t i = 0; i < n; i++) {
      v.r[i] = !exact        ? sticky(w.i[i], is_unsigned)
               : is_unsigned ? (double)(uint64_t)w.i[i]
                             : (double)w.i[i];
    }
    if (class == CPU_REF_COMPLEX) {
      for (size_t i = 0; i < n; i++) w.c[i] = cpu_ref_pair(v.r[i], 0);
    }
    cpu_ref_store_numbers(class, to, out, n, class == CPU_REF_REAL ? &v : &w);
  } else if (class == CPU_REF_INT && !from_int) {
    cpu_ref_load_reals(from, p, n, v.r);
    for (size_t i = 0; i < n; i++) {
      w.i[i] = to == CX_HLO_I1 ? v.r[i] != 0 : saturated(v.r[i], to);
    }
    cpu_ref_store_ints(to, out, n, w.i);
  } else {
    cpu_ref_load_numbers(class, from, p, n, &v);
    cpu_ref_store_numbers(class, to, out, n, &v);
  }
}

void cpu_ref_convert(cx_hlo_elem from, const void *p, cx_hlo_elem to, void *out,
                     size_t n)
{
  const size_t a = cx_hlo_elem_bytes(from);
  const size_t b = cx_hlo_elem_bytes(to);
  if (from == to) {
    if (n != 0) memcpy(out, p, n * a);
    return;
  }
  for (size_t i = 0; i < n; i += CPU_REF_CHUNK) {
    const size_t k = n - i < CPU_REF_CHUNK ? n - i : CPU_REF_CHUNK;
    convert_chunk(from, (const char *)p + i * a, to, (char *)out + i * b, k);
  }
}

int64_t cpu_ref_int_at(const cpu_ref_tensor *t, size_t i)
{
  return cx_hlo_load_int(t->type.elem, cpu_ref_at(t, i));
}

int64_t cpu_ref_index_at(const cpu_ref_tensor *t, size_t i)
{
  const int64_t v = cpu_ref_int_at(t, i);
  return t->type.elem == CX_HLO_UI64 && v < 0 ? INT64_MAX : v;
}
