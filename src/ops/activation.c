// ops/activation: softmax and its logarithm. The greatest element is subtracted
// first, so that the exponentials do not overflow.
#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct softmax_attrs {
  int64_t dim;
} softmax_attrs;

static calx_tensor *sum_along(const cx_lazy_tape *t, calx_tensor *x)
{
  const softmax_attrs *a = t->attrs;
  if (cx_lazy_tensor_shape(x)->rank == 0) return x;
  calx_reduce_options o = { .size = sizeof o,
                            .dims = calx_dims_of(&a->dim, 1),
                            .keepdim = true };
  return calx_sum_with(x, &o);
}

// y = x - log sum e^x: dx = g - e^y sum g
static void grad_log_softmax(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0], *y = cx_lazy_tape_out(t, 0);
  t->in_grads[0] =
      calx_sub_with(g, calx_mul(calx_exp(y), sum_along(t, g)), NULL);
}

// y = e^x / sum e^x: dx = y (g - sum(g y))
static void grad_softmax(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0], *y = cx_lazy_tape_out(t, 0);
  calx_tensor *sum = sum_along(t, calx_mul(g, y));
  t->in_grads[0] = calx_mul(y, calx_sub_with(g, sum, NULL));
}

// ---- emission ---------------------------------------------------------------

// The reduction of x along the dimension, repeated along it again.
static cx_hlo_value *along(const cx_graph_emit *e, cx_hlo_op_kind kind,
                           cx_hlo_value *x, cx_hlo_value *init)
{
  const softmax_attrs *a = e->attrs;
  const cx_graph_shape *s = cx_in(e->node, 0);
  if (s->rank == 0) return x;
  cx_hlo_value *r = cx_hlo_reduce_with(e->b, kind, x, init, &a->dim, 1);
  int64_t at[CALX_MAX_RANK];
  for (uint32_t i = 0, n = 0; i < s->rank; i++) {
    if (i != a->dim) at[n++] = i;
  }
  return cx_hlo_broadcast_in_dim(e->b, r, s->dims, s->rank, at);
}

// x minus its greatest element, the exponentials of these differences, and
// their sum.
static cx_hlo_value *shifted(const cx_graph_emit *e, cx_hlo_elem wide,
                             cx_hlo_value **out_exp, cx_hlo_value **out_sum)
{
  cx_hlo_builder *b = e->b;
  cx_hlo_value *x = cx_ops_emit_cast(e, e->in[0], wide);
  cx_hlo_value *top = along(e, CX_HLO_OP_MAXIMUM, x, cx_hlo_lowest(b, wide));
  x = cx_hlo_binary(b, CX_HLO_OP_SUBTRACT, x, top);
  *out_exp = cx_hlo_unary(b, CX_HLO_OP_EXPONENTIAL, x);
  cx_hlo_value *zero = cx_hlo_splat(b, (cx_hlo_type){ .elem = wide }, 0);
  *out_sum = along(e, CX_HLO_OP_ADD, *out_exp, zero);
  return x;
}

static void emit_log_softmax(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  cx_hlo_value *exp, *sum;
  cx_hlo_value *x = shifted(e, cx_ops_emit_wide(s->dtype), &exp, &sum);
  cx_hlo_value *log = cx_hlo_unary(e->b, CX_HLO_OP_LOG, sum);
  x = cx_hlo_binary(e->b, CX_HLO_OP_SUBTRACT, x, log);
  e->out[0] = cx_ops_emit_cast(e, x, cx_hlo_elem_of(s->dtype));
}

static void emit_softmax(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  cx_hlo_value *exp, *sum;
  shifted(e, cx_ops_emit_wide(s->dtype), &exp, &sum);
  cx_hlo_value *y = cx_hlo_binary(e->b, CX_HLO_OP_DIVIDE, exp, sum);
  e->out[0] = cx_ops_emit_cast(e, y, cx_hlo_elem_of(s->dtype));
}

static void describe_softmax(const void *attrs, cx_text *out)
{
  cx_text_format(out, "dim %lld",
                 (long long)((const softmax_attrs *)attrs)->dim);
}

#define OP(op)                                                 \
  CX_OPS_DEFINE(op, .attr_size = sizeof(softmax_attrs),        \
                .infer = cx_ops_infer_same, .grad = grad_##op, \
                .emit = emit_##op, .describe = describe_softmax)

OP(log_softmax)
OP(softmax)

// ---- entries ----------------------------------------------------------------

static calx_tensor *record(const cx_graph_op *op, calx_tensor *x, int dim)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op->name, &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d;
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim(op->name, "dim", dim, s->rank, s);
  }
  if (!cx_dtype_is_float(s->dtype)) {
    return cx_ops_invalid(
        "%s: %s is not floating; convert it with calx_to_dtype", op->name,
        cx_graph_shape_str(s));
  }
  softmax_attrs a = { d };
  return cx_ops_record(op, &x, 1, &a);
}

calx_tensor *calx_log_softmax(calx_tensor *x, int dim)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  return record(&cx_ops_log_softmax, x, dim);
}

calx_tensor *calx_softmax(calx_tensor *x, int dim)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  return record(&cx_ops_softmax, x, dim);
}
