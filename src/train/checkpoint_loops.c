// train/checkpoint_loops: how far a training is, as Lightning's loops keep it.
//
// Each counter is there as `total` and, of the running epoch, as `current`, and
// has up to four numbers: `ready` is counted first, `completed` last. From
// their differences Lightning sees at which hook a checkpoint was made, and
// what to run first. Two of these states are enough:
//
//   in an epoch      that of on_train_batch_end: the batch is processed, and
//                    not completed
//   between epochs   the epochs' counters are equal, the batches' `current` 0
//
// Lightning's own state of on_train_epoch_end is not written: with max_steps
// Lightning 2.6 trains one batch too many from it. Numbers of schedules and of
// validations, which Lightning writes and does not use, are 0.
//
// What is read may be of any of these states, and of any release: 1.6 to 1.9
// have the loops under other names, before there were none.
//
// Source: pytorch_lightning/loops: fit_loop.py, training_epoch_loop.py,
// progress.py, 2.6.6.
#include <inttypes.h>

#include "base/status.h"
#include "train/checkpoint.h"

// Numbers of one counter, by PyTorch Lightning's names.
typedef struct counter {
  int64_t ready, started, processed, completed;
} counter;

// ---- counters are written ---------------------------------------------------

// Which of them a kind of counter has.
typedef enum counter_kind { TWO, THREE, FOUR } counter_kind;

static calx_status *put_counter(calx_value *progress, const char *name,
                                counter_kind kind, counter c)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(progress, name, d));
  CALX_TRY(calx_value_set(d, "ready", calx_value_int(c.ready)));
  CALX_TRY(calx_value_set(d, "completed", calx_value_int(c.completed)));
  if (kind == TWO) return NULL;
  CALX_TRY(calx_value_set(d, "started", calx_value_int(c.started)));
  if (kind == THREE) return NULL;
  return calx_value_set(d, "processed", calx_value_int(c.processed));
}

static calx_status *put_progress(calx_value *loop, const char *name,
                                 counter_kind kind, counter total,
                                 counter current, calx_value **out)
{
  *out = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(loop, name, *out));
  CALX_TRY(put_counter(*out, "total", kind, total));
  return put_counter(*out, "current", kind, current);
}

static counter all(int64_t n)
{
  return (counter){ n, n, n, n };
}

// n batches, of which the last one is at on_train_batch_end.
static counter at_batch_end(int64_t n)
{
  return (counter){ n, n, n, n - 1 };
}

static calx_status *put_batches(calx_value *loop, const char *name,
                                counter total, counter current)
{
  calx_value *progress;
  CALX_TRY(put_progress(loop, name, FOUR, total, current, &progress));
  return calx_value_set(progress, "is_last_batch", calx_value_bool(false));
}

static calx_status *put_empty(calx_value *loop, const char *name)
{
  return calx_value_set(loop, name, calx_value_container(CALX_KIND_DICT));
}

// ---- the loops are written --------------------------------------------------

static calx_status *put_automatic(const cx_train_progress *p, int64_t every,
                                  int64_t batch_idx, calx_value *fit)
{
  calx_value *progress, *optimizer, *ignored;
  int64_t total = p->is_manual ? 0 : p->global_step;
  int64_t begun = batch_idx % every != 0;  // an accumulation
  int64_t steps = batch_idx / every;
  if (p->is_manual) begun = steps = 0;
  CALX_TRY(put_empty(fit, "epoch_loop.automatic_optimization.state_dict"));
  progress = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(
      fit, "epoch_loop.automatic_optimization.optim_progress", progress));
  optimizer = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(progress, "optimizer", optimizer));
  CALX_TRY(
      put_progress(optimizer, "step", TWO, all(total), all(steps), &ignored));
  return put_progress(optimizer, "zero_grad", THREE, all(total + begun),
                      all(steps + begun), &ignored);
}

// Lightning does not begin `current` anew here.
static calx_status *put_manual(const cx_train_progress *p, calx_value *fit)
{
  calx_value *ignored;
  int64_t total = p->is_manual ? p->global_step : 0;
  CALX_TRY(put_empty(fit, "epoch_loop.manual_optimization.state_dict"));
  return put_progress(fit, "epoch_loop.manual_optimization.optim_step_progress",
                      TWO, all(total), all(total), &ignored);
}

// Lightning counts the batch at whose end the checkpoint was made among those
// that stepped when it loads the checkpoint.
static calx_status *put_fit(const cx_train_progress *p, calx_value *fit)
{
  const int64_t every = p->accumulate > 0 ? p->accumulate : 1;
  const bool inside = p->batch_idx > 0 && !p->is_epoch_end;
  const int64_t batch_idx = inside ? p->batch_idx : 0;
  const int64_t epochs = p->epoch + p->is_epoch_end;
  const counter seen =
      inside ? at_batch_end(p->batches_seen) : all(p->batches_seen);
  const counter here = inside ? at_batch_end(batch_idx) : all(0);
  const counter epoch =
      inside ? (counter){ epochs + 1, epochs + 1, epochs, epochs }
             : all(epochs);
  const bool counted_later = inside && batch_idx % every == 0;
  calx_value *state = calx_value_container(CALX_KIND_DICT), *ignored;
  CALX_TRY(calx_value_set(fit, "epoch_loop.state_dict", state));
  CALX_TRY(calx_value_set(state, "_batches_that_stepped",
                          calx_value_int(p->batches_stepped - counted_later)));
  CALX_TRY(put_batches(fit, "epoch_loop.batch_progress", seen, here));
  CALX_TRY(put_progress(fit, "epoch_loop.scheduler_progress", TWO, all(0),
                        all(0), &ignored));
  CALX_TRY(put_automatic(p, every, batch_idx, fit));
  CALX_TRY(put_manual(p, fit));
  CALX_TRY(put_empty(fit, "epoch_loop.val_loop.state_dict"));
  CALX_TRY(
      put_batches(fit, "epoch_loop.val_loop.batch_progress", all(0), all(0)));
  return put_progress(fit, "epoch_progress", FOUR, epoch, epoch, &ignored);
}

static calx_status *put_loop(calx_value *loops, const char *name,
                             calx_value **out)
{
  *out = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(loops, name, *out));
  return put_empty(*out, "state_dict");
}

// Lightning asks for the loop that it runs.
static calx_status *put_evaluations(calx_value *loops)
{
  calx_value *loop, *ignored;
  CALX_TRY(put_loop(loops, "validate_loop", &loop));
  CALX_TRY(put_batches(loop, "batch_progress", all(0), all(0)));
  CALX_TRY(put_loop(loops, "test_loop", &loop));
  CALX_TRY(put_batches(loop, "batch_progress", all(0), all(0)));
  CALX_TRY(put_loop(loops, "predict_loop", &loop));
  return put_progress(loop, "batch_progress", FOUR, all(0), all(0), &ignored);
}

calx_status *cx_train_loops_put(const cx_train_progress *p,
                                calx_value *checkpoint)
{
  calx_value *loops = calx_value_container(CALX_KIND_DICT);
  calx_value *fit;
  CALX_TRY(calx_value_set(checkpoint, "epoch", calx_value_int(p->epoch)));
  CALX_TRY(calx_value_set(checkpoint, "global_step",
                          calx_value_int(p->global_step)));
  CALX_TRY(calx_value_set(checkpoint, "pytorch-lightning_version",
                          calx_value_string(CX_TRAIN_LIGHTNING_VERSION)));
  CALX_TRY(calx_value_set(checkpoint, "loops", loops));
  CALX_TRY(put_loop(loops, "fit_loop", &fit));
  CALX_TRY(put_fit(p, fit));
  return put_evaluations(loops);
}

// ---- counters are read ------------------------------------------------------

// A double, as other programs count, has no more whole numbers.
#define MOST ((int64_t)1 << 53)

// 0 where there is none: each release has more counters than the one before.
static calx_status *get_count(const calx_value *dict, const char *where,
                              const char *name, int64_t *out)
{
  const calx_value *v = calx_value_get(dict, name);
  *out = calx_value_as_int(v);
  if (v == NULL) return NULL;
  if (calx_value_kind(v) != CALX_KIND_INT) {
    return cx_invalid(
        "the checkpoint's %s '%s' is %s, a number of 0 to 2^53 is wanted",
        where, name, calx_kind_name(calx_value_kind(v)));
  }
  if (*out >= 0 && *out <= MOST) return NULL;
  return cx_invalid("the checkpoint's %s '%s' is %" PRId64
                    ", a number of 0 to 2^53 is wanted",
                    where, name, *out);
}

static calx_status *get_dict(const calx_value *dict, const char *name,
                             const calx_value **out)
{
  *out = calx_value_get(dict, name);
  if (*out == NULL || calx_value_kind(*out) == CALX_KIND_DICT) return NULL;
  return cx_invalid("the checkpoint's '%s' is %s, a dict is wanted", name,
                    calx_kind_name(calx_value_kind(*out)));
}

static calx_status *get_counter(const calx_value *progress, const char *where,
                                const char *which, counter *out)
{
  const calx_value *d;
  CALX_TRY(cx_annotate(get_dict(progress, which, &d), "in '%s'", where));
  CALX_TRY(get_count(d, where, "ready", &out->ready));
  CALX_TRY(get_count(d, where, "started", &out->started));
  CALX_TRY(get_count(d, where, "processed", &out->processed));
  return get_count(d, where, "completed", &out->completed);
}

// ---- the loops are read -----------------------------------------------------

// At on_train_batch_end.
static bool is_at_batch_end(const counter *c)
{
  return c->ready == c->started && c->started == c->processed &&
         c->processed == c->completed + 1;
}

static int64_t over(const counter *c)
{
  return is_at_batch_end(c) ? c->processed : c->completed;
}

// Steps of the optimisers, under the newest of three names.
static calx_status *get_steps(const calx_value *fit, const char *const names[3],
                              bool nested, int64_t *out)
{
  const calx_value *d = NULL;
  counter total;
  for (int i = 0; d == NULL && i < 3; i++) {
    CALX_TRY(get_dict(fit, names[i], &d));
  }
  if (nested) {
    CALX_TRY(get_dict(d, "optimizer", &d));
    CALX_TRY(get_dict(d, "step", &d));
  }
  CALX_TRY(get_counter(d, names[0], "total", &total));
  *out = total.completed;
  return NULL;
}

static calx_status *get_global_step(const calx_value *fit,
                                    cx_train_progress *out)
{
  static const char *const automatic[] = {
    "epoch_loop.automatic_optimization.optim_progress",
    "epoch_loop.optimizer_loop.optim_progress",
    "epoch_loop.batch_loop.optimizer_loop.optim_progress",
  };
  static const char *const manual[] = {
    "epoch_loop.manual_optimization.optim_step_progress",
    "epoch_loop.manual_loop.optim_step_progress",
    "epoch_loop.batch_loop.manual_loop.optim_step_progress",
  };
  int64_t steps, by_hand;
  CALX_TRY(get_steps(fit, automatic, true, &steps));
  CALX_TRY(get_steps(fit, manual, false, &by_hand));
  out->is_manual = steps == 0 && by_hand > 0;
  if (steps > 0) out->global_step = steps;
  if (out->is_manual) out->global_step = by_hand;
  return NULL;
}

static calx_status *get_batches(const calx_value *fit, counter *out_current,
                                bool *out_all, cx_train_progress *out)
{
  static const char name[] = "epoch_loop.batch_progress";
  const calx_value *d;
  counter total;
  CALX_TRY(get_dict(fit, name, &d));
  CALX_TRY(get_counter(d, name, "total", &total));
  CALX_TRY(get_counter(d, name, "current", out_current));
  out->batches_seen = over(&total);
  out->batch_idx = over(out_current);
  *out_all = calx_value_as_bool(calx_value_get(d, "is_last_batch")) &&
             out->batch_idx == out_current->ready;
  return NULL;
}

// 'processed' is counted before on_train_epoch_end, 'completed' after it; a
// file of 1.5 that Lightning has upgraded has the latter alone.
static calx_status *get_epochs(const calx_value *fit, bool *out_inside,
                               cx_train_progress *out)
{
  const calx_value *d;
  counter current;
  *out_inside = false;
  CALX_TRY(get_dict(fit, "epoch_progress", &d));
  if (d == NULL) return NULL;
  CALX_TRY(get_counter(d, "epoch_progress", "current", &current));
  out->epoch = current.processed > current.completed ? current.processed
                                                     : current.completed;
  *out_inside = current.started > out->epoch;
  return NULL;
}

// Lightning does not count a batch at whose end a checkpoint is made among
// those that stepped, and counts it when it loads the checkpoint.
static calx_status *get_stepped(const calx_value *fit, bool inside,
                                cx_train_progress *out)
{
  const calx_value *d;
  CALX_TRY(get_dict(fit, "epoch_loop.state_dict", &d));
  CALX_TRY(get_count(d, "epoch_loop", "_batches_that_stepped",
                     &out->batches_stepped));
  const int64_t most = out->is_manual ? out->batches_seen : out->global_step;
  if (inside && out->batches_stepped < most) out->batches_stepped++;
  return NULL;
}

static calx_status *get_fit(const calx_value *fit, cx_train_progress *out)
{
  counter current;
  bool is_all, inside;
  CALX_TRY(get_batches(fit, &current, &is_all, out));
  CALX_TRY(get_epochs(fit, &inside, out));
  CALX_TRY(get_global_step(fit, out));
  // Lightning does not count the start of an epoch that it resumes at once.
  inside |= is_at_batch_end(&current);
  CALX_TRY(get_stepped(fit, inside, out));
  if (inside && is_all) out->epoch++;
  if (!inside || is_all) out->batch_idx = 0;
  // Lightning's upgrade of a file from before 1.6 does not know them.
  if (out->batches_seen == 0) {
    out->batches_seen = out->batches_stepped = out->global_step;
  }
  if (out->batch_idx <= out->batches_seen) return NULL;
  return cx_invalid("of the checkpoint's batches %" PRId64
                    " of the running epoch are over, and %" PRId64 " of all",
                    out->batch_idx, out->batches_seen);
}

calx_status *cx_train_loops_get(const calx_value *checkpoint,
                                cx_train_progress *out)
{
  const calx_value *loops, *fit;
  *out = (cx_train_progress){ 0 };
  if (calx_value_kind(calx_value_get(
          checkpoint, "pytorch-lightning_version")) != CALX_KIND_STRING ||
      calx_value_get(checkpoint, "epoch") == NULL ||
      calx_value_get(checkpoint, "global_step") == NULL) {
    return cx_invalid(
        "it is no checkpoint of Lightning's or of calx's trainer: it has no "
        "'pytorch-lightning_version', 'epoch' or 'global_step'");
  }
  CALX_TRY(get_count(checkpoint, "own", "epoch", &out->epoch));
  CALX_TRY(get_count(checkpoint, "own", "global_step", &out->global_step));
  CALX_TRY(get_dict(checkpoint, "loops", &loops));
  CALX_TRY(get_dict(loops, "fit_loop", &fit));
  if (fit != NULL) return get_fit(fit, out);
  out->batches_seen = out->batches_stepped = out->global_step;
  return NULL;
}
