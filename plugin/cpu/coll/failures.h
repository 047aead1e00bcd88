// coll/failures: why a wait must end with an error, and how the other members
// learn it.
#ifndef CPU_COLL_FAILURES_H
#define CPU_COLL_FAILURES_H

#include "coll/state.h"

// The step of a collective's phase. Phase 0: not arrived.
static inline uint64_t cpu_coll_step(uint64_t index, uint64_t phase)
{
  return index << 24 | phase;
}

// Whether a device is in the collective that begins at `start` of a launch.
static inline bool cpu_coll_is_inside(const cpu_coll_state *s, uint64_t launch,
                                      uint64_t start)
{
  if (atomic_load(&s->launch) != launch) return false;
  // The step belongs to the launch if that is the same before and after.
  const uint64_t step = atomic_load(&s->step);
  return atomic_load(&s->launch) == launch && step > start &&
         step < start + cpu_coll_step(1, 0);
}

static inline cpu_coll_local_device *cpu_coll_self(const cpu_coll_launch *l)
{
  return &l->coll->local[l->devices[cpu_coll_device(l)] -
                         l->coll->topology.own_first];
}

// The state of member i.
static inline cpu_coll_state *cpu_coll_state_of(const cpu_coll_participant *p,
                                                uint32_t i)
{
  return &p->self->states[p->self->members[i]];
}

static inline bool cpu_coll_has_arrived(const cpu_coll_participant *p,
                                        uint32_t i, uint64_t step)
{
  const cpu_coll_state *s = cpu_coll_state_of(p, i);
  return atomic_load(&s->launch) == p->launch->number &&
         atomic_load(&s->step) >= step;
}

// Members of other hosts only take part in the first barrier.
static inline bool cpu_coll_is_awaited(const cpu_coll_participant *p,
                                       uint32_t i)
{
  return p->phase <= 1 || p->self->members[i] < p->coll->topology.n_host;
}

// The failure of the job, if the library has reported one. `submission` (or
// NULL) is named in the text.
calx_status *cpu_coll_check_job(const cpu_coll_launch *launch,
                                const cpu_coll_submission *submission)
    CALX_MUST_USE;
// All have arrived: whether they submitted the same.
calx_status *cpu_coll_check_headers(const cpu_coll_participant *participant)
    CALX_MUST_USE;
// Why the wait for a step cannot succeed; NULL: no reason is known.
calx_status *cpu_coll_check_wait(const cpu_coll_participant *participant,
                                 uint64_t step, int64_t until_ns) CALX_MUST_USE;

// From here on, members that wait for this device fail with this error as it
// stands, unless the device already has a reason.
void cpu_coll_set_common(const cpu_coll_participant *participant,
                         const calx_status *why);
// Shows the other members that the launch has failed, and wakes them.
void cpu_coll_publish_failure(const cpu_coll_launch *launch,
                              const calx_status *how);

#endif
