// train/batch_size_finder: the largest batch size that there is memory for, by
// some steps of training with each.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_tuning.h"
#include "data/loader.h"
#include "lazy/lazy.h"
#include "train/trial.h"

// Of the callback.
typedef struct size_options {
  bool is_binary;
  int64_t steps, first, trials, most;
  double margin;
} size_options;

// Of a rank.
typedef struct size_finder {
  const size_options *o;
  int64_t found;  // 0: nothing yet
} size_finder;

static void begin(void *self, void *user)
{
  ((size_finder *)self)->o = user;
}

// ---- a trial ----------------------------------------------------------------

// Of the host, or of any plugin, whatever code its error has.
static bool is_out_of_memory(const calx_status *status)
{
  static const char *const texts[] = { "RESOURCE_EXHAUSTED", "out of memory",
                                       "Out of memory", "OOM" };
  if (calx_status_code(status) == CALX_RESOURCE_EXHAUSTED) return true;
  const char *message = calx_status_message(status);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (strstr(message, texts[i]) != NULL) return true;
  }
  return false;
}

typedef struct size_search {
  calx_trainer *t;
  const size_options *o;
  int64_t size;
  int64_t low, high;    // binsearch: a size that is good; one that failed, or 0
  int64_t samples;      // of the dataset; -1: not known
  calx_status *failed;  // why the last trial had no memory; NULL: it had
} size_search;

// Whether there was enough memory. Another failure is returned.
static calx_status *try_size(size_search *s, bool *out_good)
{
  calx_status_free(s->failed);
  s->failed = NULL;
  calx_status *status = cx_train_try(
      s->t, &(cx_train_trial){ .batch_size = s->size, .steps = s->o->steps });
  *out_good = status == NULL;
  if (status == NULL) return NULL;
  if (!is_out_of_memory(status) || s->size == 1) return status;
  s->failed = status;
  return NULL;
}

// ---- the next size ----------------------------------------------------------

// Batches that have all samples don't grow. False: the size stays.
static bool grow(size_search *s, int64_t next)
{
  if (s->samples >= 0 && s->size >= s->samples) {
    cx_log(
        "The batch size %lld is greater or equal than the length of your "
        "dataset: %lld.",
        (long long)s->size, (long long)s->samples);
    return false;
  }
  if (next > s->o->most) {
    cx_log("Batch size %lld exceeds max_val limit %lld, capping at %lld",
           (long long)next, (long long)s->o->most, (long long)s->o->most);
    next = s->o->most;
  }
  cx_log("Batch size %lld succeeded, trying batch size %lld",
         (long long)s->size, (long long)next);
  const bool changes = next != s->size;
  s->size = next;
  return changes;
}

static void shrink(size_search *s, int64_t next)
{
  cx_log("Batch size %lld failed, trying batch size %lld", (long long)s->size,
         (long long)next);
  s->size = next;
}

static bool is_at_limit(const size_search *s)
{
  if (s->size < s->o->most) return false;
  cx_log("Reached the maximum batch size limit of %lld. Stopping search.",
         (long long)s->o->most);
  return true;
}

// ---- the ways to look -------------------------------------------------------

static calx_status *double_sizes(size_search *s)
{
  bool any_good = false, good;
  for (int64_t i = 1;; i++) {
    CALX_TRY(try_size(s, &good));
    if (!good) {
      shrink(s, s->size / 2);
      if (any_good || i == s->o->trials) return NULL;
    } else if (is_at_limit(s) || i == s->o->trials || !grow(s, 2 * s->size)) {
      return NULL;
    }
    any_good |= good;
  }
}

static calx_status *search_binary(size_search *s)
{
  int64_t good_trials = 0;
  bool good;
  s->low = 1;
  for (;;) {
    CALX_TRY(try_size(s, &good));
    if (!good) {
      s->high = s->size;
      shrink(s, (s->high + s->low) / 2);
      if (s->high - s->low <= 1) return NULL;
      continue;
    }
    if (is_at_limit(s) || ++good_trials == s->o->trials) return NULL;
    s->low = s->size;
    if (s->high != 0 && s->high - s->low <= 1) return NULL;
    if (!grow(s, s->high != 0 ? (s->high + s->low) / 2 : 2 * s->size)) {
      return NULL;
    }
  }
}

static void take_margin(size_search *s)
{
  int64_t less = (int64_t)((double)s->size * (1 - s->o->margin));
  if (less < 1) less = 1;
  if (less == s->size) return;
  cx_log("Applying margin of %.1f%%, reducing batch size from %lld to %lld",
         100 * s->o->margin, (long long)s->size, (long long)less);
  s->size = less;
}

static calx_status *search(size_search *s)
{
  if (!s->o->is_binary) return double_sizes(s);
  CALX_TRY(search_binary(s));
  take_margin(s);
  return NULL;
}

// ---- the run ----------------------------------------------------------------

static calx_status *train_with(calx_trainer *t, int64_t size)
{
  cx_train_loader next;
  calx_status *status = cx_train_reopen_training(t, size, &next);
  if (status != NULL) {
    cx_train_close_loader(&next);
    return status;
  }
  cx_train_close_loader(&t->train);
  t->train = next;
  return NULL;
}

static calx_status *run(calx_trainer *t, size_finder *f)
{
  if (t->config.fast_dev_run > 0) {
    cx_log("Skipping batch size scaler since `fast_dev_run` is enabled.");
    return NULL;
  }
  if (calx_world_size() > 1) {
    return cx_invalid(
        "The Batch size finder is not supported with distributed strategies: "
        "there are %d ranks",
        calx_world_size());
  }
  size_search s = {
    .t = t, .o = f->o, .size = f->o->first, .samples = t->train.samples
  };
  calx_status *status = search(&s);
  calx_status_free(s.failed);
  CALX_TRY(status);
  f->found = s.size;
  cx_log(
      "Finished batch size finder, will continue with full run using batch size "
      "%lld",
      (long long)s.size);
  return train_with(t, s.size);
}

static void on_fit_start(calx_trainer *t, void *self)
{
  cx_lazy_scope_pin(run(t, self));
}

// ---- the callback -----------------------------------------------------------

static int64_t or_default(int64_t given, int64_t otherwise)
{
  return given != 0 ? given : otherwise;
}

static calx_status *take(const calx_batch_size_finder_options *given,
                         size_options *out)
{
  static const int64_t most = INT64_MAX / 4;
  calx_batch_size_finder_options o;
  CALX_TRY(cx_options_take("batch_size_finder", given, &o, sizeof o));
  *out = (size_options){ .is_binary =
                             o.mode != NULL && strcmp(o.mode, "binsearch") == 0,
                         .steps = or_default(o.steps_per_trial, 3),
                         .first = or_default(o.init_val, 2),
                         .trials = or_default(o.max_trials, 25),
                         .most = or_default(o.max_val, 8192),
                         .margin = cx_or_default(o.margin, 0.05) };
  if (o.mode != NULL && !out->is_binary && strcmp(o.mode, "power") != 0) {
    return cx_invalid(
        "`mode` should be either of ('power', 'binsearch'), got "
        "'%s'",
        o.mode);
  }
  if (!(out->margin >= 0 && out->margin < 1)) {
    return cx_invalid("`margin` should be between 0 and 1. Found margin=%g",
                      out->margin);
  }
  if (out->steps > 0 && out->first > 0 && out->trials > 0 && out->most > 0 &&
      out->first <= most && out->most <= most) {
    return NULL;
  }
  return cx_invalid(
      "batch_size_finder: steps_per_trial is %lld, init_val %lld, max_trials "
      "%lld, max_val %lld: numbers of 1 or more are wanted",
      (long long)out->steps, (long long)out->first, (long long)out->trials,
      (long long)out->most);
}

calx_callback *calx_batch_size_finder_with(
    const calx_batch_size_finder_options *options)
{
  size_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(size_finder), .user = o,
                        .begin = begin,
                        .hooks = { .on_fit_start = on_fit_start });
  return cx_train_callback_finish(c, "BatchSizeFinder", CX_TRAIN_CALLBACK_TUNER,
                                  status, o, cx_free);
}

int64_t calx_batch_size_finder_optimal(const calx_callback *cb)
{
  const size_finder *f = calx_callback_self(cb);
  if (f != NULL && f->found != 0) return f->found;
  const size_options *o = cb != NULL ? cb->own : NULL;
  return o != NULL ? o->first : 0;
}
