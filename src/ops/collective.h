// ops/collective: the attributes of the collectives' nodes.
#ifndef CX_OPS_COLLECTIVE_H
#define CX_OPS_COLLECTIVE_H

#include "calx/collective.h"
#include "ops/ops.h"

// The attributes of all collectives, equal on all ranks: global ordinals only.
typedef struct cx_ops_coll_attrs {
  uint32_t bytes;  // of all this, ids included
  uint32_t world;
  uint32_t groups, members;
  uint32_t type;         // calx_reduce_type
  uint32_t dim, to_dim;  // to_dim: of all_to_all, what is joined; else 0
  uint32_t root;         // of a broadcast: its index in each group
  // `groups` times `members`, or the pairs of a permutation; none: one group of
  // all, in their order.
  uint32_t n_ids, unused;
  int64_t ids[];
} cx_ops_coll_attrs;

#endif
