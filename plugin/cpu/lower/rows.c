// lower/rows: values that a loop writes to a row of a variable, as its only
// copy, are computed there.
//
// The row is known when the iteration runs, so a step before the one that
// computes the value says where it is. Loops that may become one function
// (native.c) keep the copies: they have no such step.
#include "lower/lower.h"

#define LEAST_BYTES 1024
#define ALIGNED 64

static bool has_kernels(const cpu_lower_schedule *body)
{
  for (size_t i = 0; i < body->n_groups; i++) {
    if (body->groups[i]->kind == CPU_LOWER_GROUP_KERNEL) return true;
  }
  return false;
}

// Whether the value is in memory before the group runs. Its only use may be in
// the update, which then computes it.
static bool is_before(const cpu_lower_state *c, cx_hlo_value *index,
                      const cpu_lower_group *g)
{
  const cx_hlo_value *v = cpu_lower_storage(c, index);
  const cpu_lower_group *from = cpu_lower_info(c, v)->producer;
  return from != NULL ? from->end < g->begin
                      : v->op == NULL || cpu_lower_is_constant(v);
}

static calx_status *set_row(cpu_lower_state *c, const cpu_lower_schedule *body,
                            const cx_hlo_op *update, cpu_lower_range *whole)
{
  cx_hlo_value *v = cpu_lower_storage(c, update->operands[1]);
  cpu_lower_value *info = cpu_lower_info(c, v);
  cx_hlo_value *index = update->operands[2];
  const int64_t bytes = cx_hlo_type_bytes(&v->type.tensor);
  const cpu_lower_group *g = info->producer;
  if (v->op == NULL || g == NULL || g->schedule != body ||
      (g->kind != CPU_LOWER_GROUP_LOOP && g->kind != CPU_LOWER_GROUP_KERNEL) ||
      (g->root != NULL && g->root->kind == CX_HLO_OP_DYNAMIC_UPDATE_SLICE) ||
      info->range != NULL || info->has_parts ||
      (whole->kind != CPU_RUN_SLOT_ARENA &&
       whole->kind != CPU_RUN_SLOT_RESULT) ||
      bytes < LEAST_BYTES || bytes % ALIGNED != 0 ||
      bytes != cx_hlo_type_bytes(&update->operands[1]->type.tensor) ||
      (index->type.tensor.elem != CX_HLO_I32 &&
       index->type.tensor.elem != CX_HLO_I64) ||
      !is_before(c, index, g)) {
    return NULL;
  }
  cpu_lower_range *row = CX_ARENA_NEW(&c->arena, cpu_lower_range);
  if (row == NULL) return cx_out_of_memory();
  *row = (cpu_lower_range){ .kind = CPU_RUN_SLOT_ROW,
                            .bytes = bytes,
                            .slot = UINT32_MAX,
                            .whole = whole,
                            .index = index };
  info->range = row;
  return NULL;
}

calx_status *cpu_lower_rows(cpu_lower_state *c, cpu_lower_group *loop)
{
  const cx_hlo_op *op = loop->ops[0];
  const cpu_lower_schedule *body = &loop->regions[1];
  if (!has_kernels(body)) return NULL;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_op *update = cpu_lower_written_row(op, i);
    if (update == NULL) continue;
    CALX_TRY(
        set_row(c, body, update, cpu_lower_info(c, &op->results[i])->range));
  }
  return NULL;
}

bool cpu_lower_is_written(const cpu_lower_state *c, const cpu_lower_group *g)
{
  const cx_hlo_op *op = g->root;
  if (g->kind != CPU_LOWER_GROUP_LOOP || op == NULL ||
      op->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE || g->n_outputs != 1) {
    return false;
  }
  const cpu_lower_range *from =
      cpu_lower_info(c, cpu_lower_storage(c, op->operands[0]))->range;
  const cpu_lower_range *row =
      cpu_lower_info(c, cpu_lower_storage(c, op->operands[1]))->range;
  const cpu_lower_range *to = cpu_lower_info(c, &op->results[0])->range;
  return row != NULL && row->kind == CPU_RUN_SLOT_ROW && row->whole == from &&
         from == to && row->index == op->operands[2];
}
