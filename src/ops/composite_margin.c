// ops/composite_margin: losses of margins between distances or classes, and
// those of several tensors, composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// max(0, x)
static calx_tensor *positive(calx_tensor *x)
{
  return calx_clamp_min(x, number(0));
}

static calx_tensor *sum_along(calx_tensor *x, int64_t dim)
{
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&dim, 1) };
  return calx_sum_with(x, &o);
}

static uint32_t rank_of(calx_tensor *x)
{
  return cx_lazy_tensor_shape(x)->rank;
}

// The first statements of a loss of x, y and z.
#define BEGIN(op, kind, x, y, z)                     \
  CX_OPS_COMPOSITE(op);                              \
  CX_OPS_AUTOCAST(CX_OPS_F32, &x, &y, &z);           \
  calx_tensor *in[3] = { x, y, z }, *bad;            \
  if (!cx_ops_floating(op, in, 3, &bad)) return bad; \
  x = in[0];                                         \
  y = in[1];                                         \
  z = in[2];                                         \
  CX_OPS_TAKE_OPTIONS(kind, o, bad)

// NULL where the three are of one rank.
static calx_tensor *check_ranks(const char *op, calx_tensor *const *in)
{
  uint32_t rank = rank_of(in[0]);
  if (rank_of(in[1]) == rank && rank_of(in[2]) == rank) return NULL;
  return cx_ops_invalid(
      "%s: three tensors of one rank are wanted, got %s, %s "
      "and %s",
      op, cx_graph_shape_str(cx_lazy_tensor_shape(in[0])),
      cx_graph_shape_str(cx_lazy_tensor_shape(in[1])),
      cx_graph_shape_str(cx_lazy_tensor_shape(in[2])));
}

calx_tensor *calx_margin_ranking_loss_with(calx_tensor *x, calx_tensor *y,
                                           calx_tensor *target,
                                           const calx_margin_loss_options *o)
{
  BEGIN("margin_ranking_loss", margin_loss, x, y, target);
  if ((bad = check_ranks("margin_ranking_loss", in)) != NULL) return bad;
  calx_tensor *order = calx_mul(calx_neg(target), cx_ops_minus(x, y));
  calx_tensor *losses = positive(cx_ops_plus(order, calx_scalar(o->margin)));
  return cx_ops_reduce_losses("margin_ranking_loss", losses, o->reduction);
}

// ---- of vectors -------------------------------------------------------------

calx_tensor *calx_cosine_embedding_loss_with(calx_tensor *x, calx_tensor *y,
                                             calx_tensor *target,
                                             const calx_margin_loss_options *o)
{
  static const double least = 1e-12;  // PyTorch's, added to squared lengths
  BEGIN("cosine_embedding_loss", margin_loss, x, y, target);
  uint32_t rank = rank_of(target);
  if (rank > 1 || rank_of(x) != rank + 1 || rank_of(y) != rank + 1) {
    return cx_ops_invalid(
        "cosine_embedding_loss: (N, D), (N, D) and a target (N), or (D), (D) "
        "and (), are wanted; got %s, %s and %s",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)),
        cx_graph_shape_str(cx_lazy_tensor_shape(y)),
        cx_graph_shape_str(cx_lazy_tensor_shape(target)));
  }
  calx_tensor *product = sum_along(calx_mul(x, y), -1);
  calx_tensor *xx = cx_ops_plus(sum_along(calx_square(x), -1), number(least));
  calx_tensor *yy = cx_ops_plus(sum_along(calx_square(y), -1), number(least));
  calx_tensor *cosine =
      calx_div_with(product, calx_sqrt(calx_mul(xx, yy)), NULL);
  calx_tensor *apart = positive(cx_ops_minus(cosine, calx_scalar(o->margin)));
  calx_tensor *losses =
      cx_ops_plus(calx_where(calx_eq(target, number(1)),
                             cx_ops_minus(number(1), cosine), number(0)),
                  calx_where(calx_eq(target, number(-1)), apart, number(0)));
  return cx_ops_reduce_losses("cosine_embedding_loss", losses, o->reduction);
}

typedef struct triplet {
  calx_tensor *anchor, *positive, *negative;
  calx_distance_fn *distance;
  void *user;
  double margin;
  bool swap;
} triplet;

static calx_tensor *triplet_losses(const char *op, const triplet *t)
{
  double margin = cx_is_default(t->margin) ? 1 : t->margin;
  if (!(margin > 0)) {
    return cx_ops_invalid("%s: the margin %g must be positive", op, margin);
  }
  calx_tensor *near = t->distance(t->user, t->anchor, t->positive);
  calx_tensor *far = t->distance(t->user, t->anchor, t->negative);
  if (t->swap) {
    calx_tensor *other = t->distance(t->user, t->positive, t->negative);
    far = calx_minimum(far, other);
  }
  return positive(cx_ops_plus(calx_scalar(margin), cx_ops_minus(near, far)));
}

static calx_tensor *by_norm(void *user, calx_tensor *x, calx_tensor *y)
{
  return calx_pairwise_distance_with(x, y, user);
}

calx_tensor *calx_triplet_margin_loss_with(
    calx_tensor *anchor, calx_tensor *positive, calx_tensor *negative,
    const calx_triplet_margin_loss_options *o)
{
  const char *op = "triplet_margin_loss";
  BEGIN(op, triplet_margin_loss, anchor, positive, negative);
  if ((bad = check_ranks(op, in)) != NULL) return bad;
  calx_pairwise_distance_options norm = { .size = sizeof norm,
                                          .p = o->p,
                                          .eps = o->eps };
  triplet t = { in[0], in[1], in[2], by_norm, &norm, o->margin, o->swap };
  return cx_ops_reduce_losses(op, triplet_losses(op, &t), o->reduction);
}

calx_tensor *calx_triplet_margin_with_distance_loss_with(
    calx_tensor *anchor, calx_tensor *positive, calx_tensor *negative,
    const calx_triplet_margin_with_distance_loss_options *o)
{
  const char *op = "triplet_margin_with_distance_loss";
  BEGIN(op, triplet_margin_with_distance_loss, anchor, positive, negative);
  if ((bad = check_ranks(op, in)) != NULL) return bad;
  bool own = o->distance_function != NULL;
  triplet t = { in[0],
                in[1],
                in[2],
                own ? o->distance_function : by_norm,
                own ? o->user : NULL,
                o->margin,
                o->swap };
  return cx_ops_reduce_losses(op, triplet_losses(op, &t), o->reduction);
}

// ---- of classes -------------------------------------------------------------

// NULL: x is (N, C) or (C) with C > 0, target integers of so many dimensions
// less and equal sizes.
static calx_tensor *check_classes(const char *op, calx_tensor *x,
                                  calx_tensor *target, uint32_t less)
{
  calx_tensor *in[2] = { x, target }, *bad;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x),
                       *b = cx_lazy_tensor_shape(target);
  bool fits = (a->rank == 1 || a->rank == 2) && a->rank == b->rank + less &&
              a->dims[a->rank - 1] > 0 && cx_dtype_is_int(b->dtype);
  for (uint32_t i = 0; fits && i < b->rank; i++) {
    fits = a->dims[i] == b->dims[i];
  }
  if (fits) return NULL;
  return cx_ops_invalid(
      "%s: (N, C) or (C) and a target of class numbers, i64 "
      "%s, are wanted; got %s and %s",
      op, less != 0 ? "(N) or ()" : "of the same sizes", cx_graph_shape_str(a),
      cx_graph_shape_str(b));
}

// 0 in the type of x where a class is usable, else NaN.
static calx_tensor *nan_unless(calx_tensor *good)
{
  return calx_where(good, number(0), number((double)NAN));
}

// A weight, one number for each of n classes, as the target's: of the shape of
// `here` without its last dimension, and 1 in it.
static calx_tensor *weight_of(const char *op, calx_tensor *weight, int64_t n,
                              calx_tensor *here)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &weight, 1, &bad)) return bad;
  const cx_graph_shape *w = cx_lazy_tensor_shape(weight);
  if (w->rank != 1 || w->dims[0] != n) {
    return cx_ops_invalid(
        "%s: weight is %s, one number for each of the %lld "
        "classes is wanted",
        op, cx_graph_shape_str(w), (long long)n);
  }
  weight = calx_where(here, weight, number(0));
  return calx_unsqueeze(sum_along(weight, -1), -1);
}

calx_tensor *calx_multi_margin_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_multi_margin_loss_options *o)
{
  const char *op = "multi_margin_loss";
  CX_OPS_COMPOSITE(op);
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(multi_margin_loss, o, bad);
  if ((bad = check_classes(op, x, target, 1)) != NULL) return bad;
  if (!cx_ops_floating(op, &x, 1, &bad)) return bad;
  if (o->p < 0 || o->p > 2) {
    return cx_ops_invalid("%s: p is %d, 1 or 2 is wanted", op, o->p);
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[s->rank - 1];
  if (!cx_ops_check_indices(op, true, target, n, -1)) {
    return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  calx_tensor *in = calx_unsqueeze(calx_to_dtype(target, CALX_I64), -1);
  calx_tensor *here = cx_ops_points_at(in, s->rank - 1, n, s->rank);
  calx_tensor *good =
      calx_mul(calx_ge(in, number(0)), calx_lt(in, number((double)n)));
  calx_tensor *mine =
      calx_unsqueeze(sum_along(calx_where(here, x, number(0)), -1), -1);
  mine = cx_ops_plus(mine, nan_unless(good));
  calx_tensor *z =
      cx_ops_plus(cx_ops_minus(cx_ops_given(o->margin, 1), mine), x);
  z = positive(z);
  if (o->p == 2) z = calx_square(z);
  if (o->weight != NULL) z = calx_mul(z, weight_of(op, o->weight, n, here));
  z = sum_along(calx_where(here, number(0), z), -1);
  calx_tensor *losses = calx_div_with(z, number((double)n), NULL);
  return cx_ops_reduce_losses(op, losses, o->reduction);
}

calx_tensor *calx_multilabel_margin_loss_with(calx_tensor *x,
                                              calx_tensor *target,
                                              const calx_loss_options *o)
{
  const char *op = "multilabel_margin_loss";
  CX_OPS_COMPOSITE(op);
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(loss, o, bad);
  if ((bad = check_classes(op, x, target, 0)) != NULL) return bad;
  if (!cx_ops_floating(op, &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t rank = s->rank;
  int64_t n = s->dims[rank - 1];
  // The list ends at the first negative number: a running product is 0 there.
  calx_tensor *t = calx_to_dtype(target, CALX_I64);
  calx_tensor *listed = calx_to_dtype(calx_ge(t, number(0)), CALX_I64);
  listed = calx_ne(calx_cumprod(listed, -1), number(0));
  calx_tensor *end = calx_where(listed, t, number(-1));
  // (…, j, i): number j of the list is class i.
  calx_tensor *one = calx_unsqueeze(end, -1);
  calx_tensor *here = cx_ops_points_at(one, rank, n, rank + 1);
  calx_tensor *row = calx_unsqueeze(x, -2);
  calx_tensor *mine = sum_along(calx_where(here, row, number(0)), -1);
  mine = cx_ops_plus(mine, nan_unless(calx_lt(end, number((double)n))));
  calx_tensor *apart = cx_ops_minus(calx_unsqueeze(mine, -1), row);
  calx_tensor *z = positive(cx_ops_minus(number(1), apart));
  int64_t list = -2;
  calx_reduce_options any = { .size = sizeof any,
                              .dims = calx_dims_of(&list, 1),
                              .keepdim = true };
  calx_tensor *wanted = calx_any_with(here, &any);
  z = calx_where(wanted, number(0), z);
  z = calx_where(calx_unsqueeze(listed, -1), z, number(0));
  z = sum_along(sum_along(z, -1), -1);
  calx_tensor *losses = calx_div_with(z, number((double)n), NULL);
  return cx_ops_reduce_losses(op, losses, o->reduction);
}

calx_tensor *calx_multilabel_soft_margin_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_multilabel_soft_margin_loss_options *o)
{
  const char *op = "multilabel_soft_margin_loss";
  CX_OPS_COMPOSITE(op);
  CX_OPS_AUTOCAST(CX_OPS_F32, &x, &target);
  calx_tensor *in[2] = { x, target }, *bad;
  if (!cx_ops_floating(op, in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(multilabel_soft_margin_loss, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(in[0]);
  if (s->rank == 0) {
    return cx_ops_invalid("%s: (…, C) is wanted, got %s", op,
                          cx_graph_shape_str(s));
  }
  calx_tensor *yes = calx_mul(in[1], calx_logsigmoid(in[0]));
  calx_tensor *no = calx_mul(cx_ops_minus(number(1), in[1]),
                             calx_logsigmoid(calx_neg(in[0])));
  calx_tensor *losses = calx_neg(cx_ops_plus(yes, no));
  if (o->weight != NULL) losses = calx_mul(losses, o->weight);
  losses = calx_div_with(sum_along(losses, -1),
                         number((double)s->dims[s->rank - 1]), NULL);
  return cx_ops_reduce_losses(op, losses, o->reduction);
}

// ---- of a variance ----------------------------------------------------------

// The variance with x's rank; NULL: it does not fit.
static calx_tensor *fit_variance(calx_tensor *var, const cx_graph_shape *x)
{
  const cx_graph_shape *v = cx_lazy_tensor_shape(var);
  bool last = v->rank == x->rank && x->rank != 0 && v->dims[v->rank - 1] == 1;
  uint32_t same = 0;
  while (same < v->rank && same < x->rank && v->dims[same] == x->dims[same]) {
    same++;
  }
  if (v->rank == x->rank && same == x->rank) return var;
  if (v->rank + 1 == x->rank && same == v->rank) return calx_unsqueeze(var, -1);
  return last && same == v->rank - 1 ? var : NULL;
}

calx_tensor *calx_gaussian_nll_loss_with(
    calx_tensor *x, calx_tensor *target, calx_tensor *var,
    const calx_gaussian_nll_loss_options *o)
{
  const char *op = "gaussian_nll_loss";
  BEGIN(op, gaussian_nll_loss, x, target, var);
  calx_tensor *v = fit_variance(var, cx_lazy_tensor_shape(x));
  if (v == NULL) {
    return cx_ops_invalid(
        "%s: var is %s; the sizes of x, %s, are wanted, or "
        "these without the last or with 1 there",
        op, cx_graph_shape_str(cx_lazy_tensor_shape(var)),
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  calx_tensor *eps = cx_ops_given(o->eps, 1e-6);
  calx_tensor *raised = cx_ops_plus(cx_ops_minus(v, calx_detach(v)), eps);
  v = calx_where(calx_lt(v, eps), raised, v);
  calx_tensor *square = calx_square(cx_ops_minus(x, target));
  calx_tensor *losses =
      cx_ops_plus(calx_log(v), calx_div_with(square, v, NULL));
  losses = calx_mul(losses, number(0.5));
  if (o->full) losses = cx_ops_plus(losses, number(0.5 * log(2 * M_PI)));
  return cx_ops_reduce_losses(op, losses, o->reduction);
}
