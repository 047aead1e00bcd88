/**
 * calx/optim.h: optimisers, with PyTorch's rules and names.
 *
 * An optimiser holds the parameters of a module. A step uses their gradients
 * and consumes them: after the sync they are gone, so that the update fuses
 * with the backward pass (.keep_gradients keeps them). Hyperparameters are no
 * part of compiled programs: another learning rate compiles nothing.
 *
 * @threads thread-compatible
 */
#ifndef CALX_OPTIM_H
#define CALX_OPTIM_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters, their state and a rule. */
typedef struct calx_optimizer calx_optimizer;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_sgd_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr; /* per step; 0 = 1e-3, CALX_ZERO = 0 */
  CALX_NAMED double momentum;
  CALX_NAMED double dampening;
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED bool nesterov;       /* needs momentum, no dampening */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
} calx_sgd_options;
/**
 * Stochastic gradient descent.
 * @param model  its parameters that require a gradient; must outlive the
 *        optimiser
 * @return never NULL; see calx_optimizer_error
 * @errors INVALID_ARGUMENT negative lr, momentum or weight_decay; nesterov
 *         without momentum or with dampening; no parameters
 * @source torch.optim.SGD
 */
CALX_API calx_optimizer *calx_sgd_with(calx_module *model,
                                       const calx_sgd_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adam_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;      /* 0 = 1e-3, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas); /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_NAMED double eps;     /* 0 = 1e-8, CALX_ZERO = 0 */
  /* Adam: L2, 0. AdamW: decoupled, 0 = 0.01, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay;
  CALX_NAMED bool amsgrad;
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
} calx_adam_options;
/** @errors as calx_sgd; betas outside [0, 1)
 *  @source torch.optim.Adam; D. Kingma and J. Ba (2014) */
CALX_API calx_optimizer *calx_adam_with(calx_module *model,
                                        const calx_adam_options *options);
/** @errors as calx_adam
 *  @source torch.optim.AdamW; I. Loshchilov and F. Hutter (2017) */
CALX_API calx_optimizer *calx_adamw_with(calx_module *model,
                                         const calx_adam_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adagrad_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-2, CALX_ZERO = 0 */
  CALX_NAMED double lr_decay;     /* of step t: lr / (1 + (t - 1) lr_decay) */
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED double initial_accumulator_value;
  CALX_NAMED double eps; /* 0 = 1e-10, CALX_ZERO = 0 */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
} calx_adagrad_options;
/** @errors as calx_sgd
 *  @source torch.optim.Adagrad; J. Duchi, E. Hazan and Y. Singer (2011) */
CALX_API calx_optimizer *calx_adagrad_with(calx_module *model,
                                           const calx_adagrad_options *options);

/** NULL is accepted. */
CALX_API void calx_optimizer_free(calx_optimizer *opt);
/** What is wrong with its options; NULL: nothing. The caller frees it. */
CALX_API calx_status *calx_optimizer_error(const calx_optimizer *opt)
    CALX_MUST_USE;

/** Drops the gradients of its parameters. @source zero_grad(set_to_none) */
CALX_API void calx_optimizer_zero_grad(calx_optimizer *opt);
/** Updates every parameter that has a gradient. @errors through the scope:
 *  a failed optimiser, a gradient that another step consumed */
CALX_API void calx_optimizer_step(calx_optimizer *opt);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_clip_grad_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double norm_type; /* 0 = 2; INFINITY: the greatest magnitude */
  /* reads the norm, so what is pending runs */
  CALX_NAMED bool error_if_nonfinite;
} calx_clip_grad_norm_options;
/**
 * Scales the gradients of the optimiser's parameters, as if they were one
 * vector, to a norm of at most `max_norm`; in place. On several ranks between
 * calx_reduce_gradients() and calx_optimizer_step(), so that the norm is that
 * of the means. With calx_zero_redundancy_optimizer() it reduces them itself,
 * and the norm is that of all ranks' shards; the next step takes them.
 * @return the norm before, of one element, f32 or f64; 0 without gradients
 * @shape any  @errors through the scope: INVALID_ARGUMENT max_norm negative or
 *        NaN, another norm; OUT_OF_RANGE a norm that is not finite, where that
 *        is asked for: nothing is scaled then
 * @source torch.nn.utils.clip_grad_norm_
 */
CALX_API calx_tensor *calx_clip_grad_norm_with(
    calx_optimizer *opt, double max_norm,
    const calx_clip_grad_norm_options *options);

/** The learning rate of the steps to come. */
CALX_API void calx_optimizer_set_lr(calx_optimizer *opt, double lr);
CALX_API double calx_optimizer_lr(const calx_optimizer *opt);
/** Steps so far. */
CALX_API int64_t calx_optimizer_steps(const calx_optimizer *opt);
/**
 * A parameter's state by PyTorch's name: "momentum_buffer", "exp_avg",
 * "exp_avg_sq", "max_exp_avg_sq", "sum"; NULL before the first step.
 * @param parameter  its place among the parameters, from 0
 * @shape as the parameter  @errors none
 */
CALX_API calx_tensor *calx_optimizer_state(const calx_optimizer *opt,
                                           size_t parameter, const char *name);

#ifdef __cplusplus
}
#else
#define CALX_SGD_(model, ...) \
  (CALX_OPTIM_SITE_ calx_sgd_with(model, &(calx_sgd_options){ __VA_ARGS__ }))
#define CALX_ADAM_(model, ...) \
  (CALX_OPTIM_SITE_ calx_adam_with(model, &(calx_adam_options){ __VA_ARGS__ }))
#define CALX_ADAMW_(model, ...) \
  (CALX_OPTIM_SITE_ calx_adamw_with(model, &(calx_adam_options){ __VA_ARGS__ }))
#define CALX_ADAGRAD_(model, ...)            \
  (CALX_OPTIM_SITE_ calx_adagrad_with(model, \
                                      &(calx_adagrad_options){ __VA_ARGS__ }))
#define calx_sgd(...) CALX_SGD_(__VA_ARGS__, .size = sizeof(calx_sgd_options))
#define calx_adam(...) \
  CALX_ADAM_(__VA_ARGS__, .size = sizeof(calx_adam_options))
#define calx_adamw(...) \
  CALX_ADAMW_(__VA_ARGS__, .size = sizeof(calx_adam_options))
#define calx_adagrad(...) \
  CALX_ADAGRAD_(__VA_ARGS__, .size = sizeof(calx_adagrad_options))
#define CALX_CLIP_GRAD_NORM_(opt, max_norm, ...) \
  calx_clip_grad_norm_with(opt, max_norm,        \
                           &(calx_clip_grad_norm_options){ __VA_ARGS__ })
#ifdef CALX_NO_SITES
#define CALX_OPTIM_SITE_
#else
#define CALX_OPTIM_SITE_ calx_at_(CALX_HERE),
#endif
#define calx_clip_grad_norm(opt, ...)     \
  (CALX_OPTIM_SITE_ CALX_CLIP_GRAD_NORM_( \
      opt, __VA_ARGS__, .size = sizeof(calx_clip_grad_norm_options)))
#ifndef CALX_NO_SITES
#define calx_optimizer_zero_grad(opt) \
  (calx_at_(CALX_HERE), calx_optimizer_zero_grad(opt))
#define calx_optimizer_step(opt) (calx_at_(CALX_HERE), calx_optimizer_step(opt))
#endif
#endif
#endif
