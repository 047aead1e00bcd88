// lower/compile: from a program's text to an executable.
#ifndef CX_LOWER_COMPILE_H
#define CX_LOWER_COMPILE_H

#include "run/program.h"

typedef struct cx_compile_options {
  uint32_t n_replicas, n_partitions;  // 0: the module's own, else 1
  cx_pool *pool;                      // of the size that it will run on
} cx_compile_options;

// CALX_CPU_REF=1 in the environment: everything is interpreted.
calx_status *cx_lower_compile(const char *text, size_t size,
                              const cx_compile_options *options,
                              cx_program **out) CALX_MUST_USE;

#endif
