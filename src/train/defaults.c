// train/defaults: the logger and the callbacks that a program need not give.
#include "train/internal.h"

calx_status *cx_train_add_defaults(calx_trainer *t)
{
  if (t->config.no_logger) t->n_loggers = 0;
  return NULL;
}
