// ops/composite_spectral: what eigenvalues and singular values tell.
#include "ops/factor.h"

calx_tensor *calx_eigvalsh_with(calx_tensor *x, const calx_eigh_options *o)
{
  calx_tensor *bad;
  if (!cx_ops_is_matrix("eigvalsh", x, true, &bad)) return bad;
  return calx_eigh_with(x, NULL, o);
}

calx_tensor *calx_cond(calx_tensor *x)
{
  CX_OPS_COMPOSITE("cond");
  calx_tensor *bad;
  if (!cx_ops_is_matrix("cond", x, false, &bad)) return bad;
  calx_tensor *s = calx_svdvals(x);
  if (cx_lazy_tensor_poisoned(s)) return s;
  const int64_t k = calx_tensor_dim(s, -1);
  if (k == 0) {
    const calx_reduce_options o = { .size = sizeof o, .dims = CALX_DIMS(-1) };
    return calx_sum_with(s, &o);
  }
  return calx_div(calx_select(s, -1, 0), calx_select(s, -1, k - 1));
}
