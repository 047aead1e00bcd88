// data/stream: bytes read in order from memory that is plain or gzip.
#ifndef CX_DATA_STREAM_H
#define CX_DATA_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/status.h"

typedef struct cx_data_stream {
  const char *name;     // of the file, for messages
  const uint8_t *data;  // the file's content
  size_t size;
  size_t at;  // bytes of `data` that were taken
  bool gzip;  // `data` begins with gzip's two bytes
  bool ended;
  z_stream z;
} cx_data_stream;

// The data must stay until the close. On failure there is nothing to close.
calx_status *cx_data_stream_open(cx_data_stream *stream, const char *name,
                                 const void *data, size_t size) CALX_MUST_USE;

// Fills up to `bytes`; fewer come only at the end of the content.
calx_status *cx_data_stream_read(cx_data_stream *stream, void *out,
                                 size_t bytes, size_t *out_read) CALX_MUST_USE;

// An upper bound of the bytes that can still come, whatever the content claims.
uint64_t cx_data_stream_most(const cx_data_stream *stream);

void cx_data_stream_close(cx_data_stream *stream);

#endif
