// ops/composite_order: order statistics along a dimension: an element of what
// is sorted. NaN comes last there.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

// What is sorted along a dimension, and where it was.
typedef struct ordered {
  calx_tensor *values, *indices;
  int dim;    // of [0, rank); 0 of a scalar, which has rank 1 here
  int64_t n;  // elements along it
  bool scalar;
} ordered;

static calx_tensor *integer(int64_t value)
{
  return calx_scalar_int(value);
}

// False: *out is what the function returns.
static bool put_in_order(const char *op, calx_tensor *x, int dim, ordered *o,
                         calx_tensor **out_index, calx_tensor **out)
{
  uint32_t d = 0;
  if (out_index != NULL) *out_index = NULL;
  if (cx_ops_unfit(op, &x, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!cx_ops_dim(dim, s->rank, &d)) {
    *out = cx_ops_no_dim(op, "dim", dim, s->rank, s);
    return false;
  }
  o->scalar = s->rank == 0;
  o->n = o->scalar ? 1 : s->dims[d];
  o->dim = (int)d;
  if (o->n == 0) {
    *out = cx_ops_invalid("%s: dimension %u of %s has no elements", op, d,
                          cx_graph_shape_str(s));
    return false;
  }
  if (o->scalar) x = calx_unsqueeze(x, 0);
  calx_sort_options by = { .size = sizeof by,
                           .dim = d == 0 ? INT32_MIN : (int)d,
                           .out_indices = &o->indices };
  o->values = calx_sort_with(x, &by);
  *out = o->values;
  return !cx_lazy_tensor_poisoned(o->values);
}

// The sum along the dimension, which stays.
static calx_tensor *total(const ordered *o, calx_tensor *x)
{
  int64_t dim = o->dim;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = calx_dims_of(&dim, 1),
                            .keepdim = true };
  return calx_sum_with(x, &r);
}

// The elements at the positions `at`, of size 1 along the dimension.
static calx_tensor *pick(const ordered *o, calx_tensor *at, bool keepdim,
                         calx_tensor **out_index)
{
  calx_tensor *out[2] = { calx_gather(o->values, o->dim, at),
                          calx_gather(o->indices, o->dim, at) };
  for (int i = 0; i < 2 && (o->scalar || !keepdim); i++) {
    out[i] = calx_squeeze(out[i], o->dim);
  }
  if (out_index != NULL) *out_index = out[1];
  return out[0];
}

// ---- medians ----------------------------------------------------------------

static calx_tensor *median(const char *op, calx_tensor *x, int dim,
                           bool keepdim, bool numbers, calx_tensor **out_index)
{
  ordered o;
  calx_tensor *bad;
  if (!put_in_order(op, x, dim, &o, out_index, &bad)) return bad;
  calx_tensor *nans = total(&o, calx_isnan(o.values));
  calx_tensor *there = cx_ops_minus(integer(o.n), nans), *at;
  calx_div_options down = { .size = sizeof down, .rounding = CALX_ROUND_TRUNC };
  if (numbers) {
    at = calx_div_with(cx_ops_minus(there, integer(1)), integer(2), &down);
  } else {
    at = calx_where(calx_gt(nans, integer(0)), there, integer((o.n - 1) / 2));
  }
  return pick(&o, at, keepdim, out_index);
}

// Of all elements; of none NaN.
static calx_tensor *whole(const char *op, calx_tensor *x, bool numbers)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  int64_t all = -1;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (cx_graph_shape_numel(s) == 0 && cx_dtype_is_float(s->dtype)) {
    return calx_mean_with(x, NULL);
  }
  return median(op, calx_reshape(x, calx_dims_of(&all, 1)), 0, false, numbers,
                NULL);
}

calx_tensor *calx_median(calx_tensor *x)
{
  CX_OPS_COMPOSITE("median");
  return whole("median", x, false);
}

calx_tensor *calx_nanmedian(calx_tensor *x)
{
  CX_OPS_COMPOSITE("nanmedian");
  return whole("nanmedian", x, true);
}

calx_tensor *calx_median_dim(calx_tensor *x, int dim, bool keepdim,
                             calx_tensor **out_index)
{
  CX_OPS_COMPOSITE("median");
  return median("median_dim", x, dim, keepdim, false, out_index);
}

calx_tensor *calx_nanmedian_dim(calx_tensor *x, int dim, bool keepdim,
                                calx_tensor **out_index)
{
  CX_OPS_COMPOSITE("nanmedian");
  return median("nanmedian_dim", x, dim, keepdim, true, out_index);
}

// ---- k-th and most frequent -------------------------------------------------

calx_tensor *calx_kthvalue(calx_tensor *x, int64_t k, int dim, bool keepdim,
                           calx_tensor **out_index)
{
  CX_OPS_COMPOSITE("kthvalue");
  ordered o;
  calx_tensor *bad;
  if (!put_in_order("kthvalue", x, dim, &o, out_index, &bad)) return bad;
  if (k < 1 || k > o.n) {
    return cx_ops_invalid("kthvalue: k is %lld, 1 to %lld is possible",
                          (long long)k, (long long)o.n);
  }
  calx_tensor *at = calx_narrow(o.indices, o.dim, 0, 1);
  at = cx_ops_plus(calx_mul(at, integer(0)), integer(k - 1));
  return pick(&o, at, keepdim, out_index);
}

calx_tensor *calx_mode(calx_tensor *x, int dim, bool keepdim,
                       calx_tensor **out_index)
{
  CX_OPS_COMPOSITE("mode");
  ordered o;
  calx_tensor *bad;
  if (!put_in_order("mode", x, dim, &o, out_index, &bad)) return bad;
  // A run of equal elements begins where one differs from the one before.
  // Places less the place of the run's begin: the greatest is at the end of the
  // longest run, of which the first has the smallest elements.
  calx_tensor *new = calx_ne(calx_slice(o.values, o.dim, 1, o.n, 1),
                             calx_slice(o.values, o.dim, 0, o.n - 1, 1));
  calx_tensor *first = calx_narrow(o.values, o.dim, 0, 1);
  calx_tensor *parts[2] = {
    calx_logical_or(calx_isnan(first), calx_eq(first, first)), new
  };
  new = calx_cat(parts, 2, o.dim);
  calx_tensor *positions = cx_ops_minus(
      calx_cumsum(calx_logical_or(new, calx_logical_not(new)), o.dim),
      integer(1));
  calx_tensor *begin =
      calx_cummax(calx_where(new, positions, integer(0)), o.dim, NULL);
  calx_tensor *at;
  calx_max_dim(cx_ops_minus(positions, begin), o.dim, true, &at);
  return pick(&o, at, keepdim, out_index);
}

// ---- quantiles --------------------------------------------------------------

// The elements at the positions `at` (…, k) of x, sorted along its last
// dimension.
static calx_tensor *elements_at(calx_tensor *x, calx_tensor *at)
{
  return calx_gather(x, -1, calx_to_dtype(at, CALX_I64));
}

static calx_tensor *between(calx_tensor *x, calx_tensor *at,
                            calx_quantile_interpolation how)
{
  calx_tensor *low = calx_floor(at), *high = calx_ceil(at);
  if (how == CALX_QUANTILE_LOWER) return elements_at(x, low);
  if (how == CALX_QUANTILE_HIGHER) return elements_at(x, high);
  if (how == CALX_QUANTILE_NEAREST) return elements_at(x, calx_round(at));
  calx_tensor *weight = how == CALX_QUANTILE_MIDPOINT ? cx_ops_number(0.5)
                                                      : cx_ops_minus(at, low);
  return calx_lerp(elements_at(x, low), elements_at(x, high), weight);
}

// x with the dimension last, sorted. False: *out is what the function returns.
static bool quantile_rows(const char *op, calx_tensor **x,
                          const calx_quantile_options *o, uint32_t *out_dim,
                          calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(*x);
  int64_t all = -1;
  bool flat = o->dims.count == 0;
  *out = NULL;
  if (s->dtype != CALX_F32 && s->dtype != CALX_F64) {
    *out = cx_ops_invalid(
        "%s: %s, f32 or f64 is wanted; convert it with "
        "calx_to_dtype",
        op, cx_graph_shape_str(s));
  } else if (o->dims.count > 1 ||
             (unsigned)o->interpolation > CALX_QUANTILE_NEAREST) {
    *out = cx_ops_invalid(
        "%s: %zu dims and interpolation %d: one dimension at "
        "most and a CALX_QUANTILE_ are wanted",
        op, o->dims.count, (int)o->interpolation);
  } else if (!flat && !cx_ops_dim(o->dims.values[0], s->rank, out_dim)) {
    *out = cx_ops_no_dim(op, "dim", o->dims.values[0], s->rank, s);
  }
  if (*out != NULL) return false;
  *x = flat || s->rank == 0 ? calx_reshape(*x, calx_dims_of(&all, 1))
                            : calx_movedim(*x, (int)*out_dim, -1);
  if (calx_tensor_numel(*x) == 0) {
    *out = cx_ops_invalid("%s: of no elements", op);
    return false;
  }
  *x = calx_sort_with(*x, NULL);
  return true;
}

static calx_tensor *as_type(calx_tensor *t, const calx_tensor *x)
{
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  return cx_lazy_tensor_is(t, CX_LAZY_T_WEAK)
             ? cx_ops_weak_as(t, dtype, calx_tensor_device(x))
             : calx_to_dtype(t, dtype);
}

// q as a row of x's type. False: *out is what the function returns.
static bool take_q(const char *op, calx_tensor **q, const calx_tensor *x,
                   calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(*q);
  double number = 0;
  if (cx_lazy_tensor_is(*q, CX_LAZY_T_WEAK)) {
    cx_ops_weak_number(*q, false, &number);
  }
  if (s->rank > 1 || !(number >= 0 && number <= 1)) {
    *out = cx_ops_invalid(
        "%s: q is %g, %s: numbers of 0 to 1, of rank 0 or 1, "
        "are wanted",
        op, number, cx_graph_shape_str(s));
    return false;
  }
  *q = calx_atleast_1d(as_type(*q, x));
  return true;
}

static calx_tensor *quantile(const char *op, calx_tensor *x, calx_tensor *q,
                             const calx_quantile_options *o, bool numbers)
{
  calx_tensor *in[2] = { x, q }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(quantile, o, bad);
  const cx_graph_shape own = *cx_lazy_tensor_shape(x);
  bool one = cx_lazy_tensor_shape(q)->rank == 0;
  if (!quantile_rows(op, &x, o, &d, &bad) || !take_q(op, &q, x, &bad)) {
    return bad;
  }
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  ordered rows = { .dim = (int)s.rank - 1 };
  int64_t n = s.dims[s.rank - 1];
  calx_tensor *nans = total(&rows, calx_isnan(x));
  calx_tensor *last = integer(n - 1);
  if (numbers) last = calx_clamp_min(cx_ops_minus(last, nans), integer(0));
  calx_tensor *inside = calx_logical_and(calx_ge(q, cx_ops_number(0)),
                                         calx_le(q, cx_ops_number(1)));
  calx_tensor *at =
      calx_mul(calx_where(inside, q, cx_ops_number(0)), as_type(last, x));
  // The same positions in each row.
  at = cx_ops_plus(at, calx_to_dtype(calx_mul(nans, integer(0)), own.dtype));
  x = between(x, at, o->interpolation);
  calx_tensor *spoilt = calx_logical_not(inside);
  if (!numbers) {
    spoilt = calx_logical_or(spoilt, calx_gt(nans, integer(0)));
  }
  x = calx_where(spoilt, cx_ops_number((double)NAN), x);
  x = calx_movedim(x, -1, 0);
  if (cx_lazy_tensor_poisoned(x)) return x;
  cx_graph_shape kept = own;
  if (o->keepdim) {
    for (uint32_t i = 0; i < own.rank; i++) {
      if (o->dims.count == 0 || i == d) kept.dims[i] = 1;
    }
    for (uint32_t i = own.rank; i-- > 0;) kept.dims[i + 1] = kept.dims[i];
    kept.dims[0] = cx_lazy_tensor_shape(x)->dims[0];
    kept.rank++;
    x = cx_ops_reshape_to(x, &kept);
  }
  return one ? calx_squeeze(x, 0) : x;
}

calx_tensor *calx_quantile_with(calx_tensor *x, calx_tensor *q,
                                const calx_quantile_options *o)
{
  CX_OPS_COMPOSITE("quantile");
  return quantile("quantile", x, q, o, false);
}

calx_tensor *calx_nanquantile_with(calx_tensor *x, calx_tensor *q,
                                   const calx_quantile_options *o)
{
  CX_OPS_COMPOSITE("nanquantile");
  return quantile("nanquantile", x, q, o, true);
}

calx_tensor *calx_msort(calx_tensor *x)
{
  CX_OPS_COMPOSITE("msort");
  calx_tensor *bad;
  if (cx_ops_unfit("msort", &x, 1, &bad)) return bad;
  calx_sort_options first = { .size = sizeof first, .dim = INT32_MIN };
  return calx_sort_with(x, &first);
}
