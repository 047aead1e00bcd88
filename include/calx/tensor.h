/**
 * calx/tensor.h: tensors, how they come from the host and go back.
 *
 * A tensor on a device is lazy: an op records a node of a graph, and
 * calx_sync() compiles and runs what the step needs. A host tensor is a handle
 * for transfer only; an op that is given one fails as PyTorch/XLA's do.
 *
 * Handles are never NULL as results; NULL as an argument means "absent". A
 * failed call gives a poisoned tensor: rank 0, size 0, item NaN.
 *
 * @threads thread-compatible: concurrent use as operands is safe, assignment
 *          needs the caller's lock
 */
#ifndef CALX_TENSOR_H
#define CALX_TENSOR_H

#include <stdbool.h>

#include "calx/device.h"
#include "calx/dtype.h"
#include "calx/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_tensor calx_tensor;

// ---- ownership --------------------------------------------------------------
// @shape any  @errors none

/** Makes the caller a further owner; the tensor is durable from then on: a sync
 *  materialises it. @return the tensor itself */
CALX_API calx_tensor *calx_retain(calx_tensor *tensor);

/** Ends one ownership; NULL is accepted. */
CALX_API void calx_release(calx_tensor *tensor);

/** Retains, and takes the tensor out of its scope: for bindings and caches. */
CALX_API calx_tensor *calx_take(calx_tensor *tensor);

// ---- from the host ----------------------------------------------------------

/**
 * A tensor on the current device, with a copy of row-major host data.
 * @param data   elements of `dtype`, as many as the shape has; bool is a byte
 * @shape        shape  @dtype any
 * @errors       INVALID_ARGUMENT bad dtype, negative size, rank over 8
 * @owner        the current scope
 * @source       torch.tensor
 */
CALX_API calx_tensor *calx_tensor_from(const void *data, calx_dtype dtype,
                                       calx_dims shape);

/** The same, kept on the host: only to be moved with calx_to().
 *  @shape shape  @errors as calx_tensor_from  @owner the current scope */
CALX_API calx_tensor *calx_host_tensor(const void *data, calx_dtype dtype,
                                       calx_dims shape);

/**
 * A copy of the tensor on a device (NULL: the current one); the tensor itself
 * when it is there already. No gradient flows back.
 * @shape as tensor  @errors those of an upload  @owner the current scope
 * @source torch.Tensor.to
 */
CALX_API calx_tensor *calx_to(calx_tensor *tensor, calx_device *device);

// ---- to the host ------------------------------------------------------------

/**
 * A host copy. A pending tensor is computed first; nothing expires by that.
 * @shape as tensor  @errors those of an execution  @owner the current scope
 * @source torch.Tensor.cpu
 */
CALX_API calx_tensor *calx_cpu(calx_tensor *tensor);

/** A host tensor's elements, row-major; NULL for any other tensor. */
CALX_API const void *calx_host_data(const calx_tensor *tensor);

/**
 * Copies the elements to `data`, row-major.
 * @param bytes  must be the elements' size exactly
 * @shape tensor any
 * @errors INVALID_ARGUMENT bytes differ; and those of an execution
 */
CALX_API calx_status *calx_tensor_read(calx_tensor *tensor, void *data,
                                       size_t bytes) CALX_MUST_USE;

/** The only element, as a number. NaN on failure, which the scope reports.
 *  @shape one element  @errors INVALID_ARGUMENT not one element
 *  @source torch.Tensor.item */
CALX_API double calx_item(calx_tensor *tensor);

/** The same, exact for 64-bit integers; 0 on failure.
 *  @shape one element  @errors as calx_item */
CALX_API int64_t calx_item_int(calx_tensor *tensor);

/** Whether reading the tensor would not wait. @shape any @errors none */
CALX_API bool calx_is_ready(const calx_tensor *tensor);

/**
 * Prints as PyTorch does: tensor([[1., 2.]], device='xla:0').
 * @shape any  @errors those of an execution, through the scope
 */
CALX_API void calx_print(calx_tensor *tensor);

/** The same text; the caller frees it with calx_string_free(). NULL on failure.
 *  @shape any  @errors as calx_print */
CALX_API char *calx_tensor_str(calx_tensor *tensor);
/** Frees a text that the library gave. NULL is accepted. */
CALX_API void calx_string_free(char *text);

// ---- queries: never fail ----------------------------------------------------

/** Number of dimensions. */
CALX_API size_t calx_tensor_rank(const calx_tensor *tensor);
/** Size of dimension `dim`; negative counts from the end; 0 when there is none.
 */
CALX_API int64_t calx_tensor_dim(const calx_tensor *tensor, int dim);
/** The sizes; borrowed, lives as long as the tensor keeps its value. */
CALX_API calx_dims calx_tensor_shape(const calx_tensor *tensor);
/** Number of elements. */
CALX_API int64_t calx_tensor_numel(const calx_tensor *tensor);
/** Type of the elements. */
CALX_API calx_dtype calx_tensor_dtype(const calx_tensor *tensor);
/** NULL for a host tensor. */
CALX_API calx_device *calx_tensor_device(const calx_tensor *tensor);
/** Whether it is a handle for transfer only. */
CALX_API bool calx_tensor_is_host(const calx_tensor *tensor);
/** Why the tensor is poisoned; NULL: it is not. Owned by the tensor. */
CALX_API const calx_status *calx_tensor_error(const calx_tensor *tensor);

// ---- running what was recorded ----------------------------------------------

/**
 * Compiles (once) and runs the step: every durable tensor with a pending value
 * and those named materialise; every other pending temporary of the current
 * scope expires. Returns when the step is launched; errors go to the scope.
 * A sync whose scope holds an error runs nothing and puts durable tensors back.
 *
 * calx_sync(loss), calx_sync(a, b), calx_sync(NULL) names none.
 *
 * @shape any
 * @errors RESOURCE_EXHAUSTED, INTERNAL … as the plugin tells them, now or at
 *         the next sync, item or scope end, with the site of this sync
 * @source torch_xla.sync
 */
CALX_API void calx_sync_n(calx_tensor *const *named, size_t count);

// ---- after a step -----------------------------------------------------------

/** What runs after a sync, in a scope of its own, with the tensors' values of
 *  that step. @return NULL, or why it failed */
typedef calx_status *calx_closure_fn(void *user, calx_tensor *const *tensors,
                                     size_t n);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_step_closure_options {
  CALX_NAMED size_t size;
  /* on a thread of the library's, in the order of the adds */
  CALX_NAMED bool run_async;
} calx_step_closure_options;

/**
 * Runs `fn` once, after the calling rank's next sync, which materialises the
 * tensors: to print a loss without reading it in the middle of the step. Before
 * the sync returns; an asynchronous one after it, when at most 100 of them
 * wait. A failure is the sync's; an asynchronous one's is the next asynchronous
 * add's, which is not run then. A step that fails drops its closures, and so
 * does a rank that ends without a sync.
 * @param user     must stay until the closure has run
 * @param tensors  retained until then
 * @shape any
 * @errors INVALID_ARGUMENT no function, no tensors or a NULL one; a poisoned
 *         tensor's own;
 *         an asynchronous closure's before; all through the scope
 * @source torch_xla add_step_closure
 */
CALX_API void calx_add_step_closure_with(
    calx_closure_fn *fn, void *user, calx_tensor *const *tensors, size_t n,
    const calx_step_closure_options *options);
/** Waits until the calling rank's asynchronous closures have run.
 *  @errors the first failure among them that no add has told
 *          FAILED_PRECONDITION an asynchronous closure calls it */
CALX_API calx_status *calx_wait_step_closures(void) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
#define CALX_SYNC_(...)                      \
  calx_sync_n(                               \
      (calx_tensor *const[]){ __VA_ARGS__ }, \
      sizeof((calx_tensor *const[]){ __VA_ARGS__ }) / sizeof(calx_tensor *))
#define CALX_STEP_CLOSURE_(fn, user, tensors, n, ...) \
  calx_add_step_closure_with(fn, user, tensors, n,    \
                             &(calx_step_closure_options){ __VA_ARGS__ })
#define CALX_ADD_STEP_CLOSURE_(...) \
  CALX_STEP_CLOSURE_(__VA_ARGS__, .size = sizeof(calx_step_closure_options))
#ifdef CALX_NO_SITES
#define calx_sync(...) CALX_SYNC_(__VA_ARGS__)
#define calx_add_step_closure(...) CALX_ADD_STEP_CLOSURE_(__VA_ARGS__)
#else
/* Sets the call site again after an operand was evaluated that set its own. */
static inline calx_tensor *calx_here_(calx_tensor *tensor,
                                      const calx_site *site)
{
  calx_at_(site);
  return tensor;
}
static inline const void *calx_options_here_(const void *options,
                                             const calx_site *site)
{
  calx_at_(site);
  return options;
}
#define CALX_SYNC_HERE_(...)                                                  \
  calx_sync_n(                                                                \
      calx_options_here_(((calx_tensor *const[]){ __VA_ARGS__ }), CALX_HERE), \
      sizeof((calx_tensor *const[]){ __VA_ARGS__ }) / sizeof(calx_tensor *))
#define calx_sync(...) (calx_at_(CALX_HERE), CALX_SYNC_HERE_(__VA_ARGS__))
#define calx_add_step_closure(...) \
  (calx_at_(CALX_HERE), CALX_ADD_STEP_CLOSURE_(__VA_ARGS__))
#define calx_tensor_from(data, dtype, ...) \
  (calx_at_(CALX_HERE), calx_tensor_from(data, dtype, __VA_ARGS__))
#define calx_host_tensor(data, dtype, ...) \
  (calx_at_(CALX_HERE), calx_host_tensor(data, dtype, __VA_ARGS__))
#define calx_to(t, device) \
  (calx_at_(CALX_HERE), calx_to(calx_here_(t, CALX_HERE), device))
#define calx_cpu(t) (calx_at_(CALX_HERE), calx_cpu(calx_here_(t, CALX_HERE)))
#define calx_tensor_read(t, data, bytes) \
  (calx_at_(CALX_HERE), calx_tensor_read(calx_here_(t, CALX_HERE), data, bytes))
#define calx_item(t) (calx_at_(CALX_HERE), calx_item(calx_here_(t, CALX_HERE)))
#define calx_item_int(t) \
  (calx_at_(CALX_HERE), calx_item_int(calx_here_(t, CALX_HERE)))
#define calx_print(t) \
  (calx_at_(CALX_HERE), calx_print(calx_here_(t, CALX_HERE)))
#define calx_tensor_str(t) \
  (calx_at_(CALX_HERE), calx_tensor_str(calx_here_(t, CALX_HERE)))
#define calx_retain(t) \
  (calx_at_(CALX_HERE), calx_retain(calx_here_(t, CALX_HERE)))
#endif
#endif
#endif
