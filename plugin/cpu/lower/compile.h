// lower/compile: compiles a program's text to an executable.
#ifndef CPU_LOWER_COMPILE_H
#define CPU_LOWER_COMPILE_H

#include "run/program.h"

typedef struct cpu_lower_compile_options {
  uint32_t n_replicas, n_partitions;  // 0: the module's own, else 1
  cx_text *shardings;    // NULL, or gets a partitioned program's; see spmd.h
  cpu_threads *threads;  // with as many threads as the program will run on
  // Nanoseconds after which no more kernels are measured; 0: the default.
  int64_t most_measured;
} cpu_lower_compile_options;

// Whether the environment variable has this value.
bool cpu_lower_env_is(const char *name, const char *value);
// The i-th path to try for the jit; without a '/', the system searches for it.
// False: no more.
bool cpu_lower_jit_path(size_t i, cx_text *out);

// With CALX_CPU_REF=1 in the environment the whole program is interpreted.
calx_status *cpu_lower_compile(const char *text, size_t size,
                               const cpu_lower_compile_options *options,
                               cpu_run_program **out) CALX_MUST_USE;
// Appends what the passes make of the program, as StableHLO's text: for one of
// its devices, without shardings.
calx_status *cpu_lower_optimized(const char *text, size_t size,
                                 const cpu_lower_compile_options *options,
                                 cx_text *out) CALX_MUST_USE;

#endif
