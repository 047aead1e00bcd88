// train/defaults: the logger and the callbacks that a program need not give.
#include "train/internal.h"

calx_status *cx_train_add_defaults(calx_trainer *t)
{
  if (t->config.no_logger) t->n_loggers = 0;
  if (t->config.no_logger || t->config.logger == CX_TRAIN_LOGGER_UNNAMED) {
    return NULL;
  }
  t->own_logger = cx_train_new_logger(t);
  const calx_status *error = calx_logger_error(t->own_logger);
  if (error != NULL) return cx_status_copy(error);
  t->loggers[t->n_loggers++] = t->own_logger;
  return NULL;
}
