// lower/compile: from a program's text to an executable.
#ifndef CX_LOWER_COMPILE_H
#define CX_LOWER_COMPILE_H

#include "run/program.h"

typedef struct cx_compile_options {
  uint32_t n_replicas, n_partitions;  // 0: the module's own, else 1
  cx_pool *pool;                      // of the size that it will run on
} cx_compile_options;

// Whether the environment has it as "1".
bool cx_lower_is_set(const char *name);
// CALX_COLLECTIVES=blocking: nothing runs beside a collective.
bool cx_lower_is_blocking(void);
// The i-th path at which to look for the compiler, in the order in which it is
// looked for; one without a '/' is the system's to find. False: no more.
bool cx_lower_jit_path(size_t i, cx_text *out);

// CALX_CPU_REF=1 in the environment: everything is interpreted.
calx_status *cx_lower_compile(const char *text, size_t size,
                              const cx_compile_options *options,
                              cx_program **out) CALX_MUST_USE;

#endif
