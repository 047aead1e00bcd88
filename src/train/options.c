// train/options: Lightning's options, their defaults and what is refused.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "train/internal.h"

// ---- numbers ----------------------------------------------------------------

// What calx_trainer_new() made of a field that is 0 where it was not written.
static int64_t or_default_int(int64_t given, int64_t otherwise)
{
  if (given == INT64_MIN) return 0;
  return given == 0 ? otherwise : given;
}

calx_status *cx_train_check_end(const char *name, int64_t value)
{
  if (value >= -1) return NULL;
  return cx_invalid(
      "`%s` must be a non-negative integer or -1. You passed in %lld.", name,
      (long long)value);
}

static calx_status *check_count(const char *name, int64_t value, int64_t least)
{
  if (value >= least) return NULL;
  return cx_invalid("`%s` must be an integer of %lld or more, got %lld", name,
                    (long long)least, (long long)value);
}

static calx_status *take_limit(const char *name, double given,
                               cx_train_limit *out)
{
  *out = (cx_train_limit){ .is_share = true, .value = 1 };
  if (cx_is_default(given) || given == (double)INFINITY) return NULL;
  const bool is_whole = given == floor(given) && given < 0x1p53;
  if (!(given >= 0) || (given > 1 && !is_whole)) {
    return cx_invalid(
        "You have passed invalid value %g for %s, it has to be in [0.0, 1.0] or "
        "an int.",
        given, name);
  }
  *out = (cx_train_limit){ .is_share = given > 0 && given < 1,
                           .value = given == 0 ? 0 : given };
  return NULL;
}

calx_status *cx_train_limited(const cx_train_limit *limit, const char *loader,
                              int64_t batches, int64_t *out)
{
  *out = batches;
  if (!limit->is_share) {
    const int64_t most = (int64_t)limit->value;
    if (batches < 0 || most < batches) *out = most;
    return NULL;
  }
  if (limit->value == 1 || batches == 0) return NULL;
  if (batches < 0) {
    return cx_invalid(
        "a share of the `%s`, %g, was asked for, and its dataset has no size: "
        "give a number of batches",
        loader, limit->value);
  }
  *out = (int64_t)((double)batches * limit->value);
  if (*out > 0) return NULL;
  const int stage = (int)strcspn(loader, "_");
  return cx_invalid(
      "You requested to check %g of the `%s` but %g * %lld < 1. Please increase "
      "the `limit_%.*s_batches` argument. Try at least "
      "`limit_%.*s_batches=%.16g`",
      limit->value, loader, limit->value, (long long)batches, stage, loader,
      stage, loader, 1 / (double)batches);
}

// ---- times ------------------------------------------------------------------

calx_status *cx_train_parse_time(const char *name, const char *text,
                                 double *out)
{
  int days, hours, minutes, seconds, length = 0;
  *out = 0;
  if (text == NULL) return NULL;
  const int read = sscanf(text, "%4d:%4d:%4d:%4d%n", &days, &hours, &minutes,
                          &seconds, &length);
  if (read != 4 || text[length] != '\0' || days < 0 || hours < 0 ||
      minutes < 0 || seconds < 0) {
    return cx_invalid("`%s` is '%s': a time is written DD:HH:MM:SS", name,
                      text);
  }
  *out = ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds;
  return NULL;
}

// ---- gradients --------------------------------------------------------------

static calx_status *take_clip(const calx_trainer_options *o,
                              cx_train_config *out)
{
  const char *by = o->gradient_clip_algorithm;
  if (by != NULL && strcmp(by, "norm") != 0 && strcmp(by, "value") != 0) {
    return cx_invalid(
        "`gradient_clip_algorithm` %s is invalid. Allowed algorithms: ['value', "
        "'norm'].",
        by);
  }
  if (!(o->gradient_clip_val >= 0)) {
    return cx_invalid("`gradient_clip_val` should not be negative. Got %g.",
                      o->gradient_clip_val);
  }
  out->clip = o->gradient_clip_val;
  out->clips_values = by != NULL && strcmp(by, "value") == 0;
  return NULL;
}

// ---- all --------------------------------------------------------------------

static bool has_timer(const calx_trainer_options *o)
{
  for (size_t i = 0; o->callbacks != NULL && i < o->n_callbacks; i++) {
    const calx_callback *c = o->callbacks[i];
    if (c != NULL && c->kind == CX_TRAIN_CALLBACK_TIMER) return true;
  }
  return o->max_time != NULL;
}

static calx_status *take_numbers(const calx_trainer_options *o,
                                 cx_train_config *out)
{
  out->max_epochs = or_default_int(o->max_epochs, -1);
  out->max_steps = or_default_int(o->max_steps, -1);
  out->min_epochs = o->min_epochs;
  out->min_steps = o->min_steps;
  out->fast_dev_run = o->fast_dev_run;
  out->sanity_steps = or_default_int(o->num_sanity_val_steps, 2);
  out->check_val_every_n_epoch = or_default_int(o->check_val_every_n_epoch, 1);
  out->log_every_n_steps = or_default_int(o->log_every_n_steps, 50);
  out->accumulate = or_default_int(o->accumulate_grad_batches, 1);
  CALX_TRY(cx_train_check_end("max_epochs", out->max_epochs));
  CALX_TRY(cx_train_check_end("max_steps", out->max_steps));
  CALX_TRY(check_count("min_epochs", out->min_epochs, 0));
  CALX_TRY(check_count("min_steps", out->min_steps, 0));
  if (out->fast_dev_run < 0) {
    return cx_invalid(
        "fast_dev_run=%lld is not a valid configuration. It should be >= 0.",
        (long long)out->fast_dev_run);
  }
  CALX_TRY(check_count("num_sanity_val_steps", out->sanity_steps, -1));
  if (out->check_val_every_n_epoch != -1) {
    CALX_TRY(check_count("check_val_every_n_epoch",
                         out->check_val_every_n_epoch, 1));
  }
  CALX_TRY(check_count("accumulate_grad_batches", out->accumulate, 1));
  CALX_TRY(check_count("log_every_n_steps", out->log_every_n_steps, 1));
  out->steps_per_execution = or_default_int(o->steps_per_execution, 1);
  return check_count("steps_per_execution", out->steps_per_execution, 1);
}

// Epochs without a limit are those of a run that its steps or a timer end.
static void default_epochs(const calx_trainer_options *o, cx_train_config *out)
{
  if (o->max_epochs != 0) return;
  const bool ends = out->max_steps != -1 || has_timer(o);
  out->max_epochs = ends ? -1 : 1000;
}

// n batches of each loop, one epoch, nothing before them.
static void run_fast(cx_train_config *out)
{
  if (out->fast_dev_run == 0) return;
  const cx_train_limit n = { .value = (double)out->fast_dev_run };
  out->train = out->val = out->test = out->predict = n;
  out->overfits = false;
  out->no_logger = out->no_checkpointing = true;
  out->max_epochs = 1;
  out->max_steps = out->fast_dev_run;
  out->sanity_steps = 0;
  out->val_check = (cx_train_limit){ .is_share = true, .value = 1 };
  out->val_check_seconds = 0;
  out->check_val_every_n_epoch = 1;
}

// The same batches in training and validation.
static calx_status *take_overfit(double given, cx_train_config *out)
{
  if (given == 0) return NULL;
  CALX_TRY(take_limit("overfit_batches", given, &out->train));
  out->val = out->train;
  out->overfits = true;
  return NULL;
}

static calx_status *take_limits(const calx_trainer_options *o,
                                cx_train_config *out)
{
  CALX_TRY(
      take_limit("limit_train_batches", o->limit_train_batches, &out->train));
  CALX_TRY(take_limit("limit_val_batches", o->limit_val_batches, &out->val));
  CALX_TRY(take_limit("limit_test_batches", o->limit_test_batches, &out->test));
  CALX_TRY(take_limit("limit_predict_batches", o->limit_predict_batches,
                      &out->predict));
  CALX_TRY(take_overfit(o->overfit_batches, out));
  CALX_TRY(
      take_limit("val_check_interval", o->val_check_interval, &out->val_check));
  if (out->val_check.value == 0) {
    return cx_invalid(
        "`val_check_interval` is 0. If you want to disable validation set "
        "`limit_val_batches` to 0 instead.");
  }
  CALX_TRY(cx_train_parse_time("val_check_time", o->val_check_time,
                               &out->val_check_seconds));
  if (out->check_val_every_n_epoch == -1 && out->val_check.is_share &&
      !cx_is_default(o->val_check_interval)) {
    return cx_invalid(
        "`val_check_interval` should be an integer or a time-based duration when "
        "`check_val_every_n_epoch=-1`");
  }
  return cx_train_parse_time("max_time", o->max_time, &out->max_seconds);
}

static calx_status *take_profiler(const char *name, cx_train_config *out)
{
  if (name == NULL) return NULL;
  out->profiles_simply = strcmp(name, "simple") == 0;
  out->profiles_xla = strcmp(name, "xla") == 0;
  if (out->profiles_simply || out->profiles_xla) return NULL;
  return cx_invalid(
      "When passing string value for the `profiler` parameter of `Trainer`, it "
      "can only be one of ['simple', 'xla']. Got '%s'",
      name);
}

// Nothing beside the loop. What is off by default anyway is refused.
static calx_status *take_barebones(const calx_trainer_options *o,
                                   cx_train_config *out)
{
  static const char raw[] = "can impact raw speed";
  static const char run[] = "is not meant for raw speed evaluation";
  const struct {
    bool is_there;
    const char *name, *what, *why;
  } rows[] = {
    { o->n_loggers > 0, "loggers", "Logging", raw },
    { o->logger != NULL, "logger", "Logging", raw },
    { o->log_every_n_steps > 0, "log_every_n_steps", "Logging", raw },
    { o->num_sanity_val_steps > 0 || o->num_sanity_val_steps == -1,
      "num_sanity_val_steps", "Sanity checking", raw },
    { o->n_callbacks > 0, "callbacks", "A callback", raw },
    { o->fast_dev_run > 0, "fast_dev_run", "Development run", run },
    { o->detect_anomaly, "detect_anomaly", "Anomaly detection", raw },
    { o->profiler != NULL, "profiler", "Profiling", raw },
  };
  if (!o->barebones) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!rows[i].is_there) continue;
    return cx_invalid(
        "`Trainer(barebones=True, %s=...)` was passed. %s %s so it is disabled "
        "in barebones mode.",
        rows[i].name, rows[i].what, rows[i].why);
  }
  out->no_logger = out->no_checkpointing = out->no_progress_bar =
      out->no_model_summary = true;
  out->sanity_steps = 0;
  return NULL;
}

static calx_status *take_logger(const calx_trainer_options *o,
                                cx_train_config *out)
{
  static const char *const names[] = { [CX_TRAIN_TENSORBOARD] = "tensorboard",
                                       [CX_TRAIN_CSV] = "csv",
                                       [CX_TRAIN_JSON] = "json" };
  if (o->logger == NULL) return NULL;
  if (o->n_loggers > 0) {
    return cx_invalid("trainer: `logger` is '%s', and `loggers` has %zu",
                      o->logger, o->n_loggers);
  }
  for (size_t i = CX_TRAIN_TENSORBOARD; i <= CX_TRAIN_JSON; i++) {
    if (strcmp(o->logger, names[i]) != 0) continue;
    out->logger = (cx_train_logger)i;
    return NULL;
  }
  return cx_invalid(
      "`logger` can only be one of ['tensorboard', 'csv', 'json']. Got '%s'",
      o->logger);
}

calx_status *cx_train_configure(const calx_trainer_options *o,
                                cx_train_config *out)
{
  *out = (cx_train_config){ .seed = o->seed,
                            .deterministic = o->deterministic,
                            .detect_anomaly = o->detect_anomaly,
                            .terminate_on_nan = o->terminate_on_nan,
                            .no_distributed_sampler = o->no_distributed_sampler,
                            .no_logger = o->no_logger,
                            .no_checkpointing = o->no_checkpointing,
                            .no_progress_bar = o->no_progress_bar,
                            .no_model_summary = o->no_model_summary,
                            .barebones = o->barebones };
  CALX_TRY(cx_train_configure_devices(o, out));
  CALX_TRY(take_numbers(o, out));
  CALX_TRY(take_limits(o, out));
  CALX_TRY(take_clip(o, out));
  CALX_TRY(take_profiler(o->profiler, out));
  CALX_TRY(take_logger(o, out));
  CALX_TRY(take_barebones(o, out));
  default_epochs(o, out);
  run_fast(out);
  return NULL;
}
