// coll/mpi_load: which implementation of MPI this process uses.
#ifndef CPU_COLL_MPI_LOAD_H
#define CPU_COLL_MPI_LOAD_H

#include "base/status.h"
#include "coll/mpi_api.h"

// Sets environment variables and loads the shim: the one that CALX_MPI names
// ("mpich" or "openmpi"), else Open MPI's under its own launchers, else
// MPICH's.
calx_status *cpu_coll_mpi_load(const cpu_coll_mpi_api **out) CALX_MUST_USE;

// Sets the network interface for MPI: the one by which this host reaches the
// job's first host. By default MPI also tries interfaces that exist on every
// host with the same address (docker0), and fails. Settings of the user stay.
void cpu_coll_mpi_choose_net(void);
// The name of the interface by which `host` is reached; false: there is none.
// The loopback interface is chosen only if there is no other.
bool cpu_coll_mpi_net_to(const char *host, char *out, size_t room,
                         bool *out_loopback);

#endif
