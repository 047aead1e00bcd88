/**
 * calx/activation.h: activation functions. Part of calx/ops.h, whose
 * conventions hold here. All are elementwise unless said otherwise: the result
 * has x's shape. Integers become f32. A number among the options is no part of
 * a compiled program.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_ACTIVATION_H
#define CALX_ACTIVATION_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** x sigmoid(x). @shape x any @source torch.nn.functional.silu */
CALX_API calx_tensor *calx_silu(calx_tensor *x);
/** scale elu(x) with the alpha and scale that keep mean 0 and variance 1
 *  (G. Klambauer et al., 2017). @shape x any @source
 *  torch.nn.functional.selu */
CALX_API calx_tensor *calx_selu(calx_tensor *x);
/** min(max(x, 0), 6); gradient 0 at 0 and 6. @shape x any @source
 *  torch.nn.functional.relu6 */
CALX_API calx_tensor *calx_relu6(calx_tensor *x);
/** x relu6(x + 3) / 6. @shape x any @source torch.nn.functional.hardswish */
CALX_API calx_tensor *calx_hardswish(calx_tensor *x);
/** relu6(x + 3) / 6. @shape x any @source torch.nn.functional.hardsigmoid */
CALX_API calx_tensor *calx_hardsigmoid(calx_tensor *x);
/** x tanh(softplus(x)). @shape x any @source torch.nn.functional.mish */
CALX_API calx_tensor *calx_mish(calx_tensor *x);
/** log(sigmoid(x)) without overflow. @shape x any @source
 *  torch.nn.functional.logsigmoid */
CALX_API calx_tensor *calx_logsigmoid(calx_tensor *x);
/** x / (1 + |x|). @shape x any @source torch.nn.functional.softsign */
CALX_API calx_tensor *calx_softsign(calx_tensor *x);
/** x - tanh(x). @shape x any @source torch.nn.functional.tanhshrink */
CALX_API calx_tensor *calx_tanhshrink(calx_tensor *x);

/** How calx_gelu is computed. */
typedef enum calx_gelu_form {
  CALX_GELU_NONE = 0, /* exactly, by the error function */
  CALX_GELU_TANH
} calx_gelu_form;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_gelu_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_gelu_form approximate;
} calx_gelu_options;
/** x times the standard normal distribution's function of x, by calx_erf,
 *  or approximated by calx_tanh. @shape x any @source
 *  torch.nn.functional.gelu */
CALX_API calx_tensor *calx_gelu_with(calx_tensor *x,
                                     const calx_gelu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_elu_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* 0 = 1 */
} calx_elu_options;
/** x, below 0 alpha (e^x - 1). @shape x any @source torch.nn.functional.elu */
CALX_API calx_tensor *calx_elu_with(calx_tensor *x,
                                    const calx_elu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_celu_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* 0 = 1 */
} calx_celu_options;
/** x, below 0 alpha (e^(x / alpha) - 1). @shape x any @source
 *  torch.nn.functional.celu */
CALX_API calx_tensor *calx_celu_with(calx_tensor *x,
                                     const calx_celu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_leaky_relu_options {
  CALX_NAMED size_t size;
  CALX_NAMED double negative_slope; /* 0 = 0.01, CALX_ZERO = 0 */
} calx_leaky_relu_options;
/** x, below 0 negative_slope x. @shape x any @source
 *  torch.nn.functional.leaky_relu */
CALX_API calx_tensor *calx_leaky_relu_with(
    calx_tensor *x, const calx_leaky_relu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_hardtanh_options {
  CALX_NAMED size_t size;
  CALX_NAMED double min_val; /* 0 = -1, CALX_ZERO = 0 */
  CALX_NAMED double max_val; /* 0 = 1, CALX_ZERO = 0 */
} calx_hardtanh_options;
/** x limited to [min_val, max_val]; gradient 0 at both ends. @shape x any
 *  @source torch.nn.functional.hardtanh */
CALX_API calx_tensor *calx_hardtanh_with(calx_tensor *x,
                                         const calx_hardtanh_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_softplus_options {
  CALX_NAMED size_t size;
  CALX_NAMED double beta;      /* 0 = 1 */
  CALX_NAMED double threshold; /* 0 = 20, CALX_ZERO = 0 */
} calx_softplus_options;
/** log(1 + e^(beta x)) / beta, and x itself where beta x is above the
 *  threshold. @shape x any @source torch.nn.functional.softplus */
CALX_API calx_tensor *calx_softplus_with(calx_tensor *x,
                                         const calx_softplus_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_hardshrink_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lambd; /* 0 = 0.5, CALX_ZERO = 0 */
} calx_hardshrink_options;
/** x, and 0 where |x| is at most lambd. @shape x any @source
 *  torch.nn.functional.hardshrink */
CALX_API calx_tensor *calx_hardshrink_with(
    calx_tensor *x, const calx_hardshrink_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_softshrink_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lambd; /* 0 = 0.5, CALX_ZERO = 0 */
} calx_softshrink_options;
/** x moved towards 0 by lambd, and 0 where |x| is at most lambd. @shape x
 *  any @source torch.nn.functional.softshrink */
CALX_API calx_tensor *calx_softshrink_with(
    calx_tensor *x, const calx_softshrink_options *options);

/** x where it is above `threshold`, elsewhere `value`. @shape x any
 *  @source torch.nn.functional.threshold */
CALX_API calx_tensor *calx_threshold(calx_tensor *x, calx_tensor *threshold,
                                     calx_tensor *value);
/** x, below 0 weight x. @shape x any; weight (C), of dimension 1, or of one
 *  element  @grad x, weight  @source torch.nn.functional.prelu */
CALX_API calx_tensor *calx_prelu(calx_tensor *x, calx_tensor *weight);
/** a sigmoid(b) of the halves a and b of x along `dim`.
 *  @shape x even at `dim`; result half of it  @source torch.nn.functional.glu
 */
CALX_API calx_tensor *calx_glu(calx_tensor *x, int dim);
/** calx_softmax of -x. @shape x any  @source torch.nn.functional.softmin */
CALX_API calx_tensor *calx_softmin(calx_tensor *x, int dim);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_leaky_relu_options_ \
  .negative_slope = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_leaky_relu_options, calx_written_(&o->negative_slope);)
#define CALX_UNWRITTEN_calx_hardtanh_options_ \
  .min_val = CALX_UNWRITTEN_, .max_val = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_hardtanh_options, calx_written_(&o->min_val);
              calx_written_(&o->max_val);)
#define CALX_UNWRITTEN_calx_softplus_options_ .threshold = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_softplus_options, calx_written_(&o->threshold);)
#define CALX_UNWRITTEN_calx_hardshrink_options_ .lambd = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_hardshrink_options, calx_written_(&o->lambd);)
#define CALX_UNWRITTEN_calx_softshrink_options_ .lambd = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_softshrink_options, calx_written_(&o->lambd);)
#endif
#ifdef __cplusplus
}
#endif
#endif
