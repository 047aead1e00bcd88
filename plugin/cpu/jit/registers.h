// jit/registers: the cells of a native loop (native.c) that have registers: one
// for each element.
#ifndef CPU_JIT_REGISTERS_H
#define CPU_JIT_REGISTERS_H

#include "jit/emit.h"

typedef struct native {
  cpu_jit_env *env;
  const cpu_jit_native *of;
  uint32_t *first;  // by cell: its first register
  size_t n_registers;
  cpu_jit_val *registers;
  bool *known;  // by cell
  LLVMValueRef *pointers;
  LLVMValueRef table;
} native;

typedef struct native_snapshot {
  cpu_jit_val *registers;
  bool *known;
} native_snapshot;

// Counts the registers. False: memory ran out.
bool native_begin(native *s);
int native_level(const native *s);  // the innermost
LLVMBasicBlockRef native_block(const native *s);
LLVMValueRef native_address(native *s, uint32_t cell);

// The elements in memory.
void native_load(native *s, uint32_t cell, cx_hlo_elem elem, int64_t n,
                 cpu_jit_val *out);
// The cell's elements, loaded where they are not known. What comes back is
// valid until the cell is written.
const cpu_jit_val *native_get(native *s, uint32_t cell);
// To the cell's registers, and to its memory where that is read.
void native_put(native *s, uint32_t cell, const cpu_jit_val *v);
// The same of n elements, where the cell may have no registers.
void native_put_elements(native *s, uint32_t cell, const cpu_jit_val *v,
                         int64_t n);

bool native_save(native *s, native_snapshot *out);
void native_restore(native *s, const native_snapshot *from);
// The cell's registers become those of `from`, which has all cells'.
void native_set(native *s, uint32_t cell, const cpu_jit_val *from);
void native_set_level(native *s, uint32_t cell, int level);

// Phis of the cell's registers at the builder's place, in `phis`, which has
// room for all cells'; and what comes to them from one block.
void native_phis(native *s, uint32_t cell, LLVMBuilderRef b,
                 const native_snapshot *like, int level, cpu_jit_val *phis);
void native_incoming(native *s, uint32_t cell, cpu_jit_val *phis,
                     const cpu_jit_val *from, LLVMBasicBlockRef block);

#endif
