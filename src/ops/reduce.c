// ops/reduce: sum, mean, amax, amin over a set of dimensions.
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct reduce_attrs {
  uint32_t dims;  // bit i: dimension i is reduced
  uint32_t keepdim;
} reduce_attrs;

static bool is_reduced(const reduce_attrs *a, uint32_t i)
{
  return (a->dims >> i & 1) != 0;
}

static calx_status *infer_reduce(cx_graph_node *node)
{
  const reduce_attrs *a = node->attrs;
  const cx_graph_shape *in = cx_in(node, 0);
  cx_graph_shape *out = &node->out[0].shape;
  memset(out, 0, sizeof *out);
  out->dtype = in->dtype;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (!is_reduced(a, i))
      out->dims[out->rank++] = in->dims[i];
    else if (a->keepdim)
      out->dims[out->rank++] = 1;
  }
  return NULL;
}

// How many elements are reduced to one.
static int64_t reduced_count(const reduce_attrs *a, const cx_graph_shape *in)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (is_reduced(a, i)) n *= in->dims[i];
  }
  return n;
}

static calx_status *infer_extreme(cx_graph_node *node)
{
  if (reduced_count(node->attrs, cx_in(node, 0)) == 0) {
    return cx_ops_error(node,
                        "no element to choose from: a reduced dimension has "
                        "size 0; name others with .dims");
  }
  return infer_reduce(node);
}

// ---- gradients --------------------------------------------------------------

// A tensor of the result's shape, reshaped to keep the reduced dimensions with
// size 1.
static calx_tensor *with_dims(const cx_lazy_tape *t, calx_tensor *r)
{
  const reduce_attrs *a = t->attrs;
  cx_graph_shape s = *cx_in(t->node, 0);
  for (uint32_t i = 0; i < s.rank; i++) {
    if (is_reduced(a, i)) s.dims[i] = 1;
  }
  return cx_ops_reshape_to(r, &s);
}

// The node's reduction, with keepdim.
static calx_reduce_options kept(const cx_lazy_tape *t)
{
  int64_t dims[CALX_MAX_RANK];
  size_t n = 0;
  for (uint32_t i = 0; i < cx_in(t->node, 0)->rank; i++) {
    if (is_reduced(t->attrs, i)) dims[n++] = i;
  }
  return (calx_reduce_options){ .size = sizeof(calx_reduce_options),
                                .dims = calx_dims_of(dims, n),
                                .keepdim = true };
}

static void grad_sum(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_expand(with_dims(t, t->out_grads[0]),
                               cx_ops_dims_of(cx_in(t->node, 0)));
}

static void grad_mean(cx_lazy_tape *t)
{
  double n = (double)reduced_count(t->attrs, cx_in(t->node, 0));
  calx_tensor *g = calx_div(t->out_grads[0], cx_ops_number(n));
  t->in_grads[0] =
      calx_expand(with_dims(t, g), cx_ops_dims_of(cx_in(t->node, 0)));
}

// The product of the other elements: of one zero that of all others, of several
// zeros 0.
static void real_grad_prod(cx_lazy_tape *t)
{
  calx_tensor *x = cx_lazy_tape_in(t, 0);
  calx_tensor *zero = calx_eq(x, cx_ops_number(0));
  calx_tensor *others = calx_where(zero, cx_ops_number(1), x);
  calx_reduce_options o = kept(t);
  calx_tensor *product = calx_prod_with(others, &o);
  calx_tensor *zeros =
      calx_sum_with(calx_to_dtype(zero, cx_lazy_tensor_shape(x)->dtype), &o);
  calx_tensor *none = calx_eq(zeros, cx_ops_number(0));
  calx_tensor *only = calx_bitwise_and(zero, calx_eq(zeros, cx_ops_number(1)));
  calx_tensor *rest =
      calx_where(calx_bitwise_or(none, only), product, cx_ops_number(0));
  calx_tensor *factor =
      calx_where(zero, calx_where(only, rest, cx_ops_number(0)),
                 calx_where(none, calx_div(rest, others), cx_ops_number(0)));
  t->in_grads[0] = calx_mul(with_dims(t, t->out_grads[0]), factor);
}

static void grad_prod(cx_lazy_tape *t)
{
  cx_ops_grad_holomorphic(t, real_grad_prod);
}

// All elements that equal the result share the gradient. A NaN equals nothing,
// so 0/0 makes the gradient NaN there, as in PyTorch.
static void grad_extreme(cx_lazy_tape *t)
{
  calx_tensor *x = cx_lazy_tape_in(t, 0);
  calx_tensor *equal = calx_eq(x, with_dims(t, cx_lazy_tape_out(t, 0)));
  calx_tensor *mask = calx_to_dtype(equal, cx_lazy_tensor_shape(x)->dtype);
  calx_reduce_options o = kept(t);
  calx_tensor *count = o.dims.count != 0 ? calx_sum_with(mask, &o) : mask;
  calx_tensor *g = calx_mul(with_dims(t, t->out_grads[0]), mask);
  t->in_grads[0] = calx_div(g, count);
}

// ---- emission ---------------------------------------------------------------

static cx_hlo_value *emit_over(cx_graph_emit *e, cx_hlo_op_kind kind,
                               cx_hlo_value *init, cx_hlo_value *x)
{
  const reduce_attrs *a = e->attrs;
  int64_t dims[CALX_MAX_RANK];
  size_t n = 0;
  for (uint32_t i = 0; i < cx_in(e->node, 0)->rank; i++) {
    if (is_reduced(a, i)) dims[n++] = i;
  }
  if (n == 0) return x;
  return cx_hlo_reduce_with(e->b, kind, x, init, dims, n);
}

static void finish(cx_graph_emit *e, cx_hlo_value *r)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  r = cx_ops_emit_cast(e, r, cx_hlo_elem_of(s->dtype));
  e->out[0] = cx_hlo_reshape(e->b, r, s->dims, s->rank);
}

static cx_hlo_value *wide_sum(cx_graph_emit *e)
{
  cx_hlo_elem wide = cx_ops_emit_wide(cx_in(e->node, 0)->dtype);
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = wide }, 0);
  return emit_over(e, CX_HLO_OP_ADD, zero, cx_ops_emit_cast(e, e->in[0], wide));
}

static void emit_sum(cx_graph_emit *e)
{
  finish(e, wide_sum(e));
}

static void emit_mean(cx_graph_emit *e)
{
  const cx_graph_shape *in = cx_in(e->node, 0);
  cx_hlo_value *sum = wide_sum(e);
  cx_graph_shape like = { .dtype = in->dtype };
  const cx_hlo_type *t = cx_hlo_value_type(sum);
  like.rank = (uint32_t)t->rank;
  for (size_t i = 0; i < t->rank; i++) like.dims[i] = t->dims[i];
  cx_hlo_value *n = cx_ops_emit_splat(e, cx_ops_emit_wide(in->dtype), &like,
                                      (double)reduced_count(e->attrs, in));
  finish(e, cx_hlo_binary(e->b, CX_HLO_OP_DIVIDE, sum, n));
}

static void emit_prod(cx_graph_emit *e)
{
  cx_hlo_elem wide = cx_ops_emit_wide(cx_in(e->node, 0)->dtype);
  cx_hlo_value *one = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = wide }, 1);
  finish(e, emit_over(e, CX_HLO_OP_MULTIPLY, one,
                      cx_ops_emit_cast(e, e->in[0], wide)));
}

// All or any of bools.
static void emit_logic(cx_graph_emit *e, cx_hlo_op_kind kind, bool empty)
{
  cx_hlo_type type = { .elem = CX_HLO_I1 };
  finish(e, emit_over(e, kind, cx_hlo_splat_int(e->b, type, empty), e->in[0]));
}

static void emit_all(cx_graph_emit *e)
{
  emit_logic(e, CX_HLO_OP_AND, true);
}

static void emit_any(cx_graph_emit *e)
{
  emit_logic(e, CX_HLO_OP_OR, false);
}

static void emit_amax(cx_graph_emit *e)
{
  cx_hlo_elem elem = cx_hlo_elem_of(cx_in(e->node, 0)->dtype);
  finish(e,
         emit_over(e, CX_HLO_OP_MAXIMUM, cx_hlo_lowest(e->b, elem), e->in[0]));
}

static void emit_amin(cx_graph_emit *e)
{
  cx_hlo_elem elem = cx_hlo_elem_of(cx_in(e->node, 0)->dtype);
  finish(e,
         emit_over(e, CX_HLO_OP_MINIMUM, cx_hlo_highest(e->b, elem), e->in[0]));
}

static void describe_reduce(const void *attrs, cx_text *out)
{
  const reduce_attrs *a = attrs;
  cx_text_append(out, "dims (");
  for (uint32_t i = 0, n = 0; i < CALX_MAX_RANK; i++) {
    if (is_reduced(a, i)) cx_text_format(out, "%s%u", n++ ? ", " : "", i);
  }
  cx_text_append(out, a->keepdim ? "), keepdim" : ")");
}

#define OP(op, rule, gradient, complex)                               \
  CX_OPS_DEFINE(op, .attr_size = sizeof(reduce_attrs), .infer = rule, \
                .grad = gradient, .emit = emit_##op,                  \
                .describe = describe_reduce, .takes_complex = complex)

OP(sum, infer_reduce, grad_sum, true)
OP(mean, infer_reduce, grad_mean, true)
OP(prod, infer_reduce, grad_prod, true)
OP(all, infer_reduce, NULL, false)
OP(any, infer_reduce, NULL, false)
OP(amax, infer_extreme, grad_extreme, false)
OP(amin, infer_extreme, grad_extreme, false)

// ---- entries ----------------------------------------------------------------

static bool read_options(const cx_graph_op *op, const calx_tensor *x,
                         const calx_reduce_options *o, reduce_attrs *a,
                         calx_tensor **out)
{
  static const calx_reduce_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  *a = (reduce_attrs){ .keepdim = o->keepdim };
  if (!cx_ops_options_fit(op->name, o->size, sizeof *o, out)) return false;
  if (o->dims.count == 0) a->dims = (UINT32_C(1) << rank) - 1;
  // PyTorch takes a dimension of a scalar, too.
  if (o->dims.count > (rank == 0 ? 1 : rank)) {
    *out = cx_ops_invalid("%s: %zu dimensions are given, %s has %u", op->name,
                          o->dims.count,
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)), rank);
    return false;
  }
  for (size_t i = 0; i < o->dims.count; i++) {
    uint32_t d;
    if (!cx_ops_dim(o->dims.values[i], rank, &d)) {
      *out = cx_ops_no_dim(op->name, "dim", o->dims.values[i], rank,
                           cx_lazy_tensor_shape(x));
      return false;
    }
    if (is_reduced(a, d)) {
      *out = cx_ops_invalid("%s: dim %lld of %s is given twice", op->name,
                            (long long)o->dims.values[i],
                            cx_graph_shape_str(cx_lazy_tensor_shape(x)));
      return false;
    }
    a->dims |= UINT32_C(1) << d;
  }
  if (rank == 0) a->dims = 0;
  return true;
}

static calx_tensor *reduce(const cx_graph_op *op, calx_tensor *x,
                           const calx_reduce_options *o)
{
  calx_tensor *bad;
  reduce_attrs a;
  if (cx_ops_unfit(op->name, &x, 1, &bad) ||
      !read_options(op, x, o, &a, &bad)) {
    return bad;
  }
  return cx_ops_record(op, &x, 1, &a);
}

calx_tensor *calx_sum_with(calx_tensor *x, const calx_reduce_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit("sum", &x, 1, &bad)) return bad;
  bool is_float = cx_dtype_is_inexact(cx_lazy_tensor_shape(x)->dtype);
  return reduce(&cx_ops_sum, is_float ? x : calx_to_dtype(x, CALX_I64), o);
}

calx_tensor *calx_mean_with(calx_tensor *x, const calx_reduce_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit("mean", &x, 1, &bad)) return bad;
  if (!cx_dtype_is_inexact(cx_lazy_tensor_shape(x)->dtype)) {
    return cx_ops_invalid(
        "mean: %s is not floating; convert it with calx_to_dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  return reduce(&cx_ops_mean, x, o);
}

calx_tensor *calx_amax_with(calx_tensor *x, const calx_reduce_options *o)
{
  return reduce(&cx_ops_amax, x, o);
}

calx_tensor *calx_amin_with(calx_tensor *x, const calx_reduce_options *o)
{
  return reduce(&cx_ops_amin, x, o);
}

calx_tensor *calx_prod_with(calx_tensor *x, const calx_reduce_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  if (cx_ops_unfit("prod", &x, 1, &bad)) return bad;
  bool is_float = cx_dtype_is_inexact(cx_lazy_tensor_shape(x)->dtype);
  return reduce(&cx_ops_prod, is_float ? x : calx_to_dtype(x, CALX_I64), o);
}

calx_tensor *calx_all_with(calx_tensor *x, const calx_reduce_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit("all", &x, 1, &bad)) return bad;
  return reduce(&cx_ops_all, calx_to_dtype(x, CALX_BOOL), o);
}

calx_tensor *calx_any_with(calx_tensor *x, const calx_reduce_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit("any", &x, 1, &bad)) return bad;
  return reduce(&cx_ops_any, calx_to_dtype(x, CALX_BOOL), o);
}
