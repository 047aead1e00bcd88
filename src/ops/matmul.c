// ops/matmul: matrix products. One op multiplies two batches of matrices, each
// as it is or transposed, so that gradients need no transpose ops.
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct matmul_attrs {
  uint32_t x_transposed, y_transposed;
} matmul_attrs;

// (…, n, k) x (…, k, m), the leading dimensions equal.
static calx_status *infer_matmul(cx_graph_node *node)
{
  const matmul_attrs *a = node->attrs;
  const cx_graph_shape *x = cx_in(node, 0), *y = cx_in(node, 1);
  cx_graph_shape *out = &node->out[0].shape;
  *out = *x;
  uint32_t r = x->rank;
  int64_t n = x->dims[r - 2 + a->x_transposed];
  int64_t k = x->dims[r - 1 - a->x_transposed];
  int64_t k2 = y->dims[r - 2 + a->y_transposed];
  int64_t m = y->dims[r - 1 - a->y_transposed];
  if (k != k2) {
    return cx_ops_error(node,
                        "the first has rows of %lld elements, the second "
                        "columns of %lld; they must be equal",
                        (long long)k, (long long)k2);
  }
  out->dims[r - 2] = n;
  out->dims[r - 1] = m;
  return NULL;
}

static calx_tensor *product(calx_tensor *x, bool tx, calx_tensor *y, bool ty)
{
  calx_tensor *in[2] = { x, y };
  matmul_attrs a = { tx, ty };
  return cx_ops_record(&cx_ops_matmul, in, 2, &a);
}

// With X and Y the matrices as read: dX = G Y^T, dY = X^T G.
static void real_grad_matmul(cx_lazy_tape *t)
{
  const matmul_attrs *a = t->attrs;
  bool tx = a->x_transposed, ty = a->y_transposed;
  calx_tensor *g = t->out_grads[0];
  if (cx_tape_needs(t, 0)) {
    calx_tensor *y = cx_lazy_tape_in(t, 1);
    t->in_grads[0] = tx ? product(y, ty, g, true) : product(g, false, y, !ty);
  }
  if (cx_tape_needs(t, 1)) {
    calx_tensor *x = cx_lazy_tape_in(t, 0);
    t->in_grads[1] = ty ? product(g, true, x, tx) : product(x, !tx, g, false);
  }
}

static void grad_matmul(cx_lazy_tape *t)
{
  cx_ops_grad_holomorphic(t, real_grad_matmul);
}

static void emit_matmul(cx_graph_emit *e)
{
  const matmul_attrs *a = e->attrs;
  const cx_graph_shape *x = cx_in(e->node, 0);
  int64_t batch[CALX_MAX_RANK];
  uint32_t n = x->rank - 2;
  for (uint32_t i = 0; i < n; i++) batch[i] = i;
  int64_t lhs = x->rank - 1 - a->x_transposed;
  int64_t rhs = x->rank - 2 + a->y_transposed;
  cx_hlo_dot_dims dims = { .lhs_batch = batch,
                           .rhs_batch = batch,
                           .n_batch = n,
                           .lhs_contract = &lhs,
                           .rhs_contract = &rhs,
                           .n_contract = 1 };
  e->out[0] = cx_hlo_dot_general(e->b, e->in[0], e->in[1], &dims,
                                 cx_ops_out_type(e, 0).elem);
}

static void describe_matmul(const void *attrs, cx_text *out)
{
  const matmul_attrs *a = attrs;
  cx_text_format(out, "x%s, y%s", a->x_transposed ? "^T" : "",
                 a->y_transposed ? "^T" : "");
}

CX_OPS_DEFINE(matmul, .attr_size = sizeof(matmul_attrs), .infer = infer_matmul,
              .grad = grad_matmul, .emit = emit_matmul,
              .describe = describe_matmul, .takes_complex = true)

// ---- entries ----------------------------------------------------------------

static bool same_type(const char *op, calx_tensor *x, calx_tensor *y,
                      calx_tensor **out)
{
  const cx_graph_shape *a = cx_lazy_tensor_shape(x),
                       *b = cx_lazy_tensor_shape(y);
  if (a->dtype == b->dtype && a->dtype != CALX_BOOL) return true;
  *out = cx_ops_invalid(
      "%s: the element types of %s and %s must be equal numbers; convert one "
      "with calx_to_dtype",
      op, cx_graph_shape_str(a), cx_graph_shape_str(b));
  return false;
}

// (…, a, b) as one matrix (… * a, b).
static calx_tensor *as_matrix(calx_tensor *x)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  cx_graph_shape m = { .dtype = s->dtype, .rank = 2 };
  m.dims[0] = 1;
  for (uint32_t i = 0; i + 1 < s->rank; i++) m.dims[0] *= s->dims[i];
  m.dims[1] = s->dims[s->rank - 1];
  return cx_ops_reshape_to(x, &m);
}

// Leading dimensions broadcast; false: they don't.
static bool join_batch(cx_graph_shape *a, cx_graph_shape *b)
{
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
  cx_graph_shape *both[2] = { a, b };
  for (int k = 0; k < 2; k++) {
    uint32_t more = rank - both[k]->rank;
    memmove(both[k]->dims + more, both[k]->dims,
            both[k]->rank * sizeof(int64_t));
    for (uint32_t i = 0; i < more; i++) both[k]->dims[i] = 1;
    both[k]->rank = rank;
  }
  for (uint32_t i = 0; i + 2 < rank; i++) {
    int64_t p = a->dims[i], q = b->dims[i];
    if (p != q && p != 1 && q != 1) return false;
    a->dims[i] = b->dims[i] = p == 1 ? q : p;
  }
  return true;
}

// Both of rank 2 or more.
static calx_tensor *stacked(calx_tensor *x, calx_tensor *y)
{
  cx_graph_shape a = *cx_lazy_tensor_shape(x), b = *cx_lazy_tensor_shape(y);
  if (a.rank > 2 && b.rank == 2) {
    cx_graph_shape out = a;
    out.dims[a.rank - 1] = b.dims[1];
    calx_tensor *r = product(as_matrix(x), false, y, false);
    return cx_lazy_tensor_poisoned(r) ? r : cx_ops_reshape_to(r, &out);
  }
  if (!join_batch(&a, &b)) {
    return cx_ops_invalid(
        "matmul: the leading dimensions of %s and %s do not broadcast",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)),
        cx_graph_shape_str(cx_lazy_tensor_shape(y)));
  }
  return product(calx_expand(x, cx_ops_dims_of(&a)), false,
                 calx_expand(y, cx_ops_dims_of(&b)), false);
}

calx_tensor *calx_matmul(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("matmul", in, 2, &bad) || !same_type("matmul", x, y, &bad)) {
    return bad;
  }
  uint32_t rx = cx_lazy_tensor_shape(x)->rank,
           ry = cx_lazy_tensor_shape(y)->rank;
  if (rx == 0 || ry == 0) {
    return cx_ops_invalid("matmul: %s and %s, rank 1 or more is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)),
                          cx_graph_shape_str(cx_lazy_tensor_shape(y)));
  }
  if (rx == 1) x = calx_unsqueeze(x, 0);
  if (ry == 1) y = calx_unsqueeze(y, 1);
  calx_tensor *r = stacked(x, y);
  if (ry == 1) r = calx_squeeze(r, -1);
  if (rx == 1) r = calx_squeeze(r, ry == 1 ? -1 : -2);
  return r;
}

calx_tensor *calx_mm(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("mm", in, 2, &bad) || !same_type("mm", x, y, &bad)) {
    return bad;
  }
  const cx_graph_shape *a = cx_lazy_tensor_shape(x),
                       *b = cx_lazy_tensor_shape(y);
  if (a->rank != 2 || b->rank != 2) {
    return cx_ops_invalid(
        "mm: %s and %s, two matrices are wanted; calx_matmul takes other ranks",
        cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  if (a->dims[1] != b->dims[0]) {
    return cx_ops_invalid(
        "mm: %s and %s: the first has %lld columns, the second "
        "%lld rows; they must be equal",
        cx_graph_shape_str(a), cx_graph_shape_str(b), (long long)a->dims[1],
        (long long)b->dims[0]);
  }
  return product(x, false, y, false);
}

// PyTorch also takes one number for all, and one for each row of the result.
static bool fits_bias(const cx_graph_shape *bias, const cx_graph_shape *weight)
{
  if (bias->rank == 0) return true;
  int64_t last = bias->dims[bias->rank - 1];
  return bias->rank <= 2 && (last == 1 || last == weight->dims[0]);
}

calx_tensor *calx_linear(calx_tensor *x, calx_tensor *weight, calx_tensor *bias)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &weight, &bias);
  calx_tensor *in[3] = { x, weight, bias }, *bad;
  if (cx_ops_unfit("linear", in, bias != NULL ? 3 : 2, &bad) ||
      !same_type("linear", x, weight, &bad)) {
    return bad;
  }
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const cx_graph_shape *w = cx_lazy_tensor_shape(weight);
  if (w->rank != 2) {
    return cx_ops_invalid("linear: a weight (out, in) is wanted, got %s",
                          cx_graph_shape_str(w));
  }
  if (s.rank == 0 || s.dims[s.rank - 1] != w->dims[1]) {
    return cx_ops_invalid("linear: the weight %s wants […,%lld], got %s",
                          cx_graph_shape_str(w), (long long)w->dims[1],
                          cx_graph_shape_str(&s));
  }
  if (bias != NULL && !fits_bias(cx_lazy_tensor_shape(bias), w)) {
    return cx_ops_invalid(
        "linear: the bias is %s, one number for each of the %lld rows of the "
        "weight %s is wanted",
        cx_graph_shape_str(cx_lazy_tensor_shape(bias)), (long long)w->dims[0],
        cx_graph_shape_str(w));
  }
  calx_tensor *r = product(as_matrix(x), false, weight, true);
  if (bias != NULL) r = calx_add_with(r, bias, NULL);
  s.dims[s.rank - 1] = w->dims[0];
  return cx_lazy_tensor_poisoned(r) ? r : cx_ops_reshape_to(r, &s);
}
