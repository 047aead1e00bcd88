// ops/composite_rnn_cell: one step of recurrent networks, composed of public
// ops, so that a program can write loops of its own and derive them twice.
#include "base/dtype.h"
#include "calx/rnn.h"
#include "ops/composite.h"
#include "ops/recurrent.h"

typedef struct step {
  const char *op;
  cx_ops_cell cell;
  calx_tensor *x, *hx, *w_ih, *w_hh;
  const calx_rnn_cell_options *o;
} step;

static calx_tensor *columns(calx_tensor *x, int64_t k, int64_t n)
{
  int64_t size = calx_tensor_dim(x, -1) / n;
  return calx_slice(x, -1, k * size, (k + 1) * size, 1);
}

// A state of the input's batch.
static calx_tensor *check_state(const step *s, const char *name, int64_t hidden,
                                calx_tensor **state)
{
  cx_graph_shape wanted = *cx_lazy_tensor_shape(s->x);
  wanted.dims[wanted.rank - 1] = hidden;
  if (*state == NULL) {
    calx_create_options o = { .size = sizeof o,
                              .dtype = wanted.dtype,
                              .device = calx_tensor_device(s->x) };
    *state = calx_zeros_with(cx_ops_dims_of(&wanted), &o);
    return NULL;
  }
  calx_tensor *bad;
  if (cx_ops_unfit(s->op, state, 1, &bad)) return bad;
  const cx_graph_shape *have = cx_lazy_tensor_shape(*state);
  if (cx_graph_shape_equal(have, &wanted)) return NULL;
  return cx_ops_invalid("%s: %s is %s, %s is wanted", s->op, name,
                        cx_graph_shape_str(have), cx_graph_shape_str(&wanted));
}

// NULL: the operands fit, and *out_hidden is H.
static calx_tensor *check(const step *s, int64_t *out_hidden)
{
  calx_tensor *in[5] = { s->x, s->w_ih, s->w_hh }, *bad;
  uint32_t n = 3;
  if (s->o->b_ih != NULL) in[n++] = s->o->b_ih;
  if (s->o->b_hh != NULL) in[n++] = s->o->b_hh;
  if (cx_ops_unfit(s->op, in, n, &bad)) return bad;
  const cx_graph_shape *x = cx_lazy_tensor_shape(s->x),
                       *w = cx_lazy_tensor_shape(s->w_hh);
  if ((x->rank != 1 && x->rank != 2) || !cx_dtype_is_float(x->dtype)) {
    return cx_ops_invalid(
        "%s: a floating input (batch, size) or (size) is wanted, got %s", s->op,
        cx_graph_shape_str(x));
  }
  int64_t gates = cx_ops_cell_gates(s->cell);
  int64_t hidden = w->rank == 2 ? w->dims[1] : 0;
  if (w->rank != 2 || w->dims[0] != gates * hidden) {
    return cx_ops_invalid("%s: w_hh is %s, a matrix (%lld H, H) is wanted",
                          s->op, cx_graph_shape_str(w), (long long)gates);
  }
  const cx_graph_shape *ih = cx_lazy_tensor_shape(s->w_ih);
  if (ih->rank != 2 || ih->dims[0] != w->dims[0] ||
      ih->dims[1] != x->dims[x->rank - 1]) {
    return cx_ops_invalid(
        "%s: w_ih is %s, (%lld, %lld) is wanted for the "
        "input %s and w_hh %s",
        s->op, cx_graph_shape_str(ih), (long long)w->dims[0],
        (long long)x->dims[x->rank - 1], cx_graph_shape_str(x),
        cx_graph_shape_str(w));
  }
  for (uint32_t i = 3; i < n; i++) {
    const cx_graph_shape *b = cx_lazy_tensor_shape(in[i]);
    if (b->rank == 1 && b->dims[0] == w->dims[0]) continue;
    return cx_ops_invalid("%s: a bias is %s, (%lld) is wanted", s->op,
                          cx_graph_shape_str(b), (long long)w->dims[0]);
  }
  *out_hidden = hidden;
  return NULL;
}

static calx_tensor *lstm(calx_tensor *gates, calx_tensor **c)
{
  calx_tensor *i = calx_sigmoid(columns(gates, 0, 4));
  calx_tensor *f = calx_sigmoid(columns(gates, 1, 4));
  calx_tensor *g = calx_tanh(columns(gates, 2, 4));
  calx_tensor *o = calx_sigmoid(columns(gates, 3, 4));
  *c = cx_ops_plus(calx_mul(f, *c), calx_mul(i, g));
  return calx_mul(o, calx_tanh(*c));
}

static calx_tensor *gru(calx_tensor *x, calx_tensor *side, calx_tensor *h)
{
  calx_tensor *both = cx_ops_plus(x, side);
  calx_tensor *r = calx_sigmoid(columns(both, 0, 3));
  calx_tensor *z = calx_sigmoid(columns(both, 1, 3));
  calx_tensor *n = calx_tanh(
      cx_ops_plus(columns(x, 2, 3), calx_mul(r, columns(side, 2, 3))));
  return cx_ops_plus(n, calx_mul(z, cx_ops_minus(h, n)));
}

static calx_tensor *run(step *s, calx_tensor **out_c)
{
  int64_t hidden = 0;
  calx_tensor *bad = check(s, &hidden), *c = s->o->cx;
  if (bad == NULL) bad = check_state(s, "hx", hidden, &s->hx);
  if (bad != NULL) return bad;
  bool is_lstm = s->cell == CX_OPS_CELL_LSTM;
  if (!is_lstm && (c != NULL || s->o->out_cx != NULL)) {
    return cx_ops_invalid("%s: only an LSTM has a cell state (cx, out_cx)",
                          s->op);
  }
  if (is_lstm) {
    bad = check_state(s, "cx", hidden, &c);
    if (bad != NULL) return bad;
  }
  calx_tensor *x = calx_linear(s->x, s->w_ih, s->o->b_ih);
  calx_tensor *h = calx_linear(s->hx, s->w_hh, s->o->b_hh);
  if (s->cell == CX_OPS_CELL_GRU) return gru(x, h, s->hx);
  calx_tensor *gates = cx_ops_plus(x, h);
  if (!is_lstm) {
    return s->cell == CX_OPS_CELL_TANH ? calx_tanh(gates) : calx_relu(gates);
  }
  h = lstm(gates, &c);
  *out_c = c;
  return h;
}

static calx_tensor *step_of(step s)
{
  calx_tensor *c = NULL, *h = run(&s, &c);
  if (s.o->out_cx != NULL) *s.o->out_cx = cx_lazy_tensor_poisoned(h) ? h : c;
  return h;
}

#define DEFINE_CELL(name, kind)                                         \
  calx_tensor *calx_##name##_with(calx_tensor *x, calx_tensor *hx,      \
                                  calx_tensor *w_ih, calx_tensor *w_hh, \
                                  const calx_rnn_cell_options *o)       \
  {                                                                     \
    CX_OPS_COMPOSITE(#name);                                            \
    calx_tensor *bad;                                                   \
    CX_OPS_TAKE_OPTIONS(rnn_cell, o, bad);                              \
    return step_of((step){ #name, kind, x, hx, w_ih, w_hh, o });        \
  }

DEFINE_CELL(rnn_tanh_cell, CX_OPS_CELL_TANH)
DEFINE_CELL(rnn_relu_cell, CX_OPS_CELL_RELU)
DEFINE_CELL(lstm_cell, CX_OPS_CELL_LSTM)
DEFINE_CELL(gru_cell, CX_OPS_CELL_GRU)
