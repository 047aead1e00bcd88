// lower/native: what native.c and native_cells.c share: a loop of steps that is
// to become one function.
#ifndef CPU_LOWER_NATIVE_H
#define CPU_LOWER_NATIVE_H

#include "lower/lower.h"

// The most steps of such a loop, and the most slots that it works on.
#define CPU_LOWER_NATIVE_STEPS 256
#define CPU_LOWER_NATIVE_CELLS 2048

typedef struct cpu_lower_native_loop {
  cpu_lower_state *c;
  cpu_jit_native jit;
  cpu_jit_step *loop;
  cpu_jit_cell *cells;
  uint32_t *slots;    // by cell
  uint32_t *cell_of;  // by slot: the cell's number and 1; 0: it has none
  uint32_t *reads;    // by slot: how many steps of the program read it
  bool *wanted;       // by cell: a step in place works on it
  int64_t work;       // of steps in place on several elements
  uint32_t step;      // of the program
  bool failed;        // memory ran out
} cpu_lower_native_loop;

// Calls fn for each step of a block, also of the blocks inside.
typedef void cpu_lower_native_fn(cpu_lower_native_loop *n, cpu_jit_step *step);
void cpu_lower_native_each(cpu_lower_native_loop *n, const cpu_jit_steps *block,
                           cpu_lower_native_fn *fn);

// Which cells have a register, and which are needed in memory.
void cpu_lower_native_registers(cpu_lower_native_loop *n);
// Sets the flags of all control flow. False: memory ran out.
bool cpu_lower_native_flow(cpu_lower_native_loop *n);

#endif
