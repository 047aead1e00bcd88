// lazy/sync/anomaly: in anomaly mode each result is looked at as soon as it is
// recorded.
#ifndef CX_LAZY_ANOMALY_H
#define CX_LAZY_ANOMALY_H

#include "lazy/internal.h"

// Runs what an op recorded. The scope gets an error where a result holds NaN.
void cx_lazy_check_anomaly(calx_tensor *first, calx_tensor *const *outs,
                           uint32_t n_out);

#endif
