// opt/short_rows: sums and broadcasts over a short last dimension, as in a norm
// over groups of 4 channels, where the tensor is [N, H, W, 8, 4].
//
// A loop's vectors run along neighbouring dimensions that are reduced alike and
// read alike. Here that would be 4 elements. So a reduction over H, W and the
// last dimension becomes two: the first is over H and W, and its vectors run
// along 32 elements; the second is small. What is broadcast along the last
// dimension, [N, 8], is first written as [N, 8, 4] for the same reason. The
// pass runs after the rounds, whose simplifications would undo it.
#include "hlo/infer.h"
#include "opt/edit.h"
#include "opt/passes.h"

enum {
  SHORT = 16,       // elements of a vector of AVX-512: fewer are short
  LEAST = 8,        // elements that vectors shall run along, at least
  REPEATS = 16,     // how often such a run is read, at least
  ELEMENTS = 4096,  // of the whole tensor, at least
};

static int64_t product(const cx_hlo_type *t, size_t from, size_t to)
{
  int64_t n = 1;
  for (size_t d = from; d < to; d++) n *= t->dims[d];
  return n;
}

// ---- reductions ----

static cx_hlo_value *reduce(cpu_opt_walk *w, const cx_hlo_op *op)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const cx_hlo_op *combiner =
      op->n_operands == 2 ? cx_hlo_block_combiner(op->regions[0].first, 0)
                          : NULL;
  if (combiner == NULL || !cpu_opt_may_repeat(combiner, op->operands[1]) ||
      op->results[0].type.tensor.elem != t->elem) {
    return NULL;
  }
  size_t last = t->rank;  // the first of the last dimensions that are reduced
  while (last > 0 && cx_hlo_ints_have(dims, (int64_t)last - 1)) last--;
  size_t kept = last;  // the first of the kept ones before them
  while (kept > 0 && !cx_hlo_ints_have(dims, (int64_t)kept - 1)) kept--;
  const int64_t short_row = product(t, last, t->rank);
  int64_t *list = cpu_opt_list(w, t->rank);
  if (list == NULL || kept == 0 || short_row < 2 || short_row >= SHORT ||
      short_row * product(t, kept, last) < LEAST) {
    return NULL;
  }
  size_t n = 0;
  int64_t rows = 1;
  for (size_t d = 0; d < last; d++) {
    if (!cx_hlo_ints_have(dims, (int64_t)d)) continue;
    list[n++] = (int64_t)d;
    rows *= t->dims[d];
  }
  if (rows < REPEATS || cx_hlo_type_elements(t) < ELEMENTS) return NULL;
  cx_hlo_value *x = cx_hlo_reduce_with(&w->b, combiner->kind, op->operands[0],
                                       op->operands[1], list, n);
  const size_t rest = t->rank - last;
  for (size_t i = 0; i < rest; i++) list[i] = (int64_t)(last - n + i);
  return cx_hlo_reduce_with(&w->b, combiner->kind, x, op->operands[1], list,
                            rest);
}

// ---- broadcasts ----

static cx_hlo_value *broadcast(cpu_opt_walk *w, const cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *from = &x->type.tensor, *to = &op->results[0].type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  if (at.n == 0) return NULL;
  for (size_t i = 0; i < at.n; i++) {
    if (from->dims[i] != to->dims[at.v[i]] ||
        (i > 0 && at.v[i] < at.v[i - 1])) {
      return NULL;
    }
  }
  const size_t last = (size_t)at.v[at.n - 1] + 1, rest = to->rank - last;
  const int64_t short_row = product(to, last, to->rank);
  const int64_t written = cx_hlo_type_elements(from) * short_row;
  if (short_row < 2 || short_row >= SHORT ||
      short_row * to->dims[last - 1] < LEAST ||
      cx_hlo_type_elements(to) < ELEMENTS ||
      cx_hlo_type_elements(to) < REPEATS * written) {
    return NULL;
  }
  int64_t *lists = cpu_opt_list(w, 3 * (at.n + rest));
  if (lists == NULL) return NULL;
  int64_t *dims = lists, *first = dims + at.n + rest,
          *second = first + at.n + rest;
  for (size_t i = 0; i < at.n + rest; i++) {
    first[i] = (int64_t)i;
    second[i] = i < at.n ? at.v[i] : (int64_t)(last + i - at.n);
    dims[i] = to->dims[second[i]];
  }
  const cx_hlo_type type = { to->elem, at.n + rest, dims };
  x = cpu_opt_broadcast(&w->b, x, &type, first);
  cx_hlo_optimization_barrier(&w->b, &x, 1, &x);
  return cpu_opt_broadcast(&w->b, x, to, second);
}

// ---- the pass ----

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *r = NULL;
  if (op->kind == CX_HLO_OP_REDUCE) r = reduce(w, op);
  if (op->kind == CX_HLO_OP_BROADCAST_IN_DIM) r = broadcast(w, op);
  if (r != NULL) cpu_opt_replace(w, op, r);
  return NULL;
}

calx_status *cpu_opt_short_rows(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
