// kernels/onednn: Debian's oneDNN 2.6, loaded when it is first needed and put
// onto our pools.
//
// It was built for OpenMP. The six functions of libgomp that it calls are
// replaced by ours in its table of addresses, so that its regions run on the
// pool that the calling thread has entered (cx_pool_enter). Threads that
// entered none, other users of the library in the process, keep libgomp.
// Should there not be just these six, oneDNN runs on one thread.
#ifndef CX_KERNELS_ONEDNN_H
#define CX_KERNELS_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "pool/pool.h"

#define CX_ONEDNN_FUNCTIONS(X)                      \
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

typedef struct cx_onednn {
#define X(name) __typeof__(dnnl_##name) *name;
  CX_ONEDNN_FUNCTIONS(X)
#undef X
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  bool pooled;                   // regions run on the entered pool
  void (*omp_set_threads)(int);  // not pooled: of the calling thread
} cx_onednn;

// NULL: it is not there, or of another version. Thread-safe.
const cx_onednn *cx_onednn_get(void);

// Around all calls that compute or create: regions run on `pool`; NULL: on the
// calling thread alone.
void cx_onednn_enter(const cx_onednn *d, cx_pool *pool);
void cx_onednn_leave(const cx_onednn *d);

#endif
