// ops/composite_linear: products of vectors, matrices and batches of them,
// composed of calx_matmul.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// False: *out is what the function returns.
static bool ranks_fit(const char *op, calx_tensor *const *in, uint32_t n,
                      const uint32_t *ranks, calx_tensor **out)
{
  static const char *const names[] = { "number", "vector", "matrix",
                                       "batch of matrices" };
  if (cx_ops_unfit(op, in, n, out)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(in[i]);
    if (s->rank == ranks[i]) continue;
    *out = cx_ops_invalid("%s: operand %u is %s, a %s is wanted", op, i,
                          cx_graph_shape_str(s), names[ranks[i]]);
    return false;
  }
  return true;
}

#define RANKS_OF_TWO(op, first, second)               \
  CX_OPS_COMPOSITE_COMPLEX(#op);                      \
  static const uint32_t ranks[2] = { first, second }; \
  calx_tensor *in[2] = { x, y }, *bad;                \
  if (!ranks_fit(#op, in, 2, ranks, &bad)) return bad

calx_tensor *calx_bmm(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  RANKS_OF_TWO(bmm, 3, 3);
  const cx_graph_shape *a = cx_lazy_tensor_shape(x),
                       *b = cx_lazy_tensor_shape(y);
  if (a->dims[0] != b->dims[0]) {
    return cx_ops_invalid("bmm: %s and %s have other numbers of matrices",
                          cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  return calx_matmul(x, y);
}

calx_tensor *calx_mv(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  RANKS_OF_TWO(mv, 2, 1);
  return calx_matmul(x, y);
}

calx_tensor *calx_dot(calx_tensor *x, calx_tensor *y)
{
  RANKS_OF_TWO(dot, 1, 1);
  return calx_matmul(x, y);
}

calx_tensor *calx_outer(calx_tensor *x, calx_tensor *y)
{
  RANKS_OF_TWO(outer, 1, 1);
  return calx_mul(calx_unsqueeze(x, 1), y);
}

// x times an option, of which 0 stands for 1. A whole number leaves integers
// integers.
static calx_tensor *times(calx_tensor *x, double factor)
{
  if (cx_is_default(factor) || factor == 1) return x;
  bool whole = factor == floor(factor) && fabs(factor) < 0x1p63;
  return calx_mul(
      x, whole ? calx_scalar_int((int64_t)factor) : calx_scalar(factor));
}

// beta input + alpha product; input is not used where beta is 0.
static calx_tensor *add_product(const char *op, calx_tensor *input,
                                calx_tensor *product,
                                const calx_addmm_options *o)
{
  calx_tensor *in[2] = { input, product }, *bad;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(input);
  const cx_graph_shape *p = cx_lazy_tensor_shape(product);
  bool fits = a->rank <= p->rank;
  for (uint32_t i = 1; fits && i <= a->rank; i++) {
    int64_t n = a->dims[a->rank - i];
    fits = n == 1 || n == p->dims[p->rank - i];
  }
  if (!fits) {
    return cx_ops_invalid("%s: the input %s does not broadcast to %s", op,
                          cx_graph_shape_str(a), cx_graph_shape_str(p));
  }
  if (o == NULL) return cx_ops_plus(input, product);
  if (!cx_ops_options_fit(op, o->size, sizeof *o, &bad)) return bad;
  product = times(product, o->alpha);
  if (!cx_is_default(o->beta) && o->beta == 0) return product;
  return cx_ops_plus(times(input, o->beta), product);
}

calx_tensor *calx_addmm_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                             const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("addmm");
  return add_product("addmm", input, calx_mm(x, y), o);
}

calx_tensor *calx_addmv_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                             const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("addmv");
  return add_product("addmv", input, calx_mv(x, y), o);
}

calx_tensor *calx_baddbmm_with(calx_tensor *input, calx_tensor *x,
                               calx_tensor *y, const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("baddbmm");
  return add_product("baddbmm", input, calx_bmm(x, y), o);
}

calx_tensor *calx_addr_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                            const calx_addmm_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("addr");
  return add_product("addr", input, calx_outer(x, y), o);
}

calx_tensor *calx_ger(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("ger");
  return calx_outer(x, y);
}
