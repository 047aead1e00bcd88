// ops/histogram: what the histograms of one and of several dimensions share.
#ifndef CX_OPS_HISTOGRAM_H
#define CX_OPS_HISTOGRAM_H

#include "ops/composite.h"

// bins + 1 edges of x from its least to its greatest element, or of the
// options' range.
calx_tensor *cx_ops_histogram_edges(calx_tensor *x, int64_t bins,
                                    const calx_histogram_options *o);
// The number of the interval of each element; -1: of none.
calx_tensor *cx_ops_histogram_bins(calx_tensor *x, calx_tensor *edges,
                                   int64_t bins);

#endif
