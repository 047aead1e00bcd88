// How each op of the recorded cases is spelled in calx.
#include "oracle.h"

#include <math.h>
#include <string.h>

// ---- attributes -------------------------------------------------------------

static json_t *attr(const call *c, const char *name)
{
  return json_object_get(c->attrs, name);
}

static double number(const call *c, const char *name, double otherwise)
{
  json_t *v = attr(c, name);
  if (json_is_boolean(v)) return json_is_true(v);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

static bool flag(const call *c, const char *name)
{
  return json_is_true(attr(c, name));
}

static const char *text(const call *c, const char *name)
{
  const char *s = json_string_value(attr(c, name));
  return s != NULL ? s : "";
}

// A list, or a single number as a list of one, in `room`. Absent: {0, NULL}.
static calx_dims list(const call *c, const char *name, int64_t *room)
{
  json_t *v = attr(c, name), *item;
  size_t i;
  if (v == NULL || json_is_null(v)) return CALX_SCALAR;
  if (!json_is_array(v)) {
    room[0] = json_integer_value(v);
    return calx_dims_of(room, 1);
  }
  json_array_foreach(v, i, item) room[i] = json_integer_value(item);
  return calx_dims_of(room, json_array_size(v));
}

// Vectors without their signs, which are open.
static calx_tensor *eigh_abs(call *c)
{
  calx_tensor *v, *w = calx_eigh(c->in[0], &v, .upper = flag(c, "upper"));
  c->n_out = 2;
  c->out[1] = calx_abs(v);
  return w;
}

static calx_tensor *svd_abs(call *c)
{
  calx_tensor *s, *vh;
  calx_tensor *u =
      calx_svd(c->in[0], &s, &vh, .full_matrices = flag(c, "full"));
  c->n_out = 3;
  c->out[1] = s;
  if (flag(c, "full") && calx_tensor_error(u) == NULL) {
    u = calx_narrow(u, -1, 0, calx_tensor_dim(s, -1));
    vh = calx_narrow(vh, -2, 0, calx_tensor_dim(s, -1));
  }
  c->out[2] = calx_abs(vh);
  return calx_abs(u);
}

// A pair, from one number or two; a 0 in the second place must be said.
static void pair(const call *c, const char *name, int64_t *out)
{
  int64_t room[8];
  calx_dims d = list(c, name, room);
  if (d.count > 0) out[0] = d.values[0];
  if (d.count > 1) out[1] = d.values[1] == 0 ? CALX_ZERO_INT : d.values[1];
}

static calx_dtype dtype(const char *name)
{
  static const struct {
    const char *name;
    calx_dtype dtype;
  } known[] = { { "int64", CALX_I64 },     { "int32", CALX_I32 },
                { "uint8", CALX_U8 },      { "bool", CALX_BOOL },
                { "float32", CALX_F32 },   { "float64", CALX_F64 },
                { "bfloat16", CALX_BF16 }, { "float16", CALX_F16 },
                { "complex64", CALX_C64 }, { "complex128", CALX_C128 } };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name) == 0) return known[i].dtype;
  }
  return CALX_DTYPE_DEFAULT;
}

// An integer stays one: it takes part in promotion as such.
static calx_tensor *scalar(const call *c, const char *name)
{
  json_t *v = attr(c, name);
  return json_is_integer(v) ? calx_scalar_int(json_integer_value(v))
                            : calx_scalar(json_number_value(v));
}

// The second operand: a number or a tensor.
static calx_tensor *other(const call *c)
{
  bool power = strcmp(c->op, "pow") == 0 || strcmp(c->op, "float_power") == 0;
  const char *name = power ? "exponent" : "other";
  return attr(c, name) != NULL ? scalar(c, name) : c->in[1];
}

static calx_reduction reduction(const call *c)
{
  const char *r = text(c, "reduction");
  if (strcmp(r, "sum") == 0) return CALX_SUM;
  return strcmp(r, "none") == 0 ? CALX_NONE : CALX_MEAN;
}

// ---- families ---------------------------------------------------------------

static bool unary(call *c)
{
  static const struct {
    const char *name;
    calx_tensor *(*fn)(calx_tensor *);
  } table[] = {
#define UNARY(op) { #op, calx_##op },
    CALX_EACH_UNARY_(UNARY) UNARY(t)
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    c->out[0] = table[i].fn(c->in[0]);
    return true;
  }
  return false;
}

static bool binary(call *c)
{
  static const struct {
    const char *name;
    calx_tensor *(*fn)(calx_tensor *, calx_tensor *);
  } table[] = {
#define BINARY(op) { #op, calx_##op },
    CALX_EACH_BINARY_(BINARY) BINARY(matmul) BINARY(mm)
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    c->out[0] = table[i].fn(c->in[0], other(c));
    return true;
  }
  double alpha = number(c, "alpha", 1);
  if (strcmp(c->op, "add") == 0) {
    c->out[0] = calx_add(c->in[0], other(c), .alpha = alpha);
  } else if (strcmp(c->op, "sub") == 0) {
    c->out[0] = calx_sub(c->in[0], other(c), .alpha = alpha);
  } else if (strcmp(c->op, "rsub") == 0) {
    c->out[0] = calx_sub(other(c), c->in[0]);
  } else if (strcmp(c->op, "div") == 0) {
    const char *mode = text(c, "rounding_mode");
    c->out[0] =
        calx_div(c->in[0], other(c),
                 .rounding = strcmp(mode, "floor") == 0   ? CALX_ROUND_FLOOR
                             : strcmp(mode, "trunc") == 0 ? CALX_ROUND_TRUNC
                                                          : CALX_ROUND_NONE);
  } else if (strcmp(c->op, "where") == 0) {
    c->out[0] = calx_where(c->in[0], c->in[1], c->in[2]);
  } else {
    return false;
  }
  return true;
}

static bool reduction_op(call *c)
{
  static const struct {
    const char *name;
    calx_tensor *(*fn)(calx_tensor *, const calx_reduce_options *);
  } table[] = {
    { "sum", calx_sum_with },       { "mean", calx_mean_with },
    { "amax", calx_amax_with },     { "amin", calx_amin_with },
    { "argmax", calx_argmax_with }, { "argmin", calx_argmin_with }
  };
  int64_t room[8];
  calx_reduce_options o = { .size = sizeof o,
                            .dims = list(c, "dim", room),
                            .keepdim = flag(c, "keepdim") };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    c->out[0] = table[i].fn(c->in[0], &o);
    return true;
  }
  bool most = strcmp(c->op, "max") == 0;
  if (!most && strcmp(c->op, "min") != 0) return false;
  if (attr(c, "dim") == NULL) {
    c->out[0] = most ? calx_max(c->in[0]) : calx_min(c->in[0]);
    return true;
  }
  int dim = (int)number(c, "dim", 0);
  c->n_out = 2;
  c->out[0] = most ? calx_max_dim(c->in[0], dim, o.keepdim, &c->out[1])
                   : calx_min_dim(c->in[0], dim, o.keepdim, &c->out[1]);
  return true;
}

static bool shape_op(call *c)
{
  int64_t room[8];
  calx_tensor *x = c->in[0];
  int dim = (int)number(c, "dim", 0);
  calx_dims d;
  if (strcmp(c->op, "reshape") == 0) {
    d = list(c, "shape", room);
    c->out[0] = calx_reshape(x, d.count != 0 ? d : CALX_SCALAR);
  } else if (strcmp(c->op, "permute") == 0) {
    c->out[0] = calx_permute(x, list(c, "dims", room));
  } else if (strcmp(c->op, "expand") == 0) {
    c->out[0] = calx_expand(x, list(c, "size", room));
  } else if (strcmp(c->op, "transpose") == 0) {
    c->out[0] =
        calx_transpose(x, (int)number(c, "dim0", 0), (int)number(c, "dim1", 0));
  } else if (strcmp(c->op, "flatten") == 0) {
    c->out[0] = calx_flatten(x, .start_dim = (int)number(c, "start_dim", 0));
  } else if (strcmp(c->op, "squeeze") == 0) {
    c->out[0] = calx_squeeze(x, attr(c, "dim") != NULL ? dim : CALX_ALL_DIMS);
  } else if (strcmp(c->op, "unsqueeze") == 0) {
    c->out[0] = calx_unsqueeze(x, dim);
  } else if (strcmp(c->op, "slice") == 0) {
    c->out[0] = calx_slice(x, dim, (int64_t)number(c, "start", 0),
                           (int64_t)number(c, "end", 1e15),
                           (int64_t)number(c, "step", 1));
  } else if (strcmp(c->op, "select") == 0) {
    c->out[0] = calx_select(x, dim, (int64_t)number(c, "index", 0));
  } else if (strcmp(c->op, "cat") == 0) {
    c->out[0] = calx_cat(c->in, c->n_in, dim);
  } else if (strcmp(c->op, "stack") == 0) {
    c->out[0] = calx_stack(c->in, c->n_in, dim);
  } else if (strcmp(c->op, "to_dtype") == 0) {
    c->out[0] = calx_to_dtype(x, dtype(text(c, "dtype")));
  } else {
    return false;
  }
  return true;
}

static void conv2d(call *c)
{
  calx_conv2d_options o = { .size = sizeof o,
                            .bias = c->in[2],
                            .groups = (int64_t)number(c, "groups", 1) };
  pair(c, "stride", o.stride);
  pair(c, "dilation", o.dilation);
  if (json_is_string(attr(c, "padding"))) {
    bool same = strcmp(text(c, "padding"), "same") == 0;
    o.padding[0] = same ? CALX_PADDING_SAME : 0;
  } else {
    pair(c, "padding", o.padding);
  }
  c->out[0] = calx_conv2d_with(c->in[0], c->in[1], &o);
}

static void max_pool2d(call *c)
{
  calx_max_pool2d_options o = { .size = sizeof o,
                                .ceil_mode = flag(c, "ceil_mode") };
  int64_t kernel[2] = { 0, 0 };
  pair(c, "kernel_size", kernel);
  pair(c, "stride", o.stride);
  pair(c, "padding", o.padding);
  pair(c, "dilation", o.dilation);
  o.kernel_width = kernel[1];
  if (flag(c, "return_indices")) {
    c->n_out = 2;
    o.out_indices = &c->out[1];
  }
  c->out[0] = calx_max_pool2d_with(c->in[0], kernel[0], &o);
}

static void batch_norm(call *c)
{
  bool training = flag(c, "training");
  c->out[0] = calx_batch_norm(c->in[0], .weight = c->in[1], .bias = c->in[2],
                              .running_mean = c->in[3], .running_var = c->in[4],
                              .training = training,
                              .momentum = number(c, "momentum", CALX_DEFAULT),
                              .eps = number(c, "eps", 0));
  if (!training) return;
  c->n_out = 3;
  c->out[1] = c->in[3];
  c->out[2] = c->in[4];
}

static bool model_op(call *c)
{
  int64_t ignore = (int64_t)number(c, "ignore_index", -100);
  calx_nll_loss_options loss = { .size = sizeof loss,
                                 .reduction = reduction(c),
                                 .weight = c->in[2],
                                 .ignore_index =
                                     ignore == 0 ? CALX_ZERO_INT : ignore,
                                 .label_smoothing =
                                     number(c, "label_smoothing", 0) };
  int dim = (int)number(c, "dim", 0);
  if (strcmp(c->op, "conv2d") == 0) {
    conv2d(c);
  } else if (strcmp(c->op, "max_pool2d") == 0) {
    max_pool2d(c);
  } else if (strcmp(c->op, "batch_norm") == 0) {
    batch_norm(c);
  } else if (strcmp(c->op, "linear") == 0) {
    c->out[0] = calx_linear(c->in[0], c->in[1], c->in[2]);
  } else if (strcmp(c->op, "log_softmax") == 0) {
    c->out[0] = calx_log_softmax(c->in[0], dim);
  } else if (strcmp(c->op, "softmax") == 0) {
    c->out[0] = calx_softmax(c->in[0], dim);
  } else if (strcmp(c->op, "nll_loss") == 0) {
    c->out[0] = calx_nll_loss_with(c->in[0], c->in[1], &loss);
  } else if (strcmp(c->op, "cross_entropy") == 0) {
    c->out[0] = calx_cross_entropy_with(c->in[0], c->in[1], &loss);
  } else {
    return false;
  }
  return true;
}

// ---- one row an op ----------------------------------------------------------

#define X c->in[0]
#define Y c->in[1]
#define Z c->in[2]
#define DIM (int)number(c, "dim", 0)
#define NUMBER(name, otherwise) number(c, name, otherwise)
// clang-format off
#define ROWS(ROW) \
  ROW(silu, calx_silu(X)) \
  ROW(relu6, calx_relu6(X)) \
  ROW(hardswish, calx_hardswish(X)) \
  ROW(hardsigmoid, calx_hardsigmoid(X)) \
  ROW(mish, calx_mish(X)) \
  ROW(logsigmoid, calx_logsigmoid(X)) \
  ROW(gelu, calx_gelu(X, .approximate = strcmp(text(c, "approximate"), "tanh") == 0 ? CALX_GELU_TANH : CALX_GELU_NONE)) \
  ROW(elu, calx_elu(X, .alpha = NUMBER("alpha", 0))) \
  ROW(leaky_relu, calx_leaky_relu(X, .negative_slope = NUMBER("negative_slope", CALX_DEFAULT))) \
  ROW(hardtanh, calx_hardtanh(X, .min_val = NUMBER("min_val", CALX_DEFAULT), .max_val = NUMBER("max_val", CALX_DEFAULT))) \
  ROW(softplus, calx_softplus(X, .beta = NUMBER("beta", 0), .threshold = NUMBER("threshold", CALX_DEFAULT))) \
  ROW(clamp, clamp(c)) \
  ROW(masked_fill, calx_masked_fill(X, Y, NUMBER("value", (double)-INFINITY))) \
  ROW(lerp, calx_lerp(X, Y, NUMBER("weight", 0))) \
  ROW(addcmul, calx_addcmul(X, Y, Z, .value = NUMBER("value", CALX_DEFAULT))) \
  ROW(addcdiv, calx_addcdiv(X, Y, Z, .value = NUMBER("value", 0))) \
  ROW(flip, calx_flip(X, list(c, "dims", room))) \
  ROW(repeat, calx_repeat(X, list(c, "repeats", room))) \
  ROW(roll, calx_roll(X, list(c, "shifts", room), list(c, "dims", other_room))) \
  ROW(tril, calx_tril(X, (int64_t)NUMBER("diagonal", 0))) \
  ROW(triu, calx_triu(X, (int64_t)NUMBER("diagonal", 0))) \
  ROW(diagonal, calx_diagonal(X)) \
  ROW(movedim, calx_movedim(X, (int)NUMBER("source", 0), (int)NUMBER("destination", 0))) \
  ROW(narrow, calx_narrow(X, (int)NUMBER("dim", 0), (int64_t)NUMBER("start", 0), (int64_t)NUMBER("length", 0))) \
  ROW(pixel_shuffle, calx_pixel_shuffle(X, (int64_t)NUMBER("upscale_factor", 1))) \
  ROW(split, split(c)) \
  ROW(chunk, (c->n_out = calx_chunk(X, (size_t)NUMBER("chunks", 1), (int)NUMBER("dim", 0), c->out), c->out[0])) \
  ROW(unbind, unbind(c)) \
  ROW(pad, calx_pad_with(X, list(c, "pad", room), &(calx_pad_options){ .size = sizeof(calx_pad_options), .mode = pad_mode(c), .value = NUMBER("value", 0) })) \
  ROW(bmm, calx_bmm(X, Y)) \
  ROW(dot, calx_dot(X, Y)) \
  ROW(outer, calx_outer(X, Y)) \
  ROW(addmm, calx_addmm(X, Y, Z, .beta = factor(c, "beta"), .alpha = factor(c, "alpha"))) \
  ROW(baddbmm, calx_baddbmm(X, Y, Z, .beta = factor(c, "beta"), .alpha = factor(c, "alpha"))) \
  ROW(einsum, calx_einsum(text(c, "equation"), c->in, c->n_in)) \
  ROW(cumsum, calx_cumsum(X, (int)NUMBER("dim", 0))) \
  ROW(cumprod, calx_cumprod(X, (int)NUMBER("dim", 0))) \
  ROW(layer_norm, calx_layer_norm(X, list(c, "normalized_shape", room), .weight = Y, .bias = Z, .eps = NUMBER("eps", 0))) \
  ROW(rms_norm, calx_rms_norm(X, list(c, "normalized_shape", room), .weight = Y, .eps = NUMBER("eps", 0))) \
  ROW(group_norm, calx_group_norm(X, (int64_t)NUMBER("num_groups", 1), .weight = Y, .bias = Z)) \
  ROW(instance_norm, calx_instance_norm(X, .weight = Y, .bias = Z)) \
  ROW(index_select, calx_index_select(X, DIM, Y)) \
  ROW(gather, calx_gather(X, DIM, Y)) \
  ROW(take_along_dim, calx_take_along_dim(X, Y, DIM)) \
  ROW(scatter, calx_scatter(X, DIM, Y, Z)) \
  ROW(scatter_add, calx_scatter_add(X, DIM, Y, Z)) \
  ROW(scatter_reduce, calx_scatter_reduce(X, DIM, Y, Z, CALX_SCATTER_AMAX)) \
  ROW(index_add, calx_index_add(X, DIM, Y, Z)) \
  ROW(one_hot, calx_one_hot(X, (int64_t)NUMBER("num_classes", 1))) \
  ROW(embedding, calx_embedding(X, Y, .padding_idx = (int64_t)NUMBER("padding_idx", CALX_DEFAULT_INT))) \
  ROW(sort, (c->n_out = 2, calx_sort(X, .dim = sort_dim(c), .descending = flag(c, "descending"), .out_indices = &c->out[1]))) \
  ROW(argsort, calx_argsort(X, .dim = sort_dim(c), .descending = flag(c, "descending"))) \
  ROW(topk, (c->n_out = 2, calx_topk(X, (int64_t)NUMBER("k", 1), .dim = sort_dim(c), .smallest = !flag(c, "largest"), .out_indices = &c->out[1]))) \
  ROW(searchsorted, calx_searchsorted(X, Y, .right = flag(c, "right"))) \
  ROW(conv1d, calx_conv1d(X, Y, .bias = Z, .stride = (int64_t)NUMBER("stride", 0), .padding = (int64_t)NUMBER("padding", 0))) \
  ROW(conv3d, calx_conv3d(X, Y, .bias = Z, .padding = { (int64_t)NUMBER("padding", 0) })) \
  ROW(conv_transpose2d, conv_transpose2d(c)) \
  ROW(avg_pool1d, calx_avg_pool1d(X, .kernel_size = (int64_t)NUMBER("kernel_size", 1), .stride = (int64_t)NUMBER("stride", 0))) \
  ROW(avg_pool2d, avg_pool2d(c)) \
  ROW(max_pool1d, calx_max_pool1d(X, (int64_t)NUMBER("kernel_size", 1), .stride = (int64_t)NUMBER("stride", 0), .padding = (int64_t)NUMBER("padding", 0))) \
  ROW(adaptive_avg_pool2d, calx_adaptive_avg_pool(X, bins(c, room))) \
  ROW(adaptive_max_pool2d, calx_adaptive_max_pool(X, bins(c, room))) \
  ROW(interpolate, interpolate(c)) \
  ROW(unfold, calx_unfold(X, list(c, "kernel_size", room), .padding = { (int64_t)NUMBER("padding", 0) })) \
  ROW(scaled_dot_product_attention, calx_scaled_dot_product_attention(X, Y, Z, .attn_mask = c->in[3], .is_causal = flag(c, "is_causal"), .scale = NUMBER("scale", 0), .enable_gqa = flag(c, "enable_gqa"))) \
  ROW(linspace, calx_linspace(NUMBER("start", 0), NUMBER("end", 0), (int64_t)NUMBER("steps", 1), .dtype = dtype(text(c, "dtype")))) \
  ROW(logspace, calx_logspace(NUMBER("start", 0), NUMBER("end", 0), (int64_t)NUMBER("steps", 1), NUMBER("base", 10), .dtype = dtype(text(c, "dtype")))) \
  ROW(eye, calx_eye((int64_t)NUMBER("n", 0), (int64_t)NUMBER("m", 0), .dtype = dtype(text(c, "dtype")))) \
  ROW(tril_indices, calx_tril_indices((int64_t)NUMBER("row", 0), (int64_t)NUMBER("col", 0), (int64_t)NUMBER("offset", 0))) \
  ROW(triu_indices, calx_triu_indices((int64_t)NUMBER("row", 0), (int64_t)NUMBER("col", 0), (int64_t)NUMBER("offset", 0))) \
  ROW(zeros_like, calx_zeros_like(X)) \
  ROW(ones_like, calx_ones_like(X)) \
  ROW(full_like, calx_full_like(X, NUMBER("fill_value", 0))) \
  ROW(meshgrid, (c->n_out = c->n_in, calx_meshgrid(c->in, c->n_in, strcmp(text(c, "indexing"), "xy") == 0 ? CALX_INDEXING_XY : CALX_INDEXING_IJ, c->out), c->out[0])) \
  ROW(multinomial_0, calx_multinomial(X, (int64_t)NUMBER("n", 1), .replacement = flag(c, "replacement"))) \
  ROW(xlog1py, calx_xlog1py(X, Y)) \
  ROW(signbit, calx_signbit(X)) \
  ROW(float_power, calx_float_power(X, other(c))) \
  ROW(fmax, calx_fmax(X, Y)) \
  ROW(fmin, calx_fmin(X, Y)) \
  ROW(clip, calx_clip(X, scalar(c, "min"), scalar(c, "max"))) \
  ROW(allclose, calx_to_dtype(calx_scalar_int(calx_allclose(X, Y, .equal_nan = flag(c, "equal_nan"))), CALX_BOOL)) \
  ROW(fliplr, calx_fliplr(X)) \
  ROW(flipud, calx_flipud(X)) \
  ROW(rot90, calx_rot90(X, (int64_t)NUMBER("k", 1), list(c, "dims", room))) \
  ROW(swapaxes, calx_swapaxes(X, (int)NUMBER("axis0", 0), (int)NUMBER("axis1", 0))) \
  ROW(swapdims, calx_swapdims(X, (int)NUMBER("dim0", 0), (int)NUMBER("dim1", 0))) \
  ROW(moveaxis, calx_moveaxis(X, (int)NUMBER("source", 0), (int)NUMBER("destination", 0))) \
  ROW(broadcast_to, calx_broadcast_to(X, list(c, "size", room))) \
  ROW(expand_as, calx_expand_as(X, Y)) \
  ROW(atleast_1d, calx_atleast_1d(X)) \
  ROW(atleast_2d, calx_atleast_2d(X)) \
  ROW(atleast_3d, calx_atleast_3d(X)) \
  ROW(hstack, calx_hstack(c->in, c->n_in)) \
  ROW(vstack, calx_vstack(c->in, c->n_in)) \
  ROW(dstack, calx_dstack(c->in, c->n_in)) \
  ROW(block_diag, calx_block_diag(c->in, c->n_in)) \
  ROW(split_with_sizes, (c->n_out = list(c, "split_sizes", room).count, calx_split_with_sizes(X, list(c, "split_sizes", room), DIM, c->out), c->out[0])) \
  ROW(tensor_split, (c->n_out = (size_t)NUMBER("sections", 1), calx_tensor_split(X, c->n_out, DIM, c->out), c->out[0])) \
  ROW(tensor_split_at, (c->n_out = list(c, "indices", room).count + 1, calx_tensor_split_at(X, list(c, "indices", room), DIM, c->out), c->out[0])) \
  ROW(diag, calx_diag(X, (int64_t)NUMBER("diagonal", 0))) \
  ROW(diag_embed, calx_diag_embed(X, .offset = (int64_t)NUMBER("offset", 0), .dim1 = (int)NUMBER("dim1", 0), .dim2 = (int)NUMBER("dim2", 0))) \
  ROW(trace, calx_trace(X)) \
  ROW(slice_scatter, calx_slice_scatter(X, Y, DIM, (int64_t)NUMBER("start", 0), (int64_t)NUMBER("end", 0), (int64_t)NUMBER("step", 1))) \
  ROW(select_scatter, calx_select_scatter(X, Y, DIM, (int64_t)NUMBER("index", 0))) \
  ROW(assign_slice, (calx_assign_slice(X, Y, DIM, (int64_t)NUMBER("start", 0), (int64_t)NUMBER("end", 0), (int64_t)NUMBER("step", 1)), X)) \
  ROW(assign_select, (calx_assign_select(X, Y, DIM, (int64_t)NUMBER("index", 0)), X)) \
  ROW(add_, calx_add_(X, Y, .alpha = NUMBER("alpha", CALX_DEFAULT))) \
  ROW(sub_, calx_sub_(X, Y, .alpha = NUMBER("alpha", CALX_DEFAULT))) \
  ROW(mul_, calx_mul_(X, Y)) \
  ROW(div_, calx_div_(X, Y)) \
  ROW(copy_, calx_copy_(X, Y)) \
  ROW(fill_, calx_fill_(X, other(c))) \
  ROW(zero_, calx_zero_(X)) \
  ROW(clamp_, calx_clamp_(X, scalar(c, "min"), scalar(c, "max"))) \
  ROW(bucketize, calx_bucketize(X, Y, .right = flag(c, "right"))) \
  ROW(index_fill, calx_index_fill(X, DIM, Y, scalar(c, "value"))) \
  ROW(index_put, calx_index_put(X, c->in + 2, c->n_in - 2, Y, .accumulate = flag(c, "accumulate"))) \
  ROW(masked_scatter, calx_masked_scatter(X, Y, Z)) \
  ROW(isin, calx_isin(X, Y, .invert = flag(c, "invert"))) \
  ROW(histc, calx_histc(X, .bins = (int64_t)NUMBER("bins", 0), .min = NUMBER("min", 0), .max = NUMBER("max", 0))) \
  ROW(cummax, (c->n_out = 2, calx_cummax(X, DIM, &c->out[1]))) \
  ROW(cummin, (c->n_out = 2, calx_cummin(X, DIM, &c->out[1]))) \
  ROW(logcumsumexp, calx_logcumsumexp(X, DIM)) \
  ROW(median, calx_median(X)) \
  ROW(nanmedian, calx_nanmedian(X)) \
  ROW(median_dim, (c->n_out = 2, calx_median_dim(X, DIM, flag(c, "keepdim"), &c->out[1]))) \
  ROW(nanmedian_dim, (c->n_out = 2, calx_nanmedian_dim(X, DIM, flag(c, "keepdim"), &c->out[1]))) \
  ROW(mode, calx_mode(X, DIM, flag(c, "keepdim"), NULL)) \
  ROW(kthvalue, (c->n_out = 2, calx_kthvalue(X, (int64_t)NUMBER("k", 1), DIM, flag(c, "keepdim"), &c->out[1]))) \
  ROW(quantile, quantile(c, calx_quantile_with)) \
  ROW(nanquantile, quantile(c, calx_nanquantile_with)) \
  ROW(diff, calx_diff(X, .n = (int64_t)NUMBER("n", CALX_DEFAULT_INT), .dim = sort_dim(c), .prepend = Y, .append = Z)) \
  ROW(cov, calx_cov(X, .correction = factor(c, "correction"), .fweights = Y, .aweights = Z)) \
  ROW(corrcoef, calx_corrcoef(X)) \
  ROW(aminmax, (c->n_out = 2, calx_aminmax(X, &c->out[1], .dims = list(c, "dim", room), .keepdim = flag(c, "keepdim")))) \
  ROW(var_mean, (c->n_out = 2, calx_var_mean(X, &c->out[1], .dims = list(c, "dim", room), .keepdim = flag(c, "keepdim"), .correction = factor(c, "correction")))) \
  ROW(std_mean, (c->n_out = 2, calx_std_mean(X, &c->out[1], .dims = list(c, "dim", room), .keepdim = flag(c, "keepdim"), .correction = factor(c, "correction")))) \
  ROW(addr, calx_addr(X, Y, Z, .beta = factor(c, "beta"), .alpha = factor(c, "alpha"))) \
  ROW(ger, calx_ger(X, Y)) \
  ROW(tensordot, calx_tensordot(X, Y, .dims = attr(c, "x_dims") != NULL ? CALX_DEFAULT_INT : (int64_t)NUMBER("dims", 2), .x_dims = list(c, "x_dims", room), .y_dims = list(c, "y_dims", other_room))) \
  ROW(kron, calx_kron(X, Y)) \
  ROW(cdist, calx_cdist(X, Y, .p = strcmp(text(c, "p"), "inf") == 0 ? (double)INFINITY : NUMBER("p", 2))) \
  ROW(pairwise_distance, calx_pairwise_distance(X, Y, .p = NUMBER("p", CALX_DEFAULT), .keepdim = flag(c, "keepdim"))) \
  ROW(vecdot, calx_vecdot(X, Y, (int)NUMBER("dim", -1))) \
  ROW(cross, calx_cross(X, Y, (int)NUMBER("dim", -1))) \
  ROW(matrix_power, calx_matrix_power(X, (int64_t)NUMBER("n", 1))) \
  ROW(matrix_exp, calx_matrix_exp(X)) \
  ROW(cholesky, calx_cholesky(X, .upper = flag(c, "upper"))) \
  ROW(cholesky_solve, calx_cholesky_solve(X, Y, .upper = flag(c, "upper"))) \
  ROW(cholesky_inverse, calx_cholesky_inverse(X, .upper = flag(c, "upper"))) \
  ROW(solve_triangular, calx_solve_triangular(X, Y, .upper = flag(c, "upper"), .right = flag(c, "right"), .unitriangular = flag(c, "unitriangular"))) \
  ROW(qr, (c->n_out = 2, calx_qr(X, &c->out[1], .complete = flag(c, "complete")))) \
  ROW(solve, calx_solve(X, Y)) \
  ROW(lstsq, calx_lstsq(X, Y)) \
  ROW(inverse, calx_inverse(X)) \
  ROW(det, calx_det(X)) \
  ROW(slogdet, (c->n_out = 2, calx_slogdet(X, &c->out[1]))) \
  ROW(logdet, calx_logdet(X)) \
  ROW(eigh_abs, eigh_abs(c)) \
  ROW(svd_abs, svd_abs(c)) \
  ROW(svdvals, calx_svdvals(X)) \
  ROW(eigvalsh, calx_eigvalsh(X, .upper = flag(c, "upper"))) \
  ROW(cond, calx_cond(X)) \
  ROW(pinv, calx_pinv(X, .rtol = NUMBER("rtol", 0))) \
  ROW(matrix_rank, calx_matrix_rank(X)) \
  ROW(multi_dot, calx_multi_dot(c->in, c->n_in)) \
  ROW(chain_matmul, calx_chain_matmul(c->in, c->n_in)) \
  ROW(vander, calx_vander(X, .n = (int64_t)NUMBER("N", CALX_DEFAULT_INT), .increasing = flag(c, "increasing"))) \
  ROW(nonzero, calx_nonzero(X)) \
  ROW(masked_select, calx_masked_select(X, Y)) \
  ROW(unique, (c->n_out = 3, calx_unique(X, .out_inverse = &c->out[1], .out_counts = &c->out[2]))) \
  ROW(bincount, calx_bincount(X)) \
  ROW(prod, REDUCED(prod)) \
  ROW(all, REDUCED(all)) \
  ROW(any, REDUCED(any)) \
  ROW(count_nonzero, REDUCED(count_nonzero)) \
  ROW(logsumexp, REDUCED(logsumexp)) \
  ROW(var, spread(c, calx_var_with)) \
  ROW(std, spread(c, calx_std_with)) \
  ROW(norm, norm(c)) \
  ROW(normalize, calx_normalize(X, .p = NUMBER("p", CALX_DEFAULT), .dim = 1)) \
  ROW(cosine_similarity, calx_cosine_similarity(X, Y, .dim = 1)) \
  ROW(mse_loss, calx_mse_loss(X, Y, .reduction = reduction(c))) \
  ROW(l1_loss, calx_l1_loss(X, Y, .reduction = reduction(c))) \
  ROW(smooth_l1_loss, calx_smooth_l1_loss(X, Y, .reduction = reduction(c), .beta = NUMBER("beta", CALX_DEFAULT))) \
  ROW(huber_loss, calx_huber_loss(X, Y, .reduction = reduction(c), .delta = NUMBER("delta", 0))) \
  ROW(binary_cross_entropy, calx_binary_cross_entropy(X, Y, .reduction = reduction(c), .weight = Z)) \
  ROW(binary_cross_entropy_with_logits, calx_binary_cross_entropy_with_logits(X, Y, .reduction = reduction(c), .weight = Z, .pos_weight = c->in[3])) \
  ROW(kl_div, calx_kl_div(X, Y, .reduction = reduction(c))) \
  ROW(logical_and, calx_logical_and(X, Y)) \
  ROW(logical_or, calx_logical_or(X, Y)) \
  ROW(logical_xor, calx_logical_xor(X, Y))
// clang-format on

#define REDUCED(op) reduced(c, calx_##op##_with)
static calx_tensor *reduced(const call *c,
                            calx_tensor *(*fn)(calx_tensor *,
                                               const calx_reduce_options *))
{
  int64_t room[8];
  calx_reduce_options o = { .size = sizeof o,
                            .dims = list(c, "dim", room),
                            .keepdim = flag(c, "keepdim") };
  return fn(X, &o);
}

static calx_tensor *spread(const call *c,
                           calx_tensor *(*fn)(calx_tensor *,
                                              const calx_var_options *))
{
  int64_t room[8];
  double correction = NUMBER("correction", 1);
  calx_var_options o = { .size = sizeof o,
                         .dims = list(c, "dim", room),
                         .keepdim = flag(c, "keepdim"),
                         .correction =
                             correction == 0 ? CALX_ZERO : correction };
  return fn(X, &o);
}

static calx_tensor *norm(const call *c)
{
  int64_t room[8];
  bool greatest = strcmp(text(c, "p"), "inf") == 0;
  return calx_norm(
      X, .dims = list(c, "dim", room), .keepdim = flag(c, "keepdim"),
      .p = greatest ? (double)INFINITY : NUMBER("p", CALX_DEFAULT));
}

// q is a number of the attributes or the second operand.
static calx_tensor *quantile(const call *c,
                             calx_tensor *(*fn)(calx_tensor *, calx_tensor *,
                                                const calx_quantile_options *))
{
  static const char *const ways[] = { "linear", "lower", "higher", "midpoint",
                                      "nearest" };
  int64_t room[8];
  calx_quantile_options o = { .size = sizeof o,
                              .dims = list(c, "dim", room),
                              .keepdim = flag(c, "keepdim") };
  if (*text(c, "interpolation") != '\0') o.interpolation = 5;
  for (int i = 0; i < 5; i++) {
    if (strcmp(text(c, "interpolation"), ways[i]) == 0) o.interpolation = i;
  }
  return fn(X, c->n_in > 1 ? Y : calx_scalar(NUMBER("q", 0)), &o);
}

static calx_tensor *clamp(const call *c)
{
  if (attr(c, "min") == NULL) return calx_clamp_max(X, scalar(c, "max"));
  if (attr(c, "max") == NULL) return calx_clamp_min(X, scalar(c, "min"));
  return calx_clamp(X, scalar(c, "min"), scalar(c, "max"));
}

static int sort_dim(const call *c)
{
  int dim = (int)NUMBER("dim", -1);
  return dim == 0 ? INT32_MIN : dim;
}

static calx_tensor *conv_transpose2d(const call *c)
{
  calx_conv_transpose2d_options o = { .size = sizeof o,
                                      .bias = Z,
                                      .groups = (int64_t)NUMBER("groups", 1) };
  pair(c, "stride", o.stride);
  pair(c, "padding", o.padding);
  pair(c, "dilation", o.dilation);
  pair(c, "output_padding", o.output_padding);
  return calx_conv_transpose2d_with(X, Y, &o);
}

static calx_tensor *avg_pool2d(const call *c)
{
  calx_avg_pool2d_options o = { .size = sizeof o,
                                .ceil_mode = flag(c, "ceil_mode"),
                                .no_count_include_pad =
                                    json_is_false(attr(c, "count_include_pad")),
                                .divisor_override =
                                    (int64_t)NUMBER("divisor_override", 0) };
  pair(c, "kernel_size", o.kernel_size);
  pair(c, "stride", o.stride);
  pair(c, "padding", o.padding);
  return calx_avg_pool2d_with(X, &o);
}

// Two sizes; null keeps a dimension.
static calx_dims bins(const call *c, int64_t *room)
{
  json_t *v = attr(c, "output_size");
  for (size_t i = 0; i < 2; i++) {
    json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
    room[i] = json_is_null(one) ? -1 : json_integer_value(one);
  }
  return calx_dims_of(room, 2);
}

static calx_tensor *interpolate(const call *c)
{
  int64_t sizes[8];
  calx_dims d = list(c, "size", sizes);
  if (d.count == 0) {
    for (int i = 0; i < 2; i++) {
      sizes[i] = calx_tensor_dim(X, 2 + i) * (int64_t)NUMBER("scale_factor", 1);
    }
    d = calx_dims_of(sizes, 2);
  }
  bool linear = strcmp(text(c, "mode"), "bilinear") == 0;
  return calx_interpolate(
      X, d, .mode = linear ? CALX_INTERPOLATE_LINEAR : CALX_INTERPOLATE_NEAREST,
      .align_corners = flag(c, "align_corners"));
}

static double factor(const call *c, const char *name)
{
  double f = NUMBER(name, 1);
  return f == 0 ? CALX_ZERO : f;
}

static calx_tensor *split(call *c)
{
  int64_t room[8];
  calx_dims sizes = list(c, "split_size_or_sections", room);
  int dim = (int)NUMBER("dim", 0);
  if (!json_is_array(attr(c, "split_size_or_sections"))) {
    int64_t each = room[0], left = calx_tensor_dim(X, dim);
    size_t n = 0;
    for (; left > 0; left -= each) room[n++] = left < each ? left : each;
    sizes = calx_dims_of(room, n);
  }
  c->n_out = sizes.count;
  calx_split(X, sizes, dim, c->out);
  return c->out[0];
}

static calx_tensor *unbind(call *c)
{
  int dim = (int)NUMBER("dim", 0);
  c->n_out = (size_t)calx_tensor_dim(X, dim);
  calx_unbind(X, dim, c->out);
  return c->out[0];
}

static calx_pad_mode pad_mode(const call *c)
{
  const char *mode = text(c, "mode");
  return strcmp(mode, "reflect") == 0     ? CALX_PAD_REFLECT
         : strcmp(mode, "replicate") == 0 ? CALX_PAD_REPLICATE
         : strcmp(mode, "circular") == 0  ? CALX_PAD_CIRCULAR
                                          : CALX_PAD_CONSTANT;
}

#define FUNCTION(op, expression)    \
  static void call_##op(call *c)    \
  {                                 \
    int64_t room[8], other_room[8]; \
    (void)room, (void)other_room;   \
    c->out[0] = (expression);       \
  }
ROWS(FUNCTION)

static bool row(call *c)
{
  static const struct {
    const char *name;
    void (*fn)(call *c);
  } table[] = {
#define ENTRY(op, expression) { #op, call_##op },
    ROWS(ENTRY)
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    table[i].fn(c);
    return true;
  }
  return false;
}

bool oracle_call(call *c)
{
  c->n_out = 1;
  return unary(c) || binary(c) || reduction_op(c) || shape_op(c) ||
         model_op(c) || row(c) || oracle_call_model(c) || oracle_call_rest(c) ||
         oracle_call_complex(c) || oracle_call_extra(c);
}
