// data/randperm: the order that torch.randperm gives on a CPU.
#ifndef CX_DATA_RANDPERM_H
#define CX_DATA_RANDPERM_H

#include <stdint.h>

// PyTorch draws 64 bits for each position where n is at least this: UINT32_MAX
// / 20.
#define CX_DATA_RANDPERM_WIDE INT64_C(214748364)

// Writes 0 … n-1 in the order of torch.randperm(n) with a generator of this
// seed. Only the low 32 bits of the seed count.
void cx_data_randperm(uint64_t seed, int64_t n, int64_t *out_order);
// The algorithm of large n, for any n.
void cx_data_randperm_wide(uint64_t seed, int64_t n, int64_t *out_order);

#endif
