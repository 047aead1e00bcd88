// lower/steps: units become steps, and what regions give is copied to where it
// is wanted, if it is not there already.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "lower/plan.h"

// Guesses that decide only whether a launch is worth a thread of its own.
#define NS_PER_BYTE 0.1
#define NS_PER_FLOP 0.01
#define NS_PER_STEP 100.0
#define NS_PER_INTERPRETED 30.0
#define NS_PER_CALL 3000.0
#define NS_PER_WAIT 1e6  // of a collective, for the others
#define LOOP_ROUNDS 16.0

typedef struct todo {
  const cpu_lower_schedule *plan;
  uint32_t block;
  double rounds;
} todo;

typedef struct emitting {
  cpu_lower_planner *g;
  cpu_lower_assembly *a;
  todo *list;
  size_t n, room;
  double rounds;  // how often the block is expected to run
} emitting;

// ---- places ----

static uint32_t place_of_memory(emitting *e, cpu_lower_allocation *m)
{
  if (m->place == UINT32_MAX) {
    m->place = cpu_lower_assemble_place(e->a, m->kind, m->at, m->bytes);
  }
  return m->place;
}

static uint32_t constant_place(emitting *e, const cx_hlo_value *v)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(v->op, CX_HLO_A_VALUE);
  const cx_hlo_elements *x = &attr->as.elements;
  return cpu_lower_assemble_constant(e->a, x->data, x->size,
                                     cx_hlo_type_bytes(&v->type.tensor));
}

// A constant's, or that of a token, which has no bytes.
static uint32_t place_of(emitting *e, cx_hlo_value *v)
{
  cx_hlo_value *root = cx_value_root(e->g, v);
  cpu_lower_value_info *info = cx_graph_value(e->g, root);
  if (info->memory == NULL) {
    info->memory = CX_ARENA_NEW(&e->g->l->arena, cpu_lower_allocation);
    if (info->memory == NULL) {
      e->a->failed = true;
      return 0;
    }
    info->memory->bytes = cx_hlo_type_bytes(&root->type.tensor);
    info->memory->place =
        cpu_lower_is_constant(root)
            ? constant_place(e, root)
            : cpu_lower_assemble_place(e->a, CPU_RUN_PLACE_ARENA, 0, 0);
  }
  return place_of_memory(e, info->memory);
}

// ---- costs and counts ----

static double bytes_of_unit(const cpu_lower_unit *u)
{
  double bytes = 0;
  for (size_t i = 0; i < u->n_inputs; i++) {
    bytes += (double)cx_hlo_type_bytes(&u->inputs[i]->type.tensor);
  }
  for (size_t i = 0; i < u->n_outputs; i++) {
    bytes += (double)cx_hlo_type_bytes(&u->outputs[i]->type.tensor);
  }
  return bytes;
}

double cpu_lower_cost_ns(const cpu_lower_unit *u)
{
  double bytes = bytes_of_unit(u);
  double ns = NS_PER_STEP;
  switch (u->kind) {
    case CPU_LOWER_UNIT_CODE:
      ns += bytes * NS_PER_BYTE + (double)u->elements * (double)u->n_ops * 0.1;
      break;
    case CPU_LOWER_UNIT_KERNEL:
      ns += bytes * NS_PER_BYTE + cpu_kernel_flops(u->desc) * NS_PER_FLOP;
      break;
    case CPU_LOWER_UNIT_INTERPRET:
      ns += NS_PER_CALL + bytes * NS_PER_INTERPRETED;
      break;
    case CPU_LOWER_UNIT_COLLECTIVE: ns += bytes * NS_PER_BYTE; break;
    case CPU_LOWER_UNIT_CONTROL:
    case CPU_LOWER_UNIT_END: break;
  }
  return ns;
}

static void count(emitting *e, const cpu_lower_unit *u)
{
  cpu_run_program_info *info = &e->a->program->info;
  double ns = cpu_lower_cost_ns(u);
  switch (u->kind) {
    case CPU_LOWER_UNIT_CODE: info->n_compiled += u->n_ops; break;
    case CPU_LOWER_UNIT_KERNEL: info->n_library++; break;
    case CPU_LOWER_UNIT_INTERPRET: info->n_interpreted += u->n_ops; break;
    case CPU_LOWER_UNIT_COLLECTIVE:
      info->n_library++;
      ns += NS_PER_WAIT;
      break;
    case CPU_LOWER_UNIT_CONTROL:
    case CPU_LOWER_UNIT_END: break;
  }
  info->cost_ns += ns * e->rounds;
}

// ---- steps ----

static calx_status *emit_places(emitting *e, const cpu_lower_unit *u,
                                cpu_run_step_kind kind)
{
  size_t n = 0;
  uint32_t *places =
      CX_ARENA_ARRAY(&e->g->l->arena, uint32_t, u->n_inputs + u->n_outputs + 1);
  if (places == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < u->n_inputs; i++) {
    places[n++] = place_of(e, u->inputs[i]);
  }
  for (size_t i = 0; i < u->n_outputs; i++) {
    places[n++] = place_of(e, u->outputs[i]);
  }
  if (u->scratch_memory != NULL) {
    places[n++] = place_of_memory(e, u->scratch_memory);
  }
  cpu_lower_assemble_step(e->a, kind, u->index, u->number, places, n);
  return NULL;
}

static void emit_kernel(emitting *e, cpu_lower_unit *u)
{
  cx_hlo_op *op = u->ops[0];
  uint32_t places[4] = { place_of(e, op->operands[0]),
                         place_of(e, op->operands[1]),
                         place_of(e, &op->results[0]), 0 };
  places[3] = u->scratch_memory == NULL
                  ? cpu_lower_assemble_place(e->a, CPU_RUN_PLACE_ARENA, 0, 0)
                  : place_of_memory(e, u->scratch_memory);
  cpu_lower_assemble_step(e->a, CPU_RUN_STEP_KERNEL, u->index, 0, places, 4);
}

static void emit_copy(emitting *e, uint32_t from, uint32_t to)
{
  uint32_t places[2] = { from, to };
  if (from != to)
    cpu_lower_assemble_step(e->a, CPU_RUN_STEP_COPY, 0, 0, places, 2);
}

static calx_status *later(emitting *e, const cpu_lower_schedule *plan,
                          uint32_t block, double rounds)
{
  if (!cx_grow(&e->list, &e->room, e->n + 1, sizeof *e->list)) {
    return cx_out_of_memory();
  }
  e->list[e->n++] = (todo){ plan, block, rounds };
  return NULL;
}

static calx_status *emit_control(emitting *e, const cpu_lower_unit *u)
{
  cx_hlo_op *op = u->ops[0];
  bool loop = op->kind == CX_HLO_OP_WHILE;
  uint32_t first = cpu_lower_assemble_blocks(e->a, op->n_regions);
  if (first == UINT32_MAX) return cx_out_of_memory();
  uint32_t place = 0;
  if (loop) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      emit_copy(e, place_of(e, op->operands[i]), place_of(e, &op->results[i]));
    }
    const cx_hlo_op *end = cx_hlo_terminator(op->regions[0].first);
    place = place_of(e, end->operands[0]);
  } else {
    place = place_of(e, op->operands[0]);
  }
  cpu_lower_assemble_step(e->a,
                          loop                       ? CPU_RUN_STEP_WHILE
                          : op->kind == CX_HLO_OP_IF ? CPU_RUN_STEP_IF
                                                     : CPU_RUN_STEP_CASE,
                          first, op->n_regions, &place, 1);
  for (uint32_t r = 0; r < op->n_regions; r++) {
    CALX_TRY(later(e, &u->regions[r], first + r,
                   e->rounds * (loop ? LOOP_ROUNDS : 1)));
  }
  return NULL;
}

// ---- what a block gives ----

static cpu_lower_allocation *memory_of(emitting *e, cx_hlo_value *v)
{
  (void)place_of(e, v);
  return cx_graph_value(e->g, cx_value_root(e->g, v))->memory;
}

static bool overlap(const cpu_run_program *p, const cpu_run_place *a,
                    const cpu_run_place *b)
{
  if (a->kind == CPU_RUN_PLACE_PARAM && b->kind == CPU_RUN_PLACE_RESULT) {
    return p->info.alias[b->at] == a->at;
  }
  if (a->kind != b->kind) return false;
  if (a->kind != CPU_RUN_PLACE_ARENA) return a->at == b->at;
  return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

// All at once, as far as anybody can see: a value that lies where another is to
// go, is first put aside.
static calx_status *emit_moves(emitting *e, cx_hlo_value *const *from,
                               const uint32_t *to, size_t n)
{
  uint32_t *source = CX_ARENA_ARRAY(&e->g->l->arena, uint32_t, n + 1);
  if (source == NULL) return cx_out_of_memory();
  size_t *moving = CX_ARENA_ARRAY(&e->g->l->arena, size_t, n + 1);
  if (moving == NULL) return cx_out_of_memory();
  size_t n_moving = 0;  // most values lie where they are to go
  for (size_t i = 0; i < n; i++) {
    source[i] = place_of(e, from[i]);
    if (source[i] != to[i]) moving[n_moving++] = i;
  }
  cpu_run_program *p = e->a->program;
  int64_t aside = (int64_t)p->arena_bytes;
  for (size_t m = 0; m < n_moving && !e->a->failed; m++) {
    const size_t i = moving[m];
    bool overwritten = false;
    for (size_t o = 0; o < n_moving && !overwritten; o++) {
      const uint32_t other = to[moving[o]];
      overwritten =
          o != m && (other == source[i] ||
                     overlap(p, &p->places[source[i]], &p->places[other]));
    }
    if (!overwritten) continue;
    int64_t bytes = p->places[source[i]].bytes;
    uint32_t place =
        cpu_lower_assemble_place(e->a, CPU_RUN_PLACE_ARENA, aside, bytes);
    aside += cx_place_align_up(bytes);
    CALX_TRY(cpu_lower_check_total(p, aside));
    emit_copy(e, source[i], place);
    source[i] = place;
  }
  p->arena_bytes = (size_t)aside;
  for (size_t m = 0; m < n_moving; m++) {
    emit_copy(e, source[moving[m]], to[moving[m]]);
  }
  return NULL;
}

static calx_status *emit_end(emitting *e, const cpu_lower_schedule *plan)
{
  const cx_hlo_block *block = plan->block;
  const cx_hlo_op *end = cx_hlo_terminator(block);
  cx_hlo_op *parent = block->region->op;
  if (end == NULL || end->n_operands == 0) return NULL;
  if (parent != NULL && parent->kind == CX_HLO_OP_WHILE &&
      block == parent->regions[0].first) {
    return NULL;  // the condition: read where it is
  }
  uint32_t *to = CX_ARENA_ARRAY(&e->g->l->arena, uint32_t, end->n_operands);
  if (to == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < end->n_operands; i++) {
    if (parent != NULL) {
      to[i] = place_of(e, &parent->results[i]);
      continue;
    }
    const cpu_lower_allocation *has = memory_of(e, end->operands[i]);
    bool there = has != NULL && has->kind == CPU_RUN_PLACE_RESULT &&
                 has->at == (int64_t)i &&
                 !cpu_lower_is_constant(end->operands[i]);
    to[i] = there ? has->place
                  : cpu_lower_assemble_place(
                        e->a, CPU_RUN_PLACE_RESULT, (int64_t)i,
                        cx_hlo_type_bytes(&end->operands[i]->type.tensor));
  }
  return emit_moves(e, end->operands, to, end->n_operands);
}

static calx_status *emit_unit(emitting *e, cpu_lower_unit *u)
{
  count(e, u);
  switch (u->kind) {
    case CPU_LOWER_UNIT_CODE: return emit_places(e, u, CPU_RUN_STEP_CODE);
    case CPU_LOWER_UNIT_KERNEL: emit_kernel(e, u); return NULL;
    case CPU_LOWER_UNIT_INTERPRET:
      return emit_places(e, u, CPU_RUN_STEP_INTERPRET);
    case CPU_LOWER_UNIT_COLLECTIVE:
      return emit_places(
          e, u, u->overlaps ? CPU_RUN_STEP_BEGIN : CPU_RUN_STEP_COLLECTIVE);
    case CPU_LOWER_UNIT_END:
      cpu_lower_assemble_step(e->a, CPU_RUN_STEP_END, 0, u->begun->number, NULL,
                              0);
      return NULL;
    case CPU_LOWER_UNIT_CONTROL: break;
  }
  return emit_control(e, u);
}

static calx_status *emit_all(emitting *e, const cpu_lower_schedule *plan)
{
  uint32_t entry = cpu_lower_assemble_blocks(e->a, 1);
  CALX_TRY(later(e, plan, entry, 1));
  for (size_t next = 0; next < e->n; next++) {
    todo t = e->list[next];
    uint32_t first = (uint32_t)e->a->program->n_steps;
    e->rounds = t.rounds;
    for (size_t i = 0; i < t.plan->n_units; i++) {
      CALX_TRY(emit_unit(e, t.plan->units[i]));
    }
    CALX_TRY(emit_end(e, t.plan));
    if (e->a->failed) return cx_out_of_memory();
    e->a->program->blocks[t.block] =
        (cpu_run_step_block){ first, (uint32_t)e->a->program->n_steps - first };
  }
  return NULL;
}

calx_status *cpu_lower_steps(cpu_lower_planner *g,
                             const cpu_lower_schedule *plan)
{
  emitting e = { .g = g, .a = &g->l->a };
  calx_status *status = emit_all(&e, plan);
  cx_free(e.list);
  return status;
}
