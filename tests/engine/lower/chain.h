// chain: programs with sums over devices, as text.
#ifndef TESTS_ENGINE_LOWER_CHAIN_H
#define TESTS_ENGINE_LOWER_CHAIN_H

#include "base/text.h"

// A training step: products forward and backward through `layers` square
// matrices of WIDTH, whose gradients are then summed over the devices, from the
// last layer to the first.
#define WIDTH 128
typedef enum chain_end {
  CHAIN_SUMS,     // the sums are the results
  CHAIN_UPDATES,  // the matrices are updated in place, after sums of pairs
  CHAIN_SHARES    // reduce_scatter, then all_gather
} chain_end;
void chain_text(cx_text *out, int layers, uint32_t n_devices, chain_end end);
void chain_all_reduce(cx_text *out, const char *to, const char *from,
                      const char *type, uint32_t n_devices);

#endif
