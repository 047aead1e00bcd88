// csv: metrics.csv and hparams.yaml are Lightning's, byte for byte; folders,
// versions and failures.
//
// The calls are those of lightning_csv.py, which wrote lightning_csv.h.
#include <sys/wait.h>

#include "folders.h"
#include "lightning_csv.h"

#define METRICS "lightning_logs/version_0/metrics.csv"
#define SAVE(logger) CHECK_STATUS_OK(calx_logger_save(logger))

// ---- bytes ------------------------------------------------------------------

static void end_with(calx_logger *logger, const char *wanted)
{
  calx_logger_free(logger);
  check_file(METRICS, wanted);
}

static void test_plain(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 0, V("loss", (double)0.1F), { "epoch", 0, true });
  LOG(l, 1, V("loss", 0.25), { "epoch", 0, true });
  assert_false(is_there(METRICS));
  SAVE(l);
  end_with(l, lightning_plain);
}

static void test_row_D9_new_column(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 4, V("train_loss", (double)2.2652576F), { "epoch", 0, true });
  SAVE(l);
  LOG(l, 9, V("val_loss", (double)2.2304785F), V("val_acc", (double)0.314F),
      { "epoch", 0, true });
  SAVE(l);
  LOG(l, 9, V("a", 1.5), { "epoch", 1, true });
  LOG(l, 20, V("test_loss", 1e-5), { "epoch", 2, true });
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  end_with(l, lightning_late_key);
}

static void test_numbers(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 0, V("a", 3.0), { "b", 3, true }, { "c", -7, true }, V("d", 1e16),
      V("e", 123456789012345.0), V("f", 1e-4), V("g", 1e-5), V("h", 5e-324),
      V("i", 1.7976931348623157e308), V("j", ldexp(1, -1017)),
      V("k", 9007199254740993.0), V("l", 0.1 + 0.2));
  SAVE(l);
  end_with(l, lightning_numbers);
}

static void test_not_finite(void **state)
{
  (void)state;
  const double inf = HUGE_VAL, nan_value = nan("");
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 0, V("a", nan_value), V("b", inf), V("c", -inf));
  LOG(l, 1, V("a", -0.0));
  SAVE(l);
  end_with(l, lightning_not_finite);
}

static void test_prefix(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder, .prefix = "run");
  LOG(l, 0, V("loss", 0.5), { "step", 7, true });
  LOG(l, 1, V("loss", 0.25));
  SAVE(l);
  end_with(l, lightning_prefix);
}

static void test_step(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 3, V("step", 99), V("loss", 0.5), V("loss", 1.0));
  SAVE(l);
  end_with(l, lightning_step_value);
}

static void test_only_steps(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  CHECK_STATUS_OK(calx_logger_log_metrics(l, NULL, 0, 0));
  CHECK_STATUS_OK(calx_logger_log_metrics(l, NULL, 0, 1));
  SAVE(l);
  end_with(l, lightning_only_steps);
}

// Rows 0 and 1 are written after step 1, 2 and 3 after step 3; 4 is lost.
static void test_flush(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder, .flush_logs_every_n_steps = 2);
  LOG(l, 0, V("a", 1));
  assert_false(is_there(METRICS));
  LOG(l, 1, V("a", 2));
  assert_true(is_there(METRICS));
  LOG(l, 2, V("b", 3));
  LOG(l, 3, V("b", 4));
  LOG(l, 4, V("c", 5));
  end_with(l, lightning_flush);
}

static void test_names(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 0, V("a,b", 1), V("say \"x\"", 2), V("two\nlines", 3), V("a/b", 4),
      V("\xc3\xa9", 5), V("Z", 6), V("_", 7), V("cr\r", 8));
  SAVE(l);
  LOG(l, 1, V("later", 9));
  SAVE(l);
  end_with(l, lightning_names);
}

// ---- folders ----------------------------------------------------------------

static void test_row_D9_again(void **state)
{
  (void)state;
  calx_log_set(keep_line, NULL);
  said[0] = '\0';
  calx_logger *l = calx_csv_logger(folder, .version = "3");
  LOG(l, 0, V("a", 1));
  SAVE(l);
  calx_logger_free(l);
  assert_string_equal(said, "");
  l = calx_csv_logger(folder, .version = "3");
  assert_true(is_there("lightning_logs/version_3/metrics.csv"));
  LOG(l, 0, V("b", 2));
  assert_false(is_there("lightning_logs/version_3/metrics.csv"));
  SAVE(l);
  calx_log_set(NULL, NULL);
  char wanted[512];
  snprintf(wanted, sizeof wanted,
           "Experiment logs directory %s/lightning_logs/version_3 exists and "
           "is not empty. Previous log files in this directory will be deleted "
           "when the new ones are saved!",
           folder);
  assert_string_equal(said, wanted);
  calx_logger_free(l);
  check_file("lightning_logs/version_3/metrics.csv", lightning_again);
}

// D9: 0, 1, one that is no number and another folder: the next is 2.
static void test_row_D9(void **state)
{
  (void)state;
  make_folder("runs");
  make_folder("runs/version_0");
  make_folder("runs/version_1");
  make_folder("runs/version_nonumber");
  make_folder("runs/other");
  put_file("runs/version_7", "a file is no version");
  calx_logger *l = calx_csv_logger(folder, .name = "runs");
  assert_string_equal(calx_logger_version(l), "2");
  assert_string_equal(calx_logger_name(l), "runs");
  assert_string_equal(calx_logger_save_dir(l), folder);
  assert_string_equal(calx_logger_log_dir(l), in_folder("runs/version_2"));
  SAVE(l);
  assert_true(is_there("runs/version_2"));
  calx_logger_free(l);
  make_folder("runs/version_11_best");
  l = calx_csv_logger(in_folder(""), .name = "runs");
  assert_string_equal(calx_logger_version(l), "12");
  calx_logger_free(l);
  l = calx_csv_logger(folder, .name = "", .version = "best");
  assert_string_equal(calx_logger_version(l), "best");
  assert_string_equal(calx_logger_log_dir(l), in_folder("best"));
  calx_logger_free(l);
}

// D10: nothing was logged, so there is no folder.
static void test_row_D10(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  assert_string_equal(calx_logger_version(l), "0");
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  assert_false(is_there("lightning_logs"));
}

static void test_saved_empty(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  SAVE(l);
  SAVE(l);
  assert_true(is_there("lightning_logs/version_0"));
  end_with(l, lightning_emptied);
}

// ---- hyperparameters --------------------------------------------------------

#define HPARAMS "lightning_logs/version_0/hparams.yaml"
#define HP CALX_HYPERPARAMETER

static void test_hyperparameters(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  CHECK_STATUS_OK(calx_logger_log_hyperparams(l, NULL, 0));
  check_file(HPARAMS, lightning_yaml_empty);
  CHECK_STATUS_OK(calx_logger_log_hyperparams(
      l, (calx_hyperparameter[]){ HP("momentum", 0.5), HP("lr", 1) }, 2));
  CHECK_STATUS_OK(calx_logger_log_hyperparams(
      l, (calx_hyperparameter[]){ HP("lr", 0.01) }, 1));
  check_file(HPARAMS, lightning_yaml_usual);
  calx_logger_free(l);
}

static void test_hyperparameter_kinds(void **state)
{
  (void)state;
  const double inf = HUGE_VAL, nan_value = nan("");
  const calx_hyperparameter all[] = {
    HP("eps", 1e-08),
    HP("n", 3),
    HP("big", 1e16),
    HP("b", (bool)true),
    HP("none", (char *)NULL),
    HP("opt", "adam"),
    HP("path", "a/b c"),
    HP("num", "1.5"),
    HP("yes", "no"),
    HP("colon", "a: b"),
    HP("q", "it's"),
    HP("u", "\xc3\xa9"),
    HP("empty", ""),
    HP("dash", "- x"),
    HP("date", "2020-01-01"),
    HP("inf", inf),
    HP("ninf", -inf),
    HP("nan", nan_value),
    HP("a,b", 1),
    HP("x#", "a #b"),
    HP("true", "x"),
    HP("v", "version_3"),
    HP("hex", "0x1f"),
    HP("h", "3abc"),
    HP("brace", "{}"),
  };
  calx_logger *l = calx_csv_logger(folder);
  CHECK_STATUS_OK(
      calx_logger_log_hyperparams(l, all, sizeof all / sizeof *all));
  calx_logger_free(l);
  check_file(HPARAMS, lightning_yaml_kinds);
}

// ---- failures ---------------------------------------------------------------

static void test_bad_options(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(l),
               "calx_csv_logger: save_dir is NULL");
  assert_null(calx_logger_log_dir(l));
  calx_logger_free(l);
  l = calx_csv_logger(folder, .flush_logs_every_n_steps = -1);
  assert_non_null(calx_logger_error(l));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_finalize(l, "failed"),
               ".flush_logs_every_n_steps is -1");
  calx_logger_free(l);
  l = calx_csv_logger(folder, .version = "");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(l), ".version is empty");
  calx_logger_free(l);
}

static void test_null(void **state)
{
  (void)state;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(NULL), "NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_log_metrics(NULL, NULL, 0, 0),
               "NULL");
  assert_null(calx_logger_name(NULL));
  calx_logger_free(NULL);
  calx_logger *l = calx_csv_logger(folder);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_log_metrics(l, NULL, 1, 0),
               "the values are NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_logger_log_metrics(
                   l, (calx_logged_value[]){ V("a", 1), V(NULL, 2) }, 2, 0),
               "value 1 of 2 has no name");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_logger_log_hyperparams(l, &(calx_hyperparameter){ 0 }, 1),
               "value 0 of 1 has no name");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_finalize(l, NULL), "status");
  calx_logger_free(l);
  assert_false(is_there("lightning_logs"));
}

// As a user who may not write the folder; root may write all. The folders above
// may be root's alone, so it is the working directory.
static int refused_without_rights(void)
{
  if (chdir(folder) != 0) return 2;
  if (geteuid() == 0 && setuid(65534) != 0) return 3;
  calx_logger *l = calx_csv_logger(".");
  calx_status *status = calx_logger_save(l);
  return calx_status_code(status) != CALX_PERMISSION_DENIED ||
         strstr(calx_status_message(status), "cannot make folder") == NULL;
}

static void test_bad_folder(void **state)
{
  (void)state;
  put_file("file", "");
  calx_logger *l = calx_csv_logger(in_folder("file"));
  CHECK_STATUS(CALX_NOT_FOUND, calx_logger_save(l), "cannot make folder",
               "name 'lightning_logs'");
  calx_logger_free(l);
  assert_int_equal(chmod(folder, 0555), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(refused_without_rights());
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

// The rows wait for a save that succeeds.
static void test_file_of_others(void **state)
{
  (void)state;
  calx_logger *l = calx_csv_logger(folder);
  LOG(l, 0, V("a", 1));
  SAVE(l);
  put_file(METRICS, "x,y\n1,2\n");
  LOG(l, 1, V("b", 2));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_logger_save(l), METRICS,
               "other columns");
  check_file(METRICS, "x,y\n1,2\n");
  assert_int_equal(remove(in_folder(METRICS)), 0);
  SAVE(l);
  end_with(l, "a,b,step\r\n,2.0,1\r\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FOLDER_TEST(test_plain),
    FOLDER_TEST(test_row_D9_new_column),
    FOLDER_TEST(test_numbers),
    FOLDER_TEST(test_not_finite),
    FOLDER_TEST(test_prefix),
    FOLDER_TEST(test_step),
    FOLDER_TEST(test_only_steps),
    FOLDER_TEST(test_flush),
    FOLDER_TEST(test_names),
    FOLDER_TEST(test_row_D9_again),
    FOLDER_TEST(test_row_D9),
    FOLDER_TEST(test_row_D10),
    FOLDER_TEST(test_saved_empty),
    FOLDER_TEST(test_hyperparameters),
    FOLDER_TEST(test_hyperparameter_kinds),
    FOLDER_TEST(test_bad_options),
    FOLDER_TEST(test_null),
    FOLDER_TEST(test_bad_folder),
    FOLDER_TEST(test_file_of_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
