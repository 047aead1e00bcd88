// lower/native: makes a WHILE whose iterations are short one function, so that
// no step of it is looked up and called for: jit/native.c says what is in it.
//
// Such a loop consists of compiled loops that are not worth several threads,
// copies and control flow, as deep as it nests. The outermost such loops are
// taken. One that is too large for the jit stays a list of steps.
#include "lower/native.h"

#include <string.h>

#include "base/alloc.h"

// Operations of a step that is computed in place, times the elements that each
// is computed for; and of all steps with more than one element.
#define MOST_INLINE_WORK 512
#define MOST_WORK 4096

// ---- which loops ----

static bool is_same(const cpu_run_program *p, const cpu_run_step *s,
                    const cpu_jit_phase *phase)
{
  return phase->to != 0 && p->uses[s->first + (size_t)phase->from] ==
                               p->uses[s->first + (size_t)phase->to];
}

static bool has_one_thread(const cpu_run_program *p, const cpu_run_step *s)
{
  const cpu_run_loop *loop = &p->loops[s->index];
  for (int64_t i = 0; i < loop->n_phases; i++) {
    const cpu_jit_phase *phase = &loop->phases[i];
    if (phase->extent > phase->grain && !is_same(p, s, phase)) return false;
  }
  return true;
}

static uint32_t n_blocks_of(const cpu_run_step *s)
{
  switch (s->kind) {
    case CPU_RUN_STEP_WHILE:
    case CPU_RUN_STEP_IF: return 2;
    case CPU_RUN_STEP_CASE: return s->n;
    default: return 0;
  }
}

// The recursion is as deep as regions nest, which the parser bounds.
static bool suits(const cpu_run_program *p, const cpu_run_step *s, size_t *n)
{
  if (++*n > CPU_LOWER_NATIVE_STEPS) return false;
  if (s->kind == CPU_RUN_STEP_LOOP) return has_one_thread(p, s);
  if (s->kind == CPU_RUN_STEP_COPY) return true;
  const uint32_t n_blocks = n_blocks_of(s);
  for (uint32_t b = 0; b < n_blocks; b++) {
    const cpu_run_step_block *block = &p->blocks[s->index + b];
    for (size_t i = 0; i < block->n; i++) {
      if (!suits(p, &p->steps[block->first + i], n)) return false;
    }
  }
  return n_blocks > 0;
}

// ---- what they consist of ----

static int64_t elements_of(const cx_hlo_value *v)
{
  return cx_hlo_type_elements(&v->type.tensor);
}

static bool has_few_elements(const cx_hlo_value *v)
{
  const int64_t n = elements_of(v);
  return n > 0 && n <= CPU_JIT_CELL_MOST;
}

// An update of few elements. Where they go in registers is not computed, but
// for a tensor of one.
static bool updates_few(const cpu_run_program *p, const cpu_run_step *s,
                        const cx_hlo_op *root)
{
  return root->kind == CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
         has_few_elements(root->operands[1]) &&
         (elements_of(root->operands[0]) == 1 ||
          !has_few_elements(root->operands[0])) &&
         is_same(p, s, &p->loops[s->index].phases[0]);
}

static bool outputs_few(const cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_outputs; i++) {
    if (!has_few_elements(g->outputs[i])) return false;
  }
  for (size_t i = 0; i < g->n_ops; i++) {
    if (cpu_jit_class_of(g->ops[i]) == CPU_JIT_REDUCE ||
        g->ops[i]->kind == CX_HLO_OP_REDUCE_WINDOW) {
      return false;
    }
  }
  return true;
}

// Reads an element of its operand whose place is known when the code runs only.
static bool reads_anywhere(const cx_hlo_op *op)
{
  return (op->kind == CX_HLO_OP_DYNAMIC_SLICE ||
          op->kind == CX_HLO_OP_GATHER) &&
         elements_of(op->operands[0]) > 1 && has_few_elements(op->operands[0]);
}

static bool is_of(const cpu_lower_group *g, const cx_hlo_op *op)
{
  for (size_t i = 0; op != NULL && i < g->n_ops; i++) {
    if (g->ops[i] == op) return true;
  }
  return false;
}

// The instructions of a group, about. In registers such an element is chosen
// from all, and what is computed in front of it is computed for each.
static int64_t work_of(const cpu_lower_group *g, int64_t elements)
{
  int64_t work = 0;
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    const bool anywhere = reads_anywhere(op);
    if (anywhere && is_of(g, op->operands[0]->op)) return INT64_MAX;
    work += anywhere ? CPU_JIT_CELL_MOST * elements : elements;
  }
  return work;
}

static bool is_inline(cpu_lower_native_loop *n, const cpu_run_step *s,
                      const cpu_lower_group *g)
{
  const int64_t elements =
      elements_of(g->root != NULL ? g->root->operands[1] : g->outputs[0]);
  if (g->root != NULL ? !updates_few(n->c->a.program, s, g->root)
                      : !outputs_few(g)) {
    return false;
  }
  const int64_t work = work_of(g, elements);
  if (work > MOST_INLINE_WORK) return false;
  if (elements > 1) n->work += work;
  return elements == 1 || n->work <= MOST_WORK;
}

static uint32_t cell_of(cpu_lower_native_loop *n, size_t use)
{
  const cpu_run_program *p = n->c->a.program;
  const uint32_t slot = p->uses[use];
  if (n->cell_of[slot] == 0) {
    if (n->jit.n_cells == CPU_LOWER_NATIVE_CELLS) {
      n->failed = true;
      return 0;
    }
    n->slots[n->jit.n_cells] = slot;
    n->cells[n->jit.n_cells] =
        (cpu_jit_cell){ .buffer = use, .bytes = p->slots[slot].bytes };
    n->cell_of[slot] = (uint32_t)++n->jit.n_cells;
  }
  return n->cell_of[slot] - 1;
}

static void *array(cpu_lower_native_loop *n, size_t size, size_t count)
{
  void *out = cx_arena_alloc(&n->c->arena, size * (count + 1));
  if (out == NULL) {
    n->failed = true;
  } else {
    memset(out, 0, size * (count + 1));
  }
  return out;
}

static void set_calls(const cpu_run_program *p, const cpu_run_step *s,
                      cpu_jit_step *out)
{
  const cpu_run_loop *loop = &p->loops[s->index];
  out->buffer = s->first;
  for (int64_t i = 0; i < loop->n_phases; i++) {
    const cpu_jit_phase *phase = &loop->phases[i];
    if (phase->extent == 0 || is_same(p, s, phase)) continue;
    out->functions[out->n_calls] = s->index * CPU_JIT_PHASES + (size_t)i;
    out->extents[out->n_calls++] = phase->extent;
  }
}

static void set_loop(cpu_lower_native_loop *n, const cpu_run_step *s,
                     const cpu_lower_group *g, cpu_jit_step *out)
{
  const cpu_run_program *p = n->c->a.program;
  cpu_jit_kernel *kernel = array(n, sizeof *kernel, 1);
  if (kernel == NULL) return;
  *kernel = cpu_lower_kernel_of(g);
  out->kernel = kernel;
  out->n_inputs = g->n_inputs;
  out->kind = is_inline(n, s, g) ? CPU_JIT_STEP_INLINE : CPU_JIT_STEP_CALL;
  if (out->kind == CPU_JIT_STEP_CALL) set_calls(p, s, out);
}

static void make_step(cpu_lower_native_loop *n, uint32_t step,
                      cpu_jit_step *out);

static void make_block(cpu_lower_native_loop *n, cpu_run_step_block block,
                       cpu_jit_steps *out)
{
  out->steps = array(n, sizeof *out->steps, block.n);
  if (out->steps == NULL) return;
  out->n = block.n;
  for (uint32_t i = 0; i < block.n; i++) {
    make_step(n, block.first + i, &out->steps[i]);
  }
}

static void make_step(cpu_lower_native_loop *n, uint32_t step,
                      cpu_jit_step *out)
{
  const cpu_run_program *p = n->c->a.program;
  const cpu_run_step *s = &p->steps[step];
  uint32_t *cells = array(n, sizeof *cells, s->n_slots);
  if (cells == NULL) return;
  for (size_t i = 0; i < s->n_slots; i++) cells[i] = cell_of(n, s->first + i);
  *out = (cpu_jit_step){ .cells = cells, .n_cells = s->n_slots, .n_inputs = 1 };
  switch (s->kind) {
    case CPU_RUN_STEP_LOOP: set_loop(n, s, n->c->group_of[step], out); return;
    case CPU_RUN_STEP_COPY: out->kind = CPU_JIT_STEP_COPY; return;
    case CPU_RUN_STEP_WHILE: out->kind = CPU_JIT_STEP_WHILE; break;
    case CPU_RUN_STEP_IF: out->kind = CPU_JIT_STEP_IF; break;
    default: out->kind = CPU_JIT_STEP_CASE; break;
  }
  const uint32_t n_blocks = n_blocks_of(s);
  cpu_jit_steps *blocks = array(n, sizeof *blocks, n_blocks);
  if (blocks == NULL) return;
  for (uint32_t b = 0; b < n_blocks; b++) {
    make_block(n, p->blocks[s->index + b], &blocks[b]);
  }
  out->blocks = blocks;
  out->n_blocks = n_blocks;
}

static calx_status *make_loop(cpu_lower_native_loop *n)
{
  n->slots = array(n, sizeof *n->slots, CPU_LOWER_NATIVE_CELLS);
  n->cells = array(n, sizeof *n->cells, CPU_LOWER_NATIVE_CELLS);
  n->wanted = array(n, sizeof *n->wanted, CPU_LOWER_NATIVE_CELLS);
  n->loop = array(n, sizeof *n->loop, 1);
  if (n->failed) return cx_out_of_memory();
  make_step(n, n->step, n->loop);
  if (!n->failed) {
    cpu_lower_native_registers(n);
    cpu_lower_native_flow(n);
  }
  for (size_t i = 0; i < n->jit.n_cells; i++) n->cell_of[n->slots[i]] = 0;
  n->jit.loop = n->loop;
  n->jit.cells = n->cells;
  n->jit.table = n->c->a.program->n_uses;
  return NULL;
}

// ---- the stage ----

typedef struct native_search {
  cpu_lower_state *c;
  uint32_t *reads, *cell_of;  // by slot
  bool *inside;               // by block: of a loop that was found
  cpu_jit_native *loops;
  uint32_t *steps;  // of the loops
  size_t n, room, steps_room;
} native_search;

// How many of a step's slots it reads, which are the first.
static size_t n_read(const native_search *f, size_t step)
{
  const cpu_run_step *s = &f->c->a.program->steps[step];
  switch (s->kind) {
    case CPU_RUN_STEP_LOOP: return f->c->group_of[step]->n_inputs;
    case CPU_RUN_STEP_COPY: return 1;
    default: return s->n_slots;
  }
}

static void mark_inside(native_search *f, const cpu_run_step *s)
{
  const cpu_run_program *p = f->c->a.program;
  for (uint32_t b = 0; b < n_blocks_of(s); b++) {
    const cpu_run_step_block *block = &p->blocks[s->index + b];
    f->inside[s->index + b] = true;
    for (size_t i = 0; i < block->n; i++) {
      mark_inside(f, &p->steps[block->first + i]);
    }
  }
}

static calx_status *find_in(native_search *f, const cpu_run_step_block *block)
{
  cpu_run_program *p = f->c->a.program;
  for (uint32_t i = 0; i < block->n; i++) {
    const cpu_run_step *s = &p->steps[block->first + i];
    size_t n_steps = 0;
    if (s->kind != CPU_RUN_STEP_WHILE || !suits(p, s, &n_steps)) continue;
    mark_inside(f, s);
    cpu_lower_native_loop n = { .c = f->c,
                                .reads = f->reads,
                                .cell_of = f->cell_of,
                                .step = block->first + i };
    CALX_TRY(make_loop(&n));
    if (n.failed) continue;
    if (!cx_grow(&f->loops, &f->room, f->n + 1, sizeof *f->loops) ||
        !cx_grow(&f->steps, &f->steps_room, f->n + 1, sizeof *f->steps)) {
      return cx_out_of_memory();
    }
    f->steps[f->n] = n.step;
    f->loops[f->n++] = n.jit;
  }
  return NULL;
}

static calx_status *find(native_search *f)
{
  const cpu_run_program *p = f->c->a.program;
  cx_arena *arena = &f->c->arena;
  f->reads = CX_ARENA_ARRAY(arena, uint32_t, p->n_slots + 1);
  f->cell_of = CX_ARENA_ARRAY(arena, uint32_t, p->n_slots + 1);
  f->inside = CX_ARENA_ARRAY(arena, bool, p->n_blocks + 1);
  if (f->reads == NULL || f->cell_of == NULL || f->inside == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < p->n_steps; i++) {
    const size_t n = n_read(f, i);
    for (size_t k = 0; k < n; k++) f->reads[p->uses[p->steps[i].first + k]]++;
  }
  // The blocks that a step runs come behind its own.
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (!f->inside[b]) CALX_TRY(find_in(f, &p->blocks[b]));
  }
  return NULL;
}

static calx_status *compile(native_search *f, const cpu_jit_api *jit,
                            const cpu_jit_options *options)
{
  cx_text object = { 0 };
  calx_status *status = cpu_lower_take_failure(
      jit, jit->compile_native(options, f->loops, f->n, &object));
  if (status != NULL) {
    jit->free_object(&object);
    return status;
  }
  cpu_run_program *p = f->c->a.program;
  CALX_TRY(cpu_lower_take_object(f->c, jit, &object));
  for (size_t i = 0; i < f->n; i++) {
    const cpu_run_loop loop = { .n_phases = 1,
                                .phases = { { .extent = 1, .grain = 1 } },
                                .object = (int64_t)p->n_objects - 1,
                                .symbol = (int64_t)i };
    cpu_run_step *s = &p->steps[f->steps[i]];
    s->kind = CPU_RUN_STEP_NATIVE;
    s->index = cpu_lower_assemble_loop(&f->c->a, &loop);
  }
  return f->c->a.failed ? cx_out_of_memory() : NULL;
}

static void drop_refused(native_search *f)
{
  size_t n = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (f->loops[i].refused) continue;
    f->loops[n] = f->loops[i];
    f->steps[n++] = f->steps[i];
  }
  f->n = n;
}

static calx_status *compile_found(native_search *f)
{
  if (f->n == 0) return NULL;
  cpu_jit_options options = { 0 };
  const cpu_jit_api *jit = NULL;
  CALX_TRY(cpu_lower_read_lanes(&options.lanes));
  CALX_TRY(cpu_lower_load_jit(&jit));
  calx_status *status = compile(f, jit, &options);
  if (calx_status_code(status) != CALX_UNIMPLEMENTED) return status;
  calx_status_free(status);
  drop_refused(f);
  return f->n == 0 ? NULL : compile(f, jit, &options);
}

calx_status *cpu_lower_native(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  (void)schedule;
  native_search f = { .c = c };
  if (c->a.program->n_blocks == 1) return NULL;  // no control flow
  calx_status *status = find(&f);
  if (status == NULL) status = compile_found(&f);
  cx_free(f.loops);
  cx_free(f.steps);
  return status;
}
