// ops/composite_axes: dimensions added, exchanged, turned and joined, composed
// of public ops.
#include "base/alloc.h"
#include "base/dtype.h"
#include "ops/composite.h"

// ---- reversal and turns -----------------------------------------------------

static calx_tensor *flipped(const char *op, calx_tensor *x, int64_t dim)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank <= dim) {
    return cx_ops_invalid("%s: %s, rank %lld or more is wanted", op,
                          cx_graph_shape_str(s), (long long)dim + 1);
  }
  return calx_flip(x, calx_dims_of(&dim, 1));
}

calx_tensor *calx_fliplr(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("fliplr");
  return flipped("fliplr", x, 1);
}

calx_tensor *calx_flipud(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("flipud");
  return flipped("flipud", x, 0);
}

calx_tensor *calx_rot90(calx_tensor *x, int64_t k, calx_dims dims)
{
  CX_OPS_COMPOSITE_COMPLEX("rot90");
  static const int64_t first[2] = { 0, 1 };
  calx_tensor *bad;
  if (cx_ops_unfit("rot90", &x, 1, &bad)) return bad;
  if (dims.count == 0) dims = calx_dims_of(first, 2);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t a = 0, b = 0;
  if (dims.count != 2 || s->rank < 2 ||
      !cx_ops_dim(dims.values[0], s->rank, &a) ||
      !cx_ops_dim(dims.values[1], s->rank, &b) || a == b) {
    return cx_ops_invalid(
        "rot90: %zu dims of %s: two different ones are wanted", dims.count,
        cx_graph_shape_str(s));
  }
  int64_t turns = (k % 4 + 4) % 4, both[2] = { a, b };
  if (turns == 0) return x;
  if (turns == 2) return calx_flip(x, calx_dims_of(both, 2));
  x = calx_flip(x, calx_dims_of(turns == 1 ? &both[1] : &both[0], 1));
  return calx_transpose(x, (int)a, (int)b);
}

// ---- other names ------------------------------------------------------------

calx_tensor *calx_swapaxes(calx_tensor *x, int axis0, int axis1)
{
  CX_OPS_COMPOSITE_COMPLEX("swapaxes");
  return calx_transpose(x, axis0, axis1);
}

calx_tensor *calx_swapdims(calx_tensor *x, int dim0, int dim1)
{
  CX_OPS_COMPOSITE_COMPLEX("swapdims");
  return calx_transpose(x, dim0, dim1);
}

calx_tensor *calx_moveaxis(calx_tensor *x, int source, int destination)
{
  CX_OPS_COMPOSITE_COMPLEX("moveaxis");
  return calx_movedim(x, source, destination);
}

calx_tensor *calx_broadcast_to(calx_tensor *x, calx_dims shape)
{
  CX_OPS_COMPOSITE_COMPLEX("broadcast_to");
  return calx_expand(x, shape);
}

calx_tensor *calx_expand_as(calx_tensor *x, calx_tensor *other)
{
  CX_OPS_COMPOSITE_COMPLEX("expand_as");
  calx_tensor *in[2] = { x, other }, *bad;
  if (cx_ops_unfit("expand_as", in, 2, &bad)) return bad;
  return calx_expand(x, cx_ops_dims_of(cx_lazy_tensor_shape(other)));
}

// ---- a least rank -----------------------------------------------------------

static calx_tensor *at_least(const char *op, calx_tensor *x, uint32_t rank)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (s.rank >= rank) return x;
  // A row is (1, n), and (1, n, 1); a matrix (n, m, 1).
  while (s.rank < rank) {
    if (s.rank == 1) {
      s.dims[1] = s.dims[0];
      s.dims[0] = 1;
      s.rank = 2;
    } else {
      s.dims[s.rank++] = 1;
    }
  }
  return cx_ops_reshape_to(x, &s);
}

calx_tensor *calx_atleast_1d(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("atleast_1d");
  return at_least("atleast_1d", x, 1);
}

calx_tensor *calx_atleast_2d(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("atleast_2d");
  return at_least("atleast_2d", x, 2);
}

calx_tensor *calx_atleast_3d(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("atleast_3d");
  return at_least("atleast_3d", x, 3);
}

// ---- joining ----------------------------------------------------------------

// The tensors with at least this rank, in an array that the caller frees. NULL:
// *out is what the function returns.
static calx_tensor **lifted(const char *op, calx_tensor *const *tensors,
                            size_t count, uint32_t rank, calx_tensor **out)
{
  if (tensors == NULL || count == 0 || count > CX_OPS_CAT_MOST) {
    *out = cx_ops_invalid("%s: %zu tensors, 1 to %d are wanted", op, count,
                          CX_OPS_CAT_MOST);
    return NULL;
  }
  if (cx_ops_unfit(op, tensors, (uint32_t)count, out)) return NULL;
  calx_tensor **all = cx_alloc(count * sizeof(calx_tensor *));
  if (all == NULL) {
    *out = cx_lazy_tensor_poison(cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < count; i++) all[i] = at_least(op, tensors[i], rank);
  return all;
}

static calx_tensor *joined(const char *op, calx_tensor *const *tensors,
                           size_t count, uint32_t rank, int dim)
{
  calx_tensor *out;
  calx_tensor **all = lifted(op, tensors, count, rank, &out);
  if (all == NULL) return out;
  // Vectors are joined along the only dimension that they have.
  if (dim == 1 && cx_lazy_tensor_shape(all[0])->rank == 1) dim = 0;
  out = calx_cat(all, count, dim);
  cx_free(all);
  return out;
}

calx_tensor *calx_hstack(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("hstack");
  return joined("hstack", tensors, count, 1, 1);
}

calx_tensor *calx_vstack(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("vstack");
  return joined("vstack", tensors, count, 2, 0);
}

calx_tensor *calx_dstack(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("dstack");
  return joined("dstack", tensors, count, 3, 2);
}

calx_tensor *calx_block_diag(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("block_diag");
  calx_tensor *out;
  calx_tensor **all = lifted("block_diag", tensors, count, 2, &out);
  if (all == NULL) return out;
  int64_t columns = 0, before = 0;
  out = NULL;
  for (size_t i = 0; i < count; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(all[i]);
    if (s->rank > 2) {
      out = cx_ops_invalid("block_diag: tensor %zu is %s, a matrix is wanted",
                           i, cx_graph_shape_str(s));
      break;
    }
    columns += s->dims[1];
  }
  for (size_t i = 0; out == NULL && i < count; i++) {
    int64_t n = cx_lazy_tensor_shape(all[i])->dims[1];
    int64_t pad[2] = { before, columns - before - n };
    all[i] = calx_pad_with(all[i], calx_dims_of(pad, 2), NULL);
    before += n;
  }
  if (out == NULL) out = calx_cat(all, count, 0);
  cx_free(all);
  return out;
}

// ---- parts ------------------------------------------------------------------

void calx_split_with_sizes(calx_tensor *x, calx_dims sizes, int dim,
                           calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("split_with_sizes");
  calx_split(x, sizes, dim, out);
}

// The size of a dimension that x has. False: all `n` parts are the error.
static bool size_along(calx_tensor *x, int dim, size_t n, calx_tensor **out,
                       int64_t *out_size)
{
  calx_tensor *bad;
  uint32_t d = 0;
  const char *op = "tensor_split";
  bool fits = !cx_ops_unfit(op, &x, 1, &bad);
  if (fits) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(x);
    fits = s->rank != 0 && cx_ops_dim(dim, s->rank, &d);
    if (fits) *out_size = s->dims[d];
    if (!fits) bad = cx_ops_no_dim(op, "dim", dim, s->rank, s);
  }
  for (size_t i = 0; !fits && i < n; i++) out[i] = bad;
  return fits;
}

void calx_tensor_split(calx_tensor *x, size_t sections, int dim,
                       calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("tensor_split");
  int64_t size = 0, at = 0, n = (int64_t)sections;
  if (!size_along(x, dim, sections, out, &size)) return;
  if (sections == 0) {
    cx_ops_invalid("tensor_split: 0 sections, 1 or more are wanted");
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t end = at + size / n + (i < size % n);
    out[i] = calx_slice(x, dim, at, end, 1);
    at = end;
  }
}

void calx_tensor_split_at(calx_tensor *x, calx_dims indices, int dim,
                          calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("tensor_split");
  int64_t size = 0, at = 0;
  if (indices.count > CALX_MAX_RANK) {
    calx_tensor *bad = cx_ops_invalid(
        "tensor_split: %zu indices, calx_dims holds %d: calx_tensor_split makes "
        "any number of equal parts",
        indices.count, CALX_MAX_RANK);
    for (size_t i = 0; i <= CALX_MAX_RANK; i++) out[i] = bad;
    return;
  }
  if (!size_along(x, dim, indices.count + 1, out, &size)) return;
  for (size_t i = 0; i <= indices.count; i++) {
    int64_t end = i < indices.count ? indices.values[i] : size;
    out[i] = calx_slice(x, dim, at, end, 1);
    at = end;
  }
}
