// Options that the trainer refuses, with Lightning's texts.
#include "calx/calx.h"
#include "support/support.h"

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

static char lines[4096];

static void keep_line(void *user, const char *line)
{
  (void)user;
  size_t at = strlen(lines);
  snprintf(lines + at, sizeof lines - at, "%s\n", line);
}

static int begin(void **state)
{
  (void)state;
  lines[0] = '\0';
  calx_log_set(keep_line, NULL);
  return 0;
}

static int end(void **state)
{
  calx_log_set(NULL, NULL);
  return support_nothing_left(state);
}

// Rows A1, A2.
static void test_devices(void **state)
{
  (void)state;
  TAKEN(.tpu_cores = 1, .max_epochs = 1);
  TAKEN(.tpu_cores = 8, .max_epochs = 1);
  TAKEN(.devices = -1, .max_epochs = 1);
  REFUSED("`tpu_cores` can only be 1, 8 or [<1-8>]", .tpu_cores = 2);
  REFUSED("`tpu_cores` can only be 1, 8 or [<1-8>]", .tpu_cores = -1);
  REFUSED("`devices` can only be", .devices = -2);
  TAKEN(.devices = 1, .tpu_cores = 8, .max_epochs = 1);
  assert_non_null(strstr(lines,
                         "The flag `devices=1` will be ignored, as you "
                         "have set `tpu_cores=8`"));
}

// Row A5.
static void test_precision(void **state)
{
  (void)state;
  TAKEN(.precision = "bf16-mixed", .max_epochs = 1);
  REFUSED("Precision 7 is invalid. Allowed precision values: ['32-true'",
          .precision = "7");
  REFUSED("`Trainer(accelerator='tpu', precision=64)` is not implemented",
          .precision = "64", .accelerator = "tpu");
  assert_string_equal(lines, "");
  TAKEN(.precision = "16", .max_epochs = 1);
  assert_non_null(strstr(lines, "Using `precision='bf16'` instead."));
  REFUSED("invalid accelerator name: `accelerator='xpu'`",
          .accelerator = "xpu");
  REFUSED("invalid strategy name: `strategy='ddp2'`", .strategy = "ddp2");
  TAKEN(.strategy = "tpu_spawn_debug", .max_epochs = 1);
  REFUSED(
      "`strategy='single_tpu'` runs on a single device, devices=8 were "
      "asked for",
      .strategy = "single_tpu", .devices = 8);
}

// Rows A6, A7, A8.
static void test_numbers(void **state)
{
  (void)state;
  REFUSED(
      "`max_epochs` must be a non-negative integer or -1. You passed in "
      "-100.",
      .max_epochs = -100);
  REFUSED("`max_steps` must be a non-negative integer or -1. You passed in -2.",
          .max_steps = -2);
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
  REFUSED("fast_dev_run=-1 is not a valid configuration. It should be >= 0.",
          .max_epochs = 1, .fast_dev_run = -1);
  REFUSED(
      "`gradient_clip_algorithm` norm2 is invalid. Allowed algorithms: "
      "['value', 'norm'].",
      .max_epochs = 1, .gradient_clip_algorithm = "norm2");
  REFUSED("`gradient_clip_val`", .max_epochs = 1, .gradient_clip_val = -1);
  REFUSED("`accumulate_grad_batches`", .max_epochs = 1,
          .accumulate_grad_batches = -1);
  lines[0] = '\0';
  TAKEN(.max_steps = 3);
  TAKEN(.fast_dev_run = 1);
  assert_null(strstr(lines, "was not set"));
  TAKEN(.devices = 1);
  assert_non_null(strstr(lines,
                         "`max_epochs` was not set. Setting it to 1000 "
                         "epochs. To train without an epoch limit, set "
                         "`max_epochs=-1`."));
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

#define OPTIONS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    OPTIONS_TEST(test_devices),
    OPTIONS_TEST(test_precision),
    OPTIONS_TEST(test_numbers),
    OPTIONS_TEST(test_modules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
