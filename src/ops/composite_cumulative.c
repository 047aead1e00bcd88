// ops/composite_cumulative: sums and products of all elements up to each, along
// a dimension.
//
// In log2(n) steps each element takes in the one at twice the distance (W.
// Hillis and G. Steele, Data Parallel Algorithms, 1986): these are elementwise
// ops of the whole tensor on every backend, and have gradients that are exact
// also at zeros.
#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *scan(const char *op, calx_tensor *x, int dim,
                         double neutral,
                         calx_tensor *(*combine)(calx_tensor *, calx_tensor *))
{
  calx_tensor *bad;
  uint32_t d;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim(op, "dim", dim, s->rank, s);
  }
  if (!cx_dtype_is_float(s->dtype)) x = calx_to_dtype(x, CALX_I64);
  if (s->rank == 0) return x;
  int64_t n = s->dims[d];
  uint32_t pairs = s->rank - d;
  for (int64_t by = 1; by < n; by *= 2) {
    int64_t pad[2 * CALX_MAX_RANK] = { 0 };
    pad[2 * pairs - 2] = by;
    pad[2 * pairs - 1] = -by;
    calx_pad_options o = { .size = sizeof o, .value = neutral };
    x = combine(x, calx_pad_with(x, calx_dims_of(pad, 2 * pairs), &o));
  }
  return x;
}

calx_tensor *calx_cumsum(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE("cumsum");
  return scan("cumsum", x, dim, 0, cx_ops_plus);
}

calx_tensor *calx_cumprod(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE("cumprod");
  return scan("cumprod", x, dim, 1, calx_mul);
}
