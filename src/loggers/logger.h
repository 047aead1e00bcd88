// loggers/logger: what the loggers of this module share.
#ifndef CX_LOGGERS_LOGGER_H
#define CX_LOGGERS_LOGGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "calx/loggers.h"
#include "loggers/folder.h"
#include "loggers/yaml.h"

struct calx_logger {
  calx_logger_functions functions;
  void *user;  // of the functions; the module's own begin with cx_loggers_run
  calx_status *error;
};

// What a logger with files begins with.
typedef struct cx_loggers_run {
  cx_loggers_folder folder;
  cx_loggers_hyperparameters hyperparameters;
  char *prefix;    // "PREFIX-", or empty
  bool has_begun;  // the folder has been made
} cx_loggers_run;

// The options of all of them.
typedef struct cx_loggers_options {
  const char *what;  // the function, for messages
  const char *save_dir, *name, *version, *sub_dir, *prefix;
} cx_loggers_options;

calx_status *cx_loggers_run_init(cx_loggers_run *run,
                                 const cx_loggers_options *o) CALX_MUST_USE;
// Frees what it has, not the run itself.
void cx_loggers_run_end(cx_loggers_run *run);
// Makes the folder, at the first call: then *out_first is true. Where `file` is
// not NULL, a folder that has files already is warned of, and that file goes.
calx_status *cx_loggers_run_begin(cx_loggers_run *run, const char *file,
                                  bool *out_first) CALX_MUST_USE;
// Adds hyperparameters and writes hparams.yaml.
calx_status *cx_loggers_run_hyperparameters(cx_loggers_run *run,
                                            const calx_hyperparameter *values,
                                            size_t count) CALX_MUST_USE;
// hparams.yaml of what is known.
calx_status *cx_loggers_run_write_yaml(cx_loggers_run *run) CALX_MUST_USE;

// Whether value i of a row is none of its own: a later one has its name, or it
// has that of the row's number, "step".
bool cx_loggers_is_replaced(const calx_logged_value *values, size_t count,
                            size_t i, const char *prefix);

// The names of a run with files.
const char *cx_loggers_run_save_dir(void *user);
const char *cx_loggers_run_name(void *user);
const char *cx_loggers_run_version(void *user);
const char *cx_loggers_run_log_dir(void *user);

// A logger of these functions; it has `user` and the error from now on. Where
// there is an error, or no memory, `user` is freed by functions->free.
calx_logger *cx_loggers_logger_new(const calx_logger_functions *functions,
                                   void *user, calx_status *error);

#endif
