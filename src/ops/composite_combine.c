// ops/composite_combine: rows combined at indices, composed of scatter_rows
// (ops/gather).
#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"

// What the calls of index_reduce have in common.
typedef struct row_reduction {
  calx_tensor *x, *index, *source;  // rows first
  calx_index_reduction how;
  bool exclude_self;
} row_reduction;

// Whether the operands fit. False: *out is what the function returns.
static bool operands_fit(calx_tensor *x, int dim, calx_tensor *index,
                         calx_tensor *source, uint32_t *out_dim,
                         calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const cx_graph_shape *i = cx_lazy_tensor_shape(index);
  const cx_graph_shape *from = cx_lazy_tensor_shape(source);
  if (s->rank == 0 || !cx_ops_dim(dim, s->rank, out_dim)) {
    *out = cx_ops_no_dim("index_reduce", "dim", dim, s->rank, s);
    return false;
  }
  cx_graph_shape want = *s;
  want.dims[*out_dim] = i->rank == 1 ? i->dims[0] : -1;
  if (cx_dtype_is_int(i->dtype) && cx_graph_shape_equal(from, &want)) {
    return cx_ops_check_indices("index_reduce", false, index, s->dims[*out_dim],
                                INT64_MIN);
  }
  *out = cx_ops_invalid(
      "index_reduce: %s at %s of %s: a vector of integers, and a source of the "
      "same type and sizes but along dimension %u, are wanted",
      cx_graph_shape_str(from), cx_graph_shape_str(i), cx_graph_shape_str(s),
      *out_dim);
  return false;
}

// How many rows of the source each row takes, with x's rank.
static calx_tensor *taken(const row_reduction *r)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(r->x);
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(r->x) };
  calx_tensor *ones =
      cx_ops_plus(cx_ops_zeros_like(r->index), calx_scalar_int(1));
  calx_tensor *count =
      cx_ops_combine_rows(calx_zeros_with(calx_dims_of(s->dims, 1), &o),
                          r->index, ones, CX_OPS_SCATTER_ADD);
  int64_t dims[CALX_MAX_RANK] = { s->dims[0] };
  for (uint32_t i = 1; i < s->rank; i++) dims[i] = 1;
  return calx_reshape(count, calx_dims_of(dims, s->rank));
}

// x with `value` in the rows that take some of the source, if those do not
// count.
static calx_tensor *start_of(const row_reduction *r, int64_t value)
{
  if (!r->exclude_self) return r->x;
  calx_tensor *hit = calx_gt(taken(r), calx_scalar_int(0));
  return calx_where(hit, calx_scalar_int(value), r->x);
}

static calx_tensor *mean_of(const row_reduction *r)
{
  calx_tensor *sum = cx_ops_combine_rows(start_of(r, 0), r->index, r->source,
                                         CX_OPS_SCATTER_ADD);
  calx_tensor *count = taken(r);
  count = r->exclude_self ? calx_maximum(count, calx_scalar_int(1))
                          : cx_ops_plus(count, calx_scalar_int(1));
  calx_dtype dtype = cx_lazy_tensor_shape(r->x)->dtype;
  calx_div_options o = { .size = sizeof o };
  if (!cx_dtype_is_float(dtype)) o.rounding = CALX_ROUND_FLOOR;
  return calx_div_with(sum, calx_to_dtype(count, dtype), &o);
}

static calx_tensor *reduced(const row_reduction *r)
{
  if (r->how == CALX_INDEX_MEAN) return mean_of(r);
  if (r->how == CALX_INDEX_PROD) {
    return cx_ops_combine_rows(start_of(r, 1), r->index, r->source,
                               CX_OPS_SCATTER_PROD);
  }
  // One of the source's rows is there first, which changes no extreme of them.
  calx_tensor *x = r->x;
  if (r->exclude_self) {
    x = cx_ops_combine_rows(x, r->index, r->source, CX_OPS_SCATTER_SET);
  }
  return cx_ops_combine_rows(
      x, r->index, r->source,
      r->how == CALX_INDEX_AMAX ? CX_OPS_SCATTER_AMAX : CX_OPS_SCATTER_AMIN);
}

calx_tensor *calx_index_reduce_with(calx_tensor *x, int dim, calx_tensor *index,
                                    calx_tensor *source,
                                    calx_index_reduction reduce,
                                    const calx_index_reduce_options *o)
{
  CX_OPS_COMPOSITE("index_reduce");
  calx_tensor *in[3] = { x, index, source }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("index_reduce", in, 3, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(index_reduce, o, bad);
  if ((unsigned)reduce > CALX_INDEX_AMIN) {
    return cx_ops_invalid("index_reduce: %d is none of calx_index_reduction",
                          (int)reduce);
  }
  bad = NULL;
  if (!operands_fit(x, dim, index, source, &d, &bad)) {
    return bad != NULL
               ? bad
               : cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  row_reduction r = { .x = calx_movedim(x, (int)d, 0),
                      .index = calx_to_dtype(index, CALX_I64),
                      .source = calx_movedim(source, (int)d, 0),
                      .how = reduce,
                      .exclude_self = o->exclude_self };
  return calx_movedim(reduced(&r), 0, (int)d);
}
