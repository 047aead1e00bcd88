// train/log: values that steps log. An epoch's value is a sum (or a least, or a
// greatest) that each step's program carries on, on the device; it is read
// once, at the end of the epoch.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/autograd.h"
#include "calx/pointwise.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// ---- what is asked ----------------------------------------------------------

// 1 and 0 as they were written; -1: not written.
static int written(int given)
{
  return given == INT32_MIN ? 0 : given == 0 ? -1 : given != 0;
}

static calx_status *take_levels(const cx_train_hook *hook,
                                const calx_trainer_log_options *o,
                                cx_train_logged *out)
{
  if (hook == NULL || hook->levels == CX_TRAIN_NOT) {
    return cx_invalid(
        "You can't `self.log()` inside `%s`.",
        hook == NULL ? "no step or hook of a trainer" : hook->name);
  }
  const int on_step = written(o->on_step), on_epoch = written(o->on_epoch);
  const bool only_epoch = hook->levels == CX_TRAIN_EPOCH;
  if (only_epoch && (on_step == 1 || on_epoch == 0)) {
    return cx_invalid(
        "You can't `self.log(on_%s=%s)` inside `%s`, must be one of (%s,).",
        on_step == 1 ? "step" : "epoch", on_step == 1 ? "True" : "False",
        hook->name, on_step == 1 ? "False" : "True");
  }
  const bool steps = hook->levels == CX_TRAIN_STEP;
  out->on_step = on_step < 0 ? steps : on_step == 1;
  out->on_epoch = on_epoch < 0 ? !steps : on_epoch == 1;
  if (out->on_step || out->on_epoch) return NULL;
  return cx_invalid("`self.log(on_step=False, on_epoch=False)` is not useful.");
}

static calx_status *take_reduction(const char *name, cx_train_reduction *out)
{
  static const struct {
    const char *name;
    cx_train_reduction reduction;
  } all[] = { { "mean", CX_TRAIN_MEAN },
              { "avg", CX_TRAIN_MEAN },
              { "sum", CX_TRAIN_SUM },
              { "min", CX_TRAIN_MIN },
              { "max", CX_TRAIN_MAX } };
  *out = CX_TRAIN_MEAN;
  if (name == NULL) return NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcasecmp(name, all[i].name) != 0) continue;
    *out = all[i].reduction;
    return NULL;
  }
  return cx_invalid(
      "Only `self.log(..., reduce_fx={min,max,mean,sum})` are supported. Found: "
      "%s",
      name);
}

static calx_status *check_value(const char *name, const calx_tensor *value)
{
  if (name == NULL || *name == '\0') {
    return cx_invalid("log: the name is %s", name == NULL ? "NULL" : "empty");
  }
  if (value == NULL) return cx_invalid("log: the value of '%s' is NULL", name);
  const calx_status *error = calx_tensor_error(value);
  if (error != NULL) return cx_status_copy(error);
  if (calx_tensor_numel(value) == 1) return NULL;
  return cx_invalid(
      "`self.log(%s, ...)` was called with %lld elements, but the tensor must "
      "have a single element. You can try doing `self.log(%s, mean of it)`",
      name, (long long)calx_tensor_numel(value), name);
}

// ---- the list of names ------------------------------------------------------

static bool is_same(const cx_train_logged *a, const cx_train_logged *b)
{
  return strcmp(a->name, b->name) == 0 && a->hook == b->hook &&
         a->dataloader == b->dataloader;
}

static calx_status *find(cx_train_results *r, const cx_train_logged *asked,
                         cx_train_logged **out)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    cx_train_logged *known = &r->logged[i];
    if (!is_same(known, asked)) continue;
    *out = known;
    if (known->on_step == asked->on_step &&
        known->on_epoch == asked->on_epoch &&
        known->prog_bar == asked->prog_bar && known->logger == asked->logger &&
        known->reduction == asked->reduction &&
        known->metric == asked->metric && known->loader == asked->loader &&
        known->sync_dist == asked->sync_dist) {
      return NULL;
    }
    return cx_invalid(
        "You called `self.log(%s, ...)` twice in `%s` with different arguments. "
        "This is not allowed",
        asked->name, asked->hook);
  }
  if (!cx_grow(&r->logged, &r->logged_capacity, r->n_logged + 1,
               sizeof *r->logged)) {
    return cx_out_of_memory();
  }
  char *name = cx_strdup(asked->name);
  if (name == NULL) return cx_out_of_memory();
  *out = &r->logged[r->n_logged++];
  **out = *asked;
  (*out)->name = name;
  return NULL;
}

void cx_train_full_name(const cx_train_logged *l, const char *level, char *out,
                        size_t size)
{
  char loader[32] = "";
  if (l->dataloader >= 0) {
    snprintf(loader, sizeof loader, "/dataloader_idx_%d", l->dataloader);
  }
  snprintf(out, size, "%s%s%s", l->name, level, loader);
}

// ---- the epoch's value ------------------------------------------------------

static double first_total(cx_train_reduction reduction)
{
  if (reduction == CX_TRAIN_MIN) return (double)INFINITY;
  return reduction == CX_TRAIN_MAX ? -(double)INFINITY : 0;
}

// A new tensor, from the host: the first step of each epoch is the same
// program.
static calx_status *reset_total(cx_train_logged *l, calx_dtype dtype)
{
  const double first = first_total(l->reduction);
  const float narrow = (float)first;
  const void *data = dtype == CALX_F64 ? (const void *)&first : &narrow;
  calx_tensor *zero = calx_tensor_from(data, dtype, calx_dims_of(NULL, 0));
  calx_release(l->total);
  l->total = calx_take(zero);
  l->weight = 0;
  l->is_set = true;
  return cx_status_copy(calx_scope_error());
}

// The sum is a new tensor with each step, as the step's value is: a program's
// results are ordered by when their tensors were made, which is then the same
// in the first step and in later ones.
static void add(cx_train_logged *l, calx_tensor *value, double weight)
{
  calx_tensor *sum = l->total;
  switch (l->reduction) {
    case CX_TRAIN_MIN: sum = calx_minimum(l->total, value); break;
    case CX_TRAIN_MAX: sum = calx_maximum(l->total, value); break;
    case CX_TRAIN_SUM: sum = calx_add_with(l->total, value, NULL); break;
    case CX_TRAIN_MEAN:
      value = calx_mul(value, calx_scalar(weight));
      sum = calx_add_with(l->total, value, NULL);
      l->weight += weight;
      break;
  }
  calx_retain(sum);
  calx_release(l->total);
  l->total = sum;
}

// ---- a step's value ---------------------------------------------------------

// Over the ranks, inside the step's program. In evaluation ranks may have
// different numbers of batches, so only training reduces each step's value.
static calx_tensor *over_ranks(const calx_trainer *t, const cx_train_logged *l,
                               calx_tensor *value)
{
  const int world = calx_world_size();
  if (!l->sync_dist || world == 1 || !l->on_step ||
      t->stage != CX_TRAIN_FITTING || t->sanity_checking) {
    return value;
  }
  calx_collective_options o = { .size = sizeof o };
  switch (l->reduction) {
    case CX_TRAIN_MIN: return calx_all_reduce_with(value, CALX_REDUCE_MIN, &o);
    case CX_TRAIN_MAX: return calx_all_reduce_with(value, CALX_REDUCE_MAX, &o);
    case CX_TRAIN_SUM: break;
    case CX_TRAIN_MEAN: o.scale = 1.0 / world; break;
  }
  return calx_all_reduce_with(value, CALX_REDUCE_SUM, &o);
}

static calx_status *record(calx_trainer *t, cx_train_logged *l,
                           calx_tensor *value, int64_t batch_size)
{
  const calx_dtype dtype =
      calx_tensor_dtype(value) == CALX_F64 ? CALX_F64 : CALX_F32;
  calx_tensor *number = calx_reshape(calx_to_dtype(calx_detach(value), dtype),
                                     calx_dims_of(NULL, 0));
  if (l->on_epoch && !l->is_set) CALX_TRY(reset_total(l, dtype));
  if (l->on_epoch) {
    const int64_t size = batch_size > 0 ? batch_size : t->batch_size;
    add(l, number, size > 0 ? (double)size : 1);
  }
  calx_release(l->latest);
  l->latest = calx_retain(over_ranks(t, l, number));
  return NULL;
}

// Finds the place of a name, and checks what was asked for it.
static calx_status *take(calx_trainer *t, const char *name,
                         const calx_trainer_log_options *o, calx_metric *metric,
                         cx_train_logged **out)
{
  if (t == NULL) return cx_invalid("log: the trainer is NULL");
  if (name == NULL || *name == '\0') {
    return cx_invalid("log: the name is %s", name == NULL ? "NULL" : "empty");
  }
  if (o->batch_size < 0) {
    return cx_invalid("log: the batch_size of '%s' is %lld", name,
                      (long long)o->batch_size);
  }
  // Hooks of an epoch are no loader's.
  const bool has_loader = t->stage != CX_TRAIN_FITTING && t->hook != NULL &&
                          t->hook->levels != CX_TRAIN_EPOCH;
  const bool has_index =
      has_loader && t->n_evaluated > 1 && !o->no_dataloader_idx;
  cx_train_logged asked = { .name = (char *)name,
                            .dataloader = has_index ? t->dataloader_idx : -1,
                            .loader = has_loader ? t->dataloader_idx : -1,
                            .prog_bar = o->prog_bar,
                            .logger = !o->no_logger,
                            .sync_dist = o->sync_dist,
                            .metric = metric };
  CALX_TRY(take_levels(t->hook, o, &asked));
  CALX_TRY(take_reduction(o->reduce_fx, &asked.reduction));
  asked.hook = t->hook->name;
  cx_train_results *r =
      t->stage == CX_TRAIN_FITTING ? &t->train_results : &t->evaluation_results;
  return find(r, &asked, out);
}

static calx_status *log_value(calx_trainer *t, const char *name,
                              calx_tensor *value,
                              const calx_trainer_log_options *given)
{
  calx_trainer_log_options o;
  cx_train_logged *l = NULL;
  CALX_TRY(cx_options_take("log", given, &o, sizeof o));
  CALX_TRY(check_value(name, value));
  CALX_TRY(take(t, name, &o, NULL, &l));
  return record(t, l, value, o.batch_size);
}

void calx_trainer_log_with(calx_trainer *t, const char *name,
                           calx_tensor *value,
                           const calx_trainer_log_options *options)
{
  cx_lazy_scope_pin(log_value(t, name, value, options));
}

void calx_trainer_log_number_with(calx_trainer *t, const char *name,
                                  double value,
                                  const calx_trainer_log_options *options)
{
  calx_tensor *tensor =
      calx_tensor_from(&value, CALX_F64, calx_dims_of(NULL, 0));
  calx_trainer_log_with(t, name, tensor, options);
}

static calx_status *take_metric(calx_trainer *t, calx_metric *metric)
{
  if (metric == NULL) return cx_invalid("add_metric: the metric is NULL");
  if (t == NULL || t->module == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "add_metric: it is called outside of a run");
  }
  if (!cx_grow(&t->own_metrics, &t->own_metrics_capacity, t->n_own_metrics + 1,
               sizeof *t->own_metrics)) {
    return cx_out_of_memory();
  }
  t->own_metrics[t->n_own_metrics++] = metric;
  return NULL;
}

calx_metric *calx_trainer_add_metric(calx_trainer *t, calx_metric *metric)
{
  calx_status *status = take_metric(t, metric);
  if (status == NULL) {
    cx_lazy_scope_pin(cx_status_copy(calx_metric_error(metric)));
    return metric;
  }
  cx_lazy_scope_pin(status);
  calx_metric_free(metric);
  return NULL;
}

void cx_train_free_own_metrics(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_own_metrics; i++) {
    calx_metric_free(t->own_metrics[i]);
  }
  cx_free(t->own_metrics);
}

static calx_status *log_metric(calx_trainer *t, const char *name,
                               calx_metric *metric, calx_tensor *value,
                               const calx_trainer_log_options *given)
{
  calx_trainer_log_options o;
  cx_train_logged *l = NULL;
  CALX_TRY(cx_options_take("log_metric", given, &o, sizeof o));
  if (metric == NULL) {
    return cx_invalid("log_metric: the metric of '%s' is NULL", name);
  }
  CALX_TRY(take(t, name, &o, metric, &l));
  l->is_set = true;
  if (!l->on_step) return NULL;
  if (value == NULL) {
    return cx_invalid(
        "log_metric: '%s' is logged on steps, and the batch's value is NULL: "
        "give what calx_metric_forward() returned",
        name);
  }
  CALX_TRY(check_value(name, value));
  calx_release(l->latest);
  l->latest = calx_retain(calx_detach(value));
  return NULL;
}

void calx_trainer_log_metric_with(calx_trainer *t, const char *name,
                                  calx_metric *metric, calx_tensor *value,
                                  const calx_trainer_log_options *options)
{
  cx_lazy_scope_pin(log_metric(t, name, metric, value, options));
}
