// ops/recurrent: a recurrent layer in one direction is one op: a loop over the
// steps, which adds h W_hh^T to the gates that the input gives. The product
// with the input is made before it, for all steps at once, and the gradients of
// the weights after the loop of the backward op.
#include "ops/recurrent.h"

// ---- the forward op ---------------------------------------------------------

// in: gates (T, N, G), h0 (N, P), W_hh (G, P); an LSTM's c0 (N, H) and, if
// projected, W_hr (P, H); a GRU's b_hh (G); last, if masked, lengths (N). out:
// y (T, N, P); an LSTM's last c (N, H); with `save`, what is saved (T, N, S)
// where a cell saves anything.
static calx_status *infer_recurrence(cx_graph_node *node)
{
  const cx_ops_recurrent_attrs *a = node->attrs;
  const cx_graph_shape *gates = cx_in(node, 0);
  int64_t hidden = gates->dims[2] / cx_ops_cell_gates(a->cell);
  uint32_t k = 0;
  node->out[k].shape = *gates;
  node->out[k++].shape.dims[2] = cx_in(node, 1)->dims[1];
  if (a->cell == CX_OPS_CELL_LSTM) node->out[k++].shape = *cx_in(node, 3);
  if (k == node->n_out) return NULL;
  node->out[k].shape = *gates;
  node->out[k].shape.dims[2] = hidden * cx_ops_cell_saved(a->cell);
  return NULL;
}

// An initial value of a variable that is written before it is read.
static cx_hlo_value *room(const cx_graph_emit *e, uint32_t out)
{
  return cx_hlo_splat(e->b, cx_ops_out_type(e, out), 0);
}

static cx_ops_loop loop_of(const cx_graph_emit *e, const cx_graph_shape *gates)
{
  const cx_ops_recurrent_attrs *a = e->attrs;
  return (cx_ops_loop){ .b = e->b,
                        .attrs = a,
                        .steps = gates->dims[0],
                        .batch = gates->dims[1],
                        .hidden = gates->dims[2] / cx_ops_cell_gates(a->cell),
                        .elem = cx_hlo_elem_of(gates->dtype),
                        .wide = cx_ops_emit_wide(gates->dtype) };
}

static void emit_recurrence(cx_graph_emit *e)
{
  const cx_ops_recurrent_attrs *a = e->attrs;
  bool lstm = a->cell == CX_OPS_CELL_LSTM;
  cx_ops_loop l = loop_of(e, cx_in(e->node, 0));
  l.step = cx_ops_step_forward;
  l.down = a->reverse != 0;
  l.v[CX_OPS_VAR_IN] = e->in[0];
  l.v[CX_OPS_VAR_H] = e->in[1];
  l.v[CX_OPS_VAR_WEIGHT] = e->in[2];
  if (lstm) l.v[CX_OPS_VAR_C] = e->in[3];
  if (a->cell == CX_OPS_CELL_GRU) l.v[CX_OPS_VAR_BIAS] = e->in[3];
  if (a->projected) l.v[CX_OPS_VAR_PROJECT] = e->in[4];
  if (a->masked) l.v[CX_OPS_VAR_LENGTHS] = e->in[e->node->n_in - 1];
  uint32_t last = e->node->n_out - 1;
  bool saves = last > (lstm ? 1u : 0u);
  l.v[CX_OPS_VAR_OUT] = room(e, 0);
  if (saves) l.v[CX_OPS_VAR_SAVED] = room(e, last);
  cx_ops_emit_loop(&l);
  e->out[0] = l.v[CX_OPS_VAR_OUT];
  if (lstm) e->out[1] = l.v[CX_OPS_VAR_C];
  if (saves) e->out[last] = l.v[CX_OPS_VAR_SAVED];
}

static void describe(const void *attrs, cx_text *out)
{
  static const char *const names[] = { "tanh", "relu", "lstm", "gru" };
  const cx_ops_recurrent_attrs *a = attrs;
  cx_text_format(out, "%s%s%s%s", names[a->cell], a->reverse ? ", reverse" : "",
                 a->projected ? ", projected" : "",
                 a->masked ? ", lengths" : "");
}

// ---- its gradient -----------------------------------------------------------

// What a state was before each step: (T, N, …) of its values after each step
// and the first one.
static calx_tensor *shifted(calx_tensor *after, calx_tensor *first,
                            bool reverse)
{
  int64_t steps = calx_tensor_dim(after, 0);
  first = calx_unsqueeze(first, 0);
  if (steps == 1) return first;
  if (reverse) {
    calx_tensor *both[2] = { calx_slice(after, 0, 1, steps, 1), first };
    return calx_cat(both, 2, 0);
  }
  calx_tensor *both[2] = { first, calx_slice(after, 0, 0, steps - 1, 1) };
  return calx_cat(both, 2, 0);
}

static calx_tensor *columns(calx_tensor *x, int64_t from, int64_t to)
{
  return calx_slice(x, 2, from, to, 1);
}

// The sum over steps and batch of g^T x: (G, P) of (T, N, G) and (T, N, P).
static calx_tensor *weight_gradient(calx_tensor *g, calx_tensor *x)
{
  int64_t rows = calx_tensor_dim(g, 0) * calx_tensor_dim(g, 1);
  g = calx_reshape(g, CALX_SHAPE(rows, calx_tensor_dim(g, 2)));
  x = calx_reshape(x, CALX_SHAPE(rows, calx_tensor_dim(x, 2)));
  return calx_matmul(calx_transpose(g, 0, 1), x);
}

// The last two gradients: of W_hh and of what only one cell has.
static void grad_weights(cx_lazy_tape *t, calx_tensor *const *g,
                         calx_tensor *saved)
{
  const cx_ops_recurrent_attrs *a = t->attrs;
  calx_tensor *y = cx_lazy_tape_out(t, 0), *side = g[0];
  int64_t hidden = calx_tensor_dim(side, 2) / cx_ops_cell_gates(a->cell);
  if (a->cell == CX_OPS_CELL_GRU) {
    calx_tensor *both[2] = { columns(side, 0, 2 * hidden), g[2] };
    side = calx_cat(both, 2, 2);
    static const int64_t dims[2] = { 0, 1 };
    calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(dims, 2) };
    t->in_grads[3] = calx_sum_with(side, &o);
  }
  if (cx_tape_needs(t, 2)) {
    t->in_grads[2] = weight_gradient(
        side, shifted(y, cx_lazy_tape_in(t, 1), a->reverse != 0));
  }
  if (!a->projected || !cx_tape_needs(t, 4)) return;
  calx_tensor *o = columns(saved, 3 * hidden, 4 * hidden);
  calx_tensor *c = columns(saved, 4 * hidden, 5 * hidden);
  t->in_grads[4] = weight_gradient(g[3], calx_mul(o, calx_tanh(c)));
}

static void grad_recurrence(cx_lazy_tape *t)
{
  const cx_ops_recurrent_attrs *a = t->attrs;
  bool lstm = a->cell == CX_OPS_CELL_LSTM, gru = a->cell == CX_OPS_CELL_GRU;
  calx_tensor *y = cx_lazy_tape_out(t, 0);
  calx_tensor *saved = cx_lazy_tape_out(t, t->node->n_out - 1);
  calx_tensor *dy = t->out_grads[0], *in[7], *g[4];
  uint32_t n = 0;
  in[n++] = dy != NULL ? dy : cx_ops_zeros_like(y);
  in[n++] = saved;
  in[n++] = cx_lazy_tape_in(t, 2);
  if (lstm) {
    calx_tensor *dc = t->out_grads[1], *c0 = cx_lazy_tape_in(t, 3);
    int64_t hidden = calx_tensor_dim(c0, 1);
    in[n++] =
        shifted(columns(saved, 4 * hidden, 5 * hidden), c0, a->reverse != 0);
    in[n++] = dc != NULL ? dc : cx_ops_zeros_like(c0);
    if (a->projected) in[n++] = cx_lazy_tape_in(t, 4);
  }
  if (gru) in[n++] = shifted(y, cx_lazy_tape_in(t, 1), a->reverse != 0);
  if (a->masked) in[n++] = cx_lazy_tape_in(t, t->node->n_in - 1);
  cx_lazy_call call = { .op = &cx_ops_recurrence_backward,
                        .in = in,
                        .n_in = n,
                        .n_out = 2u + (lstm || gru) + a->projected,
                        .attrs = a };
  cx_lazy_apply(&call, g);
  t->in_grads[0] = g[0];
  t->in_grads[1] = g[1];
  if (lstm) t->in_grads[3] = g[2];
  grad_weights(t, g, saved);
}

CX_OPS_DEFINE(recurrence, .attr_size = sizeof(cx_ops_recurrent_attrs),
              .infer = infer_recurrence, .grad = grad_recurrence,
              .emit = emit_recurrence, .describe = describe)

// ---- the backward op --------------------------------------------------------

// in: dy (T, N, P), what was saved, W_hh; an LSTM's c before each step, the
// gradient of its last c and, if projected, W_hr; a GRU's h before each step.
// out: of the gates (T, N, G), of h0; of an LSTM's c0; EXTRA.
static calx_status *infer_backward(cx_graph_node *node)
{
  const cx_ops_recurrent_attrs *a = node->attrs;
  const cx_graph_shape *dy = cx_in(node, 0), *w = cx_in(node, 2);
  cx_graph_shape *h0 = &node->out[1].shape;
  node->out[0].shape = *dy;
  node->out[0].shape.dims[2] = w->dims[0];
  *h0 = (cx_graph_shape){ .dtype = dy->dtype, .rank = 2 };
  h0->dims[0] = dy->dims[1];
  h0->dims[1] = dy->dims[2];
  if (a->cell == CX_OPS_CELL_LSTM) node->out[2].shape = *cx_in(node, 4);
  if (a->cell == CX_OPS_CELL_GRU) node->out[2].shape = *cx_in(node, 3);
  if (a->projected) node->out[3].shape = *dy;
  return NULL;
}

static void emit_backward(cx_graph_emit *e)
{
  const cx_ops_recurrent_attrs *a = e->attrs;
  bool lstm = a->cell == CX_OPS_CELL_LSTM;
  uint32_t last = e->node->n_out - 1;
  bool extra = a->cell == CX_OPS_CELL_GRU || a->projected;
  cx_ops_loop l = loop_of(e, &e->node->out[0].shape);
  l.step = cx_ops_step_backward;
  l.down = a->reverse == 0;
  l.v[CX_OPS_VAR_IN] = e->in[0];
  l.v[CX_OPS_VAR_SAVED] = e->in[1];
  l.v[CX_OPS_VAR_WEIGHT] = e->in[2];
  if (lstm || extra) l.v[CX_OPS_VAR_BEFORE] = e->in[3];
  if (lstm) l.v[CX_OPS_VAR_C] = e->in[4];
  if (a->projected) l.v[CX_OPS_VAR_PROJECT] = e->in[5];
  if (a->masked) l.v[CX_OPS_VAR_LENGTHS] = e->in[e->node->n_in - 1];
  l.v[CX_OPS_VAR_OUT] = room(e, 0);
  l.v[CX_OPS_VAR_H] = room(e, 1);
  if (extra) l.v[CX_OPS_VAR_EXTRA] = room(e, last);
  cx_ops_emit_loop(&l);
  e->out[0] = l.v[CX_OPS_VAR_OUT];
  e->out[1] = l.v[CX_OPS_VAR_H];
  if (lstm) e->out[2] = l.v[CX_OPS_VAR_C];
  if (extra) e->out[last] = l.v[CX_OPS_VAR_EXTRA];
}

// A wrong second derivative in silence would be worse than none.
static void grad_backward(cx_lazy_tape *t)
{
  t->in_grads[0] = cx_ops_poison(
      CALX_UNIMPLEMENTED,
      "rnn: a recurrent layer has first derivatives only; write the loop over "
      "the steps with calx_lstm_cell, calx_gru_cell or calx_rnn_tanh_cell for "
      "second ones");
}

CX_OPS_DEFINE(recurrence_backward, .attr_size = sizeof(cx_ops_recurrent_attrs),
              .infer = infer_backward, .grad = grad_backward,
              .emit = emit_backward, .describe = describe)

// ---- entry ------------------------------------------------------------------

calx_tensor *cx_ops_recur(const cx_ops_recurrent_call *r, calx_tensor **out_c)
{
  calx_tensor *in[6] = { r->gates, r->h0, r->weight_hh }, *out[3];
  uint32_t n = 3, n_out = 1;
  bool lstm = r->cell == CX_OPS_CELL_LSTM;
  cx_ops_recurrent_attrs a = { .cell = r->cell,
                               .reverse = r->reverse,
                               .projected = r->weight_hr != NULL,
                               .masked = r->lengths != NULL };
  if (lstm) in[n++] = r->c0;
  if (lstm) n_out++;
  if (r->cell == CX_OPS_CELL_GRU) in[n++] = r->bias_hh;
  if (r->weight_hr != NULL) in[n++] = r->weight_hr;
  for (uint32_t i = 0; i < n; i++) {
    if (cx_lazy_tensor_requires_grad(in[i])) a.save = cx_lazy_grad_mode();
  }
  if (a.save && cx_ops_cell_saved(a.cell) != 0) n_out++;
  if (a.masked) {
    calx_dtype index = cx_ops_index_dtype(calx_tensor_dim(r->gates, 0));
    in[n++] = calx_to_dtype(r->lengths, index);
  }
  cx_lazy_call call = {
    .op = &cx_ops_recurrence, .in = in, .n_in = n, .n_out = n_out, .attrs = &a
  };
  cx_lazy_apply(&call, out);
  *out_c = out[lstm ? 1 : 0];
  return out[0];
}
