// PyTorch/XLA's acceptance behaviours of its metrics, 29 to 34, in numbers, on
// real plugins.
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "lazy/engine.h"

static char *step_report(void)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = calx_take(VECTOR(1, 2, 3));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  for (int i = 0; i < 2; i++) {
    step = calx_scope_begin();
    calx_assign(x, calx_add(x, 1.5));
    calx_sync(NULL);
    calx_tensor *host = calx_cpu(x);
    assert_non_null(calx_host_data(host));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  calx_release(x);
  char *report = calx_metrics_report();
  assert_non_null(report);
  return report;
}

static void has(const char *report, const char *kind, const char *name)
{
  char line[128];
  snprintf(line, sizeof line, "%s: %s\n", kind, name);
  const char *first = strstr(report, line);
  if (first == NULL) fail_msg("no '%s: %s' in:\n%s", kind, name, report);
  assert_null(strstr(first + 1, line));
}

static void test_b29_clear(void **state)
{
  (void)state;
  calx_string_free(step_report());
  assert_true(calx_counter_value("xla::add") == 2);
  calx_metrics_clear();
  calx_metric_data data;
  assert_false(calx_metric_value("ExecuteTime", &data));
  assert_int_equal(calx_counter_value("MarkStep"), 0);
  assert_int_equal(calx_counter_names(NULL, 0), 0);
  assert_int_equal(calx_metric_names(NULL, 0), 0);
  calx_string_free(step_report());
  assert_true(calx_counter_value("xla::add") == 2);
}

static void test_b30_report(void **state)
{
  (void)state;
  char *report = step_report();
  static const char *const metrics[] = {
    "CompileTime",           "DeviceLockWait",
    "ExecuteTime",           "InboundData",
    "InputOutputAliasCount", "IrValueTensorToXlaData",
    "OutboundData",          "TensorToData",
    "TensorsGraphSize",      "TransferFromDeviceTime",
    "TransferToDeviceTime"
  };
  for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
    has(report, "Metric", metrics[i]);
  }
  static const char *const counters[] = {
    "CachedCompile",      "CreateDataHandles",
    "CreateXlaTensor",    "DestroyXlaTensor",
    "DestroyDataHandles", "DeviceDataCacheMiss",
    "ExecuteComputation", "MarkStep",
    "UncachedCompile",    "xla::add"
  };
  for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
    has(report, "Counter", counters[i]);
  }
  calx_string_free(report);
  assert_int_equal(calx_counter_value("CachedCompile"), 1);
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_int_equal(calx_counter_value("ExecuteComputation"), 2);
  // One packed upload of 1.5, which does not change.
  assert_int_equal(calx_counter_value("DeviceDataCacheMiss"), 1);
}

static void test_b31_short_report(void **state)
{
  (void)state;
  calx_string_free(step_report());
  char *report = calx_metrics_short_report(NULL, NULL);
  static const char *const there[] = { "CompileTime", "ExecuteTime",
                                       "TransferToDeviceTime",
                                       "TransferFromDeviceTime" };
  for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
    has(report, "Metric", there[i]);
  }
  has(report, "Counter", "MarkStep");
  has(report, "Counter", "CachedCompile");
  assert_null(strstr(report, "TensorToData"));
  assert_null(strstr(report, "aten::"));
  calx_string_free(report);
  calx_scope *step = calx_scope_begin();
  calx_item(VECTOR(1));
  CHECK_STATUS_OK(calx_scope_end(step));
  report = calx_metrics_short_report((const char *const[]){ NULL },
                                     (const char *const[]){ NULL });
  assert_string_equal(report,
                      "Counter: aten::_local_scalar_dense\n  Value: 1\n");
  calx_string_free(report);
}

static void test_b32_fallbacks(void **state)
{
  (void)state;
  const char *names[2];
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = VECTOR(1, 2);
  calx_tensor *both = calx_cat(((calx_tensor *[]){ x, calx_add(x, x) }), 2, 0);
  calx_sync(both);
  CHECK_VALUES(both, 0, 1, 2, 2, 4);
  assert_int_equal(calx_fallback_ops(names, 2), 0);
  CHECK_CLOSE(calx_item(calx_sum(both)), 9, 0);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(calx_fallback_ops(names, 2), 1);
  assert_string_equal(names[0], "aten::_local_scalar_dense");
  assert_int_equal(calx_counter_value(names[0]), 1);
}

// A plugin may tell those who asked to be called later than those who wait.
static void wait_for_executions(int64_t n)
{
  for (int i = 0; i < 5000 && engine_samples("ExecuteTime") < n; i++) {
    usleep(1000);
  }
  assert_int_equal(engine_samples("ExecuteTime"), n);
}

// The execution is not timed shorter than it is: a product that takes much
// longer than all around it has more than half of the time.
static void test_b33_execute_time(void **state)
{
  (void)state;
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = calx_randn(CALX_SHAPE(700, 700)), *y = x;
  calx_metrics_clear();
  calx_sync(x);
  calx_item(calx_sum(x));
  wait_for_executions(2);
  double waited = 0, executed = 0;
  // The first compiles. A busy machine may keep this thread from looking at its
  // clock, so one of the others is enough.
  for (int k = 0; k < 6 && !(k > 0 && executed > 0.5 * waited); k++) {
    for (int i = 0; i < 12; i++) y = calx_matmul(x, y);
    calx_metrics_clear();
    int64_t start = cx_now_ns();
    calx_sync(x, y);
    CHECK_STATUS_OK(calx_device_wait(NULL));
    waited = (double)(cx_now_ns() - start) / 1e9;
    wait_for_executions(1);
    executed = engine_sum("ExecuteTime");
  }
  if (!(executed > 0.5 * waited)) {
    fail_msg("executed %g s of %g s", executed, waited);
  }
  CHECK_STATUS_OK(calx_scope_end(step));
}

// ---- CALX_METRICS_FILE ------------------------------------------------------

static int count(const char *text, const char *piece)
{
  int n = 0;
  while ((text = strstr(text, piece)) != NULL) {
    n++;
    text++;
  }
  return n;
}

static void test_metrics_file(void **state)
{
  (void)state;
  char path[] = "/tmp/calx_metrics_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  setenv("CALX_METRICS_FILE", path, 1);
  calx_string_free(step_report());
  unsetenv("CALX_METRICS_FILE");
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 1 << 20, &text, &size));
  unlink(path);
  // Three syncs, each with a whole report; MarkStep counts up in them.
  assert_int_equal(count(text, "[MetricsData; step="), 3);
  assert_int_equal(count(text, "Counter: MarkStep\n  Value: "), 3);
  assert_int_equal(count(text, "Counter: MarkStep\n  Value: 2\n"), 1);
  assert_int_equal(strncmp(text, "[MetricsData; step=", 19), 0);
  assert_int_equal(text[size - 1], '\n');
  cx_free(text);
}

// Told once, and nothing else comes of it.
static void test_metrics_file_unwritable(void **state)
{
  (void)state;
  setenv("XLA_METRICS_FILE", "/nonexistent/metrics", 1);
  calx_string_free(step_report());
  unsetenv("XLA_METRICS_FILE");
  assert_true(lines_with("cannot write '/nonexistent/metrics'") >= 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    ENGINE_TEST(test_b29_clear),
    ENGINE_TEST(test_b30_report),
    ENGINE_TEST(test_b31_short_report),
    ENGINE_TEST(test_b32_fallbacks),
    ENGINE_TEST(test_b33_execute_time),
    ENGINE_TEST(test_metrics_file),
    ENGINE_TEST(test_metrics_file_unwritable),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
