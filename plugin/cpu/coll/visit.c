// coll/visit: how a device goes through a collective with those of other
// processes; see window.h.
//
// A visitor that waits first looks at the others' states, then lets others run,
// then sleeps on the bell of the group's first member, at most 100 ms at a
// time: in between it looks for what would keep somebody from coming, and at
// the job's news. Whoever comes last rings.
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/mpi_far.h"
#include "coll/say.h"
#include "coll/state.h"
#include "threads/threads.h"

enum { YIELDS = 20, FAR_YIELDS = 500, SLEEP_MS = 100, PHASE_BITS = 24 };

static uint64_t step_of(uint64_t index, uint64_t phase)
{
  return index << PHASE_BITS | phase;
}

// The place of a device of the program.
static uint32_t place_of(const cpu_coll *w, const cpu_coll_launch *l,
                         uint32_t device)
{
  return cpu_coll_place(w, l->devices[device]);
}

static cpu_coll_own *own_of(const cpu_coll *w, const cpu_coll_launch *l)
{
  return &w->own[l->devices[cpu_coll_device(l)] - w->share.own];
}

static cpu_coll_state *state_of(const cpu_coll_visit *v, uint32_t i)
{
  return &v->self->team[v->self->members[i]];
}

// ---- what is wrong ----

static calx_status *news_error(const cpu_coll *w, const cpu_coll_part *part)
{
  const uint32_t code = atomic_load(&w->news->failed);
  if (code == 0) return NULL;
  cx_text text = { 0 };
  if (part != NULL) {
    cpu_coll_put_part(&text, part);
    cx_text_append(&text, ": ");
  }
  cx_text_format(&text, "%.*s", CALX_WINDOW_NEWS, w->news->news);
  return cpu_coll_say((calx_code)code, &text);
}

// What a device says of its failed launch; false: it is another's by now.
static bool read_news(cpu_coll_state *s, uint64_t launch, cpu_coll_news *out)
{
  if (atomic_load(&s->failed) != launch) return false;
  cpu_coll_news_read(s, out);
  // Not a load: what was read before stays before.
  return atomic_fetch_or(&s->failed, 0) == launch;
}

static void put_news(cpu_coll_news *out, calx_code code, bool common,
                     const char *words)
{
  *out = (cpu_coll_news){ .code = (uint32_t)code, .common = common };
  memcpy(out->words, words, strnlen(words, sizeof out->words - 1));
}

// An error of all members, who then say it in these words.
static calx_status *common_error(const cpu_coll_visit *v, calx_code code,
                                 cx_text *text)
{
  v->self->told = true;
  put_news(&v->self->news, code, true, cx_text_str(text));
  return cpu_coll_say(code, text);
}

// Another device found that this one came with a different operation.
static calx_status *find_accuser(const cpu_coll_visit *v)
{
  cpu_coll_news *news = &v->self->news;
  const uint32_t me = cpu_coll_device_at(v->window, v->self->device) + 1;
  for (uint32_t i = 0; i < v->window->share.all; i++) {
    if (i == v->self->device ||
        !read_news(&v->self->team[i], v->launch->number, news) ||
        (news->differ[0] != me && news->differ[1] != me)) {
      continue;
    }
    v->self->told = true;
    return cx_error((calx_code)news->code, "%s", news->words);
  }
  return NULL;
}

// Member i will not come.
static calx_status *absent_error(const cpu_coll_visit *v, uint32_t i)
{
  cpu_coll_news *news = &v->self->news;
  cx_text text = { 0 };
  v->self->told = read_news(state_of(v, i), v->launch->number, news);
  if (!v->self->told || !news->common) {
    cpu_coll_put_part(&text, v->part);
    cx_text_append(&text, ": ");
  }
  if (v->self->told) {
    cx_text_append(&text, news->words);
    return cpu_coll_say((calx_code)news->code, &text);
  }
  cpu_coll_put_end(&text, v->launch, v->group->members[i], NULL);
  return cpu_coll_say(CALX_FAILED_PRECONDITION, &text);
}

static bool has_arrived(const cpu_coll_visit *v, uint32_t i, uint64_t step)
{
  const cpu_coll_state *s = state_of(v, i);
  return atomic_load(&s->launch) == v->launch->number &&
         atomic_load(&s->step) >= step;
}

// Those of other hosts only come; after that the members of each host wait for
// each other.
static bool is_awaited(const cpu_coll_visit *v, uint32_t i)
{
  return v->phase <= 1 || v->self->members[i] < v->window->share.n;
}

static bool has_failed(const cpu_coll_visit *v, uint32_t i)
{
  return atomic_load(&state_of(v, i)->failed) == v->launch->number;
}

// Failed, ended, or in a later launch; those who came are still where they
// were.
static bool is_absent(const cpu_coll_visit *v, uint32_t i, uint64_t step)
{
  const cpu_coll_state *s = state_of(v, i);
  const uint64_t launch = v->launch->number;
  if (!is_awaited(v, i)) return has_failed(v, i);
  return (has_failed(v, i) || atomic_load(&s->ended) >= launch ||
          atomic_load(&s->launch) > launch) &&
         !has_arrived(v, i, step);
}

typedef struct arrivals {
  const cpu_coll_visit *visit;
  uint64_t step;
} arrivals;

static bool has_come(const void *user, uint32_t member)
{
  const arrivals *a = user;
  return has_arrived(a->visit, member, a->step);
}

static calx_status *late_error(const cpu_coll_visit *v, uint64_t step)
{
  const arrivals a = { v, step };
  cx_text text = { 0 };
  cpu_coll_put_late(&text, v->part, v->launch->n_done,
                    cpu_coll_limit_ms(v->launch));
  cpu_coll_put_missing(&text, v->launch, v->group->members, v->group->n,
                       has_come, &a);
  // One whose time was over first has left where it had come to, after saying
  // why.
  for (uint32_t i = 0; i < v->group->n; i++) {
    if (has_failed(v, i)) {
      cx_text_free(&text);
      return absent_error(v, i);
    }
  }
  return common_error(v, CALX_DEADLINE_EXCEEDED, &text);
}

// ---- headers ----

// Devices a and b of the program came with x and y.
static calx_status *mismatch_error(const cpu_coll_visit *v, uint32_t a,
                                   const uint64_t *x, uint32_t b,
                                   const uint64_t *y)
{
  cx_text text = { 0 };
  cpu_coll_put_mismatch(&text, v->launch, a, x, b, y);
  calx_status *status = common_error(v, CALX_FAILED_PRECONDITION, &text);
  v->self->news.differ[0] = v->launch->devices[a] + 1;
  v->self->news.differ[1] = v->launch->devices[b] + 1;
  return status;
}

static calx_status *check_headers(const cpu_coll_visit *v)
{
  const uint32_t *members = v->group->members;
  uint64_t x[CPU_COLL_WORDS], y[CPU_COLL_WORDS];
  cpu_coll_header_read(state_of(v, 0), x);
  for (uint32_t i = 1; i < v->group->n; i++) {
    cpu_coll_header_read(state_of(v, i), y);
    if (memcmp(x, y, sizeof x) != 0) {
      return mismatch_error(v, members[0], x, members[i], y);
    }
  }
  return NULL;
}

// Whether the device is in the same collective, with a header to read.
static bool is_beside(const cpu_coll_visit *v, const cpu_coll_state *s)
{
  const uint64_t step = atomic_load(&s->step);
  return atomic_load(&s->launch) == v->launch->number &&
         step > step_of(v->launch->n_done, 0) &&
         step < step_of(v->launch->n_done + UINT64_C(1), 0);
}

// A device that this one does not wait for may wait for this one.
static calx_status *find_other_group(const cpu_coll_visit *v)
{
  const cpu_coll_launch *l = v->launch;
  const uint64_t me = UINT64_C(1) << (l->devices[cpu_coll_device(l)] & 63);
  uint64_t x[CPU_COLL_WORDS], y[CPU_COLL_WORDS];
  cpu_coll_header_read(&v->self->team[v->self->device], x);
  for (uint32_t i = 0; i < l->n_replicas * l->n_partitions; i++) {
    const cpu_coll_state *s = &v->self->team[place_of(v->window, l, i)];
    if (!is_beside(v, s)) continue;
    cpu_coll_header_read(s, y);
    if (is_beside(v, s) && (y[CPU_COLL_W_MEMBERS] & me) != 0 &&
        memcmp(x, y, sizeof x) != 0) {
      return mismatch_error(v, cpu_coll_device(l), x, i, y);
    }
  }
  return NULL;
}

// ---- waiting ----

// Why the wait for this step may be in vain.
static calx_status *find_trouble(const cpu_coll_visit *v, uint64_t step,
                                 int64_t until_ns)
{
  calx_status *status = news_error(v->window, v->part);
  if (status != NULL) return status;
  uint32_t absent = UINT32_MAX;
  for (uint32_t i = 0; i < v->group->n; i++) {
    if (!is_absent(v, i, step)) continue;
    absent = i;
    // One that failed says more than one that ended.
    if (has_failed(v, i)) break;
  }
  if (absent != UINT32_MAX) return absent_error(v, absent);
  CALX_TRY(find_accuser(v));
  CALX_TRY(find_other_group(v));
  return cx_now_ns() < until_ns ? NULL : late_error(v, step);
}

// From the first that has not; true: all have.
static bool all_arrived(const cpu_coll_visit *v, uint64_t step, uint32_t *from)
{
  while (*from < v->group->n &&
         (!is_awaited(v, *from) || has_arrived(v, *from, step))) {
    ++*from;
  }
  return *from == v->group->n;
}

void cpu_coll_ring(cpu_coll_state *s)
{
  atomic_fetch_add(&s->bell, 1);
  cpu_coll_wake(&s->bell);
}

// Sleeps until somebody rings who came last.
static void sleep_for(const cpu_coll_visit *v, uint64_t step, uint32_t *from,
                      int64_t until_ns)
{
  cpu_coll_state *leader = state_of(v, 0);
  const int64_t left = (until_ns - cx_now_ns()) / 1000000;
  const uint32_t read = atomic_load(&leader->bell);
  atomic_fetch_add(&leader->sleepers, 1);
  if (left >= 0 && !all_arrived(v, step, from)) {
    cpu_coll_sleep(&leader->bell, read, left < SLEEP_MS ? left + 1 : SLEEP_MS);
  }
  atomic_fetch_sub(&leader->sleepers, 1);
}

static int64_t deadline(const cpu_coll_launch *l)
{
  return cx_now_ns() + cpu_coll_limit_ms(l) * 1000000;
}

// Polls, then lets others run; true: all have arrived.
static bool poll_arrivals(const cpu_coll_visit *v, uint64_t step,
                          uint32_t *from)
{
  const bool far = v->phase == 1 && v->n_sides > 1;
  const int spins = far ? 0 : v->window->spins;
  for (int i = 0; i < spins && !all_arrived(v, step, from); i++) {
    cx_pool_relax();
  }
  const int yields = far ? FAR_YIELDS : YIELDS;
  for (int i = 0; i < yields && !all_arrived(v, step, from); i++) {
    if (far) cpu_coll_mpi_link_poll(v->window->link);
    cpu_coll_yield();
  }
  return *from == v->group->n;
}

calx_status *cpu_coll_visit_wait(cpu_coll_visit *v)
{
  uint32_t from = 0;
  const uint64_t step = step_of(v->launch->n_done, ++v->phase);
  // Of two that come last at least one sees both; and either those that sleep
  // saw it, or it sees them. For that all these accesses have one order.
  atomic_store(&state_of(v, v->group->me)->step, step);
  if (v->phase == 1 && v->n_sides > 1) cpu_coll_mpi_far_come(v);
  if (all_arrived(v, step, &from) && atomic_load(&state_of(v, 0)->sleepers)) {
    cpu_coll_ring(state_of(v, 0));
  }
  if (!poll_arrivals(v, step, &from)) {
    // All have come to a direct collective's second phase or will say why not.
    const int64_t until =
        v->direct && v->phase > 1 ? INT64_MAX : deadline(v->launch);
    while (!all_arrived(v, step, &from)) {
      CALX_TRY(find_trouble(v, step, until));
      sleep_for(v, step, &from, until);
    }
  }
  return v->phase == 1 ? check_headers(v) : NULL;
}

// ---- after a collective ----

// Whether a member of the last collective may still read this one's memory.
static bool is_inside(const cpu_coll *w, const cpu_coll_own *self, uint32_t i)
{
  const cpu_coll_state *s = &self->team[self->members[i]];
  if (self->members[i] == self->device || self->members[i] >= w->share.n) {
    return false;
  }
  if (atomic_load(&s->ended) >= self->launch) return false;
  // The step is read between two looks at the launch that it is of.
  if (atomic_load(&s->launch) != self->launch) return false;
  const uint64_t step = atomic_load(&s->step);
  return atomic_load(&s->launch) == self->launch && step > self->step &&
         step < self->step + (UINT64_C(1) << PHASE_BITS);
}

static calx_status *wait_until_left(cpu_coll *w, cpu_coll_own *self,
                                    const cpu_coll_launch *l)
{
  if (self->n_members == 0) return NULL;
  int64_t until = 0;
  for (uint32_t i = 0, tries = 0; i < self->n_members; tries++) {
    if (!is_inside(w, self, i)) {
      i++;
    } else if ((int)tries < w->spins) {
      cx_pool_relax();
    } else if ((tries & 1023) != 0) {
      cpu_coll_yield();
    } else {
      CALX_TRY(news_error(w, NULL));
      if (until == 0) until = deadline(l);
      if (cx_now_ns() > until) {
        return cx_error(CALX_DEADLINE_EXCEEDED,
                        "after %lld ms device %u has not left the collective "
                        "before",
                        (long long)cpu_coll_limit_ms(l),
                        (unsigned)(self->members[i] + w->share.first));
      }
    }
  }
  if (cpu_coll_is_large(self->used)) cpu_coll_trim_region(w, self->device);
  self->used = 0;
  self->n_members = 0;
  return NULL;
}

calx_status *cpu_coll_visit_trouble(const cpu_coll_visit *v)
{
  return find_trouble(v, step_of(v->launch->n_done, v->phase + 1), INT64_MAX);
}

// ---- the visit ----

static calx_status *begin_sides(cpu_coll_visit *v)
{
  cpu_coll_own *self = v->self;
  v->n_sides = 1;
  v->near = NULL;
  v->n_near = v->group->n;
  v->near_me = v->group->me;
  if (v->window->link == NULL) return NULL;
  // After a failure MPI may still write to this host's memory, too.
  CALX_TRY(cpu_coll_mpi_link_error(v->window->link));
  CALX_TRY(cpu_coll_mpi_far_sides(v));
  if (v->n_sides == 1) return NULL;
  if (!self->hurries) cpu_coll_mpi_link_hurry(v->window->link);
  self->hurries = true;
  return NULL;
}

static void end_hurry(const cpu_coll *w, cpu_coll_own *self)
{
  if (self->hurries) cpu_coll_mpi_link_relax(w->link);
  self->hurries = false;
}

static bool is_direct(const cpu_coll_visit *v)
{
  const cpu_coll_share *s = &v->launch->coll->share;
  for (uint32_t i = 0; i < v->group->n; i++) {
    const uint32_t device = v->launch->devices[v->group->members[i]];
    if (device - s->own >= s->n_own) return false;
  }
  return true;
}

calx_status *cpu_coll_visit_begin(cpu_coll_visit *v, const cpu_coll_reducer *r)
{
  cpu_coll_launch *l = v->launch;
  cpu_coll *w = l->coll;
  cpu_coll_own *self = own_of(w, l);
  v->window = w;
  v->self = self;
  v->phase = 0;
  v->direct = is_direct(v);
  if (self->born != cpu_threads_generation()) {
    // The collective that the parent was in at the fork does not go on.
    self->born = cpu_threads_generation();
    self->n_members = 0;
  }
  CALX_TRY(wait_until_left(w, self, l));
  if (self->room < v->group->n) {
    uint32_t *grown =
        cx_realloc(self->members, v->group->n * sizeof *self->members);
    if (grown == NULL) return cx_out_of_memory();
    self->members = grown;
    self->room = v->group->n;
  }
  CALX_TRY(begin_sides(v));
  for (uint32_t i = 0; i < v->group->n; i++) {
    self->members[i] = place_of(w, l, v->group->members[i]);
  }
  self->n_members = v->group->n;
  self->team = cpu_coll_states_of(w, l->team);
  self->launch = l->number;
  self->step = step_of(l->n_done, 0);
  self->told = false;
  self->part = v->part;
  cpu_coll_state *s = &self->team[self->device];
  // Its step means nothing until the launch is there.
  if (atomic_load(&s->launch) != l->number) {
    atomic_store(&s->step, 0);
    atomic_store(&s->launch, l->number);
  }
  cpu_coll_header_write(v, r, s);
  return NULL;
}

void cpu_coll_visit_end(cpu_coll_visit *v)
{
  end_hurry(v->window, v->self);
  atomic_store(&state_of(v, v->group->me)->step, step_of(v->launch->n_done, 0));
}

// ---- the end of a launch ----

static void write_news(cpu_coll_state *s, const cpu_coll_own *self,
                       const cpu_coll_launch *l, const calx_status *how)
{
  cpu_coll_news news = self->news;
  if (atomic_load(&s->failed) == l->number) return;
  if (!self->told) {
    cx_text text = { 0 };
    cpu_coll_put_end(&text, l, cpu_coll_device(l), cx_status_sentence(how));
    put_news(&news, CALX_ABORTED, false, cx_text_str(&text));
    cx_text_free(&text);
  }
  (void)atomic_exchange(&s->failed, 0);
  cpu_coll_news_write(s, &news);
  atomic_store(&s->failed, l->number);
}

// In this order: who misses it from now on sees why.
static void publish_failure(const cpu_coll_own *self, const cpu_coll_launch *l,
                            const calx_status *how)
{
  cpu_coll_state *team = cpu_coll_states_of(l->coll, l->team);
  cpu_coll_state *s = &team[self->device];
  write_news(s, self, l, how);
  if (atomic_load(&s->launch) == l->number) {
    atomic_store(&s->step, step_of(l->n_done, 0));
  }
}

static void ring_all(const cpu_coll_launch *l)
{
  cpu_coll_state *team = cpu_coll_states_of(l->coll, l->team);
  for (uint32_t i = 0; i < l->coll->share.all; i++) {
    if (atomic_load(&team[i].sleepers) != 0) cpu_coll_ring(&team[i]);
  }
}

void cpu_coll_end(cpu_coll_launch *l, const calx_status *how)
{
  if (l->devices == NULL) return;
  cpu_coll *w = l->coll;
  cpu_coll_own *self = own_of(w, l);
  end_hurry(w, self);
  if (how != NULL) publish_failure(self, l, how);
  atomic_store(&cpu_coll_states_of(w, l->team)[self->device].ended, l->number);
  self->told = false;
  cpu_coll_mpi_far_end(w, l, how != NULL);
  if (how != NULL) ring_all(l);
  if (how == NULL && cpu_coll_is_large(self->used)) {
    calx_status_free(wait_until_left(w, self, l));
  }
}

// ---- direct collectives ----
//
// The members' memory is used by others from when all have arrived in phase 1
// until they have arrived in phase 2. Who gives up first withdraws its arrival,
// with the reason, and then waits for the members that are in phase 1: such a
// one has seen all arrive and works, or else sees the reason and gives up, too.

const cpu_coll_part *cpu_coll_visit_part(const cpu_coll_visit *v, uint32_t i)
{
  const uint32_t device = v->launch->devices[v->group->members[i]];
  return v->window->own[device - v->window->share.own].part;
}

// Whether member i may work on this device's memory.
static bool may_work(const cpu_coll_visit *v, uint32_t i)
{
  const cpu_coll_state *s = state_of(v, i);
  uint64_t x[CPU_COLL_WORDS], y[CPU_COLL_WORDS];
  if (atomic_load(&s->launch) != v->launch->number ||
      atomic_load(&s->step) != step_of(v->launch->n_done, 1)) {
    return false;
  }
  cpu_coll_header_read(state_of(v, v->group->me), x);
  cpu_coll_header_read(s, y);
  return memcmp(x, y, sizeof x) == 0;
}

static calx_status *withdraw(cpu_coll_visit *v, calx_status *status)
{
  publish_failure(v->self, v->launch, status);
  ring_all(v->launch);
  for (uint32_t i = 0; i < v->group->n; i++) {
    while (may_work(v, i)) cpu_coll_yield();
  }
  return status;
}

calx_status *cpu_coll_visit_leave(cpu_coll_visit *v, calx_status *status)
{
  if (status != NULL && !v->self->told) {
    v->self->told = true;
    put_news(&v->self->news, calx_status_code(status), true,
             cx_status_sentence(status));
  }
  if (status == NULL) status = cpu_coll_visit_wait(v);
  return status == NULL ? NULL : withdraw(v, status);
}
