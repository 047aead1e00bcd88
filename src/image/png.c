// image/png: PNG by libspng.
//
// Pixels are decoded as RGB or RGBA of 8 bits, whatever the file has, and put
// into planes. The sizes in the header are bounded, and compared with what
// deflate can make of the file's bytes at most; checksums are checked.
#include "image/image.h"

#ifndef CX_HAVE_SPNG

calx_status *cx_image_decode_png(const cx_image_source *source,
                                 cx_image *out_image)
{
  (void)out_image;
  return cx_error(CALX_UNIMPLEMENTED,
                  "'%s': calx was built without libspng: install Debian's "
                  "libspng-dev and build it again",
                  source->name);
}

calx_status *cx_image_encode_png(const uint8_t *pixels, uint32_t height,
                                 uint32_t width, int channels,
                                 uint8_t **out_data, size_t *out_size)
{
  (void)pixels;
  (void)channels;
  *out_data = NULL;
  *out_size = 0;
  return cx_error(CALX_UNIMPLEMENTED,
                  "an image of %u x %u pixels cannot become a PNG: calx was "
                  "built without libspng: install Debian's libspng-dev and "
                  "build it again",
                  height, width);
}

#else

#include <string.h>

#include <spng.h>

#include "base/alloc.h"

// Deflate's bound: a match of 258 bytes takes two bits.
enum { MAX_RATIO = 1032 };
// Of a chunk, and of all that are kept.
enum { MAX_CHUNK = 16 << 20, MAX_CHUNKS = 64 << 20 };

// libspng tells some failures of zlib for a lack of memory as damage, and its
// allocators have no user pointer.
static _Thread_local bool no_memory;

static void *noted(void *p)
{
  no_memory = no_memory || p == NULL;
  return p;
}

static void *get_memory(size_t bytes)
{
  return noted(cx_alloc(bytes));
}

static void *get_zeroed(size_t count, size_t bytes)
{
  return noted(cx_calloc(count, bytes));
}

static void *get_more(void *old, size_t bytes)
{
  return noted(cx_realloc(old, bytes));
}

static calx_status *failed(const cx_image_source *source, int error)
{
  if (no_memory) return cx_out_of_memory();
  return cx_error(CALX_DATA_LOSS, "'%s': PNG: %s", source->name,
                  spng_strerror(error));
}

static calx_status *check_header(const cx_image_source *source,
                                 const struct spng_ihdr *h)
{
  static const unsigned samples[] = { 1, 0, 3, 1, 2, 0, 4 };  // by colour type
  CALX_TRY(cx_image_check_size(source, h->height, h->width));
  uint64_t bits = (uint64_t)h->width * samples[h->color_type] * h->bit_depth;
  // Of an interlaced image each row is in parts, none of them longer.
  uint64_t bytes = (bits + 7) / 8 * h->height;
  if (bytes / MAX_RATIO <= source->size) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': PNG: its header declares %u x %u pixels, the file of "
                  "%zu bytes cannot hold them",
                  source->name, h->height, h->width, source->size);
}

// Interleaved RGB or RGBA, `from` values a pixel, to planes.
static void put_planes(const uint8_t *pixels, size_t from, cx_image *image)
{
  size_t plane = cx_image_plane(image), channels = (size_t)image->channels;
  bool grey = channels <= 2;
  uint8_t *out = image->data;
  uint8_t *alpha = grey ? out + plane : out + 3 * plane;
  for (size_t i = 0; i < plane; i++, pixels += from) {
    if (grey) {
      out[i] = cx_image_luma(pixels[0], pixels[1], pixels[2]);
    } else {
      for (size_t c = 0; c < 3; c++) out[c * plane + i] = pixels[c];
    }
    if (channels == 2 || channels == 4) alpha[i] = from == 4 ? pixels[3] : 255;
  }
}

static calx_status *decode_as(spng_ctx *png, const cx_image_source *source,
                              bool with_alpha, cx_image *out_image)
{
  int format = with_alpha ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
  size_t bytes;
  int error = spng_decoded_image_size(png, format, &bytes);
  if (error != 0) return failed(source, error);
  uint8_t *pixels = cx_alloc(bytes);
  if (pixels == NULL) return cx_out_of_memory();
  error = spng_decode_image(png, pixels, bytes, format,
                            with_alpha ? SPNG_DECODE_TRNS : 0);
  // What comes behind the pixels: their checksum, and the end.
  if (error == 0) error = spng_decode_chunks(png);
  if (error == 0) put_planes(pixels, with_alpha ? 4 : 3, out_image);
  cx_free(pixels);
  return error == 0 ? NULL : failed(source, error);
}

static calx_status *decode(spng_ctx *png, const cx_image_source *source,
                           cx_image *out_image)
{
  struct spng_ihdr h;
  int error = spng_set_png_buffer(png, source->data, source->size);
  if (error == 0) {
    error = spng_set_crc_action(png, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
  }
  if (error == 0) error = spng_set_chunk_limits(png, MAX_CHUNK, MAX_CHUNKS);
  if (error == 0) error = spng_get_ihdr(png, &h);
  if (error != 0) return failed(source, error);
  CALX_TRY(check_header(source, &h));
  struct spng_trns transparent;
  error = spng_get_trns(png, &transparent);
  if (error != 0 && error != SPNG_ECHUNKAVAIL) return failed(source, error);
  bool grey = (h.color_type & SPNG_COLOR_TYPE_TRUECOLOR) == 0;
  bool has_alpha =
      error == 0 || (h.color_type & SPNG_COLOR_TYPE_GRAYSCALE_ALPHA) != 0;
  int64_t channels = cx_image_mode_channels(source->mode);
  if (channels == 0) channels = (grey ? 1 : 3) + (has_alpha ? 1 : 0);
  CALX_TRY(cx_image_new(channels, h.height, h.width, false, out_image));
  return decode_as(png, source, has_alpha && channels % 2 == 0, out_image);
}

calx_status *cx_image_decode_png(const cx_image_source *source,
                                 cx_image *out_image)
{
  struct spng_alloc memory = { get_memory, get_more, get_zeroed, cx_free };
  no_memory = false;
  spng_ctx *png = spng_ctx_new2(&memory, 0);
  if (png == NULL) return cx_out_of_memory();
  calx_status *status = decode(png, source, out_image);
  spng_ctx_free(png);
  return status;
}

// ---- encoding ---------------------------------------------------------------

static int encode(spng_ctx *png, const uint8_t *pixels,
                  const struct spng_ihdr *h, size_t bytes, uint8_t **out_data,
                  size_t *out_size)
{
  int error = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
  struct spng_ihdr header = *h;
  if (error == 0) error = spng_set_ihdr(png, &header);
  if (error == 0) {
    error = spng_encode_image(png, pixels, bytes, SPNG_FMT_PNG,
                              SPNG_ENCODE_FINALIZE);
  }
  if (error == 0) *out_data = spng_get_png_buffer(png, out_size, &error);
  return error;
}

calx_status *cx_image_encode_png(const uint8_t *pixels, uint32_t height,
                                 uint32_t width, int channels,
                                 uint8_t **out_data, size_t *out_size)
{
  static const uint8_t types[] = { SPNG_COLOR_TYPE_GRAYSCALE,
                                   SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                   SPNG_COLOR_TYPE_TRUECOLOR,
                                   SPNG_COLOR_TYPE_TRUECOLOR_ALPHA };
  const struct spng_ihdr h = { .width = width,
                               .height = height,
                               .bit_depth = 8,
                               .color_type = types[channels - 1] };
  struct spng_alloc memory = { get_memory, get_more, get_zeroed, cx_free };
  *out_data = NULL;
  *out_size = 0;
  no_memory = false;
  spng_ctx *png = spng_ctx_new2(&memory, SPNG_CTX_ENCODER);
  if (png == NULL) return cx_out_of_memory();
  int error = encode(png, pixels, &h, (size_t)height * width * (size_t)channels,
                     out_data, out_size);
  spng_ctx_free(png);
  if (error == 0) return NULL;
  if (no_memory) return cx_out_of_memory();
  return cx_invalid("an image of %u x %u pixels and %d channels as PNG: %s",
                    height, width, channels, spng_strerror(error));
}

#endif
