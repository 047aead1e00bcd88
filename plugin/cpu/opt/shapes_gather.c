// opt/shapes: gathers of neighbouring elements become gathers of windows.
//
// x[:, start[:, None] + arange(64)] in JAX is a gather of single elements, at
// 64 indices for each start. The indices rise by 1, so it is a gather of
// windows of 64 elements, at the starts alone.
#include <string.h>

#include "hlo/infer.h"
#include "opt/integers.h"
#include "opt/shapes.h"

// Windows of fewer elements gain nothing.
#define LEAST 4

// Along dimension `along` of the indices, the index of the operand's dimension
// `moves` rises by 1, within that dimension, and no other index changes.
typedef struct rising {
  int64_t along, moves;
} rising;

// The indices of dimension index_map[i] of the operand; NULL: not known,
// because the index vectors are not put together of one index each.
static const cx_hlo_value *component(const cx_hlo_value *indices,
                                     const cx_hlo_gather_numbers *g, size_t i)
{
  if (g->index_map.n == 1) return indices;
  const cx_hlo_op *join = cpu_opt_made_by(indices, CX_HLO_OP_CONCATENATE);
  if (join == NULL || join->n_operands != g->index_map.n ||
      cx_hlo_op_int(join, CX_HLO_A_DIMENSION) != g->index_vector_dim) {
    return NULL;
  }
  const cx_hlo_value *one = join->operands[i];
  return one->type.tensor.dims[g->index_vector_dim] == 1 ? one : NULL;
}

static bool rises(const cx_hlo_op *op, const cx_hlo_gather_numbers *g,
                  int64_t along, rising *out)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  *out = (rising){ along, -1 };
  for (size_t i = 0; i < g->index_map.n; i++) {
    const cx_hlo_value *one = component(op->operands[1], g, i);
    const int64_t dim = g->index_map.v[i];
    cpu_opt_integers known;
    if (one == NULL || !cpu_opt_know_integers(one, along, &known)) return false;
    if (known.step == 0) continue;
    if (known.step != 1 || out->moves >= 0 || !known.bounded || known.low < 0 ||
        known.high >= x->dims[dim]) {
      return false;
    }
    out->moves = dim;
  }
  return out->moves >= 0;
}

// The dimension of the result that is dimension `along` of the indices: the
// result has these in order, between its offset dimensions.
static int64_t result_dim(const cx_hlo_gather_numbers *g, int64_t along)
{
  int64_t at = along;
  for (size_t i = 0; i < g->offset.n && g->offset.v[i] <= at; i++) at++;
  return at;
}

// The offset dimensions of the result and `at`; NULL: the windows' dimensions
// would not be in the operand's order.
static cx_hlo_ints offsets_with(cpu_opt_walk *w, const cx_hlo_gather_numbers *g,
                                int64_t moves, int64_t at)
{
  size_t before = 0, below = 0;
  for (int64_t d = 0; d < moves; d++)
    before += !cx_hlo_ints_have(g->collapsed, d);
  while (below < g->offset.n && g->offset.v[below] < at) below++;
  int64_t *list = before == below ? cpu_opt_list(w, g->offset.n + 1) : NULL;
  if (list == NULL) return (cx_hlo_ints){ NULL, 0 };
  for (size_t i = 0; i < below; i++) list[i] = g->offset.v[i];
  list[below] = at;
  for (size_t i = below; i < g->offset.n; i++) list[i + 1] = g->offset.v[i];
  return (cx_hlo_ints){ list, g->offset.n + 1 };
}

static cx_hlo_ints without(cpu_opt_walk *w, cx_hlo_ints from, int64_t v)
{
  int64_t *list = cpu_opt_list(w, from.n);
  size_t n = 0;
  for (size_t i = 0; list != NULL && i < from.n; i++) {
    if (from.v[i] != v) list[n++] = from.v[i];
  }
  return (cx_hlo_ints){ list, n };
}

// The slice at 0 of a dimension, without that dimension.
static cx_hlo_value *first_along(cpu_opt_walk *w, cx_hlo_value *x, int64_t dim)
{
  const cx_hlo_type *t = &x->type.tensor;
  int64_t *lists = cpu_opt_list(w, 4 * t->rank);
  if (lists == NULL) return NULL;
  int64_t *limit = lists + t->rank, *stride = limit + t->rank,
          *dims = stride + t->rank;
  size_t n = 0;
  for (size_t d = 0; d < t->rank; d++) {
    limit[d] = (int64_t)d == dim ? 1 : t->dims[d];
    stride[d] = 1;
    if ((int64_t)d != dim) dims[n++] = t->dims[d];
  }
  x = cx_hlo_slice(&w->b, x, lists, limit, stride);
  return cx_hlo_reshape(&w->b, x, dims, n);
}

static cx_hlo_value *gather_windows(cpu_opt_walk *w, cx_hlo_op *op,
                                    const cx_hlo_gather_numbers *g,
                                    const rising *r)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_ints sizes = cx_hlo_op_ints(op, CX_HLO_A_SLICE_SIZES);
  cx_hlo_gather_numbers numbers = *g;
  numbers.offset = offsets_with(w, g, r->moves, result_dim(g, r->along));
  if (numbers.offset.v == NULL) return NULL;
  numbers.collapsed = without(w, g->collapsed, r->moves);
  numbers.index_vector_dim--;
  int64_t *windows = cpu_opt_list(w, sizes.n);
  if (windows == NULL) return NULL;
  memcpy(windows, sizes.v, sizes.n * sizeof *windows);
  windows[r->moves] = op->operands[1]->type.tensor.dims[r->along];
  cx_hlo_value *operands[] = { op->operands[0],
                               first_along(w, op->operands[1], r->along) };
  cx_hlo_op *made = cx_hlo_build_begin(b, CX_HLO_OP_GATHER, operands, 2, 1, 0);
  cx_hlo_build_attr(
      b, made, CX_HLO_A_GATHER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_GATHER, &numbers));
  cx_hlo_build_ints(b, made, CX_HLO_A_SLICE_SIZES, windows, sizes.n);
  cpu_opt_keep_attr(b, made, op, CX_HLO_A_INDICES_ARE_SORTED);
  return cx_hlo_build_end(b, made);
}

cx_hlo_value *cpu_opt_gather(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cx_hlo_type *indices = &op->operands[1]->type.tensor;
  const int64_t n = g->index_vector_dim;
  if (g->operand_batch.n != 0 || n + 1 < (int64_t)indices->rank) return NULL;
  for (int64_t along = n - 1; along >= 0; along--) {
    rising r;
    if (indices->dims[along] < LEAST || !rises(op, g, along, &r)) continue;
    if (!cx_hlo_ints_have(g->collapsed, r.moves)) continue;
    cx_hlo_value *made = gather_windows(w, op, g, &r);
    if (made != NULL) return made;
  }
  return NULL;
}
