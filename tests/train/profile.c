// The trainer's profiler: actions of a run, how often, and where their time
// went.
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trace.h"
#include "boring.h"

enum { BATCHES = 6, SLEEP_MS = 5 };

static calx_tensor *slow_step(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  nanosleep(&(struct timespec){ .tv_nsec = SLEEP_MS * 1000000 }, NULL);
  return boring_loss(self, batch);
}

// A read of a value waits for its step.
static void read_loss(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_item(calx_trainer_step_output(t));
}

static calx_status *fit(const char *profiler, int devices)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = slow_step,
                            .validation_step = boring_step,
                            .hooks = { .on_train_batch_end = read_loss });
  calx_dataset *data = boring_dataset(BATCHES * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_callback *c = calx_timer();
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 1, BORING_ALONE,
                       .num_sanity_val_steps = 0, .profiler = profiler,
                       .default_root_dir = getenv("TMPDIR"), .callbacks = &c,
                       .n_callbacks = 1);
  calx_status *status = calx_trainer_fit(t, &module, .train_dataloader = loader,
                                         .val_dataloader = loader);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static const char *path_of(const char *name)
{
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("TMPDIR"), name);
  return path;
}

// What a run writes to the standard error; freed with cx_free().
static char *written(int devices)
{
  const char *path = path_of("stderr");
  fflush(stderr);
  const int kept = dup(2);
  assert_non_null(freopen(path, "w", stderr));
  calx_status *status = fit("simple", devices);
  fflush(stderr);
  dup2(kept, 2);
  close(kept);
  CHECK_STATUS_OK(status);
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 0, &text, &size));
  return text;
}

enum { MEAN, CALLS, TOTAL, SHARE, TRACE, COMPILE, WAIT, TRANSFER, COLUMNS };

static bool read_row(const char *text, const char *action, double *out)
{
  char name[128];
  snprintf(name, sizeof name, "|  %s ", action);
  const char *at = strstr(text, name);
  if (at == NULL) {
    snprintf(name, sizeof name, "|  %s\t", action);
    at = strstr(text, name);
  }
  if (at == NULL) return false;
  at = strchr(at + 1, '|');
  for (int i = 0; i < COLUMNS; i++) {
    out[i] = strtod(at + 1, NULL);
    at = strchr(at + 1, '|');
  }
  return true;
}

static void test_table(void **state)
{
  (void)state;
  char *text = written(1);
  assert_non_null(strstr(text, "FIT Profiler Report\n"));
  assert_non_null(strstr(text, "Execute wait (s)"));
  static const struct {
    const char *action;
    int calls;
  } rows[] = {
    { "run_training_epoch", 1 },
    { "run_training_batch", BATCHES },
    { "[_TrainingEpochLoop].train_dataloader_next", BATCHES },
    { "[Strategy]SingleDeviceXLAStrategy.training_step", BATCHES },
    { "[Strategy]SingleDeviceXLAStrategy.backward", BATCHES },
    { "[Strategy]SingleDeviceXLAStrategy.validation_step", BATCHES },
    { "[LightningModule]BoringModel.optimizer_step", BATCHES },
    { "[LightningModule]BoringModel.on_train_batch_end", BATCHES },
    { "[Callback]Timer.on_train_batch_end", BATCHES },
    { "[Callback]Timer.on_fit_start", 1 },
  };
  double row[COLUMNS];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!read_row(text, rows[i].action, row)) {
      fail_msg("no row %s in\n%s", rows[i].action, text);
    }
    assert_int_equal((int)row[CALLS], rows[i].calls);
    CHECK_CLOSE(row[MEAN] * row[CALLS], row[TOTAL], 1e-3 * row[TOTAL] + 1e-9);
    CHECK_CLOSE(row[TRACE] + row[COMPILE] + row[WAIT] + row[TRANSFER],
                row[TOTAL], 1e-3 * row[TOTAL] + 1e-9);
  }
  // What is computed is compiled where it syncs, and waited for where it is
  // read.
  read_row(text, "[Strategy]SingleDeviceXLAStrategy.training_step", row);
  assert_true(row[TRACE] >= BATCHES * SLEEP_MS * 0.9e-3);
  assert_true(row[COMPILE] == 0 && row[WAIT] == 0);
  read_row(text, "run_training_batch", row);
  assert_true(row[COMPILE] > 0 && row[WAIT] > 0);
  read_row(text, "[LightningModule]BoringModel.on_train_batch_end", row);
  assert_true(row[WAIT] > 0);
  cx_free(text);
  assert_false(cx_trace_wanted(CX_TRACE_SPANS));
}

// The first rank prints its own.
static void test_ranks(void **state)
{
  (void)state;
  char *text = written(2);
  double row[COLUMNS];
  assert_true(read_row(text, "[Strategy]XLAStrategy.training_step", row));
  assert_int_equal((int)row[CALLS], BATCHES);
  const char *first = strstr(text, "Profiler Report");
  assert_null(strstr(first + 1, "Profiler Report"));
  cx_free(text);
}

static void test_file(void **state)
{
  (void)state;
  CHECK_STATUS_OK(fit("xla", 1));
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path_of("fit.profile.json"), 0, &text, &size));
  assert_non_null(strstr(text, "traceEvents"));
  assert_non_null(strstr(text, "compile"));
  cx_free(text);
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_file),
    SUPPORT_TEST(test_table),
    SUPPORT_TEST(test_ranks),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
