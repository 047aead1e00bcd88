// ref/element: operations that work element by element, by the class of their
// operands' type, a chunk at a time: loaded as numbers, computed, stored.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

static const void *lane_at(const cpu_ref_lane *x, size_t at)
{
  return (const char *)x->data + at * x->step * cx_hlo_elem_bytes(x->elem);
}

static void load(const cpu_ref_lane *x, size_t at, size_t n, cpu_ref_chunk *out)
{
  const cpu_ref_class class = cpu_ref_class_of(x->elem);
  const size_t bytes = cpu_ref_number_bytes(class);
  const size_t k = x->step == 0 ? 1 : n;
  cpu_ref_load_numbers(class, x->elem, lane_at(x, at), k, out);
  cpu_ref_fill(bytes, (char *)out + bytes, n - k, out);
}

static void store(cx_hlo_elem e, void *p, size_t n, const cpu_ref_chunk *v)
{
  cpu_ref_store_numbers(cpu_ref_class_of(e), e, p, n, v);
}

void cpu_ref_compute(cx_hlo_op_kind kind, cx_hlo_elem e, const void *a,
                     const void *b, void *out, size_t n)
{
  switch (cpu_ref_class_of(e)) {
    case CPU_REF_INT: cpu_ref_ints(kind, e, a, b, out, n); break;
    case CPU_REF_REAL: cpu_ref_reals(kind, a, b, out, n); break;
    case CPU_REF_COMPLEX: cpu_ref_complexes(kind, a, b, out, n); break;
  }
}

// ---- compare ----

// Of a float's bits: ordered as signed numbers, -NaN first and NaN last.
static int64_t total_key(cx_hlo_elem e, const void *p)
{
  const uint64_t bits = cx_hlo_load_bits(e, p);
  const uint64_t sign = UINT64_C(1) << (cx_hlo_elem_bits(e) - 1);
  const uint64_t rest = bits & (sign - 1);
  return (bits & sign) != 0 ? (int64_t)~rest : (int64_t)rest;
}

static void load_keys(const cpu_ref_lane *x, size_t at, size_t n,
                      cpu_ref_chunk *out)
{
  const char *p = lane_at(x, at);
  const size_t step = x->step * cx_hlo_elem_bytes(x->elem);
  for (size_t i = 0; i < n; i++) out->i[i] = total_key(x->elem, p + i * step);
}

// Of the values of CX_HLO_COMPARISON_DIRECTION.
enum { EQ, NE, GE, GT, LE, LT };

#define EACH(type, a, b, relation) \
  for (size_t i = 0; i < n; i++) to[i] = (type)a[i] relation(type) b[i]
#define COMPARE(type, a, b)               \
  switch (how) {                          \
    case EQ: EACH(type, a, b, ==); break; \
    case NE: EACH(type, a, b, !=); break; \
    case GE: EACH(type, a, b, >=); break; \
    case GT: EACH(type, a, b, >); break;  \
    case LE: EACH(type, a, b, <=); break; \
    default: EACH(type, a, b, <); break;  \
  }

static bool complex_holds(int64_t how, double complex a, double complex b)
{
  const bool equal = creal(a) == creal(b) && cimag(a) == cimag(b);
  switch (how) {
    case EQ: return equal;
    case NE: return !equal;
    case GE: return equal || cpu_ref_complex_less(b, a);
    case GT: return cpu_ref_complex_less(b, a);
    case LE: return equal || cpu_ref_complex_less(a, b);
    default: return cpu_ref_complex_less(a, b);
  }
}

static void compare(const cx_hlo_op *op, const cpu_ref_lane *in, size_t at,
                    unsigned char *to, size_t n)
{
  const int64_t how = cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION);
  const cx_hlo_elem e = in[0].elem;
  cpu_ref_chunk a, b;
  const cpu_ref_class class = cpu_ref_class_of(e);
  if (class == CPU_REF_REAL && cx_hlo_op_int(op, CX_HLO_A_COMPARE_TYPE) == 2) {
    load_keys(&in[0], at, n, &a);
    load_keys(&in[1], at, n, &b);
    COMPARE(int64_t, a.i, b.i)
    return;
  }
  load(&in[0], at, n, &a);
  load(&in[1], at, n, &b);
  if (class == CPU_REF_REAL) {
    COMPARE(double, a.r, b.r)
  } else if (class == CPU_REF_COMPLEX) {
    for (size_t i = 0; i < n; i++) to[i] = complex_holds(how, a.c[i], b.c[i]);
  } else if (cx_hlo_elem_is_unsigned(e)) {
    COMPARE(uint64_t, a.i, b.i)
  } else {
    COMPARE(int64_t, a.i, b.i)
  }
}

// ---- the ones that are not arithmetic ----

static void choose(const cpu_ref_lane *in, size_t at, char *to, size_t n)
{
  const size_t bytes = cx_hlo_elem_bytes(in[1].elem);
  const unsigned char *pred = lane_at(&in[0], at);
  const char *a = lane_at(&in[1], at);
  const char *b = lane_at(&in[2], at);
  for (size_t i = 0; i < n; i++) {
    const char *from = pred[i * in[0].step] != 0 ? a + i * bytes * in[1].step
                                                 : b + i * bytes * in[2].step;
    memcpy(to + i * bytes, from, bytes);
  }
}

static void make_complex(const cpu_ref_lane *in, size_t at, cx_hlo_elem to,
                         void *out, size_t n)
{
  cpu_ref_chunk re, im, z;
  load(&in[0], at, n, &re);
  load(&in[1], at, n, &im);
  for (size_t i = 0; i < n; i++) z.c[i] = cpu_ref_pair(re.r[i], im.r[i]);
  store(to, out, n, &z);
}

// abs, real and imag of complex numbers.
static void part_of(cx_hlo_op_kind kind, const cpu_ref_lane *x, size_t at,
                    cx_hlo_elem to, void *out, size_t n)
{
  cpu_ref_chunk z, r;
  load(x, at, n, &z);
  for (size_t i = 0; i < n; i++) {
    r.r[i] = kind == CX_HLO_OP_ABS    ? cabs(z.c[i])
             : kind == CX_HLO_OP_REAL ? creal(z.c[i])
                                      : cimag(z.c[i]);
  }
  store(to, out, n, &r);
}

// Exponent bits of a float type that has as many or more are not reduced.
static int own_exponent_bits(cx_hlo_elem e)
{
  switch (e) {
    case CX_HLO_F64: return 11;
    case CX_HLO_F32:
    case CX_HLO_BF16: return 8;
    default: return 5;
  }
}

// To nearest even at m bits; what is too large becomes infinity, what would be
// subnormal zero.
static double reduced(double v, int64_t e, int64_t m, bool fewer)
{
  if (isnan(v)) return m == 0 ? HUGE_VAL : v;
  if (isinf(v) || v == 0) return v;
  int exponent = 0;
  const double x = frexp(v, &exponent);
  const int bits = m < 52 ? (int)m : 52;
  const double r = ldexp(nearbyint(ldexp(x, bits + 1)), exponent - bits - 1);
  if (!fewer) return r;
  const int bias = (1 << (e - 1)) - 1;
  if (fabs(r) >= ldexp(1.0, bias + 1)) return copysign(HUGE_VAL, v);
  return fabs(r) < ldexp(1.0, 1 - bias) ? copysign(0.0, v) : r;
}

static void reduce_precision(const cx_hlo_op *op, const cpu_ref_lane *x,
                             size_t at, void *out, size_t n)
{
  const int64_t e = cx_hlo_op_int(op, CX_HLO_A_EXPONENT_BITS);
  const int64_t m = cx_hlo_op_int(op, CX_HLO_A_MANTISSA_BITS);
  const bool fewer = e < own_exponent_bits(x->elem);
  cpu_ref_chunk v;
  load(x, at, n, &v);
  for (size_t i = 0; i < n; i++) v.r[i] = reduced(v.r[i], e, m, fewer);
  store(x->elem, out, n, &v);
}

static void clamp(const cpu_ref_lane *in, size_t at, void *out, size_t n)
{
  const cx_hlo_elem e = in[1].elem;
  cpu_ref_chunk low, x, high;
  load(&in[0], at, n, &low);
  load(&in[1], at, n, &x);
  load(&in[2], at, n, &high);
  cpu_ref_compute(CX_HLO_OP_MAXIMUM, e, &x, &low, &x, n);
  cpu_ref_compute(CX_HLO_OP_MINIMUM, e, &x, &high, &x, n);
  store(e, out, n, &x);
}

static void is_finite(const cpu_ref_lane *x, size_t at, unsigned char *out,
                      size_t n)
{
  cpu_ref_chunk v;
  load(x, at, n, &v);
  for (size_t i = 0; i < n; i++) out[i] = isfinite(v.r[i]) != 0;
}

static void arithmetic(const cx_hlo_op *op, const cpu_ref_lane *in, size_t at,
                       cx_hlo_elem to, void *out, size_t n)
{
  cpu_ref_chunk a, b;
  load(&in[0], at, n, &a);
  if (op->n_operands > 1) load(&in[1], at, n, &b);
  cpu_ref_compute(op->kind, in[0].elem, &a, op->n_operands > 1 ? &b : &a, &a,
                  n);
  store(to, out, n, &a);
}

static void convert(const cpu_ref_lane *x, size_t at, cx_hlo_elem to, void *out,
                    size_t n)
{
  cpu_ref_convert(x->elem, lane_at(x, at), to, out, x->step == 0 ? 1 : n);
  const size_t bytes = cx_hlo_elem_bytes(to);
  if (x->step == 0) cpu_ref_fill(bytes, (char *)out + bytes, n - 1, out);
}

// ---- dispatch ----

static void element_chunk(const cx_hlo_op *op, const cpu_ref_lane *in,
                          size_t at, cx_hlo_elem to, void *out, size_t n)
{
  switch (op->kind) {
    case CX_HLO_OP_COMPARE: compare(op, in, at, out, n); return;
    case CX_HLO_OP_SELECT: choose(in, at, out, n); return;
    case CX_HLO_OP_CLAMP: clamp(in, at, out, n); return;
    case CX_HLO_OP_CONVERT: convert(&in[0], at, to, out, n); return;
    case CX_HLO_OP_COMPLEX: make_complex(in, at, to, out, n); return;
    case CX_HLO_OP_IS_FINITE: is_finite(&in[0], at, out, n); return;
    case CX_HLO_OP_REDUCE_PRECISION:
      reduce_precision(op, &in[0], at, out, n);
      return;
    case CX_HLO_OP_ABS:
    case CX_HLO_OP_REAL:
    case CX_HLO_OP_IMAG:
      if (cx_hlo_elem_is_complex(in[0].elem)) {
        part_of(op->kind, &in[0], at, to, out, n);
        return;
      }
      break;
    default: break;
  }
  arithmetic(op, in, at, to, out, n);
}

void cpu_ref_element(const cx_hlo_op *op, const cpu_ref_lane *in,
                     cx_hlo_elem to, void *out, size_t n)
{
  const size_t bytes = cx_hlo_elem_bytes(to);
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    element_chunk(op, in, at, to, (char *)out + at * bytes, k);
  }
}

bool cpu_ref_is_elementwise(cx_hlo_op_kind kind)
{
  return cpu_ref_fn_of(kind) == cpu_ref_elementwise;
}

calx_status *cpu_ref_elementwise(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  cpu_ref_lane lanes[3] = { 0 };
  for (size_t i = 0; i < c->op->n_operands && i < 3; i++) {
    const bool scalar = in[i].type.rank == 0 && out->type.rank != 0;
    lanes[i] = (cpu_ref_lane){ in[i].type.elem, in[i].data, scalar ? 0 : 1 };
  }
  cpu_ref_element(c->op, lanes, out->type.elem, out->data, cpu_ref_count(out));
  return NULL;
}
