// ops/composite_index: reading and writing at indices, composed of take and
// scatter_rows (ops/gather).
//
// gather and scatter address single elements: they use the tensor as one row of
// elements, in which an index has its row-major position.
#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"

// A literal of the index's type.
static calx_tensor *integer(const calx_tensor *index, int64_t value)
{
  return cx_ops_weak_as(cx_ops_number((double)value), CALX_I64,
                        calx_tensor_device(index));
}

// Whether index can be used as such and dim is one of x's. False: *out is what
// the function returns.
static bool take_index(const char *op, const calx_tensor *x, int64_t dim,
                       calx_tensor **index, uint32_t *out_dim,
                       calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x),
                       *i = cx_lazy_tensor_shape(*index);
  if (s->rank == 0 || !cx_ops_dim(dim, s->rank, out_dim)) {
    *out = cx_ops_no_dim(op, "dim", dim, s->rank, s);
    return false;
  }
  if (!cx_dtype_is_int(i->dtype)) {
    *out = cx_ops_invalid(
        "%s: the index is %s, integers are wanted; convert it "
        "with calx_to_dtype(index, CALX_I64)",
        op, cx_graph_shape_str(i));
    return false;
  }
  if (!cx_ops_check_indices(op, false, *index, s->dims[*out_dim], INT64_MIN)) {
    *out = cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
    return false;
  }
  *index = calx_to_dtype(*index, CALX_I64);
  return true;
}

calx_tensor *calx_index_select(calx_tensor *x, int dim, calx_tensor *index)
{
  CX_OPS_COMPOSITE_COMPLEX("index_select");
  calx_tensor *in[2] = { x, index }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("index_select", in, 2, &bad) ||
      !take_index("index_select", x, dim, &index, &d, &bad)) {
    return bad;
  }
  if (cx_lazy_tensor_shape(index)->rank > 1) {
    return cx_ops_invalid("index_select: the index is %s, rank 1 is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(index)));
  }
  int64_t all = -1;
  return cx_ops_take(x, calx_reshape(index, calx_dims_of(&all, 1)), d);
}

calx_tensor *calx_embedding_with(calx_tensor *index, calx_tensor *weight,
                                 const calx_embedding_options *o)
{
  CX_OPS_COMPOSITE("embedding");
  calx_tensor *in[2] = { index, weight }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("embedding", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(embedding, o, bad);
  const cx_graph_shape *w = cx_lazy_tensor_shape(weight);
  if (w->rank != 2) {
    return cx_ops_invalid(
        "embedding: the weight is %s, (embeddings, size) is "
        "wanted",
        cx_graph_shape_str(w));
  }
  if (!take_index("embedding", weight, 0, &index, &d, &bad)) return bad;
  calx_tensor *rows = cx_ops_take(weight, index, 0);
  if (o->padding_idx == 0) return rows;
  int64_t padding = o->padding_idx == CALX_ZERO_INT ? 0 : o->padding_idx;
  if (padding < 0) padding += w->dims[0];
  calx_tensor *is_padding =
      calx_unsqueeze(calx_eq(index, integer(index, padding)), -1);
  return calx_where(is_padding, calx_detach(rows), rows);
}

calx_tensor *calx_one_hot(calx_tensor *index, int64_t num_classes)
{
  CX_OPS_COMPOSITE("one_hot");
  calx_tensor *bad;
  if (cx_ops_unfit("one_hot", &index, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(index);
  if (!cx_dtype_is_int(s->dtype) || num_classes < 1 ||
      s->rank == CALX_MAX_RANK) {
    return cx_ops_invalid(
        "one_hot: %s in %lld classes: integers of less than "
        "%d dimensions in 1 or more classes are wanted",
        cx_graph_shape_str(s), (long long)num_classes, CALX_MAX_RANK);
  }
  calx_tensor *at = calx_unsqueeze(calx_to_dtype(index, CALX_I64), -1);
  return calx_to_dtype(cx_ops_points_at(at, s->rank, num_classes, s->rank + 1),
                       CALX_I64);
}

// ---- single elements --------------------------------------------------------

// The row-major positions in x (shape s) of the elements that `index` names
// along dim, in a row; -1 where it is out of range.
static calx_tensor *positions(const cx_graph_shape *s, calx_tensor *index,
                              uint32_t dim)
{
  const cx_graph_shape own = *cx_lazy_tensor_shape(index);
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(index) };
  calx_tensor *sum = NULL;
  int64_t stride = 1, all = -1;
  for (uint32_t k = s->rank; k-- > 0;) {
    calx_tensor *at = index;
    if (k != dim) {
      int64_t dims[CALX_MAX_RANK];
      for (uint32_t i = 0; i < own.rank; i++) {
        dims[i] = i == k ? own.dims[k] : 1;
      }
      at = calx_reshape(calx_arange_with(0, (double)own.dims[k], 1, &o),
                        calx_dims_of(dims, own.rank));
    }
    if (stride != 1) at = calx_mul(at, integer(index, stride));
    sum = sum == NULL ? at : cx_ops_plus(sum, at);
    stride *= s->dims[k];
  }
  calx_tensor *inside =
      calx_bitwise_and(calx_ge(index, integer(index, 0)),
                       calx_lt(index, integer(index, s->dims[dim])));
  sum = calx_where(inside, sum, integer(index, -1));
  return calx_reshape(sum, calx_dims_of(&all, 1));
}

// Whether index has x's rank and fits it but along dim.
static bool index_fits(const char *op, const calx_tensor *x,
                       const calx_tensor *index, uint32_t dim,
                       calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x),
                       *i = cx_lazy_tensor_shape(index);
  bool fits = s->rank == i->rank;
  for (uint32_t k = 0; fits && k < s->rank; k++) {
    fits = k == dim || i->dims[k] <= s->dims[k];
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "%s: the index %s must have the rank of %s, and be no "
      "larger but along dimension %u",
      op, cx_graph_shape_str(i), cx_graph_shape_str(s), dim);
  return false;
}

static calx_tensor *flat(calx_tensor *x)
{
  int64_t all = -1;
  return calx_reshape(x, calx_dims_of(&all, 1));
}

static calx_tensor *gather(const char *op, calx_tensor *x, int dim,
                           calx_tensor *index)
{
  calx_tensor *in[2] = { x, index }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 2, &bad) ||
      !take_index(op, x, dim, &index, &d, &bad) ||
      !index_fits(op, x, index, d, &bad)) {
    return bad;
  }
  calx_tensor *at = positions(cx_lazy_tensor_shape(x), index, d);
  return cx_ops_reshape_to(cx_ops_take(flat(x), at, 0),
                           cx_lazy_tensor_shape(index));
}

calx_tensor *calx_gather(calx_tensor *x, int dim, calx_tensor *index)
{
  CX_OPS_COMPOSITE_COMPLEX("gather");
  return gather("gather", x, dim, index);
}

calx_tensor *calx_take_along_dim(calx_tensor *x, calx_tensor *index, int dim)
{
  CX_OPS_COMPOSITE_COMPLEX("take_along_dim");
  calx_tensor *in[2] = { x, index }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("take_along_dim", in, 2, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x), i = *cx_lazy_tensor_shape(index);
  if (s.rank != i.rank || !cx_ops_dim(dim, s.rank, &d)) {
    return cx_ops_invalid(
        "take_along_dim: dimension %d of %s by %s: equal ranks "
        "are wanted",
        dim, cx_graph_shape_str(&s), cx_graph_shape_str(&i));
  }
  for (uint32_t k = 0; k < s.rank; k++) {
    if (k == d) continue;
    if (s.dims[k] == 1) s.dims[k] = i.dims[k];
    if (i.dims[k] == 1) i.dims[k] = s.dims[k];
    if (s.dims[k] == i.dims[k]) continue;
    return cx_ops_invalid(
        "take_along_dim: dimension %u of %s and of the index %s must be equal "
        "or 1",
        k, cx_graph_shape_str(cx_lazy_tensor_shape(x)),
        cx_graph_shape_str(cx_lazy_tensor_shape(index)));
  }
  return gather("take_along_dim", calx_expand(x, cx_ops_dims_of(&s)), dim,
                calx_expand(index, cx_ops_dims_of(&i)));
}

// x with source's elements combined at the positions. `op` is for messages.
static calx_tensor *scatter(const char *op, calx_tensor *x, int dim,
                            calx_tensor *index, calx_tensor *source,
                            cx_ops_scatter_how how)
{
  calx_tensor *in[3] = { x, index, source }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 3, &bad) ||
      !take_index(op, x, dim, &index, &d, &bad) ||
      !index_fits(op, x, index, d, &bad)) {
    return bad;
  }
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const cx_graph_shape *i = cx_lazy_tensor_shape(index);
  if (cx_lazy_tensor_is(source, CX_LAZY_T_WEAK)) {
    source = cx_ops_weak_as(source, s.dtype, calx_tensor_device(x));
    source = calx_expand(source, cx_ops_dims_of(i));
  }
  const cx_graph_shape *from = cx_lazy_tensor_shape(source);
  bool fits = from->rank == i->rank && from->dtype == s.dtype;
  for (uint32_t k = 0; fits && k < i->rank; k++) {
    fits = i->dims[k] <= from->dims[k];
  }
  if (!fits) {
    return cx_ops_invalid(
        "%s: the source %s must have the type and rank of %s, "
        "and at least the sizes of the index %s",
        op, cx_graph_shape_str(from), cx_graph_shape_str(&s),
        cx_graph_shape_str(i));
  }
  for (uint32_t k = 0; k < i->rank; k++) {
    source = calx_slice(source, (int)k, 0, i->dims[k], 1);
  }
  x = cx_ops_combine_rows(flat(x), positions(&s, index, d), flat(source), how);
  return cx_ops_reshape_to(x, &s);
}

calx_tensor *calx_scatter(calx_tensor *x, int dim, calx_tensor *index,
                          calx_tensor *source)
{
  CX_OPS_COMPOSITE_COMPLEX("scatter");
  return scatter("scatter", x, dim, index, source, CX_OPS_SCATTER_SET);
}

calx_tensor *calx_scatter_add(calx_tensor *x, int dim, calx_tensor *index,
                              calx_tensor *source)
{
  CX_OPS_COMPOSITE_COMPLEX("scatter_add");
  return scatter("scatter_add", x, dim, index, source, CX_OPS_SCATTER_ADD);
}

calx_tensor *calx_scatter_reduce(calx_tensor *x, int dim, calx_tensor *index,
                                 calx_tensor *source,
                                 calx_scatter_reduction reduce)
{
  static const cx_ops_scatter_how how[] = {
    [CALX_SCATTER_SUM] = CX_OPS_SCATTER_ADD,
    [CALX_SCATTER_PROD] = CX_OPS_SCATTER_PROD,
    [CALX_SCATTER_AMAX] = CX_OPS_SCATTER_AMAX,
    [CALX_SCATTER_AMIN] = CX_OPS_SCATTER_AMIN,
  };
  CX_OPS_COMPOSITE("scatter_reduce");
  if ((unsigned)reduce > CALX_SCATTER_AMIN) {
    return cx_ops_invalid(
        "scatter_reduce: %d is none of calx_scatter_reduction", (int)reduce);
  }
  return scatter("scatter_reduce", x, dim, index, source, how[reduce]);
}

// ---- rows -------------------------------------------------------------------

static calx_tensor *write_rows(const char *op, calx_tensor *x, int dim,
                               calx_tensor *index, calx_tensor *source,
                               cx_ops_scatter_how how)
{
  calx_tensor *in[3] = { x, index, source }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 3, &bad) ||
      !take_index(op, x, dim, &index, &d, &bad)) {
    return bad;
  }
  cx_graph_shape wanted = *cx_lazy_tensor_shape(x);
  const cx_graph_shape *i = cx_lazy_tensor_shape(index);
  wanted.dims[d] = cx_graph_shape_numel(i);
  if (i->rank > 1 ||
      !cx_graph_shape_equal(&wanted, cx_lazy_tensor_shape(source))) {
    return cx_ops_invalid(
        "%s: %s at the index %s of dimension %u: an index of "
        "rank 1 and a source %s are wanted",
        op, cx_graph_shape_str(cx_lazy_tensor_shape(source)),
        cx_graph_shape_str(i), d, cx_graph_shape_str(&wanted));
  }
  x = cx_ops_combine_rows(calx_movedim(x, (int)d, 0), flat(index),
                          calx_movedim(source, (int)d, 0), how);
  return calx_movedim(x, 0, (int)d);
}

calx_tensor *calx_index_add_with(calx_tensor *x, int dim, calx_tensor *index,
                                 calx_tensor *source,
                                 const calx_index_add_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("index_add");
  if (o != NULL && !cx_is_default(o->alpha)) {
    source = calx_mul(source, calx_scalar(o->alpha));
  }
  return write_rows("index_add", x, dim, index, source, CX_OPS_SCATTER_ADD);
}

calx_tensor *calx_index_copy(calx_tensor *x, int dim, calx_tensor *index,
                             calx_tensor *source)
{
  CX_OPS_COMPOSITE_COMPLEX("index_copy");
  return write_rows("index_copy", x, dim, index, source, CX_OPS_SCATTER_SET);
}
