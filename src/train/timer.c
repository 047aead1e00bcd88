// train/timer: measures the stages of a run, and ends training by time.
//
// Several ranks stop at one batch, so they meet to look at the first one's
// clock. They do not meet after each batch: the batches to the next meeting are
// those of half the time that is left, of a second at most.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/thread.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "train/internal.h"

typedef enum timer_stage { TRAIN, VALIDATE, TEST, STAGES } timer_stage;
static const char *const stage_names[STAGES] = { "train", "validate", "test" };

// Of the callback.
typedef struct timer_options {
  double duration;  // in seconds; infinite: no limit
  bool each_epoch;  // looks when an epoch ends, else after steps
  bool is_verbose;
} timer_options;

// Of a rank. Times are seconds of the monotonic clock.
typedef struct timer {
  const timer_options *o;
  double start[STAGES], end[STAGES];  // NaN: not yet
  double offset;                      // of training, in earlier runs
  double looked;                      // the elapsed time at the last look
  int64_t since, every;               // batches since then, and to the next
  bool is_over;                       // which was said
} timer;

static double now(void)
{
  return (double)cx_now_ns() * 1e-9;
}

static void begin(void *self, void *user)
{
  timer *s = self;
  s->o = user;
  for (int i = 0; i < STAGES; i++) s->start[i] = s->end[i] = (double)NAN;
}

static double elapsed(const timer *s, timer_stage stage)
{
  const double before = stage == TRAIN ? s->offset : 0;
  if (isnan(s->start[stage])) return before;
  const double end = isnan(s->end[stage]) ? now() : s->end[stage];
  return end - s->start[stage] + before;
}

// ---- looking at the clock ---------------------------------------------------

// "3 days, 1:02:03". Source: str(datetime.timedelta).
static void write_time(double seconds, char *out, size_t size)
{
  const long long all = (long long)seconds, days = all / 86400;
  char day[40] = "";
  if (days > 0) {
    snprintf(day, sizeof day, "%lld day%s, ", days, days == 1 ? "" : "s");
  }
  snprintf(out, size, "%s%lld:%02lld:%02lld", day, all / 3600 % 24,
           all / 60 % 60, all % 60);
}

// All ranks compute the same, from the first one's time.
static void plan_next(timer *s, double time)
{
  enum { MOST = 1 << 20 };
  const double each = s->since > 0 ? (time - s->looked) / (double)s->since : 0;
  const double ahead = fmin((s->o->duration - time) / 2, 1);
  s->every = each > 0 ? (int64_t)fmin(ahead / each, MOST) : 1;
  if (s->every < 1 || calx_world_size() == 1) s->every = 1;
  s->looked = time;
  s->since = 0;
}

static calx_status *look(calx_trainer *t, timer *s)
{
  double time = elapsed(s, TRAIN);
  CALX_TRY(cx_train_broadcast_numbers(t, "timer", &time, 1));
  plan_next(s, time);
  if (time < s->o->duration) return NULL;
  calx_trainer_stop(t);
  if (s->is_over) return NULL;
  s->is_over = true;
  if (!s->o->is_verbose || !calx_trainer_is_global_zero(t)) return NULL;
  char text[80];
  write_time(time, text, sizeof text);
  cx_log("Time limit reached. Elapsed time is %s. Signaling Trainer to stop.",
         text);
  return NULL;
}

// ---- hooks ------------------------------------------------------------------

// A resumed run may have used its time already.
static void on_fit_start(calx_trainer *t, void *self)
{
  timer *s = self;
  s->start[TRAIN] = s->end[TRAIN] = (double)NAN;
  s->is_over = false;
  s->since = 0;
  if (isfinite(s->o->duration)) cx_lazy_scope_pin(look(t, s));
}

static void on_train_batch_end(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t batch_idx)
{
  (void)batch, (void)batch_idx;
  timer *s = self;
  if (s->o->each_epoch || !isfinite(s->o->duration)) return;
  if (++s->since >= s->every) cx_lazy_scope_pin(look(t, s));
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  timer *s = self;
  if (!s->o->each_epoch || !isfinite(s->o->duration)) return;
  cx_lazy_scope_pin(look(t, s));
}

static void start(void *self, timer_stage stage)
{
  timer *s = self;
  s->start[stage] = now();
  s->end[stage] = (double)NAN;
}

static void end(void *self, timer_stage stage)
{
  ((timer *)self)->end[stage] = now();
}

#define STAGE_HOOKS(name, stage)                             \
  static void on_##name##_start(calx_trainer *t, void *self) \
  {                                                          \
    (void)t;                                                 \
    start(self, stage);                                      \
  }                                                          \
  static void on_##name##_end(calx_trainer *t, void *self)   \
  {                                                          \
    (void)t;                                                 \
    end(self, stage);                                        \
  }
STAGE_HOOKS(train, TRAIN)
STAGE_HOOKS(validation, VALIDATE)
STAGE_HOOKS(test, TEST)

// ---- checkpoints ------------------------------------------------------------

static calx_status *put_state(const timer *s, calx_value *state)
{
  calx_value *times = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(state, "time_elapsed", times));
  for (int i = 0; i < STAGES; i++) {
    calx_value *time = calx_value_float(elapsed(s, (timer_stage)i));
    CALX_TRY(calx_value_set(times, stage_names[i], time));
  }
  return NULL;
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
  const calx_value *times = calx_value_get(state, "time_elapsed");
  const double used =
      calx_value_as_float(calx_value_get(times, stage_names[TRAIN]));
  ((timer *)self)->offset = isfinite(used) && used > 0 ? used : 0;
}

// ---- the callback -----------------------------------------------------------

static calx_status *take_duration(const char *text, double *out)
{
  *out = (double)INFINITY;
  if (text == NULL) return NULL;
  calx_status *status = cx_train_parse_time("duration", text, out);
  if (status == NULL) return NULL;
  calx_status_free(status);
  return cx_invalid(
      "`Timer(duration='%s')` is not a valid duration. Expected a string in the "
      "format DD:HH:MM:SS.",
      text);
}

static calx_status *take(const calx_timer_options *given, timer_options *out)
{
  calx_timer_options o;
  CALX_TRY(cx_options_take("timer", given, &o, sizeof o));
  const char *interval = o.interval != NULL ? o.interval : "step";
  out->each_epoch = strcmp(interval, "epoch") == 0;
  out->is_verbose = !o.not_verbose;
  if (!out->each_epoch && strcmp(interval, "step") != 0) {
    return cx_invalid(
        "Unsupported parameter value `Timer(interval=%s)`. Possible choices "
        "are: step, epoch",
        interval);
  }
  return take_duration(o.duration, &out->duration);
}

calx_callback *calx_timer_with(const calx_timer_options *options)
{
  timer_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(timer), .user = o, .begin = begin,
                        .state_key = "Timer", .state_dict = state_dict,
                        .load_state_dict = load_state_dict,
                        .hooks = { .on_fit_start = on_fit_start,
                                   .on_train_start = on_train_start,
                                   .on_train_batch_end = on_train_batch_end,
                                   .on_train_epoch_end = on_train_epoch_end,
                                   .on_train_end = on_train_end,
                                   .on_validation_start = on_validation_start,
                                   .on_validation_end = on_validation_end,
                                   .on_test_start = on_test_start,
                                   .on_test_end = on_test_end });
  return cx_train_callback_finish(c, "Timer", CX_TRAIN_CALLBACK_TIMER, status,
                                  o, cx_free);
}

double calx_timer_time_elapsed(const calx_callback *cb, const char *stage)
{
  const timer *s = calx_callback_self(cb);
  for (int i = 0; i < STAGES; i++) {
    if (stage != NULL && strcmp(stage, stage_names[i]) != 0) continue;
    return s != NULL ? elapsed(s, (timer_stage)i) : 0;
  }
  return (double)NAN;
}

double calx_timer_time_remaining(const calx_callback *cb)
{
  const timer_options *o = cb != NULL ? cb->own : NULL;
  if (o == NULL) return (double)INFINITY;
  return o->duration - calx_timer_time_elapsed(cb, NULL);
}

// ---- max_time ---------------------------------------------------------------

calx_callback *cx_train_timer_new(double seconds)
{
  calx_callback *c = calx_timer();
  timer_options *o = c->own;
  if (o != NULL) o->duration = seconds;
  return c;
}
