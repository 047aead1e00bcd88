// train/options_table: see options_table.h. The order is that of the help.
#include "train/options_table.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "base/text.h"
#include "train/config.h"

// ---- the table --------------------------------------------------------------

#define FIELD(f)                                                              \
  {                                                                           \
    offsetof(calx_trainer_options, f), sizeof(((calx_trainer_options *)0)->f) \
  }
#define ROW(id, kind_, text)                                          \
  {                                                                   \
    .name = #id, .kind = kind_, .fields = { FIELD(id) }, .help = text \
  }
#define NOT(id, opposite_, text)                                   \
  {                                                                \
    .name = #id, .opposite = #opposite_, .kind = CX_TRAIN_NO_FLAG, \
    .fields = { FIELD(opposite_) }, .help = text                   \
  }
#define OTHER(id, kind_)       \
  {                            \
    .name = #id, .kind = kind_ \
  }

const cx_train_option cx_train_options[] = {
  ROW(accelerator, CX_TRAIN_TEXT, "auto, cpu, tpu, gpu, cuda"),
  ROW(strategy, CX_TRAIN_TEXT, "auto, xla, single_xla, xla_debug, ddp"),
  { .name = "devices",
    .kind = CX_TRAIN_DEVICES,
    .fields = { FIELD(devices), FIELD(device_ids) },
    .help = "how many, or one as [2], counted from 0; auto, -1: all" },
  { .name = "tpu_cores",
    .kind = CX_TRAIN_DEVICES,
    .fields = { FIELD(tpu_cores), FIELD(tpu_core_ids) },
    .help = "1, 8, or one as [5], counted from 1" },
  ROW(num_nodes, CX_TRAIN_INT, "hosts that there must be"),
  ROW(precision, CX_TRAIN_TEXT,
      "32-true, 64-true, bf16-true, bf16-mixed; 16 is bf16-mixed"),
  ROW(max_epochs, CX_TRAIN_NUMBER, "epochs to train; 1000, -1: no limit"),
  ROW(min_epochs, CX_TRAIN_COUNT, "at least so many"),
  ROW(max_steps, CX_TRAIN_NUMBER, "steps of the optimiser; -1: no limit"),
  ROW(min_steps, CX_TRAIN_COUNT, "at least so many"),
  ROW(max_time, CX_TRAIN_TEXT, "DD:HH:MM:SS"),
  ROW(limit_train_batches, CX_TRAIN_LIMIT,
      "batches of an epoch; 1 is one, 1.0 all, 0.5 half"),
  ROW(limit_val_batches, CX_TRAIN_LIMIT, "the same of validation"),
  ROW(limit_test_batches, CX_TRAIN_LIMIT, "of testing"),
  ROW(limit_predict_batches, CX_TRAIN_LIMIT, "of prediction"),
  ROW(overfit_batches, CX_TRAIN_LIMIT,
      "trains on and validates with the same few"),
  ROW(fast_dev_run, CX_TRAIN_FLAG_OR_COUNT,
      "tries each loop with one batch, or so many"),
  { .name = "val_check_interval",
    .kind = CX_TRAIN_INTERVAL,
    .fields = { FIELD(val_check_interval), FIELD(val_check_time) },
    .help = "batches, share of an epoch or time to the next" },
  ROW(check_val_every_n_epoch, CX_TRAIN_NUMBER_OR_NONE,
      "1; None: the interval goes over epochs"),
  ROW(num_sanity_val_steps, CX_TRAIN_NUMBER,
      "batches of validation before training; 2, -1: all"),
  ROW(accumulate_grad_batches, CX_TRAIN_NUMBER, "batches to a step; 1"),
  ROW(gradient_clip_val, CX_TRAIN_REAL, "none"),
  ROW(gradient_clip_algorithm, CX_TRAIN_TEXT, "norm, value"),
  ROW(steps_per_execution, CX_TRAIN_NUMBER, "batches to a program; 1"),
  { .name = "seed_everything",
    .also = "seed",
    .kind = CX_TRAIN_SEED,
    .fields = { FIELD(seed) },
    .help = "of models, draws and the order of samples" },
  ROW(deterministic, CX_TRAIN_FLAG_OR_WARN,
      "nothing is chosen by measured times"),
  ROW(detect_anomaly, CX_TRAIN_FLAG, "finds the op that made a NaN"),
  ROW(terminate_on_nan, CX_TRAIN_FLAG, "ends at a loss that is not finite"),
  { .name = "use_distributed_sampler",
    .also = "replace_sampler_ddp",
    .opposite = "no_distributed_sampler",
    .kind = CX_TRAIN_NO_FLAG,
    .fields = { FIELD(no_distributed_sampler) },
    .help = "true; false: ranks read the loaders as they are" },
  ROW(profiler, CX_TRAIN_TEXT, "simple, xla"),
  ROW(default_root_dir, CX_TRAIN_TEXT, "of logs and checkpoints"),
  { .name = "logger",
    .opposite = "no_logger",
    .kind = CX_TRAIN_LOGGER,
    .fields = { FIELD(logger), FIELD(no_logger), FIELD(n_loggers) },
    .help = "tensorboard, csv, json; true, false" },
  ROW(log_every_n_steps, CX_TRAIN_NUMBER, "50"),
  { .name = "enable_checkpointing",
    .also = "checkpoint_callback",
    .opposite = "no_checkpointing",
    .kind = CX_TRAIN_NO_FLAG,
    .fields = { FIELD(no_checkpointing) },
    .help = "true" },
  NOT(enable_progress_bar, no_progress_bar, "true"),
  NOT(enable_model_summary, no_model_summary, "true"),
  ROW(barebones, CX_TRAIN_FLAG, "all of these off, to measure the trainer"),
  OTHER(benchmark, CX_TRAIN_WITHOUT_EFFECT),
  OTHER(inference_mode, CX_TRAIN_WITHOUT_EFFECT),
  OTHER(enable_autolog_hparams, CX_TRAIN_WITHOUT_EFFECT),
  OTHER(model_registry, CX_TRAIN_WITHOUT_EFFECT),
  OTHER(suggest_integrations, CX_TRAIN_WITHOUT_EFFECT),
  OTHER(callbacks, CX_TRAIN_ABSENT),
  OTHER(plugins, CX_TRAIN_ABSENT),
  OTHER(sync_batchnorm, CX_TRAIN_ABSENT),
  OTHER(reload_dataloaders_every_n_epochs, CX_TRAIN_ABSENT),
};
const size_t cx_train_n_options =
    sizeof cx_train_options / sizeof *cx_train_options;
_Static_assert(sizeof cx_train_options / sizeof *cx_train_options <=
                   CX_TRAIN_MOST_OPTIONS,
               "cx_train_given has a flag for each");

// ---- names ------------------------------------------------------------------

static bool is_same(const char *a, const char *b)
{
  return b != NULL && strcmp(a, b) == 0;
}

const cx_train_option *cx_train_find_option(const char *name)
{
  for (size_t i = 0; i < cx_train_n_options; i++) {
    const cx_train_option *o = &cx_train_options[i];
    if (is_same(name, o->name) || is_same(name, o->also) ||
        is_same(name, o->opposite)) {
      return o;
    }
  }
  return NULL;
}

enum { LONGEST_NAME = 48, LONGEST_TEXT = 4096 };

// Letters to put in, leave out or change (Levenshtein).
static size_t distance(const char *a, const char *b)
{
  size_t row[LONGEST_NAME + 1];
  const size_t n = strlen(b);
  if (n > LONGEST_NAME || strlen(a) > LONGEST_NAME) return LONGEST_NAME;
  for (size_t k = 0; k <= n; k++) row[k] = k;
  for (size_t i = 0; a[i] != '\0'; i++) {
    size_t before = row[0];
    row[0] = i + 1;
    for (size_t k = 1; k <= n; k++) {
      size_t least = before + (a[i] != b[k - 1]);
      if (row[k] + 1 < least) least = row[k] + 1;
      if (row[k - 1] + 1 < least) least = row[k - 1] + 1;
      before = row[k];
      row[k] = least;
    }
  }
  return row[n];
}

static const char *nearest(const char *name, size_t *out_distance)
{
  const char *found = cx_train_options[0].name;
  *out_distance = SIZE_MAX;
  for (size_t i = 0; i < cx_train_n_options; i++) {
    const cx_train_option *o = &cx_train_options[i];
    const char *const names[] = { o->name, o->also, o->opposite };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      if (names[k] == NULL) continue;
      const size_t d = distance(name, names[k]);
      if (d >= *out_distance) continue;
      *out_distance = d;
      found = names[k];
    }
  }
  return found;
}

const char *cx_train_closest_option(const char *name)
{
  size_t d;
  return nearest(name, &d);
}

// Two letters of a long name, one of a short one.
const char *cx_train_nearest_option(const char *name)
{
  size_t d;
  const char *found = nearest(name, &d);
  const size_t allowed = strlen(found) >= 8 ? 2 : 1;
  return d <= allowed ? found : NULL;
}

// ---- options that are collected ---------------------------------------------

static bool is_zero(const void *bytes, size_t n)
{
  const unsigned char *p = bytes;
  for (size_t i = 0; i < n; i++) {
    if (p[i] != 0) return false;
  }
  return true;
}

static void *field_of(calx_trainer_options *o, const cx_train_option *option,
                      size_t i)
{
  return (char *)o + option->fields[i].offset;
}

calx_status *cx_train_given_begin(const calx_trainer_options *options,
                                  cx_train_given *out)
{
  *out = (cx_train_given){ .size = options != NULL ? options->size : 0 };
  CALX_TRY(
      cx_options_take("trainer", options, &out->options, sizeof out->options));
  for (size_t i = 0; i < cx_train_n_options; i++) {
    const cx_train_option *o = &cx_train_options[i];
    for (size_t k = 0; k < CX_TRAIN_OPTION_FIELDS; k++) {
      if (!is_zero(field_of(&out->options, o, k), o->fields[k].size)) {
        out->is_given[i] = true;
      }
    }
  }
  return NULL;
}

// A copy that lives as long as the process; equal texts share one.
static calx_status *keep(const char *text, const char **out)
{
  *out = cx_site_intern(&(calx_site){ .file = text }).file;
  return strcmp(*out, text) == 0 ? NULL : cx_out_of_memory();
}

// The option's value in options that have nothing else.
static calx_status *read_value(const cx_train_option *option, const char *name,
                               const char *text, calx_trainer_options *out)
{
  *out = (calx_trainer_options){ .size = sizeof *out };
  const cx_train_kind *kind = &cx_train_kinds[option->kind];
  const bool has_none = option->kind == CX_TRAIN_NUMBER_OR_NONE;
  void *fields[CX_TRAIN_OPTION_FIELDS];
  for (size_t k = 0; k < CX_TRAIN_OPTION_FIELDS; k++) {
    fields[k] = field_of(out, option, k);
  }
  if (strlen(text) > LONGEST_TEXT) {
    return cx_invalid("`%s` should be a text of at most %d bytes", name,
                      LONGEST_TEXT);
  }
  if (cx_train_is_none(text) && !has_none) return NULL;
  CALX_TRY(keep(text, &text));
  if (is_same(name, option->opposite)) {
    bool is_not;
    void *const flag = &is_not;
    if (cx_train_kinds[CX_TRAIN_FLAG].take(text, &flag)) {
      kind->take(is_not ? "false" : "true", fields);
      return NULL;
    }
  } else if (kind->take(text, fields)) {
    return NULL;
  }
  char shown[128];
  cx_text_plain(text, strlen(text), shown, sizeof shown);
  return cx_invalid("`%s` should be %s. Got '%s'.", name, kind->wanted, shown);
}

calx_status *cx_train_given_set(cx_train_given *g,
                                const cx_train_option *option, const char *name,
                                const char *text)
{
  calx_trainer_options alone;
  cx_train_config config;
  CALX_TRY(read_value(option, name, text, &alone));
  CALX_TRY(cx_train_configure(&alone, &config));
  for (size_t k = 0; k < CX_TRAIN_OPTION_FIELDS; k++) {
    const size_t size = option->fields[k].size;
    if (option->fields[k].offset + size > g->size) {
      return cx_invalid(
          "`%s` is newer than the calx/trainer.h that this program was compiled "
          "with",
          name);
    }
    memcpy(field_of(&g->options, option, k), field_of(&alone, option, k), size);
  }
  g->is_given[option - cx_train_options] = true;
  return NULL;
}

calx_status *cx_train_error_from(calx_status *status, const char *who)
{
  if (status == NULL || status == cx_out_of_memory()) return status;
  calx_status *out = cx_error(calx_status_code(status), "%s: %s", who,
                              cx_status_sentence(status));
  calx_status_free(status);
  return out;
}
