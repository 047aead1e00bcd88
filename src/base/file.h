// base/file: whole files in and out, and folders.
#ifndef CX_BASE_FILE_H
#define CX_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/text.h"
#include "calx/status.h"

// Reads all of a file; refuses more than `limit` bytes (0 = no limit).
// *out_data is zero-terminated past its size and is freed with cx_free().
calx_status *cx_file_read(const char *path, size_t limit, char **out_data,
                          size_t *out_size) CALX_MUST_USE;
// The same of data that somebody else may have put there: a regular file only,
// maybe behind a link. A pipe is not waited for, and a device, which may have
// no end, is not read: both are INVALID_ARGUMENT.
calx_status *cx_file_read_regular(const char *path, size_t limit,
                                  char **out_data,
                                  size_t *out_size) CALX_MUST_USE;
// The same of a file that is believed: a regular one that cx_file_check_owner()
// accepts. A link is not followed, and a pipe is not waited for.
calx_status *cx_file_read_own(const char *path, size_t limit, bool root_too,
                              char **out_data, size_t *out_size) CALX_MUST_USE;
// Whether a file or folder is this user's, or root's too, and nobody else may
// write it.
calx_status *cx_file_check_owner(const char *path, const struct stat *info,
                                 bool root_too) CALX_MUST_USE;
// A pipe, a character device (/dev/null) or a descriptor's name (/dev/stdout,
// /dev/fd/3).
bool cx_file_is_stream(const char *path);
// A regular file, what a link leads to, or a new one: base/writer's, seen whole
// or not at all. A stream is written to as it is, behind what it has.
calx_status *cx_file_write(const char *path, const void *data,
                           size_t size) CALX_MUST_USE;
// The same of a text; out of memory where making it, or the path (NULL),
// failed.
calx_status *cx_file_write_text(const char *path,
                                const cx_text *text) CALX_MUST_USE;
// For this user alone (0600). What has the name is replaced, be it a link, a
// pipe or somebody else's; a link is not followed.
calx_status *cx_file_write_private(const char *path, const void *data,
                                   size_t size) CALX_MUST_USE;
// Opens /dev/null for those of the descriptors 0 to 2 that are closed, so that
// none of the library's own becomes what a program prints to. Before the
// library opens one that stays, or a file that it writes.
void cx_file_keep_standard(void);
bool cx_file_exists(const char *path);
// With its parents; one that is there is success.
calx_status *cx_folder_make(const char *path, unsigned mode) CALX_MUST_USE;

// errno as a status: "cannot WHAT 'PATH': …".
calx_status *cx_file_failed(const char *what, const char *path) CALX_MUST_USE;
// All of the data into a descriptor; `path` is for the message.
calx_status *cx_file_put(int fd, const char *path, const void *data,
                         size_t size) CALX_MUST_USE;

#endif
