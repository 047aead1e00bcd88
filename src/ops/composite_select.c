// ops/composite_select: functions whose result has as many elements as the data
// say. With a limit the result has that many, and the count is a tensor;
// without one the count is read, which runs what is pending.
#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"

static calx_tensor *flat(calx_tensor *x)
{
  int64_t all = -1;
  return calx_reshape(x, calx_dims_of(&all, 1));
}

static calx_tensor *count_to(const calx_tensor *x, int64_t n)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(x) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// How many elements the result has: the limit, or the number that `count` has.
// False: *out is what the function returns.
static bool result_size(const char *op, calx_tensor *count,
                        const calx_select_options *o, int64_t *out_n,
                        calx_tensor **out)
{
  if (o->out_count != NULL) *o->out_count = count;
  *out_n = o->limit;
  if (o->limit > 0) return true;
  if (o->limit < 0) {
    *out = cx_ops_invalid("%s: .limit is %lld", op, (long long)o->limit);
    return false;
  }
  cx_log_once_per_site(op,
                       "%s reads how many elements there are, and runs "
                       "what is pending; with a .limit it does not",
                       op);
  calx_status *status = calx_tensor_read(count, out_n, sizeof *out_n);
  if (status == NULL) return true;
  *out = cx_lazy_tensor_poison(status);
  return false;
}

// The positions of the true elements of a mask (n), in order; -1 behind them.
// False: *out is what the function returns.
static bool true_positions(const char *op, calx_tensor *mask,
                           const calx_select_options *o, calx_tensor **out)
{
  int64_t n = 0, have = calx_tensor_numel(mask);
  calx_tensor *count = calx_sum_with(mask, NULL);
  if (!result_size(op, count, o, &n, out)) return false;
  calx_tensor *order =
      calx_argsort_with(calx_to_dtype(calx_logical_not(mask), CALX_U8), NULL);
  int64_t pad[2] = { 0, n - have };
  order = calx_pad_with(order, calx_dims_of(pad, 2), NULL);
  calx_tensor *there = calx_lt(count_to(mask, n), count);
  *out = calx_where(there, order, calx_scalar_int(-1));
  return true;
}

calx_tensor *calx_nonzero_with(calx_tensor *x, const calx_select_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("nonzero");
  calx_tensor *at, *parts[CALX_MAX_RANK];
  if (cx_ops_unfit("nonzero", &x, 1, &x)) return x;
  CX_OPS_TAKE_OPTIONS(select, o, x);
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (!true_positions("nonzero", flat(calx_to_dtype(x, CALX_BOOL)), o, &at)) {
    return at;
  }
  calx_div_options down = { .size = sizeof down, .rounding = CALX_ROUND_FLOOR };
  calx_tensor *none = calx_lt(at, calx_scalar_int(0));
  calx_tensor *rest = at;
  for (uint32_t i = s.rank; i-- > 0;) {
    calx_tensor *size = calx_scalar_int(s.dims[i] > 0 ? s.dims[i] : 1);
    parts[i] =
        calx_where(none, calx_scalar_int(-1), calx_remainder(rest, size));
    rest = calx_div_with(rest, size, &down);
  }
  if (s.rank != 0) return calx_stack(parts, s.rank, 1);
  int64_t dims[2] = { calx_tensor_numel(at), 0 };
  calx_create_options like = { .size = sizeof like,
                               .dtype = CALX_I64,
                               .device = calx_tensor_device(x) };
  return calx_zeros_with(calx_dims_of(dims, 2), &like);
}

calx_tensor *calx_masked_select_with(calx_tensor *x, calx_tensor *mask,
                                     const calx_select_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("masked_select");
  calx_tensor *in[2] = { x, mask }, *at;
  if (cx_ops_unfit("masked_select", in, 2, &at)) return at;
  CX_OPS_TAKE_OPTIONS(select, o, at);
  if (cx_lazy_tensor_shape(mask)->dtype != CALX_BOOL) {
    return cx_ops_invalid("masked_select: the mask is %s, bool is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(mask)));
  }
  // Broadcasts both: where() of the mask and x has the common shape.
  calx_tensor *whole =
      calx_where(calx_logical_or(mask, calx_logical_not(mask)), x, x);
  if (cx_lazy_tensor_poisoned(whole)) return whole;
  mask = calx_expand(mask, cx_ops_dims_of(cx_lazy_tensor_shape(whole)));
  if (!true_positions("masked_select", flat(mask), o, &at)) return at;
  return cx_ops_take(flat(whole), at, 0);
}

// The different elements of each run of equal ones in `row` (n); order[i] is
// where element i was in a tensor of shape s.
static calx_tensor *runs_of(const char *op, calx_tensor *row,
                            calx_tensor *order, const cx_graph_shape *s,
                            const calx_unique_options *o)
{
  calx_tensor *bad;
  int64_t n = cx_graph_shape_numel(s), size = 0;
  // An element is new where it differs from the one before; `which` numbers
  // the new ones.
  calx_tensor *before = calx_slice(row, 0, 0, n - 1, 1);
  calx_tensor *is_new = calx_ne(calx_slice(row, 0, 1, n, 1), before);
  int64_t pad[2] = { n > 0, 0 };
  calx_pad_options fill = { .size = sizeof fill, .value = 1 };
  is_new = calx_pad_with(is_new, calx_dims_of(pad, 2), &fill);
  calx_tensor *which = cx_ops_minus(calx_cumsum(is_new, 0), calx_scalar_int(1));
  calx_select_options select = { .size = sizeof select,
                                 .limit = o->limit,
                                 .out_count = o->out_count };
  if (!result_size(op, calx_sum_with(is_new, NULL), &select, &size, &bad)) {
    return bad;
  }
  calx_create_options like = { .size = sizeof like,
                               .dtype = CALX_I64,
                               .device = calx_tensor_device(row) };
  calx_dims dims = calx_dims_of(&size, 1);
  if (o->out_inverse != NULL) {
    *o->out_inverse = cx_ops_reshape_to(
        calx_scatter(cx_ops_zeros_like(which), 0, order, which), s);
  }
  if (o->out_counts != NULL) {
    calx_tensor *ones =
        calx_to_dtype(calx_ge(which, calx_scalar_int(0)), CALX_I64);
    *o->out_counts = cx_ops_combine_rows(calx_zeros_with(dims, &like), which,
                                         ones, CX_OPS_SCATTER_ADD);
  }
  like.dtype = s->dtype;
  return cx_ops_combine_rows(calx_zeros_with(dims, &like), which, row,
                             CX_OPS_SCATTER_SET);
}

calx_tensor *calx_unique_with(calx_tensor *x, const calx_unique_options *o)
{
  CX_OPS_COMPOSITE("unique");
  if (cx_ops_unfit("unique", &x, 1, &x)) return x;
  calx_tensor *bad, *order;
  CX_OPS_TAKE_OPTIONS(unique, o, bad);
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  calx_sort_options sort = { .size = sizeof sort, .out_indices = &order };
  calx_tensor *sorted = calx_sort_with(flat(x), &sort);
  return runs_of("unique", sorted, order, &s, o);
}

calx_tensor *calx_unique_consecutive_with(calx_tensor *x,
                                          const calx_unique_options *o)
{
  CX_OPS_COMPOSITE("unique_consecutive");
  calx_tensor *bad;
  if (cx_ops_unfit("unique_consecutive", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(unique, o, bad);
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  return runs_of("unique_consecutive", flat(calx_detach(x)),
                 count_to(x, cx_graph_shape_numel(&s)), &s, o);
}

calx_tensor *calx_argwhere_with(calx_tensor *x, const calx_select_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("argwhere");
  return calx_nonzero_with(x, o);
}

calx_tensor *calx_bincount_with(calx_tensor *x, const calx_bincount_options *o)
{
  CX_OPS_COMPOSITE("bincount");
  calx_tensor *in[2] = { x, o != NULL ? o->weights : NULL }, *bad;
  if (cx_ops_unfit("bincount", in, in[1] != NULL ? 2 : 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(bincount, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != 1 || !cx_dtype_is_int(s->dtype) || o->minlength < 0) {
    return cx_ops_invalid(
        "bincount: %s and minlength %lld: integers of rank 1 "
        "and 0 or more are wanted",
        cx_graph_shape_str(s), (long long)o->minlength);
  }
  x = calx_to_dtype(x, CALX_I64);
  int64_t n = 0;
  calx_select_options select = { .size = sizeof select, .limit = o->limit };
  calx_tensor *bins = s->dims[0] == 0
                          ? calx_sum_with(x, NULL)
                          : cx_ops_plus(calx_max(x), calx_scalar_int(1));
  if (!result_size("bincount", bins, &select, &n, &bad)) return bad;
  if (n < o->minlength) n = o->minlength;
  calx_tensor *ones = calx_to_dtype(calx_eq(x, x), CALX_I64);
  calx_tensor *weights = o->weights != NULL ? o->weights : ones;
  calx_create_options like = { .size = sizeof like,
                               .dtype = cx_lazy_tensor_shape(weights)->dtype,
                               .device = calx_tensor_device(x) };
  return cx_ops_combine_rows(calx_zeros_with(calx_dims_of(&n, 1), &like), x,
                             weights, CX_OPS_SCATTER_ADD);
}
