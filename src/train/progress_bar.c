// train/progress_bar: the callbacks that show how far a run is. The first rank
// draws; the loops tell it what begins, goes on and ends.
#include "train/progress_bar.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks.h"
#include "lazy/lazy.h"
#include "train/internal.h"

#define SECOND INT64_C(1000000000)
enum { REDRAWS = 10 };  // a second, at most

static void begin(void *self, void *user)
{
  ((cx_train_bar_state *)self)->o = user;
}

static void setup(calx_trainer *t, void *self)
{
  cx_train_bar_state *bar = self;
  bar->is_drawn = bar->o->every > 0 && calx_trainer_is_global_zero(t);
}

static void start(calx_trainer *t, void *self)
{
  (void)t;
  cx_train_progress_begin(self);
  ((cx_train_bar_state *)self)->dataloader = -1;
}

static void end(calx_trainer *t, void *self)
{
  cx_train_progress_end(self, t, true);
}

// ---- training ---------------------------------------------------------------

// With max_steps alone the run may end inside of an epoch.
static int64_t training_total(const calx_trainer *t)
{
  const int64_t batches = calx_trainer_num_training_batches(t);
  const int64_t left = t->config.max_steps - t->position.global_step;
  if (t->config.max_epochs != -1 || t->config.max_steps <= 0) return batches;
  return batches < 0 || left < batches ? left : batches;
}

// Rich's descriptions of training and validation are of one width.
static void start_epoch(calx_trainer *t, void *self)
{
  cx_train_bar_state *bar = self;
  cx_train_progress_loop *l = &bar->loops[CX_TRAIN_PROGRESS_OUTER];
  const long long epoch = (long long)t->position.epoch;
  const long long last = (long long)t->config.max_epochs - 1;
  char text[48];
  cx_train_progress_begin(bar);
  snprintf(text, sizeof text, "Epoch %lld", epoch);
  if (bar->o->is_rich && t->config.max_epochs >= 0) {
    snprintf(text, sizeof text, "Epoch %lld/%lld", epoch, last);
  }
  snprintf(l->description, sizeof l->description,
           bar->o->is_rich ? "%-10s" : "%s", text);
  cx_train_progress_start(bar, t, CX_TRAIN_PROGRESS_OUTER, t->position.batch,
                          training_total(t));
}

// An epoch that a checkpoint was taken in does not begin again.
static void on_train_start(calx_trainer *t, void *self)
{
  start(t, self);
  if (t->resumes_epoch) start_epoch(t, self);
}

static void on_train_batch_end(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)batch;
  cx_train_progress_advance(self, t, CX_TRAIN_PROGRESS_OUTER, i + 1);
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  cx_train_bar_state *bar = self;
  cx_train_progress_refresh(bar, t);
  if (bar->o->leaves) cx_train_progress_end(bar, t, true);
}

// ---- evaluation -------------------------------------------------------------

static bool is_nested(const calx_trainer *t)
{
  return t->asked == CX_TRAIN_FITTING && !t->sanity_checking;
}

static int loop_of(const calx_trainer *t)
{
  return is_nested(t) ? CX_TRAIN_PROGRESS_NESTED : CX_TRAIN_PROGRESS_OUTER;
}

static const char *name_of(const calx_trainer *t)
{
  return t->sanity_checking                ? "Sanity Checking"
         : t->asked == CX_TRAIN_TESTING    ? "Testing"
         : t->asked == CX_TRAIN_PREDICTING ? "Predicting"
                                           : "Validation";
}

// The bar begins anew with each loader.
static void on_batch_start(calx_trainer *t, void *self, const calx_batch *batch,
                           int64_t i)
{
  (void)batch, (void)i;
  cx_train_bar_state *bar = self;
  const int loader = t->dataloader_idx, which = loop_of(t);
  if (bar->dataloader == loader) return;
  bar->dataloader = loader;
  cx_train_progress_loop *l = &bar->loops[which];
  snprintf(l->description, sizeof l->description,
           bar->o->is_rich ? "%s" : "%s DataLoader %d", name_of(t), loader);
  cx_train_progress_start(bar, t, which, 0,
                          calx_trainer_num_eval_batches(t, (size_t)loader));
}

static void on_batch_end(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)batch;
  cx_train_progress_advance(self, t, loop_of(t), i + 1);
}

static void on_validation_end(calx_trainer *t, void *self)
{
  cx_train_bar_state *bar = self;
  bar->dataloader = -1;
  if (is_nested(t)) {
    cx_train_progress_hide(bar);
    cx_train_progress_refresh(bar, t);
  } else if (!t->sanity_checking) {
    end(t, bar);
  }
}

static void on_sanity_check_end(calx_trainer *t, void *self)
{
  cx_train_progress_end(self, t, false);
}

// ---- the callbacks ----------------------------------------------------------

static const calx_trainer_hooks hooks = {
  .setup = setup,
  .on_sanity_check_start = start,
  .on_sanity_check_end = on_sanity_check_end,
  .on_train_start = on_train_start,
  .on_train_epoch_start = start_epoch,
  .on_train_batch_end = on_train_batch_end,
  .on_train_epoch_end = on_train_epoch_end,
  .on_train_end = end,
  .on_validation_start = start,
  .on_validation_batch_start = on_batch_start,
  .on_validation_batch_end = on_batch_end,
  .on_validation_end = on_validation_end,
  .on_test_start = start,
  .on_test_batch_start = on_batch_start,
  .on_test_batch_end = on_batch_end,
  .on_test_end = end,
  .on_predict_start = start,
  .on_predict_batch_start = on_batch_start,
  .on_predict_batch_end = on_batch_end,
  .on_predict_end = end,
  .on_exception = end,
  .teardown = end,
};

static calx_callback *make(const char *name, calx_status *status,
                           const cx_train_progress_options *options)
{
  cx_train_progress_options *o = cx_alloc(sizeof *o);
  if (o != NULL) *o = *options;
  if (o == NULL) status = cx_status_first(status, cx_out_of_memory());
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(cx_train_bar_state), .user = o,
                        .begin = begin, .hooks = hooks);
  return cx_train_callback_finish(c, name, CX_TRAIN_CALLBACK_PROGRESS, status,
                                  o, cx_free);
}

static calx_status *take_rate(const char *what, int64_t given, int64_t usual,
                              int64_t *out)
{
  *out = given == INT64_MIN ? 0 : given == 0 ? usual : given;
  if (*out >= 0) return NULL;
  return cx_invalid("%s: refresh_rate is %lld", what, (long long)given);
}

// The variable is the least number of batches.
static calx_status *take_least(int64_t *every)
{
  const char *text = getenv("TQDM_MINITERS");
  int64_t least;
  if (text == NULL || *every == 0) return NULL;
  if (!cx_read_int(text, 0, INT64_MAX, &least)) {
    return cx_invalid(
        "tqdm_progress_bar: TQDM_MINITERS is '%s', no number of "
        "batches",
        text);
  }
  if (least > *every) *every = least;
  return NULL;
}

static calx_status *take_tqdm(const calx_tqdm_progress_bar_options *given,
                              cx_train_progress_options *out)
{
  static const char what[] = "tqdm_progress_bar";
  calx_tqdm_progress_bar_options o;
  CALX_TRY(cx_options_take(what, given, &o, sizeof o));
  CALX_TRY(take_rate(what, o.refresh_rate, 1, &out->every));
  CALX_TRY(take_least(&out->every));
  if (o.process_position < 0 || o.process_position > 1000) {
    return cx_invalid("%s: process_position is %d", what, o.process_position);
  }
  out->offset = 2 * o.process_position;
  out->leaves = o.leave;
  out->interval_ns = SECOND / REDRAWS;
  return NULL;
}

calx_callback *calx_tqdm_progress_bar_with(
    const calx_tqdm_progress_bar_options *options)
{
  cx_train_progress_options o = { 0 };
  calx_status *status = take_tqdm(options, &o);
  return make("TQDMProgressBar", status, &o);
}

static calx_status *take_rich(const calx_rich_progress_bar_options *given,
                              cx_train_progress_options *out)
{
  static const char what[] = "rich_progress_bar";
  calx_rich_progress_bar_options o;
  int64_t rate;
  CALX_TRY(cx_options_take(what, given, &o, sizeof o));
  CALX_TRY(take_rate(what, o.refresh_rate, REDRAWS, &rate));
  out->is_rich = true;
  out->leaves = o.leave;
  out->every = rate > 0;
  out->interval_ns = rate > 0 ? SECOND / rate : 0;
  return NULL;
}

calx_callback *calx_rich_progress_bar_with(
    const calx_rich_progress_bar_options *options)
{
  cx_train_progress_options o = { 0 };
  calx_status *status = take_rich(options, &o);
  return make("RichProgressBar", status, &o);
}
