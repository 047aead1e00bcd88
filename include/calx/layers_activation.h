/**
 * calx/layers_activation.h: layers of activation functions. Part of
 * calx/layers.h, whose conventions hold here.
 */
#ifndef CALX_LAYERS_ACTIVATION_H
#define CALX_LAYERS_ACTIVATION_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- of functions without options ------------------------------------------

/** calx_relu. @source torch.nn.ReLU */
CALX_API calx_module *calx_nn_relu(calx_module *parent, const char *name);
/** calx_relu6. @source torch.nn.ReLU6 */
CALX_API calx_module *calx_nn_relu6(calx_module *parent, const char *name);
/** calx_sigmoid. @source torch.nn.Sigmoid */
CALX_API calx_module *calx_nn_sigmoid(calx_module *parent, const char *name);
/** calx_tanh. @source torch.nn.Tanh */
CALX_API calx_module *calx_nn_tanh(calx_module *parent, const char *name);
/** calx_silu. @source torch.nn.SiLU */
CALX_API calx_module *calx_nn_silu(calx_module *parent, const char *name);
/** calx_mish. @source torch.nn.Mish */
CALX_API calx_module *calx_nn_mish(calx_module *parent, const char *name);
/** calx_selu. @source torch.nn.SELU */
CALX_API calx_module *calx_nn_selu(calx_module *parent, const char *name);
/** calx_hardswish. @source torch.nn.Hardswish */
CALX_API calx_module *calx_nn_hardswish(calx_module *parent, const char *name);
/** calx_hardsigmoid. @source torch.nn.Hardsigmoid */
CALX_API calx_module *calx_nn_hardsigmoid(calx_module *parent,
                                          const char *name);
/** calx_logsigmoid. @source torch.nn.LogSigmoid */
CALX_API calx_module *calx_nn_logsigmoid(calx_module *parent, const char *name);
/** calx_softsign. @source torch.nn.Softsign */
CALX_API calx_module *calx_nn_softsign(calx_module *parent, const char *name);
/** calx_tanhshrink. @source torch.nn.Tanhshrink */
CALX_API calx_module *calx_nn_tanhshrink(calx_module *parent, const char *name);
/** Softmax over the channels. @shape x (N, C, H, W) or (C, H, W) @source
 * torch.nn.Softmax2d */
CALX_API calx_module *calx_nn_softmax2d(calx_module *parent, const char *name);

// ---- of functions with options ---------------------------------------------

/** calx_gelu. @source torch.nn.GELU */
CALX_API calx_module *calx_nn_gelu_with(calx_module *parent, const char *name,
                                        const calx_gelu_options *options);
/** calx_elu. @source torch.nn.ELU */
CALX_API calx_module *calx_nn_elu_with(calx_module *parent, const char *name,
                                       const calx_elu_options *options);
/** calx_celu. @source torch.nn.CELU */
CALX_API calx_module *calx_nn_celu_with(calx_module *parent, const char *name,
                                        const calx_celu_options *options);
/** calx_leaky_relu. @source torch.nn.LeakyReLU */
CALX_API calx_module *calx_nn_leaky_relu_with(
    calx_module *parent, const char *name,
    const calx_leaky_relu_options *options);
/** calx_hardtanh. @source torch.nn.Hardtanh */
CALX_API calx_module *calx_nn_hardtanh_with(
    calx_module *parent, const char *name,
    const calx_hardtanh_options *options);
/** calx_softplus. @source torch.nn.Softplus */
CALX_API calx_module *calx_nn_softplus_with(
    calx_module *parent, const char *name,
    const calx_softplus_options *options);
/** calx_hardshrink. @source torch.nn.Hardshrink */
CALX_API calx_module *calx_nn_hardshrink_with(
    calx_module *parent, const char *name,
    const calx_hardshrink_options *options);
/** calx_softshrink. @source torch.nn.Softshrink */
CALX_API calx_module *calx_nn_softshrink_with(
    calx_module *parent, const char *name,
    const calx_softshrink_options *options);

// ---- others -----------------------------------------------------------------

/** calx_softmax. @source torch.nn.Softmax */
CALX_API calx_module *calx_nn_softmax(calx_module *parent, const char *name,
                                      int dim);
/** calx_log_softmax. @source torch.nn.LogSoftmax */
CALX_API calx_module *calx_nn_log_softmax(calx_module *parent, const char *name,
                                          int dim);
/** calx_softmin. @source torch.nn.Softmin */
CALX_API calx_module *calx_nn_softmin(calx_module *parent, const char *name,
                                      int dim);
/** calx_glu. @source torch.nn.GLU */
CALX_API calx_module *calx_nn_glu(calx_module *parent, const char *name,
                                  int dim);
/** calx_threshold. @source torch.nn.Threshold */
CALX_API calx_module *calx_nn_threshold(calx_module *parent, const char *name,
                                        double threshold, double value);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_prelu_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t num_parameters; /* 0 = 1; else that of the channels */
  CALX_NAMED double init;            /* 0 = 0.25, CALX_ZERO = 0 */
  CALX_NAMED calx_dtype dtype;
} calx_nn_prelu_options;
/** calx_prelu with a weight (num_parameters). @source torch.nn.PReLU */
CALX_API calx_module *calx_nn_prelu_with(calx_module *parent, const char *name,
                                         const calx_nn_prelu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_rrelu_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lower; /* 0 = 1/8, CALX_ZERO = 0 */
  CALX_NAMED double upper; /* 0 = 1/3, CALX_ZERO = 0 */
} calx_nn_rrelu_options;
/** x, below 0 a x with a drawn from [lower, upper), in evaluation their mean.
 *  @source torch.nn.RReLU */
CALX_API calx_module *calx_nn_rrelu_with(calx_module *parent, const char *name,
                                         const calx_nn_rrelu_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_nn_prelu_options_ .init = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_prelu_options, calx_written_(&o->init);)
#define CALX_UNWRITTEN_calx_nn_rrelu_options_ \
  .lower = CALX_UNWRITTEN_, .upper = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_rrelu_options, calx_written_(&o->lower);
              calx_written_(&o->upper);)
#endif
#ifdef __cplusplus
}
#else
// clang-format off
#define calx_nn_gelu(...) CALX_CALL_2_(calx_nn_gelu_with, calx_gelu_options, __VA_ARGS__)
#define calx_nn_elu(...) CALX_CALL_2_(calx_nn_elu_with, calx_elu_options, __VA_ARGS__)
#define calx_nn_celu(...) CALX_CALL_2_(calx_nn_celu_with, calx_celu_options, __VA_ARGS__)
#define calx_nn_leaky_relu(...) CALX_CALL_2_W_(calx_nn_leaky_relu_with, calx_leaky_relu_options, __VA_ARGS__)
#define calx_nn_hardtanh(...) CALX_CALL_2_W_(calx_nn_hardtanh_with, calx_hardtanh_options, __VA_ARGS__)
#define calx_nn_softplus(...) CALX_CALL_2_W_(calx_nn_softplus_with, calx_softplus_options, __VA_ARGS__)
#define calx_nn_hardshrink(...) CALX_CALL_2_W_(calx_nn_hardshrink_with, calx_hardshrink_options, __VA_ARGS__)
#define calx_nn_softshrink(...) CALX_CALL_2_W_(calx_nn_softshrink_with, calx_softshrink_options, __VA_ARGS__)
#define calx_nn_prelu(...) CALX_CALL_2_W_(calx_nn_prelu_with, calx_nn_prelu_options, __VA_ARGS__)
#define calx_nn_rrelu(...) CALX_CALL_2_W_(calx_nn_rrelu_with, calx_nn_rrelu_options, __VA_ARGS__)
#ifndef CALX_NO_SITES
#define calx_nn_relu(...) (calx_at_(CALX_HERE), calx_nn_relu(__VA_ARGS__))
#define calx_nn_relu6(...) (calx_at_(CALX_HERE), calx_nn_relu6(__VA_ARGS__))
#define calx_nn_sigmoid(...) (calx_at_(CALX_HERE), calx_nn_sigmoid(__VA_ARGS__))
#define calx_nn_tanh(...) (calx_at_(CALX_HERE), calx_nn_tanh(__VA_ARGS__))
#define calx_nn_silu(...) (calx_at_(CALX_HERE), calx_nn_silu(__VA_ARGS__))
#define calx_nn_mish(...) (calx_at_(CALX_HERE), calx_nn_mish(__VA_ARGS__))
#define calx_nn_selu(...) (calx_at_(CALX_HERE), calx_nn_selu(__VA_ARGS__))
#define calx_nn_hardswish(...) (calx_at_(CALX_HERE), calx_nn_hardswish(__VA_ARGS__))
#define calx_nn_hardsigmoid(...) (calx_at_(CALX_HERE), calx_nn_hardsigmoid(__VA_ARGS__))
#define calx_nn_logsigmoid(...) (calx_at_(CALX_HERE), calx_nn_logsigmoid(__VA_ARGS__))
#define calx_nn_softsign(...) (calx_at_(CALX_HERE), calx_nn_softsign(__VA_ARGS__))
#define calx_nn_tanhshrink(...) (calx_at_(CALX_HERE), calx_nn_tanhshrink(__VA_ARGS__))
#define calx_nn_softmax2d(...) (calx_at_(CALX_HERE), calx_nn_softmax2d(__VA_ARGS__))
#define calx_nn_softmax(...) (calx_at_(CALX_HERE), calx_nn_softmax(__VA_ARGS__))
#define calx_nn_log_softmax(...) (calx_at_(CALX_HERE), calx_nn_log_softmax(__VA_ARGS__))
#define calx_nn_softmin(...) (calx_at_(CALX_HERE), calx_nn_softmin(__VA_ARGS__))
#define calx_nn_glu(...) (calx_at_(CALX_HERE), calx_nn_glu(__VA_ARGS__))
#define calx_nn_threshold(...) (calx_at_(CALX_HERE), calx_nn_threshold(__VA_ARGS__))
#endif
// clang-format on
#endif
#endif
