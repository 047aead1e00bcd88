// lower/values: what the other files ask of values and operations, and the
// lists that they keep.
#include <string.h>

#include "lower/plan.h"

bool cpu_lower_push(cpu_lower_compilation *l, void *items, size_t *n,
                    size_t *room, void *item)
{
  void ***list = items;
  if (*n == *room) {
    size_t grown = *room == 0 ? 8 : *room * 2;
    void **moved = CX_ARENA_ARRAY(&l->arena, void *, grown);
    if (moved == NULL) return false;
    if (*n > 0) memcpy(moved, *list, *n * sizeof *moved);
    *list = moved;
    *room = grown;
  }
  (*list)[(*n)++] = item;
  return true;
}

bool cpu_lower_is_constant(const cx_hlo_value *v)
{
  return v->op != NULL && v->op->kind == CX_HLO_OP_CONSTANT;
}

bool cpu_lower_is_collective(const cx_hlo_op *op)
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

bool cpu_lower_is_in_place(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ALL_REDUCE ||
         op->kind == CX_HLO_OP_CROSS_REPLICA_SUM;
}
