// jit/registers: see registers.h.
#include "jit/registers.h"

bool cpu_jit_cells_begin(cpu_jit_cells *s)
{
  cx_arena *arena = &s->env->arena;
  const size_t n = s->of->n_cells;
  s->first = CX_ARENA_ARRAY(arena, uint32_t, n + 1);
  s->known = CX_ARENA_ARRAY(arena, bool, n + 1);
  s->pointers = CX_ARENA_ARRAY(arena, LLVMValueRef, n + 1);
  if (s->first == NULL || s->known == NULL || s->pointers == NULL) return false;
  for (size_t i = 0; i < n; i++) {
    s->first[i] = (uint32_t)s->n_registers;
    if (s->of->cells[i].in_register) {
      s->n_registers += (size_t)s->of->cells[i].n;
    }
  }
  s->registers = CX_ARENA_ARRAY(arena, cpu_jit_val, s->n_registers + 1);
  return s->registers != NULL;
}

int cpu_jit_cells_level(const cpu_jit_cells *s)
{
  return s->env->n_levels - 1;
}

LLVMBasicBlockRef cpu_jit_cells_block(const cpu_jit_cells *s)
{
  return LLVMAppendBasicBlockInContext(s->env->context, s->env->function, "");
}

LLVMValueRef cpu_jit_cell_address(cpu_jit_cells *s, uint32_t cell)
{
  if (s->pointers[cell] == NULL) {
    s->pointers[cell] = cpu_jit_buffer(s->env, s->of->cells[cell].buffer);
  }
  return s->pointers[cell];
}

// ---- elements ----

static cpu_jit_loc element(cpu_jit_cells *s, int64_t i, int64_t n)
{
  cpu_jit_loc p = { .n = 0 };
  if (n > 1) cpu_jit_loc_push(&p, 1, n, cpu_jit_ix_const(s->env, i));
  return p;
}

void cpu_jit_cell_load(cpu_jit_cells *s, uint32_t cell, cx_hlo_elem elem,
                       int64_t n, cpu_jit_val *out)
{
  for (int64_t i = 0; i < n; i++) {
    const cpu_jit_loc at = element(s, i, n);
    out[i] = cpu_jit_load_at(s->env, cpu_jit_cell_address(s, cell), elem, &at,
                             cpu_jit_cells_level(s));
  }
}

static cpu_jit_val *registers_of(cpu_jit_cells *s, uint32_t cell)
{
  return s->registers + s->first[cell];
}

cpu_jit_val cpu_jit_cell_value(cpu_jit_cells *s, uint32_t cell,
                               cx_hlo_elem elem)
{
  cpu_jit_val v;
  if (s->of->cells[cell].in_register) return *cpu_jit_cell_get(s, cell);
  cpu_jit_cell_load(s, cell, elem, 1, &v);
  return v;
}

const cpu_jit_val *cpu_jit_cell_get(cpu_jit_cells *s, uint32_t cell)
{
  const cpu_jit_cell *c = &s->of->cells[cell];
  CX_ASSERT(c->in_register);
  if (!s->known[cell]) {
    cpu_jit_cell_load(s, cell, c->elem, c->n, registers_of(s, cell));
    s->known[cell] = true;
  }
  return registers_of(s, cell);
}

void cpu_jit_cell_put_elements(cpu_jit_cells *s, uint32_t cell,
                               const cpu_jit_val *v, int64_t n)
{
  const cpu_jit_cell *c = &s->of->cells[cell];
  for (int64_t i = 0; i < n; i++) {
    if (c->in_register) registers_of(s, cell)[i] = v[i];
    if (c->in_register && !c->in_memory) continue;
    const cpu_jit_loc at = element(s, i, n);
    cpu_jit_store(s->env, cpu_jit_cell_address(s, cell), v[i], &at,
                  cpu_jit_cells_level(s));
  }
  if (c->in_register) s->known[cell] = true;
}

void cpu_jit_cell_put(cpu_jit_cells *s, uint32_t cell, const cpu_jit_val *v)
{
  cpu_jit_cell_put_elements(s, cell, v, s->of->cells[cell].n);
}

// ---- all cells ----

bool cpu_jit_cells_save(cpu_jit_cells *s, cpu_jit_cells_saved *out)
{
  cx_arena *arena = &s->env->arena;
  const size_t n = s->of->n_cells;
  out->registers = CX_ARENA_ARRAY(arena, cpu_jit_val, s->n_registers + 1);
  out->known = CX_ARENA_ARRAY(arena, bool, n + 1);
  if (out->registers == NULL || out->known == NULL) return false;
  for (size_t i = 0; i < s->n_registers; i++) {
    out->registers[i] = s->registers[i];
  }
  for (size_t i = 0; i < n; i++) out->known[i] = s->known[i];
  return true;
}

void cpu_jit_cells_restore(cpu_jit_cells *s, const cpu_jit_cells_saved *from)
{
  for (size_t i = 0; i < s->n_registers; i++) {
    s->registers[i] = from->registers[i];
  }
  for (size_t i = 0; i < s->of->n_cells; i++) s->known[i] = from->known[i];
}

void cpu_jit_cell_set(cpu_jit_cells *s, uint32_t cell, const cpu_jit_val *from)
{
  for (int64_t i = 0; i < s->of->cells[cell].n; i++) {
    registers_of(s, cell)[i] = from[s->first[cell] + i];
  }
}

void cpu_jit_cell_set_level(cpu_jit_cells *s, uint32_t cell, int level)
{
  for (int64_t i = 0; i < s->of->cells[cell].n; i++) {
    registers_of(s, cell)[i].level = level;
  }
}

// ---- phis ----

static cpu_jit_val new_phi(LLVMBuilderRef b, cpu_jit_val like, int level)
{
  cpu_jit_val v = like;
  v.level = level;
  v.re = LLVMBuildPhi(b, LLVMTypeOf(like.re), "");
  if (like.im != NULL) v.im = LLVMBuildPhi(b, LLVMTypeOf(like.im), "");
  return v;
}

void cpu_jit_cell_phis(cpu_jit_cells *s, uint32_t cell, LLVMBuilderRef b,
                       const cpu_jit_val *like, int level, cpu_jit_val *phis)
{
  const uint32_t first = s->first[cell];
  for (int64_t i = 0; i < s->of->cells[cell].n; i++) {
    phis[first + i] = new_phi(b, like[first + i], level);
  }
}

void cpu_jit_cell_incoming(cpu_jit_cells *s, uint32_t cell, cpu_jit_val *phis,
                           const cpu_jit_val *from, LLVMBasicBlockRef block)
{
  const uint32_t first = s->first[cell];
  for (int64_t i = first; i < first + s->of->cells[cell].n; i++) {
    cpu_jit_val v = from[i];
    LLVMAddIncoming(phis[i].re, &v.re, &block, 1);
    if (v.im != NULL) LLVMAddIncoming(phis[i].im, &v.im, &block, 1);
  }
}
