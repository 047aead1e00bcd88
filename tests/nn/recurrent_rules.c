// recurrent_rules: what recurrent layers refuse, their initial values, dropout,
// empty batches, and second derivatives.
#include "calx/autograd.h"
#include "calx/rnn.h"
#include "support/support.h"

static calx_tensor *f64(calx_dims shape)
{
  static double data[256];
  for (int i = 0; i < 256; i++) data[i] = sin(i + 1);
  return support_tensor(CALX_F64, shape, data);
}

#define F64 .dtype = CALX_F64
#define SAYS(code, call, words)                    \
  do {                                             \
    calx_scope *s_ = calx_scope_begin();           \
    (void)(call);                                  \
    CHECK_STATUS(code, calx_scope_end(s_), words); \
  } while (0)
#define INVALID(call, words) SAYS(CALX_INVALID_ARGUMENT, call, words)

static void test_refused_inputs(void **state)
{
  (void)state;
  calx_module *m = calx_nn_lstm(NULL, NULL, 3, 4, .num_layers = 2, F64);
  calx_module *first = calx_nn_gru(NULL, NULL, 3, 4, .batch_first = true, F64);
  calx_module *fc = calx_nn_linear(NULL, NULL, 3, 4);
  calx_tensor *x = f64(CALX_SHAPE(5, 2, 3)), *c = NULL;
  INVALID(calx_forward(m, f64(CALX_SHAPE(5, 2, 4))),
          "wants (steps, batch, 3) or (steps, 3), got f64[5,2,4]");
  INVALID(calx_forward(first, f64(CALX_SHAPE(3))), "(batch, steps, 3)");
  INVALID(calx_forward(m, f64(CALX_SHAPE(0, 2, 3))),
          "lstm: the sequence has no steps");
  INVALID(calx_forward(m, calx_to_dtype(x, CALX_F32)),
          "weight_ih of layer 0 is f64 and the input f32");
  INVALID(calx_rnn_forward(m, x, .hx = f64(CALX_SHAPE(1, 2, 4))),
          "hx is f64[1,2,4], f64[2,2,4] is wanted");
  INVALID(calx_rnn_forward(m, x, .hx = f64(CALX_SHAPE(2, 4))),
          "hx is f64[2,4], f64[2,2,4] is wanted");
  INVALID(calx_rnn_forward(m, x, .cx = f64(CALX_SHAPE(2, 2, 5))), "cx is");
  INVALID(calx_rnn_forward(first, x, .out_cn = &c), "only an LSTM");
  INVALID(calx_rnn_forward(fc, x), "none of RNN, LSTM, GRU");
  INVALID(calx_rnn_forward(NULL, x), "NULL");
  INVALID(calx_rnn_forward(m, NULL), "NULL");
  calx_scope *s = calx_scope_begin();
  calx_rnn_forward(m, NULL, .out_cn = &c);
  assert_true(cx_lazy_tensor_poisoned(c));
  calx_status_free(calx_scope_end(s));
  calx_module_free(m);
  calx_module_free(first);
  calx_module_free(fc);
}

static void test_refused_weights(void **state)
{
  (void)state;
  calx_tensor *x = f64(CALX_SHAPE(5, 2, 3));
  calx_tensor *w[5] = { f64(CALX_SHAPE(12, 3)), f64(CALX_SHAPE(12, 4)),
                        f64(CALX_SHAPE(12)), f64(CALX_SHAPE(11)) };
  INVALID(calx_gru(x, w, 3),
          "gru: 3 weights; 1 layers in 1 direction(s) with "
          "biases have 4");
  INVALID(calx_gru(x, w, 4), "bias_hh of layer 0 is f64[11], f64[12]");
  INVALID(calx_gru(x, w, 2, .no_biases = true, .num_layers = 2), "have 4");
  INVALID(calx_gru(x, w, 2, .no_biases = true, .num_layers = INT64_MAX),
          "num_layers is");
  INVALID(calx_gru(x, w, 2, .no_biases = true, .dropout = (double)NAN),
          "dropout nan");
  INVALID(calx_gru(x, NULL, 4), "NULL");
  INVALID(calx_lstm(x, w, 2, .no_biases = true),
          "weight_hh of layer 0 is f64[12,4], f64[12,3]");
  INVALID(calx_rnn_tanh(x, w + 2, 2, .no_biases = true), "a matrix of 1 H");
  INVALID(calx_gru_cell(f64(CALX_SHAPE(2, 3)), NULL, w[0], w[1], .b_ih = w[3]),
          "a bias is f64[11], (12)");
  INVALID(calx_gru_cell(f64(CALX_SHAPE(2, 5)), NULL, w[0], w[1]),
          "w_ih is f64[12,3], (12, 5) is wanted");
  INVALID(calx_lstm_cell(f64(CALX_SHAPE(2, 3)), NULL, w[0], w[1]),
          "a matrix (4 H, H)");
  INVALID(
      calx_gru_cell(f64(CALX_SHAPE(2, 3)), f64(CALX_SHAPE(1, 4)), w[0], w[1]),
      "hx is f64[1,4], f64[2,4] is wanted");
}

#define BAD(make, words)                                               \
  do {                                                                 \
    calx_module *m_ = (make);                                          \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m_), words); \
    calx_module_free(m_);                                              \
  } while (0)

static void test_refused_options(void **state)
{
  (void)state;
  BAD(calx_nn_rnn(NULL, NULL, 3, 4, .nonlinearity = "gelu"), "'gelu'");
  BAD(calx_nn_gru(NULL, NULL, 3, 4, .nonlinearity = "tanh"), "RNN only");
  BAD(calx_nn_gru(NULL, NULL, 3, 4, .proj_size = 2), "LSTM only");
  BAD(calx_nn_lstm(NULL, NULL, 3, 4, .proj_size = 4), "smaller than");
  BAD(calx_nn_lstm(NULL, NULL, 3, 0), "hidden_size 0");
  BAD(calx_nn_lstm(NULL, NULL, -1, 2), "input_size -1");
  BAD(calx_nn_lstm(NULL, NULL, 3, 4, .num_layers = -1), "num_layers is -1");
  BAD(calx_nn_lstm(NULL, NULL, 3, 4, .dropout = 2), "dropout 2");
  BAD(calx_nn_lstm(NULL, NULL, 3, 4, .dtype = CALX_I32), "i32");
  BAD(calx_nn_lstm_cell(NULL, NULL, 3, 0), "hidden_size 0");
  BAD(calx_nn_gru_cell(NULL, NULL, 3, 4, .nonlinearity = "relu"), "RNNCell");
}

// Uniform in +-1/sqrt(H), whatever the input's size.
static void test_initial_values(void **state)
{
  (void)state;
  calx_module *m = calx_nn_lstm(NULL, NULL, 200, 25);
  calx_module *cell = calx_nn_gru_cell(NULL, NULL, 200, 25);
  calx_sync(NULL);
  calx_tensor *both[3] = { calx_module_find(m, "weight_ih_l0"),
                           calx_module_find(m, "weight_hh_l0"),
                           calx_module_find(cell, "weight_ih") };
  for (int k = 0; k < 3; k++) {
    size_t n;
    double *v = support_read(both[k], &n), low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
      low = fmin(low, v[i]);
      high = fmax(high, v[i]);
    }
    test_free(v);
    assert_true(low >= -0.2 && low < -0.19 && high <= 0.2 && high > 0.19);
  }
  calx_module_free(m);
  calx_module_free(cell);
}

// In training between layers only, and the same of the same seed.
static void test_dropout(void **state)
{
  (void)state;
  calx_module *m =
      calx_nn_gru(NULL, NULL, 3, 4, .num_layers = 2, .dropout = 0.5, F64);
  calx_module *one = calx_nn_gru(NULL, NULL, 3, 4, .dropout = 0.5, F64);
  calx_sync(NULL);
  double *v[5];
  size_t n = 0;
  for (int i = 0; i < 5; i++) {
    calx_scope *s = calx_scope_begin();
    calx_manual_seed(i == 1 ? 6 : 5);
    calx_module_train(m, i < 3);
    v[i] = support_read(calx_forward(m, f64(CALX_SHAPE(5, 2, 3))), &n);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  assert_memory_not_equal(v[0], v[1], n * sizeof(double));
  assert_memory_equal(v[0], v[2], n * sizeof(double));
  assert_memory_not_equal(v[0], v[3], n * sizeof(double));
  assert_memory_equal(v[3], v[4], n * sizeof(double));
  for (int i = 0; i < 5; i++) test_free(v[i]);
  calx_tensor *x = f64(CALX_SHAPE(5, 2, 3));
  calx_tensor *trained = calx_forward(one, x);
  calx_module_train(one, false);
  calx_tensor *gap =
      calx_sum(calx_abs(calx_sub(trained, calx_forward(one, x))));
  CHECK_VALUES(gap, 0, 0);
  calx_module_free(m);
  calx_module_free(one);
}

static void test_empty_batch(void **state)
{
  (void)state;
  calx_module *m = calx_nn_lstm(NULL, NULL, 3, 4, .bidirectional = true, F64);
  calx_tensor *hn = NULL;
  calx_tensor *y = calx_rnn_forward(m, f64(CALX_SHAPE(5, 0, 3)), .out_hn = &hn);
  assert_int_equal(calx_tensor_dim(y, 1), 0);
  assert_int_equal(calx_tensor_dim(y, 2), 8);
  calx_backward(calx_sum(y));
  size_t n;
  double *v = support_read(calx_grad(calx_module_find(m, "weight_hh_l0")), &n);
  assert_int_equal(n, 64);
  for (size_t i = 0; i < n; i++) assert_true(v[i] == 0);
  test_free(v);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_module_free(m);
}

// The sum of squares of the gradient of a layer with respect to its input.
static calx_tensor *penalty(calx_tensor *y, calx_tensor *x)
{
  calx_tensor *g;
  calx_grad_of(y, &x, 1, &g, .create_graph = true);
  return calx_sum(calx_square(g));
}

static void test_second_derivative(void **state)
{
  (void)state;
  calx_module *m = calx_nn_lstm(NULL, NULL, 3, 4, F64);
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = f64(CALX_SHAPE(5, 2, 3));
  calx_requires_grad(x, true);
  calx_backward(penalty(calx_sum(calx_forward(m, x)), x));
  CHECK_STATUS(CALX_UNIMPLEMENTED, calx_scope_end(s),
               "a recurrent layer has first derivatives only");
  calx_module_free(m);
}

// A loop of cells has them; compared with differences of the first.
static double cell_penalty(calx_module *m, double shift, calx_tensor **out_x)
{
  double values[6] = { 0.1, -0.2, 0.3, 0.5 + shift, -0.4, 0.25 };
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(2, 3), values);
  calx_requires_grad(x, true);
  calx_tensor *h = calx_forward(m, x);
  h = calx_rnn_forward(m, x, .hx = h);
  calx_tensor *p = penalty(calx_sum(calx_square(h)), x);
  calx_backward(p);
  *out_x = x;
  return calx_item(p);
}

static void test_second_derivative_of_cells(void **state)
{
  (void)state;
  const double e = 1e-5;
  calx_module *cells[3] = { calx_nn_rnn_cell(NULL, NULL, 3, 4, F64),
                            calx_nn_lstm_cell(NULL, NULL, 3, 4, F64),
                            calx_nn_gru_cell(NULL, NULL, 3, 4, F64) };
  for (int i = 0; i < 3; i++) {
    calx_tensor *x, *unused;
    double up = cell_penalty(cells[i], e, &unused);
    double down = cell_penalty(cells[i], -e, &unused);
    cell_penalty(cells[i], 0, &x);
    size_t n;
    double *g = support_read(calx_grad(x), &n);
    CHECK_CLOSE(g[3], (up - down) / (2 * e), 1e-7);
    test_free(g);
    calx_module_free(cells[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_refused_inputs),
    SUPPORT_TEST(test_refused_weights),
    SUPPORT_TEST(test_refused_options),
    SUPPORT_TEST(test_initial_values),
    SUPPORT_TEST(test_dropout),
    SUPPORT_TEST(test_empty_batch),
    SUPPORT_TEST(test_second_derivative),
    SUPPORT_TEST(test_second_derivative_of_cells),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
