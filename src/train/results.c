// train/results: what an epoch's logged values come to, over all ranks, and the
// values that callbacks find by name.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "lazy/lazy.h"
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

// ---- the end of an epoch ----------------------------------------------------

void cx_train_results_begin(cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) r->logged[i].is_set = false;
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

// Of all ranks, where they were asked to be: one exchange for all values.
static calx_status *exchange(const calx_trainer *t, const cx_train_results *r,
                             double *parts)
{
  size_t count = 0;
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    if (l->sync_dist) {
      count++;
    } else {
      advise_sync(l);
    }
  }
  if (count == 0) return NULL;
  double *mine = cx_calloc(2 * count * PARTS, sizeof *mine);
  if (mine == NULL) return cx_out_of_memory();
  double *all = mine + count * PARTS;
  size_t at = 0;
  for (size_t i = 0; i < r->n_logged; i++) {
    if (!r->logged[i].on_epoch || !r->logged[i].is_set) continue;
    if (!r->logged[i].sync_dist) continue;
    memcpy(&mine[at], &parts[i * PARTS], PARTS * sizeof *mine);
    at += PARTS;
  }
  calx_status *status =
      calx_mesh_reduce(t->stage == CX_TRAIN_FITTING ? "trainer: training epoch"
                                                    : "trainer: evaluation",
                       mine, count * PARTS, combine, all);
  at = 0;
  for (size_t i = 0; status == NULL && i < r->n_logged; i++) {
    if (!r->logged[i].on_epoch || !r->logged[i].is_set) continue;
    if (!r->logged[i].sync_dist) continue;
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

calx_status *cx_train_results_end(calx_trainer *t, cx_train_results *r)
{
  double *parts = cx_calloc(r->n_logged * PARTS + 1, sizeof *parts);
  if (parts == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    double *p = &parts[i * PARTS];
    p[KIND] = l->reduction;
    p[TOTAL] = calx_item(l->total);
    p[WEIGHT] = l->weight;
  }
  calx_status *status = cx_status_copy(calx_scope_error());
  if (status == NULL && calx_world_size() > 1) status = exchange(t, r, parts);
  for (size_t i = 0; status == NULL && i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (!l->on_epoch || !l->is_set) continue;
    double *p = &parts[i * PARTS];
    if (l->reduction == CX_TRAIN_MEAN) p[TOTAL] /= p[WEIGHT];
    const double value = p[TOTAL];
    status = publish(t, l, "", NULL, value);
    if (status == NULL && l->on_step) {
      status = publish(t, l, "_epoch", NULL, value);
    }
  }
  if (status == NULL) status = cx_train_log_epoch(t, r, parts + TOTAL, PARTS);
  cx_train_results_begin(r);
  cx_free(parts);
  return status;
}

// ---- the end of a batch -----------------------------------------------------

calx_status *cx_train_results_step(calx_trainer *t, cx_train_results *r)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    cx_train_logged *l = &r->logged[i];
    if (l->latest == NULL) continue;
    if (l->prog_bar && t->progress != NULL) {
      calx_progress_value(t->progress, l->name, l->latest);
    }
    if (l->on_step) {
      if (l->on_epoch) {
        CALX_TRY(publish(t, l, "_step", calx_retain(l->latest), 0));
      }
      CALX_TRY(publish(t, l, "", calx_retain(l->latest), 0));
    }
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
