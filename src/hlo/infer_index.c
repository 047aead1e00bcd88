// hlo/infer: gather, scatter and sort.
//
// The names are those of the specification. Some dimensions of the operand are
// collapsed (or inserted), some are batching dimensions, and the others form
// the window. One dimension of the indices holds the index vectors; the others
// are batch dimensions.
#include "hlo/infer.h"

#include <string.h>

static size_t count_in(cx_hlo_ints a, cx_hlo_ints b)
{
  size_t n = 0;
  for (size_t i = 0; i < a.n; i++) n += cx_hlo_ints_have(b, a.v[i]);
  return n;
}

static bool ascending(cx_hlo_ints list)
{
  for (size_t i = 1; i < list.n; i++) {
    if (list.v[i] <= list.v[i - 1]) return false;
  }
  return true;
}

// How the index vectors of a gather or scatter address the operand.
typedef struct addressing {
  const cx_hlo_type *operand, *indices;
  cx_hlo_ints missing;  // collapsed or inserted dimensions of the operand
  cx_hlo_ints operand_batch, indices_batch, index_map;
  int64_t index_vector_dim;
} addressing;

static calx_status *check_batch(const cx_hlo_infer *in, const addressing *a)
{
  const size_t rank = a->indices->rank;
  CALX_TRY(cx_hlo_need_dims(in, "operand batching dimensions", a->operand_batch,
                            a->operand->rank));
  CALX_TRY(cx_hlo_need_dims(in, "indices batching dimensions", a->indices_batch,
                            rank));
  if (a->operand_batch.n != a->indices_batch.n ||
      cx_hlo_ints_have(a->indices_batch, a->index_vector_dim)) {
    return cx_hlo_bad(in,
                      "the batching dimensions of operand and indices do "
                      "not pair, or hold the index vectors");
  }
  for (size_t i = 0; i < a->operand_batch.n; i++) {
    const int64_t x = a->operand->dims[a->operand_batch.v[i]];
    const int64_t y = a->indices->dims[a->indices_batch.v[i]];
    if (x == y) continue;
    return cx_hlo_bad(in,
                      "batching sizes differ: %lld of operand %s, %lld of "
                      "indices %s",
                      (long long)x, CX_HLO_SHAPE(a->operand), (long long)y,
                      CX_HLO_SHAPE(a->indices));
  }
  return NULL;
}

static int64_t index_vector_size(const addressing *a)
{
  return a->index_vector_dim == (int64_t)a->indices->rank
             ? 1
             : a->indices->dims[a->index_vector_dim];
}

static calx_status *check_addressing(const cx_hlo_infer *in,
                                     const addressing *a)
{
  const size_t rank = a->indices->rank;
  if (!cx_hlo_elem_is_int(a->indices->elem) &&
      a->indices->elem != CX_HLO_INDEX) {
    return cx_hlo_bad(in, "indices must be integers, got %s",
                      CX_HLO_SHAPE(a->indices));
  }
  if (a->index_vector_dim < 0 || a->index_vector_dim > (int64_t)rank) {
    return cx_hlo_bad(in, "index_vector_dim is %lld, but indices are %s",
                      (long long)a->index_vector_dim, CX_HLO_SHAPE(a->indices));
  }
  const int64_t size = index_vector_size(a);
  if ((int64_t)a->index_map.n != size) {
    return cx_hlo_bad(in,
                      "the index map has %zu dimensions, but the index "
                      "vectors of %s have %lld",
                      a->index_map.n, CX_HLO_SHAPE(a->indices),
                      (long long)size);
  }
  CALX_TRY(
      cx_hlo_need_dims(in, "the index map", a->index_map, a->operand->rank));
  CALX_TRY(check_batch(in, a));
  CALX_TRY(cx_hlo_need_dims(in, "collapsed or inserted dimensions", a->missing,
                            a->operand->rank));
  if (!ascending(a->missing) || !ascending(a->operand_batch)) {
    return cx_hlo_bad(in,
                      "collapsed or inserted, and batching dimensions must "
                      "ascend");
  }
  if (count_in(a->operand_batch, a->missing) != 0 ||
      count_in(a->operand_batch, a->index_map) != 0) {
    return cx_hlo_bad(in,
                      "a batching dimension of the operand is collapsed, "
                      "inserted or indexed too");
  }
  return NULL;
}

// Steps to the next batch dimension of the indices and writes its size. *at is
// the dimension to continue with.
static bool next_batch_size(const addressing *a, size_t *at, int64_t *out)
{
  if (*at == (size_t)a->index_vector_dim) ++*at;
  if (*at >= a->indices->rank) return false;
  *out = a->indices->dims[(*at)++];
  return true;
}

// Whether a dimension of the operand belongs to the window.
static bool in_window(const addressing *a, size_t dim)
{
  return !cx_hlo_ints_have(a->missing, (int64_t)dim) &&
         !cx_hlo_ints_have(a->operand_batch, (int64_t)dim);
}

static size_t batch_rank(const addressing *a)
{
  const size_t rank = a->indices->rank;
  return a->index_vector_dim < (int64_t)rank ? rank - 1 : rank;
}

// ---- gather ----

static calx_status *check_slices(const cx_hlo_infer *in, const addressing *a,
                                 cx_hlo_ints sizes)
{
  const cx_hlo_type *x = a->operand;
  for (size_t i = 0; i < x->rank; i++) {
    const int64_t most = in_window(a, i) ? x->dims[i] : 1;
    if (sizes.v[i] < 0 || sizes.v[i] > x->dims[i] || sizes.v[i] > most) {
      return cx_hlo_bad(in, "slice size %lld does not fit dimension %zu of %s",
                        (long long)sizes.v[i], i, CX_HLO_SHAPE(x));
    }
  }
  return NULL;
}

// The sizes of the slice that each index vector reads. For a dynamic_gather
// they are an operand; where that is no constant, they follow from the declared
// result.
static calx_status *gather_sizes(cx_hlo_infer *in, const addressing *a,
                                 cx_hlo_ints offset, cx_hlo_ints *out)
{
  const size_t rank = a->operand->rank;
  const cx_hlo_type *to = &in->results[0].tensor;
  const cx_hlo_elements *known = NULL;
  *out = cx_hlo_op_ints(in->op, CX_HLO_A_SLICE_SIZES);
  if (in->op->kind == CX_HLO_OP_GATHER) {
    return cx_hlo_need_count(in, CX_HLO_A_SLICE_SIZES, rank);
  }
  CALX_TRY(cx_hlo_need_vector(in, 2, rank, &known));
  CALX_TRY(cx_hlo_need_dims(in, "offset_dims", offset, to->rank));
  int64_t *v = CX_ARENA_ARRAY(in->arena, int64_t, rank + 1);
  if (v == NULL) return cx_out_of_memory();
  size_t next = 0;
  for (size_t i = 0; i < rank; i++) {
    v[i] = 1;
    if (known != NULL) {
      v[i] = cx_hlo_elements_int(known, i);
    } else if (in_window(a, i) && next < offset.n) {
      v[i] = to->dims[offset.v[next++]];
    }
  }
  *out = (cx_hlo_ints){ v, rank };
  return NULL;
}

calx_status *cx_hlo_infer_gather(cx_hlo_infer *in)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(in->op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const addressing a = { cx_hlo_operand(in, 0), cx_hlo_operand(in, 1),
                         g->collapsed,          g->operand_batch,
                         g->indices_batch,      g->index_map,
                         g->index_vector_dim };
  cx_hlo_ints sizes;
  CALX_TRY(check_addressing(in, &a));
  CALX_TRY(gather_sizes(in, &a, g->offset, &sizes));
  CALX_TRY(check_slices(in, &a, sizes));
  const size_t rank = batch_rank(&a) + g->offset.n;
  const size_t window = a.operand->rank - a.missing.n - a.operand_batch.n;
  if (g->offset.n != window || !ascending(g->offset)) {
    return cx_hlo_bad(in,
                      "offset_dims must name %zu ascending dimensions, got "
                      "%zu",
                      window, g->offset.n);
  }
  CALX_TRY(cx_hlo_need_dims(in, "offset_dims", g->offset, rank));
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  size_t at = 0;
  size_t slice = 0;
  for (size_t i = 0; i < rank; i++) {
    if (!cx_hlo_ints_have(g->offset, (int64_t)i)) {
      next_batch_size(&a, &at, &dims[i]);
      continue;
    }
    while (!in_window(&a, slice)) slice++;
    dims[i] = sizes.v[slice++];
  }
  return cx_hlo_result(in, 0, a.operand->elem, rank, dims);
}

// ---- scatter ----

static calx_status *check_update(const cx_hlo_infer *in, const addressing *a,
                                 const cx_hlo_scatter_numbers *s,
                                 const cx_hlo_type *update)
{
  size_t at = 0;
  size_t dim = 0;
  for (size_t i = 0; i < update->rank; i++) {
    int64_t size = 0;
    if (!cx_hlo_ints_have(s->window, (int64_t)i)) {
      next_batch_size(a, &at, &size);
      if (update->dims[i] == size) continue;
    } else {
      while (!in_window(a, dim)) dim++;
      size = a->operand->dims[dim++];
      if (update->dims[i] <= size) continue;
    }
    return cx_hlo_bad(in,
                      "dimension %zu of the update %s does not fit %lld of "
                      "operand %s or indices %s",
                      i, CX_HLO_SHAPE(update), (long long)size,
                      CX_HLO_SHAPE(a->operand), CX_HLO_SHAPE(a->indices));
  }
  return NULL;
}

static calx_status *check_scatter(const cx_hlo_infer *in, const addressing *a,
                                  const cx_hlo_scatter_numbers *s, size_t n)
{
  const cx_hlo_type *update = cx_hlo_operand(in, n + 1);
  const size_t window = a->operand->rank - a->missing.n - a->operand_batch.n;
  CALX_TRY(check_addressing(in, a));
  if (s->window.n != window || !ascending(s->window)) {
    return cx_hlo_bad(in,
                      "update_window_dims must name %zu ascending "
                      "dimensions, got %zu",
                      window, s->window.n);
  }
  if (update->rank != batch_rank(a) + window) {
    return cx_hlo_bad(in,
                      "the update of operand %s at indices %s must have "
                      "rank %zu, got %s",
                      CX_HLO_SHAPE(a->operand), CX_HLO_SHAPE(a->indices),
                      batch_rank(a) + window, CX_HLO_SHAPE(update));
  }
  CALX_TRY(cx_hlo_need_dims(in, "update_window_dims", s->window, update->rank));
  return check_update(in, a, s, update);
}

calx_status *cx_hlo_infer_scatter(cx_hlo_infer *in)
{
  const cx_hlo_scatter_numbers *s =
      cx_hlo_op_struct(in->op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS);
  const size_t n = in->op->n_results;
  if (in->op->n_operands != 2 * n + 1) {
    return cx_hlo_bad(in, "%zu results need %zu operands, got %u", n, 2 * n + 1,
                      in->op->n_operands);
  }
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *update = cx_hlo_operand(in, n + 1);
  const addressing a = { x,
                         cx_hlo_operand(in, n),
                         s->inserted,
                         s->operand_batch,
                         s->indices_batch,
                         s->index_map,
                         s->index_vector_dim };
  CALX_TRY(check_scatter(in, &a, s, n));
  cx_hlo_elem *elems = CX_ARENA_ARRAY(in->arena, cx_hlo_elem, 2 * n);
  if (elems == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_type *y = cx_hlo_operand(in, i);
    const cx_hlo_type *u = cx_hlo_operand(in, n + 1 + i);
    if (!cx_hlo_same_dims(y, x) || !cx_hlo_same_dims(u, update) ||
        u->elem != y->elem) {
      return cx_hlo_bad(in,
                        "input %zu, %s, or its update, %s, is not like the "
                        "first",
                        i, CX_HLO_SHAPE(y), CX_HLO_SHAPE(u));
    }
    elems[n + i] = y->elem;
  }
  CALX_TRY(cx_hlo_need_reducer(in, 0, elems + n, n, elems));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_result(in, i, elems[i], x->rank, x->dims));
  }
  return NULL;
}

// ---- sort ----

calx_status *cx_hlo_infer_sort(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const size_t n = in->op->n_operands;
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_DIMENSION);
  const int64_t rank = (int64_t)x->rank;
  if (d < -rank || d >= (rank == 0 ? 1 : rank)) {
    return cx_hlo_bad(in, "dimension %lld is none of %s", (long long)d,
                      CX_HLO_SHAPE(x));
  }
  CALX_TRY(cx_hlo_same_results(in, "inputs", n));
  CALX_TRY(cx_hlo_need_same_dims(in, "inputs", n));
  cx_hlo_any *args = CX_ARENA_ARRAY(in->arena, cx_hlo_any, 2 * n);
  if (args == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    args[2 * i].tensor.elem = cx_hlo_operand(in, i)->elem;
    args[2 * i + 1] = args[2 * i];
  }
  const cx_hlo_any less = { .tensor.elem = CX_HLO_I1 };
  return cx_hlo_need_body(in, 0, args, 2 * n, &less, 1);
}
