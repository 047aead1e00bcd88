/**
 * calx/ops.h: operations on tensors.
 *
 * Names, arguments and results are PyTorch's. Operands broadcast and promote as
 * there. All results belong to the current scope. A failing op reports through
 * the scope and gives a poisoned tensor.
 *
 * Common to all, unless said otherwise:
 * @errors   INVALID_ARGUMENT  shapes, dtypes or options that do not fit; a host
 *           tensor; tensors of two devices.  FAILED_PRECONDITION  an operand
 *           that expired at a sync
 * @owner    the current scope
 * @threads  thread-compatible
 * @grad     every floating-point operand
 *
 * Options: a struct whose zero value means the defaults. In C the macros take
 * them as designated initialisers: calx_sum(x, .dims = CALX_DIMS(0, 2)).
 * Elsewhere call the _with function with a struct, or NULL.
 */
#ifndef CALX_OPS_H
#define CALX_OPS_H

#include <math.h>
#include <stdbool.h>

#include "calx/activation.h"
#include "calx/arrange.h"
#include "calx/conv.h"
#include "calx/linalg.h"
#include "calx/loss.h"
#include "calx/pointwise.h"
#include "calx/statistics.h"
#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** In a floating option where zero is not the default: zero. C's macros take a
 *  0 that is written for it where the option says "". */
#define CALX_ZERO (-0.0)
/** In an integer option where zero is not the default: zero, as CALX_ZERO. */
#define CALX_ZERO_INT INT64_MIN
/** The default of a floating or an integer option beside which CALX_ZERO or
 *  CALX_ZERO_INT stands, as if it was not written: `.lr = given ? lr :
 *  CALX_DEFAULT`. For the macros; in a struct that a program fills itself it is
 *  0. */
#ifdef __cplusplus
#define CALX_DEFAULT 0
#define CALX_DEFAULT_INT 0
#else
#define CALX_DEFAULT CALX_UNWRITTEN_
#define CALX_DEFAULT_INT CALX_UNWRITTEN_INT_
#endif

// ---- numbers as operands ----------------------------------------------------

/**
 * A number as an operand. It takes part in promotion as a Python number does:
 * it only decides the category. Its value is never part of a compiled program,
 * so another value compiles nothing. In C, calx_mul(x, 0.5) makes one.
 * @shape ()
 */
CALX_API calx_tensor *calx_scalar(double value);
/** The same for an integer. @shape () */
CALX_API calx_tensor *calx_scalar_int(int64_t value);

// ---- creation ---------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_create_options {
  CALX_NAMED size_t size;
  /* default: f32; calx_arange and calx_full: see there */
  CALX_NAMED calx_dtype dtype;
  CALX_NAMED calx_device *device; /* NULL: the current device */
  /* records operations on it, from this leaf on */
  CALX_NAMED bool requires_grad;
} calx_create_options;

/** All 0. @shape shape @source torch.zeros */
CALX_API calx_tensor *calx_zeros_with(calx_dims shape,
                                      const calx_create_options *options);
/** All 1. @shape shape @source torch.ones */
CALX_API calx_tensor *calx_ones_with(calx_dims shape,
                                     const calx_create_options *options);
/** All `value`; the value is no part of a compiled program. @shape shape
 *  @errors also a value that an integer .dtype does not hold, as NaN, or 300
 *          for u8; unsigned ones wrap negative values  @source torch.full */
CALX_API calx_tensor *calx_full_with(calx_dims shape, double value,
                                     const calx_create_options *options);
/**
 * start, start + step, … up to but without `end`. In C also calx_arange(end)
 * and calx_arange(start, end), from 0 and in steps of 1.
 * @shape (ceil((end - start) / step))  @dtype default: i64 where all three are
 *        whole numbers, else f32
 * @errors INVALID_ARGUMENT step 0, or of the wrong sign
 * @source torch.arange
 */
CALX_API calx_tensor *calx_arange_with(double start, double end, double step,
                                       const calx_create_options *options);
/**
 * Uniform in [0, 1). Counter-based (THREE_FRY), the same on every backend.
 * Two draws in one C expression are in no defined order.
 * @shape shape  @dtype floating, or complex: each part is such a number
 * @source torch.rand; J. Salmon et al., Parallel random numbers (2011)
 */
CALX_API calx_tensor *calx_rand_with(calx_dims shape,
                                     const calx_create_options *options);
/** Normal, mean 0 and variance 1 (Box and Muller, 1958); of complex numbers
 * each part has variance 1/2. As calx_rand. @shape shape @source torch.randn */
CALX_API calx_tensor *calx_randn_with(calx_dims shape,
                                      const calx_create_options *options);
/** Restarts the calling thread's device's default stream of random numbers. It
 *  starts as with seed 0. @source torch.manual_seed */
CALX_API void calx_manual_seed(uint64_t seed);

// ---- elementwise, one operand ----------------------------------------------
// @shape x any; the result has x's shape. Integers become f32 where the
// function has no integer values. @source the torch function of the same name.

/** -x */
CALX_API calx_tensor *calx_neg(calx_tensor *x);
/** |x|; gradient 0 at 0 */
CALX_API calx_tensor *calx_abs(calx_tensor *x);
/** -1, 0 or 1; gradient 0 */
CALX_API calx_tensor *calx_sign(calx_tensor *x);
/** e^x */
CALX_API calx_tensor *calx_exp(calx_tensor *x);
/** e^x - 1 */
CALX_API calx_tensor *calx_expm1(calx_tensor *x);
/** natural logarithm */
CALX_API calx_tensor *calx_log(calx_tensor *x);
/** base-2 logarithm; rounded twice, so that of 8 it may be just below 3 */
CALX_API calx_tensor *calx_log2(calx_tensor *x);
/** log(1 + x) */
CALX_API calx_tensor *calx_log1p(calx_tensor *x);
/** square root */
CALX_API calx_tensor *calx_sqrt(calx_tensor *x);
/** 1 / sqrt(x) */
CALX_API calx_tensor *calx_rsqrt(calx_tensor *x);
/** 1 / x */
CALX_API calx_tensor *calx_reciprocal(calx_tensor *x);
/** x * x */
CALX_API calx_tensor *calx_square(calx_tensor *x);
/** sine of radians */
CALX_API calx_tensor *calx_sin(calx_tensor *x);
/** cosine of radians */
CALX_API calx_tensor *calx_cos(calx_tensor *x);
/** hyperbolic tangent */
CALX_API calx_tensor *calx_tanh(calx_tensor *x);
/** 1 / (1 + e^-x) */
CALX_API calx_tensor *calx_sigmoid(calx_tensor *x);
/** max(x, 0); NaN stays NaN; gradient 0 at 0 */
CALX_API calx_tensor *calx_relu(calx_tensor *x);
/** greatest integer not above x; gradient 0 */
CALX_API calx_tensor *calx_floor(calx_tensor *x);
/** least integer not below x; gradient 0 */
CALX_API calx_tensor *calx_ceil(calx_tensor *x);
/** nearest integer, ties to even; gradient 0 */
CALX_API calx_tensor *calx_round(calx_tensor *x);
/** tangent of radians */
CALX_API calx_tensor *calx_tan(calx_tensor *x);
/** arc sine, in radians */
CALX_API calx_tensor *calx_asin(calx_tensor *x);
/** arc cosine, in radians */
CALX_API calx_tensor *calx_acos(calx_tensor *x);
/** arc tangent, in radians */
CALX_API calx_tensor *calx_atan(calx_tensor *x);
/** hyperbolic sine */
CALX_API calx_tensor *calx_sinh(calx_tensor *x);
/** hyperbolic cosine */
CALX_API calx_tensor *calx_cosh(calx_tensor *x);
/** inverse of calx_sinh */
CALX_API calx_tensor *calx_asinh(calx_tensor *x);
/** inverse of calx_cosh; NaN below 1 */
CALX_API calx_tensor *calx_acosh(calx_tensor *x);
/** inverse of calx_tanh; NaN outside [-1, 1] */
CALX_API calx_tensor *calx_atanh(calx_tensor *x);
/** 2^x */
CALX_API calx_tensor *calx_exp2(calx_tensor *x);
/** base-10 logarithm; rounded twice */
CALX_API calx_tensor *calx_log10(calx_tensor *x);
/** error function: 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x */
CALX_API calx_tensor *calx_erf(calx_tensor *x);
/** 1 - erf(x), also where erf(x) is close to 1 */
CALX_API calx_tensor *calx_erfc(calx_tensor *x);
/** inverse of calx_erf; NaN outside [-1, 1] */
CALX_API calx_tensor *calx_erfinv(calx_tensor *x);
/** log |gamma(x)| */
CALX_API calx_tensor *calx_lgamma(calx_tensor *x);
/** derivative of calx_lgamma */
CALX_API calx_tensor *calx_digamma(calx_tensor *x);
/** nearest integer towards zero; gradient 0 */
CALX_API calx_tensor *calx_trunc(calx_tensor *x);
/** x - trunc(x) */
CALX_API calx_tensor *calx_frac(calx_tensor *x);
/** each bit inverted; bool: not; @dtype integer or bool  @grad none */
CALX_API calx_tensor *calx_bitwise_not(calx_tensor *x);
/** whether x is NaN; @dtype result bool */
CALX_API calx_tensor *calx_isnan(calx_tensor *x);
/** whether x is neither infinite nor NaN; @dtype result bool */
CALX_API calx_tensor *calx_isfinite(calx_tensor *x);
/** whether x is infinite; @dtype result bool */
CALX_API calx_tensor *calx_isinf(calx_tensor *x);
/** whether x is +infinity; @dtype result bool */
CALX_API calx_tensor *calx_isposinf(calx_tensor *x);
/** whether x is -infinity; @dtype result bool */
CALX_API calx_tensor *calx_isneginf(calx_tensor *x);
/** whether x is 0; @dtype result bool */
CALX_API calx_tensor *calx_logical_not(calx_tensor *x);
/** Derivative of order n of calx_digamma, n >= 0. @shape x any
 *  @source torch.polygamma */
CALX_API calx_tensor *calx_polygamma(int n, calx_tensor *x);
/** The elements as another type; floats to integers truncate.
 *  @shape as x @source torch.Tensor.to */
CALX_API calx_tensor *calx_to_dtype(calx_tensor *x, calx_dtype dtype);
/** The same values without a gradient. @shape as x @source torch.Tensor.detach
 */
CALX_API calx_tensor *calx_detach(calx_tensor *x);

// ---- elementwise, two operands ----------------------------------------------
// @shape x, y broadcast together. @dtype promoted. @source torch.

/** Zero means default. */
typedef struct CALX_OPTIONS calx_add_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* factor of y; 0 = 1, CALX_ZERO = 0 */
} calx_add_options;

/** x + alpha * y; bool: or. @shape x, y broadcast together */
CALX_API calx_tensor *calx_add_with(calx_tensor *x, calx_tensor *y,
                                    const calx_add_options *options);
/** x - alpha * y. @shape x, y broadcast together  @errors also two bools */
CALX_API calx_tensor *calx_sub_with(calx_tensor *x, calx_tensor *y,
                                    const calx_add_options *options);
/** x * y; bool: and. @shape x, y broadcast together */
CALX_API calx_tensor *calx_mul(calx_tensor *x, calx_tensor *y);
/** How a quotient is rounded. */
typedef enum calx_rounding {
  CALX_ROUND_NONE = 0, /* true division */
  CALX_ROUND_TRUNC,    /* towards zero, as C divides integers */
  CALX_ROUND_FLOOR     /* downwards, as Python's // */
} calx_rounding;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_div_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_rounding rounding;
} calx_div_options;
/** x / y; true division of integers gives f32, a rounded one integers; the
 *  gradient of a rounded quotient is 0. Rounded integers divided by the number
 * 0 are an error; by a zero in a tensor they have all bits set, where PyTorch
 *  raises. @shape x, y broadcast together */
CALX_API calx_tensor *calx_div_with(calx_tensor *x, calx_tensor *y,
                                    const calx_div_options *options);
/** calx_div_with without options. @shape x, y broadcast together */
CALX_API calx_tensor *calx_div(calx_tensor *x, calx_tensor *y);
/**
 * x to the power y. A number that is an integer or half of one is part of the
 * compiled program, so that compilers can fold it; any other is not.
 * @shape x, y broadcast together
 * @errors also integers to the power of a negative integer number
 */
CALX_API calx_tensor *calx_pow(calx_tensor *x, calx_tensor *y);
/** the greater; NaN wins; ties share the gradient. @shape x, y broadcast
 *  together */
CALX_API calx_tensor *calx_maximum(calx_tensor *x, calx_tensor *y);
/** the smaller; NaN wins; ties share the gradient. @shape x, y broadcast
 *  together */
CALX_API calx_tensor *calx_minimum(calx_tensor *x, calx_tensor *y);

/** The remainder of x / y, with y's sign, as Python's %. @shape x, y broadcast
 *  together  @errors also two bools */
CALX_API calx_tensor *calx_remainder(calx_tensor *x, calx_tensor *y);
/** The remainder of x / y, with x's sign, as C's fmod. @shape x, y broadcast
 *  together  @errors also two bools */
CALX_API calx_tensor *calx_fmod(calx_tensor *x, calx_tensor *y);
/** The angle of the point (y, x) = (the operands), in radians. @shape x, y
 *  broadcast together */
CALX_API calx_tensor *calx_atan2(calx_tensor *x, calx_tensor *y);
/** log(e^x + e^y) without overflow. @shape x, y broadcast together */
CALX_API calx_tensor *calx_logaddexp(calx_tensor *x, calx_tensor *y);
/** and of all bits. @shape x, y broadcast together  @dtype integer or bool
 *  @grad none */
CALX_API calx_tensor *calx_bitwise_and(calx_tensor *x, calx_tensor *y);
/** or of all bits. @shape x, y broadcast together  @dtype integer or bool
 *  @grad none */
CALX_API calx_tensor *calx_bitwise_or(calx_tensor *x, calx_tensor *y);
/** exclusive or of all bits. @shape x, y broadcast together  @dtype integer or
 *  bool  @grad none */
CALX_API calx_tensor *calx_bitwise_xor(calx_tensor *x, calx_tensor *y);
/** The bits of x moved y places up, 0 where y is as many as there are or is
 *  negative. @shape x, y broadcast together  @dtype integer  @grad none */
CALX_API calx_tensor *calx_bitwise_left_shift(calx_tensor *x, calx_tensor *y);
/** The bits moved y places down, with copies of the sign; where y is as many as
 *  there are or is negative, all are copies. @shape x, y broadcast together
 *  @dtype integer  @grad none */
CALX_API calx_tensor *calx_bitwise_right_shift(calx_tensor *x, calx_tensor *y);
/** The number of x's type next to x towards y. @shape x, y broadcast together
 *  @dtype floating  @grad none */
CALX_API calx_tensor *calx_nextafter(calx_tensor *x, calx_tensor *y);

/** x == y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_eq(calx_tensor *x, calx_tensor *y);
/** x != y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_ne(calx_tensor *x, calx_tensor *y);
/** x < y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_lt(calx_tensor *x, calx_tensor *y);
/** x <= y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_le(calx_tensor *x, calx_tensor *y);
/** x > y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_gt(calx_tensor *x, calx_tensor *y);
/** x >= y. @shape x, y broadcast together  @dtype result bool  @grad none */
CALX_API calx_tensor *calx_ge(calx_tensor *x, calx_tensor *y);
/** condition ? x : y. @shape the three broadcast together
 *  @dtype condition bool  @errors also a number that the other's integer type
 *  does not hold  @source torch.where */
CALX_API calx_tensor *calx_where(calx_tensor *condition, calx_tensor *x,
                                 calx_tensor *y);

// ---- reductions -------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_reduce_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* absent: all; negative counts from the end */
  CALX_NAMED bool keepdim;   /* reduced dimensions stay, with size 1 */
} calx_reduce_options;

/** Sum; integers and bool give i64; empty: 0. @shape x any @source torch.sum */
CALX_API calx_tensor *calx_sum_with(calx_tensor *x,
                                    const calx_reduce_options *options);
/** Mean; empty: NaN. @shape x any @dtype floating @source torch.mean */
CALX_API calx_tensor *calx_mean_with(calx_tensor *x,
                                     const calx_reduce_options *options);
/** Product; integers and bool give i64; empty: 1. @shape x any
 *  @source torch.prod */
CALX_API calx_tensor *calx_prod_with(calx_tensor *x,
                                     const calx_reduce_options *options);
/** Whether all elements are other than 0; empty: true. @shape x any
 *  @dtype result bool @source torch.all */
CALX_API calx_tensor *calx_all_with(calx_tensor *x,
                                    const calx_reduce_options *options);
/** Whether any element is other than 0; empty: false. @shape x any
 *  @dtype result bool @source torch.any */
CALX_API calx_tensor *calx_any_with(calx_tensor *x,
                                    const calx_reduce_options *options);
/** How many elements are other than 0. @shape x any @dtype result i64
 *  @source torch.count_nonzero */
CALX_API calx_tensor *calx_count_nonzero_with(
    calx_tensor *x, const calx_reduce_options *options);
/** log(sum(exp(x))) without overflow. @shape x any @source torch.logsumexp */
CALX_API calx_tensor *calx_logsumexp_with(calx_tensor *x,
                                          const calx_reduce_options *options);
/** Sum of what is no NaN. @shape x any @source torch.nansum */
CALX_API calx_tensor *calx_nansum_with(calx_tensor *x,
                                       const calx_reduce_options *options);
/** Mean of what is no NaN. @shape x any @source torch.nanmean */
CALX_API calx_tensor *calx_nanmean_with(calx_tensor *x,
                                        const calx_reduce_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_var_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* absent: all; negative counts from the end */
  CALX_NAMED bool keepdim;   /* reduced dimensions stay, with size 1 */
  /* the sum is divided by n - correction; 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED double correction;
} calx_var_options;
/** Variance; of complex numbers the mean of |x - mean|^2, which is real.
 *  @shape x any @dtype floating or complex @source torch.var */
CALX_API calx_tensor *calx_var_with(calx_tensor *x,
                                    const calx_var_options *options);
/** Standard deviation. @shape x any @dtype floating or complex
 *  @source torch.std */
CALX_API calx_tensor *calx_std_with(calx_tensor *x,
                                    const calx_var_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* absent: all; negative counts from the end */
  CALX_NAMED bool keepdim;   /* reduced dimensions stay, with size 1 */
  CALX_NAMED double p;       /* 0 = 2, CALX_ZERO = 0; INFINITY: the greatest */
} calx_norm_options;
/** (sum |x|^p)^(1/p). @shape x any @source torch.norm */
CALX_API calx_tensor *calx_norm_with(calx_tensor *x,
                                     const calx_norm_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_normalize_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p;    /* 0 = 2, CALX_ZERO = 0 */
  CALX_NAMED int64_t dim; /* 0 = 1, CALX_ZERO_INT = 0 */
  CALX_NAMED double eps;  /* the least norm; 0 = 1e-12 */
} calx_normalize_options;
/** x over its norm along a dimension. @shape x any
 *  @source torch.nn.functional.normalize */
CALX_API calx_tensor *calx_normalize_with(
    calx_tensor *x, const calx_normalize_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_cosine_similarity_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t dim; /* 0 = 1, CALX_ZERO_INT = 0 */
  CALX_NAMED double eps;  /* the least norm; 0 = 1e-8 */
} calx_cosine_similarity_options;
/** The cosine of the angle between x and y along a dimension, which is removed.
 *  @shape x, y broadcast together @source torch.nn.functional.cosine_similarity
 */
CALX_API calx_tensor *calx_cosine_similarity_with(
    calx_tensor *x, calx_tensor *y,
    const calx_cosine_similarity_options *options);
/** Greatest element; NaN wins; ties share the gradient equally.
 *  @shape x any @errors also an empty reduction @source torch.amax */
CALX_API calx_tensor *calx_amax_with(calx_tensor *x,
                                     const calx_reduce_options *options);
/** Smallest element; as calx_amax. @shape x any @source torch.amin */
CALX_API calx_tensor *calx_amin_with(calx_tensor *x,
                                     const calx_reduce_options *options);
/**
 * Greatest element along one dimension, and where it is (the first of equals;
 * NaN wins). The gradient goes to that element.
 * @param out_index  may be NULL; i64
 * @shape x rank >= 0; results without `dim`, or size 1 there with keepdim
 * @source torch.max(x, dim)
 */
CALX_API calx_tensor *calx_max_dim(calx_tensor *x, int dim, bool keepdim,
                                   calx_tensor **out_index);
/** Smallest element along one dimension; as calx_max_dim.
 *  @shape as calx_max_dim @source torch.min(x, dim) */
CALX_API calx_tensor *calx_min_dim(calx_tensor *x, int dim, bool keepdim,
                                   calx_tensor **out_index);
/** Greatest element of all; ties share the gradient equally. @shape x any
 *  @source torch.max(x) */
CALX_API calx_tensor *calx_max(calx_tensor *x);
/** Smallest element of all; as calx_max. @shape x any @source torch.min(x) */
CALX_API calx_tensor *calx_min(calx_tensor *x);
/**
 * Index of the greatest element along .dims (one dimension; absent: in x
 * flattened): the first of equals; NaN wins.
 * @shape x any @dtype result i64 @grad none @source torch.argmax
 */
CALX_API calx_tensor *calx_argmax_with(calx_tensor *x,
                                       const calx_reduce_options *options);
/** Index of the smallest element; as calx_argmax. @shape x any
 *  @source torch.argmin */
CALX_API calx_tensor *calx_argmin_with(calx_tensor *x,
                                       const calx_reduce_options *options);

/** Smallest and greatest element.
 *  @param out_max  the greatest; may be NULL @return the smallest
 *  @param options  .dims: one dimension @shape x any @source torch.aminmax */
CALX_API calx_tensor *calx_aminmax_with(calx_tensor *x, calx_tensor **out_max,
                                        const calx_reduce_options *options);
/** Variance and mean. @param out_mean  may be NULL @return the variance
 *  @shape x any @dtype floating @source torch.var_mean */
CALX_API calx_tensor *calx_var_mean_with(calx_tensor *x, calx_tensor **out_mean,
                                         const calx_var_options *options);
/** Standard deviation and mean. @param out_mean  may be NULL
 *  @return the standard deviation @shape x any @dtype floating
 *  @source torch.std_mean */
CALX_API calx_tensor *calx_std_mean_with(calx_tensor *x, calx_tensor **out_mean,
                                         const calx_var_options *options);

/** The sum of all elements up to each along a dimension; integers and bool give
 *  i64. @shape x any @source torch.cumsum */
CALX_API calx_tensor *calx_cumsum(calx_tensor *x, int dim);
/** The product of all elements up to each along a dimension; integers and bool
 *  give i64. @shape x any @source torch.cumprod */
CALX_API calx_tensor *calx_cumprod(calx_tensor *x, int dim);

// ---- shape ------------------------------------------------------------------

/** The same elements in row-major order; one size may be -1.
 *  @shape result `shape` @source torch.reshape */
CALX_API calx_tensor *calx_reshape(calx_tensor *x, calx_dims shape);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_flatten_options {
  CALX_NAMED size_t size;
  CALX_NAMED int start_dim;
  CALX_NAMED int end_dim; /* 0 = the last */
} calx_flatten_options;
/** Joins dimensions start_dim … end_dim into one. @shape x any
 *  @source torch.flatten */
CALX_API calx_tensor *calx_flatten_with(calx_tensor *x,
                                        const calx_flatten_options *options);
/** Exchanges two dimensions. @shape x rank >= 2 @source torch.transpose */
CALX_API calx_tensor *calx_transpose(calx_tensor *x, int dim0, int dim1);
/** Dimension i of the result is dimension dims[i] of x. @shape x any
 *  @source torch.permute */
CALX_API calx_tensor *calx_permute(calx_tensor *x, calx_dims dims);
/** The transpose of a matrix. @shape x rank <= 2 @source torch.t */
CALX_API calx_tensor *calx_t(calx_tensor *x);
/** Repeats dimensions of size 1, adds dimensions in front; -1 keeps a size.
 *  @shape result `shape` @source torch.Tensor.expand */
CALX_API calx_tensor *calx_expand(calx_tensor *x, calx_dims shape);
/** Adds a dimension of size 1 before `dim`. @shape x any
 *  @source torch.unsqueeze */
CALX_API calx_tensor *calx_unsqueeze(calx_tensor *x, int dim);
/** For calx_squeeze: every dimension. */
#define CALX_ALL_DIMS INT32_MIN
/** Removes dimension `dim` if its size is 1. @shape x any
 *  @source torch.squeeze */
CALX_API calx_tensor *calx_squeeze(calx_tensor *x, int dim);
/** Joins tensors along `dim`; rank-1 empty ones are skipped, as in PyTorch.
 *  @shape equal but at `dim` @source torch.cat */
CALX_API calx_tensor *calx_cat(calx_tensor *const *tensors, size_t count,
                               int dim);
/** Joins tensors along a new dimension. @shape all equal @source torch.stack */
CALX_API calx_tensor *calx_stack(calx_tensor *const *tensors, size_t count,
                                 int dim);
/**
 * Elements start, start + step, … below `end` along a dimension. Negative ends
 * count from the end, and both are clamped, as Python does. The start is no
 * part of a compiled program after its second value.
 * @shape x rank >= 1 @errors also step below 1 @source x[start:end:step]
 */
CALX_API calx_tensor *calx_slice(calx_tensor *x, int dim, int64_t start,
                                 int64_t end, int64_t step);
/** Element `index` along a dimension, which is removed. @shape x rank >= 1
 *  @errors OUT_OF_RANGE @source torch.select */
CALX_API calx_tensor *calx_select(calx_tensor *x, int dim, int64_t index);

// ---- contractions -----------------------------------------------------------

/**
 * Matrix product, batched over leading dimensions, vectors as PyTorch.
 * @shape (…, n, k) x (…, k, m) -> (…, n, m); rank 1 counts as a row or column
 * @source torch.matmul
 */
CALX_API calx_tensor *calx_matmul(calx_tensor *x, calx_tensor *y);
/** Matrix product. @shape (n, k) x (k, m) -> (n, m) @source torch.mm */
CALX_API calx_tensor *calx_mm(calx_tensor *x, calx_tensor *y);
/**
 * x * weight^T + bias.
 * @param bias  NULL: none
 * @shape x (…, in), weight (out, in), bias (out) -> (…, out)
 * @source torch.nn.functional.linear
 */
CALX_API calx_tensor *calx_linear(calx_tensor *x, calx_tensor *weight,
                                  calx_tensor *bias);

// ---- normalisation, activation, loss ----------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_batch_norm_options {
  CALX_NAMED size_t size;
  /* shape (C); needed unless training; training updates them in place */
  CALX_NAMED calx_tensor *running_mean;
  CALX_NAMED calx_tensor *running_var;
  CALX_NAMED calx_tensor *weight; /* NULL: 1; shape (C) */
  CALX_NAMED calx_tensor *bias;   /* NULL: 0; shape (C) */
  CALX_NAMED bool training;
  /* weight of the new value; 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED double momentum;
  /* added to the variance; 0 = 1e-5; part of the program */
  CALX_NAMED double eps;
} calx_batch_norm_options;

/**
 * (x - mean) / sqrt(var + eps) * weight + bias over all but dimension 1. In
 * training mean and (biased) variance are the batch's, and the running
 * statistics take the unbiased one, as PyTorch.
 * @shape x (N, C, …)
 * @grad  x, weight, bias
 * @source torch.nn.functional.batch_norm; S. Ioffe and C. Szegedy (2015)
 */
CALX_API calx_tensor *calx_batch_norm_with(
    calx_tensor *x, const calx_batch_norm_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_layer_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *weight; /* NULL: 1 */
  CALX_NAMED calx_tensor *bias;   /* NULL: 0 */
  /* part of the program; 0 = 1e-5, in calx_rms_norm the type's epsilon */
  CALX_NAMED double eps;
} calx_layer_norm_options;
/** (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions.
 *  @shape x (…, normalized_shape); weight, bias normalized_shape
 *  @grad x, weight, bias  @source torch.nn.functional.layer_norm */
CALX_API calx_tensor *calx_layer_norm_with(
    calx_tensor *x, calx_dims normalized_shape,
    const calx_layer_norm_options *options);
/** x / sqrt(mean(x^2) + eps) * weight + bias over the last dimensions.
 *  @shape x (…, normalized_shape); weight, bias normalized_shape
 *  @grad x, weight, bias  @source torch.nn.functional.rms_norm */
CALX_API calx_tensor *calx_rms_norm_with(
    calx_tensor *x, calx_dims normalized_shape,
    const calx_layer_norm_options *options);
/** The same over each of num_groups equal groups of channels of each sample.
 *  @shape x (N, C, …); weight, bias (C)  @grad x, weight, bias
 *  @source torch.nn.functional.group_norm */
CALX_API calx_tensor *calx_group_norm_with(
    calx_tensor *x, int64_t num_groups, const calx_layer_norm_options *options);
/** The same over each channel of each sample. @shape x (N, C, …); weight, bias
 *  (C)  @grad x, weight, bias  @source torch.nn.functional.instance_norm */
CALX_API calx_tensor *calx_instance_norm_with(
    calx_tensor *x, const calx_layer_norm_options *options);

/** log(softmax(x)) along a dimension, without overflow. @shape x any
 *  @source torch.nn.functional.log_softmax */
CALX_API calx_tensor *calx_log_softmax(calx_tensor *x, int dim);
/** exp(x) / sum(exp(x)) along a dimension, without overflow. @shape x any
 *  @source torch.nn.functional.softmax */
CALX_API calx_tensor *calx_softmax(calx_tensor *x, int dim);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nll_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *weight;  /* NULL: 1; one per class; shape (C) */
  CALX_NAMED int64_t ignore_index; /* 0 = -100, CALX_ZERO_INT = 0 */
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double label_smoothing; /* calx_cross_entropy only: in [0, 1] */
} calx_nll_loss_options;

/**
 * Negative log-likelihood: -weight[y] * x[n, y], summed, or divided by the sum
 * of the weights (mean). A class outside [0, C) makes the result NaN;
 * CALX_DEBUG=indices makes it an error that names it.
 * @shape x (N, C, …) or (C), log-probabilities; target i64 (N, …) or ()
 * @grad x
 * @source torch.nn.functional.nll_loss
 */
CALX_API calx_tensor *calx_nll_loss_with(calx_tensor *x, calx_tensor *target,
                                         const calx_nll_loss_options *options);
/**
 * nll_loss(log_softmax(x)), with label smoothing; a floating target of x's
 * shape holds probabilities.
 * @shape x (N, C, …) or (C); target as calx_nll_loss, or as x
 * @grad x, and a target of probabilities
 * @source torch.nn.functional.cross_entropy
 */
CALX_API calx_tensor *calx_cross_entropy_with(
    calx_tensor *x, calx_tensor *target, const calx_nll_loss_options *options);

// ---- attention, dropout -----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_dropout_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p;  /* 0 = 0.5, CALX_ZERO = 0 */
  CALX_NAMED bool eval; /* x as it is */
} calx_dropout_options;
/** x / (1 - p), and 0 for each element with probability p. @shape x any
 *  @source torch.nn.functional.dropout */
CALX_API calx_tensor *calx_dropout_with(calx_tensor *x,
                                        const calx_dropout_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_attention_options {
  CALX_NAMED size_t size;
  /* NULL: none; bool: whether a query sees a key; floating: added */
  CALX_NAMED calx_tensor *attn_mask;
  CALX_NAMED double dropout_p;
  CALX_NAMED bool is_causal;  /* a query sees keys up to its own place */
  CALX_NAMED double scale;    /* part of the program; 0 = 1/sqrt(E) */
  CALX_NAMED bool enable_gqa; /* a head of keys serves several of queries */
} calx_attention_options;
/** softmax(query key^T scale + mask) value.
 *  @shape query (…, L, E), key (…, S, E), value (…, S, V) -> (…, L, V)
 *  @grad query, key, value, a floating mask
 *  @source torch.nn.functional.scaled_dot_product_attention */
CALX_API calx_tensor *calx_scaled_dot_product_attention_with(
    calx_tensor *query, calx_tensor *key, calx_tensor *value,
    const calx_attention_options *options);

// ---- assignment -------------------------------------------------------------

/**
 * Gives a tensor another value, in place: tensor.copy_(value). Whoever holds
 * the handle sees it. A leaf that requires a gradient only in a no-grad region.
 * The value's history comes along, unless the value is detached or the call is
 * in a no-grad region; the tensor's own ends.
 * @shape value broadcasts to tensor's; @dtype value converts to tensor's
 * @errors also a number that the tensor's integer type does not hold
 * @grad value
 * @source torch.Tensor.copy_
 */
CALX_API void calx_assign(calx_tensor *tensor, calx_tensor *value);
/**
 * Gives the elements start, start + step, … below `end` along a dimension of a
 * tensor another value, in place: tensor[start:end:step] = value. The others
 * stay. No tensor is a view, so assigning to what calx_slice gave changes that
 * copy alone.
 * @shape value broadcasts to calx_slice(tensor, dim, start, end, step)
 * @errors as calx_assign and calx_slice @grad tensor, value
 * @source torch.Tensor.__setitem__
 */
CALX_API void calx_assign_slice(calx_tensor *tensor, calx_tensor *value,
                                int dim, int64_t start, int64_t end,
                                int64_t step);
/** The same of tensor[index] = value along a dimension. @shape value broadcasts
 *  to calx_select(tensor, dim, index) @errors also OUT_OF_RANGE
 *  @grad tensor, value @source torch.Tensor.__setitem__ */
CALX_API void calx_assign_select(calx_tensor *tensor, calx_tensor *value,
                                 int dim, int64_t index);

// ---- in place ---------------------------------------------------------------
// Each computes a value and gives it to the tensor with calx_assign, whose
// conditions hold. @return the tensor, also where the scope has an error, which
// leaves it as it was. @errors also a floating result for an integer tensor,
// and any number but a bool for a bool tensor

/** tensor = value; other types convert. @shape value broadcasts to tensor
 *  @source torch.Tensor.copy_ */
CALX_API calx_tensor *calx_copy_(calx_tensor *tensor, calx_tensor *value);
/** All `value`, a number or a tensor of rank 0. @shape tensor any
 *  @source torch.Tensor.fill_ */
CALX_API calx_tensor *calx_fill_(calx_tensor *tensor, calx_tensor *value);
/** All 0. @shape tensor any @source torch.Tensor.zero_ */
CALX_API calx_tensor *calx_zero_(calx_tensor *tensor);
/** tensor + alpha y. @shape y broadcasts to tensor @source torch.Tensor.add_ */
CALX_API calx_tensor *calx_add__with(calx_tensor *tensor, calx_tensor *y,
                                     const calx_add_options *options);
/** tensor - alpha y. @shape y broadcasts to tensor @source torch.Tensor.sub_ */
CALX_API calx_tensor *calx_sub__with(calx_tensor *tensor, calx_tensor *y,
                                     const calx_add_options *options);
/** tensor * y. @shape y broadcasts to tensor @source torch.Tensor.mul_ */
CALX_API calx_tensor *calx_mul_(calx_tensor *tensor, calx_tensor *y);
/** tensor / y. @shape y broadcasts to tensor @source torch.Tensor.div_ */
CALX_API calx_tensor *calx_div__with(calx_tensor *tensor, calx_tensor *y,
                                     const calx_div_options *options);
/** tensor limited to [min, max]. @shape min, max broadcast to tensor
 *  @source torch.Tensor.clamp_ */
CALX_API calx_tensor *calx_clamp_(calx_tensor *tensor, calx_tensor *min,
                                  calx_tensor *max);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_add_options_ .alpha = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_add_options, calx_written_(&o->alpha);)
#define CALX_UNWRITTEN_calx_var_options_ .correction = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_var_options, calx_written_(&o->correction);)
#define CALX_UNWRITTEN_calx_norm_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_norm_options, calx_written_(&o->p);)
#define CALX_UNWRITTEN_calx_normalize_options_ \
  .p = CALX_UNWRITTEN_, .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_normalize_options, calx_written_(&o->p);
              calx_written_int_(&o->dim);)
#define CALX_UNWRITTEN_calx_cosine_similarity_options_ \
  .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_cosine_similarity_options, calx_written_int_(&o->dim);)
#define CALX_UNWRITTEN_calx_batch_norm_options_ .momentum = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_batch_norm_options, calx_written_(&o->momentum);)
#define CALX_UNWRITTEN_calx_nll_loss_options_ \
  .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_nll_loss_options, calx_written_int_(&o->ignore_index);)
#define CALX_UNWRITTEN_calx_dropout_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_dropout_options, calx_written_(&o->p);)
#endif
#ifdef __cplusplus
}
#endif
#include "calx/functional.h"
#include "calx/indexing.h"
#include "calx/ops_macros.h"
#endif
