// ops/unary: functions of one operand. unary.def lists the elementwise ones;
// here are the rules and emissions that its rows name, and what each row makes.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

// ---- rules: which operands an op takes --------------------------------------

// Complex operands count, too: the op takes them, or recording it fails.
static bool is_float(const calx_tensor *x)
{
  return x != NULL && cx_dtype_is_inexact(cx_lazy_tensor_shape(x)->dtype);
}

static bool is_complex(const calx_tensor *x)
{
  return x != NULL && cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype);
}

// All element types.
static calx_tensor *any(const cx_graph_op *op, calx_tensor *x)
{
  return cx_ops_record(op, &x, 1, NULL);
}

// Functions without integer values: integers and bool become f32 first.
static calx_tensor *floating(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  return any(op, is_float(x) ? x : calx_to_dtype(x, CALX_F32));
}

// Functions that are the identity on integers and bool.
static calx_tensor *rounding(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  return is_float(x) ? any(op, x) : cx_lazy_tensor_detached(x);
}

// Functions of the bits of integers and bool.
static calx_tensor *bits(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  return is_float(x) ? cx_ops_no_bits(op->name, x) : any(op, x);
}

// Functions that bool does not have.
static calx_tensor *numeric(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->dtype == CALX_BOOL) {
    return cx_ops_invalid(
        "%s: %s has no such function; convert it with calx_to_dtype", op->name,
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  return any(op, x);
}

// The same but for bool, which becomes an i64 first.
static calx_tensor *counting(const cx_graph_op *op, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  bool is_bool = cx_lazy_tensor_shape(x)->dtype == CALX_BOOL;
  return any(op, is_bool ? calx_to_dtype(x, CALX_I64) : x);
}

// Numeric functions that are the identity on bool.
static calx_tensor *signs(const cx_graph_op *op, calx_tensor *x)
{
  bool is_bool = x != NULL && cx_lazy_tensor_shape(x)->dtype == CALX_BOOL;
  return is_bool ? rounding(op, x) : numeric(op, x);
}

// Numeric functions that are the identity on unsigned integers.
static calx_tensor *magnitude(const cx_graph_op *op, calx_tensor *x)
{
  bool is_unsigned =
      x != NULL && cx_dtype_is_unsigned(cx_lazy_tensor_shape(x)->dtype);
  if (is_complex(x)) return cx_ops_modulus(x);
  return is_unsigned ? cx_lazy_tensor_detached(x) : numeric(op, x);
}

// Predicates of both parts of a complex number.
static calx_tensor *parts(const cx_graph_op *op, calx_tensor *x,
                          calx_tensor *(*join)(calx_tensor *, calx_tensor *))
{
  if (!is_complex(x)) return floating(op, x);
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  calx_tensor *re = calx_real(x), *im = calx_imag(x);
  return join(cx_ops_record(op, &re, 1, NULL), cx_ops_record(op, &im, 1, NULL));
}

static calx_tensor *both(const cx_graph_op *op, calx_tensor *x)
{
  return parts(op, x, calx_bitwise_and);
}

static calx_tensor *either(const cx_graph_op *op, calx_tensor *x)
{
  return parts(op, x, calx_bitwise_or);
}

// ---- emission ---------------------------------------------------------------

#define HLO(kind) cx_hlo_unary(e->b, CX_HLO_OP_##kind, x)
#define HLO2(kind, left, right) \
  cx_hlo_binary(e->b, CX_HLO_OP_##kind, left, right)

// The number, with the operand's element type and shape.
static cx_hlo_value *like(const cx_graph_emit *e, double v)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  return cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, v);
}

// The pole at 0, of which the function of CHLO makes NaN: -1 / x.
static cx_hlo_value *digamma(const cx_graph_emit *e, cx_hlo_value *x)
{
  cx_hlo_value *pole = HLO2(DIVIDE, like(e, -1), x);
  cx_hlo_value *at = cx_hlo_compare(e->b, CX_HLO_EQ, x, like(e, 0));
  return cx_hlo_select(e->b, at, pole, HLO(CHLO_DIGAMMA));
}

// PyTorch's sign of NaN is 0.
static cx_hlo_value *sign(const cx_graph_emit *e, cx_hlo_value *x)
{
  const calx_dtype dtype = cx_in(e->node, 0)->dtype;
  // StableHLO's sign has no unsigned integers.
  if (cx_dtype_is_unsigned(dtype)) return HLO2(MINIMUM, x, like(e, 1));
  if (!cx_dtype_is_float(dtype)) return HLO(SIGN);
  cx_hlo_value *s = HLO(SIGN);
  cx_hlo_value *is_nan = cx_hlo_compare(e->b, CX_HLO_NE, x, x);
  return cx_hlo_select(e->b, is_nan, like(e, 0), s);
}

static cx_hlo_value *truncated(const cx_graph_emit *e, cx_hlo_value *x)
{
  return cx_ops_emit_trunc(e, x, like(e, 0));
}

static cx_hlo_value *compare(const cx_graph_emit *e, cx_hlo_direction direction,
                             cx_hlo_value *x, double with)
{
  return cx_hlo_compare(e->b, direction, x, like(e, with));
}

// ---- gradients --------------------------------------------------------------

static calx_tensor *one_minus_square(calx_tensor *x)
{
  return cx_ops_minus(cx_ops_number(1), calx_square(x));
}

// g / sqrt(x^2 - 1); on the complex plane the root is one of x - 1 and one of
// x + 1, which have the branch of the function.
static calx_tensor *acosh_gradient(calx_tensor *g, calx_tensor *x)
{
  if (!is_complex(x)) {
    calx_tensor *square = cx_ops_minus(calx_square(x), cx_ops_number(1));
    return calx_mul(g, calx_rsqrt(square));
  }
  calx_tensor *low = calx_rsqrt(cx_ops_minus(x, cx_ops_number(1)));
  calx_tensor *high = calx_rsqrt(cx_ops_plus(x, cx_ops_number(1)));
  return calx_mul(g, calx_mul(low, high));
}

// factor e^(-x^2)
static calx_tensor *gauss(calx_tensor *x, double factor)
{
  return calx_mul(calx_exp(calx_neg(calx_square(x))), cx_ops_number(factor));
}

// In an autocast region computed in its type.
static calx_tensor *lowered(const cx_graph_op *op, calx_tensor *x)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x);
  return numeric(op, x);
}

// ---- what a row of unary.def makes ------------------------------------------

static calx_status *infer_bool(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dtype = CALX_BOOL;
  return NULL;
}

#define IN cx_lazy_tape_in(t, 0)
#define OUT cx_lazy_tape_out(t, 0)

#define EMIT_AND_ENTRY(op, rule, emission) \
  static void emit_##op(cx_graph_emit *e)  \
  {                                        \
    cx_hlo_value *x = e->in[0];            \
    e->out[0] = (emission);                \
  }                                        \
  calx_tensor *calx_##op(calx_tensor *x)   \
  {                                        \
    return rule(&cx_ops_##op, x);          \
  }

#define ROW(op, rule, emission, gradient, complex)                 \
  static void real_grad_##op(cx_lazy_tape *t)                      \
  {                                                                \
    calx_tensor *g = t->out_grads[0];                              \
    (void)g;                                                       \
    t->in_grads[0] = (gradient);                                   \
  }                                                                \
  static void grad_##op(cx_lazy_tape *t)                           \
  {                                                                \
    cx_ops_grad_holomorphic(t, real_grad_##op);                    \
  }                                                                \
  EMIT_AND_ENTRY(op, rule, emission)                               \
  CX_OPS_DEFINE(op, .infer = cx_ops_infer_same, .grad = grad_##op, \
                .emit = emit_##op, .takes_complex = complex)
#define CX_OPS_UNARY(op, rule, emission, gradient) \
  ROW(op, rule, emission, gradient, false)
#define CX_OPS_HOLOMORPHIC(op, rule, emission, gradient) \
  ROW(op, rule, emission, gradient, true)

#define PREDICATE(op, rule, emission, complex)              \
  EMIT_AND_ENTRY(op, rule, emission)                        \
  CX_OPS_DEFINE(op, .infer = infer_bool, .emit = emit_##op, \
                .takes_complex = complex)
#define CX_OPS_PREDICATE(op, rule, emission) \
  PREDICATE(op, rule, emission, false)
#define CX_OPS_PREDICATE_OF_COMPLEX(op, rule, emission) \
  PREDICATE(op, rule, emission, true)
#include "ops/unary.def"

// ---- polygamma --------------------------------------------------------------

typedef struct polygamma_attrs {
  int32_t order;
} polygamma_attrs;

static void grad_polygamma(cx_lazy_tape *t)
{
  const polygamma_attrs *a = t->attrs;
  t->in_grads[0] = calx_mul(t->out_grads[0], calx_polygamma(a->order + 1, IN));
}

static void emit_polygamma(cx_graph_emit *e)
{
  const polygamma_attrs *a = e->attrs;
  e->out[0] = HLO2(CHLO_POLYGAMMA, like(e, a->order), e->in[0]);
}

static void describe_polygamma(const void *attrs, cx_text *out)
{
  cx_text_format(out, "order %d", ((const polygamma_attrs *)attrs)->order);
}

CX_OPS_DEFINE(polygamma, .attr_size = sizeof(polygamma_attrs),
              .infer = cx_ops_infer_same, .grad = grad_polygamma,
              .emit = emit_polygamma, .describe = describe_polygamma)

calx_tensor *calx_polygamma(int n, calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("polygamma", &x, 1, &bad)) return bad;
  if (n < 0) {
    return cx_ops_invalid("polygamma: the order is %d, 0 or more is wanted", n);
  }
  if (!is_float(x)) x = calx_to_dtype(x, CALX_F32);
  polygamma_attrs a = { n };
  return cx_ops_record(&cx_ops_polygamma, &x, 1, &a);
}

// ---- detach and to_dtype ----------------------------------------------------

calx_tensor *calx_detach(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("detach", &x, 1, &bad)) return bad;
  return cx_lazy_tensor_detached(x);
}

typedef struct to_dtype_attrs {
  uint32_t dtype;
} to_dtype_attrs;

static void grad_to_dtype(cx_lazy_tape *t)
{
  const calx_dtype dtype = cx_in(t->node, 0)->dtype;
  calx_tensor *g = t->out_grads[0];
  if (!cx_dtype_is_complex(dtype)) g = calx_real(g);
  t->in_grads[0] = calx_to_dtype(g, dtype);
}

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
    e->out[0] = cx_hlo_compare(e->b, CX_HLO_NE, v, like(e, 0));
    return;
  }
  if (cx_dtype_is_complex(to->dtype) && !cx_dtype_is_complex(from->dtype)) {
    e->out[0] = cx_ops_emit_complex(e, v, NULL, to->dtype);
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

CX_OPS_DEFINE(to_dtype, .attr_size = sizeof(to_dtype_attrs),
              .infer = infer_to_dtype, .grad = grad_to_dtype,
              .emit = emit_to_dtype, .describe = describe_to_dtype,
              .takes_complex = true)

calx_tensor *calx_to_dtype(calx_tensor *x, calx_dtype dtype)
{
  calx_tensor *bad;
  if (cx_ops_unfit("to_dtype", &x, 1, &bad)) return bad;
  if (!cx_dtype_valid(dtype)) {
    return cx_ops_invalid("to_dtype: %d is no element type", (int)dtype);
  }
  if (cx_lazy_tensor_shape(x)->dtype == dtype &&
      !cx_lazy_tensor_is(x, CX_LAZY_T_WEAK))
    return x;
  if (is_complex(x) && !cx_dtype_is_complex(dtype) && dtype != CALX_BOOL) {
    return cx_ops_invalid(
        "to_dtype: %s as %s would lose its imaginary part: take calx_real, "
        "calx_imag or calx_abs of it",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)), calx_dtype_name(dtype));
  }
  to_dtype_attrs a = { (uint32_t)dtype };
  return cx_ops_record(&cx_ops_to_dtype, &x, 1, &a);
}
