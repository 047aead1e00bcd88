// data/prefetch: worker threads that make an epoch's batches ahead of use.
//
// Batches come out in order whatever the number of workers. Called by one
// consumer at a time.
#ifndef CX_DATA_PREFETCH_H
#define CX_DATA_PREFETCH_H

#include "base/status.h"
#include "calx/data.h"

typedef struct cx_data_prefetch cx_data_prefetch;

typedef struct cx_data_prefetch_options {
  const calx_dataset *dataset;  // outlives the prefetch
  calx_device *device;
  int64_t batch_size;  // whose bytes fit a size_t
  int workers;         // threads, at least 1
  int ahead;           // batches uploaded and not taken, at most; at least 1
} cx_data_prefetch_options;

typedef struct cx_data_made {
  calx_tensor *fields[CALX_MAX_FIELDS];  // the taker's
  int64_t size;                          // samples
} cx_data_made;

calx_status *cx_data_prefetch_open(const cx_data_prefetch_options *options,
                                   cx_data_prefetch **out_prefetch)
    CALX_MUST_USE;
// Joins the workers. NULL is accepted.
void cx_data_prefetch_close(cx_data_prefetch *prefetch);

// The places of an epoch, from which batches are made in order.
typedef struct cx_data_places {
  const int64_t *order;  // the sample at each place, NULL: the place's number
  int64_t first, end;
} cx_data_places;

// Starts on batches 0 … batches-1; none may be under way. The order must stay
// until the stop.
void cx_data_prefetch_start(cx_data_prefetch *prefetch,
                            const cx_data_places *places, int64_t batches);
// Waits for the next batch. After a failure only a stop may follow.
calx_status *cx_data_prefetch_take(cx_data_prefetch *prefetch,
                                   cx_data_made *out_made) CALX_MUST_USE;
// Drops what was not taken; no worker is in the dataset when it returns.
void cx_data_prefetch_stop(cx_data_prefetch *prefetch);

#endif
