// ops/composite_diagonal: diagonals and slices written into tensors, composed
// of public ops.
#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

static calx_tensor *count_to(const calx_tensor *x, int64_t n)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(x) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// ---- diagonals --------------------------------------------------------------

// (…, n) as (…, m, m), m = n + |offset|, with x on the diagonal.
static calx_tensor *embed(calx_tensor *x, int64_t offset)
{
  int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
  int64_t pad[2] = { down, right };
  x = calx_pad_with(x, calx_dims_of(pad, 2), NULL);
  if (cx_lazy_tensor_poisoned(x)) return x;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_tensor *at = count_to(x, s->dims[s->rank - 1]);
  calx_tensor *right_of = cx_ops_minus(at, calx_unsqueeze(at, 1));
  calx_tensor *zero =
      cx_ops_weak_as(cx_ops_number(0), s->dtype, calx_tensor_device(x));
  return calx_where(calx_eq(right_of, calx_scalar_int(offset)),
                    calx_unsqueeze(x, -1), zero);
}

calx_tensor *calx_diag_embed_with(calx_tensor *x,
                                  const calx_diagonal_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("diag_embed");
  calx_tensor *bad;
  if (cx_ops_unfit("diag_embed", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(diagonal, o, bad);
  uint32_t rank = cx_lazy_tensor_shape(x)->rank + 1, rows = 0, columns = 0;
  bool none = o->dim1 == 0 && o->dim2 == 0;
  if (rank < 2 || rank > CALX_MAX_RANK ||
      !cx_ops_dim(none ? -2 : o->dim1, rank, &rows) ||
      !cx_ops_dim(none ? -1 : o->dim2, rank, &columns) || rows == columns ||
      o->offset < -INT32_MAX || o->offset > INT32_MAX) {
    return cx_ops_invalid(
        "diag_embed: dim1 %d, dim2 %d, offset %lld of %s: two different "
        "dimensions of a result of one rank more are wanted",
        o->dim1, o->dim2, (long long)o->offset,
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  x = embed(x, o->offset);
  int64_t order[CALX_MAX_RANK];
  for (uint32_t i = 0, next = 0; i < rank; i++) {
    order[i] = i == rows ? rank - 2 : i == columns ? rank - 1 : next++;
  }
  return calx_permute(x, calx_dims_of(order, rank));
}

calx_tensor *calx_diag(calx_tensor *x, int64_t diagonal)
{
  CX_OPS_COMPOSITE_COMPLEX("diag");
  calx_tensor *bad;
  if (cx_ops_unfit("diag", &x, 1, &bad)) return bad;
  calx_diagonal_options o = { .size = sizeof o, .offset = diagonal };
  uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  if (rank == 1) return calx_diag_embed_with(x, &o);
  if (rank == 2) return calx_diagonal_with(x, &o);
  return cx_ops_invalid("diag: %s, a vector or a matrix is wanted",
                        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

calx_tensor *calx_trace(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("trace");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  if (cx_ops_unfit("trace", &x, 1, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->rank != 2) {
    return cx_ops_invalid("trace: %s, a matrix is wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  return calx_sum_with(calx_diagonal_with(x, NULL), NULL);
}

calx_tensor *calx_diagflat(calx_tensor *x, int64_t offset)
{
  CX_OPS_COMPOSITE_COMPLEX("diagflat");
  int64_t all = -1;
  calx_diagonal_options o = { .size = sizeof o, .offset = offset };
  return calx_diag_embed_with(calx_reshape(x, calx_dims_of(&all, 1)), &o);
}

// x (…, n, m) with `source` (…, k) on the diagonal.
static calx_tensor *put_diagonal(calx_tensor *x, calx_tensor *source,
                                 int64_t offset)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[s->rank - 2], m = s->dims[s->rank - 1];
  // Along the rows, or the columns, the diagonal's element is the source's.
  int64_t there = calx_tensor_dim(source, -1);
  int64_t pad[2] = { 0, (offset >= 0 ? n : m) - there };
  source = calx_pad_with(source, calx_dims_of(pad, 2), NULL);
  source = calx_unsqueeze(source, offset >= 0 ? -1 : -2);
  calx_tensor *row = calx_unsqueeze(count_to(x, n), 1);
  calx_tensor *right_of = cx_ops_minus(count_to(x, m), row);
  return calx_where(calx_eq(right_of, calx_scalar_int(offset)), source, x);
}

calx_tensor *calx_diagonal_scatter_with(calx_tensor *x, calx_tensor *source,
                                        const calx_diagonal_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("diagonal_scatter");
  calx_tensor *in[2] = { x, source }, *bad;
  if (cx_ops_unfit("diagonal_scatter", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(diagonal, o, bad);
  calx_tensor *part = calx_diagonal_with(x, o);
  if (cx_lazy_tensor_poisoned(part)) return part;
  const cx_graph_shape *p = cx_lazy_tensor_shape(part);
  source = calx_to_dtype(source, p->dtype);
  if (!cx_graph_shape_equal(cx_lazy_tensor_shape(source), p)) {
    return cx_ops_invalid(
        "diagonal_scatter: the source %s in place of %s: equal sizes are "
        "wanted",
        cx_graph_shape_str(cx_lazy_tensor_shape(source)),
        cx_graph_shape_str(p));
  }
  uint32_t rank = cx_lazy_tensor_shape(x)->rank, d1 = 0, d2 = 0;
  bool none = o->dim1 == 0 && o->dim2 == 0;
  cx_ops_dim(o->dim1, rank, &d1);
  cx_ops_dim(none ? 1 : o->dim2, rank, &d2);
  x = calx_movedim(x, (int)d1, -1);
  x = calx_movedim(x, (int)(d2 > d1 ? d2 - 1 : d2), -1);
  x = put_diagonal(x, source, o->offset);
  x = calx_movedim(x, -1, (int)(d2 > d1 ? d2 - 1 : d2));
  return calx_movedim(x, -1, (int)d1);
}

// ---- slices -----------------------------------------------------------------

// The source as x's type and with the sizes of a part of x. False: *out is what
// the function returns.
static bool take_source(const char *op, calx_tensor *x, calx_tensor *part,
                        bool broadcasts, calx_tensor **source,
                        calx_tensor **out)
{
  if (cx_lazy_tensor_poisoned(part)) {
    *out = part;
    return false;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(part);
  calx_status *status = cx_ops_check_weak(op, *source, s->dtype);
  if (status != NULL) {
    *out = cx_lazy_tensor_poison(status);
    return false;
  }
  if (cx_lazy_tensor_is(*source, CX_LAZY_T_WEAK)) {
    *source = cx_ops_weak_as(*source, s->dtype, calx_tensor_device(x));
    broadcasts = true;
  }
  *source = calx_to_dtype(*source, s->dtype);
  // As in PyTorch, sizes of 1 in front do not count.
  while (broadcasts && calx_tensor_rank(*source) > s->rank &&
         calx_tensor_dim(*source, 0) == 1) {
    *source = calx_squeeze(*source, 0);
  }
  if (broadcasts) *source = calx_expand(*source, cx_ops_dims_of(s));
  *out = *source;
  if (cx_lazy_tensor_poisoned(*source)) return false;
  if (cx_graph_shape_equal(cx_lazy_tensor_shape(*source), s)) return true;
  *out = cx_ops_invalid(
      "%s: the source %s in place of %s: equal sizes are wanted", op,
      cx_graph_shape_str(cx_lazy_tensor_shape(*source)), cx_graph_shape_str(s));
  return false;
}

static calx_tensor *put_slice(const char *op, calx_tensor *x,
                              calx_tensor *source, bool broadcasts, int dim,
                              int64_t start, int64_t end, int64_t step)
{
  calx_tensor *in[2] = { x, source }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_tensor *part = calx_slice(x, dim, start, end, step);
  if (!take_source(op, x, part, broadcasts, &source, &bad)) return bad;
  if (!cx_ops_dim(dim, s->rank, &d)) return part;
  calx_tensor *at = calx_slice(count_to(x, s->dims[d]), 0, start, end, step);
  return calx_index_copy(x, (int)d, at, source);
}

static calx_tensor *put_select(const char *op, calx_tensor *x,
                               calx_tensor *source, bool broadcasts, int dim,
                               int64_t index)
{
  calx_tensor *in[2] = { x, source }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_tensor *part = calx_select(x, dim, index);
  if (!take_source(op, x, part, broadcasts, &source, &bad)) return bad;
  if (!cx_ops_dim(dim, s->rank, &d)) return part;
  if (index < 0) index += s->dims[d];
  return put_slice(op, x, calx_unsqueeze(source, (int)d), false, (int)d, index,
                   index + 1, 1);
}

calx_tensor *calx_slice_scatter(calx_tensor *x, calx_tensor *source, int dim,
                                int64_t start, int64_t end, int64_t step)
{
  CX_OPS_COMPOSITE_COMPLEX("slice_scatter");
  return put_slice("slice_scatter", x, source, false, dim, start, end, step);
}

calx_tensor *calx_select_scatter(calx_tensor *x, calx_tensor *source, int dim,
                                 int64_t index)
{
  CX_OPS_COMPOSITE_COMPLEX("select_scatter");
  return put_select("select_scatter", x, source, false, dim, index);
}

// The tensor takes the value, unless there is none.
static void replace(calx_tensor *tensor, calx_tensor *value)
{
  if (!cx_lazy_tensor_poisoned(value)) calx_assign(tensor, value);
}

void calx_assign_slice(calx_tensor *tensor, calx_tensor *value, int dim,
                       int64_t start, int64_t end, int64_t step)
{
  CX_OPS_COMPOSITE_COMPLEX("assign_slice");
  replace(tensor, put_slice("assign_slice", tensor, value, true, dim, start,
                            end, step));
}

void calx_assign_select(calx_tensor *tensor, calx_tensor *value, int dim,
                        int64_t index)
{
  CX_OPS_COMPOSITE_COMPLEX("assign_select");
  replace(tensor, put_select("assign_select", tensor, value, true, dim, index));
}
