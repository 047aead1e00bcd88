// opt/shapes_scatter: scatters in simpler forms.
//
// A scatter of one window at a known place, as of x.at[1:-1].add(y), is an
// update of a slice: what is there is read, combined with the update and
// written. The slice and the combination fuse with what makes the update.
//
// Rows of several dimensions, as in a sum of segments, become rows of one.
// Their loop then needs a mask at the end of a row, and not at the end of each
// line of the last dimension.
#include "hlo/infer.h"
#include "opt/shapes.h"

// The dimensions of the one window, by the operand's; NULL: there are none or
// several windows, or memory ran out.
static int64_t *window_of(cpu_opt_walk *w, const cx_hlo_op *op,
                          const cx_hlo_scatter_numbers *g)
{
  const cx_hlo_type *updates = &op->operands[2]->type.tensor;
  const size_t rank = op->operands[0]->type.tensor.rank;
  if (g->operand_batch.n > 0 || rank == 0) return NULL;
  int64_t *dims = cpu_opt_list(w, rank);
  if (dims == NULL) return NULL;
  int64_t n = 1;
  size_t nth = 0;
  for (size_t d = 0; d < rank; d++) {
    dims[d] = cx_hlo_ints_have(g->inserted, (int64_t)d)
                  ? 1
                  : updates->dims[g->window.v[nth++]];
    n *= dims[d];
  }
  return n != 0 && n == cx_hlo_type_elements(updates) ? dims : NULL;
}

// Where the window begins; NULL: that is not known, or it is not inside.
static int64_t *start_of(cpu_opt_walk *w, const cx_hlo_op *op,
                         const cx_hlo_scatter_numbers *g, const int64_t *window)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_elements *indices = cpu_opt_literal(op->operands[1]);
  if (indices == NULL) return NULL;
  int64_t *start = cpu_opt_list(w, t->rank);
  if (start == NULL) return NULL;
  for (size_t i = 0; i < g->index_map.n; i++) {
    const int64_t d = g->index_map.v[i];
    start[d] = cx_hlo_elements_int(indices, indices->splat ? 0 : i);
    if (start[d] < 0 || start[d] > t->dims[d] - window[d]) return NULL;
  }
  return start;
}

// What the region makes of what is there and the update; NULL: it is none of
// the usual combinations.
static cx_hlo_value *combined(cpu_opt_walk *w, const cx_hlo_op *op,
                              cx_hlo_value *update, const int64_t *start,
                              const int64_t *window)
{
  const cx_hlo_block *body = op->regions[0].first;
  const size_t rank = op->operands[0]->type.tensor.rank;
  if (body->last->operands[0] == &body->args[1]) return update;
  const cx_hlo_op *combiner = cx_hlo_block_combiner(body, 0);
  int64_t *lists = cpu_opt_list(w, 2 * rank);
  if (combiner == NULL || lists == NULL) return NULL;
  for (size_t d = 0; d < rank; d++) {
    lists[d] = start[d] + window[d];
    lists[rank + d] = 1;
  }
  cx_hlo_value *old =
      cx_hlo_slice(&w->b, op->operands[0], start, lists, lists + rank);
  return cx_hlo_binary(&w->b, combiner->kind, old, update);
}

// ---- rows ----

// Whether whole rows x[i] are updated, each by one index, and the rows lie
// behind each other in the updates too.
static bool updates_rows(const cx_hlo_op *op, const cx_hlo_scatter_numbers *g)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_type *indices = &op->operands[1]->type.tensor;
  const cx_hlo_type *updates = &op->operands[2]->type.tensor;
  const size_t n = g->window.n;
  if (g->operand_batch.n != 0 || n + 1 != t->rank || g->inserted.n != 1 ||
      g->inserted.v[0] != 0 || g->index_map.n != 1 || g->index_map.v[0] != 0 ||
      g->index_vector_dim + 1 < (int64_t)indices->rank) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const size_t d = updates->rank - n + i;
    if (g->window.v[i] != (int64_t)d || updates->dims[d] != t->dims[i + 1]) {
      return false;
    }
  }
  return true;
}

static cx_hlo_value *flat_rows(cpu_opt_walk *w, const cx_hlo_op *op,
                               const cx_hlo_scatter_numbers *g)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_block *body = op->regions[0].first;
  const cx_hlo_op *combiner = cx_hlo_block_combiner(body, 0);
  const bool replaces = body->last->operands[0] == &body->args[1];
  const int64_t elements = cx_hlo_type_elements(t);
  if (t->rank < 3 || elements == 0 || (combiner == NULL && !replaces) ||
      !updates_rows(op, g)) {
    return NULL;
  }
  const int64_t n = cx_hlo_type_elements(&op->operands[1]->type.tensor);
  const int64_t to[2] = { t->dims[0], elements / t->dims[0] };
  const int64_t from[2] = { n, to[1] };
  cx_hlo_value *x = cx_hlo_reshape(b, op->operands[0], to, 2);
  cx_hlo_value *indices = cx_hlo_reshape(b, op->operands[1], &n, 1);
  cx_hlo_value *updates = cx_hlo_reshape(b, op->operands[2], from, 2);
  x = cx_hlo_scatter_rows(b, x, indices, updates,
                          replaces ? CX_HLO_OP_SCATTER : combiner->kind);
  return cx_hlo_reshape(b, x, t->dims, t->rank);
}

cx_hlo_value *cpu_opt_scatter(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_scatter_numbers *g =
      cx_hlo_op_struct(op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS);
  if (op->n_operands != 3) return NULL;
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_block *body = op->regions[0].first;
  if (body == NULL || body->last == NULL || body->last->n_operands != 1 ||
      op->results[0].type.tensor.elem != t->elem ||
      op->operands[2]->type.tensor.elem != t->elem) {
    return NULL;
  }
  const int64_t *window = window_of(w, op, g);
  if (window == NULL) return flat_rows(w, op, g);
  const int64_t *start = start_of(w, op, g, window);
  if (start == NULL) return NULL;
  cx_hlo_value *update =
      cx_hlo_reshape(&w->b, op->operands[2], window, t->rank);
  update = combined(w, op, update, start, window);
  cx_hlo_value **at = cpu_opt_values(w, t->rank);
  if (update == NULL || at == NULL) return NULL;
  for (size_t d = 0; d < t->rank; d++) {
    at[d] =
        cx_hlo_splat_int(&w->b, (cx_hlo_type){ CX_HLO_I64, 0, NULL }, start[d]);
  }
  return cx_hlo_dynamic_update_slice(&w->b, op->operands[0], update, at);
}
