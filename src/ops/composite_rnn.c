// ops/composite_rnn: recurrent networks of several layers and directions, of
// one loop each.
#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/rnn.h"
#include "ops/autocast.h"
#include "ops/composite.h"
#include "ops/recurrent.h"

typedef struct rnn_run {
  const char *op;
  cx_ops_cell cell;
  const calx_rnn_options *o;
  calx_tensor *const *weights;
  int64_t layers, dirs, per;          // `per` weights a layer and direction
  int64_t steps, batch, hidden, out;  // out: P
  calx_tensor *x;                     // (T, N, F), then a layer's outputs
  calx_tensor *hx, *cx;               // (L D, N, …); NULL: zeros
  calx_tensor **hn, **cn;             // (N, …), L D of them
  calx_tensor *lengths;               // (N), or NULL
  calx_tensor *mask;  // (T, N, 1): the step is before the length
} rnn_run;

// ---- checks -----------------------------------------------------------------

static bool has_dims(const calx_tensor *t, const int64_t *dims, uint32_t rank)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  bool same = s->rank == rank;
  for (uint32_t i = 0; same && i < rank; i++) same = s->dims[i] == dims[i];
  return same;
}

static calx_tensor *wrong_shape(const char *op, const char *what,
                                const calx_tensor *t, const int64_t *dims,
                                uint32_t rank)
{
  cx_graph_shape wanted = { .dtype = cx_lazy_tensor_shape(t)->dtype,
                            .rank = rank };
  for (uint32_t i = 0; i < rank; i++) wanted.dims[i] = dims[i];
  return cx_ops_invalid("%s: %s is %s, %s is wanted", op, what,
                        cx_graph_shape_str(cx_lazy_tensor_shape(t)),
                        cx_graph_shape_str(&wanted));
}

// NULL: the weights are those of the layer and direction i.
static calx_tensor *check_weights(const rnn_run *r, int64_t i)
{
  static const char *const names[5] = { "weight_ih", "weight_hh", "bias_ih",
                                        "bias_hh", "weight_hr" };
  calx_tensor *const *w = r->weights + i * r->per;
  int64_t rows = r->hidden * cx_ops_cell_gates(r->cell);
  int64_t in = i < r->dirs ? calx_tensor_dim(r->x, -1) : r->dirs * r->out;
  int64_t dims[5][2] = {
    { rows, in }, { rows, r->out }, { rows }, { rows }, { r->out, r->hidden }
  };
  for (int64_t k = 0; k < r->per; k++) {
    int64_t which = r->o->no_biases && k == 2 ? 4 : k;
    uint32_t rank = which == 2 || which == 3 ? 1 : 2;
    char what[64];
    snprintf(what, sizeof what, "%s of layer %lld%s", names[which],
             (long long)(i / r->dirs), i % r->dirs != 0 ? ", reverse" : "");
    if (!has_dims(w[k], dims[which], rank)) {
      return wrong_shape(r->op, what, w[k], dims[which], rank);
    }
    calx_dtype have = cx_lazy_tensor_shape(w[k])->dtype;
    calx_dtype want = cx_lazy_tensor_shape(r->x)->dtype;
    if (have == want) continue;
    return cx_ops_invalid(
        "%s: %s is %s and the input %s; convert one with "
        "calx_to_dtype",
        r->op, what, calx_dtype_name(have), calx_dtype_name(want));
  }
  return NULL;
}

// Numbers of layers and weights, and the sizes that the weights tell.
static calx_tensor *check_count(rnn_run *r, size_t count)
{
  int64_t most = CX_OPS_CAT_MOST / 2;
  r->layers = r->o->num_layers != 0 ? r->o->num_layers : 1;
  r->dirs = r->o->bidirectional ? 2 : 1;
  if (r->layers < 0 || r->layers > most) {
    return cx_ops_invalid("%s: num_layers is %lld, 1 to %lld are possible",
                          r->op, (long long)r->layers, (long long)most);
  }
  int64_t least = r->o->no_biases ? 2 : 4, sets = r->layers * r->dirs;
  r->per = (int64_t)count / sets;
  bool projected = r->per == least + 1 && r->cell == CX_OPS_CELL_LSTM;
  if ((size_t)(r->per * sets) != count || (r->per != least && !projected)) {
    return cx_ops_invalid(
        "%s: %zu weights; %lld layers in %lld direction(s) %s biases have %lld",
        r->op, count, (long long)r->layers, (long long)r->dirs,
        r->o->no_biases ? "without" : "with", (long long)(sets * least));
  }
  calx_tensor *bad;
  if (r->weights == NULL) {
    return cx_ops_invalid("%s: the weights are NULL", r->op);
  }
  if (cx_ops_unfit(r->op, r->weights, (uint32_t)count, &bad)) return bad;
  for (int i = 0; i < 2; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(r->weights[i]);
    int64_t gates = cx_ops_cell_gates(r->cell);
    if (s->rank == 2 && s->dims[0] > 0 && s->dims[0] % gates == 0) continue;
    return cx_ops_invalid("%s: %s is %s, a matrix of %lld H rows is wanted",
                          r->op, i == 0 ? "weight_ih" : "weight_hh",
                          cx_graph_shape_str(s), (long long)gates);
  }
  r->hidden = calx_tensor_dim(r->weights[0], 0) / cx_ops_cell_gates(r->cell);
  r->out = projected ? calx_tensor_dim(r->weights[1], 1) : r->hidden;
  return NULL;
}

// A state (L D, N, size), or without the batch for an input without one.
static calx_tensor *take_state(const rnn_run *r, const char *name, bool batched,
                               int64_t size, calx_tensor **state)
{
  calx_tensor *bad;
  if (*state == NULL) return NULL;
  if (cx_ops_unfit(r->op, state, 1, &bad)) return bad;
  int64_t dims[3] = { r->layers * r->dirs, r->batch, size };
  if (!batched) dims[1] = size;
  uint32_t rank = batched ? 3 : 2;
  if (!has_dims(*state, dims, rank)) {
    return wrong_shape(r->op, name, *state, dims, rank);
  }
  calx_dtype want = cx_lazy_tensor_shape(r->x)->dtype;
  if (cx_lazy_tensor_shape(*state)->dtype != want) {
    return cx_ops_invalid("%s: %s is %s and the input %s", r->op, name,
                          calx_dtype_name(cx_lazy_tensor_shape(*state)->dtype),
                          calx_dtype_name(want));
  }
  if (!batched) *state = calx_unsqueeze(*state, 1);
  return NULL;
}

static calx_tensor *check_on_host(const rnn_run *r)
{
  const void *data = calx_host_data(r->lengths);
  calx_dtype type = calx_tensor_dtype(r->lengths);
  for (int64_t i = 0; i < r->batch; i++) {
    const unsigned char *p = data;
    int64_t n = cx_load_int(type, p + (size_t)i * calx_dtype_size(type));
    if (n >= 1 && n <= r->steps) continue;
    return cx_ops_invalid("%s: length %lld of row %lld, 1 to %lld are possible",
                          r->op, (long long)n, (long long)i,
                          (long long)r->steps);
  }
  return NULL;
}

// Brings the lengths to the device, and what x has after them to 0.
static calx_tensor *take_lengths(rnn_run *r, bool batched)
{
  calx_tensor *bad;
  r->lengths = r->o->lengths;
  if (r->lengths == NULL) return NULL;
  bool host = calx_tensor_is_host(r->lengths);
  if (!host && cx_ops_unfit(r->op, &r->lengths, 1, &bad)) return bad;
  calx_dims shape = calx_tensor_shape(r->lengths);
  if (!batched || !cx_dtype_is_int(calx_tensor_dtype(r->lengths)) ||
      shape.count != 1 || shape.values[0] != r->batch) {
    return cx_ops_invalid(
        "%s: .lengths is %s of rank %zu with %lld elements; whole numbers, one "
        "for each of %lld rows of a batch, are wanted",
        r->op, calx_dtype_name(calx_tensor_dtype(r->lengths)), shape.count,
        (long long)calx_tensor_numel(r->lengths),
        batched ? (long long)r->batch : 0LL);
  }
  if (host) {
    bad = check_on_host(r);
    if (bad != NULL) return bad;
    r->lengths = calx_to(r->lengths, calx_tensor_device(r->x));
  }
  r->mask = cx_ops_before_lengths(r->lengths, r->steps);
  r->x = calx_where(r->mask, r->x, cx_ops_zeros_like(r->x));
  return NULL;
}

// Makes x (T, N, F); NULL: all fits.
static calx_tensor *check(rnn_run *r, size_t count)
{
  calx_tensor *bad = check_count(r, count);
  if (bad != NULL) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(r->x);
  if ((s->rank != 2 && s->rank != 3) || !cx_dtype_is_float(s->dtype)) {
    return cx_ops_invalid(
        "%s: a floating input %s or (steps, size) is wanted, "
        "got %s",
        r->op,
        r->o->batch_first ? "(batch, steps, size)" : "(steps, batch, size)",
        cx_graph_shape_str(s));
  }
  if (!(r->o->dropout >= 0 && r->o->dropout <= 1)) {
    return cx_ops_invalid("%s: the probability of dropout %g is not in [0, 1]",
                          r->op, r->o->dropout);
  }
  bool lstm = r->cell == CX_OPS_CELL_LSTM, batched = s->rank == 3;
  if (!lstm && (r->o->cx != NULL || r->o->out_cn != NULL)) {
    return cx_ops_invalid("%s: only an LSTM has a cell state (cx, out_cn)",
                          r->op);
  }
  for (int64_t i = 0; i < r->layers * r->dirs; i++) {
    bad = check_weights(r, i);
    if (bad != NULL) return bad;
  }
  if (!batched) r->x = calx_unsqueeze(r->x, 1);
  if (batched && r->o->batch_first) r->x = calx_transpose(r->x, 0, 1);
  r->steps = calx_tensor_dim(r->x, 0);
  r->batch = calx_tensor_dim(r->x, 1);
  if (r->steps == 0) {
    return cx_ops_invalid(
        "%s: the sequence has no steps, one or more are "
        "wanted",
        r->op);
  }
  bad = take_lengths(r, batched);
  if (bad != NULL) return bad;
  bad = take_state(r, "hx", batched, r->out, &r->hx);
  return bad != NULL ? bad : take_state(r, "cx", batched, r->hidden, &r->cx);
}

// ---- layers -----------------------------------------------------------------

static calx_tensor *zeros(const calx_tensor *like, calx_dims shape)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = cx_lazy_tensor_shape(like)->dtype,
                            .device = calx_tensor_device(like) };
  return calx_zeros_with(shape, &o);
}

// The state i of all of them, or zeros.
static calx_tensor *first_state(const rnn_run *r, calx_tensor *all, int64_t i,
                                int64_t size)
{
  if (all == NULL) return zeros(r->x, CALX_SHAPE(r->batch, size));
  return calx_squeeze(calx_slice(all, 0, i, i + 1, 1), 0);
}

// One layer in one direction: (T, N, P).
static calx_tensor *run_direction(const rnn_run *r, int64_t i)
{
  calx_tensor *const *w = r->weights + i * r->per;
  bool biased = !r->o->no_biases, gru = r->cell == CX_OPS_CELL_GRU;
  calx_tensor *bias = biased ? w[2] : NULL, *c;
  if (biased && !gru) bias = cx_ops_plus(w[2], w[3]);
  cx_ops_recurrent_call call = { .cell = r->cell,
                                 .reverse = i % r->dirs != 0,
                                 .gates = calx_linear(r->x, w[0], bias),
                                 .h0 = first_state(r, r->hx, i, r->out),
                                 .weight_hh = w[1],
                                 .lengths = r->lengths };
  if (gru) {
    call.bias_hh = biased ? w[3] : zeros(r->x, CALX_SHAPE(3 * r->hidden));
  }
  if (r->cell == CX_OPS_CELL_LSTM) {
    call.c0 = first_state(r, r->cx, i, r->hidden);
    if (r->per % 2 != 0) call.weight_hr = w[r->per - 1];
  }
  calx_tensor *y = cx_ops_recur(&call, &c);
  int64_t last = call.reverse ? 0 : r->steps - 1;
  r->hn[i] = calx_squeeze(calx_slice(y, 0, last, last + 1, 1), 0);
  r->cn[i] = c;
  return y;
}

static void run_layer(rnn_run *r, int64_t layer)
{
  calx_tensor *y[2];
  for (int64_t d = 0; d < r->dirs; d++) {
    y[d] = run_direction(r, layer * r->dirs + d);
  }
  r->x = r->dirs == 2 ? calx_cat(y, 2, 2) : y[0];
  if (!r->o->training || r->o->dropout == 0 || layer + 1 == r->layers) return;
  calx_dropout_options o = { .size = sizeof o, .p = r->o->dropout };
  r->x = calx_dropout_with(r->x, &o);
}

static calx_tensor *joined(const rnn_run *r, calx_tensor *const *states,
                           bool batched)
{
  calx_tensor *all = calx_stack(states, (size_t)(r->layers * r->dirs), 0);
  return batched ? all : calx_squeeze(all, 1);
}

static calx_tensor *finish(const rnn_run *r, bool batched)
{
  if (r->o->out_hn != NULL) *r->o->out_hn = joined(r, r->hn, batched);
  if (r->o->out_cn != NULL) *r->o->out_cn = joined(r, r->cn, batched);
  if (!batched) return calx_squeeze(r->x, 1);
  calx_tensor *y = r->x;
  if (r->mask != NULL) y = calx_where(r->mask, y, cx_ops_zeros_like(y));
  return r->o->batch_first ? calx_transpose(y, 0, 1) : y;
}

static calx_tensor *run(rnn_run *r, size_t count)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &r->x);
  calx_tensor *bad;
  if (cx_ops_unfit(r->op, &r->x, 1, &bad)) return bad;
  bool batched = calx_tensor_rank(r->x) == 3;
  bad = check(r, count);
  if (bad != NULL) return bad;
  size_t n = (size_t)(r->layers * r->dirs);
  r->hn = cx_calloc(2 * n, sizeof(calx_tensor *));
  if (r->hn == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  r->cn = r->hn + n;
  for (int64_t i = 0; i < r->layers; i++) run_layer(r, i);
  calx_tensor *y = finish(r, batched);
  cx_free(r->hn);
  return y;
}

// The states are set where it fails too, so that a program may pass them on.
static calx_tensor *rnn_of(const char *op, cx_ops_cell cell, calx_tensor *x,
                           calx_tensor *const *weights, size_t count,
                           const calx_rnn_options *o)
{
  rnn_run r = { .op = op, .cell = cell, .o = o, .weights = weights, .x = x };
  r.hx = o->hx;
  r.cx = o->cx;
  calx_tensor *y = run(&r, count);
  if (!cx_lazy_tensor_poisoned(y)) return y;
  if (o->out_hn != NULL) *o->out_hn = y;
  if (o->out_cn != NULL) *o->out_cn = y;
  return y;
}

// The name of the options of all four is calx_rnn_options.
#define DEFINE_RNN(name, cell)                                                 \
  calx_tensor *calx_##name##_with(calx_tensor *x, calx_tensor *const *weights, \
                                  size_t count, const calx_rnn_options *o)     \
  {                                                                            \
    CX_OPS_COMPOSITE(#name);                                                   \
    calx_tensor *bad;                                                          \
    CX_OPS_TAKE_OPTIONS(rnn, o, bad);                                          \
    return rnn_of(#name, cell, x, weights, count, o);                          \
  }

DEFINE_RNN(rnn_tanh, CX_OPS_CELL_TANH)
DEFINE_RNN(rnn_relu, CX_OPS_CELL_RELU)
DEFINE_RNN(lstm, CX_OPS_CELL_LSTM)
DEFINE_RNN(gru, CX_OPS_CELL_GRU)
