// image/image: images as tensors.
#include "image/image.h"

#include "base/alloc.h"
#include "base/options.h"
#include "lazy/lazy.h"

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
  if (out->max_pixels == 0) out->max_pixels = CX_IMAGE_MAX_PIXELS;
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
