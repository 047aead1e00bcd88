// train/accumulation: over how many batches gradients are summed, by the epoch.
#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "train/internal.h"

typedef calx_gradient_accumulation_scheduler_options scheduler_options;

static const scheduler_options *of(void *self)
{
  return *(const scheduler_options *const *)self;
}

static void begin(void *self, void *user)
{
  *(const scheduler_options **)self = user;
}

// That of the latest epoch of the list that is not past.
static int64_t factor_at(const scheduler_options *o, int64_t epoch)
{
  int64_t latest = -1, factor = 1;
  for (size_t i = 0; i < o->epochs.count; i++) {
    const int64_t begins = o->epochs.values[i];
    if (begins > epoch || begins < latest) continue;
    latest = begins;
    factor = o->factors.values[i];
  }
  return factor;
}

static void set_factor(calx_trainer *t, void *self)
{
  calx_trainer_set_accumulate_grad_batches(
      t, factor_at(of(self), calx_trainer_current_epoch(t)));
}

static calx_status *check_trainer(const calx_trainer *t)
{
  if (t->module->manual_optimization) {
    return cx_invalid(
        "Automatic gradient accumulation and the `GradientAccumulationScheduler`"
        " is not supported for manual optimization. Please remove the callback "
        "or switch to automatic optimization.");
  }
  if (t->config.accumulate == 1) return NULL;
  return cx_invalid(
      "You have set `accumulate_grad_batches` and are using the "
      "`GradientAccumulationScheduler` callback. Either remove "
      "`accumulate_grad_batches` from the Trainer or remove the callback.");
}

// An epoch that a checkpoint was taken in has no on_train_epoch_start.
static void on_train_start(calx_trainer *t, void *self)
{
  calx_status *status = check_trainer(t);
  if (status == NULL) set_factor(t, self);
  cx_lazy_scope_pin(status);
}

// ---- the callback -----------------------------------------------------------

static calx_status *take(const scheduler_options *given, scheduler_options *o)
{
  static const char call[] = "gradient_accumulation_scheduler";
  CALX_TRY(cx_options_take(call, given, o, sizeof *o));
  const size_t n = o->epochs.count;
  if (n == 0 || n > CALX_MAX_RANK || o->factors.count != n) {
    return cx_invalid(
        "%s: %zu epochs and %zu factors, a factor for each of 1 "
        "to %d epochs is wanted",
        call, n, o->factors.count, CALX_MAX_RANK);
  }
  for (size_t i = 0; i < n; i++) {
    if (o->epochs.values[i] < 0) {
      return cx_invalid(
          "Epoch should be an int greater than or equal to 0. Got %lld.",
          (long long)o->epochs.values[i]);
    }
    if (o->factors.values[i] < 1) {
      return cx_invalid(
          "Accumulation factor should be an int greater than 0. Got %lld.",
          (long long)o->factors.values[i]);
    }
  }
  return NULL;
}

calx_callback *calx_gradient_accumulation_scheduler_with(
    const scheduler_options *options)
{
  scheduler_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(scheduler_options *), .user = o,
                        .begin = begin,
                        .hooks = { .on_train_start = on_train_start,
                                   .on_train_epoch_start = set_factor });
  return cx_train_callback_finish(c, "GradientAccumulationScheduler",
                                  CX_TRAIN_CALLBACK_OTHER, status, o, cx_free);
}
