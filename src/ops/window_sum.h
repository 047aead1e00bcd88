// ops/window_sum: the sum of each window of the spatial dimensions.
#ifndef CX_OPS_WINDOW_SUM_H
#define CX_OPS_WINDOW_SUM_H

#include "ops/conv.h"

// Of x (N, C, …), whose n spatial dimensions are dilated and padded with zeros.
typedef struct cx_ops_windows {
  int64_t n;
  int64_t window[CX_OPS_MOST_SPATIAL], stride[CX_OPS_MOST_SPATIAL];
  int64_t dilation[CX_OPS_MOST_SPATIAL];
  int64_t low[CX_OPS_MOST_SPATIAL], high[CX_OPS_MOST_SPATIAL];
} cx_ops_windows;

#endif
