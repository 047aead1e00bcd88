// image/decode: the image of a file, by the decoder of its format.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "image/image.h"

#define MAX_FILE_BYTES ((size_t)512 << 20)

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
    .max_pixels = max_pixels == 0 ? CX_IMAGE_MAX_PIXELS : max_pixels,
  };
  calx_status *status = cx_image_decode(&source, out_image);
  cx_free(data);
  return status;
}
