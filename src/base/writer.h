// base/writer: a file that is written piece by piece and seen whole or not at
// all: until the commit the path keeps what it had.
#ifndef CX_BASE_WRITER_H
#define CX_BASE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

typedef struct cx_writer cx_writer;

// Begins a new content for the path: a regular file, a link to one, or nothing.
// A file keeps its mode and, where this user may say so, its owner and group;
// one that is read-only, for root too, is refused. A new one follows the umask.
calx_status *cx_writer_open(const char *path,
                            cx_writer **out_writer) CALX_MUST_USE;
calx_status *cx_writer_put(cx_writer *w, const void *data,
                           size_t size) CALX_MUST_USE;
uint64_t cx_writer_size(const cx_writer *w);  // bytes put so far
// The path has the new content, also after a loss of power. Ends the writer;
// on failure the path has what it had.
calx_status *cx_writer_commit(cx_writer *w) CALX_MUST_USE;
// Ends the writer and leaves nothing behind. NULL is accepted.
void cx_writer_abandon(cx_writer *w);

#endif
