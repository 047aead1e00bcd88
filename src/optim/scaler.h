// optim/scaler: what a GradScaler is, for its state dict too.
#ifndef CX_OPTIM_SCALER_H
#define CX_OPTIM_SCALER_H

#include <float.h>

#include "calx/amp.h"
#include "optim/optimizer.h"

// An optimiser since the last update.
typedef struct cx_optim_scaled {
  const calx_optimizer *opt;
  calx_tensor *found;  // owned: 1 where a gradient is not finite
  bool stepped;
} cx_optim_scaled;

struct calx_grad_scaler {
  calx_status *status;
  bool enabled;
  float scale;
  double growth, backoff;
  int64_t interval, tracker;
  // Of an update that has not been counted yet: whether a gradient was not
  // finite; owned. NULL: there is none.
  calx_tensor *found;
  cx_optim_scaled *used;
  size_t n, capacity;
};

// Reads what the last update found, and counts it.
void cx_optim_scaler_settle(calx_grad_scaler *s);
// What is wrong with these numbers; NULL: nothing.
calx_status *cx_optim_scaler_check(const char *call, double growth,
                                   double backoff,
                                   int64_t interval) CALX_MUST_USE;

#endif
