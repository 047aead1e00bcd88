// The metrics report and single values, byte for byte.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "calx/debug.h"
#include "debug/real.h"

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
  cx_debug_real(&text, "1,%g", 5);
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
    cmocka_unit_test_setup(test_values, clear),
    cmocka_unit_test_setup(test_locale, clear),
    cmocka_unit_test_setup(test_no_memory, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
