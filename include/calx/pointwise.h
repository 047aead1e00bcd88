/**
 * calx/pointwise.h: elementwise functions beside those of calx/ops.h, which
 * includes this header and whose conventions hold here. Operands broadcast and
 * promote; a tensor operand may be a number.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_POINTWISE_H
#define CALX_POINTWISE_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** x limited to [min, max]; gradient 1 at both. @shape x, min, max broadcast
 *  together @source torch.clamp */
CALX_API calx_tensor *calx_clamp(calx_tensor *x, calx_tensor *min,
                                 calx_tensor *max);
/** x, and at least min; NaN stays. @shape x, min broadcast together
 *  @source torch.clamp_min */
CALX_API calx_tensor *calx_clamp_min(calx_tensor *x, calx_tensor *min);
/** x, and at most max; NaN stays. @shape x, max broadcast together
 *  @source torch.clamp_max */
CALX_API calx_tensor *calx_clamp_max(calx_tensor *x, calx_tensor *max);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_nan_to_num_options {
  CALX_NAMED size_t size;
  CALX_NAMED double nan;    /* what NaN becomes; 0 = 0 */
  CALX_NAMED double posinf; /* 0 = the greatest number, CALX_ZERO = 0 */
  CALX_NAMED double neginf; /* 0 = the least number, CALX_ZERO = 0 */
} calx_nan_to_num_options;
/** Numbers in place of NaN and infinities. @shape x any
 *  @source torch.nan_to_num */
CALX_API calx_tensor *calx_nan_to_num_with(
    calx_tensor *x, const calx_nan_to_num_options *options);
/** `value` where the mask is true. @shape mask broadcasts with x
 *  @dtype mask bool; result as x @source torch.masked_fill */
CALX_API calx_tensor *calx_masked_fill(calx_tensor *x, calx_tensor *mask,
                                       calx_tensor *value);
/** Whether both are other than 0. @shape x, y broadcast together
 *  @dtype result bool @source torch.logical_and */
CALX_API calx_tensor *calx_logical_and(calx_tensor *x, calx_tensor *y);
/** Whether one or both are other than 0. @shape x, y broadcast together
 *  @dtype result bool @source torch.logical_or */
CALX_API calx_tensor *calx_logical_or(calx_tensor *x, calx_tensor *y);
/** Whether exactly one is other than 0. @shape x, y broadcast together
 *  @dtype result bool @source torch.logical_xor */
CALX_API calx_tensor *calx_logical_xor(calx_tensor *x, calx_tensor *y);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_isclose_options {
  CALX_NAMED size_t size;
  CALX_NAMED double rtol; /* 0 = 1e-5, CALX_ZERO = 0 */
  CALX_NAMED double atol; /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED bool equal_nan;
} calx_isclose_options;
/** Whether |x - y| <= atol + rtol |y|. @shape x, y broadcast together
 *  @dtype result bool @source torch.isclose */
CALX_API calx_tensor *calx_isclose_with(calx_tensor *x, calx_tensor *y,
                                        const calx_isclose_options *options);
/** x + weight (end - x). @shape the three broadcast together
 *  @source torch.lerp */
CALX_API calx_tensor *calx_lerp(calx_tensor *x, calx_tensor *end,
                                calx_tensor *weight);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_addcmul_options {
  CALX_NAMED size_t size;
  CALX_NAMED double value; /* 0 = 1, CALX_ZERO = 0 */
} calx_addcmul_options;
/** x + value y z. @shape the three broadcast together @source torch.addcmul */
CALX_API calx_tensor *calx_addcmul_with(calx_tensor *x, calx_tensor *y,
                                        calx_tensor *z,
                                        const calx_addcmul_options *options);
/** x + value y / z. @shape the three broadcast together @source torch.addcdiv
 */
CALX_API calx_tensor *calx_addcdiv_with(calx_tensor *x, calx_tensor *y,
                                        calx_tensor *z,
                                        const calx_addcmul_options *options);
/** x log(y), and 0 where x is 0 and y no NaN. @shape x, y broadcast together
 *  @source torch.xlogy */
CALX_API calx_tensor *calx_xlogy(calx_tensor *x, calx_tensor *y);
/** sqrt(x^2 + y^2) without overflow. @shape x, y broadcast together
 *  @source torch.hypot */
CALX_API calx_tensor *calx_hypot(calx_tensor *x, calx_tensor *y);
/** |x| with y's sign. @shape x, y broadcast together @grad x
 *  @source torch.copysign */
CALX_API calx_tensor *calx_copysign(calx_tensor *x, calx_tensor *y);
/** Degrees as radians. @shape x any @source torch.deg2rad */
CALX_API calx_tensor *calx_deg2rad(calx_tensor *x);
/** Radians as degrees. @shape x any @source torch.rad2deg */
CALX_API calx_tensor *calx_rad2deg(calx_tensor *x);
/** sin(pi x) / (pi x), and 1 at 0. @shape x any @source torch.sinc */
CALX_API calx_tensor *calx_sinc(calx_tensor *x);
/** log(x / (1 - x)). @shape x any @source torch.logit */
CALX_API calx_tensor *calx_logit(calx_tensor *x);
/** 0 below 0, 1 above, `values` at 0. @shape x, values broadcast together
 *  @grad values @source torch.heaviside */
CALX_API calx_tensor *calx_heaviside(calx_tensor *x, calx_tensor *values);
/** x log(1 + y), and 0 where x is 0 and y no NaN. @shape x, y broadcast
 * together
 *  @source torch.special.xlog1py */
CALX_API calx_tensor *calx_xlog1py(calx_tensor *x, calx_tensor *y);
/** Whether x is below 0, or -0; of NaN false. @shape x any @dtype result bool
 *  @grad none @source torch.signbit */
CALX_API calx_tensor *calx_signbit(calx_tensor *x);
/** x to the power y, both as f64. @shape x, y broadcast together @dtype f64
 *  @source torch.float_power */
CALX_API calx_tensor *calx_float_power(calx_tensor *x, calx_tensor *y);
/** The greater; a number wins over NaN; of equals x has the gradient.
 *  @shape x, y broadcast together @source torch.fmax */
CALX_API calx_tensor *calx_fmax(calx_tensor *x, calx_tensor *y);
/** The smaller; as calx_fmax. @shape x, y broadcast together
 *  @source torch.fmin */
CALX_API calx_tensor *calx_fmin(calx_tensor *x, calx_tensor *y);
/** calx_clamp. @shape x, min, max broadcast together @source torch.clip */
CALX_API calx_tensor *calx_clip(calx_tensor *x, calx_tensor *min,
                                calx_tensor *max);
/** Whether calx_isclose is true of all elements. It reads the answer, which
 * runs what is pending; false on failure, which the scope reports.
 *  @shape x, y broadcast together @source torch.allclose */
CALX_API bool calx_allclose_with(calx_tensor *x, calx_tensor *y,
                                 const calx_isclose_options *options);
/** The greatest common divisor of the magnitudes; of 0 and 0, 0. @shape x, y
 *  broadcast together @dtype integer @grad none @source torch.gcd */
CALX_API calx_tensor *calx_gcd(calx_tensor *x, calx_tensor *y);
/** The least common multiple of the magnitudes; 0 where one is 0. @shape x, y
 *  broadcast together @dtype integer @grad none @source torch.lcm */
CALX_API calx_tensor *calx_lcm(calx_tensor *x, calx_tensor *y);
/** x 2^other. @shape x, other broadcast together @source torch.ldexp */
CALX_API calx_tensor *calx_ldexp(calx_tensor *x, calx_tensor *other);
/** x as mantissa 2^exponent, the mantissa's magnitude in [0.5, 1); 0, NaN and
 *  infinities have the exponent 0. @param out_exponent  i32; may be NULL
 *  @return the mantissa @shape x any @dtype floating @source torch.frexp */
CALX_API calx_tensor *calx_frexp(calx_tensor *x, calx_tensor **out_exponent);
/** log2(2^x + 2^y) without overflow. @shape x, y broadcast together
 *  @source torch.logaddexp2 */
CALX_API calx_tensor *calx_logaddexp2(calx_tensor *x, calx_tensor *y);
/** Whether an element is real: true, of all types that there are here.
 *  @shape x any @dtype result bool @grad none @source torch.isreal */
CALX_API calx_tensor *calx_isreal(calx_tensor *x);
/** Whether both have the same sizes and elements. It reads the answer, which
 *  runs what is pending; false on failure, which the scope reports.
 *  @shape x, y any @source torch.equal */
CALX_API bool calx_equal(calx_tensor *x, calx_tensor *y);
/** The modified Bessel function of order 0. @shape x any
 *  @source torch.i0 */
CALX_API calx_tensor *calx_i0(calx_tensor *x);
/** e^-|x| calx_i0(x). @shape x any @source torch.special.i0e */
CALX_API calx_tensor *calx_i0e(calx_tensor *x);
/** The modified Bessel function of order 1. @shape x any
 *  @source torch.special.i1 */
CALX_API calx_tensor *calx_i1(calx_tensor *x);
/** e^-|x| calx_i1(x). @shape x any @source torch.special.i1e */
CALX_API calx_tensor *calx_i1e(calx_tensor *x);
/** The probability of a normal number of at most x. @shape x any
 *  @source torch.special.ndtr */
CALX_API calx_tensor *calx_ndtr(calx_tensor *x);
/** log(calx_ndtr(x)), of small probabilities, too. @shape x any
 *  @source torch.special.log_ndtr */
CALX_API calx_tensor *calx_log_ndtr(calx_tensor *x);
/** The number whose calx_ndtr is x; NaN outside of [0, 1]. @shape x any
 *  @source torch.special.ndtri */
CALX_API calx_tensor *calx_ndtri(calx_tensor *x);
/** The regularised lower incomplete gamma function: the integral of t^(a - 1)
 *  e^-t from 0 to x over gamma(a). NaN below 0, of NaN and of both 0. a has no
 *  gradient, as in PyTorch: to ask for it is an error.
 *  @shape a, x broadcast together @dtype floating @grad x
 *  @source torch.igamma */
CALX_API calx_tensor *calx_igamma(calx_tensor *a, calx_tensor *x);
/** 1 - calx_igamma(a, x); computed by itself where x is greater than a, so that
 *  small values keep their digits. @shape a, x broadcast together
 *  @dtype floating @grad x @source torch.igammac */
CALX_API calx_tensor *calx_igammac(calx_tensor *a, calx_tensor *x);
/** The logarithm of the gamma function of dimension p. @param p  1 to 4096
 *  @shape x any @source torch.mvlgamma */
CALX_API calx_tensor *calx_mvlgamma(calx_tensor *x, int64_t p);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_nan_to_num_options_ \
  .posinf = CALX_UNWRITTEN_, .neginf = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nan_to_num_options, calx_written_(&o->posinf);
              calx_written_(&o->neginf);)
#define CALX_UNWRITTEN_calx_isclose_options_ \
  .rtol = CALX_UNWRITTEN_, .atol = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_isclose_options, calx_written_(&o->rtol);
              calx_written_(&o->atol);)
#define CALX_UNWRITTEN_calx_addcmul_options_ .value = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_addcmul_options, calx_written_(&o->value);)
#endif
#ifdef __cplusplus
}
#endif
#endif
