// processes: calx_launch that starts processes, each with ranks of its own. On
// the fake plugin, so what they do together is what needs no device.
//
// What happens in a child is told by its rank's status.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "launcher/spawn.h"
#include "ranks.h"

// ---- identity ---------------------------------------------------------------

typedef struct asked {
  int processes, devices;
} asked;

static calx_status *look(int index, void *user)
{
  const asked *a = user;
  int world = a->processes * a->devices;
  RANK_CHECK(calx_world_size() == world && calx_local_world_size() == world);
  RANK_CHECK(calx_process_count() == a->processes);
  RANK_CHECK(calx_process_index() == index / a->devices);
  RANK_CHECK(calx_global_ordinal() == index);
  RANK_CHECK(calx_local_ordinal() == index);
  RANK_CHECK(calx_host_index() == 0 && calx_host_count() == 1);
  char mine[16], wanted[16], *all[8];
  snprintf(mine, sizeof mine, "ORD=%d", index);
  for (int turn = 0; turn < 5; turn++) {
    CALX_TRY(calx_rendezvous("ordinals", mine, strlen(mine), all, NULL));
    for (int i = 0; i < world; i++) {
      snprintf(wanted, sizeof wanted, "ORD=%d", i);
      RANK_CHECK(strcmp(all[i], wanted) == 0);
      calx_string_free(all[i]);
    }
  }
  return NULL;
}

static void test_identity(void **state)
{
  (void)state;
  static const asked cases[] = { { 2, 1 }, { 3, 1 }, { 4, 1 },
                                 { 8, 1 }, { 2, 2 }, { 4, 2 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    asked a = cases[i];
    set_devices(a.devices);
    CHECK_STATUS_OK(calx_launch(look, &a, .processes = a.processes));
    assert_int_equal(calx_world_size(), 1);
  }
  asked a = { 2, 1 };
  set_devices(1);
  setenv("CALX_PROCESSES", "2", 1);
  calx_status *status = calx_launch(look, &a);
  unsetenv("CALX_PROCESSES");
  CHECK_STATUS_OK(status);
}

// Each process has its own copy of what is the caller's.
static calx_status *count_up(int index, void *user)
{
  (void)index;
  ++*(int *)user;
  RANK_CHECK(*(int *)user == 1);
  return NULL;
}

static void test_memory_is_not_shared(void **state)
{
  (void)state;
  int n = 0;
  set_devices(1);
  CHECK_STATUS_OK(calx_launch(count_up, &n, .processes = 3));
  assert_int_equal(n, 0);
}

// What a process has queued runs before it ends.
static calx_status *tell_pipe(void *user, calx_tensor *const *tensors, size_t n)
{
  (void)tensors, (void)n;
  for (int i = 0; i < 100; i++) sched_yield();
  return write(*(int *)user, "x", 1) == 1
             ? NULL
             : calx_status_new(CALX_INTERNAL, "the pipe is closed");
}

static calx_status *queue_closures(int index, void *user)
{
  (void)index;
  for (int i = 0; i < 10; i++) {
    calx_add_step_closure(tell_pipe, user, NULL, 0, .run_async = true);
  }
  calx_sync(NULL);
  return calx_scope_take_error();
}

static void test_queued_closures(void **state)
{
  (void)state;
  int ends[2];
  char told[64];
  set_devices(1);
  assert_int_equal(pipe(ends), 0);
  CHECK_STATUS_OK(calx_launch(queue_closures, &ends[1], .processes = 2));
  close(ends[1]);
  assert_int_equal(read(ends[0], told, sizeof told), 20);
  close(ends[0]);
}

// Each process has two devices and one rank: the second device of the first is
// not the second process's rank.
static calx_status *use_spare_device(int index, void *user)
{
  (void)index, (void)user;
  calx_device *mine = calx_device_current(), *spare;
  CALX_TRY(calx_device_open("xla:1", &spare));
  calx_device_set_current(spare);
  calx_scope *scope = calx_scope_begin();
  calx_all_reduce(calx_ones(CALX_SHAPE(2)), CALX_REDUCE_SUM);
  calx_status *status = calx_scope_end(scope);
  calx_device_set_current(mine);
  return rank_wants(status, CALX_FAILED_PRECONDITION,
                    "xla:1 is no rank of the world, which has 2, 1 of them in "
                    "this process");
}

static void test_spare_device(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(
      calx_launch(use_spare_device, NULL, .processes = 2, .devices = 1));
}

// ---- under another launcher -------------------------------------------------

static calx_status *launch_twice(void *user)
{
  asked a = { 2, 2 };
  (void)user;
  // Asked for here, but the processes are there already.
  CALX_TRY(calx_launch(look, &a, .processes = 7));
  RANK_CHECK(calx_process_count() == 2 && calx_world_size() == 4);
  calx_status *status = calx_launch(look, &a);
  if (status == NULL) exit(0);  // which leaves the world
  return status;
}

static void test_launcher(void **state)
{
  (void)state;
  set_devices(2);
  cx_launcher_options o = { .processes = 2, .fn = launch_twice };
  cx_launcher_exit end;
  CHECK_STATUS_OK(cx_launcher_spawn(&o, &end));
  assert_int_equal(end.code, 0);
}

// ---- mesh_reduce ------------------------------------------------------------

static void add_up(const double *const *values, size_t ranks, size_t count,
                   double *out)
{
  for (size_t k = 0; k < count; k++) {
    out[k] = 0;
    for (size_t r = 0; r < ranks; r++) out[k] += values[r][k];
  }
}

static calx_status *reduce(int index, void *user)
{
  (void)user;
  double values[2] = { 1.25, index }, n = calx_world_size();
  CALX_TRY(calx_mesh_reduce("values", values, 2, add_up, values));
  RANK_CHECK(values[0] == 1.25 * n && values[1] == n * (n - 1) / 2);
  return NULL;
}

static void test_mesh_reduce(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(reduce, NULL, .processes = 2));
}

// ---- failures ---------------------------------------------------------------

static calx_status *fail_in_the_middle(int index, void *user)
{
  (void)user;
  if (index == calx_world_size() / 2) {
    calx_at_(&(const calx_site){ "train.c", "step", 12 });
    return cx_error(CALX_DATA_LOSS, "the file is short");
  }
  return calx_rendezvous("epoch", NULL, 0, NULL, NULL);
}

static void test_failed_rank(void **state)
{
  (void)state;
  static const asked cases[] = {
    { 2, 1 }, { 3, 1 }, { 4, 1 }, { 8, 1 }, { 2, 2 }
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    asked a = cases[i];
    char rank[24];
    snprintf(rank, sizeof rank, "rank %d: ", a.processes * a.devices / 2);
    set_devices(a.devices);
    CHECK_STATUS(
        CALX_DATA_LOSS,
        calx_launch(fail_in_the_middle, NULL, .processes = a.processes), rank,
        "the file is short", "train.c:12");
  }
  CHECK_STATUS_OK(calx_launch(rank_nothing, NULL, .processes = 2));
}

static calx_status *end_badly(int index, void *user)
{
  if (index != 1) return calx_rendezvous("epoch", NULL, 0, NULL, NULL);
  int how = *(int *)user;
  if (how == 0) _exit(7);
  signal(how, SIG_DFL);
  kill(getpid(), how);
  for (;;) pause();  // another thread may be the one that gets it
}

static void test_lost_rank(void **state)
{
  (void)state;
  static const struct {
    int how;
    const char *told;
  } cases[] = { { 0, "exited with 7" },
                { SIGKILL, "signal 9" },
                { SIGSEGV, "signal 11" } };
  set_devices(1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int how = cases[i].how;
    calx_status *status = calx_launch(end_badly, &how, .processes = 3);
    const char *text = calx_status_message(status);
    bool told = strstr(text, "rank 1") != NULL && strstr(text, cases[i].told);
    if (!told) print_error("%s\n", text);
    calx_status_free(status);
    assert_true(told);
  }
}

// ---- when it may be called --------------------------------------------------

static void test_used_before(void **state)
{
  (void)state;
  set_devices(1);
  assert_non_null(calx_device_current());
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_launch(rank_nothing, NULL, .processes = 2),
               "Runtime is already initialized.");
}

static calx_status *nest(int index, void *user)
{
  (void)index;
  (void)user;
  return rank_wants(calx_launch(rank_nothing, NULL, .processes = 2),
                    CALX_FAILED_PRECONDITION,
                    "Runtime is already initialized.");
}

static void test_nested(void **state)
{
  (void)state;
  set_devices(1);
  CHECK_STATUS_OK(calx_launch(nest, NULL, .processes = 2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_identity),        SUPPORT_TEST(test_memory_is_not_shared),
    SUPPORT_TEST(test_queued_closures), SUPPORT_TEST(test_spare_device),
    SUPPORT_TEST(test_launcher),        SUPPORT_TEST(test_mesh_reduce),
    SUPPORT_TEST(test_failed_rank),     SUPPORT_TEST(test_lost_rank),
    SUPPORT_TEST(test_used_before),     SUPPORT_TEST(test_nested),
  };
  return cmocka_run_group_tests(tests, ranks_setup_fake, NULL);
}
