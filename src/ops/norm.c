// ops/norm: batch normalisation. The training form is one op with the batch's
// statistics as further results; the other forms are compositions.
#include <string.h>

#include "base/dtype.h"
#include "base/options.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct norm_attrs {
  double eps;
} norm_attrs;

// x (N, C, …) -> y like x, mean (C), biased variance (C)
static calx_status *infer_batch_norm(cx_graph_node *node)
{
  const cx_graph_shape *x = cx_in(node, 0);
  node->out[0].shape = *x;
  for (uint32_t k = 1; k < 3; k++) {
    cx_graph_shape *s = &node->out[k].shape;
    memset(s, 0, sizeof *s);
    s->dtype = x->dtype;
    s->rank = 1;
    s->dims[0] = x->dims[1];
  }
  return NULL;
}

// (C) as (1, C, 1, …), to broadcast against x.
static calx_tensor *per_channel(calx_tensor *v, uint32_t rank)
{
  int64_t dims[CALX_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = 1;
  dims[1] = cx_lazy_tensor_shape(v)->dims[0];
  return calx_reshape(v, calx_dims_of(dims, rank));
}

size_t cx_ops_norm_dims(uint32_t rank, int64_t *out)
{
  size_t n = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (i != 1) out[n++] = i;
  }
  return n;
}

// Over all dimensions but 1: (C).
static calx_tensor *sum_channels(calx_tensor *x)
{
  int64_t dims[CALX_MAX_RANK];
  size_t n = cx_ops_norm_dims(cx_lazy_tensor_shape(x)->rank, dims);
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(dims, n) };
  return calx_sum_with(x, &o);
}

// With n elements a channel, h = (x - mean) rstd and g the gradient of y:
//   dx = rstd/n (n g - sum g - h sum(g h)), and the mean's and variance's own
//   gradients as those of a mean and of a mean of squares.
static void grad_batch_norm(cx_lazy_tape *t)
{
  const norm_attrs *a = t->attrs;
  const cx_graph_shape *s = cx_in(t->node, 0);
  double n =
      (double)(cx_graph_shape_numel(s) / (s->dims[1] != 0 ? s->dims[1] : 1));
  calx_tensor *x = cx_lazy_tape_in(t, 0);
  calx_tensor *mean = per_channel(cx_lazy_tape_out(t, 1), s->rank);
  calx_tensor *centred = cx_ops_minus(x, mean), *dx = NULL;
  if (t->out_grads[0] != NULL) {
    calx_tensor *g = t->out_grads[0];
    calx_tensor *var = cx_lazy_tape_out(t, 2);
    calx_tensor *rstd = per_channel(
        calx_rsqrt(cx_ops_plus(var, cx_ops_number(a->eps))), s->rank);
    calx_tensor *h = calx_mul(centred, rstd);
    calx_tensor *sum_g = per_channel(sum_channels(g), s->rank);
    calx_tensor *sum_gh = per_channel(sum_channels(calx_mul(g, h)), s->rank);
    calx_tensor *rest =
        calx_div(cx_ops_plus(sum_g, calx_mul(h, sum_gh)), cx_ops_number(n));
    dx = calx_mul(rstd, cx_ops_minus(g, rest));
  }
  if (t->out_grads[1] != NULL) {
    calx_tensor *g = per_channel(t->out_grads[1], s->rank);
    g = calx_expand(calx_div(g, cx_ops_number(n)), cx_ops_dims_of(s));
    dx = dx == NULL ? g : cx_ops_plus(dx, g);
  }
  if (t->out_grads[2] != NULL) {
    calx_tensor *g = per_channel(t->out_grads[2], s->rank);
    g = calx_mul(calx_mul(g, cx_ops_number(2 / n)), centred);
    dx = dx == NULL ? g : cx_ops_plus(dx, g);
  }
  t->in_grads[0] = dx;
}

// ---- emission: statistics in f32 for narrower types -------------------------

static cx_hlo_value *channel_mean(const cx_graph_emit *e, cx_hlo_value *x,
                                  const cx_graph_shape *s, cx_hlo_elem wide)
{
  int64_t dims[CALX_MAX_RANK];
  size_t n = cx_ops_norm_dims(s->rank, dims);
  double count = 1;
  for (size_t i = 0; i < n; i++) count *= (double)s->dims[dims[i]];
  cx_graph_shape c = { .rank = 1, .dims = { s->dims[1] } };
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = wide }, 0);
  cx_hlo_value *sum = cx_hlo_reduce_with(e->b, CX_HLO_OP_ADD, x, zero, dims, n);
  return cx_hlo_binary(e->b, CX_HLO_OP_DIVIDE, sum,
                       cx_ops_emit_splat(e, wide, &c, count));
}

static void emit_batch_norm(cx_graph_emit *e)
{
  const norm_attrs *a = e->attrs;
  const cx_graph_shape *s = cx_in(e->node, 0);
  cx_hlo_builder *b = e->b;
  cx_hlo_elem wide = cx_ops_emit_wide(s->dtype),
              elem = cx_hlo_elem_of(s->dtype);
  cx_graph_shape c = { .rank = 1, .dims = { s->dims[1] } };
  cx_hlo_value *x = cx_ops_emit_cast(e, e->in[0], wide);
  cx_hlo_value *mean = channel_mean(e, x, s, wide);
  cx_hlo_value *d =
      cx_hlo_binary(b, CX_HLO_OP_SUBTRACT, x, cx_ops_emit_along(e, mean, s, 1));
  cx_hlo_value *squares = cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, d, d);
  cx_hlo_value *var = channel_mean(e, squares, s, wide);
  cx_hlo_value *eps = cx_ops_emit_splat(e, wide, &c, a->eps);
  cx_hlo_value *rstd = cx_hlo_unary(b, CX_HLO_OP_RSQRT,
                                    cx_hlo_binary(b, CX_HLO_OP_ADD, var, eps));
  cx_hlo_value *y =
      cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, d, cx_ops_emit_along(e, rstd, s, 1));
  e->out[0] = cx_ops_emit_cast(e, y, elem);
  e->out[1] = cx_ops_emit_cast(e, mean, elem);
  e->out[2] = cx_ops_emit_cast(e, var, elem);
}

static void describe_norm(const void *attrs, cx_text *out)
{
  cx_text_format(out, "eps %g", ((const norm_attrs *)attrs)->eps);
}

CX_OPS_DEFINE(batch_norm, .attr_size = sizeof(norm_attrs),
              .infer = infer_batch_norm, .grad = grad_batch_norm,
              .emit = emit_batch_norm, .describe = describe_norm)

// ---- entry ------------------------------------------------------------------

static double eps_of(const calx_batch_norm_options *o)
{
  return cx_or_default(o->eps, 1e-5);
}

static calx_tensor *affine(calx_tensor *y, const calx_batch_norm_options *o)
{
  uint32_t rank = cx_lazy_tensor_shape(y)->rank;
  if (o->weight != NULL) y = calx_mul(y, per_channel(o->weight, rank));
  if (o->bias != NULL) y = cx_ops_plus(y, per_channel(o->bias, rank));
  return y;
}

// In this order it rounds as PyTorch; old + momentum (seen - old) would not.
void cx_ops_norm_update(calx_tensor *running, calx_tensor *seen,
                        const calx_batch_norm_options *o)
{
  if (running == NULL) return;
  double momentum = cx_or_default(o->momentum, 0.1);
  calx_tensor *old = calx_mul(running, calx_scalar(1 - momentum));
  seen = calx_mul(seen, calx_scalar(momentum));
  calx_assign(running, cx_ops_plus(old, seen));
}

static calx_tensor *train(calx_tensor *x, const calx_batch_norm_options *o)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = cx_graph_shape_numel(s) / (s->dims[1] != 0 ? s->dims[1] : 1);
  if (n == 1) {
    return cx_ops_invalid(
        "batch_norm: training wants more than one value a channel, got %s",
        cx_graph_shape_str(s));
  }
  norm_attrs a = { eps_of(o) };
  calx_tensor *outs[3];
  cx_lazy_call call = { .op = &cx_ops_batch_norm,
                        .in = &x,
                        .n_in = 1,
                        .n_out = 3,
                        .attrs = &a,
                        .flags = CX_GRAPH_NODE_TRAIN };
  cx_lazy_apply(&call, outs);
  if (cx_lazy_tensor_poisoned(outs[0])) return outs[0];
  cx_lazy_no_grad_begin();
  cx_ops_norm_update(o->running_mean, outs[1], o);
  if (o->running_var != NULL) {
    calx_tensor *unbiased =
        calx_mul(outs[2], cx_ops_number((double)n / (double)(n - 1)));
    cx_ops_norm_update(o->running_var, unbiased, o);
  }
  cx_lazy_no_grad_end();
  return affine(outs[0], o);
}

calx_tensor *cx_ops_norm_apply(calx_tensor *x, calx_tensor *mean,
                               calx_tensor *var,
                               const calx_batch_norm_options *o)
{
  uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  calx_tensor *scale = calx_rsqrt(cx_ops_plus(var, cx_ops_number(eps_of(o))));
  if (o->weight != NULL) scale = calx_mul(scale, o->weight);
  calx_tensor *y = calx_mul(cx_ops_minus(x, per_channel(mean, rank)),
                            per_channel(scale, rank));
  return o->bias != NULL ? cx_ops_plus(y, per_channel(o->bias, rank)) : y;
}

// False: the public function returns *out.
static bool check(calx_tensor *x, const calx_batch_norm_options *o,
                  calx_tensor **out)
{
  calx_tensor *given[4] = { o->weight, o->bias, o->running_mean,
                            o->running_var };
  if (cx_ops_unfit("batch_norm", &x, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!cx_dtype_is_float(s->dtype)) {
    *out = cx_ops_invalid(
        "batch_norm: %s is not floating; convert it with calx_to_dtype",
        cx_graph_shape_str(s));
    return false;
  }
  if (s->rank < 2) {
    *out = cx_ops_invalid("batch_norm: (N,C,…) is wanted, got %s",
                          cx_graph_shape_str(s));
    return false;
  }
  for (int i = 0; i < 4; i++) {
    if (given[i] == NULL) continue;
    if (cx_ops_unfit("batch_norm", &given[i], 1, out)) return false;
    const cx_graph_shape *g = cx_lazy_tensor_shape(given[i]);
    if (g->rank == 1 && g->dims[0] == s->dims[1]) continue;
    static const char *const names[] = { "weight", "bias", "running_mean",
                                         "running_var" };
    *out = cx_ops_invalid(
        "batch_norm: %s is %s, one number for each of the %lld channels of %s "
        "is wanted",
        names[i], cx_graph_shape_str(g), (long long)s->dims[1],
        cx_graph_shape_str(s));
    return false;
  }
  if (o->training || (o->running_mean != NULL && o->running_var != NULL)) {
    return true;
  }
  *out = cx_ops_invalid(
      "batch_norm: running_mean and running_var are needed unless training");
  return false;
}

calx_tensor *calx_batch_norm_with(calx_tensor *x,
                                  const calx_batch_norm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  static const calx_batch_norm_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  calx_tensor *bad;
  if (!cx_ops_options_fit("batch_norm", o->size, sizeof *o, &bad)) return bad;
  if (!check(x, o, &bad)) return bad;
  return o->training ? train(x, o)
                     : cx_ops_norm_apply(x, o->running_mean, o->running_var, o);
}
