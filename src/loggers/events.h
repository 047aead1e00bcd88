// loggers/events: TensorBoard's event files: records of protobuf messages.
#ifndef CX_LOGGERS_EVENTS_H
#define CX_LOGGERS_EVENTS_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "loggers/folder.h"

// Makes a file in the folder, with the record that names the format's version.
// *out_path is freed with cx_free().
calx_status *cx_loggers_events_begin(const cx_loggers_folder *folder,
                                     char **out_path) CALX_MUST_USE;
// Adds an event with this Summary, which is freed.
calx_status *cx_loggers_events_add(const char *path, cx_text *summary,
                                   int64_t step) CALX_MUST_USE;

#endif
