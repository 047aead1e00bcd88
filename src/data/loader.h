// data/loader: what a loader is, for those that make one.
#ifndef CX_DATA_LOADER_H
#define CX_DATA_LOADER_H

#include "calx/data.h"
#include "data/prefetch.h"
#include "data/sampler.h"

// Where a loader's batches come from. A loader whose `left` is set goes through
// begin, take (`left` times, or until one fails), end.
typedef struct cx_data_kind {
  // The epoch begins at sample `done`. May lower `left`.
  calx_status *(*begin)(calx_loader *loader);
  calx_status *(*take)(calx_loader *loader, cx_data_made *out_made);
  // Drops what was not taken, also after a failed begin.
  void (*end)(calx_loader *loader);
  void (*free)(calx_loader *loader);
} cx_data_kind;

struct calx_loader {
  calx_status *error;  // set: there are no batches
  const cx_data_kind *kind;
  int64_t batch_size;
  int64_t samples;  // of an epoch
  int64_t batches;  // of an epoch
  size_t n_fields;
  calx_sampler *sampler;  // the caller's, or `own`
  calx_sampler own;

  bool running;   // an epoch is
  int64_t epoch;  // that runs
  int64_t done;   // samples handed out of it, or left out of the next one
  int64_t at;     // the next batch's index
  int64_t left;   // batches of it that were not handed out
  calx_tensor *handed[CALX_MAX_FIELDS];  // owned until the next call

  // Over a dataset.
  const calx_dataset *dataset;
  calx_loader_options options;
  cx_data_prefetch *prefetch;  // NULL until the first epoch
  int64_t *order;              // (samples) of the running epoch

  // A generator's one batch.
  calx_tensor *fixed[CALX_MAX_FIELDS];
};

// An empty loader, never NULL; cx_data_loader_fail() tells it what is wrong.
calx_loader *cx_data_loader_empty(void);
// Takes the status; NULL is success.
calx_loader *cx_data_loader_fail(calx_loader *loader, calx_status *error);
void cx_data_loader_release(calx_tensor **tensors);  // a batch's, if any

// Batches from `done` on.
int64_t cx_data_loader_rest(const calx_loader *loader);

#endif
