// train/schedule: when learning-rate schedules step.
#include "train/internal.h"

static calx_status *missing_monitor(const calx_trainer *t, const char *name)
{
  char *list = cx_train_metric_names(t, '\'');
  calx_status *status = cx_error(
      CALX_NOT_FOUND,
      "ReduceLROnPlateau conditioned on metric %s which is not available. "
      "Available metrics are: [%s]. Condition can be set using `.monitor`",
      name, list != NULL ? list : "");
  calx_string_free(list);
  return status;
}

calx_status *cx_train_schedule(calx_trainer *t, cx_train_interval interval,
                               bool monitors)
{
  if (t->module->manual_optimization) return NULL;
  const int64_t done = interval == CX_TRAIN_EACH_STEP ? t->position.global_step
                                                      : t->position.epoch + 1;
  for (size_t i = 0; i < t->n_optimizers; i++) {
    const cx_train_optimizer *o = &t->optimizers[i];
    if (o->scheduler == NULL || o->interval != interval) continue;
    if ((o->monitor != NULL) != monitors || done % o->frequency != 0) continue;
    if (!monitors) {
      calx_lr_scheduler_step(o->scheduler);
    } else if (!calx_trainer_has_metric(t, o->monitor)) {
      if (o->not_strict) continue;
      return missing_monitor(t, o->monitor);
    } else {
      calx_lr_scheduler_step_metric(
          o->scheduler, calx_trainer_callback_metric(t, o->monitor));
    }
  }
  return cx_status_copy(calx_scope_error());
}
