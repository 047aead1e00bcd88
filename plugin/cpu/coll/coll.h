// coll/coll: where the devices of one process meet, and those of other
// processes and hosts.
//
// Each device's program arrives at its n-th collective with pointers to its
// operands and results; the members of a group work on each other's memory and
// leave together. A member that never comes is named when the time is over; a
// launch that failed elsewhere ends the wait at once. Nothing aborts.
#ifndef CPU_COLL_COLL_H
#define CPU_COLL_COLL_H

#include "hlo/module.h"
#include "ref/ref.h"

typedef struct cpu_coll cpu_coll;  // of a client

// The world's devices have numbers; the host's and this process's follow each
// other.
typedef struct cpu_coll_share {
  int fd;  // of the window, abi/calx_window.h; not taken; -1: a new one
  uint32_t first, n;    // the devices of this host
  uint32_t own, n_own;  // and of this process
  uint32_t all;         // of all hosts; where others have some, by MPI
  int64_t timeout_ms;   // of waiting for them
} cpu_coll_share;
calx_status *cpu_coll_new(const cpu_coll_share *share,
                          cpu_coll **out) CALX_MUST_USE;
void cpu_coll_free(cpu_coll *coll);  // NULL is accepted

// The number of a list of devices that programs run on, some of them of other
// processes; and of the next launch of such programs on an own device, at least
// `least`: it is equal in all processes that start the same programs.
calx_status *cpu_coll_team(cpu_coll *coll, const uint32_t *devices, size_t n,
                           uint32_t *out) CALX_MUST_USE;
uint64_t cpu_coll_launches(cpu_coll *coll, uint32_t team, uint32_t device);
uint64_t cpu_coll_number(cpu_coll *coll, uint32_t team, uint32_t device,
                         uint64_t least);

// One device's part in one launch of a program. Launches meet by (team,
// number).
typedef struct cpu_coll_launch {
  cpu_coll *coll;
  uint32_t replica, partition;
  uint32_t n_replicas, n_partitions;
  int64_t timeout_ms;  // of each wait; 0: 1,800,000
  uint32_t n_done;     // collectives done so far in this launch
  // Of each replica and partition its device's number in the world; NULL: the
  // program is for one device, and what follows does not count.
  const uint32_t *devices;
  uint32_t team;
  uint64_t number;   // from 1
  uint64_t program;  // a hash of it
} cpu_coll_launch;

// A collective of a verified module: all_reduce, all_gather, reduce_scatter,
// all_to_all, collective_permute, collective_broadcast, collective_reduce,
// cross-replica-sum. Blocks until the group is done with the caller's memory.
// All members get the same bits. Results may lie in the memory of operands. The
// operation must have passed cpu_coll_check(); devices that come to the same
// collective with another operation are an error of all of them.
calx_status *cpu_coll_run(cpu_coll_launch *launch, const cx_hlo_module *m,
                          const cx_hlo_op *op, const cpu_ref_tensor *operands,
                          const cpu_ref_tensor *results) CALX_MUST_USE;

// Must be called at the end of each launch of a program that has collectives,
// with how it ended (NULL: well; not taken). Others that wait for this launch
// in the same run then end with an error that names it and what it says.
void cpu_coll_end(cpu_coll_launch *launch, const calx_status *how);

// Checks groups, ids and the like of a verified collective when a program is
// compiled.
calx_status *cpu_coll_check(const cx_hlo_op *op, uint32_t n_replicas,
                            uint32_t n_partitions) CALX_MUST_USE;

#endif
