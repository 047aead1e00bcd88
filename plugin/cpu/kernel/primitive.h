// kernel/primitive: runs a primitive of oneDNN on memory that is given.
#ifndef CPU_KERNEL_PRIMITIVE_H
#define CPU_KERNEL_PRIMITIVE_H

#include "kernel/onednn.h"

#define CPU_KERNEL_PRIMITIVE_ARGUMENTS 3

typedef struct cpu_kernel_primitive {
  dnnl_primitive_t p;
  int n;  // arguments
  int names[CPU_KERNEL_PRIMITIVE_ARGUMENTS];
  const dnnl_memory_desc_t *md[CPU_KERNEL_PRIMITIVE_ARGUMENTS];
  size_t scratch;  // bytes
} cpu_kernel_primitive;

// Attributes for primitives whose scratch memory the caller gives; NULL: out of
// memory.
dnnl_primitive_attr_t cpu_kernel_primitive_attr(const cpu_kernel_onednn *d);
// Its name; never NULL.
const char *cpu_kernel_primitive_name(const cpu_kernel_onednn *d,
                                      dnnl_primitive_desc_t pd);
// Bytes of scratch memory.
size_t cpu_kernel_primitive_scratch(const cpu_kernel_onednn *d,
                                    dnnl_primitive_desc_t pd);
// Before primitives that were made for a pool run on it: starts its threads.
// Inside of a region, where there is one thread, it is an error.
calx_status *cpu_kernel_primitive_ready(const cpu_kernel_onednn *d,
                                        const char *name,
                                        cpu_threads *pool) CALX_MUST_USE;
// `at`: the arguments' memory.
dnnl_status_t cpu_kernel_primitive_run(const cpu_kernel_onednn *d,
                                       const cpu_kernel_primitive *x,
                                       void *const at[], void *scratch);

#endif
