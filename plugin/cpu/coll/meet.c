// coll/meet: see meet.h. One lock for a client's circles: it is held to come
// and to go, never during the work. A member first looks at the circle's state
// for some microseconds without it, then sleeps on the circle's condition.
//
// A meeting is one run of an executable: a seat for each of its devices, with
// how its launch ended. It is freed when all have ended. Where some never
// start, it stays, so that late ones are told at once; of such the client keeps
// the newest few.
#include "coll/meet.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"
#include "coll/reduce.h"
#include "coll/say.h"
#include "coll/state.h"
#include "coll/window.h"
#include "hlo/ops.h"
#include "hlo/print.h"
#include "threads/threads.h"

enum { SPINS = 1000, YIELDS = 20, STALE_MEETINGS = 64 };

typedef enum stage {
  OPEN,    // some have not come
  CLOSED,  // all have come and are at work
  DONE,    // all have finished
  BROKEN   // one will not come
} stage;

struct cpu_coll_circle {
  cpu_coll_circle *next;  // of the meeting
  atomic_int stage;
  cx_cond changed;
  uint32_t index;  // which collective of the launch
  uint32_t n, n_come, n_finished, n_inside;
  calx_status *failed;
  uint32_t *members;      // n
  bool *come;             // n
  cpu_coll_part parts[];  // n
};

typedef struct seat {
  bool ended;
  calx_status *how;  // a copy; NULL: well
} seat;

typedef struct meeting {
  struct meeting *next;  // of the client, newest first
  uint64_t executable, run;
  cpu_coll_circle *circles;
  uint32_t n_seats, n_ended, n_inside;
  seat seats[];
} meeting;

struct cpu_coll {
  cx_mutex lock;
  uint32_t cores;
  meeting *meetings;
  cpu_coll_window *window;  // NULL: there are no other processes
};

calx_status *cpu_coll_new(cpu_coll **out)
{
  *out = cx_calloc(1, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  cx_mutex_init(&(*out)->lock);
  (*out)->cores = (uint32_t)cpu_threads_cores();
  return NULL;
}

static void meeting_free(meeting *m)
{
  for (uint32_t i = 0; i < m->n_seats; i++) calx_status_free(m->seats[i].how);
  cx_free(m);
}

void cpu_coll_free(cpu_coll *coll)
{
  if (coll == NULL) return;
  while (coll->meetings != NULL) {
    meeting *m = coll->meetings;
    coll->meetings = m->next;
    meeting_free(m);
  }
  cpu_coll_window_free(coll->window);
  cx_mutex_free(&coll->lock);
  cx_free(coll);
}

calx_status *cpu_coll_join(cpu_coll *coll, const cpu_coll_share *share)
{
  return cpu_coll_window_new(share, &coll->window);
}

cpu_coll_window *cpu_coll_window_of(const cpu_coll *coll)
{
  return coll->window;
}

// ---- meetings (under the lock) ----

static void meeting_remove(cpu_coll *coll, meeting *m)
{
  meeting **at = &coll->meetings;
  while (*at != m) at = &(*at)->next;
  *at = m->next;
  meeting_free(m);
}

// A meeting whose devices have ended or never started is idle; all but the
// newest few of those go.
static void drop_stale(cpu_coll *coll)
{
  size_t idle = 0;
  for (meeting **at = &coll->meetings; *at != NULL;) {
    meeting *m = *at;
    if (m->n_inside != 0 || m->n_ended == 0 || ++idle <= STALE_MEETINGS) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    meeting_free(m);
  }
}

static meeting *meeting_of(cpu_coll_launch *l, bool make)
{
  for (meeting *m = l->coll->meetings; m != NULL; m = m->next) {
    if (m->executable == l->executable && m->run == l->run) return m;
  }
  if (!make) return NULL;
  drop_stale(l->coll);
  const size_t n = (size_t)l->n_replicas * l->n_partitions;
  meeting *m = cx_calloc(1, sizeof *m + n * sizeof *m->seats);
  if (m == NULL) return NULL;
  m->executable = l->executable;
  m->run = l->run;
  m->n_seats = (uint32_t)n;
  m->next = l->coll->meetings;
  l->coll->meetings = m;
  return m;
}

// ---- messages ----

static bool has_come(const void *user, uint32_t member)
{
  return ((const cpu_coll_circle *)user)->come[member];
}

static calx_status *late_error(const cpu_coll_launch *l,
                               const cpu_coll_circle *c,
                               const cpu_coll_part *part, int64_t ms)
{
  cx_text text = { 0 };
  cpu_coll_put_late(&text, part, c->index, ms);
  cpu_coll_put_missing(&text, l, c->members, c->n, has_come, c);
  return cpu_coll_say(CALX_DEADLINE_EXCEEDED, &text);
}

static calx_status *ended_error(const cpu_coll_launch *l,
                                const cpu_coll_part *part, uint32_t device,
                                const calx_status *how)
{
  cx_text text = { 0 };
  cpu_coll_put_part(&text, part);
  cx_text_append(&text, ": ");
  cpu_coll_put_end(&text, l, device,
                   how == NULL ? NULL : calx_status_message(how));
  return cpu_coll_say(how == NULL ? CALX_FAILED_PRECONDITION : CALX_ABORTED,
                      &text);
}

static calx_status *mismatch_error(const cpu_coll_launch *l, uint32_t a,
                                   const cpu_coll_part *pa, uint32_t b,
                                   const cpu_coll_part *pb, uint32_t index)
{
  cx_text text = { 0 }, one = { 0 }, two = { 0 };
  cpu_coll_put_part(&one, pa);
  cpu_coll_put_part(&two, pb);
  cpu_coll_put_difference(&text, l, index, a, &one, b, &two);
  if (pa->op->kind == pb->op->kind) {
    cx_text_append(&text, ", with other attributes or regions");
  }
  return cpu_coll_say(CALX_FAILED_PRECONDITION, &text);
}

// ---- circles (under the lock) ----

static bool same_attributes(const cx_hlo_op *a, const cx_hlo_op *b)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(a->kind);
  cx_text x = { 0 }, y = { 0 };
  for (size_t i = 0; i < info->n_attrs; i++) {
    if (a->attrs[i] != NULL) cx_hlo_attr_print(&x, a->attrs[i]);
    if (b->attrs[i] != NULL) cx_hlo_attr_print(&y, b->attrs[i]);
    cx_text_char(&x, '\n');
    cx_text_char(&y, '\n');
  }
  const bool same = !cx_text_failed(&x) && !cx_text_failed(&y) &&
                    x.size == y.size &&
                    strcmp(cx_text_str(&x), cx_text_str(&y)) == 0;
  cx_text_free(&x);
  cx_text_free(&y);
  return same;
}

// Devices may come to a collective from different places of a program.
static bool same_part(const cpu_coll_part *a, const cpu_coll_part *b)
{
  if (a->op == b->op) return true;
  if (a->op->kind != b->op->kind || a->op->n_operands != b->op->n_operands ||
      !same_attributes(a->op, b->op)) {
    return false;
  }
  for (uint32_t i = 0; i < a->op->n_operands; i++) {
    if (!cx_hlo_type_equal(&a->operands[i].type, &b->operands[i].type)) {
      return false;
    }
  }
  const cpu_coll_reducer x = cpu_coll_reducer_of(a->module, a->op);
  const cpu_coll_reducer y = cpu_coll_reducer_of(b->module, b->op);
  return a->op->n_regions == 0 || cpu_coll_reducer_same(&x, &y);
}

static cpu_coll_circle *circle_new(meeting *m, uint32_t index,
                                   const cpu_coll_group *g)
{
  const size_t n = g->n;
  cpu_coll_circle *c = cx_calloc(
      1, sizeof *c +
             n * (sizeof *c->parts + sizeof *c->members + sizeof *c->come));
  if (c == NULL) return NULL;
  c->members = (uint32_t *)(c->parts + n);
  c->come = (bool *)(c->members + n);
  memcpy(c->members, g->members, n * sizeof *c->members);
  c->index = index;
  c->n = g->n;
  cx_cond_init(&c->changed);
  c->next = m->circles;
  m->circles = c;
  return c;
}

// The last one out.
static void circle_drop(meeting *m, cpu_coll_circle *c)
{
  if (--c->n_inside != 0) return;
  cpu_coll_circle **at = &m->circles;
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  cx_cond_free(&c->changed);
  calx_status_free(c->failed);
  cx_free(c);
}

static void circle_set(cpu_coll_circle *c, stage s)
{
  atomic_store_explicit(&c->stage, (int)s, memory_order_release);
  cx_cond_broadcast(&c->changed);
}

static stage circle_stage(cpu_coll_circle *c)
{
  return (stage)atomic_load_explicit(&c->stage, memory_order_acquire);
}

// Takes the status; the first one stays.
static void circle_break(cpu_coll_circle *c, calx_status *status)
{
  if (c->failed == NULL) {
    c->failed = status;
  } else {
    calx_status_free(status);
  }
  circle_set(c, BROKEN);
}

static bool has_member(const uint32_t *members, uint32_t n, uint32_t device)
{
  for (uint32_t i = 0; i < n; i++) {
    if (members[i] == device) return true;
  }
  return false;
}

// Some member of `c` that has come.
static uint32_t one_inside(const cpu_coll_circle *c)
{
  uint32_t i = 0;
  while (!c->come[i]) i++;
  return i;
}

// An open circle at this index of which a member is in `g`, or that waits for
// `device`: the one to join, or one whose operation is another.
static cpu_coll_circle *circle_find(const meeting *m, uint32_t index,
                                    const cpu_coll_group *g, uint32_t device)
{
  for (cpu_coll_circle *c = m->circles; c != NULL; c = c->next) {
    if (c->index != index || circle_stage(c) != OPEN) continue;
    if (has_member(c->members, c->n, device)) return c;
    for (uint32_t i = 0; i < c->n; i++) {
      if (c->come[i] && has_member(g->members, g->n, c->members[i])) {
        return c;
      }
    }
  }
  return NULL;
}

static bool same_group(const cpu_coll_circle *c, const cpu_coll_group *g)
{
  return c->n == g->n &&
         memcmp(c->members, g->members, g->n * sizeof *g->members) == 0;
}

// A member whose launch is over will not come.
static calx_status *find_ended(const cpu_coll_launch *l, const meeting *m,
                               const cpu_coll_group *g,
                               const cpu_coll_part *part)
{
  const seat *found = NULL;
  uint32_t device = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const seat *s = &m->seats[g->members[i]];
    // One that failed says more than one that ended.
    if (!s->ended || (found != NULL && s->how == NULL)) continue;
    found = s;
    device = g->members[i];
    if (s->how != NULL) break;
  }
  return found == NULL ? NULL : ended_error(l, part, device, found->how);
}

// ---- waiting ----

static void spin_while(const cpu_coll *coll, cpu_coll_circle *c, stage s)
{
  // With more members than cores those that are awaited need one.
  const int spins = c->n <= coll->cores ? SPINS : 0;
  for (int i = 0; i < spins && circle_stage(c) == s; i++) cx_pool_relax();
  for (int i = 0; i < YIELDS && circle_stage(c) == s; i++) cpu_coll_yield();
}

// Under the lock; returns with it. The stage is OPEN no more, or the time is
// over.
static void wait_open(cpu_coll *coll, cpu_coll_circle *c, int64_t until_ns)
{
  while (circle_stage(c) == OPEN) {
    const int64_t left = until_ns - cx_now_ns();
    if (left <= 0) return;
    cx_cond_wait_ms(&c->changed, &coll->lock, left / 1000000 + 1);
  }
}

// Joins the circle; the lock is held. The status is the caller's alone.
static calx_status *join(cpu_coll_launch *l, meeting *m,
                         const cpu_coll_group *g, const cpu_coll_part *part,
                         cpu_coll_circle **out)
{
  const uint32_t device = cpu_coll_device(l);
  calx_status *ended = find_ended(l, m, g, part);
  if (ended != NULL) return ended;
  cpu_coll_circle *c = circle_find(m, l->n_done, g, device);
  if (c != NULL) {
    const uint32_t other = one_inside(c);
    if (!same_group(c, g) || !same_part(&c->parts[other], part)) {
      calx_status *status = mismatch_error(
          l, c->members[other], &c->parts[other], device, part, c->index);
      circle_break(c, cx_status_copy(status));
      return status;
    }
  } else {
    c = circle_new(m, l->n_done, g);
    if (c == NULL) return cx_out_of_memory();
  }
  c->parts[g->me] = *part;
  c->come[g->me] = true;
  c->n_inside++;
  if (++c->n_come == c->n) circle_set(c, CLOSED);
  *out = c;
  return NULL;
}

calx_status *cpu_coll_enter(cpu_coll_launch *l, const cpu_coll_group *group,
                            const cpu_coll_part *part, cpu_coll_circle **out)
{
  const int64_t ms = cpu_coll_limit_ms(l);
  const int64_t until = cx_now_ns() + ms * 1000000;
  cpu_coll *coll = l->coll;
  cpu_coll_circle *c = NULL;
  cx_lock(&coll->lock);
  meeting *m = l->meeting;
  if (m == NULL) {
    m = meeting_of(l, true);
    if (m != NULL) m->n_inside++;
    l->meeting = m;
  }
  calx_status *status =
      m == NULL ? cx_out_of_memory() : join(l, m, group, part, &c);
  if (status == NULL && circle_stage(c) == OPEN) {
    cx_unlock(&coll->lock);
    spin_while(coll, c, OPEN);
    cx_lock(&coll->lock);
    wait_open(coll, c, until);
    if (circle_stage(c) == OPEN) circle_break(c, late_error(l, c, part, ms));
    if (circle_stage(c) == BROKEN) {
      status = cx_status_copy(c->failed);
      circle_drop(m, c);
    }
  }
  cx_unlock(&coll->lock);
  *out = status == NULL ? c : NULL;
  return status;
}

const cpu_coll_part *cpu_coll_parts(const cpu_coll_circle *circle)
{
  return circle->parts;
}

calx_status *cpu_coll_leave(cpu_coll_launch *l, cpu_coll_circle *c,
                            calx_status *failed)
{
  cpu_coll *coll = l->coll;
  cx_lock(&coll->lock);
  if (failed != NULL && c->failed == NULL) {
    c->failed = failed;
    failed = NULL;
  }
  if (++c->n_finished == c->n) circle_set(c, DONE);
  if (circle_stage(c) != DONE) {
    cx_unlock(&coll->lock);
    spin_while(coll, c, CLOSED);
    cx_lock(&coll->lock);
    // Without a limit: all are here, and their work comes to an end.
    while (circle_stage(c) != DONE) cx_cond_wait(&c->changed, &coll->lock);
  }
  calx_status *status = cx_status_copy(c->failed);
  circle_drop(l->meeting, c);
  cx_unlock(&coll->lock);
  calx_status_free(failed);
  if (status == NULL) l->n_done++;
  return status;
}

// ---- the end of a launch ----

static void break_waiting(const cpu_coll_launch *l, meeting *m, uint32_t device,
                          const calx_status *how)
{
  for (cpu_coll_circle *c = m->circles; c != NULL; c = c->next) {
    if (circle_stage(c) != OPEN || !has_member(c->members, c->n, device)) {
      continue;
    }
    circle_break(c, ended_error(l, &c->parts[one_inside(c)], device, how));
  }
}

void cpu_coll_end(cpu_coll_launch *l, const calx_status *how)
{
  cpu_coll_visits_over(l, how);
  if ((uint64_t)l->n_replicas * l->n_partitions <= 1 && l->meeting == NULL) {
    return;
  }
  const uint32_t device = cpu_coll_device(l);
  cpu_coll *coll = l->coll;
  cx_lock(&coll->lock);
  // Without memory for a new one there is nobody told, but by time.
  meeting *m = l->meeting == NULL ? meeting_of(l, true) : l->meeting;
  if (m != NULL && device < m->n_seats && !m->seats[device].ended) {
    if (l->meeting != NULL) m->n_inside--;
    m->seats[device].ended = true;
    m->seats[device].how = cx_status_copy(how);
    m->n_ended++;
    break_waiting(l, m, device, how);
    if (m->n_ended == m->n_seats) meeting_remove(coll, m);
  }
  l->meeting = NULL;
  cx_unlock(&coll->lock);
}
