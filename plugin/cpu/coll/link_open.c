// coll/link_open: how a link begins, its thread, and how it ends.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "coll/link_state.h"
#include "coll/mpi_load.h"
#include "threads/threads.h"

enum {
  CHECK_TURNS = 64,  // turns without progress between two checks to sleep
  IDLE_MS = 1,
  CHECK_MS = 20,
  END_MS = 10000  // for the last messages to be sent
};

static cx_mutex mpi_lock = CX_MUTEX_INIT;  // of `busy`

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
    if (!cpu_coll_link_check(l, cpu_coll_mpi.api->test(request, &done, NULL)))
      return false;
    if (!cpu_coll_link_progress(l)) cpu_threads_yield();
  }
  return done;
}

// ---- beginning and end ------------------------------------------------------

static calx_status *check_rank(const cpu_coll_link_options *o)
{
  if (cpu_coll_mpi.rank != (int)o->process ||
      cpu_coll_mpi.size != (int)o->processes) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s counts this process as %d of %d, but calx as "
                    "%u of %u; a process's number must be its rank of MPI",
                    cpu_coll_mpi.api->flavour, cpu_coll_mpi.rank,
                    cpu_coll_mpi.size, (unsigned)o->process,
                    (unsigned)o->processes);
  }
  if (cpu_coll_mpi.max_tag < o->max_tag) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "too many devices in each process: %s has %d tags, %d are "
                    "needed",
                    cpu_coll_mpi.api->flavour, cpu_coll_mpi.max_tag,
                    o->max_tag);
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
  if (cpu_coll_link_check(
          l, cpu_coll_mpi.api->gather(all + bytes, all, (int)o->own_bytes,
                                      &request)) &&
      finish(l, &request, INT64_MAX)) {
    memcpy(o->all, all, bytes);
    cx_free(all);
    return NULL;
  }
  calx_status *status = cpu_coll_link_error(l);
  if (status == NULL) status = job_error(l);
  if (status != NULL) return status;
  return cx_error(CALX_DEADLINE_EXCEEDED,
                  "%s: the other processes have not arrived",
                  cpu_coll_mpi.api->flavour);
}

// Open MPI 4.1 under Slurm's PMIx can return from MPI_Init in one process
// before another one has begun to take messages there, which the first message
// ends by a call of a null function (in mca_btl_tcp). So nothing is sent before
// MPI is initialised in all processes.
static calx_status *begin(cpu_coll_link *l)
{
  if (cpu_coll_mpi.api == NULL) {
    const cpu_coll_mpi_api *api = NULL;
    CALX_TRY(cpu_coll_mpi_load(&api));
    set_opening(l, true);
    const char *wrong = api->open(&cpu_coll_mpi.rank, &cpu_coll_mpi.size,
                                  &cpu_coll_mpi.max_tag);
    set_opening(l, false);
    if (wrong != NULL) {
      return cx_error(CALX_UNAVAILABLE, "%s cannot be started: %s",
                      api->flavour, wrong);
    }
    cpu_coll_mpi.api = api;
  }
  if (l->orphaned) return NULL;
  CALX_TRY(check_rank(&l->options));
  if (l->options.meet != NULL) CALX_TRY(l->options.meet(l->options.meet_user));
  l->options.meet = NULL;
  return gather(l);
}

static calx_status *acquire_mpi(void)
{
  cx_lock(&mpi_lock);
  const bool busy = cpu_coll_mpi.busy;
  cpu_coll_mpi.busy = true;
  cx_unlock(&mpi_lock);
  if (!busy) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "another client of this process uses MPI");
}

static void release_mpi(void)
{
  cx_lock(&mpi_lock);
  cpu_coll_mpi.busy = false;
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
  l->stage = l->failed == NULL ? CPU_COLL_LINK_RUNS : CPU_COLL_LINK_FAILED;
  cx_cond_broadcast(&l->changed);
  const bool runs = l->stage == CPU_COLL_LINK_RUNS && !orphaned;
  cx_unlock(&l->lock);
  calx_status_free(status);
  for (int idle = 0; runs && pause_for(l, &idle);) {
    if (cpu_coll_link_try_progress(l)) idle = 0;
  }
  // Also after an abandoned transfer: the other processes wait here.
  if (runs && is_healthy(l)) {
    cpu_coll_mpi_request request;
    if (cpu_coll_link_check(l, cpu_coll_mpi.api->barrier(&request))) {
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
  while (l->stage == CPU_COLL_LINK_STARTING) {
    (void)cx_cond_wait_ms(&l->changed, &l->lock, CHECK_MS);
    if (l->stage != CPU_COLL_LINK_STARTING || !l->opening) continue;
    status = job_error(l);
    if (status == NULL && cx_now_ns() > until) {
      status = cx_error(CALX_DEADLINE_EXCEEDED,
                        "MPI between hosts: after %lld ms not all processes "
                        "have arrived",
                        (long long)l->options.timeout_ms);
    }
    if (status != NULL) break;
  }
  if (l->stage == CPU_COLL_LINK_FAILED) status = cx_status_copy(l->failed);
  *orphaned = l->orphaned = l->stage == CPU_COLL_LINK_STARTING;
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
  *cpu_coll_link_end_of(&l->active) = l->posted;
  for (cpu_coll_transfer *t = l->active; t != NULL; t = t->next) {
    keep = keep || !t->is_message;
  }
  *cpu_coll_link_end_of(&l->active) = cpu_coll_mpi.abandoned;
  cpu_coll_mpi.abandoned = l->active;
  drop(l);
  return keep;
}
