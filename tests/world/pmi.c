// PMI-1: what MPICH asks, as it asks it, and which processes it is answered in.
#include "processes.h"

static void say(int fd, const char *line)
{
  WANT(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
}

// The next line, which must be this one.
static void hear(int fd, const char *wanted)
{
  char line[2048];
  size_t n = 0;
  while (n == 0 || line[n - 1] != '\n') {
    WANT(n < sizeof line - 1 && read(fd, line + n, 1) == 1);
    n++;
  }
  line[n - 1] = '\0';
  if (strcmp(line, wanted) == 0) return;
  fprintf(stderr, "process %d: '%s', not '%s'\n", me, line, wanted);
  _exit(1);
}

static void ask(int fd, const char *line, const char *wanted)
{
  say(fd, line);
  hear(fd, wanted);
}

static int number_of(const char *name)
{
  const char *text = getenv(name);
  return text == NULL ? -1 : atoi(text);
}

static void put_and_get(int fd)
{
  char line[128], value[128];
  snprintf(line, sizeof line, "cmd=put kvsname=calx key=card-%d value=a b=%d\n",
           me, me);
  ask(fd, line, "cmd=put_result rc=0 msg=success");
  ask(fd, "cmd=barrier_in\n", "cmd=barrier_out rc=0 msg=success");
  for (int i = 0; i < 4; i++) {
    snprintf(line, sizeof line, "cmd=get kvsname=calx key=card-%d\n", i);
    snprintf(value, sizeof value,
             "cmd=get_result rc=0 msg=success value=a b=%d", i);
    ask(fd, line, value);
  }
  ask(fd, "cmd=get kvsname=calx key=card-9\n",
      "cmd=get_result rc=-1 msg=key_not_found value=unknown");
  ask(fd, "cmd=barrier_in\n", "cmd=barrier_out rc=0 msg=success");
}

static void all_questions(void)
{
  OK(cx_world_join());
  const int fd = number_of("PMI_FD");
  WANT(fd >= 0 && number_of("PMI_RANK") == me && number_of("PMI_SIZE") == 4);
  WANT(number_of("CALX_PMI_FD") == fd);
  ask(fd, "cmd=init pmi_version=1 pmi_subversion=1\n",
      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  ask(fd, "cmd=get_maxes\n",
      "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024");
  ask(fd, "cmd=get_appnum\n", "cmd=appnum rc=0 appnum=0");
  ask(fd, "cmd=get_my_kvsname\n", "cmd=my_kvsname rc=0 kvsname=calx");
  ask(fd, "cmd=get_universe_size\n", "cmd=universe_size rc=0 size=4");
  ask(fd, "cmd=get kvsname=calx key=PMI_process_mapping\n",
      "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))");
  put_and_get(fd);
  // Two lines at once, and one in halves.
  say(fd, "cmd=get_appnum\ncmd=get_my_kvsname\n");
  hear(fd, "cmd=appnum rc=0 appnum=0");
  hear(fd, "cmd=my_kvsname rc=0 kvsname=calx");
  say(fd, "cmd=get_ap");
  ask(fd, "pnum\n", "cmd=appnum rc=0 appnum=0");
  ask(fd, "cmd=what\n", "cmd=unknown rc=-1");
  ask(fd, "cmd=put kvsname=calx value=x\n", "cmd=put_result rc=-1 msg=refused");
  ask(fd, "cmd=finalize\n", "cmd=finalize_ack rc=0");
  cx_world_leave(NULL);
  WANT(getenv("PMI_FD") == NULL && getenv("PMI_RANK") == NULL);
}

static void test_questions(void **state)
{
  (void)state;
  run_job(TWO_HOSTS, 4, all_questions);
}

static void no_answers(void)
{
  OK(cx_world_join());
  WANT(getenv("PMI_FD") == NULL);
  cx_world_leave(NULL);
}

// One host needs no MPI, and its launchers answer by themselves.
static void test_not_needed(void **state)
{
  (void)state;
  run_job(TORCHRUN, 2, no_answers);
  run_job(CALX_RUN, 2, no_answers);
  run_job(MPIRUN, 2, no_answers);
}

static void aborts(void)
{
  OK(cx_world_join());
  char *value = NULL;
  size_t size = 0;
  if (me == 1) say(number_of("PMI_FD"), "cmd=abort exitcode=7\n");
  FAILS(cx_world_store_get("nothing", LONG_MS, &value, &size), CALX_ABORTED,
        "MPI of process 1 ended the job (7)");
  cx_world_leave(NULL);
}

static void test_abort(void **state)
{
  (void)state;
  run_job(TWO_HOSTS, 2, aborts);
}

// What is no line ends the answers, not the process.
static void talks_nonsense(void)
{
  static char much[8192];
  OK(cx_world_join());
  const int fd = number_of("PMI_FD");
  memset(much, 'x', sizeof much);
  (void)!write(fd, much, sizeof much);
  OK(cx_world_barrier("still here", LONG_MS));
  cx_world_leave(NULL);
}

static void test_nonsense(void **state)
{
  (void)state;
  run_job(TWO_HOSTS, 2, talks_nonsense);
}

// MPI's own thread may ask after the job has failed, while this process still
// has to say why: its question is not answered, and ends nothing.
static void is_asked_later(void)
{
  OK(cx_world_join());
  const int fd = number_of("PMI_FD");
  calx_status *why = calx_status_new(CALX_DATA_LOSS, "no target");
  cx_world_leave(why);
  calx_status_free(why);
  say(fd, "cmd=barrier_in\n");
}

static void test_asked_later(void **state)
{
  (void)state;
  run_job(TWO_HOSTS, 2, is_asked_later);
}

// ---- blocks of processes ----------------------------------------------------

static void check_near(int *groups, int process, cx_world_group wanted)
{
  cx_world_global.group_of = groups;
  cx_world_global.info.processes = 5;
  cx_world_global.info.process = process;
  const cx_world_group near = cx_world_local_group();
  cx_world_global.group_of = NULL;
  cx_world_global.info.processes = 1;
  cx_world_global.info.process = 0;
  assert_int_equal(near.group, wanted.group);
  assert_int_equal(near.groups, wanted.groups);
  assert_int_equal(near.first, wanted.first);
  assert_int_equal(near.count, wanted.count);
}

static void test_neighbours(void **state)
{
  (void)state;
  int blocks[] = { 0, 0, 0, 1, 2 }, turns[] = { 0, 1, 0, 1, 0 };
  check_near(blocks, 0, (cx_world_group){ 0, 3, 0, 3, -1 });
  check_near(blocks, 2, (cx_world_group){ 0, 3, 0, 3, -1 });
  check_near(blocks, 3, (cx_world_group){ 1, 3, 3, 1, -1 });
  check_near(blocks, 4, (cx_world_group){ 2, 3, 4, 1, -1 });
  check_near(turns, 3, (cx_world_group){ 3, 5, 3, 1, -1 });
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_questions),   cmocka_unit_test(test_not_needed),
    cmocka_unit_test(test_abort),       cmocka_unit_test(test_nonsense),
    cmocka_unit_test(test_asked_later), cmocka_unit_test(test_neighbours)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
