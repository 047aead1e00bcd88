// data/loader: what a loader is, for those that make one.
#ifndef CX_DATA_LOADER_H
#define CX_DATA_LOADER_H

#include "calx/data.h"
#include "data/input_sharding.h"
#include "data/prefetch.h"
#include "data/sampler.h"

// Where a loader's batches come from. An epoch goes through begin, take (`left`
// times, or until one fails), end.
typedef struct cx_data_kind {
  // Sets `epoch`, `at` and `left`; the epoch begins at sample `done`.
  calx_status *(*begin)(calx_loader *loader);
  calx_status *(*take)(calx_loader *loader, cx_data_made *out_made);
  // Drops what was not taken, also after a failed begin.
  void (*end)(calx_loader *loader);
  void (*free)(calx_loader *loader);
} cx_data_kind;

// How far a loader over a dataset works ahead, for each device.
typedef struct cx_data_depth {
  int uploaded, filled;  // batches
  int uploads;           // at a time
} cx_data_depth;

#define CX_DATA_MOST_AHEAD 65536
// Checks a number of the options, of which 0 stands for `otherwise`.
calx_status *cx_data_number(const char *whose, const char *what, int64_t given,
                            int64_t otherwise, int64_t most,
                            int64_t *out) CALX_MUST_USE;

struct calx_loader {
  calx_status *error;  // set: there are no batches
  const cx_data_kind *kind;
  int64_t batch_size;
  int64_t samples;        // of an epoch
  int64_t batches;        // of an epoch; -1: an iterable dataset's, not known
  int64_t per_execution;  // batches between two syncs
  calx_sampler *sampler;  // the caller's, or `own`
  calx_sampler own;

  bool running;   // an epoch is
  int64_t epoch;  // that runs
  int64_t done;   // samples handed out of it, or left out of the next one
  int64_t at;     // the next batch's index
  int64_t left;   // batches of it that were not handed out
  int64_t since;  // batches handed out since the last sync
  calx_tensor *handed[CALX_MAX_FIELDS];  // owned until the next call

  // Over a dataset.
  const calx_dataset *dataset;
  calx_loader_options options;
  cx_data_prefetch *prefetch;  // NULL until the first epoch
  int64_t *order;              // (samples) of the running epoch
  // (batches + 1) positions in it where batches begin; NULL: all have one size.
  int64_t *bounds;
  cx_data_depth depth;
  cx_ops_spec sharding;          // of the batches
  cx_data_processes *processes;  // a hold on them; NULL: none

  // One of a parallel loader's.
  calx_parallel_loader *parallel;
  int lane;
  int64_t rounds;  // epochs that it has ended

  // A generator's one batch.
  calx_tensor *fixed[CALX_MAX_FIELDS];
  size_t n_fields;
};

// An empty loader, never NULL; cx_data_loader_fail() gives it an error.
calx_loader *cx_data_loader_empty(void);
calx_loader *cx_data_loader_none(
    void);  // the loader that is returned without memory
// Takes the status; NULL is success.
calx_loader *cx_data_loader_fail(calx_loader *loader, calx_status *error);
void cx_data_loader_release(calx_tensor **tensors);  // a batch's, if any

// The usual begin: at the sampler's epoch, with all batches from `done` on.
void cx_data_loader_begin(calx_loader *loader);

// Splits the batches so from now on, before the first of them is asked for; all
// zero: as they are. Checks what is known of them.
calx_status *cx_data_loader_shard(
    calx_loader *loader, const calx_input_sharding *given) CALX_MUST_USE;

// A loader over the samples of `from`, at the same position. The caller sets
// `kind`, `depth` and `options.device`.
calx_status *cx_data_loader_copy(const calx_loader *from,
                                 calx_loader *loader) CALX_MUST_USE;

// The same loader with another sampler, NULL: its own. It has its own workers
// and epochs, on the device of the thread that takes the first batch.
calx_loader *cx_data_loader_sampled(const calx_loader *from,
                                    calx_sampler *sampler);
// Gives such a loader another batch size before its first epoch.
// @errors INVALID_ARGUMENT a batch sampler decides it  UNIMPLEMENTED worker
//         processes, whose memory has one size; no dataset
calx_status *cx_data_loader_set_batch_size(calx_loader *loader,
                                           int64_t batch_size) CALX_MUST_USE;
// Whether the loader draws a new order each epoch, and from which seed; whether
// a sampler of the program's decides which samples it gives; its dataset, NULL:
// it has none.
uint64_t cx_data_loader_seed(const calx_loader *loader);
bool cx_data_loader_is_shuffled(const calx_loader *loader);
bool cx_data_loader_has_sampler(const calx_loader *loader);
const calx_dataset *cx_data_loader_dataset(const calx_loader *loader);

// ---- over a dataset ---------------------------------------------------------

extern const cx_data_kind cx_data_batches;
// Begins an epoch of `left` batches with one lane for each device. NULL: the
// only lane is on the loader's own device.
calx_status *cx_data_batches_start(calx_loader *loader,
                                   calx_device *const *devices,
                                   int lanes) CALX_MUST_USE;

// ---- a generator ------------------------------------------------------------

extern const cx_data_kind cx_data_generator;
// Makes `loader` return the batch of `from` on the device.
calx_status *cx_data_generator_copy(const calx_loader *from,
                                    calx_device *device,
                                    calx_loader *loader) CALX_MUST_USE;

#endif
