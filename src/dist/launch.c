// dist/launch: calx_launch: starts the processes, a thread for each rank of a
// process, and collects their results.
//
// A rank ends by returning. The first failure, in time, is the cause of the
// launch's: it is recorded before the other ranks can see it, so that a failure
// that follows from it is never taken for the cause.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/thread.h"
#include "base/trace.h"
#include "dist/dist.h"
#include "dist/failure.h"
#include "launcher/spawn.h"
#include "lazy/sync/closure.h"
#include "profiler/profiler.h"

// Deep models and their backward passes run on it.
#define RANK_STACK ((size_t)8 << 20)

enum { LINGER_MS = 1500 };

// What calx_launch was called with, and where a child process reports.
typedef struct launch_job {
  calx_rank_fn *fn;
  void *user;
  calx_launch_options options;
  cx_dist_failure failure;
} launch_job;

typedef struct ranks {
  const launch_job *job;
  int first_ordinal;  // of this process's ranks
  cx_mutex lock;
  calx_status *failure;  // the first one, with its rank
} ranks;

typedef struct rank {
  ranks *all;
  calx_device *device;
  int ordinal;
  cx_thread thread;
} rank;

static atomic_bool running;
// Of a process that calx_launch has started.
static const cx_dist_failure *to_launcher;

// ---- how ranks end ----------------------------------------------------------

static calx_status *named(const calx_status *status, int ordinal)
{
  return cx_error_at(calx_status_site(status), calx_status_code(status),
                     "rank %d: %s", ordinal, cx_status_sentence(status));
}

// Takes the status; NULL: it ended well.
static void end_rank(ranks *all, int ordinal, calx_status *status)
{
  if (status != NULL) {
    cx_lock(&all->lock);
    if (all->failure == NULL) {
      all->failure = named(status, ordinal);
      if (to_launcher != NULL) cx_dist_failure_write(to_launcher, all->failure);
    }
    cx_unlock(&all->lock);
  }
  cx_world_rank_end(ordinal, status);
  calx_status_free(status);
}

// The error that a rank's function returned, or else the one that is in its
// scope.
static calx_status *outcome(calx_status *status)
{
  if (status != NULL) {
    // In the scope too, so that a step that was not run is dropped.
    cx_lazy_scope_pin(cx_status_copy(status));
    calx_status_free(cx_lazy_scope_end_thread());
    return status;
  }
  cx_lazy_scope_pin(calx_device_wait(NULL));
  return cx_annotate(cx_lazy_scope_end_thread(),
                     "the rank's function returned without reading it");
}

static void run_rank(void *user)
{
  rank *r = user;
  if (calx_world_size() > 1) cx_log_set_rank(r->ordinal);
  calx_device_set_current(r->device);
  const launch_job *j = r->all->job;
  calx_status *status = outcome(j->fn(r->ordinal, j->user));
  end_rank(r->all, r->ordinal, status);
  cx_lazy_rank_end(r->device);
}

// ---- threads ----------------------------------------------------------------

static calx_status *start_rank(ranks *all, rank *r, int index)
{
  char name[16];
  snprintf(name, sizeof name, "xla:%d", index);
  *r = (rank){ .all = all, .ordinal = all->first_ordinal + index };
  CALX_TRY(calx_device_open(name, &r->device));
  return cx_thread_start_stack(&r->thread, RANK_STACK, run_rank, r);
}

static calx_status *run_threads(ranks *all, int devices)
{
  rank *list = cx_calloc((size_t)devices, sizeof *list);
  if (list == NULL) return cx_out_of_memory();
  for (int i = 0; i < devices; i++) {
    calx_status *status = start_rank(all, &list[i], i);
    if (status != NULL) end_rank(all, list[i].ordinal, status);
  }
  for (int i = 0; i < devices; i++) cx_thread_join(&list[i].thread);
  cx_free(list);
  return all->failure;
}

// Traces name the ranks of this process.
static void set_traced_ranks(int devices)
{
  const cx_world_info *here = cx_world_self();
  cx_trace_set_ranks(
      &(cx_trace_ranks){ .first = here->process * devices,
                         .size = cx_world_size(here),
                         .has_local_master = here->local_process == 0 });
}

static calx_status *run_ranks(const launch_job *j, int devices)
{
  CALX_TRY(cx_world_ranks(devices));
  set_traced_ranks(devices);
  ranks all = { .job = j,
                .first_ordinal = cx_world_self()->process * devices,
                .lock = CX_MUTEX_INIT };
  CALX_TRY(cx_dist_meet_begin(devices));
  calx_status *status = run_threads(&all, devices);
  cx_dist_meet_end();
  cx_world_agreement_reset();
  cx_lazy_ranks_reset();
  return status;
}

// All local devices, or as many as are asked for.
static calx_status *run_here(const launch_job *j)
{
  int devices, asked = j->options.devices;
  CALX_TRY(cx_lazy_devices_open_for_ranks(&devices));
  if (asked > devices) {
    return cx_error(CALX_OUT_OF_RANGE,
                    "calx_launch: %d devices are asked for, there %s %d; "
                    "CPU_NUM_DEVICES is the number that a CPU plugin offers",
                    asked, devices == 1 ? "is" : "are", devices);
  }
  return run_ranks(j, asked != 0 ? asked : devices);
}

static void leave_at_exit(void)
{
  cx_world_leave(NULL);
}

// Other launchers take the first process that they see ending for the cause,
// and torchrun polls every 100 ms. A process that failed only because another
// did ends later than that one; most launchers then end it themselves.
static void linger_at_exit(void)
{
  struct timespec pause = { .tv_sec = LINGER_MS / 1000,
                            .tv_nsec = LINGER_MS % 1000 * 1000000L };
  fflush(NULL);
  nanosleep(&pause, NULL);
}

static void linger_after_others(const calx_status *status, cx_world_launcher by)
{
  static bool lingers;
  bool of_others = by != CX_WORLD_LAUNCHER_NONE && by != CX_WORLD_LAUNCHER_CALX;
  bool follows = calx_status_code(status) == CALX_ABORTED;
  if (of_others && follows && !lingers) lingers = atexit(linger_at_exit) == 0;
}

static calx_status *join(void)
{
  if (cx_world_joined()) return NULL;
  CALX_TRY(cx_world_join());
  const cx_world_info *here = cx_world_self();
  cx_log_set_process(here->processes > 1 ? here->process : -1);
  return NULL;
}

// One of several processes stays joined until it ends, so that it can launch
// again. A single process leaves: its world has one rank again.
static calx_status *run_in_world(const launch_job *j)
{
  static bool stays, failed;
  // A failed launch has ended the job: the other processes have left it.
  if (failed) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "calx_launch: an earlier launch of this job has failed, "
                    "and its processes cannot launch again: end them, and "
                    "start all anew");
  }
  CALX_TRY(join());
  calx_status *status = run_here(j);
  linger_after_others(status, cx_world_self()->launcher);
  if (status != NULL || cx_world_self()->processes == 1) {
    failed = cx_world_self()->processes > 1;
    cx_world_leave(status);
    cx_log_set_process(-1);
  } else if (!stays) {
    stays = atexit(leave_at_exit) == 0;
  }
  return status;
}

// ---- processes --------------------------------------------------------------

// The child process ends by _exit() after this.
static calx_status *run_child(void *user)
{
  const launch_job *j = user;
  to_launcher = &j->failure;
  calx_status *status = run_in_world(j);
  cx_world_leave(status);
  cx_lazy_closures_end();
  cx_profiler_close();
  return status;
}

static calx_status *run_processes(launch_job *j, int processes)
{
  if (cx_lazy_devices_are_open()) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "Runtime is already initialized. Do not use the XLA "
                    "device before calling calx_launch with processes");
  }
  cx_launcher_options o = { .processes = processes,
                            .fn = run_child,
                            .user = j };
  cx_launcher_exit end;
  CALX_TRY(cx_dist_failure_open(&j->failure));
  calx_status *status = cx_launcher_spawn(&o, &end);
  calx_status *cause =
      status != NULL ? cx_dist_failure_read(&j->failure) : NULL;
  cx_dist_failure_close(&j->failure);
  // ABORTED follows from the end of another rank, so the exits that the
  // launcher saw say more.
  if (cause != NULL && calx_status_code(cause) != CALX_ABORTED) {
    calx_status_free(status);
    return cause;
  }
  calx_status_free(cause);
  return status;
}

static calx_status *launch(launch_job *j)
{
  int processes;
  cx_world_info info;
  bool spawns = false;
  CALX_TRY(cx_launcher_processes(j->options.processes, &processes));
  CALX_TRY(cx_world_find(&info));
  if (info.launcher == CX_WORLD_LAUNCHER_NONE) {
    CALX_TRY(cx_launcher_is_wanted(processes, &spawns));
  }
  if (info.launcher != CX_WORLD_LAUNCHER_NONE || spawns) {
    cx_dist_show_lines();
  }
  return spawns ? run_processes(j, processes) : run_in_world(j);
}

static calx_status *check(const launch_job *j)
{
  if (j->fn == NULL) {
    return cx_invalid("calx_launch: the function is NULL");
  }
  const calx_launch_options *o = &j->options;
  if (o->processes >= 0 && o->devices >= 0) return NULL;
  return cx_invalid(
      "calx_launch: %d processes of %d devices, numbers of 0 or more are wanted",
      o->processes, o->devices);
}

calx_status *calx_launch_with(calx_rank_fn *fn, void *user,
                              const calx_launch_options *options)
{
  launch_job j = { .fn = fn, .user = user };
  cx_file_keep_standard();
  CALX_TRY(
      cx_options_take("calx_launch", options, &j.options, sizeof j.options));
  CALX_TRY(check(&j));
  if (atomic_exchange(&running, true)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "Runtime is already initialized. Ranks are running: "
                    "calx_launch cannot be called by one of them (rank %d)",
                    calx_global_ordinal());
  }
  calx_status *status = launch(&j);
  atomic_store(&running, false);
  return status;
}
