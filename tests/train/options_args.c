// The trainer's options from a command line and from the environment.
#include <locale.h>

#include "texts.h"

// What the trainer's options become, and what is left for the program.
static calx_trainer_options read_line(const char *text, const char *left)
{
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of(text);
  char rest[512] = "";
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv));
  for (int i = 0; i < c.argc; i++) {
    snprintf(rest + strlen(rest), sizeof rest - strlen(rest), "%s%s",
             i > 0 ? " " : "", c.argv[i]);
  }
  assert_string_equal(rest, left);
  assert_null(c.argv[c.argc]);
  return o;
}

#define LINE_REFUSED(text, ...)                                              \
  do {                                                                       \
    calx_trainer_options o_ = NEW_OPTIONS;                                   \
    command c_ = command_of(text);                                           \
    CHECK_STATUS(CALX_INVALID_ARGUMENT,                                      \
                 calx_trainer_args(&o_, &c_.argc, c_.argv), __VA_ARGS__);    \
    assert_memory_equal(&o_, &(calx_trainer_options)NEW_OPTIONS, sizeof o_); \
  } while (0)

// The seeds' lines.
static void test_seeds(void **state)
{
  (void)state;
  calx_trainer_options o = read_line("train --max_epochs=5 --batch_size=32",
                                     "train --batch_size=32");
  assert_int_equal(o.max_epochs, 5);
  o = read_line("train --tpu_cores=8 --precision 16 data", "train data");
  assert_int_equal(o.tpu_cores, 8);
  assert_string_equal(o.precision, "16");
  o = read_line("train --tpu_cores=[5] --strategy=tpu_spawn_debug", "train");
  assert_string_equal(o.tpu_core_ids, "[5]");
  assert_int_equal(o.tpu_cores, 0);
  assert_string_equal(o.strategy, "tpu_spawn_debug");
  o = read_line("train --accelerator=tpu --devices=8", "train");
  assert_string_equal(o.accelerator, "tpu");
  assert_int_equal(o.devices, 8);
}

static void test_forms(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --trainer.max_epochs=5 --max_steps -1 -v --lr 0.1 file "
      "--trainer.devices [2] -- --max_epochs=7",
      "train -v --lr 0.1 file -- --max_epochs=7");
  assert_int_equal(o.max_epochs, 5);
  assert_int_equal(o.max_steps, -1);
  assert_string_equal(o.device_ids, "[2]");
  // The last one counts, with all that it sets.
  o = read_line("train --devices=[2] --devices=4 --max_epochs=1 --max_epochs=2",
                "train");
  assert_null(o.device_ids);
  assert_int_equal(o.devices, 4);
  assert_int_equal(o.max_epochs, 2);
  // A 0 that is written is one, and None is the default.
  o = read_line(
      "train --max_epochs=0 --num_sanity_val_steps=0 --min_steps=0 "
      "--precision=None --check_val_every_n_epoch=None",
      "train");
  assert_true(o.max_epochs == INT64_MIN && o.num_sanity_val_steps == INT64_MIN);
  assert_int_equal(o.min_steps, 0);
  assert_null(o.precision);
  assert_int_equal(o.check_val_every_n_epoch, -1);
  o = read_line(
      "train --val_check_interval=00:00:10:00 --seed_everything=7 "
      "--gradient_clip_val=0.5 --profiler=simple",
      "train");
  assert_string_equal(o.val_check_time, "00:00:10:00");
  assert_int_equal(o.seed, 7);
  CHECK_CLOSE(o.gradient_clip_val, 0.5, 0);
  assert_string_equal(o.profiler, "simple");
}

static void test_switches(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --fast_dev_run data.csv --enable_progress_bar=false "
      "--enable_checkpointing False --enable_model_summary --logger=false",
      "train data.csv");
  assert_int_equal(o.fast_dev_run, 1);
  assert_true(o.no_progress_bar && o.no_checkpointing && !o.no_model_summary);
  assert_true(o.no_logger);
  o = read_line(
      "train --fast_dev_run 3 --no_progress_bar "
      "--no_model_summary=no --logger=csv --deterministic=warn "
      "--replace_sampler_ddp=0",
      "train");
  assert_int_equal(o.fast_dev_run, 3);
  assert_true(o.no_progress_bar && !o.no_model_summary);
  assert_string_equal(o.logger, "csv");
  assert_true(!o.no_logger && o.deterministic && o.no_distributed_sampler);
  o = read_line("train --fast_dev_run=False --barebones yes --logger=true",
                "train");
  assert_int_equal(o.fast_dev_run, 0);
  assert_true(o.barebones && !o.no_logger);
  assert_null(o.logger);
}

// 1.0 is all, 1 is one batch.
static void test_limits(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --limit_train_batches=1.0 --limit_val_batches=1 "
      "--limit_test_batches=0.5 --limit_predict_batches=0.0 "
      "--overfit_batches=3 --val_check_interval=0.25",
      "train");
  assert_true(o.limit_train_batches == (double)INFINITY);
  CHECK_CLOSE(o.limit_val_batches, 1, 0);
  CHECK_CLOSE(o.limit_test_batches, 0.5, 0);
  assert_true(o.limit_predict_batches == 0 && signbit(o.limit_predict_batches));
  CHECK_CLOSE(o.overfit_batches, 3, 0);
  CHECK_CLOSE(o.val_check_interval, 0.25, 0);
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
    o = read_line("train --limit_train_batches=0.5", "train");
    CHECK_CLOSE(o.limit_train_batches, 0.5, 0);
    setlocale(LC_NUMERIC, "C");
  }
}

static void test_refused_lines(void **state)
{
  (void)state;
  LINE_REFUSED("train --max_epoch=5",
               "the trainer has no option --max_epoch; the nearest is "
               "--max_epochs");
  LINE_REFUSED("train --trainer.batch=5",
               "the trainer has no option --trainer.batch; the nearest is --");
  LINE_REFUSED("train --max_epochs=many",
               "`max_epochs` should be an int. Got 'many'.");
  LINE_REFUSED("train --max_epochs=-100",
               "must be a non-negative integer or -1. You passed in -100.");
  LINE_REFUSED("train --max_epochs", "--max_epochs wants a value");
  LINE_REFUSED("train --max_epochs --devices=1", "--max_epochs wants a value");
  LINE_REFUSED("train --gradient_clip_val=big",
               "`gradient_clip_val` should be an int or a float. Got 'big'.");
  LINE_REFUSED("train --limit_val_batches=1.2",
               "You have passed invalid value 1.2 for limit_val_batches");
  LINE_REFUSED("train --limit_val_batches=0x1", "in [0.0, 1.0] or an int");
  LINE_REFUSED("train --barebones=maybe", "true or false. Got 'maybe'");
  LINE_REFUSED("train --precision=7", "Precision 7 is invalid.");
  LINE_REFUSED("train --seed_everything=-1", "an int from 0 to 2^64 - 1");
  LINE_REFUSED("train --sync_batchnorm=true",
               "`sync_batchnorm` should be None or false, as calx has nothing "
               "else. Got 'true'.");
  LINE_REFUSED("train --logger=wandb", "['tensorboard', 'csv', 'json']");
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --config=/no/such.yaml");
  CHECK_STATUS(CALX_NOT_FOUND, calx_trainer_args(&o, &c.argc, c.argv),
               "/no/such.yaml");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_args(NULL, NULL, NULL),
               "options is NULL");
}

// What is wrong stays for the program, with what is behind it.
static void test_error_leaves_the_rest(void **state)
{
  (void)state;
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --devices=2 mine --max_epochs=x more");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_args(&o, &c.argc, c.argv),
               "max_epochs");
  assert_int_equal(c.argc, 4);
  assert_string_equal(c.argv[2], "--max_epochs=x");
  assert_null(c.argv[4]);
  assert_int_equal(o.devices, 0);
}

static void test_own_names(void **state)
{
  (void)state;
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --device=3 --seed=4 --trainer.seed=5");
  const char *const own[] = { "device", "seed", NULL };
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv, .own_names = own));
  assert_int_equal(c.argc, 3);
  assert_string_equal(c.argv[1], "--device=3");
  assert_string_equal(c.argv[2], "--seed=4");
  assert_int_equal(o.seed, 5);
}

static void test_help(void **state)
{
  (void)state;
  char *help = calx_trainer_args_help();
  assert_non_null(strstr(help, "\n  --max_epochs=N "));
  assert_non_null(strstr(help, "\n  --fast_dev_run[=BOOL] "));
  assert_null(strstr(help, "sync_batchnorm"));
  for (const char *line = help; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n';
    assert_true(strcspn(line, "\n") <= 100);
  }
  calx_string_free(help);
}

// The trainer makes the logger that is named.
static void test_named_logger(void **state)
{
  (void)state;
  static const char *const files[][2] = { { "csv", "metrics.csv" },
                                          { "json", "metrics.jsonl" } };
  for (int i = 0; i < 2; i++) {
    char path[128];
    calx_trainer *t = calx_trainer_new(.max_epochs = 1, .logger = files[i][0],
                                       .default_root_dir = folder);
    CHECK_STATUS_OK(calx_trainer_error(t));
    calx_logger *logger = calx_trainer_logger(t, 0);
    CHECK_STATUS_OK(calx_logger_log_metrics(
        logger, &(calx_logged_value){ .name = "a", .value = 1 }, 1, 0));
    CHECK_STATUS_OK(calx_logger_save(logger));
    snprintf(path, sizeof path, "%s/lightning_logs/version_%d/%s", folder, i,
             files[i][1]);
    assert_int_equal(access(path, F_OK), 0);
    calx_trainer_free(t);
  }
}

// ---- the environment --------------------------------------------------------

static calx_trainer_options read_line_of(calx_trainer_options o,
                                         const char *text)
{
  command c = command_of(text);
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv));
  return o;
}

// Command line, program, environment, in this order.
static void test_environment(void **state)
{
  (void)state;
  setenv("CALX_TRAINER_MAX_EPOCHS", "9", 1);
  setenv("CALX_TRAINER_LIMIT_TRAIN_BATCHES", "0.5", 1);
  setenv("CALX_TRAINER_ENABLE_PROGRESS_BAR", "false", 1);
  setenv("CALX_TRAINER_DEVICES", "", 1);
  calx_trainer_options o = read_line("train", "train");
  assert_int_equal(o.max_epochs, 9);
  CHECK_CLOSE(o.limit_train_batches, 0.5, 0);
  assert_true(o.no_progress_bar);
  o = read_line_of((calx_trainer_options){ .size = sizeof o, .max_epochs = 3 },
                   "train --limit_train_batches=1.0 --enable_progress_bar");
  assert_int_equal(o.max_epochs, 3);
  assert_true(o.limit_train_batches == (double)INFINITY);
  assert_false(o.no_progress_bar);
  o = read_line_of(CALX_TRAINER_OPTIONS(.max_epochs = 0),
                   "train --max_steps=2");
  assert_true(o.max_epochs == INT64_MIN);
  o = read_line_of(CALX_TRAINER_OPTIONS(.no_environment = true), "train");
  assert_int_equal(o.max_epochs, 0);
  unsetenv("CALX_TRAINER_LIMIT_TRAIN_BATCHES");
  unsetenv("CALX_TRAINER_ENABLE_PROGRESS_BAR");
  unsetenv("CALX_TRAINER_DEVICES");
  unsetenv("CALX_TRAINER_MAX_EPOCHS");
}

static void test_environment_of_new(void **state)
{
  (void)state;
  setenv("CALX_TRAINER_PRECISION", "7", 1);
  calx_trainer *t = calx_trainer_new(.max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "CALX_TRAINER_PRECISION: Precision 7 is invalid");
  calx_trainer_free(t);
  t = calx_trainer_new(.max_epochs = 1, .precision = "32");
  CHECK_STATUS_OK(calx_trainer_error(t));
  calx_trainer_free(t);
  unsetenv("CALX_TRAINER_PRECISION");
  setenv("CALX_TRAINER_FAST_DEV_RUN", "2", 1);
  setenv("CALX_TRAINER_MAX_EPOCH", "2", 1);
  for (int i = 0; i < 2; i++) {
    t = calx_trainer_new(.max_epochs = 1);
    CHECK_STATUS_OK(calx_trainer_error(t));
    calx_trainer_free(t);
  }
  assert_non_null(strstr(lines, "using 2 batch(es)"));
  const char *unknown = strstr(lines,
                               "CALX_TRAINER_MAX_EPOCH is no option of the "
                               "trainer; the nearest is "
                               "CALX_TRAINER_MAX_EPOCHS");
  assert_non_null(unknown);
  assert_null(strstr(unknown + 1, "CALX_TRAINER_MAX_EPOCH is"));
  unsetenv("CALX_TRAINER_FAST_DEV_RUN");
  unsetenv("CALX_TRAINER_MAX_EPOCH");
}

static void check_words(char *word, const char *error)
{
  char program[] = "train", *argv[] = { program, word, NULL };
  calx_trainer *t =
      calx_trainer_from_args(word != NULL ? 2 : 1, argv, .max_epochs = 1);
  if (error == NULL) {
    CHECK_STATUS_OK(calx_trainer_error(t));
  } else {
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), error);
  }
  assert_int_equal(calx_trainer_exit_code(t), error != NULL);
  calx_trainer_free(t);
}

static void test_from_args(void **state)
{
  (void)state;
  char option[] = "--precision=16", value[] = "--precision=7", word[] = "data",
       near[] = "--max_epoch=2", fast[] = "--fast_dev_run=3";
  check_words(NULL, NULL);
  check_words(option, NULL);
  check_words(value, "Precision 7 is invalid");
  check_words(word, "'data' is no option of the trainer");
  check_words(near, "the nearest is --max_epochs");
  check_words(fast, NULL);
  assert_non_null(strstr(lines, "using 3 batch(es)"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEXTS_TEST(test_seeds),
    TEXTS_TEST(test_forms),
    TEXTS_TEST(test_switches),
    TEXTS_TEST(test_limits),
    TEXTS_TEST(test_refused_lines),
    TEXTS_TEST(test_error_leaves_the_rest),
    TEXTS_TEST(test_own_names),
    TEXTS_TEST(test_help),
    TEXTS_TEST(test_named_logger),
    TEXTS_TEST(test_environment),
    TEXTS_TEST(test_environment_of_new),
    TEXTS_TEST(test_from_args),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
