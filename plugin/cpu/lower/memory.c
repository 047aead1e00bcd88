// lower/memory: which memory each value has.
//
// Walked in the order of time. A value goes where its user wants it (a result
// of the program, what a loop carries, what a branch gives), or over a value
// that is read for the last time by the loop that writes it, or to memory of
// its own, which others had before and will have after it.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "lower/plan.h"
#include "opt/edit.h"

static cpu_lower_allocation *new_memory(cpu_lower_planner *g,
                                        cpu_run_place_kind kind, int64_t at,
                                        int64_t bytes)
{
  cpu_lower_allocation *m = CX_ARENA_NEW(&g->l->arena, cpu_lower_allocation);
  if (m == NULL) return NULL;
  *m = (cpu_lower_allocation){
    .kind = kind, .at = at, .bytes = bytes, .place = UINT32_MAX
  };
  if (kind == CPU_RUN_PLACE_ARENA) {
    m->next = g->memories;
    g->memories = m;
  }
  return m;
}

static cpu_lower_allocation *arena_memory(cpu_lower_planner *g, int64_t bytes,
                                          int64_t start, int64_t end)
{
  cpu_lower_allocation *m = new_memory(g, CPU_RUN_PLACE_ARENA, 0, bytes);
  if (m == NULL) return NULL;
  m->start = start;
  m->end = end;
  return m;
}

static void extend(cpu_lower_allocation *m, int64_t start, int64_t end)
{
  if (start < m->start) m->start = start;
  if (end > m->end) m->end = end;
}

// ---- in place ----

// What is updated is read by the update alone, which leaves it where it is.
static bool updates(const cpu_lower_unit *u, const cx_hlo_value *input,
                    const cx_hlo_value *output)
{
  const cx_hlo_op *hero = u->hero;
  if ((hero->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
       hero->kind != CX_HLO_OP_SCATTER) ||
      hero->n_results != 1 || hero->operands[0] != input ||
      &hero->results[0] != output) {
    return false;
  }
  for (size_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_op *op = u->ops[i];
    for (uint32_t k = op == hero ? 1 : 0; k < op->n_operands; k++) {
      if (op->operands[k] == input) return false;
    }
  }
  return true;
}

// Operations of one element each from an input to an output read what the same
// iteration writes over; anything else on the way may read it later. Only CODE
// units write in place.
static bool in_place(const cpu_lower_unit *u, const cx_hlo_value *input,
                     const cx_hlo_value *output)
{
  if (u->kind != CPU_LOWER_UNIT_CODE || u->n_ops > 256) return false;
  const cx_hlo_type *from = &input->type.tensor;
  const cx_hlo_type *to = &output->type.tensor;
  if (cx_hlo_type_bytes(from) != cx_hlo_type_bytes(to)) return false;
  if (u->hero != NULL) return updates(u, input, output);
  bool tainted[256] = { 0 };
  for (size_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_op *op = u->ops[i];
    for (uint32_t k = 0; k < op->n_operands; k++) {
      if (op->operands[k] == input) tainted[i] = true;
      for (size_t j = 0; j < i; j++) {
        if (tainted[j] && op->operands[k]->op == u->ops[j]) tainted[i] = true;
      }
    }
    if (tainted[i] && cpu_jit_class_of(op) != CPU_JIT_ELEMENT) return false;
  }
  return cx_hlo_elem_bytes(from->elem) == cx_hlo_elem_bytes(to->elem);
}

// The input under whose name the unit reads root, if only one does.
static cx_hlo_value *input_of(const cpu_lower_planner *g,
                              const cpu_lower_unit *u, const cx_hlo_value *root)
{
  cx_hlo_value *found = NULL;
  for (size_t i = 0; i < u->n_inputs; i++) {
    if (cx_value_root(g, u->inputs[i]) != root) continue;
    if (found != NULL) return NULL;
    found = u->inputs[i];
  }
  return found;
}

// Whether `over` is no longer read when u writes v, or only where v goes.
static bool over_when(const cpu_lower_planner *g, const cpu_lower_unit *u,
                      cx_hlo_value *over, cx_hlo_value *v)
{
  if (over == NULL) return true;
  const cpu_lower_value_info *info = cx_graph_value(g, over);
  if (info->last < u->begin) return true;
  if (info->last > u->begin || u->kind != CPU_LOWER_UNIT_CODE) return false;
  cx_hlo_value *input = input_of(g, u, over);
  return input != NULL && in_place(u, input, v);
}

static bool taken(const cpu_lower_unit *u, const cpu_lower_planner *g,
                  const cpu_lower_allocation *m)
{
  for (size_t i = 0; i < u->n_outputs; i++) {
    if (cx_graph_value(g, u->outputs[i])->memory == m) return true;
  }
  return false;
}

// A reduction over devices leaves its sums where its operands were.
static bool reduces(const cpu_lower_unit *u, size_t input,
                    const cx_hlo_value *output)
{
  const cx_hlo_op *op = u->ops[0];
  return u->kind == CPU_LOWER_UNIT_COLLECTIVE && cpu_lower_is_in_place(op) &&
         output == &op->results[input];
}

static cpu_lower_allocation *reuse(const cpu_lower_planner *g,
                                   const cpu_lower_unit *u, cx_hlo_value *v)
{
  for (size_t i = 0; i < u->n_inputs; i++) {
    cx_hlo_value *root = cx_value_root(g, u->inputs[i]);
    const cpu_lower_value_info *info = cx_graph_value(g, root);
    if (info->memory == NULL || info->memory->kind != CPU_RUN_PLACE_ARENA ||
        info->memory->end != u->end || info->last != u->end ||
        input_of(g, u, root) == NULL || taken(u, g, info->memory)) {
      continue;
    }
    const bool sums = reduces(u, i, v) && !info->beside;
    if (sums || in_place(u, u->inputs[i], v)) return info->memory;
  }
  return NULL;
}

static calx_status *place_output(cpu_lower_planner *g, const cpu_lower_unit *u,
                                 cx_hlo_value *v)
{
  cpu_lower_value_info *info = cx_graph_value(g, v);
  if (info->wanted != NULL && over_when(g, u, info->instead, v) &&
      !taken(u, g, info->wanted)) {
    info->memory = info->wanted;
    extend(info->memory, u->begin, info->last);
    return NULL;
  }
  info->memory = reuse(g, u, v);
  if (info->memory != NULL) {
    extend(info->memory, u->begin, info->last);
    return NULL;
  }
  info->memory =
      arena_memory(g, cx_hlo_type_bytes(&v->type.tensor), u->begin, info->last);
  return info->memory == NULL ? cx_out_of_memory() : NULL;
}

// ---- what users want ----

static void want(cpu_lower_planner *g, cx_hlo_value *v, cpu_lower_allocation *m,
                 cx_hlo_value *instead)
{
  cx_hlo_value *root = cx_value_root(g, v);
  cpu_lower_value_info *info = cx_graph_value(g, root);
  if (info->wanted != NULL || info->home == NULL || info->memory != NULL ||
      cx_hlo_type_bytes(&root->type.tensor) != m->bytes) {
    return;
  }
  info->wanted = m;
  info->instead = instead;
}

static calx_status *walk(cpu_lower_planner *g, const cpu_lower_schedule *plan);

static bool used_inside(const cpu_lower_planner *g, const cx_hlo_op *op,
                        const cx_hlo_value *root)
{
  const cx_hlo_op *at = cpu_opt_inner(op);
  for (; at != op; at = cpu_opt_next(at)) {
    for (uint32_t i = 0; i < at->n_operands; i++) {
      if (cx_value_root(g, at->operands[i]) == root) return true;
    }
  }
  return false;
}

// What a loop carries has one memory from its start to its last use: of the
// initial value, of the regions' arguments and of the results.
static calx_status *place_while(cpu_lower_planner *g, cpu_lower_unit *u)
{
  cx_hlo_op *op = u->ops[0];
  cx_hlo_block *condition = op->regions[0].first;
  cx_hlo_block *body = op->regions[1].first;
  for (uint32_t i = 0; i < op->n_results; i++) {
    cpu_lower_value_info *result = cx_graph_value(g, &op->results[i]);
    cx_hlo_value *init = cx_value_root(g, op->operands[i]);
    const cpu_lower_value_info *start = cx_graph_value(g, init);
    bool twice = false;
    for (uint32_t k = 0; k < i; k++) {
      twice |= cx_value_root(g, op->operands[k]) == init;
    }
    cpu_lower_allocation *m = NULL;
    if (result->wanted != NULL && result->instead == NULL) {
      m = result->wanted;
    } else if (start->memory != NULL && start->last <= u->end && !twice &&
               start->memory->kind == CPU_RUN_PLACE_ARENA &&
               start->memory->end <= u->end && start->home != NULL &&
               start->home->begin < u->begin && !used_inside(g, op, init)) {
      m = start->memory;
    } else {
      m = arena_memory(g, cx_hlo_type_bytes(&op->results[i].type.tensor),
                       u->begin, u->end);
    }
    if (m == NULL) return cx_out_of_memory();
    extend(m, u->begin, result->last > u->end ? result->last : u->end);
    result->memory = m;
    cx_graph_value(g, &condition->args[i])->memory = m;
    cx_graph_value(g, &body->args[i])->memory = m;
  }
  const cx_hlo_op *end = cx_hlo_terminator(body);
  for (uint32_t i = 0; i < end->n_operands && i < op->n_results; i++) {
    want(g, end->operands[i], cx_graph_value(g, &op->results[i])->memory,
         &body->args[i]);
  }
  for (size_t r = 0; r < 2; r++) CALX_TRY(walk(g, &u->regions[r]));
  return NULL;
}

static calx_status *place_branches(cpu_lower_planner *g, cpu_lower_unit *u)
{
  cx_hlo_op *op = u->ops[0];
  for (uint32_t i = 0; i < op->n_results; i++) {
    cpu_lower_value_info *result = cx_graph_value(g, &op->results[i]);
    if (result->wanted != NULL && result->instead == NULL) {
      result->memory = result->wanted;
    } else {
      result->memory = arena_memory(
          g, cx_hlo_type_bytes(&op->results[i].type.tensor), u->begin, u->end);
    }
    if (result->memory == NULL) return cx_out_of_memory();
    extend(result->memory, u->begin, result->last);
  }
  for (uint32_t r = 0; r < op->n_regions; r++) {
    const cx_hlo_op *end = cx_hlo_terminator(op->regions[r].first);
    for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
      want(g, end->operands[i], cx_graph_value(g, &op->results[i])->memory,
           NULL);
    }
    CALX_TRY(walk(g, &u->regions[r]));
  }
  return NULL;
}

static calx_status *walk(cpu_lower_planner *g, const cpu_lower_schedule *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    if (u->kind == CPU_LOWER_UNIT_CONTROL) {
      CALX_TRY(u->ops[0]->kind == CX_HLO_OP_WHILE ? place_while(g, u)
                                                  : place_branches(g, u));
      continue;
    }
    if (u->scratch > 0) {
      u->scratch_memory = arena_memory(g, u->scratch, u->begin, u->begin);
      if (u->scratch_memory == NULL) return cx_out_of_memory();
    }
    for (size_t o = 0; o < u->n_outputs; o++) {
      CALX_TRY(place_output(g, u, u->outputs[o]));
    }
  }
  return NULL;
}

// ---- offsets ----

static int by_start(const void *a, const void *b)
{
  const cpu_lower_allocation *const *x = a;
  const cpu_lower_allocation *const *y = b;
  if ((*x)->start != (*y)->start) return (*x)->start < (*y)->start ? -1 : 1;
  return ((*x)->bytes < (*y)->bytes) - ((*x)->bytes > (*y)->bytes);
}

// The lowest gap among those that live at the same time; `live` is sorted by
// offset.
static void insert(cpu_lower_allocation **live, size_t *n,
                   cpu_lower_allocation *m)
{
  int64_t at = 0;
  size_t i = 0;
  int64_t best = -1, best_size = INT64_MAX;
  size_t best_index = 0;
  for (; i <= *n; i++) {
    int64_t end = i < *n ? live[i]->at : INT64_MAX;
    if (end - at >= m->bytes && (best < 0 || end - at < best_size)) {
      best = at;
      best_size = end - at;
      best_index = i;
    }
    if (i < *n) at = cx_place_align_up(live[i]->at + live[i]->bytes);
  }
  m->at = best;
  memmove(live + best_index + 1, live + best_index,
          (*n - best_index) * sizeof *live);
  live[best_index] = m;
  (*n)++;
}

static calx_status *give_offsets(cpu_lower_planner *g)
{
  size_t n = 0, n_live = 0;
  for (const cpu_lower_allocation *m = g->memories; m != NULL; m = m->next) n++;
  cpu_lower_allocation **all =
      CX_ARENA_ARRAY(&g->l->arena, cpu_lower_allocation *, n + 1);
  cpu_lower_allocation **live =
      CX_ARENA_ARRAY(&g->l->arena, cpu_lower_allocation *, n + 1);
  if (all == NULL || live == NULL) return cx_out_of_memory();
  size_t i = 0;
  for (cpu_lower_allocation *m = g->memories; m != NULL; m = m->next)
    all[i++] = m;
  qsort(all, n, sizeof(cpu_lower_allocation *), by_start);
  int64_t top = 0;
  for (i = 0; i < n; i++) {
    size_t kept = 0;
    for (size_t k = 0; k < n_live; k++) {
      if (live[k]->end >= all[i]->start) live[kept++] = live[k];
    }
    n_live = kept;
    insert(live, &n_live, all[i]);
    if (all[i]->at + all[i]->bytes > top) top = all[i]->at + all[i]->bytes;
    CALX_TRY(cpu_lower_check_total(g->l->a.program, top));
  }
  g->l->a.program->arena_bytes = (size_t)cx_place_align_up(top);
  return NULL;
}

// ---- the entry ----

static calx_status *place_entry(cpu_lower_planner *g, cx_hlo_block *block)
{
  const cpu_run_program_info *info = &g->l->a.program->info;
  for (size_t i = 0; i < block->n_args; i++) {
    cpu_lower_value_info *v = cx_graph_value(g, &block->args[i]);
    v->memory = new_memory(g, CPU_RUN_PLACE_PARAM, (int64_t)i,
                           cx_hlo_type_bytes(&block->args[i].type.tensor));
    if (v->memory == NULL) return cx_out_of_memory();
  }
  const cx_hlo_op *end = cx_hlo_terminator(block);
  for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
    cpu_lower_allocation *m =
        new_memory(g, CPU_RUN_PLACE_RESULT, (int64_t)i,
                   cx_hlo_type_bytes(&end->operands[i]->type.tensor));
    if (m == NULL) return cx_out_of_memory();
    int32_t param = info->alias[i];
    want(g, end->operands[i], m, param < 0 ? NULL : &block->args[param]);
  }
  return NULL;
}

calx_status *cpu_lower_memory(cpu_lower_planner *g,
                              const cpu_lower_schedule *plan,
                              cx_hlo_func *entry)
{
  CALX_TRY(place_entry(g, entry->body.first));
  CALX_TRY(walk(g, plan));
  return give_offsets(g);
}
