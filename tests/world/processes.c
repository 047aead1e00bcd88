// Worlds of several processes on this machine, as each launcher starts them:
// one host, what two hosts see, and a host that shares no memory.
//
// The processes are forked before anything of nng has started. A child checks
// by itself and tells by its exit code; everything ends by the test's own
// limit.
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "check.h"
#include "world/server.h"
#include "world/state.h"
#include "world/window.h"

enum { LONG_MS = 30000, LIMIT_S = 60, MOST = 4 };

#define WANT(condition)                                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "process %d: line %d: %s\n", me, __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

static int me;           // in a child: which process
static int devices = 1;  // of each
static pid_t others[MOST];

static void want_ok(calx_status *status, int line)
{
  if (status == NULL) return;
  fprintf(stderr, "process %d: line %d: %s\n", me, line,
          calx_status_message(status));
  _exit(1);
}
#define OK(call) want_ok(call, __LINE__)

static void want_fails(calx_status *status, calx_code code, const char *piece,
                       int line)
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

static void set_number(const char *name, int value)
{
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

static int free_port(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int s = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(s >= 0);
  assert_int_equal(bind(s, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&address, &size), 0);
  close(s);
  return ntohs(address.sin_port);
}

typedef enum kind {
  TORCHRUN,
  TWO_HOSTS,
  NO_MEMORY,  // the processes of a host that share none
  MPIRUN,
  SRUN,
  CALX_RUN,  // with a server and a window of the launcher's
  KINDS
} kind;
static const char *const kind_names[] = { "torchrun", "two hosts", "no memory",
                                          "mpirun",   "srun",      "calx run" };

typedef struct job {
  kind kind;
  int n, port;
  cx_window window;
  char url[64];
  pid_t server;
} job;

static void set_torchrun(const job *j, int i, int per_host)
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

static void set_environment(const job *j, int i)
{
  switch (j->kind) {
    case TORCHRUN: set_torchrun(j, i, j->n); break;
    case TWO_HOSTS: set_torchrun(j, i, j->n / 2); break;
    case NO_MEMORY:
      set_torchrun(j, i, j->n);
      if (i == 1) set_number("CALX_WINDOW_FD", 999);
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
      set_number("CALX_WINDOW_FD", j->window.fd);
      break;
  }
}

static void serve(const job *j)
{
  cx_server *server;
  cx_server_options options = { .url = j->url,
                                .token = "token",
                                .who = "the launcher",
                                .processes = j->n,
                                .heartbeat_ms = cx_heartbeat_ms() };
  OK(cx_server_start(&options, &server));
  cx_server_drain(server, (int64_t)LIMIT_S * 1000);
  cx_server_stop(server);
  _exit(0);
}

static pid_t start(void (*child)(const job *j), const job *j)
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

static void run_child(const job *j)
{
  me = starting;
  set_environment(j, me);
  body();
}

// How a process ended: its exit code, or minus its signal.
static int wait_for(pid_t pid)
{
  int how;
  assert_int_equal(waitpid(pid, &how, 0), pid);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}

static void start_job(job *j, kind k, int n, void (*what)(void))
{
  *j = (job){ .kind = k, .n = n, .port = free_port(), .window = { .fd = -1 } };
  body = what;
  if (k == CALX_RUN) {
    snprintf(j->url, sizeof j->url, "abstract://calx-test-%ld-%d",
             (long)getpid(), j->port);
    check_ok(cx_window_make(n, &j->window));
    j->server = start(serve, j);
  }
  for (starting = 0; starting < n; starting++) {
    others[starting] = start(run_child, j);
  }
}

// wanted[i] of process i; NULL: all 0.
static void end_job(job *j, const int *wanted)
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
  cx_window_close(&j->window);
  assert_int_equal(bad, 0);
}

static void run_job(kind k, int n, void (*what)(void))
{
  job j;
  start_job(&j, k, n, what);
  end_job(&j, NULL);
}

// ---- agreeing ---------------------------------------------------------------

static calx_status *agree(int rank, uint64_t key, const char *what,
                          int64_t timeout_ms, int *differs)
{
  cx_agreement a = { .rank = rank, .key = { key, 9 }, .what = what };
  return cx_board_agree(&a, timeout_ms, differs);
}

static void run_rank(void *user)
{
  int rank = *(int *)user;
  for (uint64_t i = 0; i < 20; i++) {
    OK(agree(rank, i, "all_reduce at a.c:1", LONG_MS, NULL));
  }
  cx_board_end(rank, NULL);
}

static void run_ranks(void)
{
  const cx_world_place *here = cx_world_here();
  cx_thread threads[MOST];
  int ranks[MOST];
  for (int i = 0; i < here->devices; i++) {
    ranks[i] = here->process * here->devices + i;
    OK(cx_thread_start(&threads[i], run_rank, &ranks[i]));
  }
  for (int i = 0; i < here->devices; i++) cx_thread_join(&threads[i]);
  cx_board_reset();
}

static void use_store(const cx_world_place *here)
{
  char key[32], *value;
  size_t size;
  snprintf(key, sizeof key, "from %d", here->process);
  OK(cx_store_put(key, key, strlen(key)));
  for (int i = 0; i < here->processes; i++) {
    snprintf(key, sizeof key, "from %d", i);
    OK(cx_store_get(key, LONG_MS, &value, &size));
    WANT(strcmp(value, key) == 0);
    cx_free(value);
  }
  for (int i = 0; i < 3; i++) OK(cx_store_barrier("all", LONG_MS));
  FAILS(cx_store_try_get("nobody's", &value, &size), CALX_NOT_FOUND, "nobody");
}

static void all_well(void)
{
  OK(cx_world_join());
  const cx_world_place *here = cx_world_here();
  WANT(here->process == me);
  use_store(here);
  for (int launch = 0; launch < 2; launch++) {
    OK(cx_world_ranks(devices));
    run_ranks();
  }
  OK(cx_world_news());
  cx_world_leave(NULL);
  WANT(cx_world_size(cx_world_here()) == 1);
}

static void test_all_well(void **state)
{
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    devices = k == TWO_HOSTS || k == NO_MEMORY ? 2 : 1;
    run_job(k, k == TWO_HOSTS ? 4 : 3, all_well);
  }
  devices = 1;
}

static void look_around(void)
{
  OK(cx_world_join());
  const cx_world_place *here = cx_world_here();
  bool two = here->processes == 4;
  WANT(here->hosts == (two ? 2 : 1) && here->host == (two ? me / 2 : 0));
  WANT(here->local_process == (two ? me % 2 : me));
  WANT(here->local_processes == (two ? 2 : 3));
  WANT(cx_world_window_fd() >= 0);
  // What one writes into the window, the others of its host see.
  atomic_uint *word =
      (atomic_uint *)(void *)((char *)cx_world.head + CALX_WINDOW_ENGINE - 64);
  atomic_fetch_add(word, 1u);
  OK(cx_store_barrier("written", LONG_MS));
  WANT(atomic_load(word) == (unsigned)here->local_processes);
  cx_world_leave(NULL);
}

static void test_places(void **state)
{
  (void)state;
  run_job(TORCHRUN, 3, look_around);
  run_job(TWO_HOSTS, 4, look_around);
  run_job(CALX_RUN, 3, look_around);
}

// ---- what goes wrong --------------------------------------------------------

static void one_differs(void)
{
  int differs;
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "all_reduce at a.c:1", LONG_MS, &differs));
  FAILS(agree(me, me == 1 ? 3 : 2,
              me == 1 ? "all_gather at a.c:9" : "all_reduce at a.c:1", LONG_MS,
              &differs),
        CALX_ABORTED, "all_gather at a.c:9 (key 0");
  FAILS(agree(me, 2, "again", LONG_MS, NULL), CALX_ABORTED,
        "the ranks do not do the same");
  cx_world_leave(NULL);
}

static void one_ends(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  for (int i = 0; i < 3; i++) OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 1) {
    cx_board_end(1, NULL);
  } else {
    FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
          "rank 1 ended after 3 launches");
  }
  cx_world_leave(NULL);
}

static void one_fails(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 1) {
    calx_status *why = calx_status_new(CALX_DATA_LOSS, "the file is short");
    cx_board_end(1, why);
    calx_status_free(why);
  } else {
    FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
          "rank 1 failed: the file is short");
  }
  cx_world_leave(NULL);
}

static void one_is_late(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  char *value;
  size_t size;
  if (me == 1) {
    calx_status *status = cx_store_get("gave up", LONG_MS, &value, &size);
    if (status == NULL) cx_free(value);
    calx_status_free(status);
  }
  FAILS(agree(me, 1, "all_reduce", me == 0 ? 300 : LONG_MS, NULL),
        CALX_DEADLINE_EXCEEDED, "all_reduce, where rank 0 waited");
  calx_status_free(cx_store_put("gave up", "", 0));
  cx_world_leave(NULL);
}

static void test_verdicts(void **state)
{
  (void)state;
  const kind kinds[] = { TORCHRUN, TWO_HOSTS, NO_MEMORY };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    run_job(kinds[i], 4, one_differs);
    run_job(kinds[i], 4, one_fails);
    run_job(kinds[i], 4, one_is_late);
  }
}

static void test_ended(void **state)
{
  (void)state;
  const kind kinds[] = { TORCHRUN, TWO_HOSTS, NO_MEMORY };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    run_job(kinds[i], 4, one_ends);
  }
}

static void last_dies(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 3) raise(SIGKILL);
  FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
        "rank 3 has gone (its connection closed)");
  char *value;
  size_t size;
  FAILS(cx_store_get("never", LONG_MS, &value, &size), CALX_ABORTED,
        "rank 3 has gone");
  FAILS(cx_world_news(), CALX_ABORTED, "rank 3 has gone");
  cx_world_leave(NULL);
}

static void first_dies(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 0) raise(SIGKILL);
  FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
        "process 0, which serves the store, has gone");
  cx_world_leave(NULL);
}

static void test_killed(void **state)
{
  (void)state;
  const kind kinds[] = { TORCHRUN, TWO_HOSTS, CALX_RUN };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    job j;
    start_job(&j, kinds[i], 4, last_dies);
    end_job(&j, (int[]){ 0, 0, 0, -SIGKILL });
  }
  job j;
  start_job(&j, TORCHRUN, 3, first_dies);
  end_job(&j, (int[]){ -SIGKILL, 0, 0 });
}

static void last_leaves_badly(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  calx_status *why = calx_status_new(CALX_DATA_LOSS, "no more disk");
  if (me == 2) {
    cx_world_leave(why);
  } else {
    FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
          "no more disk");
    cx_world_leave(NULL);
  }
  calx_status_free(why);
}

static void test_left_badly(void **state)
{
  (void)state;
  run_job(TORCHRUN, 3, last_leaves_badly);
}

static void last_stops(void)
{
  setenv("CALX_HEARTBEAT_S", "0.6", 1);
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 2) raise(SIGSTOP);
  FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
        "rank 2 has gone (no sign of it for 0.6 s: stopped, or its host is "
        "unreachable)");
  cx_world_leave(NULL);
}

static void test_stopped(void **state)
{
  (void)state;
  job j;
  start_job(&j, TORCHRUN, 3, last_stops);
  for (int i = 0; i < 2; i++) assert_int_equal(wait_for(others[i]), 0);
  kill(others[2], SIGKILL);
  assert_int_equal(wait_for(others[2]), -SIGKILL);
}

static void other_devices(void)
{
  OK(cx_world_join());
  FAILS(cx_world_ranks(me == 2 ? 3 : 1), CALX_INVALID_ARGUMENT,
        "process 0 has 1 device, process 2 has 3");
  OK(cx_world_ranks(2));
  FAILS(cx_world_ranks(1), CALX_FAILED_PRECONDITION,
        "each process has 2 ranks in this job");
  cx_world_leave(NULL);
}

static void test_devices(void **state)
{
  (void)state;
  run_job(TORCHRUN, 3, other_devices);
}

static void one_does_not_come(void)
{
  setenv("CALX_JOIN_TIMEOUT_S", "0.4", 1);
  if (me == 1) _exit(0);
  calx_status *status = cx_world_join();
  FAILS(status, CALX_DEADLINE_EXCEEDED,
        "'joining': no word within 400 ms from 1");
  WANT(!cx_world_joined());
}

static void same_number(void)
{
  set_number("RANK", me == 2 ? 1 : me);
  setenv("CALX_JOIN_TIMEOUT_S", "0.4", 1);
  calx_status *status = cx_world_join();
  WANT(status != NULL);
  calx_status_free(status);
}

static void test_missing(void **state)
{
  (void)state;
  run_job(MPIRUN, 2, one_does_not_come);
  run_job(TORCHRUN, 3, same_number);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_all_well), CHECK_TEST(test_places),
    CHECK_TEST(test_verdicts), CHECK_TEST(test_ended),
    CHECK_TEST(test_killed),   CHECK_TEST(test_left_badly),
    CHECK_TEST(test_stopped),  CHECK_TEST(test_devices),
    CHECK_TEST(test_missing),
  };
  return cmocka_run_group_tests_name("world: processes", tests, NULL, NULL);
}
