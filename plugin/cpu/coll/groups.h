// coll/groups: which devices take part in a collective together.
#ifndef CPU_COLL_GROUPS_H
#define CPU_COLL_GROUPS_H

#include "hlo/module.h"

// A program is for at most this many devices.
#define CPU_COLL_DEVICES 65536

// The members of the group that a device is in, by number (replica *
// n_partitions + partition), in the order of the group.
typedef struct cpu_coll_group {
  uint32_t *members;  // cx_free() it
  uint32_t n;         // 0: the device is in no group
  uint32_t me;        // the device's index among them
} cpu_coll_group;

calx_status *cpu_coll_group_of(const cx_hlo_op *op, uint32_t n_replicas,
                               uint32_t n_partitions, uint32_t device,
                               cpu_coll_group *out) CALX_MUST_USE;

// The device that sends to `device` in a collective_permute; -1: none.
int64_t cpu_coll_source_of(const cx_hlo_op *op, uint32_t n_partitions,
                           uint32_t device);

// "all_reduce", for messages.
const char *cpu_coll_name(const cx_hlo_op *op);

#endif
