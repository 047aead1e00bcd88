/**
 * calx/image.h: images of files.
 *
 * JPEG (libjpeg-turbo) and PNG (libspng) are told apart by their content. The
 * content is not trusted: the sizes that it declares are bounded before memory
 * is asked for, and a damaged or truncated image is an error, never one with a
 * grey part. Pixels are in the order R, G, B, A; JPEG's orientation tag and
 * colour profiles are not applied.
 */
#ifndef CALX_IMAGE_H
#define CALX_IMAGE_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which channels an image gets. The numbers are torchvision's. */
typedef enum calx_image_mode {
  CALX_IMAGE_UNCHANGED = 0, /* those of the file; a palette's are RGB(A) */
  CALX_IMAGE_GRAY = 1,      /* Y = 0.299 R + 0.587 G + 0.114 B */
  CALX_IMAGE_GRAY_ALPHA = 2,
  CALX_IMAGE_RGB = 3, /* a grey value three times; no alpha */
  CALX_IMAGE_RGB_ALPHA = 4
} calx_image_mode;

/** The order of an image's elements in memory. */
typedef enum calx_image_layout {
  CALX_IMAGE_CHW = 0, /* PyTorch's */
  CALX_IMAGE_HWC      /* NumPy's and PIL's */
} calx_image_layout;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_read_image_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_image_mode mode;
  CALX_NAMED calx_image_layout layout;
  CALX_NAMED int64_t max_pixels; /* height x width; 0 = 89478485, PIL's limit */
} calx_read_image_options;

/**
 * The image of a file, on the host.
 * @param path  JPEG or PNG; of PNG's 16 bits the upper 8 are kept
 * @shape (channels, H, W), with CALX_IMAGE_HWC (H, W, channels)  @dtype u8
 * @errors through the scope: NOT_FOUND, PERMISSION_DENIED the file
 *         INVALID_ARGUMENT a bad option, no regular file, neither JPEG nor PNG
 *         RESOURCE_EXHAUSTED more than .max_pixels, or a file of over 512 MiB
 *         DATA_LOSS it is damaged or ends early  UNIMPLEMENTED calx was built
 *         without the library: the Debian package is named
 * @owner the current scope  @threads thread-safe
 * @source torchvision.io.read_image
 */
CALX_API calx_tensor *calx_read_image_with(
    const char *path, const calx_read_image_options *options);

/**
 * The same of a file's content.
 * @shape as calx_read_image  @errors as calx_read_image
 * @source torchvision.io.decode_image
 */
CALX_API calx_tensor *calx_decode_image_with(
    const void *data, size_t bytes, const calx_read_image_options *options);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define CALX_READ_IMAGE_(path, ...) \
  (calx_at_(CALX_HERE),             \
   calx_read_image_with(path, &(calx_read_image_options){ __VA_ARGS__ }))
#define calx_read_image(...) \
  CALX_READ_IMAGE_(__VA_ARGS__, .size = sizeof(calx_read_image_options))
#define CALX_DECODE_IMAGE_(data, bytes, ...) \
  (calx_at_(CALX_HERE),                      \
   calx_decode_image_with(data, bytes,       \
                          &(calx_read_image_options){ __VA_ARGS__ }))
#define calx_decode_image(data, ...) \
  CALX_DECODE_IMAGE_(data, __VA_ARGS__, .size = sizeof(calx_read_image_options))
#endif
#endif
