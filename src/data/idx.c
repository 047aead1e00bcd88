// data/idx: a bounded reader of IDX files.
//
// The format: two zero bytes, the element type (08: u8), the number of
// dimensions, each size as a big-endian u32, then the elements, row-major.
// The content is hostile until it is checked: the sizes are multiplied with
// care, compared with what the file can hold before memory is asked for, and
// the file must end where they say. A gzip file is unpacked up to that point,
// so one that goes on for ever is noticed by its first byte too many.
//
// Bytes in messages count from the start of the content, unpacked where it is
// gzip.
//
// Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten
// digits", file formats.
#include "data/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "data/stream.h"

// Neither a file nor what it unpacks to may be larger.
#define MOST_BYTES ((size_t)4 << 30)

static calx_status *read_header(cx_data_stream *stream, size_t rank,
                                uint8_t *out_header)
{
  size_t wanted = 4 + 4 * rank, got;
  CALX_TRY(cx_data_stream_read(stream, out_header, wanted, &got));
  const uint8_t *h = out_header;
  size_t magic = got < 4 ? got : 4;
  const uint8_t expected[4] = { 0, 0, 8, (uint8_t)rank };
  for (size_t i = 0; i < magic; i++) {
    if (h[i] == expected[i]) continue;
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte %zu: the magic number has %02x, IDX of u8 with "
                    "%zu dimension%s begins with 00 00 08 %02zx",
                    stream->name, i, h[i], rank, rank == 1 ? "" : "s", rank);
  }
  if (got == wanted) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': byte %zu: ends inside its header of %zu bytes",
                  stream->name, got, wanted);
}

// "[60000,28,28]"
static void format_sizes(const cx_data_idx *idx, char out[48])
{
  size_t at = 0;
  for (size_t d = 0; d < idx->rank; d++) {
    at += (size_t)snprintf(out + at, 48 - at, "%s%" PRId64, d == 0 ? "[" : ",",
                           idx->dims[d]);
  }
  snprintf(out + at, 48 - at, "]");
}

// False: their product has no number.
static bool take_dims(const uint8_t *header, cx_data_idx *idx)
{
  uint64_t bytes = 1;
  bool fits = true;
  for (size_t d = 0; d < idx->rank; d++) {
    const uint8_t *p = header + 4 + 4 * d;
    uint32_t dim = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
                   (uint32_t)p[2] << 8 | p[3];
    idx->dims[d] = dim;
    fits = !__builtin_mul_overflow(bytes, (uint64_t)dim, &bytes) && fits;
  }
  idx->bytes = (size_t)bytes;
  return fits;
}

// Takes the sizes from the header and checks them against what can follow.
static calx_status *take_sizes(const cx_data_stream *stream,
                               const uint8_t *header, cx_data_idx *idx)
{
  bool fits = take_dims(header, idx);
  uint64_t bytes = idx->bytes;
  char sizes[48];
  format_sizes(idx, sizes);
  uint64_t most = cx_data_stream_most(stream);
  if (!fits || bytes > MOST_BYTES) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte 4: the sizes %s ask for more than the %zu "
                    "bytes that are allowed",
                    stream->name, sizes, MOST_BYTES);
  }
  if (bytes > most) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte 4: the sizes %s ask for %" PRIu64
                    " bytes, the file has %s%" PRIu64,
                    stream->name, sizes, bytes, stream->gzip ? "at most " : "",
                    most);
  }
  return NULL;
}

static calx_status *read_elements(cx_data_stream *stream, cx_data_idx *idx)
{
  idx->data = cx_alloc(idx->bytes);
  if (idx->data == NULL) return cx_out_of_memory();
  size_t begin = 4 + 4 * idx->rank, got;
  CALX_TRY(cx_data_stream_read(stream, idx->data, idx->bytes, &got));
  char sizes[48];
  format_sizes(idx, sizes);
  if (got < idx->bytes) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte %zu: ends after %zu of the %zu bytes that its "
                    "sizes %s ask for",
                    stream->name, begin + got, got, idx->bytes, sizes);
  }
  uint8_t more;
  CALX_TRY(cx_data_stream_read(stream, &more, 1, &got));
  if (got == 0) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': byte %zu: goes on past the %zu bytes that its sizes "
                  "%s ask for",
                  stream->name, begin + idx->bytes, idx->bytes, sizes);
}

calx_status *cx_data_idx_decode(const char *name, const void *content,
                                size_t size, size_t rank, cx_data_idx *out_idx)
{
  CX_ASSERT(rank >= 1 && rank <= CX_DATA_IDX_RANK);
  *out_idx = (cx_data_idx){ .rank = rank };
  cx_data_stream stream;
  CALX_TRY(cx_data_stream_open(&stream, name, content, size));
  uint8_t header[4 + 4 * CX_DATA_IDX_RANK];
  calx_status *status = read_header(&stream, rank, header);
  if (status == NULL) status = take_sizes(&stream, header, out_idx);
  if (status == NULL) status = read_elements(&stream, out_idx);
  cx_data_stream_close(&stream);
  if (status != NULL) {
    cx_free(out_idx->data);
    *out_idx = (cx_data_idx){ 0 };
  }
  return status;
}

static calx_status *read_file(const char *path, size_t rank,
                              cx_data_idx *out_idx)
{
  char *content;
  size_t size;
  CALX_TRY(cx_file_read_regular(path, MOST_BYTES, &content, &size));
  calx_status *status = cx_data_idx_decode(path, content, size, rank, out_idx);
  cx_free(content);
  return status;
}

// Appends the path, or "PATH.gz" where that is there and the path is not.
static void choose(const char *path, cx_text *out)
{
  cx_text_format(out, "%s.gz", path);
  if (cx_text_failed(out) ||
      (!cx_file_exists(path) && cx_file_exists(cx_text_str(out)))) {
    return;
  }
  cx_text_clear(out);
  cx_text_append(out, path);
}

calx_status *cx_data_idx_read(const char *path, size_t rank,
                              cx_data_idx *out_idx)
{
  *out_idx = (cx_data_idx){ 0 };
  cx_text chosen = { 0 };
  choose(path, &chosen);
  calx_status *status = cx_text_failed(&chosen)
                            ? cx_out_of_memory()
                            : read_file(cx_text_str(&chosen), rank, out_idx);
  if (calx_status_code(status) == CALX_NOT_FOUND) {
    status = cx_annotate(status, "nor is there '%s.gz'", path);
  }
  cx_text_free(&chosen);
  return status;
}

static size_t read_beginning(const char *path, void *out, size_t bytes)
{
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  FILE *file = fopen(path, "rb");
  size_t got = file != NULL ? fread(out, 1, bytes, file) : 0;
  if (file != NULL) fclose(file);
  return got;
}

calx_status *cx_data_idx_peek(const char *path, size_t rank, int64_t *out_size)
{
  CX_ASSERT(rank >= 1 && rank <= CX_DATA_IDX_RANK);
  uint8_t beginning[4096], header[4 + 4 * CX_DATA_IDX_RANK];
  cx_data_idx idx = { .rank = rank };
  cx_data_stream stream;
  cx_text chosen = { 0 };
  choose(path, &chosen);
  bool failed = cx_text_failed(&chosen);
  size_t size =
      read_beginning(cx_text_str(&chosen), beginning, sizeof beginning);
  cx_text_free(&chosen);
  if (failed) return cx_out_of_memory();
  calx_status *status = cx_data_stream_open(&stream, path, beginning, size);
  if (status == NULL) {
    status = read_header(&stream, rank, header);
    if (status == NULL) take_dims(header, &idx);
    cx_data_stream_close(&stream);
  }
  *out_size = status == NULL ? idx.dims[0] : -1;
  if (calx_status_code(status) == CALX_RESOURCE_EXHAUSTED) return status;
  calx_status_free(status);
  return NULL;
}
