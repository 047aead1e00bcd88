// hlo/infer: constants, and operations that move elements.
#include "hlo/infer.h"

#include <string.h>

// ---- values ----

calx_status *cx_hlo_infer_constant(cx_hlo_infer *in)
{
  const cx_hlo_attr *value = cx_hlo_op_attr(in->op, CX_HLO_A_VALUE);
  in->results[0] = value->as.elements.type;
  return NULL;
}

calx_status *cx_hlo_infer_iota(cx_hlo_infer *in)
{
  const cx_hlo_type *to = &in->results[0].tensor;
  const unsigned numbers = ~CX_HLO_CLASS_BOOL;
  if ((cx_hlo_elem_class(to->elem) & numbers) == 0) {
    return cx_hlo_bad(in, "cannot count in %s", CX_HLO_SHAPE(to));
  }
  return cx_hlo_need_dim(in, "iota_dimension",
                         cx_hlo_op_int(in->op, CX_HLO_A_IOTA_DIMENSION),
                         to->rank);
}

calx_status *cx_hlo_infer_reshape(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *to = &in->results[0].tensor;
  const int64_t n = cx_hlo_type_elements(x);
  if (n < 0 || n != cx_hlo_type_elements(to)) {
    return cx_hlo_bad(in, "%s and %s do not have the same number of elements",
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(to));
  }
  return cx_hlo_result(in, 0, x->elem, to->rank, to->dims);
}

calx_status *cx_hlo_infer_broadcast_in_dim(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type to = in->results[0].tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(in->op, CX_HLO_A_BROADCAST_DIMENSIONS);
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_BROADCAST_DIMENSIONS, x->rank));
  CALX_TRY(cx_hlo_need_dims(in, "broadcast_dimensions", at, to.rank));
  for (size_t k = 0; k < x->rank; k++) {
    const int64_t size = to.dims[at.v[k]];
    if (x->dims[k] == 1 || x->dims[k] == size) continue;
    return cx_hlo_bad(in,
                      "dimension %zu of %s has size %lld, but dimension "
                      "%lld of %s has %lld",
                      k, CX_HLO_SHAPE(x), (long long)x->dims[k],
                      (long long)at.v[k], CX_HLO_SHAPE(&to), (long long)size);
  }
  return cx_hlo_result(in, 0, x->elem, to.rank, to.dims);
}

calx_status *cx_hlo_infer_broadcast(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints sizes = cx_hlo_op_ints(in->op, CX_HLO_A_BROADCAST_SIZES);
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, sizes.n + x->rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < sizes.n; i++) {
    dims[i] = sizes.v[i];
    if (dims[i] < 0) {
      return cx_hlo_bad(in, "broadcast_sizes has %lld", (long long)dims[i]);
    }
  }
  for (size_t i = 0; i < x->rank; i++) dims[sizes.n + i] = x->dims[i];
  return cx_hlo_result(in, 0, x->elem, sizes.n + x->rank, dims);
}

calx_status *cx_hlo_infer_get_dimension_size(cx_hlo_infer *in)
{
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_DIMENSION);
  CALX_TRY(cx_hlo_need_dim(in, "dimension", d, cx_hlo_operand(in, 0)->rank));
  return cx_hlo_result(in, 0, CX_HLO_I32, 0, NULL);
}

// ---- order ----

calx_status *cx_hlo_infer_transpose(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints order = cx_hlo_op_ints(in->op, CX_HLO_A_PERMUTATION);
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_PERMUTATION, x->rank));
  CALX_TRY(cx_hlo_need_dims(in, "permutation", order, x->rank));
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) dims[i] = x->dims[order.v[i]];
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

calx_status *cx_hlo_infer_reverse(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints dims = cx_hlo_op_ints(in->op, CX_HLO_A_DIMENSIONS);
  CALX_TRY(cx_hlo_need_dims(in, "dimensions", dims, x->rank));
  return cx_hlo_result(in, 0, x->elem, x->rank, x->dims);
}

calx_status *cx_hlo_infer_concatenate(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_DIMENSION);
  CALX_TRY(cx_hlo_need_dim(in, "dimension", d, x->rank));
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 1; i < in->op->n_operands; i++) {
    const cx_hlo_type *y = cx_hlo_operand(in, i);
    bool ok = y->elem == x->elem && y->rank == x->rank;
    for (size_t k = 0; ok && k < x->rank; k++) {
      ok = (int64_t)k == d || y->dims[k] == x->dims[k];
    }
    if (!ok || __builtin_add_overflow(dims[d], y->dims[d], &dims[d])) {
      return cx_hlo_bad(in, "%s and %s cannot be joined along dimension %lld",
                        CX_HLO_SHAPE(x), CX_HLO_SHAPE(y), (long long)d);
    }
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

// ---- parts ----

static int64_t ceil_div(int64_t a, int64_t b)
{
  return a / b + (a % b != 0);
}

calx_status *cx_hlo_sliced(cx_hlo_infer *in, const cx_hlo_ints ranges[3])
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) {
    const long long start = ranges[0].v[i];
    const long long limit = ranges[1].v[i];
    const long long stride = ranges[2].v[i];
    if (start < 0 || start > limit || limit > x->dims[i] || stride < 1) {
      return cx_hlo_bad(in,
                        "[%lld:%lld:%lld] is no part of dimension %zu of %s",
                        start, limit, stride, i, CX_HLO_SHAPE(x));
    }
    dims[i] = ceil_div(limit - start, stride);
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

// Three lists with one number for each dimension of the first operand.
static calx_status *three_lists(const cx_hlo_infer *in,
                                const cx_hlo_attr_id ids[3], cx_hlo_ints out[3])
{
  for (size_t i = 0; i < 3; i++) {
    CALX_TRY(cx_hlo_need_count(in, ids[i], cx_hlo_operand(in, 0)->rank));
    out[i] = cx_hlo_op_ints(in->op, ids[i]);
  }
  return NULL;
}

calx_status *cx_hlo_infer_slice(cx_hlo_infer *in)
{
  static const cx_hlo_attr_id ids[3] = { CX_HLO_A_START_INDICES,
                                         CX_HLO_A_LIMIT_INDICES,
                                         CX_HLO_A_STRIDES };
  cx_hlo_ints ranges[3];
  CALX_TRY(three_lists(in, ids, ranges));
  return cx_hlo_sliced(in, ranges);
}

// The operands from `first` are integers of rank 0 and of one type, one for
// each dimension of x.
static calx_status *need_starts(const cx_hlo_infer *in, size_t first)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  if (in->op->n_operands - first != x->rank) {
    return cx_hlo_bad(in, "%s needs %zu start indices, got %zu",
                      CX_HLO_SHAPE(x), x->rank, in->op->n_operands - first);
  }
  for (size_t i = first; i < in->op->n_operands; i++) {
    const cx_hlo_type *start = cx_hlo_operand(in, i);
    if (start->rank != 0 || !cx_hlo_elem_is_int(start->elem) ||
        start->elem != cx_hlo_operand(in, first)->elem) {
      return cx_hlo_bad(in,
                        "start indices must be integers of rank 0 and of "
                        "one type, got %s",
                        CX_HLO_SHAPE(start));
    }
  }
  return NULL;
}

calx_status *cx_hlo_infer_dynamic_slice(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints sizes = cx_hlo_op_ints(in->op, CX_HLO_A_SLICE_SIZES);
  CALX_TRY(need_starts(in, 1));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_SLICE_SIZES, x->rank));
  for (size_t i = 0; i < x->rank; i++) {
    if (sizes.v[i] >= 0 && sizes.v[i] <= x->dims[i]) continue;
    return cx_hlo_bad(in, "size %lld does not fit dimension %zu of %s",
                      (long long)sizes.v[i], i, CX_HLO_SHAPE(x));
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, sizes.v);
}

calx_status *cx_hlo_infer_dynamic_update_slice(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *update = cx_hlo_operand(in, 1);
  CALX_TRY(need_starts(in, 2));
  bool ok = update->elem == x->elem && update->rank == x->rank;
  for (size_t i = 0; ok && i < x->rank; i++) {
    ok = update->dims[i] <= x->dims[i];
  }
  if (!ok) {
    return cx_hlo_bad(in, "%s is no part of %s", CX_HLO_SHAPE(update),
                      CX_HLO_SHAPE(x));
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, x->dims);
}

// low + high + (size - 1) (1 + interior) + 1. false: the number is negative or
// too large.
static bool padded(int64_t size, int64_t low, int64_t high, int64_t interior,
                   int64_t *out)
{
  int64_t between = 0;
  int64_t n = size;
  if (size > 1 && __builtin_mul_overflow(size - 1, interior, &between)) {
    return false;
  }
  return !__builtin_add_overflow(n, between, &n) &&
         !__builtin_add_overflow(n, low, &n) &&
         !__builtin_add_overflow(n, high, out) && *out >= 0;
}

calx_status *cx_hlo_padded(cx_hlo_infer *in, const cx_hlo_ints padding[3])
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) {
    const long long low = padding[0].v[i];
    const long long high = padding[1].v[i];
    const long long interior = padding[2].v[i];
    if (interior >= 0 && padded(x->dims[i], low, high, interior, &dims[i])) {
      continue;
    }
    return cx_hlo_bad(in,
                      "dimension %zu of %s cannot be padded by %lld, %lld, "
                      "interior %lld",
                      i, CX_HLO_SHAPE(x), low, high, interior);
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

calx_status *cx_hlo_infer_pad(cx_hlo_infer *in)
{
  static const cx_hlo_attr_id ids[3] = { CX_HLO_A_EDGE_PADDING_LOW,
                                         CX_HLO_A_EDGE_PADDING_HIGH,
                                         CX_HLO_A_INTERIOR_PADDING };
  cx_hlo_ints padding[3];
  CALX_TRY(cx_hlo_need_scalar(in, "padding", 1, 0));
  CALX_TRY(three_lists(in, ids, padding));
  return cx_hlo_padded(in, padding);
}
