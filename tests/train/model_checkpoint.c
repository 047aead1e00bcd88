// ModelCheckpoint beside Lightning's: when it saves and what stays, by the rows
// of its acceptance list.
#include "saving.h"

// ---- row E1 -----------------------------------------------------------------

// Also row D10: no folder is there before something is saved.
static void test_row_E1(void **state)
{
  (void)state;
  const char *folder = "lightning_logs/version_0/checkpoints";
  saving s = { .batches = 5, .folder = saving_path(folder) };
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 3, .no_progress_bar = true,
                       .no_model_summary = true,
                       .default_root_dir = saving_path(""));
  CHECK_FILES("", "");
  CHECK_STATUS_OK(saving_fit(t, &s));
  assert_string_equal(s.history,
                      "-|epoch=0-step=5.ckpt|epoch=1-step=10.ckpt|"
                      "epoch=2-step=15.ckpt|");
  const calx_callback *c = calx_trainer_checkpoint_callback(t);
  assert_string_equal(
      calx_model_checkpoint_best_model_path(c),
      saving_path("lightning_logs/version_0/checkpoints/epoch=2-step=15.ckpt"));
  assert_true(isnan(calx_model_checkpoint_best_model_score(c)));
  calx_trainer_free(t);
}

// Row D10: nothing is saved or logged.
static void test_row_D10(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .no_progress_bar = true,
                       .no_model_summary = true, .no_checkpointing = true,
                       .default_root_dir = saving_path(""));
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_trainer_free(t);
  t = calx_trainer_new(.devices = 1, .fast_dev_run = 1, .no_progress_bar = true,
                       .no_model_summary = true,
                       .default_root_dir = saving_path(""));
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_trainer_free(t);
  CHECK_FILES("", "");
}

// ---- row E2 -----------------------------------------------------------------

static void save_top(int devices, int64_t k, bool last, const char *names)
{
  saving s = { VALUES(10, 9, 2.8, 5, 2.5) };
  calx_model_checkpoint_options o = { .size = sizeof o,
                                      .dirpath = saving_path("top"),
                                      .filename = "{epoch}",
                                      .monitor = "loss",
                                      .save_top_k = k == 0 ? INT64_MIN : k };
  o.save_last = last ? CALX_SAVE_LAST_FILE : CALX_SAVE_LAST_NONE;
  calx_callback *c = calx_model_checkpoint_with(&o);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 5,
                       .no_progress_bar = true, .no_model_summary = true,
                       .num_sanity_val_steps = 0, .no_logger = true,
                       .callbacks = &c, .n_callbacks = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("top", names);
  if (k != 0) assert_true(calx_model_checkpoint_best_model_score(c) == 2.5);
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void save_tops(int devices)
{
  static const struct {
    int64_t k;
    bool last;
    const char *names;
  } rows[] = {
    { -1, false,
      "epoch=0.ckpt epoch=1.ckpt epoch=2.ckpt epoch=3.ckpt epoch=4.ckpt" },
    { 1, false, "epoch=4.ckpt" },
    { 2, false, "epoch=2.ckpt epoch=4.ckpt" },
    { 3, false, "epoch=2.ckpt epoch=3.ckpt epoch=4.ckpt" },
    { 4, false, "epoch=1.ckpt epoch=2.ckpt epoch=3.ckpt epoch=4.ckpt" },
    { 1, true, "epoch=4.ckpt last.ckpt" },
    { 0, false, "-" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    save_top(devices, rows[i].k, rows[i].last, rows[i].names);
    saving_end(&(void *){ NULL });
    saving_begin(NULL);
  }
}

static void test_row_E2(void **state)
{
  (void)state;
  save_tops(1);
}

static void test_row_E2_ranks(void **state)
{
  (void)state;
  save_tops(2);
}

// ---- rows E3, E4, E5 --------------------------------------------------------

static void test_row_E3(void **state)
{
  (void)state;
  saving s = { .batches = 10 };
  calx_callback *c = calx_model_checkpoint(.save_top_k = -1);
  calx_trainer *t =
      SAVING_TRAINER(c, .max_epochs = 1, .val_check_interval = 0.2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints",
              "epoch=0-step=10.ckpt epoch=0-step=2.ckpt epoch=0-step=4.ckpt "
              "epoch=0-step=6.ckpt epoch=0-step=8.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_row_E4_steps(void **state)
{
  (void)state;
  saving s = { .batches = 64 };
  calx_callback *c =
      calx_model_checkpoint(.filename = "{step:03d}", .save_top_k = -1,
                            .every_n_train_steps = 16);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints",
              "step=016.ckpt step=032.ckpt step=048.ckpt step=064.ckpt "
              "step=080.ckpt step=096.ckpt step=112.ckpt step=128.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_row_E4_epochs(void **state)
{
  (void)state;
  static const char *const names[] = {
    "-", "epoch=0.ckpt epoch=1.ckpt epoch=2.ckpt epoch=3.ckpt epoch=4.ckpt",
    "epoch=1.ckpt epoch=3.ckpt", "epoch=2.ckpt"
  };
  for (int64_t n = 0; n < 4; n++) {
    char folder[8];
    snprintf(folder, sizeof folder, "n%d", (int)n);
    saving s = { .batches = 2 };
    calx_callback *c =
        calx_model_checkpoint(.dirpath = saving_path(folder),
                              .every_n_epochs = n, .filename = "{epoch}",
                              .save_top_k = -1);
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 5);
    CHECK_STATUS_OK(saving_fit(t, &s));
    CHECK_FILES(folder, names[n]);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// ---- row E6 -----------------------------------------------------------------

static void test_row_E6(void **state)
{
  (void)state;
  static const double down[] = { (double)NAN, 8, 7, 5 },
                      up[] = { (double)NAN, 5, 7, 8 };
  for (int i = 0; i < 2; i++) {
    const char *folder = saving_path(i == 0 ? "min" : "max");
    saving s = { .values = i == 0 ? down : up,
                 .n_values = 4,
                 .folder = folder };
    calx_callback *c =
        calx_model_checkpoint(.dirpath = folder, .filename = "{epoch}",
                              .monitor = "loss",
                              .mode = i == 0 ? "min" : "max");
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 4);
    CHECK_STATUS_OK(saving_fit(t, &s));
    assert_string_equal(
        s.history, "-|epoch=0.ckpt|epoch=1.ckpt|epoch=2.ckpt|epoch=3.ckpt|");
    assert_true(calx_model_checkpoint_best_model_score(c) == (i == 0 ? 5 : 8));
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// ---- row E7 -----------------------------------------------------------------

static void run_again(bool no_version_counter, calx_save_last last, int times)
{
  for (int i = 0; i < times; i++) {
    saving s = { .batches = 2 };
    calx_callback *c =
        calx_model_checkpoint(.filename = "{epoch}", .save_top_k = -1,
                              .save_last = last,
                              .no_version_counter = no_version_counter);
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
    CHECK_STATUS_OK(saving_fit(t, &s));
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

static void test_row_E7(void **state)
{
  (void)state;
  run_again(false, true, 3);
  CHECK_FILES("checkpoints",
              "epoch=0-v1.ckpt epoch=0-v2.ckpt epoch=0.ckpt last-v1.ckpt "
              "last-v2.ckpt last.ckpt");
  char text[512];
  snprintf(text, sizeof text,
           "Checkpoint directory %s exists and is not empty.",
           saving_path("checkpoints"));
  CHECK_LINE(text);
}

static void test_row_E7_no_counter(void **state)
{
  (void)state;
  run_again(true, true, 2);
  CHECK_FILES("checkpoints", "epoch=0.ckpt last.ckpt");
}

// A link is relative, and a later file in its place leaves its target alone.
static void test_link(void **state)
{
  (void)state;
  char target[256] = "";
  saving s = { .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.save_last = CALX_SAVE_LAST_LINK);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints", "epoch=1-step=4.ckpt last.ckpt");
  assert_true(readlink(saving_path("checkpoints/last.ckpt"), target,
                       sizeof target - 1) > 0);
  assert_string_equal(target, "epoch=1-step=4.ckpt");
  assert_string_equal(calx_model_checkpoint_last_model_path(c),
                      saving_path("checkpoints/last.ckpt"));
  calx_trainer_free(t);
  calx_callback_free(c);
  run_again(true, true, 1);
  CHECK_FILES("checkpoints", "epoch=0.ckpt epoch=1-step=4.ckpt last.ckpt");
  struct stat info;
  assert_int_equal(lstat(saving_path("checkpoints/last.ckpt"), &info), 0);
  assert_true(S_ISREG(info.st_mode));
}

// ---- the ranks' decision ----------------------------------------------------

// The second rank's value gets worse: not all ranks find it better.
static void test_ranks_agree(void **state)
{
  (void)state;
  static const struct {
    double by_rank;
    const char *names;
  } rows[] = { { 0, "epoch=2.ckpt" }, { 5, "epoch=2.ckpt" } };
  for (int i = 0; i < 2; i++) {
    const char *folder = i == 0 ? "same" : "other";
    saving s = { VALUES(3, 2, 1), .by_rank = rows[i].by_rank };
    calx_callback *c =
        calx_model_checkpoint(.dirpath = saving_path(folder),
                              .filename = "{epoch}", .monitor = "loss");
    calx_trainer *t =
        calx_trainer_new(.devices = 2, .max_epochs = 3, .no_progress_bar = true,
                         .no_model_summary = true, .num_sanity_val_steps = 0,
                         .no_logger = true, .callbacks = &c, .n_callbacks = 1);
    CHECK_STATUS_OK(saving_fit(t, &s));
    CHECK_FILES(folder, rows[i].names);
    assert_true(calx_model_checkpoint_best_model_score(c) == 1);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

static void log_against(calx_trainer *t, void *self)
{
  (void)self;
  const double epoch = (double)calx_trainer_current_epoch(t);
  calx_trainer_log_number(t, "loss",
                          calx_global_ordinal() == 0 ? -epoch : epoch);
}

static void test_ranks_disagree(void **state)
{
  (void)state;
  saving s = { 0 };
  calx_lightning_module module = saving_module(&s);
  module.hooks.on_validation_epoch_end = log_against;
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  calx_callback *c =
      calx_model_checkpoint(.dirpath = saving_path("d"), .filename = "{epoch}",
                            .monitor = "loss", .verbose = true);
  calx_trainer *t =
      calx_trainer_new(.devices = 2, .max_epochs = 3, .no_progress_bar = true,
                       .no_model_summary = true, .num_sanity_val_steps = 0,
                       .no_logger = true, .callbacks = &c, .n_callbacks = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  CHECK_FILES("d", "epoch=0.ckpt");
  CHECK_LINE("Epoch 2, global step 3: 'loss' was not in top 1");
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_row_E1),         SAVING_TEST(test_row_D10),
    SAVING_TEST(test_row_E2),         SAVING_TEST(test_row_E2_ranks),
    SAVING_TEST(test_row_E3),         SAVING_TEST(test_row_E4_steps),
    SAVING_TEST(test_row_E4_epochs),  SAVING_TEST(test_row_E6),
    SAVING_TEST(test_row_E7),         SAVING_TEST(test_row_E7_no_counter),
    SAVING_TEST(test_link),           SAVING_TEST(test_ranks_agree),
    SAVING_TEST(test_ranks_disagree),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
