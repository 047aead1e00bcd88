// ops/argreduce: the extreme element along one dimension and where it is.
//
// One variadic reduction carries (value, index); its combiner is a total order
// (NaN first, then the value, then the lower index), so any order of reducing
// gives the first of equals.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/ops.h"

typedef struct arg_attrs {
  uint32_t dim;
  uint32_t keepdim;
} arg_attrs;

static calx_status *infer_arg(cx_graph_node *node)
{
  const arg_attrs *a = node->attrs;
  const cx_graph_shape *in = cx_in(node, 0);
  cx_graph_shape *out = &node->out[0].shape;
  memset(out, 0, sizeof *out);
  out->dtype = in->dtype;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (i != a->dim)
      out->dims[out->rank++] = in->dims[i];
    else if (a->keepdim)
      out->dims[out->rank++] = 1;
  }
  node->out[1].shape = *out;
  node->out[1].shape.dtype = CALX_I64;
  return NULL;
}

// The gradient goes to the element that was chosen.
static void grad_arg(cx_lazy_tape *t)
{
  const arg_attrs *a = t->attrs;
  if (t->out_grads[0] == NULL) return;
  cx_graph_shape s = *cx_in(t->node, 0);
  calx_tensor *g = t->out_grads[0];
  if (s.rank == 0) {
    t->in_grads[0] = g;
    return;
  }
  int64_t n = s.dims[a->dim];
  s.dims[a->dim] = 1;
  calx_tensor *index = cx_ops_reshape_to(cx_lazy_tape_out(t, 1), &s);
  calx_tensor *here = cx_ops_points_at(index, a->dim, n, s.rank);
  t->in_grads[0] = calx_where(here, cx_ops_reshape_to(g, &s), cx_ops_number(0));
}

// ---- emission ---------------------------------------------------------------

typedef struct chooser {
  cx_hlo_direction better;
  bool is_float;
} chooser;

static cx_hlo_value *both(cx_hlo_builder *b, cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(b, CX_HLO_OP_AND, x, y);
}

static cx_hlo_value *either(cx_hlo_builder *b, cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(b, CX_HLO_OP_OR, x, y);
}

// args: value a, index a, value b, index b.
static void choose(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                   cx_hlo_value **out)
{
  const chooser *c = user;
  cx_hlo_value *x = args[0], *y = args[2];
  cx_hlo_value *wins = cx_hlo_compare(b, c->better, x, y);
  cx_hlo_value *tie = cx_hlo_compare(b, CX_HLO_EQ, x, y);
  if (c->is_float) {
    cx_hlo_value *x_nan = cx_hlo_compare(b, CX_HLO_NE, x, x);
    cx_hlo_value *y_nan = cx_hlo_compare(b, CX_HLO_NE, y, y);
    cx_hlo_value *y_not = cx_hlo_compare(b, CX_HLO_EQ, y, y);
    wins = either(b, wins, both(b, x_nan, y_not));
    tie = either(b, tie, both(b, x_nan, y_nan));
  }
  cx_hlo_value *first = cx_hlo_compare(b, CX_HLO_LT, args[1], args[3]);
  wins = either(b, wins, both(b, tie, first));
  out[0] = cx_hlo_select(b, wins, x, y);
  out[1] = cx_hlo_select(b, wins, args[1], args[3]);
}

static void emit_arg(cx_graph_emit *e, cx_hlo_direction better)
{
  const arg_attrs *a = e->attrs;
  const cx_graph_shape *in = cx_in(e->node, 0), *out = &e->node->out[0].shape;
  cx_hlo_builder *b = e->b;
  cx_hlo_elem elem = cx_hlo_elem_of(in->dtype);
  if (in->rank == 0) {
    e->out[0] = e->in[0];
    e->out[1] = cx_hlo_splat_int(b, (cx_hlo_type){ .elem = CX_HLO_I64 }, 0);
    return;
  }
  const bool wide = cx_ops_index_dtype(in->dims[a->dim]) == CALX_I64;
  cx_hlo_type index = { .elem = wide ? CX_HLO_I64 : CX_HLO_I32 };
  cx_hlo_type indices = { index.elem, in->rank, in->dims };
  cx_hlo_value *xs[2] = { e->in[0], cx_hlo_iota(b, indices, a->dim) };
  cx_hlo_value *inits[2] = {
    better == CX_HLO_GT ? cx_hlo_lowest(b, elem) : cx_hlo_highest(b, elem),
    cx_hlo_splat_int(b, index, wide ? INT64_MAX : INT32_MAX)
  };
  chooser c = { better, cx_dtype_is_float(in->dtype) };
  int64_t dim = a->dim;
  cx_hlo_value *r[2] = { NULL, NULL };
  cx_hlo_reduce(b, 2, xs, inits, &dim, 1, choose, &c, r);
  e->out[0] = cx_hlo_reshape(b, r[0], out->dims, out->rank);
  e->out[1] = cx_hlo_convert(b, r[1], CX_HLO_I64);
  e->out[1] = cx_hlo_reshape(b, e->out[1], out->dims, out->rank);
}

static void emit_max_dim(cx_graph_emit *e)
{
  emit_arg(e, CX_HLO_GT);
}
static void emit_min_dim(cx_graph_emit *e)
{
  emit_arg(e, CX_HLO_LT);
}

static void describe_arg(const void *attrs, cx_text *out)
{
  const arg_attrs *a = attrs;
  cx_text_format(out, "dim %u%s", a->dim, a->keepdim ? ", keepdim" : "");
}

CX_OPS_DEFINE(max_dim, .attr_size = sizeof(arg_attrs), .infer = infer_arg,
              .grad = grad_arg, .emit = emit_max_dim, .describe = describe_arg)

CX_OPS_DEFINE(min_dim, .attr_size = sizeof(arg_attrs), .infer = infer_arg,
              .grad = grad_arg, .emit = emit_min_dim, .describe = describe_arg)

// ---- entries ----------------------------------------------------------------

// `name` is the public function's, for messages.
static calx_tensor *along(const cx_graph_op *op, const char *name,
                          calx_tensor *x, int64_t dim, bool keepdim,
                          calx_tensor **out_index)
{
  calx_tensor *outs[2] = { NULL, NULL };
  uint32_t d = 0;
  if (!cx_ops_unfit(name, &x, 1, &outs[0])) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(x);
    if (!cx_ops_dim(dim, s->rank, &d)) {
      outs[0] = cx_ops_no_dim(name, "dim", dim, s->rank, s);
    } else if (s->rank != 0 && s->dims[d] == 0) {
      outs[0] = cx_ops_invalid(
          "%s: dim %u of %s has size 0: there is no element to choose from",
          name, d, cx_graph_shape_str(s));
    } else {
      arg_attrs a = { d, keepdim };
      cx_lazy_call call = {
        .op = op, .in = &x, .n_in = 1, .n_out = 2, .attrs = &a
      };
      cx_lazy_apply(&call, outs);
    }
  }
  if (out_index != NULL) *out_index = outs[1] != NULL ? outs[1] : outs[0];
  return outs[0];
}

calx_tensor *calx_max_dim(calx_tensor *x, int dim, bool keepdim,
                          calx_tensor **out_index)
{
  return along(&cx_ops_max_dim, "max_dim", x, dim, keepdim, out_index);
}

calx_tensor *calx_min_dim(calx_tensor *x, int dim, bool keepdim,
                          calx_tensor **out_index)
{
  return along(&cx_ops_min_dim, "min_dim", x, dim, keepdim, out_index);
}

static calx_tensor *no_elements(const char *name, const calx_tensor *x)
{
  return cx_ops_invalid(
      "%s: %s has no element to choose from; name a dim whose size is not 0",
      name, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

static calx_tensor *flat(calx_tensor *x)
{
  int64_t all = -1;
  return calx_reshape(x, calx_dims_of(&all, 1));
}

static calx_tensor *arg(const cx_graph_op *op, const char *name, calx_tensor *x,
                        const calx_reduce_options *o)
{
  calx_tensor *bad, *index;
  if (cx_ops_unfit(name, &x, 1, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->dtype == CALX_BOOL) {
    return cx_ops_invalid("%s: %s has no order; convert it with calx_to_dtype",
                          name, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  size_t n = o != NULL ? o->dims.count : 0;
  if (n > 1) {
    return cx_ops_invalid(
        "%s: one dimension is wanted, or none for all elements "
        "of %s; %zu are given",
        name, cx_graph_shape_str(cx_lazy_tensor_shape(x)), n);
  }
  if (n == 1) {
    along(op, name, x, o->dims.values[0], o->keepdim, &index);
    return index;
  }
  if (calx_tensor_numel(x) == 0) return no_elements(name, x);
  along(op, name, flat(x), 0, false, &index);
  if (o == NULL || !o->keepdim) return index;
  cx_graph_shape ones = { .rank = cx_lazy_tensor_shape(x)->rank };
  for (uint32_t i = 0; i < ones.rank; i++) ones.dims[i] = 1;
  return cx_ops_reshape_to(index, &ones);
}

calx_tensor *calx_argmax_with(calx_tensor *x, const calx_reduce_options *o)
{
  return arg(&cx_ops_max_dim, "argmax", x, o);
}

calx_tensor *calx_argmin_with(calx_tensor *x, const calx_reduce_options *o)
{
  return arg(&cx_ops_min_dim, "argmin", x, o);
}

calx_tensor *calx_max(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("max", &x, 1, &bad)) return bad;
  if (calx_tensor_numel(x) == 0) return no_elements("max", x);
  return calx_amax_with(x, NULL);
}

calx_tensor *calx_min(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("min", &x, 1, &bad)) return bad;
  if (calx_tensor_numel(x) == 0) return no_elements("min", x);
  return calx_amin_with(x, NULL);
}
