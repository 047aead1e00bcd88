// ops/composite_put: writing at indices and masks, and counting in sets and
// intervals, composed of take and scatter_rows (ops/gather).
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"

static calx_tensor *integer(int64_t value)
{
  return calx_scalar_int(value);
}

static calx_tensor *flat(calx_tensor *x)
{
  int64_t all = -1;
  return calx_reshape(x, calx_dims_of(&all, 1));
}

// An index of a dimension of size n, counted from the front; negative: out of
// range. False: *out is what the function returns.
static bool from_front(const char *op, calx_tensor **index, int64_t n,
                       calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(*index);
  if (!cx_dtype_is_int(s->dtype)) {
    *out = cx_ops_invalid(
        "%s: an index is %s, integers are wanted; masks are taken by "
        "calx_masked_fill and calx_masked_scatter",
        op, cx_graph_shape_str(s));
    return false;
  }
  calx_tensor *at = calx_to_dtype(*index, CALX_I64);
  at = calx_where(calx_lt(at, integer(0)), cx_ops_plus(at, integer(n)), at);
  if (!cx_ops_check_indices(op, false, at, n, INT64_MIN)) {
    *out = cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
    return false;
  }
  *index = calx_where(calx_lt(at, integer(n)), at, integer(-1));
  return true;
}

// A value as x's type. False: *out is what the function returns.
static bool as_type_of(const char *op, calx_tensor *x, calx_tensor **value,
                       calx_tensor **out)
{
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_status *status = cx_ops_check_weak(op, *value, dtype);
  if (status != NULL) {
    *out = cx_lazy_tensor_poison(status);
    return false;
  }
  if (cx_lazy_tensor_is(*value, CX_LAZY_T_WEAK)) {
    *value = cx_ops_weak_as(*value, dtype, calx_tensor_device(x));
  }
  *out = *value;
  if (cx_lazy_tensor_poisoned(*value)) return false;
  if (cx_lazy_tensor_shape(*value)->dtype == dtype) return true;
  *out = cx_ops_invalid("%s: values are %s, the type of %s is wanted", op,
                        cx_graph_shape_str(cx_lazy_tensor_shape(*value)),
                        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  return false;
}

// ---- writing ----------------------------------------------------------------

calx_tensor *calx_index_fill(calx_tensor *x, int dim, calx_tensor *index,
                             calx_tensor *value)
{
  CX_OPS_COMPOSITE("index_fill");
  calx_tensor *in[3] = { x, index, value }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("index_fill", in, 3, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (s.rank == 0 || !cx_ops_dim(dim, s.rank, &d)) {
    return cx_ops_no_dim("index_fill", "dim", dim, s.rank, &s);
  }
  const cx_graph_shape *i = cx_lazy_tensor_shape(index);
  if (i->rank > 1 || cx_lazy_tensor_shape(value)->rank != 0) {
    return cx_ops_invalid(
        "index_fill: index %s, value %s: ranks 0 or 1, and 0, are wanted",
        cx_graph_shape_str(i), cx_graph_shape_str(cx_lazy_tensor_shape(value)));
  }
  s.dims[d] = cx_graph_shape_numel(i);
  if (!cx_lazy_tensor_is(value, CX_LAZY_T_WEAK)) {
    value = calx_to_dtype(value, s.dtype);
  }
  if (!from_front("index_fill", &index, cx_lazy_tensor_shape(x)->dims[d],
                  &bad) ||
      !as_type_of("index_fill", x, &value, &bad)) {
    return bad;
  }
  value = calx_expand(value, cx_ops_dims_of(&s));
  x = cx_ops_combine_rows(calx_movedim(x, (int)d, 0), flat(index),
                          calx_movedim(value, (int)d, 0), CX_OPS_SCATTER_SET);
  return calx_movedim(x, 0, (int)d);
}

// The positions that the indices name in x's first dimensions laid end to end;
// -1: out of range. False: *out is what the function returns.
static bool positions_of(calx_tensor *x, calx_tensor *const *indices,
                         size_t count, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_tensor *at = NULL, *outside = NULL;
  if (indices == NULL || count == 0 || count > s->rank) {
    *out = cx_ops_invalid("index_put: %zu indices of %s: 1 to %u are wanted",
                          count, cx_graph_shape_str(s), s->rank);
    return false;
  }
  if (cx_ops_unfit("index_put", indices, (uint32_t)count, out)) return false;
  for (size_t i = 0; i < count; i++) {
    calx_tensor *one = indices[i];
    if (!from_front("index_put", &one, s->dims[i], out)) return false;
    calx_tensor *off = calx_lt(one, integer(0));
    outside = outside == NULL ? off : calx_logical_or(outside, off);
    at = at == NULL ? one : cx_ops_plus(calx_mul(at, integer(s->dims[i])), one);
  }
  *out = calx_where(outside, integer(-1), at);
  return !cx_lazy_tensor_poisoned(*out);
}

calx_tensor *calx_index_put_with(calx_tensor *x, calx_tensor *const *indices,
                                 size_t count, calx_tensor *values,
                                 const calx_index_put_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("index_put");
  calx_tensor *in[2] = { x, values }, *at;
  if (cx_ops_unfit("index_put", in, 2, &at)) return at;
  CX_OPS_TAKE_OPTIONS(index_put, o, at);
  if (!positions_of(x, indices, count, &at)) return at;
  calx_tensor *bad;
  if (!as_type_of("index_put", x, &values, &bad)) return bad;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const cx_graph_shape *i = cx_lazy_tensor_shape(at);
  // The indices' dimensions and those that are left; rows (n, …) of x.
  cx_graph_shape wanted = { .dtype = s.dtype, .rank = 0 };
  cx_graph_shape rows = { .dtype = s.dtype, .rank = 1, .dims = { 1 } };
  cx_graph_shape source = { .rank = 1, .dims = { cx_graph_shape_numel(i) } };
  if (i->rank + s.rank - count > CALX_MAX_RANK) {
    return cx_ops_invalid(
        "index_put: indices of rank %u leave more than %d "
        "dimensions",
        i->rank, CALX_MAX_RANK);
  }
  for (uint32_t k = 0; k < i->rank; k++) {
    wanted.dims[wanted.rank++] = i->dims[k];
  }
  for (uint32_t k = 0; k < s.rank; k++) {
    if (k < count) {
      rows.dims[0] *= s.dims[k];
      continue;
    }
    wanted.dims[wanted.rank++] = s.dims[k];
    source.dims[source.rank++] = rows.dims[rows.rank++] = s.dims[k];
  }
  values = calx_expand(values, cx_ops_dims_of(&wanted));
  if (cx_lazy_tensor_poisoned(values)) return values;
  x = cx_ops_combine_rows(
      cx_ops_reshape_to(x, &rows), flat(at), cx_ops_reshape_to(values, &source),
      o->accumulate ? CX_OPS_SCATTER_ADD : CX_OPS_SCATTER_SET);
  return cx_ops_reshape_to(x, &s);
}

calx_tensor *calx_masked_scatter(calx_tensor *x, calx_tensor *mask,
                                 calx_tensor *source)
{
  CX_OPS_COMPOSITE("masked_scatter");
  calx_tensor *in[3] = { x, mask, source }, *bad;
  if (cx_ops_unfit("masked_scatter", in, 3, &bad)) return bad;
  if (cx_lazy_tensor_shape(mask)->dtype != CALX_BOOL) {
    return cx_ops_invalid("masked_scatter: the mask is %s, bool is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(mask)));
  }
  if (!as_type_of("masked_scatter", x, &source, &bad)) return bad;
  // The common shape of both.
  x = calx_where(calx_logical_or(mask, calx_logical_not(mask)), x, x);
  if (cx_lazy_tensor_poisoned(x)) return x;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  mask = flat(calx_expand(mask, cx_ops_dims_of(&s)));
  calx_tensor *nth = cx_ops_minus(calx_cumsum(mask, 0), integer(1));
  calx_tensor *taken = cx_ops_take(flat(source), nth, 0);
  return cx_ops_reshape_to(calx_where(mask, taken, flat(x)), &s);
}

// ---- counting ---------------------------------------------------------------

calx_tensor *calx_bucketize_with(calx_tensor *x, calx_tensor *boundaries,
                                 const calx_searchsorted_options *o)
{
  CX_OPS_COMPOSITE("bucketize");
  calx_tensor *in[2] = { x, boundaries }, *bad;
  if (cx_ops_unfit("bucketize", in, 2, &bad)) return bad;
  if (cx_lazy_tensor_shape(boundaries)->rank != 1) {
    return cx_ops_invalid("bucketize: boundaries are %s, rank 1 is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(boundaries)));
  }
  return calx_searchsorted_with(boundaries, x, o);
}

calx_tensor *calx_isin_with(calx_tensor *elements, calx_tensor *test_elements,
                            const calx_isin_options *o)
{
  CX_OPS_COMPOSITE("isin");
  calx_tensor *in[2] = { elements, test_elements }, *bad;
  if (cx_ops_unfit("isin", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(isin, o, bad);
  cx_ops_promote(in, 2);
  const cx_graph_shape *s = cx_lazy_tensor_shape(in[0]);
  int64_t last = -1;
  if (s->rank == CALX_MAX_RANK) {
    return cx_ops_invalid("isin: %s, at most %d dimensions are possible",
                          cx_graph_shape_str(s), CALX_MAX_RANK - 1);
  }
  calx_reduce_options r = { .size = sizeof r, .dims = calx_dims_of(&last, 1) };
  calx_tensor *found =
      calx_any_with(calx_eq(calx_unsqueeze(in[0], -1), flat(in[1])), &r);
  return o->invert ? calx_logical_not(found) : found;
}

// The ends of the intervals. False: *out is what the function returns.
static bool ends_of(calx_tensor *x, const calx_histc_options *o,
                    calx_tensor **min, calx_tensor **max, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  bool fits =
      cx_dtype_is_float(s->dtype) && o->bins >= 0 && o->bins <= INT32_MAX;
  if (!fits || !isfinite(o->min) || !isfinite(o->max) || o->min > o->max) {
    *out = cx_ops_invalid(
        "histc: %lld bins from %g to %g of %s: floats, 1 or more bins and "
        "finite ends in order are wanted",
        (long long)o->bins, o->min, o->max, cx_graph_shape_str(s));
    return false;
  }
  bool given = o->min != 0 || o->max != 0 || cx_graph_shape_numel(s) == 0;
  *min = given ? calx_scalar(o->min) : calx_detach(calx_min(x));
  *max = given ? calx_scalar(o->max) : calx_detach(calx_max(x));
  // Of one number alone, an interval around it.
  calx_tensor *flat_range = calx_eq(*min, *max);
  calx_tensor *less = cx_ops_minus(*min, cx_ops_number(1));
  calx_tensor *more = cx_ops_plus(*max, cx_ops_number(1));
  *min = calx_where(flat_range, less, *min);
  *max = calx_where(flat_range, more, *max);
  return true;
}

calx_tensor *calx_histc_with(calx_tensor *x, const calx_histc_options *o)
{
  CX_OPS_COMPOSITE("histc");
  calx_tensor *bad, *min, *max;
  if (cx_ops_unfit("histc", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(histc, o, bad);
  if (!ends_of(x, o, &min, &max, &bad)) return bad;
  int64_t bins = o->bins == 0 ? 100 : o->bins;
  x = flat(calx_detach(x));
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_tensor *inside = calx_logical_and(calx_ge(x, min), calx_le(x, max));
  calx_tensor *at = calx_mul(cx_ops_minus(x, min), cx_ops_number((double)bins));
  at = calx_div(at, cx_ops_minus(max, min));
  at = calx_where(inside, at, cx_ops_number(-1));
  // The greatest belongs to the last interval.
  at = calx_minimum(calx_to_dtype(at, CALX_I64), integer(bins - 1));
  calx_create_options like = { .size = sizeof like,
                               .dtype = dtype,
                               .device = calx_tensor_device(x) };
  calx_tensor *ones = calx_to_dtype(inside, dtype);
  return cx_ops_combine_rows(calx_zeros_with(calx_dims_of(&bins, 1), &like), at,
                             ones, CX_OPS_SCATTER_ADD);
}
