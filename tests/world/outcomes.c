// Worlds of several processes that cannot agree, or cannot meet.
#include "processes.h"
#include "store/client.h"

// ---- failures --------------------------------------------------------

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
    cx_world_rank_end(1, NULL);
  } else {
    FAILS(agree(me, 1, "all_reduce", LONG_MS, NULL), CALX_ABORTED,
          "rank 1 has ended its function without an error after 3 agreements");
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
    cx_world_rank_end(1, why);
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
    calx_status *status = cx_world_store_get("gave up", LONG_MS, &value, &size);
    if (status == NULL) cx_free(value);
    calx_status_free(status);
  }
  FAILS(agree(me, 1, "all_reduce", me == 0 ? 300 : LONG_MS, NULL),
        CALX_DEADLINE_EXCEEDED, "all_reduce, where rank 0 waited");
  calx_status_free(cx_world_store_put("gave up", "", 0));
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
        "'joining': process 1 did not arrive within 400 ms");
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

static void ignore_failure(void *user, calx_code code, const char *message)
{
  (void)user;
  (void)code;
  (void)message;
}

// Process 1 runs no calx: it reports a host that cannot exist.
static int32_t lie;

static void one_lies(void)
{
  const char *words = "process 1 of 2 reports that it is on host";
  if (me == 0) FAILS(cx_world_join(), CALX_INVALID_ARGUMENT, words);
  if (me == 0) return;
  char url[64], *all;
  cx_store_client *client;
  cx_store_request r;
  size_t size;
  snprintf(url, sizeof url, "tcp://127.0.0.1:%s", getenv("MASTER_PORT"));
  cx_store_client_options options = { .url = url,
                                      .process = 1,
                                      .processes = 2,
                                      .heartbeat_ms = LONG_MS,
                                      .on_failure = ignore_failure };
  OK(cx_store_client_open(&options, LONG_MS, &client));
  // The host's identity, host, hosts, local, locals, hosts_known.
  unsigned char bytes[40] = { 0 };
  cx_store_wire_put32(bytes + 16, (uint32_t)lie);
  cx_store_wire_put32(bytes + 20, 2);
  cx_store_wire_put32(bytes + 28, 1);
  bytes[32] = 1;
  OK(cx_store_client_request(CX_STORE_OP_EXCHANGE_ALL, "joining", &r));
  r.a = 1;
  r.b = 2;
  r.value = (const char *)bytes;
  r.size = sizeof bytes;
  r.wait_ms = LONG_MS;
  OK(cx_store_client_call(client, &r, &all, &size));
  cx_free(all);
  cx_store_client_close(client, true);
}

static void test_hosts_that_cannot_be(void **state)
{
  (void)state;
  static const int32_t lies[] = { -1, 2, 1 << 30 };
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    lie = lies[i];
    run_job(TWO_HOSTS, 2, one_lies);
  }
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
    CHECK_TEST(test_verdicts),
    CHECK_TEST(test_ended),
    CHECK_TEST(test_devices),
    CHECK_TEST(test_missing),
    CHECK_TEST(test_hosts_that_cannot_be),
  };
  return cmocka_run_group_tests_name("world: verdicts of processes", tests,
                                     NULL, NULL);
}
