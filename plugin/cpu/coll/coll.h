// coll/coll: collective operations between the devices of one process, of
// several processes of a host, and of several hosts.
//
// Each device's program arrives at its n-th collective with pointers to its
// operands and results. The members of a group wait until all have arrived,
// work, and leave together. A wait ends with an error when the time is over,
// which names the missing members, or at once when the launch of a member
// failed or ended. No failure aborts the process.
#ifndef CPU_COLL_COLL_H
#define CPU_COLL_COLL_H

#include "hlo/module.h"
#include "ref/ref.h"

typedef struct cpu_coll cpu_coll;  // of a client

// Which devices of the world belong to this host and to this process. Devices
// are numbered through the world; those of a process, and of a host, follow
// each other.
typedef struct cpu_coll_topology {
  // Descriptor of the shared segment (abi/calx_segment.h), which stays the
  // caller's; -1: this process is alone on its host and needs none.
  int fd;
  uint32_t host_first, n_host;  // the devices of this host
  uint32_t own_first, n_own;    // the devices of this process
  // The devices of all hosts; 0: n_host. Those of other hosts are reached by
  // MPI.
  uint32_t n_world;
  int64_t timeout_ms;  // of waiting for the other hosts' processes at the start
  // [n_host / n_own]: the ids of this host's processes, which then watch each
  // other; read by cpu_coll_new(). NULL: another one watches them.
  const int64_t *pids;
} cpu_coll_topology;
// A shared segment for so many processes of a host: the descriptor of an
// anonymous file, which is the caller's.
calx_status *cpu_coll_segment_create(uint32_t processes,
                                     int *out) CALX_MUST_USE;
calx_status *cpu_coll_new(const cpu_coll_topology *topology,
                          cpu_coll **out) CALX_MUST_USE;
void cpu_coll_free(cpu_coll *coll);  // NULL is accepted

// The number of a device group: a list of devices that programs run on.
calx_status *cpu_coll_device_group(cpu_coll *coll, const uint32_t *devices,
                                   size_t n, uint32_t *out) CALX_MUST_USE;
// How many launches of such programs a device of this process has had; and the
// number of its next one, at least `least` + 1. The numbers agree on all
// devices of the group, because all start the same programs in the same order.
uint64_t cpu_coll_launch_count(cpu_coll *coll, uint32_t device_group,
                               uint32_t device);
uint64_t cpu_coll_next_launch(cpu_coll *coll, uint32_t device_group,
                              uint32_t device, uint64_t least);

// One device's execution of one launch of a program. Launches with the same
// device group and number belong together.
typedef struct cpu_coll_launch {
  cpu_coll *coll;
  uint32_t replica, partition;
  uint32_t n_replicas, n_partitions;
  int64_t timeout_ms;  // of each wait; 0: 1,800,000
  uint32_t n_done;     // collectives done so far in this launch
  // [replica * n_partitions + partition]: the device's number in the world.
  // NULL: the program is for one device, and the fields below are unused.
  const uint32_t *devices;
  uint32_t device_group;
  uint64_t number;   // from 1
  uint64_t program;  // a hash of it
} cpu_coll_launch;

// Runs a collective of a verified module: all_reduce, all_gather,
// reduce_scatter, all_to_all, collective_permute, collective_broadcast,
// collective_reduce, cross-replica-sum. Returns when no other member uses the
// caller's memory any more. All members get the same bits. Results may lie in
// the memory of operands. The operation must have passed cpu_coll_check().
// Devices that arrive at the same collective with different operations all
// fail.
calx_status *cpu_coll_run(cpu_coll_launch *launch, const cx_hlo_module *m,
                          const cx_hlo_op *op, const cpu_ref_tensor *operands,
                          const cpu_ref_tensor *results) CALX_MUST_USE;

// Ends a launch. Must be called for each launch of a program that has
// collectives. `how`: the error that it failed with, not taken; NULL: it
// succeeded. Other devices that wait for this one in the same launch then fail
// with an error that names the device and `how`.
void cpu_coll_end(cpu_coll_launch *launch, const calx_status *how);

// Checks the groups, ids and attributes of a verified collective when a program
// is compiled.
calx_status *cpu_coll_check(const cx_hlo_op *op, uint32_t n_replicas,
                            uint32_t n_partitions) CALX_MUST_USE;

#endif
