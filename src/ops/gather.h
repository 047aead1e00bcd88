// ops/gather: elements and rows at indices, for compositions.
#ifndef CX_OPS_GATHER_H
#define CX_OPS_GATHER_H

#include "ops/ops.h"

// x at the indices along dimension dim: (…, n, …) and (…) give (…, index, …).
calx_tensor *cx_ops_take(calx_tensor *x, calx_tensor *index, uint32_t dim);

typedef enum cx_ops_scatter_how {
  CX_OPS_SCATTER_SET,
  CX_OPS_SCATTER_ADD,
  CX_OPS_SCATTER_PROD,
  CX_OPS_SCATTER_AMAX,
  CX_OPS_SCATTER_AMIN
} cx_ops_scatter_how;
// x (n, …) with the rows of source (m, …) combined into the rows that index (m)
// names.
calx_tensor *cx_ops_combine_rows(calx_tensor *x, calx_tensor *index,
                                 calx_tensor *source, cx_ops_scatter_how how);

#endif
