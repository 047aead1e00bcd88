// data/sampler: in which order an epoch visits the samples.
#ifndef CX_DATA_SAMPLER_H
#define CX_DATA_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "calx/data.h"
#include "data/random.h"

typedef enum cx_data_order {
  CX_DATA_SEQUENTIAL,
  CX_DATA_RANDOM,
  CX_DATA_DISTRIBUTED,
  CX_DATA_CUSTOM  // by `write` or `write_batches`
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

  bool replacement;  // of CX_DATA_RANDOM: a sample may come twice

  // Of CX_DATA_DISTRIBUTED.
  int64_t replicas, rank;
  bool shuffle;

  // Of CX_DATA_CUSTOM.
  calx_sampler_order_fn *write;
  calx_batch_order_fn *write_batches;  // of a batch sampler
  int64_t batches;                     // of an epoch; 0 for any other sampler
  int64_t largest;                     // samples of a batch, at most
  void *user;
  void (*free)(void *user);
};

// Initialises a sampler in the caller's memory: sequential, or random with the
// seed.
void cx_data_sampler_init(calx_sampler *sampler, int64_t size, bool random,
                          uint64_t seed);
// Writes the epoch's `count` samples. Fails only without memory.
calx_status *cx_data_sampler_order(const calx_sampler *sampler, int64_t epoch,
                                   int64_t *out_order) CALX_MUST_USE;

// The same of a batch sampler, and how many samples each batch has: 1 to
// `largest`, together `count`.
calx_status *cx_data_sampler_batch_order(const calx_sampler *sampler,
                                         int64_t epoch, int64_t *out_order,
                                         int64_t *out_sizes) CALX_MUST_USE;
// A sampler of samples that are below `size`, in an order of the caller's.
// Never NULL. `error` is taken; where it is set, or without memory, `user` is
// freed at once.
calx_sampler *cx_data_sampler_custom(calx_status *error, int64_t size,
                                     int64_t count,
                                     calx_sampler_order_fn *write, void *user,
                                     void (*free)(void *user));

// Writes a permutation of 0 … n-1 that depends on (seed, epoch, n) alone.
void cx_data_permutation(uint64_t seed, int64_t epoch, int64_t n,
                         int64_t *out_order);
// The same with the generator's next numbers.
void cx_data_permute(cx_data_random *random, int64_t n, int64_t *out_order);

// Batches that n samples give; a short last one counts unless it is dropped.
int64_t cx_data_batch_count(int64_t n, int64_t batch_size, bool drop_last);

#endif
