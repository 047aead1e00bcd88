// data/idx: the IDX format, one file of unsigned bytes at a time.
#ifndef CX_DATA_IDX_H
#define CX_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define CX_DATA_IDX_RANK 3

typedef struct cx_data_idx {
  size_t rank;
  int64_t dims[CX_DATA_IDX_RANK];
  size_t bytes;   // product of dims
  uint8_t *data;  // freed with cx_free()
} cx_data_idx;

// Decodes a whole file's content, plain or gzip, that must have `rank` (1 to 3)
// dimensions of u8. `name` is for messages.
calx_status *cx_data_idx_decode(const char *name, const void *content,
                                size_t size, size_t rank,
                                cx_data_idx *out_idx) CALX_MUST_USE;

// The same for a file; "PATH.gz" where there is no PATH.
calx_status *cx_data_idx_read(const char *path, size_t rank,
                              cx_data_idx *out_idx) CALX_MUST_USE;

// The first size in the file's header, of which only the beginning is read. -1:
// the header does not tell it, and reading the file will say why. The only
// error is a lack of memory.
calx_status *cx_data_idx_peek(const char *path, size_t rank,
                              int64_t *out_size) CALX_MUST_USE;

#endif
