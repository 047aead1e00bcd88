// coll/pieces: reductions whose operands lie in several processes.
#ifndef CX_COLL_PIECES_H
#define CX_COLL_PIECES_H

#include "coll/window.h"

// all_reduce, cross-replica-sum and collective_reduce of a visit that has
// begun.
calx_status *cx_coll_reduce_in_pieces(
    cx_coll_visit *visit, const cx_coll_reducer *reducer) CALX_MUST_USE;

#endif
