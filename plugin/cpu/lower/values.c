// lower/values: questions about values, operations and groups that several
// stages ask, and the lists that they keep.
#include <string.h>

#include "lower/lower.h"
#include "opt/edit.h"

calx_status *cpu_lower_push(cpu_lower_state *c, void *items, size_t *n,
                            size_t *room, void *item)
{
  void ***list = items;
  if (*n == *room) {
    size_t grown = *room == 0 ? 8 : *room * 2;
    void **moved = CX_ARENA_ARRAY(&c->arena, void *, grown);
    if (moved == NULL) return cx_out_of_memory();
    if (*n > 0) memcpy(moved, *list, *n * sizeof *moved);
    *list = moved;
    *room = grown;
  }
  (*list)[(*n)++] = item;
  return NULL;
}

int64_t cpu_lower_offset(const cpu_lower_state *c, const cx_hlo_value *v)
{
  int64_t bytes = 0;
  for (; c->values[v->number].alias != NULL; v = c->values[v->number].alias) {
    bytes += c->values[v->number].offset;
  }
  return bytes;
}

bool cpu_lower_is_constant(const cx_hlo_value *v)
{
  return v->op != NULL && v->op->kind == CX_HLO_OP_CONSTANT;
}

bool cpu_lower_is_in_place(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ALL_REDUCE ||
         op->kind == CX_HLO_OP_CROSS_REPLICA_SUM;
}

int64_t cpu_lower_bytes(cx_hlo_value *const *values, size_t n)
{
  int64_t bytes = 0;
  for (size_t i = 0; i < n; i++) {
    bytes += cx_hlo_type_bytes(&values[i]->type.tensor);
  }
  return bytes;
}

bool cpu_lower_is_among(cx_hlo_op *const *ops, size_t n, const cx_hlo_op *op)
{
  for (size_t i = 0; i < n; i++) {
    if (ops[i] == op) return true;
  }
  return false;
}

// ---- groups ----

calx_status *cpu_lower_each_group(cpu_lower_state *c,
                                  const cpu_lower_schedule *schedule,
                                  cpu_lower_group_fn *fn, void *user)
{
  for (size_t i = 0; i < schedule->n_groups; i++) {
    cpu_lower_group *g = schedule->groups[i];
    CALX_TRY(fn(c, user, g));
    if (g->kind != CPU_LOWER_GROUP_CONTROL) continue;
    for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
      CALX_TRY(cpu_lower_each_group(c, &g->regions[r], fn, user));
    }
  }
  return NULL;
}

calx_status *cpu_lower_each_read(cpu_lower_state *c, const cpu_lower_group *g,
                                 cpu_lower_read_fn *fn, void *user)
{
  if (g->kind == CPU_LOWER_GROUP_DONE) return NULL;
  for (size_t i = 0; i < g->n_inputs; i++) {
    CALX_TRY(fn(c, user, cpu_lower_storage(c, g->inputs[i])));
  }
  if (g->kind == CPU_LOWER_GROUP_LOOP) return NULL;
  const cx_hlo_op *op = g->ops[0];
  for (uint32_t i = 0; i < op->n_operands; i++) {
    CALX_TRY(fn(c, user, cpu_lower_storage(c, op->operands[i])));
  }
  const cx_hlo_op *at = cpu_opt_inner(op);
  for (; at != op; at = cpu_opt_next(at)) {
    for (uint32_t i = 0; i < at->n_operands; i++) {
      cx_hlo_value *storage = cpu_lower_storage(c, at->operands[i]);
      if (!cpu_opt_is_inside(op, storage)) CALX_TRY(fn(c, user, storage));
    }
  }
  return NULL;
}
