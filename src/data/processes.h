// data/processes: worker processes, which call the dataset in the place of the
// loader's threads (docs/decisions/037-worker-processes-are-forked-early.md).
//
// Each worker thread of the loader talks with one process: it writes the
// numbers of a batch's samples into memory that both share, wakes the process
// and waits. A process that ends, however, is seen at once as the end of the
// connection, and is an error with its number, its signal and the sample.
#ifndef CX_DATA_PROCESSES_H
#define CX_DATA_PROCESSES_H

#include <stdatomic.h>

#include "calx/iterable.h"
#include "data/dataset.h"

typedef struct cx_data_processes cx_data_processes;

typedef struct cx_data_processes_options {
  const calx_dataset *dataset;
  int count;           // processes
  int64_t batch_size;  // samples of a batch, at most
  double timeout;      // seconds that a batch may take; 0: any time
} cx_data_processes_options;

// Forks the processes, with one holder.
// @errors FAILED_PRECONDITION this process has several threads
calx_status *cx_data_processes_open(const cx_data_processes_options *options,
                                    cx_data_processes **out) CALX_MUST_USE;
cx_data_processes *cx_data_processes_hold(cx_data_processes *processes);
// Ends one hold; the last ends the processes. NULL is accepted.
void cx_data_processes_release(cx_data_processes *processes);

// A batch that a process makes.
typedef struct cx_data_remote {
  calx_worker_info info;   // info.id: which process
  const void *owner;       // of an iterable dataset: who reads; else NULL
  const int64_t *order;    // NULL: samples `first`, `first` + 1, …
  int64_t first, count;    // positions in the order
  void *const *fields;     // where the samples go
  const atomic_bool *cut;  // set: the rest is left out
  int64_t bad_sample;      // of a failure
  bool over;               // the iterator is at its end; `count` samples came
} cx_data_remote;

// Thread-safe; two batches of one process are made one after the other.
// @errors ABORTED the process has ended  DEADLINE_EXCEEDED the timeout, after
//         which it is ended; the dataset's own
calx_status *cx_data_processes_fill(cx_data_processes *processes,
                                    cx_data_remote *batch) CALX_MUST_USE;
// Ends the owner's iterator in process `id`, if it has one.
void cx_data_processes_end(cx_data_processes *processes, int id,
                           const void *owner);

#endif
