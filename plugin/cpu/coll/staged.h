// coll/staged: reductions between processes, through staging buffers.
#ifndef CPU_COLL_STAGED_H
#define CPU_COLL_STAGED_H

#include "coll/segment.h"

// all_reduce, cross-replica-sum or collective_reduce, after
// cpu_coll_participant_begin().
calx_status *cpu_coll_reduce_staged(cpu_coll_participant *participant,
                                    const cpu_coll_reducer *reducer)
    CALX_MUST_USE;

#endif
