// coll/mpi_link: turns at MPI, and the thread that takes those that nobody else
// does.
#include "coll/mpi_link.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "coll/mpi_load.h"
#include "coll/state.h"

enum {
  MESSAGES = 1,
  LOOK_TURNS = 64,
  IDLE_MS = 1,
  LOOK_MS = 20,
  SLEEP_MS = 20,
  END_MS = 10000  // what is to be sent is on its way after that
};

// MPI of this process.
static struct {
  bool busy;  // a link uses it, or waits in vain for it
  const cpu_coll_mpi_api *api;
  int rank, size, most_tag;
  cpu_coll_mpi_transfer
      *lost;   // of links that are closed: as they are, for ever
  bool hears;  // a receive of a message is pending
  cpu_coll_mpi_request request;
  unsigned char message[CPU_COLL_MPI_MESSAGE];
} mpi;
static cx_mutex mpi_lock = CX_MUTEX_INIT;  // of `busy`

typedef struct letter {
  struct letter *next;
  uint32_t process;
  size_t bytes;
  bool sent;
  cpu_coll_mpi_request request;
  unsigned char text[CPU_COLL_MPI_MESSAGE];
} letter;

typedef enum stage { STARTING, RUNS, FAILED } stage;

struct cpu_coll_mpi_link {
  cpu_coll_mpi_options options;
  cx_thread thread;
  cx_mutex lock;
  cx_cond changed;
  stage stage;
  bool stops;
  // In MPI's initialisation, which cannot be ended; and whether whoever waited
  // for it has left: then nothing of the options may be used any more, and the
  // link is the thread's.
  bool opening, left;
  calx_status *failed;
  cpu_coll_mpi_transfer *posted, **last_posted;
  letter *told, **last_told;
  atomic_uint hurry;
  atomic_bool broken, has_posts;
  _Atomic uint32_t bell, sleepers;
  atomic_flag inside;  // a thread has its turn
  atomic_uint polls;   // turns of others than the link's thread
  // Whose turn it is uses these.
  cpu_coll_mpi_transfer *active;
  letter *sending;
  unsigned seen;  // the link's thread: polls as it saw them last
};

// ---- failures ---------------------------------------------------------------

// The first one stays; taken.
static void set_failed(cpu_coll_mpi_link *l, calx_status *why)
{
  cx_lock(&l->lock);
  if (l->failed == NULL) {
    l->failed = why;
    why = NULL;
  }
  cx_unlock(&l->lock);
  calx_status_free(why);
}

static void ring(cpu_coll_mpi_link *l)
{
  atomic_fetch_add(&l->bell, 1);
  if (atomic_load(&l->sleepers) != 0) cpu_coll_wake(&l->bell);
}

static bool check(cpu_coll_mpi_link *l, const char *wrong)
{
  if (wrong == NULL) return true;
  set_failed(l, cx_error(CALX_UNAVAILABLE, "%s, between hosts: %s",
                         mpi.api->flavour, wrong));
  atomic_store(&l->broken, true);
  ring(l);
  return false;
}

void cpu_coll_mpi_link_abandon(cpu_coll_mpi_link *l, const char *operation,
                               uint32_t index)
{
  set_failed(l, cx_error(CALX_FAILED_PRECONDITION,
                         "the connection between hosts was given up in the "
                         "middle of %s (collective %u of its program), which "
                         "failed",
                         operation, (unsigned)index));
}

calx_status *cpu_coll_mpi_link_error(cpu_coll_mpi_link *l)
{
  cx_lock(&l->lock);
  calx_status *status = cx_status_copy(l->failed);
  cx_unlock(&l->lock);
  return status;
}

// ---- sleeping ---------------------------------------------------------------

uint32_t cpu_coll_mpi_link_bell(cpu_coll_mpi_link *l)
{
  return atomic_load(&l->bell);
}

void cpu_coll_mpi_link_sleep(cpu_coll_mpi_link *l, uint32_t bell)
{
  atomic_fetch_add(&l->sleepers, 1);
  if (atomic_load(&l->bell) == bell) cpu_coll_sleep(&l->bell, bell, SLEEP_MS);
  atomic_fetch_sub(&l->sleepers, 1);
}

// ---- what devices give ------------------------------------------------------

void cpu_coll_mpi_link_post(cpu_coll_mpi_link *l, cpu_coll_mpi_transfer *t)
{
  t->next = NULL;
  atomic_store(&t->done, false);
  cx_lock(&l->lock);
  *l->last_posted = t;
  l->last_posted = &t->next;
  atomic_store(&l->has_posts, true);
  cx_unlock(&l->lock);
}

void cpu_coll_mpi_link_tell(cpu_coll_mpi_link *l, uint32_t process,
                            const void *message, size_t bytes)
{
  letter *one = cx_calloc(1, sizeof *one);
  if (one == NULL) {
    set_failed(l, cx_out_of_memory());
    return;
  }
  one->process = process;
  one->bytes = bytes;
  memcpy(one->text, message, bytes);
  cx_lock(&l->lock);
  *l->last_told = one;
  l->last_told = &one->next;
  atomic_store(&l->has_posts, true);
  cx_unlock(&l->lock);
}

void cpu_coll_mpi_link_hurry(cpu_coll_mpi_link *l)
{
  if (atomic_fetch_add(&l->hurry, 1) != 0) return;
  cx_lock(&l->lock);
  cx_cond_signal(&l->changed);
  cx_unlock(&l->lock);
}

void cpu_coll_mpi_link_relax(cpu_coll_mpi_link *l)
{
  atomic_fetch_sub(&l->hurry, 1);
}

// ---- turns ------------------------------------------------------------------

// What was posted is started, in its order.
static void start_posted(cpu_coll_mpi_link *l)
{
  if (!atomic_load(&l->has_posts)) return;
  cx_lock(&l->lock);
  cpu_coll_mpi_transfer *posted = l->posted;
  letter *told = l->told;
  l->posted = NULL;
  l->last_posted = &l->posted;
  l->told = NULL;
  l->last_told = &l->told;
  atomic_store(&l->has_posts, false);
  cx_unlock(&l->lock);
  letter **end = &l->sending;
  while (*end != NULL) end = &(*end)->next;
  *end = told;
  for (letter *i = told; i != NULL && !atomic_load(&l->broken); i = i->next) {
    i->sent = check(l, mpi.api->send(i->text, (int)i->bytes, (int)i->process,
                                     MESSAGES, &i->request));
  }
  cpu_coll_mpi_transfer **last = &l->active;
  while (*last != NULL) last = &(*last)->next;
  *last = posted;
  for (cpu_coll_mpi_transfer *t = posted; t != NULL && !atomic_load(&l->broken);
       t = t->next) {
    const int n = (int)t->bytes, process = (int)t->process;
    (void)check(
        l, t->sends
               ? mpi.api->send(t->data, n, process, t->tag, &t->request)
               : mpi.api->receive(t->data, n, process, t->tag, &t->request));
  }
}

// Whether anything was done.
static bool test_transfers(cpu_coll_mpi_link *l)
{
  bool any = false;
  for (cpu_coll_mpi_transfer **at = &l->active; *at != NULL;) {
    cpu_coll_mpi_transfer *t = *at;
    bool done = false;
    if (!check(l, mpi.api->test(&t->request, &done, NULL))) return true;
    if (!done) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    any = true;
    atomic_store(&t->done, true);  // from here on it is its owner's
  }
  if (any) ring(l);
  return any;
}

static bool test_letters(cpu_coll_mpi_link *l)
{
  bool any = false;
  for (letter **at = &l->sending; *at != NULL;) {
    letter *one = *at;
    bool done = false;
    if (!check(l, mpi.api->test(&one->request, &done, NULL))) return true;
    if (!done) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    any = true;
    cx_free(one);
  }
  return any;
}

static bool hear(cpu_coll_mpi_link *l)
{
  bool done = false;
  int bytes = 0;
  if (!mpi.hears) {
    mpi.hears = check(l, mpi.api->receive(mpi.message, sizeof mpi.message, -1,
                                          MESSAGES, &mpi.request));
    if (!mpi.hears) return false;
  }
  if (!check(l, mpi.api->test(&mpi.request, &done, &bytes)) || !done) {
    return false;
  }
  mpi.hears = false;
  l->options.hear(l->options.user, mpi.message, (size_t)bytes);
  return true;
}

// Whether anything was done.
static bool turn(cpu_coll_mpi_link *l)
{
  start_posted(l);
  if (atomic_load(&l->broken)) return false;
  bool any = test_transfers(l);
  if (!atomic_load(&l->broken)) any = test_letters(l) || any;
  while (!atomic_load(&l->broken) && hear(l)) any = true;
  return any;
}

static bool try_turn(cpu_coll_mpi_link *l)
{
  if (atomic_flag_test_and_set(&l->inside)) return false;
  const bool any = turn(l);
  atomic_flag_clear(&l->inside);
  return any;
}

void cpu_coll_mpi_link_poll(cpu_coll_mpi_link *l)
{
  (void)try_turn(l);
  atomic_fetch_add_explicit(&l->polls, 1, memory_order_relaxed);
}

// ---- the thread -------------------------------------------------------------

// Whether nothing is to be done, or others do it.
static bool is_idle(cpu_coll_mpi_link *l)
{
  if (atomic_load(&l->broken)) return true;
  const unsigned polls = atomic_load(&l->polls);
  const bool helped = polls != l->seen;
  l->seen = polls;
  return helped || (atomic_load(&l->hurry) == 0 && !atomic_load(&l->has_posts));
}

// Lets others run; false: it shall stop.
static bool pause_for(cpu_coll_mpi_link *l, int *idle_turns)
{
  if (++*idle_turns % LOOK_TURNS != 0) {
    cpu_coll_yield();
    return true;
  }
  const bool idle = is_idle(l);
  cx_lock(&l->lock);
  if (idle && !l->stops) {
    (void)cx_cond_wait_ms(&l->changed, &l->lock, IDLE_MS);
  }
  const bool goes_on = !l->stops;
  cx_unlock(&l->lock);
  if (idle) *idle_turns = LOOK_TURNS - 2;  // one turn, and a look again
  return goes_on;
}

static bool is_well(const cpu_coll_mpi_link *l)
{
  return !atomic_load(&l->broken) && atomic_load(&l->options.news->failed) == 0;
}

// Turns until the request is done; false: it will not be.
static bool finish(cpu_coll_mpi_link *l, cpu_coll_mpi_request *request,
                   int64_t most_ms)
{
  const int64_t limit = l->options.timeout_ms;
  const int64_t until =
      cx_now_ns() + (limit < most_ms ? limit : most_ms) * 1000000;
  bool done = false;
  while (!done && is_well(l) && cx_now_ns() < until) {
    if (!check(l, mpi.api->test(request, &done, NULL))) return false;
    if (!turn(l)) cpu_coll_yield();
  }
  return done;
}

// ---- beginning and end ------------------------------------------------------

static calx_status *check_place(const cpu_coll_mpi_options *o)
{
  if (mpi.rank != (int)o->process || mpi.size != (int)o->processes) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s says that this is process %d of %d, but it is process "
                    "%u of %u",
                    mpi.api->flavour, mpi.rank, mpi.size, (unsigned)o->process,
                    (unsigned)o->processes);
  }
  if (mpi.most_tag < o->most_tag) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "too many devices in each process: %s has %d tags, %d are "
                    "needed",
                    mpi.api->flavour, mpi.most_tag, o->most_tag);
  }
  return NULL;
}

static void set_opening(cpu_coll_mpi_link *l, bool opening)
{
  cx_lock(&l->lock);
  l->opening = opening;
  cx_unlock(&l->lock);
}

static calx_status *gather(cpu_coll_mpi_link *l)
{
  const cpu_coll_mpi_options *o = &l->options;
  const size_t bytes = o->told_bytes * o->processes;
  cpu_coll_mpi_request request;
  // MPI's, if it does not come to an end: then it is not freed.
  unsigned char *all = cx_alloc(bytes + o->told_bytes);
  if (all == NULL) return cx_out_of_memory();
  memcpy(all + bytes, o->told, o->told_bytes);
  if (check(l,
            mpi.api->gather(all + bytes, all, (int)o->told_bytes, &request)) &&
      finish(l, &request, INT64_MAX)) {
    memcpy(o->all, all, bytes);
    cx_free(all);
    return NULL;
  }
  calx_status *status = cpu_coll_mpi_link_error(l);
  if (status != NULL) return status;
  return cx_error(CALX_DEADLINE_EXCEEDED,
                  "%s: the other processes have not come", mpi.api->flavour);
}

static calx_status *begin(cpu_coll_mpi_link *l)
{
  if (mpi.api == NULL) {
    const cpu_coll_mpi_api *api = NULL;
    CALX_TRY(cpu_coll_mpi_load(&api));
    set_opening(l, true);
    const char *wrong = api->open(&mpi.rank, &mpi.size, &mpi.most_tag);
    set_opening(l, false);
    if (wrong != NULL) {
      return cx_error(CALX_UNAVAILABLE, "%s cannot be started: %s",
                      api->flavour, wrong);
    }
    mpi.api = api;
  }
  if (l->left) return NULL;
  CALX_TRY(check_place(&l->options));
  return gather(l);
}

static calx_status *take_mpi(void)
{
  cx_lock(&mpi_lock);
  const bool busy = mpi.busy;
  mpi.busy = true;
  cx_unlock(&mpi_lock);
  if (!busy) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "another client of this process uses MPI");
}

static void give_mpi(void)
{
  cx_lock(&mpi_lock);
  mpi.busy = false;
  cx_unlock(&mpi_lock);
}

static void letters_free(letter *first)
{
  for (letter *i = first, *next; i != NULL; i = next) {
    next = i->next;
    if (!i->sent) cx_free(i);  // one that MPI has is left to it
  }
}

static void drop(cpu_coll_mpi_link *l)
{
  letters_free(l->sending);
  letters_free(l->told);
  calx_status_free(l->failed);
  cx_cond_free(&l->changed);
  cx_mutex_free(&l->lock);
  cx_free(l);
  give_mpi();
}

static void work(void *user)
{
  cpu_coll_mpi_link *l = user;
  calx_status *status = begin(l);
  cx_lock(&l->lock);
  const bool left = l->left;
  if (l->failed == NULL) {
    l->failed = status;
    status = NULL;
  }
  l->stage = l->failed == NULL ? RUNS : FAILED;
  cx_cond_broadcast(&l->changed);
  const bool runs = l->stage == RUNS && !left;
  cx_unlock(&l->lock);
  calx_status_free(status);
  for (int idle = 0; runs && pause_for(l, &idle);) {
    if (try_turn(l)) idle = 0;
  }
  // Who gave up a transfer comes too: others would wait for it.
  if (runs && is_well(l)) {
    cpu_coll_mpi_request request;
    if (check(l, mpi.api->barrier(&request))) {
      (void)finish(l, &request, END_MS);
    }
  }
  if (left) drop(l);
}

// *left: the thread is left to itself, and the link to the thread.
static calx_status *wait_to_run(cpu_coll_mpi_link *l, bool *left)
{
  const int64_t until = cx_now_ns() + l->options.timeout_ms * 1000000;
  calx_status *status = NULL;
  cx_lock(&l->lock);
  while (l->stage == STARTING) {
    (void)cx_cond_wait_ms(&l->changed, &l->lock, LOOK_MS);
    const uint32_t failed = atomic_load(&l->options.news->failed);
    if (l->stage != STARTING || !l->opening) continue;
    if (failed != 0) {
      status = cx_error((calx_code)failed, "%.*s", CALX_WINDOW_NEWS,
                        l->options.news->news);
    } else if (cx_now_ns() > until) {
      status = cx_error(CALX_DEADLINE_EXCEEDED,
                        "MPI between hosts: after %lld ms not all processes "
                        "have come",
                        (long long)l->options.timeout_ms);
    }
    if (status != NULL) break;
  }
  if (l->stage == FAILED) status = cx_status_copy(l->failed);
  *left = l->left = l->stage == STARTING;
  if (*left) (void)pthread_detach(l->thread.handle);
  cx_unlock(&l->lock);
  return status;
}

calx_status *cpu_coll_mpi_link_open(const cpu_coll_mpi_options *options,
                                    cpu_coll_mpi_link **out)
{
  *out = NULL;
  CALX_TRY(take_mpi());
  cpu_coll_mpi_link *l = cx_calloc(1, sizeof *l);
  if (l == NULL) {
    give_mpi();
    return cx_out_of_memory();
  }
  l->options = *options;
  atomic_flag_clear(&l->inside);
  l->last_posted = &l->posted;
  l->last_told = &l->told;
  cx_mutex_init(&l->lock);
  cx_cond_init(&l->changed);
  calx_status *status = cx_thread_start(&l->thread, work, l);
  if (status != NULL) {
    drop(l);
    return status;
  }
  bool left = false;
  status = wait_to_run(l, &left);
  if (status == NULL) {
    *out = l;
  } else if (!left) {
    (void)cpu_coll_mpi_link_close(l);
  }
  return status;
}

bool cpu_coll_mpi_link_close(cpu_coll_mpi_link *l)
{
  if (l == NULL) return false;
  cx_lock(&l->lock);
  l->stops = true;
  cx_cond_broadcast(&l->changed);
  cx_unlock(&l->lock);
  cx_thread_join(&l->thread);
  const bool keeps = l->active != NULL;
  cpu_coll_mpi_transfer **last = &l->active;
  while (*last != NULL) last = &(*last)->next;
  *last = mpi.lost;
  mpi.lost = l->active;
  drop(l);
  return keeps;
}
