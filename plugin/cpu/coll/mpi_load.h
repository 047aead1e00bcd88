// coll/mpi_load: which implementation of MPI this process uses.
#ifndef CPU_COLL_MPI_LOAD_H
#define CPU_COLL_MPI_LOAD_H

#include "base/status.h"
#include "coll/mpi_api.h"

// Prepares the environment and loads the shim: CALX_MPI ("mpich" or "openmpi")
// where it is set, else Open MPI's under its own launchers, else MPICH's.
calx_status *cpu_coll_mpi_load(const cpu_coll_mpi_api **out) CALX_MUST_USE;

// Tells MPI the network interface by which the job's first host is reached:
// left to itself it also tries those that exist on every host with the same
// address (docker0), and fails. What the user set stays.
void cpu_coll_mpi_choose_net(void);
// The name of the interface that has the address from which `host` is reached;
// false: there is none. The loopback only where nothing else is.
bool cpu_coll_mpi_net_to(const char *host, char *out, size_t room,
                         bool *out_loopback);

#endif
