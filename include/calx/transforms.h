/**
 * calx/transforms.h: what is done to an image before it is a network's input.
 *
 * A transform takes an image (channels, H, W), u8 or f32, and gives another:
 *
 *   calx_transform *augment = calx_transforms_compose(
 *       calx_transforms_random_resized_crop(CALX_DIMS(224)),
 *       calx_transforms_random_horizontal_flip(0.5),
 *       calx_transforms_to_tensor(),
 *       calx_transforms_normalize(mean, std, 3));
 *
 * Names, defaults and results are those of torchvision.transforms for tensors;
 * only the random numbers are others. What is drawn for a sample depends on the
 * dataset's seed, the epoch and the sample's number, so neither the workers nor
 * the order of samples matter. A transform has no state: several threads and
 * datasets may use one.
 *
 * One that cannot be made is a failed one: its error says so, and whatever uses
 * it fails with that. A size is CALX_DIMS(n) or CALX_DIMS(height, width).
 *
 * @errors  through calx_transform_error(): INVALID_ARGUMENT an option or a size
 *          out of range or not finite
 * @threads thread-safe
 */
#ifndef CALX_TRANSFORMS_H
#define CALX_TRANSFORMS_H

#include "calx/image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_transform calx_transform;

/** NULL is accepted. Datasets that use it must be gone. */
CALX_API void calx_transform_free(calx_transform *transform);
/** Why the transform is of no use; NULL: it is. Owned by the transform. */
CALX_API const calx_status *calx_transform_error(
    const calx_transform *transform);
/**
 * The transform of one image.
 * @param image  on the host @shape (channels, H, W) @dtype u8, f32 in [0, 1]
 * @param seed   decides what is drawn
 * @return on the host
 * @errors through the scope: INVALID_ARGUMENT not such an image, or what the
 *         transform cannot do with it; a failed transform's own
 * @owner the current scope
 */
CALX_API calx_tensor *calx_transform_apply(const calx_transform *transform,
                                           calx_tensor *image, uint64_t seed);

/** Transforms one after the other. They go with it, also where it fails.
 *  @errors INVALID_ARGUMENT none, a NULL one; those of the transforms
 *  @source torchvision.transforms.Compose */
CALX_API calx_transform *calx_transforms_compose_n(calx_transform *const *list,
                                                   size_t count);

// ---- sizes ------------------------------------------------------------------

/** How values between pixels are found. */
typedef enum calx_interpolation_mode {
  CALX_INTERPOLATION_DEFAULT = 0, /* bilinear; of a rotation nearest */
  CALX_INTERPOLATION_BILINEAR,
  CALX_INTERPOLATION_NEAREST,
  CALX_INTERPOLATION_BICUBIC
} calx_interpolation_mode;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_transforms_resize_options {
  CALX_NAMED size_t size;
  /* of the longer edge, where the size is of the shorter one; 0: no limit */
  CALX_NAMED int64_t max_size;
  CALX_NAMED calx_interpolation_mode interpolation;
  CALX_NAMED bool no_antialias; /* not with bicubic */
} calx_transforms_resize_options;
/** Another size: CALX_DIMS(n) makes the shorter edge n and keeps the
 *  proportions, CALX_DIMS(height, width) does not.
 *  @source torchvision.transforms.Resize */
CALX_API calx_transform *calx_transforms_resize_with(
    calx_dims size, const calx_transforms_resize_options *options);

/** The middle; a smaller image gets a border of 0.
 *  @source torchvision.transforms.CenterCrop */
CALX_API calx_transform *calx_transforms_center_crop(calx_dims size);

/** What a border is made of. */
typedef enum calx_padding_mode {
  CALX_PADDING_CONSTANT = 0, /* .fill */
  CALX_PADDING_EDGE,         /* the last pixel */
  CALX_PADDING_REFLECT,      /* the image, without its last pixel */
  CALX_PADDING_SYMMETRIC     /* the image, with it */
} calx_padding_mode;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_transforms_random_crop_options {
  CALX_NAMED size_t size;
  /* pixels: of all sides; left and right, top and bottom; or left, top, right,
   * bottom */
  CALX_NAMED calx_dims padding;
  CALX_NAMED bool pad_if_needed; /* else a smaller image is an error */
  CALX_NAMED double fill;        /* of every channel */
  CALX_NAMED calx_padding_mode padding_mode;
} calx_transforms_random_crop_options;
/** A part at a random place. @source torchvision.transforms.RandomCrop */
CALX_API calx_transform *calx_transforms_random_crop_with(
    calx_dims size, const calx_transforms_random_crop_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_transforms_random_resized_crop_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(double, scale); /* of the area; default 0.08 to 1 */
  CALX_PAIR_(double, ratio); /* width / height; default 3/4 to 4/3 */
  CALX_NAMED calx_interpolation_mode interpolation;
  CALX_NAMED bool no_antialias; /* not with bicubic */
} calx_transforms_random_resized_crop_options;
/** A part of random area, proportions and place, resized.
 *  @source torchvision.transforms.RandomResizedCrop */
CALX_API calx_transform *calx_transforms_random_resized_crop_with(
    calx_dims size, const calx_transforms_random_resized_crop_options *options);

// ---- geometry ---------------------------------------------------------------

/** Left and right exchanged with the probability p; torchvision's default is
 *  0.5. @source torchvision.transforms.RandomHorizontalFlip */
CALX_API calx_transform *calx_transforms_random_horizontal_flip(double p);
/** Top and bottom exchanged with the probability p.
 *  @source torchvision.transforms.RandomVerticalFlip */
CALX_API calx_transform *calx_transforms_random_vertical_flip(double p);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_transforms_random_rotation_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_interpolation_mode interpolation; /* not bicubic */
  CALX_NAMED double fill; /* of what was outside, in every channel */
} calx_transforms_random_rotation_options;
/** Turned about its middle, counter-clockwise, by an angle of [low, high]
 *  degrees; torchvision's RandomRotation(d) is (-d, d). The size stays.
 *  @source torchvision.transforms.RandomRotation */
CALX_API calx_transform *calx_transforms_random_rotation_with(
    double low, double high,
    const calx_transforms_random_rotation_options *options);

// ---- values -----------------------------------------------------------------

/** Zero means default in every field. A single number x means [1 - x, 1 + x],
 *  of the hue [-x, x]; a pair is the range itself. */
typedef struct CALX_OPTIONS calx_transforms_color_jitter_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(double, brightness);
  CALX_PAIR_(double, contrast);
  CALX_PAIR_(double, saturation);
  CALX_PAIR_(double, hue); /* turns, from -0.5 to 0.5 */
} calx_transforms_color_jitter_options;
/** Random factors of brightness, contrast and saturation and a shift of the
 *  hue, in random order; of 1 or 3 channels.
 *  @source torchvision.transforms.ColorJitter */
CALX_API calx_transform *calx_transforms_color_jitter_with(
    const calx_transforms_color_jitter_options *options);

/** u8 in 0 to 255 becomes f32 in 0 to 1; f32 stays.
 *  @source torchvision.transforms.ToTensor */
CALX_API calx_transform *calx_transforms_to_tensor(void);
/** (x - mean) / std of f32; one pair of numbers for each channel, or one.
 *  @source torchvision.transforms.Normalize */
CALX_API calx_transform *calx_transforms_normalize(const float *mean,
                                                   const float *std,
                                                   size_t channels);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_transforms_random_erasing_options {
  CALX_NAMED size_t size;
  CALX_PAIR_(double, scale); /* of the area; default 0.02 to 0.33 */
  CALX_PAIR_(double, ratio); /* height / width; default 0.3 to 3.3 */
  CALX_NAMED double value;   /* what is put there */
  CALX_NAMED bool random;    /* normal numbers instead; of f32 */
} calx_transforms_random_erasing_options;
/** A rectangle that is overwritten, with the probability p; torchvision's
 *  default is 0.5. @source torchvision.transforms.RandomErasing */
CALX_API calx_transform *calx_transforms_random_erasing_with(
    double p, const calx_transforms_random_erasing_options *options);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
// clang-format off
#define calx_transform_apply(transform, ...) (calx_at_(CALX_HERE), calx_transform_apply(transform, __VA_ARGS__))
#define calx_transforms_compose(...) (calx_at_(CALX_HERE), calx_transforms_compose_n((calx_transform *const[]){ __VA_ARGS__ }, sizeof((calx_transform *const[]){ __VA_ARGS__ }) / sizeof(calx_transform *)))
#define calx_transforms_resize(...) CALX_TRANSFORMS_RESIZE_(__VA_ARGS__, .size = sizeof(calx_transforms_resize_options))
#define CALX_TRANSFORMS_RESIZE_(dims, ...) (calx_at_(CALX_HERE), calx_transforms_resize_with(dims, &(calx_transforms_resize_options){ __VA_ARGS__ }))
#define calx_transforms_center_crop(size) (calx_at_(CALX_HERE), calx_transforms_center_crop(size))
#define calx_transforms_random_crop(...) CALX_TRANSFORMS_RANDOM_CROP_(__VA_ARGS__, .size = sizeof(calx_transforms_random_crop_options))
#define CALX_TRANSFORMS_RANDOM_CROP_(dims, ...) (calx_at_(CALX_HERE), calx_transforms_random_crop_with(dims, &(calx_transforms_random_crop_options){ __VA_ARGS__ }))
#define calx_transforms_random_resized_crop(...) CALX_TRANSFORMS_RANDOM_RESIZED_CROP_(__VA_ARGS__, .size = sizeof(calx_transforms_random_resized_crop_options))
#define CALX_TRANSFORMS_RANDOM_RESIZED_CROP_(dims, ...) (calx_at_(CALX_HERE), calx_transforms_random_resized_crop_with(dims, &(calx_transforms_random_resized_crop_options){ __VA_ARGS__ }))
#define calx_transforms_random_horizontal_flip(p) (calx_at_(CALX_HERE), calx_transforms_random_horizontal_flip(p))
#define calx_transforms_random_vertical_flip(p) (calx_at_(CALX_HERE), calx_transforms_random_vertical_flip(p))
#define calx_transforms_random_rotation(low, ...) CALX_TRANSFORMS_RANDOM_ROTATION_(low, __VA_ARGS__, .size = sizeof(calx_transforms_random_rotation_options))
#define CALX_TRANSFORMS_RANDOM_ROTATION_(low, high, ...) (calx_at_(CALX_HERE), calx_transforms_random_rotation_with(low, high, &(calx_transforms_random_rotation_options){ __VA_ARGS__ }))
#define calx_transforms_color_jitter(...) (calx_at_(CALX_HERE), calx_transforms_color_jitter_with(&(calx_transforms_color_jitter_options){ .size = sizeof(calx_transforms_color_jitter_options), __VA_ARGS__ }))
#define calx_transforms_to_tensor() (calx_at_(CALX_HERE), calx_transforms_to_tensor())
#define calx_transforms_normalize(...) (calx_at_(CALX_HERE), calx_transforms_normalize(__VA_ARGS__))
#define calx_transforms_random_erasing(...) CALX_TRANSFORMS_RANDOM_ERASING_(__VA_ARGS__, .size = sizeof(calx_transforms_random_erasing_options))
#define CALX_TRANSFORMS_RANDOM_ERASING_(p, ...) (calx_at_(CALX_HERE), calx_transforms_random_erasing_with(p, &(calx_transforms_random_erasing_options){ __VA_ARGS__ }))
// clang-format on
#endif
#endif
