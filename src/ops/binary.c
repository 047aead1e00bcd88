// ops/binary: functions of two operands that broadcast and promote, and where.
// binary.def lists those that are no more than a row; here are the gradients
// that its rows name, and what each row makes.
#include <math.h>

#include "base/dtype.h"
#include "base/options.h"
#include "ops/autocast.h"
#include "ops/ops.h"

// ---- gradients --------------------------------------------------------------

// Sets an operand's gradient, summed back to its shape.
static void give(cx_lazy_tape *t, uint32_t i, calx_tensor *g)
{
  t->in_grads[i] = cx_ops_sum_to(g, cx_in(t->node, i));
}

static void div_gradients(cx_lazy_tape *t)
{
  calx_tensor *g = calx_div(t->out_grads[0], cx_lazy_tape_in(t, 1));
  if (cx_tape_needs(t, 0)) give(t, 0, g);
  if (cx_tape_needs(t, 1)) {
    give(t, 1, calx_neg(calx_mul(g, cx_lazy_tape_out(t, 0))));
  }
}

// d(x^y)/dx = y x^(y-1), and 0 where y is 0 (also at x = 0).
static calx_tensor *pow_grad_base(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0], *x = cx_lazy_tape_in(t, 0);
  calx_tensor *y = cx_lazy_tape_in(t, 1);
  double c;
  cx_lazy_tensor_mark(y, CX_LAZY_T_WEAK);
  if (cx_ops_weak_number(y, true, &c)) {
    if (c == 0.0) return cx_ops_zeros_like(g);
    calx_tensor *power = c == 1.0   ? NULL
                         : c == 2.0 ? x
                                    : calx_pow(x, cx_ops_number(c - 1));
    g = c == 1.0 ? g : calx_mul(g, cx_ops_number(c));
    return power != NULL ? calx_mul(g, power) : g;
  }
  y = cx_lazy_tape_in(t, 1);
  calx_tensor *power = calx_pow(x, cx_ops_minus(y, cx_ops_number(1)));
  return calx_where(calx_eq(y, cx_ops_number(0)), cx_ops_number(0),
                    calx_mul(g, calx_mul(y, power)));
}

// d(x^y)/dy = x^y log x, and 0 where x is 0 and y is not negative.
static calx_tensor *pow_grad_exponent(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0], *x = cx_lazy_tape_in(t, 0);
  calx_tensor *y = cx_lazy_tape_in(t, 1);
  calx_tensor *flat = calx_mul(calx_eq(x, cx_ops_number(0)),
                               calx_ge(calx_real(y), cx_ops_number(0)));
  calx_tensor *slope = calx_mul(cx_lazy_tape_out(t, 0), calx_log(x));
  return calx_where(flat, cx_ops_number(0), calx_mul(g, slope));
}

static void real_grad_pow(cx_lazy_tape *t)
{
  if (cx_tape_needs(t, 0)) give(t, 0, pow_grad_base(t));
  if (cx_tape_needs(t, 1)) give(t, 1, pow_grad_exponent(t));
}

static void grad_pow(cx_lazy_tape *t)
{
  cx_ops_grad_holomorphic(t, real_grad_pow);
}

// The gradient goes to the chosen operand, and half of it to each where both
// are equal. Where one is NaN neither is less, and both take the whole
// gradient.
static void extreme_gradients(cx_lazy_tape *t,
                              calx_tensor *(*loses)(calx_tensor *,
                                                    calx_tensor *))
{
  calx_tensor *x = cx_lazy_tape_in(t, 0), *y = cx_lazy_tape_in(t, 1);
  calx_tensor *g = t->out_grads[0];
  g = calx_where(calx_eq(x, y), calx_mul(g, cx_ops_number(0.5)), g);
  if (cx_tape_needs(t, 0)) {
    give(t, 0, calx_where(loses(x, y), cx_ops_number(0), g));
  }
  if (cx_tape_needs(t, 1)) {
    give(t, 1, calx_where(loses(y, x), cx_ops_number(0), g));
  }
}

// The quotient that a remainder leaves.
static calx_tensor *quotient(cx_lazy_tape *t, calx_rounding rounding)
{
  calx_div_options o = { .size = sizeof o, .rounding = rounding };
  return calx_div_with(cx_lazy_tape_in(t, 0), cx_lazy_tape_in(t, 1), &o);
}

// d atan2(y, x) = (x dy - y dx) / (x^2 + y^2)
static void atan2_gradients(cx_lazy_tape *t)
{
  calx_tensor *y = cx_lazy_tape_in(t, 0), *x = cx_lazy_tape_in(t, 1);
  calx_tensor *g =
      calx_div(t->out_grads[0], cx_ops_plus(calx_square(x), calx_square(y)));
  if (cx_tape_needs(t, 0)) give(t, 0, calx_mul(g, x));
  if (cx_tape_needs(t, 1)) give(t, 1, calx_neg(calx_mul(g, y)));
}

static void grad_where(cx_lazy_tape *t)
{
  calx_tensor *c = cx_lazy_tape_in(t, 0), *g = t->out_grads[0];
  if (cx_tape_needs(t, 1)) give(t, 1, calx_where(c, g, cx_ops_number(0)));
  if (cx_tape_needs(t, 2)) give(t, 2, calx_where(c, cx_ops_number(0), g));
}

// ---- shape rules ------------------------------------------------------------

static calx_status *infer_compare(cx_graph_node *node)
{
  CALX_TRY(cx_ops_infer_broadcast(node));
  node->out[0].shape.dtype = CALX_BOOL;
  return NULL;
}

static calx_status *infer_where(cx_graph_node *node)
{
  CALX_TRY(cx_ops_infer_broadcast(node));
  node->out[0].shape.dtype = cx_in(node, 1)->dtype;
  return NULL;
}

// ---- emission ---------------------------------------------------------------

static cx_hlo_value *operand(const cx_graph_emit *e, uint32_t i)
{
  return cx_ops_emit_expand(e, e->in[i], &e->node->out[0].shape);
}

static void emit(cx_graph_emit *e, cx_hlo_op_kind kind)
{
  e->out[0] = cx_hlo_binary(e->b, kind, operand(e, 0), operand(e, 1));
}

static cx_hlo_value *like(const cx_graph_emit *e, double v)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  return cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, v);
}

// The remainder with the divisor's sign, as Python's %.
static void python_remainder(cx_graph_emit *e)
{
  cx_hlo_value *y = operand(e, 1);
  cx_hlo_value *r = cx_hlo_binary(e->b, CX_HLO_OP_REMAINDER, operand(e, 0), y);
  e->out[0] = cx_hlo_select(e->b, cx_ops_emit_opposed(e, r, y, like(e, 0)),
                            cx_hlo_binary(e->b, CX_HLO_OP_ADD, r, y), r);
}

// log(e^x + e^y) = m + log(1 + e^-|x - y|) with m the greater; x - y is NaN
// where both are the same infinity, which is the result then.
static void log_sum(cx_graph_emit *e)
{
  cx_hlo_builder *b = e->b;
  cx_hlo_value *x = operand(e, 0), *y = operand(e, 1);
  cx_hlo_value *m = cx_hlo_binary(b, CX_HLO_OP_MAXIMUM, x, y);
  cx_hlo_value *d = cx_hlo_binary(b, CX_HLO_OP_SUBTRACT, x, y);
  d = cx_hlo_unary(b, CX_HLO_OP_NEGATE, cx_hlo_unary(b, CX_HLO_OP_ABS, d));
  d = cx_hlo_unary(b, CX_HLO_OP_LOG_PLUS_ONE,
                   cx_hlo_unary(b, CX_HLO_OP_EXPONENTIAL, d));
  e->out[0] = cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_EQ, x, y),
                            cx_hlo_binary(b, CX_HLO_OP_ADD, m, like(e, M_LN2)),
                            cx_hlo_binary(b, CX_HLO_OP_ADD, m, d));
}

// With copies of the sign, of a type that has one.
static void shift_right(cx_graph_emit *e)
{
  bool is_signed = e->node->out[0].shape.dtype <= CALX_I64;
  emit(e, is_signed ? CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC
                    : CX_HLO_OP_SHIFT_RIGHT_LOGICAL);
}

// ---- what a row of binary.def makes -----------------------------------------

// All element types.
static calx_tensor *promoted(const cx_graph_op *op, calx_tensor *x,
                             calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  cx_ops_promote(in, 2);
  return cx_ops_record(op, in, 2, NULL);
}

// Functions without integer values: integers and bool become f32 first.
static calx_tensor *floating(const cx_graph_op *op, calx_tensor *x,
                             calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  if (!cx_dtype_is_inexact(cx_ops_promote(in, 2))) {
    for (int i = 0; i < 2; i++) in[i] = calx_to_dtype(in[i], CALX_F32);
  }
  return cx_ops_record(op, in, 2, NULL);
}

// Functions that bool does not have.
static calx_tensor *numeric(const cx_graph_op *op, calx_tensor *x,
                            calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  if (cx_ops_promote(in, 2) == CALX_BOOL) {
    return cx_ops_invalid(
        "%s: bool has no such function; convert an operand "
        "with calx_to_dtype",
        op->name);
  }
  return cx_ops_record(op, in, 2, NULL);
}

// Functions of the bits of integers and bool.
static calx_tensor *bits(const cx_graph_op *op, calx_tensor *x, calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  if (cx_dtype_is_inexact(cx_ops_promote(in, 2))) {
    return cx_ops_no_bits(op->name, in[0]);
  }
  return cx_ops_record(op, in, 2, NULL);
}

// Shifts of the bits of integers.
static calx_tensor *shifted(const cx_graph_op *op, calx_tensor *x,
                            calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  calx_dtype dtype = cx_ops_promote(in, 2);
  if (cx_dtype_is_inexact(dtype)) return cx_ops_no_bits(op->name, in[0]);
  return dtype == CALX_BOOL ? numeric(op, x, y)
                            : cx_ops_record(op, in, 2, NULL);
}

// Functions of floating types alone.
static calx_tensor *stepped(const cx_graph_op *op, calx_tensor *x,
                            calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op->name, in, 2, &bad)) return bad;
  if (!cx_dtype_is_float(cx_ops_promote(in, 2))) {
    return cx_ops_invalid(
        "%s: %s, a floating type is wanted; convert an operand with "
        "calx_to_dtype",
        op->name, cx_graph_shape_str(cx_lazy_tensor_shape(in[0])));
  }
  return cx_ops_record(op, in, 2, NULL);
}

#define IN(i) cx_lazy_tape_in(t, i)
#define OUT cx_lazy_tape_out(t, 0)
#define EACH(first, second)                   \
  if (cx_tape_needs(t, 0)) give(t, 0, first); \
  if (cx_tape_needs(t, 1)) give(t, 1, second)

#define HLO(kind) emit(e, CX_HLO_OP_##kind)
// StableHLO's add of i1 is "or" and its multiply is "and"; XLA's are not.
#define HLO_OR_LOGIC(kind, logic)                                      \
  emit(e, e->node->out[0].shape.dtype == CALX_BOOL ? CX_HLO_OP_##logic \
                                                   : CX_HLO_OP_##kind)

#define CX_OPS_BINARY_WITH(op, emission, gradient) \
  ROW(op, emission, gradient, false)
#define CX_OPS_ARITHMETIC_WITH(op, emission, gradient) \
  ROW(op, emission, gradient, true)
#define ROW(op, emission, gradient, complex)                            \
  static void real_grad_##op(cx_lazy_tape *t)                           \
  {                                                                     \
    calx_tensor *g = t->out_grads[0];                                   \
    (void)g;                                                            \
    gradient;                                                           \
  }                                                                     \
  static void grad_##op(cx_lazy_tape *t)                                \
  {                                                                     \
    cx_ops_grad_holomorphic(t, real_grad_##op);                         \
  }                                                                     \
  static void emit_##op(cx_graph_emit *e)                               \
  {                                                                     \
    emission;                                                           \
  }                                                                     \
  CX_OPS_DEFINE(op, .infer = cx_ops_infer_broadcast, .grad = grad_##op, \
                .emit = emit_##op, .takes_complex = complex)

#define ENTRY(op, rule)                                  \
  calx_tensor *calx_##op(calx_tensor *x, calx_tensor *y) \
  {                                                      \
    return rule(&cx_ops_##op, x, y);                     \
  }

#define CX_OPS_BINARY(op, rule, emission, gradient) \
  CX_OPS_BINARY_WITH(op, emission, gradient)        \
  ENTRY(op, rule)
#define CX_OPS_ARITHMETIC(op, rule, emission, gradient) \
  CX_OPS_ARITHMETIC_WITH(op, emission, gradient)        \
  ENTRY(op, rule)

#define CX_OPS_COMPARISON(op, direction) COMPARE(op, direction, false)
#define CX_OPS_EQUALITY(op, direction) COMPARE(op, direction, true)
#define COMPARE(op, direction, complex)                                 \
  static void emit_##op(cx_graph_emit *e)                               \
  {                                                                     \
    e->out[0] = cx_hlo_compare(e->b, CX_HLO_##direction, operand(e, 0), \
                               operand(e, 1));                          \
  }                                                                     \
  CX_OPS_DEFINE(op, .infer = infer_compare, .emit = emit_##op,          \
                .takes_complex = complex)                               \
  ENTRY(op, promoted)
#include "ops/binary.def"

// ---- pow and where ---------------------------------------------------------

// Squares and cubes are products and half powers are roots, which are exact
// where the result can be.
static cx_hlo_value *known_power(const cx_graph_emit *e, double c)
{
  cx_hlo_builder *b = e->b;
  cx_hlo_value *x = operand(e, 0);
  const cx_graph_shape *s = &e->node->out[0].shape;
  cx_hlo_elem elem = cx_hlo_elem_of(s->dtype);
  if (c == 1) return x;
  if (c == 2) return cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, x, x);
  if (c == 3) {
    cx_hlo_value *two_x = cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, x, x);
    return cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, two_x, x);
  }
  if (!cx_dtype_is_inexact(s->dtype)) return NULL;
  if (c == 0.5) return cx_hlo_unary(b, CX_HLO_OP_SQRT, x);
  if (c == -0.5) return cx_hlo_unary(b, CX_HLO_OP_RSQRT, x);
  if (c == -1) {
    return cx_hlo_binary(b, CX_HLO_OP_DIVIDE, cx_ops_emit_splat(e, elem, s, 1),
                         x);
  }
  return NULL;
}

typedef struct pow_attrs {
  double constant;  // the exponent, when it is one
  uint64_t is_constant;
} pow_attrs;

static void emit_pow(cx_graph_emit *e)
{
  const pow_attrs *a = e->attrs;
  if (a->is_constant) e->out[0] = known_power(e, a->constant);
  if (e->out[0] == NULL) emit(e, CX_HLO_OP_POWER);
}

static void emit_where(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_select(e->b, operand(e, 0), operand(e, 1), operand(e, 2));
}

static void describe_pow(const void *attrs, cx_text *out)
{
  const pow_attrs *a = attrs;
  if (a->is_constant)
    cx_text_format(out, "exponent %g", a->constant);
  else
    cx_text_append(out, "an exponent that is no constant");
}

CX_OPS_DEFINE(pow, .attr_size = sizeof(pow_attrs),
              .infer = cx_ops_infer_broadcast, .grad = grad_pow,
              .emit = emit_pow, .describe = describe_pow, .takes_complex = true)

CX_OPS_DEFINE(where, .infer = infer_where, .grad = grad_where,
              .emit = emit_where, .takes_complex = true)

// ---- entries ----------------------------------------------------------------

// Multiplies y by the option's factor. False: the public function returns *out.
static bool with_alpha(const char *op, calx_tensor **y,
                       const calx_add_options *o, calx_tensor **out)
{
  if (o == NULL) return true;
  if (!cx_ops_options_fit(op, o->size, sizeof *o, out)) return false;
  if (cx_is_default(o->alpha)) return true;
  // 1 keeps a bool; of other types it is a number like any, which no program
  // contains.
  bool is_bool = *y != NULL && cx_lazy_tensor_shape(*y)->dtype == CALX_BOOL;
  if (is_bool && o->alpha == 1) return true;
  if (cx_ops_unfit(op, y, 1, out)) return false;
  bool whole = o->alpha == floor(o->alpha) && fabs(o->alpha) < 0x1p63;
  *y = calx_mul(
      *y, whole ? calx_scalar_int((int64_t)o->alpha) : calx_scalar(o->alpha));
  return true;
}

calx_tensor *calx_add_with(calx_tensor *x, calx_tensor *y,
                           const calx_add_options *options)
{
  calx_tensor *bad;
  if (!with_alpha("add", &y, options, &bad)) return bad;
  return promoted(&cx_ops_add, x, y);
}

calx_tensor *calx_sub_with(calx_tensor *x, calx_tensor *y,
                           const calx_add_options *options)
{
  calx_tensor *bad;
  if (!with_alpha("sub", &y, options, &bad)) return bad;
  calx_tensor *in[2] = { x, y };
  if (cx_ops_unfit("sub", in, 2, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->dtype == CALX_BOOL &&
      cx_lazy_tensor_shape(y)->dtype == CALX_BOOL) {
    return cx_ops_invalid(
        "sub: two bool operands have no difference; use calx_ne for exclusive "
        "or");
  }
  return promoted(&cx_ops_sub, x, y);
}

static bool is_whole(const calx_tensor *t)
{
  return !cx_dtype_is_inexact(cx_lazy_tensor_shape(t)->dtype);
}

calx_tensor *calx_pow(calx_tensor *x, calx_tensor *y)
{
  calx_tensor *none = NULL;
  const bool by_number = y != NULL && cx_lazy_tensor_is(y, CX_LAZY_T_WEAK);
  CX_OPS_AUTOCAST(CX_OPS_F32, by_number ? &x : &none);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("pow", in, 2, &bad)) return bad;
  pow_attrs a = { 0, 0 };
  double c;
  if (cx_ops_weak_number(y, false, &c) && c < 0 && is_whole(x) && is_whole(y)) {
    return cx_ops_invalid(
        "pow: integers to negative integer powers are not allowed: %s to the "
        "power %g; convert it with calx_to_dtype(x, CALX_F32)",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)), c);
  }
  if (cx_ops_weak_number(y, false, &c) && c * 2 == floor(c * 2) &&
      fabs(c) < 1e6) {
    a = (pow_attrs){ c, 1 };
    calx_tensor *n = cx_ops_number(c);
    // An integer keeps its category: i64 to the 2 is i64.
    in[1] = cx_lazy_tensor_shape(y)->dtype == CALX_I64
                ? cx_ops_weak_as(n, CALX_I64, NULL)
                : n;
    if (in[1] != n) cx_lazy_tensor_mark(in[1], CX_LAZY_T_WEAK);
  }
  cx_ops_promote(in, 2);
  return cx_ops_record(&cx_ops_pow, in, 2, &a);
}

calx_tensor *calx_where(calx_tensor *condition, calx_tensor *x, calx_tensor *y)
{
  calx_tensor *in[3] = { condition, x, y }, *bad;
  if (cx_ops_unfit("where", in, 3, &bad)) return bad;
  if (cx_lazy_tensor_shape(condition)->dtype != CALX_BOOL) {
    return cx_ops_invalid(
        "where: the condition is %s, bool is wanted; convert it with "
        "calx_to_dtype(condition, CALX_BOOL)",
        cx_graph_shape_str(cx_lazy_tensor_shape(condition)));
  }
  calx_dtype dtype = cx_ops_promote(in + 1, 2);
  calx_status *status = cx_ops_check_weak("where", x, dtype);
  if (status == NULL) status = cx_ops_check_weak("where", y, dtype);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return cx_ops_record(&cx_ops_where, in, 3, NULL);
}
