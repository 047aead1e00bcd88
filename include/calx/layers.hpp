/**
 * calx/layers.hpp: the layers of calx/layers.h with options by name. Part of
 * calx/calx.hpp, whose conventions hold here. Layers without options are called
 * as in C.
 *
 *   calx::module_ptr m(calx_nn_sequential(nullptr, nullptr));
 *   calx::nn::conv2d(m.get(), "conv", 1, 8, 3,
 *                    [](auto &o) { o.padding[0] = 1; });
 */
#ifndef CALX_LAYERS_HPP
#define CALX_LAYERS_HPP

#include "calx/calx.hpp"

namespace calx {
namespace nn {

#define CALX_HPP_LIST_OF_(...) __VA_ARGS__
#define CALX_HPP_LAYER_(name, O, parameters, arguments)                     \
  inline calx_module *name(                                                 \
      calx_module *parent, const char *child CALX_HPP_LIST_OF_ parameters,  \
      const options<O> &o = {}, const place &here = place())                \
  {                                                                         \
    here.set();                                                             \
    return calx_nn_##name##_with(parent, child CALX_HPP_LIST_OF_ arguments, \
                                 &o);                                       \
  }
// clang-format off
CALX_HPP_LAYER_(flatten, calx_nn_flatten_options, (), ())
CALX_HPP_LAYER_(linear, calx_linear_options, (, int64_t in, int64_t out), (, in, out))
CALX_HPP_LAYER_(bilinear, calx_linear_options, (, int64_t in1, int64_t in2, int64_t out), (, in1, in2, out))
CALX_HPP_LAYER_(embedding, calx_nn_embedding_options, (, int64_t num_embeddings, int64_t embedding_dim), (, num_embeddings, embedding_dim))
CALX_HPP_LAYER_(embedding_bag, calx_nn_embedding_bag_options, (, int64_t num_embeddings, int64_t embedding_dim), (, num_embeddings, embedding_dim))
CALX_HPP_LAYER_(batch_norm1d, calx_nn_batch_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(batch_norm2d, calx_nn_batch_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(batch_norm3d, calx_nn_batch_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(sync_batch_norm, calx_nn_batch_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(instance_norm1d, calx_nn_instance_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(instance_norm2d, calx_nn_instance_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(instance_norm3d, calx_nn_instance_norm_options, (, int64_t features), (, features))
CALX_HPP_LAYER_(layer_norm, calx_nn_layer_norm_options, (, calx_dims normalized_shape), (, normalized_shape))
CALX_HPP_LAYER_(rms_norm, calx_nn_layer_norm_options, (, calx_dims normalized_shape), (, normalized_shape))
CALX_HPP_LAYER_(group_norm, calx_nn_layer_norm_options, (, int64_t num_groups, int64_t num_channels), (, num_groups, num_channels))
CALX_HPP_LAYER_(local_response_norm, calx_nn_local_response_norm_options, (, int64_t channels), (, channels))
CALX_HPP_LAYER_(dropout, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(dropout1d, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(dropout2d, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(dropout3d, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(alpha_dropout, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(feature_alpha_dropout, calx_nn_dropout_options, (), ())
CALX_HPP_LAYER_(l1_loss, calx_loss_options, (), ())
CALX_HPP_LAYER_(mse_loss, calx_loss_options, (), ())
CALX_HPP_LAYER_(smooth_l1_loss, calx_smooth_l1_loss_options, (), ())
CALX_HPP_LAYER_(huber_loss, calx_huber_loss_options, (), ())
CALX_HPP_LAYER_(kl_div_loss, calx_kl_div_options, (), ())
CALX_HPP_LAYER_(poisson_nll_loss, calx_poisson_nll_loss_options, (), ())
CALX_HPP_LAYER_(soft_margin_loss, calx_loss_options, (), ())
CALX_HPP_LAYER_(hinge_embedding_loss, calx_hinge_embedding_loss_options, (), ())
CALX_HPP_LAYER_(multi_label_margin_loss, calx_loss_options, (), ())
CALX_HPP_LAYER_(margin_ranking_loss, calx_margin_loss_options, (), ())
CALX_HPP_LAYER_(cosine_embedding_loss, calx_margin_loss_options, (), ())
CALX_HPP_LAYER_(triplet_margin_loss, calx_triplet_margin_loss_options, (), ())
CALX_HPP_LAYER_(triplet_margin_with_distance_loss, calx_triplet_margin_with_distance_loss_options, (), ())
CALX_HPP_LAYER_(gaussian_nll_loss, calx_gaussian_nll_loss_options, (), ())
CALX_HPP_LAYER_(ctc_loss, calx_ctc_loss_options, (), ())
CALX_HPP_LAYER_(nll_loss, calx_nll_loss_options, (), ())
CALX_HPP_LAYER_(cross_entropy_loss, calx_nll_loss_options, (), ())
CALX_HPP_LAYER_(bce_loss, calx_binary_cross_entropy_options, (), ())
CALX_HPP_LAYER_(multi_margin_loss, calx_multi_margin_loss_options, (), ())
CALX_HPP_LAYER_(multi_label_soft_margin_loss, calx_multilabel_soft_margin_loss_options, (), ())
CALX_HPP_LAYER_(bce_with_logits_loss, calx_binary_cross_entropy_with_logits_options, (), ())
CALX_HPP_LAYER_(conv1d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(conv2d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(conv3d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(conv_transpose1d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(conv_transpose2d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(conv_transpose3d, calx_nn_conv_options, (, int64_t in, int64_t out, int64_t kernel_size), (, in, out, kernel_size))
CALX_HPP_LAYER_(max_pool1d, calx_max_pool1d_options, (, int64_t kernel_size), (, kernel_size))
CALX_HPP_LAYER_(max_pool2d, calx_max_pool2d_options, (, int64_t kernel_size), (, kernel_size))
CALX_HPP_LAYER_(max_pool3d, calx_max_pool3d_options, (, int64_t kernel_size), (, kernel_size))
CALX_HPP_LAYER_(avg_pool1d, calx_avg_pool1d_options, (), ())
CALX_HPP_LAYER_(avg_pool2d, calx_avg_pool2d_options, (), ())
CALX_HPP_LAYER_(avg_pool3d, calx_avg_pool3d_options, (), ())
CALX_HPP_LAYER_(lp_pool1d, calx_lp_pool_options, (, double norm_type), (, norm_type))
CALX_HPP_LAYER_(lp_pool2d, calx_lp_pool_options, (, double norm_type), (, norm_type))
CALX_HPP_LAYER_(lp_pool3d, calx_lp_pool_options, (, double norm_type), (, norm_type))
CALX_HPP_LAYER_(upsample, calx_nn_upsample_options, (), ())
CALX_HPP_LAYER_(fold, calx_fold_options, (, calx_dims output_size, calx_dims kernel_size), (, output_size, kernel_size))
CALX_HPP_LAYER_(unfold, calx_unfold_options, (, calx_dims kernel_size), (, kernel_size))
CALX_HPP_LAYER_(gelu, calx_gelu_options, (), ())
CALX_HPP_LAYER_(elu, calx_elu_options, (), ())
CALX_HPP_LAYER_(celu, calx_celu_options, (), ())
CALX_HPP_LAYER_(leaky_relu, calx_leaky_relu_options, (), ())
CALX_HPP_LAYER_(hardtanh, calx_hardtanh_options, (), ())
CALX_HPP_LAYER_(softplus, calx_softplus_options, (), ())
CALX_HPP_LAYER_(hardshrink, calx_hardshrink_options, (), ())
CALX_HPP_LAYER_(softshrink, calx_softshrink_options, (), ())
CALX_HPP_LAYER_(prelu, calx_nn_prelu_options, (), ())
CALX_HPP_LAYER_(rrelu, calx_nn_rrelu_options, (), ())
// clang-format on
#undef CALX_HPP_LAYER_
#undef CALX_HPP_LIST_OF_

}  // namespace nn
}  // namespace calx

#endif
