// DeviceStatsMonitor: what it writes, and when.
#include "boring.h"
#include "rows.h"

// Three epochs of two batches with a validation batch, of which each second
// step is logged.
static calx_status *fit(calx_callback *c, int devices, bool has_logger,
                        rows *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step);
  calx_dataset *data = boring_dataset(2 * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_logger *logger = rows_logger(out);
  *out = (rows){ 0 };
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 3,
                       .no_progress_bar = true, .no_checkpointing = true,
                       .log_every_n_steps = 2, .loggers = &logger,
                       .n_loggers = has_logger, .no_logger = !has_logger,
                       .num_sanity_val_steps = 0, .limit_val_batches = 1,
                       .callbacks = &c, .n_callbacks = 1);
  calx_status *status = calx_trainer_fit(t, &module, .train_dataloader = loader,
                                         .val_dataloader = loader);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static int count(const char *text, const char *part)
{
  int n = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) n++;
  return n;
}

// The value behind the last "name=".
static double last(const char *text, const char *name)
{
  double value = (double)NAN;
  for (; (text = strstr(text, name)) != NULL;) {
    text += strlen(name) + 1;
    value = strtod(text, NULL);
  }
  return value;
}

#define KEY(hook, name) "DeviceStatsMonitor." hook "/" name

static void test_written(void **state)
{
  (void)state;
  rows out;
  CHECK_STATUS_OK(fit(calx_device_stats_monitor(), 1, true, &out));
  // Batches that stepped before are counted: 1, 3 and 5.
  for (int step = 1; step <= 5; step += 2) {
    char start[64], end[64];
    snprintf(start, sizeof start, "%d %s", step,
             KEY("on_train_batch_start", "bytes_in_use="));
    snprintf(end, sizeof end, "%d %s", step,
             KEY("on_train_batch_end", "bytes_in_use="));
    assert_int_equal(count(out.text, start), 1);
    assert_int_equal(count(out.text, end), 1);
  }
  assert_int_equal(count(out.text, "\n"), 6);
  const double used = last(out.text, KEY("on_train_batch_end", "bytes_in_use"));
  const double peak =
      last(out.text, KEY("on_train_batch_end", "peak_bytes_in_use"));
  assert_true(used >= 2 * BORING_FEATURES * 4 && peak >= used);
  static const char *const percents[] = {
    KEY("on_train_batch_end", "cpu_vm_percent"),
    KEY("on_train_batch_end", "cpu_percent"),
    KEY("on_train_batch_end", "cpu_swap_percent"),
  };
  for (int i = 0; i < 3; i++) {
    const double value = last(out.text, percents[i]);
    assert_true(value >= (i == 0 ? 0.01 : 0) && value <= 100);
  }
}

static void test_switches(void **state)
{
  (void)state;
  rows out;
  CHECK_STATUS_OK(
      fit(calx_device_stats_monitor(.cpu_stats = 0), 2, true, &out));
  assert_int_equal(count(out.text, "\n"), 6);
  assert_int_equal(count(out.text, "cpu_"), 0);
  CHECK_STATUS_OK(
      fit(calx_device_stats_monitor(.cpu_stats = 1), 1, true, &out));
  assert_int_equal(count(out.text, "cpu_percent="), 6);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               fit(calx_device_stats_monitor(), 1, false, &out),
               "Cannot use `DeviceStatsMonitor` callback with "
               "`Trainer(logger=False)`.");
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_written),
    SUPPORT_TEST(test_switches),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
