// Places and routes by environment: every launcher, and what contradicts.
#include <unistd.h>

#include "check.h"
#include "world/rank_info.h"

// "NAME=value NAME=value": these and no other launcher's variables.
static void set_all(const char *text)
{
  check_no_launcher();
  char copy[1024];
  snprintf(copy, sizeof copy, "%s", text);
  for (char *rest, *one = strtok_r(copy, " ", &rest); one != NULL;
       one = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(one, '=');
    *value = '\0';
    assert_int_equal(setenv(one, value + 1, 1), 0);
  }
}

typedef struct place_case {
  const char *environment;
  cx_world_launcher launcher;
  int process, processes, local_process, local_processes, host, hosts;
  bool hosts_known;
  const char *url;  // how it starts
} place_case;

static const place_case cases[] = {
  { "", CX_WORLD_LAUNCHER_NONE, 0, 1, 0, 1, 0, 1, true, "" },
  { "CALX_NNODES=2 CALX_NODE_RANK=1", CX_WORLD_LAUNCHER_NONE, 0, 1, 0, 1, 0, 1,
    true, "" },
  { "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7", CX_WORLD_LAUNCHER_NONE, 0,
    1, 0, 1, 0, 1, true, "" },
  { "CALX_RANK=3 CALX_WORLD=4 CALX_LOCAL_RANK=1 CALX_LOCAL_WORLD=2 "
    "CALX_NODE_RANK=1 CALX_NNODES=2 CALX_STORE=abstract://x",
    CX_WORLD_LAUNCHER_CALX, 3, 4, 1, 2, 1, 2, true, "abstract://x" },
  { "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 "
    "GROUP_WORLD_SIZE=2 MASTER_ADDR=node-1 MASTER_PORT=29500",
    CX_WORLD_LAUNCHER_TORCHRUN, 3, 4, 1, 2, 1, 2, true, "tcp://node-1:29500" },
  { "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=::1 "
    "MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True",
    CX_WORLD_LAUNCHER_TORCHRUN, 3, 4, 1, 2, 1, 2, false, "tcp://[::1]:29501" },
  { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 CALX_PORT=99",
    CX_WORLD_LAUNCHER_TORCHRUN, 0, 2, 0, 2, 0, 1, false, "tcp://a:99" },
  { "RANK=0 WORLD_SIZE=1", CX_WORLD_LAUNCHER_TORCHRUN, 0, 1, 0, 1, 0, 1, false,
    "" },
  { "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3",
    CX_WORLD_LAUNCHER_MPICH, 2, 3, 2, 3, 0, 1, false, "abstract://calx-" },
  { "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 MASTER_ADDR=a "
    "MASTER_PORT=5",
    CX_WORLD_LAUNCHER_MPICH, 2, 3, 0, 1, 2, 3, false, "tcp://a:5" },
  { "PMI_RANK=3 PMI_SIZE=4 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 "
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[08-09] SLURM_JOB_ID=4100",
    CX_WORLD_LAUNCHER_MPICH, 3, 4, 1, 2, 1, 2, true, "tcp://n08:61444" },
  { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
    "OMPI_COMM_WORLD_LOCAL_RANK=1 "
    "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=77 SLURM_PROCID=0 "
    "SLURM_STEP_NODELIST=n SLURM_STEP_NUM_TASKS=1",
    CX_WORLD_LAUNCHER_OPENMPI, 1, 2, 1, 2, 0, 1, false, "abstract://calx-" },
  { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
    "OMPI_COMM_WORLD_LOCAL_RANK=0 "
    "OMPI_COMM_WORLD_LOCAL_SIZE=1 MASTER_ADDR=h "
    "OMPI_MCA_ess_base_jobid=41025536",
    CX_WORLD_LAUNCHER_OPENMPI, 1, 2, 0, 1, 1, 2, false, "tcp://h:63264" },
  { "PMIX_RANK=4 PMIX_NAMESPACE=s SLURM_PROCID=4 SLURM_STEP_NUM_TASKS=5 "
    "SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NUM_NODES=2 "
    "SLURM_STEP_TASKS_PER_NODE=4,1 SLURM_STEP_NODELIST=a,b SLURM_JOB_ID=1",
    CX_WORLD_LAUNCHER_PMIX, 4, 5, 0, 1, 1, 2, true, "tcp://a:61441" },
  { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=5 SLURM_LOCALID=1 SLURM_NODEID=0 "
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE=3,2 "
    "SLURM_STEP_NODELIST=gpu[3,5-6] SLURM_JOB_ID=4096",
    CX_WORLD_LAUNCHER_SLURM, 1, 5, 1, 3, 0, 2, true, "tcp://gpu3:61440" },
  { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 "
    "SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=a SLURM_JOB_ID=4096",
    CX_WORLD_LAUNCHER_SLURM, 1, 2, 1, 2, 0, 1, true, "abstract://calx-" },
};

static void test_places(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const place_case *c = &cases[i];
    cx_world_info place;
    cx_world_endpoint route;
    set_all(c->environment);
    check_ok(cx_world_info_read(&place, &route));
    bool right = place.launcher == c->launcher && place.process == c->process &&
                 place.processes == c->processes &&
                 place.local_process == c->local_process &&
                 place.local_processes == c->local_processes &&
                 place.host == c->host && place.hosts == c->hosts &&
                 place.devices == 1 && route.hosts_known == c->hosts_known &&
                 strncmp(route.url, c->url, strlen(c->url)) == 0 &&
                 (c->url[0] != '\0' || route.url[0] == '\0');
    if (right) continue;
    fail_msg("%s\n launcher %d, %d of %d, here %d of %d, host %d of %d, %s, %s",
             c->environment, (int)place.launcher, place.process,
             place.processes, place.local_process, place.local_processes,
             place.host, place.hosts, route.hosts_known ? "known" : "guessed",
             route.url);
  }
  check_no_launcher();
}

// Slurm's list of processes is not set: they are blocks of equal size.
static void test_list_that_says_nothing(void **state)
{
  (void)state;
  cx_world_info place;
  set_all(
      "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 "
      "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a "
      "SLURM_STEP_TASKS_PER_NODE=x");
  check_ok(cx_world_find(&place));
  assert_int_equal(place.local_processes, 1);
  assert_int_equal(place.hosts, 2);
  check_no_launcher();
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    const char *environment, *piece;
  } refused[] = {
    { "RANK=x WORLD_SIZE=2", "RANK is 'x', a number" },
    { "RANK=-1 WORLD_SIZE=2", "RANK is '-1', a number" },
    { "RANK=1e3 WORLD_SIZE=2", "RANK is '1e3', a number" },
    { "RANK=0 WORLD_SIZE=99999999999999999999", "WORLD_SIZE is '9999" },
    { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE is 0" },
    { "RANK=5 WORLD_SIZE=4", "RANK is 5, but WORLD_SIZE is 4" },
    { "RANK=1", "RANK is 1, but WORLD_SIZE is not set" },
    { "WORLD_SIZE=2", "WORLD_SIZE is 2, but RANK is not set" },
    { "RANK=1 WORLD_SIZE=2", "MASTER_ADDR is not set" },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a",
      "MASTER_ADDR is 'a', but neither MASTER_PORT nor CALX_PORT" },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=http",
      "MASTER_PORT is 'http'" },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000",
      "MASTER_PORT is '70000'" },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=0.0.0.0 MASTER_PORT=7",
      "MASTER_ADDR is '0.0.0.0', the name or address of one host" },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a/b MASTER_PORT=7",
      "MASTER_ADDR is 'a/b'" },
    { "RANK=1 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2",
      "LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2" },
    { "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3",
      "LOCAL_WORLD_SIZE is 3, but WORLD_SIZE is 2" },
    { "RANK=1 WORLD_SIZE=2 GROUP_RANK=2 GROUP_WORLD_SIZE=2",
      "GROUP_RANK is 2, but GROUP_WORLD_SIZE is 2" },
    { "RANK=1 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 "
      "GROUP_WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=7",
      "GROUP_WORLD_SIZE is 1, but WORLD_SIZE is 4" },
    { "CALX_RANK=1 CALX_WORLD=2", "CALX_STORE is not set" },
    { "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 "
      "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "Open MPI's mpirun runs 4 processes on 2 hosts, but MASTER_ADDR is not "
      "set" },
    { "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1",
      "MPICH's mpirun runs 2 processes on 2 hosts, but MASTER_ADDR" },
    { "PMIX_RANK=1", "PMIX_RANK is 1, but SLURM_STEP_NUM_TASKS is not set" },
    { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=1 "
      "SLURM_STEP_NUM_NODES=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=[",
      "SLURM_STEP_NODELIST is '['" },
    { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=1 "
      "SLURM_STEP_NUM_NODES=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=a,b "
      "SLURM_JOB_ID=7x",
      "SLURM_JOB_ID is '7x'" },
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    cx_world_info place;
    set_all(refused[i].environment);
    check_fails(cx_world_find(&place), CALX_INVALID_ARGUMENT, refused[i].piece);
  }
  check_no_launcher();
}

// Two jobs of a host do not meet, the processes of one do.
static void test_local_names(void **state)
{
  (void)state;
  static const char *const jobs[] = { "SLURM_JOB_ID=1 SLURM_STEP_ID=0",
                                      "SLURM_JOB_ID=1 SLURM_STEP_ID=1",
                                      "SLURM_JOB_ID=2 SLURM_STEP_ID=0" };
  char urls[3][320];
  for (int i = 0; i < 3; i++) {
    for (int process = 0; process < 2; process++) {
      char text[256];
      cx_world_info place;
      cx_world_endpoint route;
      snprintf(text, sizeof text,
               "SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=%d "
               "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=a %s",
               process, process, jobs[i]);
      set_all(text);
      check_ok(cx_world_info_read(&place, &route));
      assert_true(route.by_process);
      if (process == 1) assert_string_equal(route.url, urls[i]);
      snprintf(urls[i], sizeof urls[i], "%s", route.url);
    }
    for (int k = 0; k < i; k++) assert_string_not_equal(urls[i], urls[k]);
  }
  check_no_launcher();
}

static void test_lists(void **state)
{
  (void)state;
  char node[8];
  assert_true(cx_world_first_node("a[01-03,7],b", node, sizeof node));
  assert_string_equal(node, "a01");
  assert_true(cx_world_first_node("host,b", node, sizeof node));
  assert_string_equal(node, "host");
  assert_false(cx_world_first_node("", node, sizeof node));
  assert_false(cx_world_first_node("a[x]", node, sizeof node));
  assert_false(cx_world_first_node("longername", node, sizeof node));
  assert_int_equal(cx_world_tasks_of_node("2(x3),1", 2), 2);
  assert_int_equal(cx_world_tasks_of_node("2(x3),1", 3), 1);
  assert_int_equal(cx_world_tasks_of_node("2(x3),1", 4), 0);
  assert_int_equal(cx_world_tasks_of_node("4", 0), 4);
  assert_int_equal(cx_world_tasks_of_node("nonsense", 0), 0);
  assert_int_equal(cx_world_tasks_of_node("2(x", 5), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_places),  CHECK_TEST(test_list_that_says_nothing),
    CHECK_TEST(test_refused), CHECK_TEST(test_local_names),
    CHECK_TEST(test_lists),
  };
  return cmocka_run_group_tests_name("world: rank infos", tests, NULL, NULL);
}
