// world/pmi: answers what MPICH asks of the launcher that started it.
//
// The engine connects hosts by MPI, and MPI gets its ranks from its launcher.
// Under a launcher that is not MPI's, a thread of this process plays that part:
// it speaks PMI-1, MPICH's line protocol, over a socket pair whose other end is
// in PMI_FD, and keeps the values in the store.
#ifndef CX_WORLD_PMI_H
#define CX_WORLD_PMI_H

#include "base/status.h"

// Called after joining. Sets PMI_FD, PMI_RANK and PMI_SIZE. Does nothing on one
// host, or under a launcher that answers MPI itself.
calx_status *cx_world_pmi_start(void) CALX_MUST_USE;
// Called before the process leaves the store.
void cx_world_pmi_stop(void);

#endif
