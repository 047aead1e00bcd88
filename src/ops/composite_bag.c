// ops/composite_bag: rows of a table that are joined to bags.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

typedef struct bags {
  calx_tensor *number;  // of the bag of each index, (n)
  calx_tensor *counts;  // whether each index counts, (n); NULL: all do
  int64_t count;
} bags;

static calx_tensor *filled(const calx_tensor *like, calx_dims shape,
                           double value)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = calx_tensor_dtype(like),
                            .device = calx_tensor_device(like) };
  return calx_full_with(shape, value, &o);
}

static calx_tensor *count_to(const calx_tensor *like, int64_t n,
                             calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = calx_tensor_device(like) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// Each row of the index, (bags, indices), is a bag; *index becomes (n).
static void bags_of_rows(calx_tensor **index, bags *out)
{
  int64_t length = calx_tensor_dim(*index, 1);
  out->count = calx_tensor_dim(*index, 0);
  calx_tensor *row = count_to(*index, out->count, CALX_I64);
  row = calx_expand(calx_unsqueeze(row, 1), CALX_SHAPE(out->count, length));
  out->number = calx_reshape(row, CALX_SHAPE(out->count * length));
  *index = calx_reshape(*index, CALX_SHAPE(out->count * length));
}

// Bag i has the indices from offsets[i] to offsets[i + 1].
static void bags_of_offsets(calx_tensor *index, calx_tensor *offsets, bags *out)
{
  calx_tensor *at =
      count_to(index, calx_tensor_dim(index, 0), calx_tensor_dtype(offsets));
  calx_searchsorted_options behind = { .size = sizeof behind, .right = true };
  out->count = calx_tensor_dim(offsets, 0);
  out->number = cx_ops_minus(calx_searchsorted_with(offsets, at, &behind),
                             calx_scalar_int(1));
}

// The sums of the bags' rows, (count, …).
static calx_tensor *sums(calx_tensor *rows, const bags *b, calx_dims shape)
{
  return calx_index_add_with(filled(rows, shape, 0), 0, b->number, rows, NULL);
}

static calx_tensor *greatest(calx_tensor *rows, const bags *b, calx_dims shape)
{
  calx_tensor *low = filled(rows, shape, -(double)INFINITY);
  calx_tensor *number =
      calx_expand(calx_unsqueeze(b->number, 1), calx_tensor_shape(rows));
  calx_tensor *y = calx_scatter_reduce(low, 0, number, rows, CALX_SCATTER_AMAX);
  return calx_where(calx_isneginf(y), filled(y, CALX_SCALAR, 0), y);
}

static calx_tensor *join(calx_tensor *rows, const bags *b,
                         calx_embedding_bag_mode mode)
{
  const bool max = mode == CALX_BAG_MAX;
  int64_t n = calx_tensor_dim(rows, 0);
  calx_dims shape = CALX_SHAPE(b->count, calx_tensor_dim(rows, 1));
  if (b->counts != NULL) {
    double least = max ? -(double)INFINITY : 0;
    rows = calx_where(calx_unsqueeze(b->counts, 1), rows,
                      filled(rows, CALX_SCALAR, least));
  }
  if (max) return greatest(rows, b, shape);
  calx_tensor *y = sums(rows, b, shape);
  if (mode == CALX_BAG_SUM) return y;
  calx_tensor *one = b->counts != NULL
                         ? calx_to_dtype(b->counts, calx_tensor_dtype(rows))
                         : filled(rows, CALX_SHAPE(n), 1);
  calx_tensor *size = sums(one, b, CALX_SHAPE(b->count));
  return calx_div(y, calx_maximum(calx_unsqueeze(size, 1), calx_scalar(1)));
}

static bool is_index(const cx_graph_shape *s, uint32_t rank)
{
  return s->rank == rank && cx_dtype_is_int(s->dtype);
}

// Why the operands do not fit; NULL: they do.
static calx_tensor *misfit(const calx_tensor *index, const calx_tensor *weight,
                           const calx_embedding_bag_options *o)
{
  const cx_graph_shape *i = cx_lazy_tensor_shape(index);
  const cx_graph_shape *w = cx_lazy_tensor_shape(weight);
  if (w->rank != 2 || !is_index(i, o->offsets != NULL ? 1 : 2)) {
    return cx_ops_invalid(
        "embedding_bag: the index %s and the weight %s: integers (bags, "
        "indices), or (indices) with .offsets, and (rows, size) are wanted",
        cx_graph_shape_str(i), cx_graph_shape_str(w));
  }
  if (o->offsets != NULL) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(o->offsets);
    if (!is_index(s, 1) || (o->include_last_offset && s->dims[0] == 0)) {
      return cx_ops_invalid(
          "embedding_bag: the offsets are %s: integers (bags), one more with "
          ".include_last_offset, are wanted",
          cx_graph_shape_str(s));
    }
  } else if (o->include_last_offset) {
    return cx_ops_invalid(
        "embedding_bag: .include_last_offset is of .offsets, which is NULL");
  }
  if ((unsigned)o->mode > CALX_BAG_MAX) {
    return cx_ops_invalid(
        "embedding_bag: mode %d is no calx_embedding_bag_mode", (int)o->mode);
  }
  if (o->per_sample_weights == NULL) return NULL;
  const cx_graph_shape *s = cx_lazy_tensor_shape(o->per_sample_weights);
  if (o->mode == CALX_BAG_SUM && s->rank == i->rank &&
      cx_graph_shape_numel(s) == cx_graph_shape_numel(i) &&
      s->dims[0] == i->dims[0]) {
    return NULL;
  }
  return cx_ops_invalid(
      "embedding_bag: the weights of samples are %s for an index %s: one for "
      "each and CALX_BAG_SUM are wanted",
      cx_graph_shape_str(s), cx_graph_shape_str(i));
}

calx_tensor *calx_embedding_bag_with(calx_tensor *index, calx_tensor *weight,
                                     const calx_embedding_bag_options *o)
{
  CX_OPS_COMPOSITE("embedding_bag");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(embedding_bag, o, bad);
  calx_tensor *in[4] = { index, weight };
  uint32_t n = 2;
  if (o->offsets != NULL) in[n++] = o->offsets;
  if (o->per_sample_weights != NULL) in[n++] = o->per_sample_weights;
  if (cx_ops_unfit("embedding_bag", in, n, &bad)) return bad;
  bad = misfit(index, weight, o);
  if (bad != NULL) return bad;
  bags b = { 0 };
  if (o->offsets != NULL)
    bags_of_offsets(index, o->offsets, &b);
  else
    bags_of_rows(&index, &b);
  calx_embedding_options e = { .size = sizeof e,
                               .padding_idx = o->padding_idx };
  calx_tensor *rows = calx_embedding_with(index, weight, &e);
  if (cx_lazy_tensor_poisoned(rows)) return rows;
  if (o->per_sample_weights != NULL) {
    calx_tensor *by = calx_reshape(o->per_sample_weights, CALX_SHAPE(-1, 1));
    rows = calx_mul(rows, by);
  }
  if (o->padding_idx != 0) {
    int64_t row = o->padding_idx == CALX_ZERO_INT ? 0 : o->padding_idx;
    if (row < 0) row += calx_tensor_dim(weight, 0);
    b.counts = calx_ne(index, calx_scalar_int(row));
  }
  calx_tensor *y = join(rows, &b, o->mode);
  return o->include_last_offset ? calx_narrow(y, 0, 0, b.count - 1) : y;
}
