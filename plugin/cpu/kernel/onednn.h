// kernel/onednn: Debian's oneDNN 2.6, loaded when it is first needed, on the
// engine's thread pools.
//
// It was built for OpenMP. In its global offset table the six functions of
// libgomp that it calls are replaced by functions of onednn.c, so that its
// parallel regions run on the pool that the calling thread has entered
// (cpu_threads_enter). Threads that have entered none, which are other users of
// the library in the process, get libgomp. If it does not call exactly these
// six, oneDNN runs on one thread.
#ifndef CPU_KERNEL_ONEDNN_H
#define CPU_KERNEL_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "threads/threads.h"

#define CPU_KERNEL_ONEDNN_FUNCTIONS(X)              \
  X(version)                                        \
  X(engine_create)                                  \
  X(stream_create)                                  \
  X(stream_wait)                                    \
  X(sgemm)                                          \
  X(memory_desc_init_by_strides)                    \
  X(memory_desc_init_by_tag)                        \
  X(memory_desc_get_size)                           \
  X(memory_desc_equal)                              \
  X(memory_create)                                  \
  X(memory_destroy)                                 \
  X(dilated_convolution_forward_desc_init)          \
  X(dilated_convolution_backward_data_desc_init)    \
  X(dilated_convolution_backward_weights_desc_init) \
  X(matmul_desc_init)                               \
  X(primitive_attr_create)                          \
  X(primitive_attr_destroy)                         \
  X(primitive_attr_set_scratchpad_mode)             \
  X(primitive_desc_create)                          \
  X(primitive_desc_destroy)                         \
  X(primitive_desc_query)                           \
  X(primitive_desc_query_md)                        \
  X(reorder_primitive_desc_create)                  \
  X(primitive_create)                               \
  X(primitive_execute)                              \
  X(primitive_destroy)

typedef struct cpu_kernel_onednn {
#define X(name) __typeof__(dnnl_##name) *name;
  CPU_KERNEL_ONEDNN_FUNCTIONS(X)
#undef X
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  bool pooled;                   // parallel regions run on the entered pool
  void (*omp_set_threads)(int);  // if not pooled: sets the caller's threads
} cpu_kernel_onednn;

// NULL: it is not installed, or of another version. Thread-safe.
const cpu_kernel_onednn *cpu_kernel_onednn_get(void);

// Around all calls that compute or create primitives: parallel regions run on
// `pool`; NULL: on the calling thread alone.
void cpu_kernel_onednn_enter(const cpu_kernel_onednn *d, cpu_threads *pool);
void cpu_kernel_onednn_leave(const cpu_kernel_onednn *d);

#endif
