// data/collate: a batch that a function of the caller's made.
#ifndef CX_DATA_COLLATE_H
#define CX_DATA_COLLATE_H

#include "base/status.h"
#include "calx/collate.h"
#include "data/block_cache.h"

struct calx_collated {
  size_t n_fields;
  calx_field fields[CALX_MAX_FIELDS];     // shapes with the batch dimension
  cx_data_block *parts[CALX_MAX_FIELDS];  // a block of one field each
};

// Gives up what was added.
void cx_data_collated_clear(calx_collated *batch);

#endif
