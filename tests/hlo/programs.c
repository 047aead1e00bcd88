#include "hlo/programs.h"

#include "hlo/number.h"

// A tensor of numbers that the device cannot fold away: from, from + step, …
static cx_hlo_value *series(cx_hlo_builder *b, cx_hlo_type type, double from,
                            double step)
{
  unsigned char bytes[4096] = { 0 };
  const size_t n = (size_t)cx_hlo_type_elements(&type);
  const size_t size = cx_hlo_elem_bytes(type.elem);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_store_number(type.elem, bytes + i * size, from + (double)i * step);
  }
  cx_hlo_value *x = cx_hlo_constant(b, type, bytes, n * size);
  cx_hlo_value *out = NULL;
  cx_hlo_optimization_barrier(b, &x, 1, &out);
  return out;
}

static cx_hlo_value *zero(cx_hlo_builder *b, cx_hlo_elem e)
{
  return cx_hlo_splat(b, (cx_hlo_type){ e, 0, NULL }, 0);
}

// ---- elementwise ----

static size_t unary_float(cx_hlo_builder *b, cx_hlo_value **out)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ABS,
                                          CX_HLO_OP_NEGATE,
                                          CX_HLO_OP_SIGN,
                                          CX_HLO_OP_EXPONENTIAL,
                                          CX_HLO_OP_LOG,
                                          CX_HLO_OP_EXPONENTIAL_MINUS_ONE,
                                          CX_HLO_OP_LOG_PLUS_ONE,
                                          CX_HLO_OP_LOGISTIC,
                                          CX_HLO_OP_TANH,
                                          CX_HLO_OP_TAN,
                                          CX_HLO_OP_SQRT,
                                          CX_HLO_OP_RSQRT,
                                          CX_HLO_OP_CBRT,
                                          CX_HLO_OP_COSINE,
                                          CX_HLO_OP_SINE,
                                          CX_HLO_OP_FLOOR,
                                          CX_HLO_OP_CEIL,
                                          CX_HLO_OP_ROUND_NEAREST_EVEN,
                                          CX_HLO_OP_ROUND_NEAREST_AFZ,
                                          CX_HLO_OP_IS_FINITE };
  cx_hlo_value *x = series(b, TYPE(F32, 3, 4), 0.25, 0.25);
  const size_t n = sizeof kinds / sizeof *kinds;
  for (size_t i = 0; i < n; i++) out[i] = cx_hlo_unary(b, kinds[i], x);
  return n;
}

static size_t unary_int(cx_hlo_builder *b, cx_hlo_value **out)
{
  static const cx_hlo_op_kind kinds[] = {
    CX_HLO_OP_ABS, CX_HLO_OP_NEGATE, CX_HLO_OP_SIGN,
    CX_HLO_OP_NOT, CX_HLO_OP_POPCNT, CX_HLO_OP_COUNT_LEADING_ZEROS
  };
  cx_hlo_value *x = series(b, TYPE(I32, 7), -3, 1);
  const size_t n = sizeof kinds / sizeof *kinds;
  for (size_t i = 0; i < n; i++) out[i] = cx_hlo_unary(b, kinds[i], x);
  return n;
}

static size_t binary_float(cx_hlo_builder *b, cx_hlo_value **out)
{
  static const cx_hlo_op_kind kinds[] = {
    CX_HLO_OP_ADD,     CX_HLO_OP_SUBTRACT,  CX_HLO_OP_MULTIPLY,
    CX_HLO_OP_DIVIDE,  CX_HLO_OP_REMAINDER, CX_HLO_OP_POWER,
    CX_HLO_OP_MAXIMUM, CX_HLO_OP_MINIMUM,   CX_HLO_OP_ATAN2
  };
  cx_hlo_value *x = series(b, TYPE(F32, 2, 5), 0.5, 0.75);
  cx_hlo_value *y = series(b, TYPE(F32, 2, 5), 4.25, -0.5);
  const size_t n = sizeof kinds / sizeof *kinds;
  for (size_t i = 0; i < n; i++) out[i] = cx_hlo_binary(b, kinds[i], x, y);
  return n;
}

static size_t binary_int(cx_hlo_builder *b, cx_hlo_value **out)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD,
                                          CX_HLO_OP_SUBTRACT,
                                          CX_HLO_OP_MULTIPLY,
                                          CX_HLO_OP_DIVIDE,
                                          CX_HLO_OP_REMAINDER,
                                          CX_HLO_OP_POWER,
                                          CX_HLO_OP_MAXIMUM,
                                          CX_HLO_OP_MINIMUM,
                                          CX_HLO_OP_AND,
                                          CX_HLO_OP_OR,
                                          CX_HLO_OP_XOR,
                                          CX_HLO_OP_SHIFT_LEFT,
                                          CX_HLO_OP_SHIFT_RIGHT_LOGICAL,
                                          CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC };
  cx_hlo_value *x = series(b, TYPE(I32, 6), -17, 9);
  cx_hlo_value *y = series(b, TYPE(I32, 6), 1, 1);
  const size_t n = sizeof kinds / sizeof *kinds;
  for (size_t i = 0; i < n; i++) out[i] = cx_hlo_binary(b, kinds[i], x, y);
  return n;
}

static size_t comparisons(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 5), -2, 1);
  cx_hlo_value *y = series(b, TYPE(F32, 5), 2, -1);
  cx_hlo_value *u = series(b, TYPE(UI8, 5), 0, 60);
  cx_hlo_value *v = series(b, TYPE(UI8, 5), 240, -60);
  for (int d = CX_HLO_EQ; d <= CX_HLO_LT; d++) {
    out[d] = cx_hlo_compare(b, (cx_hlo_direction)d, x, y);
    out[6 + d] = cx_hlo_compare(b, (cx_hlo_direction)d, u, v);
  }
  out[12] = cx_hlo_select(b, out[CX_HLO_LT], x, y);
  cx_hlo_value *yes = series(b, SCALAR(I1), 1, 0);
  out[13] = cx_hlo_select(b, yes, x, y);
  cx_hlo_value *low = series(b, SCALAR(F32), -1, 0);
  cx_hlo_value *high = series(b, SCALAR(F32), 1.5, 0);
  out[14] = cx_hlo_clamp(b, low, x, high);
  out[15] = cx_hlo_clamp(b, y, x, y);
  return 16;
}

static size_t conversions(cx_hlo_builder *b, cx_hlo_value **out)
{
  static const cx_hlo_elem to[] = { CX_HLO_I1,  CX_HLO_I8,   CX_HLO_I16,
                                    CX_HLO_I32, CX_HLO_I64,  CX_HLO_UI8,
                                    CX_HLO_F16, CX_HLO_BF16, CX_HLO_F64 };
  cx_hlo_value *x = series(b, TYPE(F32, 2, 3), 0, 1.25);
  const size_t n = sizeof to / sizeof *to;
  for (size_t i = 0; i < n; i++) {
    cx_hlo_value *y = cx_hlo_convert(b, x, to[i]);
    out[2 * i] = y;
    out[2 * i + 1] = cx_hlo_convert(b, y, CX_HLO_F32);
  }
  out[2 * n] = cx_hlo_bitcast_convert(b, x, TYPE(I32, 2, 3));
  out[2 * n + 1] = cx_hlo_bitcast_convert(b, x, TYPE(UI8, 2, 3, 4));
  out[2 * n + 2] = cx_hlo_bitcast_convert(b, out[2 * n + 1], TYPE(F32, 2, 3));
  return 2 * n + 3;
}

// ---- constants ----

static const cx_hlo_elem numbers[] = { CX_HLO_I8,   CX_HLO_I16,  CX_HLO_I32,
                                       CX_HLO_I64,  CX_HLO_UI8,  CX_HLO_UI16,
                                       CX_HLO_UI32, CX_HLO_UI64, CX_HLO_BF16,
                                       CX_HLO_F16,  CX_HLO_F32,  CX_HLO_F64 };

static size_t splats(cx_hlo_builder *b, cx_hlo_value **out)
{
  const size_t n = sizeof numbers / sizeof *numbers;
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_type type = { numbers[i], 1, LIST(3) };
    out[i] = cx_hlo_splat(b, type, 2.5);
    out[n + i] = cx_hlo_splat_int(b, type, 7);
  }
  return 2 * n;
}

static size_t extremes(cx_hlo_builder *b, cx_hlo_value **out)
{
  const size_t n = sizeof numbers / sizeof *numbers;
  for (size_t i = 0; i < n; i++) {
    out[2 * i] = cx_hlo_lowest(b, numbers[i]);
    out[2 * i + 1] = cx_hlo_highest(b, numbers[i]);
  }
  out[2 * n] = cx_hlo_lowest(b, CX_HLO_I1);
  out[2 * n + 1] = cx_hlo_highest(b, CX_HLO_I1);
  return 2 * n + 2;
}

// More than 16 elements are printed as bytes; i1 never is.
static size_t literals(cx_hlo_builder *b, cx_hlo_value **out)
{
  const size_t n = sizeof numbers / sizeof *numbers;
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_type few = { numbers[i], 2, LIST(2, 2) };
    const cx_hlo_type many = { numbers[i], 2, LIST(5, 4) };
    out[2 * i] = series(b, few, 0.1, 1.7);
    out[2 * i + 1] = series(b, many, 0.1, 1.7);
  }
  static const bool mask[20] = { true, false, true, true };
  out[2 * n] = cx_hlo_constant(b, TYPE(I1, 20), mask, sizeof mask);
  out[2 * n + 1] = cx_hlo_constant(b, TYPE(F32, 2, 0), NULL, 0);
  static const float pair[] = { 1.5f, -2 };
  cx_hlo_value *c = cx_hlo_constant(b, SCALAR(C64), pair, sizeof pair);
  out[2 * n + 2] = cx_hlo_unary(b, CX_HLO_OP_IMAG, c);
  return 2 * n + 3;
}

// ---- shape ----

static size_t shapes(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 2, 3, 4), 0, 1);
  cx_hlo_value *row = series(b, TYPE(F32, 3), 0, 1);
  cx_hlo_value *column = series(b, TYPE(F32, 2, 1), 0, 1);
  size_t n = 0;
  out[n++] = cx_hlo_reshape(b, x, LIST(4, 6), 2);
  out[n++] = cx_hlo_broadcast_in_dim(b, row, LIST(2, 3), 2, LIST(1));
  out[n++] = cx_hlo_broadcast_in_dim(b, column, LIST(2, 3), 2, LIST(0, 1));
  out[n++] =
      cx_hlo_broadcast_in_dim(b, zero(b, CX_HLO_F32), LIST(2, 3), 2, NULL);
  out[n++] = cx_hlo_transpose(b, x, LIST(2, 0, 1));
  out[n++] = cx_hlo_slice(b, x, LIST(0, 1, 0), LIST(2, 3, 4), LIST(1, 1, 3));
  cx_hlo_value *both[] = { x, out[5] };
  out[n++] = cx_hlo_slice(b, x, LIST(1, 0, 0), LIST(2, 3, 4), NULL);
  both[1] = out[n - 1];
  out[n++] = cx_hlo_concatenate(b, both, 2, 0);
  cx_hlo_value *value = series(b, SCALAR(F32), -1, 0);
  out[n++] =
      cx_hlo_pad(b, x, value, LIST(0, 1, -1), LIST(1, 0, 2), LIST(0, 2, 1));
  out[n++] = cx_hlo_reverse(b, x, LIST(0, 2), 2);
  out[n++] = cx_hlo_iota(b, TYPE(I32, 2, 3), 1);
  out[n++] = cx_hlo_iota(b, TYPE(F32, 2, 3), 0);
  return n;
}

static size_t dynamic_slices(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 4, 5), 0, 1);
  cx_hlo_value *update = series(b, TYPE(F32, 2, 2), -1, -1);
  cx_hlo_value *starts[] = { series(b, SCALAR(I32), 1, 0),
                             series(b, SCALAR(I32), 4, 0) };
  out[0] = cx_hlo_dynamic_slice(b, x, starts, LIST(2, 3));
  out[1] = cx_hlo_dynamic_update_slice(b, x, update, starts);
  return 2;
}

// ---- contractions ----

static size_t dots(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 2, 3), 1, 0.5);
  cx_hlo_value *y = series(b, TYPE(F32, 3, 4), -2, 0.25);
  const cx_hlo_dot_dims plain = { .lhs_contract = LIST(1),
                                  .rhs_contract = LIST(0),
                                  .n_contract = 1 };
  const cx_hlo_dot_dims outer = { 0 };
  const cx_hlo_dot_dims batched = { .lhs_batch = LIST(0),
                                    .rhs_batch = LIST(2),
                                    .n_batch = 1,
                                    .lhs_contract = LIST(2),
                                    .rhs_contract = LIST(0),
                                    .n_contract = 1 };
  cx_hlo_value *u = series(b, TYPE(F32, 5, 2, 3), -1, 0.125);
  cx_hlo_value *v = series(b, TYPE(F32, 3, 4, 5), 2, -0.125);
  out[0] = cx_hlo_dot_general(b, x, y, &plain, CX_HLO_INVALID);
  out[1] = cx_hlo_dot_general(b, x, y, &outer, CX_HLO_INVALID);
  out[2] = cx_hlo_dot_general(b, u, v, &batched, CX_HLO_INVALID);
  cx_hlo_value *p = cx_hlo_convert(b, x, CX_HLO_BF16);
  cx_hlo_value *q = cx_hlo_convert(b, y, CX_HLO_BF16);
  out[3] = cx_hlo_dot_general(b, p, q, &plain, CX_HLO_F32);
  cx_hlo_value *s = series(b, TYPE(I8, 2, 3), -100, 40);
  cx_hlo_value *t = series(b, TYPE(I8, 3, 2), 100, -30);
  out[4] = cx_hlo_dot_general(b, s, t, &plain, CX_HLO_I32);
  // Weights of 4 bits: they wrap.
  cx_hlo_value *four = cx_hlo_convert(b, t, CX_HLO_I4);
  four = cx_hlo_transpose(b, four, LIST(1, 0));
  four = cx_hlo_convert(b, four, CX_HLO_F32);
  const cx_hlo_dot_dims rows = { .lhs_contract = LIST(1),
                                 .rhs_contract = LIST(1),
                                 .n_contract = 1 };
  out[5] = cx_hlo_dot_general(b, x, four, &rows, CX_HLO_INVALID);
  return 6;
}

// Batch, height, width, feature; height, width, input, output.
static cx_hlo_conv_dims nhwc(void)
{
  static const int64_t spatial[] = { 1, 2 };
  static const int64_t kernel[] = { 0, 1 };
  return (cx_hlo_conv_dims){ .n_spatial = 2,
                             .input_feature = 3,
                             .input_spatial = spatial,
                             .kernel_output = 3,
                             .kernel_input = 2,
                             .kernel_spatial = kernel,
                             .output_feature = 3,
                             .output_spatial = spatial };
}

static size_t convolutions(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 2, 5, 6, 4), -3, 0.125);
  cx_hlo_value *k = series(b, TYPE(F32, 3, 2, 4, 6), 1, -0.0625);
  cx_hlo_value *grouped = series(b, TYPE(F32, 3, 2, 2, 6), 1, -0.0625);
  cx_hlo_conv_dims d = nhwc();
  size_t n = 0;
  out[n++] = cx_hlo_convolution(b, x, k, &d);
  d.strides = LIST(2, 1);
  d.padding = LIST(1, 0, 2, 1);
  out[n++] = cx_hlo_convolution(b, x, k, &d);
  d.lhs_dilation = LIST(2, 3);
  d.rhs_dilation = LIST(1, 2);
  static const bool reversal[] = { true, false };
  d.reversal = reversal;
  out[n++] = cx_hlo_convolution(b, x, k, &d);
  d = nhwc();
  d.feature_groups = 2;
  out[n++] = cx_hlo_convolution(b, x, grouped, &d);
  d.feature_groups = 1;
  d.batch_groups = 2;
  out[n++] = cx_hlo_convolution(b, x, k, &d);
  return n;
}

// Batch, feature, height, width; output, input, height, width: PyTorch's.
static size_t convolution_nchw(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 1, 2, 4, 4), 0, 0.5);
  cx_hlo_value *k = series(b, TYPE(F32, 3, 2, 3, 3), 2, -0.125);
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_feature = 1,
                               .input_spatial = LIST(2, 3),
                               .kernel_input = 1,
                               .kernel_spatial = LIST(2, 3),
                               .output_feature = 1,
                               .output_spatial = LIST(2, 3),
                               .padding = LIST(1, 1, 1, 1) };
  cx_hlo_value *line = series(b, TYPE(F32, 2, 1, 7), 0, 1);
  cx_hlo_value *taps = series(b, TYPE(F32, 1, 1, 3), 1, 1);
  const cx_hlo_conv_dims one = { .n_spatial = 1,
                                 .input_feature = 1,
                                 .input_spatial = LIST(2),
                                 .kernel_input = 1,
                                 .kernel_spatial = LIST(2),
                                 .output_feature = 1,
                                 .output_spatial = LIST(2) };
  out[0] = cx_hlo_convolution(b, x, k, &d);
  out[1] = cx_hlo_convolution(b, line, taps, &one);
  return 2;
}

// ---- reductions and windows ----

// The greater element, and where it is: the first of equal ones.
static void argmax_body(cx_hlo_builder *b, void *user,
                        cx_hlo_value *const *args, cx_hlo_value **out)
{
  (void)user;
  cx_hlo_value *keep = cx_hlo_compare(b, CX_HLO_GE, args[0], args[2]);
  out[0] = cx_hlo_select(b, keep, args[0], args[2]);
  out[1] = cx_hlo_select(b, keep, args[1], args[3]);
}

static size_t reductions(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 3, 4, 2), -5, 0.75);
  cx_hlo_value *init = zero(b, CX_HLO_F32);
  out[0] = cx_hlo_reduce_with(b, CX_HLO_OP_ADD, x, init, LIST(0, 2), 2);
  out[1] = cx_hlo_reduce_with(b, CX_HLO_OP_MAXIMUM, x,
                              cx_hlo_lowest(b, CX_HLO_F32), LIST(1), 1);
  out[2] =
      cx_hlo_reduce_with(b, CX_HLO_OP_MULTIPLY, x,
                         cx_hlo_splat(b, SCALAR(F32), 1), LIST(0, 1, 2), 3);
  cx_hlo_value *inputs[] = { x, cx_hlo_iota(b, TYPE(I32, 3, 4, 2), 1) };
  cx_hlo_value *inits[] = { cx_hlo_lowest(b, CX_HLO_F32), zero(b, CX_HLO_I32) };
  cx_hlo_reduce(b, 2, inputs, inits, LIST(1), 1, argmax_body, NULL, out + 3);
  return 5;
}

static size_t windows(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 1, 5, 6, 2), 10, -0.5);
  cx_hlo_value *low = cx_hlo_lowest(b, CX_HLO_F32);
  cx_hlo_value *init = zero(b, CX_HLO_F32);
  cx_hlo_window w = { .dimensions = LIST(1, 2, 3, 1) };
  size_t n = 0;
  out[n++] = cx_hlo_reduce_window_with(b, CX_HLO_OP_ADD, x, init, &w);
  w.strides = LIST(1, 2, 2, 1);
  w.padding = LIST(0, 0, 1, 0, 0, 1, 0, 0);
  out[n++] = cx_hlo_reduce_window_with(b, CX_HLO_OP_MAXIMUM, x, low, &w);
  w.base_dilations = LIST(1, 2, 1, 1);
  w.dilations = LIST(1, 1, 2, 1);
  out[n++] = cx_hlo_reduce_window_with(b, CX_HLO_OP_ADD, x, init, &w);
  cx_hlo_value *line = series(b, TYPE(F32, 7), 1, 1);
  const cx_hlo_window cumulative = { .dimensions = LIST(7),
                                     .padding = LIST(6, 0) };
  out[n++] =
      cx_hlo_reduce_window_with(b, CX_HLO_OP_ADD, line, init, &cumulative);
  cx_hlo_value *inputs[] = { line, cx_hlo_iota(b, TYPE(I32, 7), 0) };
  cx_hlo_value *inits[] = { low, zero(b, CX_HLO_I32) };
  const cx_hlo_window three = { .dimensions = LIST(3), .strides = LIST(2) };
  cx_hlo_reduce_window(b, 2, inputs, inits, &three, argmax_body, NULL, out + n);
  return n + 2;
}

static void greater_equal(cx_hlo_builder *b, void *user,
                          cx_hlo_value *const *args, cx_hlo_value **out)
{
  (void)user;
  out[0] = cx_hlo_compare(b, CX_HLO_GE, args[0], args[1]);
}

static void sum(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                cx_hlo_value **out)
{
  (void)user;
  out[0] = cx_hlo_binary(b, CX_HLO_OP_ADD, args[0], args[1]);
}

static size_t select_and_scatter(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *x = series(b, TYPE(F32, 1, 4, 4, 1), 1, 1);
  cx_hlo_value *source = series(b, TYPE(F32, 1, 2, 2, 1), 10, 10);
  const cx_hlo_window w = { .dimensions = LIST(1, 2, 2, 1),
                            .strides = LIST(1, 2, 2, 1) };
  out[0] = cx_hlo_select_and_scatter(b, x, source, zero(b, CX_HLO_F32), &w,
                                     greater_equal, sum, NULL);
  cx_hlo_value *wide = series(b, TYPE(F32, 1, 3, 3, 1), 10, 10);
  const cx_hlo_window padded = { .dimensions = LIST(1, 3, 3, 1),
                                 .strides = LIST(1, 2, 2, 1),
                                 .padding = LIST(0, 0, 1, 2, 1, 2, 0, 0) };
  out[1] = cx_hlo_select_and_scatter(b, x, wide, zero(b, CX_HLO_F32), &padded,
                                     greater_equal, sum, NULL);
  return 2;
}

// ---- linear algebra ----

static size_t factors(cx_hlo_builder *b, cx_hlo_value **out)
{
  // x x^T + 0.5, and 40 on the diagonal.
  cx_hlo_value *x = series(b, TYPE(F32, 2, 5, 3), -1, 0.125);
  const cx_hlo_dot_dims d = { .lhs_batch = LIST(0),
                              .rhs_batch = LIST(0),
                              .n_batch = 1,
                              .lhs_contract = LIST(2),
                              .rhs_contract = LIST(2),
                              .n_contract = 1 };
  cx_hlo_value *a = cx_hlo_dot_general(b, x, x, &d, CX_HLO_INVALID);
  cx_hlo_value *same =
      cx_hlo_compare(b, CX_HLO_EQ, cx_hlo_iota(b, TYPE(I32, 2, 5, 5), 1),
                     cx_hlo_iota(b, TYPE(I32, 2, 5, 5), 2));
  a = cx_hlo_binary(b, CX_HLO_OP_ADD, a,
                    cx_hlo_select(b, same, series(b, TYPE(F32, 2, 5, 5), 40, 0),
                                  series(b, TYPE(F32, 2, 5, 5), 0.5, 0)));
  out[0] = cx_hlo_cholesky(b, a);
  cx_hlo_value *y = series(b, TYPE(F32, 2, 5, 2), 1, 1);
  out[1] = cx_hlo_triangular_solve(b, out[0], y, true, false, false);
  out[2] = cx_hlo_triangular_solve(b, out[0], y, true, false, true);
  out[3] = cx_hlo_triangular_solve(b, a, y, false, false, true);
  return 4;
}

// ---- the rest ----

static size_t random_bits(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *state = series(b, TYPE(UI64, 2), 1234567, 89);
  cx_hlo_rng_bit_generator(b, state, TYPE(UI32, 3, 4), &out[0], &out[1]);
  cx_hlo_rng_bit_generator(b, state, TYPE(UI64, 5), &out[2], &out[3]);
  return 4;
}

static size_t barrier(cx_hlo_builder *b, cx_hlo_value **out)
{
  cx_hlo_value *xs[] = { series(b, TYPE(F32, 2), 1, 1),
                         series(b, TYPE(I32, 3), 1, 1) };
  cx_hlo_optimization_barrier(b, xs, 2, out);
  return 2;
}

const program programs[] = {
  { "unary_float", unary_float },
  { "unary_int", unary_int },
  { "binary_float", binary_float },
  { "binary_int", binary_int },
  { "comparisons", comparisons },
  { "conversions", conversions },
  { "splats", splats },
  { "extremes", extremes },
  { "literals", literals },
  { "shapes", shapes },
  { "dynamic_slices", dynamic_slices },
  { "dots", dots },
  { "convolutions", convolutions },
  { "convolution_nchw", convolution_nchw },
  { "reductions", reductions },
  { "windows", windows },
  { "select_and_scatter", select_and_scatter },
  { "factors", factors },
  { "random_bits", random_bits },
  { "barrier", barrier },
};
const size_t n_programs = sizeof programs / sizeof *programs;

calx_status *program_module(const program *p, cx_hlo_module **out)
{
  cx_hlo_builder *b = NULL;
  cx_hlo_value *results[32] = { NULL };
  *out = NULL;
  CALX_TRY(cx_hlo_builder_new(p->name, "main", NULL, 0, &b));
  const size_t n = p->build(b, results);
  return cx_hlo_builder_finish(b, results, n, out);
}
