/**
 * calx/functional.h: functions of torch.nn.functional beside those of calx/
 * conv.h and calx/activation.h: whole channels dropped, samples of images at
 * given coordinates, patches put together, pools undone. Part of calx/ops.h,
 * whose conventions hold here.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_FUNCTIONAL_H
#define CALX_FUNCTIONAL_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- drawn numbers ----------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_feature_dropout_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p;  /* 0 = 0.5, CALX_ZERO = 0 */
  CALX_NAMED bool eval; /* x as it is */
} calx_feature_dropout_options;
/** x / (1 - p), and 0 for each channel of each sample with probability p.
 *  @shape x (N, C, L) or (C, L) @source torch.nn.functional.dropout1d */
CALX_API calx_tensor *calx_dropout1d_with(
    calx_tensor *x, const calx_feature_dropout_options *options);
/** The same. @shape x (N, C, H, W) or (C, H, W)
 *  @source torch.nn.functional.dropout2d */
CALX_API calx_tensor *calx_dropout2d_with(
    calx_tensor *x, const calx_feature_dropout_options *options);
/** The same. @shape x (N, C, D, H, W) or (C, D, H, W)
 *  @source torch.nn.functional.dropout3d */
CALX_API calx_tensor *calx_dropout3d_with(
    calx_tensor *x, const calx_feature_dropout_options *options);
/** Keeps the mean 0 and variance 1 that calx_selu makes: elements take selu's
 *  least value (G. Klambauer et al., 2017). @shape x any
 *  @source torch.nn.functional.alpha_dropout */
CALX_API calx_tensor *calx_alpha_dropout_with(
    calx_tensor *x, const calx_feature_dropout_options *options);
/** The same of whole channels. @shape x (N, C, …)
 *  @source torch.nn.functional.feature_alpha_dropout */
CALX_API calx_tensor *calx_feature_alpha_dropout_with(
    calx_tensor *x, const calx_feature_dropout_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_rrelu_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lower;  /* 0 = 1/8, CALX_ZERO = 0 */
  CALX_NAMED double upper;  /* 0 = 1/3, CALX_ZERO = 0 */
  CALX_NAMED bool training; /* else the slope is their mean */
} calx_rrelu_options;
/** x, below 0 a x with a drawn from [lower, upper). @shape x any
 *  @source torch.nn.functional.rrelu */
CALX_API calx_tensor *calx_rrelu_with(calx_tensor *x,
                                      const calx_rrelu_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_gumbel_softmax_options {
  CALX_NAMED size_t size;
  CALX_NAMED double tau; /* the temperature; 0 = 1 */
  CALX_NAMED bool hard;  /* 1 at the greatest, with the gradient of the soft */
} calx_gumbel_softmax_options;
/** softmax((logits + g) / tau) along a dimension, with g drawn from Gumbel's
 *  distribution (E. Jang et al., 2016). @shape logits any
 *  @source torch.nn.functional.gumbel_softmax */
CALX_API calx_tensor *calx_gumbel_softmax_with(
    calx_tensor *logits, int dim, const calx_gumbel_softmax_options *options);

// ---- arrangement ------------------------------------------------------------

/** calx_pixel_shuffle undone. @shape x (…, C, H r, W r) -> (…, C r^2, H, W)
 *  @source torch.nn.functional.pixel_unshuffle */
CALX_API calx_tensor *calx_pixel_unshuffle(calx_tensor *x,
                                           int64_t downscale_factor);
/** Channels (groups, C / groups) in the order of (C / groups, groups).
 *  @shape x (N, C, …) @source torch.nn.functional.channel_shuffle */
CALX_API calx_tensor *calx_channel_shuffle(calx_tensor *x, int64_t groups);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_fold_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(int64_t, dilation); /* 0 = 1 */
  CALX_PAIR_(int64_t, padding);
  CALX_PAIR_(int64_t, stride); /* 0 = 1 */
} calx_fold_options;
/** Sums patches at their positions of an image: the transpose of calx_unfold.
 *  @shape x (N, C k k, patches) or (C k k, patches) -> (N, C, H, W) or (C, H,
 * W)
 *  @source torch.nn.functional.fold */
CALX_API calx_tensor *calx_fold_with(calx_tensor *x, calx_dims output_size,
                                     calx_dims kernel_size,
                                     const calx_fold_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_max_unpool_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims stride;  /* none: kernel_size; one for all dimensions */
  CALX_NAMED calx_dims padding; /* none: 0 */
  /* of the spatial dimensions, or of all; none: (in - 1) stride - 2 padding +
     kernel */
  CALX_NAMED calx_dims output_size;
} calx_max_unpool_options;
/** Puts each element where a max pool's .out_indices say that it was; else 0.
 *  Which of two at one position is kept, is not defined.
 *  @shape x, indices (N, C, L) or (C, L) @grad x
 *  @source torch.nn.functional.max_unpool1d */
CALX_API calx_tensor *calx_max_unpool1d_with(
    calx_tensor *x, calx_tensor *indices, calx_dims kernel_size,
    const calx_max_unpool_options *options);
/** The same. @shape x, indices (N, C, H, W) or (C, H, W) @grad x
 *  @source torch.nn.functional.max_unpool2d */
CALX_API calx_tensor *calx_max_unpool2d_with(
    calx_tensor *x, calx_tensor *indices, calx_dims kernel_size,
    const calx_max_unpool_options *options);
/** The same. @shape x, indices (N, C, D, H, W) or (C, D, H, W) @grad x
 *  @source torch.nn.functional.max_unpool3d */
CALX_API calx_tensor *calx_max_unpool3d_with(
    calx_tensor *x, calx_tensor *indices, calx_dims kernel_size,
    const calx_max_unpool_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_fractional_max_pool_options {
  CALX_NAMED size_t size;
  /* one for all dimensions or one for each; none: .output_ratio says them */
  CALX_NAMED calx_dims output_size;
  /* of the image's sizes, in (0, 1); the first stands for the others */
  CALX_ARRAY_(double, output_ratio, 3);
  /* NULL: drawn; in [0, 1), (N, C, 2 or 3) of x's type: of 2 that of the width
   * first, of 3 that of the depth */
  CALX_NAMED calx_tensor *random_samples;
  CALX_NAMED calx_tensor **out_indices; /* NULL: none; i64, into the image */
} calx_fractional_max_pool_options;
/** The greatest element of each of windows whose positions are drawn for each
 *  image and channel: their distances are the whole numbers beside in / out
 *  (B. Graham, Fractional max-pooling, 2014).
 *  @param kernel_size  of the windows: one for both dimensions or one for each
 *  @shape x (N, C, H, W) or (C, H, W) @dtype floating
 *  @source torch.nn.functional.fractional_max_pool2d */
CALX_API calx_tensor *calx_fractional_max_pool2d_with(
    calx_tensor *x, calx_dims kernel_size,
    const calx_fractional_max_pool_options *options);
/** The same. @shape x (N, C, D, H, W) or (C, D, H, W) @dtype floating
 *  @source torch.nn.functional.fractional_max_pool3d */
CALX_API calx_tensor *calx_fractional_max_pool3d_with(
    calx_tensor *x, calx_dims kernel_size,
    const calx_fractional_max_pool_options *options);

// ---- images at coordinates --------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_affine_grid_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool align_corners; /* -1 and 1 are the outer elements' centres */
} calx_affine_grid_options;
/** The coordinates, for calx_grid_sample, at which an affine map of an image of
 *  these sizes reads. @shape theta (N, 2, 3), sizes (N, C, H, W) -> (N, H, W,
 *  2); or (N, 3, 4), (N, C, D, H, W) -> (N, D, H, W, 3)
 *  @source torch.nn.functional.affine_grid */
CALX_API calx_tensor *calx_affine_grid_with(
    calx_tensor *theta, calx_dims sizes,
    const calx_affine_grid_options *options);
/** How calx_grid_sample finds values between elements. */
typedef enum calx_grid_sample_mode {
  CALX_GRID_BILINEAR = 0, /* of volumes trilinear */
  CALX_GRID_NEAREST,
  CALX_GRID_BICUBIC /* of images only */
} calx_grid_sample_mode;
/** What is outside of an image. */
typedef enum calx_grid_padding {
  CALX_GRID_ZEROS = 0,
  CALX_GRID_BORDER, /* the nearest element */
  CALX_GRID_REFLECTION
} calx_grid_padding;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_grid_sample_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_grid_sample_mode mode;
  CALX_NAMED calx_grid_padding padding_mode;
  CALX_NAMED bool align_corners;
} calx_grid_sample_options;
/** The image's values at coordinates, of which -1 and 1 are its edges; (x, y)
 *  or (x, y, z) with x along the last dimension. @shape x (N, C, H, W), grid
 *  (N, H', W', 2) -> (N, C, H', W'); or (N, C, D, H, W), (N, D', H', W', 3)
 *  @source torch.nn.functional.grid_sample */
CALX_API calx_tensor *calx_grid_sample_with(
    calx_tensor *x, calx_tensor *grid, const calx_grid_sample_options *options);

// ---- others -----------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_local_response_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* 0 = 1e-4 */
  CALX_NAMED double beta;  /* 0 = 0.75 */
  CALX_NAMED double k;     /* 0 = 1 */
} calx_local_response_norm_options;
/** x / (k + alpha m)^beta, with m the mean of x^2 over `channels` neighbouring
 *  channels. @shape x (N, C, L, …)
 *  @source torch.nn.functional.local_response_norm */
CALX_API calx_tensor *calx_local_response_norm_with(
    calx_tensor *x, int64_t channels,
    const calx_local_response_norm_options *options);
/** x^T W y + b. @shape x (…, in1), y (…, in2), weight (out, in1, in2), bias
 *  (out) or NULL -> (…, out) @source torch.nn.functional.bilinear */
CALX_API calx_tensor *calx_bilinear(calx_tensor *x, calx_tensor *y,
                                    calx_tensor *weight, calx_tensor *bias);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_feature_dropout_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_feature_dropout_options, calx_written_(&o->p);)
#define CALX_UNWRITTEN_calx_rrelu_options_ \
  .lower = CALX_UNWRITTEN_, .upper = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_rrelu_options, calx_written_(&o->lower);
              calx_written_(&o->upper);)
#endif
#ifdef __cplusplus
}
#endif
#endif
