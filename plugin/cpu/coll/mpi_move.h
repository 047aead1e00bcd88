// coll/mpi_move: operands go to where members of other hosts work on them.
//
// Each device has its operands in its region of its host's window. A host with
// members that need them has a copy of that region, which one of them receives;
// then every member works as if all were of one host.
#ifndef CPU_COLL_MPI_MOVE_H
#define CPU_COLL_MPI_MOVE_H

#include "coll/window.h"

// Where an operand begins in all members' regions.
typedef struct cpu_coll_mpi_layout {
  size_t at;
} cpu_coll_mpi_layout;

// Of a visit whose members have all come: sends this member's region, of
// `total` bytes, and receives those of others that it has to. Of nothing, the
// members of other hosts are still waited for.
calx_status *cpu_coll_mpi_move(cpu_coll_visit *visit,
                               const cpu_coll_mpi_layout *operands,
                               size_t total) CALX_MUST_USE;
// Gives back the memory of large regions that this member received. All of the
// host are done with them.
void cpu_coll_mpi_move_trim(const cpu_coll_visit *visit);

#endif
