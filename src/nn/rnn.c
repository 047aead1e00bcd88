// nn/rnn: torch.nn.RNN, LSTM and GRU.
#include "calx/rnn.h"
#include "calx/rnn_utils.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "nn/layer.h"
#include "nn/rnn.h"

enum { MOST_LAYERS = 1024 };

typedef calx_tensor *rnn_fn(calx_tensor *, calx_tensor *const *, size_t,
                            const calx_rnn_options *);

typedef struct rnn_kind {
  cx_nn_layer layer;
  rnn_fn *fn;
  int64_t gates;
} rnn_kind;

typedef struct rnn_layer {
  cx_nn_rnn base;
  const rnn_kind *kind;
  int64_t input, hidden, proj;
  int64_t per;  // parameters of a layer and direction
  calx_rnn_options op;
} rnn_layer;

static const char *const parameters[5] = { "weight_ih", "weight_hh", "bias_ih",
                                           "bias_hh", "weight_hr" };

// Which of the parameters is number k of a layer and direction.
static int64_t which(const rnn_layer *r, int64_t k)
{
  return r->op.no_biases && k == 2 ? 4 : k;
}

enum { NAME_BYTES = 64 };

// "weight_ih_l0_reverse": number k of layer and direction i.
static void name_of(const rnn_layer *r, int64_t i, int64_t k, char *out)
{
  int64_t dirs = r->op.bidirectional ? 2 : 1;
  snprintf(out, NAME_BYTES, "%s_l%lld%s", parameters[which(r, k)],
           (long long)(i / dirs), i % dirs != 0 ? "_reverse" : "");
}

static int64_t set_count(const rnn_layer *r)
{
  return r->op.num_layers * (r->op.bidirectional ? 2 : 1);
}

// ---- calling ----------------------------------------------------------------

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const rnn_layer *r = self;
  calx_module *m = r->base.m;
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL) {
    size_t rank = calx_tensor_rank(x);
    if ((rank != 2 && rank != 3) || calx_tensor_dim(x, -1) != r->input) {
      char wanted[96];
      snprintf(wanted, sizeof wanted, "(%s, %lld) or (steps, %lld)",
               r->op.batch_first ? "batch, steps" : "steps, batch",
               (long long)r->input, (long long)r->input);
      return cx_nn_module_refuse(m, x, wanted);
    }
  }
  size_t n = (size_t)(set_count(r) * r->per);
  calx_tensor **weights = cx_calloc(n, sizeof(calx_tensor *));
  if (weights == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  for (size_t i = 0; i < n; i++) {
    char name[NAME_BYTES];
    name_of(r, (int64_t)i / r->per, (int64_t)i % r->per, name);
    weights[i] = cx_nn_tensor(m, name);
  }
  calx_rnn_options o = r->op;
  o.training = calx_module_is_training(m);
  const calx_rnn_forward_options *call = r->base.call;
  if (call != NULL) {
    o.hx = call->hx;
    o.cx = call->cx;
    o.out_hn = call->out_hn;
    o.out_cn = call->out_cn;
    o.lengths = call->lengths;
  }
  calx_tensor *y = r->kind->fn(x, weights, n, &o);
  cx_free(weights);
  return y;
}

calx_tensor *calx_rnn_forward_with(calx_module *m, calx_tensor *x,
                                   const calx_rnn_forward_options *o)
{
  static const calx_rnn_forward_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  calx_status *status = cx_options_check("rnn_forward", o->size, sizeof *o);
  bool mine = m != NULL &&
              (m->forward == forward || m->forward == cx_nn_rnn_cell_forward);
  if (status == NULL && m != NULL && m->state != NULL && !mine) {
    status = cx_invalid(
        "rnn_forward: module '%s' (%s) is none of RNN, LSTM, GRU and their "
        "cells",
        cx_nn_module_path(m), m->kind);
  }
  calx_tensor *y;
  if (status != NULL) {
    y = cx_lazy_tensor_poison(status);
  } else if (!mine) {
    y = calx_forward(m, x);  // says what is wrong
  } else {
    cx_nn_rnn *r = m->state;
    r->call = o;
    y = calx_forward(m, x);
    r->call = NULL;
  }
  if (!cx_lazy_tensor_poisoned(y)) return y;
  if (o->out_hn != NULL) *o->out_hn = y;
  if (o->out_cn != NULL) *o->out_cn = y;
  return y;
}

calx_packed_sequence calx_rnn_forward_packed_with(
    calx_module *m, calx_packed_sequence sequence,
    const calx_rnn_forward_options *options)
{
  calx_rnn_forward_options o;
  calx_status *status =
      cx_options_take("rnn_forward_packed", options, &o, sizeof o);
  if (status != NULL) {
    calx_tensor *bad = cx_lazy_tensor_poison(status);
    return (calx_packed_sequence){ .data = bad, .lengths = bad };
  }
  o.size = sizeof o;
  o.lengths = sequence.lengths;
  bool swaps = m != NULL && m->forward == forward &&
               ((const rnn_layer *)m->state)->op.batch_first &&
               sequence.data != NULL && calx_tensor_rank(sequence.data) == 3;
  calx_tensor *x = sequence.data;
  if (swaps) x = calx_transpose(x, 0, 1);
  calx_tensor *y = calx_rnn_forward_with(m, x, &o);
  bool good = swaps && !cx_lazy_tensor_poisoned(y);
  if (good) y = calx_transpose(y, 0, 1);
  return (calx_packed_sequence){ .data = y, .lengths = sequence.lengths };
}

static void repr(const void *state, cx_text *out)
{
  const rnn_layer *r = state;
  cx_text_format(out, "%lld, %lld", (long long)r->input, (long long)r->hidden);
  if (r->proj != 0) {
    cx_text_format(out, ", proj_size=%lld", (long long)r->proj);
  }
  if (r->op.num_layers != 1) {
    cx_text_format(out, ", num_layers=%lld", (long long)r->op.num_layers);
  }
  if (r->op.no_biases) cx_text_append(out, ", bias=False");
  if (r->op.batch_first) cx_text_append(out, ", batch_first=True");
  if (r->op.dropout != 0) {
    cx_text_append(out, ", dropout=");
    cx_nn_repr_real(out, r->op.dropout);
  }
  if (r->op.bidirectional) cx_text_append(out, ", bidirectional=True");
}

#define LAYER(kind, call)           \
  {                                 \
    kind, call, forward, repr, NULL \
  }

// ---- making -----------------------------------------------------------------

static calx_status *check_options(const rnn_kind *k,
                                  const calx_nn_rnn_options *o)
{
  if (o->num_layers < 0 || o->num_layers > MOST_LAYERS) {
    return cx_invalid("%s: num_layers is %lld, 1 to %d are possible",
                      k->layer.call, (long long)o->num_layers, MOST_LAYERS);
  }
  if (!(o->dropout >= 0 && o->dropout <= 1)) {
    return cx_invalid("%s: the probability of dropout %g is not in [0, 1]",
                      k->layer.call, o->dropout);
  }
  if (o->dtype != CALX_DTYPE_DEFAULT && !cx_dtype_is_float(o->dtype)) {
    return cx_invalid("%s: its type is to be %s, a floating one is wanted",
                      k->layer.call, calx_dtype_name(o->dtype));
  }
  if (o->nonlinearity != NULL && k->gates != 1) {
    return cx_invalid("%s: nonlinearity is an option of RNN only",
                      k->layer.call);
  }
  return cx_nn_check_nonlinearity(k->layer.call, o->nonlinearity);
}

static calx_status *check(const rnn_kind *k, int64_t input, int64_t hidden,
                          const calx_nn_rnn_options *o)
{
  CALX_TRY(cx_options_check(k->layer.call, o->size, sizeof *o));
  if (input < 0 || hidden <= 0) {
    return cx_invalid(
        "%s: input_size %lld and hidden_size %lld: the first is not negative, "
        "the second positive",
        k->layer.call, (long long)input, (long long)hidden);
  }
  if (o->proj_size != 0 && k->gates != 4) {
    return cx_invalid("%s: proj_size is an option of LSTM only", k->layer.call);
  }
  if (o->proj_size < 0 || (o->proj_size != 0 && o->proj_size >= hidden)) {
    return cx_invalid(
        "%s: proj_size %lld is to be smaller than hidden_size "
        "%lld",
        k->layer.call, (long long)o->proj_size, (long long)hidden);
  }
  return check_options(k, o);
}

// The shape of number k of the layer and direction i.
static calx_dims shape_of(const rnn_layer *r, int64_t i, int64_t k)
{
  int64_t rows = r->kind->gates * r->hidden;
  int64_t out = r->proj != 0 ? r->proj : r->hidden;
  int64_t dirs = r->op.bidirectional ? 2 : 1;
  switch (which(r, k)) {
    case 0: return CALX_SHAPE(rows, i < dirs ? r->input : dirs * out);
    case 1: return CALX_SHAPE(rows, out);
    case 4: return CALX_SHAPE(r->proj, r->hidden);
    default: return CALX_SHAPE(rows);
  }
}

static void register_all(const rnn_layer *r, calx_dtype dtype)
{
  for (int64_t i = 0; i < set_count(r); i++) {
    for (int64_t k = 0; k < r->per; k++) {
      char name[NAME_BYTES];
      name_of(r, i, k, name);
      calx_module_param(
          r->base.m, name,
          cx_nn_uniform(shape_of(r, i, k), (double)r->hidden, dtype));
    }
  }
}

static calx_module *make(const rnn_kind *k, calx_module *parent,
                         const char *name, int64_t input, int64_t hidden,
                         const calx_nn_rnn_options *options)
{
  static const calx_nn_rnn_options none = { .size = sizeof none };
  const calx_nn_rnn_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m =
      cx_nn_make(&k->layer, parent, name, sizeof(rnn_layer), &state);
  rnn_layer *r = state;
  if (r == NULL) return m;
  calx_status *status = check(k, input, hidden, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  r->kind = k;
  r->input = input;
  r->hidden = hidden;
  r->proj = o->proj_size;
  r->per = (o->no_bias ? 2 : 4) + (o->proj_size != 0);
  r->op =
      (calx_rnn_options){ .size = sizeof r->op,
                          .num_layers = o->num_layers != 0 ? o->num_layers : 1,
                          .no_biases = o->no_bias,
                          .bidirectional = o->bidirectional,
                          .batch_first = o->batch_first,
                          .dropout = o->dropout };
  calx_scope *scope = calx_scope_begin();
  register_all(r, o->dtype);
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

calx_module *calx_nn_rnn_with(calx_module *parent, const char *name,
                              int64_t input_size, int64_t hidden_size,
                              const calx_nn_rnn_options *o)
{
  static const rnn_kind with_tanh = { LAYER("RNN", "rnn"), calx_rnn_tanh_with,
                                      1 };
  static const rnn_kind with_relu = { LAYER("RNN", "rnn"), calx_rnn_relu_with,
                                      1 };
  bool relu = o != NULL && o->size == sizeof *o && o->nonlinearity != NULL &&
              strcmp(o->nonlinearity, "relu") == 0;
  return make(relu ? &with_relu : &with_tanh, parent, name, input_size,
              hidden_size, o);
}

calx_module *calx_nn_lstm_with(calx_module *parent, const char *name,
                               int64_t input_size, int64_t hidden_size,
                               const calx_nn_rnn_options *o)
{
  static const rnn_kind lstm = { LAYER("LSTM", "lstm"), calx_lstm_with, 4 };
  return make(&lstm, parent, name, input_size, hidden_size, o);
}

calx_module *calx_nn_gru_with(calx_module *parent, const char *name,
                              int64_t input_size, int64_t hidden_size,
                              const calx_nn_rnn_options *o)
{
  static const rnn_kind gru = { LAYER("GRU", "gru"), calx_gru_with, 3 };
  return make(&gru, parent, name, input_size, hidden_size, o);
}
