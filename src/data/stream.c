// data/stream: bytes from memory, inflated on the way where they are gzip.
//
// Bytes are unpacked when they are read, so a small file that unpacks into a
// huge one costs no more than its reader accepts. A gzip file may have several
// members, one after another, as RFC 1952 allows and parallel compressors
// write; the last one's checksum is verified before the end is reported.
#include "data/stream.h"

#include <string.h>

#include "base/alloc.h"

static voidpf zlib_alloc(voidpf opaque, uInt count, uInt bytes)
{
  (void)opaque;
  return cx_calloc(count, bytes);
}

static void zlib_free(voidpf opaque, voidpf p)
{
  (void)opaque;
  cx_free(p);
}

calx_status *cx_data_stream_open(cx_data_stream *stream, const char *name,
                                 const void *data, size_t size)
{
  *stream = (cx_data_stream){ .name = name, .data = data, .size = size };
  stream->gzip =
      size >= 2 && stream->data[0] == 0x1f && stream->data[1] == 0x8b;
  if (!stream->gzip) return NULL;
  stream->z.zalloc = zlib_alloc;
  stream->z.zfree = zlib_free;
  int code = inflateInit2(&stream->z, 16 + MAX_WBITS);  // 16: gzip only
  if (code == Z_MEM_ERROR) return cx_out_of_memory();
  if (code == Z_OK) return NULL;
  return cx_error(CALX_INTERNAL, "zlib refuses to start: error %d", code);
}

static size_t smaller(size_t a, size_t b)
{
  return a < b ? a : b;
}

// Sets the stream's state from what zlib returned.
static calx_status *judge(cx_data_stream *stream, int code)
{
  if (code == Z_MEM_ERROR) return cx_out_of_memory();
  if (code == Z_OK) return NULL;
  if (code == Z_BUF_ERROR) {  // nothing to take, or no room: not an error yet
    if (stream->at < stream->size) return NULL;
    return cx_error(CALX_DATA_LOSS, "'%s': byte %zu: ends inside its gzip data",
                    stream->name, stream->size);
  }
  if (code == Z_STREAM_END) {
    stream->ended = stream->at == stream->size;
    if (!stream->ended) inflateReset(&stream->z);
    return NULL;
  }
  const char *why = stream->z.msg != NULL ? stream->z.msg : "not gzip data";
  return cx_error(CALX_DATA_LOSS, "'%s': byte %zu: bad gzip data: %s",
                  stream->name, stream->at, why);
}

static calx_status *read_gzip(cx_data_stream *stream, uint8_t *out,
                              size_t bytes, size_t *out_read)
{
  const size_t piece = 1u << 30;  // zlib counts in unsigned int
  z_stream *z = &stream->z;
  while (*out_read < bytes && !stream->ended) {
    size_t in = smaller(stream->size - stream->at, piece);
    size_t room = smaller(bytes - *out_read, piece);
    z->next_in = (z_const Bytef *)stream->data + stream->at;
    z->avail_in = (uInt)in;
    z->next_out = out + *out_read;
    z->avail_out = (uInt)room;
    int code = inflate(z, Z_NO_FLUSH);
    stream->at += in - z->avail_in;
    *out_read += room - z->avail_out;
    CALX_TRY(judge(stream, code));
  }
  return NULL;
}

calx_status *cx_data_stream_read(cx_data_stream *stream, void *out,
                                 size_t bytes, size_t *out_read)
{
  *out_read = 0;
  if (stream->gzip) return read_gzip(stream, out, bytes, out_read);
  *out_read = smaller(bytes, stream->size - stream->at);
  if (*out_read != 0) memcpy(out, stream->data + stream->at, *out_read);
  stream->at += *out_read;
  return NULL;
}

uint64_t cx_data_stream_most(const cx_data_stream *stream)
{
  uint64_t left = stream->size - stream->at;
  if (!stream->gzip) return left;
  // Deflate packs 258 bytes into two bits at best (zlib's technical notes:
  // 1032:1). Input that was already taken may still be in zlib's window or bit
  // buffer.
  uint64_t most;
  if (__builtin_mul_overflow(left + 64, UINT64_C(1032), &most)) {
    return UINT64_MAX;
  }
  return most;
}

void cx_data_stream_close(cx_data_stream *stream)
{
  if (stream->gzip) inflateEnd(&stream->z);
}
