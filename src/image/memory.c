// image/memory: an image's memory, and the bounds of its sizes.
#include "base/alloc.h"
#include "image/image.h"

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
