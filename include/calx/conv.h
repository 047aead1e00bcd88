/**
 * calx/conv.h: convolutions and pools. Part of calx/ops.h, whose conventions
 * hold here.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_CONV_H
#define CALX_CONV_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- convolution ------------------------------------------------------------

/** A padding that keeps the size (stride 1 only), as PyTorch's 'same'. */
#define CALX_PADDING_SAME (-1)

/** Zero means default; of a pair {a, 0} means {a, a}. */
typedef struct CALX_OPTIONS calx_conv2d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias; /* NULL: none; shape (O) */
  CALX_PAIR_(int64_t, stride);  /* rows, columns; 0 = 1 */
  /* zeros on both sides; CALX_ZERO_INT in [1] = none there; CALX_PADDING_SAME
   * */
  CALX_PAIR_(int64_t, padding);
  CALX_PAIR_(int64_t, dilation); /* 0 = 1 */
  CALX_NAMED int64_t groups;     /* 0 = 1 */
} calx_conv2d_options;

/**
 * 2-D cross-correlation of images with a bank of filters:
 *
 *   out[n,o,i,j] = bias[o] + sum_{c,u,v} w[o,c,u,v]
 *                  * x[n, g*C/G + c, i*sh + u*dh - ph, j*sw + v*dw - pw]
 *
 * @param x  images @shape (N, C, H, W) or (C, H, W)
 * @param w  filters @shape (O, C/groups, KH, KW)
 * @return @shape (N, O, (H + 2*ph - dh*(KH-1) - 1)/sh + 1, same rule for W)
 * @grad     x, w, bias
 * @lowers   stablehlo.convolution
 * @source   torch.nn.functional.conv2d
 */
CALX_API calx_tensor *calx_conv2d_with(calx_tensor *x, calx_tensor *w,
                                       const calx_conv2d_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_conv1d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias; /* NULL: none; shape (O) */
  CALX_NAMED int64_t stride;    /* 0 = 1 */
  CALX_NAMED int64_t padding;   /* zeros on both sides; CALX_PADDING_SAME */
  CALX_NAMED int64_t dilation;  /* 0 = 1 */
  CALX_NAMED int64_t groups;    /* 0 = 1 */
} calx_conv1d_options;
/** calx_conv2d in one dimension. @shape x (N, C, L) or (C, L), w (O, C/groups,
 * K)
 *  @grad x, w, bias @source torch.nn.functional.conv1d */
CALX_API calx_tensor *calx_conv1d_with(calx_tensor *x, calx_tensor *w,
                                       const calx_conv1d_options *options);

/** Zero means default; of a list {a, 0, 0} means {a, a, a}. */
typedef struct CALX_OPTIONS calx_conv3d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias;     /* NULL: none; shape (O) */
  CALX_ARRAY_(int64_t, stride, 3);  /* 0 = 1 */
  CALX_ARRAY_(int64_t, padding, 3); /* zeros on both sides; CALX_PADDING_SAME */
  CALX_ARRAY_(int64_t, dilation, 3); /* 0 = 1 */
  CALX_NAMED int64_t groups;         /* 0 = 1 */
} calx_conv3d_options;
/** calx_conv2d in three dimensions. @shape x (N, C, D, H, W) or (C, D, H, W), w
 * (O, C/groups, KD, KH, KW)
 *  @grad x, w, bias @source torch.nn.functional.conv3d */
CALX_API calx_tensor *calx_conv3d_with(calx_tensor *x, calx_tensor *w,
                                       const calx_conv3d_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_conv_transpose1d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias;      /* NULL: none; shape (O) */
  CALX_NAMED int64_t stride;         /* 0 = 1 */
  CALX_NAMED int64_t padding;        /* zeros on both sides */
  CALX_NAMED int64_t dilation;       /* 0 = 1 */
  CALX_NAMED int64_t output_padding; /* added to one end of the result */
  CALX_NAMED int64_t groups;         /* 0 = 1 */
} calx_conv_transpose1d_options;
/** The gradient of a convolution by its input, as an operation. @shape x (N, C,
 * L) or (C, L), w (C, O/groups, …) @grad x, w, bias
 *  @source torch.nn.functional.conv_transpose1d */
CALX_API calx_tensor *calx_conv_transpose1d_with(
    calx_tensor *x, calx_tensor *w,
    const calx_conv_transpose1d_options *options);

/** Zero means default; of a pair {a, 0} means {a, a}. */
typedef struct CALX_OPTIONS calx_conv_transpose2d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias;        /* NULL: none; shape (O) */
  CALX_PAIR_(int64_t, stride);         /* 0 = 1 */
  CALX_PAIR_(int64_t, padding);        /* zeros on both sides */
  CALX_PAIR_(int64_t, dilation);       /* 0 = 1 */
  CALX_PAIR_(int64_t, output_padding); /* added to one end of the result */
  CALX_NAMED int64_t groups;           /* 0 = 1 */
} calx_conv_transpose2d_options;
/** The gradient of a convolution by its input, as an operation. @shape x (N, C,
 * H, W) or (C, H, W), w (C, O/groups, …) @grad x, w, bias
 *  @source torch.nn.functional.conv_transpose2d */
CALX_API calx_tensor *calx_conv_transpose2d_with(
    calx_tensor *x, calx_tensor *w,
    const calx_conv_transpose2d_options *options);

/** Zero means default; of a list {a, 0, 0} means {a, a, a}. */
typedef struct CALX_OPTIONS calx_conv_transpose3d_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *bias;            /* NULL: none; shape (O) */
  CALX_ARRAY_(int64_t, stride, 3);         /* 0 = 1 */
  CALX_ARRAY_(int64_t, padding, 3);        /* zeros on both sides */
  CALX_ARRAY_(int64_t, dilation, 3);       /* 0 = 1 */
  CALX_ARRAY_(int64_t, output_padding, 3); /* added to one end of the result */
  CALX_NAMED int64_t groups;               /* 0 = 1 */
} calx_conv_transpose3d_options;
/** The gradient of a convolution by its input, as an operation. @shape x (N, C,
 * D, H, W) or (C, D, H, W), w (C, O/groups, …) @grad x, w, bias
 *  @source torch.nn.functional.conv_transpose3d */
CALX_API calx_tensor *calx_conv_transpose3d_with(
    calx_tensor *x, calx_tensor *w,
    const calx_conv_transpose3d_options *options);

// ---- pooling ----------------------------------------------------------------

/** Zero means default; of a pair {a, 0} means {a, a}. */
typedef struct CALX_OPTIONS calx_max_pool2d_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(int64_t, stride); /* 0 = the kernel's size */
  /* -inf on both sides, at most half the kernel; CALX_ZERO_INT in [1] = none
   * there */
  CALX_PAIR_(int64_t, padding);
  CALX_PAIR_(int64_t, dilation); /* 0 = 1 */
  CALX_NAMED bool ceil_mode;     /* a window may run over the end */
  /* NULL: none; i64, into the H*W plane */
  CALX_NAMED calx_tensor **out_indices;
  CALX_NAMED int64_t kernel_width; /* 0 = as high as wide */
} calx_max_pool2d_options;

/**
 * Greatest element of each window; NaN wins; the gradient goes to the first of
 * equals in row-major order.
 * @param kernel_size  height of the window, and its width unless .kernel_width
 * @shape x (N, C, H, W) or (C, H, W)
 * @lowers stablehlo.reduce_window; gradient stablehlo.select_and_scatter
 * @source torch.nn.functional.max_pool2d
 */
CALX_API calx_tensor *calx_max_pool2d_with(
    calx_tensor *x, int64_t kernel_size,
    const calx_max_pool2d_options *options);

/** Zero means default; of a list the first stands for the others. */
typedef struct CALX_OPTIONS calx_avg_pool1d_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t kernel_size;       /* needed */
  CALX_NAMED int64_t stride;            /* 0 = the kernel's size */
  CALX_NAMED int64_t padding;           /* zeros on both sides */
  CALX_NAMED bool ceil_mode;            /* a window may run over the end */
  CALX_NAMED bool no_count_include_pad; /* padding does not count */
  CALX_NAMED int64_t divisor_override;  /* 0 = the window's size */
} calx_avg_pool1d_options;
/** Mean of each window. @shape x (N, C, L) or without N
 *  @source torch.nn.functional.avg_pool1d */
CALX_API calx_tensor *calx_avg_pool1d_with(
    calx_tensor *x, const calx_avg_pool1d_options *options);

/** Zero means default; of a list the first stands for the others. */
typedef struct CALX_OPTIONS calx_avg_pool2d_options {
  CALX_NAMED size_t size;
  CALX_ARRAY_(int64_t, kernel_size, 2); /* needed */
  CALX_ARRAY_(int64_t, stride, 2);      /* 0 = the kernel's size */
  CALX_ARRAY_(int64_t, padding, 2);     /* zeros on both sides */
  CALX_NAMED bool ceil_mode;            /* a window may run over the end */
  CALX_NAMED bool no_count_include_pad; /* padding does not count */
  CALX_NAMED int64_t divisor_override;  /* 0 = the window's size */
} calx_avg_pool2d_options;
/** Mean of each window. @shape x (N, C, H, W) or without N
 *  @source torch.nn.functional.avg_pool2d */
CALX_API calx_tensor *calx_avg_pool2d_with(
    calx_tensor *x, const calx_avg_pool2d_options *options);

/** Zero means default; of a list the first stands for the others. */
typedef struct CALX_OPTIONS calx_avg_pool3d_options {
  CALX_NAMED size_t size;
  CALX_ARRAY_(int64_t, kernel_size, 3); /* needed */
  CALX_ARRAY_(int64_t, stride, 3);      /* 0 = the kernel's size */
  CALX_ARRAY_(int64_t, padding, 3);     /* zeros on both sides */
  CALX_NAMED bool ceil_mode;            /* a window may run over the end */
  CALX_NAMED bool no_count_include_pad; /* padding does not count */
  CALX_NAMED int64_t divisor_override;  /* 0 = the window's size */
} calx_avg_pool3d_options;
/** Mean of each window. @shape x (N, C, D, H, W) or without N
 *  @source torch.nn.functional.avg_pool3d */
CALX_API calx_tensor *calx_avg_pool3d_with(
    calx_tensor *x, const calx_avg_pool3d_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_max_pool1d_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t stride;   /* 0 = the kernel's size */
  CALX_NAMED int64_t padding;  /* -inf on both sides, at most half the kernel */
  CALX_NAMED int64_t dilation; /* 0 = 1 */
  CALX_NAMED bool ceil_mode;   /* a window may run over the end */
  CALX_NAMED calx_tensor **out_indices; /* NULL: none; i64 */
} calx_max_pool1d_options;
/** calx_max_pool2d in one dimension. @shape x (N, C, L) or (C, L)
 *  @source torch.nn.functional.max_pool1d */
CALX_API calx_tensor *calx_max_pool1d_with(
    calx_tensor *x, int64_t kernel_size,
    const calx_max_pool1d_options *options);

/** Zero means default; of a list the first stands for the others. */
typedef struct CALX_OPTIONS calx_max_pool3d_options {
  CALX_NAMED size_t size;
  CALX_ARRAY_(int64_t, stride, 3);   /* 0 = the kernel's size */
  CALX_ARRAY_(int64_t, padding, 3);  /* -inf, at most half the kernel */
  CALX_ARRAY_(int64_t, dilation, 3); /* 0 = 1 */
  CALX_NAMED bool ceil_mode;         /* a window may run over the end */
  CALX_NAMED int64_t kernel_height;  /* 0 = kernel_size */
  CALX_NAMED int64_t kernel_width;   /* 0 = kernel_size */
  /* NULL: none; i64, into the D*H*W box */
  CALX_NAMED calx_tensor **out_indices;
} calx_max_pool3d_options;
/** calx_max_pool2d in three dimensions. @shape x (N, C, D, H, W) or without N
 *  @source torch.nn.functional.max_pool3d */
CALX_API calx_tensor *calx_max_pool3d_with(
    calx_tensor *x, int64_t kernel_size,
    const calx_max_pool3d_options *options);

/** Zero means default; of a list the first stands for the others. */
typedef struct CALX_OPTIONS calx_lp_pool_options {
  CALX_NAMED size_t size;
  CALX_ARRAY_(int64_t, kernel_size, 3); /* needed */
  CALX_ARRAY_(int64_t, stride, 3);      /* 0 = the kernel's size */
  CALX_NAMED bool ceil_mode;            /* a window may run over the end */
} calx_lp_pool_options;
/** (sum x^norm_type)^(1/norm_type) of each window, for a positive, finite
 *  norm_type. @shape x (N, C, L) or without N
 *  @source torch.nn.functional.lp_pool1d */
CALX_API calx_tensor *calx_lp_pool1d_with(calx_tensor *x, double norm_type,
                                          const calx_lp_pool_options *options);
/** The same. @shape x (N, C, H, W) or without N
 *  @source torch.nn.functional.lp_pool2d */
CALX_API calx_tensor *calx_lp_pool2d_with(calx_tensor *x, double norm_type,
                                          const calx_lp_pool_options *options);
/** The same. @shape x (N, C, D, H, W) or without N
 *  @source torch.nn.functional.lp_pool3d */
CALX_API calx_tensor *calx_lp_pool3d_with(calx_tensor *x, double norm_type,
                                          const calx_lp_pool_options *options);

/** Means of as many bins of each spatial dimension; -1 keeps its size. As many
 *  sizes as spatial dimensions. @shape x (N, C, …) or (C, …)
 *  @source torch.nn.functional.adaptive_avg_pool1d to 3d */
CALX_API calx_tensor *calx_adaptive_avg_pool(calx_tensor *x,
                                             calx_dims output_size);
/** Greatest elements of the same bins; the gradient goes to the first of
 *  equals. @shape as calx_adaptive_avg_pool
 *  @source torch.nn.functional.adaptive_max_pool1d to 3d */
CALX_API calx_tensor *calx_adaptive_max_pool(calx_tensor *x,
                                             calx_dims output_size);
/** The same, and where each is. @param out_indices  i64, into the spatial
 *  dimensions in row-major order @shape as calx_adaptive_avg_pool
 *  @source torch.nn.functional.adaptive_max_pool1d_with_indices to 3d */
CALX_API calx_tensor *calx_adaptive_max_pool_with_indices(
    calx_tensor *x, calx_dims output_size, calx_tensor **out_indices);

/** How calx_interpolate finds values between elements. */
typedef enum calx_interpolation {
  CALX_INTERPOLATE_NEAREST = 0,
  CALX_INTERPOLATE_LINEAR, /* along each dimension: bilinear, trilinear */
  CALX_INTERPOLATE_BICUBIC,
  CALX_INTERPOLATE_AREA,         /* calx_adaptive_avg_pool */
  CALX_INTERPOLATE_NEAREST_EXACT /* of the result's middle */
} calx_interpolation;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_interpolate_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_interpolation mode;
  CALX_NAMED bool align_corners; /* the corners' values stay at the corners */
  /* with CALX_NO_SIZES: for each spatial dimension, or one for all. Sizes are
   * floor(size scale_factor) */
  CALX_ARRAY_(double, scale_factor, 3);
  /* positions by the ratio of the sizes, not by the factor: they differ where
   * size scale_factor is no integer */
  CALX_NAMED bool recompute_scale_factor;
} calx_interpolate_options;
/** For calx_interpolate with .scale_factor. */
#define CALX_NO_SIZES CALX_SCALAR
/** The images in other sizes, one for each spatial dimension:
 *  calx_interpolate(x, CALX_SHAPE(64, 64), .mode = CALX_INTERPOLATE_LINEAR),
 *  calx_interpolate(x, CALX_NO_SIZES, .scale_factor = 2).
 *  @shape x (N, C, …) or (C, …); with factors (N, C, …)
 *  @source torch.nn.functional.interpolate */
CALX_API calx_tensor *calx_interpolate_with(
    calx_tensor *x, calx_dims sizes, const calx_interpolate_options *options);

/** Zero means default; of a pair {a, 0} means {a, a}. */
typedef struct CALX_OPTIONS calx_unfold_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(int64_t, stride);   /* 0 = 1 */
  CALX_PAIR_(int64_t, padding);  /* zeros on both sides */
  CALX_PAIR_(int64_t, dilation); /* 0 = 1 */
} calx_unfold_options;
/** The elements of each window as a column.
 *  @shape (N, C, H, W) -> (N, C KH KW, windows) @source
 *  torch.nn.functional.unfold */
CALX_API calx_tensor *calx_unfold_with(calx_tensor *x, calx_dims kernel_size,
                                       const calx_unfold_options *options);

#ifdef __cplusplus
}
#endif
#endif
