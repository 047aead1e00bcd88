/**
 * calx/loss.h: losses that compare a prediction with a target, elementwise.
 * Part of calx/ops.h, whose conventions hold here; losses over classes are
 * there. The results of the elements are averaged, unless .reduction says
 * otherwise.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_LOSS_H
#define CALX_LOSS_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What becomes of the losses of the single elements. */
typedef enum calx_reduction {
  CALX_REDUCTION_DEFAULT = 0, /* mean */
  CALX_MEAN,
  CALX_SUM,
  CALX_NONE,
  CALX_BATCH_MEAN /* calx_kl_div only: the sum over the first size of x */
} calx_reduction;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
} calx_loss_options;
/** Squared error (x - target)^2. @shape x, target broadcast together
 *  @source torch.nn.functional.mse_loss */
CALX_API calx_tensor *calx_mse_loss_with(calx_tensor *x, calx_tensor *target,
                                         const calx_loss_options *options);
/** Absolute error |x - target|. @shape x, target broadcast together @source
 *  torch.nn.functional.l1_loss */
CALX_API calx_tensor *calx_l1_loss_with(calx_tensor *x, calx_tensor *target,
                                        const calx_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_smooth_l1_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double beta; /* 0 = 1, CALX_ZERO = 0 */
} calx_smooth_l1_loss_options;
/** (x - target)^2 / (2 beta) where the error is less than beta, else |x -
 *  target| - beta / 2. @shape x, target broadcast together @source
 *  torch.nn.functional.smooth_l1_loss */
CALX_API calx_tensor *calx_smooth_l1_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_smooth_l1_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_huber_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double delta; /* 0 = 1 */
} calx_huber_loss_options;
/** (x - target)^2 / 2 where the error is at most delta, else delta (|x -
 *  target| - delta / 2). @shape x, target broadcast together @source
 *  torch.nn.functional.huber_loss */
CALX_API calx_tensor *calx_huber_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_huber_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_binary_cross_entropy_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED calx_tensor *weight; /* NULL: 1; broadcasts with x */
} calx_binary_cross_entropy_options;
/** -(target log(x) + (1 - target) log(1 - x)) of probabilities x;
 *  logarithms are -100 at least. @shape x any; target as x, or a number
 *  @source torch.nn.functional.binary_cross_entropy */
CALX_API calx_tensor *calx_binary_cross_entropy_with(
    calx_tensor *x, calx_tensor *target,
    const calx_binary_cross_entropy_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_binary_cross_entropy_with_logits_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED calx_tensor *weight;     /* NULL: 1; broadcasts with x */
  CALX_NAMED calx_tensor *pos_weight; /* NULL: 1; factor of the positive term */
} calx_binary_cross_entropy_with_logits_options;
/** The same of sigmoid(x), without overflow. @shape x any; target as x, or a
 *  number @source torch.nn.functional.binary_cross_entropy_with_logits */
CALX_API calx_tensor *calx_binary_cross_entropy_with_logits_with(
    calx_tensor *x, calx_tensor *target,
    const calx_binary_cross_entropy_with_logits_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_kl_div_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED bool log_target; /* target is log-probabilities */
} calx_kl_div_options;
/** target (log(target) - x) of log-probabilities x. @shape x, target
 *  broadcast together @source torch.nn.functional.kl_div */
CALX_API calx_tensor *calx_kl_div_with(calx_tensor *x, calx_tensor *target,
                                       const calx_kl_div_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_poisson_nll_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED bool no_log_input; /* x is the rate itself */
  CALX_NAMED bool full;         /* adds the Stirling term */
  CALX_NAMED double eps;        /* of log(x + eps); 0 = 1e-8 */
} calx_poisson_nll_loss_options;
/** e^x - target x. @shape x, target broadcast together @source
 *  torch.nn.functional.poisson_nll_loss */
CALX_API calx_tensor *calx_poisson_nll_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_poisson_nll_loss_options *options);
/** log(1 + e^(-target x)); target is 1 or -1. @shape x, target broadcast
 *  together @source torch.nn.functional.soft_margin_loss */
CALX_API calx_tensor *calx_soft_margin_loss_with(
    calx_tensor *x, calx_tensor *target, const calx_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_hinge_embedding_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double margin; /* 0 = 1, CALX_ZERO = 0 */
} calx_hinge_embedding_loss_options;
/** x where target is 1, max(0, margin - x) where it is -1. @shape x, target
 *  broadcast together @source torch.nn.functional.hinge_embedding_loss */
CALX_API calx_tensor *calx_hinge_embedding_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_hinge_embedding_loss_options *options);

#ifdef __cplusplus
}
#endif
#endif
