/**
 * calx/swa_utils.h: averages of a model's weights over the steps of training,
 * as torch.optim.swa_utils has them.
 *
 *   calx_module *average = calx_averaged_model(NULL, NULL, .decay = 0.999);
 *   net_make(&other, average, "module");      // the model's layers once more
 *   …
 *   calx_averaged_model_update_parameters(average, net.root);   // each step
 *   calx_update_bn(average, next_batch, &loader);               // at the end
 *
 * An average is a module: it is called, saved and loaded as one, and its state
 * dict is PyTorch's: "n_averaged" and "module.NAME".
 *
 * @threads thread-compatible
 */
#ifndef CALX_SWA_UTILS_H
#define CALX_SWA_UTILS_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The next average of a tensor. n: how many values the average has so far, an
 *  i64 of one element, not 0. @shape averaged and current are alike, as the
 *  result */
typedef calx_tensor *calx_average_fn(void *user, calx_tensor *averaged,
                                     calx_tensor *current, calx_tensor *n);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_averaged_model_options {
  CALX_NAMED size_t size;
  /* 0: the mean of all values (SWA). Else the exponential average (EMA),
     decay * averaged + (1 - decay) * current; in (0, 1] */
  CALX_NAMED double decay;
  CALX_NAMED calx_average_fn *avg_fn; /* another average; not with decay */
  CALX_NAMED void *user;              /* what avg_fn is given */
  /* buffers are averaged too; else each update copies them */
  CALX_NAMED bool use_buffers;
} calx_averaged_model_options;
/**
 * A module that is to have a child "module" of the same layers as the model
 * that is averaged; its forward is the child's.
 * @errors to the root: INVALID_ARGUMENT a decay out of range, or with avg_fn
 * @source torch.optim.swa_utils.AveragedModel
 */
CALX_API calx_module *calx_averaged_model_with(
    calx_module *parent, const char *name,
    const calx_averaged_model_options *options);
/**
 * Takes the model's present values into the average; the first time they are
 * copied. Nothing runs before the next sync.
 * @errors through the scope: INVALID_ARGUMENT no AveragedModel with a child, a
 *         model of other names, shapes or types: nothing changes then
 * @source torch.optim.swa_utils.AveragedModel.update_parameters
 */
CALX_API void calx_averaged_model_update_parameters(calx_module *average,
                                                    calx_module *model);

/** The next batch of a pass over the data; NULL: there is none.
 *  @shape as the model takes */
typedef calx_tensor *calx_batch_fn(void *user);
/**
 * Makes the running statistics of a model's BatchNorm layers those of the data:
 * they begin anew, and a forward in training mode over all batches gives their
 * cumulative average. Each batch is run by a sync.
 * @errors through the scope: those of the forward
 * @source torch.optim.swa_utils.update_bn
 */
CALX_API void calx_update_bn(calx_module *model, calx_batch_fn *next,
                             void *user);

#ifdef __cplusplus
}
#else
#define calx_averaged_model(...)                                      \
  CALX_CALL_2_(calx_averaged_model_with, calx_averaged_model_options, \
               __VA_ARGS__)
#endif
#endif
