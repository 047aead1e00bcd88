/**
 * calx/rnn.h: recurrent networks, as functions of their weights and as layers.
 *
 * A layer in one direction is one loop in the program, whatever the length of
 * the sequence; its product with the input is made before the loop for all
 * steps, the gradients of its weights after the loop of the backward pass.
 *
 * Rows of several lengths are padded to T steps, and .lengths has how many each
 * row has (calx/rnn_utils.h makes both). What x has past a row's length is not
 * looked at, be it NaN, and gets the gradient 0; outputs there are 0; a row's
 * last state is that at its length, and the reverse direction begins there.
 * Lengths on the host are checked when they are given, 1 to T each. Those on a
 * device are not read: a row of 0 or less has no steps, one of more than T has
 * T. Another tensor of lengths compiles nothing.
 *
 * Letters: T steps, N batch, F input_size, H hidden_size, P proj_size or H,
 * L num_layers, D 2 if bidirectional, else 1.
 *
 * @threads thread-compatible
 */
#ifndef CALX_RNN_H
#define CALX_RNN_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- functions --------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_rnn_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *hx;    /* (L D, N, P) or (L D, P); NULL: zeros */
  CALX_NAMED calx_tensor *cx;    /* (L D, N, H); of LSTM only; NULL: zeros */
  CALX_NAMED int64_t num_layers; /* 0 = 1 */
  CALX_NAMED bool no_biases;     /* the weights hold none */
  CALX_NAMED bool bidirectional;
  CALX_NAMED bool batch_first; /* x and the result are (N, T, …) */
  CALX_NAMED double dropout;   /* between layers, with training */
  CALX_NAMED bool training;
  CALX_NAMED calx_tensor **out_hn; /* as hx; NULL: not wanted */
  CALX_NAMED calx_tensor **out_cn; /* as cx; of LSTM only */
  /* (N) whole numbers: the rows' steps; NULL: T. On a device or on the host */
  CALX_NAMED calx_tensor *lengths;
} calx_rnn_options;
/**
 * h' = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence.
 * @param weights  of each layer, of each direction: weight_ih (H, F) or, past
 *                 the first layer, (H, D P), weight_hh (H, P), then bias_ih (H)
 *                 and bias_hh (H): the order of torch.nn.RNN's state dict
 * @shape x (T, N, F) or (T, F) -> (T, N, D P) or (T, D P)
 * @errors INVALID_ARGUMENT shapes or element types that do not agree, no steps,
 *         lengths that are no whole numbers, not one for each row, or of an
 *         input without a batch
 * @source torch.rnn_tanh
 */
CALX_API calx_tensor *calx_rnn_tanh_with(calx_tensor *x,
                                         calx_tensor *const *weights,
                                         size_t count,
                                         const calx_rnn_options *options);
/** The same with relu for tanh. @shape as calx_rnn_tanh
 *  @errors as calx_rnn_tanh @source torch.rnn_relu */
CALX_API calx_tensor *calx_rnn_relu_with(calx_tensor *x,
                                         calx_tensor *const *weights,
                                         size_t count,
                                         const calx_rnn_options *options);
/**
 * Long short-term memory; the gates' rows are in the order i, f, g, o.
 * @param weights  as calx_rnn_tanh with 4 H rows, and after the biases
 *                 weight_hr (P, H) of a layer with projections
 * @shape x (T, N, F) or (T, F) -> (T, N, D P) or (T, D P)
 * @errors as calx_rnn_tanh
 * @source torch.lstm
 */
CALX_API calx_tensor *calx_lstm_with(calx_tensor *x,
                                     calx_tensor *const *weights, size_t count,
                                     const calx_rnn_options *options);
/** Gated recurrent units; the gates' rows are in the order r, z, n: weights
 *  with 3 H rows. @shape as calx_rnn_tanh @errors as calx_rnn_tanh
 *  @source torch.gru */
CALX_API calx_tensor *calx_gru_with(calx_tensor *x, calx_tensor *const *weights,
                                    size_t count,
                                    const calx_rnn_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_rnn_cell_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *b_ih;    /* (rows of w_ih); NULL: none */
  CALX_NAMED calx_tensor *b_hh;    /* (rows of w_hh); NULL: none */
  CALX_NAMED calx_tensor *cx;      /* (N, H); of LSTM only; NULL: zeros */
  CALX_NAMED calx_tensor **out_cx; /* the next cx; of LSTM only */
} calx_rnn_cell_options;
/** One step of calx_rnn_tanh. @param hx (N, H); NULL: zeros
 *  @shape x (N, F) or (F) -> (N, H) or (H)
 *  @errors as calx_rnn_tanh @source torch.rnn_tanh_cell */
CALX_API calx_tensor *calx_rnn_tanh_cell_with(
    calx_tensor *x, calx_tensor *hx, calx_tensor *w_ih, calx_tensor *w_hh,
    const calx_rnn_cell_options *options);
/** One step of calx_rnn_relu. @shape as calx_rnn_tanh_cell
 *  @errors as calx_rnn_tanh @source torch.rnn_relu_cell */
CALX_API calx_tensor *calx_rnn_relu_cell_with(
    calx_tensor *x, calx_tensor *hx, calx_tensor *w_ih, calx_tensor *w_hh,
    const calx_rnn_cell_options *options);
/** One step of calx_lstm without projection. @shape as calx_rnn_tanh_cell
 *  @errors as calx_rnn_tanh @source torch.lstm_cell */
CALX_API calx_tensor *calx_lstm_cell_with(calx_tensor *x, calx_tensor *hx,
                                          calx_tensor *w_ih, calx_tensor *w_hh,
                                          const calx_rnn_cell_options *options);
/** One step of calx_gru. @shape as calx_rnn_tanh_cell
 *  @errors as calx_rnn_tanh @source torch.gru_cell */
CALX_API calx_tensor *calx_gru_cell_with(calx_tensor *x, calx_tensor *hx,
                                         calx_tensor *w_ih, calx_tensor *w_hh,
                                         const calx_rnn_cell_options *options);

// ---- layers -----------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_rnn_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t num_layers;       /* 0 = 1 */
  CALX_NAMED const char *nonlinearity; /* "tanh" or "relu"; of RNN only */
  CALX_NAMED bool no_bias;
  CALX_NAMED bool batch_first;
  CALX_NAMED double dropout; /* between layers, in training */
  CALX_NAMED bool bidirectional;
  CALX_NAMED int64_t proj_size; /* 0: no projection; of LSTM only */
  CALX_NAMED calx_dtype dtype;  /* default f32 */
} calx_nn_rnn_options;
/**
 * calx_rnn_tanh or calx_rnn_relu with parameters weight_ih_l0, weight_hh_l0,
 * bias_ih_l0, bias_hh_l0, then those with _reverse, then of _l1; all uniform in
 * +-1/sqrt(H). calx_forward() begins with zeros; calx_rnn_forward() takes and
 * gives states.
 * @shape x (T, N, F) or (T, F)  @source torch.nn.RNN
 */
CALX_API calx_module *calx_nn_rnn_with(calx_module *parent, const char *name,
                                       int64_t input_size, int64_t hidden_size,
                                       const calx_nn_rnn_options *options);
/** calx_lstm; with proj_size also weight_hr_l0. @shape as calx_nn_rnn
 *  @source torch.nn.LSTM */
CALX_API calx_module *calx_nn_lstm_with(calx_module *parent, const char *name,
                                        int64_t input_size, int64_t hidden_size,
                                        const calx_nn_rnn_options *options);
/** calx_gru. @shape as calx_nn_rnn  @source torch.nn.GRU */
CALX_API calx_module *calx_nn_gru_with(calx_module *parent, const char *name,
                                       int64_t input_size, int64_t hidden_size,
                                       const calx_nn_rnn_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_rnn_forward_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *hx;      /* (L D, N, P) or (L D, P); NULL: zeros */
  CALX_NAMED calx_tensor *cx;      /* (L D, N, H); of LSTM only */
  CALX_NAMED calx_tensor **out_hn; /* NULL: not wanted */
  CALX_NAMED calx_tensor **out_cn; /* of LSTM only */
  CALX_NAMED calx_tensor *lengths; /* (N), see calx_rnn_options */
} calx_rnn_forward_options;
/** calx_forward() of an RNN, LSTM or GRU with its states; of a cell, where
 *  hx, cx and what out_hn and out_cn are given are (N, H), too.
 *  @shape as the layer says
 *  @errors INVALID_ARGUMENT another kind of module; as calx_rnn_tanh */
CALX_API calx_tensor *calx_rnn_forward_with(
    calx_module *m, calx_tensor *x, const calx_rnn_forward_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_rnn_cell_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *nonlinearity; /* "tanh" or "relu"; of RNNCell only */
  CALX_NAMED bool no_bias;
  CALX_NAMED calx_dtype dtype; /* default f32 */
} calx_nn_rnn_cell_options;
/** One step, with weight_ih, weight_hh, bias_ih and bias_hh; see
 *  calx_rnn_forward. The result is the next hidden state.
 *  @shape x (N, F) or (F)  @source torch.nn.RNNCell */
CALX_API calx_module *calx_nn_rnn_cell_with(
    calx_module *parent, const char *name, int64_t input_size,
    int64_t hidden_size, const calx_nn_rnn_cell_options *options);
/** @shape x (N, F) or (F)  @source torch.nn.LSTMCell */
CALX_API calx_module *calx_nn_lstm_cell_with(
    calx_module *parent, const char *name, int64_t input_size,
    int64_t hidden_size, const calx_nn_rnn_cell_options *options);
/** @shape x (N, F) or (F)  @source torch.nn.GRUCell */
CALX_API calx_module *calx_nn_gru_cell_with(
    calx_module *parent, const char *name, int64_t input_size,
    int64_t hidden_size, const calx_nn_rnn_cell_options *options);

#ifdef __cplusplus
}
#else
#define CALX_RNN_CALL_(fn, O, x, weights, count, ...) \
  (CALX_SITE_ fn(CALX_SITE_T_(x), weights, count,     \
                 CALX_SITE_O_((&(O){ __VA_ARGS__ }))))
#define calx_rnn_tanh(x, weights, ...)                             \
  CALX_RNN_CALL_(calx_rnn_tanh_with, calx_rnn_options, x, weights, \
                 __VA_ARGS__, .size = sizeof(calx_rnn_options))
#define calx_rnn_relu(x, weights, ...)                             \
  CALX_RNN_CALL_(calx_rnn_relu_with, calx_rnn_options, x, weights, \
                 __VA_ARGS__, .size = sizeof(calx_rnn_options))
#define calx_lstm(x, weights, ...)                                          \
  CALX_RNN_CALL_(calx_lstm_with, calx_rnn_options, x, weights, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_options))
#define calx_gru(x, weights, ...)                                          \
  CALX_RNN_CALL_(calx_gru_with, calx_rnn_options, x, weights, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_options))
#define CALX_RNN_CELL_(fn, x, hx, w_ih, w_hh, ...)                      \
  (CALX_SITE_ fn(CALX_SITE_T_(x), CALX_SITE_T_(hx), CALX_SITE_T_(w_ih), \
                 CALX_SITE_T_(w_hh),                                    \
                 CALX_SITE_O_((&(calx_rnn_cell_options){ __VA_ARGS__ }))))
#define calx_rnn_tanh_cell(x, hx, w_ih, ...)                        \
  CALX_RNN_CELL_(calx_rnn_tanh_cell_with, x, hx, w_ih, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_cell_options))
#define calx_rnn_relu_cell(x, hx, w_ih, ...)                        \
  CALX_RNN_CELL_(calx_rnn_relu_cell_with, x, hx, w_ih, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_cell_options))
#define calx_lstm_cell(x, hx, w_ih, ...)                        \
  CALX_RNN_CELL_(calx_lstm_cell_with, x, hx, w_ih, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_cell_options))
#define calx_gru_cell(x, hx, w_ih, ...)                        \
  CALX_RNN_CELL_(calx_gru_cell_with, x, hx, w_ih, __VA_ARGS__, \
                 .size = sizeof(calx_rnn_cell_options))
#define CALX_NN_RNN_(fn, O, parent, name, input_size, hidden_size, ...) \
  (CALX_SITE_ fn(parent, name, input_size, hidden_size, &(O){ __VA_ARGS__ }))
#define calx_nn_rnn(parent, name, input_size, ...)                  \
  CALX_NN_RNN_(calx_nn_rnn_with, calx_nn_rnn_options, parent, name, \
               input_size, __VA_ARGS__, .size = sizeof(calx_nn_rnn_options))
#define calx_nn_lstm(parent, name, input_size, ...)                  \
  CALX_NN_RNN_(calx_nn_lstm_with, calx_nn_rnn_options, parent, name, \
               input_size, __VA_ARGS__, .size = sizeof(calx_nn_rnn_options))
#define calx_nn_gru(parent, name, input_size, ...)                  \
  CALX_NN_RNN_(calx_nn_gru_with, calx_nn_rnn_options, parent, name, \
               input_size, __VA_ARGS__, .size = sizeof(calx_nn_rnn_options))
#define calx_nn_rnn_cell(parent, name, input_size, ...)                       \
  CALX_NN_RNN_(calx_nn_rnn_cell_with, calx_nn_rnn_cell_options, parent, name, \
               input_size, __VA_ARGS__,                                       \
               .size = sizeof(calx_nn_rnn_cell_options))
#define calx_nn_lstm_cell(parent, name, input_size, ...)                       \
  CALX_NN_RNN_(calx_nn_lstm_cell_with, calx_nn_rnn_cell_options, parent, name, \
               input_size, __VA_ARGS__,                                        \
               .size = sizeof(calx_nn_rnn_cell_options))
#define calx_nn_gru_cell(parent, name, input_size, ...)                       \
  CALX_NN_RNN_(calx_nn_gru_cell_with, calx_nn_rnn_cell_options, parent, name, \
               input_size, __VA_ARGS__,                                       \
               .size = sizeof(calx_nn_rnn_cell_options))
#define CALX_RNN_FORWARD_(m, x, ...) \
  calx_rnn_forward_with(             \
      m, CALX_SITE_T_(x),            \
      CALX_SITE_O_((&(calx_rnn_forward_options){ __VA_ARGS__ })))
#define calx_rnn_forward(m, ...)                \
  (CALX_SITE_ CALX_RNN_FORWARD_(m, __VA_ARGS__, \
                                .size = sizeof(calx_rnn_forward_options)))
#endif
#endif
