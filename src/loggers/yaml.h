// loggers/yaml: hyperparameters, and hparams.yaml as PyYAML writes it.
#ifndef CX_LOGGERS_YAML_H
#define CX_LOGGERS_YAML_H

#include "base/status.h"
#include "base/text.h"
#include "calx/loggers.h"

// In the order in which they were first given.
typedef struct cx_loggers_hyperparameters {
  calx_hyperparameter *items;  // names and texts are copies
  size_t count, capacity;
} cx_loggers_hyperparameters;

// Adds one, or replaces that of its name.
calx_status *cx_loggers_hyperparameters_set(cx_loggers_hyperparameters *all,
                                            const calx_hyperparameter *value)
    CALX_MUST_USE;
void cx_loggers_hyperparameters_free(cx_loggers_hyperparameters *all);

// One line for each, sorted by name; "{}" where there is none.
void cx_loggers_put_yaml(cx_text *out, const cx_loggers_hyperparameters *all);

#endif
