// advise: what many devices of a process did together is judged as one's.
#include "debug/advise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { STEPS = 100 };

static void add_metric(cx_debug_run_data *r, const char *name,
                       cx_metric_unit unit, int64_t samples, double sum)
{
  assert_true(cx_grow(&r->report.metrics, &r->report.metrics_capacity,
                      r->report.n_metrics + 1, sizeof *r->report.metrics));
  cx_debug_read_metric *m = &r->report.metrics[r->report.n_metrics++];
  *m = (cx_debug_read_metric){ .unit = unit,
                               .samples = samples,
                               .accumulator = sum };
  snprintf(m->name, sizeof m->name, "%s", name);
}

// 100 steps of 10 ms; each device reads 40 values and compiles for a second.
static cx_debug_run_data run_of(int64_t devices)
{
  cx_debug_run_data r = { .detailed = true,
                          .syncs = STEPS,
                          .seconds = 10,
                          .devices = devices,
                          .n_steps = STEPS };
  r.steps = cx_calloc(STEPS, sizeof *r.steps);
  assert_non_null(r.steps);
  for (int i = 0; i < STEPS; i++) {
    r.steps[i] = (cx_debug_run_step){ .first = i + 1,
                                      .n = 1,
                                      .seconds = 0.01,
                                      .part[CX_PROFILER_EXECUTE] = 0.009 };
  }
  add_metric(&r, "TransferFromDeviceTime", CX_UNIT_NS, 40 * devices,
             4e6 * (double)devices);
  add_metric(&r, "TransferToDeviceTime", CX_UNIT_NS, 200 * devices,
             1e9 * (double)devices);
  add_metric(&r, "OutboundData", CX_UNIT_BYTES, 200 * devices,
             1048576 * (double)devices);
  add_metric(&r, "CompileTime", CX_UNIT_NS, 2 * devices, 1e9 * (double)devices);
  return r;
}

static const cx_debug_advice *item(const cx_debug_advice *all, const char *name)
{
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    if (strcmp(all[i].item, name) == 0) return &all[i];
  }
  fail_msg("no item '%s'", name);
  return NULL;
}

static void check(const cx_debug_advice *all, const char *name,
                  const char *says)
{
  const cx_debug_advice *a = item(all, name);
  assert_int_equal(a->rating, CX_DEBUG_RATING_GOOD);
  if (strstr(a->numbers.data, says) == NULL) {
    fail_msg("'%s' has no '%s'", a->numbers.data, says);
  }
}

static void test_devices(void **state)
{
  (void)state;
  for (int64_t devices = 1; devices <= 8; devices *= 2) {
    cx_debug_run_data r = run_of(devices);
    cx_debug_advice all[CX_DEBUG_ADVICE_ITEMS];
    cx_debug_advise(&r, all);
    check(all, "reading values", "40 values read in 100 steps");
    check(all, "changing shapes", "2 programs in 100 steps");
    check(all, "link to the device",
          "200 transfers to the device, 1.00MB in 1 s, 1.00MB a second, 2 a");
    check(all, "compilation", "2 compilations, 1 s (10 % of the run)");
    cx_debug_advice_free(all);
    cx_debug_run_free(&r);
  }
}

// Reads at places that the file does not list are told of with those.
static void test_other_reads(void **state)
{
  (void)state;
  cx_debug_run_data r = run_of(1);
  cx_debug_advice all[CX_DEBUG_ADVICE_ITEMS];
  r.report.metrics[0].samples = 90;
  r.other_reads = 30;
  cx_debug_advise(&r, all);
  const cx_debug_advice *a = item(all, "reading values");
  assert_int_equal(a->rating, CX_DEBUG_RATING_LOOK);
  assert_non_null(strstr(a->details.data,
                         "and 30 times at call sites that are not listed"));
  cx_debug_advice_free(all);
  cx_debug_run_free(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices),
    cmocka_unit_test(test_other_reads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
