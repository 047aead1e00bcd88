// ops/divide: true division, and quotients rounded to integers.
#include "base/dtype.h"
#include "ops/ops.h"

typedef struct divide_attrs {
  uint32_t rounding;  // calx_rounding
} divide_attrs;

// The derivative of a step function is 0 where there is one.
static void grad_div_rounded(cx_lazy_tape *t)
{
  for (uint32_t i = 0; i < 2; i++) {
    if (cx_tape_needs(t, i)) {
      t->in_grads[i] = cx_ops_zeros_like(cx_lazy_tape_in(t, i));
    }
  }
}

// ---- emission ---------------------------------------------------------------

static cx_hlo_value *like(const cx_graph_emit *e, double v)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  return cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, v);
}

static cx_hlo_value *two(const cx_graph_emit *e, cx_hlo_op_kind kind,
                         cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(e->b, kind, x, y);
}

// For floats the quotient of the exactly divisible part, whose rounding error
// is below a half, is rounded to the nearest integer; x/y where y is 0.
static cx_hlo_value *floor_floats(const cx_graph_emit *e, cx_hlo_value *x,
                                  cx_hlo_value *y)
{
  cx_hlo_value *rest = two(e, CX_HLO_OP_REMAINDER, x, y);
  cx_hlo_value *q = two(e, CX_HLO_OP_SUBTRACT, x, rest);
  q = cx_hlo_unary(e->b, CX_HLO_OP_ROUND_NEAREST_EVEN,
                   two(e, CX_HLO_OP_DIVIDE, q, y));
  cx_hlo_value *lower = two(e, CX_HLO_OP_SUBTRACT, q, like(e, 1));
  q = cx_hlo_select(e->b, cx_ops_emit_opposed(e, rest, y, like(e, 0)), lower,
                    q);
  cx_hlo_value *zero = cx_hlo_compare(e->b, CX_HLO_EQ, y, like(e, 0));
  return cx_hlo_select(e->b, zero, two(e, CX_HLO_OP_DIVIDE, x, y), q);
}

static void emit_div_rounded(cx_graph_emit *e)
{
  const divide_attrs *a = e->attrs;
  const cx_graph_shape *s = &e->node->out[0].shape;
  bool floats = cx_dtype_is_float(s->dtype);
  bool down = a->rounding == CALX_ROUND_FLOOR;
  cx_hlo_value *x = cx_ops_emit_expand(e, e->in[0], s);
  cx_hlo_value *y = cx_ops_emit_expand(e, e->in[1], s);
  cx_hlo_value *q = two(e, CX_HLO_OP_DIVIDE, x, y);
  if (floats) {
    e->out[0] =
        down ? floor_floats(e, x, y) : cx_ops_emit_trunc(e, q, like(e, 0));
  } else if (!down || cx_dtype_is_unsigned(s->dtype)) {
    e->out[0] = q;
  } else {
    cx_hlo_value *rest = two(e, CX_HLO_OP_REMAINDER, x, y);
    e->out[0] = cx_hlo_select(e->b, cx_ops_emit_opposed(e, rest, y, like(e, 0)),
                              two(e, CX_HLO_OP_SUBTRACT, q, like(e, 1)), q);
  }
}

static void describe_div_rounded(const void *attrs, cx_text *out)
{
  const divide_attrs *a = attrs;
  cx_text_append(out, a->rounding == CALX_ROUND_FLOOR ? "floor" : "trunc");
}

CX_OPS_DEFINE(div_rounded, .attr_size = sizeof(divide_attrs),
              .infer = cx_ops_infer_broadcast, .grad = grad_div_rounded,
              .emit = emit_div_rounded, .describe = describe_div_rounded)

// ---- entries ----------------------------------------------------------------

calx_tensor *calx_div(calx_tensor *x, calx_tensor *y)
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("div", in, 2, &bad)) return bad;
  if (!cx_dtype_is_inexact(cx_ops_promote(in, 2))) {
    in[0] = calx_to_dtype(in[0], CALX_F32);
    in[1] = calx_to_dtype(in[1], CALX_F32);
  }
  return cx_ops_record(&cx_ops_div, in, 2, NULL);
}

calx_tensor *calx_div_with(calx_tensor *x, calx_tensor *y,
                           const calx_div_options *o)
{
  if (o == NULL || o->rounding == CALX_ROUND_NONE) return calx_div(x, y);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("div", in, 2, &bad)) return bad;
  if (!cx_ops_options_fit("div", o->size, sizeof *o, &bad)) return bad;
  if (o->rounding != CALX_ROUND_TRUNC && o->rounding != CALX_ROUND_FLOOR) {
    return cx_ops_invalid(
        "div: rounding %d is none of CALX_ROUND_NONE, CALX_ROUND_TRUNC, "
        "CALX_ROUND_FLOOR",
        (int)o->rounding);
  }
  const divide_attrs a = { (uint32_t)o->rounding };
  calx_tensor *promoted[2] = { x, y };
  const calx_dtype type = cx_ops_promote(promoted, 2);
  double divisor;
  if (!cx_dtype_is_float(type) && cx_ops_weak_number(y, false, &divisor) &&
      divisor == 0) {
    return cx_ops_invalid(
        "div: %s divided by the integer 0, rounded to integers, has no value; "
        "convert it with calx_to_dtype(x, CALX_F32) for infinity",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  const bool half = type == CALX_BF16 || type == CALX_F16;
  if (!half || o->rounding != CALX_ROUND_FLOOR) {
    return cx_ops_record(&cx_ops_div_rounded, promoted, 2, &a);
  }
  // As PyTorch: the quotient is an f32 until it has been rounded down.
  in[0] = calx_to_dtype(x, CALX_F32);
  in[1] = calx_to_dtype(y, CALX_F32);
  return calx_to_dtype(cx_ops_record(&cx_ops_div_rounded, in, 2, &a), type);
}
