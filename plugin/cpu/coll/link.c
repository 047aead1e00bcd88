// coll/link: see link.h. One thread at a time makes progress: it starts what
// was posted, tests active transfers, and forwards received messages.
#include "coll/link.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/futex.h"
#include "base/thread.h"
#include "coll/mpi_load.h"
#include "coll/state.h"
#include "threads/threads.h"

enum {
  MESSAGE_TAG = 1,
  CHECK_TURNS = 64,  // turns without progress between two checks to sleep
  IDLE_MS = 1,
  CHECK_MS = 20,
  SLEEP_MS = 20,
  END_MS = 10000  // for the last messages to be sent
};

// The MPI of this process.
static struct {
  bool busy;  // a link uses it, or its initialisation does not return
  const cpu_coll_mpi_api *api;
  int rank, size, max_tag;
  // Transfers of closed links that MPI is not done with. They are never freed.
  cpu_coll_transfer *abandoned;
  bool receiving;  // a receive of a message is pending
  cpu_coll_mpi_request request;
  unsigned char message[CPU_COLL_MESSAGE_BYTES];
} mpi;
static cx_mutex mpi_lock = CX_MUTEX_INIT;  // of `busy`

typedef enum stage { STARTING, RUNS, FAILED } stage;

struct cpu_coll_link {
  cpu_coll_link_options options;
  cx_thread thread;
  cx_mutex lock;
  cx_cond changed;
  stage stage;
  bool stops;
  // opening: the thread is in MPI's initialisation, which cannot be
  // interrupted. orphaned: the caller has stopped waiting for it. Then the
  // options are invalid and the thread owns the link.
  bool opening, orphaned;
  calx_status *failed;
  cpu_coll_transfer *posted, **last_posted;
  atomic_uint pollers;
  atomic_bool broken, has_posts;
  _Atomic uint32_t wake_word, sleepers;
  atomic_flag inside;  // a thread makes progress
  atomic_uint polls;   // by other threads than the link's
  // For the thread that makes progress:
  cpu_coll_transfer *active;
  unsigned seen;  // for the link's thread: the last value of `polls`
};

// ---- failures ---------------------------------------------------------------

// Takes the status; the first one stays.
static void set_failed(cpu_coll_link *l, calx_status *why)
{
  cx_lock(&l->lock);
  if (l->failed == NULL) {
    l->failed = why;
    why = NULL;
  }
  cx_unlock(&l->lock);
  calx_status_free(why);
}

static void wake_sleepers(cpu_coll_link *l)
{
  atomic_fetch_add(&l->wake_word, 1);
  if (atomic_load(&l->sleepers) != 0) {
    cx_futex_wake(&l->wake_word, CX_FUTEX_PRIVATE);
  }
}

static bool check(cpu_coll_link *l, const char *wrong)
{
  if (wrong == NULL) return true;
  set_failed(l, cx_error(CALX_UNAVAILABLE, "%s, between hosts: %s",
                         mpi.api->flavour, wrong));
  atomic_store(&l->broken, true);
  wake_sleepers(l);
  return false;
}

void cpu_coll_link_abandon(cpu_coll_link *l, const char *operation,
                           uint32_t index)
{
  set_failed(l, cx_error(CALX_FAILED_PRECONDITION,
                         "the connection between hosts was given up in the "
                         "middle of %s (collective %u of its program), which "
                         "failed",
                         operation, (unsigned)index));
}

calx_status *cpu_coll_link_error(cpu_coll_link *l)
{
  cx_lock(&l->lock);
  calx_status *status = cx_status_copy(l->failed);
  cx_unlock(&l->lock);
  return status;
}

// ---- sleeping ---------------------------------------------------------------

uint32_t cpu_coll_link_wake_word(cpu_coll_link *l)
{
  return atomic_load(&l->wake_word);
}

void cpu_coll_link_sleep(cpu_coll_link *l, uint32_t wake_word)
{
  atomic_fetch_add(&l->sleepers, 1);
  if (atomic_load(&l->wake_word) == wake_word)
    cx_futex_wait(&l->wake_word, wake_word, SLEEP_MS, CX_FUTEX_PRIVATE);
  atomic_fetch_sub(&l->sleepers, 1);
}

// ---- posting ----------------------------------------------------------------

void cpu_coll_link_post(cpu_coll_link *l, cpu_coll_transfer *t)
{
  t->next = NULL;
  atomic_store(&t->done, false);
  cx_lock(&l->lock);
  *l->last_posted = t;
  l->last_posted = &t->next;
  atomic_store(&l->has_posts, true);
  cx_unlock(&l->lock);
}

void cpu_coll_link_send(cpu_coll_link *l, uint32_t process, const void *message,
                        size_t bytes)
{
  cpu_coll_transfer *t = cx_alloc(sizeof *t + bytes);
  if (t == NULL) {
    set_failed(l, cx_out_of_memory());
    return;
  }
  *t = (cpu_coll_transfer){ .data = memcpy(t + 1, message, bytes),
                            .bytes = bytes,
                            .process = process,
                            .tag = MESSAGE_TAG,
                            .sends = true,
                            .is_message = true };
  cpu_coll_link_post(l, t);
}

void cpu_coll_link_keep_polling(cpu_coll_link *l)
{
  if (atomic_fetch_add(&l->pollers, 1) != 0) return;
  cx_lock(&l->lock);
  cx_cond_signal(&l->changed);
  cx_unlock(&l->lock);
}

void cpu_coll_link_stop_polling(cpu_coll_link *l)
{
  atomic_fetch_sub(&l->pollers, 1);
}

// ---- progress ---------------------------------------------------------------

static cpu_coll_transfer **end_of(cpu_coll_transfer **list)
{
  while (*list != NULL) list = &(*list)->next;
  return list;
}

// Starts what was posted, in its order.
static void start_posted(cpu_coll_link *l)
{
  if (!atomic_load(&l->has_posts)) return;
  cx_lock(&l->lock);
  cpu_coll_transfer *t = l->posted;
  l->posted = NULL;
  l->last_posted = &l->posted;
  atomic_store(&l->has_posts, false);
  cx_unlock(&l->lock);
  *end_of(&l->active) = t;
  for (; t != NULL && !atomic_load(&l->broken); t = t->next) {
    const int n = (int)t->bytes, process = (int)t->process;
    (void)check(
        l, t->sends
               ? mpi.api->send(t->data, n, process, t->tag, &t->request)
               : mpi.api->receive(t->data, n, process, t->tag, &t->request));
  }
}

// Whether anything was done.
static bool test_transfers(cpu_coll_link *l)
{
  bool any = false;
  for (cpu_coll_transfer **at = &l->active; *at != NULL;) {
    cpu_coll_transfer *t = *at;
    bool done = false;
    if (!check(l, mpi.api->test(&t->request, &done, NULL))) return true;
    if (!done) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    any = true;
    if (t->is_message) {
      cx_free(t);
    } else {
      atomic_store(&t->done, true);  // from here on its owner may free it
    }
  }
  if (any) wake_sleepers(l);
  return any;
}

static bool receive_messages(cpu_coll_link *l)
{
  bool done = false;
  int bytes = 0;
  if (!mpi.receiving) {
    mpi.receiving = check(l, mpi.api->receive(mpi.message, sizeof mpi.message,
                                              -1, MESSAGE_TAG, &mpi.request));
    if (!mpi.receiving) return false;
  }
  if (!check(l, mpi.api->test(&mpi.request, &done, &bytes)) || !done) {
    return false;
  }
  mpi.receiving = false;
  l->options.on_message(l->options.user, mpi.message, (size_t)bytes);
  return true;
}

// Whether anything was done.
static bool progress(cpu_coll_link *l)
{
  start_posted(l);
  if (atomic_load(&l->broken)) return false;
  bool any = test_transfers(l);
  while (!atomic_load(&l->broken) && receive_messages(l)) any = true;
  return any;
}

static bool try_progress(cpu_coll_link *l)
{
  if (atomic_flag_test_and_set(&l->inside)) return false;
  const bool any = progress(l);
  atomic_flag_clear(&l->inside);
  return any;
}

void cpu_coll_link_poll(cpu_coll_link *l)
{
  (void)try_progress(l);
  atomic_fetch_add_explicit(&l->polls, 1, memory_order_relaxed);
}

// ---- the thread -------------------------------------------------------------

// Whether there is nothing to do or other threads do it.
static bool is_idle(cpu_coll_link *l)
{
  if (atomic_load(&l->broken)) return true;
  const unsigned polls = atomic_load(&l->polls);
  const bool helped = polls != l->seen;
  l->seen = polls;
  return helped ||
         (atomic_load(&l->pollers) == 0 && !atomic_load(&l->has_posts));
}

// Yields, or sleeps for a moment; false: the thread must stop.
static bool pause_for(cpu_coll_link *l, int *idle_turns)
{
  if (++*idle_turns % CHECK_TURNS != 0) {
    cpu_threads_yield();
    return true;
  }
  const bool idle = is_idle(l);
  cx_lock(&l->lock);
  if (idle && !l->stops) {
    (void)cx_cond_wait_ms(&l->changed, &l->lock, IDLE_MS);
  }
  const bool goes_on = !l->stops;
  cx_unlock(&l->lock);
  if (idle) *idle_turns = CHECK_TURNS - 2;  // one turn, then check again
  return goes_on;
}

// Why the job has failed; NULL: it has not.
static calx_status *job_error(const cpu_coll_link *l)
{
  const calx_segment_head *job = l->options.job;
  const uint32_t failed = atomic_load(&job->failed);
  if (failed == 0) return NULL;
  return cx_error((calx_code)failed, "%.*s", CALX_SEGMENT_MESSAGE,
                  job->message);
}

static bool is_healthy(const cpu_coll_link *l)
{
  return !atomic_load(&l->broken) && atomic_load(&l->options.job->failed) == 0;
}

// Makes progress until the request is done; false: it will not be done.
static bool finish(cpu_coll_link *l, cpu_coll_mpi_request *request,
                   int64_t max_ms)
{
  const int64_t limit = l->options.timeout_ms;
  const int64_t until =
      cx_now_ns() + (limit < max_ms ? limit : max_ms) * 1000000;
  bool done = false;
  while (!done && is_healthy(l) && cx_now_ns() < until) {
    if (!check(l, mpi.api->test(request, &done, NULL))) return false;
    if (!progress(l)) cpu_threads_yield();
  }
  return done;
}

// ---- beginning and end ------------------------------------------------------

static calx_status *check_rank(const cpu_coll_link_options *o)
{
  if (mpi.rank != (int)o->process || mpi.size != (int)o->processes) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s counts this process as %d of %d, but calx as "
                    "%u of %u",
                    mpi.api->flavour, mpi.rank, mpi.size, (unsigned)o->process,
                    (unsigned)o->processes);
  }
  if (mpi.max_tag < o->max_tag) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "too many devices in each process: %s has %d tags, %d are "
                    "needed",
                    mpi.api->flavour, mpi.max_tag, o->max_tag);
  }
  return NULL;
}

static void set_opening(cpu_coll_link *l, bool opening)
{
  cx_lock(&l->lock);
  l->opening = opening;
  cx_unlock(&l->lock);
}

static calx_status *gather(cpu_coll_link *l)
{
  const cpu_coll_link_options *o = &l->options;
  const size_t bytes = o->own_bytes * o->processes;
  cpu_coll_mpi_request request;
  // Not freed on failure: MPI may still write to it.
  unsigned char *all = cx_alloc(bytes + o->own_bytes);
  if (all == NULL) return cx_out_of_memory();
  memcpy(all + bytes, o->own, o->own_bytes);
  if (check(l,
            mpi.api->gather(all + bytes, all, (int)o->own_bytes, &request)) &&
      finish(l, &request, INT64_MAX)) {
    memcpy(o->all, all, bytes);
    cx_free(all);
    return NULL;
  }
  calx_status *status = cpu_coll_link_error(l);
  if (status == NULL) status = job_error(l);
  if (status != NULL) return status;
  return cx_error(CALX_DEADLINE_EXCEEDED,
                  "%s: the other processes have not arrived", mpi.api->flavour);
}

static calx_status *begin(cpu_coll_link *l)
{
  if (mpi.api == NULL) {
    const cpu_coll_mpi_api *api = NULL;
    CALX_TRY(cpu_coll_mpi_load(&api));
    set_opening(l, true);
    const char *wrong = api->open(&mpi.rank, &mpi.size, &mpi.max_tag);
    set_opening(l, false);
    if (wrong != NULL) {
      return cx_error(CALX_UNAVAILABLE, "%s cannot be started: %s",
                      api->flavour, wrong);
    }
    mpi.api = api;
  }
  if (l->orphaned) return NULL;
  CALX_TRY(check_rank(&l->options));
  return gather(l);
}

static calx_status *acquire_mpi(void)
{
  cx_lock(&mpi_lock);
  const bool busy = mpi.busy;
  mpi.busy = true;
  cx_unlock(&mpi_lock);
  if (!busy) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "another client of this process uses MPI");
}

static void release_mpi(void)
{
  cx_lock(&mpi_lock);
  mpi.busy = false;
  cx_unlock(&mpi_lock);
}

static void drop(cpu_coll_link *l)
{
  calx_status_free(l->failed);
  cx_cond_free(&l->changed);
  cx_mutex_free(&l->lock);
  cx_free(l);
  release_mpi();
}

static void work(void *user)
{
  cpu_coll_link *l = user;
  calx_status *status = begin(l);
  cx_lock(&l->lock);
  const bool orphaned = l->orphaned;
  if (l->failed == NULL) {
    l->failed = status;
    status = NULL;
  }
  l->stage = l->failed == NULL ? RUNS : FAILED;
  cx_cond_broadcast(&l->changed);
  const bool runs = l->stage == RUNS && !orphaned;
  cx_unlock(&l->lock);
  calx_status_free(status);
  for (int idle = 0; runs && pause_for(l, &idle);) {
    if (try_progress(l)) idle = 0;
  }
  // Also after an abandoned transfer: the other processes wait here.
  if (runs && is_healthy(l)) {
    cpu_coll_mpi_request request;
    if (check(l, mpi.api->barrier(&request))) {
      (void)finish(l, &request, END_MS);
    }
  }
  if (orphaned) drop(l);
}

// *orphaned: the thread goes on alone and owns the link.
static calx_status *wait_to_run(cpu_coll_link *l, bool *orphaned)
{
  const int64_t until = cx_now_ns() + l->options.timeout_ms * 1000000;
  calx_status *status = NULL;
  cx_lock(&l->lock);
  while (l->stage == STARTING) {
    (void)cx_cond_wait_ms(&l->changed, &l->lock, CHECK_MS);
    if (l->stage != STARTING || !l->opening) continue;
    status = job_error(l);
    if (status == NULL && cx_now_ns() > until) {
      status = cx_error(CALX_DEADLINE_EXCEEDED,
                        "MPI between hosts: after %lld ms not all processes "
                        "have arrived",
                        (long long)l->options.timeout_ms);
    }
    if (status != NULL) break;
  }
  if (l->stage == FAILED) status = cx_status_copy(l->failed);
  *orphaned = l->orphaned = l->stage == STARTING;
  if (*orphaned) (void)pthread_detach(l->thread.handle);
  cx_unlock(&l->lock);
  return status;
}

calx_status *cpu_coll_link_open(const cpu_coll_link_options *options,
                                cpu_coll_link **out)
{
  *out = NULL;
  CALX_TRY(acquire_mpi());
  cpu_coll_link *l = cx_calloc(1, sizeof *l);
  if (l == NULL) {
    release_mpi();
    return cx_out_of_memory();
  }
  l->options = *options;
  atomic_flag_clear(&l->inside);
  l->last_posted = &l->posted;
  cx_mutex_init(&l->lock);
  cx_cond_init(&l->changed);
  calx_status *status = cx_thread_start(&l->thread, work, l);
  if (status != NULL) {
    drop(l);
    return status;
  }
  bool orphaned = false;
  status = wait_to_run(l, &orphaned);
  if (status == NULL) {
    *out = l;
  } else if (!orphaned) {
    (void)cpu_coll_link_close(l);
  }
  return status;
}

bool cpu_coll_link_close(cpu_coll_link *l)
{
  if (l == NULL) return false;
  cx_lock(&l->lock);
  l->stops = true;
  cx_cond_broadcast(&l->changed);
  cx_unlock(&l->lock);
  cx_thread_join(&l->thread);
  bool keep = false;
  *end_of(&l->active) = l->posted;
  for (cpu_coll_transfer *t = l->active; t != NULL; t = t->next) {
    keep = keep || !t->is_message;
  }
  *end_of(&l->active) = mpi.abandoned;
  mpi.abandoned = l->active;
  drop(l);
  return keep;
}
