// data/sampler: in which order an epoch visits the samples.
#ifndef CX_DATA_SAMPLER_H
#define CX_DATA_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

// Writes a permutation of 0 … n-1 that depends on (seed, epoch, n) alone.
void cx_data_permutation(uint64_t seed, int64_t epoch, int64_t n,
                         int64_t *out_order);

// Batches that n samples give; a short last one counts unless it is dropped.
int64_t cx_data_batch_count(int64_t n, int64_t batch_size, bool drop_last);

#endif
