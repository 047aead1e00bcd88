// opt/emit: arithmetic in few words, for decompositions. All append to the
// builder, take NULLs after its failure, and give values of x's shape.
#ifndef CX_OPT_EMIT_H
#define CX_OPT_EMIT_H

#include "opt/edit.h"

typedef cx_hlo_value *cx_v;

static inline cx_v plus(cx_hlo_builder *b, cx_v x, cx_v y)
{
  return cx_hlo_binary(b, CX_HLO_OP_ADD, x, y);
}
static inline cx_v minus(cx_hlo_builder *b, cx_v x, cx_v y)
{
  return cx_hlo_binary(b, CX_HLO_OP_SUBTRACT, x, y);
}
static inline cx_v times(cx_hlo_builder *b, cx_v x, cx_v y)
{
  return cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, x, y);
}
static inline cx_v over(cx_hlo_builder *b, cx_v x, cx_v y)
{
  return cx_hlo_binary(b, CX_HLO_OP_DIVIDE, x, y);
}
static inline cx_v unary(cx_hlo_builder *b, cx_hlo_op_kind kind, cx_v x)
{
  return cx_hlo_unary(b, kind, x);
}
static inline cx_v root(cx_hlo_builder *b, cx_v x)
{
  return cx_hlo_unary(b, CX_HLO_OP_SQRT, x);
}
static inline cx_v absolute(cx_hlo_builder *b, cx_v x)
{
  return cx_hlo_unary(b, CX_HLO_OP_ABS, x);
}
// The number everywhere, like x.
static inline cx_v number(cx_hlo_builder *b, cx_v x, double v)
{
  return x == NULL ? NULL : cx_hlo_splat(b, x->type.tensor, v);
}
static inline cx_v plus_number(cx_hlo_builder *b, cx_v x, double v)
{
  return plus(b, x, number(b, x, v));
}
static inline cx_v times_number(cx_hlo_builder *b, cx_v x, double v)
{
  return times(b, x, number(b, x, v));
}
// v - x, v / x
static inline cx_v number_minus(cx_hlo_builder *b, double v, cx_v x)
{
  return minus(b, number(b, x, v), x);
}
static inline cx_v number_over(cx_hlo_builder *b, double v, cx_v x)
{
  return over(b, number(b, x, v), x);
}
// Whether x is above, at, below the number.
static inline cx_v is_over(cx_hlo_builder *b, cx_v x, double v)
{
  return cx_hlo_compare(b, CX_HLO_GT, x, number(b, x, v));
}
static inline cx_v is_under(cx_hlo_builder *b, cx_v x, double v)
{
  return cx_hlo_compare(b, CX_HLO_LT, x, number(b, x, v));
}
static inline cx_v is_at(cx_hlo_builder *b, cx_v x, double v)
{
  return cx_hlo_compare(b, CX_HLO_EQ, x, number(b, x, v));
}
static inline cx_v both(cx_hlo_builder *b, cx_v x, cx_v y)
{
  return cx_hlo_binary(b, CX_HLO_OP_AND, x, y);
}
static inline cx_v choose(cx_hlo_builder *b, cx_v pred, cx_v x, cx_v y)
{
  return cx_hlo_select(b, pred, x, y);
}

// c[0] x^(n-1) + … + c[n-1], by Horner's rule.
cx_v cx_opt_polynomial(cx_hlo_builder *b, cx_v x, const double *c, size_t n);
// c[0] / 2 is not meant: sum of c[k] T_k(x), by Clenshaw's rule.
cx_v cx_opt_chebyshev(cx_hlo_builder *b, cx_v x, const double *c, size_t n);
// The magnitude of x with the sign of y, also of zeros; f32 or f64.
cx_v cx_opt_copysign(cx_hlo_builder *b, cx_v x, cx_v y);

// ---- functions on reals: f64, but where it is said ----

cx_v cx_opt_erf_f32(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_erf(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_erfc(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_erf_inv(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_bessel_i1e(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_lgamma(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_digamma(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_zeta(cx_hlo_builder *b, cx_v x, cx_v q);
cx_v cx_opt_polygamma(cx_hlo_builder *b, cx_v n, cx_v x);
cx_v cx_opt_asin(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_acos(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_atan(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_asinh(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_acosh(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_atanh(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_sinh(cx_hlo_builder *b, cx_v x);
cx_v cx_opt_cosh(cx_hlo_builder *b, cx_v x);

// ---- functions on complex numbers: the parts are f64 ----

typedef struct cx_opt_parts {
  cx_v re, im;
} cx_opt_parts;
typedef cx_opt_parts cx_opt_parts_fn(cx_hlo_builder *b, cx_opt_parts z);
cx_opt_parts_fn cx_opt_casin, cx_opt_cacos, cx_opt_catan, cx_opt_casinh,
    cx_opt_cacosh, cx_opt_catanh, cx_opt_csinh, cx_opt_ccosh;

#endif
