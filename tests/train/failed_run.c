// Checkpoints of runs that fail, and of one that is killed.
#include <signal.h>
#include <sys/wait.h>

#include "rows.h"
#include "saving.h"
#include "support/long.h"

// ---- runs that fail ---------------------------------------------------------

// The last rank's loss is none, so there is no step with it.
static calx_tensor *fail_late(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  calx_tensor *loss = boring_loss(self, batch);
  const bool fails = calx_trainer_current_epoch(t) == 1 && i == 1 &&
                     calx_global_ordinal() == calx_world_size() - 1;
  return fails ? calx_reshape(loss, CALX_SHAPE(7)) : loss;
}

static void fit_and_fail(int devices, calx_callback **callbacks, bool fails)
{
  saving s = { 0 };
  calx_lightning_module module = saving_module(&s);
  if (fails) module.training_step = fail_late;
  module.validation_step = NULL;
  calx_dataset *data = boring_dataset(3 * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 2,
                       .no_progress_bar = true, .no_model_summary = true,
                       .no_logger = true, .default_root_dir = saving_path(""),
                       .callbacks = callbacks, .n_callbacks = 2);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  if (fails) {
    CHECK_STATUS(CALX_INVALID_ARGUMENT, status, "reshape");
  } else {
    CHECK_STATUS_OK(status);
  }
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// A file's weights are those after so many steps.
static void check_steps(int devices, const char *file, int64_t steps)
{
  saving s = { .batches = 3, .logs_training = true };
  calx_shutdown();
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_steps = steps, BORING_ALONE);
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_value *value = saving_load(file);
  assert_memory_equal(
      saving_weights_in(calx_value_get(value, "state_dict")),
      saving_weights_in(calx_value_get(t->checkpoint, "state_dict")),
      WEIGHTS * sizeof(float));
  calx_value_free(value);
  calx_trainer_free(t);
  calx_shutdown();
}

static void check_failed(int devices)
{
  calx_callback *c[] = { calx_model_checkpoint(.save_on_exception = true,
                                               .every_n_epochs = 9,
                                               .save_last = true),
                         calx_on_exception_checkpoint(saving_path("failed")) };
  fit_and_fail(devices, c, true);
  CHECK_FILES("failed", "on_exception.ckpt");
  CHECK_FILES("checkpoints", "epoch=1-step=4.ckpt last.ckpt");
  CHECK_LINE(" was raised with message: ");
  CHECK_LINE("/checkpoints/epoch=1-step=4.ckpt");
  check_steps(devices, "failed/on_exception.ckpt", 4);
  calx_callback_free(c[0]);
  // The next run goes on from it, and one that ends well removes it.
  c[0] = calx_model_checkpoint(.dirpath = saving_path("none"));
  fit_and_fail(devices, c, false);
  CHECK_LINE("The last model of the previous `fit` call will be used.");
  CHECK_LINE("failed/on_exception.ckpt");
  CHECK_FILES("failed", "");
  calx_callback_free(c[0]);
  calx_callback_free(c[1]);
}

static void test_failed(void **state)
{
  (void)state;
  check_failed(1);
}

static void test_failed_ranks(void **state)
{
  (void)state;
  check_failed(2);
}

// ---- what was logged --------------------------------------------------------

static calx_tensor *fail_third(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  calx_tensor *loss = boring_loss(self, batch);
  if (i == 3) return calx_reshape(loss, CALX_SHAPE(7));
  calx_trainer_log(t, "loss", loss);
  return loss;
}

// The first three are computed here, after they were logged. The next fails.
static void read_loss(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch;
  if (i != 2) return;
  calx_sync(NULL);
  assert_true(isfinite(calx_trainer_callback_metric(t, "loss")));
}

// Loggers get all steps of a run that fails.
static void test_failed_rows(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = fail_third,
                            .hooks = { .on_train_batch_end = read_loss });
  rows r = { 0 };
  calx_logger *logger = rows_logger(&r);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .no_progress_bar = true,
                       .no_model_summary = true, .no_checkpointing = true,
                       .loggers = &logger, .n_loggers = 1,
                       .log_every_n_steps = 1, .steps_per_execution = 4);
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &module, .train_dataloader = loader),
               "reshape");
  const char *first = strstr(r.text, "0 loss="),
             *last = strstr(r.text, "\n2 loss=");
  assert_true(first == r.text && last != NULL);
  assert_ptr_equal(strchr(last + 1, '\n'), r.text + strlen(r.text) - 1);
  calx_trainer_free(t);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row E22 ----------------------------------------------------------------

// The process that is killed: it saves after each batch.
static int save_for_ever(const char *folder)
{
  snprintf(saving_root, sizeof saving_root, "%s", folder);
  saving s = { .batches = 1000 };
  calx_callback *c =
      calx_model_checkpoint(.filename = "{step}", .save_last = true,
                            .every_n_train_steps = 1);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = -1);
  calx_status *status = saving_fit(t, &s);
  fprintf(stderr, "%s\n", calx_status_message(status));
  return 1;
}

static void start_and_kill(int after_ms)
{
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv("SAVE_FOR_EVER", saving_root, 1);
    execl("/proc/self/exe", "save_for_ever", (char *)NULL);
    _exit(127);
  }
  int how;
  for (int i = 0; i < 6000 && access(saving_path("checkpoints"), F_OK) != 0;
       i++) {
    usleep(10000);
  }
  usleep((useconds_t)after_ms * 1000);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
}

static int load_all(void)
{
  int n = 0;
  DIR *dir = opendir(saving_path("checkpoints"));
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char name[300];
    const char *end = strrchr(e->d_name, '.');
    if (end == NULL || strcmp(end, ".ckpt") != 0) continue;
    snprintf(name, sizeof name, "checkpoints/%s", e->d_name);
    calx_value *value = saving_load(name);
    assert_true(saving_has(value, "state_dict") &&
                saving_has(value, "callbacks"));
    calx_value_free(value);
    n++;
  }
  closedir(dir);
  return n;
}

static void test_row_E22(void **state)
{
  (void)state;
  int found = 0;
  for (int i = 0; i < (int)long_or(60, 6); i++) {
    start_and_kill(20 + 37 * i % 200);
    found += load_all();
  }
  assert_true(found > 0);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const char *folder = getenv("SAVE_FOR_EVER");
  if (folder != NULL) return save_for_ever(folder);
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_failed),
    SAVING_TEST(test_failed_ranks),
    SAVING_TEST(test_failed_rows),
    SAVING_TEST(test_row_E22),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
