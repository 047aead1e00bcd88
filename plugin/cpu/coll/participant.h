// coll/participant: one device's participation in one collective.
//
// Each device has a state for each device group (state.h), which it alone
// writes: its launch, its collective, its phase there, a header that describes
// the operation, and how its last launch ended. A barrier is passed when the
// states of all members show the phase. So there is no counter that a member
// which gives up could leave wrong, and no table of groups.
//
// A device that has left a collective marks this in its state. Before it
// arrives at the next one it waits until the other members have left too. So
// the states and the memory of all members stay as they are while any member is
// in the collective.
#ifndef CPU_COLL_PARTICIPANT_H
#define CPU_COLL_PARTICIPANT_H

#include "coll/coll.h"
#include "coll/groups.h"
#include "coll/reduce.h"

// What a member submits to a collective.
typedef struct cpu_coll_submission {
  const cx_hlo_module *module;
  const cx_hlo_op *op;
  const cpu_ref_tensor *operands, *results;
} cpu_coll_submission;

// The number of a launch's device in its program.
static inline uint32_t cpu_coll_device(const cpu_coll_launch *l)
{
  return l->replica * l->n_partitions + l->partition;
}
static inline int64_t cpu_coll_limit_ms(const cpu_coll_launch *l)
{
  const int64_t most = 1000000000000;
  if (l->timeout_ms <= 0) return 1800000;
  return l->timeout_ms < most ? l->timeout_ms : most;
}

// The members of a group that are of one host, as indices into the group.
typedef struct cpu_coll_host_group {
  uint32_t host, n;
  const uint32_t *members;
} cpu_coll_host_group;

typedef struct cpu_coll_participant {
  cpu_coll_launch *launch;
  const cpu_coll_group *group;
  const cpu_coll_submission *submission;
  cpu_coll *coll;
  struct cpu_coll_local_device *self;
  uint32_t phase;  // barriers so far
  // All members are devices of this process: they read and write each other's
  // operands and results in place.
  bool direct;
  // The members by hosts; the index of this host, and of this device among its
  // members.
  const cpu_coll_host_group *host_groups;
  uint32_t n_host_groups, own_host_group, local_index;
} cpu_coll_participant;

// The members of this host.
static inline const cpu_coll_host_group *cpu_coll_local_group(
    const cpu_coll_participant *p)
{
  return &p->host_groups[p->own_host_group];
}

// Begins a collective. Waits until the device's staging and operand buffers are
// free. The caller sets `launch`, `group` and `submission` before.
calx_status *cpu_coll_participant_begin(cpu_coll_participant *participant,
                                        const cpu_coll_reducer *reducer)
    CALX_MUST_USE;
// A barrier. The first one waits for all members and checks that all have
// submitted the same operation. Later ones wait for the members of this host.
calx_status *cpu_coll_participant_wait(cpu_coll_participant *participant)
    CALX_MUST_USE;
// The collective has succeeded and is counted in n_done.
void cpu_coll_participant_end(cpu_coll_participant *participant);

// A direct collective is begin, wait, the work on all submissions, leave, end.
const cpu_coll_submission *cpu_coll_submission_of(
    const cpu_coll_participant *participant, uint32_t i);
// Waits until all members have finished their work. `status` (taken): how the
// wait and the work of this member went; after an error all members fail. When
// this returns no member uses this device's memory.
calx_status *cpu_coll_participant_leave(cpu_coll_participant *participant,
                                        calx_status *status) CALX_MUST_USE;

#endif
