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

/**
 * Zero means default. Every optimiser has the last five:
 * .maximize     steps towards a greater loss
 * .keep_gradients  the step does not consume them
 * .params, .n_params  only these tensors, in this order; the model may be NULL
 *               then. For parameter groups, see calx_optimizer_add_param_group.
 * .master_weights  keeps an f32 value of each bf16 or f16 parameter, the state
 *               "master_param", and all other state in f32 (apex.optimizers
 *               FusedAdam). A step updates that value, and the parameter is its
 *               rounding. An update that is too small for the parameter's type
 *               is not lost. Masters begin at the first step. Where the program
 *               has changed a parameter since the last step, the master is what
 *               the parameter is. Parameters of f32 and f64 have no masters.
 */
typedef struct CALX_OPTIONS calx_sgd_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr; /* per step; 0 = 1e-3, CALX_ZERO = 0 */
  CALX_NAMED double momentum;
  CALX_NAMED double dampening;
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED bool nesterov;       /* needs momentum, no dampening */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
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
  CALX_NAMED double lr; /* 0 = 1e-3, CALX_ZERO = 0 */
  /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);
  CALX_NAMED double eps; /* 0 = 1e-8, CALX_ZERO = 0 */
  /* Adam: L2, 0. AdamW: decoupled, 0 = 0.01, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay;
  CALX_NAMED bool amsgrad;
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
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
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
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

/** Returns the loss of one evaluation: calx_optimizer_zero_grad(), the forward
 *  pass, calx_backward(). On several ranks it also reduces the gradients and
 *  the loss, so that all ranks see the same numbers. */
typedef calx_tensor *calx_loss_closure_fn(void *user);
/**
 * A step of an optimiser that evaluates the loss: LBFGS several times, which
 * syncs, the others once, before the step.
 * @return the loss of the first evaluation
 * @shape one element
 * @errors through the scope: as calx_optimizer_step; INVALID_ARGUMENT closure
 *         NULL, or what it returned is no loss; those of the closure, which end
 *         the step
 * @source torch.optim.Optimizer.step(closure)
 */
CALX_API calx_tensor *calx_optimizer_step_closure(calx_optimizer *opt,
                                                  calx_loss_closure_fn *closure,
                                                  void *user);

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

/**
 * Clamps each element of the gradients to [-clip_value, clip_value], in place.
 * With several ranks it is called where calx_clip_grad_norm() is.
 * @errors through the scope: INVALID_ARGUMENT clip_value negative or NaN
 * @source torch.nn.utils.clip_grad_value_
 */
CALX_API void calx_clip_grad_value(calx_optimizer *opt, double clip_value);
/**
 * The norm of the gradients, as calx_clip_grad_norm() returns it; they stay as
 * they are.
 * @shape one element  @errors as calx_clip_grad_norm
 * @source torch.nn.utils.get_total_norm
 */
CALX_API calx_tensor *calx_get_total_norm_with(
    calx_optimizer *opt, const calx_clip_grad_norm_options *options);

/** Zero means what the optimiser was made with. */
typedef struct CALX_OPTIONS calx_param_group_options {
  CALX_NAMED size_t size;
  /* CALX_ZERO = 0, here and below */
  CALX_NAMED double lr;
  CALX_NAMED double weight_decay;
  CALX_NAMED double momentum;
  CALX_PAIR_(double, betas);
  CALX_NAMED double eps;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the module's */
  CALX_NAMED size_t n_params;
} calx_param_group_options;
/**
 * Parameters with options of their own. The optimiser makes group 0 from what
 * it is given; options that the struct lacks are set afterwards with
 * calx_optimizer_set_option(). State dicts have the groups as PyTorch's have.
 * @param module  its parameters that require a gradient; NULL with .params
 * @return the group's number; SIZE_MAX on an error
 * @errors through the scope: INVALID_ARGUMENT a tensor that the optimiser has
 *         already, or that requires no gradient; an option out of range, or
 *         that the optimiser lacks; no parameters. Nothing is added then
 * @source torch.optim.Optimizer.add_param_group
 */
CALX_API size_t
calx_optimizer_add_param_group_with(calx_optimizer *opt, calx_module *module,
                                    const calx_param_group_options *options);
/** How many groups there are. @source len(optimizer.param_groups) */
CALX_API size_t calx_optimizer_param_groups(const calx_optimizer *opt);
/**
 * An option of a group by PyTorch's name: "lr", "momentum", "betas[0]",
 * "betas[1]"; a flag is 0 or 1.
 * @return NaN where there is no such group or option
 * @source optimizer.param_groups[group][name]
 */
CALX_API double calx_optimizer_option(const calx_optimizer *opt, size_t group,
                                      const char *name);
/**
 * Changes it for the steps to come. Another number compiles nothing, but where
 * 0 turns a term of the rule off (weight_decay, momentum) and where a flag
 * changes.
 * @errors through the scope: INVALID_ARGUMENT no such group or option, or a
 *         value that the constructor would refuse: nothing is changed then
 */
CALX_API void calx_optimizer_set_option(calx_optimizer *opt, size_t group,
                                        const char *name, double value);

/** The learning rate of the steps to come, of every group. */
CALX_API void calx_optimizer_set_lr(calx_optimizer *opt, double lr);
/** That of the first group. */
CALX_API double calx_optimizer_lr(const calx_optimizer *opt);
/** Steps so far. */
CALX_API int64_t calx_optimizer_steps(const calx_optimizer *opt);
/**
 * A parameter's state by PyTorch's name: "momentum_buffer", "exp_avg",
 * "exp_avg_sq", "max_exp_avg_sq", "sum", "master_param", …; NULL before the
 * first step.
 * @param parameter  its place among the parameters of all groups, from 0
 * @shape as the parameter; of Adafactor see there  @errors none
 */
CALX_API calx_tensor *calx_optimizer_state(const calx_optimizer *opt,
                                           size_t parameter, const char *name);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_sgd_options_ .lr = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_sgd_options, calx_written_(&o->lr);)
#define CALX_UNWRITTEN_calx_adam_options_                               \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_, .weight_decay = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_adam_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas); calx_written_(&o->eps);
              calx_written_(&o->weight_decay);)
#define CALX_UNWRITTEN_calx_adagrad_options_ \
  .lr = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_adagrad_options, calx_written_(&o->lr);
              calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_param_group_options_                              \
  .lr = CALX_UNWRITTEN_, .weight_decay = CALX_UNWRITTEN_,                     \
  .momentum = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_param_group_options, calx_written_(&o->lr);
              calx_written_(&o->weight_decay); calx_written_(&o->momentum);
              calx_written_pair_(o->betas); calx_written_(&o->eps);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_SGD_(model, ...)            \
  (CALX_OPTIM_SITE_ calx_sgd_with(model, \
                                  CALX_WRITE_(calx_sgd_options, __VA_ARGS__)))
#define CALX_ADAM_(model, ...)      \
  (CALX_OPTIM_SITE_ calx_adam_with( \
      model, CALX_WRITE_(calx_adam_options, __VA_ARGS__)))
#define CALX_ADAMW_(model, ...)      \
  (CALX_OPTIM_SITE_ calx_adamw_with( \
      model, CALX_WRITE_(calx_adam_options, __VA_ARGS__)))
#define CALX_ADAGRAD_(model, ...)      \
  (CALX_OPTIM_SITE_ calx_adagrad_with( \
      model, CALX_WRITE_(calx_adagrad_options, __VA_ARGS__)))
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
#define CALX_GET_TOTAL_NORM_(opt, ...) \
  calx_get_total_norm_with(opt, &(calx_clip_grad_norm_options){ __VA_ARGS__ })
#define calx_get_total_norm(...)          \
  (CALX_OPTIM_SITE_ CALX_GET_TOTAL_NORM_( \
      __VA_ARGS__, .size = sizeof(calx_clip_grad_norm_options)))
#define CALX_ADD_PARAM_GROUP_(opt, module, ...) \
  calx_optimizer_add_param_group_with(          \
      opt, module, CALX_WRITE_(calx_param_group_options, __VA_ARGS__))
#define calx_optimizer_add_param_group(opt, ...) \
  (CALX_OPTIM_SITE_ CALX_ADD_PARAM_GROUP_(       \
      opt, __VA_ARGS__, .size = sizeof(calx_param_group_options)))
#ifndef CALX_NO_SITES
#define calx_clip_grad_value(opt, clip_value) \
  (calx_at_(CALX_HERE), calx_clip_grad_value(opt, clip_value))
#define calx_optimizer_set_option(opt, group, name, value) \
  (calx_at_(CALX_HERE), calx_optimizer_set_option(opt, group, name, value))
#define calx_optimizer_zero_grad(opt) \
  (calx_at_(CALX_HERE), calx_optimizer_zero_grad(opt))
#define calx_optimizer_step(opt) (calx_at_(CALX_HERE), calx_optimizer_step(opt))
#define calx_optimizer_step_closure(opt, closure, user) \
  (calx_at_(CALX_HERE), calx_optimizer_step_closure(opt, closure, user))
#endif
#endif
#endif
