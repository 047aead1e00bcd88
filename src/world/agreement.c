// world/agreement: how ranks agree, and why an agreement fails.
//
// An agreement costs each rank one write of its slot and one read of all slots;
// the last rank to arrive adds one compare-exchange and one wake. The others
// spin for a moment if every rank has a core, and then sleep for at most
// SLEEP_MS at a time, because a failure of the job does not wake them. The
// first rank that finds a reason to fail writes it as the outcome for all.
#include "world/agreement.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "world/agreement_hosts.h"
#include "world/outcome.h"
#include "world/state.h"

enum {
  SPINS = 600,     // about 20 us
  SLEEP_MS = 100,  // between checks for a failure of the job
  GRACE_MS = 1000  // for an outcome that another rank is writing
};

// A rank in an agreement.
typedef struct participant {
  cx_world_agreement *memory;
  const cx_world_proposal *a;
  uint64_t target;  // the agreement: all ranks' `at` must reach it
  int64_t until;    // ns
  int spins;
  bool is_speaker;        // it exchanges keys with the other host groups
  int64_t failure_until;  // ns: an agreement found before still counts; 0: the
                          // job has not failed
} participant;

// ---- the outcome ------------------------------------------------------------

typedef enum decision { OPEN, AGREED, REFUSED } decision;

static decision decision_of(cx_world_agreement *m, uint64_t target)
{
  uint64_t decided = atomic_load(&m->decided), at = decided >> 1;
  bool failed = (decided & 1) != 0;
  if (cx_world_epoch(at) != cx_world_epoch(target)) return OPEN;
  if (at > target || (at == target && !failed)) return AGREED;
  return failed ? REFUSED : OPEN;
}

static void decide(cx_world_agreement *m, uint64_t target, bool failed)
{
  uint64_t value = target << 1 | (failed ? 1 : 0);
  uint64_t old = atomic_load(&m->decided);
  while (old < value) {
    if (atomic_compare_exchange_weak(&m->decided, &old, value)) {
      cx_world_wake_all(&m->wake);
      return;
    }
  }
}

// The failed outcome as a status for this rank.
static CX_COLD calx_status *status_of(const participant *p, int *out_differs)
{
  const cx_world_outcome *outcome = &p->memory->outcome;
  if (out_differs != NULL && outcome->differ[0] >= 0) {
    bool first = cx_hash_equal(outcome->key, p->a->key);
    *out_differs = outcome->differ[first ? 1 : 0];
  }
  return cx_error((calx_code)outcome->code, "%s", outcome->text);
}

// Fails the job, whose first failure may be another one.
static CX_COLD void fail_job(cx_world_outcome *found)
{
  cx_world_fail((calx_code)found->code, found->text);
  const calx_segment_head *head = cx_world_global.head;
  calx_code first = cx_world_segment_failed(head);
  if (first == CALX_OK) return;
  if (strcmp(head->message, found->text) != 0) found->differ[0] = -1;
  cx_world_outcome_set(found, first, head->message);
}

// Makes `found` the outcome for all ranks. NULL: the caller checks again, since
// another rank has decided or is about to.
static CX_COLD calx_status *refuse(const participant *p,
                                   cx_world_outcome *found)
{
  cx_world_agreement *m = p->memory;
  if (cx_world_global.groups > 1) fail_job(found);
  uint32_t nobody = 0;
  if (cx_world_epoch(atomic_load(&m->decided) >> 1) >
      cx_world_epoch(p->target)) {
    return cx_error((calx_code)found->code, "%s", found->text);
  }
  if (!atomic_compare_exchange_strong(&m->writing, &nobody, 1)) {
    // The rank that writes may have died; then each rank returns its own
    // finding.
    if (cx_now_ns() > p->until + (int64_t)GRACE_MS * 1000000 ||
        cx_world_segment_failed(cx_world_global.head) != CALX_OK) {
      if (decision_of(m, p->target) != OPEN) return NULL;
      return cx_error((calx_code)found->code, "%s", found->text);
    }
    cx_world_wake_wait(&m->wake, cx_world_wake_read(&m->wake), 1);
    return NULL;
  }
  if (decision_of(m, p->target) == OPEN) {
    m->outcome = *found;
    decide(m, p->target, true);
  }
  atomic_store(&m->writing, 0);
  return NULL;
}

// ---- the slots --------------------------------------------------------------

typedef enum finding { WAITING, COMPLETE, DIFFERS, ENDED } finding;

// DIFFERS and ENDED give the rank.
static finding read_slots(const participant *p, int *out_rank)
{
  cx_world_agreement *m = p->memory;
  int ranks = (int)atomic_load(&m->ranks), ended = -1;
  bool missing = false;
  for (int r = 0; r < ranks; r++) {
    cx_world_rank_slot *s = &m->slots[r];
    uint64_t at = atomic_load(&s->at);
    if (r == p->a->rank) continue;
    if (cx_world_epoch(at) > cx_world_epoch(p->target)) {
      ended = ended < 0 ? r : ended;
    } else if (cx_world_epoch(at) < cx_world_epoch(p->target)) {
      missing = missing || cx_world_is_local(r);
    } else if (at < p->target) {
      bool runs = atomic_load(&s->state) == CX_WORLD_RANK_RUNS;
      if (!runs) ended = ended < 0 ? r : ended;
      missing = missing || (runs && cx_world_is_local(r));
    } else if (cx_world_is_local(r)) {
      cx_hash key = cx_world_submission_key(&s->submissions[p->target & 1]);
      if (!cx_hash_equal(key, p->a->key)) {
        *out_rank = r;
        return DIFFERS;
      }
    }
  }
  *out_rank = ended;
  if (ended >= 0) return ENDED;
  return missing ? WAITING : COMPLETE;
}

static CX_COLD void set_differs(const participant *p, int rank,
                                cx_world_outcome *out)
{
  const cx_world_submission *s =
      &p->memory->slots[rank].submissions[p->target & 1];
  cx_world_rank_key own = cx_world_rank_key_of(p->a);
  cx_world_rank_key other = { .key = cx_world_submission_key(s), .rank = rank };
  memcpy(other.what, s->what, sizeof other.what - 1);
  cx_world_outcome_differs(out, p->target, &own, &other);
}

static CX_COLD void set_ended(const participant *p, int rank,
                              cx_world_outcome *out)
{
  cx_world_rank_slot *s = &p->memory->slots[rank];
  uint64_t at = atomic_load(&s->at);
  if (cx_world_epoch(at) > cx_world_epoch(p->target) ||
      atomic_load(&s->state) != CX_WORLD_RANK_FAILED) {
    cx_world_outcome_ended(out, p->a, p->target, rank, at);
    return;
  }
  char message[CX_WORLD_MESSAGE_BYTES] = "";
  memcpy(message, s->message, sizeof message - 1);
  cx_world_outcome_failed(out, rank, message);
}

static CX_COLD void set_late(const participant *p, cx_world_outcome *out)
{
  cx_world_agreement *m = p->memory;
  cx_text_numbers missing = { 0 };
  cx_text who = { 0 };
  for (int r = 0; r < (int)atomic_load(&m->ranks); r++) {
    if (cx_world_is_local(r) && atomic_load(&m->slots[r].at) < p->target) {
      cx_text_numbers_add(&missing, r);
    }
  }
  if (missing.count > 0) {
    cx_text_append_numbers(&who, "rank", "ranks", &missing);
  } else {
    cx_text_append(&who, "the ranks of other hosts");
  }
  cx_world_outcome_late(out, p->a, p->target, cx_text_str(&who));
  cx_text_free(&who);
}

// ---- waiting ----------------------------------------------------------------

// All ranks of this group have arrived, and this one asks the other groups.
// NULL: the caller checks again.
static calx_status *ask_hosts(const participant *p)
{
  cx_world_outcome found = { .differ = { -1, -1 } };
  bool last_time = cx_now_ns() >= p->until;
  switch (cx_world_hosts_agree(p->a, p->target, last_time, &found)) {
    case CX_WORLD_HOSTS_AGREE: decide(p->memory, p->target, false); return NULL;
    case CX_WORLD_HOSTS_WAIT: return NULL;
    case CX_WORLD_HOSTS_FAIL: break;
  }
  return refuse(p, &found);
}

// The first rank that calls this becomes its group's speaker.
static bool is_speaker(participant *p)
{
  uint64_t before = atomic_load(&p->memory->exchanged);
  if (!p->is_speaker && before < p->target) {
    p->is_speaker = atomic_compare_exchange_strong(&p->memory->exchanged,
                                                   &before, p->target);
  }
  return p->is_speaker;
}

// The host groups may have agreed before the job failed; the speaker is then
// about to write it.
static bool may_still_agree(participant *p)
{
  bool asked = cx_world_global.groups > 1 && !p->is_speaker &&
               atomic_load(&p->memory->exchanged) >= p->target;
  int64_t now = cx_now_ns();
  if (p->failure_until == 0) {
    p->failure_until = now + (int64_t)GRACE_MS * 1000000;
  }
  return asked && now < p->failure_until;
}

// Checks everything once. NULL: there is no failure for this rank to return.
static calx_status *check_all(participant *p, bool *out_sleep)
{
  *out_sleep = false;
  cx_world_outcome found = { .differ = { -1, -1 } };
  calx_code failed = cx_world_segment_failed(cx_world_global.head);
  if (failed != CALX_OK) {
    *out_sleep = may_still_agree(p);
    if (*out_sleep) return NULL;
    cx_world_outcome_set(&found, failed, cx_world_global.head->message);
    return refuse(p, &found);
  }
  int rank;
  finding what = read_slots(p, &rank);
  if (what == COMPLETE && cx_world_global.groups == 1) {
    decide(p->memory, p->target, false);
    return NULL;
  }
  if (what == COMPLETE && is_speaker(p)) return ask_hosts(p);
  // The speaker keeps the time limit for its group.
  int64_t grace = what == COMPLETE ? (int64_t)2 * GRACE_MS * 1000000 : 0;
  if (what == DIFFERS) {
    set_differs(p, rank, &found);
  } else if (what == ENDED) {
    set_ended(p, rank, &found);
  } else if (cx_now_ns() >= p->until + grace) {
    set_late(p, &found);
  } else {
    *out_sleep = true;
    return NULL;
  }
  return refuse(p, &found);
}

static void wait_for_wake(participant *p, uint32_t read)
{
  for (; p->spins > 0; p->spins--) {
    if (cx_world_wake_read(&p->memory->wake) != read) return;
    __builtin_ia32_pause();
  }
  int64_t left = (p->until - cx_now_ns()) / 1000000 + 1;
  if (left < 1) left = 1;
  cx_world_wake_wait(&p->memory->wake, read, left < SLEEP_MS ? left : SLEEP_MS);
}

static calx_status *wait_until_decided(participant *p, int *out_differs)
{
  for (;;) {
    uint32_t read = cx_world_wake_read(&p->memory->wake);
    switch (decision_of(p->memory, p->target)) {
      case AGREED: return NULL;
      case REFUSED: return status_of(p, out_differs);
      case OPEN: break;
    }
    bool sleep;
    CALX_TRY(check_all(p, &sleep));
    if (sleep) wait_for_wake(p, read);
  }
}

// ---- the interface ----------------------------------------------------------

static calx_status *check_rank(const cx_world_proposal *a, int ranks)
{
  const cx_world_info *self = &cx_world_global.info;
  int first = self->process * self->devices, end = first + self->devices;
  if (a->rank >= first && a->rank < end && a->rank < ranks) return NULL;
  return cx_invalid("%s: rank %d is not of this process, which has %d to %d",
                    a->what, a->rank, first, end - 1);
}

// Spinning helps only where each rank has a core.
static int count_spins(int ranks)
{
  static _Atomic int cores;
  int n = atomic_load_explicit(&cores, memory_order_relaxed);
  if (n == 0) {
    n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store_explicit(&cores, n > 0 ? n : 1, memory_order_relaxed);
  }
  return ranks <= n * cx_world_global.groups ? SPINS : 0;
}

calx_status *cx_world_agree(const cx_world_proposal *a, int64_t timeout_ms,
                            int *out_differs)
{
  if (out_differs != NULL) *out_differs = -1;
  cx_world_agreement *m = cx_world_global.agreement;
  if (m == NULL) return cx_world_failure();
  int ranks = (int)atomic_load_explicit(&m->ranks, memory_order_relaxed);
  CALX_TRY(check_rank(a, ranks));
  cx_world_rank_slot *own = &m->slots[a->rank];
  int64_t left = timeout_ms > 0 ? timeout_ms : 0;
  if (left > INT64_MAX / 4000000) left = INT64_MAX / 4000000;
  participant p = { .memory = m,
                    .a = a,
                    .target = atomic_load(&own->at) + 1,
                    .until = cx_now_ns() + left * 1000000,
                    .spins = count_spins(ranks) };
  if (decision_of(m, p.target) == REFUSED) return status_of(&p, out_differs);
  if (atomic_load(&own->state) != CX_WORLD_RANK_RUNS) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s: rank %d has ended and can take part in no agreement",
                    a->what, a->rank);
  }
  cx_world_submission *s = &own->submissions[p.target & 1];
  atomic_store_explicit(&s->low, a->key.low, memory_order_relaxed);
  atomic_store_explicit(&s->high, a->key.high, memory_order_relaxed);
  snprintf(s->what, sizeof s->what, "%s", a->what);
  atomic_store(&own->at, p.target);
  return wait_until_decided(&p, out_differs);
}

void cx_world_agreement_reset(void)
{
  cx_world_agreement *m = cx_world_global.agreement;
  const cx_world_info *self = &cx_world_global.info;
  cx_world_global.launched = false;
  for (int i = 0; m != NULL && i < self->devices; i++) {
    cx_world_rank_slot *s = &m->slots[self->process * self->devices + i];
    uint64_t epoch = cx_world_epoch(atomic_load(&s->at));
    atomic_store(&s->state, CX_WORLD_RANK_RUNS);
    atomic_store(&s->at, (epoch + 1) << CX_WORLD_EPOCH_SHIFT);
  }
  if (m != NULL) cx_world_wake_all(&m->wake);
}
