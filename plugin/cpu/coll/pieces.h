// coll/pieces: reductions whose operands lie in several processes.
#ifndef CPU_COLL_PIECES_H
#define CPU_COLL_PIECES_H

#include "coll/window.h"

// all_reduce, cross-replica-sum and collective_reduce of a visit that has
// begun.
calx_status *cpu_coll_reduce_in_pieces(
    cpu_coll_visit *visit, const cpu_coll_reducer *reducer) CALX_MUST_USE;

#endif
