/**
 * calx/layers.h: the layers of torch.nn. Part of calx/nn.h.
 *
 * A layer is made by calx_nn_NAME(parent, name, …, .option = …), where NAME is
 * that of the class: BatchNorm2d is batch_norm2d. Its parameters and buffers
 * have PyTorch's names, shapes and initial values. In a Sequential, ModuleList
 * or ModuleDict a name of NULL is the child's number. A layer of a function
 * without parameters takes the function's options. Arguments that do not fit
 * are told to the root (calx_module_error); a tensor that does not fit is told
 * by calx_forward.
 * @shape as the class says  @errors INVALID_ARGUMENT to the root
 */
#ifndef CALX_LAYERS_H
#define CALX_LAYERS_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- containers -------------------------------------------------------------

/** Calls its children in the order of their making, each with the result of
 *  the one before. @source torch.nn.Sequential */
CALX_API calx_module *calx_nn_sequential(calx_module *parent, const char *name);
/** A list of modules; calx_module_child_at() gives one. It has no forward.
 *  @source torch.nn.ModuleList */
CALX_API calx_module *calx_nn_module_list(calx_module *parent,
                                          const char *name);
/** Modules by name; calx_module_get() gives one. It has no forward.
 *  @source torch.nn.ModuleDict */
CALX_API calx_module *calx_nn_module_dict(calx_module *parent,
                                          const char *name);
/** Gives x as it is. @source torch.nn.Identity */
CALX_API calx_module *calx_nn_identity(calx_module *parent, const char *name);

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
/** calx_unflatten. @source torch.nn.Unflatten */
CALX_API calx_module *calx_nn_unflatten(calx_module *parent, const char *name,
                                        int dim, calx_dims sizes);

// ---- products ---------------------------------------------------------------

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
/** y = x1^T W x2 + b of two tensors, by calx_forward2(); weight (out, in1,
 *  in2), bias (out), both uniform in +-1/sqrt(in1).
 *  @shape x1 (…, in1), x2 (…, in2) -> (…, out)  @source torch.nn.Bilinear */
CALX_API calx_module *calx_nn_bilinear_with(calx_module *parent,
                                            const char *name, int64_t in1,
                                            int64_t in2, int64_t out,
                                            const calx_linear_options *options);

// ---- embeddings -------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_embedding_options {
  CALX_NAMED size_t size;
  /* the row that begins as 0 and stays; 0 = none, CALX_ZERO_INT = 0; negative
   * counts from the end */
  CALX_NAMED int64_t padding_idx;
  /* longer rows are scaled to it where they are read; 0 = none */
  CALX_NAMED double max_norm;
  CALX_NAMED double norm_type; /* 0 = 2 */
  CALX_NAMED calx_dtype dtype; /* default f32 */
} calx_nn_embedding_options;
/** calx_embedding; weight (num_embeddings, embedding_dim), normal with mean 0
 *  and variance 1. @shape x integers, any -> (…, embedding_dim)
 *  @source torch.nn.Embedding */
CALX_API calx_module *calx_nn_embedding_with(
    calx_module *parent, const char *name, int64_t num_embeddings,
    int64_t embedding_dim, const calx_nn_embedding_options *options);

/** Zero means default; as calx_nn_embedding_options. */
typedef struct CALX_OPTIONS calx_nn_embedding_bag_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_embedding_bag_mode mode;
  CALX_NAMED int64_t padding_idx; /* the row that does not count */
  CALX_NAMED double max_norm;
  CALX_NAMED double norm_type;
  CALX_NAMED calx_dtype dtype;
} calx_nn_embedding_bag_options;
/** Joins the embeddings of each row of indices: a bag. Bags of several lengths
 *  are rows that are filled up with padding_idx.
 *  @shape x (bags, indices) -> (bags, embedding_dim)
 *  @source torch.nn.EmbeddingBag */
CALX_API calx_module *calx_nn_embedding_bag_with(
    calx_module *parent, const char *name, int64_t num_embeddings,
    int64_t embedding_dim, const calx_nn_embedding_bag_options *options);

// ---- normalisation ----------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_batch_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eps; /* 0 = 1e-5 */
  /* 0 = 0.1, CALX_ZERO = 0; NAN: PyTorch's None, the average of all batches */
  CALX_NAMED double momentum;
  CALX_NAMED bool no_affine; /* no weight and bias */
  /* batch statistics in evaluation too */
  CALX_NAMED bool no_track_running_stats;
  CALX_NAMED calx_dtype dtype;
} calx_nn_batch_norm_options;
/**
 * calx_batch_norm over (N, L), (N, H, W) or (N, D, H, W) with weight 1, bias 0,
 * running_mean 0, running_var 1 (unbiased, as PyTorch) and num_batches_tracked.
 * @shape x (N, features) or (N, features, L)  @source torch.nn.BatchNorm1d
 */
CALX_API calx_module *calx_nn_batch_norm1d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options);
/** The same. @shape x (N, features, H, W)  @source torch.nn.BatchNorm2d */
CALX_API calx_module *calx_nn_batch_norm2d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options);
/** The same. @shape x (N, features, D, H, W)  @source torch.nn.BatchNorm3d */
CALX_API calx_module *calx_nn_batch_norm3d_with(
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

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_instance_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eps;      /* 0 = 1e-5 */
  CALX_NAMED double momentum; /* 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED bool affine;     /* weight and bias (features) */
  /* evaluation uses running statistics, which training updates */
  CALX_NAMED bool track_running_stats;
  CALX_NAMED calx_dtype dtype;
} calx_nn_instance_norm_options;
/** calx_instance_norm. @shape x (N, features, L) or (features, L)
 *  @source torch.nn.InstanceNorm1d */
CALX_API calx_module *calx_nn_instance_norm1d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_instance_norm_options *options);
/** The same. @shape x (N, features, H, W) or (features, H, W)
 *  @source torch.nn.InstanceNorm2d */
CALX_API calx_module *calx_nn_instance_norm2d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_instance_norm_options *options);
/** The same. @shape x (N, features, D, H, W) or (features, D, H, W)
 *  @source torch.nn.InstanceNorm3d */
CALX_API calx_module *calx_nn_instance_norm3d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_instance_norm_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_layer_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eps;     /* 0 = 1e-5; of rms_norm the type's epsilon */
  CALX_NAMED bool no_affine; /* no weight and bias: elementwise_affine=False */
  CALX_NAMED bool no_bias;   /* of layer_norm only */
  CALX_NAMED calx_dtype dtype;
} calx_nn_layer_norm_options;
/** calx_layer_norm with weight 1 and bias 0 of the normalised shape.
 *  @shape x (…, normalized_shape)  @source torch.nn.LayerNorm */
CALX_API calx_module *calx_nn_layer_norm_with(
    calx_module *parent, const char *name, calx_dims normalized_shape,
    const calx_nn_layer_norm_options *options);
/** calx_rms_norm with weight 1. @shape x (…, normalized_shape)
 *  @source torch.nn.RMSNorm */
CALX_API calx_module *calx_nn_rms_norm_with(
    calx_module *parent, const char *name, calx_dims normalized_shape,
    const calx_nn_layer_norm_options *options);
/** calx_group_norm with weight 1 and bias 0 of each channel.
 *  @shape x (N, num_channels, …)  @source torch.nn.GroupNorm */
CALX_API calx_module *calx_nn_group_norm_with(
    calx_module *parent, const char *name, int64_t num_groups,
    int64_t num_channels, const calx_nn_layer_norm_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_local_response_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* 0 = 1e-4 */
  CALX_NAMED double beta;  /* 0 = 0.75 */
  CALX_NAMED double k;     /* 0 = 1 */
} calx_nn_local_response_norm_options;
/** x / (k + alpha m)^beta, with m the mean of x^2 over `channels` neighbouring
 *  channels. @shape x (N, C, …)  @source torch.nn.LocalResponseNorm */
CALX_API calx_module *calx_nn_local_response_norm_with(
    calx_module *parent, const char *name, int64_t channels,
    const calx_nn_local_response_norm_options *options);

// ---- dropout ----------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_dropout_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p; /* 0 = 0.5, CALX_ZERO = 0 */
} calx_nn_dropout_options;
/** calx_dropout in training, x in evaluation. @source torch.nn.Dropout */
CALX_API calx_module *calx_nn_dropout_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);
/** Whole channels become 0. @shape x (N, C, L) or (C, L)
 *  @source torch.nn.Dropout1d */
CALX_API calx_module *calx_nn_dropout1d_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);
/** The same. @shape x (N, C, H, W) or (C, H, W)  @source torch.nn.Dropout2d */
CALX_API calx_module *calx_nn_dropout2d_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);
/** The same. @shape x (N, C, D, H, W) or (C, D, H, W)
 *  @source torch.nn.Dropout3d */
CALX_API calx_module *calx_nn_dropout3d_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);
/** Keeps the mean 0 and variance 1 that calx_selu makes: elements take selu's
 *  least value (G. Klambauer et al., 2017). @source torch.nn.AlphaDropout */
CALX_API calx_module *calx_nn_alpha_dropout_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);
/** The same of whole channels. @shape x (N, C, …)
 *  @source torch.nn.FeatureAlphaDropout */
CALX_API calx_module *calx_nn_feature_alpha_dropout_with(
    calx_module *parent, const char *name,
    const calx_nn_dropout_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_nn_flatten_options_ \
  .start_dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_nn_flatten_options, calx_written_int_(&o->start_dim);)
#define CALX_UNWRITTEN_calx_nn_embedding_options_ \
  .padding_idx = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_nn_embedding_options, calx_written_int_(&o->padding_idx);)
#define CALX_UNWRITTEN_calx_nn_batch_norm_options_ .momentum = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_batch_norm_options, calx_written_(&o->momentum);)
#define CALX_UNWRITTEN_calx_nn_instance_norm_options_ \
  .momentum = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_instance_norm_options, calx_written_(&o->momentum);)
#define CALX_UNWRITTEN_calx_nn_dropout_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_dropout_options, calx_written_(&o->p);)
#endif
#ifdef __cplusplus
}
#else
// clang-format off
#define calx_nn_flatten(...) CALX_CALL_2_W_(calx_nn_flatten_with, calx_nn_flatten_options, __VA_ARGS__)
#define calx_nn_linear(...) CALX_CALL_4_(calx_nn_linear_with, calx_linear_options, __VA_ARGS__)
#define calx_nn_bilinear(...) CALX_CALL_5_(calx_nn_bilinear_with, calx_linear_options, __VA_ARGS__)
#define calx_nn_embedding(...) CALX_CALL_4_W_(calx_nn_embedding_with, calx_nn_embedding_options, __VA_ARGS__)
#define calx_nn_embedding_bag(...) CALX_CALL_4_(calx_nn_embedding_bag_with, calx_nn_embedding_bag_options, __VA_ARGS__)
#define calx_nn_batch_norm1d(...) CALX_CALL_3_W_(calx_nn_batch_norm1d_with, calx_nn_batch_norm_options, __VA_ARGS__)
#define calx_nn_batch_norm2d(...) CALX_CALL_3_W_(calx_nn_batch_norm2d_with, calx_nn_batch_norm_options, __VA_ARGS__)
#define calx_nn_batch_norm3d(...) CALX_CALL_3_W_(calx_nn_batch_norm3d_with, calx_nn_batch_norm_options, __VA_ARGS__)
#define calx_nn_sync_batch_norm(...) CALX_CALL_3_W_(calx_nn_sync_batch_norm_with, calx_nn_batch_norm_options, __VA_ARGS__)
#define calx_nn_instance_norm1d(...) CALX_CALL_3_W_(calx_nn_instance_norm1d_with, calx_nn_instance_norm_options, __VA_ARGS__)
#define calx_nn_instance_norm2d(...) CALX_CALL_3_W_(calx_nn_instance_norm2d_with, calx_nn_instance_norm_options, __VA_ARGS__)
#define calx_nn_instance_norm3d(...) CALX_CALL_3_W_(calx_nn_instance_norm3d_with, calx_nn_instance_norm_options, __VA_ARGS__)
#define calx_nn_layer_norm(...) CALX_CALL_3_(calx_nn_layer_norm_with, calx_nn_layer_norm_options, __VA_ARGS__)
#define calx_nn_rms_norm(...) CALX_CALL_3_(calx_nn_rms_norm_with, calx_nn_layer_norm_options, __VA_ARGS__)
#define calx_nn_group_norm(...) CALX_CALL_4_(calx_nn_group_norm_with, calx_nn_layer_norm_options, __VA_ARGS__)
#define calx_nn_local_response_norm(...) CALX_CALL_3_(calx_nn_local_response_norm_with, calx_nn_local_response_norm_options, __VA_ARGS__)
#define calx_nn_dropout(...) CALX_CALL_2_W_(calx_nn_dropout_with, calx_nn_dropout_options, __VA_ARGS__)
#define calx_nn_dropout1d(...) CALX_CALL_2_W_(calx_nn_dropout1d_with, calx_nn_dropout_options, __VA_ARGS__)
#define calx_nn_dropout2d(...) CALX_CALL_2_W_(calx_nn_dropout2d_with, calx_nn_dropout_options, __VA_ARGS__)
#define calx_nn_dropout3d(...) CALX_CALL_2_W_(calx_nn_dropout3d_with, calx_nn_dropout_options, __VA_ARGS__)
#define calx_nn_alpha_dropout(...) CALX_CALL_2_W_(calx_nn_alpha_dropout_with, calx_nn_dropout_options, __VA_ARGS__)
#define calx_nn_feature_alpha_dropout(...) CALX_CALL_2_W_(calx_nn_feature_alpha_dropout_with, calx_nn_dropout_options, __VA_ARGS__)
#ifndef CALX_NO_SITES
#define calx_nn_sequential(...) (calx_at_(CALX_HERE), calx_nn_sequential(__VA_ARGS__))
#define calx_nn_module_list(...) (calx_at_(CALX_HERE), calx_nn_module_list(__VA_ARGS__))
#define calx_nn_module_dict(...) (calx_at_(CALX_HERE), calx_nn_module_dict(__VA_ARGS__))
#define calx_nn_identity(...) (calx_at_(CALX_HERE), calx_nn_identity(__VA_ARGS__))
#define calx_nn_unflatten(...) (calx_at_(CALX_HERE), calx_nn_unflatten(__VA_ARGS__))
#endif
// clang-format on
#endif
#include "calx/layers_activation.h"
#include "calx/layers_image.h"
#include "calx/layers_loss.h"
#endif
