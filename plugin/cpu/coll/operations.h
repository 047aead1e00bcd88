// coll/operations: what a member computes and copies when it can read the
// submissions of all members.
#ifndef CPU_COLL_OPERATIONS_H
#define CPU_COLL_OPERATIONS_H

#include "coll/participant.h"

typedef struct cpu_coll_job {
  const cx_hlo_op *op;
  cpu_coll_submission *submissions;  // [n], in the order of the group
  uint32_t n, me;
  int64_t source;  // collective_permute: the member that sends; -1: none
  cpu_coll_reducer reducer;
  const void **x;  // [n]: one operand of all members
} cpu_coll_job;

calx_status *cpu_coll_work(const cpu_coll_job *job) CALX_MUST_USE;

// all_reduce or cross-replica-sum: each member gets the whole result.
bool cpu_coll_is_all_reduce(const cx_hlo_op *op);

#endif
