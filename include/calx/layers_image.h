/**
 * calx/layers_image.h: layers over spatial dimensions: convolutions, pools,
 * pads, sizes. Part of calx/layers.h, whose conventions hold here. Of a list of
 * sizes in the options the first stands for those that are 0.
 */
#ifndef CALX_LAYERS_IMAGE_H
#define CALX_LAYERS_IMAGE_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- convolutions -----------------------------------------------------------

/** Zero means default; lists as in calx_conv3d_options, as long as the layer
 *  has spatial dimensions. */
typedef struct CALX_OPTIONS calx_nn_conv_options {
  CALX_NAMED size_t size;
  CALX_ARRAY_(int64_t, stride, 3);         /* 0 = 1 */
  CALX_ARRAY_(int64_t, padding, 3);        /* on both sides */
  CALX_ARRAY_(int64_t, dilation, 3);       /* 0 = 1 */
  CALX_ARRAY_(int64_t, output_padding, 3); /* of a transposed one only */
  CALX_NAMED int64_t groups;               /* 0 = 1 */
  CALX_NAMED bool no_bias;
  /* sizes of the kernel along the last two dimensions; 0 = kernel_size */
  CALX_NAMED int64_t kernel_height;      /* of three dimensions */
  CALX_NAMED int64_t kernel_width;       /* of two or three */
  CALX_NAMED calx_pad_mode padding_mode; /* not of a transposed one */
  CALX_NAMED calx_dtype dtype;           /* default f32 */
} calx_nn_conv_options;
/** The options of calx_nn_conv2d by their first name. */
typedef calx_nn_conv_options calx_nn_conv2d_options;

/** calx_conv1d with weight (out, in/groups, kernel, …) and bias (out), both
 * uniform in +-1/sqrt(in/groups * kernel elements). @shape x (N, in, L) or (in,
 * L) @source torch.nn.Conv1d */
CALX_API calx_module *calx_nn_conv1d_with(calx_module *parent, const char *name,
                                          int64_t in, int64_t out,
                                          int64_t kernel_size,
                                          const calx_nn_conv_options *options);
/** The same in 2 dimensions, by calx_conv2d. @shape x (N, in, H, W) or (in, H,
 * W) @source torch.nn.Conv2d */
CALX_API calx_module *calx_nn_conv2d_with(calx_module *parent, const char *name,
                                          int64_t in, int64_t out,
                                          int64_t kernel_size,
                                          const calx_nn_conv_options *options);
/** The same in 3 dimensions, by calx_conv3d. @shape x (N, in, D, H, W) or (in,
 * D, H, W) @source torch.nn.Conv3d */
CALX_API calx_module *calx_nn_conv3d_with(calx_module *parent, const char *name,
                                          int64_t in, int64_t out,
                                          int64_t kernel_size,
                                          const calx_nn_conv_options *options);
/** calx_conv_transpose1d with weight (in, out/groups, kernel, …) and bias
 * (out), both uniform in +-1/sqrt(out/groups * kernel elements). @shape x (N,
 * in, L) or (in, L) @source torch.nn.ConvTranspose1d */
CALX_API calx_module *calx_nn_conv_transpose1d_with(
    calx_module *parent, const char *name, int64_t in, int64_t out,
    int64_t kernel_size, const calx_nn_conv_options *options);
/** The same in 2 dimensions, by calx_conv_transpose2d. @shape x (N, in, H, W)
 * or (in, H, W) @source torch.nn.ConvTranspose2d */
CALX_API calx_module *calx_nn_conv_transpose2d_with(
    calx_module *parent, const char *name, int64_t in, int64_t out,
    int64_t kernel_size, const calx_nn_conv_options *options);
/** The same in 3 dimensions, by calx_conv_transpose3d. @shape x (N, in, D, H,
 * W) or (in, D, H, W) @source torch.nn.ConvTranspose3d */
CALX_API calx_module *calx_nn_conv_transpose3d_with(
    calx_module *parent, const char *name, int64_t in, int64_t out,
    int64_t kernel_size, const calx_nn_conv_options *options);

// ---- pools ------------------------------------------------------------------

/** calx_max_pool1d; .out_indices is refused. @shape x (N, C, L) or without N
 * @source torch.nn.MaxPool1d */
CALX_API calx_module *calx_nn_max_pool1d_with(
    calx_module *parent, const char *name, int64_t kernel_size,
    const calx_max_pool1d_options *options);
/** calx_max_pool2d; .out_indices is refused. @shape x (N, C, H, W) or without N
 * @source torch.nn.MaxPool2d */
CALX_API calx_module *calx_nn_max_pool2d_with(
    calx_module *parent, const char *name, int64_t kernel_size,
    const calx_max_pool2d_options *options);
/** calx_max_pool3d; .out_indices is refused.
 *  @shape x (N, C, D, H, W) or without N @source torch.nn.MaxPool3d */
CALX_API calx_module *calx_nn_max_pool3d_with(
    calx_module *parent, const char *name, int64_t kernel_size,
    const calx_max_pool3d_options *options);
/** calx_avg_pool1d. @shape x (N, C, L) or without N @source torch.nn.AvgPool1d
 */
CALX_API calx_module *calx_nn_avg_pool1d_with(
    calx_module *parent, const char *name,
    const calx_avg_pool1d_options *options);
/** calx_avg_pool2d. @shape x (N, C, H, W) or without N @source
 * torch.nn.AvgPool2d */
CALX_API calx_module *calx_nn_avg_pool2d_with(
    calx_module *parent, const char *name,
    const calx_avg_pool2d_options *options);
/** calx_avg_pool3d. @shape x (N, C, D, H, W) or without N @source
 * torch.nn.AvgPool3d */
CALX_API calx_module *calx_nn_avg_pool3d_with(
    calx_module *parent, const char *name,
    const calx_avg_pool3d_options *options);
/** calx_lp_pool1d. @shape x (N, C, L) or
 * without N @source torch.nn.LPPool1d */
CALX_API calx_module *calx_nn_lp_pool1d_with(
    calx_module *parent, const char *name, double norm_type,
    const calx_lp_pool_options *options);
/** The same. @shape x (N, C, H, W) or without N @source torch.nn.LPPool2d */
CALX_API calx_module *calx_nn_lp_pool2d_with(
    calx_module *parent, const char *name, double norm_type,
    const calx_lp_pool_options *options);
/** The same. @shape x (N, C, D, H, W) or without N @source torch.nn.LPPool3d */
CALX_API calx_module *calx_nn_lp_pool3d_with(
    calx_module *parent, const char *name, double norm_type,
    const calx_lp_pool_options *options);
/** calx_fractional_max_pool2d; of .random_samples each call takes the same.
 *  @shape x (N, C, H, W) or without N @source torch.nn.FractionalMaxPool2d */
CALX_API calx_module *calx_nn_fractional_max_pool2d_with(
    calx_module *parent, const char *name, calx_dims kernel_size,
    const calx_fractional_max_pool_options *options);
/** The same. @shape x (N, C, D, H, W) or without N
 *  @source torch.nn.FractionalMaxPool3d */
CALX_API calx_module *calx_nn_fractional_max_pool3d_with(
    calx_module *parent, const char *name, calx_dims kernel_size,
    const calx_fractional_max_pool_options *options);
/** calx_adaptive_avg_pool to (length); -1 keeps a size. @shape x (N, C, L) or
 * without N @source torch.nn.AdaptiveAvgPool1d */
CALX_API calx_module *calx_nn_adaptive_avg_pool1d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);
/** calx_adaptive_avg_pool to (height, width), or one number for all; -1 keeps a
 * size. @shape x (N, C, H, W) or without N @source torch.nn.AdaptiveAvgPool2d
 */
CALX_API calx_module *calx_nn_adaptive_avg_pool2d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);
/** calx_adaptive_avg_pool to (depth, height, width), or one number for all; -1
 * keeps a size. @shape x (N, C, D, H, W) or without N @source
 * torch.nn.AdaptiveAvgPool3d */
CALX_API calx_module *calx_nn_adaptive_avg_pool3d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);
/** calx_adaptive_max_pool to (length); -1 keeps a size. @shape x (N, C, L) or
 * without N @source torch.nn.AdaptiveMaxPool1d */
CALX_API calx_module *calx_nn_adaptive_max_pool1d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);
/** calx_adaptive_max_pool to (height, width), or one number for all; -1 keeps a
 * size. @shape x (N, C, H, W) or without N @source torch.nn.AdaptiveMaxPool2d
 */
CALX_API calx_module *calx_nn_adaptive_max_pool2d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);
/** calx_adaptive_max_pool to (depth, height, width), or one number for all; -1
 * keeps a size. @shape x (N, C, D, H, W) or without N @source
 * torch.nn.AdaptiveMaxPool3d */
CALX_API calx_module *calx_nn_adaptive_max_pool3d(calx_module *parent,
                                                  const char *name,
                                                  calx_dims output_size);

// ---- pads -------------------------------------------------------------------
// The padding is one number for all sides, or two for the last dimension, two
// for the one before, … Negative numbers remove elements.

/** Zeros on the sides. @shape x (N, C, L) or without N @source
 * torch.nn.ZeroPad1d */
CALX_API calx_module *calx_nn_zero_pad1d(calx_module *parent, const char *name,
                                         calx_dims padding);
/** Zeros on the sides. @shape x (N, C, H, W) or without N @source
 * torch.nn.ZeroPad2d */
CALX_API calx_module *calx_nn_zero_pad2d(calx_module *parent, const char *name,
                                         calx_dims padding);
/** Zeros on the sides. @shape x (N, C, D, H, W) or without N @source
 * torch.nn.ZeroPad3d */
CALX_API calx_module *calx_nn_zero_pad3d(calx_module *parent, const char *name,
                                         calx_dims padding);
/** A number on the sides. @shape x (N, C, L) or without N @source
 * torch.nn.ConstantPad1d */
CALX_API calx_module *calx_nn_constant_pad1d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding, double value);
/** A number on the sides. @shape x (N, C, H, W) or without N @source
 * torch.nn.ConstantPad2d */
CALX_API calx_module *calx_nn_constant_pad2d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding, double value);
/** A number on the sides. @shape x (N, C, D, H, W) or without N @source
 * torch.nn.ConstantPad3d */
CALX_API calx_module *calx_nn_constant_pad3d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding, double value);
/** The elements beside the edge, mirrored on the sides. @shape x (N, C, L) or
 * without N @source torch.nn.ReflectionPad1d */
CALX_API calx_module *calx_nn_reflection_pad1d(calx_module *parent,
                                               const char *name,
                                               calx_dims padding);
/** The elements beside the edge, mirrored on the sides. @shape x (N, C, H, W)
 * or without N @source torch.nn.ReflectionPad2d */
CALX_API calx_module *calx_nn_reflection_pad2d(calx_module *parent,
                                               const char *name,
                                               calx_dims padding);
/** The elements beside the edge, mirrored on the sides. @shape x (N, C, D, H,
 * W) or without N @source torch.nn.ReflectionPad3d */
CALX_API calx_module *calx_nn_reflection_pad3d(calx_module *parent,
                                               const char *name,
                                               calx_dims padding);
/** The edge's element on the sides. @shape x (N, C, L) or without N @source
 * torch.nn.ReplicationPad1d */
CALX_API calx_module *calx_nn_replication_pad1d(calx_module *parent,
                                                const char *name,
                                                calx_dims padding);
/** The edge's element on the sides. @shape x (N, C, H, W) or without N @source
 * torch.nn.ReplicationPad2d */
CALX_API calx_module *calx_nn_replication_pad2d(calx_module *parent,
                                                const char *name,
                                                calx_dims padding);
/** The edge's element on the sides. @shape x (N, C, D, H, W) or without N
 * @source torch.nn.ReplicationPad3d */
CALX_API calx_module *calx_nn_replication_pad3d(calx_module *parent,
                                                const char *name,
                                                calx_dims padding);
/** The elements of the other edge on the sides. @shape x (N, C, L) or without N
 * @source torch.nn.CircularPad1d */
CALX_API calx_module *calx_nn_circular_pad1d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding);
/** The elements of the other edge on the sides. @shape x (N, C, H, W) or
 * without N @source torch.nn.CircularPad2d */
CALX_API calx_module *calx_nn_circular_pad2d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding);
/** The elements of the other edge on the sides. @shape x (N, C, D, H, W) or
 * without N @source torch.nn.CircularPad3d */
CALX_API calx_module *calx_nn_circular_pad3d(calx_module *parent,
                                             const char *name,
                                             calx_dims padding);

// ---- sizes ------------------------------------------------------------------

/** Zero means default. One of the first two is needed. */
typedef struct CALX_OPTIONS calx_nn_upsample_options {
  CALX_NAMED size_t size;
  /* for each spatial dimension, or one for all */
  CALX_NAMED calx_dims output_size; /* PyTorch's argument `size` */
  CALX_ARRAY_(double, scale_factor, 3);
  CALX_NAMED calx_interpolation mode;
  CALX_NAMED bool align_corners;
  CALX_NAMED bool recompute_scale_factor; /* as calx_interpolate's */
} calx_nn_upsample_options;
/** calx_interpolate to sizes, or to floor(size scale_factor).
 *  @shape x (N, C, …)  @source torch.nn.Upsample */
CALX_API calx_module *calx_nn_upsample_with(
    calx_module *parent, const char *name,
    const calx_nn_upsample_options *options);
/** calx_fold. @source torch.nn.Fold */
CALX_API calx_module *calx_nn_fold_with(calx_module *parent, const char *name,
                                        calx_dims output_size,
                                        calx_dims kernel_size,
                                        const calx_fold_options *options);
/** calx_unfold. @source torch.nn.Unfold */
CALX_API calx_module *calx_nn_unfold_with(calx_module *parent, const char *name,
                                          calx_dims kernel_size,
                                          const calx_unfold_options *options);
/** calx_pixel_shuffle. @source torch.nn.PixelShuffle */
CALX_API calx_module *calx_nn_pixel_shuffle(calx_module *parent,
                                            const char *name,
                                            int64_t upscale_factor);
/** Pixels as channels, its inverse. @shape (…, C, H r, W r) -> (…, C r^2, H, W)
 * @source torch.nn.PixelUnshuffle */
CALX_API calx_module *calx_nn_pixel_unshuffle(calx_module *parent,
                                              const char *name,
                                              int64_t downscale_factor);
/** The channels of `groups` groups, taken in turn. @shape x (N, C, …) @source
 * torch.nn.ChannelShuffle */
CALX_API calx_module *calx_nn_channel_shuffle(calx_module *parent,
                                              const char *name, int64_t groups);

#ifdef __cplusplus
}
#else
// clang-format off
#define calx_nn_conv1d(...) CALX_CALL_5_(calx_nn_conv1d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_conv2d(...) CALX_CALL_5_(calx_nn_conv2d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_conv3d(...) CALX_CALL_5_(calx_nn_conv3d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_conv_transpose1d(...) CALX_CALL_5_(calx_nn_conv_transpose1d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_conv_transpose2d(...) CALX_CALL_5_(calx_nn_conv_transpose2d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_conv_transpose3d(...) CALX_CALL_5_(calx_nn_conv_transpose3d_with, calx_nn_conv_options, __VA_ARGS__)
#define calx_nn_max_pool1d(...) CALX_CALL_3_(calx_nn_max_pool1d_with, calx_max_pool1d_options, __VA_ARGS__)
#define calx_nn_max_pool2d(...) CALX_CALL_3_(calx_nn_max_pool2d_with, calx_max_pool2d_options, __VA_ARGS__)
#define calx_nn_max_pool3d(...) CALX_CALL_3_(calx_nn_max_pool3d_with, calx_max_pool3d_options, __VA_ARGS__)
#define calx_nn_avg_pool1d(...) CALX_CALL_2_(calx_nn_avg_pool1d_with, calx_avg_pool1d_options, __VA_ARGS__)
#define calx_nn_avg_pool2d(...) CALX_CALL_2_(calx_nn_avg_pool2d_with, calx_avg_pool2d_options, __VA_ARGS__)
#define calx_nn_avg_pool3d(...) CALX_CALL_2_(calx_nn_avg_pool3d_with, calx_avg_pool3d_options, __VA_ARGS__)
#define calx_nn_lp_pool1d(...) CALX_CALL_3_(calx_nn_lp_pool1d_with, calx_lp_pool_options, __VA_ARGS__)
#define calx_nn_lp_pool2d(...) CALX_CALL_3_(calx_nn_lp_pool2d_with, calx_lp_pool_options, __VA_ARGS__)
#define calx_nn_lp_pool3d(...) CALX_CALL_3_(calx_nn_lp_pool3d_with, calx_lp_pool_options, __VA_ARGS__)
#define calx_nn_fractional_max_pool2d(...) CALX_CALL_3_(calx_nn_fractional_max_pool2d_with, calx_fractional_max_pool_options, __VA_ARGS__)
#define calx_nn_fractional_max_pool3d(...) CALX_CALL_3_(calx_nn_fractional_max_pool3d_with, calx_fractional_max_pool_options, __VA_ARGS__)
#define calx_nn_upsample(...) CALX_CALL_2_(calx_nn_upsample_with, calx_nn_upsample_options, __VA_ARGS__)
#define calx_nn_fold(...) CALX_CALL_4_(calx_nn_fold_with, calx_fold_options, __VA_ARGS__)
#define calx_nn_unfold(...) CALX_CALL_3_(calx_nn_unfold_with, calx_unfold_options, __VA_ARGS__)
#ifndef CALX_NO_SITES
#define calx_nn_adaptive_avg_pool1d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_avg_pool1d(__VA_ARGS__))
#define calx_nn_adaptive_avg_pool2d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_avg_pool2d(__VA_ARGS__))
#define calx_nn_adaptive_avg_pool3d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_avg_pool3d(__VA_ARGS__))
#define calx_nn_adaptive_max_pool1d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_max_pool1d(__VA_ARGS__))
#define calx_nn_adaptive_max_pool2d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_max_pool2d(__VA_ARGS__))
#define calx_nn_adaptive_max_pool3d(...) (calx_at_(CALX_HERE), calx_nn_adaptive_max_pool3d(__VA_ARGS__))
#define calx_nn_zero_pad1d(...) (calx_at_(CALX_HERE), calx_nn_zero_pad1d(__VA_ARGS__))
#define calx_nn_zero_pad2d(...) (calx_at_(CALX_HERE), calx_nn_zero_pad2d(__VA_ARGS__))
#define calx_nn_zero_pad3d(...) (calx_at_(CALX_HERE), calx_nn_zero_pad3d(__VA_ARGS__))
#define calx_nn_constant_pad1d(...) (calx_at_(CALX_HERE), calx_nn_constant_pad1d(__VA_ARGS__))
#define calx_nn_constant_pad2d(...) (calx_at_(CALX_HERE), calx_nn_constant_pad2d(__VA_ARGS__))
#define calx_nn_constant_pad3d(...) (calx_at_(CALX_HERE), calx_nn_constant_pad3d(__VA_ARGS__))
#define calx_nn_reflection_pad1d(...) (calx_at_(CALX_HERE), calx_nn_reflection_pad1d(__VA_ARGS__))
#define calx_nn_reflection_pad2d(...) (calx_at_(CALX_HERE), calx_nn_reflection_pad2d(__VA_ARGS__))
#define calx_nn_reflection_pad3d(...) (calx_at_(CALX_HERE), calx_nn_reflection_pad3d(__VA_ARGS__))
#define calx_nn_replication_pad1d(...) (calx_at_(CALX_HERE), calx_nn_replication_pad1d(__VA_ARGS__))
#define calx_nn_replication_pad2d(...) (calx_at_(CALX_HERE), calx_nn_replication_pad2d(__VA_ARGS__))
#define calx_nn_replication_pad3d(...) (calx_at_(CALX_HERE), calx_nn_replication_pad3d(__VA_ARGS__))
#define calx_nn_circular_pad1d(...) (calx_at_(CALX_HERE), calx_nn_circular_pad1d(__VA_ARGS__))
#define calx_nn_circular_pad2d(...) (calx_at_(CALX_HERE), calx_nn_circular_pad2d(__VA_ARGS__))
#define calx_nn_circular_pad3d(...) (calx_at_(CALX_HERE), calx_nn_circular_pad3d(__VA_ARGS__))
#define calx_nn_pixel_shuffle(...) (calx_at_(CALX_HERE), calx_nn_pixel_shuffle(__VA_ARGS__))
#define calx_nn_pixel_unshuffle(...) (calx_at_(CALX_HERE), calx_nn_pixel_unshuffle(__VA_ARGS__))
#define calx_nn_channel_shuffle(...) (calx_at_(CALX_HERE), calx_nn_channel_shuffle(__VA_ARGS__))
#endif
// clang-format on
#endif
#endif
