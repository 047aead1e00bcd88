// Worlds of several processes: success under every launcher, and what happens
// to the others when one process ends.
#include "processes.h"

static int devices = 1;  // of each process

// ---- all is well
// -------------------------------------------------------------

static void run_rank(void *user)
{
  int rank = *(int *)user;
  for (uint64_t i = 0; i < 20; i++) {
    OK(agree(rank, i, "all_reduce at a.c:1", LONG_MS, NULL));
  }
  cx_world_rank_end(rank, NULL);
}

static void run_ranks(void)
{
  const cx_world_info *here = cx_world_self();
  cx_thread threads[MOST];
  int ranks[MOST];
  for (int i = 0; i < here->devices; i++) {
    ranks[i] = here->process * here->devices + i;
    OK(cx_thread_start(&threads[i], run_rank, &ranks[i]));
  }
  for (int i = 0; i < here->devices; i++) cx_thread_join(&threads[i]);
  cx_world_agreement_reset();
}

static void use_store(const cx_world_info *here)
{
  char key[32], *value;
  size_t size;
  snprintf(key, sizeof key, "from %d", here->process);
  OK(cx_world_store_put(key, key, strlen(key)));
  for (int i = 0; i < here->processes; i++) {
    snprintf(key, sizeof key, "from %d", i);
    OK(cx_world_store_get(key, LONG_MS, &value, &size));
    WANT(strcmp(value, key) == 0);
    cx_free(value);
  }
  for (int i = 0; i < 3; i++) OK(cx_world_barrier("all", LONG_MS));
  FAILS(cx_world_store_try_get("nobody's", &value, &size), CALX_NOT_FOUND,
        "nobody");
}

static void all_well(void)
{
  OK(cx_world_join());
  const cx_world_info *here = cx_world_self();
  WANT(here->process == me);
  use_store(here);
  for (int launch = 0; launch < 2; launch++) {
    OK(cx_world_ranks(devices));
    run_ranks();
  }
  OK(cx_world_failure());
  cx_world_leave(NULL);
  WANT(cx_world_size(cx_world_self()) == 1);
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
  const cx_world_info *here = cx_world_self();
  bool two = here->processes == 4;
  WANT(here->hosts == (two ? 2 : 1) && here->host == (two ? me / 2 : 0));
  WANT(here->local_process == (two ? me % 2 : me));
  WANT(here->local_processes == (two ? 2 : 3));
  WANT(cx_world_segment_fd() >= 0);
  cx_world_group near = cx_world_local_group();
  WANT(near.group == here->host && near.groups == here->hosts);
  WANT(near.first == (two ? me / 2 * 2 : 0));
  WANT(near.count == here->local_processes);
  WANT(near.segment_fd == cx_world_segment_fd());
  // What one writes into the segment, the others of its host see.
  atomic_uint *word = (atomic_uint *)(void *)((char *)cx_world_global.head +
                                              CALX_SEGMENT_ENGINE - 64);
  atomic_fetch_add(word, 1u);
  OK(cx_world_barrier("written", LONG_MS));
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

// ---- one goes
// ----------------------------------------------------------------

static void last_dies(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 3) raise(SIGKILL);
  FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
        "rank 3 was lost (its connection closed)");
  char *value;
  size_t size;
  FAILS(cx_world_store_get("never", LONG_MS, &value, &size), CALX_ABORTED,
        "rank 3 was lost");
  FAILS(cx_world_failure(), CALX_ABORTED, "rank 3 was lost");
  cx_world_leave(NULL);
}

static void first_dies(void)
{
  OK(cx_world_join());
  OK(cx_world_ranks(1));
  OK(agree(me, 1, "x", LONG_MS, NULL));
  if (me == 0) raise(SIGKILL);
  FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
        "process 0, which serves the store, was lost");
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
        "rank 2 was lost (silent for 0.6 s: stopped, or its host is "
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

// Who was stopped for longer than the limit, as by Ctrl-Z, has missed nothing:
// the store is there.
static void one_is_stopped(void)
{
  char *value, text[32];
  size_t size;
  setenv("CALX_HEARTBEAT_S", me == 0 ? "0" : "2", 1);
  OK(cx_world_join());
  snprintf(text, sizeof text, "%ld", (long)getpid());
  if (me == 1) {
    OK(cx_world_store_put("pid", text, strlen(text)));
    OK(cx_world_store_get("go on", LONG_MS, &value, &size));
  } else {
    OK(cx_world_store_get("pid", LONG_MS, &value, &size));
    pid_t other = (pid_t)atol(value);
    WANT(kill(other, SIGSTOP) == 0);
    nanosleep(&(struct timespec){ .tv_sec = 2, .tv_nsec = 500000000 }, NULL);
    WANT(kill(other, SIGCONT) == 0);
    // For its watch to look at the clock first.
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    OK(cx_world_store_put("go on", "", 0));
  }
  cx_free(value);
  OK(cx_world_failure());
  cx_world_leave(NULL);
}

static void test_stopped_for_a_while(void **state)
{
  (void)state;
  run_job(TORCHRUN, 2, one_is_stopped);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_all_well), CHECK_TEST(test_places),
    CHECK_TEST(test_killed),   CHECK_TEST(test_left_badly),
    CHECK_TEST(test_stopped),  CHECK_TEST(test_stopped_for_a_while),
  };
  return cmocka_run_group_tests_name("world: processes", tests, NULL, NULL);
}
