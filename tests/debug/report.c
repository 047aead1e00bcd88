// The metrics report and single values, byte for byte.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/text.h"
#include "calx/debug.h"

CX_METRIC(seconds, "Seconds", CX_UNIT_NS);
CX_METRIC(data, "Data", CX_UNIT_BYTES);
CX_METRIC(size, "ASize", CX_UNIT_NONE);
CX_COUNTER(zebra, "Zebra");
CX_COUNTER(ant, "Ant");

static int clear(void **state)
{
  (void)state;
  calx_metrics_clear();
  return 0;
}

static void expect_report(const char *wanted)
{
  char *report = calx_metrics_report();
  assert_non_null(report);
  assert_string_equal(report, wanted);
  calx_string_free(report);
}

// The line of a report that starts with this.
static void expect_line(const char *start, const char *rest)
{
  char *report = calx_metrics_report();
  assert_non_null(report);
  char *line = strstr(report, start);
  assert_non_null(line);
  line += strlen(start);
  line[strcspn(line, "\n")] = '\0';
  assert_string_equal(line, rest);
  calx_string_free(report);
}

static void test_empty(void **state)
{
  (void)state;
  expect_report("");
}

static void test_order_and_form(void **state)
{
  (void)state;
  cx_counter_add(&zebra, 2);
  cx_counter_add(&ant, 41);
  cx_counter_add(&ant, 1);
  cx_metric_add(&size, 3);
  cx_metric_add(&data, 2048);
  expect_report(
      "Metric: ASize\n"
      "  TotalSamples: 1\n"
      "  Accumulator: 3.00\n"
      "  Percentiles: 1%=3.00; 5%=3.00; 10%=3.00; 20%=3.00; 50%=3.00; "
      "80%=3.00; 90%=3.00; 95%=3.00; 99%=3.00\n"
      "Metric: Data\n"
      "  TotalSamples: 1\n"
      "  Accumulator: 2.00KB\n"
      "  Percentiles: 1%=2.00KB; 5%=2.00KB; 10%=2.00KB; 20%=2.00KB; "
      "50%=2.00KB; 80%=2.00KB; 90%=2.00KB; 95%=2.00KB; 99%=2.00KB\n"
      "Counter: Ant\n"
      "  Value: 42\n"
      "Counter: Zebra\n"
      "  Value: 2\n");
}

// The times that PyTorch/XLA's own routine gets wrong are among them.
static void test_times(void **state)
{
  (void)state;
  static const struct {
    double ns;
    const char *text;
  } cases[] = {
    { 0, "000.000us" },
    { 1, "000.001us" },
    { 999.6, "001.000us" },
    { 32778, "032.778us" },
    { 1032778, "001ms032.778us" },
    { 1.5e9, "01s500ms000.000us" },
    { 59.999e9, "59s999ms000.000us" },
    { 96e9, "01m36s000ms000.000us" },
    { 59999999999.6, "01m00s000ms000.000us" },
    { 369401746001.0, "06m09s401ms746.001us" },
    { 1697619740.0, "01s697ms619.740us" },
    { 3600e9, "01h00m00s000ms000.000us" },
    { 90061001002003.0, "01d01h01m01s001ms002.003us" },
    { (double)NAN, "000.000us" },
    { (double)INFINITY, "000.000us" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_metrics_clear();
    cx_metric_add(&seconds, cases[i].ns);
    expect_line("Accumulator: ", cases[i].text);
  }
}

static void test_bytes(void **state)
{
  (void)state;
  static const struct {
    double bytes;
    const char *text;
  } cases[] = {
    { 0, "0.00B" },           { 1023, "1023.00B" },
    { 1024, "1.00KB" },       { 1300234, "1.24MB" },
    { 1073741824, "1.00GB" }, { 1125899906842624e4, "10000.00PB" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_metrics_clear();
    cx_metric_add(&data, cases[i].bytes);
    expect_line("Accumulator: ", cases[i].text);
  }
}

// The element floor(p * n) of 0, 1, … 9, added in no order.
static void test_percentiles(void **state)
{
  (void)state;
  for (int i = 0; i < 10; i++) cx_metric_add(&size, (i * 7) % 10);
  expect_line("Percentiles: ",
              "1%=0.00; 5%=0.00; 10%=1.00; 20%=2.00; 50%=5.00; 80%=8.00; "
              "90%=9.00; 95%=9.00; 99%=9.00");
}

// Total and sum are of all samples, percentiles of the newest 1,024.
static void test_window(void **state)
{
  (void)state;
  for (int i = 0; i < 1024 + 10; i++) cx_metric_add(&size, i < 10 ? -1e6 : i);
  expect_line("TotalSamples: ", "1034");
  expect_line("Percentiles: 1%=",
              "20.00; 5%=61.00; 10%=112.00; 20%=214.00; "
              "50%=522.00; 80%=829.00; 90%=931.00; "
              "95%=982.00; 99%=1023.00");
}

// Over the time from the oldest sample to the newest.
static void test_rates(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) cx_metric_add(&seconds, 5e8);
  for (int i = 0; i < 3; i++)
    seconds.times[i] = 1000000000 * (1 + 2 * (int64_t)i);
  expect_line("  ValueRate: ", "375ms000.000us / second");
  expect_line("  Rate: ", "0.75 / second");
  for (int i = 0; i < 3; i++) seconds.times[i] = 7;
  char *report = calx_metrics_report();
  assert_null(strstr(report, "Rate"));
  calx_string_free(report);
}

// As many samples as the environment says, of a metric that is new to it.
static void test_window_size(void **state)
{
  (void)state;
  CX_METRIC(few, "Few", CX_UNIT_NONE);
  CX_METRIC(fewer, "Fewer", CX_UNIT_NONE);
  CX_METRIC(usual, "Usual", CX_UNIT_NONE);
  setenv("XLA_METRICS_SAMPLES", "3", 1);
  for (int i = 0; i < 10; i++) cx_metric_add(&few, i);
  setenv("CALX_METRICS_SAMPLES", "2", 1);
  for (int i = 0; i < 10; i++) cx_metric_add(&fewer, i);
  setenv("CALX_METRICS_SAMPLES", "0", 1);
  setenv("XLA_METRICS_SAMPLES", "many", 1);
  for (int i = 0; i < 10; i++) cx_metric_add(&usual, i);
  unsetenv("CALX_METRICS_SAMPLES");
  unsetenv("XLA_METRICS_SAMPLES");
  double times[4], values[4];
  assert_int_equal(calx_metric_samples("Few", times, values, 4), 3);
  assert_true(values[0] == 7 && values[1] == 8 && values[2] == 9);
  assert_true(times[0] > 0 && times[0] <= times[1] && times[1] <= times[2]);
  assert_int_equal(calx_metric_samples("Fewer", times, values, 1), 2);
  assert_true(values[0] == 8);
  assert_int_equal(calx_metric_samples("Usual", NULL, NULL, 0), 10);
  assert_int_equal(calx_metric_samples("no such", NULL, NULL, 0), 0);
  expect_line("Metric: Few\n  TotalSamples: ", "10");
}

static void note(void *user, const char *line)
{
  snprintf(user, 512, "%s", line);
}

static void test_percentile_list(void **state)
{
  (void)state;
  char line[512] = "";
  calx_log_set(note, line);
  for (int i = 0; i < 1000; i++) cx_metric_add(&size, i);
  setenv("CALX_METRICS_PERCENTILES", "0.25:0.5:0.999", 1);
  expect_line("Percentiles: ", "25%=250.00; 50%=500.00; 99.9%=999.00");
  setenv("CALX_METRICS_PERCENTILES", "", 1);
  setenv("XLA_METRICS_PERCENTILES", "0.5", 1);
  expect_line("Percentiles: ", "50%=500.00");
  assert_string_equal(line, "");
  static const char *const bad[] = { "0.5:1", "0", "x", "0.5,0.6", "0.5:-1" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("XLA_METRICS_PERCENTILES", bad[i], 1);
    expect_line("Percentiles: 1%=10.00; 5%=",
                "50.00; 10%=100.00; 20%=200.00; "
                "50%=500.00; 80%=800.00; "
                "90%=900.00; 95%=950.00; "
                "99%=990.00");
    assert_non_null(strstr(line, "XLA_METRICS_PERCENTILES: '0.5:1' is not"));
  }
  unsetenv("CALX_METRICS_PERCENTILES");
  unsetenv("XLA_METRICS_PERCENTILES");
  calx_log_set(NULL, NULL);
}

CX_COUNTER(item, "aten::_local_scalar_dense");
CX_COUNTER(marks, "MarkStep");
CX_METRIC(compile, "CompileTime", CX_UNIT_NS);

static void test_short_report(void **state)
{
  (void)state;
  cx_counter_add(&ant, 1);
  cx_counter_add(&item, 2);
  cx_counter_add(&marks, 3);
  cx_metric_add(&size, 1);
  cx_metric_add(&compile, 1);
  char *report = calx_metrics_short_report(NULL, NULL);
  assert_string_equal(report,
                      "Metric: CompileTime\n  TotalSamples: 1\n"
                      "  Accumulator: 000.001us\n"
                      "  Percentiles: 1%=000.001us; 5%=000.001us; "
                      "10%=000.001us; 20%=000.001us; 50%=000.001us; "
                      "80%=000.001us; 90%=000.001us; 95%=000.001us; "
                      "99%=000.001us\n"
                      "Counter: MarkStep\n  Value: 3\n"
                      "Counter: aten::_local_scalar_dense\n  Value: 2\n");
  calx_string_free(report);
  report = calx_metrics_short_report(
      (const char *const[]){ "Zebra", "Ant", "aten::_local_scalar_dense",
                             NULL },
      (const char *const[]){ NULL });
  assert_string_equal(report,
                      "Counter: Ant\n  Value: 1\n"
                      "Counter: aten::_local_scalar_dense\n  Value: 2\n");
  calx_string_free(report);
}

static void test_names(void **state)
{
  (void)state;
  const char *names[4];
  assert_int_equal(calx_counter_names(names, 4), 0);
  assert_int_equal(calx_metric_names(names, 4), 0);
  cx_counter_add(&zebra, 0);
  cx_counter_add(&item, 1);
  cx_counter_add(&ant, 1);
  cx_metric_add(&seconds, 1);
  cx_metric_add(&data, 1);
  assert_int_equal(calx_counter_names(names, 4), 3);
  assert_string_equal(names[0], "Ant");
  assert_string_equal(names[1], "Zebra");
  assert_string_equal(names[2], "aten::_local_scalar_dense");
  names[1] = NULL;
  assert_int_equal(calx_counter_names(names, 1), 3);
  assert_null(names[1]);
  assert_int_equal(calx_fallback_ops(names, 4), 1);
  assert_string_equal(names[0], "aten::_local_scalar_dense");
  assert_int_equal(calx_metric_names(names, 4), 2);
  assert_string_equal(names[0], "Data");
  assert_string_equal(names[1], "Seconds");
}

static void test_clears(void **state)
{
  (void)state;
  cx_counter_add(&ant, 5);
  cx_metric_add(&data, 1);
  int64_t total = cx_counter_total(&ant);
  calx_counters_clear();
  assert_int_equal(calx_counter_names(NULL, 0), 0);
  assert_int_equal(calx_metric_names(NULL, 0), 1);
  calx_samples_clear();
  assert_int_equal(calx_metric_names(NULL, 0), 0);
  cx_counter_add(&ant, 1);
  assert_int_equal(calx_counter_value("Ant"), 1);
  assert_int_equal(cx_counter_total(&ant), total + 1);
}

static void test_values(void **state)
{
  (void)state;
  calx_metric_data found = { 1, 1, 1 };
  assert_false(calx_metric_value("Seconds", &found));
  assert_int_equal(found.samples, 0);
  assert_true(found.accumulator == 0 && found.median == 0);
  assert_int_equal(calx_counter_value("Ant"), 0);
  assert_int_equal(calx_counter_value("no such"), 0);
  cx_counter_add(&ant, -3);
  for (int i = 1; i <= 4; i++) cx_metric_add(&seconds, i * 1e9);
  cx_metric_add(&data, 7);
  assert_int_equal(calx_counter_value("Ant"), -3);
  assert_true(calx_metric_value("Seconds", &found));
  assert_int_equal(found.samples, 4);
  assert_true(found.accumulator == 10 && found.median == 3);
  assert_true(calx_metric_value("Data", &found));
  assert_true(found.accumulator == 7 && found.median == 7);
  calx_metrics_clear();
  assert_false(calx_metric_value("Data", &found));
  assert_int_equal(calx_counter_value("Ant"), 0);
  expect_report("");
}

// Scripts read it: a comma of the process's locale becomes a point, and what
// was there before stays.
static void test_locale(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_text_append(&text, "a, ");
  cx_text_real(&text, "1,%g", 5);
  assert_string_equal(cx_text_str(&text), "a, 1.5");
  cx_text_free(&text);
}

static void test_no_memory(void **state)
{
  (void)state;
  cx_counter_add(&ant, 1);
  cx_metric_add(&size, 1);
  long live = cx_alloc_live();
  for (long n = 0;; n++) {
    cx_alloc_fail_at(n);
    char *report = calx_metrics_report();
    cx_alloc_fail_at(-1);
    bool done = report != NULL;
    calx_string_free(report);
    assert_int_equal(cx_alloc_live(), live);
    if (done) break;
    assert_true(n < 1000);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_empty, clear),
    cmocka_unit_test_setup(test_order_and_form, clear),
    cmocka_unit_test_setup(test_times, clear),
    cmocka_unit_test_setup(test_bytes, clear),
    cmocka_unit_test_setup(test_percentiles, clear),
    cmocka_unit_test_setup(test_window, clear),
    cmocka_unit_test_setup(test_rates, clear),
    cmocka_unit_test_setup(test_window_size, clear),
    cmocka_unit_test_setup(test_percentile_list, clear),
    cmocka_unit_test_setup(test_short_report, clear),
    cmocka_unit_test_setup(test_names, clear),
    cmocka_unit_test_setup(test_clears, clear),
    cmocka_unit_test_setup(test_values, clear),
    cmocka_unit_test_setup(test_locale, clear),
    cmocka_unit_test_setup(test_no_memory, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
