// lower/steps: appends a step for each group, and copies the results of a block
// to where its user expects them, if they are not there already.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "lower/lower.h"

// Estimates for cost_ns, which decides whether a launch is worth a thread of
// its own.
#define NS_PER_COLLECTIVE 1e6  // waiting for other devices
// What a step costs less in a loop, of the 100 ns in cost.c (NS_PER_STEP): most
// steps of loops become native code.
#define NS_SAVED_IN_LOOPS 98.0

// A block of steps that is to be filled.
typedef struct pending_block {
  const cpu_lower_schedule *schedule;
  uint32_t block;
  double rounds, counted;
} pending_block;

typedef struct emitter {
  cpu_lower_state *c;
  cpu_lower_assembly *a;
  pending_block *pending;
  size_t n_pending, pending_room;
  double rounds;  // how often the block runs at most
  // The same for the work that is reported: where nothing bounds a loop, it
  // counts as one round.
  double counted;
} emitter;

// ---- slots ----

static uint32_t slot_of_memory(emitter *e, cpu_lower_range *m)
{
  if (m->slot == UINT32_MAX) {
    size_t *arena = &e->a->program->info.arena_bytes;
    if (m->kind == CPU_RUN_SLOT_ROW && *arena < (size_t)m->bytes) {
      *arena = (size_t)m->bytes;
    }
    m->slot = cpu_lower_assemble_slot(e->a, m->kind, m->at, m->bytes);
  }
  return m->slot;
}

static uint32_t slot_of_constant(emitter *e, const cx_hlo_value *v)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(v->op, CX_HLO_A_VALUE);
  const cx_hlo_elements *x = &attr->as.elements;
  return cpu_lower_assemble_constant(e->a, x->data, x->size,
                                     cx_hlo_type_bytes(&v->type.tensor));
}

// A constant gets its slot here, and so does a token, which has no bytes.
static uint32_t slot_of_storage(emitter *e, cx_hlo_value *v)
{
  cx_hlo_value *storage = cpu_lower_storage(e->c, v);
  cpu_lower_value *info = cpu_lower_info(e->c, storage);
  if (info->range == NULL) {
    info->range = CX_ARENA_NEW(&e->c->arena, cpu_lower_range);
    if (info->range == NULL) {
      e->a->failed = true;
      return 0;
    }
    info->range->bytes = cx_hlo_type_bytes(&storage->type.tensor);
    info->range->slot =
        cpu_lower_is_constant(storage)
            ? slot_of_constant(e, storage)
            : cpu_lower_assemble_slot(e->a, CPU_RUN_SLOT_ARENA, 0, 0);
  }
  return slot_of_memory(e, info->range);
}

static uint32_t slot_of(emitter *e, cx_hlo_value *v)
{
  const uint32_t whole = slot_of_storage(e, v);
  const int64_t offset = cpu_lower_offset(e->c, v);
  if (offset == 0 || e->a->failed) return whole;
  cpu_run_slot part = e->a->program->slots[whole];
  const bool numbered =
      part.kind == CPU_RUN_SLOT_PARAM || part.kind == CPU_RUN_SLOT_RESULT;
  *(numbered ? &part.offset : &part.at) += offset;
  part.bytes = cx_hlo_type_bytes(&v->type.tensor);
  return cpu_lower_assemble_part(e->a, &part);
}

// ---- counts ----

static void count(emitter *e, const cpu_lower_group *g)
{
  cpu_run_program_info *info = &e->a->program->info;
  double ns = cpu_lower_cost_ns(e->c, g);
  switch (g->kind) {
    case CPU_LOWER_GROUP_LOOP: info->n_compiled += g->n_ops; break;
    case CPU_LOWER_GROUP_KERNEL: info->n_library++; break;
    case CPU_LOWER_GROUP_INTERPRETED: info->n_interpreted += g->n_ops; break;
    case CPU_LOWER_GROUP_COLLECTIVE:
      info->n_library++;
      ns += NS_PER_COLLECTIVE;
      break;
    case CPU_LOWER_GROUP_CONTROL:
    case CPU_LOWER_GROUP_DONE: break;
  }
  if (e->rounds > 1 &&
      (g->kind == CPU_LOWER_GROUP_LOOP || g->kind == CPU_LOWER_GROUP_CONTROL)) {
    ns -= NS_SAVED_IN_LOOPS;
  }
  info->cost_ns += ns * e->rounds;
  cpu_lower_add_work(e->c, g, e->counted, &info->work);
}

// ---- steps ----

// The last step is the group's.
static calx_status *note_group(emitter *e, cpu_lower_group *g)
{
  cpu_lower_state *c = e->c;
  while (c->n_group_of + 1 < e->a->program->n_steps) {
    CALX_TRY(cpu_lower_push(c, &c->group_of, &c->n_group_of, &c->group_of_room,
                            NULL));
  }
  return cpu_lower_push(c, &c->group_of, &c->n_group_of, &c->group_of_room, g);
}

static calx_status *emit_slots(emitter *e, cpu_lower_group *g,
                               cpu_run_step_kind kind)
{
  size_t n = 0;
  uint32_t *slots =
      CX_ARENA_ARRAY(&e->c->arena, uint32_t, g->n_inputs + g->n_outputs + 1);
  if (slots == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < g->n_inputs; i++) {
    slots[n++] = slot_of(e, g->inputs[i]);
  }
  for (size_t i = 0; i < g->n_outputs; i++) {
    slots[n++] = slot_of(e, g->outputs[i]);
  }
  if (g->scratch_range != NULL) {
    slots[n++] = slot_of_memory(e, g->scratch_range);
  }
  cpu_lower_assemble_step(e->a, kind, g->index, g->background_index, slots, n);
  return kind == CPU_RUN_STEP_LOOP ? note_group(e, g) : NULL;
}

static void emit_kernel(emitter *e, cpu_lower_group *g)
{
  cx_hlo_op *op = g->ops[0];
  uint32_t slots[CPU_KERNEL_BUFFERS + 1];
  size_t n = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const uint32_t read = cpu_kernel_reads(g->desc, i) ? i : 0;
    slots[n++] = slot_of(e, op->operands[read]);
  }
  // An operation of one operand has no rhs.
  if (op->n_operands == 1) slots[n++] = slots[0];
  for (uint32_t i = 0; i < op->n_results; i++) {
    slots[n++] = slot_of(e, &op->results[i]);
  }
  slots[n++] = g->scratch_range == NULL
                   ? cpu_lower_assemble_slot(e->a, CPU_RUN_SLOT_ARENA, 0, 0)
                   : slot_of_memory(e, g->scratch_range);
  cpu_lower_assemble_step(e->a, CPU_RUN_STEP_KERNEL, g->index, 0, slots, n);
}

static void emit_copy(emitter *e, uint32_t from, uint32_t to)
{
  uint32_t slots[2] = { from, to };
  if (from != to)
    cpu_lower_assemble_step(e->a, CPU_RUN_STEP_COPY, 0, 0, slots, 2);
}

// The block runs so often each time the current one does.
static calx_status *add_pending(emitter *e, const cpu_lower_schedule *schedule,
                                uint32_t block, double rounds)
{
  const double counted = rounds < CPU_LOWER_UNKNOWN_ROUNDS ? rounds : 1;
  if (!cx_grow(&e->pending, &e->pending_room, e->n_pending + 1,
               sizeof *e->pending)) {
    return cx_out_of_memory();
  }
  e->pending[e->n_pending++] =
      (pending_block){ schedule, block, e->rounds * rounds,
                       e->counted * counted };
  return NULL;
}

static calx_status *emit_control(emitter *e, const cpu_lower_group *g)
{
  cx_hlo_op *op = g->ops[0];
  bool loop = op->kind == CX_HLO_OP_WHILE;
  uint32_t first = cpu_lower_assemble_blocks(e->a, op->n_regions);
  if (first == UINT32_MAX) return cx_out_of_memory();
  uint32_t slot = 0;
  if (loop) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      emit_copy(e, slot_of(e, op->operands[i]), slot_of(e, &op->results[i]));
    }
    const cx_hlo_op *end = cx_hlo_terminator(op->regions[0].first);
    slot = slot_of(e, end->operands[0]);
  } else {
    slot = slot_of(e, op->operands[0]);
  }
  cpu_lower_assemble_step(e->a,
                          loop                       ? CPU_RUN_STEP_WHILE
                          : op->kind == CX_HLO_OP_IF ? CPU_RUN_STEP_IF
                                                     : CPU_RUN_STEP_CASE,
                          first, op->n_regions, &slot, 1);
  for (uint32_t r = 0; r < op->n_regions; r++) {
    // The condition is asked once more than the body runs.
    CALX_TRY(add_pending(e, &g->regions[r], first + r,
                         loop ? cpu_lower_rounds(op) + (r == 0) : 1));
  }
  return NULL;
}

// ---- the results of a block ----

static bool overlaps(const cpu_run_program *p, const cpu_run_slot *a,
                     const cpu_run_slot *b)
{
  if (a->kind == CPU_RUN_SLOT_PARAM && b->kind == CPU_RUN_SLOT_RESULT) {
    return p->info.alias[b->at] == a->at;
  }
  if (a->kind != b->kind) return false;
  if (a->kind != CPU_RUN_SLOT_ARENA) return a->at == b->at;
  return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

typedef struct slot_move {
  uint32_t from, to;
} slot_move;

// Copies at the end of the arena what another move would overwrite first.
static calx_status *save_overwritten(emitter *e, slot_move *moves, size_t n)
{
  cpu_run_program *p = e->a->program;
  int64_t end = (int64_t)p->info.arena_bytes;
  for (size_t i = 0; i < n && !e->a->failed; i++) {
    const cpu_run_slot *from = &p->slots[moves[i].from];
    bool overwritten = false;
    for (size_t k = 0; k < n && !overwritten; k++) {
      overwritten = k != i && (moves[k].to == moves[i].from ||
                               overlaps(p, from, &p->slots[moves[k].to]));
    }
    if (!overwritten) continue;
    const int64_t bytes = from->bytes;
    const uint32_t saved =
        cpu_lower_assemble_slot(e->a, CPU_RUN_SLOT_ARENA, end, bytes);
    end += cpu_run_align_up(bytes);
    CALX_TRY(cpu_lower_check_total(p, end));
    emit_copy(e, moves[i].from, saved);
    moves[i].from = saved;
  }
  p->info.arena_bytes = (size_t)end;
  return NULL;
}

// Copies each value to its slot, as if all were copied at the same time.
static calx_status *emit_moves(emitter *e, cx_hlo_value *const *from,
                               const uint32_t *to, size_t n)
{
  slot_move *moves = CX_ARENA_ARRAY(&e->c->arena, slot_move, n + 1);
  if (moves == NULL) return cx_out_of_memory();
  size_t n_moves = 0;  // most values are in their slot already
  for (size_t i = 0; i < n; i++) {
    const slot_move m = { slot_of(e, from[i]), to[i] };
    if (m.from != m.to) moves[n_moves++] = m;
  }
  CALX_TRY(save_overwritten(e, moves, n_moves));
  for (size_t i = 0; i < n_moves; i++) {
    emit_copy(e, moves[i].from, moves[i].to);
  }
  return NULL;
}

// Where result i of the program is to be.
static uint32_t slot_of_result(emitter *e, cx_hlo_value *v, uint32_t i)
{
  const uint32_t slot = slot_of(e, v);
  if (e->a->failed) return UINT32_MAX;
  const cpu_run_slot *has = &e->a->program->slots[slot];
  return has->kind == CPU_RUN_SLOT_RESULT && has->at == (int64_t)i
             ? slot
             : cpu_lower_assemble_slot(e->a, CPU_RUN_SLOT_RESULT, (int64_t)i,
                                       cx_hlo_type_bytes(&v->type.tensor));
}

static calx_status *emit_end(emitter *e, const cpu_lower_schedule *schedule)
{
  const cx_hlo_block *block = schedule->block;
  const cx_hlo_op *end = cx_hlo_terminator(block);
  cx_hlo_op *parent = block->region->op;
  if (end == NULL || end->n_operands == 0) return NULL;
  if (parent != NULL && parent->kind == CX_HLO_OP_WHILE &&
      block == parent->regions[0].first) {
    return NULL;  // of the condition: the while reads it where it is
  }
  uint32_t *to = CX_ARENA_ARRAY(&e->c->arena, uint32_t, end->n_operands);
  if (to == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < end->n_operands; i++) {
    to[i] = parent != NULL ? slot_of(e, &parent->results[i])
                           : slot_of_result(e, end->operands[i], i);
  }
  return emit_moves(e, end->operands, to, end->n_operands);
}

// The steps that say which rows the outputs are.
static void emit_rows(emitter *e, const cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_outputs; i++) {
    cpu_lower_range *row = cpu_lower_info(e->c, g->outputs[i])->range;
    if (row == NULL || row->kind != CPU_RUN_SLOT_ROW) continue;
    const uint32_t slots[3] = { slot_of_memory(e, row->whole),
                                slot_of(e, row->index),
                                slot_of_memory(e, row) };
    cpu_lower_assemble_step(e->a, CPU_RUN_STEP_ROW, 0, 0, slots, 3);
  }
}

static calx_status *emit_group(emitter *e, cpu_lower_group *g)
{
  if (cpu_lower_is_overwritten(e->c, g) || cpu_lower_is_written(e->c, g)) {
    return NULL;
  }
  emit_rows(e, g);
  count(e, g);
  switch (g->kind) {
    case CPU_LOWER_GROUP_LOOP: return emit_slots(e, g, CPU_RUN_STEP_LOOP);
    case CPU_LOWER_GROUP_KERNEL: emit_kernel(e, g); return NULL;
    case CPU_LOWER_GROUP_INTERPRETED:
      return emit_slots(e, g, CPU_RUN_STEP_INTERPRET);
    case CPU_LOWER_GROUP_COLLECTIVE:
      return emit_slots(
          e, g,
          g->in_background ? CPU_RUN_STEP_BEGIN : CPU_RUN_STEP_COLLECTIVE);
    case CPU_LOWER_GROUP_DONE:
      cpu_lower_assemble_step(e->a, CPU_RUN_STEP_END, 0,
                              g->collective->background_index, NULL, 0);
      return NULL;
    case CPU_LOWER_GROUP_CONTROL: break;
  }
  return emit_control(e, g);
}

static calx_status *emit_block(emitter *e, pending_block b)
{
  cpu_run_program *p = e->a->program;
  const uint32_t first = (uint32_t)p->n_steps;
  e->rounds = b.rounds;
  e->counted = b.counted;
  for (size_t i = 0; i < b.schedule->n_groups; i++) {
    CALX_TRY(emit_group(e, b.schedule->groups[i]));
  }
  CALX_TRY(emit_end(e, b.schedule));
  if (e->a->failed) return cx_out_of_memory();
  p->blocks[b.block] =
      (cpu_run_step_block){ first, (uint32_t)p->n_steps - first };
  return NULL;
}

// Regions are added behind the block that they are in.
static calx_status *emit_blocks(emitter *e, const cpu_lower_schedule *schedule)
{
  CALX_TRY(add_pending(e, schedule, cpu_lower_assemble_blocks(e->a, 1), 1));
  for (size_t i = 0; i < e->n_pending; i++) {
    CALX_TRY(emit_block(e, e->pending[i]));
  }
  return NULL;
}

calx_status *cpu_lower_steps(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  emitter e = { .c = c, .a = &c->a, .rounds = 1, .counted = 1 };
  calx_status *status = emit_blocks(&e, schedule);
  cx_free(e.pending);
  return status;
}
