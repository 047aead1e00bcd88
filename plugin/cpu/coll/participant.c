// coll/participant: see participant.h.
//
// A member that waits polls the others' states, then yields, then sleeps on the
// wake word of the group's first member, at most SLEEP_MS at a time. Between
// two sleeps it checks for failures. The member that arrives last wakes the
// others.
#include <string.h>

#include "base/alloc.h"
#include "base/futex.h"
#include "base/status.h"
#include "coll/failures.h"
#include "coll/remote.h"
#include "threads/threads.h"

enum { DIRECT_SPINS = 1000, YIELDS = 20, REMOTE_YIELDS = 500, SLEEP_MS = 100 };

static int64_t deadline(const cpu_coll_launch *l)
{
  return cx_now_ns() + cpu_coll_limit_ms(l) * 1000000;
}

// ---- waiting ----

// *from: the first member that has not been seen to arrive.
static bool all_arrived(const cpu_coll_participant *p, uint64_t step,
                        uint32_t *from)
{
  while (*from < p->group->n && (!cpu_coll_is_awaited(p, *from) ||
                                 cpu_coll_has_arrived(p, *from, step))) {
    ++*from;
  }
  return *from == p->group->n;
}

static void sleep_for(const cpu_coll_participant *p, uint64_t step,
                      uint32_t *from, int64_t until_ns)
{
  cpu_coll_state *first = cpu_coll_state_of(p, 0);
  const int64_t left = (until_ns - cx_now_ns()) / 1000000;
  const uint32_t seen = atomic_load(&first->wake_word);
  atomic_fetch_add(&first->sleepers, 1);
  if (left >= 0 && !all_arrived(p, step, from)) {
    cx_futex_wait(&first->wake_word, seen,
                  left < SLEEP_MS ? left + 1 : SLEEP_MS, CX_FUTEX_SHARED);
  }
  atomic_fetch_sub(&first->sleepers, 1);
}

static bool poll_arrivals(const cpu_coll_participant *p, uint64_t step,
                          uint32_t *from)
{
  const bool remote = p->phase == 1 && p->n_host_groups > 1;
  int spins = remote ? 0 : p->coll->spins;
  // A direct collective has two barriers only, so a sleep costs little, and a
  // long spin would take time from other programs on a loaded machine.
  if (p->direct && spins > DIRECT_SPINS) spins = DIRECT_SPINS;
  for (int i = 0; i < spins && !all_arrived(p, step, from); i++) {
    cpu_threads_pause();
  }
  const int yields = remote ? REMOTE_YIELDS : YIELDS;
  for (int i = 0; i < yields && !all_arrived(p, step, from); i++) {
    if (remote) cpu_coll_link_poll(p->coll->link);
    cpu_threads_yield();
  }
  return *from == p->group->n;
}

calx_status *cpu_coll_participant_wait(cpu_coll_participant *p)
{
  uint32_t from = 0;
  const uint64_t step = cpu_coll_step(p->launch->n_done, ++p->phase);
  cpu_coll_state *first = cpu_coll_state_of(p, 0);
  // All accesses to `step` and `sleepers` are sequentially consistent. So of
  // two members that arrive last at least one sees both arrivals, and a member
  // that goes to sleep either sees the last arrival or is seen as a sleeper.
  atomic_store(&cpu_coll_state_of(p, p->group->me)->step, step);
  if (p->phase == 1 && p->n_host_groups > 1) cpu_coll_remote_arrived(p);
  if (all_arrived(p, step, &from) && atomic_load(&first->sleepers) != 0) {
    cpu_coll_wake_sleepers(first);
  }
  if (!poll_arrivals(p, step, &from)) {
    // The second phase of a direct collective has no time limit: all members
    // have arrived, and each ends its work or publishes a failure.
    const int64_t until =
        p->direct && p->phase > 1 ? INT64_MAX : deadline(p->launch);
    while (!all_arrived(p, step, &from)) {
      CALX_TRY(cpu_coll_check_wait(p, step, until));
      sleep_for(p, step, &from, until);
    }
  }
  return p->phase == 1 ? cpu_coll_check_headers(p) : NULL;
}

// ---- after a collective ----

// Whether member i of the last collective is still in it.
static bool is_inside(const cpu_coll *coll, const cpu_coll_local_device *self,
                      uint32_t i)
{
  const cpu_coll_state *s = &self->states[self->members[i]];
  return self->members[i] != self->slot &&
         self->members[i] < coll->topology.n_host &&
         atomic_load(&s->ended) < self->launch &&
         cpu_coll_is_inside(s, self->launch, self->step);
}

static calx_status *wait_until_left(cpu_coll_local_device *self,
                                    const cpu_coll_launch *l)
{
  cpu_coll *coll = l->coll;
  if (self->n_members == 0) return NULL;
  int64_t until = 0;
  for (uint32_t i = 0, tries = 0; i < self->n_members; tries++) {
    if (!is_inside(coll, self, i)) {
      i++;
    } else if ((int)tries < coll->spins) {
      cpu_threads_pause();
    } else if ((tries & 1023) != 0) {
      cpu_threads_yield();
    } else {
      CALX_TRY(cpu_coll_check_job(l, NULL));
      if (cpu_coll_peer_has_ended(coll, self->members[i]) &&
          is_inside(coll, self, i)) {
        return cpu_coll_peer_error(coll, self->members[i], NULL);
      }
      if (until == 0) until = deadline(l);
      if (cx_now_ns() > until) {
        return cx_error(
            CALX_DEADLINE_EXCEEDED,
            "after %lld ms device %u has not left the previous collective",
            (long long)cpu_coll_limit_ms(l),
            (unsigned)(self->members[i] + coll->topology.host_first));
      }
    }
  }
  if (cpu_coll_is_large(self->operand_bytes)) {
    cpu_coll_trim_operands(coll, self->slot);
  }
  self->operand_bytes = 0;
  self->n_members = 0;
  return NULL;
}

// ---- beginning and end ----

static void stop_polling(const cpu_coll *coll, cpu_coll_local_device *self)
{
  if (self->keeps_polling) cpu_coll_link_stop_polling(coll->link);
  self->keeps_polling = false;
}

static bool is_direct(const cpu_coll_participant *p)
{
  const cpu_coll_topology *t = &p->coll->topology;
  for (uint32_t i = 0; i < p->group->n; i++) {
    const uint32_t device = p->launch->devices[p->group->members[i]];
    if (device - t->own_first >= t->n_own) return false;
  }
  return true;
}

static calx_status *reserve_members(cpu_coll_local_device *self, uint32_t n)
{
  if (self->room >= n) return NULL;
  const size_t each = sizeof *self->host_groups + 2 * sizeof *self->members;
  void *grown = cx_realloc(self->host_groups, n * each);
  if (grown == NULL) return cx_out_of_memory();
  self->host_groups = grown;
  self->members = (uint32_t *)(self->host_groups + n);
  self->order = self->members + n;
  self->room = n;
  return NULL;
}

// Finds the members' slots, and sorts the members by hosts.
static calx_status *set_members(cpu_coll_participant *p)
{
  const cpu_coll *coll = p->coll;
  cpu_coll_local_device *self = p->self;
  uint32_t used = 0;
  CALX_TRY(reserve_members(self, p->group->n));
  for (uint32_t h = 0; h < coll->n_hosts; h++) {
    const uint32_t first = used;
    for (uint32_t i = 0; i < p->group->n; i++) {
      const uint32_t device = p->launch->devices[p->group->members[i]];
      if (device - coll->hosts[h].first >= coll->hosts[h].n) continue;
      self->members[i] = cpu_coll_slot(coll, device);
      if (i == p->group->me) {
        p->own_host_group = p->n_host_groups;
        p->local_index = used - first;
      }
      self->order[used++] = i;
    }
    if (used == first) continue;
    self->host_groups[p->n_host_groups++] =
        (cpu_coll_host_group){ h, used - first, self->order + first };
  }
  p->host_groups = self->host_groups;
  return NULL;
}

static calx_status *prepare_link(const cpu_coll_participant *p)
{
  if (p->coll->link == NULL) return NULL;
  // After a failed transfer MPI may still write to this host's segment. So
  // collectives within the host fail too.
  CALX_TRY(cpu_coll_link_error(p->coll->link));
  if (p->n_host_groups == 1) return NULL;
  if (!p->self->keeps_polling) cpu_coll_link_keep_polling(p->coll->link);
  p->self->keeps_polling = true;
  return NULL;
}

calx_status *cpu_coll_participant_begin(cpu_coll_participant *p,
                                        const cpu_coll_reducer *r)
{
  cpu_coll_launch *l = p->launch;
  cpu_coll_local_device *self = cpu_coll_self(l);
  p->coll = l->coll;
  p->self = self;
  p->direct = is_direct(p);
  if (self->generation != cpu_threads_generation()) {
    // In a forked child the parent's last collective has no other members.
    self->generation = cpu_threads_generation();
    self->n_members = 0;
  }
  CALX_TRY(wait_until_left(self, l));
  CALX_TRY(set_members(p));
  CALX_TRY(prepare_link(p));
  self->n_members = p->group->n;
  self->states = cpu_coll_states_of(p->coll, l->device_group);
  self->launch = l->number;
  self->step = cpu_coll_step(l->n_done, 0);
  self->reported = false;
  self->submission = p->submission;
  cpu_coll_state *s = &self->states[self->slot];
  cpu_coll_set_launch(s, l->number);
  cpu_coll_header_write(p, r, s);
  return NULL;
}

void cpu_coll_participant_end(cpu_coll_participant *p)
{
  stop_polling(p->coll, p->self);
  atomic_store(&cpu_coll_state_of(p, p->group->me)->step,
               cpu_coll_step(p->launch->n_done, 0));
}

void cpu_coll_end(cpu_coll_launch *l, const calx_status *how)
{
  if (l->devices == NULL) return;
  cpu_coll_local_device *self = cpu_coll_self(l);
  cpu_coll_state *states = cpu_coll_states_of(l->coll, l->device_group);
  stop_polling(l->coll, self);
  if (how != NULL) cpu_coll_publish_failure(l, how);
  atomic_store(&states[self->slot].ended, l->number);
  self->reported = false;
  cpu_coll_remote_ended(l, how != NULL);
  if (how == NULL && cpu_coll_is_large(self->operand_bytes)) {
    calx_status_free(wait_until_left(self, l));
  }
}

// ---- direct collectives ----
//
// A member works on the others' memory from when it has seen all members arrive
// at phase 1 until it arrives at phase 2. A member that fails withdraws: it
// publishes the failure, takes its arrival back, and waits until no other
// member is at phase 1. Such a member either has seen all arrive and works, or
// it will find the failure and withdraw as well. One that arrives later sees
// that this member has not arrived.

const cpu_coll_submission *cpu_coll_submission_of(const cpu_coll_participant *p,
                                                  uint32_t i)
{
  const uint32_t device = p->launch->devices[p->group->members[i]];
  CX_ASSERT(device - p->coll->topology.own_first < p->coll->topology.n_own);
  return p->coll->local[device - p->coll->topology.own_first].submission;
}

// Whether member i may be at work. A device that has submitted something else
// never works on this device's memory.
static bool may_work(const cpu_coll_participant *p, uint32_t i)
{
  const cpu_coll_state *s = cpu_coll_state_of(p, i);
  uint64_t x[CPU_COLL_FIELDS], y[CPU_COLL_FIELDS];
  if (atomic_load(&s->launch) != p->launch->number ||
      atomic_load(&s->step) != cpu_coll_step(p->launch->n_done, 1)) {
    return false;
  }
  cpu_coll_header_read(cpu_coll_state_of(p, p->group->me), x);
  cpu_coll_header_read(s, y);
  return memcmp(x, y, sizeof x) == 0;
}

calx_status *cpu_coll_participant_leave(cpu_coll_participant *p,
                                        calx_status *status)
{
  if (status != NULL) {
    cpu_coll_set_common(p, status);
  } else {
    status = cpu_coll_participant_wait(p);
  }
  if (status == NULL) return NULL;
  cpu_coll_publish_failure(p->launch, status);
  for (uint32_t i = 0; i < p->group->n; i++) {
    while (may_work(p, i)) cpu_threads_yield();
  }
  return status;
}
