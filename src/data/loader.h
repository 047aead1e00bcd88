// data/loader: what a loader is, for those that make one.
#ifndef CX_DATA_LOADER_H
#define CX_DATA_LOADER_H

#include "calx/data.h"
#include "data/prefetch.h"

struct calx_loader {
  calx_status *error;  // set: there are no batches
  int64_t batches;     // of an epoch
  size_t n_fields;
  int64_t epoch;  // that runs, else the next
  bool running;
  int64_t at;  // batches of the epoch that were handed out
  calx_tensor *handed[CALX_MAX_FIELDS];  // owned until the next call

  // A loader over a dataset; NULL for a generator.
  cx_data_prefetch *prefetch;
  int64_t *order;  // (samples) of the running epoch; NULL: no shuffle
  int64_t samples;
  uint64_t seed;

  // A generator's one batch.
  calx_tensor *fixed[CALX_MAX_FIELDS];
  int64_t fixed_size;  // samples in it
};

// An empty loader, never NULL; cx_data_loader_fail() tells it what is wrong.
calx_loader *cx_data_loader_empty(void);
// Takes the status; NULL is success.
calx_loader *cx_data_loader_fail(calx_loader *loader, calx_status *error);

#endif
