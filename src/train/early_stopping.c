// train/early_stopping: ends training when a value stops improving.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// Of a rank.
typedef struct early_stopping {
  const calx_early_stopping_options *o;  // the callback's
  double sign;                           // 1: less is better; -1: more is
  double best;
  int64_t wait_count, stopped_epoch, patience;
} early_stopping;

static void begin(void *self, void *user)
{
  early_stopping *s = self;
  s->o = user;
  s->sign = s->o->mode != NULL && strcmp(s->o->mode, "max") == 0 ? -1 : 1;
  s->best = s->sign * (double)INFINITY;
  s->patience = s->o->patience == INT64_MIN ? 0
                : s->o->patience == 0       ? 3
                                            : s->o->patience;
}

static bool is_better(const early_stopping *s, double value, double than)
{
  return s->sign * value < s->sign * than;
}

// Whether to stop, and why.
static bool judge(early_stopping *s, double value, char *why, size_t size)
{
  const calx_early_stopping_options *o = s->o;
  const char *less = s->sign > 0 ? "<" : ">", *more = s->sign > 0 ? ">" : "<";
  *why = '\0';
  if (!o->no_check_finite && !isfinite(value)) {
    snprintf(why, size,
             "Monitored metric %s = %g is not finite. Previous best value was "
             "%.3f. Signaling Trainer to stop.",
             o->monitor, value, s->best);
    return true;
  }
  const double stop = o->stopping_threshold, most = o->divergence_threshold;
  if (!cx_is_default(stop) && is_better(s, value, stop)) {
    snprintf(why, size,
             "Stopping threshold reached: %s = %g %s %g. Signaling Trainer to "
             "stop.",
             o->monitor, value, less, stop);
    return true;
  }
  if (!cx_is_default(most) && is_better(s, most, value)) {
    snprintf(
        why, size,
        "Divergence threshold reached: %s = %g %s %g. Signaling Trainer to "
        "stop.",
        o->monitor, value, more, most);
    return true;
  }
  if (is_better(s, value + s->sign * o->min_delta, s->best)) {
    if (isfinite(s->best)) {
      snprintf(why, size,
               "Metric %s improved by %.3f >= min_delta = %g. New best score: "
               "%.3f",
               o->monitor, fabs(s->best - value), o->min_delta, value);
    } else {
      snprintf(why, size, "Metric %s improved. New best score: %.3f",
               o->monitor, value);
    }
    s->best = value;
    s->wait_count = 0;
    return false;
  }
  if (++s->wait_count < s->patience) return false;
  snprintf(why, size,
           "Monitored metric %s did not improve in the last %lld records. Best "
           "score: %.3f. Signaling Trainer to stop.",
           o->monitor, (long long)s->wait_count, s->best);
  return true;
}

static calx_status *missing(const calx_trainer *t, const char *monitor)
{
  char *names = cx_train_metric_names(t, '`');
  calx_status *status = cx_error(
      CALX_NOT_FOUND,
      "Early stopping conditioned on metric `%s` which is not available. Pass in "
      "or modify your `EarlyStopping` callback to use any of the following: %s",
      monitor, names != NULL ? names : "");
  calx_string_free(names);
  return status;
}

static calx_status *check(calx_trainer *t, early_stopping *s)
{
  const calx_early_stopping_options *o = s->o;
  if (t->config.fast_dev_run > 0) return NULL;
  if (!calx_trainer_has_metric(t, o->monitor)) {
    return o->not_strict ? NULL : missing(t, o->monitor);
  }
  char why[512];
  double value = calx_trainer_callback_metric(t, o->monitor);
  bool stops = judge(s, value, why, sizeof why);
  bool goes_on = !stops;
  CALX_TRY(cx_train_agree(t, "early stopping", &goes_on, &value));
  stops = !goes_on;
  if (o->verbose && *why != '\0' && calx_trainer_is_global_zero(t)) {
    cx_log("%s", why);
  }
  if (!stops) return NULL;
  s->stopped_epoch = t->position.epoch;
  calx_trainer_stop(t);
  return NULL;
}

static void on_validation_end(calx_trainer *t, void *self)
{
  early_stopping *s = self;
  if (s->o->check_on_train_epoch_end || t->sanity_checking ||
      t->asked != CX_TRAIN_FITTING) {
    return;
  }
  cx_lazy_scope_pin(check(t, s));
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  early_stopping *s = self;
  if (s->o->check_on_train_epoch_end) cx_lazy_scope_pin(check(t, s));
}

// ---- its state in a checkpoint ----------------------------------------------

static calx_status *put_state(const early_stopping *s, calx_value *state)
{
  CALX_TRY(calx_value_set(state, "wait_count", calx_value_int(s->wait_count)));
  CALX_TRY(
      calx_value_set(state, "stopped_epoch", calx_value_int(s->stopped_epoch)));
  CALX_TRY(calx_value_set(state, "best_score", cx_train_put_scalar(s->best)));
  return calx_value_set(state, "patience", calx_value_int(s->patience));
}

static void state_dict(calx_trainer *t, void *self, calx_value *state)
{
  (void)t;
  cx_lazy_scope_pin(put_state(self, state));
}

static void load_state_dict(calx_trainer *t, void *self,
                            const calx_value *state)
{
  (void)t;
  early_stopping *s = self;
  s->wait_count = calx_value_as_int(calx_value_get(state, "wait_count"));
  s->stopped_epoch = calx_value_as_int(calx_value_get(state, "stopped_epoch"));
  s->best = cx_train_take_scalar(calx_value_get(state, "best_score"));
  s->patience = calx_value_as_int(calx_value_get(state, "patience"));
}

// ---- the callback -----------------------------------------------------------

static char *state_key(const calx_early_stopping_options *o)
{
  cx_text key = { 0 };
  cx_text_append(&key, "EarlyStopping{'monitor': ");
  cx_train_put_quoted(&key, o->monitor);
  cx_text_append(&key, ", 'mode': ");
  cx_train_put_quoted(&key, o->mode != NULL ? o->mode : "min");
  cx_text_char(&key, '}');
  return cx_text_take(&key);
}

static calx_status *take(const calx_early_stopping_options *given,
                         calx_early_stopping_options *o)
{
  CALX_TRY(cx_options_take("early_stopping", given, o, sizeof *o));
  if (o->monitor == NULL) {
    return cx_invalid(
        "early_stopping: no monitor: the name of a logged value "
        "is wanted");
  }
  if (o->mode != NULL && strcmp(o->mode, "min") != 0 &&
      strcmp(o->mode, "max") != 0) {
    return cx_invalid("early_stopping: `mode` can be min, max but got %s",
                      o->mode);
  }
  if (o->patience < 0 && o->patience != INT64_MIN) {
    return cx_invalid("early_stopping: patience is %lld",
                      (long long)o->patience);
  }
  o->min_delta = fabs(o->min_delta);
  return NULL;
}

calx_callback *calx_early_stopping_with(
    const calx_early_stopping_options *options)
{
  calx_early_stopping_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  char *key = status == NULL ? state_key(o) : NULL;
  if (status == NULL && key == NULL) status = cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(early_stopping), .user = o,
                        .begin = begin, .state_key = key != NULL ? key : "",
                        .state_dict = state_dict,
                        .load_state_dict = load_state_dict,
                        .hooks = { .on_validation_end = on_validation_end,
                                   .on_train_epoch_end = on_train_epoch_end });
  cx_free(key);
  return cx_train_callback_finish(c, "EarlyStopping", CX_TRAIN_CALLBACK_MONITOR,
                                  status, o, cx_free);
}

int64_t calx_early_stopping_stopped_epoch(const calx_callback *cb)
{
  const early_stopping *s = calx_callback_self(cb);
  return s != NULL ? s->stopped_epoch : 0;
}

double calx_early_stopping_best_score(const calx_callback *cb)
{
  const early_stopping *s = calx_callback_self(cb);
  return s != NULL ? s->best : (double)INFINITY;
}

int64_t calx_early_stopping_wait_count(const calx_callback *cb)
{
  const early_stopping *s = calx_callback_self(cb);
  return s != NULL ? s->wait_count : 0;
}
