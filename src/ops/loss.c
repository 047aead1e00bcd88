// ops/loss: losses over classes, composed of public ops. The target class is
// selected by a comparison with all class numbers: this fuses, has a gradient
// and never reads out of bounds. A class out of range makes the loss NaN.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct classes {
  const char *op;
  calx_tensor *x;       // (N, C, …) or (C)
  calx_tensor *target;  // (N, …) or ()
  calx_tensor *weight;  // (C) or NULL
  uint32_t dim;         // of the classes
  int64_t n;
  calx_reduction reduction;
  int64_t ignore;
  double smoothing;
  calx_tensor *target_in;  // target with the class dimension, of size 1
  calx_tensor *here;       // bool as x: the target's class
  calx_tensor *keep;       // bool as target: not ignored
} classes;

static calx_tensor *sum_classes(const classes *c, calx_tensor *x)
{
  int64_t dim = c->dim;
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&dim, 1) };
  return calx_sum_with(x, &o);
}

// (C) as (1, C, 1, …)
static calx_tensor *per_class(const classes *c, calx_tensor *v)
{
  int64_t dims[CALX_MAX_RANK];
  uint32_t rank = cx_lazy_tensor_shape(c->x)->rank;
  for (uint32_t i = 0; i < rank; i++) dims[i] = i == c->dim ? c->n : 1;
  return calx_reshape(v, calx_dims_of(dims, rank));
}

static calx_tensor *pick(const classes *c, calx_tensor *values)
{
  return sum_classes(c, calx_where(c->here, values, cx_ops_number(0)));
}

// ---- reading the arguments --------------------------------------------------

static bool bad_shape(const classes *c)
{
  const cx_graph_shape *x = cx_lazy_tensor_shape(c->x),
                       *t = cx_lazy_tensor_shape(c->target);
  if (x->rank == 0 || x->rank != t->rank + 1 || !cx_dtype_is_int(t->dtype)) {
    return true;
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    if (t->dims[i] != x->dims[i < c->dim ? i : i + 1]) return true;
  }
  return false;
}

static bool read_arguments(classes *c, const calx_nll_loss_options *o,
                           calx_tensor **out)
{
  static const calx_nll_loss_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  calx_tensor *in[3] = { c->x, c->target, o->weight };
  if (cx_ops_unfit(c->op, in, o->weight != NULL ? 3 : 2, out)) return false;
  const cx_graph_shape *x = cx_lazy_tensor_shape(c->x);
  c->dim = x->rank > 1 ? 1 : 0;
  c->n = x->rank != 0 ? x->dims[c->dim] : 0;
  c->weight = o->weight;
  c->reduction =
      o->reduction != CALX_REDUCTION_DEFAULT ? o->reduction : CALX_MEAN;
  c->ignore = o->ignore_index == 0               ? -100
              : o->ignore_index == CALX_ZERO_INT ? 0
                                                 : o->ignore_index;
  c->smoothing = o->label_smoothing;
  char why[160] = "";
  if (o->size > sizeof *o) {
    snprintf(why, sizeof why, "its options are of a newer version");
  } else if (c->reduction < CALX_MEAN || c->reduction > CALX_NONE) {
    snprintf(why, sizeof why,
             "reduction %d is none of CALX_MEAN, CALX_SUM, CALX_NONE",
             (int)c->reduction);
  } else if (!cx_dtype_is_float(x->dtype)) {
    snprintf(why, sizeof why,
             "the first operand must be floating, convert it with "
             "calx_to_dtype");
  } else if (!(c->smoothing >= 0 && c->smoothing <= 1)) {
    snprintf(why, sizeof why, "label_smoothing %g must lie in [0, 1]",
             c->smoothing);
  } else if (c->smoothing > 0 && strcmp(c->op, "nll_loss") == 0) {
    snprintf(why, sizeof why,
             "label_smoothing %g is for calx_cross_entropy only", c->smoothing);
  } else if (c->weight != NULL &&
             (cx_lazy_tensor_shape(c->weight)->rank != 1 ||
              cx_lazy_tensor_shape(c->weight)->dims[0] != c->n)) {
    snprintf(why, sizeof why,
             "weight is %s, one number for each of the %lld classes is wanted",
             cx_graph_shape_str(cx_lazy_tensor_shape(c->weight)),
             (long long)c->n);
  }
  if (why[0] == '\0') return true;
  *out =
      cx_ops_invalid("%s: %s; got %s and %s", c->op, why, cx_graph_shape_str(x),
                     cx_graph_shape_str(cx_lazy_tensor_shape(c->target)));
  return false;
}

// Sets `here`, `keep` and `target_in`. False: the public function returns *out.
static bool locate(classes *c, calx_tensor **out)
{
  const cx_graph_shape *t = cx_lazy_tensor_shape(c->target);
  if (!cx_dtype_is_int(t->dtype)) {
    *out = cx_ops_invalid(
        "%s: a target of class numbers is i64, got %s; convert it with "
        "calx_to_dtype(target, CALX_I64)",
        c->op, cx_graph_shape_str(t));
    return false;
  }
  if (bad_shape(c)) {
    *out = cx_ops_invalid(
        "%s: an i64 target of class numbers (N,…) for (N,C,…), or () for (C), "
        "is wanted; got %s for %s",
        c->op, cx_graph_shape_str(t),
        cx_graph_shape_str(cx_lazy_tensor_shape(c->x)));
    return false;
  }
  if (!cx_ops_check_indices(c->op, true, c->target, c->n, c->ignore)) {
    *out = cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
    return false;
  }
  c->target = calx_to_dtype(c->target, CALX_I64);
  c->target_in = calx_unsqueeze(c->target, (int)c->dim);
  c->here = cx_ops_points_at(c->target_in, c->dim, c->n,
                             cx_lazy_tensor_shape(c->x)->rank);
  c->keep = calx_ne(c->target, cx_ops_number((double)c->ignore));
  return true;
}

// ---- reducing ---------------------------------------------------------------

// One weight for each target: 0 where it is ignored, NaN where the class is out
// of range.
static calx_tensor *target_weights(const classes *c)
{
  calx_tensor *low = calx_ge(c->target, cx_ops_number(0));
  calx_tensor *high = calx_lt(c->target, cx_ops_number((double)c->n));
  calx_tensor *w =
      c->weight != NULL ? pick(c, per_class(c, c->weight)) : cx_ops_number(1);
  if (c->weight == NULL) {
    w = cx_ops_weak_as(w, cx_lazy_tensor_shape(c->x)->dtype,
                       calx_tensor_device(c->x));
  }
  w = calx_where(calx_mul(low, high), w, cx_ops_number((double)NAN));
  return calx_where(c->keep, w, cx_ops_number(0));
}

// Reduces -w * value over the targets that are not ignored. The mean divides by
// the sum of the weights.
static calx_tensor *reduce(const classes *c, calx_tensor *value, calx_tensor *w,
                           bool weighted)
{
  calx_tensor *loss = calx_neg(weighted ? value : calx_mul(value, w));
  loss = calx_where(c->keep, loss, cx_ops_number(0));
  if (c->reduction == CALX_NONE) return loss;
  loss = calx_sum_with(loss, NULL);
  if (c->reduction == CALX_SUM) return loss;
  return calx_div(loss, calx_sum_with(w, NULL));
}

calx_tensor *calx_nll_loss_with(calx_tensor *x, calx_tensor *target,
                                const calx_nll_loss_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  classes c = { .op = "nll_loss", .x = x, .target = target };
  calx_tensor *bad;
  if (!read_arguments(&c, o, &bad) || !locate(&c, &bad)) return bad;
  return reduce(&c, pick(&c, x), target_weights(&c), false);
}

// ---- cross_entropy ----------------------------------------------------------

// A target of probabilities q: -sum_c w_c q_c log p_c, averaged over targets.
static calx_tensor *of_probabilities(const classes *c, calx_tensor *log_p)
{
  calx_tensor *q = c->target;
  if (c->smoothing > 0) {
    q = cx_ops_plus(calx_mul(q, calx_scalar(1 - c->smoothing)),
                    calx_scalar(c->smoothing / (double)c->n));
  }
  calx_tensor *terms = calx_mul(log_p, q);
  if (c->weight != NULL) terms = calx_mul(terms, per_class(c, c->weight));
  calx_tensor *loss = calx_neg(sum_classes(c, terms));
  if (c->reduction == CALX_NONE) return loss;
  int64_t targets = calx_tensor_numel(loss);
  loss = calx_sum_with(loss, NULL);
  return c->reduction == CALX_SUM
             ? loss
             : calx_div(loss, cx_ops_number((double)targets));
}

// (1 - e) nll + e/C sum_c -w_c log p_c
static calx_tensor *smoothed(const classes *c, calx_tensor *log_p,
                             calx_tensor *w)
{
  calx_tensor *hard = reduce(c, pick(c, log_p), w, false);
  if (!(c->smoothing > 0)) return hard;
  calx_tensor *terms =
      c->weight != NULL ? calx_mul(log_p, per_class(c, c->weight)) : log_p;
  calx_tensor *even = reduce(c, sum_classes(c, terms), w, true);
  return cx_ops_plus(calx_mul(hard, calx_scalar(1 - c->smoothing)),
                     calx_mul(even, calx_scalar(c->smoothing / (double)c->n)));
}

calx_tensor *calx_cross_entropy_with(calx_tensor *x, calx_tensor *target,
                                     const calx_nll_loss_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_F32, &x, &target);
  classes c = { .op = "cross_entropy", .x = x, .target = target };
  calx_tensor *bad;
  if (!read_arguments(&c, o, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x),
                       *t = cx_lazy_tensor_shape(target);
  bool probabilities = cx_dtype_is_float(t->dtype);
  cx_graph_shape as_x = *t;
  as_x.dtype = s->dtype;
  if (probabilities && !cx_graph_shape_equal(&as_x, s)) {
    return cx_ops_invalid(
        "cross_entropy: a floating target holds probabilities in the shape of "
        "%s, got %s; class numbers are i64 (calx_to_dtype(target, CALX_I64))",
        cx_graph_shape_str(s), cx_graph_shape_str(t));
  }
  if (s->rank == 0) {
    return cx_ops_invalid("cross_entropy: (N,C,…) or (C) is wanted, got %s",
                          cx_graph_shape_str(s));
  }
  if (!probabilities && !locate(&c, &bad)) return bad;
  calx_tensor *log_p = calx_log_softmax(x, (int)c.dim);
  return probabilities ? of_probabilities(&c, log_p)
                       : smoothed(&c, log_p, target_weights(&c));
}
