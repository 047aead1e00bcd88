// world/agreement: how ranks agree, and how they learn that they cannot.
//
// An agreement costs each rank one write of its slot, one look at all slots
// and, for whoever comes last, one compare-exchange and a ring of the bell. The
// others spin for a moment where every rank has a core, then sleep on the bell,
// for at most 100 ms at a time, since the job's news do not ring it. Whoever
// finds a reason why it cannot succeed writes it as everybody's verdict.
#include "world/agreement.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "world/agreement_hosts.h"
#include "world/state.h"

enum {
  SPINS = 600,     // some 20 us
  SLEEP_MS = 100,  // at most, before the news are looked at again
  GRACE_MS = 1000  // for another's verdict that is being written
};

typedef struct visit {
  cx_world_agreement *board;
  const cx_world_proposal *a;
  uint64_t target;  // what `at` of all ranks must reach
  int64_t until;    // ns
  int spins;
  bool speaks;         // with the other hosts
  int64_t news_until;  // when the news are the last word; 0: none seen
} visit;

// ---- verdicts ---------------------------------------------------------------

typedef enum outcome { UNSETTLED, AGREED, REFUSED } outcome;

static outcome outcome_of(cx_world_agreement *b, uint64_t target)
{
  uint64_t decided = atomic_load(&b->decided), at = decided >> 1;
  bool failed = (decided & 1) != 0;
  if (cx_world_epoch(at) != cx_world_epoch(target)) return UNSETTLED;
  if (at > target || (at == target && !failed)) return AGREED;
  return failed ? REFUSED : UNSETTLED;
}

static bool decide(cx_world_agreement *b, uint64_t target, bool failed)
{
  uint64_t value = target << 1 | (failed ? 1 : 0);
  uint64_t old = atomic_load(&b->decided);
  while (old < value) {
    if (atomic_compare_exchange_weak(&b->decided, &old, value)) {
      cx_world_wake_all(&b->bell);
      return true;
    }
  }
  return false;
}

// The verdict as this rank's status.
static CX_COLD calx_status *status_of(const visit *v, int *out_differs)
{
  const cx_world_outcome *verdict = &v->board->verdict;
  if (out_differs != NULL && verdict->differ[0] >= 0) {
    bool first = cx_hash_equal(verdict->key, v->a->key);
    *out_differs = verdict->differ[first ? 1 : 0];
  }
  return cx_error((calx_code)verdict->code, "%s", verdict->text);
}

// Makes `found` everybody's verdict. NULL: look again, somebody settled it or
// is about to.
static CX_COLD calx_status *refuse(const visit *v, cx_world_outcome *found)
{
  cx_world_agreement *b = v->board;
  if (cx_world_global.groups > 1) {
    cx_world_fail((calx_code)found->code, found->text);
    const calx_window *head = cx_world_global.head;
    calx_code told = cx_world_segment_failed(head);
    if (told != CALX_OK) {
      if (strcmp(head->news, found->text) != 0) found->differ[0] = -1;
      found->code = (int32_t)told;
      snprintf(found->text, sizeof found->text, "%s", head->news);
    }
  }
  uint32_t free = 0;
  if (cx_world_epoch(atomic_load(&b->decided) >> 1) >
      cx_world_epoch(v->target)) {
    return cx_error((calx_code)found->code, "%s", found->text);
  }
  if (!atomic_compare_exchange_strong(&b->writing, &free, 1)) {
    // Whoever writes may have died of it; then each rank says what it knows.
    if (cx_now_ns() > v->until + (int64_t)GRACE_MS * 1000000 ||
        cx_world_segment_failed(cx_world_global.head) != CALX_OK) {
      if (outcome_of(b, v->target) != UNSETTLED) return NULL;
      return cx_error((calx_code)found->code, "%s", found->text);
    }
    cx_world_wake_wait(&b->bell, cx_world_wake_read(&b->bell), 1);
    return NULL;
  }
  if (outcome_of(b, v->target) == UNSETTLED) {
    b->verdict = *found;
    decide(b, v->target, true);
  }
  atomic_store(&b->writing, 0);
  return NULL;
}

// ---- what the slots say -----------------------------------------------------

typedef enum finding { WAITING, COMPLETE, DIFFERS, ENDED } finding;

static finding look(const visit *v, int *out_rank)
{
  cx_world_agreement *b = v->board;
  int ranks = (int)atomic_load(&b->ranks), ended = -1;
  bool missing = false;
  for (int r = 0; r < ranks; r++) {
    cx_world_rank_slot *s = &b->slots[r];
    uint64_t at = atomic_load(&s->at);
    if (r == v->a->rank) continue;
    if (cx_world_epoch(at) > cx_world_epoch(v->target)) {
      ended = ended < 0 ? r : ended;
    } else if (cx_world_epoch(at) < cx_world_epoch(v->target)) {
      missing = missing || cx_world_is_local(r);
    } else if (at < v->target) {
      bool runs = atomic_load(&s->state) == CX_WORLD_RANK_RUNS;
      if (!runs) ended = ended < 0 ? r : ended;
      missing = missing || (runs && cx_world_is_local(r));
    } else if (cx_world_is_local(r)) {
      cx_world_submission *brought = &s->brought[v->target & 1];
      cx_hash key = { atomic_load_explicit(&brought->low, memory_order_relaxed),
                      atomic_load_explicit(&brought->high,
                                           memory_order_relaxed) };
      if (!cx_hash_equal(key, v->a->key)) {
        *out_rank = r;
        return DIFFERS;
      }
    }
  }
  *out_rank = ended;
  if (ended >= 0) return ENDED;
  return missing ? WAITING : COMPLETE;
}

void cx_world_format_differs(cx_world_outcome *out, uint64_t count,
                             const int rank[2], const char *const what[2],
                             const cx_hash key[2])
{
  int first = rank[0] < rank[1] ? 0 : 1, second = 1 - first;
  char hex[2][33];
  cx_hash_hex(key[first], hex[0]);
  cx_hash_hex(key[second], hex[1]);
  out->code = CALX_ABORTED;
  out->differ[0] = rank[first];
  out->differ[1] = rank[second];
  out->key = key[first];
  snprintf(out->text, sizeof out->text,
           "the ranks do not do the same: rank %d came with %s (key %.16s), "
           "rank %d with %s (key %.16s), in their agreement %llu",
           rank[first], what[first], hex[0], rank[second], what[second], hex[1],
           (unsigned long long)count);
}

static CX_COLD void say_differs(const visit *v, int other,
                                cx_world_outcome *out)
{
  const cx_world_submission *brought =
      &v->board->slots[other].brought[v->target & 1];
  char what[CX_WORLD_OPERATION_BYTES];
  memcpy(what, brought->what, sizeof what);
  what[sizeof what - 1] = '\0';
  cx_hash theirs = { atomic_load(&brought->low), atomic_load(&brought->high) };
  cx_world_format_differs(
      out, cx_world_agreement_count(v->target), (int[]){ v->a->rank, other },
      (const char *[]){ v->a->what, what }, (cx_hash[]){ v->a->key, theirs });
}

static CX_COLD void say_ended(const visit *v, int rank, cx_world_outcome *out)
{
  cx_world_rank_slot *s = &v->board->slots[rank];
  uint64_t at = atomic_load(&s->at);
  out->code = CALX_ABORTED;
  bool later = cx_world_epoch(at) > cx_world_epoch(v->target);
  if (!later && atomic_load(&s->state) == CX_WORLD_RANK_FAILED) {
    char message[CX_WORLD_MESSAGE_BYTES];
    memcpy(message, s->message, sizeof message);
    message[sizeof message - 1] = '\0';
    snprintf(out->text, sizeof out->text, "rank %d failed: %s", rank, message);
    return;
  }
  char count[64] = "";
  if (!later) {
    unsigned long long n = (unsigned long long)cx_world_agreement_count(at);
    snprintf(count, sizeof count, " after %llu agreement%s of the ranks", n,
             n == 1 ? "" : "s");
  }
  snprintf(out->text, sizeof out->text,
           "rank %d has ended its function without an error%s, but rank %d "
           "waits for it at %s (agreement %llu): do the ranks have different "
           "numbers of batches?",
           rank, count, v->a->rank, v->a->what,
           (unsigned long long)cx_world_agreement_count(v->target));
}

// "rank 2", "ranks 2, 3, 5 and 4 more"; what has come to `target` is not
// missing.
static CX_COLD void say_missing(const visit *v, cx_world_outcome *out)
{
  enum { NAMED = 8 };
  cx_world_agreement *b = v->board;
  int missing[NAMED], count = 0;
  for (int r = 0; r < (int)atomic_load(&b->ranks); r++) {
    if (!cx_world_is_local(r) || atomic_load(&b->slots[r].at) >= v->target) {
      continue;
    }
    if (count < NAMED) missing[count] = r;
    count++;
  }
  char *text = out->text;
  size_t room = sizeof out->text, n;
  n = (size_t)snprintf(text, room, "rank%s", count == 1 ? "" : "s");
  for (int i = 0; i < count && i < NAMED; i++) {
    n += (size_t)snprintf(text + n, room - n, "%s %d", i == 0 ? "" : ",",
                          missing[i]);
  }
  if (count > NAMED) {
    n += (size_t)snprintf(text + n, room - n, " and %d more", count - NAMED);
  }
  if (count == 0) n = (size_t)snprintf(text, room, "other hosts' ranks");
  snprintf(
      text + n, room - n,
      " did not come in time to %s, where rank %d waited (its launch %llu)",
      v->a->what, v->a->rank,
      (unsigned long long)cx_world_agreement_count(v->target));
  out->code = CALX_DEADLINE_EXCEEDED;
}

// ---- waiting ----------------------------------------------------------------

// All ranks near this one have come, and it is this one that goes to meet the
// others. NULL: look again.
static calx_status *meet_hosts(const visit *v)
{
  cx_world_outcome found = { .differ = { -1, -1 } };
  bool last_time = cx_now_ns() >= v->until;
  switch (cx_world_hosts_agree(v->a, v->target, last_time, &found)) {
    case CX_WORLD_HOSTS_AGREE: decide(v->board, v->target, false); return NULL;
    case CX_WORLD_HOSTS_WAIT: return NULL;
    case CX_WORLD_HOSTS_FAIL: break;
  }
  return refuse(v, &found);
}

// Whether this rank speaks for all of its host: the first that asks.
static bool is_speaker(visit *v)
{
  uint64_t before = atomic_load(&v->board->meeting);
  if (!v->speaks && before < v->target) {
    v->speaks =
        atomic_compare_exchange_strong(&v->board->meeting, &before, v->target);
  }
  return v->speaks;
}

// The other hosts may have agreed before what the news tell came to pass; then
// who went to meet them is about to say so.
static bool is_about_to_agree(visit *v)
{
  bool away = cx_world_global.groups > 1 && !v->speaks &&
              atomic_load(&v->board->meeting) >= v->target;
  int64_t now = cx_now_ns();
  if (v->news_until == 0) v->news_until = now + (int64_t)GRACE_MS * 1000000;
  return away && now < v->news_until;
}

// One look at everything. NULL: nothing to say yet.
static calx_status *examine(visit *v, bool *out_sleep)
{
  *out_sleep = false;
  cx_world_outcome found = { .differ = { -1, -1 } };
  calx_code failed = cx_world_segment_failed(cx_world_global.head);
  if (failed != CALX_OK) {
    *out_sleep = is_about_to_agree(v);
    if (*out_sleep) return NULL;
    found.code = (int32_t)failed;
    snprintf(found.text, sizeof found.text, "%s", cx_world_global.head->news);
    return refuse(v, &found);
  }
  int rank;
  finding what = look(v, &rank);
  if (what == COMPLETE && cx_world_global.groups == 1) {
    decide(v->board, v->target, false);
    return NULL;
  }
  if (what == COMPLETE && is_speaker(v)) return meet_hosts(v);
  if (what == DIFFERS) say_differs(v, rank, &found);
  if (what == ENDED) say_ended(v, rank, &found);
  if (what == DIFFERS || what == ENDED) return refuse(v, &found);
  // Who speaks with the other hosts keeps the time for all of this one.
  int64_t grace = what == COMPLETE ? (int64_t)2 * GRACE_MS * 1000000 : 0;
  if (cx_now_ns() < v->until + grace) {
    *out_sleep = true;
    return NULL;
  }
  say_missing(v, &found);
  return refuse(v, &found);
}

static void wait_for_bell(visit *v, uint32_t read)
{
  for (; v->spins > 0; v->spins--) {
    if (cx_world_wake_read(&v->board->bell) != read) return;
    __builtin_ia32_pause();
  }
  int64_t left = (v->until - cx_now_ns()) / 1000000 + 1;
  if (left < 1) left = 1;
  cx_world_wake_wait(&v->board->bell, read, left < SLEEP_MS ? left : SLEEP_MS);
}

static calx_status *wait_until_settled(visit *v, int *out_differs)
{
  for (;;) {
    uint32_t read = cx_world_wake_read(&v->board->bell);
    switch (outcome_of(v->board, v->target)) {
      case AGREED: return NULL;
      case REFUSED: return status_of(v, out_differs);
      case UNSETTLED: break;
    }
    bool sleep;
    CALX_TRY(examine(v, &sleep));
    if (sleep) wait_for_bell(v, read);
  }
}

// ---- for everybody ----------------------------------------------------------

static calx_status *check_rank(const char *call, const cx_world_agreement *b,
                               int rank)
{
  const cx_world_info *here = &cx_world_global.place;
  int first = here->process * here->devices;
  if (rank >= first && rank < first + here->devices &&
      rank < (int)atomic_load(&b->ranks)) {
    return NULL;
  }
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%s: rank %d is not of this process, which has %d to %d",
                  call, rank, first, first + here->devices - 1);
}

static int spins_here(const cx_world_agreement *b)
{
  static _Atomic int cores;
  int n = atomic_load_explicit(&cores, memory_order_relaxed);
  if (n == 0) {
    n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store_explicit(&cores, n > 0 ? n : 1, memory_order_relaxed);
  }
  int ranks = (int)atomic_load_explicit(&b->ranks, memory_order_relaxed);
  return ranks <= n * cx_world_global.groups ? SPINS : 0;
}

calx_status *cx_world_agree(const cx_world_proposal *a, int64_t timeout_ms,
                            int *out_differs)
{
  if (out_differs != NULL) *out_differs = -1;
  cx_world_agreement *b = cx_world_global.board;
  if (b == NULL) return cx_world_failure();
  CALX_TRY(check_rank(a->what, b, a->rank));
  cx_world_rank_slot *own = &b->slots[a->rank];
  int64_t left = timeout_ms > 0 ? timeout_ms : 0;
  if (left > INT64_MAX / 4000000) left = INT64_MAX / 4000000;
  visit v = { .board = b,
              .a = a,
              .target = atomic_load(&own->at) + 1,
              .until = cx_now_ns() + left * 1000000,
              .spins = spins_here(b) };
  if (outcome_of(b, v.target) == REFUSED) return status_of(&v, out_differs);
  if (atomic_load(&own->state) != CX_WORLD_RANK_RUNS) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s: rank %d has ended, it takes part in nothing more",
                    a->what, a->rank);
  }
  cx_world_submission *brought = &own->brought[v.target & 1];
  atomic_store_explicit(&brought->low, a->key.low, memory_order_relaxed);
  atomic_store_explicit(&brought->high, a->key.high, memory_order_relaxed);
  snprintf(brought->what, sizeof brought->what, "%s", a->what);
  atomic_store(&own->at, v.target);
  return wait_until_settled(&v, out_differs);
}

void cx_world_agreement_note_end(cx_world_agreement *board, int rank,
                                 uint64_t at, cx_world_rank_state state,
                                 const char *message)
{
  cx_world_rank_slot *s = &board->slots[rank];
  snprintf(s->message, sizeof s->message, "%s", message);
  atomic_store(&s->at, at);
  atomic_store(&s->state, (uint32_t)state);
  cx_world_wake_all(&board->bell);
}

void cx_world_rank_end(int rank, const calx_status *how)
{
  cx_world_agreement *b = cx_world_global.board;
  if (b == NULL || rank < 0 || rank >= (int)atomic_load(&b->ranks)) return;
  cx_world_rank_state state =
      how != NULL ? CX_WORLD_RANK_FAILED : CX_WORLD_RANK_ENDED;
  const char *message = how != NULL ? calx_status_message(how) : "";
  uint64_t at = atomic_load(&b->slots[rank].at);
  cx_world_agreement_note_end(b, rank, at, state, message);
  if (cx_world_global.groups > 1)
    cx_world_hosts_report_end(rank, at, state, message);
}

void cx_world_agreement_reset(void)
{
  cx_world_agreement *b = cx_world_global.board;
  const cx_world_info *here = &cx_world_global.place;
  cx_world_global.launched = false;
  for (int i = 0; b != NULL && i < here->devices; i++) {
    cx_world_rank_slot *s = &b->slots[here->process * here->devices + i];
    uint64_t epoch = cx_world_epoch(atomic_load(&s->at));
    atomic_store(&s->state, CX_WORLD_RANK_RUNS);
    atomic_store(&s->at, (epoch + 1) << CX_WORLD_EPOCH_SHIFT);
  }
  if (b != NULL) cx_world_wake_all(&b->bell);
}
