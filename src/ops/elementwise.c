// ops/elementwise: functions of one operand. Each line of the table below is an
// op: name, StableHLO operation, gradient.
#include "base/dtype.h"
#include "ops/ops.h"

// ---- gradients: g is the result's, y the result, x the operand --------------

#define GRAD(op, expression)                                             \
  static void grad_##op(cx_lazy_tape *t)                                 \
  {                                                                      \
    calx_tensor *g = t->out_grads[0];                                    \
    calx_tensor *x = cx_lazy_tape_in(t, 0), *y = cx_lazy_tape_out(t, 0); \
    (void)g, (void)x;                                                    \
    (void)y;                                                             \
    t->in_grads[0] = (expression);                                       \
  }

GRAD(neg, calx_neg(g))
GRAD(abs, calx_mul(g, calx_sign(x)))
GRAD(zero, cx_ops_zeros_like(x))
GRAD(exp, calx_mul(g, y))
GRAD(expm1, calx_mul(g, cx_plus(y, cx_ops_number(1))))
GRAD(log, calx_div(g, x))
GRAD(log1p, calx_div(g, cx_plus(x, cx_ops_number(1))))
GRAD(sqrt, calx_div(g, calx_mul(y, cx_ops_number(2))))
GRAD(rsqrt,
     calx_mul(g, calx_mul(calx_mul(y, calx_square(y)), cx_ops_number(-0.5))))
GRAD(reciprocal, calx_neg(calx_mul(g, calx_square(y))))
GRAD(square, calx_mul(g, calx_mul(x, cx_ops_number(2))))
GRAD(sin, calx_mul(g, calx_cos(x)))
GRAD(cos, calx_neg(calx_mul(g, calx_sin(x))))
GRAD(tanh, calx_mul(g, cx_minus(cx_ops_number(1), calx_square(y))))
GRAD(sigmoid, calx_mul(g, calx_mul(y, cx_minus(cx_ops_number(1), y))))
GRAD(relu, calx_where(calx_le(y, cx_ops_number(0)), cx_ops_number(0), g))
GRAD(to_dtype, calx_to_dtype(g, cx_lazy_tensor_shape(x)->dtype))

// ---- emission ---------------------------------------------------------------

#define EMIT(op, kind)                              \
  static void emit_##op(cx_graph_emit *e)           \
  {                                                 \
    e->out[0] = cx_hlo_unary(e->b, kind, e->in[0]); \
  }

EMIT(neg, CX_HLO_OP_NEGATE)
EMIT(abs, CX_HLO_OP_ABS)
EMIT(exp, CX_HLO_OP_EXPONENTIAL)
EMIT(expm1, CX_HLO_OP_EXPONENTIAL_MINUS_ONE)
EMIT(log, CX_HLO_OP_LOG)
EMIT(log1p, CX_HLO_OP_LOG_PLUS_ONE)
EMIT(sqrt, CX_HLO_OP_SQRT)
EMIT(rsqrt, CX_HLO_OP_RSQRT)
EMIT(sin, CX_HLO_OP_SINE)
EMIT(cos, CX_HLO_OP_COSINE)
EMIT(tanh, CX_HLO_OP_TANH)
EMIT(sigmoid, CX_HLO_OP_LOGISTIC)
EMIT(floor, CX_HLO_OP_FLOOR)
EMIT(ceil, CX_HLO_OP_CEIL)
EMIT(round, CX_HLO_OP_ROUND_NEAREST_EVEN)
EMIT(isfinite, CX_HLO_OP_IS_FINITE)

static cx_hlo_value *like_in(const cx_graph_emit *e, double v)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  return cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, v);
}

// PyTorch's sign of NaN is 0.
static void emit_sign(cx_graph_emit *e)
{
  cx_hlo_value *x = e->in[0];
  const calx_dtype dtype = cx_in(e->node, 0)->dtype;
  if (cx_dtype_is_unsigned(dtype)) {  // StableHLO has no such sign
    e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_MINIMUM, x, like_in(e, 1));
    return;
  }
  e->out[0] = cx_hlo_unary(e->b, CX_HLO_OP_SIGN, x);
  if (!cx_dtype_is_float(dtype)) return;
  cx_hlo_value *is_nan = cx_hlo_compare(e->b, CX_HLO_NE, x, x);
  e->out[0] = cx_hlo_select(e->b, is_nan, like_in(e, 0), e->out[0]);
}

static void emit_reciprocal(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_DIVIDE, like_in(e, 1), e->in[0]);
}

static void emit_square(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_MULTIPLY, e->in[0], e->in[0]);
}

static void emit_relu(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_MAXIMUM, e->in[0], like_in(e, 0));
}

static void emit_isnan(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_compare(e->b, CX_HLO_NE, e->in[0], e->in[0]);
}

// ---- descriptors ------------------------------------------------------------

static calx_status *infer_bool(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dtype = CALX_BOOL;
  return NULL;
}

#define OP(op, ID, gradient)                                    \
  const cx_graph_op cx_ops_##op = { .name = #op,                \
                                    .id = CX_OPS_ID_##ID,       \
                                    .infer = cx_ops_infer_same, \
                                    .grad = grad_##gradient,    \
                                    .emit = emit_##op };

OP(neg, NEG, neg)
OP(abs, ABS, abs)
OP(sign, SIGN, zero)
OP(exp, EXP, exp)
OP(expm1, EXPM1, expm1)
OP(log, LOG, log)
OP(log1p, LOG1P, log1p)
OP(sqrt, SQRT, sqrt)
OP(rsqrt, RSQRT, rsqrt)
OP(reciprocal, RECIPROCAL, reciprocal)
OP(square, SQUARE, square)
OP(sin, SIN, sin)
OP(cos, COS, cos)
OP(tanh, TANH, tanh)
OP(sigmoid, SIGMOID, sigmoid)
OP(relu, RELU, relu)
OP(floor, FLOOR, zero)
OP(ceil, CEIL, zero)
OP(round, ROUND, zero)

const cx_graph_op cx_ops_isnan = { .name = "isnan",
                                   .id = CX_OPS_ID_ISNAN,
                                   .infer = infer_bool,
                                   .emit = emit_isnan };
const cx_graph_op cx_ops_isfinite = { .name = "isfinite",
                                      .id = CX_OPS_ID_ISFINITE,
                                      .infer = infer_bool,
                                      .emit = emit_isfinite };

// ---- entries ----------------------------------------------------------------

static calx_tensor *one(const cx_graph_op *op, calx_tensor *x)
{
  return cx_ops_record(op, &x, 1, NULL);
}

static bool is_float(const calx_tensor *x)
{
  return x != NULL && cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype);
}

// Functions without integer values: integers and bool become f32 first.
static calx_tensor *floating(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  return one(op, is_float(x) ? x : calx_to_dtype(x, CALX_F32));
}

// Functions that are the identity on integers.
static calx_tensor *rounding(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  return is_float(x) ? one(op, x) : cx_lazy_tensor_detached(x);
}

// Functions that bool does not have.
static calx_tensor *numeric(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->dtype == CALX_BOOL) {
    return cx_ops_poison(CALX_INVALID_ARGUMENT,
                         "%s: %s has no such function; convert it with "
                         "calx_to_dtype",
                         op->name, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  return one(op, x);
}

calx_tensor *calx_neg(calx_tensor *x)
{
  return numeric(&cx_ops_neg, x);
}
calx_tensor *calx_abs(calx_tensor *x)
{
  bool is_unsigned =
      x != NULL && cx_dtype_is_unsigned(cx_lazy_tensor_shape(x)->dtype);
  return is_unsigned ? cx_lazy_tensor_detached(x) : numeric(&cx_ops_abs, x);
}
calx_tensor *calx_sign(calx_tensor *x)
{
  return numeric(&cx_ops_sign, x);
}
calx_tensor *calx_exp(calx_tensor *x)
{
  return floating(&cx_ops_exp, x);
}
calx_tensor *calx_expm1(calx_tensor *x)
{
  return floating(&cx_ops_expm1, x);
}
calx_tensor *calx_log(calx_tensor *x)
{
  return floating(&cx_ops_log, x);
}
calx_tensor *calx_log1p(calx_tensor *x)
{
  return floating(&cx_ops_log1p, x);
}
calx_tensor *calx_sqrt(calx_tensor *x)
{
  return floating(&cx_ops_sqrt, x);
}
calx_tensor *calx_rsqrt(calx_tensor *x)
{
  return floating(&cx_ops_rsqrt, x);
}
calx_tensor *calx_reciprocal(calx_tensor *x)
{
  return floating(&cx_ops_reciprocal, x);
}
calx_tensor *calx_square(calx_tensor *x)
{
  return numeric(&cx_ops_square, x);
}
calx_tensor *calx_sin(calx_tensor *x)
{
  return floating(&cx_ops_sin, x);
}
calx_tensor *calx_cos(calx_tensor *x)
{
  return floating(&cx_ops_cos, x);
}
calx_tensor *calx_tanh(calx_tensor *x)
{
  return floating(&cx_ops_tanh, x);
}
calx_tensor *calx_sigmoid(calx_tensor *x)
{
  return floating(&cx_ops_sigmoid, x);
}
calx_tensor *calx_relu(calx_tensor *x)
{
  return numeric(&cx_ops_relu, x);
}
calx_tensor *calx_floor(calx_tensor *x)
{
  return rounding(&cx_ops_floor, x);
}
calx_tensor *calx_ceil(calx_tensor *x)
{
  return rounding(&cx_ops_ceil, x);
}
calx_tensor *calx_round(calx_tensor *x)
{
  return rounding(&cx_ops_round, x);
}

calx_tensor *calx_isnan(calx_tensor *x)
{
  return one(&cx_ops_isnan, x);
}

calx_tensor *calx_isfinite(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("isfinite", &x, 1, &bad)) return bad;
  return one(&cx_ops_isfinite, is_float(x) ? x : calx_to_dtype(x, CALX_F32));
}

calx_tensor *calx_detach(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("detach", &x, 1, &bad)) return bad;
  return cx_lazy_tensor_detached(x);
}

// ---- to_dtype ---------------------------------------------------------------

typedef struct to_dtype_attrs {
  uint32_t dtype;
} to_dtype_attrs;

static calx_status *infer_to_dtype(cx_graph_node *node)
{
  const to_dtype_attrs *a = node->attrs;
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dtype = (calx_dtype)a->dtype;
  return NULL;
}

// Floats to integers narrower than 32 bits pass through i32, so that they wrap
// as PyTorch's do; bool is "not 0".
static void emit_to_dtype(cx_graph_emit *e)
{
  const cx_graph_shape *from = cx_in(e->node, 0), *to = &e->node->out[0].shape;
  cx_hlo_value *v = e->in[0];
  if (to->dtype == CALX_BOOL) {
    e->out[0] = cx_hlo_compare(e->b, CX_HLO_NE, v, like_in(e, 0));
    return;
  }
  if (cx_dtype_is_float(from->dtype) && cx_dtype_is_int(to->dtype) &&
      calx_dtype_size(to->dtype) < 4) {
    v = cx_hlo_convert(e->b, v, CX_HLO_I32);
  }
  e->out[0] = cx_hlo_convert(e->b, v, cx_hlo_elem_of(to->dtype));
}

static void describe_to_dtype(const void *attrs, cx_text *out)
{
  const to_dtype_attrs *a = attrs;
  cx_text_append(out, calx_dtype_name((calx_dtype)a->dtype));
}

const cx_graph_op cx_ops_to_dtype = { .name = "to_dtype",
                                      .id = CX_OPS_ID_TO_DTYPE,
                                      .attr_size = sizeof(to_dtype_attrs),
                                      .infer = infer_to_dtype,
                                      .grad = grad_to_dtype,
                                      .emit = emit_to_dtype,
                                      .describe = describe_to_dtype };

calx_tensor *calx_to_dtype(calx_tensor *x, calx_dtype dtype)
{
  calx_tensor *bad;
  if (cx_ops_unfit("to_dtype", &x, 1, &bad)) return bad;
  if (!cx_dtype_valid(dtype)) {
    return cx_ops_poison(CALX_INVALID_ARGUMENT,
                         "to_dtype: %d is no element type", (int)dtype);
  }
  if (cx_lazy_tensor_shape(x)->dtype == dtype && !cx_lazy_tensor_is_weak(x))
    return x;
  to_dtype_attrs a = { (uint32_t)dtype };
  return cx_ops_record(&cx_ops_to_dtype, &x, 1, &a);
}
