// metrics/count: counts and ratios, by operations on the device.
#ifndef CX_METRICS_COUNT_H
#define CX_METRICS_COUNT_H

#include "calx/ops.h"

// Integers as f64, which holds them; floats as at least f32.
calx_tensor *cx_metrics_number(calx_tensor *x);
// How many of all are true; i64 ().
calx_tensor *cx_metrics_count(calx_tensor *mask);
// The sum over dimension 0. Of bool: a count, i64.
calx_tensor *cx_metrics_sum_rows(calx_tensor *x);
// How often each of [0, n) is the index where the mask is true; i64 (n).
calx_tensor *cx_metrics_histogram(calx_tensor *index, calx_tensor *mask,
                                  int64_t n);
// a / b as f64, and 0 where b is 0.
calx_tensor *cx_metrics_ratio(calx_tensor *a, calx_tensor *b);

#endif
