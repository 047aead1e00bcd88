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

/** Zero means default. */
typedef struct CALX_OPTIONS calx_margin_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double margin; /* 0 = 0 */
} calx_margin_loss_options;
/** max(0, -target (x - y) + margin); target is 1 where x is to be the greater
 *  one, else -1. @shape of one rank, broadcast together
 *  @source torch.nn.functional.margin_ranking_loss */
CALX_API calx_tensor *calx_margin_ranking_loss_with(
    calx_tensor *x, calx_tensor *y, calx_tensor *target,
    const calx_margin_loss_options *options);
/** 1 - c where target is 1, max(0, c - margin) where it is -1, with c the
 *  cosine of the angle between x and y. @shape x, y (N, D), target (N); or
 *  (D), (D), () @source torch.nn.functional.cosine_embedding_loss */
CALX_API calx_tensor *calx_cosine_embedding_loss_with(
    calx_tensor *x, calx_tensor *y, calx_tensor *target,
    const calx_margin_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_triplet_margin_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double margin; /* 0 = 1; positive */
  CALX_NAMED double p;      /* of the norm; 0 = 2 */
  CALX_NAMED double eps;    /* added to differences; 0 = 1e-6, CALX_ZERO = 0 */
  CALX_NAMED bool swap;     /* the positive's distance to the negative counts
                               where it is less than the anchor's */
} calx_triplet_margin_loss_options;
/** max(0, margin + d(anchor, positive) - d(anchor, negative)), with d of
 *  calx_pairwise_distance. @shape (N, D) or (D), of one rank
 *  @source torch.nn.functional.triplet_margin_loss */
CALX_API calx_tensor *calx_triplet_margin_loss_with(
    calx_tensor *anchor, calx_tensor *positive, calx_tensor *negative,
    const calx_triplet_margin_loss_options *options);
/** A distance of x and y. @shape as the function says */
typedef calx_tensor *calx_distance_fn(void *user, calx_tensor *x,
                                      calx_tensor *y);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_triplet_margin_with_distance_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED double margin; /* 0 = 1; positive */
  CALX_NAMED bool swap;
  CALX_NAMED calx_distance_fn
      *distance_function; /* NULL: calx_pairwise_distance */
  CALX_NAMED void *user;  /* what the function is given */
} calx_triplet_margin_with_distance_loss_options;
/** The same with a distance of one's own. @shape of one rank
 *  @source torch.nn.functional.triplet_margin_with_distance_loss */
CALX_API calx_tensor *calx_triplet_margin_with_distance_loss_with(
    calx_tensor *anchor, calx_tensor *positive, calx_tensor *negative,
    const calx_triplet_margin_with_distance_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_multi_margin_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED int p;               /* 1 or 2; 0 = 1 */
  CALX_NAMED double margin;       /* 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED calx_tensor *weight; /* NULL: 1; one per class; shape (C) */
} calx_multi_margin_loss_options;
/** The sum over all classes i but the target's y of weight[y] max(0, margin -
 *  x[y] + x[i])^p, divided by C. A class outside [0, C) makes the result NaN.
 *  @shape x (N, C) or (C), target integers (N) or () @grad x
 *  @source torch.nn.functional.multi_margin_loss */
CALX_API calx_tensor *calx_multi_margin_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_multi_margin_loss_options *options);
/** The sum of max(0, 1 - (x[j] - x[i])) over the target's classes j and all
 *  other classes i, divided by C. A target row is a list of classes that the
 *  first negative number ends. A class of C or more makes the result NaN. It
 *  holds C^2 numbers for each row. @shape x (N, C) or (C), target integers as
 *  x @grad x @source torch.nn.functional.multilabel_margin_loss */
CALX_API calx_tensor *calx_multilabel_margin_loss_with(
    calx_tensor *x, calx_tensor *target, const calx_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_multilabel_soft_margin_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED calx_tensor *weight; /* NULL: 1; broadcasts with x */
} calx_multilabel_soft_margin_loss_options;
/** calx_binary_cross_entropy_with_logits, averaged over the last dimension.
 *  @shape x, target (…, C) broadcast together
 *  @source torch.nn.functional.multilabel_soft_margin_loss */
CALX_API calx_tensor *calx_multilabel_soft_margin_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_multilabel_soft_margin_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_gaussian_nll_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED bool full;  /* adds log(2 pi) / 2 */
  CALX_NAMED double eps; /* the least variance; 0 = 1e-6, CALX_ZERO = 0 */
} calx_gaussian_nll_loss_options;
/** (log(var) + (x - target)^2 / var) / 2. A variance below eps counts as eps,
 *  with the gradient of its own; a negative one, which is an error in PyTorch,
 *  too: values are not read. @shape target broadcasts with x; var as x, or
 *  without its last dimension, or with 1 there
 *  @source torch.nn.functional.gaussian_nll_loss */
CALX_API calx_tensor *calx_gaussian_nll_loss_with(
    calx_tensor *x, calx_tensor *target, calx_tensor *var,
    const calx_gaussian_nll_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_ctc_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_reduction reduction; /* mean: of the losses divided by the
                                          lengths of their targets */
  CALX_NAMED int64_t blank;            /* its class */
  CALX_NAMED bool zero_infinity; /* targets too long for their input count 0 */
} calx_ctc_loss_options;
/**
 * Connectionist temporal classification: minus the logarithm of the sum, over
 * all alignments of a target with its input, of their probabilities (A. Graves
 * et al., 2006). One loop over the steps; the gradient is one more, and is
 * PyTorch's: that of log-probabilities that calx_log_softmax made. It has no
 * second derivative.
 * @param targets  classes without the blank; of one dimension: those of all
 *                 samples one after the other, which takes memory for N times
 *                 as many
 * @param input_lengths, target_lengths  integers (N), at most T and S; of
 *                 others the result is not defined
 * @shape log_probs (T, N, C), targets (N, S) or (sum of lengths); or (T, C),
 *        (S) and lengths () or (1)
 * @dtype bf16 and f16 compute in f32, which the result is @grad log_probs
 * @source torch.nn.functional.ctc_loss
 */
CALX_API calx_tensor *calx_ctc_loss_with(calx_tensor *log_probs,
                                         calx_tensor *targets,
                                         calx_tensor *input_lengths,
                                         calx_tensor *target_lengths,
                                         const calx_ctc_loss_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_linear_cross_entropy_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *linear_bias; /* NULL: none; shape (C, …) */
  CALX_NAMED calx_tensor *weight;      /* NULL: 1; one per class; shape (C) */
  CALX_NAMED calx_reduction reduction;
  /* 0 = -100, CALX_ZERO_INT = 0; not with a target of probabilities */
  CALX_NAMED int64_t ignore_index;
  CALX_NAMED double label_smoothing; /* in [0, 1] */
} calx_linear_cross_entropy_options;
/** calx_cross_entropy(calx_linear(x, linear_weight, linear_bias), target). The
 *  logits are computed whole: PyTorch's chunks have no counterpart.
 *  @shape x (N, in), linear_weight (C, …, in), target i64 (N, …) or
 *  probabilities (N, C, …); or (in), (C, in) and ()
 *  @grad x, linear_weight, linear_bias, a target of probabilities
 *  @source torch.nn.functional.linear_cross_entropy */
CALX_API calx_tensor *calx_linear_cross_entropy_with(
    calx_tensor *x, calx_tensor *linear_weight, calx_tensor *target,
    const calx_linear_cross_entropy_options *options);
#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_smooth_l1_loss_options_ .beta = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_smooth_l1_loss_options, calx_written_(&o->beta);)
#define CALX_UNWRITTEN_calx_hinge_embedding_loss_options_ \
  .margin = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_hinge_embedding_loss_options, calx_written_(&o->margin);)
#define CALX_UNWRITTEN_calx_triplet_margin_loss_options_ .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_triplet_margin_loss_options, calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_multi_margin_loss_options_ \
  .margin = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_multi_margin_loss_options, calx_written_(&o->margin);)
#define CALX_UNWRITTEN_calx_gaussian_nll_loss_options_ .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_gaussian_nll_loss_options, calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_linear_cross_entropy_options_ \
  .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_linear_cross_entropy_options,
              calx_written_int_(&o->ignore_index);)
#endif
#ifdef __cplusplus
}
#endif
#endif
