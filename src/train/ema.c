// train/ema: an exponential average of the weights, which validation sees.
//
// An update is recorded when the next batch begins, not when its own ends: then
// it is a part of that batch's program, and no launch of its own.
#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "train/average.h"
#include "train/internal.h"

// Of the callback.
typedef struct ema_options {
  double decay;
  bool has_buffers;
  int64_t every, from_step;  // steps; every: 0: none
  int64_t from_epoch;        // -1: no epochs
} ema_options;

// Of a rank.
typedef struct ema {
  const ema_options *o;
  cx_train_average *average;  // NULL: outside of fit
  int64_t n;                  // values in it
  int64_t latest_step, latest_epoch;
  bool is_due;  // an update is to be recorded
  // The weights of a checkpoint, beside the average, until fit begins; NULL:
  // none.
  calx_value *loaded;
  int64_t loaded_n;
} ema;

static void begin(void *self, void *user)
{
  ((ema *)self)->o = user;
}

static void drop_loaded(ema *s)
{
  calx_value_free(s->loaded);
  s->loaded = NULL;
}

static void end(void *self)
{
  drop_loaded(self);
}

// ---- updates ----------------------------------------------------------------

// The first value is copied.
static void update(ema *s)
{
  const double keep = s->n == 0 ? 0 : s->o->decay;
  cx_train_average_update(s->average, keep, 1 - keep);
  s->n++;
}

static void record_due(ema *s)
{
  if (!s->is_due || s->average == NULL) return;
  s->is_due = false;
  update(s);
}

static void on_train_batch_start(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t batch_idx)
{
  (void)t, (void)batch, (void)batch_idx;
  record_due(self);
}

static void on_train_batch_end(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t batch_idx)
{
  (void)batch, (void)batch_idx;
  ema *s = self;
  const int64_t steps = t->position.global_step, index = steps - 1;
  if (steps <= s->latest_step || s->o->every == 0) return;
  if (index < s->o->from_step || index % s->o->every != 0) return;
  s->latest_step = steps;
  s->is_due = true;
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  ema *s = self;
  record_due(s);
  const int64_t epoch = t->position.epoch;
  if (s->o->from_epoch < 0 || epoch < s->o->from_epoch) return;
  if (epoch <= s->latest_epoch) return;
  s->latest_epoch = epoch;
  update(s);
}

// ---- validation -------------------------------------------------------------

// What is pending runs before, so that the batches' program is the usual one.
static void swap(calx_trainer *t, void *self)
{
  (void)t;
  ema *s = self;
  if (s->average == NULL) return;
  record_due(s);
  calx_sync(NULL);
  cx_train_average_swap(s->average);
}

static void on_train_end(calx_trainer *t, void *self)
{
  (void)t;
  ema *s = self;
  record_due(s);
  calx_sync(NULL);
  cx_train_average_give(s->average);
}

// ---- checkpoints ------------------------------------------------------------

static void state_dict(calx_trainer *t, void *self, calx_value *state)
{
  (void)t;
  cx_lazy_scope_pin(calx_value_set(state, "latest_update_step",
                                   calx_value_int(((ema *)self)->latest_step)));
}

static void load_state_dict(calx_trainer *t, void *self,
                            const calx_value *state)
{
  (void)t;
  ((ema *)self)->latest_step =
      calx_value_as_int(calx_value_get(state, "latest_update_step"));
}

// The average takes the place of the weights, which get a name of their own.
static calx_status *save(ema *s, calx_value *checkpoint)
{
  calx_value *current, *average;
  calx_value *state = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(checkpoint, "averaging_state", state));
  CALX_TRY(calx_value_set(
      state, "n_averaged",
      calx_value_tensor(calx_host_tensor(&s->n, CALX_I64, CALX_SCALAR))));
  CALX_TRY(cx_train_keep_tensors(calx_value_get(checkpoint, "state_dict"),
                                 &current));
  CALX_TRY(calx_value_set(checkpoint, "current_model_state", current));
  CALX_TRY(cx_train_average_state(s->average, &average));
  return calx_value_set(checkpoint, "state_dict", average);
}

static void on_save_checkpoint(calx_trainer *t, void *self,
                               calx_value *checkpoint)
{
  (void)t;
  ema *s = self;
  if (s->average == NULL) return;
  record_due(s);
  calx_sync(NULL);
  cx_lazy_scope_pin(save(s, checkpoint));
}

static void report(const char *text)
{
  if (calx_global_ordinal() == 0) cx_log("%s", text);
}

static calx_status *load(ema *s, const calx_value *checkpoint)
{
  const calx_value *current = calx_value_get(checkpoint, "current_model_state");
  const calx_value *state = calx_value_get(checkpoint, "averaging_state");
  drop_loaded(s);
  if (current == NULL || state == NULL) {
    report(
        "The checkpoint was not created with WeightAveraging. Both the current "
        "and the average model will be initialized with state_dict.");
    return NULL;
  }
  report(
      "Found current_model_state in the checkpoint. This will be used to "
      "initialize the model.");
  calx_tensor *n = calx_value_as_tensor(calx_value_get(state, "n_averaged"));
  s->loaded_n = n != NULL ? calx_item_int(calx_to(n, NULL)) : 0;
  return cx_train_keep_tensors(current, &s->loaded);
}

static void on_load_checkpoint(calx_trainer *t, void *self,
                               calx_value *checkpoint)
{
  if (t->asked == CX_TRAIN_FITTING) cx_lazy_scope_pin(load(self, checkpoint));
}

// ---- the run ----------------------------------------------------------------

// The average begins as the model: what a checkpoint's state_dict has.
static calx_status *start(calx_trainer *t, ema *s)
{
  CALX_TRY(cx_train_average_new(t->model,
                                s->o->has_buffers
                                    ? CX_TRAIN_PARAMETERS_AND_BUFFERS
                                    : CX_TRAIN_PARAMETERS_COPY,
                                &s->average));
  return s->loaded != NULL ? calx_module_load_state_dict(t->model, s->loaded)
                           : NULL;
}

static void on_fit_start(calx_trainer *t, void *self)
{
  ema *s = self;
  s->n = s->loaded != NULL ? s->loaded_n : 0;
  if (s->loaded == NULL) s->latest_step = 0;
  s->latest_epoch = -1;
  s->is_due = false;
  cx_lazy_scope_pin(start(t, s));
  drop_loaded(s);
}

static void teardown(calx_trainer *t, void *self)
{
  (void)t;
  ema *s = self;
  cx_train_average_free(s->average);
  s->average = NULL;
}

// ---- the callback -----------------------------------------------------------

// 0 where it was written so, `otherwise` where it was not.
static int64_t or_default(int64_t given, int64_t otherwise)
{
  if (given == INT64_MIN) return 0;
  return given == 0 ? otherwise : given;
}

static calx_status *take(const calx_ema_weight_averaging_options *given,
                         ema_options *out)
{
  calx_ema_weight_averaging_options o;
  CALX_TRY(cx_options_take("ema_weight_averaging", given, &o, sizeof o));
  *out =
      (ema_options){ .decay = cx_or_default(o.decay, 0.999),
                     .has_buffers = !o.no_buffers,
                     .every = or_default(o.update_every_n_steps, 1),
                     .from_step = o.update_starting_at_step,
                     .from_epoch = or_default(o.update_starting_at_epoch, -1) };
  if (!(out->decay >= 0 && out->decay <= 1)) {
    return cx_invalid(
        "Invalid decay value %g provided. Please provide a value in [0,1] "
        "range.",
        out->decay);
  }
  if (out->every >= 0 && out->from_step >= 0 && out->from_epoch >= -1) {
    return NULL;
  }
  return cx_invalid(
      "ema_weight_averaging: update_every_n_steps is %lld, "
      "update_starting_at_step %lld, update_starting_at_epoch %lld: numbers of 0 "
      "or more are wanted",
      (long long)out->every, (long long)out->from_step,
      (long long)out->from_epoch);
}

calx_callback *calx_ema_weight_averaging_with(
    const calx_ema_weight_averaging_options *options)
{
  ema_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(ema), .user = o, .begin = begin,
                        .end = end, .state_key = "EMAWeightAveraging",
                        .state_dict = state_dict,
                        .load_state_dict = load_state_dict,
                        .hooks = { .on_fit_start = on_fit_start,
                                   .on_train_batch_start = on_train_batch_start,
                                   .on_train_batch_end = on_train_batch_end,
                                   .on_train_epoch_end = on_train_epoch_end,
                                   .on_train_end = on_train_end,
                                   .on_validation_epoch_start = swap,
                                   .on_validation_epoch_end = swap,
                                   .on_save_checkpoint = on_save_checkpoint,
                                   .on_load_checkpoint = on_load_checkpoint,
                                   .teardown = teardown });
  return cx_train_callback_finish(c, "EMAWeightAveraging",
                                  CX_TRAIN_CALLBACK_OTHER, status, o, cx_free);
}
