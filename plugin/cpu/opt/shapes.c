// opt/shapes: simplifies operations that move elements. Those that move nothing
// are removed, chains become one operation, and splats stay splats.
#include "opt/shapes.h"

#include <string.h>

#include "opt/passes.h"

static bool is_identity(cx_hlo_ints list)
{
  for (size_t i = 0; i < list.n; i++) {
    if (list.v[i] != (int64_t)i) return false;
  }
  return true;
}

// Whether the dimensions that are not 1 are the same, in order.
static bool same_but_ones(const cx_hlo_type *a, const cx_hlo_type *b)
{
  size_t i = 0;
  size_t j = 0;
  for (;;) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (j < b->rank && b->dims[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dims[i++] != b->dims[j++]) return false;
  }
}

static bool ascending_but_ones(const cx_hlo_type *t, const int64_t *order)
{
  int64_t last = -1;
  for (size_t i = 0; i < t->rank; i++) {
    if (t->dims[order[i]] == 1) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

// ---- reshape ----

// The constant with other dimensions; it shares the bytes.
static cx_hlo_value *literal_as(cpu_opt_walk *w, const cx_hlo_elements *e,
                                const cx_hlo_any *type)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_attr *attr = CX_ARENA_NEW(&b->module->arena, cx_hlo_attr);
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CONSTANT, NULL, 0, 1, 0);
  if (attr != NULL) {
    attr->kind = CX_HLO_ATTR_ELEMENTS;
    attr->as.elements = *e;
    attr->as.elements.type = *type;
    // A constant of one element is no splat.
    if (cx_hlo_type_elements(&type->tensor) == 1) attr->as.elements.splat = 0;
  }
  cx_hlo_build_attr(b, op, CX_HLO_A_VALUE, attr);
  return cx_hlo_build_end(b, op);
}

static cx_hlo_value *reshape(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *to = &op->results[0].type.tensor;
  if (cpu_opt_same_dims(&x->type.tensor, to)) return x;
  const cx_hlo_elements *literal = cpu_opt_literal(x);
  if (literal != NULL) return literal_as(w, literal, &op->results[0].type);
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_RESHAPE);
  if (inner != NULL) {
    return cx_hlo_reshape(&w->b, inner->operands[0], to->dims, to->rank);
  }
  inner = cpu_opt_made_by(x, CX_HLO_OP_BROADCAST_IN_DIM);
  if (inner != NULL && inner->operands[0]->type.tensor.rank == 0) {
    return cpu_opt_broadcast(&w->b, inner->operands[0], to, NULL);
  }
  return NULL;
}

// ---- transpose ----

static cx_hlo_value *transpose(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *from = &x->type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  if (is_identity(p)) return x;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_TRANSPOSE);
  if (inner != NULL) {
    const cx_hlo_ints q = cx_hlo_op_ints(inner, CX_HLO_A_PERMUTATION);
    return cx_hlo_transpose(&w->b, inner->operands[0],
                            cpu_opt_through(w, q, p).v);
  }
  inner = cpu_opt_made_by(x, CX_HLO_OP_BROADCAST_IN_DIM);
  if (inner != NULL) {
    const cx_hlo_ints at = cx_hlo_op_ints(inner, CX_HLO_A_BROADCAST_DIMENSIONS);
    return cpu_opt_broadcast(&w->b, inner->operands[0], to,
                             cpu_opt_through(w, cpu_opt_inverse(w, p), at).v);
  }
  inner = cpu_opt_made_by(x, CX_HLO_OP_IOTA);
  if (inner != NULL) {
    const int64_t d = cx_hlo_op_int(inner, CX_HLO_A_IOTA_DIMENSION);
    return cx_hlo_iota(&w->b, *to, cpu_opt_inverse(w, p).v[d]);
  }
  if (!ascending_but_ones(from, p.v)) return NULL;
  return cx_hlo_reshape(&w->b, x, to->dims, to->rank);
}

// ---- broadcast_in_dim ----

// Skips a reshape that only adds dimensions of 1 to an operand without them.
static cx_hlo_value *broadcast_reshaped(cpu_opt_walk *w, cx_hlo_op *op,
                                        const cx_hlo_op *inner)
{
  cx_hlo_value *x = inner->operands[0];
  const cx_hlo_type *from = &x->type.tensor;
  const cx_hlo_type *middle = &inner->results[0].type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  if (middle->rank <= from->rank || !same_but_ones(from, middle)) return NULL;
  for (size_t i = 0; i < from->rank; i++) {
    if (from->dims[i] == 1) return NULL;
  }
  int64_t *moved = cpu_opt_list(w, from->rank);
  if (moved == NULL) return NULL;
  size_t k = 0;
  for (size_t i = 0; i < middle->rank; i++) {
    if (middle->dims[i] != 1) moved[k++] = at.v[i];
  }
  return cpu_opt_broadcast(&w->b, x, to, moved);
}

static cx_hlo_value *broadcast(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *from = &x->type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  const unsigned char *element = cpu_opt_splat(x);
  if (element != NULL) return cpu_opt_splat_like(&w->b, to, element);
  if (cpu_opt_same_dims(from, to) && is_identity(at)) return x;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_BROADCAST_IN_DIM);
  if (inner != NULL) {
    const cx_hlo_ints b = cx_hlo_op_ints(inner, CX_HLO_A_BROADCAST_DIMENSIONS);
    return cpu_opt_broadcast(&w->b, inner->operands[0], to,
                             cpu_opt_through(w, at, b).v);
  }
  inner = cpu_opt_made_by(x, CX_HLO_OP_RESHAPE);
  if (inner != NULL) {
    cx_hlo_value *r = broadcast_reshaped(w, op, inner);
    if (r != NULL) return r;
  }
  // Only dimensions of 1 are added.
  bool sorted = same_but_ones(from, to);
  for (size_t i = 1; i < at.n; i++) sorted = sorted && at.v[i] > at.v[i - 1];
  return sorted ? cx_hlo_reshape(&w->b, x, to->dims, to->rank) : NULL;
}

// ---- reverse, pad, concatenate ----

static cx_hlo_value *reverse(cpu_opt_walk *w, cx_hlo_op *op)
{
  (void)w;
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  bool nothing = true;
  for (size_t i = 0; i < dims.n; i++) {
    nothing = nothing && x->type.tensor.dims[dims.v[i]] <= 1;
  }
  if (nothing || cpu_opt_splat(x) != NULL) return x;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_REVERSE);
  if (inner == NULL) return NULL;
  return cpu_opt_same_ints(cx_hlo_op_ints(inner, CX_HLO_A_DIMENSIONS), dims)
             ? inner->operands[0]
             : NULL;
}

static bool all_zero(cx_hlo_ints list)
{
  for (size_t i = 0; i < list.n; i++) {
    if (list.v[i] != 0) return false;
  }
  return true;
}

static cx_hlo_value *pad(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  if (all_zero(cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_LOW)) &&
      all_zero(cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_HIGH))) {
    const cx_hlo_ints inside = cx_hlo_op_ints(op, CX_HLO_A_INTERIOR_PADDING);
    if (all_zero(inside) ||
        cpu_opt_same_dims(&x->type.tensor, &op->results[0].type.tensor)) {
      return x;
    }
  }
  const unsigned char *p = cpu_opt_splat(x);
  const unsigned char *q = cpu_opt_splat(op->operands[1]);
  const size_t size = cx_hlo_elem_bytes(x->type.tensor.elem);
  if (p == NULL || q == NULL || memcmp(p, q, size) != 0) return NULL;
  return cpu_opt_splat_like(&w->b, &op->results[0].type.tensor, p);
}

// Whether x and y are slices of one tensor, and y begins where x ends.
static bool is_continued_by(const cx_hlo_value *x, const cx_hlo_value *y,
                            int64_t dim)
{
  const cx_hlo_op *p = cpu_opt_made_by(x, CX_HLO_OP_SLICE);
  const cx_hlo_op *q = cpu_opt_made_by(y, CX_HLO_OP_SLICE);
  if (p == NULL || q == NULL || p->operands[0] != q->operands[0]) return false;
  const cx_hlo_ints pl = cx_hlo_op_ints(p, CX_HLO_A_LIMIT_INDICES);
  const cx_hlo_ints ps = cx_hlo_op_ints(p, CX_HLO_A_START_INDICES);
  const cx_hlo_ints qs = cx_hlo_op_ints(q, CX_HLO_A_START_INDICES);
  const cx_hlo_ints ql = cx_hlo_op_ints(q, CX_HLO_A_LIMIT_INDICES);
  const cx_hlo_ints pt = cx_hlo_op_ints(p, CX_HLO_A_STRIDES);
  const cx_hlo_ints qt = cx_hlo_op_ints(q, CX_HLO_A_STRIDES);
  for (size_t i = 0; i < pl.n; i++) {
    const bool along = (int64_t)i == dim;
    if (along
            ? pl.v[i] != qs.v[i] || pt.v[i] != 1 || qt.v[i] != 1
            : pl.v[i] != ql.v[i] || ps.v[i] != qs.v[i] || pt.v[i] != qt.v[i]) {
      return false;
    }
  }
  return true;
}

// If all operands are neighbouring slices: one slice from the first to the
// last.
static cx_hlo_value *joined(cpu_opt_walk *w, cx_hlo_op *op, int64_t dim)
{
  for (uint32_t i = 1; i < op->n_operands; i++) {
    if (!is_continued_by(op->operands[i - 1], op->operands[i], dim))
      return NULL;
  }
  const cx_hlo_op *first = op->operands[0]->op;
  const cx_hlo_op *last = op->operands[op->n_operands - 1]->op;
  const cx_hlo_ints limit = cx_hlo_op_ints(first, CX_HLO_A_LIMIT_INDICES);
  int64_t *list = cpu_opt_list(w, limit.n);
  if (list == NULL) return NULL;
  memcpy(list, limit.v, limit.n * sizeof *list);
  list[dim] = cx_hlo_op_ints(last, CX_HLO_A_LIMIT_INDICES).v[dim];
  return cx_hlo_slice(&w->b, first->operands[0],
                      cx_hlo_op_ints(first, CX_HLO_A_START_INDICES).v, list,
                      cx_hlo_op_ints(first, CX_HLO_A_STRIDES).v);
}

// Without empty operands, and with the operands of concatenations in their
// place.
static cx_hlo_value *flattened(cpu_opt_walk *w, cx_hlo_op *op, int64_t dim)
{
  size_t n = 0;
  bool change = false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_op *inner =
        cpu_opt_made_by(op->operands[i], CX_HLO_OP_CONCATENATE);
    const bool same =
        inner != NULL && cx_hlo_op_int(inner, CX_HLO_A_DIMENSION) == dim;
    const bool empty = op->operands[i]->type.tensor.dims[dim] == 0;
    change = change || same || empty;
    n += same ? inner->n_operands : 1;
  }
  if (!change) return NULL;
  cx_hlo_value **list = cpu_opt_values(w, n);
  if (list == NULL) return NULL;
  n = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    cx_hlo_op *inner = cpu_opt_made_by(op->operands[i], CX_HLO_OP_CONCATENATE);
    const bool same =
        inner != NULL && cx_hlo_op_int(inner, CX_HLO_A_DIMENSION) == dim;
    if (op->operands[i]->type.tensor.dims[dim] == 0) continue;
    for (uint32_t k = 0; same && k < inner->n_operands; k++) {
      list[n++] = inner->operands[k];
    }
    if (!same) list[n++] = op->operands[i];
  }
  return n == 0 ? op->operands[0] : cx_hlo_concatenate(&w->b, list, n, dim);
}

static cx_hlo_value *concatenate(cpu_opt_walk *w, cx_hlo_op *op)
{
  const int64_t dim = cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (op->n_operands == 1) return op->operands[0];
  const unsigned char *first = cpu_opt_splat(op->operands[0]);
  const size_t size = cx_hlo_elem_bytes(op->results[0].type.tensor.elem);
  bool same = first != NULL;
  for (uint32_t i = 1; same && i < op->n_operands; i++) {
    const unsigned char *p = cpu_opt_splat(op->operands[i]);
    same = p != NULL && memcmp(p, first, size) == 0;
  }
  if (same) {
    return cpu_opt_splat_like(&w->b, &op->results[0].type.tensor, first);
  }
  cx_hlo_value *r = flattened(w, op, dim);
  return r != NULL ? r : joined(w, op, dim);
}

// ---- the pass ----

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *r = NULL;
  switch (op->kind) {
    case CX_HLO_OP_RESHAPE: r = reshape(w, op); break;
    case CX_HLO_OP_TRANSPOSE: r = transpose(w, op); break;
    case CX_HLO_OP_BROADCAST_IN_DIM: r = broadcast(w, op); break;
    case CX_HLO_OP_REVERSE: r = reverse(w, op); break;
    case CX_HLO_OP_PAD: r = pad(w, op); break;
    case CX_HLO_OP_ADD: r = cpu_opt_sum_of_pads(w, op); break;
    case CX_HLO_OP_CONCATENATE: r = concatenate(w, op); break;
    case CX_HLO_OP_SLICE: r = cpu_opt_slice(w, op); break;
    case CX_HLO_OP_DYNAMIC_SLICE: r = cpu_opt_dynamic_slice(w, op); break;
    case CX_HLO_OP_DYNAMIC_UPDATE_SLICE:
      r = cpu_opt_dynamic_update_slice(w, op);
      break;
    case CX_HLO_OP_GATHER: r = cpu_opt_gather(w, op); break;
    case CX_HLO_OP_SCATTER: r = cpu_opt_scatter(w, op); break;
    case CX_HLO_OP_REDUCE: r = cpu_opt_reduce(w, op); break;
    default: break;
  }
  if (r == NULL) return NULL;
  cpu_opt_replace(w, op, r);
  w->revisit = true;
  return NULL;
}

calx_status *cpu_opt_shapes(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
