// ops/recurrent_cell: one step of each cell and its gradient, as StableHLO.
// Low precision computes in f32 and stores in its own type.
#include "ops/recurrent.h"

static cx_hlo_value *binary(cx_ops_loop *l, cx_hlo_op_kind kind,
                            cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(l->b, kind, x, y);
}

static cx_hlo_value *mul(cx_ops_loop *l, cx_hlo_value *x, cx_hlo_value *y)
{
  return binary(l, CX_HLO_OP_MULTIPLY, x, y);
}

static cx_hlo_value *add(cx_ops_loop *l, cx_hlo_value *x, cx_hlo_value *y)
{
  return binary(l, CX_HLO_OP_ADD, x, y);
}

static cx_hlo_value *sub(cx_ops_loop *l, cx_hlo_value *x, cx_hlo_value *y)
{
  return binary(l, CX_HLO_OP_SUBTRACT, x, y);
}

static cx_hlo_value *unary(cx_ops_loop *l, cx_hlo_op_kind kind, cx_hlo_value *x)
{
  return cx_hlo_unary(l->b, kind, x);
}

static cx_hlo_value *cast(cx_ops_loop *l, cx_hlo_value *x, cx_hlo_elem to)
{
  return cx_hlo_value_type(x)->elem == to ? x : cx_hlo_convert(l->b, x, to);
}

// `number` in the type and shape of x.
static cx_hlo_value *like(cx_ops_loop *l, cx_hlo_value *x, double number)
{
  return cx_hlo_splat(l->b, *cx_hlo_value_type(x), number);
}

// g (1 - y^2), the gradient before y = tanh; g y (1 - y), before a logistic.
static cx_hlo_value *before_tanh(cx_ops_loop *l, cx_hlo_value *g,
                                 cx_hlo_value *y)
{
  return mul(l, g, sub(l, like(l, y, 1), mul(l, y, y)));
}

static cx_hlo_value *before_logistic(cx_ops_loop *l, cx_hlo_value *g,
                                     cx_hlo_value *y)
{
  return mul(l, mul(l, g, y), sub(l, like(l, y, 1), y));
}

// x (N, K) times a weight whose dimension `along` has size K, in the wide type.
static cx_hlo_value *times(cx_ops_loop *l, cx_hlo_value *x, int weight,
                           int64_t along)
{
  static const int64_t last = 1;
  cx_hlo_dot_dims dims = { .lhs_contract = &last,
                           .rhs_contract = &along,
                           .n_contract = 1 };
  return cx_hlo_dot_general(l->b, cast(l, x, l->elem), l->v[weight], &dims,
                            l->wide);
}

// Columns [k H, (k + 1) H) of x (N, …).
static cx_hlo_value *columns(cx_ops_loop *l, cx_hlo_value *x, int64_t k)
{
  int64_t start[2] = { 0, k * l->hidden };
  int64_t limit[2] = { l->batch, (k + 1) * l->hidden };
  int64_t stride[2] = { 1, 1 };
  return cx_hlo_slice(l->b, x, start, limit, stride);
}

static cx_hlo_value *gate(cx_ops_loop *l, cx_hlo_value *all, int64_t k)
{
  return unary(l, CX_HLO_OP_LOGISTIC, columns(l, all, k));
}

static void keep(cx_ops_loop *l, cx_hlo_value *const *parts, size_t n)
{
  if (l->v[CX_OPS_VAR_SAVED] == NULL) return;
  cx_ops_loop_write(l, CX_OPS_VAR_SAVED, cx_hlo_concatenate(l->b, parts, n, 1));
}

// `now` (N, …) of rows that are at a step before their length, else `before`.
static cx_hlo_value *chosen(cx_ops_loop *l, cx_hlo_value *now,
                            cx_hlo_value *before)
{
  static const int64_t row = 0;
  cx_hlo_value *lengths = l->v[CX_OPS_VAR_LENGTHS];
  if (lengths == NULL) return now;
  cx_hlo_value *at = cx_hlo_broadcast_in_dim(l->b, l->at, &l->batch, 1, NULL);
  at = cx_hlo_compare(l->b, CX_HLO_LT, at, lengths);
  at = cx_hlo_broadcast_in_dim(l->b, at, cx_hlo_value_type(now)->dims, 2, &row);
  return cx_hlo_select(l->b, at, now, before);
}

static cx_hlo_value *chosen_or_zero(cx_ops_loop *l, cx_hlo_value *now)
{
  if (l->v[CX_OPS_VAR_LENGTHS] == NULL) return now;
  return chosen(l, now, like(l, now, 0));
}

// ---- forward ----------------------------------------------------------------

// c' = f c + i g, h' = o tanh(c'), projected where it is to be.
static cx_hlo_value *lstm(cx_ops_loop *l, cx_hlo_value *gates)
{
  cx_hlo_value *p[5];
  for (int k = 0; k < 4; k++) {
    p[k] = k != 2 ? gate(l, gates, k)
                  : unary(l, CX_HLO_OP_TANH, columns(l, gates, k));
  }
  cx_hlo_value *before = cast(l, l->v[CX_OPS_VAR_C], l->wide);
  cx_hlo_value *c = add(l, mul(l, p[1], before), mul(l, p[0], p[2]));
  c = chosen(l, c, before);
  l->v[CX_OPS_VAR_C] = cast(l, c, l->elem);
  p[4] = c;
  keep(l, p, 5);
  cx_hlo_value *h = mul(l, p[3], unary(l, CX_HLO_OP_TANH, c));
  return l->attrs->projected ? times(l, h, CX_OPS_VAR_PROJECT, 1) : h;
}

// n = tanh(x_n + r h_n), h' = n + z (h - n).
static cx_hlo_value *gru(cx_ops_loop *l, cx_hlo_value *x, cx_hlo_value *h)
{
  cx_hlo_value *both = add(l, x, h), *p[4];
  p[0] = gate(l, both, 0);
  p[1] = gate(l, both, 1);
  p[3] = columns(l, h, 2);
  p[2] = unary(l, CX_HLO_OP_TANH, add(l, columns(l, x, 2), mul(l, p[0], p[3])));
  keep(l, p, 4);
  cx_hlo_value *before = cast(l, l->v[CX_OPS_VAR_H], l->wide);
  return add(l, p[2], mul(l, p[1], sub(l, before, p[2])));
}

void cx_ops_step_forward(cx_ops_loop *l)
{
  cx_hlo_value *x = cx_ops_loop_read(l, CX_OPS_VAR_IN);
  cx_hlo_value *h = times(l, l->v[CX_OPS_VAR_H], CX_OPS_VAR_WEIGHT, 1);
  if (l->v[CX_OPS_VAR_BIAS] != NULL) {
    static const int64_t at = 1;
    cx_hlo_value *bias = cast(l, l->v[CX_OPS_VAR_BIAS], l->wide);
    h = add(l, h,
            cx_hlo_broadcast_in_dim(l->b, bias, cx_hlo_value_type(h)->dims, 2,
                                    &at));
  }
  switch (l->attrs->cell) {
    case CX_OPS_CELL_LSTM: h = lstm(l, add(l, x, h)); break;
    case CX_OPS_CELL_GRU: h = gru(l, x, h); break;
    case CX_OPS_CELL_TANH: h = unary(l, CX_HLO_OP_TANH, add(l, x, h)); break;
    default:
      h = add(l, x, h);
      h = binary(l, CX_HLO_OP_MAXIMUM, h, like(l, h, 0));
  }
  h = chosen(l, h, cast(l, l->v[CX_OPS_VAR_H], l->wide));
  l->v[CX_OPS_VAR_H] = cast(l, h, l->elem);
  cx_ops_loop_write(l, CX_OPS_VAR_OUT, h);
}

// ---- backward ---------------------------------------------------------------

// The gradient of the gates, of that of h', here and in the following.
static cx_hlo_value *lstm_backward(cx_ops_loop *l, cx_hlo_value *dh)
{
  cx_hlo_value *all = cx_ops_loop_read(l, CX_OPS_VAR_SAVED), *p[5], *d[4];
  for (int k = 0; k < 5; k++) p[k] = columns(l, all, k);
  cx_hlo_value *before = cx_ops_loop_read(l, CX_OPS_VAR_BEFORE);
  if (l->attrs->projected) {
    cx_ops_loop_write(l, CX_OPS_VAR_EXTRA, chosen_or_zero(l, dh));
    dh = times(l, dh, CX_OPS_VAR_PROJECT, 0);
  }
  cx_hlo_value *tanh_c = unary(l, CX_HLO_OP_TANH, p[4]);
  cx_hlo_value *dc = add(l, cast(l, l->v[CX_OPS_VAR_C], l->wide),
                         before_tanh(l, mul(l, dh, p[3]), tanh_c));
  d[0] = before_logistic(l, mul(l, dc, p[2]), p[0]);
  d[1] = before_logistic(l, mul(l, dc, before), p[1]);
  d[2] = before_tanh(l, mul(l, dc, p[0]), p[2]);
  d[3] = before_logistic(l, mul(l, dh, tanh_c), p[3]);
  dc = cast(l, mul(l, dc, p[1]), l->elem);
  l->v[CX_OPS_VAR_C] = chosen(l, dc, l->v[CX_OPS_VAR_C]);
  return cx_hlo_concatenate(l->b, d, 4, 1);
}

// *dh becomes what flows to the state before past the product; *side the
// gradient of h W_hh^T + b_hh, which has another third part than the gates'.
static cx_hlo_value *gru_backward(cx_ops_loop *l, cx_hlo_value **dh,
                                  cx_hlo_value **side)
{
  cx_hlo_value *all = cx_ops_loop_read(l, CX_OPS_VAR_SAVED), *p[4], *d[3];
  for (int k = 0; k < 4; k++) p[k] = columns(l, all, k);
  cx_hlo_value *before = cx_ops_loop_read(l, CX_OPS_VAR_BEFORE);
  cx_hlo_value *dn = mul(l, *dh, sub(l, like(l, *dh, 1), p[1]));
  d[2] = before_tanh(l, dn, p[2]);
  d[1] = before_logistic(l, mul(l, *dh, sub(l, before, p[2])), p[1]);
  d[0] = before_logistic(l, mul(l, d[2], p[3]), p[0]);
  cx_hlo_value *gates = cx_hlo_concatenate(l->b, d, 3, 1);
  d[2] = mul(l, d[2], p[0]);
  cx_ops_loop_write(l, CX_OPS_VAR_EXTRA, chosen_or_zero(l, d[2]));
  *side = cx_hlo_concatenate(l->b, d, 3, 1);
  *dh = mul(l, *dh, p[1]);
  return gates;
}

static cx_hlo_value *plain_backward(cx_ops_loop *l, cx_hlo_value *dh)
{
  cx_hlo_value *y = cx_ops_loop_read(l, CX_OPS_VAR_SAVED);
  if (l->attrs->cell == CX_OPS_CELL_TANH) return before_tanh(l, dh, y);
  cx_hlo_value *zero = like(l, y, 0);
  return cx_hlo_select(l->b, cx_hlo_compare(l->b, CX_HLO_GT, y, zero), dh,
                       zero);
}

void cx_ops_step_backward(cx_ops_loop *l)
{
  cx_hlo_value *dh = add(l, cx_ops_loop_read(l, CX_OPS_VAR_IN),
                         cast(l, l->v[CX_OPS_VAR_H], l->wide));
  cx_hlo_value *gates, *side, *past = NULL;
  switch (l->attrs->cell) {
    case CX_OPS_CELL_LSTM: side = gates = lstm_backward(l, dh); break;
    case CX_OPS_CELL_GRU:
      past = dh;
      gates = gru_backward(l, &past, &side);
      break;
    default: side = gates = plain_backward(l, dh);
  }
  cx_ops_loop_write(l, CX_OPS_VAR_OUT, chosen_or_zero(l, gates));
  cx_hlo_value *before = times(l, side, CX_OPS_VAR_WEIGHT, 0);
  if (past != NULL) before = add(l, before, past);
  // What reaches a row after its end is the gradient of its last state.
  before = chosen(l, before, dh);
  l->v[CX_OPS_VAR_H] = cast(l, before, l->elem);
}
