// train/results: what an epoch's logged values come to, and what of them the
// progress bar shows.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/metrics.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"
#include "train/internal.h"

// ---- the end of an epoch ----------------------------------------------------

void cx_train_results_begin(cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) r->logged[i].is_set = false;
}

void cx_train_results_drop(cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    cx_train_logged *l = &r->logged[i];
    if (l->metric != NULL && l->is_set) calx_metric_reset(l->metric);
    calx_release(l->latest);
    l->latest = NULL;
  }
  cx_train_results_begin(r);
}

static calx_status *publish(calx_trainer *t, const cx_train_logged *l,
                            const char *level, calx_tensor *tensor,
                            double value)
{
  char name[256];
  cx_train_full_name(l, level, name, sizeof name);
  return cx_train_set_metric(t, name, tensor, value);
}

static calx_status *publish_epoch(calx_trainer *t, const cx_train_logged *l,
                                  double value)
{
  char name[256];
  CALX_TRY(publish(t, l, "", NULL, value));
  if (l->on_step) CALX_TRY(publish(t, l, "_epoch", NULL, value));
  if (!l->prog_bar) return NULL;
  cx_train_full_name(l, l->on_step ? "_epoch" : "", name, sizeof name);
  return cx_train_bar_set(t, name, NULL, value);
}

// It counts as no read of the program's.
static double read_number(calx_tensor *number)
{
  cx_profiler_own_read();
  return calx_item(number);
}

// A metric's value is over all ranks; every one of them computes it.
static double metric_value(const cx_train_logged *l)
{
  const double value = read_number(calx_metric_compute(l->metric));
  calx_metric_reset(l->metric);
  return value;
}

// What this rank has: of a metric it is final. These are no reads of the
// program's.
static void read_totals(const cx_train_results *r, double *parts)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    double *p = &parts[i * CX_TRAIN_PARTS];
    p[CX_TRAIN_PART_KIND] = l->reduction;
    p[CX_TRAIN_PART_WEIGHT] = l->metric != NULL ? 1 : l->weight;
    p[CX_TRAIN_PART_TOTAL] =
        l->metric != NULL ? metric_value(l) : read_number(l->total);
  }
}

calx_status *cx_train_results_end(calx_trainer *t, cx_train_results *r)
{
  double *parts = cx_calloc(r->n_logged * CX_TRAIN_PARTS + 1, sizeof *parts);
  if (parts == NULL) return cx_out_of_memory();
  read_totals(r, parts);
  calx_status *status = cx_status_copy(calx_scope_error());
  const bool is_one = calx_world_size() == 1;
  if (status == NULL && !is_one) status = cx_train_exchange(t, r, parts);
  for (size_t i = 0; status == NULL && i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    const double *p = &parts[i * CX_TRAIN_PARTS];
    double *value = &parts[i * CX_TRAIN_PARTS + CX_TRAIN_PART_TOTAL];
    if (l->reduction == CX_TRAIN_MEAN) *value /= p[CX_TRAIN_PART_WEIGHT];
    status = publish_epoch(t, l, *value);
  }
  const double *values = parts + CX_TRAIN_PART_TOTAL;
  if (status == NULL) {
    status = cx_train_log_epoch(t, r, values, CX_TRAIN_PARTS);
  }
  cx_train_results_begin(r);
  cx_free(parts);
  return status;
}

// ---- the progress bar -------------------------------------------------------

calx_status *cx_train_bar_set(calx_trainer *t, const char *name,
                              calx_tensor *tensor, double value)
{
  cx_train_bar_value *b = NULL;
  for (size_t i = 0; b == NULL && i < t->n_bar; i++) {
    if (strcmp(t->bar[i].name, name) == 0) b = &t->bar[i];
  }
  if (b == NULL) {
    char *copy = cx_strdup(name);
    if (copy == NULL ||
        !cx_grow(&t->bar, &t->bar_capacity, t->n_bar + 1, sizeof *t->bar)) {
      cx_free(copy);
      return cx_out_of_memory();
    }
    b = &t->bar[t->n_bar++];
    *b = (cx_train_bar_value){ .name = copy };
  }
  calx_release(b->newest[CX_TRAIN_NEWEST - 1]);
  memmove(&b->newest[1], &b->newest[0],
          (CX_TRAIN_NEWEST - 1) * sizeof *b->newest);
  b->newest[0] = tensor != NULL ? calx_retain(tensor) : NULL;
  if (tensor != NULL) return NULL;
  for (int k = 1; k < CX_TRAIN_NEWEST; k++) {
    calx_release(b->newest[k]);
    b->newest[k] = NULL;
  }
  b->value = value;
  b->is_known = true;
  return NULL;
}

// It counts as no read of the program's.
static void read_bar_value(cx_train_bar_value *b, calx_tensor *tensor)
{
  const calx_dtype dtype = calx_tensor_dtype(tensor);
  unsigned char element[8] = { 0 };
  cx_profiler_own_read();
  calx_status *status =
      calx_tensor_read(tensor, element, calx_dtype_size(dtype));
  if (status == NULL) {
    b->value = cx_load_double(dtype, element);
    b->is_known = true;
  }
  cx_lazy_scope_pin(status);
}

// A step that is recorded and not yet launched is left alone.
bool cx_train_bar_read(calx_trainer *t, size_t i, double *out)
{
  cx_train_bar_value *b = &t->bar[i];
  for (int k = 0; k < CX_TRAIN_NEWEST; k++) {
    calx_tensor *tensor = b->newest[k];
    if (tensor == NULL) continue;
    const bool waits = k == CX_TRAIN_NEWEST - 1 && cx_lazy_is_launched(tensor);
    if (!waits && !calx_is_ready(tensor)) continue;
    read_bar_value(b, tensor);
    for (int older = k; older < CX_TRAIN_NEWEST; older++) {
      calx_release(b->newest[older]);
      b->newest[older] = NULL;
    }
    break;
  }
  *out = b->value;
  return b->is_known;
}

void cx_train_bar_free(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_bar; i++) {
    for (int k = 0; k < CX_TRAIN_NEWEST; k++) {
      calx_release(t->bar[i].newest[k]);
    }
    cx_free(t->bar[i].name);
  }
  cx_free(t->bar);
}

// ---- the end of a batch -----------------------------------------------------

static calx_status *publish_step(calx_trainer *t, const cx_train_logged *l)
{
  char name[256];
  // Of an evaluation callbacks have the epoch's values alone.
  if (t->stage == CX_TRAIN_FITTING) {
    if (l->on_epoch) {
      CALX_TRY(publish(t, l, "_step", calx_retain(l->latest), 0));
    }
    CALX_TRY(publish(t, l, "", calx_retain(l->latest), 0));
  }
  if (!l->prog_bar) return NULL;
  cx_train_full_name(l, l->on_epoch ? "_step" : "", name, sizeof name);
  return cx_train_bar_set(t, name, l->latest, 0);
}

calx_status *cx_train_results_step(calx_trainer *t, cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    cx_train_logged *l = &r->logged[i];
    if (l->latest == NULL) continue;
    if (l->on_step) CALX_TRY(publish_step(t, l));
    calx_release(l->latest);
    l->latest = NULL;
  }
  return NULL;
}

void cx_train_results_free(cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    calx_release(r->logged[i].latest);
    calx_release(r->logged[i].total);
    cx_free(r->logged[i].name);
  }
  cx_free(r->logged);
  *r = (cx_train_results){ 0 };
}
