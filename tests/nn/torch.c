// torch: each layer beside PyTorch's. This program makes the layers, runs them
// in training and evaluation, and writes what they are and compute to a file;
// torch_layers.py makes the same of torch.nn from the same weights, in f64, and
// compares names, shapes, texts, results, gradients and initial values.
#include "support/torch.h"
#include "calx/autograd.h"
#include "calx/calx.h"

static calx_value *rows;  // a list of dicts

static void put(calx_value *to, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(to, key, v));
}

static void put_copy(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *t)
{
  (void)kind;
  put(user, path, calx_value_tensor(calx_cpu(t)));
}

// As it is now: a value that holds the tensor itself changes with it.
static calx_value *state_of(calx_module *m)
{
  calx_value *v = calx_value_container(CALX_KIND_DICT);
  calx_scope *s = calx_scope_begin();
  calx_module_visit(m, put_copy, v);
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

// Number i of the values that are not all alike.
static double value(size_t i)
{
  return sin(1.3 * (double)i + 0.2) * 1.5;
}

// Integers below `classes`; 0: floating values.
static calx_tensor *input(calx_dims shape, int64_t classes, double from)
{
  size_t n = 1;
  for (size_t i = 0; i < shape.count; i++) n *= (size_t)shape.values[i];
  double *v = test_malloc((n + 1) * sizeof *v);
  for (size_t i = 0; i < n; i++) {
    v[i] = classes != 0 ? (double)((int64_t)(i * 7 + i / 3) % classes)
                        : value(i + (size_t)from);
  }
  calx_tensor *t = support_tensor(classes != 0 ? CALX_I64 : CALX_F32, shape, v);
  test_free(v);
  return t;
}

// Moves each parameter away from its initial value, so that a weight of 1 and a
// bias of 0 count too.
static void move(void *user, const char *path, calx_entry_kind kind,
                 calx_tensor *t)
{
  (void)path;
  (void)kind;
  size_t *from = user;
  calx_no_grad_begin();
  calx_assign(
      t, calx_add(
             t, calx_mul(input(calx_tensor_shape(t), 0, (double)*from), 0.2)));
  calx_no_grad_end();
  *from += 11;
}

typedef struct grads {
  calx_value *dict;
} grads;

static void put_grad(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *t)
{
  (void)kind;
  if (calx_grad(t) != NULL) {
    put(((grads *)user)->dict, path, calx_value_tensor(calx_grad(t)));
  }
}

// The sum of y's elements, each times cos(its number).
static calx_tensor *objective(calx_tensor *y)
{
  size_t n = (size_t)calx_tensor_numel(y);
  double *v = test_malloc((n + 1) * sizeof *v);
  for (size_t i = 0; i < n; i++) v[i] = cos(0.7 * (double)i);
  calx_tensor *w = support_tensor(CALX_F32, calx_tensor_shape(y), v);
  test_free(v);
  return calx_sum(calx_mul(y, w));
}

typedef struct given {
  calx_dims x, second;
  int64_t classes, second_classes;
  bool eval_only;
  bool summary;  // that of x's shape is compared too
} given;

static calx_tensor *run(calx_module *layer, calx_tensor *x, calx_tensor *second)
{
  return second != NULL ? calx_forward2(layer, x, second)
                        : calx_forward(layer, x);
}

static void put_training(calx_value *row, calx_module *layer, calx_tensor *x,
                         calx_tensor *second)
{
  bool floating = calx_tensor_dtype(x) == CALX_F32;
  if (floating) calx_requires_grad(x, true);
  calx_tensor *y = run(layer, x, second);
  calx_backward(objective(y));
  calx_sync(y);
  grads g = { calx_value_container(CALX_KIND_DICT) };
  calx_module_parameters(layer, put_grad, &g);
  put(row, "y", calx_value_tensor(y));
  put(row, "grads", g.dict);
  if (floating) put(row, "dx", calx_value_tensor(calx_grad(x)));
  put(row, "after", state_of(layer));
}

static void add_row(const char *code, calx_module *layer, given in)
{
  CHECK_STATUS_OK(calx_module_error(layer));
  calx_value *row = calx_value_container(CALX_KIND_DICT);
  put(row, "code", calx_value_string(code));
  char *text = calx_module_str(layer);
  put(row, "text", calx_value_string(text));
  calx_string_free(text);
  calx_scope *s = calx_scope_begin();
  size_t from = 3;
  calx_module_parameters(layer, move, &from);
  calx_sync(NULL);
  put(row, "state", state_of(layer));
  calx_tensor *x = input(in.x, in.classes, 0), *second = NULL;
  put(row, "x", calx_value_tensor(x));
  if (in.second.count != 0) {
    second = input(in.second, in.second_classes, 50);
    if (in.second_classes != 0) {  // offsets of bags: 0, 2, 2, 5, …
      static const double offsets[] = { 0, 2, 2, 5 };
      second = support_tensor(CALX_I64, in.second, offsets);
    }
    put(row, "second", calx_value_tensor(second));
  }
  if (!in.eval_only) put_training(row, layer, x, second);
  calx_module_train(layer, false);
  calx_tensor *y = run(layer, calx_detach(x), second);
  calx_sync(y);
  put(row, "y_eval", calx_value_tensor(y));
  if (in.summary) {
    text = calx_summary_str(layer, in.x, .dtype = calx_tensor_dtype(x));
    put(row, "summary", calx_value_string(text));
    calx_string_free(text);
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_value_append(rows, row));
}

// A new layer, whose initial values alone are compared.
static void add_initial(const char *code, calx_module *layer)
{
  CHECK_STATUS_OK(calx_module_error(layer));
  calx_value *row = calx_value_container(CALX_KIND_DICT);
  put(row, "code", calx_value_string(code));
  calx_sync(NULL);
  put(row, "initial", state_of(layer));
  CHECK_STATUS_OK(calx_value_append(rows, row));
}

// A row: torch.nn's spelling, the shape of x, calx's spelling with parent NULL.
#define ROW(code, shape, make)                \
  do {                                        \
    calx_module *m_ = make;                   \
    add_row(code, m_, (given){ .x = shape }); \
    calx_module_free(m_);                     \
  } while (0)
#define ROW_OF(code, make, ...)                \
  do {                                         \
    calx_module *m_ = make;                    \
    add_row(code, m_, (given){ __VA_ARGS__ }); \
    calx_module_free(m_);                      \
  } while (0)
#define INITIAL(code, make) \
  do {                      \
    calx_module *m_ = make; \
    add_initial(code, m_);  \
    calx_module_free(m_);   \
  } while (0)
#define L NULL, NULL  // a layer of its own

// clang-format off
static void products(void)
{
  ROW("Linear(5, 3)", CALX_SHAPE(2, 4, 5), calx_nn_linear(L, 5, 3));
  ROW("Linear(5, 3, bias=False)", CALX_SHAPE(5), calx_nn_linear(L, 5, 3, .no_bias = true));
  ROW_OF("Bilinear(3, 4, 2)", calx_nn_bilinear(L, 3, 4, 2), .x = CALX_SHAPE(5, 3), .second = CALX_SHAPE(5, 4));
  ROW_OF("Bilinear(3, 4, 2, bias=False)", calx_nn_bilinear(L, 3, 4, 2, .no_bias = true), .x = CALX_SHAPE(2, 5, 3), .second = CALX_SHAPE(2, 5, 4));
  ROW("Flatten()", CALX_SHAPE(2, 3, 4), calx_nn_flatten(L));
  ROW("Flatten(0, -2)", CALX_SHAPE(2, 3, 4), calx_nn_flatten(L, .start_dim = CALX_ZERO_INT, .end_dim = -2));
  ROW("Unflatten(1, (2, 3))", CALX_SHAPE(2, 6), calx_nn_unflatten(L, 1, CALX_SHAPE(2, 3)));
  ROW("Identity()", CALX_SHAPE(3), calx_nn_identity(L));
  INITIAL("Linear(50, 2000)", calx_nn_linear(L, 50, 2000));
  INITIAL("Bilinear(50, 3, 2000)", calx_nn_bilinear(L, 50, 3, 2000));
}

static void convolutions(void)
{
  ROW("Conv1d(4, 6, 3)", CALX_SHAPE(2, 4, 9), calx_nn_conv1d(L, 4, 6, 3));
  ROW("Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", CALX_SHAPE(4, 11), calx_nn_conv1d(L, 4, 6, 3, .stride = 2, .padding = 1, .dilation = 2, .groups = 2));
  ROW("Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0))", CALX_SHAPE(2, 3, 7, 6), calx_nn_conv2d(L, 3, 4, 3, .kernel_width = 2, .stride = { 2, 1 }, .padding = { 1, CALX_ZERO_INT }));
  ROW("Conv2d(2, 4, 3, padding='same', dilation=2, bias=False)", CALX_SHAPE(2, 2, 7, 6), calx_nn_conv2d(L, 2, 4, 3, .padding = CALX_PADDING_SAME, .dilation = 2, .no_bias = true));
  ROW("Conv2d(2, 4, 3, padding=1, padding_mode='reflect')", CALX_SHAPE(2, 2, 5, 6), calx_nn_conv2d(L, 2, 4, 3, .padding = 1, .padding_mode = CALX_PAD_REFLECT));
  ROW("Conv2d(2, 4, 4, padding='same', padding_mode='circular')", CALX_SHAPE(1, 2, 5, 6), calx_nn_conv2d(L, 2, 4, 4, .padding = CALX_PADDING_SAME, .padding_mode = CALX_PAD_CIRCULAR));
  ROW("Conv1d(2, 4, 3, padding=2, padding_mode='replicate')", CALX_SHAPE(2, 2, 5), calx_nn_conv1d(L, 2, 4, 3, .padding = 2, .padding_mode = CALX_PAD_REPLICATE));
  ROW("Conv3d(2, 3, (2, 3, 1), stride=(1, 2, 1), padding=(0, 1, 0))", CALX_SHAPE(2, 2, 4, 5, 3), calx_nn_conv3d(L, 2, 3, 2, .kernel_height = 3, .kernel_width = 1, .stride = { 1, 2, 1 }, .padding = { CALX_ZERO_INT, 1, CALX_ZERO_INT }));
  ROW("ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)", CALX_SHAPE(2, 4, 5), calx_nn_conv_transpose1d(L, 4, 2, 3, .stride = 2, .output_padding = 1));
  ROW("ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)", CALX_SHAPE(2, 4, 4, 5), calx_nn_conv_transpose2d(L, 4, 6, 3, .stride = 2, .padding = 1, .groups = 2));
  ROW("ConvTranspose3d(2, 3, 2, bias=False, dilation=2)", CALX_SHAPE(1, 2, 3, 2, 3), calx_nn_conv_transpose3d(L, 2, 3, 2, .no_bias = true, .dilation = 2));
  INITIAL("Conv2d(16, 1200, (3, 5), groups=4)", calx_nn_conv2d(L, 16, 1200, 3, .kernel_width = 5, .groups = 4));
  INITIAL("Conv3d(4, 1200, 2)", calx_nn_conv3d(L, 4, 1200, 2));
  INITIAL("ConvTranspose1d(8, 1200, 3, groups=4)", calx_nn_conv_transpose1d(L, 8, 1200, 3, .groups = 4));
}

static void pools(void)
{
  ROW("MaxPool1d(2)", CALX_SHAPE(2, 3, 7), calx_nn_max_pool1d(L, 2));
  ROW("MaxPool1d(3, stride=2, padding=1, dilation=2, ceil_mode=True)", CALX_SHAPE(3, 10), calx_nn_max_pool1d(L, 3, .stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true));
  ROW("MaxPool2d((2, 3), padding=(0, 1))", CALX_SHAPE(2, 3, 6, 7), calx_nn_max_pool2d(L, 2, .kernel_width = 3, .padding = { CALX_ZERO_INT, 1 }));
  ROW("MaxPool3d(2)", CALX_SHAPE(2, 3, 4, 5, 6), calx_nn_max_pool3d(L, 2));
  ROW("MaxPool3d((2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), dilation=(2, 1, 1), ceil_mode=True)", CALX_SHAPE(3, 5, 6, 5), calx_nn_max_pool3d(L, 2, .kernel_height = 3, .stride = { 1, 2, 2 }, .padding = { 1, 1, CALX_ZERO_INT }, .dilation = { 2, 1, 1 }, .ceil_mode = true));
  ROW("AvgPool1d(3, 2, 1)", CALX_SHAPE(2, 3, 8), calx_nn_avg_pool1d(L, .kernel_size = 3, .stride = 2, .padding = 1));
  ROW("AvgPool2d((3, 2), 2, 1, True, False)", CALX_SHAPE(2, 3, 6, 7), calx_nn_avg_pool2d(L, .kernel_size = { 3, 2 }, .stride = 2, .padding = 1, .ceil_mode = true, .no_count_include_pad = true));
  ROW("AvgPool3d(2)", CALX_SHAPE(2, 3, 4, 5, 4), calx_nn_avg_pool3d(L, .kernel_size = 2));
  ROW("LPPool1d(2.0, 3)", CALX_SHAPE(2, 3, 8), calx_nn_lp_pool1d(L, 2, .kernel_size = 3));
  ROW("LPPool2d(2.0, (3, 2), stride=2)", CALX_SHAPE(2, 3, 6, 7), calx_nn_lp_pool2d(L, 2, .kernel_size = { 3, 2 }, .stride = 2));
  ROW("LPPool3d(4.0, 2)", CALX_SHAPE(2, 1, 4, 4, 4), calx_nn_lp_pool3d(L, 4, .kernel_size = 2));
  ROW("FractionalMaxPool2d(2, output_size=3, _random_samples=torch.full((2, 3, 2), 0.3))", CALX_SHAPE(2, 3, 6, 7), calx_nn_fractional_max_pool2d(L, CALX_DIMS(2), .output_size = CALX_DIMS(3), .random_samples = calx_full(CALX_SHAPE(2, 3, 2), 0.3)));
  ROW("FractionalMaxPool3d((2, 1, 2), output_ratio=(0.5, 0.7, 0.4), _random_samples=torch.full((2, 1, 3), 0.6))", CALX_SHAPE(2, 1, 6, 5, 9), calx_nn_fractional_max_pool3d(L, CALX_DIMS(2, 1, 2), .output_ratio = { 0.5, 0.7, 0.4 }, .random_samples = calx_full(CALX_SHAPE(2, 1, 3), 0.6)));
  ROW("AdaptiveAvgPool1d(3)", CALX_SHAPE(2, 3, 8), calx_nn_adaptive_avg_pool1d(L, CALX_SHAPE(3)));
  ROW("AdaptiveAvgPool2d((None, 3))", CALX_SHAPE(2, 3, 6, 7), calx_nn_adaptive_avg_pool2d(L, CALX_SHAPE(-1, 3)));
  ROW("AdaptiveAvgPool3d(2)", CALX_SHAPE(2, 3, 4, 5, 3), calx_nn_adaptive_avg_pool3d(L, CALX_SHAPE(2)));
  ROW("AdaptiveMaxPool1d(3)", CALX_SHAPE(2, 3, 8), calx_nn_adaptive_max_pool1d(L, CALX_SHAPE(3)));
  ROW("AdaptiveMaxPool2d((2, 3))", CALX_SHAPE(2, 3, 6, 7), calx_nn_adaptive_max_pool2d(L, CALX_SHAPE(2, 3)));
  ROW("AdaptiveMaxPool3d(2)", CALX_SHAPE(1, 3, 4, 5, 3), calx_nn_adaptive_max_pool3d(L, CALX_SHAPE(2)));
}

static void pads(void)
{
  ROW("ZeroPad1d(2)", CALX_SHAPE(2, 3, 4), calx_nn_zero_pad1d(L, CALX_SHAPE(2)));
  ROW("ZeroPad2d((1, 2, 3, -1))", CALX_SHAPE(2, 3, 4, 5), calx_nn_zero_pad2d(L, CALX_SHAPE(1, 2, 3, -1)));
  ROW("ZeroPad3d(1)", CALX_SHAPE(1, 2, 3, 2, 2), calx_nn_zero_pad3d(L, CALX_SHAPE(1)));
  ROW("ConstantPad1d((1, 2), 3.5)", CALX_SHAPE(3, 4), calx_nn_constant_pad1d(L, CALX_SHAPE(1, 2), 3.5));
  ROW("ConstantPad2d(1, 0.1)", CALX_SHAPE(3, 4, 2), calx_nn_constant_pad2d(L, CALX_SHAPE(1), 0.1));
  ROW("ConstantPad3d(1, -2.0)", CALX_SHAPE(1, 3, 2, 2, 2), calx_nn_constant_pad3d(L, CALX_SHAPE(1), -2));
  ROW("ReflectionPad1d((2, 1))", CALX_SHAPE(2, 3, 4), calx_nn_reflection_pad1d(L, CALX_SHAPE(2, 1)));
  ROW("ReflectionPad2d(2)", CALX_SHAPE(2, 3, 4, 5), calx_nn_reflection_pad2d(L, CALX_SHAPE(2)));
  ROW("ReflectionPad3d(1)", CALX_SHAPE(1, 2, 3, 2, 2), calx_nn_reflection_pad3d(L, CALX_SHAPE(1)));
  ROW("ReplicationPad1d((2, 1))", CALX_SHAPE(2, 3, 4), calx_nn_replication_pad1d(L, CALX_SHAPE(2, 1)));
  ROW("ReplicationPad2d((1, 2, 0, 3))", CALX_SHAPE(2, 3, 4, 5), calx_nn_replication_pad2d(L, CALX_SHAPE(1, 2, 0, 3)));
  ROW("ReplicationPad3d(1)", CALX_SHAPE(1, 2, 3, 2, 2), calx_nn_replication_pad3d(L, CALX_SHAPE(1)));
  ROW("CircularPad1d(2)", CALX_SHAPE(2, 3, 4), calx_nn_circular_pad1d(L, CALX_SHAPE(2)));
  ROW("CircularPad2d((1, 2, 3, 0))", CALX_SHAPE(2, 3, 4, 5), calx_nn_circular_pad2d(L, CALX_SHAPE(1, 2, 3, 0)));
  ROW("CircularPad3d(1)", CALX_SHAPE(1, 2, 3, 2, 2), calx_nn_circular_pad3d(L, CALX_SHAPE(1)));
}

static void sizes(void)
{
  ROW("Upsample(scale_factor=2.0)", CALX_SHAPE(2, 3, 4), calx_nn_upsample(L, .scale_factor = 2));
  ROW("Upsample(size=(5, 7), mode='bilinear')", CALX_SHAPE(2, 3, 4, 4), calx_nn_upsample(L, .output_size = CALX_SHAPE(5, 7), .mode = CALX_INTERPOLATE_LINEAR));
  ROW("Upsample(scale_factor=(2.0, 1.5), mode='bicubic', align_corners=True)", CALX_SHAPE(2, 3, 4, 4), calx_nn_upsample(L, .scale_factor = { 2, 1.5 }, .mode = CALX_INTERPOLATE_BICUBIC, .align_corners = true));
  ROW("Upsample(scale_factor=(1.5, 0.7), mode='nearest')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = { 1.5, 0.7 }));
  ROW("Upsample(scale_factor=(1.5, 0.7), mode='nearest-exact')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = { 1.5, 0.7 }, .mode = CALX_INTERPOLATE_NEAREST_EXACT));
  ROW("Upsample(scale_factor=(1.5, 0.7), mode='bilinear')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = { 1.5, 0.7 }, .mode = CALX_INTERPOLATE_LINEAR));
  ROW("Upsample(scale_factor=(1.5, 0.7), mode='bicubic')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = { 1.5, 0.7 }, .mode = CALX_INTERPOLATE_BICUBIC));
  ROW("Upsample(scale_factor=(1.5, 0.7), mode='area')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = { 1.5, 0.7 }, .mode = CALX_INTERPOLATE_AREA));
  ROW("Upsample(scale_factor=1.1, mode='bilinear')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = 1.1, .mode = CALX_INTERPOLATE_LINEAR));
  ROW("Upsample(scale_factor=1.5, mode='bilinear', align_corners=True)", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = 1.5, .mode = CALX_INTERPOLATE_LINEAR, .align_corners = true));
  ROW("Upsample(scale_factor=1.5, mode='bilinear', recompute_scale_factor=True)", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .scale_factor = 1.5, .mode = CALX_INTERPOLATE_LINEAR, .recompute_scale_factor = true));
  ROW("Upsample(size=(7, 4), mode='nearest-exact')", CALX_SHAPE(2, 3, 5, 9), calx_nn_upsample(L, .output_size = CALX_SHAPE(7, 4), .mode = CALX_INTERPOLATE_NEAREST_EXACT));
  ROW("Upsample(scale_factor=(1.5, 0.5, 1.2), mode='trilinear')", CALX_SHAPE(1, 2, 5, 4, 3), calx_nn_upsample(L, .scale_factor = { 1.5, 0.5, 1.2 }, .mode = CALX_INTERPOLATE_LINEAR));
  ROW("Upsample(scale_factor=1.3)", CALX_SHAPE(2, 3, 12), calx_nn_upsample(L, .scale_factor = 1.3));
  ROW("Upsample(scale_factor=(1.5, 1.05))", CALX_SHAPE(2, 3, 2, 12), calx_nn_upsample(L, .scale_factor = { 1.5, 1.05 }));
  ROW("Unfold((2, 3), padding=1)", CALX_SHAPE(2, 3, 4, 5), calx_nn_unfold(L, CALX_SHAPE(2, 3), .padding = 1));
  ROW("Fold(output_size=(4, 5), kernel_size=(2, 3), padding=1)", CALX_SHAPE(2, 12, 25), calx_nn_fold(L, CALX_SHAPE(4, 5), CALX_SHAPE(2, 3), .padding = 1));
  ROW("Fold(4, 2, stride=2)", CALX_SHAPE(8, 4), calx_nn_fold(L, CALX_SHAPE(4), CALX_SHAPE(2), .stride = 2));
  ROW("PixelShuffle(2)", CALX_SHAPE(2, 8, 3, 2), calx_nn_pixel_shuffle(L, 2));
  ROW("PixelUnshuffle(2)", CALX_SHAPE(2, 2, 4, 6), calx_nn_pixel_unshuffle(L, 2));
  ROW("ChannelShuffle(3)", CALX_SHAPE(2, 6, 2, 3), calx_nn_channel_shuffle(L, 3));
}

static void norms(void)
{
  ROW("BatchNorm1d(4)", CALX_SHAPE(6, 4), calx_nn_batch_norm1d(L, 4));
  ROW("BatchNorm1d(4, eps=1e-3, momentum=0.3)", CALX_SHAPE(3, 4, 5), calx_nn_batch_norm1d(L, 4, .eps = 1e-3, .momentum = 0.3));
  ROW("BatchNorm2d(3, affine=False)", CALX_SHAPE(2, 3, 4, 5), calx_nn_batch_norm2d(L, 3, .no_affine = true));
  ROW("BatchNorm3d(3, track_running_stats=False)", CALX_SHAPE(2, 3, 4, 2, 3), calx_nn_batch_norm3d(L, 3, .no_track_running_stats = true));
  ROW("BatchNorm2d(3, momentum=None)", CALX_SHAPE(2, 3, 4, 5), calx_nn_batch_norm2d(L, 3, .momentum = (double)NAN));
  ROW("InstanceNorm1d(3)", CALX_SHAPE(2, 3, 7), calx_nn_instance_norm1d(L, 3));
  ROW("InstanceNorm2d(3, affine=True, track_running_stats=True)", CALX_SHAPE(2, 3, 4, 5), calx_nn_instance_norm2d(L, 3, .affine = true, .track_running_stats = true));
  ROW("InstanceNorm3d(3, momentum=0.4, track_running_stats=True)", CALX_SHAPE(3, 4, 5, 2), calx_nn_instance_norm3d(L, 3, .momentum = 0.4, .track_running_stats = true));
  ROW("LayerNorm(5)", CALX_SHAPE(2, 3, 5), calx_nn_layer_norm(L, CALX_SHAPE(5)));
  ROW("LayerNorm((3, 5), eps=0.01, bias=False)", CALX_SHAPE(2, 3, 5), calx_nn_layer_norm(L, CALX_SHAPE(3, 5), .eps = 0.01, .no_bias = true));
  ROW("LayerNorm(5, elementwise_affine=False)", CALX_SHAPE(2, 3, 5), calx_nn_layer_norm(L, CALX_SHAPE(5), .no_affine = true));
  ROW("GroupNorm(2, 4)", CALX_SHAPE(2, 4, 5), calx_nn_group_norm(L, 2, 4));
  ROW("GroupNorm(4, 4, eps=1e-3, affine=False)", CALX_SHAPE(2, 4, 3, 2), calx_nn_group_norm(L, 4, 4, .eps = 1e-3, .no_affine = true));
  ROW("RMSNorm(5)", CALX_SHAPE(2, 3, 5), calx_nn_rms_norm(L, CALX_SHAPE(5)));
  ROW("RMSNorm((3, 5), eps=1e-6)", CALX_SHAPE(2, 3, 5), calx_nn_rms_norm(L, CALX_SHAPE(3, 5), .eps = 1e-6));
  ROW("LocalResponseNorm(3, alpha=0.1, beta=0.5, k=2.0)", CALX_SHAPE(2, 6, 4), calx_nn_local_response_norm(L, 3, .alpha = 0.1, .beta = 0.5, .k = 2));
  ROW("LocalResponseNorm(2)", CALX_SHAPE(2, 5, 3, 2), calx_nn_local_response_norm(L, 2));
  INITIAL("BatchNorm1d(8)", calx_nn_batch_norm1d(L, 8));
  INITIAL("InstanceNorm1d(8, affine=True, track_running_stats=True)", calx_nn_instance_norm1d(L, 8, .affine = true, .track_running_stats = true));
  INITIAL("GroupNorm(2, 8)", calx_nn_group_norm(L, 2, 8));
  INITIAL("LayerNorm((3, 8))", calx_nn_layer_norm(L, CALX_SHAPE(3, 8)));
}

static void embeddings(void)
{
  ROW_OF("Embedding(7, 3)", calx_nn_embedding(L, 7, 3), .x = CALX_SHAPE(2, 5), .classes = 7);
  ROW_OF("Embedding(7, 3, padding_idx=-2)", calx_nn_embedding(L, 7, 3, .padding_idx = -2), .x = CALX_SHAPE(2, 5), .classes = 7);
  ROW_OF("Embedding(9, 3, max_norm=0.5)", calx_nn_embedding(L, 9, 3, .max_norm = 0.5), .x = CALX_SHAPE(5), .classes = 7);
  ROW_OF("Embedding(9, 3, padding_idx=0, max_norm=0.5, norm_type=1.0)", calx_nn_embedding(L, 9, 3, .padding_idx = CALX_ZERO_INT, .max_norm = 0.5, .norm_type = 1), .x = CALX_SHAPE(5), .classes = 7);
  ROW_OF("EmbeddingBag(7, 3)", calx_nn_embedding_bag(L, 7, 3), .x = CALX_SHAPE(4, 5), .classes = 7);
  ROW_OF("EmbeddingBag(7, 3, mode='sum', padding_idx=1)", calx_nn_embedding_bag(L, 7, 3, .mode = CALX_BAG_SUM, .padding_idx = 1), .x = CALX_SHAPE(4, 5), .classes = 7);
  ROW_OF("EmbeddingBag(7, 3, mode='max', padding_idx=0)", calx_nn_embedding_bag(L, 7, 3, .mode = CALX_BAG_MAX, .padding_idx = CALX_ZERO_INT), .x = CALX_SHAPE(4, 5), .classes = 7);
  ROW_OF("EmbeddingBag(7, 3, max_norm=0.4)", calx_nn_embedding_bag(L, 7, 3, .max_norm = 0.4), .x = CALX_SHAPE(8), .classes = 7, .second = CALX_SHAPE(4), .second_classes = 8);
  ROW_OF("EmbeddingBag(7, 3, mode='max')", calx_nn_embedding_bag(L, 7, 3, .mode = CALX_BAG_MAX), .x = CALX_SHAPE(8), .classes = 7, .second = CALX_SHAPE(4), .second_classes = 8);
  INITIAL("Embedding(1000, 20)", calx_nn_embedding(L, 1000, 20));
  INITIAL("EmbeddingBag(1000, 20)", calx_nn_embedding_bag(L, 1000, 20));
}

static void activations(void)
{
  const calx_dims x = CALX_SHAPE(4, 6);
  ROW("ReLU()", x, calx_nn_relu(L));
  ROW("ReLU6()", x, calx_nn_relu6(L));
  ROW("Sigmoid()", x, calx_nn_sigmoid(L));
  ROW("Tanh()", x, calx_nn_tanh(L));
  ROW("SiLU()", x, calx_nn_silu(L));
  ROW("Mish()", x, calx_nn_mish(L));
  ROW("SELU()", x, calx_nn_selu(L));
  ROW("Hardswish()", x, calx_nn_hardswish(L));
  ROW("Hardsigmoid()", x, calx_nn_hardsigmoid(L));
  ROW("LogSigmoid()", x, calx_nn_logsigmoid(L));
  ROW("Softsign()", x, calx_nn_softsign(L));
  ROW("Tanhshrink()", x, calx_nn_tanhshrink(L));
  ROW("Softmax2d()", CALX_SHAPE(2, 3, 2, 2), calx_nn_softmax2d(L));
  ROW("GELU()", x, calx_nn_gelu(L));
  ROW("GELU('tanh')", x, calx_nn_gelu(L, .approximate = CALX_GELU_TANH));
  ROW("ELU(0.7)", x, calx_nn_elu(L, .alpha = 0.7));
  ROW("CELU(2.0)", x, calx_nn_celu(L, .alpha = 2));
  ROW("LeakyReLU()", x, calx_nn_leaky_relu(L));
  ROW("LeakyReLU(0.0)", x, calx_nn_leaky_relu(L, .negative_slope = CALX_ZERO));
  ROW("Hardtanh(-0.5, 1.25)", x, calx_nn_hardtanh(L, .min_val = -0.5, .max_val = 1.25));
  ROW("Softplus(2.0, 1.5)", x, calx_nn_softplus(L, .beta = 2, .threshold = 1.5));
  ROW("Hardshrink(1e-05)", x, calx_nn_hardshrink(L, .lambd = 1e-5));
  ROW("Softshrink()", x, calx_nn_softshrink(L));
  ROW("Softmax(1)", x, calx_nn_softmax(L, 1));
  ROW("LogSoftmax(-1)", x, calx_nn_log_softmax(L, -1));
  ROW("Softmin(0)", x, calx_nn_softmin(L, 0));
  ROW("GLU()", x, calx_nn_glu(L, -1));
  ROW("Threshold(0.1, 20.0)", x, calx_nn_threshold(L, 0.1, 20));
  ROW("PReLU()", x, calx_nn_prelu(L));
  ROW("PReLU(6, 0.5)", x, calx_nn_prelu(L, .num_parameters = 6, .init = 0.5));
  ROW_OF("RReLU()", calx_nn_rrelu(L), .x = x, .eval_only = true);
  ROW_OF("RReLU(0.0, 1.0)", calx_nn_rrelu(L, .lower = CALX_ZERO, .upper = 1), .x = x, .eval_only = true);
  INITIAL("PReLU(3)", calx_nn_prelu(L, .num_parameters = 3));
}

static void dropouts(void)
{
  ROW_OF("Dropout(0.2)", calx_nn_dropout(L, .p = 0.2), .x = CALX_SHAPE(9), .eval_only = true);
  ROW_OF("Dropout1d()", calx_nn_dropout1d(L), .x = CALX_SHAPE(2, 3, 4), .eval_only = true);
  ROW_OF("Dropout2d(1.0)", calx_nn_dropout2d(L, .p = 1), .x = CALX_SHAPE(2, 3, 4, 2));
  ROW_OF("Dropout3d(0.0)", calx_nn_dropout3d(L, .p = CALX_ZERO), .x = CALX_SHAPE(3, 4, 2, 1));
  ROW_OF("AlphaDropout()", calx_nn_alpha_dropout(L), .x = CALX_SHAPE(9), .eval_only = true);
  ROW_OF("FeatureAlphaDropout(0.1)", calx_nn_feature_alpha_dropout(L, .p = 0.1), .x = CALX_SHAPE(2, 9), .eval_only = true);
}
// clang-format on

// ---- models -----------------------------------------------------------------

static calx_module *normed_linear(bool all)
{
  calx_module *m = calx_nn_linear(NULL, NULL, 4, 3);
  if (all)
    calx_weight_norm(m, .dim = CALX_ALL_DIMS);
  else
    calx_weight_norm(m);
  return m;
}

static calx_module *spectral(calx_module *m)
{
  calx_spectral_norm(m);
  return m;
}

static calx_module *sequential(void)
{
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_nn_linear(m, NULL, 4, 5);
  calx_nn_relu(m, NULL);
  calx_module *inner = calx_nn_sequential(m, NULL);
  calx_nn_layer_norm(inner, NULL, CALX_SHAPE(5));
  calx_nn_dropout(inner, NULL, .p = CALX_ZERO);
  return m;
}

static calx_tensor *run_list(void *self, calx_tensor *x)
{
  calx_module *list = calx_module_get(*(calx_module **)self, "layers");
  for (size_t i = 0; i < calx_module_child_count(list); i++) {
    x = calx_forward(calx_module_child_at(list, i), x);
  }
  return calx_forward(calx_module_get(*(calx_module **)self, "heads.out"), x);
}

static calx_module *image_net(void)
{
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_nn_conv2d(m, NULL, 4, 6, 3, .groups = 2, .padding = 1);
  calx_nn_batch_norm2d(m, NULL, 6);
  calx_nn_relu(m, NULL);
  calx_nn_conv_transpose2d(m, NULL, 6, 3, 2, .stride = 2);
  calx_nn_flatten(m, NULL);
  calx_nn_linear(m, NULL, 384, 5);
  return m;
}

static calx_module *text_net(void)
{
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_nn_embedding(m, NULL, 7, 4);
  calx_nn_linear(m, NULL, 4, 3);
  calx_nn_softmax(m, NULL, -1);
  return m;
}

static void models(void)
{
  ROW("weight_norm(Linear(4, 3))", CALX_SHAPE(2, 4), normed_linear(false));
  ROW("weight_norm(Linear(4, 3), dim=None)", CALX_SHAPE(2, 4),
      normed_linear(true));
  ROW("spectral_norm(Linear(4, 3))", CALX_SHAPE(2, 4),
      spectral(calx_nn_linear(NULL, NULL, 4, 3)));
  ROW("spectral_norm(ConvTranspose1d(4, 3, 2))", CALX_SHAPE(2, 4, 5),
      spectral(calx_nn_conv_transpose1d(NULL, NULL, 4, 3, 2)));
  ROW("Sequential(Linear(4, 5), ReLU(), Sequential(LayerNorm(5), "
      "Dropout(0.0)))",
      CALX_SHAPE(2, 4), sequential());
  static calx_module *net;
  net = calx_module_new("Net", run_list, &net);
  calx_module *list = calx_nn_module_list(net, "layers");
  for (int i = 0; i < 3; i++) calx_nn_linear(list, NULL, 4, 4);
  calx_nn_tanh(list, NULL);
  calx_nn_linear(calx_nn_module_dict(net, "heads"), "out", 4, 2);
  ROW_OF("Net()", net, .x = CALX_SHAPE(3, 4), .summary = true);
  ROW_OF(
      "Sequential(Conv2d(4, 6, 3, groups=2, padding=1), BatchNorm2d(6), "
      "ReLU(), ConvTranspose2d(6, 3, 2, stride=2), Flatten(), "
      "Linear(384, 5))",
      image_net(), .x = CALX_SHAPE(2, 4, 4, 8), .summary = true);
  ROW_OF("Sequential(Embedding(7, 4), Linear(4, 3), Softmax(-1))", text_net(),
         .x = CALX_SHAPE(2, 5), .classes = 7, .summary = true);
}

static void no_log(void *user, const char *line)
{
  (void)user;
  (void)line;  // that each row is a program of its own
}

static void test_against_torch(void **state)
{
  (void)state;
  calx_log_set(no_log, NULL);
  rows = calx_value_container(CALX_KIND_LIST);
  products();
  convolutions();
  pools();
  pads();
  sizes();
  norms();
  embeddings();
  activations();
  dropouts();
  models();
  print_message("  %zu rows\n", calx_value_count(rows));
  torch_check(rows, "torch_layers.py");
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_against_torch) };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
