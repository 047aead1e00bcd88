// data/prefetch: worker threads that make an epoch's batches ahead of use.
//
// Batches are taken in order whatever the number of workers. Batch k is for
// lane k modulo the number of lanes. A loader has one lane; ranks that read
// together have one each, with its own device and thread. A group is a batch
// for each lane.
#ifndef CX_DATA_PREFETCH_H
#define CX_DATA_PREFETCH_H

#include "base/status.h"
#include "calx/data.h"
#include "data/fill.h"
#include "data/input_sharding.h"

typedef struct cx_data_prefetch cx_data_prefetch;

// How often a lane that waits for others checks whether their ranks still run.
enum { CX_DATA_LOOK_MS = 100 };

typedef struct cx_data_prefetch_options {
  cx_data_fill_options fill;    // the dataset outlives the prefetch
  calx_device *const *devices;  // of each lane; copied
  const cx_ops_spec *sharding;  // of the loader, which outlives the prefetch
  int lanes;                    // at least 1; 1 of an iterable dataset
  int ahead;    // batches of a lane that are uploaded, at most; at least 1
  int filled;   // batches of a lane before that, at most; at least 1
  int uploads;  // under way at a time, at most; at least 1
} cx_data_prefetch_options;

typedef struct cx_data_made {
  calx_tensor *fields[CALX_MAX_FIELDS];  // the taker's
  size_t n_fields;
  int64_t size;    // samples
  int64_t passed;  // samples of its group
  bool over;  // there is none: the dataset is at its end, or it was cancelled
} cx_data_made;

calx_status *cx_data_prefetch_open(const cx_data_prefetch_options *options,
                                   cx_data_prefetch **out_prefetch)
    CALX_MUST_USE;
// Joins the workers; no take may be under way. NULL is accepted.
void cx_data_prefetch_close(cx_data_prefetch *prefetch);

// Starts to make batches 0 … batches-1, a multiple of the number of lanes; of
// an iterable dataset as many as there are. No epoch may be under way, and the
// order must stay until the stop.
void cx_data_prefetch_start(cx_data_prefetch *prefetch,
                            const cx_data_range *range, int64_t batches);
// Waits until the whole group of the lane's next batch is ready. So all lanes
// take equally many batches whatever fails: the first failure of a group is
// returned to all of them. ABORTED: the group waits for a lane whose rank has
// ended. After a failure only cx_data_prefetch_leave() or
// cx_data_prefetch_stop() may follow.
calx_status *cx_data_prefetch_take(cx_data_prefetch *prefetch, int lane,
                                   cx_data_made *out_made) CALX_MUST_USE;
// The lane takes no more batches. Those made for it are dropped.
void cx_data_prefetch_leave(cx_data_prefetch *prefetch, int lane);
// Drops the batches that were not taken. When it returns no worker uses the
// dataset.
void cx_data_prefetch_stop(cx_data_prefetch *prefetch);
// Ends the prefetch: this and every later take returns `over`.
void cx_data_prefetch_cancel(cx_data_prefetch *prefetch);

#endif
