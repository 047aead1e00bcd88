// lower/compile: from a program's text to an executable.
#ifndef CPU_LOWER_COMPILE_H
#define CPU_LOWER_COMPILE_H

#include "run/program.h"

typedef struct cpu_lower_compile_options {
  uint32_t n_replicas, n_partitions;  // 0: the module's own, else 1
  cpu_threads *pool;                  // of the size that it will run on
} cpu_lower_compile_options;

// Whether the environment has it as "1".
bool cpu_lower_is_set(const char *name);
// CALX_COLLECTIVES=blocking: nothing runs beside a collective.
bool cpu_lower_is_blocking(void);
// The i-th path at which to look for the compiler, in the order in which it is
// looked for; one without a '/' is the system's to find. False: no more.
bool cpu_lower_jit_path(size_t i, cx_text *out);

// CALX_CPU_REF=1 in the environment: everything is interpreted.
calx_status *cpu_lower_compile(const char *text, size_t size,
                               const cpu_lower_compile_options *options,
                               cpu_run_program **out) CALX_MUST_USE;

#endif
