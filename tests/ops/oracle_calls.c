// How each op of the recorded cases is spelled in calx.
#include "oracle.h"

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
                { "bfloat16", CALX_BF16 }, { "float16", CALX_F16 } };
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
  const char *name = strcmp(c->op, "pow") == 0 ? "exponent" : "other";
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
  c->out[0] = calx_batch_norm(
      c->in[0], .weight = c->in[1], .bias = c->in[2], .running_mean = c->in[3],
      .running_var = c->in[4], .training = training,
      .momentum = number(c, "momentum", 0), .eps = number(c, "eps", 0));
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

bool oracle_call(call *c)
{
  c->n_out = 1;
  return unary(c) || binary(c) || reduction_op(c) || shape_op(c) || model_op(c);
}
