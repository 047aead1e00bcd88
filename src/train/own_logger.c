// train/own_logger: the logger that the trainer makes itself.
#include "calx/loggers.h"

#include "train/internal.h"

calx_logger *cx_train_new_logger(const calx_trainer *t)
{
  switch (t->config.logger) {
    case CX_TRAIN_CSV: return calx_csv_logger(t->default_root_dir);
    case CX_TRAIN_JSON: return calx_json_logger(t->default_root_dir);
    default: return calx_tensorboard_logger(t->default_root_dir);
  }
}
