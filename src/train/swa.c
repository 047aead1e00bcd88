// train/swa: stochastic weight averaging: a constant rate at the end of
// training, and the mean of the weights that its epochs begin with.
//
// Lightning trains an epoch more, without updates, for the statistics of
// BatchNorm layers. Here it is a pass of training_step over the data after the
// last epoch: the statistics are the same ones, but the epoch is none that
// hooks, schedules and loggers see. Lightning 2.6 ends it with an update by the
// gradients that the epoch before left; the mean stays as it is here.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "nn/batch_norm.h"
#include "optim/scheduler.h"
#include "train/average.h"
#include "train/internal.h"

// Of the callback.
typedef struct swa_options {
  double lr;
  double start;  // below 1 a share of the epochs, else an epoch from 1
  calx_swa_lr_options schedule;
} swa_options;

// Of a rank.
typedef struct swa {
  const swa_options *o;
  int64_t first, last;  // epochs of which the weights count, from 0
  bool has_begun;       // the schedule is there
  bool has_norms;
  calx_lr_scheduler *replaced;  // owned; NULL: none
  cx_train_average *average;    // NULL: nothing is in it
  int64_t n;                    // weights in it
  int64_t latest_epoch;         // whose weights are
  // Of a checkpoint.
  calx_value *loaded;     // the average, until fit begins; NULL: none
  int64_t schedule_step;  // of SWALR; 0: it had not begun
  int64_t schedule_epoch;
} swa;

static void begin(void *self, void *user)
{
  swa *s = self;
  s->o = user;
  s->latest_epoch = -1;
}

static void end(void *self)
{
  calx_value_free(((swa *)self)->loaded);
}

// ---- where a run begins -----------------------------------------------------

static calx_status *check_trainer(const calx_trainer *t, const swa *s)
{
  if (t->n_optimizers != 1) {
    return cx_invalid("SWA currently works with 1 `optimizer`. There are %zu",
                      t->n_optimizers);
  }
  if (s->o->start < 1 && t->config.max_epochs == -1) {
    return cx_invalid(
        "SWA with `swa_epoch_start` as a float is not supported when "
        "`max_epochs=-1`. Please provide `swa_epoch_start` as an integer.");
  }
  if (!s->has_norms || !t->module->manual_optimization) return NULL;
  return cx_error(CALX_UNIMPLEMENTED,
                  "SWA of a model with BatchNorm layers needs automatic "
                  "optimization: the last pass calls `training_step` for their "
                  "statistics alone");
}

static void find_norm(void *user, const char *path, calx_module *m)
{
  (void)path;
  *(bool *)user |= cx_nn_is_batch_norm(m);
}

static void plan(const calx_trainer *t, swa *s)
{
  const int64_t epochs = t->config.max_epochs;
  const double share = s->o->start < 1 ? (double)epochs : 1;
  const int64_t start = (int64_t)(share * s->o->start);
  s->first = start > 1 ? start - 1 : 0;
  s->last = epochs == -1 ? INT64_MAX : epochs - 1;
  s->has_norms = s->has_begun = false;
  calx_module_apply(t->model, find_norm, &s->has_norms);
}

// The average that a checkpoint has, beside the weights, which stay.
static calx_status *load_average(calx_trainer *t, swa *s)
{
  if (s->loaded == NULL) return NULL;
  CALX_TRY(cx_train_average_new(t->model, CX_TRAIN_PARAMETERS, &s->average));
  CALX_TRY(
      calx_module_load_state_dict(t->model, s->loaded, .not_strict = true));
  cx_train_average_swap(s->average);
  calx_value_free(s->loaded);
  s->loaded = NULL;
  return NULL;
}

// ---- the schedule -----------------------------------------------------------

static void report_schedule(const cx_train_optimizer *o,
                            const calx_lr_scheduler *next)
{
  if (o->scheduler == NULL || calx_global_ordinal() != 0) return;
  if (o->interval != CX_TRAIN_EACH_EPOCH || o->frequency != 1) {
    cx_log(
        "SWA is currently only supported every epoch. Found a schedule of each "
        "%lldth %s",
        (long long)o->frequency,
        o->interval == CX_TRAIN_EACH_EPOCH ? "epoch" : "step");
  }
  cx_log("Swapping scheduler `%s` for `%s`", o->scheduler->rule->name,
         next->rule->name);
}

static calx_status *begin_schedule(calx_trainer *t, swa *s)
{
  cx_train_optimizer *o = &t->optimizers[0];
  calx_lr_scheduler *next =
      calx_swa_lr_with(o->optimizer, s->o->lr, &s->o->schedule);
  calx_status *status = calx_lr_scheduler_error(next);
  if (status != NULL) {
    calx_lr_scheduler_free(next);
    return status;
  }
  if (s->schedule_step > 0) {
    next->step_count = s->schedule_step;
    next->last_epoch = s->schedule_epoch;
  } else if (t->position.epoch != s->first && calx_global_ordinal() == 0) {
    cx_log(
        "SWA is initializing after swa_start without any checkpoint data. This "
        "may be caused by loading a checkpoint of a run without it.");
  }
  report_schedule(o, next);
  if (o->scheduler != NULL) s->replaced = o->scheduler;
  cx_free(o->monitor);
  *o = (cx_train_optimizer){ .optimizer = o->optimizer,
                             .scheduler = next,
                             .interval = CX_TRAIN_EACH_EPOCH,
                             .frequency = 1 };
  s->has_begun = true;
  return NULL;
}

// Where a checkpoint has SWALR's state it takes its place before states are
// restored.
static calx_status *start(calx_trainer *t, swa *s)
{
  plan(t, s);
  CALX_TRY(check_trainer(t, s));
  CALX_TRY(load_average(t, s));
  if (s->average == NULL) {
    s->n = s->schedule_step = 0;
    s->latest_epoch = -1;
  }
  return s->schedule_step > 0 ? begin_schedule(t, s) : NULL;
}

static void on_fit_start(calx_trainer *t, void *self)
{
  cx_lazy_scope_pin(start(t, self));
}

// ---- epochs -----------------------------------------------------------------

static calx_status *add_weights(calx_trainer *t, swa *s)
{
  if (s->average == NULL) {
    CALX_TRY(cx_train_average_new(t->model, CX_TRAIN_PARAMETERS, &s->average));
  } else {
    const double n = (double)s->n;
    cx_train_average_update(s->average, n / (n + 1), 1 / (n + 1));
    calx_sync(NULL);  // the first step is then the usual program
  }
  s->n++;
  s->latest_epoch = t->position.epoch;
  return NULL;
}

static calx_status *begin_epoch(calx_trainer *t, swa *s)
{
  const int64_t epoch = t->position.epoch;
  if (epoch < s->first || epoch > s->last) return NULL;
  if (!s->has_begun) CALX_TRY(begin_schedule(t, s));
  return epoch > s->latest_epoch ? add_weights(t, s) : NULL;
}

static void on_train_epoch_start(calx_trainer *t, void *self)
{
  cx_lazy_scope_pin(begin_epoch(t, self));
}

// An epoch that a checkpoint was taken in has no on_train_epoch_start.
static void on_train_start(calx_trainer *t, void *self)
{
  if (t->resumes_epoch) cx_lazy_scope_pin(begin_epoch(t, self));
}

// ---- the end ----------------------------------------------------------------

static calx_status *run_batch(calx_trainer *t, const calx_batch *given,
                              int64_t i)
{
  calx_scope *scope = calx_scope_begin();
  calx_batch batch;
  cx_train_receive(t, given, &batch);
  t->batch_size = batch.size;
  cx_lazy_no_grad_begin();
  cx_train_loss(t, &batch, i);
  cx_lazy_no_grad_end();
  calx_sync(NULL);
  cx_train_results_drop(&t->train_results);
  return calx_scope_end(scope);
}

static calx_status *run_batches(calx_trainer *t)
{
  calx_status *status = NULL;
  calx_batch batch;
  calx_loader_set_epoch(t->train.loader, t->position.epoch);
  for (int64_t i = 0; status == NULL && i != t->train.batches; i++) {
    if (!calx_loader_next(t->train.loader, &batch)) break;
    status = run_batch(t, &batch, i);
  }
  calx_loader_end_epoch(t->train.loader);
  t->batch_size = 0;
  return cx_status_first(status, calx_scope_take_error());
}

static calx_status *update_statistics(calx_trainer *t)
{
  cx_nn_norms norms;
  calx_status *status = cx_nn_norms_begin(t->model, &norms);
  if (status == NULL) status = run_batches(t);
  cx_nn_norms_end(&norms);
  return status;
}

// A run that was stopped before its last epoch keeps its weights.
static void on_train_end(calx_trainer *t, void *self)
{
  swa *s = self;
  const bool is_complete =
      s->last == INT64_MAX || t->position.epoch == s->last + 1;
  if (!is_complete || s->average == NULL) return;
  cx_train_average_give(s->average);
  calx_sync(NULL);
  if (s->has_norms && s->last != INT64_MAX) {
    cx_lazy_scope_pin(update_statistics(t));
  }
}

static void teardown(calx_trainer *t, void *self)
{
  (void)t;
  swa *s = self;
  cx_train_average_free(s->average);
  calx_lr_scheduler_free(s->replaced);
  s->average = NULL;
  s->replaced = NULL;
}

// ---- checkpoints ------------------------------------------------------------

static calx_status *put_state(calx_trainer *t, const swa *s, calx_value *state)
{
  calx_value *schedule = calx_value_none(), *average = calx_value_none();
  if (s->has_begun) {
    calx_value_free(schedule);
    CALX_TRY(
        calx_lr_scheduler_state_dict(t->optimizers[0].scheduler, &schedule));
  }
  CALX_TRY(calx_value_set(state, "scheduler_state", schedule));
  if (s->average != NULL) {
    calx_value_free(average);
    CALX_TRY(cx_train_average_state(s->average, &average));
  }
  CALX_TRY(calx_value_set(state, "average_model_state", average));
  CALX_TRY(calx_value_set(state, "n_averaged", calx_value_int(s->n)));
  return calx_value_set(state, "latest_update_epoch",
                        calx_value_int(s->latest_epoch));
}

static void state_dict(calx_trainer *t, void *self, calx_value *state)
{
  cx_lazy_scope_pin(put_state(t, self, state));
}

typedef struct swa_parameters {
  const calx_value *from;
  calx_value *to;
  calx_status *status;
} swa_parameters;

static void keep_parameter(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *parameter)
{
  (void)kind, (void)parameter;
  swa_parameters *p = user;
  calx_tensor *saved = calx_value_as_tensor(calx_value_get(p->from, path));
  if (saved == NULL || p->status != NULL) return;
  p->status = calx_value_set(p->to, path, calx_value_tensor(saved));
}

// Lightning's has the buffers too, which are not averaged.
static calx_status *keep_average(calx_trainer *t, swa *s,
                                 const calx_value *average)
{
  calx_value_free(s->loaded);
  s->loaded = NULL;
  if (calx_value_kind(average) != CALX_KIND_DICT || s->n == 0) return NULL;
  swa_parameters p = { average, calx_value_container(CALX_KIND_DICT), NULL };
  if (p.to == NULL) return cx_out_of_memory();
  calx_module_parameters(t->model, keep_parameter, &p);
  s->loaded = p.to;
  return p.status;
}

static void load_state_dict(calx_trainer *t, void *self,
                            const calx_value *state)
{
  swa *s = self;
  const calx_value *schedule = calx_value_get(state, "scheduler_state");
  s->n = calx_value_as_int(calx_value_get(state, "n_averaged"));
  s->latest_epoch =
      calx_value_as_int(calx_value_get(state, "latest_update_epoch"));
  s->schedule_step = calx_value_as_int(calx_value_get(schedule, "_step_count"));
  s->schedule_epoch = calx_value_as_int(calx_value_get(schedule, "last_epoch"));
  cx_lazy_scope_pin(
      keep_average(t, s, calx_value_get(state, "average_model_state")));
}

// ---- the callback -----------------------------------------------------------

static calx_status *take_schedule(
    const calx_stochastic_weight_averaging_options *o, swa_options *out)
{
  const char *by = o->annealing_strategy;
  out->schedule = (calx_swa_lr_options){ .size = sizeof out->schedule,
                                         .anneal_epochs = o->annealing_epochs };
  if (by != NULL && strcmp(by, "linear") == 0) {
    out->schedule.anneal_strategy = CALX_ANNEAL_LINEAR;
  } else if (by != NULL && strcmp(by, "cos") != 0) {
    return cx_invalid(
        "anneal_strategy must by one of 'cos' or 'linear', instead got %s", by);
  }
  if (o->annealing_epochs >= 0 || o->annealing_epochs == CALX_ZERO_INT) {
    return NULL;
  }
  return cx_invalid("anneal_epochs must be equal or greater than 0, got %lld",
                    (long long)o->annealing_epochs);
}

static calx_status *take(const calx_stochastic_weight_averaging_options *given,
                         swa_options *out)
{
  calx_stochastic_weight_averaging_options o;
  CALX_TRY(cx_options_take("stochastic_weight_averaging", given, &o, sizeof o));
  out->lr = o.swa_lrs;
  out->start = cx_or_default(o.swa_epoch_start, 0.8);
  if (!(out->start >= 0) || out->start > 0x1p53 ||
      (out->start >= 1 && out->start != floor(out->start))) {
    return cx_invalid(
        "swa_epoch_start should be a >0 integer or a float between 0 and 1. It "
        "is %g",
        out->start);
  }
  if (!(out->lr > 0) || isinf(out->lr)) {
    return cx_invalid("The `swa_lrs` should a positive float. It is %g",
                      out->lr);
  }
  return take_schedule(&o, out);
}

calx_callback *calx_stochastic_weight_averaging_with(
    const calx_stochastic_weight_averaging_options *options)
{
  swa_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(swa), .user = o, .begin = begin,
                        .end = end, .state_key = "StochasticWeightAveraging",
                        .state_dict = state_dict,
                        .load_state_dict = load_state_dict,
                        .hooks = { .on_fit_start = on_fit_start,
                                   .on_train_start = on_train_start,
                                   .on_train_epoch_start = on_train_epoch_start,
                                   .on_train_end = on_train_end,
                                   .teardown = teardown });
  return cx_train_callback_finish(c, "StochasticWeightAveraging",
                                  CX_TRAIN_CALLBACK_OTHER, status, o, cx_free);
}
