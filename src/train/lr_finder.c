// train/lr_finder: a learning rate by a range test: some steps with a growing
// rate, of which that with the steepest fall of the loss is taken.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/plot.h"
#include "calx/callbacks_tuning.h"
#include "lazy/lazy.h"
#include "loggers/number.h"
#include "optim/scheduler.h"
#include "profiler/profiler.h"
#include "train/trial.h"

// Of the callback.
typedef struct finder_options {
  double min_lr, max_lr, threshold;  // threshold: infinite: never
  int64_t steps;
  bool is_linear, sets;
} finder_options;

// Of a rank.
typedef struct finder {
  const finder_options *o;
  double *lrs, *losses;  // room for o->steps
  size_t n;
  double average, least;  // of the losses; least: of the smoothed ones
  double suggestion;      // NaN: none
  size_t suggested;       // its place
  calx_status *status;
} finder;

static void begin(void *self, void *user)
{
  finder *s = self;
  s->o = user;
  s->suggestion = (double)NAN;
}

static void end(void *self)
{
  finder *s = self;
  cx_free(s->lrs);
  cx_free(s->losses);
}

// ---- the steps --------------------------------------------------------------

// Of step i, as Lightning's schedules count: min_lr, then those of the steps 2,
// 3, … of `steps`.
static double rate_of(const finder_options *o, size_t i)
{
  if (i == 0) return o->min_lr;
  const double share = (double)(i + 1) / (double)o->steps;
  if (o->is_linear) return o->min_lr + share * (o->max_lr - o->min_lr);
  return o->min_lr * pow(o->max_lr / o->min_lr, share);
}

static void before_step(calx_trainer *t, void *user)
{
  finder *s = user;
  s->lrs[s->n] = rate_of(s->o, s->n);
  calx_optimizer_set_lr(t->optimizers[0].optimizer, s->lrs[s->n]);
}

// False: the loss diverges. A step without a loss counts as one that is NaN.
static bool after_step(calx_trainer *t, void *user)
{
  static const double beta = 0.98;
  finder *s = user;
  double loss = t->output != NULL ? calx_item(t->output) : (double)NAN;
  cx_profiler_own_read();
  s->status = cx_train_broadcast_numbers(t, "learning rate finder", &loss, 1);
  if (s->status != NULL) return false;
  if (isnan(loss) && t->output == NULL) {
    s->losses[s->n++] = loss;
    return true;
  }
  const double step = (double)(s->n + 1);
  s->average = beta * s->average + (1 - beta) * loss;
  const double smoothed = s->average / (1 - pow(beta, step + 1));
  s->losses[s->n++] = smoothed;
  const bool diverges = s->n > 1 && smoothed > s->o->threshold * s->least;
  if (smoothed < s->least || s->n == 1) s->least = smoothed;
  return !diverges;
}

// ---- the suggestion ---------------------------------------------------------

// d loss / d rate at point i of n. Source: torch.gradient with coordinates.
static double slope(const double *x, const double *y, size_t n, size_t i)
{
  if (i == 0) return (y[1] - y[0]) / (x[1] - x[0]);
  if (i + 1 == n) return (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
  const double a = x[i] - x[i - 1], b = x[i + 1] - x[i];
  return (a * a * (y[i + 1] - y[i]) + b * b * (y[i] - y[i - 1])) /
         (a * b * (a + b));
}

// The place with the steepest fall, without the first 10 and the last one;
// false: there are too few points.
static bool find_steepest(const double *lrs, const double *losses, size_t n,
                          size_t *out)
{
  enum { FIRST = 10, LAST = 1 };
  double *x = cx_calloc(2 * n + 1, sizeof *x), *y = x + n;
  size_t *at = cx_calloc(n + 1, sizeof *at), count = 0, best = 0;
  for (size_t i = FIRST; x != NULL && at != NULL && i + LAST < n; i++) {
    if (!isfinite(losses[i])) continue;
    x[count] = lrs[i];
    y[count] = losses[i];
    at[count++] = i;
  }
  for (size_t i = 1; i < count && count > 1; i++) {
    if (slope(x, y, count, i) < slope(x, y, count, best)) best = i;
  }
  if (count > 1) *out = at[best];
  cx_free(x);
  cx_free(at);
  return count > 1;
}

// A schedule goes on from the rate as if it had begun with it.
static void rebase(calx_lr_scheduler *s, double lr)
{
  if (s == NULL) return;
  for (size_t i = 0; i < s->n_groups; i++) s->base[i] = s->last[i] = lr;
  for (size_t i = 0; i < s->n_inner; i++) rebase(s->inner[i], lr);
}

static void set_rate(calx_trainer *t, double lr)
{
  const cx_train_optimizer *o = &t->optimizers[0];
  calx_optimizer_set_lr(o->optimizer, lr);
  for (size_t g = 0; g < calx_optimizer_param_groups(o->optimizer); g++) {
    cx_optim_group_at(o->optimizer, g)->initial_lr = lr;
  }
  rebase(o->scheduler, lr);
  if (!calx_trainer_is_global_zero(t)) return;
  cx_text text = { 0 };
  cx_loggers_put_real(&text, lr);
  cx_log("Learning rate set to %s", cx_text_str(&text));
  cx_text_free(&text);
}

static void suggest(calx_trainer *t, finder *s)
{
  const bool reports = calx_trainer_is_global_zero(t);
  if ((int64_t)s->n < s->o->steps && reports) {
    cx_log("LR finder stopped early after %zu steps due to diverging loss.",
           s->n);
  }
  if (!find_steepest(s->lrs, s->losses, s->n, &s->suggested)) {
    if (!reports) return;
    cx_log(
        "Failed to compute suggestion for learning rate because there are not "
        "enough points. Increase the loop iteration limits or the size of your "
        "dataset/dataloader.");
    return;
  }
  s->suggestion = s->lrs[s->suggested];
  if (s->o->sets) set_rate(t, s->suggestion);
}

// ---- the run ----------------------------------------------------------------

static calx_status *clear(finder *s)
{
  s->n = 0;
  s->average = s->least = 0;
  s->suggestion = (double)NAN;
  s->status = NULL;
  const size_t steps = (size_t)s->o->steps;
  if (s->lrs == NULL) s->lrs = cx_calloc(steps, sizeof *s->lrs);
  if (s->losses == NULL) s->losses = cx_calloc(steps, sizeof *s->losses);
  return s->lrs != NULL && s->losses != NULL ? NULL : cx_out_of_memory();
}

static calx_status *run(calx_trainer *t, finder *s)
{
  if (t->config.fast_dev_run > 0) {
    cx_log("Skipping learning rate finder since `fast_dev_run` is enabled.");
    return NULL;
  }
  if (t->n_optimizers != 1) {
    return cx_invalid(
        "`model.configure_optimizers()` returned %zu, but learning rate finder "
        "only works with single optimizer",
        t->n_optimizers);
  }
  CALX_TRY(clear(s));
  calx_status *status =
      cx_train_try(t, &(cx_train_trial){ .steps = s->o->steps,
                                         .before = before_step,
                                         .after = after_step,
                                         .user = s });
  CALX_TRY(cx_status_first(s->status, status));
  suggest(t, s);
  return NULL;
}

static void on_fit_start(calx_trainer *t, void *self)
{
  cx_lazy_scope_pin(run(t, self));
}

// ---- the callback -----------------------------------------------------------

static calx_status *take(const calx_learning_rate_finder_options *given,
                         finder_options *out)
{
  enum { MOST_STEPS = 1 << 24 };
  calx_learning_rate_finder_options o;
  CALX_TRY(cx_options_take("learning_rate_finder", given, &o, sizeof o));
  *out = (finder_options){
    .min_lr = o.min_lr != 0 ? o.min_lr : 1e-8,
    .max_lr = o.max_lr != 0 ? o.max_lr : 1,
    .threshold = cx_or_default(o.early_stop_threshold, 4),
    .steps = o.num_training_steps != 0 ? o.num_training_steps : 100,
    .is_linear = o.mode != NULL && strcmp(o.mode, "linear") == 0,
    .sets = !o.no_update_attr
  };
  if (o.mode != NULL && !out->is_linear && strcmp(o.mode, "exponential") != 0) {
    return cx_invalid(
        "`mode` should be either of ('linear', 'exponential'), got '%s'",
        o.mode);
  }
  const bool good = out->min_lr > 0 && out->max_lr > out->min_lr &&
                    isfinite(out->max_lr) && out->threshold >= 0 &&
                    out->steps > 0 && out->steps <= MOST_STEPS;
  if (!good) {
    return cx_invalid(
        "learning_rate_finder: min_lr is %g, max_lr %g, num_training_steps %lld, "
        "early_stop_threshold %g: rates above 0, of which the second is the "
        "larger, and numbers of 0 or more are wanted",
        out->min_lr, out->max_lr, (long long)out->steps, out->threshold);
  }
  if (out->threshold == 0) out->threshold = (double)INFINITY;
  return NULL;
}

calx_callback *calx_learning_rate_finder_with(
    const calx_learning_rate_finder_options *options)
{
  finder_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(finder), .user = o, .begin = begin,
                        .end = end, .hooks = { .on_fit_start = on_fit_start });
  return cx_train_callback_finish(c, "LearningRateFinder",
                                  CX_TRAIN_CALLBACK_TUNER, status, o, cx_free);
}

double calx_learning_rate_finder_suggestion(const calx_callback *cb)
{
  const finder *s = calx_callback_self(cb);
  return s != NULL ? s->suggestion : (double)NAN;
}

size_t calx_learning_rate_finder_results(const calx_callback *cb,
                                         const double **out_lrs,
                                         const double **out_losses)
{
  const finder *s = calx_callback_self(cb);
  *out_lrs = s != NULL ? s->lrs : NULL;
  *out_losses = s != NULL ? s->losses : NULL;
  return s != NULL ? s->n : 0;
}

calx_status *calx_learning_rate_finder_plot(const calx_callback *cb,
                                            const char *path)
{
  const finder *s = calx_callback_self(cb);
  if (s == NULL || s->n == 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "learning_rate_finder_plot: no rate was tried yet");
  }
  const cx_plot_series losses = { "loss", s->lrs, s->losses, s->n };
  char label[64];
  snprintf(label, sizeof label, "suggestion: %.3g", s->suggestion);
  const cx_plot_mark mark = { s->suggestion, s->losses[s->suggested], label };
  return cx_plot_write(
      path, &(cx_plot){ .title = "Learning rate finder",
                        .x_label = "Learning rate",
                        .y_label = "Loss",
                        .series = &losses,
                        .n_series = 1,
                        .log_x = !s->o->is_linear,
                        .mark = isnan(s->suggestion) ? NULL : &mark });
}
