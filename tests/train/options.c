// Options that the trainer refuses, with Lightning's texts.
#include "base/options.h"
#include "texts.h"
#include "train/config.h"

#define REFUSED(piece, ...)                                            \
  do {                                                                 \
    calx_trainer *t = calx_trainer_new(__VA_ARGS__);                   \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), piece); \
    calx_trainer_free(t);                                              \
  } while (0)
#define TAKEN(...)                                   \
  do {                                               \
    calx_trainer *t = calx_trainer_new(__VA_ARGS__); \
    CHECK_STATUS_OK(calx_trainer_error(t));          \
    calx_trainer_free(t);                            \
  } while (0)

#define SAID(piece) assert_non_null(strstr(lines, piece))
#define NOT_SAID(piece) assert_null(strstr(lines, piece))

// Of accepted options: how many devices, 0 is all, and which one, -1 is none.
static void check_devices(const calx_trainer_options *o, int devices, int index)
{
  cx_train_config c;
  CHECK_STATUS_OK(cx_train_configure(o, &c));
  assert_int_equal(c.devices, devices);
  assert_int_equal(c.device_index, index);
}

// --NAME=VALUE on a command line.
static calx_status *read_argument(const char *name, const char *value,
                                  calx_trainer_options *out)
{
  char program[] = "train", word[64];
  char *argv[] = { program, word, NULL };
  int argc = 2;
  snprintf(word, sizeof word, "--%s=%s", name, value);
  *out = (calx_trainer_options){ .size = sizeof *out };
  return calx_trainer_args(out, &argc, argv);
}

static void check_argument(const char *name, const char *value, int devices,
                           int index)
{
  calx_trainer_options o;
  CHECK_STATUS_OK(read_argument(name, value, &o));
  check_devices(&o, devices, index);
}

static void refuse_argument(const char *name, const char *value,
                            const char *piece)
{
  calx_trainer_options o;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, read_argument(name, value, &o), piece);
}

// The `tpu_cores` table: a number, a text, a list.
static void test_row_A1(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int devices, index;
  } taken[] = { { "1", 1, -1 },  { "8", 8, -1 },  { "[1]", 1, 0 },
                { "[5]", 1, 4 }, { "[8]", 1, 7 }, { "1,", 1, 0 },
                { "5,", 1, 4 } };
  // As a text "2" is the core 2, as on a command line it is a number of them.
  static const char *const refused[] = { "[0]",    "[9]", "9, ", "0",
                                         "[1, 8]", "[]",  "[-1]" };
  static const char can_only_be[] = "`tpu_cores` can only be 1, 8 or [<1-8>]";
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    check_argument("tpu_cores", taken[i].text, taken[i].devices,
                   taken[i].index);
    check_devices(&(calx_trainer_options){ .size = sizeof(calx_trainer_options),
                                           .tpu_core_ids = taken[i].text },
                  taken[i].devices, taken[i].index);
  }
  check_devices(&(calx_trainer_options){ .size = sizeof(calx_trainer_options),
                                         .tpu_core_ids = "5" },
                1, 4);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    REFUSED(can_only_be, .tpu_core_ids = refused[i]);
    refuse_argument("tpu_cores", refused[i], can_only_be);
  }
  refuse_argument("tpu_cores", "2", can_only_be);
  refuse_argument("tpu_cores", "10", can_only_be);
  TAKEN(.tpu_cores = 1, .max_epochs = 1);
  TAKEN(.tpu_cores = 8, .max_epochs = 1);
  REFUSED(can_only_be, .tpu_cores = 2);
  REFUSED(can_only_be, .tpu_cores = 10);
  REFUSED(
      "Device ID's (GPU/TPU) must be int, string or sequence of ints or "
      "None.",
      .tpu_core_ids = "abc");
  REFUSED(
      "Device ID's (GPU/TPU) must be int, string or sequence of ints or "
      "None.",
      .tpu_core_ids = "true");
  TAKEN(.devices = 1, .tpu_cores = 8, .max_epochs = 1);
  SAID("The flag `devices=1` will be ignored, as you have set `tpu_cores=8`");
}

static calx_status *check_host_of_8(const char *text)
{
  cx_train_config c;
  int64_t number;
  calx_trainer_options o = { .size = sizeof o, .accelerator = "tpu" };
  if (cx_read_int(text, -100, 100, &number)) {
    o.devices = (int)number;
  } else {
    o.device_ids = text;
  }
  CALX_TRY(cx_train_configure(&o, &c));
  return cx_train_check_tpu_devices(&c, 8);
}

// The same by `accelerator="tpu", devices=`, on a host of 8.
static void test_row_A2(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int devices, index;
  } taken[] = { { "1", 1, -1 }, { "8", 8, -1 },  { "[2]", 1, 2 },
                { "2,", 1, 2 }, { "-1", 0, -1 }, { "auto", 0, -1 } };
  static const char *const refused[] = { "[1,8]", "9, ", "[9]", "[-1]",
                                         "2",     "10",  "[]",  "-2" };
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    check_argument("devices", taken[i].text, taken[i].devices, taken[i].index);
    CHECK_STATUS_OK(check_host_of_8(taken[i].text));
  }
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    CHECK_STATUS(CALX_INVALID_ARGUMENT, check_host_of_8(refused[i]),
                 "`devices` can only be");
  }
  CHECK_STATUS(CALX_INVALID_ARGUMENT, check_host_of_8("[9]"),
               "`devices` can only be 'auto', 1, 8 or [<0-7>] for TPUs. Got "
               "[9]");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, check_host_of_8("abc"),
               "Could not parse the selected TPU devices: 'abc'");
  REFUSED(
      "`Trainer(devices=0)` value is not a valid input using tpu "
      "accelerator.",
      .accelerator = "tpu", .device_ids = "0");
  REFUSED("`num_nodes` must be 1 or more, got -1", .num_nodes = -1);
}

static void test_row_A5(void **state)
{
  (void)state;
  TAKEN(.precision = "bf16-mixed", .max_epochs = 1);
  REFUSED("Precision 7 is invalid. Allowed precision values: ['32-true'",
          .precision = "7");
  REFUSED("`Trainer(accelerator='tpu', precision=64)` is not implemented",
          .precision = "64", .accelerator = "tpu");
  REFUSED("`Trainer(accelerator='tpu', precision=64)` is not implemented",
          .precision = "64", .tpu_cores = 8);
  assert_string_equal(lines, "");
  TAKEN(.precision = "16", .tpu_cores = 8, .max_epochs = 1);
  SAID(
      "You passed `Trainer(accelerator='tpu', precision=16)` but native AMP is "
      "not supported with XLA devices. Using `precision='bf16'` instead.");
  REFUSED(
      "invalid accelerator name: `accelerator='xpu'`. Available names are: "
      "auto, cpu, cuda, gpu, tpu.",
      .accelerator = "xpu");
  REFUSED("invalid strategy name: `strategy='ddp2'`", .strategy = "ddp2");
  TAKEN(.strategy = "tpu_spawn_debug", .tpu_cores = 8, .max_epochs = 1);
  REFUSED(
      "`strategy='single_tpu'` runs on a single device, devices=8 were "
      "asked for",
      .strategy = "single_tpu", .devices = 8);
  REFUSED(
      "The `XLAAccelerator` can only be used with a "
      "`SingleDeviceXLAStrategy` or `XLAStrategy`, found DDPStrategy.",
      .strategy = "ddp", .accelerator = "tpu");
  TAKEN(.accelerator = "ddp_cpu", .max_epochs = 1);
}

static void test_row_A6(void **state)
{
  (void)state;
  REFUSED(
      "`max_epochs` must be a non-negative integer or -1. You passed in "
      "-100.",
      .max_epochs = -100);
  REFUSED("`max_steps` must be a non-negative integer or -1. You passed in -2.",
          .max_steps = -2);
}

static void test_row_A7(void **state)
{
  (void)state;
  static const char not_set[] =
      "`max_epochs` was not set. Setting it to 1000 epochs. To train without "
      "an epoch limit, set `max_epochs=-1`.";
  TAKEN(.max_steps = 3);
  TAKEN(.max_time = "00:00:01:00");
  TAKEN(.fast_dev_run = 1);
  NOT_SAID("was not set");
  SAID(
      "Running in `fast_dev_run` mode: will run the requested loop using 1 "
      "batch(es). Logging and checkpointing is suppressed.");
  TAKEN(.devices = 1);
  SAID(not_set);
  cx_train_config c;
  const calx_trainer_options none = { .size = sizeof none };
  CHECK_STATUS_OK(cx_train_configure(&none, &c));
  assert_int_equal(c.max_epochs, 1000);
}

static void test_row_A8(void **state)
{
  (void)state;
  REFUSED(
      "You have passed invalid value -0.1 for limit_train_batches, it has "
      "to be in [0.0, 1.0] or an int.",
      .max_epochs = 1, .limit_train_batches = -0.1);
  REFUSED("invalid value 1.2 for limit_val_batches", .max_epochs = 1,
          .limit_val_batches = 1.2);
  REFUSED("invalid value -1 for limit_test_batches", .max_epochs = 1,
          .limit_test_batches = -1);
  REFUSED("invalid value nan for limit_test_batches", .max_epochs = 1,
          .limit_test_batches = (double)NAN);
  REFUSED("invalid value 1.5 for val_check_interval", .max_epochs = 1,
          .val_check_interval = 1.5);
  REFUSED("invalid value -2 for overfit_batches", .max_epochs = 1,
          .overfit_batches = -2);
}

// What a 1 and all batches mean is said, as it is easily mistaken.
static void test_limits_are_said(void **state)
{
  (void)state;
  TAKEN(.max_epochs = 1, .limit_train_batches = 1, .limit_val_batches = 1,
        .val_check_interval = 1);
  assert_string_equal(
      lines,
      "`Trainer(limit_train_batches=1)` was configured so 1 batch per epoch "
      "will be used.\n"
      "`Trainer(limit_val_batches=1)` was configured so 1 batch will be used.\n"
      "`Trainer(val_check_interval=1)` was configured so validation will run "
      "after every batch.\n");
  lines[0] = '\0';
  TAKEN(.max_epochs = 1, .limit_train_batches = (double)INFINITY,
        .limit_test_batches = (double)INFINITY,
        .val_check_interval = (double)INFINITY);
  assert_string_equal(
      lines,
      "`Trainer(limit_train_batches=1.0)` was configured so 100% of the batches "
      "per epoch will be used..\n"
      "`Trainer(limit_test_batches=1.0)` was configured so 100% of the batches "
      "will be used..\n"
      "`Trainer(val_check_interval=1.0)` was configured so validation will run "
      "at the end of the training epoch..\n");
  lines[0] = '\0';
  TAKEN(.max_epochs = 1, .limit_train_batches = 2, .limit_val_batches = 0.5,
        .limit_test_batches = 0);
  assert_string_equal(lines, "");
}

static void test_others(void **state)
{
  (void)state;
  REFUSED("fast_dev_run=-1 is not a valid configuration. It should be >= 0.",
          .max_epochs = 1, .fast_dev_run = -1);
  REFUSED(
      "`gradient_clip_algorithm` norm2 is invalid. Allowed algorithms: "
      "['value', 'norm'].",
      .max_epochs = 1, .gradient_clip_algorithm = "norm2");
  REFUSED("`gradient_clip_val`", .max_epochs = 1, .gradient_clip_val = -1);
  REFUSED("`accumulate_grad_batches`", .max_epochs = 1,
          .accumulate_grad_batches = -1);
  REFUSED("`max_time` is '10:00': a time is written DD:HH:MM:SS",
          .max_epochs = 1, .max_time = "10:00");
  REFUSED("it can only be one of ['simple', 'xla']. Got 'all'", .max_epochs = 1,
          .profiler = "all");
  REFUSED(
      "`logger` can only be one of ['tensorboard', 'csv', 'json']. Got 'no'",
      .max_epochs = 1, .logger = "no");
  REFUSED("`val_check_interval` should be an integer or a time-based duration",
          .max_epochs = 1, .val_check_interval = 0.5,
          .check_val_every_n_epoch = -1);
}

static void test_barebones(void **state)
{
  (void)state;
  REFUSED(
      "`Trainer(barebones=True, fast_dev_run=...)` was passed. Development "
      "run is not meant for raw speed evaluation so it is disabled in "
      "barebones mode.",
      .barebones = true, .fast_dev_run = 1);
  REFUSED(
      "`Trainer(barebones=True, logger=...)` was passed. Logging can impact "
      "raw speed so it is disabled in barebones mode.",
      .barebones = true, .logger = "csv");
  REFUSED("Sanity checking can impact", .barebones = true,
          .num_sanity_val_steps = 2);
  REFUSED("Anomaly detection can impact", .barebones = true,
          .detect_anomaly = true);
  REFUSED("Profiling can impact", .barebones = true, .profiler = "simple");
  REFUSED("log_every_n_steps=...", .barebones = true, .log_every_n_steps = 1);
  TAKEN(.barebones = true, .num_sanity_val_steps = 0, .max_epochs = 1);
  SAID("You are running in `Trainer(barebones=True)` mode.");
}

static void test_limit_of_a_few(void **state)
{
  (void)state;
  int64_t batches;
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_limited(&(cx_train_limit){ true, 0.1 },
                                "train_dataloader", 8, &batches),
               "You requested to check 0.1 of the `train_dataloader` but 0.1 * "
               "8 < 1. Please increase the `limit_train_batches` argument. Try "
               "at least `limit_train_batches=0.125`");
}

static calx_module *no_model(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  return NULL;
}

static void no_optimizer(calx_trainer *t, void *self)
{
  (void)t, (void)self;
}

static calx_tensor *no_step(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)t, (void)self, (void)batch, (void)i;
  return NULL;
}

static void test_modules(void **state)
{
  (void)state;
  calx_trainer *t = calx_trainer_new(.max_epochs = 1);
  calx_lightning_module m = { .configure_model = no_model };
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(t, NULL), "is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(t, &m), "size");
  m.size = sizeof m;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(t, &m),
               "No `training_step()` method defined");
  m.training_step = no_step;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(t, &m),
               "No `configure_optimizers()` method defined");
  m.configure_optimizers = no_optimizer;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(t, &m),
               "An invalid dataloader was passed");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_validate(t, &m),
               "No `validation_step()` method defined to run "
               "`Trainer.validate`.");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_test(t, &m),
               "No `test_step()` method defined to run `Trainer.test`.");
  m.test_step = no_step;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_test(t, &m),
               "no dataloader");
  m.configure_model = NULL;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_test(t, &m),
               "No `configure_model()` method defined");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_fit(NULL, &m), "is NULL");
  calx_trainer_free(t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEXTS_TEST(test_row_A1),          TEXTS_TEST(test_row_A2),
    TEXTS_TEST(test_row_A5),          TEXTS_TEST(test_row_A6),
    TEXTS_TEST(test_row_A7),          TEXTS_TEST(test_row_A8),
    TEXTS_TEST(test_limits_are_said), TEXTS_TEST(test_others),
    TEXTS_TEST(test_barebones),       TEXTS_TEST(test_limit_of_a_few),
    TEXTS_TEST(test_modules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
