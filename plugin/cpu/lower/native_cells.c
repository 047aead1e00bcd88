// lower/native_cells: where the cells of a native loop live, and what its
// control flow does with them.
//
// A cell is a slot of the program. It may have registers if its steps agree
// that it is few elements of one type, and if no other slot is in its memory
// while it is used: it is in the arena, or a result that shares no argument's
// memory. One of several elements has them only where a step in place works on
// it. It is needed in memory too where a step reads it that is outside of the
// loop, or is a call.
#include <string.h>

#include "lower/native.h"

// ---- steps ----

void cpu_lower_native_each(cpu_lower_native_loop *n, const cpu_jit_steps *block,
                           cpu_lower_native_fn *fn)
{
  for (size_t i = 0; i < block->n; i++) {
    cpu_jit_step *s = &block->steps[i];
    fn(n, s);
    for (size_t b = 0; b < s->n_blocks; b++) {
      cpu_lower_native_each(n, &s->blocks[b], fn);
    }
  }
}

// ---- registers ----

static bool has_memory_of_its_own(const cpu_run_program *p,
                                  const cpu_run_slot *slot)
{
  return slot->kind == CPU_RUN_SLOT_ARENA ||
         (slot->kind == CPU_RUN_SLOT_RESULT && p->info.alias[slot->at] < 0);
}

// Until the places are known, in_register says that the cell has a type, and
// in_memory that it cannot have a register.
static void agree(cpu_lower_native_loop *n, uint32_t cell, cx_hlo_elem elem,
                  int64_t elements, bool fits)
{
  cpu_jit_cell *c = &n->cells[cell];
  if (!fits || (c->in_register && (c->elem != elem || c->n != elements))) {
    c->in_memory = true;
  }
  c->elem = elem;
  c->n = elements;
  c->in_register = true;
}

static void agree_value(cpu_lower_native_loop *n, uint32_t cell,
                        const cx_hlo_value *v)
{
  const cx_hlo_type *t = &v->type.tensor;
  const int64_t elements = cx_hlo_type_elements(t);
  agree(n, cell, t->elem, elements,
        v->type.non_tensor == NULL && cx_hlo_elem_is_plain(t->elem) &&
            elements > 0 && elements <= CPU_JIT_CELL_MOST &&
            cx_hlo_type_bytes(t) == n->cells[cell].bytes);
}

static void agree_step(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  switch (s->kind) {
    case CPU_JIT_STEP_INLINE:
    case CPU_JIT_STEP_CALL:
      for (size_t i = 0; i < s->n_cells; i++) {
        const size_t k = i - s->n_inputs;
        n->wanted[s->cells[i]] |= s->kind == CPU_JIT_STEP_INLINE;
        if (i < s->n_inputs) {
          agree_value(n, s->cells[i], s->kernel->inputs[i]);
        } else if (k < s->kernel->n_outputs) {
          agree_value(n, s->cells[i], s->kernel->outputs[k]);
        } else {
          agree(n, s->cells[i], CX_HLO_I8, 1, false);  // scratch
        }
      }
      return;
    case CPU_JIT_STEP_COPY: return;
    case CPU_JIT_STEP_WHILE:
    case CPU_JIT_STEP_IF: agree(n, s->cells[0], CX_HLO_I1, 1, true); return;
    case CPU_JIT_STEP_CASE: agree(n, s->cells[0], CX_HLO_I32, 1, true); return;
  }
}

// A cell that is only copied has the type of the other one.
static void agree_copy(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  if (s->kind != CPU_JIT_STEP_COPY) return;
  for (int i = 0; i < 2; i++) {
    const cpu_jit_cell *from = &n->cells[s->cells[i]];
    const uint32_t to = s->cells[1 - i];
    if (from->in_register && !from->in_memory) {
      agree(n, to, from->elem, from->n, from->bytes == n->cells[to].bytes);
    }
    n->wanted[to] |= n->wanted[s->cells[i]];
  }
}

// ---- memory ----

static bool reads_register(const cpu_jit_step *s, size_t i)
{
  switch (s->kind) {
    case CPU_JIT_STEP_INLINE: return i < s->n_inputs;
    case CPU_JIT_STEP_CALL: return false;
    default: return i == 0;
  }
}

static void count_read(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  for (size_t i = 0; i < s->n_cells; i++) {
    if (reads_register(s, i)) n->reads[n->slots[s->cells[i]]]--;
  }
}

static void count_back(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  for (size_t i = 0; i < s->n_cells; i++) {
    if (reads_register(s, i)) n->reads[n->slots[s->cells[i]]]++;
    // What a call has written is read from memory.
    if (s->kind == CPU_JIT_STEP_CALL && i >= s->n_inputs) {
      n->cells[s->cells[i]].in_memory = true;
    }
  }
}

void cpu_lower_native_registers(cpu_lower_native_loop *n)
{
  const cpu_jit_steps all = { n->loop, 1 };
  const cpu_run_program *p = n->c->a.program;
  const size_t n_cells = n->jit.n_cells;
  cpu_lower_native_each(n, &all, agree_step);
  for (int i = 0; i < 3; i++) cpu_lower_native_each(n, &all, agree_copy);
  for (size_t i = 0; i < n_cells; i++) {
    cpu_jit_cell *c = &n->cells[i];
    c->in_register = c->in_register && !c->in_memory &&
                     (c->n == 1 || n->wanted[i]) &&
                     has_memory_of_its_own(p, &p->slots[n->slots[i]]);
  }
  cpu_lower_native_each(n, &all, count_read);
  for (size_t i = 0; i < n_cells; i++) {
    const uint32_t slot = n->slots[i];
    n->cells[i].in_memory =
        p->slots[slot].kind == CPU_RUN_SLOT_RESULT || n->reads[slot] > 0;
  }
  cpu_lower_native_each(n, &all, count_back);
}

// ---- control flow ----

typedef struct flow {
  cpu_lower_native_loop *n;
  unsigned char *flags;
  uint32_t *reads;  // by cell
} flow;

static bool walk(flow *f, const cpu_jit_steps *block, unsigned char *written);

// What certainly has been written before a block is a copy, so that what it
// writes itself does not count behind it.
static bool walk_apart(flow *f, const cpu_jit_steps *block,
                       const unsigned char *written)
{
  const size_t n = f->n->jit.n_cells;
  unsigned char *copy = CX_ARENA_ARRAY(&f->n->c->arena, unsigned char, n + 1);
  if (copy == NULL) return false;
  memcpy(copy, written, n);
  return walk(f, block, copy);
}

static void note_read(flow *f, uint32_t cell, const unsigned char *written)
{
  f->reads[cell]++;
  if (!written[cell]) f->flags[cell] |= CPU_JIT_CELL_READS;
}

static bool walk_step(flow *f, const cpu_jit_step *s, unsigned char *written)
{
  const bool control = s->blocks != NULL;
  if (s->kind == CPU_JIT_STEP_WHILE) {
    if (!walk(f, &s->blocks[0], written)) return false;
    note_read(f, s->cells[0], written);
    return walk_apart(f, &s->blocks[1], written);
  }
  for (size_t i = 0; i < s->n_cells; i++) {
    if (control || reads_register(s, i) ||
        (s->kind == CPU_JIT_STEP_CALL && i < s->n_inputs)) {
      note_read(f, s->cells[i], written);
    }
  }
  for (size_t i = 0; i < s->n_blocks; i++) {
    if (!walk_apart(f, &s->blocks[i], written)) return false;
  }
  for (size_t i = s->n_inputs; !control && i < s->n_cells; i++) {
    written[s->cells[i]] = 1;
    f->flags[s->cells[i]] |= CPU_JIT_CELL_WRITES;
  }
  return true;
}

static bool walk(flow *f, const cpu_jit_steps *block, unsigned char *written)
{
  for (size_t i = 0; i < block->n; i++) {
    if (!walk_step(f, &block->steps[i], written)) return false;
  }
  return true;
}

// What the step writes and something else reads, or its next iteration.
static void note_carried(const cpu_lower_native_loop *n, const flow *f)
{
  for (size_t i = 0; i < n->jit.n_cells; i++) {
    const uint32_t slot = n->slots[i];
    const bool read_elsewhere =
        f->reads[i] != n->reads[slot] ||
        n->c->a.program->slots[slot].kind == CPU_RUN_SLOT_RESULT;
    if ((f->flags[i] & CPU_JIT_CELL_WRITES) != 0 &&
        (read_elsewhere || (f->flags[i] & CPU_JIT_CELL_READS) != 0)) {
      f->flags[i] |= CPU_JIT_CELL_CARRIES;
    }
  }
}

static bool flow_of(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  cx_arena *arena = &n->c->arena;
  const size_t n_cells = n->jit.n_cells + 1;
  flow f = { .n = n };
  f.flags = CX_ARENA_ARRAY(arena, unsigned char, n_cells);
  f.reads = CX_ARENA_ARRAY(arena, uint32_t, n_cells);
  unsigned char *written = CX_ARENA_ARRAY(arena, unsigned char, n_cells);
  if (f.flags == NULL || f.reads == NULL || written == NULL ||
      !walk_step(&f, s, written)) {
    return false;
  }
  note_carried(n, &f);
  s->flags = f.flags;
  return true;
}

static void set_flow(cpu_lower_native_loop *n, cpu_jit_step *s)
{
  if (s->blocks != NULL && !flow_of(n, s)) n->failed = true;
}

bool cpu_lower_native_flow(cpu_lower_native_loop *n)
{
  const cpu_jit_steps all = { n->loop, 1 };
  cpu_lower_native_each(n, &all, set_flow);
  return !n->failed;
}
