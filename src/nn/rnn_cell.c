// nn/rnn_cell: torch.nn.RNNCell, LSTMCell and GRUCell.
#include <string.h>

#include "nn/layer.h"
#include "nn/rnn.h"

typedef calx_tensor *cell_fn(calx_tensor *, calx_tensor *, calx_tensor *,
                             calx_tensor *, const calx_rnn_cell_options *);

typedef struct cell_kind {
  cx_nn_layer layer;
  cell_fn *fn;
  int64_t gates;
} cell_kind;

typedef struct cell {
  cx_nn_rnn base;
  const cell_kind *kind;
  int64_t input, hidden;
  bool no_bias, relu;
} cell;

calx_status *cx_nn_check_nonlinearity(const char *call,
                                      const char *nonlinearity)
{
  if (nonlinearity == NULL || strcmp(nonlinearity, "tanh") == 0 ||
      strcmp(nonlinearity, "relu") == 0) {
    return NULL;
  }
  return cx_invalid("%s: the nonlinearity is '%.40s', tanh or relu is wanted",
                    call, nonlinearity);
}

calx_tensor *cx_nn_rnn_cell_forward(void *self, calx_tensor *x)
{
  const cell *c = self;
  calx_module *m = c->base.m;
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL) {
    size_t rank = calx_tensor_rank(x);
    if ((rank != 1 && rank != 2) || calx_tensor_dim(x, -1) != c->input) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "(batch, %lld) or (%lld)",
               (long long)c->input, (long long)c->input);
      return cx_nn_module_refuse(m, x, wanted);
    }
  }
  static const calx_rnn_forward_options none = { .size = sizeof none };
  const calx_rnn_forward_options *call =
      c->base.call != NULL ? c->base.call : &none;
  if (call->lengths != NULL) {
    return cx_lazy_tensor_poison(cx_invalid(
        "rnn_forward: a cell does one step, .lengths are of layers"));
  }
  calx_rnn_cell_options o = { .size = sizeof o,
                              .b_ih = cx_nn_tensor(m, "bias_ih"),
                              .b_hh = cx_nn_tensor(m, "bias_hh"),
                              .cx = call->cx,
                              .out_cx = call->out_cn };
  calx_tensor *h = c->kind->fn(x, call->hx, cx_nn_tensor(m, "weight_ih"),
                               cx_nn_tensor(m, "weight_hh"), &o);
  if (call->out_hn != NULL) *call->out_hn = h;
  return h;
}

static void repr(const void *state, cx_text *out)
{
  const cell *c = state;
  cx_text_format(out, "%lld, %lld", (long long)c->input, (long long)c->hidden);
  if (c->no_bias) cx_text_append(out, ", bias=False");
  if (c->relu) cx_text_append(out, ", nonlinearity=relu");
}

#define LAYER(kind, call)                          \
  {                                                \
    kind, call, cx_nn_rnn_cell_forward, repr, NULL \
  }

static calx_status *check(const cell_kind *k, int64_t input, int64_t hidden,
                          const calx_nn_rnn_cell_options *o)
{
  CALX_TRY(cx_options_check(k->layer.call, o->size, sizeof *o));
  if (input < 0 || hidden <= 0) {
    return cx_invalid(
        "%s: input_size %lld and hidden_size %lld: the first is not negative, "
        "the second positive",
        k->layer.call, (long long)input, (long long)hidden);
  }
  if (o->dtype != CALX_DTYPE_DEFAULT && !cx_dtype_is_float(o->dtype)) {
    return cx_invalid("%s: its type is to be %s, a floating one is wanted",
                      k->layer.call, calx_dtype_name(o->dtype));
  }
  if (o->nonlinearity != NULL && k->gates != 1) {
    return cx_invalid("%s: nonlinearity is an option of RNNCell only",
                      k->layer.call);
  }
  return cx_nn_check_nonlinearity(k->layer.call, o->nonlinearity);
}

static calx_module *make(const cell_kind *k, calx_module *parent,
                         const char *name, int64_t input, int64_t hidden,
                         const calx_nn_rnn_cell_options *options)
{
  static const calx_nn_rnn_cell_options none = { .size = sizeof none };
  const calx_nn_rnn_cell_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_make(&k->layer, parent, name, sizeof(cell), &state);
  cell *c = state;
  if (c == NULL) return m;
  calx_status *status = check(k, input, hidden, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  *c = (cell){ .base.m = m, .kind = k, .input = input, .hidden = hidden };
  c->no_bias = o->no_bias;
  c->relu = k->fn == calx_rnn_relu_cell_with;
  int64_t rows = k->gates * hidden;
  double fan = (double)hidden;
  calx_scope *scope = calx_scope_begin();
  calx_module_param(m, "weight_ih",
                    cx_nn_uniform(CALX_SHAPE(rows, input), fan, o->dtype));
  calx_module_param(m, "weight_hh",
                    cx_nn_uniform(CALX_SHAPE(rows, hidden), fan, o->dtype));
  if (!o->no_bias) {
    calx_module_param(m, "bias_ih",
                      cx_nn_uniform(CALX_SHAPE(rows), fan, o->dtype));
    calx_module_param(m, "bias_hh",
                      cx_nn_uniform(CALX_SHAPE(rows), fan, o->dtype));
  }
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

calx_module *calx_nn_rnn_cell_with(calx_module *parent, const char *name,
                                   int64_t input_size, int64_t hidden_size,
                                   const calx_nn_rnn_cell_options *o)
{
  static const cell_kind with_tanh = { LAYER("RNNCell", "rnn_cell"),
                                       calx_rnn_tanh_cell_with, 1 };
  static const cell_kind with_relu = { LAYER("RNNCell", "rnn_cell"),
                                       calx_rnn_relu_cell_with, 1 };
  bool relu = o != NULL && o->size == sizeof *o && o->nonlinearity != NULL &&
              strcmp(o->nonlinearity, "relu") == 0;
  return make(relu ? &with_relu : &with_tanh, parent, name, input_size,
              hidden_size, o);
}

calx_module *calx_nn_lstm_cell_with(calx_module *parent, const char *name,
                                    int64_t input_size, int64_t hidden_size,
                                    const calx_nn_rnn_cell_options *o)
{
  static const cell_kind lstm = { LAYER("LSTMCell", "lstm_cell"),
                                  calx_lstm_cell_with, 4 };
  return make(&lstm, parent, name, input_size, hidden_size, o);
}

calx_module *calx_nn_gru_cell_with(calx_module *parent, const char *name,
                                   int64_t input_size, int64_t hidden_size,
                                   const calx_nn_rnn_cell_options *o)
{
  static const cell_kind gru = { LAYER("GRUCell", "gru_cell"),
                                 calx_gru_cell_with, 3 };
  return make(&gru, parent, name, input_size, hidden_size, o);
}
