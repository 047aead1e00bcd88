// tests/world/processes: worlds of several processes on this machine, as each
// launcher starts them: one host, what two hosts see, and a host that shares no
// memory.
//
// The processes are forked before any thread has started. A child checks
// by itself and reports by its exit code; everything ends by the test's own
// limit.
#ifndef CX_TESTS_WORLD_PROCESSES_H
#define CX_TESTS_WORLD_PROCESSES_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "check.h"
#include "port.h"
#include "store/server.h"
#include "world/segment.h"
#include "world/state.h"

enum { LONG_MS = 30000, LIMIT_S = 60, MOST = 4 };

#define WANT(condition)                                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "process %d: line %d: %s\n", me, __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

static int me;  // in a child: which process
static pid_t others[MOST];

static inline void want_ok(calx_status *status, int line)
{
  if (status == NULL) return;
  fprintf(stderr, "process %d: line %d: %s\n", me, line,
          calx_status_message(status));
  _exit(1);
}
#define OK(call) want_ok(call, __LINE__)

static inline void want_fails(calx_status *status, calx_code code,
                              const char *piece, int line)
{
  if (calx_status_code(status) != code ||
      strstr(calx_status_message(status), piece) == NULL) {
    fprintf(stderr, "process %d: line %d: wanted %s with '%s', got %s: %s\n",
            me, line, calx_code_name(code), piece,
            calx_code_name(calx_status_code(status)),
            calx_status_message(status));
    _exit(1);
  }
  calx_status_free(status);
}
#define FAILS(call, code, piece) want_fails(call, code, piece, __LINE__)

// ---- launchers --------------------------------------------------------------

static inline void set_number(const char *name, int value)
{
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

typedef enum kind {
  TORCHRUN,
  TWO_HOSTS,
  NO_MEMORY,  // the processes of a host that share none
  MPIRUN,
  SRUN,
  CALX_RUN,  // with a server and a segment of the launcher's
  KINDS
} kind;
static const char *const kind_names[] = { "torchrun", "two hosts", "no memory",
                                          "mpirun",   "srun",      "calx run" };

typedef struct job {
  kind kind;
  int n, port;
  cx_world_segment segment;
  char url[64];
  pid_t server;
} job;

static inline void set_torchrun(const job *j, int i, int per_host)
{
  set_number("RANK", i);
  set_number("WORLD_SIZE", j->n);
  set_number("LOCAL_RANK", i % per_host);
  set_number("LOCAL_WORLD_SIZE", per_host);
  set_number("GROUP_RANK", i / per_host);
  set_number("GROUP_WORLD_SIZE", j->n / per_host);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  set_number("MASTER_PORT", j->port);
}

static inline void set_environment(const job *j, int i)
{
  switch (j->kind) {
    case TORCHRUN: set_torchrun(j, i, j->n); break;
    case TWO_HOSTS: set_torchrun(j, i, j->n / 2); break;
    case NO_MEMORY:
      set_torchrun(j, i, j->n);
      if (i == 1) set_number("CALX_SEGMENT_FD", 999);
      break;
    case MPIRUN:
      set_number("OMPI_COMM_WORLD_RANK", i);
      set_number("OMPI_COMM_WORLD_SIZE", j->n);
      set_number("OMPI_COMM_WORLD_LOCAL_RANK", i);
      set_number("OMPI_COMM_WORLD_LOCAL_SIZE", j->n);
      set_number("PMIX_NAMESPACE", j->port);
      break;
    case SRUN:
      set_number("SLURM_PROCID", i);
      set_number("SLURM_STEP_NUM_TASKS", j->n);
      set_number("SLURM_STEP_NUM_NODES", 1);
      set_number("SLURM_NODEID", 0);
      set_number("SLURM_LOCALID", i);
      setenv("SLURM_STEP_NODELIST", "here", 1);
      set_number("SLURM_JOB_ID", j->port);
      break;
    default:
      set_number("CALX_RANK", i);
      set_number("CALX_WORLD", j->n);
      set_number("CALX_LOCAL_RANK", i);
      set_number("CALX_LOCAL_WORLD", j->n);
      setenv("CALX_STORE", j->url, 1);
      setenv("CALX_TOKEN", "token", 1);
      set_number("CALX_SEGMENT_FD", j->segment.fd);
      break;
  }
}

static inline void serve(const job *j)
{
  cx_store_server *server;
  cx_store_server_options options = { .url = j->url,
                                      .token = "token",
                                      .name = "the launcher",
                                      .processes = j->n,
                                      .heartbeat_ms = cx_store_heartbeat_ms() };
  OK(cx_store_server_start(&options, &server));
  cx_store_server_drain(server, (int64_t)LIMIT_S * 1000);
  cx_store_server_stop(server);
  _exit(0);
}

static inline pid_t start(void (*child)(const job *j), const job *j)
{
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    alarm(LIMIT_S);
    child(j);
    _exit(0);
  }
  return pid;
}

static void (*body)(void);
static int starting;

static inline void run_child(const job *j)
{
  me = starting;
  set_environment(j, me);
  body();
}

// How a process ended: its exit code, or minus its signal.
static inline int wait_for(pid_t pid)
{
  int how;
  assert_int_equal(waitpid(pid, &how, 0), pid);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}

static inline void start_job(job *j, kind k, int n, void (*what)(void))
{
  *j = (job){ .kind = k, .n = n, .port = free_port(), .segment = { .fd = -1 } };
  body = what;
  if (k == CALX_RUN) {
    snprintf(j->url, sizeof j->url, "abstract://calx-test-%ld-%d",
             (long)getpid(), j->port);
    check_ok(cx_world_segment_create(n, &j->segment));
    j->server = start(serve, j);
  }
  for (starting = 0; starting < n; starting++) {
    others[starting] = start(run_child, j);
  }
}

// wanted[i] of process i; NULL: all 0.
static inline void end_job(job *j, const int *wanted)
{
  int bad = 0;
  for (int i = 0; i < j->n; i++) {
    int how = wait_for(others[i]);
    if (how == (wanted != NULL ? wanted[i] : 0)) continue;
    print_error("%s: process %d of %d: %d\n", kind_names[j->kind], i, j->n,
                how);
    bad++;
  }
  if (j->server != 0) bad += wait_for(j->server) != 0;
  cx_world_segment_close(&j->segment);
  assert_int_equal(bad, 0);
}

static inline void run_job(kind k, int n, void (*what)(void))
{
  job j;
  start_job(&j, k, n, what);
  end_job(&j, NULL);
}

static inline calx_status *agree(int rank, uint64_t key, const char *what,
                                 int64_t timeout_ms, int *differs)
{
  cx_world_proposal a = { .rank = rank, .key = { key, 9 }, .what = what };
  return cx_world_agree(&a, timeout_ms, differs);
}

#endif
