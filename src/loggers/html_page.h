// loggers/html_page: the page of a run.
#ifndef CX_LOGGERS_HTML_PAGE_H
#define CX_LOGGERS_HTML_PAGE_H

#include <time.h>

#include "base/status.h"
#include "base/text.h"
#include "loggers/curves.h"
#include "loggers/machine.h"
#include "loggers/yaml.h"

typedef struct cx_loggers_note {  // a text and its name
  char *name, *text;
} cx_loggers_note;

typedef struct cx_loggers_page {
  const char *title;
  const char *state;  // "success", "failed"; NULL: the run goes on
  time_t began;
  double seconds;  // since then
  const cx_loggers_curves *curves;
  const cx_loggers_hyperparameters *hyperparameters;
  const cx_loggers_note *notes;
  size_t n_notes;
  const cx_loggers_devices *devices;
} cx_loggers_page;

// With what the profiler knows of this process's steps.
calx_status *cx_loggers_put_page(cx_text *out,
                                 const cx_loggers_page *page) CALX_MUST_USE;

#endif
