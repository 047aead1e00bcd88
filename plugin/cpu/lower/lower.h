// lower/lower: what the files of this room share.
#ifndef CPU_LOWER_LOWER_H
#define CPU_LOWER_LOWER_H

#include "base/arena.h"
#include "hlo/module.h"
#include "lower/assemble.h"

// One compilation.
typedef struct cpu_lower_compilation {
  cx_hlo_module *module;
  cx_arena arena;  // of all that is needed only while compiling
  cpu_lower_assembly a;
  cpu_threads *pool;   // that it will run on
  bool interpret;      // everything
  bool deterministic;  // choices without measuring
  bool blocking;       // nothing runs beside a collective
} cpu_lower_compilation;

bool cpu_lower_is_collective(const cx_hlo_op *op);

// That nothing is of a type without a size in bytes, or too large to be counted
// in them: the entry's parameters and results; all its values.
calx_status *cpu_lower_check_signature(const cx_hlo_func *entry) CALX_MUST_USE;
calx_status *cpu_lower_check_values(const cx_hlo_func *entry) CALX_MUST_USE;
// That so much temporary memory can be.
calx_status *cpu_lower_check_total(const cpu_run_program *p,
                                   int64_t bytes) CALX_MUST_USE;
// The entry as one step of the interpreter.
calx_status *cpu_lower_interpret(cpu_lower_compilation *l,
                                 cx_hlo_func *entry) CALX_MUST_USE;
// The entry as steps.
calx_status *cpu_lower_plan(cpu_lower_compilation *l,
                            cx_hlo_func *entry) CALX_MUST_USE;

// Appends "name compiled library interpreted" to the file CALX_CPU_STATS.
calx_status *cpu_lower_count(const cpu_lower_compilation *l) CALX_MUST_USE;

#endif
