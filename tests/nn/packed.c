// packed: sequences of several lengths as functions, what recurrent layers
// refuse of them, and that other lengths need no other program. Their values
// beside PyTorch's are in recurrent.c.
#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/rnn_utils.h"
#include "support/support.h"

static calx_tensor *numbers(calx_dims shape)
{
  static double data[256];
  for (int i = 0; i < 256; i++) data[i] = i + 1;
  return support_tensor(CALX_F64, shape, data);
}

static calx_tensor *host(calx_dtype d, const int64_t *values, int64_t n)
{
  int32_t narrow[8];
  for (int64_t i = 0; i < n; i++) narrow[i] = (int32_t)values[i];
  return d == CALX_I64 ? calx_host_tensor(values, d, calx_dims_of(&n, 1))
                       : calx_host_tensor(narrow, d, calx_dims_of(&n, 1));
}
#define LENGTHS(...)                               \
  host(CALX_I64, (const int64_t[]){ __VA_ARGS__ }, \
       (int64_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))

static void check(calx_tensor *t, calx_dims shape, const double *wanted)
{
  size_t n;
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_dims got = calx_tensor_shape(t);
  assert_int_equal(got.count, shape.count);
  for (size_t i = 0; i < got.count; i++) {
    assert_int_equal(got.values[i], shape.values[i]);
  }
  double *x = support_read(t, &n);
  for (size_t i = 0; i < n; i++) {
    if (!isnan(wanted[i])) CHECK_CLOSE(x[i], wanted[i], 0);
  }
  test_free(x);
}
#define CHECK(t, shape, ...) check(t, shape, (const double[]){ __VA_ARGS__ })

// torch.nn.utils.rnn's examples, with numbers.
static void test_values(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *rows[3] = { numbers(CALX_SHAPE(1)), numbers(CALX_SHAPE(3)),
                           numbers(CALX_SHAPE(2)) };
  CHECK(calx_pad_sequence(rows, 3), CALX_SHAPE(3, 3), 1, 1, 1, 0, 2, 2, 0, 3,
        0);
  CHECK(calx_pad_sequence(rows, 3, .batch_first = true), CALX_SHAPE(3, 3), 1, 0,
        0, 1, 2, 3, 1, 2, 0);
  CHECK(calx_pad_sequence(rows, 3, .batch_first = true, .padding_value = -1,
                          .padding_side = "left"),
        CALX_SHAPE(3, 3), -1, -1, 1, 1, 2, 3, -1, 1, 2);
  calx_packed_sequence p =
      calx_pack_sequence(rows, 3, .no_enforce_sorted = true);
  CHECK(p.lengths, CALX_SHAPE(3), 1, 3, 2);
  CHECK(calx_pad_packed_sequence(p, .batch_first = true, .padding_value = 9),
        CALX_SHAPE(3, 3), 1, 9, 9, 1, 2, 3, 1, 2, 9);
  CHECK(calx_pad_packed_sequence(p, .total_length = 4), CALX_SHAPE(4, 3), 1, 1,
        1, 0, 2, 2, 0, 3, 0, 0, 0, 0);
  calx_tensor *out[3];
  calx_unpack_sequence(p, out, 3);
  CHECK(out[0], CALX_SHAPE(1), 1);
  CHECK(out[1], CALX_SHAPE(3), 1, 2, 3);
  CHECK(out[2], CALX_SHAPE(2), 1, 2);
  // (2, 3, 2) with two and three steps.
  calx_tensor *x = numbers(CALX_SHAPE(2, 3, 2));
  p = calx_pack_padded_sequence(x, host(CALX_I32, (int64_t[]){ 2, 3 }, 2),
                                .batch_first = true, .no_enforce_sorted = true);
  CHECK(calx_pad_packed_sequence(p, .batch_first = true), CALX_SHAPE(2, 3, 2),
        1, 2, 3, 4, 0, 0, 7, 8, 9, 10, 11, 12);
  calx_unpad_sequence(x, LENGTHS(2, 3), out, 2, .batch_first = true);
  CHECK(out[0], CALX_SHAPE(2, 2), 1, 2, 3, 4);
  CHECK(out[1], CALX_SHAPE(3, 2), 7, 8, 9, 10, 11, 12);
  calx_unpad_sequence(calx_transpose(x, 0, 1), calx_to(LENGTHS(1, 2), NULL),
                      out, 2);
  CHECK(out[0], CALX_SHAPE(1, 2), 1, 2);
  CHECK(out[1], CALX_SHAPE(2, 2), 7, 8, 9, 10);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_gradients(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *a = numbers(CALX_SHAPE(3)), *b = numbers(CALX_SHAPE(1));
  calx_requires_grad(a, true);
  calx_requires_grad(b, true);
  calx_tensor *rows[2] = { a, b };
  calx_tensor *y = calx_pad_packed_sequence(calx_pack_sequence(rows, 2));
  calx_backward(calx_sum(calx_mul(y, numbers(CALX_SHAPE(3, 2)))));
  CHECK(calx_grad(a), CALX_SHAPE(3), 1, 3, 5);
  CHECK(calx_grad(b), CALX_SHAPE(1), 2);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- refused ----------------------------------------------------------------

#define REFUSED(call, words)                                        \
  do {                                                              \
    calx_scope *s_ = calx_scope_begin();                            \
    call;                                                           \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s_), words); \
  } while (0)

static void test_refused(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = numbers(CALX_SHAPE(4, 2, 3)), *out[2];
  REFUSED(calx_pack_padded_sequence(x, LENGTHS(1, 2)),
          "must be sorted in decreasing order when `enforce_sorted` is True");
  REFUSED(calx_pack_padded_sequence(x, LENGTHS(2, 0)), "greater than 0");
  REFUSED(calx_pack_padded_sequence(x, LENGTHS(5, 1)), "5 of row 0");
  REFUSED(calx_pack_padded_sequence(x, LENGTHS(3, 2, 1)),
          "got 3 (batch_size=2)");
  REFUSED(calx_pack_padded_sequence(x, LENGTHS(3, 2), .batch_first = true),
          "got 2 (batch_size=4)");
  REFUSED(calx_pack_padded_sequence(x, NULL), "lengths are NULL");
  REFUSED(calx_pack_padded_sequence(NULL, LENGTHS(3, 2)), "NULL");
  REFUSED(calx_pack_padded_sequence(numbers(CALX_SHAPE(4)), LENGTHS(4)),
          "(steps, batch, …) is wanted");
  REFUSED(calx_pad_sequence(NULL, 2), "empty list");
  REFUSED(calx_pad_sequence(&x, 0), "empty list");
  REFUSED(calx_pad_sequence(&x, 1, .padding_side = "top"), "'top'");
  calx_tensor *two[2] = { x, numbers(CALX_SHAPE(4, 3, 3)) };
  REFUSED(calx_pad_sequence(two, 2), "sequence 1 is f64[4,3,3]");
  two[1] = calx_full(CALX_SCALAR, 1, .dtype = CALX_F64);
  REFUSED(calx_pad_sequence(two, 2), "sequence 1 is");
  two[0] = numbers(CALX_SHAPE(1));
  two[1] = numbers(CALX_SHAPE(2));
  REFUSED(calx_pack_sequence(two, 2), "sorted");
  REFUSED(calx_unpad_sequence(x, LENGTHS(1, 2), out, 1), "1 results of 2 rows");
  REFUSED(calx_unpad_sequence(x, LENGTHS(1, 9), out, 2), "9 of row 1");
  REFUSED(calx_unpad_sequence(NULL, LENGTHS(1, 2), out, 2), "NULL");
  calx_packed_sequence p = calx_pack_padded_sequence(x, LENGTHS(3, 2));
  REFUSED(calx_pad_packed_sequence(p, .total_length = 3),
          "Expected total_length to be at least");
  REFUSED(calx_pad_packed_sequence(p, .total_length = -1), "total_length=-1");
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_layers_refuse(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_nn_lstm(NULL, NULL, 3, 4, .dtype = CALX_F64);
  calx_module *cell = calx_nn_lstm_cell(NULL, NULL, 3, 4, .dtype = CALX_F64);
  calx_tensor *x = numbers(CALX_SHAPE(4, 2, 3));
  REFUSED(calx_rnn_forward(m, x, .lengths = LENGTHS(4, 5)),
          "length 5 of row 1");
  REFUSED(calx_rnn_forward(m, x, .lengths = LENGTHS(4)), "one for each of 2");
  REFUSED(calx_rnn_forward(m, x, .lengths = x), ".lengths is f64 of rank 3");
  REFUSED(calx_rnn_forward(m, numbers(CALX_SHAPE(4, 3)), .lengths = LENGTHS(4)),
          "rows of a batch");
  REFUSED(calx_rnn_forward(cell, numbers(CALX_SHAPE(2, 3)),
                           .lengths = LENGTHS(1, 1)),
          "a cell does one step");
  calx_packed_sequence none = { .data = NULL };
  REFUSED(calx_rnn_forward_packed(m, none), "NULL");
  // Lengths of a device are not read: they are cut to 0 to T.
  calx_tensor *ends = calx_to(LENGTHS(9, -3), NULL), *hn, *full;
  calx_rnn_forward(m, x, .lengths = ends, .out_hn = &hn);
  calx_rnn_forward(m, x, .out_hn = &full);
  size_t n;
  double *got = support_read(hn, &n), *want = support_read(full, &n);
  for (size_t i = 0; i < 4; i++) CHECK_CLOSE(got[i], want[i], 1e-12);
  for (size_t i = 4; i < 8; i++) assert_true(got[i] == 0);
  test_free(got);
  test_free(want);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
  calx_module_free(cell);
}

// ---- programs ---------------------------------------------------------------

static void test_other_lengths(void **state)
{
  (void)state;
  static const int64_t lengths[4][2] = {
    { 4, 1 }, { 2, 2 }, { 1, 3 }, { 3, 4 }
  };
  calx_module *m =
      calx_nn_gru(NULL, NULL, 3, 4, .bidirectional = true, .dtype = CALX_F64);
  int64_t programs = 0;
  for (int i = 0; i < 4; i++) {
    calx_scope *s = calx_scope_begin();
    calx_packed_sequence p = calx_pack_padded_sequence(
        numbers(CALX_SHAPE(4, 2, 3)), host(CALX_I64, lengths[i], 2),
        .no_enforce_sorted = true);
    calx_tensor *y = calx_rnn_forward_packed(m, p).data;
    calx_sync(y);
    CHECK_STATUS_OK(calx_scope_end(s));
    if (i == 1) programs = calx_counter_value("UncachedCompile");
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), programs);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_values),        SUPPORT_TEST(test_gradients),
    SUPPORT_TEST(test_refused),       SUPPORT_TEST(test_layers_refuse),
    SUPPORT_TEST(test_other_lengths),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
