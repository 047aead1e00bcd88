// train/config: Lightning's options as the trainer works with them.
#ifndef CX_TRAIN_CONFIG_H
#define CX_TRAIN_CONFIG_H

#include "base/status.h"
#include "calx/trainer.h"

// How many batches of a loop: a number, or a share of what there is.
typedef struct cx_train_limit {
  bool is_share;
  double value;
} cx_train_limit;

// What the plugin must be; the order of the names in rank.c.
typedef enum cx_train_accelerator {
  CX_TRAIN_ANY = -1,
  CX_TRAIN_CPU,
  CX_TRAIN_TPU,
  CX_TRAIN_CUDA
} cx_train_accelerator;

// The logger that the trainer makes where the program gives none.
typedef enum cx_train_logger {
  CX_TRAIN_LOGGER_UNNAMED,  // TensorBoard's
  CX_TRAIN_TENSORBOARD,
  CX_TRAIN_CSV,
  CX_TRAIN_JSON
} cx_train_logger;

// The options with their defaults.
typedef struct cx_train_config {
  cx_train_accelerator accelerator;
  bool is_tpu_cores;    // which was asked for by the option of 1.x
  int devices;          // of this process; 0: all
  int device_index;     // the only one to use; -1: the first ones
  int num_nodes;        // 0: any number
  bool is_debug;        // of strategy: reports metrics and late compilations
  calx_dtype dtype;     // of the model's parameters; DEFAULT: as they are made
  calx_dtype autocast;  // DEFAULT: none
  int64_t max_epochs, min_epochs, max_steps, min_steps;  // of max: -1 no limit
  double max_seconds;                                    // 0: no limit
  cx_train_limit train, val, test, predict;
  bool overfits;  // training's order is that of the samples
  int64_t fast_dev_run;
  cx_train_limit val_check;  // a share of an epoch, or batches
  double val_check_seconds;  // 0: by val_check
  int64_t check_val_every_n_epoch, sanity_steps, accumulate, log_every_n_steps;
  int64_t steps_per_execution;
  double clip;  // 0: none
  bool clips_values;
  bool deterministic, detect_anomaly, terminate_on_nan;
  bool profiles_simply, profiles_xla;
  bool no_distributed_sampler;
  cx_train_logger logger;
  bool no_logger, no_checkpointing, no_progress_bar, no_model_summary;
  bool barebones;
  uint64_t seed;
} cx_train_config;

// Says nothing of what is no error: cx_train_report_options() does.
calx_status *cx_train_configure(const calx_trainer_options *options,
                                cx_train_config *out) CALX_MUST_USE;
// Lines about what the options lead to.
void cx_train_report_options(const calx_trainer_options *options,
                             const cx_train_config *config);
// Devices, accelerator, strategy and precision, which depend on each other.
calx_status *cx_train_configure_devices(const calx_trainer_options *options,
                                        cx_train_config *out) CALX_MUST_USE;
// Of the option, for messages.
const char *cx_train_accelerator_text(const calx_trainer_options *options);
// Whether a TPU of n devices can be shared out like that.
calx_status *cx_train_check_tpu_devices(const cx_train_config *config,
                                        int n) CALX_MUST_USE;
// A TPU has no 64-bit floats.
calx_status *cx_train_refuse_f64(void) CALX_MUST_USE;
// Of max_epochs and max_steps, by name.
calx_status *cx_train_check_end(const char *name, int64_t value) CALX_MUST_USE;
// "DD:HH:MM:SS" in seconds; NULL: 0. `name` is the option's, for messages.
calx_status *cx_train_parse_time(const char *name, const char *text,
                                 double *out) CALX_MUST_USE;
// Of `batches` that there are; -1: not known, which a number replaces.
calx_status *cx_train_limited(const cx_train_limit *limit, const char *loader,
                              int64_t batches, int64_t *out) CALX_MUST_USE;
#endif
