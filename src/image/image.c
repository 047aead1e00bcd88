// image/image: images as tensors.
#include "image/image.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "lazy/lazy.h"

// PIL's MAX_IMAGE_PIXELS: a quarter of a GiB of RGB.
#define MAX_PIXELS ((int64_t)89478485)
#define MAX_FILE_BYTES ((size_t)512 << 20)

calx_status *cx_image_new(int64_t channels, int64_t height, int64_t width,
                          bool is_float, cx_image *out_image)
{
  *out_image = (cx_image){ channels, height, width, is_float, NULL };
  size_t bytes;
  if (!cx_mul_size((size_t)height, (size_t)width, &bytes) ||
      !cx_mul_size(bytes, (size_t)channels, &bytes) ||
      !cx_mul_size(bytes, is_float ? sizeof(float) : 1, &bytes)) {
    return cx_out_of_memory();
  }
  out_image->data = cx_alloc(bytes);
  return out_image->data != NULL ? NULL : cx_out_of_memory();
}

void cx_image_free(cx_image *image)
{
  cx_free(image->data);
  *image = (cx_image){ 0 };
}

int64_t cx_image_mode_channels(calx_image_mode mode)
{
  return (int64_t)mode;
}

calx_status *cx_image_check_size(const cx_image_source *source, uint32_t height,
                                 uint32_t width)
{
  if (height == 0 || width == 0) {
    return cx_error(CALX_DATA_LOSS, "'%s': an image of %u x %u pixels",
                    source->name, height, width);
  }
  // Both are below 2^32: the product fits.
  if ((uint64_t)height * width <= (uint64_t)source->max_pixels) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "'%s': an image of %u x %u pixels, the most is %lld in all: "
                  ".max_pixels raises it",
                  source->name, height, width, (long long)source->max_pixels);
}

calx_status *cx_image_decode(const cx_image_source *source, cx_image *out_image)
{
  static const uint8_t jpeg[] = { 0xff, 0xd8, 0xff };
  static const uint8_t png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
  *out_image = (cx_image){ 0 };
  size_t size = source->size;
  calx_status *status;
  if (size >= sizeof jpeg && memcmp(source->data, jpeg, sizeof jpeg) == 0) {
    status = cx_image_decode_jpeg(source, out_image);
  } else if (size >= sizeof png && memcmp(source->data, png, sizeof png) == 0) {
    status = cx_image_decode_png(source, out_image);
  } else {
    status = cx_invalid(
        "'%s': neither JPEG nor PNG: %zu bytes that begin%s "
        "with neither's mark",
        source->name, size, size == 0 ? ", as none," : "");
  }
  if (status != NULL) cx_image_free(out_image);
  return status;
}

calx_status *cx_image_read(const char *path, calx_image_mode mode,
                           int64_t max_pixels, cx_image *out_image)
{
  *out_image = (cx_image){ 0 };
  char *data;
  size_t size;
  CALX_TRY(cx_file_read_regular(path, MAX_FILE_BYTES, &data, &size));
  const cx_image_source source = {
    .name = path,
    .data = (const uint8_t *)data,
    .size = size,
    .mode = mode,
    .max_pixels = max_pixels == 0 ? MAX_PIXELS : max_pixels,
  };
  calx_status *status = cx_image_decode(&source, out_image);
  cx_free(data);
  return status;
}

// ---- as tensors -------------------------------------------------------------

static calx_status *take_options(const char *call,
                                 const calx_read_image_options *given,
                                 calx_read_image_options *out)
{
  CALX_TRY(cx_options_take(call, given, out, sizeof *out));
  if ((int)out->mode < 0 || out->mode > CALX_IMAGE_RGB_ALPHA) {
    return cx_invalid("%s: there is no mode %d", call, (int)out->mode);
  }
  if (out->layout != CALX_IMAGE_CHW && out->layout != CALX_IMAGE_HWC) {
    return cx_invalid("%s: there is no layout %d", call, (int)out->layout);
  }
  if (out->max_pixels < 0) {
    return cx_invalid("%s: a limit of %lld pixels", call,
                      (long long)out->max_pixels);
  }
  if (out->max_pixels == 0) out->max_pixels = MAX_PIXELS;
  return NULL;
}

static calx_tensor *interleaved(const cx_image *image)
{
  size_t plane = cx_image_plane(image), channels = (size_t)image->channels;
  uint8_t *pixels = cx_alloc(plane * channels);
  if (pixels == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  const uint8_t *from = image->data;
  for (size_t c = 0; c < channels; c++, from += plane) {
    for (size_t i = 0; i < plane; i++) pixels[i * channels + c] = from[i];
  }
  const int64_t dims[] = { image->height, image->width, image->channels };
  calx_tensor *t = calx_host_tensor(pixels, CALX_U8, calx_dims_of(dims, 3));
  cx_free(pixels);
  return t;
}

// Takes the image and the status of making it.
static calx_tensor *as_tensor(calx_status *status, cx_image *image,
                              calx_image_layout layout)
{
  if (status != NULL) return cx_lazy_tensor_poison(status);
  calx_tensor *t;
  if (layout == CALX_IMAGE_HWC) {
    t = interleaved(image);
  } else {
    const int64_t dims[] = { image->channels, image->height, image->width };
    t = calx_host_tensor(image->data, CALX_U8, calx_dims_of(dims, 3));
  }
  cx_image_free(image);
  return t;
}

calx_tensor *calx_read_image_with(const char *path,
                                  const calx_read_image_options *options)
{
  calx_read_image_options o;
  cx_image image = { 0 };
  calx_status *status = take_options("read_image", options, &o);
  if (status == NULL && path == NULL) {
    status = cx_invalid("read_image: the path is NULL");
  }
  if (status == NULL) {
    status = cx_image_read(path, o.mode, o.max_pixels, &image);
  }
  return as_tensor(status, &image, o.layout);
}

calx_tensor *calx_decode_image_with(const void *data, size_t bytes,
                                    const calx_read_image_options *options)
{
  calx_read_image_options o;
  cx_image image = { 0 };
  calx_status *status = take_options("decode_image", options, &o);
  if (status == NULL && data == NULL) {
    status = cx_invalid("decode_image: the data is NULL");
  }
  if (status == NULL) {
    const cx_image_source source = { "decode_image", data, bytes, o.mode,
                                     o.max_pixels };
    status = cx_image_decode(&source, &image);
  }
  return as_tensor(status, &image, o.layout);
}
