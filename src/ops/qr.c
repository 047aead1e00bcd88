// ops/qr: QR factorisation by blocks of reflections, and its gradient.
#include "calx/creation.h"
#include "ops/factor.h"

enum { BLOCK = 32, MOST_BLOCKS = 512 };

// ---- the gradient -----------------------------------------------------------

// Of a matrix of at least as many rows as columns: (dQ + Q L) R^-T, where L is
// the symmetric matrix with the lower triangle of R dR^T - dQ^T Q (S. Walter,
// L. Lehmann, Algorithmic differentiation of linear algebra functions, 2010).
static calx_tensor *tall_grad(calx_tensor *q, calx_tensor *r, calx_tensor *dq,
                              calx_tensor *dr)
{
  calx_tensor *m = calx_matmul(r, cx_ops_transposed(dr));
  m = cx_ops_minus(m, calx_matmul(cx_ops_transposed(dq), q));
  m = cx_ops_plus(calx_tril(m, 0), cx_ops_transposed(calx_tril(m, -1)));
  calx_tensor *g = cx_ops_plus(dq, calx_matmul(q, m));
  // g R^-T is (R^-1 g^T)^T
  return cx_ops_transposed(
      cx_ops_solve_with(r, cx_ops_transposed(g), &(cx_ops_triangle){ 0 }));
}

// q and r are operands that were computed without gradient; the outputs.
static calx_status *infer_qr(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 1);
  node->out[1].shape = *cx_in(node, 2);
  return NULL;
}

static void emit_qr(cx_graph_emit *e)
{
  e->out[0] = e->in[1];
  e->out[1] = e->in[2];
}

static void grad_qr(cx_lazy_tape *t)
{
  calx_tensor *q = cx_lazy_tape_out(t, 0), *r = cx_lazy_tape_out(t, 1);
  calx_tensor *dq = t->out_grads[0], *dr = t->out_grads[1];
  if (dq == NULL) dq = cx_ops_zeros_like(q);
  if (dr == NULL) dr = cx_ops_zeros_like(r);
  const int64_t m = calx_tensor_dim(q, -2), k = calx_tensor_dim(q, -1);
  const int64_t n = calx_tensor_dim(r, -1);
  if (k > n) {
    t->in_grads[0] = cx_ops_invalid(
        "qr: a complete factorisation of a matrix with more rows than columns "
        "has no gradient");
    return;
  }
  if (m >= n) {
    t->in_grads[0] = tall_grad(q, r, dq, dr);
    return;
  }
  // The first m columns have the factors q and u; the others are q w.
  calx_tensor *u = calx_narrow(r, -1, 0, m), *du = calx_narrow(dr, -1, 0, m);
  calx_tensor *w = calx_narrow(cx_lazy_tape_in(t, 0), -1, m, n - m);
  calx_tensor *dw = calx_narrow(dr, -1, m, n - m);
  dq = cx_ops_plus(dq, calx_matmul(w, cx_ops_transposed(dw)));
  calx_tensor *parts[2] = { tall_grad(q, u, dq, du), calx_matmul(q, dw) };
  t->in_grads[0] = calx_cat(parts, 2, -1);
}

CX_OPS_DEFINE(qr, .infer = infer_qr, .grad = grad_qr, .emit = emit_qr)

// ---- the factorisation ------------------------------------------------------

typedef struct block {
  calx_tensor *v, *t;  // the product of its reflections is I - v t v^T
} block;

// The triangle t of W. Puglisi, Modification of the Householder method based on
// the compact WY representation (1992): its inverse has 1 / tau on the
// diagonal and v^T v above. Written so that a tau of 0 is no division.
calx_tensor *cx_ops_wy_triangle(calx_tensor *v, calx_tensor *tau)
{
  const int64_t k = calx_tensor_dim(v, -1);
  const cx_ops_triangle unit = { .unit = true };
  calx_tensor *eye = cx_ops_eye(v, k, k);
  calx_tensor *above = calx_triu(calx_matmul(cx_ops_transposed(v), v), 1);
  above = cx_ops_plus(calx_mul(above, calx_unsqueeze(tau, -2)), eye);
  calx_tensor *t = cx_ops_solve_with(
      above, calx_expand(eye, cx_ops_dims_of(cx_lazy_tensor_shape(above))),
      &unit);
  return calx_mul(calx_unsqueeze(tau, -1), t);
}

// (I - v t v^T) x, or with t transposed.
static calx_tensor *reflected(const block *b, bool transpose, calx_tensor *x)
{
  calx_tensor *t = transpose ? cx_ops_transposed(b->t) : b->t;
  calx_tensor *row = calx_matmul(cx_ops_transposed(b->v), x);
  return cx_ops_minus(x, calx_matmul(b->v, calx_matmul(t, row)));
}

// The unit matrix with x in place of its lower right corner.
static calx_tensor *bordered(calx_tensor *x, int64_t size)
{
  const int64_t front[4] = { size, 0, size, 0 };
  x = calx_pad_with(x, calx_dims_of(front, 4), NULL);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t behind[4] = { 0, s->dims[s->rank - 1] - size, 0,
                              s->dims[s->rank - 2] - size };
  calx_tensor *eye = cx_ops_eye(x, size, size);
  return cx_ops_plus(x, calx_pad_with(eye, calx_dims_of(behind, 4), NULL));
}

// q of the blocks, (N, m, columns): the last block is applied first, and only
// to the rows and columns that it changes.
static calx_tensor *product_of(const block *blocks, size_t n, calx_tensor *x,
                               int64_t columns)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t m = s->dims[1], at = n == 0 ? 0 : (int64_t)(n - 1) * BLOCK;
  const int64_t dims[3] = { s->dims[0], m - at, columns - at };
  calx_tensor *q =
      calx_expand(cx_ops_eye(x, m - at, columns - at), calx_dims_of(dims, 3));
  for (size_t i = n; i-- > 0;) {
    q = reflected(&blocks[i], false, q);
    if (i != 0) q = bordered(q, BLOCK);
  }
  return q;
}

// Of (N, m, n); `sign` is the product of the reflections' determinants, each -1
// but for one that leaves all as it is.
static void factor(calx_tensor *x, bool complete, cx_ops_qr_parts *out)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t m = s.dims[1], n = s.dims[2], k = m < n ? m : n;
  block blocks[MOST_BLOCKS];
  calx_tensor *rows[MOST_BLOCKS + 1], *rest = x, *sign = NULL;
  size_t count = 0;
  for (int64_t at = 0; at < k; at += BLOCK, count++) {
    const int64_t width = k - at < BLOCK ? k - at : BLOCK;
    block *b = &blocks[count];
    calx_tensor *tau, *panel;
    cx_ops_householder_panel(calx_narrow(rest, 2, 0, width), &b->v, &tau,
                             &panel);
    b->t = cx_ops_wy_triangle(b->v, tau);
    calx_tensor *flips = calx_where(calx_ne(tau, cx_ops_number(0)),
                                    cx_ops_number(-1), cx_ops_number(1));
    flips = calx_prod_with(
        flips, &(calx_reduce_options){ .size = sizeof(calx_reduce_options),
                                       .dims = CALX_DIMS(1) });
    sign = sign == NULL ? flips : calx_mul(sign, flips);
    calx_tensor *others = calx_narrow(rest, 2, width, n - at - width);
    calx_tensor *both[2] = { panel, reflected(b, true, others) };
    const int64_t left[2] = { at, 0 };
    rest = calx_cat(both, 2, 2);
    rows[count] = calx_pad_with(calx_narrow(rest, 1, 0, width),
                                calx_dims_of(left, 2), NULL);
    rest = calx_narrow(both[1], 1, width, m - at - width);
  }
  calx_create_options o = { .size = sizeof o,
                            .dtype = s.dtype,
                            .device = calx_tensor_device(x) };
  size_t parts = count;
  if (complete && m > k) {
    rows[parts++] = calx_zeros_with(CALX_SHAPE(s.dims[0], m - k, n), &o);
  }
  out->q = product_of(blocks, count, x, complete ? m : k);
  out->r = parts != 0 ? calx_cat(rows, parts, 1)
                      : calx_zeros_with(CALX_SHAPE(s.dims[0], k, n), &o);
  out->sign = sign != NULL ? sign : calx_ones_with(CALX_SHAPE(s.dims[0]), &o);
}

void cx_ops_qr_of(calx_tensor *x, bool complete, cx_ops_qr_parts *out)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t most = BLOCK * MOST_BLOCKS;
  if (s.dims[s.rank - 2] > most && s.dims[s.rank - 1] > most) {
    out->q = out->r = out->sign =
        cx_ops_invalid("qr: %s, at most %d rows or columns are possible",
                       cx_graph_shape_str(&s), BLOCK * MOST_BLOCKS);
    return;
  }
  cx_lazy_no_grad_begin();
  factor(cx_ops_flat_batch(cx_lazy_tensor_detached(x)), complete, out);
  calx_tensor *operands[3] = { x, cx_ops_unflat_batch(out->q, &s),
                               cx_ops_unflat_batch(out->r, &s) };
  out->sign = cx_ops_unflat_batch(out->sign, &s);
  cx_lazy_no_grad_end();
  calx_tensor *outs[2];
  cx_lazy_call call = {
    .op = &cx_ops_qr, .in = operands, .n_in = 3, .n_out = 2
  };
  cx_lazy_apply(&call, outs);
  out->q = outs[0];
  out->r = outs[1];
}
