/**
 * calx/layers_loss.h: the losses of torch.nn as layers. Part of calx/layers.h,
 * whose conventions hold here. Each is a function of calx/loss.h or calx/ops.h
 * with its options, and is called with the function's tensors by
 * calx_forward2(), calx_forward3() or, with four, calx_forward_n(). A weight
 * among the options is a buffer, which state dicts have.
 */
#ifndef CALX_LAYERS_LOSS_H
#define CALX_LAYERS_LOSS_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** calx_l1_loss. @source torch.nn.L1Loss */
CALX_API calx_module *calx_nn_l1_loss_with(calx_module *parent,
                                           const char *name,
                                           const calx_loss_options *options);
/** calx_mse_loss. @source torch.nn.MSELoss */
CALX_API calx_module *calx_nn_mse_loss_with(calx_module *parent,
                                            const char *name,
                                            const calx_loss_options *options);
/** calx_smooth_l1_loss. @source torch.nn.SmoothL1Loss */
CALX_API calx_module *calx_nn_smooth_l1_loss_with(
    calx_module *parent, const char *name,
    const calx_smooth_l1_loss_options *options);
/** calx_huber_loss. @source torch.nn.HuberLoss */
CALX_API calx_module *calx_nn_huber_loss_with(
    calx_module *parent, const char *name,
    const calx_huber_loss_options *options);
/** calx_kl_div. @source torch.nn.KLDivLoss */
CALX_API calx_module *calx_nn_kl_div_loss_with(
    calx_module *parent, const char *name, const calx_kl_div_options *options);
/** calx_poisson_nll_loss. @source torch.nn.PoissonNLLLoss */
CALX_API calx_module *calx_nn_poisson_nll_loss_with(
    calx_module *parent, const char *name,
    const calx_poisson_nll_loss_options *options);
/** calx_soft_margin_loss. @source torch.nn.SoftMarginLoss */
CALX_API calx_module *calx_nn_soft_margin_loss_with(
    calx_module *parent, const char *name, const calx_loss_options *options);
/** calx_hinge_embedding_loss. @source torch.nn.HingeEmbeddingLoss */
CALX_API calx_module *calx_nn_hinge_embedding_loss_with(
    calx_module *parent, const char *name,
    const calx_hinge_embedding_loss_options *options);
/** calx_multilabel_margin_loss. @source torch.nn.MultiLabelMarginLoss */
CALX_API calx_module *calx_nn_multi_label_margin_loss_with(
    calx_module *parent, const char *name, const calx_loss_options *options);
/** calx_margin_ranking_loss. @source torch.nn.MarginRankingLoss */
CALX_API calx_module *calx_nn_margin_ranking_loss_with(
    calx_module *parent, const char *name,
    const calx_margin_loss_options *options);
/** calx_cosine_embedding_loss. @source torch.nn.CosineEmbeddingLoss */
CALX_API calx_module *calx_nn_cosine_embedding_loss_with(
    calx_module *parent, const char *name,
    const calx_margin_loss_options *options);
/** calx_triplet_margin_loss. @source torch.nn.TripletMarginLoss */
CALX_API calx_module *calx_nn_triplet_margin_loss_with(
    calx_module *parent, const char *name,
    const calx_triplet_margin_loss_options *options);
/** calx_triplet_margin_with_distance_loss. @source
 * torch.nn.TripletMarginWithDistanceLoss */
CALX_API calx_module *calx_nn_triplet_margin_with_distance_loss_with(
    calx_module *parent, const char *name,
    const calx_triplet_margin_with_distance_loss_options *options);
/** calx_gaussian_nll_loss. @source torch.nn.GaussianNLLLoss */
CALX_API calx_module *calx_nn_gaussian_nll_loss_with(
    calx_module *parent, const char *name,
    const calx_gaussian_nll_loss_options *options);
/** calx_ctc_loss. @source torch.nn.CTCLoss */
CALX_API calx_module *calx_nn_ctc_loss_with(
    calx_module *parent, const char *name,
    const calx_ctc_loss_options *options);
/** calx_nll_loss. @source torch.nn.NLLLoss */
CALX_API calx_module *calx_nn_nll_loss_with(
    calx_module *parent, const char *name,
    const calx_nll_loss_options *options);
/** calx_cross_entropy. @source torch.nn.CrossEntropyLoss */
CALX_API calx_module *calx_nn_cross_entropy_loss_with(
    calx_module *parent, const char *name,
    const calx_nll_loss_options *options);
/** calx_binary_cross_entropy. @source torch.nn.BCELoss */
CALX_API calx_module *calx_nn_bce_loss_with(
    calx_module *parent, const char *name,
    const calx_binary_cross_entropy_options *options);
/** calx_multi_margin_loss. @source torch.nn.MultiMarginLoss */
CALX_API calx_module *calx_nn_multi_margin_loss_with(
    calx_module *parent, const char *name,
    const calx_multi_margin_loss_options *options);
/** calx_multilabel_soft_margin_loss. @source torch.nn.MultiLabelSoftMarginLoss
 */
CALX_API calx_module *calx_nn_multi_label_soft_margin_loss_with(
    calx_module *parent, const char *name,
    const calx_multilabel_soft_margin_loss_options *options);
/** calx_binary_cross_entropy_with_logits. @source torch.nn.BCEWithLogitsLoss */
CALX_API calx_module *calx_nn_bce_with_logits_loss_with(
    calx_module *parent, const char *name,
    const calx_binary_cross_entropy_with_logits_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_linear_cross_entropy_loss_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims out_features; /* of a loss of several dimensions */
  CALX_NAMED bool bias;              /* the linear layer has one */
  CALX_NAMED calx_tensor *weight;    /* NULL: 1; one per class; shape (C) */
  CALX_NAMED calx_reduction reduction;
  CALX_NAMED int64_t ignore_index;   /* 0 = -100, CALX_ZERO_INT = 0 */
  CALX_NAMED double label_smoothing; /* in [0, 1] */
  CALX_NAMED calx_dtype dtype;       /* default: f32 */
} calx_linear_cross_entropy_loss_options;
/** calx_linear_cross_entropy with the linear layer as a child, "linear".
 *  @source torch.nn.LinearCrossEntropyLoss */
CALX_API calx_module *calx_nn_linear_cross_entropy_loss_with(
    calx_module *parent, const char *name, int64_t in_features,
    int64_t num_classes, const calx_linear_cross_entropy_loss_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adaptive_log_softmax_options {
  CALX_NAMED size_t size;
  CALX_NAMED double div_value; /* 0 = 4; of the features of each cluster */
  CALX_NAMED bool head_bias;   /* the head's linear layer has one */
  CALX_NAMED calx_dtype dtype; /* default: f32 */
} calx_adaptive_log_softmax_options;
/**
 * The loss over very many classes that are ordered by frequency: the first ones
 * have a number each in the head, the others are clusters with smaller layers
 * (E. Grave et al., Efficient softmax approximation for GPUs, 2016).
 * calx_forward2(m, x, target) is the loss, the mean of minus the
 * log-probabilities. All clusters are computed for all rows, since programs
 * have fixed sizes; a target outside of the classes makes the loss NaN.
 * @param cutoffs  ascending numbers of classes, at which clusters begin
 * @shape x (N, in_features) or (in_features), target i64 (N) or ()
 * @source torch.nn.AdaptiveLogSoftmaxWithLoss
 */
CALX_API calx_module *calx_nn_adaptive_log_softmax_with_loss_with(
    calx_module *parent, const char *name, int64_t in_features,
    int64_t n_classes, calx_dims cutoffs,
    const calx_adaptive_log_softmax_options *options);
/** What calx_forward2 averages: the log-probability of each row's target.
 *  @param out_loss  may be NULL @shape x (N, in_features), target (N) -> (N)
 *  @errors  INVALID_ARGUMENT another layer, sizes that do not fit
 *  @source torch.nn.AdaptiveLogSoftmaxWithLoss.forward */
CALX_API calx_tensor *calx_adaptive_log_softmax_forward(calx_module *m,
                                                        calx_tensor *x,
                                                        calx_tensor *target,
                                                        calx_tensor **out_loss);
/** The log-probabilities of all classes. @shape (N, in_features) -> (N,
 * classes)
 *  @errors  as calx_adaptive_log_softmax_forward
 *  @source torch.nn.AdaptiveLogSoftmaxWithLoss.log_prob */
CALX_API calx_tensor *calx_adaptive_log_softmax_log_prob(calx_module *m,
                                                         calx_tensor *x);
/** The class of the greatest of them; i64. @shape (N, in_features) -> (N)
 *  @errors  as calx_adaptive_log_softmax_forward
 *  @source torch.nn.AdaptiveLogSoftmaxWithLoss.predict */
CALX_API calx_tensor *calx_adaptive_log_softmax_predict(calx_module *m,
                                                        calx_tensor *x);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_linear_cross_entropy_loss_options_ \
  .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_linear_cross_entropy_loss_options,
              calx_written_int_(&o->ignore_index);)
#endif
#ifdef __cplusplus
}
#else
// clang-format off
#define calx_nn_l1_loss(...) CALX_CALL_2_(calx_nn_l1_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_mse_loss(...) CALX_CALL_2_(calx_nn_mse_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_smooth_l1_loss(...) CALX_CALL_2_W_(calx_nn_smooth_l1_loss_with, calx_smooth_l1_loss_options, __VA_ARGS__)
#define calx_nn_huber_loss(...) CALX_CALL_2_(calx_nn_huber_loss_with, calx_huber_loss_options, __VA_ARGS__)
#define calx_nn_kl_div_loss(...) CALX_CALL_2_(calx_nn_kl_div_loss_with, calx_kl_div_options, __VA_ARGS__)
#define calx_nn_poisson_nll_loss(...) CALX_CALL_2_(calx_nn_poisson_nll_loss_with, calx_poisson_nll_loss_options, __VA_ARGS__)
#define calx_nn_soft_margin_loss(...) CALX_CALL_2_(calx_nn_soft_margin_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_hinge_embedding_loss(...) CALX_CALL_2_W_(calx_nn_hinge_embedding_loss_with, calx_hinge_embedding_loss_options, __VA_ARGS__)
#define calx_nn_multi_label_margin_loss(...) CALX_CALL_2_(calx_nn_multi_label_margin_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_margin_ranking_loss(...) CALX_CALL_2_(calx_nn_margin_ranking_loss_with, calx_margin_loss_options, __VA_ARGS__)
#define calx_nn_cosine_embedding_loss(...) CALX_CALL_2_(calx_nn_cosine_embedding_loss_with, calx_margin_loss_options, __VA_ARGS__)
#define calx_nn_triplet_margin_loss(...) CALX_CALL_2_W_(calx_nn_triplet_margin_loss_with, calx_triplet_margin_loss_options, __VA_ARGS__)
#define calx_nn_triplet_margin_with_distance_loss(...) CALX_CALL_2_(calx_nn_triplet_margin_with_distance_loss_with, calx_triplet_margin_with_distance_loss_options, __VA_ARGS__)
#define calx_nn_gaussian_nll_loss(...) CALX_CALL_2_W_(calx_nn_gaussian_nll_loss_with, calx_gaussian_nll_loss_options, __VA_ARGS__)
#define calx_nn_ctc_loss(...) CALX_CALL_2_(calx_nn_ctc_loss_with, calx_ctc_loss_options, __VA_ARGS__)
#define calx_nn_nll_loss(...) CALX_CALL_2_W_(calx_nn_nll_loss_with, calx_nll_loss_options, __VA_ARGS__)
#define calx_nn_cross_entropy_loss(...) CALX_CALL_2_W_(calx_nn_cross_entropy_loss_with, calx_nll_loss_options, __VA_ARGS__)
#define calx_nn_bce_loss(...) CALX_CALL_2_(calx_nn_bce_loss_with, calx_binary_cross_entropy_options, __VA_ARGS__)
#define calx_nn_multi_margin_loss(...) CALX_CALL_2_W_(calx_nn_multi_margin_loss_with, calx_multi_margin_loss_options, __VA_ARGS__)
#define calx_nn_multi_label_soft_margin_loss(...) CALX_CALL_2_(calx_nn_multi_label_soft_margin_loss_with, calx_multilabel_soft_margin_loss_options, __VA_ARGS__)
#define calx_nn_bce_with_logits_loss(...) CALX_CALL_2_(calx_nn_bce_with_logits_loss_with, calx_binary_cross_entropy_with_logits_options, __VA_ARGS__)
#define calx_nn_linear_cross_entropy_loss(...) CALX_CALL_4_W_(calx_nn_linear_cross_entropy_loss_with, calx_linear_cross_entropy_loss_options, __VA_ARGS__)
#define calx_nn_adaptive_log_softmax_with_loss(...) CALX_CALL_5_(calx_nn_adaptive_log_softmax_with_loss_with, calx_adaptive_log_softmax_options, __VA_ARGS__)
#ifndef CALX_NO_SITES
#define calx_adaptive_log_softmax_forward(...) (calx_at_(CALX_HERE), calx_adaptive_log_softmax_forward(__VA_ARGS__))
#define calx_adaptive_log_softmax_log_prob(...) (calx_at_(CALX_HERE), calx_adaptive_log_softmax_log_prob(__VA_ARGS__))
#define calx_adaptive_log_softmax_predict(...) (calx_at_(CALX_HERE), calx_adaptive_log_softmax_predict(__VA_ARGS__))
#endif
// clang-format on
#endif
#endif
