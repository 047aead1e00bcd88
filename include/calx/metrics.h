#ifndef CALX_METRICS_H
#define CALX_METRICS_H
#include "calx/tensor.h"
typedef struct calx_metric calx_metric;
CALX_API calx_tensor *calx_metric_compute(calx_metric *metric);
CALX_API void calx_metric_reset(calx_metric *metric);
#endif
