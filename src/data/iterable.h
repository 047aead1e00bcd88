// data/iterable: datasets that are read in order, and the workers that read.
#ifndef CX_DATA_ITERABLE_H
#define CX_DATA_ITERABLE_H

#include "calx/iterable.h"
#include "data/dataset.h"

// One worker's way through the dataset in one epoch.
typedef struct cx_data_iteration {
  void *iterator;
  bool begun, over;
} cx_data_iteration;

// Fills the next sample; *out_over: there was none. The first call begins it.
calx_status *cx_data_iteration_next(const calx_dataset *dataset,
                                    cx_data_iteration *iteration,
                                    const calx_worker_info *info,
                                    void *const *fields,
                                    bool *out_over) CALX_MUST_USE;
void cx_data_iteration_end(const calx_dataset *dataset,
                           cx_data_iteration *iteration);

// What calx_get_worker_info() says on the calling thread; NULL: no worker.
void cx_data_worker_set(const calx_worker_info *info);

#endif
