// fuzz/report: any bytes as a metrics report.
//
// What is accepted holds numbers only, within the bounds that the header
// states; what is refused says why and leaves nothing. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it over a
// corpus without one.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "debug/read_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void check_count(int64_t n)
{
  check(n >= -CX_DEBUG_READ_MOST && n <= CX_DEBUG_READ_MOST);
}

static void check_report(const cx_debug_read_report *r)
{
  check(r->n_metrics + r->n_counters > 0);
  check(r->n_metrics <= CX_DEBUG_READ_MOST_NAMES);
  check(r->n_counters <= CX_DEBUG_READ_MOST_NAMES);
  for (size_t i = 0; i < r->n_metrics; i++) {
    const cx_debug_read_metric *m = &r->metrics[i];
    check(memchr(m->name, '\0', sizeof m->name) != NULL);
    check(cx_debug_report_metric(r, m->name) != NULL);
    check_count(m->samples);
    check(m->n_percentiles <= CX_DEBUG_READ_MOST_PERCENTILES);
    check(!isnan(cx_debug_report_at(m, 0.5)));
    check(!isnan(m->accumulator) && !isnan(m->rate) && !isnan(m->value_rate));
  }
  for (size_t i = 0; i < r->n_counters; i++) {
    check(memchr(r->counters[i].name, '\0', sizeof r->counters[i].name) !=
          NULL);
    check_count(r->counters[i].value);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  cx_debug_read_report r;
  calx_status *status = cx_debug_report_read((const char *)data, size, &r);
  if (status == NULL) {
    check_report(&r);
  } else {
    check(r.metrics == NULL && r.counters == NULL);
    check(calx_status_code(status) == CALX_INVALID_ARGUMENT ||
          calx_status_code(status) == CALX_RESOURCE_EXHAUSTED);
    check(calx_status_message(status)[0] != '\0');
  }
  cx_debug_report_free(&r);
  calx_status_free(status);
  check(cx_alloc_live() == blocks);
  return 0;
}
