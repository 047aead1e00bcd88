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

#ifdef __cplusplus
}
#else
// clang-format off
#define calx_nn_l1_loss(...) CALX_CALL_2_(calx_nn_l1_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_mse_loss(...) CALX_CALL_2_(calx_nn_mse_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_smooth_l1_loss(...) CALX_CALL_2_(calx_nn_smooth_l1_loss_with, calx_smooth_l1_loss_options, __VA_ARGS__)
#define calx_nn_huber_loss(...) CALX_CALL_2_(calx_nn_huber_loss_with, calx_huber_loss_options, __VA_ARGS__)
#define calx_nn_kl_div_loss(...) CALX_CALL_2_(calx_nn_kl_div_loss_with, calx_kl_div_options, __VA_ARGS__)
#define calx_nn_poisson_nll_loss(...) CALX_CALL_2_(calx_nn_poisson_nll_loss_with, calx_poisson_nll_loss_options, __VA_ARGS__)
#define calx_nn_soft_margin_loss(...) CALX_CALL_2_(calx_nn_soft_margin_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_hinge_embedding_loss(...) CALX_CALL_2_(calx_nn_hinge_embedding_loss_with, calx_hinge_embedding_loss_options, __VA_ARGS__)
#define calx_nn_multi_label_margin_loss(...) CALX_CALL_2_(calx_nn_multi_label_margin_loss_with, calx_loss_options, __VA_ARGS__)
#define calx_nn_margin_ranking_loss(...) CALX_CALL_2_(calx_nn_margin_ranking_loss_with, calx_margin_loss_options, __VA_ARGS__)
#define calx_nn_cosine_embedding_loss(...) CALX_CALL_2_(calx_nn_cosine_embedding_loss_with, calx_margin_loss_options, __VA_ARGS__)
#define calx_nn_triplet_margin_loss(...) CALX_CALL_2_(calx_nn_triplet_margin_loss_with, calx_triplet_margin_loss_options, __VA_ARGS__)
#define calx_nn_triplet_margin_with_distance_loss(...) CALX_CALL_2_(calx_nn_triplet_margin_with_distance_loss_with, calx_triplet_margin_with_distance_loss_options, __VA_ARGS__)
#define calx_nn_gaussian_nll_loss(...) CALX_CALL_2_(calx_nn_gaussian_nll_loss_with, calx_gaussian_nll_loss_options, __VA_ARGS__)
#define calx_nn_ctc_loss(...) CALX_CALL_2_(calx_nn_ctc_loss_with, calx_ctc_loss_options, __VA_ARGS__)
#define calx_nn_nll_loss(...) CALX_CALL_2_(calx_nn_nll_loss_with, calx_nll_loss_options, __VA_ARGS__)
#define calx_nn_cross_entropy_loss(...) CALX_CALL_2_(calx_nn_cross_entropy_loss_with, calx_nll_loss_options, __VA_ARGS__)
#define calx_nn_bce_loss(...) CALX_CALL_2_(calx_nn_bce_loss_with, calx_binary_cross_entropy_options, __VA_ARGS__)
#define calx_nn_multi_margin_loss(...) CALX_CALL_2_(calx_nn_multi_margin_loss_with, calx_multi_margin_loss_options, __VA_ARGS__)
#define calx_nn_multi_label_soft_margin_loss(...) CALX_CALL_2_(calx_nn_multi_label_soft_margin_loss_with, calx_multilabel_soft_margin_loss_options, __VA_ARGS__)
#define calx_nn_bce_with_logits_loss(...) CALX_CALL_2_(calx_nn_bce_with_logits_loss_with, calx_binary_cross_entropy_with_logits_options, __VA_ARGS__)
// clang-format on
#endif
#endif
