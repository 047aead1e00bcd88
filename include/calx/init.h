/**
 * calx/init.h: initial values, as torch.nn.init has them. Part of calx/nn.h.
 *
 * Each function gives a floating-point tensor, mostly a parameter, new values
 * in place and outside the tape. Random values come from the device's default
 * stream and are the same on every rank. Fans are those of a weight (out, in,
 * …): fan_in is in times the elements of the kernel, fan_out out times those.
 *
 * @errors   INVALID_ARGUMENT through the scope: no floating tensor, a rank that
 *           does not fit, numbers that no distribution has
 * @threads  thread-compatible
 */
#ifndef CALX_INIT_H
#define CALX_INIT_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Uniform in [a, b). @shape any @source torch.nn.init.uniform_ */
CALX_API void calx_init_uniform(calx_tensor *t, double a, double b);
/** Normal. @shape any @source torch.nn.init.normal_ */
CALX_API void calx_init_normal(calx_tensor *t, double mean, double std);
/** Normal, limited to [a, b]: as if values outside were drawn again.
 *  @shape any @source torch.nn.init.trunc_normal_ */
CALX_API void calx_init_trunc_normal(calx_tensor *t, double mean, double std,
                                     double a, double b);
/** All `value`. @shape any @source torch.nn.init.constant_ */
CALX_API void calx_init_constant(calx_tensor *t, double value);
/** All 1. @shape any @source torch.nn.init.ones_ */
CALX_API void calx_init_ones(calx_tensor *t);
/** All 0. @shape any @source torch.nn.init.zeros_ */
CALX_API void calx_init_zeros(calx_tensor *t);
/** 1 on the diagonal. @shape rank 2 @source torch.nn.init.eye_ */
CALX_API void calx_init_eye(calx_tensor *t);
/** A convolution's weight that keeps as many channels as it can, in each of so
 *  many groups. @shape rank 3 to 5 @source torch.nn.init.dirac_ */
CALX_API void calx_init_dirac(calx_tensor *t, int64_t groups);
/** Uniform in +-gain sqrt(6 / (fan_in + fan_out)). @shape rank >= 2
 *  @source torch.nn.init.xavier_uniform_; X. Glorot and Y. Bengio (2010) */
CALX_API void calx_init_xavier_uniform(calx_tensor *t, double gain);
/** Normal with deviation gain sqrt(2 / (fan_in + fan_out)). @shape rank >= 2
 *  @source torch.nn.init.xavier_normal_ */
CALX_API void calx_init_xavier_normal(calx_tensor *t, double gain);
/** (Semi-)orthogonal rows or columns, times gain. Reads the draw, and with it
 *  runs what it needs. @shape rank >= 2, as (first, all others)
 *  @source torch.nn.init.orthogonal_; A. Saxe et al. (2013) */
CALX_API void calx_init_orthogonal(calx_tensor *t, double gain);
/** Normal with mean 0, but ceil(sparsity rows) zeros in each column.
 *  @shape rank 2 @source torch.nn.init.sparse_; J. Martens (2010) */
CALX_API void calx_init_sparse(calx_tensor *t, double sparsity, double std);

/** What follows a layer, for its gain. */
typedef enum calx_nonlinearity {
  CALX_NONLINEARITY_LEAKY_RELU = 0,
  CALX_NONLINEARITY_LINEAR, /* convolutions too */
  CALX_NONLINEARITY_SIGMOID,
  CALX_NONLINEARITY_TANH,
  CALX_NONLINEARITY_RELU,
  CALX_NONLINEARITY_SELU
} calx_nonlinearity;
/** The factor that keeps the variance.
 *  @param param  the slope of leaky_relu; others ignore it. 0 = 0
 *  @return NaN for a number that is no calx_nonlinearity
 *  @source torch.nn.init.calculate_gain */
CALX_API double calx_init_calculate_gain(calx_nonlinearity nonlinearity,
                                         double param);

/** Which of the fans calx_init_kaiming_uniform divides by. */
typedef enum calx_fan_mode { CALX_FAN_IN = 0, CALX_FAN_OUT } calx_fan_mode;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_kaiming_options {
  CALX_NAMED size_t size;
  CALX_NAMED double a; /* the slope of leaky_relu */
  CALX_NAMED calx_fan_mode mode;
  CALX_NAMED calx_nonlinearity nonlinearity;
} calx_kaiming_options;
/** Uniform in +-gain sqrt(3 / fan). @shape rank >= 2
 *  @source torch.nn.init.kaiming_uniform_; K. He et al. (2015) */
CALX_API void calx_init_kaiming_uniform_with(
    calx_tensor *t, const calx_kaiming_options *options);
/** Normal with deviation gain / sqrt(fan). @shape rank >= 2
 *  @source torch.nn.init.kaiming_normal_ */
CALX_API void calx_init_kaiming_normal_with(
    calx_tensor *t, const calx_kaiming_options *options);

#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_INIT_(fn, ...) \
  CALX_INITIALISED_(fn, __VA_ARGS__, .size = sizeof(calx_kaiming_options))
#else
// clang-format off
#define calx_init_uniform(...) (calx_at_(CALX_HERE), calx_init_uniform(__VA_ARGS__))
#define calx_init_normal(...) (calx_at_(CALX_HERE), calx_init_normal(__VA_ARGS__))
#define calx_init_trunc_normal(...) (calx_at_(CALX_HERE), calx_init_trunc_normal(__VA_ARGS__))
#define calx_init_constant(...) (calx_at_(CALX_HERE), calx_init_constant(__VA_ARGS__))
#define calx_init_ones(...) (calx_at_(CALX_HERE), calx_init_ones(__VA_ARGS__))
#define calx_init_zeros(...) (calx_at_(CALX_HERE), calx_init_zeros(__VA_ARGS__))
#define calx_init_eye(...) (calx_at_(CALX_HERE), calx_init_eye(__VA_ARGS__))
#define calx_init_dirac(...) (calx_at_(CALX_HERE), calx_init_dirac(__VA_ARGS__))
#define calx_init_xavier_uniform(...) (calx_at_(CALX_HERE), calx_init_xavier_uniform(__VA_ARGS__))
#define calx_init_xavier_normal(...) (calx_at_(CALX_HERE), calx_init_xavier_normal(__VA_ARGS__))
#define calx_init_orthogonal(...) (calx_at_(CALX_HERE), calx_init_orthogonal(__VA_ARGS__))
#define calx_init_sparse(...) (calx_at_(CALX_HERE), calx_init_sparse(__VA_ARGS__))
// clang-format on
#define CALX_INIT_(fn, ...) \
  (calx_at_(CALX_HERE),     \
   CALX_INITIALISED_(fn, __VA_ARGS__, .size = sizeof(calx_kaiming_options)))
#endif
#define CALX_INITIALISED_(fn, t, ...) \
  fn(t, &(calx_kaiming_options){ __VA_ARGS__ })
#define calx_init_kaiming_uniform(...) \
  CALX_INIT_(calx_init_kaiming_uniform_with, __VA_ARGS__)
#define calx_init_kaiming_normal(...) \
  CALX_INIT_(calx_init_kaiming_normal_with, __VA_ARGS__)
#endif
#endif
