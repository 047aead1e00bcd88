// train/results: what an epoch's logged values come to, over all ranks, and the
// values that callbacks find by name.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"
#include "calx/metrics.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"
#include "train/internal.h"

// ---- metrics ----------------------------------------------------------------

static cx_train_metric *find(const calx_trainer *t, const char *name)
{
  for (size_t i = 0; i < t->n_metrics; i++) {
    if (strcmp(t->metrics[i].name, name) == 0) return &t->metrics[i];
  }
  return NULL;
}

calx_status *cx_train_set_metric(calx_trainer *t, const char *name,
                                 calx_tensor *tensor, double value)
{
  cx_train_metric *m = find(t, name);
  if (m == NULL) {
    char *copy = cx_strdup(name);
    if (copy == NULL || !cx_grow(&t->metrics, &t->metrics_capacity,
                                 t->n_metrics + 1, sizeof *t->metrics)) {
      cx_free(copy);
      calx_release(tensor);
      return cx_out_of_memory();
    }
    m = &t->metrics[t->n_metrics++];
    *m = (cx_train_metric){ .name = copy };
  }
  calx_release(m->tensor);
  m->tensor = tensor;
  m->value = value;
  return NULL;
}

bool calx_trainer_has_metric(const calx_trainer *t, const char *name)
{
  return t != NULL && name != NULL && find(t, name) != NULL;
}

double calx_trainer_callback_metric(calx_trainer *t, const char *name)
{
  cx_train_metric *m = t != NULL && name != NULL ? find(t, name) : NULL;
  if (m == NULL) return (double)NAN;
  if (m->tensor == NULL) return m->value;
  m->value = calx_item(m->tensor);
  calx_release(m->tensor);
  m->tensor = NULL;
  return m->value;
}

void cx_train_free_metrics(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_metrics; i++) {
    calx_release(t->metrics[i].tensor);
    cx_free(t->metrics[i].name);
  }
  cx_free(t->metrics);
  t->metrics = NULL;
  t->n_metrics = t->metrics_capacity = 0;
}

char *cx_train_metric_names(const calx_trainer *t, char quote)
{
  cx_text known = { 0 };
  for (size_t i = 0; i < t->n_metrics; i++) {
    cx_text_format(&known, "%s%c%s%c", i == 0 ? "" : ", ", quote,
                   t->metrics[i].name, quote);
  }
  return cx_text_take(&known);
}

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

// Whether an epoch's sum over the steps is kept of it.
static bool has_total(const cx_train_logged *l)
{
  return l->on_epoch && l->is_set && l->metric == NULL;
}

// What ranks exchange of a value.
enum { KIND, TOTAL, WEIGHT, PARTS };

static void combine(const double *const *values, size_t ranks, size_t count,
                    double *out)
{
  memcpy(out, values[0], count * sizeof *out);
  for (size_t r = 1; r < ranks; r++) {
    for (size_t i = 0; i < count; i += PARTS) {
      const double other = values[r][i + TOTAL];
      switch ((int)out[i + KIND]) {
        case CX_TRAIN_MIN: out[i + TOTAL] = fmin(out[i + TOTAL], other); break;
        case CX_TRAIN_MAX: out[i + TOTAL] = fmax(out[i + TOTAL], other); break;
        default: out[i + TOTAL] += other;
      }
      out[i + WEIGHT] += values[r][i + WEIGHT];
    }
  }
}

static void advise_sync(const cx_train_logged *l)
{
  cx_log_once_per_site(
      l->name,
      "It is recommended to use `self.log('%s', ..., sync_dist=True)` when "
      "logging on epoch level in distributed setting to accumulate the metric "
      "across devices: what is shown is the first rank's value",
      l->name);
}

static bool is_exchanged(const cx_train_logged *l)
{
  return has_total(l) && l->sync_dist;
}

// Of all ranks, where they were asked to be: one exchange for all values.
static calx_status *exchange(const calx_trainer *t, const cx_train_results *r,
                             double *parts)
{
  size_t count = 0, at = 0;
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    count += is_exchanged(l);
    if (has_total(l) && !l->sync_dist) advise_sync(l);
  }
  if (count == 0) return NULL;
  double *mine = cx_calloc(2 * count * PARTS, sizeof *mine);
  if (mine == NULL) return cx_out_of_memory();
  double *all = mine + count * PARTS;
  for (size_t i = 0; i < r->n_logged; i++) {
    if (!is_exchanged(&r->logged[i])) continue;
    memcpy(&mine[at], &parts[i * PARTS], PARTS * sizeof *mine);
    at += PARTS;
  }
  calx_status *status =
      calx_mesh_reduce(t->stage == CX_TRAIN_FITTING ? "trainer: training epoch"
                                                    : "trainer: evaluation",
                       mine, count * PARTS, combine, all);
  at = 0;
  for (size_t i = 0; status == NULL && i < r->n_logged; i++) {
    if (!is_exchanged(&r->logged[i])) continue;
    memcpy(&parts[i * PARTS], &all[at], PARTS * sizeof *mine);
    at += PARTS;
  }
  cx_free(mine);
  return status;
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
    double *p = &parts[i * PARTS];
    p[KIND] = l->reduction;
    cx_profiler_own_read();
    p[WEIGHT] = l->metric != NULL ? 1 : l->weight;
    p[TOTAL] = l->metric != NULL ? metric_value(l) : read_number(l->total);
  }
}

calx_status *cx_train_results_end(calx_trainer *t, cx_train_results *r)
{
  double *parts = cx_calloc(r->n_logged * PARTS + 1, sizeof *parts);
  if (parts == NULL) return cx_out_of_memory();
  read_totals(r, parts);
  calx_status *status = cx_status_copy(calx_scope_error());
  if (status == NULL && calx_world_size() > 1) status = exchange(t, r, parts);
  for (size_t i = 0; status == NULL && i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    double *p = &parts[i * PARTS];
    if (l->reduction == CX_TRAIN_MEAN) p[TOTAL] /= p[WEIGHT];
    status = publish_epoch(t, l, p[TOTAL]);
  }
  if (status == NULL) status = cx_train_log_epoch(t, r, parts + TOTAL, PARTS);
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
  if (l->on_epoch) CALX_TRY(publish(t, l, "_step", calx_retain(l->latest), 0));
  CALX_TRY(publish(t, l, "", calx_retain(l->latest), 0));
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
