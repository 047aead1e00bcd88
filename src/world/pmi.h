// world/pmi: what MPICH asks of the launcher that started it, answered here.
//
// The engine joins hosts by MPI, and MPI must be told its ranks. Under a
// launcher that is no MPI's own, a thread of this process is that launcher: it
// speaks PMI-1, MPICH's line protocol, over a socket pair whose other end
// PMI_FD tells, and keeps what it is given in the store.
#ifndef CX_WORLD_PMI_H
#define CX_WORLD_PMI_H

#include "base/status.h"

// After joining; nothing where there is one host, or where the launcher answers
// by itself. Sets PMI_FD, PMI_RANK and PMI_SIZE.
calx_status *cx_world_pmi_start(void) CALX_MUST_USE;
// Before the store is left.
void cx_world_pmi_stop(void);

#endif
