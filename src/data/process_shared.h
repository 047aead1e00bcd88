// data/process_shared: what a worker process and its loader both see.
#ifndef CX_DATA_PROCESS_SHARED_H
#define CX_DATA_PROCESS_SHARED_H

#include <stdatomic.h>

#include "calx/iterable.h"
#include "data/dataset.h"

#define CX_DATA_PROCESS_ALIGNED 64

typedef enum cx_data_process_request {
  CX_DATA_PROCESS_SAMPLES,  // the samples of the list
  CX_DATA_PROCESS_NEXT,     // the next ones of an iterable dataset
  CX_DATA_PROCESS_END       // its iterator is to be ended
} cx_data_process_request;

// The request, then the reply. Only one side writes at a time, but for `cut`
// and `at`; who may is told by a byte through the socket.
typedef struct cx_data_process_shared {
  atomic_bool cut;     // by the loader: leave out the rest
  _Atomic int64_t at;  // by the worker: the sample that it makes
  cx_data_process_request request;
  const void *owner;  // who reads the iterable dataset
  calx_worker_info info;
  int64_t count;   // samples, at most; of the reply: that there are
  bool over;       // of the reply: the iterator is at its end
  calx_code code;  // of the reply
  char message[2048];
  // Then (batch_size) numbers of samples and each field's (batch_size, …).
} cx_data_process_shared;

// Where the parts behind it begin, in bytes from its own address.
typedef struct cx_data_process_layout {
  size_t indices;
  size_t fields[CALX_MAX_FIELDS];
  size_t bytes;  // of all
} cx_data_process_layout;

// The worker's side: makes batches until the socket is closed. Does not return.
_Noreturn void cx_data_process_work(int socket, const calx_dataset *dataset,
                                    cx_data_process_shared *shared,
                                    const cx_data_process_layout *layout);

#endif
