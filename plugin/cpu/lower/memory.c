// lower/memory: which memory each value has.
//
// Groups are visited in the order in which they run. A value goes where its
// user prefers it (the memory of a result of the program, of a variable of a
// while, of a result of a branch). Else it is written over an input that its
// group reads for the last time. Else it gets a range of the arena, which it
// shares with values that live before and after it.
#include "lower/lower.h"
#include "opt/edit.h"

static cpu_lower_range *new_range(cpu_lower_state *c, cpu_run_slot_kind kind,
                                  int64_t at, int64_t bytes)
{
  cpu_lower_range *m = CX_ARENA_NEW(&c->arena, cpu_lower_range);
  if (m == NULL) return NULL;
  *m = (cpu_lower_range){
    .kind = kind, .at = at, .bytes = bytes, .slot = UINT32_MAX
  };
  if (kind == CPU_RUN_SLOT_ARENA) {
    m->next = c->in_arena;
    c->in_arena = m;
  }
  return m;
}

static cpu_lower_range *new_in_arena(cpu_lower_state *c, int64_t bytes,
                                     int64_t start, int64_t end)
{
  cpu_lower_range *m = new_range(c, CPU_RUN_SLOT_ARENA, 0, bytes);
  if (m == NULL) return NULL;
  m->start = start;
  m->end = end;
  return m;
}

static void extend(cpu_lower_range *m, int64_t start, int64_t end)
{
  if (start < m->start) m->start = start;
  if (end > m->end) m->end = end;
}

// ---- in place ----

// Whether the root updates a part of `input` where it is: then nothing else in
// the loop may read it.
static bool updates_in_place(const cpu_lower_group *g,
                             const cx_hlo_value *input,
                             const cx_hlo_value *output)
{
  const cx_hlo_op *root = g->root;
  if ((root->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
       root->kind != CX_HLO_OP_SCATTER) ||
      root->n_results != 1 || root->operands[0] != input ||
      &root->results[0] != output) {
    return false;
  }
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (uint32_t k = op == root ? 1 : 0; k < op->n_operands; k++) {
      if (op->operands[k] == input) return false;
    }
  }
  return true;
}

// Whether the group may write `output` over `input`. An iteration writes over
// the element that it has read, so all operations from `input` on must be
// elementwise, or reductions if `output` is not reduced: any other may read the
// element in a later iteration. Only LOOP groups write in place.
static bool may_write_over(const cpu_lower_group *g, const cx_hlo_value *input,
                           const cx_hlo_value *output)
{
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->n_ops > 256) return false;
  const cx_hlo_type *from = &input->type.tensor;
  const cx_hlo_type *to = &output->type.tensor;
  if (cx_hlo_type_bytes(from) != cx_hlo_type_bytes(to)) return false;
  if (g->root != NULL && !cpu_lower_reduces(g, to)) {
    return updates_in_place(g, input, output);
  }
  bool derived[256] = { 0 };
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (uint32_t k = 0; k < op->n_operands; k++) {
      if (op->operands[k] == input) derived[i] = true;
      for (size_t j = 0; j < i; j++) {
        if (derived[j] && op->operands[k]->op == g->ops[j]) derived[i] = true;
      }
    }
    const cpu_jit_class class = cpu_jit_class_of(op);
    if (derived[i] && class != CPU_JIT_ELEMENT && class != CPU_JIT_REDUCE) {
      return false;
    }
  }
  return cx_hlo_elem_bytes(from->elem) == cx_hlo_elem_bytes(to->elem);
}

// The input through which the group reads `storage`; NULL: several do.
static cx_hlo_value *input_of(const cpu_lower_state *c,
                              const cpu_lower_group *g,
                              const cx_hlo_value *storage)
{
  cx_hlo_value *found = NULL;
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (cpu_lower_storage(c, g->inputs[i]) != storage) continue;
    if (found != NULL) return NULL;
    found = g->inputs[i];
  }
  return found;
}

// Whether g may write v over `over`: nothing reads `over` any more, or only g
// does, and in place.
static bool is_vacant(const cpu_lower_state *c, const cpu_lower_group *g,
                      cx_hlo_value *over, cx_hlo_value *v)
{
  if (over == NULL) return true;
  const cpu_lower_value *info = cpu_lower_info(c, over);
  if (info->last_use < g->begin) return true;
  if (info->last_use > g->begin || g->kind != CPU_LOWER_GROUP_LOOP)
    return false;
  cx_hlo_value *input = input_of(c, g, over);
  return input != NULL && may_write_over(g, input, v);
}

static bool is_taken(const cpu_lower_state *c, const cpu_lower_group *g,
                     const cpu_lower_range *m)
{
  for (size_t i = 0; i < g->n_outputs; i++) {
    if (cpu_lower_info(c, g->outputs[i])->range == m) return true;
  }
  return false;
}

// Whether `output` is the sum over all devices of this input.
static bool is_reduced(const cpu_lower_group *g, size_t input,
                       const cx_hlo_value *output)
{
  const cx_hlo_op *op = g->ops[0];
  return g->kind == CPU_LOWER_GROUP_COLLECTIVE && cpu_lower_is_in_place(op) &&
         output == &op->results[input];
}

static cpu_lower_range *reuse(const cpu_lower_state *c,
                              const cpu_lower_group *g, cx_hlo_value *v)
{
  for (size_t i = 0; i < g->n_inputs; i++) {
    cx_hlo_value *storage = cpu_lower_storage(c, g->inputs[i]);
    const cpu_lower_value *info = cpu_lower_info(c, storage);
    if (info->range == NULL || info->range->kind != CPU_RUN_SLOT_ARENA ||
        info->range->end != g->end || info->last_use != g->end ||
        input_of(c, g, storage) == NULL || is_taken(c, g, info->range)) {
      continue;
    }
    const bool sums = is_reduced(g, i, v) && !info->read_in_background;
    if (sums || may_write_over(g, g->inputs[i], v)) return info->range;
  }
  return NULL;
}

static calx_status *allocate_output(cpu_lower_state *c,
                                    const cpu_lower_group *g, cx_hlo_value *v)
{
  cpu_lower_value *info = cpu_lower_info(c, v);
  if (info->range != NULL) return NULL;  // it is a row
  const bool preferred = info->preferred != NULL &&
                         is_vacant(c, g, info->occupant, v) &&
                         !is_taken(c, g, info->preferred);
  info->range = preferred ? info->preferred : reuse(c, g, v);
  if (info->range == NULL) {
    info->range = new_in_arena(c, cx_hlo_type_bytes(&v->type.tensor), g->begin,
                               info->last_use);
  }
  if (info->range == NULL) return cx_out_of_memory();
  extend(info->range, g->begin, info->last_use);
  return NULL;
}

// ---- what users prefer ----

// What the group updates to make `output`, if it can do so in place because
// nothing uses it later; else NULL.
static cx_hlo_value *updated_by(const cpu_lower_state *c,
                                const cpu_lower_group *g,
                                const cx_hlo_value *output)
{
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->root == NULL ||
      g->root->n_operands == 0) {
    return NULL;
  }
  cx_hlo_value *input = g->root->operands[0];
  cx_hlo_value *storage = cpu_lower_storage(c, input);
  return cpu_lower_info(c, storage)->last_use == g->begin &&
                 input_of(c, g, storage) == input &&
                 may_write_over(g, input, output)
             ? input
             : NULL;
}

// The user of v would like to find it in m, from the last use of `occupant` on;
// NULL: from now on. In a chain of updates each is there, else the first and
// the last one would copy the whole.
static void prefer(cpu_lower_state *c, cx_hlo_value *v, cpu_lower_range *m,
                   cx_hlo_value *occupant)
{
  while (v != NULL) {
    cx_hlo_value *storage = cpu_lower_storage(c, v);
    cpu_lower_value *info = cpu_lower_info(c, storage);
    if (info->preferred != NULL || info->producer == NULL ||
        info->range != NULL ||
        cx_hlo_type_bytes(&storage->type.tensor) != m->bytes) {
      return;
    }
    info->preferred = m;
    info->occupant = occupant;
    v = updated_by(c, info->producer, storage);
  }
}

static calx_status *allocate_groups(cpu_lower_state *c,
                                    const cpu_lower_schedule *schedule);

static bool is_used_inside(const cpu_lower_state *c, const cx_hlo_op *op,
                           const cx_hlo_value *storage)
{
  const cx_hlo_op *at = cpu_opt_inner(op);
  for (; at != op; at = cpu_opt_next(at)) {
    for (uint32_t i = 0; i < at->n_operands; i++) {
      if (cpu_lower_storage(c, at->operands[i]) == storage) return true;
    }
  }
  return false;
}

// The range of the initial value of variable i of a while, if the variable can
// have it; else NULL.
static cpu_lower_range *initial_range(const cpu_lower_state *c,
                                      const cpu_lower_group *g, uint32_t i)
{
  const cx_hlo_op *op = g->ops[0];
  const cx_hlo_value *init = cpu_lower_storage(c, op->operands[i]);
  const cpu_lower_value *start = cpu_lower_info(c, init);
  for (uint32_t k = 0; k < i; k++) {
    if (cpu_lower_storage(c, op->operands[k]) == init) return NULL;
  }
  return start->range != NULL && start->last_use <= g->end &&
                 start->range->kind == CPU_RUN_SLOT_ARENA &&
                 start->range->end <= g->end && start->producer != NULL &&
                 start->producer->begin < g->begin &&
                 !is_used_inside(c, op, init)
             ? start->range
             : NULL;
}

// Result i of control flow has its range from the group's begin on: the one
// that its user prefers, else `reused`, else a new one.
static calx_status *allocate_result(cpu_lower_state *c,
                                    const cpu_lower_group *g, uint32_t i,
                                    cpu_lower_range *reused)
{
  const cx_hlo_value *v = &g->ops[0]->results[i];
  cpu_lower_value *result = cpu_lower_info(c, v);
  result->range = result->preferred != NULL && result->occupant == NULL
                      ? result->preferred
                      : reused;
  if (result->range == NULL) {
    result->range =
        new_in_arena(c, cx_hlo_type_bytes(&v->type.tensor), g->begin, g->end);
  }
  if (result->range == NULL) return cx_out_of_memory();
  extend(result->range, g->begin, g->end);
  extend(result->range, g->begin, result->last_use);
  return NULL;
}

// A variable of a while has one range from the loop's start to the last use of
// its result: for the initial value, where that is possible, for the regions'
// arguments and for the result.
static calx_status *allocate_while(cpu_lower_state *c, cpu_lower_group *g)
{
  cx_hlo_op *op = g->ops[0];
  const cx_hlo_block *condition = op->regions[0].first;
  const cx_hlo_block *body = op->regions[1].first;
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(allocate_result(c, g, i, initial_range(c, g, i)));
    cpu_lower_range *m = cpu_lower_info(c, &op->results[i])->range;
    cpu_lower_info(c, &condition->args[i])->range = m;
    cpu_lower_info(c, &body->args[i])->range = m;
  }
  const cx_hlo_op *end = cx_hlo_terminator(body);
  for (uint32_t i = 0; i < end->n_operands && i < op->n_results; i++) {
    prefer(c, end->operands[i], cpu_lower_info(c, &op->results[i])->range,
           &body->args[i]);
  }
  CALX_TRY(cpu_lower_rows(c, g));
  for (size_t r = 0; r < 2; r++) CALX_TRY(allocate_groups(c, &g->regions[r]));
  return NULL;
}

static calx_status *allocate_branches(cpu_lower_state *c, cpu_lower_group *g)
{
  cx_hlo_op *op = g->ops[0];
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(allocate_result(c, g, i, NULL));
  }
  for (uint32_t r = 0; r < op->n_regions; r++) {
    const cx_hlo_op *end = cx_hlo_terminator(op->regions[r].first);
    for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
      prefer(c, end->operands[i], cpu_lower_info(c, &op->results[i])->range,
             NULL);
    }
    CALX_TRY(allocate_groups(c, &g->regions[r]));
  }
  return NULL;
}

static calx_status *allocate_groups(cpu_lower_state *c,
                                    const cpu_lower_schedule *schedule)
{
  for (size_t i = 0; i < schedule->n_groups; i++) {
    cpu_lower_group *g = schedule->groups[i];
    if (g->kind == CPU_LOWER_GROUP_CONTROL) {
      CALX_TRY(g->ops[0]->kind == CX_HLO_OP_WHILE ? allocate_while(c, g)
                                                  : allocate_branches(c, g));
      continue;
    }
    if (g->scratch > 0) {
      g->scratch_range = new_in_arena(c, g->scratch, g->begin, g->begin);
      if (g->scratch_range == NULL) return cx_out_of_memory();
    }
    for (size_t o = 0; o < g->n_outputs; o++) {
      CALX_TRY(allocate_output(c, g, g->outputs[o]));
    }
  }
  return NULL;
}

// ---- the entry ----

static calx_status *allocate_entry(cpu_lower_state *c, cx_hlo_block *block)
{
  const cpu_run_program_info *info = &c->a.program->info;
  for (size_t i = 0; i < block->n_args; i++) {
    cpu_lower_value *v = cpu_lower_info(c, &block->args[i]);
    v->range = new_range(c, CPU_RUN_SLOT_PARAM, (int64_t)i,
                         cx_hlo_type_bytes(&block->args[i].type.tensor));
    if (v->range == NULL) return cx_out_of_memory();
  }
  const cx_hlo_op *end = cx_hlo_terminator(block);
  for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
    cpu_lower_range *m =
        new_range(c, CPU_RUN_SLOT_RESULT, (int64_t)i,
                  cx_hlo_type_bytes(&end->operands[i]->type.tensor));
    if (m == NULL) return cx_out_of_memory();
    int32_t param = info->alias[i];
    prefer(c, end->operands[i], m, param < 0 ? NULL : &block->args[param]);
  }
  return NULL;
}

calx_status *cpu_lower_memory(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  CALX_TRY(allocate_entry(c, schedule->block));
  return allocate_groups(c, schedule);
}
