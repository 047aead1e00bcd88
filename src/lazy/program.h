// lazy/program: what the parts of running share. Only this room.
#ifndef CX_LAZY_PROGRAM_H
#define CX_LAZY_PROGRAM_H

#include "lazy/internal.h"

// The slots that a device last ran a program with.
typedef struct cx_slot_cache {
  uint32_t *words;
  cx_pjrt_buffer *buffer;
} cx_slot_cache;

// Counts the order's ops, which run.
void cx_tally_ops(const cx_order *order);

// A run, told to base/trace.
void cx_tell_compile(const cx_run *run);
// NULL: it failed.
void cx_tell_compiled(const cx_run *run, cx_pjrt_executable *executable);
void cx_tell_execute(const cx_run *run);

// Counted as a transfer.
calx_status *cx_upload_words(calx_device *d, const cx_pjrt_shape *shape,
                             const uint32_t *words,
                             cx_pjrt_buffer **out) CALX_MUST_USE;

// Executes; with CALX_DEBUG=donation, a donating program's results are compared
// with those of the same program on copies of its donated inputs.
calx_status *cx_launch(cx_run *run, cx_pjrt_executable *executable,
                       cx_pjrt_buffer *const *args, size_t n_args,
                       cx_pjrt_buffer **out,
                       cx_pjrt_event **out_done) CALX_MUST_USE;

#endif
