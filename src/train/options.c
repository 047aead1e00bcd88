// train/options: Lightning's options, their defaults and what is refused.
#include <limits.h>
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

static calx_status *check_end(const char *name, int64_t value)
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
  if (cx_is_default(given)) return NULL;
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
  return cx_invalid(
      "You requested to check %g of the `%s` but %g * %lld < 1. Please increase "
      "the limit. Try at least %g",
      limit->value, loader, limit->value, (long long)batches,
      1 / (double)batches);
}

// ---- names ------------------------------------------------------------------

static bool is_one_of(const char *name, const char *const *names)
{
  for (; *names != NULL; names++) {
    if (strcmp(name, *names) == 0) return true;
  }
  return false;
}

static calx_status *take_accelerator(const char *name, cx_train_config *out)
{
  static const struct {
    const char *name;
    cx_train_accelerator accelerator;
  } all[] = { { "auto", CX_TRAIN_ANY },
              { "cpu", CX_TRAIN_CPU },
              { "tpu", CX_TRAIN_TPU },
              { "gpu", CX_TRAIN_CUDA },
              { "cuda", CX_TRAIN_CUDA } };
  out->accelerator = out->is_tpu_cores ? CX_TRAIN_TPU : CX_TRAIN_ANY;
  if (name == NULL) return NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(name, all[i].name) != 0) continue;
    if (!out->is_tpu_cores) out->accelerator = all[i].accelerator;
    return NULL;
  }
  return cx_invalid(
      "You selected an invalid accelerator name: `accelerator='%s'`. Available "
      "names are: auto, cpu, cuda, gpu, tpu.",
      name);
}

static calx_status *take_strategy(const char *name, cx_train_config *out)
{
  static const char *const names[] = {
    "auto",      "xla",        "single_xla",      "xla_debug", "ddp",
    "tpu_spawn", "single_tpu", "tpu_spawn_debug", NULL
  };
  if (name == NULL) return NULL;
  if (!is_one_of(name, names)) {
    return cx_invalid(
        "You selected an invalid strategy name: `strategy='%s'`. Example "
        "choices: auto, xla, xla_debug, single_xla, ddp.",
        name);
  }
  out->reports_metrics = strstr(name, "debug") != NULL;
  if (strncmp(name, "single", 6) != 0) return NULL;
  if (out->devices > 1) {
    return cx_invalid(
        "`strategy='%s'` runs on a single device, devices=%d were asked for",
        name, out->devices);
  }
  out->devices = 1;
  return NULL;
}

static calx_status *take_precision(const char *name, const char *accelerator,
                                   cx_train_config *out)
{
  static const struct {
    const char *name;
    calx_dtype dtype, autocast;
  } all[] = {
    { "32-true", CALX_DTYPE_DEFAULT, CALX_DTYPE_DEFAULT },
    { "32", CALX_DTYPE_DEFAULT, CALX_DTYPE_DEFAULT },
    { "64-true", CALX_F64, CALX_DTYPE_DEFAULT },
    { "64", CALX_F64, CALX_DTYPE_DEFAULT },
    { "bf16-true", CALX_BF16, CALX_DTYPE_DEFAULT },
    { "bf16-mixed", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "bf16", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "16", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "16-mixed", CALX_DTYPE_DEFAULT, CALX_BF16 },
  };
  if (name == NULL) return NULL;
  if (accelerator == NULL) accelerator = "auto";
  if (strcmp(accelerator, "tpu") == 0 && strncmp(name, "64", 2) == 0) {
    return cx_invalid(
        "`Trainer(accelerator='tpu', precision=64)` is not implemented: a TPU "
        "has no 64-bit floats");
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(name, all[i].name) != 0) continue;
    out->dtype = all[i].dtype;
    out->autocast = all[i].autocast;
    if (strncmp(name, "16", 2) == 0) {
      cx_log(
          "You passed `Trainer(accelerator='%s', precision=16)` but native AMP "
          "is not supported with XLA devices. Using `precision='bf16'` instead.",
          accelerator);
    }
    return NULL;
  }
  return cx_invalid(
      "Precision %s is invalid. Allowed precision values: ['32-true', '64-true', "
      "'bf16-true', 'bf16-mixed', '16', '32', '64', 'bf16']",
      name);
}

static calx_status *take_devices(const calx_trainer_options *o,
                                 cx_train_config *out)
{
  if (o->tpu_cores != 0 && o->tpu_cores != 1 && o->tpu_cores != 8) {
    return cx_invalid("`tpu_cores` can only be 1, 8 or [<1-8>]");
  }
  if (o->devices < -1) {
    return cx_invalid(
        "`devices` can only be a number of devices, or 0 or -1 for all of them. "
        "Got %d",
        o->devices);
  }
  if (o->tpu_cores != 0 && o->devices != 0) {
    cx_log(
        "The flag `devices=%d` will be ignored, as you have set "
        "`tpu_cores=%d`",
        o->devices, o->tpu_cores);
  }
  out->is_tpu_cores = o->tpu_cores != 0;
  out->devices = o->tpu_cores != 0 ? o->tpu_cores
                 : o->devices > 0  ? o->devices
                                   : 0;
  return NULL;
}

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

// Epochs without a limit are those of a run that its steps end.
static void default_epochs(cx_train_config *out, bool is_written)
{
  if (is_written || out->fast_dev_run > 0) return;
  out->max_epochs = out->max_steps == -1 ? 1000 : -1;
  if (out->max_steps != -1) return;
  cx_log(
      "`max_epochs` was not set. Setting it to 1000 epochs. To train without an "
      "epoch limit, set `max_epochs=-1`.");
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
  CALX_TRY(check_end("max_epochs", out->max_epochs));
  CALX_TRY(check_end("max_steps", out->max_steps));
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
  default_epochs(out, o->max_epochs != 0);
  return NULL;
}

// n batches of each loop, one epoch, nothing before them.
static void run_fast(cx_train_config *out)
{
  if (out->fast_dev_run == 0) return;
  const cx_train_limit n = { .value = (double)out->fast_dev_run };
  out->train = out->val = out->test = n;
  out->max_epochs = 1;
  out->max_steps = out->fast_dev_run;
  out->sanity_steps = 0;
  out->val_check = (cx_train_limit){ .is_share = true, .value = 1 };
  cx_log(
      "Running in `fast_dev_run` mode: will run the requested loop using %lld "
      "batch(es). Logging and checkpointing is suppressed.",
      (long long)out->fast_dev_run);
}

calx_status *cx_train_configure(const calx_trainer_options *options,
                                cx_train_config *out)
{
  calx_trainer_options o;
  CALX_TRY(cx_options_take("trainer", options, &o, sizeof o));
  *out = (cx_train_config){ .seed = o.seed,
                            .no_distributed_sampler = o.no_distributed_sampler,
                            .no_progress_bar = o.no_progress_bar,
                            .detect_anomaly = o.detect_anomaly };
  CALX_TRY(take_devices(&o, out));
  CALX_TRY(take_accelerator(o.accelerator, out));
  CALX_TRY(take_strategy(o.strategy, out));
  CALX_TRY(take_precision(o.precision, o.accelerator, out));
  CALX_TRY(take_numbers(&o, out));
  CALX_TRY(
      take_limit("limit_train_batches", o.limit_train_batches, &out->train));
  CALX_TRY(take_limit("limit_val_batches", o.limit_val_batches, &out->val));
  CALX_TRY(take_limit("limit_test_batches", o.limit_test_batches, &out->test));
  CALX_TRY(
      take_limit("val_check_interval", o.val_check_interval, &out->val_check));
  if (out->val_check.value == 0) {
    return cx_invalid(
        "`val_check_interval` is 0. If you want to disable validation set "
        "`limit_val_batches` to 0 instead.");
  }
  CALX_TRY(take_clip(&o, out));
  run_fast(out);
  return NULL;
}
