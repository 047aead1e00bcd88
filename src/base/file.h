// base/file: whole files in and out, and folders. Writes are atomic: temporary
// file, fsync, rename.
#ifndef CX_BASE_FILE_H
#define CX_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

// Reads all of a file; refuses more than `limit` bytes (0 = no limit).
// *out_data is zero-terminated past its size and is freed with cx_free().
calx_status *cx_file_read(const char *path, size_t limit, char **out_data,
                          size_t *out_size) CALX_MUST_USE;
calx_status *cx_file_write(const char *path, const void *data,
                           size_t size) CALX_MUST_USE;
bool cx_file_exists(const char *path);
calx_status *cx_folder_make(const char *path, unsigned mode)
    CALX_MUST_USE;  // with its parents; existing is success

#endif
