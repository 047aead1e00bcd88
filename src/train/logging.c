// train/logging: what of the logged values goes to the loggers, and when. Only
// the first rank of all writes. A step's values are written when they are on
// the host: the loop does not wait for them before the end of an epoch.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profiler/profiler.h"
#include "train/internal.h"

struct cx_train_row {
  cx_train_row *next;
  int64_t step;
  int64_t epoch;  // -1: it is not written
  size_t count;
  struct {
    char *name;
    calx_tensor *tensor;  // owned; NULL: `value` is it
    double value;
  } values[];
};

static bool writes(const calx_trainer *t)
{
  return t->n_loggers > 0 && calx_trainer_is_global_zero(t) &&
         t->config.fast_dev_run == 0;
}

// ---- rows -------------------------------------------------------------------

static void free_row(cx_train_row *row)
{
  for (size_t i = 0; i < row->count; i++) {
    calx_release(row->values[i].tensor);
    cx_free(row->values[i].name);
  }
  cx_free(row);
}

static bool is_there(const cx_train_row *row)
{
  for (size_t i = 0; i < row->count; i++) {
    calx_tensor *tensor = row->values[i].tensor;
    if (tensor != NULL && !calx_is_ready(tensor)) return false;
  }
  return true;
}

static calx_status *write_row(calx_trainer *t, cx_train_row *row)
{
  calx_logged_value *list = cx_calloc(row->count + 1, sizeof *list);
  if (list == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < row->count; i++) {
    calx_tensor *tensor = row->values[i].tensor;
    list[i].name = row->values[i].name;
    if (tensor != NULL) cx_profiler_own_read();  // no habit of the program's
    list[i].value = tensor != NULL ? calx_item(tensor) : row->values[i].value;
  }
  const size_t count = row->count + (row->epoch >= 0);
  list[row->count] = (calx_logged_value){ .name = "epoch",
                                          .value = (double)row->epoch,
                                          .is_integer = true };
  calx_status *status = NULL;
  for (size_t i = 0; i < t->n_loggers && status == NULL; i++) {
    status = calx_logger_log_metrics(t->loggers[i], list, count, row->step);
  }
  cx_free(list);
  t->has_rows_to_save = true;
  return status;
}

calx_status *cx_train_write_rows(calx_trainer *t, bool waits)
{
  while (t->rows != NULL && (waits || is_there(t->rows))) {
    cx_train_row *row = t->rows;
    t->rows = row->next;
    if (t->rows == NULL) t->rows_end = NULL;
    calx_status *status = write_row(t, row);
    free_row(row);
    CALX_TRY(status);
  }
  return NULL;
}

void cx_train_drop_rows(calx_trainer *t)
{
  while (t->rows != NULL) {
    cx_train_row *row = t->rows;
    t->rows = row->next;
    free_row(row);
  }
}

// Batches that had stepped before the one that is under way.
static int64_t steps_before(const calx_trainer *t)
{
  return t->position.batches_stepped - t->is_batch_counted;
}

static cx_train_row *new_row(const calx_trainer *t, size_t most)
{
  cx_train_row *row =
      cx_calloc(1, sizeof *row + (most + 1) * sizeof row->values[0]);
  if (row == NULL) return NULL;
  row->epoch = t->position.epoch;
  row->step = steps_before(t);
  return row;
}

// Ends the row: the last one of the list.
static void append_row(calx_trainer *t, cx_train_row *row)
{
  if (row->count == 0) {
    free_row(row);
    return;
  }
  *(t->rows_end != NULL ? &t->rows_end->next : &t->rows) = row;
  t->rows_end = row;
}

static calx_status *put_named(cx_train_row *row, const char *name,
                              calx_tensor *tensor, double value)
{
  char *copy = cx_strdup(name);
  if (copy == NULL) return cx_out_of_memory();
  row->values[row->count].name = copy;
  row->values[row->count].tensor = tensor != NULL ? calx_retain(tensor) : NULL;
  row->values[row->count++].value = value;
  return NULL;
}

static calx_status *put(cx_train_row *row, const cx_train_logged *l,
                        const char *level, calx_tensor *tensor, double value)
{
  char name[256];
  cx_train_full_name(l, level, name, sizeof name);
  return put_named(row, name, tensor, value);
}

// ---- what goes into them ----------------------------------------------------

// Lightning numbers the batches that stepped from 0, and writes each n-th of
// them.
bool cx_train_is_logged_step(const calx_trainer *t)
{
  return (steps_before(t) + 1) % t->config.log_every_n_steps == 0;
}

bool cx_train_logs_now(const calx_trainer *t)
{
  return writes(t) && cx_train_is_logged_step(t);
}

// Ends the row.
static calx_status *log_latest(calx_trainer *t, const cx_train_results *r,
                               cx_train_row *row)
{
  calx_status *status = NULL;
  for (size_t i = 0; i < r->n_logged && status == NULL; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->logger || !l->on_step || l->latest == NULL) continue;
    status = put(row, l, l->on_epoch ? "_step" : "", l->latest, 0);
  }
  append_row(t, row);
  if (status != NULL) return status;
  return cx_train_write_rows(t, false);
}

calx_status *cx_train_log_step(calx_trainer *t, const cx_train_results *r)
{
  if (!cx_train_logs_now(t)) return NULL;
  cx_train_row *row = new_row(t, r->n_logged);
  return row != NULL ? log_latest(t, r, row) : cx_out_of_memory();
}

// Each batch of an evaluation is a row, by its number and without the epoch.
calx_status *cx_train_log_evaluated(calx_trainer *t, const cx_train_results *r,
                                    int64_t batch)
{
  if (!writes(t)) return NULL;
  cx_train_row *row = new_row(t, r->n_logged);
  if (row == NULL) return cx_out_of_memory();
  row->step = batch;
  row->epoch = -1;
  return log_latest(t, r, row);
}

// A run that is killed has the rows of its epochs. One that logs nothing makes
// no folder.
static calx_status *save_loggers(calx_trainer *t)
{
  calx_status *status = NULL;
  if (!t->has_rows_to_save) return NULL;
  t->has_rows_to_save = false;
  for (size_t i = 0; i < t->n_loggers && status == NULL; i++) {
    status = calx_logger_save(t->loggers[i]);
  }
  return status;
}

// After the last step of the epoch.
calx_status *cx_train_log_epoch(calx_trainer *t, const cx_train_results *r,
                                const double *values, size_t stride)
{
  if (!writes(t)) return NULL;
  cx_train_row *row = new_row(t, r->n_logged);
  if (row == NULL) return cx_out_of_memory();
  if (t->asked == CX_TRAIN_FITTING && row->step > 0) row->step--;
  calx_status *status = NULL;
  for (size_t i = 0; i < r->n_logged && status == NULL; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->logger || !l->on_epoch || !l->is_set) continue;
    status = put(row, l, l->on_step ? "_epoch" : "", NULL, values[i * stride]);
  }
  append_row(t, row);
  if (status == NULL) status = cx_train_write_rows(t, true);
  return status != NULL ? status : save_loggers(t);
}

calx_status *cx_train_log_row(calx_trainer *t, const calx_logged_value *values,
                              size_t count)
{
  if (!writes(t)) return NULL;
  cx_train_row *row = new_row(t, count);
  if (row == NULL) return cx_out_of_memory();
  row->epoch = -1;
  calx_status *status = NULL;
  for (size_t i = 0; i < count && status == NULL; i++) {
    status = put_named(row, values[i].name, NULL, values[i].value);
  }
  append_row(t, row);
  return status;
}

// After an error what is not computed may never be; a signal ends all ranks
// after the same step.
calx_status *cx_train_finish_loggers(calx_trainer *t, bool succeeded)
{
  if (!writes(t)) return NULL;
  const bool waits =
      succeeded || calx_status_code(t->exception) == CALX_CANCELLED;
  calx_status *status = cx_train_write_rows(t, waits);
  for (size_t i = 0; i < t->n_loggers; i++) {
    status = cx_status_first(
        status,
        calx_logger_finalize(t->loggers[i], succeeded ? "success" : "failed"));
  }
  return status;
}
