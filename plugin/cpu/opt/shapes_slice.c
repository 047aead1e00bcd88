// opt/shapes: slices and reductions.
#include <string.h>

#include "hlo/infer.h"
#include "opt/shapes.h"

typedef struct range {
  cx_hlo_ints start, limit, stride;
} range;

static range range_of(const cx_hlo_op *op)
{
  return (range){ cx_hlo_op_ints(op, CX_HLO_A_START_INDICES),
                  cx_hlo_op_ints(op, CX_HLO_A_LIMIT_INDICES),
                  cx_hlo_op_ints(op, CX_HLO_A_STRIDES) };
}

// ---- slice ----

static cx_hlo_value *slice_of_slice(cpu_opt_walk *w, const cx_hlo_op *op,
                                    const cx_hlo_op *inner)
{
  const range a = range_of(inner);
  const range b = range_of(op);
  const size_t n = a.start.n;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  int64_t *list = cpu_opt_list(w, 3 * n);
  if (list == NULL) return NULL;
  for (size_t i = 0; i < n; i++) {
    int64_t stride = 0;
    const int64_t size = to->dims[i];
    // One element needs no stride; this avoids an overflow.
    if (size <= 1) {
      stride = 1;
    } else if (__builtin_mul_overflow(a.stride.v[i], b.stride.v[i], &stride)) {
      return NULL;
    }
    const int64_t start = a.start.v[i] + b.start.v[i] * a.stride.v[i];
    list[i] = size == 0 ? 0 : start;
    list[n + i] = size == 0 ? 0 : start + (size - 1) * stride + 1;
    list[2 * n + i] = stride;
  }
  return cx_hlo_slice(&w->b, inner->operands[0], list, list + n, list + 2 * n);
}

// A slice within one of the operands.
static cx_hlo_value *slice_of_concatenate(cpu_opt_walk *w, const cx_hlo_op *op,
                                          const cx_hlo_op *inner)
{
  const range r = range_of(op);
  const int64_t dim = cx_hlo_op_int(inner, CX_HLO_A_DIMENSION);
  int64_t before = 0;
  for (uint32_t i = 0; i < inner->n_operands; i++) {
    cx_hlo_value *piece = inner->operands[i];
    const int64_t size = piece->type.tensor.dims[dim];
    const bool inside =
        r.start.v[dim] >= before && r.limit.v[dim] <= before + size;
    if (inside && r.start.v[dim] < r.limit.v[dim]) {
      int64_t *list = cpu_opt_list(w, 2 * r.start.n);
      if (list == NULL) return NULL;
      memcpy(list, r.start.v, r.start.n * sizeof *list);
      memcpy(list + r.start.n, r.limit.v, r.start.n * sizeof *list);
      list[dim] -= before;
      list[r.start.n + (size_t)dim] -= before;
      return cx_hlo_slice(&w->b, piece, list, list + r.start.n, r.stride.v);
    }
    before += size;
  }
  return NULL;
}

// A broadcast to fewer elements, of a slice in the operand's dimensions.
static cx_hlo_value *slice_of_broadcast(cpu_opt_walk *w, const cx_hlo_op *op,
                                        const cx_hlo_op *inner)
{
  const range r = range_of(op);
  cx_hlo_value *x = inner->operands[0];
  const cx_hlo_type *from = &x->type.tensor;
  const cx_hlo_type *middle = &inner->results[0].type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(inner, CX_HLO_A_BROADCAST_DIMENSIONS);
  int64_t *list = cpu_opt_list(w, 3 * at.n);
  if (list == NULL) return NULL;
  bool whole = true;
  for (size_t i = 0; i < at.n; i++) {
    const int64_t d = at.v[i];
    const bool stretched =
        from->dims[i] != middle->dims[d] || from->dims[i] == 1;
    // A dimension of size 1 cannot be broadcast to size 0.
    if (stretched && to->dims[d] == 0) return NULL;
    list[i] = stretched ? 0 : r.start.v[d];
    list[at.n + i] = stretched ? 1 : r.limit.v[d];
    list[2 * at.n + i] = stretched ? 1 : r.stride.v[d];
    whole = whole && (stretched || to->dims[d] == from->dims[i]);
  }
  if (!whole) x = cx_hlo_slice(&w->b, x, list, list + at.n, list + 2 * at.n);
  return cpu_opt_broadcast(&w->b, x, to, at.v);
}

cx_hlo_value *cpu_opt_slice(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *to = &op->results[0].type.tensor;
  if (cpu_opt_same_dims(&x->type.tensor, to)) return x;
  const unsigned char *element = cpu_opt_splat(x);
  if (element != NULL) return cpu_opt_splat_like(&w->b, to, element);
  const cx_hlo_op *inner = x->op;
  if (inner == NULL) return NULL;
  switch (inner->kind) {
    case CX_HLO_OP_SLICE: return slice_of_slice(w, op, inner);
    case CX_HLO_OP_CONCATENATE: return slice_of_concatenate(w, op, inner);
    case CX_HLO_OP_BROADCAST_IN_DIM: return slice_of_broadcast(w, op, inner);
    default: return NULL;
  }
}

// ---- dynamic slices with constant starts ----

// The constant starts, clamped as at run time; false: one is not constant.
static bool known_starts(const cx_hlo_op *op, uint32_t first,
                         const cx_hlo_type *x, const int64_t *sizes,
                         int64_t *out)
{
  for (size_t i = 0; i < x->rank; i++) {
    const cx_hlo_value *v = op->operands[first + i];
    const cx_hlo_elements *e = cpu_opt_literal(v);
    const int64_t most = x->dims[i] - sizes[i];
    if (most == 0) {
      out[i] = 0;
      continue;
    }
    if (e == NULL) return false;
    const int64_t start = cx_hlo_elements_int(e, 0);
    const bool is_large =
        cx_hlo_elem_is_unsigned(v->type.tensor.elem) && start < 0;
    out[i] = is_large || start > most ? most : start;
    if (out[i] < 0) out[i] = 0;
  }
  return true;
}

cx_hlo_value *cpu_opt_dynamic_slice(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  int64_t *list = cpu_opt_list(w, 3 * x->rank);
  if (list == NULL || !known_starts(op, 1, x, to->dims, list)) return NULL;
  for (size_t i = 0; i < x->rank; i++) {
    list[x->rank + i] = list[i] + to->dims[i];
    list[2 * x->rank + i] = 1;
  }
  return cx_hlo_slice(&w->b, op->operands[0], list, list + x->rank,
                      list + 2 * x->rank);
}

// An update of the whole tensor is the result.
cx_hlo_value *cpu_opt_dynamic_update_slice(cpu_opt_walk *w, cx_hlo_op *op)
{
  (void)w;
  cx_hlo_value *update = op->operands[1];
  return cpu_opt_same_dims(&op->operands[0]->type.tensor, &update->type.tensor)
             ? update
             : NULL;
}

// ---- reduce ----

// The commutative and associative binary operation that is all of the region;
// OTHER: the region is something else.
static cx_hlo_op_kind combiner(const cx_hlo_region *region)
{
  const cx_hlo_block *body = region->first;
  if (body == NULL || body->n_args != 2 || body->last->n_operands != 1 ||
      body->first->next != body->last) {
    return CX_HLO_OP_OTHER;
  }
  const cx_hlo_op *op = cx_hlo_block_combiner(body, 0);
  return op != NULL ? op->kind : CX_HLO_OP_OTHER;
}

// Reduces the operand of the transpose, if the remaining dimensions keep their
// order.
static cx_hlo_value *reduce_of_transpose(cpu_opt_walk *w, cx_hlo_op *op,
                                         const cx_hlo_op *inner,
                                         cx_hlo_op_kind kind)
{
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const cx_hlo_ints p = cx_hlo_op_ints(inner, CX_HLO_A_PERMUTATION);
  int64_t *list = cpu_opt_list(w, dims.n);
  if (list == NULL) return NULL;
  int64_t last = -1;
  for (size_t i = 0; i < p.n; i++) {
    bool reduced = false;
    for (size_t k = 0; k < dims.n; k++) {
      if (dims.v[k] != (int64_t)i) continue;
      reduced = true;
      list[k] = p.v[i];
    }
    if (reduced) continue;
    if (p.v[i] < last) return NULL;
    last = p.v[i];
  }
  return cx_hlo_reduce_with(&w->b, kind, inner->operands[0], op->operands[1],
                            list, dims.n);
}

// Whether each window of select_and_scatter has an element of the operand.
static bool chooses_always(const cx_hlo_op *op)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *source = &op->operands[1]->type.tensor;
  for (size_t d = 0; d < x->rank; d++) {
    const int64_t low = cx_hlo_padding_at(op, d, 0);
    const int64_t size = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    const int64_t stride = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d);
    if (low >= size || (source->dims[d] - 1) * stride - low >= x->dims[d]) {
      return false;
    }
  }
  return true;
}

static bool has_windows(const cx_hlo_op *op, size_t d)
{
  return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d) != 1 ||
         cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) != 1 ||
         cx_hlo_padding_at(op, d, 0) != 0 || cx_hlo_padding_at(op, d, 1) != 0;
}

// The sum of what select_and_scatter adds up, as the gradient of a bias in
// front of a pooling: of the source, if no window is divided.
static cx_hlo_value *sum_of_scattered(cpu_opt_walk *w, cx_hlo_op *op,
                                      const cx_hlo_op *inner)
{
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const size_t rank = inner->results[0].type.tensor.rank;
  if (combiner(&inner->regions[1]) != CX_HLO_OP_ADD ||
      !cpu_opt_is_number(inner->operands[2], 0) || !chooses_always(inner)) {
    return NULL;
  }
  for (size_t d = 0; d < rank; d++) {
    if (!cx_hlo_ints_have(dims, (int64_t)d) && has_windows(inner, d)) {
      return NULL;
    }
  }
  return cx_hlo_reduce_with(&w->b, CX_HLO_OP_ADD, inner->operands[1],
                            op->operands[1], dims.v, dims.n);
}

// Of dimensions of 1 only: the operation once, with the initial value.
static cx_hlo_value *reduce_of_ones(cpu_opt_walk *w, cx_hlo_op *op,
                                    cx_hlo_op_kind kind)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  for (size_t i = 0; i < dims.n; i++) {
    if (x->type.tensor.dims[dims.v[i]] != 1) return NULL;
  }
  cx_hlo_value *first = cpu_opt_broadcast(b, op->operands[1], to, NULL);
  return cx_hlo_binary(b, kind, first,
                       cx_hlo_reshape(b, x, to->dims, to->rank));
}

cx_hlo_value *cpu_opt_reduce(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_op_kind kind = combiner(&op->regions[0]);
  if (kind == CX_HLO_OP_OTHER || op->n_operands != 2 ||
      op->results[0].type.tensor.elem != op->operands[0]->type.tensor.elem) {
    return NULL;
  }
  const cx_hlo_op *inner =
      cpu_opt_made_by(op->operands[0], CX_HLO_OP_TRANSPOSE);
  if (inner != NULL) {
    cx_hlo_value *r = reduce_of_transpose(w, op, inner, kind);
    if (r != NULL) return r;
  }
  inner = cpu_opt_made_by(op->operands[0], CX_HLO_OP_SELECT_AND_SCATTER);
  if (inner != NULL && kind == CX_HLO_OP_ADD) {
    cx_hlo_value *r = sum_of_scattered(w, op, inner);
    if (r != NULL) return r;
  }
  return reduce_of_ones(w, op, kind);
}
