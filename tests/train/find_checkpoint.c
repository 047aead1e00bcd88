// Checkpoints that a run begins with: rows E8, E13, E16 and C17 of Lightning's
// acceptance list, "best", "last", "hpc", and files of failed runs.
#include <fcntl.h>

#include "saving.h"

// ---- row E8 -----------------------------------------------------------------

static calx_callback *two_newest(const char *folder)
{
  return calx_model_checkpoint(.dirpath = saving_path(folder),
                               .filename = "{step}", .monitor = "step",
                               .mode = "max", .save_top_k = 2,
                               .every_n_train_steps = 2);
}

// To step 4, and from there to step 8.
static void resume_in(const char *folder)
{
  saving s = { .batches = 2 };
  calx_callback *c = two_newest("old");
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("old", "step=2.ckpt step=4.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
  s.ckpt_path = saving_path("old/step=4.ckpt");
  c = two_newest(folder);
  t = SAVING_TRAINER(c, .max_epochs = 4);
  t->position.epoch = 2;
  t->position.global_step = 4;
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_row_E8(void **state)
{
  (void)state;
  resume_in("old");
  CHECK_FILES("old", "step=4.ckpt step=6.ckpt step=8.ckpt");
  CHECK_LINE("Restoring states from the checkpoint path at ");
  CHECK_LINE("Restored all states from the checkpoint at ");
}

static void test_row_E8_other_folder(void **state)
{
  (void)state;
  char text[1024];
  resume_in("new");
  CHECK_FILES("old", "step=2.ckpt step=4.ckpt");
  CHECK_FILES("new", "step=6.ckpt step=8.ckpt");
  snprintf(text, sizeof text,
           "The dirpath has changed from '%s' to '%s', therefore "
           "`best_model_score`, `kth_best_model_path`, `kth_value`, "
           "`last_model_path` and `best_k_models` won't be reloaded. Only "
           "`best_model_path` will be reloaded.",
           saving_path("old"), saving_path("new"));
  CHECK_LINE(text);
}

// A run that begins with a link leaves what that leads to.
static void test_row_E8_link(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  for (int i = 0; i < 2; i++) {
    calx_callback *c = calx_model_checkpoint(.filename = "{step}",
                                             .save_last = CALX_SAVE_LAST_LINK);
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2 + i);
    t->position.epoch = 2 * i;
    t->position.global_step = 4 * i;
    CHECK_STATUS_OK(saving_fit(t, &s));
    s.ckpt_path = "last";
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  CHECK_FILES("checkpoints", "last.ckpt step=4.ckpt step=6.ckpt");
}

// ---- row E13 ----------------------------------------------------------------

static void test_row_E13(void **state)
{
  (void)state;
  saving s = { .batches = 2, .ckpt_path = "last" };
  calx_callback *c = calx_model_checkpoint();
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_LINE(
      ".fit(ckpt_path=\"last\") is set, but there is no last checkpoint "
      "available. No checkpoint will be loaded. HINT: Set "
      "`ModelCheckpoint(..., save_last=True)`.");
  assert_int_equal(calx_trainer_global_step(t), 2);
  s.ckpt_path = saving_path("nothing.ckpt");
  char text[600];
  snprintf(text, sizeof text, "Checkpoint file not found: %s", s.ckpt_path);
  CHECK_STATUS(CALX_NOT_FOUND, saving_fit(t, &s), text);
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_newest_last(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  for (int i = 0; i < 3; i++) {
    calx_callback *c = calx_model_checkpoint(.save_last = true);
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
    CHECK_STATUS_OK(saving_fit(t, &s));
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
  assert_int_equal(
      utimensat(AT_FDCWD, saving_path("checkpoints/last-v2.ckpt"), old, 0), 0);
  s.ckpt_path = "last";
  calx_callback *c = calx_model_checkpoint(.save_last = true);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_LINE("checkpoints/last-v1.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
}

// ---- "best" and "hpc" -------------------------------------------------------

static calx_status *test_with(calx_trainer *t, const char *ckpt_path)
{
  saving s = { 0 };
  const calx_lightning_module module = saving_module(&s);
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  calx_status *status =
      calx_trainer_test(t, &module, .test_dataloader = loader,
                        .ckpt_path = ckpt_path, .not_verbose = true);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static void test_best(void **state)
{
  (void)state;
  saving s = { VALUES(2, 1, 3), .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.filename = "{epoch}",
                                           .monitor = "loss", .save_top_k = -1);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 3);
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT, test_with(t, "best"),
      "`.test(ckpt_path=\"best\")` is set but `ModelCheckpoint` is not "
      "configured to save the best model.");
  CHECK_STATUS_OK(saving_fit(t, &s));
  saving_lines[0] = '\0';
  CHECK_STATUS_OK(test_with(t, "best"));
  char text[600];
  snprintf(text, sizeof text, "Loaded model weights from the checkpoint at %s",
           saving_path("checkpoints/epoch=1.ckpt"));
  CHECK_LINE(text);
  // Callbacks' states are those of fit.
  assert_string_equal(calx_model_checkpoint_kth_best_model_path(c),
                      saving_path("checkpoints/epoch=2.ckpt"));
  calx_trainer_free(t);
  calx_callback_free(c);
  t = calx_trainer_new(.devices = 1, .max_epochs = 1, BORING_ALONE);
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT, test_with(t, "best"),
      "`.test(ckpt_path=\"best\")` is set but `ModelCheckpoint` is not "
      "configured.");
  calx_trainer_free(t);
  t = calx_trainer_new(.devices = 1, .fast_dev_run = 1,
                       .no_progress_bar = true);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, test_with(t, "best"),
               "You cannot execute `.test(ckpt_path=\"best\")` with "
               "`fast_dev_run=True`.");
  calx_trainer_free(t);
}

static void test_hpc(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.save_top_k = 0);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, test_with(t, "hpc"),
               "`.test(ckpt_path=\"hpc\")` is set but no HPC checkpoint was "
               "found.");
  CHECK_STATUS_OK(saving_fit(t, &s));
  static const char *const names[] = { "hpc_ckpt_2.ckpt", "hpc_ckpt_10.ckpt",
                                       "hpc_ckpt_11.ckpt.tmp",
                                       "hpc_ckpt_x.ckpt" };
  for (int i = 0; i < 4; i++) {
    CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path(names[i])));
  }
  CHECK_STATUS_OK(test_with(t, "hpc"));
  CHECK_LINE("Loaded model weights from the checkpoint at ");
  CHECK_LINE("/hpc_ckpt_10.ckpt");
  calx_trainer_free(t);
  // A job that Slurm has started again finds it by itself.
  saving_lines[0] = '\0';
  setenv("SLURM_NTASKS", "1", 1);
  for (int i = 0; i < 2; i++) {
    setenv("SLURM_JOB_NAME", i == 0 ? "bash" : "train", 1);
    t = SAVING_TRAINER(c, .max_epochs = 1);
    CHECK_STATUS_OK(saving_fit(t, &s));
    assert_int_equal(strstr(saving_lines, "hpc_ckpt_10") != NULL, i);
    calx_trainer_free(t);
  }
  unsetenv("SLURM_NTASKS");
  unsetenv("SLURM_JOB_NAME");
  calx_callback_free(c);
}

// ---- row E16 ----------------------------------------------------------------

typedef struct both {
  saving saving;
  calx_callback *stopping, *checkpoint;
  double best, wait_count;
  char best_path[512], last_path[512];
} both;

static void see_states(calx_trainer *t, void *self)
{
  (void)self;
  both *b = calx_trainer_user(t);
  b->best = calx_model_checkpoint_best_model_score(b->checkpoint);
  b->wait_count = (double)calx_early_stopping_wait_count(b->stopping);
  snprintf(b->best_path, sizeof b->best_path, "%s",
           calx_model_checkpoint_best_model_path(b->checkpoint));
  snprintf(b->last_path, sizeof b->last_path, "%s",
           calx_model_checkpoint_last_model_path(b->checkpoint));
}

static void fit_both(both *b, int devices)
{
  b->stopping = calx_early_stopping(.monitor = "loss", .patience = 9);
  b->checkpoint =
      calx_model_checkpoint(.dirpath = saving_path("c"), .filename = "{epoch}",
                            .monitor = "loss", .save_last = true,
                            .save_top_k = -1);
  calx_callback *list[] = { b->stopping, b->checkpoint };
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 4,
                       .no_progress_bar = true, .no_model_summary = true,
                       .num_sanity_val_steps = 0, .no_logger = true,
                       .callbacks = list, .n_callbacks = 2);
  calx_lightning_module module = saving_module(&b->saving);
  module.hooks.on_fit_start = see_states;
  calx_dataset *data = boring_dataset(2 * devices);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader,
                                   .ckpt_path = b->saving.ckpt_path));
  calx_trainer_free(t);
  calx_callback_free(b->stopping);
  calx_callback_free(b->checkpoint);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static void check_states(int devices)
{
  both b = { .saving = { VALUES(4, 0.1, 2, 3) } };
  fit_both(&b, devices);
  assert_true(isnan(b.best));
  b.saving.ckpt_path = saving_path("c/epoch=3.ckpt");
  fit_both(&b, devices);
  assert_true(b.best == (double)0.1);
  assert_true(b.wait_count == 2);
  assert_string_equal(b.best_path, saving_path("c/epoch=1.ckpt"));
  assert_string_equal(b.last_path, saving_path("c/last.ckpt"));
}

static void test_row_E16(void **state)
{
  (void)state;
  check_states(1);
}

static void test_row_E16_ranks(void **state)
{
  (void)state;
  check_states(2);
}

// A state of a callback that the run has not is named.
static void test_other_callbacks(void **state)
{
  (void)state;
  saving s = { VALUES(1, 1), .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.monitor = "loss");
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_trainer_free(t);
  calx_callback_free(c);
  c = calx_model_checkpoint();
  t = SAVING_TRAINER(c, .max_epochs = 2);
  s.ckpt_path = saving_path("checkpoints/epoch=0-step=2.ckpt");
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_LINE(
      "Please add the following callbacks: [\"ModelCheckpoint{'monitor': "
      "'loss'");
  calx_trainer_free(t);
  calx_callback_free(c);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_row_E8),        SAVING_TEST(test_row_E8_other_folder),
    SAVING_TEST(test_row_E8_link),   SAVING_TEST(test_row_E13),
    SAVING_TEST(test_newest_last),   SAVING_TEST(test_best),
    SAVING_TEST(test_hpc),           SAVING_TEST(test_row_E16),
    SAVING_TEST(test_row_E16_ranks), SAVING_TEST(test_other_callbacks),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
