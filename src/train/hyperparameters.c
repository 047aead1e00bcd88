// train/hyperparameters: what a run was started with, for loggers and
// checkpoints.
#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"
#include "train/internal.h"

static calx_status *put(calx_trainer *t, const calx_hyperparameter *h)
{
  if (h->name == NULL) {
    return cx_invalid("save_hyperparameters: a name is NULL");
  }
  calx_value *value = NULL;
  switch (h->kind) {
    case CALX_HYPERPARAMETER_NUMBER: value = calx_value_float(h->number); break;
    case CALX_HYPERPARAMETER_INTEGER:
      value = calx_value_int((int64_t)h->number);
      break;
    case CALX_HYPERPARAMETER_BOOL:
      value = calx_value_bool(h->number != 0);
      break;
    case CALX_HYPERPARAMETER_TEXT:
      value = h->text != NULL ? calx_value_string(h->text) : calx_value_none();
      break;
  }
  return calx_value_set(t->hyperparameters, h->name, value);
}

static calx_status *save(calx_trainer *t, const calx_hyperparameter *values,
                         size_t count)
{
  if (t == NULL || t->module == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "save_hyperparameters: it is called outside of a run");
  }
  if (values == NULL && count > 0) {
    return cx_invalid("save_hyperparameters: the values are NULL");
  }
  if (t->hyperparameters == NULL) {
    t->hyperparameters = calx_value_container(CALX_KIND_DICT);
    if (t->hyperparameters == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < count; i++) CALX_TRY(put(t, &values[i]));
  return NULL;
}

void calx_trainer_save_hyperparameters(calx_trainer *t,
                                       const calx_hyperparameter *values,
                                       size_t count)
{
  cx_lazy_scope_pin(save(t, values, count));
}

// ---- loggers ----------------------------------------------------------------

static calx_hyperparameter item_of(const calx_value *dict, size_t i)
{
  const calx_value *v = calx_value_item(dict, i);
  calx_hyperparameter h = { .name = calx_value_key(dict, i) };
  switch (calx_value_kind(v)) {
    case CALX_KIND_FLOAT: h.kind = CALX_HYPERPARAMETER_NUMBER; break;
    case CALX_KIND_INT: h.kind = CALX_HYPERPARAMETER_INTEGER; break;
    case CALX_KIND_BOOL: h.kind = CALX_HYPERPARAMETER_BOOL; break;
    default: h.kind = CALX_HYPERPARAMETER_TEXT;
  }
  h.text = calx_value_as_string(v);
  h.number = calx_value_as_float(v);
  return h;
}

calx_status *cx_train_log_hyperparameters(calx_trainer *t)
{
  const size_t n = calx_value_count(t->hyperparameters);
  if (n == 0 || t->n_loggers == 0 || !calx_trainer_is_global_zero(t)) {
    return NULL;
  }
  calx_hyperparameter *list = cx_calloc(n, sizeof *list);
  if (list == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) list[i] = item_of(t->hyperparameters, i);
  calx_status *status = NULL;
  for (size_t i = 0; i < t->n_loggers && status == NULL; i++) {
    status = calx_logger_log_hyperparams(t->loggers[i], list, n);
  }
  cx_free(list);
  return status;
}
