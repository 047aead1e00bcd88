// Reports read back: ours, PyTorch/XLA's of both generations, and rubbish.
#include "debug/read_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/text.h"
#include "calx/debug.h"

CX_METRIC(compile, "CompileTime", CX_UNIT_NS);
CX_METRIC(outbound, "OutboundData", CX_UNIT_BYTES);
CX_METRIC(nodes, "TensorsGraphSize", CX_UNIT_NONE);
CX_COUNTER(marks, "MarkStep");

static cx_debug_read_report read_text(const char *text)
{
  cx_debug_read_report r;
  calx_status *status = cx_debug_report_read(text, strlen(text), &r);
  if (status != NULL) print_error("%s\n", calx_status_message(status));
  assert_null(status);
  return r;
}

static void check_near(double got, double wanted)
{
  if (fabs(got - wanted) <= 1e-9 * fabs(wanted)) return;
  fail_msg("got %.17g, wanted %.17g", got, wanted);
}

// What an old release printed: the third line says Counter, the microseconds
// have no zeros in front.
static const char old_sample[] =
    "Metric: CompileTime\n"
    "    TotalSamples: 202\n"
    "    Counter: 06m09s401ms746.001us\n"
    "    ValueRate: 778ms572.062us / second\n"
    "    Rate: 0.425201 / second\n"
    "    Percentiles: 1%=001ms32.778us; 5%=001ms61.283us; 10%=001ms79.236us; "
    "20%=001ms110.973us; 50%=001ms228.773us; 80%=001ms339.183us; "
    "90%=001ms434.305us; 95%=002ms921.063us; 99%=21s102ms853.173us\n";

static void check_sample(const cx_debug_read_report *r)
{
  const cx_debug_read_metric *m = cx_debug_report_metric(r, "CompileTime");
  assert_non_null(m);
  assert_int_equal(m->samples, 202);
  assert_int_equal(m->unit, CX_UNIT_NS);
  check_near(m->accumulator, 369401746001.0);
  check_near(m->value_rate, 778572062.0);
  check_near(m->rate, 0.425201);
  check_near(m->values[0], 1032778.0);
  check_near(cx_debug_report_at(m, 0.05), 1061283.0);
  check_near(cx_debug_report_at(m, 0.99), 21102853173.0);
  assert_int_equal(cx_debug_report_counter(r, "CompileTime"), 0);
}

static void test_old_sample(void **state)
{
  (void)state;
  cx_debug_read_report r = read_text(old_sample);
  assert_int_equal(r.n_metrics, 1);
  assert_int_equal(r.n_counters, 0);
  assert_int_equal(r.metrics[0].n_percentiles, 9);
  check_sample(&r);
  cx_debug_report_free(&r);
}

static void test_new_labels(void **state)
{
  (void)state;
  cx_debug_read_report r = read_text(
      "loss 2.29\n"
      "Metric: OutboundData\n  TotalSamples: 24\n  Accumulator: 1.24MB\n"
      "  ValueRate: 325.24KB / second\n  Rate: 6.17158 / second\n"
      "  Percentiles: 1%=4.00B; 50%=80.00B; 99.9%=392.00KB\n"
      "Counter: CachedCompile\n  Value: 1\n"
      "Metric: TensorsGraphSize\n  TotalSamples: 3\n  Accumulator: 418.00\n"
      "Counter: aten::_local_scalar_dense\n  Value: 12\n");
  const cx_debug_read_metric *m = cx_debug_report_metric(&r, "OutboundData");
  assert_int_equal(m->unit, CX_UNIT_BYTES);
  check_near(m->accumulator, 1.24 * 1048576);
  check_near(m->value_rate, 325.24 * 1024);
  check_near(cx_debug_report_at(m, 0.5), 80);
  check_near(m->fractions[2], 0.999);
  m = cx_debug_report_metric(&r, "TensorsGraphSize");
  assert_int_equal(m->unit, CX_UNIT_NONE);
  check_near(m->accumulator, 418);
  assert_true(m->rate == 0 && m->n_percentiles == 0);
  assert_int_equal(cx_debug_report_counter(&r, "CachedCompile"), 1);
  assert_int_equal(cx_debug_report_counter(&r, "aten::_local_scalar_dense"),
                   12);
  assert_int_equal(r.step, -1);
  cx_debug_report_free(&r);
}

// Of a file that grows with each step the last report counts.
static void test_sections(void **state)
{
  (void)state;
  cx_debug_read_report r = read_text(
      "[MetricsData; step=1]\nCounter: MarkStep\n  Value: 1\n"
      "Metric: Gone\n  TotalSamples: 1\n\n"
      "[MetricsData; step=2]\nCounter: MarkStep\n  Value: 2\n\n");
  assert_int_equal(r.step, 2);
  assert_int_equal(r.n_counters, 1);
  assert_int_equal(r.n_metrics, 0);
  assert_int_equal(cx_debug_report_counter(&r, "MarkStep"), 2);
  cx_debug_report_free(&r);
}

// Without such lines a name's last numbers count, once, and wholly.
static void test_repeated(void **state)
{
  (void)state;
  cx_text text = { 0 };
  for (int i = 1; i <= 3; i++) {
    cx_text_format(&text,
                   "Metric: CompileTime\n  TotalSamples: %d\n%s"
                   "Counter: aten::nonzero\n  Value: %d\n",
                   i, i == 1 ? "  Rate: 5 / second\n" : "", i * 10);
  }
  cx_debug_read_report r = read_text(cx_text_str(&text));
  cx_text_free(&text);
  assert_int_equal(r.n_metrics, 1);
  assert_int_equal(r.n_counters, 1);
  assert_int_equal(cx_debug_report_metric(&r, "CompileTime")->samples, 3);
  assert_true(cx_debug_report_metric(&r, "CompileTime")->rate == 0);
  assert_int_equal(cx_debug_report_counter(&r, "aten::nonzero"), 30);
  cx_debug_report_free(&r);
}

// Sections with as many names as there may be, one after the other.
static void test_full_sections(void **state)
{
  (void)state;
  cx_text text = { 0 };
  for (int k = 0; k < 3; k++) {
    cx_text_format(&text, "[MetricsData; step=%d]\n", k);
    for (int i = 0; i < CX_DEBUG_READ_MOST_NAMES; i++) {
      cx_text_format(&text, "Counter: C%d-%d\n  Value: %d\n", i, k, i);
    }
  }
  cx_debug_read_report r = read_text(cx_text_str(&text));
  cx_text_free(&text);
  assert_int_equal(r.n_counters, CX_DEBUG_READ_MOST_NAMES);
  assert_int_equal(cx_debug_report_counter(&r, "C77-2"), 77);
  assert_int_equal(cx_debug_report_counter(&r, "C77-1"), 0);
  cx_debug_report_free(&r);
}

static void test_own_report(void **state)
{
  (void)state;
  calx_metrics_clear();
  cx_metric_add(&compile, 1.5e9);
  cx_metric_add(&compile, 96e9);
  cx_metric_add(&outbound, 3 * 1048576);
  cx_metric_add(&nodes, 98);
  cx_counter_add(&marks, 7);
  char *text = calx_metrics_report();
  cx_debug_read_report r = read_text(text);
  calx_string_free(text);
  const cx_debug_read_metric *m = cx_debug_report_metric(&r, "CompileTime");
  assert_int_equal(m->samples, 2);
  check_near(m->accumulator, 97.5e9);
  check_near(cx_debug_report_at(m, 0.01), 1.5e9);
  check_near(cx_debug_report_at(m, 0.99), 96e9);
  check_near(cx_debug_report_metric(&r, "OutboundData")->accumulator, 3145728);
  check_near(cx_debug_report_metric(&r, "TensorsGraphSize")->accumulator, 98);
  assert_int_equal(cx_debug_report_counter(&r, "MarkStep"), 7);
  assert_null(cx_debug_report_metric(&r, "MarkStep"));
  cx_debug_report_free(&r);
}

static void test_rubbish(void **state)
{
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
    { "", "no metrics report" },
    { "hello\n", "no metrics report" },
    { "Metric: A\n  Accumulator: 3x\n", "line 2: '3x' is no value" },
    { "Metric: A\n  Accumulator: \n  TotalSamples: x\n", "line 3: 'x'" },
    { "Metric: A\n  Accumulator: 1MB2KB\n", "is no value" },
    { "Metric: A\n  Accumulator: 1s2\n", "is no value" },
    { "Metric: A\n  Rate: 5\n", "line 2: '5' is no rate" },
    { "Metric: A\n  Percentiles: 1=3\n", "is no percentile" },
    { "Counter: A\n  Value: 1.2.3\n", "is no count" },
    { "Counter: A\n  Value: 1e300\n", "is no count" },
    { "Counter: A\n  Value: 1e999\n", "is no count" },
    { "Metric: A\n  TotalSamples: 1e+", "is no count" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_debug_read_report r;
    calx_status *status =
        cx_debug_report_read(cases[i].text, strlen(cases[i].text), &r);
    assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
    if (strstr(calx_status_message(status), cases[i].says) == NULL) {
      fail_msg("'%s' has no '%s'", calx_status_message(status), cases[i].says);
    }
    calx_status_free(status);
    assert_true(r.metrics == NULL && r.counters == NULL);
  }
}

// Every beginning of a report, and every byte of it changed: an answer, no
// crash.
static void test_damage(void **state)
{
  (void)state;
  size_t n = strlen(old_sample);
  char *text = test_malloc(n);
  for (size_t i = 0; i < n; i++) {
    memcpy(text, old_sample, n);
    text[i] = (char)(text[i] ^ 0x15);
    for (int cut = 0; cut < 2; cut++) {
      cx_debug_read_report r;
      calx_status_free(cx_debug_report_read(text, cut ? i : n, &r));
      cx_debug_report_free(&r);
    }
  }
  test_free(text);
}

static void test_bounds(void **state)
{
  (void)state;
  cx_text text = { 0 };
  for (int i = 0; i <= CX_DEBUG_READ_MOST_NAMES; i++) {
    cx_text_format(&text, "Counter: C%d\n  Value: 1\n", i);
  }
  cx_debug_read_report r;
  calx_status *status = cx_debug_report_read(cx_text_str(&text), text.size, &r);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  assert_non_null(strstr(calx_status_message(status), "more than 4096 names"));
  calx_status_free(status);
  // A long name is cut.
  cx_text_clear(&text);
  cx_text_append(&text, "Metric: ");
  for (int i = 0; i < 1000; i++) cx_text_char(&text, 'x');
  r = read_text(cx_text_str(&text));
  assert_int_equal(strlen(r.metrics[0].name), sizeof r.metrics[0].name - 1);
  cx_debug_report_free(&r);
  cx_text_free(&text);
}

static void test_no_memory(void **state)
{
  (void)state;
  const char *text = "Metric: A\n  TotalSamples: 1\nCounter: B\n  Value: 2\n";
  long live = cx_alloc_live();
  for (long n = 0;; n++) {
    cx_debug_read_report r;
    cx_alloc_fail_at(n);
    calx_status *status = cx_debug_report_read(text, strlen(text), &r);
    cx_alloc_fail_at(-1);
    bool done = status == NULL;
    calx_status_free(status);
    cx_debug_report_free(&r);
    assert_int_equal(cx_alloc_live(), live);
    if (done) break;
    assert_true(n < 100);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_old_sample), cmocka_unit_test(test_new_labels),
    cmocka_unit_test(test_sections),   cmocka_unit_test(test_own_report),
    cmocka_unit_test(test_rubbish),    cmocka_unit_test(test_damage),
    cmocka_unit_test(test_repeated),   cmocka_unit_test(test_full_sections),
    cmocka_unit_test(test_bounds),     cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
