/**
 * calx/autograd.h: gradients.
 *
 * The graph is the tape: an op whose operands require a gradient can be
 * differentiated until the next sync. Gradients are recorded like anything
 * else and run with the step's program.
 *
 * @threads thread-local modes; otherwise as tensors
 */
#ifndef CALX_AUTOGRAD_H
#define CALX_AUTOGRAD_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Adds d(loss)/d(leaf) to the gradient of every leaf that requires one. A
 * gradient that an optimiser's step used and a sync dropped stays unknown: its
 * next use is an error that says so, unless calx_zero_grad() comes first.
 * @param loss  one element, floating @shape () or one element
 * @errors INVALID_ARGUMENT not one element, not on the tape
 *         FAILED_PRECONDITION it reaches what was recorded before a sync
 * @source torch.Tensor.backward
 */
CALX_API void calx_backward(calx_tensor *loss);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_backward_options {
  CALX_NAMED size_t size;
  /* d(objective)/d(output); NULL: 1; output's shape */
  CALX_NAMED calx_tensor *gradient;
  /* Of calx_backward_n: one for each output, each may be NULL */
  CALX_NAMED calx_tensor *const *gradients;
  /* Gradients can be differentiated again. Retains the graph too. */
  CALX_NAMED bool create_graph;
  /* The same graph can be differentiated by another pass. Else that is an
     error where a gradient rule needs values that were recorded. */
  CALX_NAMED bool retain_graph;
  /* Only these collect a gradient; leaves or results of ops. NULL: all leaves
   */
  CALX_NAMED calx_tensor *const *inputs;
  CALX_NAMED size_t n_inputs;
} calx_backward_options;
/** The same for any shape, with the gradient that comes from above.
 *  @shape output any
 *  @errors as calx_backward; also a gradient of another shape, and
 *          FAILED_PRECONDITION a graph that was not retained before */
CALX_API void calx_backward_with(calx_tensor *output,
                                 const calx_backward_options *options);
/** The same from several outputs in one pass; options->gradient is not used.
 *  @shape outputs any
 *  @errors as calx_backward_with  @source torch.autograd.backward */
CALX_API void calx_backward_n(calx_tensor *const *outputs, size_t n_outputs,
                              const calx_backward_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_grad_of_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *gradient; /* as in calx_backward_options */
  CALX_NAMED calx_tensor *const *gradients;
  CALX_NAMED bool create_graph;
  CALX_NAMED bool retain_graph;
  /* An input on which no output depends gives NULL; else that is an error. */
  CALX_NAMED bool allow_unused;
  /* Such an input gives zeros, which is no error. */
  CALX_NAMED bool materialize_grads;
} calx_grad_of_options;
/**
 * Gradients of `output` with respect to `inputs`, without touching .grad of
 * leaves. out_grads[i] belongs to the scope.
 * @param inputs  leaves or intermediate results
 * @shape out_grads[i] as inputs[i]
 * @errors as calx_backward_with; also an input on which the output does not
 *         depend
 * @source torch.autograd.grad
 */
CALX_API void calx_grad_of_with(calx_tensor *output, calx_tensor *const *inputs,
                                size_t count, calx_tensor **out_grads,
                                const calx_grad_of_options *options);
/** The same of several outputs in one pass, which adds their gradients;
 *  options->gradient is not used. @shape out_grads[i] as inputs[i]
 *  @errors as calx_grad_of_with */
CALX_API void calx_grad_of_n(calx_tensor *const *outputs, size_t n_outputs,
                             calx_tensor *const *inputs, size_t count,
                             calx_tensor **out_grads,
                             const calx_grad_of_options *options);

/** The result of an op collects its gradient too, for calx_grad; a leaf does
 *  so anyway. @shape any
 *  @errors INVALID_ARGUMENT it requires no gradient
 *  @source torch.Tensor.retain_grad */
CALX_API void calx_retain_grad(calx_tensor *tensor);

// ---- hooks ------------------------------------------------------------------

/** A registered function; id 0: none, registering failed. */
typedef struct calx_hook {
  uint64_t id;
} calx_hook;
/** The function is not called any more; also during its own call, and when it
 *  or what it was registered on is gone already. @source
 *  torch.utils.hooks.RemovableHandle.remove */
CALX_API void calx_hook_remove(calx_hook hook);
/** Frees what a hook was given; called once, when it can no longer be called.
 *  It must not call calx. */
typedef void calx_hook_free_fn(void *user);

/** Sees a gradient; another one of the same shape replaces it, NULL does not.
 *  @shape as grad */
typedef calx_tensor *calx_gradient_hook_fn(void *user, calx_tensor *grad);
/**
 * Calls fn with the tensor's gradient in each backward pass: of a leaf before
 * it is added to calx_grad, of a result when all its users have given theirs.
 * Hooks run in the order of registration. One on a leaf lasts as long as the
 * leaf, one on a result as long as its graph.
 * @param free_user  may be NULL
 * @shape any  @errors INVALID_ARGUMENT the tensor requires no gradient
 * @source torch.Tensor.register_hook
 */
CALX_API calx_hook calx_register_hook(calx_tensor *tensor,
                                      calx_gradient_hook_fn *fn, void *user,
                                      calx_hook_free_fn *free_user);

/** The gradient collected so far; NULL: none. Owned by the tensor; a failed
 *  step takes its own back. @shape as tensor @errors none */
CALX_API calx_tensor *calx_grad(calx_tensor *tensor);
/** Drops the gradient. @shape any @errors none */
CALX_API void calx_zero_grad(calx_tensor *tensor);

/** Makes a leaf collect its gradient, or no longer. @shape any
 *  @errors INVALID_ARGUMENT not floating, or the result of an op */
CALX_API void calx_requires_grad(calx_tensor *tensor, bool on);
/** Whether a gradient flows through it. @shape any @errors none */
CALX_API bool calx_tensor_requires_grad(const calx_tensor *tensor);

/** From here on nothing is recorded for differentiation, until the matching
 *  end or the end of the current scope. @source torch.no_grad */
CALX_API void calx_no_grad_begin(void);
/** Ends the innermost region of the scope.
 *  @errors FAILED_PRECONDITION none began in it */
CALX_API void calx_no_grad_end(void);

/** The same for code that is never differentiated. What it makes are ordinary
 *  tensors, which later code may differentiate with: PyTorch refuses that, to
 *  save work that is not done here at all. @source torch.inference_mode */
CALX_API void calx_inference_mode_begin(void);
/** Ends the innermost region of the scope.
 *  @errors FAILED_PRECONDITION none began in it, or it is an enable-grad region
 */
CALX_API void calx_inference_mode_end(void);

/** From here on ops are recorded for differentiation again, inside a no-grad
 *  region too, until the matching end or the end of the current scope. Regions
 *  are nested at most 64 deep. @source torch.enable_grad */
CALX_API void calx_enable_grad_begin(void);
/** Ends the innermost region of the scope.
 *  @errors FAILED_PRECONDITION none began in it, or it is a no-grad region */
CALX_API void calx_enable_grad_end(void);
/** @source torch.is_grad_enabled */
CALX_API bool calx_is_grad_enabled(void);

/** The tensor itself becomes a leaf without history that requires no gradient.
 *  @shape any  @errors those of a tensor without a value
 *  @source torch.Tensor.detach_ */
CALX_API void calx_detach_(calx_tensor *tensor);

/**
 * In anomaly mode each op runs as soon as it is recorded, and the first whose
 * result holds NaN is an error that names the op, its call site and, in a
 * backward pass, the op whose gradient it is. Slow: for finding a fault only.
 * For all threads; CALX_DEBUG=anomaly sets it too.
 * @source torch.autograd.set_detect_anomaly
 */
CALX_API void calx_set_detect_anomaly(bool on);
/** @source torch.is_anomaly_enabled */
CALX_API bool calx_is_anomaly_enabled(void);

#ifdef __cplusplus
}
#else
#define CALX_GRAD_OF_(output, inputs, count, out_grads, ...) \
  calx_grad_of_with(output, inputs, count, out_grads,        \
                    &(calx_grad_of_options){ __VA_ARGS__ })
#ifdef CALX_NO_SITES
#define calx_grad_of(output, inputs, count, ...)    \
  CALX_GRAD_OF_(output, inputs, count, __VA_ARGS__, \
                .size = sizeof(calx_grad_of_options))
#else
#define calx_grad_of(output, inputs, count, ...)                            \
  (calx_at_(CALX_HERE),                                                     \
   CALX_GRAD_OF_(calx_here_(output, CALX_HERE), inputs, count, __VA_ARGS__, \
                 .size = sizeof(calx_grad_of_options)))
#define calx_backward(loss) \
  (calx_at_(CALX_HERE), calx_backward(calx_here_(loss, CALX_HERE)))
#define calx_requires_grad(t, on) \
  (calx_at_(CALX_HERE), calx_requires_grad(calx_here_(t, CALX_HERE), on))
#endif
#endif
#endif
