// opt/read: the order of operations, and questions about values and operations.
#include <math.h>
#include <string.h>

#include "hlo/number.h"
#include "hlo/ops.h"
#include "opt/edit.h"

// ---- order ----

cx_hlo_op *cpu_opt_inner(const cx_hlo_op *op)
{
  for (;;) {
    const cx_hlo_op *inner = NULL;
    for (uint32_t r = 0; r < op->n_regions && inner == NULL; r++) {
      if (op->regions[r].first != NULL) inner = op->regions[r].first->first;
    }
    if (inner == NULL) return (cx_hlo_op *)op;
    op = inner;
  }
}

cx_hlo_op *cpu_opt_first(const cx_hlo_block *block)
{
  return block == NULL || block->first == NULL ? NULL
                                               : cpu_opt_inner(block->first);
}

cx_hlo_op *cpu_opt_next(const cx_hlo_op *op)
{
  if (op->next != NULL) return cpu_opt_inner(op->next);
  const cx_hlo_region *region = op->block->region;
  cx_hlo_op *parent = region->op;
  if (parent == NULL) return NULL;
  for (size_t r = (size_t)(region - parent->regions) + 1; r < parent->n_regions;
       r++) {
    cx_hlo_op *first = cpu_opt_first(parent->regions[r].first);
    if (first != NULL) return first;
  }
  return parent;
}

// ---- values ----

cx_hlo_op *cpu_opt_made_by(const cx_hlo_value *v, cx_hlo_op_kind kind)
{
  return v->op != NULL && v->op->kind == kind ? v->op : NULL;
}

const cx_hlo_elements *cpu_opt_literal(const cx_hlo_value *v)
{
  const cx_hlo_op *op = cpu_opt_made_by(v, CX_HLO_OP_CONSTANT);
  return op == NULL ? NULL : &cx_hlo_op_attr(op, CX_HLO_A_VALUE)->as.elements;
}

const unsigned char *cpu_opt_splat(const cx_hlo_value *v)
{
  // More steps than any program needs; they bound the time.
  for (int step = 0; step < 16 && v->op != NULL; step++) {
    const cx_hlo_op *op = v->op;
    switch (op->kind) {
      case CX_HLO_OP_CONSTANT: {
        const cx_hlo_elements *e = cpu_opt_literal(v);
        const bool one = e->size == cx_hlo_elem_bytes(e->type.tensor.elem);
        return one && (e->splat || cx_hlo_type_elements(&e->type.tensor) == 1)
                   ? e->data
                   : NULL;
      }
      case CX_HLO_OP_BROADCAST_IN_DIM:
      case CX_HLO_OP_BROADCAST:
      case CX_HLO_OP_RESHAPE:
      case CX_HLO_OP_TRANSPOSE:
      case CX_HLO_OP_SLICE:
      case CX_HLO_OP_REVERSE: v = op->operands[0]; break;
      default: return NULL;
    }
  }
  return NULL;
}

bool cpu_opt_is_number(const cx_hlo_value *v, double number)
{
  const unsigned char *p = cpu_opt_splat(v);
  if (p == NULL) return false;
  const cx_hlo_elem e = v->type.tensor.elem;
  if (cx_hlo_elem_is_complex(e)) {
    const cx_hlo_elem part = cx_hlo_elem_part(e);
    return cx_hlo_load_real(part, p) == number &&
           cx_hlo_load_real(part, p + cx_hlo_elem_bytes(part)) == 0;
  }
  if (cx_hlo_elem_is_float(e)) return cx_hlo_load_real(e, p) == number;
  return (double)cx_hlo_load_int(e, p) == number;
}

bool cpu_opt_is_zero(const cx_hlo_value *v, bool negative)
{
  if (!cpu_opt_is_number(v, 0)) return false;
  const unsigned char *p = cpu_opt_splat(v);
  const cx_hlo_elem e = v->type.tensor.elem;
  if (cx_hlo_elem_is_complex(e)) {
    const cx_hlo_elem part = cx_hlo_elem_part(e);
    const unsigned char *im = p + cx_hlo_elem_bytes(part);
    return signbit(cx_hlo_load_real(part, p)) == negative &&
           signbit(cx_hlo_load_real(part, im)) == negative;
  }
  return !cx_hlo_elem_is_float(e) ||
         signbit(cx_hlo_load_real(e, p)) == negative;
}

cx_hlo_value *cpu_opt_splat_like(cx_hlo_builder *b, const cx_hlo_type *type,
                                 const unsigned char *element)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CONSTANT, NULL, 0, 1, 0);
  cx_hlo_build_attr(b, op, CX_HLO_A_VALUE,
                    cx_hlo_attr_elements(b->module, type, element,
                                         cx_hlo_elem_bytes(type->elem)));
  return cx_hlo_build_end(b, op);
}

bool cpu_opt_same_dims(const cx_hlo_type *a, const cx_hlo_type *b)
{
  return a->rank == b->rank &&
         (a->rank == 0 ||
          memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

bool cpu_opt_same_ints(cx_hlo_ints a, cx_hlo_ints b)
{
  return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof *a.v) == 0);
}

const cx_hlo_block *cpu_opt_block_of(const cx_hlo_value *v)
{
  return v->op == NULL ? v->block : v->op->block;
}

bool cpu_opt_is_inside(const cx_hlo_op *op, const cx_hlo_value *v)
{
  const cx_hlo_op *parent = cpu_opt_block_of(v)->region->op;
  while (parent != NULL && parent != op) parent = parent->block->region->op;
  return parent == op;
}

// ---- operations ----

cx_hlo_str cpu_opt_name(const cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_OTHER) return op->name;
  const char *name = cx_hlo_op_info_of(op->kind)->name;
  return (cx_hlo_str){ name, strlen(name) };
}

const cx_hlo_attr *cpu_opt_attr(const cx_hlo_op *op, const char *name)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  for (size_t i = 0; i < info->n_attrs; i++) {
    if (strcmp(cx_hlo_name_info_of(info->attrs[i].id)->name, name) == 0) {
      return op->attrs[i];
    }
  }
  return cx_hlo_named_attr(op->extra, op->n_extra, name);
}

bool cpu_opt_is_control(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_WHILE || op->kind == CX_HLO_OP_IF ||
         op->kind == CX_HLO_OP_CASE;
}

bool cpu_opt_is_elementwise(const cx_hlo_op *op)
{
  return (op->kind >= CX_HLO_OP_ADD && op->kind <= CX_HLO_OP_CLAMP) ||
         op->kind == CX_HLO_OP_CONVERT;
}

bool cpu_opt_may_repeat(const cx_hlo_op *combiner, const cx_hlo_value *init)
{
  const cx_hlo_elem e = init->type.tensor.elem;
  if (cx_hlo_elem_is_float(e) && cx_hlo_elem_bits(e) < 32) return false;
  switch (combiner->kind) {
    case CX_HLO_OP_ADD: return cpu_opt_is_number(init, 0);
    case CX_HLO_OP_MULTIPLY: return cpu_opt_is_number(init, 1);
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_AND:
    case CX_HLO_OP_OR: return true;
    default: return false;
  }
}

bool cpu_opt_is_collective(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_ALL_REDUCE:
    case CX_HLO_OP_REDUCE_SCATTER:
    case CX_HLO_OP_ALL_GATHER:
    case CX_HLO_OP_ALL_TO_ALL:
    case CX_HLO_OP_COLLECTIVE_PERMUTE:
    case CX_HLO_OP_COLLECTIVE_BROADCAST:
    case CX_HLO_OP_COLLECTIVE_REDUCE:
    case CX_HLO_OP_CROSS_REPLICA_SUM: return true;
    default: return false;
  }
}

static bool has_effect(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_OTHER:
    case CX_HLO_OP_CALL:
    case CX_HLO_OP_COMPOSITE:
    case CX_HLO_OP_INFEED:
    case CX_HLO_OP_OUTFEED:
    case CX_HLO_OP_SEND:
    case CX_HLO_OP_RECV:
    case CX_HLO_OP_RNG:
    case CX_HLO_OP_ASYNC_START:
    case CX_HLO_OP_ASYNC_DONE: return true;
    case CX_HLO_OP_CUSTOM_CALL:
      return cx_hlo_op_flag(op, CX_HLO_A_HAS_SIDE_EFFECT);
    default: return cpu_opt_is_collective(op);
  }
}

bool cpu_opt_pure(const cx_hlo_op *op)
{
  if (has_effect(op)) return false;
  const cx_hlo_op *inner = cpu_opt_inner(op);
  for (; inner != op; inner = cpu_opt_next(inner)) {
    if (has_effect(inner)) return false;
  }
  return true;
}
