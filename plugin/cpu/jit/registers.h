// jit/registers: the cells of a native loop (native.c) that have registers: one
// for each element.
#ifndef CPU_JIT_REGISTERS_H
#define CPU_JIT_REGISTERS_H

#include "jit/emit.h"

typedef struct cpu_jit_cells {
  cpu_jit_env *env;
  const cpu_jit_native *of;
  uint32_t *first;  // by cell: its first register
  size_t n_registers;
  cpu_jit_val *registers;
  bool *known;  // by cell
  LLVMValueRef *pointers;
  LLVMValueRef table;
} cpu_jit_cells;

typedef struct cpu_jit_cells_saved {
  cpu_jit_val *registers;
  bool *known;
} cpu_jit_cells_saved;

// Counts the registers. False: memory ran out.
bool cpu_jit_cells_begin(cpu_jit_cells *s);
int cpu_jit_cells_level(const cpu_jit_cells *s);  // the innermost
LLVMBasicBlockRef cpu_jit_cells_block(const cpu_jit_cells *s);
LLVMValueRef cpu_jit_cell_address(cpu_jit_cells *s, uint32_t cell);

// The elements in memory.
void cpu_jit_cell_load(cpu_jit_cells *s, uint32_t cell, cx_hlo_elem elem,
                       int64_t n, cpu_jit_val *out);
// The element of a cell of one element, which may have no register.
cpu_jit_val cpu_jit_cell_value(cpu_jit_cells *s, uint32_t cell,
                               cx_hlo_elem elem);
// The elements of a cell with registers, loaded where they are not known. What
// comes back is valid until the cell is written.
const cpu_jit_val *cpu_jit_cell_get(cpu_jit_cells *s, uint32_t cell);
// To the cell's registers, and to its memory where that is read.
void cpu_jit_cell_put(cpu_jit_cells *s, uint32_t cell, const cpu_jit_val *v);
// The same of n elements, where the cell may have no registers.
void cpu_jit_cell_put_elements(cpu_jit_cells *s, uint32_t cell,
                               const cpu_jit_val *v, int64_t n);

bool cpu_jit_cells_save(cpu_jit_cells *s, cpu_jit_cells_saved *out);
void cpu_jit_cells_restore(cpu_jit_cells *s, const cpu_jit_cells_saved *from);
// The cell's registers become those of `from`, which has all cells'.
void cpu_jit_cell_set(cpu_jit_cells *s, uint32_t cell, const cpu_jit_val *from);
void cpu_jit_cell_set_level(cpu_jit_cells *s, uint32_t cell, int level);

// Phis of the cell's registers at the builder's place, of the types of `like`,
// in `phis`; and what comes to them from one block. All lists have all cells'.
void cpu_jit_cell_phis(cpu_jit_cells *s, uint32_t cell, LLVMBuilderRef b,
                       const cpu_jit_val *like, int level, cpu_jit_val *phis);
void cpu_jit_cell_incoming(cpu_jit_cells *s, uint32_t cell, cpu_jit_val *phis,
                           const cpu_jit_val *from, LLVMBasicBlockRef block);

#endif
