// image/image: an image in memory, and the decoders that make one.
#ifndef CX_IMAGE_IMAGE_H
#define CX_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "calx/image.h"

// Planes of rows, (channels, height, width): u8, or f32 once it is a network's
// input.
typedef struct cx_image {
  int64_t channels, height, width;
  bool is_float;
  void *data;  // freed with cx_image_free()
} cx_image;    // the zero value is no image

static inline size_t cx_image_plane(const cx_image *image)
{
  return (size_t)image->height * (size_t)image->width;
}

static inline size_t cx_image_count(const cx_image *image)
{
  return (size_t)image->channels * cx_image_plane(image);
}

// Memory for an image of these sizes, which are positive.
calx_status *cx_image_new(int64_t channels, int64_t height, int64_t width,
                          bool is_float, cx_image *out_image) CALX_MUST_USE;
void cx_image_free(cx_image *image);

// PIL's MAX_IMAGE_PIXELS: a quarter of a GiB of RGB.
#define CX_IMAGE_MAX_PIXELS ((int64_t)89478485)

typedef struct cx_image_source {
  const char *name;  // for messages
  const uint8_t *data;
  size_t size;
  calx_image_mode mode;
  int64_t max_pixels;  // at least 1
} cx_image_source;

// DATA_LOSS or RESOURCE_EXHAUSTED where the sizes that a file declares are 0 or
// beyond the limit.
calx_status *cx_image_check_size(const cx_image_source *source, uint32_t height,
                                 uint32_t width) CALX_MUST_USE;

calx_status *cx_image_decode_jpeg(const cx_image_source *source,
                                  cx_image *out_image) CALX_MUST_USE;
calx_status *cx_image_decode_png(const cx_image_source *source,
                                 cx_image *out_image) CALX_MUST_USE;
// Interleaved pixels of 8 bits, 1 to 4 channels a pixel (grey, grey and alpha,
// RGB, RGBA), as a PNG file's content, which is freed with cx_free(). The sizes
// are positive.
calx_status *cx_image_encode_png(const uint8_t *pixels, uint32_t height,
                                 uint32_t width, int channels,
                                 uint8_t **out_data,
                                 size_t *out_size) CALX_MUST_USE;
// The one of both that the content begins as.
calx_status *cx_image_decode(const cx_image_source *source,
                             cx_image *out_image) CALX_MUST_USE;
// A file's image. max_pixels 0: the default.
calx_status *cx_image_read(const char *path, calx_image_mode mode,
                           int64_t max_pixels,
                           cx_image *out_image) CALX_MUST_USE;

// The grey value of a colour, ITU-R 601 in 16 bits of fraction.
static inline uint8_t cx_image_luma(unsigned r, unsigned g, unsigned b)
{
  return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16);
}

// The channels of a mode; 0: the file's.
int64_t cx_image_mode_channels(calx_image_mode mode);

#endif
