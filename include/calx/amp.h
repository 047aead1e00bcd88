/**
 * calx/amp.h: scaling of losses, so that gradients of f16 do not vanish: the
 * GradScaler of torch.amp. Autocast is in calx/autocast.h.
 *
 *   calx_backward(calx_grad_scaler_scale(scaler, loss));
 *   calx_grad_scaler_step(scaler, opt);
 *   calx_grad_scaler_update(scaler);
 *
 * The scale is a number of the host and an operand of programs: another one
 * compiles nothing.
 *
 * @threads thread-compatible
 */
#ifndef CALX_AMP_H
#define CALX_AMP_H

#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A factor of losses that follows what is finite in their gradients. */
typedef struct calx_grad_scaler calx_grad_scaler;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_grad_scaler_options {
  CALX_NAMED size_t size;
  CALX_NAMED double init_scale;       /* 0 = 65536 */
  CALX_NAMED double growth_factor;    /* > 1; 0 = 2 */
  CALX_NAMED double backoff_factor;   /* in (0, 1); 0 = 0.5 */
  CALX_NAMED int64_t growth_interval; /* 0 = 2000 */
  CALX_NAMED bool disabled;           /* calls do what they do without it */
} calx_grad_scaler_options;
/** @return never NULL; see calx_grad_scaler_error
 *  @errors INVALID_ARGUMENT a number out of range
 *  @source torch.amp.GradScaler */
CALX_API calx_grad_scaler *calx_grad_scaler_new_with(
    const calx_grad_scaler_options *options);
/** NULL is accepted. */
CALX_API void calx_grad_scaler_free(calx_grad_scaler *scaler);
/** What is wrong with its options; NULL: nothing. The caller frees it. */
CALX_API calx_status *calx_grad_scaler_error(const calx_grad_scaler *scaler)
    CALX_MUST_USE;

/** The loss, or other outputs, times the scale. bf16 and f16 become f32.
 *  @shape any  @errors a failed scaler
 *  @source torch.amp.GradScaler.scale */
CALX_API calx_tensor *calx_grad_scaler_scale(calx_grad_scaler *scaler,
                                             calx_tensor *outputs);
/** Divides the gradients of the optimiser's parameters by the scale, in place,
 *  once between two updates: before they are clipped. On several ranks it is
 *  called where calx_clip_grad_norm() is.
 *  Gradients of parameters that have f32 masters become f32.
 *  @errors through the scope: INVALID_ARGUMENT f16 gradients without masters;
 *          FAILED_PRECONDITION it was called, or the step was, since the last
 *          update
 *  @source torch.amp.GradScaler.unscale_ */
CALX_API void calx_grad_scaler_unscale(calx_grad_scaler *scaler,
                                       calx_optimizer *opt);
/**
 * calx_grad_scaler_unscale(), if it was not called, and calx_optimizer_step(),
 * of which nothing remains where a gradient is infinite or NaN. That is decided
 * on the device: nothing is read here. What has been a step is counted, and the
 * scale is known, when the next step begins or when one asks.
 * @errors through the scope: those of both; FAILED_PRECONDITION no gradient, or
 *         a second call since the last update
 * @source torch.amp.GradScaler.step
 */
CALX_API void calx_grad_scaler_step(calx_grad_scaler *scaler,
                                    calx_optimizer *opt);
/** After the step: the scale becomes backoff_factor times as large where an
 *  optimiser's gradient was infinite or NaN, and growth_factor times after
 *  growth_interval updates without one.
 *  @errors through the scope: FAILED_PRECONDITION nothing was unscaled
 *  @source torch.amp.GradScaler.update */
CALX_API void calx_grad_scaler_update(calx_grad_scaler *scaler);
/** calx_grad_scaler_update() to a scale of one's own.
 *  @errors through the scope: INVALID_ARGUMENT it is not above 0 and finite */
CALX_API void calx_grad_scaler_update_to(calx_grad_scaler *scaler,
                                         double new_scale);

/** The scale; 1 of a disabled scaler. It waits for the last step. */
CALX_API double calx_grad_scaler_get_scale(calx_grad_scaler *scaler);
/** Updates since the scale changed or a gradient was not finite. */
CALX_API int64_t calx_grad_scaler_get_growth_tracker(calx_grad_scaler *scaler);
CALX_API double calx_grad_scaler_get_growth_factor(
    const calx_grad_scaler *scaler);
/** @errors through the scope: INVALID_ARGUMENT what the options refuse, here
 *  and below */
CALX_API void calx_grad_scaler_set_growth_factor(calx_grad_scaler *scaler,
                                                 double factor);
CALX_API double calx_grad_scaler_get_backoff_factor(
    const calx_grad_scaler *scaler);
CALX_API void calx_grad_scaler_set_backoff_factor(calx_grad_scaler *scaler,
                                                  double factor);
CALX_API int64_t
calx_grad_scaler_get_growth_interval(const calx_grad_scaler *scaler);
CALX_API void calx_grad_scaler_set_growth_interval(calx_grad_scaler *scaler,
                                                   int64_t interval);
CALX_API bool calx_grad_scaler_is_enabled(const calx_grad_scaler *scaler);

#ifdef __cplusplus
}
#else
#define calx_grad_scaler_new(...)                        \
  calx_grad_scaler_new_with(&(calx_grad_scaler_options){ \
      .size = sizeof(calx_grad_scaler_options), __VA_ARGS__ })
#endif
#endif
