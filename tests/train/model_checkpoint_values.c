// What ModelCheckpoint says, where its values come from, and what it does
// without them.
#include "saving.h"

static void test_verbose(void **state)
{
  (void)state;
  saving s = { VALUES(0.5, 0.75, 0.25), .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.filename = "{epoch}",
                                           .monitor = "loss", .verbose = true);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 3);
  CHECK_STATUS_OK(saving_fit(t, &s));
  char text[600];
  snprintf(text, sizeof text,
           "Epoch 0, global step 2: 'loss' reached 0.50000 (best 0.50000), "
           "saving model to '%s' as top 1\n"
           "Epoch 1, global step 4: 'loss' was not in top 1\n"
           "Epoch 2, global step 6: 'loss' reached 0.25000 (best 0.25000), "
           "saving model to '%s' as top 1\n",
           saving_path("checkpoints/epoch=0.ckpt"),
           saving_path("checkpoints/epoch=2.ckpt"));
  CHECK_LINE(text);
  double score;
  assert_string_equal(calx_model_checkpoint_best_k_model(c, 0, &score),
                      saving_path("checkpoints/epoch=2.ckpt"));
  assert_true(score == 0.25);
  assert_null(calx_model_checkpoint_best_k_model(c, 1, NULL));
  assert_true(calx_model_checkpoint_kth_value(c) == 0.25);
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_missing(void **state)
{
  (void)state;
  static const char text[] =
      "`ModelCheckpoint(monitor='nope')` could not find the monitored key in "
      "the returned metrics: ['loss', 'epoch', 'step']. HINT: Did you call "
      "`log('nope', value)` in the `LightningModule`?";
  for (int i = 0; i < 2; i++) {
    saving s = { VALUES(1, 2), .batches = 2, .logs_training = i == 1 };
    calx_callback *c = calx_model_checkpoint(.monitor = "nope");
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
    if (i == 0) {
      CHECK_STATUS(CALX_NOT_FOUND, saving_fit(t, &s), text);
    } else {
      CHECK_STATUS_OK(saving_fit(t, &s));
      CHECK_LINE(text);
      const char *first = strstr(saving_lines, "could not find");
      assert_null(strstr(first + 1, "could not find"));
    }
    CHECK_FILES("", "");
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// What is logged at the end of a training epoch is that epoch's.
static void test_training_value(void **state)
{
  (void)state;
  saving s = { VALUES(1, 0.5, 3), .batches = 2, .logs_training = true };
  calx_callback *c = calx_model_checkpoint(.filename = "{epoch}-{loss}",
                                           .monitor = "loss", .save_top_k = -1,
                                           .no_auto_insert_metric_name = true);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 3);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints", "0-1.0.ckpt 1-0.5.ckpt 2-3.0.ckpt");
  assert_true(calx_model_checkpoint_best_model_score(c) == 0.5);
  calx_trainer_free(t);
  calx_callback_free(c);
}

// A save by steps waits for the value that a validation logs.
static void test_deferred(void **state)
{
  (void)state;
  saving s = { VALUES(2, 1), .batches = 4 };
  calx_callback *c = calx_model_checkpoint(.filename = "{epoch}-{step}-{loss}",
                                           .monitor = "loss", .save_top_k = -1,
                                           .every_n_train_steps = 3,
                                           .save_on_train_epoch_end = 0);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints",
              "epoch=0-step=4-loss=2.0.ckpt epoch=1-step=6-loss=2.0.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
}

// Row E5's other half: by time, of which each batch takes enough.
static void test_time(void **state)
{
  (void)state;
  saving s = { .batches = 3 };
  calx_callback *c = calx_model_checkpoint(.filename = "{step}",
                                           .train_time_interval = "00:00:00:00",
                                           .save_top_k = -1);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints", "step=1.ckpt step=2.ckpt step=3.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
  c = calx_model_checkpoint(.dirpath = saving_path("later"),
                            .train_time_interval = "00:01:00:00");
  t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("later", "-");
  calx_trainer_free(t);
  calx_callback_free(c);
}

// When an epoch ends, or after its validations.
static void test_when(void **state)
{
  (void)state;
  static const struct {
    const char *folder;
    int64_t every;  // epochs, of validation
    int asked;      // of the option; -1: not written
    const char *names;
  } rows[] = {
    { "a", 2, -1, "epoch=1.ckpt epoch=3.ckpt" },
    { "b", 2, 1, "epoch=0.ckpt epoch=1.ckpt epoch=2.ckpt epoch=3.ckpt" },
    { "c", 1, 0, "epoch=0.ckpt epoch=1.ckpt epoch=2.ckpt epoch=3.ckpt" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    saving s = { .batches = 2 };
    calx_model_checkpoint_options o = { .size = sizeof o,
                                        .dirpath = saving_path(rows[i].folder),
                                        .filename = "{epoch}",
                                        .save_top_k = -1 };
    if (rows[i].asked >= 0) {
      o.save_on_train_epoch_end = rows[i].asked == 0 ? INT32_MIN : 1;
    }
    calx_callback *c = calx_model_checkpoint_with(&o);
    calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 4,
                                     .check_val_every_n_epoch = rows[i].every);
    CHECK_STATUS_OK(saving_fit(t, &s));
    CHECK_FILES(rows[i].folder, rows[i].names);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// Steps of which several are one program are saved where they are asked for.
static void test_several_steps(void **state)
{
  (void)state;
  for (int64_t n = 1; n <= 3; n += 2) {
    saving s = { .batches = 6 };
    calx_callback *c =
        calx_model_checkpoint(.dirpath = saving_path(n == 1 ? "one" : "three"),
                              .filename = "{step}", .every_n_train_steps = 2,
                              .save_top_k = -1);
    calx_trainer *t =
        SAVING_TRAINER(c, .max_epochs = 1, .steps_per_execution = n);
    CHECK_STATUS_OK(saving_fit(t, &s));
    calx_trainer_free(t);
    calx_callback_free(c);
    calx_shutdown();
  }
  static const char *const names[] = { "step=2.ckpt", "step=4.ckpt",
                                       "step=6.ckpt" };
  for (int i = 0; i < 3; i++) {
    char a[32], b[32];
    snprintf(a, sizeof a, "one/%s", names[i]);
    snprintf(b, sizeof b, "three/%s", names[i]);
    calx_value *one = saving_load(a), *three = saving_load(b);
    assert_memory_equal(saving_weights_in(calx_value_get(one, "state_dict")),
                        saving_weights_in(calx_value_get(three, "state_dict")),
                        WEIGHTS * sizeof(float));
    calx_value_free(one);
    calx_value_free(three);
  }
}

// last.ckpt where nothing else was saved.
static void test_last_alone(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  calx_callback *c = calx_model_checkpoint(.save_top_k = 0, .save_last = true);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("checkpoints", "last.ckpt");
  calx_trainer_free(t);
  calx_callback_free(c);
}

// A folder that a logger names; a home folder.
static void test_folders(void **state)
{
  (void)state;
  saving s = { .batches = 2 };
  calx_logger *logger =
      calx_csv_logger(saving_path("logs"), .name = "net", .version = "first");
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .no_progress_bar = true,
                       .no_model_summary = true, .loggers = &logger,
                       .n_loggers = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("logs/net/first/checkpoints", "epoch=0-step=2.ckpt");
  calx_trainer_free(t);
  calx_logger_free(logger);
  char home[256];
  snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
  setenv("HOME", saving_root, 1);
  calx_callback *c = calx_model_checkpoint(.dirpath = "~/mine");
  t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_FILES("mine", "epoch=0-step=2.ckpt");
  setenv("HOME", home, 1);
  calx_trainer_free(t);
  calx_callback_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_verbose),        SAVING_TEST(test_missing),
    SAVING_TEST(test_training_value), SAVING_TEST(test_deferred),
    SAVING_TEST(test_time),           SAVING_TEST(test_when),
    SAVING_TEST(test_last_alone),     SAVING_TEST(test_several_steps),
    SAVING_TEST(test_folders),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
