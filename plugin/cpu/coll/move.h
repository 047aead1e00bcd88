// coll/move: operands are copied to the hosts whose members read them.
//
// Each device has its operands in its operand buffer of its host's segment. A
// host with members that read them has a copy of that buffer, which one of
// these members receives. Then each member works as if all members were of one
// host.
#ifndef CPU_COLL_MOVE_H
#define CPU_COLL_MOVE_H

#include "coll/segment.h"

// The offset of an operand in all members' operand buffers.
typedef struct cpu_coll_layout {
  size_t at;
} cpu_coll_layout;

// Sends this member's operand buffer, of `total` bytes, and receives those of
// others that are assigned to this member. All members have arrived. With
// `total` 0 it only waits for a message of each other host.
calx_status *cpu_coll_move(cpu_coll_participant *participant,
                           const cpu_coll_layout *operands,
                           size_t total) CALX_MUST_USE;
// Frees the memory of large buffers that this member received. All members of
// this host have read them.
void cpu_coll_move_trim(const cpu_coll_participant *participant);

#endif
