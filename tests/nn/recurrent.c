// recurrent: RNN, LSTM, GRU and their cells against PyTorch from the same
// weights: names, outputs, states and gradients.
#include <unistd.h>

#include "calx/rnn_utils.h"
#include "torch_cases.h"

static bool is(const torch_case *c, const char *kind)
{
  return strcmp(calx_value_as_string(calx_value_get(c->all, "kind")), kind) ==
         0;
}

static calx_module *make_cell(const torch_case *c, int64_t in, int64_t hidden)
{
  calx_nn_rnn_cell_options o = {
    .size = sizeof o,
    .nonlinearity = case_text(c, "nonlinearity"),
    .no_bias = case_get(c, "options", "bias") != NULL,
    .dtype = case_dtype(c),
  };
  if (is(c, "RNNCell"))
    return calx_nn_rnn_cell_with(NULL, NULL, in, hidden, &o);
  if (is(c, "GRUCell"))
    return calx_nn_gru_cell_with(NULL, NULL, in, hidden, &o);
  return calx_nn_lstm_cell_with(NULL, NULL, in, hidden, &o);
}

static calx_module *make(const torch_case *c)
{
  int64_t in = calx_value_as_int(calx_value_get(c->all, "input"));
  int64_t hidden = calx_value_as_int(calx_value_get(c->all, "hidden"));
  if (is(c, "RNNCell") || is(c, "LSTMCell") || is(c, "GRUCell")) {
    return make_cell(c, in, hidden);
  }
  calx_nn_rnn_options o = {
    .size = sizeof o,
    .num_layers = case_int(c, "num_layers"),
    .nonlinearity = case_text(c, "nonlinearity"),
    .no_bias = case_get(c, "options", "bias") != NULL,
    .batch_first = case_int(c, "batch_first") != 0,
    .bidirectional = case_int(c, "bidirectional") != 0,
    .proj_size = case_int(c, "proj_size"),
    .dtype = case_dtype(c),
  };
  if (is(c, "RNN")) return calx_nn_rnn_with(NULL, NULL, in, hidden, &o);
  if (is(c, "GRU")) return calx_nn_gru_with(NULL, NULL, in, hidden, &o);
  return calx_nn_lstm_with(NULL, NULL, in, hidden, &o);
}

static calx_tensor *forward_packed(const torch_case *c, calx_tensor *x,
                                   const calx_value *lengths,
                                   const calx_rnn_forward_options *o)
{
  bool first = case_int(c, "batch_first") != 0;
  calx_packed_sequence p = calx_pack_padded_sequence(
      x, calx_value_as_tensor(lengths), .batch_first = first,
      .no_enforce_sorted =
          !calx_value_as_bool(calx_value_get(c->all, "ordered")));
  p = calx_rnn_forward_packed_with(c->layer, p, o);
  return calx_pad_packed_sequence(p, .batch_first = first);
}

static void run(torch_case *c)
{
  static const char *const names[3] = { "x", "hx", "cx" };
  c->layer = make(c);
  CHECK_STATUS_OK(calx_module_error(c->layer));
  case_load(c);
  calx_tensor *in[3], *hn = NULL, *cn = NULL;
  for (int i = 0; i < 3; i++) in[i] = case_in(c, names[i]);
  bool lstm = is(c, "LSTM") || is(c, "LSTMCell");
  const calx_value *lengths = calx_value_get(c->all, "lengths");
  calx_rnn_forward_options o = { .size = sizeof o,
                                 .hx = in[1],
                                 .cx = in[2],
                                 .out_hn = &hn,
                                 .out_cn = lstm ? &cn : NULL };
  calx_tensor *y = lengths != NULL ? forward_packed(c, in[0], lengths, &o)
                                   : calx_rnn_forward_with(c->layer, in[0], &o);
  calx_tensor *loss = case_term(c, "y", y);
  if (case_get(c, "out", "hn") != NULL) {
    loss = calx_add(loss, case_term(c, "hn", hn));
  }
  if (lstm) loss = calx_add(loss, case_term(c, "cn", cn));
  calx_backward(loss);
  calx_sync_n((calx_tensor *[]){ y, hn, cn != NULL ? cn : y }, 3);
  case_check(c, "out", "y", y);
  if (case_get(c, "out", "hn") != NULL) case_check(c, "out", "hn", hn);
  if (lstm) case_check(c, "out", "cn", cn);
  case_check_grads(c, in, names, 3);
  // Without a gradient the loop saves nothing, and the result is the same.
  calx_no_grad_begin();
  calx_tensor *ends = calx_value_as_tensor(lengths);
  if (ends != NULL) ends = calx_to(ends, NULL);
  calx_tensor *again = calx_rnn_forward(
      c->layer, calx_detach(in[0]), .hx = in[1], .cx = in[2], .lengths = ends);
  calx_no_grad_end();
  case_check(c, "out", "y", again);
  calx_module_free(c->layer);
}

static void test_pytorch(void **state)
{
  (void)state;
  run_cases("recurrent_torch.py", run);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_pytorch) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
