// image/jpeg: JPEG by libjpeg-turbo.
//
// libjpeg reports an error by a function that must not return: ours stores a
// status and jumps. Everything that is read after the jump lies in one struct,
// so that no local variable is clobbered.
//
// What bounds the work: the pixels that the header declares; the bytes that as
// many pixels need at least (sequential Huffman coding); and the number of
// scans, since each scan of a progressive file visits every block and may be a
// few bytes long. A warning that pixels are missing or damaged is an error.
#include "image/image.h"

#ifndef CX_HAVE_JPEG

calx_status *cx_image_decode_jpeg(const cx_image_source *source,
                                  cx_image *out_image)
{
  (void)out_image;
  return cx_error(CALX_UNIMPLEMENTED,
                  "'%s': calx was built without libjpeg-turbo: install "
                  "Debian's libjpeg62-turbo-dev and build it again",
                  source->name);
}

#else

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/alloc.h"

enum { MAX_SCANS = 100 };
// A block of 8 x 8 values takes one bit for its first one and one for the rest.
enum { VALUES_PER_BYTE = 64 * 8 / 2 };

typedef struct decoder {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf failed;
  const cx_image_source *source;
  calx_status *status;
  cx_image *image;
  uint8_t *row;  // of interleaved pixels
} decoder;

_Noreturn static void fail(j_common_ptr jpeg)
{
  decoder *d = jpeg->client_data;
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY) {
    d->status = cx_out_of_memory();
  } else {
    d->status =
        cx_error(CALX_DATA_LOSS, "'%s': JPEG: %s", d->source->name, message);
  }
  longjmp(d->failed, 1);
}

// Traces have levels from 0, warnings -1.
static void warn(j_common_ptr jpeg, int level)
{
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL: fail(jpeg);
    default: jpeg->err->num_warnings++;
  }
}

static void watch(j_common_ptr jpeg)
{
  decoder *d = jpeg->client_data;
  if (((j_decompress_ptr)jpeg)->input_scan_number <= MAX_SCANS) return;
  d->status =
      cx_error(CALX_DATA_LOSS, "'%s': JPEG: more than %d scans for one image",
               d->source->name, MAX_SCANS);
  longjmp(d->failed, 1);
}

static calx_status *check_header(decoder *d)
{
  const j_decompress_ptr jpeg = &d->jpeg;
  CALX_TRY(
      cx_image_check_size(d->source, jpeg->image_height, jpeg->image_width));
  uint64_t pixels = (uint64_t)jpeg->image_height * jpeg->image_width;
  if (jpeg->progressive_mode || jpeg->arith_code ||
      pixels / VALUES_PER_BYTE <= d->source->size) {
    return NULL;
  }
  return cx_error(CALX_DATA_LOSS,
                  "'%s': JPEG: its header declares %u x %u pixels, the file of "
                  "%zu bytes cannot hold them",
                  d->source->name, jpeg->image_height, jpeg->image_width,
                  d->source->size);
}

// libjpeg converts to grey and RGB; of CMYK the inverted form, Adobe's, is
// made.
static void choose_colours(decoder *d)
{
  const j_decompress_ptr jpeg = &d->jpeg;
  calx_image_mode mode = d->source->mode;
  bool cmyk =
      jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
  bool grey =
      mode == CALX_IMAGE_GRAY || mode == CALX_IMAGE_GRAY_ALPHA ||
      (mode == CALX_IMAGE_UNCHANGED && jpeg->jpeg_color_space == JCS_GRAYSCALE);
  jpeg->out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
}

static int64_t channels_out(const decoder *d)
{
  int64_t channels = cx_image_mode_channels(d->source->mode);
  if (channels != 0) return channels;
  return d->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3;
}

// One row of CMYK as RGB, in place. Adobe stores 255 - ink.
static void from_cmyk(decoder *d)
{
  uint8_t *to = d->row;
  bool inverted = d->jpeg.saw_Adobe_marker;
  for (unsigned x = 0; x < d->jpeg.output_width; x++) {
    const uint8_t *ink = d->row + 4 * (size_t)x;
    unsigned paper[4];
    for (int k = 0; k < 4; k++) paper[k] = inverted ? ink[k] : 255U - ink[k];
    for (int k = 0; k < 3; k++) {
      *to++ = (uint8_t)((paper[k] * paper[3] + 127) / 255);
    }
  }
}

static void put_row(decoder *d, size_t y)
{
  cx_image *image = d->image;
  size_t width = (size_t)image->width, plane = cx_image_plane(image);
  uint8_t *out = (uint8_t *)image->data + y * width;
  size_t from = d->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3;
  bool grey = image->channels <= 2;
  size_t colours = grey ? 1 : 3;
  if (d->jpeg.out_color_space == JCS_CMYK) from_cmyk(d);
  for (size_t x = 0; x < width; x++) {
    const uint8_t *pixel = d->row + from * x;
    if (grey && from == 3) {
      out[x] = cx_image_luma(pixel[0], pixel[1], pixel[2]);
      continue;
    }
    for (size_t c = 0; c < colours; c++) {
      out[c * plane + x] = pixel[from == 1 ? 0 : c];
    }
  }
  if ((size_t)image->channels > colours) {
    memset(out + colours * plane, 255, width);
  }
}

static calx_status *decode(decoder *d)
{
  const j_decompress_ptr jpeg = &d->jpeg;
  jpeg_mem_src(jpeg, d->source->data, d->source->size);
  jpeg_read_header(jpeg, TRUE);
  CALX_TRY(check_header(d));
  choose_colours(d);
  jpeg_start_decompress(jpeg);
  CALX_TRY(cx_image_new(channels_out(d), jpeg->output_height,
                        jpeg->output_width, false, d->image));
  d->row = cx_alloc((size_t)jpeg->output_width * 4);
  if (d->row == NULL) return cx_out_of_memory();
  while (jpeg->output_scanline < jpeg->output_height) {
    size_t y = jpeg->output_scanline;
    JSAMPROW rows[] = { d->row };
    jpeg_read_scanlines(jpeg, rows, 1);
    put_row(d, y);
  }
  jpeg_finish_decompress(jpeg);
  return NULL;
}

calx_status *cx_image_decode_jpeg(const cx_image_source *source,
                                  cx_image *out_image)
{
  decoder *d = cx_calloc(1, sizeof *d);
  if (d == NULL) return cx_out_of_memory();
  d->source = source;
  d->image = out_image;
  d->jpeg.err = jpeg_std_error(&d->errors);
  d->errors.error_exit = fail;
  d->errors.emit_message = warn;
  d->jpeg.client_data = d;
  if (setjmp(d->failed) == 0) {
    jpeg_create_decompress(&d->jpeg);
    d->progress.progress_monitor = watch;
    d->jpeg.progress = &d->progress;
    d->status = decode(d);
  }
  jpeg_destroy_decompress(&d->jpeg);
  calx_status *status = d->status;
  cx_free(d->row);
  cx_free(d);
  return status;
}

#endif
