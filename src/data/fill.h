// data/fill: a batch's samples, read into host memory by a worker.
#ifndef CX_DATA_FILL_H
#define CX_DATA_FILL_H

#include <stdatomic.h>

#include "calx/data.h"
#include "data/block_cache.h"
#include "data/iterable.h"
#include "data/processes.h"

// The positions of an epoch from which batches are made in order.
typedef struct cx_data_range {
  const int64_t *order;  // the sample at each position; NULL: the position
  const int64_t *bounds;  // batch k is positions bounds[k] … bounds[k + 1] - 1;
                          // NULL: batches of one size
  int64_t first, end;  // where there are no bounds
  int64_t epoch;       // its number, for datasets that draw
} cx_data_range;

typedef struct cx_data_fill_options {
  const calx_dataset *dataset;
  int64_t batch_size;        // samples of a batch, at most
  int workers;               // an iterable dataset has an iterator for each
  uint64_t seed;             // of the workers'
  bool drop_last;            // of each iterator's samples
  calx_collate_fn *collate;  // NULL: samples are stacked
  void *collate_user;
  cx_data_processes *processes;  // held by the caller; NULL: none
  size_t keep;                   // blocks that are kept for reuse
} cx_data_fill_options;

typedef struct cx_data_filler cx_data_filler;

// A batch on the host.
typedef struct cx_data_filled {
  // The holder's: one of all fields, or one for each; none: it is empty.
  cx_data_block *blocks[CALX_MAX_FIELDS];
  const void *data[CALX_MAX_FIELDS];  // in the blocks
  int64_t size;                       // samples
  int64_t bad_sample;                 // of a failure; -1: none in particular
  size_t n_fields;
  calx_field fields[CALX_MAX_FIELDS];  // with the batch dimension
} cx_data_filled;

void cx_data_filled_drop(cx_data_filled *batch);  // frees its blocks

calx_status *cx_data_filler_open(const cx_data_fill_options *options,
                                 cx_data_filler **out) CALX_MUST_USE;
void cx_data_filler_close(cx_data_filler *filler);  // NULL is accepted

// Reads batch k for worker `worker`. Once *cut is set the rest is left out. Of
// an iterable dataset batch k is the next one of iterator k modulo the number
// of workers, which nobody else may be in, and is empty where that is at its
// end.
calx_status *cx_data_fill(cx_data_filler *filler, int worker,
                          const cx_data_range *range, int64_t k,
                          const atomic_bool *cut,
                          cx_data_filled *out) CALX_MUST_USE;
// Whether all iterators of an iterable dataset are at their ends.
bool cx_data_filler_over(const cx_data_filler *filler);
// Ends the iterators: the next fill begins them again.
void cx_data_filler_stop(cx_data_filler *filler);

#endif
