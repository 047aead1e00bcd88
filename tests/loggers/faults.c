// faults: each allocation of each logger fails once. The call says so, nothing
// is left over, and the files that are there are whole.
#include "folders.h"

// The first failure ends it, as in a program.
static calx_status *use(calx_logger *l)
{
  const calx_logged_value row[] = { V("b", 1), V("a", 2) }, late = V("c", 3);
  const calx_hyperparameter opt = CALX_HYPERPARAMETER("opt", "adam");
  CALX_TRY(calx_logger_log_hyperparams(l, &opt, 1));
  CALX_TRY(calx_logger_log_metrics(l, row, 2, 0));
  CALX_TRY(calx_logger_save(l));
  CALX_TRY(calx_logger_log_metrics(l, &late, 1, 1));
  CALX_TRY(calx_logger_save(l));
  CALX_TRY(calx_logger_log_metrics(l, row, 2, 2));
  return calx_logger_finalize(l, "success");
}

static calx_status *use_html(calx_logger *l)
{
  CALX_TRY(calx_logger_log_text(l, "summary", "fc1", 0));
  CALX_TRY(calx_logger_log_text(l, "summary", "fc2", 0));
  return calx_logger_finalize(l, "failed");
}

static calx_status *use_tensorboard(calx_logger *l)
{
  const double values[] = { 1, 2, 3 };
  const uint8_t pixel[3] = { 1, 2, 3 };
  CALX_TRY(calx_tensorboard_add_text(l, "t", "x", 0));
  CALX_TRY(calx_logger_log_text(l, "u", "a\nb", 0));
  CALX_TRY(calx_tensorboard_add_histogram(l, "h", values, 3, 0));
  return calx_tensorboard_add_image(l, "i", pixel, 1, 1, 3, 0);
}

// False: nothing failed any more.
static bool fails_at(long n, int kind)
{
  cx_alloc_fail_at(n);
  calx_logger *l =
      kind == 0   ? calx_csv_logger(folder, .version = "0", .prefix = "p")
      : kind == 1 ? calx_json_logger(folder, .version = "1", .prefix = "p")
      : kind == 2 ? calx_tensorboard_logger(folder, .prefix = "p")
                  : calx_html_logger(folder, .version = "3", .title = "t");
  calx_status *status = use(l);
  if (status == NULL && kind == 2) status = use_tensorboard(l);
  if (status == NULL && kind == 3) status = use_html(l);
  cx_alloc_fail_at(-1);
  const bool failed = status != NULL;
  if (failed) {
    assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
  }
  calx_status_free(status);
  calx_logger_free(l);
  return failed;
}

static void fail_all(int kind)
{
  long n = 0;
  calx_log_set(keep_line, NULL);
  while (fails_at(n, kind)) n++;
  calx_log_set(NULL, NULL);
  assert_in_range(n, 10, 1000);
}

static void test_csv(void **state)
{
  (void)state;
  fail_all(0);
  check_file("lightning_logs/version_0/metrics.csv",
             "p-a,p-b,p-c,step\r\n2.0,1.0,,0\r\n,,3.0,1\r\n2.0,1.0,,2\r\n");
  check_file("lightning_logs/version_0/hparams.yaml", "opt: adam\n");
}

static void test_json(void **state)
{
  (void)state;
  fail_all(1);
}

static void test_tensorboard(void **state)
{
  (void)state;
  fail_all(2);
}

static void test_html(void **state)
{
  (void)state;
  fail_all(3);
  char *page = content("lightning_logs/version_3/report.html", NULL);
  assert_non_null(strstr(page, "failed</span>"));
  assert_non_null(strstr(page, "</html>"));
  test_free(page);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FOLDER_TEST(test_csv),
    FOLDER_TEST(test_json),
    FOLDER_TEST(test_tensorboard),
    FOLDER_TEST(test_html),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
