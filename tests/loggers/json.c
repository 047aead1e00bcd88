// json: metrics.jsonl, and a program's own logger.
#include "folders.h"

#define METRICS "lightning_logs/version_0/metrics.jsonl"

static void test_lines(void **state)
{
  (void)state;
  const double inf = HUGE_VAL, nan_value = nan("");
  calx_logger *l = calx_json_logger(folder);
  LOG(l, 4, V("loss", 0.1), { "epoch", 0, true }, V("b \"x\"\n", 1e-5));
  check_file(METRICS,
             "{\"step\": 4, \"epoch\": 0, \"loss\": 0.1, "
             "\"b \\\"x\\\"\\u000a\": 1e-05}\n");
  LOG(l, 5, V("a", nan_value), V("b", inf), V("c", -inf), V("c", 2),
      V("step", 9));
  CHECK_STATUS_OK(calx_logger_log_hyperparams(
      l, (calx_hyperparameter[]){ CALX_HYPERPARAMETER("lr", 0.01) }, 1));
  CHECK_STATUS_OK(calx_logger_finalize(l, "failed"));
  calx_logger_free(l);
  check_file(
      METRICS,
      "{\"step\": 4, \"epoch\": 0, \"loss\": 0.1, "
      "\"b \\\"x\\\"\\u000a\": 1e-05}\n"
      "{\"step\": 5, \"a\": \"NaN\", \"b\": \"Infinity\", \"c\": 2.0}\n");
  check_file("lightning_logs/version_0/hparams.yaml", "lr: 0.01\n");
}

static void test_options(void **state)
{
  (void)state;
  calx_logger *l =
      calx_json_logger(folder, .name = "n", .version = "v", .prefix = "p");
  LOG(l, 0, V("step", 9));
  calx_logger_free(l);
  check_file("n/v/metrics.jsonl", "{\"step\": 0, \"p-step\": 9.0}\n");
  l = calx_json_logger(folder);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  assert_false(is_there("lightning_logs"));
  l = calx_json_logger(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(l), "save_dir is NULL");
  calx_logger_free(l);
}

// ---- a program's own --------------------------------------------------------

typedef struct own {
  double last;
  int64_t step;
  size_t hyperparameters;
  int saved;
  char status[16];
  bool freed;
} own;

static calx_status *own_metrics(void *user, const calx_logged_value *values,
                                size_t count, int64_t step)
{
  own *o = user;
  if (step < 0) return calx_status_new(CALX_OUT_OF_RANGE, "no such step");
  if (count > 0) o->last = values[count - 1].value;
  o->step = step;
  return NULL;
}

static calx_status *own_hyperparameters(void *user,
                                        const calx_hyperparameter *values,
                                        size_t count)
{
  (void)values;
  ((own *)user)->hyperparameters += count;
  return NULL;
}

static calx_status *own_save(void *user)
{
  ((own *)user)->saved++;
  return NULL;
}

static calx_status *own_finalize(void *user, const char *status)
{
  own *o = user;
  snprintf(o->status, sizeof o->status, "%s", status);
  return NULL;
}

static const char *own_name(void *user)
{
  (void)user;
  return "mine";
}

static void own_free(void *user)
{
  ((own *)user)->freed = true;
}

static void test_own(void **state)
{
  (void)state;
  own o = { 0 };
  const calx_logger_functions functions = {
    .size = sizeof functions,
    .log_metrics = own_metrics,
    .log_hyperparams = own_hyperparameters,
    .save = own_save,
    .finalize = own_finalize,
    .name = own_name,
    .free = own_free,
  };
  calx_logger *l = calx_logger_new(&functions, &o);
  assert_null(calx_logger_error(l));
  LOG(l, 7, V("a", 1), V("b", 2.5));
  CHECK_STATUS(CALX_OUT_OF_RANGE, calx_logger_log_metrics(l, NULL, 0, -1),
               "no such step");
  CHECK_STATUS_OK(calx_logger_log_hyperparams(
      l, (calx_hyperparameter[]){ CALX_HYPERPARAMETER("lr", 0.01) }, 1));
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  assert_string_equal(calx_logger_name(l), "mine");
  assert_null(calx_logger_log_dir(l));
  calx_logger_free(l);
  assert_true(o.freed && o.last == 2.5 && o.step == 7 && o.saved == 1);
  assert_int_equal(o.hyperparameters, 1);
  assert_string_equal(o.status, "success");
}

static void test_own_without(void **state)
{
  (void)state;
  const calx_logger_functions none = { .size = sizeof none };
  calx_logger *l = calx_logger_new(&none, NULL);
  LOG(l, 0, V("a", 1));
  CHECK_STATUS_OK(calx_logger_log_hyperparams(l, NULL, 0));
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  l = calx_logger_new(NULL, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(l), "are NULL");
  calx_logger_free(l);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FOLDER_TEST(test_lines),
    FOLDER_TEST(test_options),
    FOLDER_TEST(test_own),
    FOLDER_TEST(test_own_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
