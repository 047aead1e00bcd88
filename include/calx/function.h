/**
 * calx/function.h: functions with a gradient of their own, recomputation
 * instead of storage, derivatives of functions, and checks of gradients.
 *
 * @threads as tensors
 */
#ifndef CALX_FUNCTION_H
#define CALX_FUNCTION_H

#include "calx/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- custom functions -------------------------------------------------------

/** One application of a function: what its forward keeps for its backward. */
typedef struct calx_function_context calx_function_context;

/** Computes outputs[0..n) from the inputs, with any ops; nothing of it is
 *  recorded for differentiation. */
typedef void calx_function_forward_fn(calx_function_context *ctx,
                                      calx_tensor *const *inputs,
                                      calx_tensor **outputs);
/** Computes the gradients of the inputs from those of the outputs. NULL, as
 *  grad_inputs begins, is no gradient. A gradient that broadcasts is summed. */
typedef void calx_function_backward_fn(calx_function_context *ctx,
                                       calx_tensor *const *grad_outputs,
                                       calx_tensor **grad_inputs);

/** What a function is. Copied by calx_function_apply. */
typedef struct calx_function {
  const char *name; /* for messages */
  calx_function_forward_fn *forward;
  calx_function_backward_fn *backward;
  /* Frees the state, exactly once: when no backward can come any more. It must
     not call calx. May be NULL. */
  void (*free_state)(void *state);
  /* The backward is not differentiable itself: a second derivative through its
     result is an error. Else the backward's ops are differentiated. */
  bool once_differentiable;
} calx_function;

/**
 * Applies a function: runs its forward and records that the gradient goes
 * through its backward.
 * @param state      the function's own; taken over, on failure too
 * @param n_inputs   at least 1
 * @param n_outputs  1 to 8
 * @param outputs    filled; poisoned on failure
 * @shape as the forward gives  @owner the current scope
 * @errors INVALID_ARGUMENT bad counts, a NULL input or output; what the
 *         forward's ops say
 * @source torch.autograd.Function.apply
 */
CALX_API void calx_function_apply(const calx_function *fn, void *state,
                                  calx_tensor *const *inputs, size_t n_inputs,
                                  calx_tensor **outputs, size_t n_outputs);

/** The state that calx_function_apply was given. */
CALX_API void *calx_function_state(calx_function_context *ctx);
/** In the forward, once: keeps tensors for the backward. Inputs and outputs
 *  come back with their history, others without. @shape any
 *  @errors FAILED_PRECONDITION a second call, or outside of the forward
 *  @source FunctionCtx.save_for_backward */
CALX_API void calx_function_save_for_backward(calx_function_context *ctx,
                                              calx_tensor *const *tensors,
                                              size_t count);
/** In the backward: number `index` of what was saved. @shape as saved
 *  @errors INVALID_ARGUMENT there are fewer; FAILED_PRECONDITION outside of it
 *  @owner the current scope */
CALX_API calx_tensor *calx_function_saved(calx_function_context *ctx,
                                          size_t index);
/** Whether input `index` needs a gradient; false past the last. */
CALX_API bool calx_function_needs_input_grad(const calx_function_context *ctx,
                                             size_t index);
/** In the forward: no gradient flows through output `index`. Outputs of other
 *  than floating types are so anyway.
 *  @errors INVALID_ARGUMENT there is no such output */
CALX_API void calx_function_mark_non_differentiable(calx_function_context *ctx,
                                                    size_t index);
/** In the forward, with false: the backward gets NULL, not zeros, for an output
 *  that no gradient reached. @source FunctionCtx.set_materialize_grads */
CALX_API void calx_function_set_materialize_grads(calx_function_context *ctx,
                                                  bool on);

// ---- recomputation ----------------------------------------------------------

/** A function of tensors: fills outputs[0..n). */
typedef void calx_tensors_fn(void *user, calx_tensor *const *inputs,
                             calx_tensor **outputs);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_checkpoint_options {
  CALX_NAMED size_t size;
  /* The backward draws other random numbers than the forward did. */
  CALX_NAMED bool no_preserve_rng_state;
} calx_checkpoint_options;
/**
 * Runs fn without keeping what it computes in between: the backward runs it
 * again, with the same random numbers. So a gradient needs less memory and more
 * time. Gradients flow to the inputs and to every leaf that fn uses.
 * @param fn    called now, and once in each backward; it must compute the same
 * @param user  valid as long as a backward can come
 * @param n_outputs  1 to 8
 * @shape as fn gives  @owner the current scope
 * @errors as calx_function_apply
 * @source torch.utils.checkpoint.checkpoint
 */
CALX_API void calx_checkpoint_with(calx_tensors_fn *fn, void *user,
                                   calx_tensor *const *inputs, size_t n_inputs,
                                   calx_tensor **outputs, size_t n_outputs,
                                   const calx_checkpoint_options *options);

// ---- derivatives of functions -----------------------------------------------

/** A function of one tensor, as calx_forward_fn. */
typedef calx_tensor *calx_tensor_fn(void *user, calx_tensor *x);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_functional_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool create_graph; /* the results can be differentiated again */
  /* A result that does not depend on x is an error, else its derivative is 0 */
  CALX_NAMED bool strict;
} calx_functional_options;
/** The Jacobian of fn at x, a row for each element of fn(x).
 *  @shape (shape of fn(x), shape of x)  @owner the current scope
 *  @errors those of fn and of calx_grad_of; rank over 8
 *  @source torch.autograd.functional.jacobian */
CALX_API calx_tensor *calx_jacobian_with(
    calx_tensor_fn *fn, void *user, calx_tensor *x,
    const calx_functional_options *options);
/** The Hessian at x of a function with one element.
 *  @shape (shape of x, shape of x)  @owner the current scope
 *  @errors as calx_jacobian_with; also fn(x) has more than one element
 *  @source torch.autograd.functional.hessian */
CALX_API calx_tensor *calx_hessian_with(calx_tensor_fn *fn, void *user,
                                        calx_tensor *x,
                                        const calx_functional_options *options);
/** v^T J at x. @param v NULL: 1, for one element @shape as x
 *  @param out_value  fn(x); may be NULL
 *  @errors as calx_jacobian_with; v has another shape than fn(x)
 *  @owner the current scope
 *  @source torch.autograd.functional.vjp */
CALX_API calx_tensor *calx_vjp_with(calx_tensor_fn *fn, void *user,
                                    calx_tensor *x, calx_tensor *v,
                                    calx_tensor **out_value,
                                    const calx_functional_options *options);
/** J v at x, by two backward passes. @param v NULL: 1, for one element
 *  @shape as fn(x)  @param out_value fn(x); may be NULL
 *  @errors as calx_jacobian_with; v has another shape than x
 *  @owner the current scope
 *  @source torch.autograd.functional.jvp */
CALX_API calx_tensor *calx_jvp_with(calx_tensor_fn *fn, void *user,
                                    calx_tensor *x, calx_tensor *v,
                                    calx_tensor **out_value,
                                    const calx_functional_options *options);

// ---- checks of gradients ----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_gradcheck_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eps;  /* of the differences; 0 = 1e-6 */
  CALX_NAMED double atol; /* 0 = 1e-5, CALX_ZERO = 0 */
  CALX_NAMED double rtol; /* 0 = 1e-3, CALX_ZERO = 0 */
} calx_gradcheck_options;
/**
 * Compares the gradients of fn with central differences. Inputs that require a
 * gradient are looked at; they are best f64.
 * @return NULL where they agree; else which element differs, and by how much
 * @shape inputs any  @errors those of fn; no input requires a gradient
 * @source torch.autograd.gradcheck
 */
CALX_API calx_status *calx_gradcheck_with(
    calx_tensors_fn *fn, void *user, calx_tensor *const *inputs,
    size_t n_inputs, size_t n_outputs,
    const calx_gradcheck_options *options) CALX_MUST_USE;
/** The same of the gradients' own derivatives, for gradients that come from
 *  above. @shape inputs any @errors as calx_gradcheck_with
 *  @source torch.autograd.gradgradcheck */
CALX_API calx_status *calx_gradgradcheck_with(
    calx_tensors_fn *fn, void *user, calx_tensor *const *inputs,
    size_t n_inputs, size_t n_outputs,
    const calx_gradcheck_options *options) CALX_MUST_USE;

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_gradcheck_options_ \
  .atol = CALX_UNWRITTEN_, .rtol = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_gradcheck_options, calx_written_(&o->atol);
              calx_written_(&o->rtol);)
#endif
#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_FN_SITE_
#else
#define CALX_FN_SITE_ calx_at_(CALX_HERE),
#define calx_function_apply(fn, state, inputs, n_inputs, outputs, n_outputs) \
  (calx_at_(CALX_HERE),                                                      \
   calx_function_apply(fn, state, inputs, n_inputs, outputs, n_outputs))
#endif
#define CALX_CHECKPOINT_(fn, user, inputs, n_inputs, outputs, n_outputs, ...) \
  calx_checkpoint_with(fn, user, inputs, n_inputs, outputs, n_outputs,        \
                       &(calx_checkpoint_options){ __VA_ARGS__ })
#define calx_checkpoint(fn, user, inputs, n_inputs, outputs, ...)      \
  (CALX_FN_SITE_ CALX_CHECKPOINT_(fn, user, inputs, n_inputs, outputs, \
                                  __VA_ARGS__,                         \
                                  .size = sizeof(calx_checkpoint_options)))
#define CALX_JACOBIAN_(fn, user, x, ...) \
  calx_jacobian_with(fn, user, x, &(calx_functional_options){ __VA_ARGS__ })
#define calx_jacobian(fn, user, ...)                   \
  (CALX_FN_SITE_ CALX_JACOBIAN_(fn, user, __VA_ARGS__, \
                                .size = sizeof(calx_functional_options)))
#define CALX_HESSIAN_(fn, user, x, ...) \
  calx_hessian_with(fn, user, x, &(calx_functional_options){ __VA_ARGS__ })
#define calx_hessian(fn, user, ...)                   \
  (CALX_FN_SITE_ CALX_HESSIAN_(fn, user, __VA_ARGS__, \
                               .size = sizeof(calx_functional_options)))
#define CALX_VJP_(fn, user, x, v, out_value, ...) \
  calx_vjp_with(fn, user, x, v, out_value,        \
                &(calx_functional_options){ __VA_ARGS__ })
#define calx_vjp(fn, user, x, v, ...)                   \
  (CALX_FN_SITE_ CALX_VJP_(fn, user, x, v, __VA_ARGS__, \
                           .size = sizeof(calx_functional_options)))
#define CALX_JVP_(fn, user, x, v, out_value, ...) \
  calx_jvp_with(fn, user, x, v, out_value,        \
                &(calx_functional_options){ __VA_ARGS__ })
#define calx_jvp(fn, user, x, v, ...)                   \
  (CALX_FN_SITE_ CALX_JVP_(fn, user, x, v, __VA_ARGS__, \
                           .size = sizeof(calx_functional_options)))
#define CALX_GRADCHECK_(fn, user, inputs, n_inputs, n_outputs, ...) \
  calx_gradcheck_with(fn, user, inputs, n_inputs, n_outputs,        \
                      CALX_WRITE_(calx_gradcheck_options, __VA_ARGS__))
#define calx_gradcheck(fn, user, inputs, n_inputs, ...)                   \
  (CALX_FN_SITE_ CALX_GRADCHECK_(fn, user, inputs, n_inputs, __VA_ARGS__, \
                                 .size = sizeof(calx_gradcheck_options)))
#define CALX_GRADGRADCHECK_(fn, user, inputs, n_inputs, n_outputs, ...) \
  calx_gradgradcheck_with(fn, user, inputs, n_inputs, n_outputs,        \
                          CALX_WRITE_(calx_gradcheck_options, __VA_ARGS__))
#define calx_gradgradcheck(fn, user, inputs, n_inputs, ...)                   \
  (CALX_FN_SITE_ CALX_GRADGRADCHECK_(fn, user, inputs, n_inputs, __VA_ARGS__, \
                                     .size = sizeof(calx_gradcheck_options)))
#endif
#endif
