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
  CALX_NAMED bool create_graph; /* gradients can be differentiated again */
} calx_backward_options;
/** The same for any shape, with the gradient that comes from above.
 *  @shape output any @errors as calx_backward; also a gradient of another shape
 */
CALX_API void calx_backward_with(calx_tensor *output,
                                 const calx_backward_options *options);

/**
 * Gradients of `output` with respect to `inputs`, without touching .grad.
 * out_grads[i] belongs to the scope; NULL where output does not depend on it.
 * @param inputs  leaves or intermediate results
 * @shape out_grads[i] as inputs[i]
 * @errors as calx_backward
 * @source torch.autograd.grad
 */
CALX_API void calx_grad_of_with(calx_tensor *output, calx_tensor *const *inputs,
                                size_t count, calx_tensor **out_grads,
                                const calx_backward_options *options);

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

#ifdef __cplusplus
}
#else
#define CALX_GRAD_OF_(output, inputs, count, out_grads, ...) \
  calx_grad_of_with(output, inputs, count, out_grads,        \
                    &(calx_backward_options){ __VA_ARGS__ })
#ifdef CALX_NO_SITES
#define calx_grad_of(output, inputs, count, ...)    \
  CALX_GRAD_OF_(output, inputs, count, __VA_ARGS__, \
                .size = sizeof(calx_backward_options))
#else
#define calx_grad_of(output, inputs, count, ...)                            \
  (calx_at_(CALX_HERE),                                                     \
   CALX_GRAD_OF_(calx_here_(output, CALX_HERE), inputs, count, __VA_ARGS__, \
                 .size = sizeof(calx_backward_options)))
#define calx_backward(loss) \
  (calx_at_(CALX_HERE), calx_backward(calx_here_(loss, CALX_HERE)))
#define calx_requires_grad(t, on) \
  (calx_at_(CALX_HERE), calx_requires_grad(calx_here_(t, CALX_HERE), on))
#endif
#endif
#endif
