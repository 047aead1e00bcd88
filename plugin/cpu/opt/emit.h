// opt/emit: short names for the arithmetic of decompositions. All functions
// append to the builder, accept NULL after its failure, and return values of
// x's shape.
#ifndef CPU_OPT_EMIT_H
#define CPU_OPT_EMIT_H

#include "opt/edit.h"

typedef cx_hlo_value *cpu_opt_value;

#define CPU_OPT_UNARY(name, kind)                                      \
  static inline cpu_opt_value name(cx_hlo_builder *b, cpu_opt_value x) \
  {                                                                    \
    return cx_hlo_unary(b, CX_HLO_OP_##kind, x);                       \
  }
CPU_OPT_UNARY(absolute, ABS)
CPU_OPT_UNARY(complement, NOT)
CPU_OPT_UNARY(cos_of, COSINE)
CPU_OPT_UNARY(exp_of, EXPONENTIAL)
CPU_OPT_UNARY(floor_of, FLOOR)
CPU_OPT_UNARY(imaginary, IMAG)
CPU_OPT_UNARY(log1p_of, LOG_PLUS_ONE)
CPU_OPT_UNARY(log_of, LOG)
CPU_OPT_UNARY(negated, NEGATE)
CPU_OPT_UNARY(real, REAL)
CPU_OPT_UNARY(root, SQRT)
CPU_OPT_UNARY(sin_of, SINE)

#define CPU_OPT_BINARY(name, kind)                                     \
  static inline cpu_opt_value name(cx_hlo_builder *b, cpu_opt_value x, \
                                   cpu_opt_value y)                    \
  {                                                                    \
    return cx_hlo_binary(b, CX_HLO_OP_##kind, x, y);                   \
  }
CPU_OPT_BINARY(atan2_of, ATAN2)
CPU_OPT_BINARY(both, AND)
CPU_OPT_BINARY(complex_of, COMPLEX)
CPU_OPT_BINARY(either, OR)
CPU_OPT_BINARY(larger, MAXIMUM)
CPU_OPT_BINARY(minus, SUBTRACT)
CPU_OPT_BINARY(over, DIVIDE)
CPU_OPT_BINARY(plus, ADD)
CPU_OPT_BINARY(power_of, POWER)
CPU_OPT_BINARY(smaller, MINIMUM)
CPU_OPT_BINARY(times, MULTIPLY)

// A constant of x's type, all elements v.
static inline cpu_opt_value number(cx_hlo_builder *b, cpu_opt_value x, double v)
{
  return x == NULL ? NULL : cx_hlo_splat(b, x->type.tensor, v);
}
static inline cpu_opt_value plus_number(cx_hlo_builder *b, cpu_opt_value x,
                                        double v)
{
  return plus(b, x, number(b, x, v));
}
static inline cpu_opt_value times_number(cx_hlo_builder *b, cpu_opt_value x,
                                         double v)
{
  return times(b, x, number(b, x, v));
}
// v - x, v / x
static inline cpu_opt_value number_minus(cx_hlo_builder *b, double v,
                                         cpu_opt_value x)
{
  return minus(b, number(b, x, v), x);
}
static inline cpu_opt_value number_over(cx_hlo_builder *b, double v,
                                        cpu_opt_value x)
{
  return over(b, number(b, x, v), x);
}
// Whether x is above, at, below the number.
static inline cpu_opt_value is_over(cx_hlo_builder *b, cpu_opt_value x,
                                    double v)
{
  return cx_hlo_compare(b, CX_HLO_GT, x, number(b, x, v));
}
static inline cpu_opt_value is_under(cx_hlo_builder *b, cpu_opt_value x,
                                     double v)
{
  return cx_hlo_compare(b, CX_HLO_LT, x, number(b, x, v));
}
static inline cpu_opt_value equal(cx_hlo_builder *b, cpu_opt_value x,
                                  cpu_opt_value y)
{
  return cx_hlo_compare(b, CX_HLO_EQ, x, y);
}
static inline cpu_opt_value is_at(cx_hlo_builder *b, cpu_opt_value x, double v)
{
  return equal(b, x, number(b, x, v));
}
static inline cpu_opt_value choose(cx_hlo_builder *b, cpu_opt_value pred,
                                   cpu_opt_value x, cpu_opt_value y)
{
  return cx_hlo_select(b, pred, x, y);
}

static inline cpu_opt_value converted(cx_hlo_builder *b, cpu_opt_value x,
                                      cx_hlo_elem to)
{
  if (x == NULL || x->type.tensor.elem == to) return x;
  return cx_hlo_convert(b, x, to);
}

// c[0] x^(n-1) + … + c[n-1], by Horner's rule.
cpu_opt_value cpu_opt_polynomial(cx_hlo_builder *b, cpu_opt_value x,
                                 const double *c, size_t n);
// The sum of c[k] T_k(x), with the whole of c[0], by Clenshaw's rule.
cpu_opt_value cpu_opt_chebyshev(cx_hlo_builder *b, cpu_opt_value x,
                                const double *c, size_t n);
// The magnitude of x with the sign of y, also of zeros; f32 or f64.
cpu_opt_value cpu_opt_copysign(cx_hlo_builder *b, cpu_opt_value x,
                               cpu_opt_value y);

// ---- functions on reals: f64, but for the first ----

// On f32, as accurate as bf16 and f16 need it.
cpu_opt_value cpu_opt_erfc_narrow(cx_hlo_builder *b, cpu_opt_value x);
cpu_opt_value cpu_opt_bessel_i1e(cx_hlo_builder *b, cpu_opt_value x);
cpu_opt_value cpu_opt_lgamma(cx_hlo_builder *b, cpu_opt_value x);
cpu_opt_value cpu_opt_digamma(cx_hlo_builder *b, cpu_opt_value x);
cpu_opt_value cpu_opt_zeta(cx_hlo_builder *b, cpu_opt_value x, cpu_opt_value q);
cpu_opt_value cpu_opt_polygamma(cx_hlo_builder *b, cpu_opt_value n,
                                cpu_opt_value x);

// ---- functions on complex numbers: the parts are f64 ----

typedef struct cpu_opt_parts {
  cpu_opt_value re, im;
} cpu_opt_parts;
typedef cpu_opt_parts cpu_opt_parts_fn(cx_hlo_builder *b, cpu_opt_parts z);
cpu_opt_parts_fn cpu_opt_casin, cpu_opt_cacos, cpu_opt_catan, cpu_opt_casinh,
    cpu_opt_cacosh, cpu_opt_catanh, cpu_opt_csinh, cpu_opt_ccosh;

#endif
