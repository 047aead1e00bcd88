// Starting processes, and how they end: the launcher alone, no world is joined.
#include "spawn.h"
#include "launcher/output.h"
#include "world/segment.h"

static calx_status *spawn(int processes, cx_launcher_fn *fn,
                          cx_launcher_exit *end)
{
  return cx_launcher_spawn(
      &(cx_launcher_options){ .processes = processes, .fn = fn }, end);
}

// ---- all is well ------------------------------------------------------------

static calx_status *tell_place(void *user)
{
  note_and_meet();
  int rank = own_rank();
  bool right =
      *(int *)user == 42 && own_number("CALX_WORLD") == 3 &&
      own_number("CALX_LOCAL_RANK") == rank &&
      own_number("CALX_LOCAL_WORLD") == 3 && own_number("CALX_NNODES") == 1 &&
      own_number("CALX_NODE_RANK") == 0 && own_number("CALX_RESTART") == 0 &&
      getenv("CALX_TOKEN") != NULL && own_number("CALX_SEGMENT_FD") > 2;
  shared->seen[rank] = right ? 1 : 2;
  return NULL;
}

static void test_places(void **state)
{
  (void)state;
  int files = open_files(), user = 42;
  // Twice: a launch leaves this process as it was.
  for (int round = 0; round < 2; round++) {
    memset(shared, 0, sizeof *shared);
    cx_launcher_exit end;
    check_ok(cx_launcher_spawn(&(cx_launcher_options){ .processes = 3,
                                                       .fn = tell_place,
                                                       .user = &user },
                               &end));
    assert_int_equal(end.code, 0);
    assert_int_equal(end.rank, -1);
    for (int i = 0; i < 3; i++) assert_int_equal(shared->seen[i], 1);
    check_nothing_left(files);
    assert_null(getenv("CALX_RANK"));
  }
}

// ---- how ranks end ----------------------------------------------------------

typedef struct ending {
  int signal, code;
  const char *words;
} ending;

static const ending endings[] = {
  { SIGKILL, 137, "rank 2 ended by signal 9 (Killed)" },
  { SIGSEGV, 139, "rank 2 ended by signal 11 (Segmentation fault)" },
  { SIGABRT, 134, "rank 2 ended by signal 6 (Aborted)" },
  { 0, 7, "rank 2 exited with 7" },
};

static calx_status *end_as_told(void *user)
{
  const ending *e = user;
  note_and_meet();
  if (own_rank() != 2) {
    for (;;) pause();
  }
  if (e->signal == 0) _exit(e->code);
  signal(e->signal, SIG_DFL);
  raise(e->signal);
  return NULL;
}

static void test_endings(void **state)
{
  (void)state;
  int files = open_files();
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    memset(shared, 0, sizeof *shared);
    ending e = endings[i];
    cx_launcher_exit end;
    check_fails(cx_launcher_spawn(&(cx_launcher_options){ .processes = 4,
                                                          .fn = end_as_told,
                                                          .user = &e },
                                  &end),
                CALX_ABORTED, e.words);
    assert_int_equal(end.rank, 2);
    assert_int_equal(end.code, e.code);
    check_nothing_left(files);
  }
}

static calx_status *fail_in_words(void *user)
{
  (void)user;
  note_and_meet();
  if (own_rank() == 1) {
    return cx_error(CALX_OUT_OF_RANGE, "rank 1: batch 7 has no target");
  }
  for (;;) pause();
}

static void test_message(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  check_fails(spawn(3, fail_in_words, &end), CALX_OUT_OF_RANGE,
              "rank 1: batch 7 has no target");
  assert_int_equal(end.rank, 1);
  assert_int_equal(end.code, 1);
  check_nothing_left(files);
}

// Rank 1 fails the job, and the others end because of that before it ends.
static calx_status *tell_and_linger(void *user)
{
  (void)user;
  note_and_meet();
  if (own_rank() != 1) {
    WAIT_WHILE(shared->count < 4);
    _exit(9);
  }
  cx_world_segment segment;
  signal(SIGTERM, SIG_IGN);
  CALX_TRY(cx_world_segment_open(own_number("CALX_SEGMENT_FD"), 3, &segment));
  cx_world_segment_fail(segment.head, CALX_DATA_LOSS,
                        "a.c:1: in f: rank 1: no data");
  shared->count++;
  WAIT_WHILE(is_alive(shared->pids[0]) || is_alive(shared->pids[2]));
  _exit(4);
}

static void test_who_is_named_is_the_cause(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  check_fails(spawn(3, tell_and_linger, &end), CALX_DATA_LOSS,
              "a.c:1: in f: rank 1: no data");
  assert_int_equal(end.rank, 1);
  if (end.code != 128 + SIGKILL) assert_int_equal(end.code, 4);
  check_nothing_left(files);
}

static calx_status *cling(void *user)
{
  (void)user;
  signal(SIGTERM, SIG_IGN);
  note_and_meet();
  if (own_rank() == 0) _exit(3);
  for (;;) pause();
}

static void test_who_clings_is_killed(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  check_fails(spawn(3, cling, &end), CALX_ABORTED, "rank 0 exited with 3");
  check_nothing_left(files);
}

static calx_status *stay_stopped(void *user)
{
  (void)user;
  note_and_meet();
  if (own_rank() == 0) _exit(3);
  for (;;) raise(SIGSTOP);
}

static void test_who_is_stopped_is_killed(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  check_fails(spawn(2, stay_stopped, &end), CALX_ABORTED,
              "rank 0 exited with 3");
  check_nothing_left(files);
}

// ---- again ------------------------------------------------------------------

static calx_status *succeed_at_last(void *user)
{
  (void)user;
  shared->count++;
  if (own_rank() == 1 && own_number("CALX_RESTART") < 2) _exit(5);
  while (own_number("CALX_RESTART") < 2) pause();
  shared->seen[own_rank()] = own_number("CALX_RESTART");
  return NULL;
}

static int said;

static void count_lines(void *user, const char *line)
{
  (void)user;
  if (strstr(line, "rank 1 exited with 5") != NULL &&
      strstr(line, "of 3") != NULL) {
    said++;
  }
}

static void test_restarts(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  cx_launcher_options options = { .processes = 2,
                                  .fn = succeed_at_last,
                                  .max_restarts = 3 };
  said = 0;
  calx_log_set(count_lines, NULL);
  check_ok(cx_launcher_spawn(&options, &end));
  assert_int_equal(said, 2);
  assert_int_equal(shared->seen[0], 2);
  assert_int_equal(shared->seen[1], 2);
  options.max_restarts = 1;
  check_fails(cx_launcher_spawn(&options, &end), CALX_ABORTED,
              "rank 1 exited with 5");
  assert_int_equal(end.code, 5);
  calx_log_set(NULL, NULL);
  check_nothing_left(files);
}

// ---- signals ----------------------------------------------------------------

static volatile sig_atomic_t heard;

static void note_signal(int number)
{
  heard = number;
}

static calx_status *wait_for_signal(void *user)
{
  (void)user;
  note_and_meet();
  if (own_rank() == 0) kill(getppid(), SIGTERM);
  WAIT_WHILE(heard == 0);
  shared->seen[own_rank()] = heard;
  return NULL;
}

static void test_signals_are_passed_on(void **state)
{
  (void)state;
  int files = open_files();
  cx_launcher_exit end;
  heard = 0;
  struct sigaction note = { .sa_handler = note_signal }, old;
  sigaction(SIGTERM, &note, &old);
  check_ok(spawn(3, wait_for_signal, &end));
  for (int i = 0; i < 3; i++) assert_int_equal(shared->seen[i], SIGTERM);
  assert_int_equal(heard, SIGTERM);  // this process had it too, at the end
  sigaction(SIGTERM, &old, NULL);
  check_nothing_left(files);
}

// ---- the launcher's own end -------------------------------------------------

static calx_status *stay(void *user)
{
  (void)user;
  note_self();
  while (own_rank() >= 0) pause();
  return NULL;
}

static bool all_started(void)
{
  return shared->count == 3;
}

static bool all_ended(void)
{
  for (int i = 0; i < 3; i++) {
    if (is_alive(shared->pids[i])) return false;
  }
  return true;
}

static void test_children_die_with_the_launcher(void **state)
{
  (void)state;
  int files = open_files();
  pid_t launcher = fork();
  if (launcher == 0) {
    cx_launcher_exit end;
    calx_status_free(spawn(3, stay, &end));
    _exit(0);
  }
  wait_until(all_started, "three children");
  kill(launcher, SIGKILL);
  assert_int_equal(waitpid(launcher, NULL, 0), launcher);
  wait_until(all_ended, "their end");
  // The service holds the store's socket, and dies with the launcher too.
  for (int64_t until = cx_now_ns() + (int64_t)PATIENCE_MS * 1000000;;) {
    char line[512];
    bool found = false;
    const char *name = strstr(shared->store, "://");
    FILE *sockets = fopen("/proc/net/unix", "r");
    while (sockets != NULL && fgets(line, sizeof line, sockets) != NULL) {
      found = found || strstr(line, name + 3) != NULL;
    }
    if (sockets != NULL) fclose(sockets);
    if (!found) break;
    if (cx_now_ns() > until) fail_msg("a socket is left");
    pause_ms(5);
  }
  check_nothing_left(files);
}

// ---- refusals ---------------------------------------------------------------

static calx_status *nothing(void *user)
{
  (void)user;
  return NULL;
}

static atomic_bool go_on;

static void linger(void *user)
{
  (void)user;
  while (!go_on) pause_ms(1);
}

static void test_threads_are_refused(void **state)
{
  (void)state;
  cx_thread thread = { 0 };
  cx_launcher_exit end;
  go_on = false;
  check_ok(cx_thread_start(&thread, linger, NULL));
  check_fails(spawn(2, nothing, &end), CALX_FAILED_PRECONDITION,
              "Runtime is already initialized");
  go_on = true;
  cx_thread_join(&thread);
}

static void test_environment_is_checked(void **state)
{
  (void)state;
  static const struct {
    const char *nodes, *node, *master, *words;
  } cases[] = {
    { "0", NULL, NULL, "CALX_NNODES is '0', a number from 1" },
    { "x", NULL, NULL, "CALX_NNODES is 'x'" },
    { "2", NULL, NULL, "CALX_NODE_RANK is not set" },
    { "2", "2", NULL, "CALX_NODE_RANK is 2, but CALX_NNODES is 2" },
    { NULL, "2", NULL, "CALX_NODE_RANK is 2, but CALX_NNODES is not set" },
    { "2", "1", NULL, "MASTER_ADDR is not set" },
    { "2", "1", "a b", "MASTER_ADDR is 'a b'" },
  };
  cx_launcher_exit end;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_no_launcher();
    if (cases[i].nodes != NULL) setenv("CALX_NNODES", cases[i].nodes, 1);
    if (cases[i].node != NULL) setenv("CALX_NODE_RANK", cases[i].node, 1);
    if (cases[i].master != NULL) setenv("MASTER_ADDR", cases[i].master, 1);
    check_fails(spawn(2, nothing, &end), CALX_INVALID_ARGUMENT, cases[i].words);
  }
  check_no_launcher();
  check_fails(spawn(0, nothing, &end), CALX_INVALID_ARGUMENT, "0 processes");
  check_fails(spawn(4097, nothing, &end), CALX_INVALID_ARGUMENT, "4097");
  setenv("CALX_NNODES", "2", 1);
  setenv("CALX_NODE_RANK", "0", 1);
  setenv("MASTER_ADDR", "localhost", 1);
  check_fails(cx_launcher_spawn(&(cx_launcher_options){ .processes = 1,
                                                        .fn = nothing,
                                                        .max_restarts = 1 },
                                &end),
              CALX_INVALID_ARGUMENT, "1 restarts");
  bool wanted;
  check_ok(cx_launcher_is_wanted(1, &wanted));
  assert_true(wanted);
  check_no_launcher();
  check_ok(cx_launcher_is_wanted(1, &wanted));
  assert_false(wanted);
  check_ok(cx_launcher_is_wanted(2, &wanted));
  assert_true(wanted);
}

// Each of the launcher's allocations fails once: it reports that, and leaves
// nothing.
static void test_out_of_memory(void **state)
{
  (void)state;
  int files = open_files(), failed = 0;
  for (long n = 0; n < 12; n++) {
    cx_launcher_output *output;
    cx_launcher_exit end;
    check_ok(
        cx_launcher_output_new(&(cx_launcher_output_options){ 0 }, &output));
    cx_alloc_fail_at(n);
    calx_status *status = cx_launcher_spawn(
        &(cx_launcher_options){
            .processes = 2, .fn = nothing, .output = output },
        &end);
    cx_alloc_fail_at(-1);
    if (status != NULL) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      assert_int_not_equal(end.code, 0);
      failed++;
    }
    calx_status_free(status);
    cx_launcher_output_free(output);
    check_nothing_left(files);
  }
  assert_true(failed >= 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SPAWN_TEST(test_places),
    SPAWN_TEST(test_endings),
    SPAWN_TEST(test_message),
    SPAWN_TEST(test_who_is_named_is_the_cause),
    SPAWN_TEST(test_who_clings_is_killed),
    SPAWN_TEST(test_who_is_stopped_is_killed),
    SPAWN_TEST(test_restarts),
    SPAWN_TEST(test_signals_are_passed_on),
    SPAWN_TEST(test_children_die_with_the_launcher),
    SPAWN_TEST(test_threads_are_refused),
    SPAWN_TEST(test_environment_is_checked),
    SPAWN_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
