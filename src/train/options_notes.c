// train/options_notes: what the trainer says of its options when it is made,
// with Lightning's texts.
#include <stdio.h>
#include <string.h>

#include "train/internal.h"

static void report_limit(const char *name, double given, const char *one,
                         const char *all)
{
  if (given == 1) {
    cx_log("`Trainer(%s=1)` was configured so %s", name, one);
  } else if (given == (double)INFINITY) {
    cx_log("`Trainer(%s=1.0)` was configured so %s.", name, all);
  }
}

static void report_limits(const calx_trainer_options *o,
                          const cx_train_config *c)
{
  static const char one[] = "1 batch will be used.";
  static const char all[] = "100% of the batches will be used.";
  report_limit("overfit_batches", o->overfit_batches, one, all);
  if (c->fast_dev_run > 0) return;
  if (!c->overfits) {
    report_limit("limit_train_batches", o->limit_train_batches,
                 "1 batch per epoch will be used.",
                 "100% of the batches per epoch will be used.");
    report_limit("limit_val_batches", o->limit_val_batches, one, all);
  }
  report_limit("limit_test_batches", o->limit_test_batches, one, all);
  report_limit("limit_predict_batches", o->limit_predict_batches, one, all);
  report_limit("val_check_interval", o->val_check_interval,
               "validation will run after every batch.",
               "validation will run at the end of the training epoch.");
}

// A number, or the text that was given instead.
static const char *devices_text(int number, const char *text, char buffer[16])
{
  if (text != NULL) return text;
  snprintf(buffer, 16, "%d", number);
  return buffer;
}

static void report_devices(const calx_trainer_options *o,
                           const cx_train_config *c)
{
  char devices[16], cores[16];
  if (c->is_tpu_cores && (o->devices != 0 || o->device_ids != NULL)) {
    cx_log(
        "The flag `devices=%s` will be ignored, as you have set `tpu_cores=%s`",
        devices_text(o->devices, o->device_ids, devices),
        devices_text(o->tpu_cores, o->tpu_core_ids, cores));
  }
  if (o->precision != NULL && strncmp(o->precision, "16", 2) == 0) {
    cx_log(
        "You passed `Trainer(accelerator='%s', precision=16)` but native AMP is "
        "not supported with XLA devices. Using `precision='bf16'` instead.",
        cx_train_accelerator_text(o));
  }
}

void cx_train_report_options(const calx_trainer_options *o,
                             const cx_train_config *c)
{
  report_devices(o, c);
  report_limits(o, c);
  if (c->fast_dev_run > 0) {
    cx_log(
        "Running in `fast_dev_run` mode: will run the requested loop using %lld "
        "batch(es). Logging and checkpointing is suppressed.",
        (long long)c->fast_dev_run);
  } else if (o->max_epochs == 0 && c->max_epochs != -1) {
    cx_log(
        "`max_epochs` was not set. Setting it to 1000 epochs. To train without "
        "an epoch limit, set `max_epochs=-1`.");
  }
  if (c->barebones) {
    cx_log(
        "You are running in `Trainer(barebones=True)` mode. All features that "
        "may impact raw speed have been disabled to facilitate analyzing the "
        "Trainer overhead.");
  }
}
