// data/sampler: in which order an epoch visits the samples.
#ifndef CX_DATA_SAMPLER_H
#define CX_DATA_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "calx/data.h"

typedef enum cx_data_order {
  CX_DATA_SEQUENTIAL,
  CX_DATA_RANDOM,
  CX_DATA_DISTRIBUTED
} cx_data_order;

struct calx_sampler {
  calx_status *error;  // set: it gives no samples
  cx_data_order order;
  int64_t size;   // samples of the dataset
  int64_t count;  // samples of an epoch
  uint64_t seed;
  // The epoch of the next order. Ranks that share a parallel loader each set
  // it.
  _Atomic int64_t epoch;

  // Of CX_DATA_DISTRIBUTED.
  int64_t replicas, rank;
  bool shuffle;
};

// Initialises a sampler in the caller's memory: sequential, or random with the
// seed.
void cx_data_sampler_init(calx_sampler *sampler, int64_t size, bool random,
                          uint64_t seed);
// Writes the epoch's `count` samples. Fails only without memory.
calx_status *cx_data_sampler_order(const calx_sampler *sampler, int64_t epoch,
                                   int64_t *out_order) CALX_MUST_USE;

// Writes a permutation of 0 … n-1 that depends on (seed, epoch, n) alone.
void cx_data_permutation(uint64_t seed, int64_t epoch, int64_t n,
                         int64_t *out_order);

// Batches that n samples give; a short last one counts unless it is dropped.
int64_t cx_data_batch_count(int64_t n, int64_t batch_size, bool drop_last);

#endif
