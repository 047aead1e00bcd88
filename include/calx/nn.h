/**
 * calx/nn.h: modules, with PyTorch's names and initial values.
 *
 * A module keeps an ordered list of parameters, buffers and children; names
 * joined by dots are PyTorch's state-dict names. A layer is made with its
 * parent and name: making is registering. Parents free children; the model's
 * own struct only borrows. Failures stick to the root: calx_module_error().
 * A layer without a parent (NULL) is a root of its own.
 *
 * @threads thread-compatible
 */
#ifndef CALX_NN_H
#define CALX_NN_H

#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_module calx_module;

/** A module's function of one tensor. @shape as the module says */
typedef calx_tensor *calx_forward_fn(void *self, calx_tensor *x);

/**
 * A root module. Parameters of its layers are made on the current device.
 * @param kind     "MNIST"; copied
 * @param forward  may be NULL: then calx_forward() on it is an error
 * @return never NULL; see calx_module_error
 */
CALX_API calx_module *calx_module_new(const char *kind,
                                      calx_forward_fn *forward, void *self);
/** The same as a child of another module; NULL: a root, without a name.
 *  Modules are nested at most 64 deep. */
CALX_API calx_module *calx_module_child(calx_module *parent, const char *name,
                                        const char *kind,
                                        calx_forward_fn *forward, void *self);
/** Frees a root with all below it; NULL is accepted, a child is not freed. */
CALX_API void calx_module_free(calx_module *root);

/** Registers a parameter: a leaf that requires a gradient, taking init's value.
 *  @param name without a dot, not used before @shape as init
 *  @return the parameter, owned by the module
 *  @errors to the root: a name that is used or has a dot
 */
CALX_API calx_tensor *calx_module_param(calx_module *m, const char *name,
                                        calx_tensor *init);
/** Registers a buffer: saved with the parameters, not trained. @shape as init
 *  @errors as calx_module_param
 */
CALX_API calx_tensor *calx_module_buffer(calx_module *m, const char *name,
                                         calx_tensor *init);

/** The first failure of this module's root; NULL: none. The caller frees it. */
CALX_API calx_status *calx_module_error(calx_module *m) CALX_MUST_USE;

/** Calls the module's function. @shape as the module says
 *  @errors FAILED_PRECONDITION a module without a function, a failed one */
CALX_API calx_tensor *calx_forward(calx_module *m, calx_tensor *x);

/** Sets training mode (true) or evaluation, for the module and all below.
 *  Modules begin in training. @source torch.nn.Module.train */
CALX_API void calx_module_train(calx_module *m, bool training);
CALX_API bool calx_module_is_training(const calx_module *m);
/** "MNIST" */
CALX_API const char *calx_module_kind(const calx_module *m);

/** What a module keeps. */
typedef enum calx_entry_kind { CALX_PARAMETER, CALX_BUFFER } calx_entry_kind;
/** Called for each tensor in state-dict order; path "conv1.weight". */
typedef void calx_visit_fn(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor);
/** Visits a module's parameters, then its buffers, each in the order of their
 *  making, then its children: the order of PyTorch's state_dict(). */
CALX_API void calx_module_visit(calx_module *m, calx_visit_fn *fn, void *user);
/** A parameter or buffer by its path; NULL: none. @shape any @errors none */
CALX_API calx_tensor *calx_module_find(calx_module *m, const char *path);
/** Number of elements of all parameters. */
CALX_API int64_t calx_module_param_count(const calx_module *m);

// ---- layers -----------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_linear_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool no_bias;
  CALX_NAMED calx_dtype dtype; /* default f32 */
} calx_linear_options;
/**
 * y = x W^T + b; weight (out, in), bias (out), both uniform in
 * +-1/sqrt(in) (Kaiming uniform with a = sqrt(5)).
 * @shape x (…, in) -> (…, out)  @source torch.nn.Linear
 */
CALX_API calx_module *calx_nn_linear_with(calx_module *parent, const char *name,
                                          int64_t in, int64_t out,
                                          const calx_linear_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_flatten_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t start_dim; /* 0 = 1, CALX_ZERO_INT = 0 */
  CALX_NAMED int64_t end_dim;   /* 0 = the last */
} calx_nn_flatten_options;
/** calx_flatten, by default of all dimensions but the first, the batch's.
 *  @shape x rank >= 2 by default  @source torch.nn.Flatten */
CALX_API calx_module *calx_nn_flatten_with(
    calx_module *parent, const char *name,
    const calx_nn_flatten_options *options);

/** Zero means default; pairs as in calx_conv2d_options. */
typedef struct CALX_OPTIONS calx_nn_conv2d_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(int64_t, stride);
  CALX_PAIR_(int64_t, padding);
  CALX_PAIR_(int64_t, dilation);
  CALX_NAMED int64_t groups;
  CALX_NAMED bool no_bias;
  CALX_NAMED int64_t kernel_width; /* 0 = as high as wide */
  CALX_NAMED calx_dtype dtype;
} calx_nn_conv2d_options;
/**
 * calx_conv2d with weight (out, in/groups, kernel, kernel) and bias (out), both
 * uniform in +-1/sqrt(in/groups * kernel^2).
 * @shape x (N, in, H, W)  @source torch.nn.Conv2d
 */
CALX_API calx_module *calx_nn_conv2d_with(
    calx_module *parent, const char *name, int64_t in, int64_t out,
    int64_t kernel_size, const calx_nn_conv2d_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_batch_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eps;      /* 0 = 1e-5 */
  CALX_NAMED double momentum; /* 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED bool no_affine;  /* no weight and bias */
  /* batch statistics in evaluation too */
  CALX_NAMED bool no_track_running_stats;
  CALX_NAMED calx_dtype dtype;
} calx_nn_batch_norm_options;
/**
 * calx_batch_norm over (N, H, W) with weight 1, bias 0, running_mean 0,
 * running_var 1 (unbiased, as PyTorch) and num_batches_tracked.
 * @shape x (N, features, H, W)  @source torch.nn.BatchNorm2d
 */
CALX_API calx_module *calx_nn_batch_norm2d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options);

/**
 * The same over the batches of all ranks, and for (N, features, …) of any rank:
 * each rank's statistics are gathered, gradients flow back through them. With
 * one rank it is calx_batch_norm. All ranks' batches are of one size.
 * @shape x (N, features, …)  @source torch.nn.SyncBatchNorm
 */
CALX_API calx_module *calx_nn_sync_batch_norm_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options);
/** Makes every BatchNorm layer of a model a SyncBatchNorm, in place: parameters
 *  and buffers stay. NULL is accepted.
 *  @source torch.nn.SyncBatchNorm.convert_sync_batchnorm */
CALX_API void calx_convert_sync_batchnorm(calx_module *model);

#ifdef __cplusplus
}
#else
#define CALX_NN_LINEAR_(parent, name, in, out, ...) \
  calx_nn_linear_with(parent, name, in, out,        \
                      &(calx_linear_options){ __VA_ARGS__ })
#define CALX_NN_FLATTEN_(parent, name, ...) \
  calx_nn_flatten_with(parent, name, &(calx_nn_flatten_options){ __VA_ARGS__ })
#define CALX_NN_CONV2D_(parent, name, in, out, kernel, ...) \
  calx_nn_conv2d_with(parent, name, in, out, kernel,        \
                      &(calx_nn_conv2d_options){ __VA_ARGS__ })
#define CALX_NN_BATCH_NORM2D_(parent, name, features, ...) \
  calx_nn_batch_norm2d_with(parent, name, features,        \
                            &(calx_nn_batch_norm_options){ __VA_ARGS__ })
#define CALX_NN_SYNC_BATCH_NORM_(parent, name, features, ...) \
  calx_nn_sync_batch_norm_with(parent, name, features,        \
                               &(calx_nn_batch_norm_options){ __VA_ARGS__ })
#ifdef CALX_NO_SITES
#define CALX_SITE_
#else
#define CALX_SITE_ calx_at_(CALX_HERE),
#define calx_forward(m, x) \
  (calx_at_(CALX_HERE), calx_forward(m, calx_here_(x, CALX_HERE)))
#define calx_module_param(m, name, init) \
  (calx_at_(CALX_HERE), calx_module_param(m, name, init))
#define calx_module_buffer(m, name, init) \
  (calx_at_(CALX_HERE), calx_module_buffer(m, name, init))
#endif
#define calx_nn_linear(parent, name, in, ...)                \
  (CALX_SITE_ CALX_NN_LINEAR_(parent, name, in, __VA_ARGS__, \
                              .size = sizeof(calx_linear_options)))
#define calx_nn_flatten(parent, ...)                \
  (CALX_SITE_ CALX_NN_FLATTEN_(parent, __VA_ARGS__, \
                               .size = sizeof(calx_nn_flatten_options)))
#define calx_nn_conv2d(parent, name, in, out, ...)                \
  (CALX_SITE_ CALX_NN_CONV2D_(parent, name, in, out, __VA_ARGS__, \
                              .size = sizeof(calx_nn_conv2d_options)))
#define calx_nn_batch_norm2d(parent, name, ...) \
  (CALX_SITE_ CALX_NN_BATCH_NORM2D_(            \
      parent, name, __VA_ARGS__, .size = sizeof(calx_nn_batch_norm_options)))
#define calx_nn_sync_batch_norm(parent, name, ...) \
  (CALX_SITE_ CALX_NN_SYNC_BATCH_NORM_(            \
      parent, name, __VA_ARGS__, .size = sizeof(calx_nn_batch_norm_options)))
#endif
#endif
