// hlo/infer: operations in which several devices take part.
//
// The rules check that the groups are well formed. Whether the groups fit the
// number of devices is checked by the compiler.
#include <stdlib.h>

#include "hlo/infer.h"

static int compare(const void *a, const void *b)
{
  const int64_t x = *(const int64_t *)a;
  const int64_t y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// The integers e[first], e[first + step], … are not below `least` and differ.
// Only -1, which pads groups, may occur several times.
static calx_status *check_ids(const cx_hlo_infer *in, const char *what,
                              const cx_hlo_elements *e, size_t first,
                              size_t step, int64_t least)
{
  // Two elements of a splat are enough: there may be more than memory holds.
  const size_t all = (size_t)cx_hlo_type_elements(&e->type.tensor);
  const size_t n = e->splat ? (all > 2 * step ? 2 : all / step) : all / step;
  int64_t *ids = CX_ARENA_ARRAY(in->arena, int64_t, n + 1);
  if (ids == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    ids[i] = cx_hlo_elements_int(e, first + i * step);
    if (ids[i] < least) {
      return cx_hlo_bad(in, "%s has %lld", what, (long long)ids[i]);
    }
  }
  qsort(ids, n, sizeof *ids, compare);
  for (size_t i = 1; i < n; i++) {
    if (ids[i] < 0 || ids[i] != ids[i - 1]) continue;
    return cx_hlo_bad(in, "%s has %lld twice", what, (long long)ids[i]);
  }
  return NULL;
}

// The size of a group; 0 for no groups, which means one group of all devices.
static calx_status *group_size(const cx_hlo_infer *in, int64_t *out)
{
  const cx_hlo_attr *groups = cx_hlo_op_attr(in->op, CX_HLO_A_REPLICA_GROUPS);
  const cx_hlo_elements *e = &groups->as.elements;
  *out = e->type.tensor.dims[0] == 0 ? 0 : e->type.tensor.dims[1];
  return check_ids(in, "replica_groups", e, 0, 1, -1);
}

// The number of participants in a group. It is the group's size, unless there
// are no groups, or a group contains all partitions of its replicas (a channel
// without use_global_device_ids). Then it follows from the sizes of operand and
// result: `large` over `small`.
static calx_status *count_members(const cx_hlo_infer *in, int64_t size,
                                  int64_t large, int64_t small, int64_t *out)
{
  const cx_hlo_channel *channel =
      cx_hlo_op_struct(in->op, CX_HLO_A_CHANNEL_HANDLE);
  const bool partitions =
      channel != NULL && channel->handle > 0 &&
      !cx_hlo_op_flag(in->op, CX_HLO_A_USE_GLOBAL_DEVICE_IDS);
  *out = size;
  if ((size != 0 && !partitions) || small <= 0) return NULL;
  *out = large / small;
  if (size == 0 || *out % size == 0) return NULL;
  return cx_hlo_bad(in, "groups of %lld cannot make %lld of %lld",
                    (long long)size, (long long)large, (long long)small);
}

// With has_dynamic_root the last operand is the root.
static calx_status *same_results(cx_hlo_infer *in)
{
  const size_t root = cx_hlo_op_flag(in->op, CX_HLO_A_HAS_DYNAMIC_ROOT);
  const size_t n = in->op->n_operands - root;
  CALX_TRY(cx_hlo_same_results(in, "operands", n));
  if (root == 0 || cx_hlo_elem_is_int(cx_hlo_operand(in, n)->elem)) {
    return NULL;
  }
  return cx_hlo_bad(in, "the root must be an integer, got %s",
                    CX_HLO_SHAPE(cx_hlo_operand(in, n)));
}

calx_status *cx_hlo_infer_all_reduce(cx_hlo_infer *in)
{
  int64_t size = 0;
  CALX_TRY(group_size(in, &size));
  CALX_TRY(same_results(in));
  // One region of two scalars serves all operands.
  const cx_hlo_elem first = cx_hlo_operand(in, 0)->elem;
  for (size_t i = 1; i < in->op->n_results; i++) {
    CALX_TRY(cx_hlo_need_same_elem(in, 0, i));
  }
  cx_hlo_elem elem;
  CALX_TRY(cx_hlo_need_reducer(in, 0, &first, 1, &elem));
  for (size_t i = 0; i < in->op->n_results; i++) {
    in->results[i].tensor.elem = elem;
  }
  return NULL;
}

calx_status *cx_hlo_infer_reduce_scatter(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_SCATTER_DIMENSION);
  const cx_hlo_type declared = in->results[0].tensor;
  int64_t size = 0;
  CALX_TRY(group_size(in, &size));
  CALX_TRY(same_results(in));
  CALX_TRY(cx_hlo_need_dim(in, "scatter_dimension", d, x->rank));
  cx_hlo_elem elem;
  CALX_TRY(cx_hlo_need_reducer(in, 0, &x->elem, 1, &elem));
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  if (declared.rank == x->rank) {
    CALX_TRY(count_members(in, size, x->dims[d], declared.dims[d], &size));
  }
  if (size < 1 || x->dims[d] % size != 0) {
    return cx_hlo_bad(in, "dimension %lld of %s cannot be split among %lld",
                      (long long)d, CX_HLO_SHAPE(x), (long long)size);
  }
  dims[d] /= size;
  return cx_hlo_result(in, 0, elem, x->rank, dims);
}

calx_status *cx_hlo_infer_all_gather(cx_hlo_infer *in)
{
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_ALL_GATHER_DIM);
  int64_t size = 0;
  CALX_TRY(group_size(in, &size));
  CALX_TRY(cx_hlo_need_results(in, "operands", in->op->n_operands));
  for (size_t i = 0; i < in->op->n_operands; i++) {
    const cx_hlo_type *x = cx_hlo_operand(in, i);
    CALX_TRY(cx_hlo_need_dim(in, "all_gather_dim", d, x->rank));
    int64_t factor = size;
    if (in->results[i].tensor.rank == x->rank) {
      CALX_TRY(count_members(in, size, in->results[i].tensor.dims[d],
                             x->dims[d], &factor));
    }
    int64_t *dims = cx_hlo_dims_copy(in, x);
    if (dims == NULL) return cx_out_of_memory();
    if (__builtin_mul_overflow(dims[d], factor, &dims[d])) {
      return cx_hlo_bad(in, "%s times %lld is too large", CX_HLO_SHAPE(x),
                        (long long)factor);
    }
    CALX_TRY(cx_hlo_result(in, i, x->elem, x->rank, dims));
  }
  return NULL;
}

calx_status *cx_hlo_infer_all_to_all(cx_hlo_infer *in)
{
  const int64_t split = cx_hlo_op_int(in->op, CX_HLO_A_SPLIT_DIMENSION);
  const int64_t join = cx_hlo_op_int(in->op, CX_HLO_A_CONCAT_DIMENSION);
  const int64_t count = cx_hlo_op_int(in->op, CX_HLO_A_SPLIT_COUNT);
  int64_t size = 0;
  CALX_TRY(group_size(in, &size));
  CALX_TRY(same_results(in));
  for (size_t i = 0; i < in->op->n_operands; i++) {
    const cx_hlo_type *x = cx_hlo_operand(in, i);
    CALX_TRY(cx_hlo_need_dim(in, "split_dimension", split, x->rank));
    CALX_TRY(cx_hlo_need_dim(in, "concat_dimension", join, x->rank));
    int64_t members = 0;
    CALX_TRY(count_members(in, size, count, 1, &members));
    if (count < 1 || x->dims[split] % count != 0 || members != count) {
      return cx_hlo_bad(in,
                        "dimension %lld of %s cannot be split into %lld "
                        "among groups of %lld",
                        (long long)split, CX_HLO_SHAPE(x), (long long)count,
                        (long long)size);
    }
    int64_t *dims = cx_hlo_dims_copy(in, x);
    if (dims == NULL) return cx_out_of_memory();
    dims[split] /= count;
    if (__builtin_mul_overflow(dims[join], count, &dims[join])) {
      return cx_hlo_bad(in, "%s times %lld is too large", CX_HLO_SHAPE(x),
                        (long long)count);
    }
    CALX_TRY(cx_hlo_result(in, i, x->elem, x->rank, dims));
  }
  return NULL;
}

calx_status *cx_hlo_infer_collective_permute(cx_hlo_infer *in)
{
  const cx_hlo_attr *pairs =
      cx_hlo_op_attr(in->op, CX_HLO_A_SOURCE_TARGET_PAIRS);
  const cx_hlo_elements *e = &pairs->as.elements;
  const cx_hlo_type *t = &e->type.tensor;
  if (t->dims[0] != 0 && t->dims[1] != 2) {
    return cx_hlo_bad(in, "source_target_pairs must be pairs, got %s",
                      CX_HLO_SHAPE(t));
  }
  if (t->dims[0] != 0) {
    CALX_TRY(check_ids(in, "source_target_pairs", e, 0, 2, 0));
    CALX_TRY(check_ids(in, "source_target_pairs", e, 1, 2, 0));
  }
  return same_results(in);
}

calx_status *cx_hlo_infer_collective_broadcast(cx_hlo_infer *in)
{
  int64_t size = 0;
  CALX_TRY(group_size(in, &size));
  return same_results(in);
}

calx_status *cx_hlo_infer_device_id(cx_hlo_infer *in)
{
  return cx_hlo_result(in, 0, CX_HLO_UI32, 0, NULL);
}
