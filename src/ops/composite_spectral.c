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

// ---- generalised eigenvalues ------------------------------------------------

// Whether b, if there is one, is as x. False: *out is what the function
// returns.
static bool pair_fits(calx_tensor *x, const calx_lobpcg_options *o, int64_t k,
                      calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t n = s->dims[s->rank - 1];
  if (o->b != NULL) {
    if (!cx_ops_is_matrix("lobpcg", o->b, true, out)) return false;
    if (!cx_graph_shape_equal(cx_lazy_tensor_shape(o->b), s)) {
      *out = cx_ops_invalid("lobpcg: .b is %s, %s as x is wanted",
                            cx_graph_shape_str(cx_lazy_tensor_shape(o->b)),
                            cx_graph_shape_str(s));
      return false;
    }
  }
  if (k >= 1 && k <= n / 3) return true;
  *out =
      cx_ops_invalid("lobpcg: .k is %lld, of %s 1 to %lld are possible",
                     (long long)k, cx_graph_shape_str(s), (long long)(n / 3));
  return false;
}

calx_tensor *calx_lobpcg_with(calx_tensor *x, calx_tensor **out_vectors,
                              const calx_lobpcg_options *o)
{
  CX_OPS_COMPOSITE("lobpcg");
  calx_tensor *bad, *l = NULL, *v;
  if (out_vectors != NULL) *out_vectors = NULL;
  bool fits = cx_ops_is_matrix("lobpcg", x, true, &bad);
  if (!fits) return bad;
  CX_OPS_TAKE_OPTIONS(lobpcg, o, bad);
  const int64_t k = o->k == 0 ? 1 : o->k, n = calx_tensor_dim(x, -1);
  if (!pair_fits(x, o, k, &bad)) return bad;
  // With b = l l^T, the problem is that of l^-1 x l^-T, with l^T v.
  const cx_ops_triangle down = { .lower = true };
  const cx_ops_triangle up = { .lower = true, .transpose = true };
  if (o->b != NULL) {
    l = calx_cholesky_with(o->b, NULL);
    x = cx_ops_solve_with(l, x, &down);
    x = cx_ops_solve_with(l, cx_ops_transposed(x), &down);
  }
  calx_tensor *w = calx_eigh_with(x, &v, NULL);
  if (cx_lazy_tensor_poisoned(w)) return w;
  const int64_t last = -1;
  if (!o->smallest) {
    w = calx_flip(w, calx_dims_of(&last, 1));
    v = calx_flip(v, calx_dims_of(&last, 1));
  }
  w = calx_narrow(w, -1, 0, n < k ? n : k);
  v = calx_narrow(v, -1, 0, n < k ? n : k);
  if (l != NULL) v = cx_ops_solve_with(l, v, &up);
  if (out_vectors != NULL) *out_vectors = v;
  return w;
}
