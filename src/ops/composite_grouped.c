// ops/composite_grouped: products of matrices whose rows or columns belong to
// groups, and the loss over classes of a linear layer.
#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// ---- grouped_mm -------------------------------------------------------------

typedef struct group_operands {
  calx_tensor *x, *y, *offs;
  const cx_graph_shape *xs, *ys;
  int64_t groups;  // as many as offs has
} group_operands;

static bool bad_operands(const group_operands *g, calx_tensor **out)
{
  const cx_graph_shape *x = g->xs, *y = g->ys;
  const bool flat = x->rank == 2 || y->rank == 2;
  const char *why = NULL;
  if (x->rank < 2 || x->rank > 3 || y->rank < 2 || y->rank > 3) {
    why = "operands of rank 2 or 3 are wanted";
  } else if (x->dtype != y->dtype || !cx_dtype_is_float(x->dtype)) {
    why = "operands of one floating type are wanted";
  } else if (x->dims[x->rank - 1] != y->dims[y->rank - 2]) {
    why = "the first's last size is not the second's last but one";
  } else if (flat != (g->offs != NULL)) {
    why = flat ? "offs, the ends of the groups, are wanted where an operand "
                 "has rank 2"
               : "offs are for an operand of rank 2";
  } else if (!flat && x->dims[0] != y->dims[0]) {
    why = "both have other numbers of matrices";
  }
  if (why == NULL) return false;
  *out = cx_ops_invalid("grouped_mm: %s and %s: %s", cx_graph_shape_str(x),
                        cx_graph_shape_str(y), why);
  return true;
}

static bool bad_offs(group_operands *g, calx_tensor **out)
{
  if (cx_ops_unfit("grouped_mm", &g->offs, 1, out)) return true;
  const cx_graph_shape *s = cx_lazy_tensor_shape(g->offs);
  const cx_graph_shape *matrices = g->xs->rank == 3   ? g->xs
                                   : g->ys->rank == 3 ? g->ys
                                                      : NULL;
  if (s->rank != 1 || s->dtype != CALX_I32 || s->dims[0] == 0) {
    *out = cx_ops_invalid(
        "grouped_mm: offs are %s, i32 (groups) with at least one are wanted",
        cx_graph_shape_str(s));
    return true;
  }
  g->groups = s->dims[0];
  if (matrices == NULL || matrices->dims[0] == g->groups) return false;
  *out = cx_ops_invalid("grouped_mm: offs end %lld groups, %s has other ones",
                        (long long)g->groups, cx_graph_shape_str(matrices));
  return true;
}

// (groups, n) bool: whether an index along a size n is of the group.
static calx_tensor *members(const group_operands *g, int64_t n)
{
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I32,
                                .device = calx_tensor_device(g->x) };
  calx_tensor *starts[2] = { calx_zeros_with(CALX_SHAPE(1), &whole),
                             calx_narrow(g->offs, 0, 0, g->groups - 1) };
  calx_tensor *at = calx_arange_with(0, (double)n, 1, &whole);
  calx_tensor *start = calx_unsqueeze(calx_cat(starts, 2, 0), 1);
  return calx_logical_and(calx_ge(at, start),
                          calx_lt(at, calx_unsqueeze(g->offs, 1)));
}

// What is not of the group is 0, so that numbers of other groups, which may be
// infinite, do not meet those of this one.
static calx_tensor *grouped_product(const group_operands *g)
{
  calx_tensor *x = g->x, *y = g->y, *none = cx_ops_number(0);
  if (g->xs->rank == 3 && g->ys->rank == 3) return calx_matmul(x, y);
  if (g->xs->rank == 2 && g->ys->rank == 2) {  // groups of the sum's terms
    calx_tensor *in = members(g, g->xs->dims[1]);
    x = calx_where(calx_unsqueeze(in, 1), x, none);
    y = calx_where(calx_unsqueeze(in, 2), y, none);
    return calx_matmul(x, y);
  }
  const bool rows = g->xs->rank == 2;
  calx_tensor *in = members(g, rows ? g->xs->dims[0] : g->ys->dims[1]);
  calx_tensor *all = calx_matmul(x, y);
  all = calx_where(calx_unsqueeze(in, rows ? 2 : 1), all, none);
  const calx_reduce_options o = { .size = sizeof o, .dims = CALX_DIMS(0) };
  return calx_sum_with(all, &o);
}

calx_tensor *calx_grouped_mm(calx_tensor *x, calx_tensor *y, calx_tensor *offs)
{
  CX_OPS_COMPOSITE("grouped_mm");
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("grouped_mm", in, 2, &bad)) return bad;
  group_operands g = {
    x, y, offs, cx_lazy_tensor_shape(x), cx_lazy_tensor_shape(y), 0
  };
  if (bad_operands(&g, &bad)) return bad;
  if (offs != NULL && bad_offs(&g, &bad)) return bad;
  return grouped_product(&g);
}

// ---- linear_cross_entropy ---------------------------------------------------

typedef struct logits {
  calx_tensor *x, *weight, *bias;
  cx_graph_shape shape;  // (N, C, …) or (C)
} logits;

// The logits' shape. False: *out is what the function returns.
static bool logits_fit(logits *l, calx_tensor **out)
{
  const cx_graph_shape *x = cx_lazy_tensor_shape(l->x);
  const cx_graph_shape *w = cx_lazy_tensor_shape(l->weight);
  if (x->rank < 1 || x->rank > 2 || w->rank < 2 ||
      x->dims[x->rank - 1] != w->dims[w->rank - 1] ||
      (w->rank > 2 && x->rank == 1)) {
    *out = cx_ops_invalid(
        "linear_cross_entropy: x %s and linear_weight %s do not fit: (N, in) "
        "and (C, …, in), or (in) and (C, in), are wanted",
        cx_graph_shape_str(x), cx_graph_shape_str(w));
    return false;
  }
  l->shape = (cx_graph_shape){ .rank = x->rank - 1, .dims = { x->dims[0] } };
  for (uint32_t i = 0; i + 1 < w->rank; i++) {
    l->shape.dims[l->shape.rank++] = w->dims[i];
  }
  if (l->bias == NULL) return true;
  const cx_graph_shape *b = cx_lazy_tensor_shape(l->bias);
  bool same = b->rank + 1 == w->rank;
  for (uint32_t i = 0; same && i < b->rank; i++) {
    same = b->dims[i] == w->dims[i];
  }
  if (same) return true;
  *out = cx_ops_invalid(
      "linear_cross_entropy: .linear_bias is %s, the sizes of linear_weight "
      "%s without the last are wanted",
      cx_graph_shape_str(b), cx_graph_shape_str(w));
  return false;
}

// The linear layer of the weight as a matrix, (C …, in).
static calx_tensor *logits_of(const logits *l)
{
  const cx_graph_shape *w = cx_lazy_tensor_shape(l->weight);
  const int64_t in = w->dims[w->rank - 1];
  int64_t out = 1;
  for (uint32_t i = 0; i + 1 < w->rank; i++) out *= w->dims[i];
  calx_tensor *bias = l->bias;
  if (bias != NULL) bias = calx_reshape(bias, CALX_SHAPE(out));
  calx_tensor *y =
      calx_linear(l->x, calx_reshape(l->weight, CALX_SHAPE(out, in)), bias);
  return calx_reshape(y, cx_ops_dims_of(&l->shape));
}

calx_tensor *calx_linear_cross_entropy_with(
    calx_tensor *x, calx_tensor *linear_weight, calx_tensor *target,
    const calx_linear_cross_entropy_options *o)
{
  CX_OPS_COMPOSITE("linear_cross_entropy");
  calx_tensor *in[3] = { x, linear_weight, target }, *bad;
  if (cx_ops_unfit("linear_cross_entropy", in, 3, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(linear_cross_entropy, o, bad);
  logits l = { .x = x, .weight = linear_weight, .bias = o->linear_bias };
  if (l.bias != NULL &&
      cx_ops_unfit("linear_cross_entropy", &l.bias, 1, &bad)) {
    return bad;
  }
  if (!logits_fit(&l, &bad)) return bad;
  cx_graph_shape of_target = *cx_lazy_tensor_shape(target);
  of_target.dtype = l.shape.dtype;
  if (o->ignore_index != 0 && cx_graph_shape_equal(&of_target, &l.shape)) {
    return cx_ops_invalid(
        "linear_cross_entropy: .ignore_index is for class numbers, the target "
        "%s holds probabilities",
        cx_graph_shape_str(cx_lazy_tensor_shape(target)));
  }
  const calx_nll_loss_options loss = { .size = sizeof loss,
                                       .weight = o->weight,
                                       .ignore_index = o->ignore_index,
                                       .reduction = o->reduction,
                                       .label_smoothing = o->label_smoothing };
  return calx_cross_entropy_with(logits_of(&l), target, &loss);
}
