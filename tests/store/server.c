// The store's server and its clients, as threads of one process.
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../world/check.h"
#include "base/thread.h"
#include "store/client.h"
#include "store/server.h"

enum { LONG_MS = 60000 };

typedef struct watched {
  atomic_int failures, events;
  calx_code code;
  char text[256];
} watched;

static void on_failure(void *user, calx_code code, const char *message)
{
  watched *w = user;
  w->code = code;
  snprintf(w->text, sizeof w->text, "%s", message);
  atomic_fetch_add(&w->failures, 1);
}

static void on_event(void *user, const char *bytes, size_t size)
{
  watched *w = user;
  snprintf(w->text, sizeof w->text, "%.*s", (int)size, bytes);
  atomic_fetch_add(&w->events, 1);
}

// Waits until a counter reaches a value, within the time limit.
static void wait_for(atomic_int *value, int wanted)
{
  int64_t until = cx_now_ns() + (int64_t)LONG_MS * 1000000;
  while (atomic_load(value) < wanted && cx_now_ns() < until) {
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  assert_true(atomic_load(value) >= wanted);
}

// ---- a server and its clients -----------------------------------------------

enum { MOST = 4, HOSTS = 5 };

typedef struct job {
  char url[64];
  int processes;
  cx_store_server *server;
  cx_store_client *clients[MOST];
  watched watched[MOST];
} job;

static void start_server(job *j, int processes, const char *token,
                         int64_t heartbeat_ms, int64_t grace_ms)
{
  static int number;
  memset(j, 0, sizeof *j);
  snprintf(j->url, sizeof j->url, "abstract://calx-test-%ld-%d", (long)getpid(),
           number++);
  j->processes = processes;
  cx_store_server_options options = { .url = j->url,
                                      .token = token,
                                      .name = "process 0",
                                      .processes = processes,
                                      .hosts = HOSTS,
                                      .heartbeat_ms = heartbeat_ms,
                                      .grace_ms = grace_ms };
  check_ok(cx_store_server_start(&options, &j->server));
}

static calx_status *open_client(job *j, int process, const char *token,
                                int64_t heartbeat_ms, cx_store_client **out)
{
  cx_store_client_options options = { .url = j->url,
                                      .token = token,
                                      .process = process,
                                      .processes = j->processes,
                                      .heartbeat_ms = heartbeat_ms,
                                      .on_failure = on_failure,
                                      .on_event = on_event,
                                      .user = process >= 0
                                                  ? &j->watched[process]
                                                  : NULL };
  return cx_store_client_open(&options, LONG_MS, out);
}

static void start_job(job *j, int processes, int64_t heartbeat_ms)
{
  start_server(j, processes, "token", heartbeat_ms, 0);
  for (int i = 0; i < processes; i++) {
    check_ok(open_client(j, i, "token", heartbeat_ms, &j->clients[i]));
  }
}

static void end_job(job *j)
{
  for (int i = 0; i < MOST; i++) {
    if (j->clients[i] != NULL) cx_store_client_close(j->clients[i], true);
  }
  assert_true(cx_store_server_drain(j->server, LONG_MS));
  cx_store_server_stop(j->server);
}

static calx_status *call(cx_store_client *c, cx_store_op op, const char *name,
                         const char *value, int64_t wait_ms, char **out)
{
  cx_store_request r;
  size_t size;
  CALX_TRY(cx_store_client_request(op, name, &r));
  r.value = value;
  r.size = value != NULL ? strlen(value) : 0;
  r.wait_ms = wait_ms;
  return cx_store_client_call(c, &r, out, &size);
}

static calx_status *exchange(cx_store_client *c, const char *name, int index,
                             int count, const char *value, int64_t wait_ms,
                             char **out, size_t *size)
{
  cx_store_request r;
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE_ALL, name, &r));
  r.a = index;
  r.b = count;
  r.value = value;
  r.size = value != NULL ? strlen(value) : 0;
  r.wait_ms = wait_ms;
  return cx_store_client_call(c, &r, out, size);
}

// ---- tests ------------------------------------------------------------------

static void test_put_get(void **state)
{
  (void)state;
  job j;
  char *value;
  start_job(&j, 2, 5000);
  check_ok(call(j.clients[0], CX_STORE_OP_PUT, "k", "value", 0, NULL));
  check_ok(call(j.clients[1], CX_STORE_OP_PUT, "k", "value", 0, NULL));
  check_fails(call(j.clients[1], CX_STORE_OP_PUT, "k", "other", 0, NULL),
              CALX_ALREADY_EXISTS, "'k'");
  check_ok(call(j.clients[1], CX_STORE_OP_GET, "k", NULL, LONG_MS, &value));
  assert_string_equal(value, "value");
  cx_free(value);
  check_fails(call(j.clients[1], CX_STORE_OP_TRY, "none", NULL, 0, &value),
              CALX_NOT_FOUND, "'none'");
  check_fails(call(j.clients[1], CX_STORE_OP_GET, "none", NULL, 20, &value),
              CALX_DEADLINE_EXCEEDED, "nobody put key 'none' within 20 ms");
  check_ok(call(j.clients[0], CX_STORE_OP_DROP, "k", NULL, 0, NULL));
  check_fails(call(j.clients[1], CX_STORE_OP_TRY, "k", NULL, 0, &value),
              CALX_NOT_FOUND, "'k'");
  check_fails(call(j.clients[1], CX_STORE_OP_TRY, "", NULL, 0, &value),
              CALX_INVALID_ARGUMENT, "1 to 1024");
  end_job(&j);
}

static void test_large(void **state)
{
  (void)state;
  job j;
  enum { SIZE = 3 << 20 };
  char *large = cx_alloc(SIZE), *back;
  size_t size;
  for (int i = 0; i < SIZE; i++) large[i] = (char)(i * 7 >> 3);
  start_job(&j, 1, 5000);
  cx_store_request r;
  check_ok(cx_store_client_request(CX_STORE_OP_PUT, "large", &r));
  r.value = large;
  r.size = SIZE;
  check_ok(cx_store_client_call(j.clients[0], &r, NULL, NULL));
  check_ok(cx_store_client_request(CX_STORE_OP_GET, "large", &r));
  check_ok(cx_store_client_call(j.clients[0], &r, &back, &size));
  assert_int_equal(size, SIZE);
  assert_memory_equal(back, large, SIZE);
  cx_free(back);
  cx_free(large);
  end_job(&j);
}

typedef struct waiter {
  cx_thread thread;
  cx_store_client *client;
  int index, count;
  bool meets;
  calx_status *status;
  char *value;
  size_t size;
} waiter;

static void wait_long(void *user)
{
  waiter *w = user;
  w->status = w->meets ? exchange(w->client, "all", w->index, w->count, "x",
                                  LONG_MS, &w->value, &w->size)
                       : call(w->client, CX_STORE_OP_GET, "late", NULL, LONG_MS,
                              &w->value);
}

static void start_waiter(waiter *w, cx_store_client *client, int index,
                         int count)
{
  *w = (waiter){
    .client = client, .index = index, .count = count, .meets = count > 0
  };
  check_ok(cx_thread_start(&w->thread, wait_long, w));
}

static void test_waiting(void **state)
{
  (void)state;
  job j;
  waiter w[6];
  start_job(&j, 2, 5000);
  for (int i = 0; i < 6; i++) start_waiter(&w[i], j.clients[i % 2], 0, 0);
  check_ok(call(j.clients[0], CX_STORE_OP_PUT, "late", "value", 0, NULL));
  for (int i = 0; i < 6; i++) {
    cx_thread_join(&w[i].thread);
    check_ok(w[i].status);
    assert_string_equal(w[i].value, "value");
    cx_free(w[i].value);
  }
  end_job(&j);
}

static void test_meeting(void **state)
{
  (void)state;
  job j;
  waiter w[2];
  start_job(&j, 3, 5000);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) start_waiter(&w[i], j.clients[i], i, 3);
    char *all;
    size_t size;
    check_ok(exchange(j.clients[2], "all", 2, 3, "yes", LONG_MS, &all, &size));
    assert_int_equal(size, 3 * 4 + 1 + 1 + 3);
    const char *list = all, *value;
    size_t left = size, bytes;
    for (int i = 0; i < 3; i++) {
      assert_true(cx_store_wire_next(&list, &left, &value, &bytes));
      assert_int_equal(bytes, i == 2 ? 3 : 1);
    }
    assert_memory_equal(value, "yes", 3);
    assert_false(cx_store_wire_next(&list, &left, &value, &bytes));
    for (int i = 0; i < 2; i++) {
      cx_thread_join(&w[i].thread);
      check_ok(w[i].status);
      assert_int_equal(w[i].size, size);
      assert_memory_equal(w[i].value, all, size);
      cx_free(w[i].value);
    }
    cx_free(all);
  }
  end_job(&j);
}

static void test_missing(void **state)
{
  (void)state;
  job j;
  char *all;
  size_t size;
  start_job(&j, 4, 5000);
  check_fails(exchange(j.clients[1], "b", 1, 4, NULL, 20, &all, &size),
              CALX_DEADLINE_EXCEEDED,
              "'b': processes 0, 2, 3 did not arrive within 20 ms");
  // A member whose limit has passed is no longer in the exchange.
  check_fails(exchange(j.clients[2], "b", 2, 4, NULL, 20, &all, &size),
              CALX_DEADLINE_EXCEEDED,
              "processes 0, 1, 3 did not arrive within 20 ms");
  check_fails(exchange(j.clients[2], "b", 1, 3, NULL, 20, &all, &size),
              CALX_INVALID_ARGUMENT, "member 1 of 3");
  check_fails(exchange(j.clients[2], "b", 4, 4, NULL, 20, &all, &size),
              CALX_INVALID_ARGUMENT, "member 4 of 4");
  check_fails(exchange(j.clients[2], "b", 0, 5, NULL, 20, &all, &size),
              CALX_INVALID_ARGUMENT, "member 0 of 5");
  waiter w;
  start_waiter(&w, j.clients[0], 0, 4);
  // Process 3 leaves: members that wait for it fail at once, later ones too.
  cx_store_client_close(j.clients[3], true);
  j.clients[3] = NULL;
  cx_thread_join(&w.thread);
  check_fails(w.status, CALX_ABORTED, "'all': process 3 has ended");
  check_fails(exchange(j.clients[1], "c", 1, 4, NULL, LONG_MS, &all, &size),
              CALX_ABORTED, "'c': process 3 has ended");
  // That is no failure of the job.
  check_ok(cx_store_client_failure(j.clients[0]));
  end_job(&j);
}

static void check_all_failed(job *j, int processes, const char *message)
{
  for (int i = 0; i < processes; i++) {
    if (j->clients[i] == NULL) continue;
    wait_for(&j->watched[i].failures, 1);
    assert_string_equal(j->watched[i].text, message);
    check_fails(cx_store_client_failure(j->clients[i]), CALX_ABORTED, message);
  }
}

static void test_lost(void **state)
{
  (void)state;
  job j;
  waiter w[2];
  char *value;
  start_job(&j, 4, 5000);
  start_waiter(&w[0], j.clients[0], 0, 0);
  start_waiter(&w[1], j.clients[1], 1, 4);
  check_ok(call(j.clients[0], CX_STORE_OP_PUT, "seen", "", 0, NULL));
  cx_store_client_close(j.clients[3], false);
  j.clients[3] = NULL;
  const char *message = "process 3 was lost (its connection closed)";
  for (int i = 0; i < 2; i++) {
    cx_thread_join(&w[i].thread);
    check_fails(w[i].status, CALX_ABORTED, message);
  }
  check_all_failed(&j, 3, message);
  check_fails(call(j.clients[2], CX_STORE_OP_TRY, "seen", NULL, 0, &value),
              CALX_ABORTED, message);
  end_job(&j);
}

static void test_names_ranks(void **state)
{
  (void)state;
  job j;
  start_job(&j, 3, 5000);
  check_ok(call(j.clients[0], CX_STORE_OP_PUT, "world/devices", "1", 0, NULL));
  cx_store_client_close(j.clients[2], false);
  j.clients[2] = NULL;
  check_all_failed(&j, 2, "rank 2 was lost (its connection closed)");
  end_job(&j);
  start_job(&j, 3, 5000);
  check_ok(call(j.clients[0], CX_STORE_OP_PUT, "world/devices", "4", 0, NULL));
  cx_store_client_close(j.clients[2], false);
  j.clients[2] = NULL;
  check_all_failed(
      &j, 2, "process 2 (ranks 8 to 11) was lost (its connection closed)");
  end_job(&j);
}

static void test_first_failure(void **state)
{
  (void)state;
  job j;
  start_job(&j, 2, 5000);
  check_fails(
      cx_store_client_fail(j.clients[0], CALX_ABORTED, "rank 0: no data"),
      CALX_ABORTED, "rank 0: no data");
  check_fails(cx_store_client_fail(j.clients[1], CALX_ABORTED, "and rank 1"),
              CALX_ABORTED, "rank 0: no data");
  check_all_failed(&j, 2, "rank 0: no data");
  check_fails(cx_store_client_fail(j.clients[1], CALX_ABORTED, "too late"),
              CALX_ABORTED, "rank 0: no data");
  check_all_failed(&j, 2, "rank 0: no data");
  end_job(&j);
}

// A failure may have any code, also one that is used where the store does not
// answer. In most of the rounds the client's watch has not received it yet.
static void test_failure_of_any_code(void **state)
{
  (void)state;
  static const calx_code codes[] = { CALX_DEADLINE_EXCEEDED, CALX_UNAVAILABLE };
  for (size_t i = 0; i < 2; i++) {
    job j;
    start_job(&j, 1, 5000);
    check_fails(cx_store_client_fail(j.clients[0], codes[i], "rank 0 was late"),
                codes[i], "rank 0 was late");
    for (int round = 0; round < HOSTS; round++) {
      cx_store_client *launcher;
      cx_store_client_options options = { .url = j.url,
                                          .token = "token",
                                          .process = -1 - round,
                                          .processes = 1,
                                          .heartbeat_ms = 5000,
                                          .on_failure = on_failure,
                                          .on_event = on_event,
                                          .user = &j.watched[1] };
      check_ok(cx_store_client_open(&options, LONG_MS, &launcher));
      check_fails(cx_store_client_fail(launcher, CALX_ABORTED, "mine"),
                  codes[i], "rank 0 was late");
      cx_store_client_close(launcher, true);
    }
    end_job(&j);
  }
}

static void test_events(void **state)
{
  (void)state;
  job j;
  start_job(&j, 2, 5000);
  for (int i = 0; i < 3; i++) {
    check_ok(
        call(j.clients[0], CX_STORE_OP_EVENT, "-", "rank 0 ended", 0, NULL));
  }
  for (int i = 0; i < 2; i++) {
    wait_for(&j.watched[i].events, 3);
    assert_string_equal(j.watched[i].text, "rank 0 ended");
  }
  end_job(&j);
}

static void test_lost_server(void **state)
{
  (void)state;
  job j;
  waiter w;
  start_job(&j, 1, 5000);
  start_waiter(&w, j.clients[0], 0, 0);
  cx_store_server_stop(j.server);
  cx_thread_join(&w.thread);
  const char *message =
      "process 0, which serves the store, was lost (its connection closed)";
  check_fails(w.status, CALX_ABORTED, message);
  check_all_failed(&j, 1, message);
  check_fails(cx_store_client_fail(j.clients[0], CALX_ABORTED, "mine"),
              CALX_ABORTED, message);
  cx_store_client_close(j.clients[0], true);
}

static void test_refused(void **state)
{
  (void)state;
  job j;
  cx_store_client *c;
  start_server(&j, 2, "secret", 5000, 0);
  check_fails(open_client(&j, 0, "guess", 5000, &c), CALX_UNAUTHENTICATED,
              "CALX_TOKEN");
  check_fails(open_client(&j, 0, NULL, 5000, &c), CALX_UNAUTHENTICATED,
              "CALX_TOKEN");
  assert_null(c);
  check_fails(open_client(&j, 2, "secret", 5000, &c), CALX_INVALID_ARGUMENT,
              "no process 2 of 2");
  check_ok(open_client(&j, 0, "secret", 5000, &j.clients[0]));
  check_fails(open_client(&j, 0, "secret", 5000, &c), CALX_ALREADY_EXISTS,
              "two have the same number");
  j.processes = 3;
  check_fails(
      open_client(&j, 1, "secret", 5000, &c), CALX_FAILED_PRECONDITION,
      "process 1 expects a job of 3 processes, the store serves one of 2");
  check_fails(open_client(&j, -1, "secret", 5000, &c), CALX_FAILED_PRECONDITION,
              "launcher of host 0 expects a job of 3 processes, the store "
              "serves one of 2");
  j.processes = 2;
  check_fails(open_client(&j, -1 - HOSTS, "secret", 5000, &c),
              CALX_INVALID_ARGUMENT, "no launcher of host 5");
  check_ok(open_client(&j, 1, "secret", 5000, &j.clients[1]));
  check_ok(cx_store_client_failure(j.clients[0]));
  cx_store_client_close(j.clients[1], true);
  j.clients[1] = NULL;
  check_fails(open_client(&j, 1, "secret", 5000, &c), CALX_FAILED_PRECONDITION,
              "process 1 left this job before");
  end_job(&j);
}

// A token that differs in one byte or in its length is refused.
static void test_tokens(void **state)
{
  (void)state;
  job j;
  cx_store_client *c;
  char token[CX_STORE_TOKEN_BYTES + 1], other[CX_STORE_TOKEN_BYTES + 2];
  memset(token, 'x', CX_STORE_TOKEN_BYTES);
  token[CX_STORE_TOKEN_BYTES] = '\0';
  start_server(&j, 1, token, 5000, 0);
  for (int i = 0; i < CX_STORE_TOKEN_BYTES; i += 51) {
    memcpy(other, token, sizeof token);
    other[i] = 'y';
    check_fails(open_client(&j, 0, other, 5000, &c), CALX_UNAUTHENTICATED,
                "CALX_TOKEN");
    other[i] = '\0';
    check_fails(open_client(&j, 0, other, 5000, &c), CALX_UNAUTHENTICATED,
                "CALX_TOKEN");
  }
  snprintf(other, sizeof other, "%sx", token);
  check_fails(open_client(&j, 0, other, 5000, &c), CALX_INVALID_ARGUMENT,
              "the token has 257 bytes, at most 256 are taken");
  check_ok(open_client(&j, 0, token, 5000, &j.clients[0]));
  end_job(&j);
}

static void test_nobody(void **state)
{
  (void)state;
  cx_store_client *c;
  cx_store_client_options options = {
    .url = "abstract://calx-nobody-serves-this", .process = 1, .processes = 2
  };
  check_fails(cx_store_client_open(&options, 50, &c), CALX_DEADLINE_EXCEEDED,
              "process 1 of 2: nobody serves the store at abstract://calx");
  options.process = -2;
  check_fails(cx_store_client_open(&options, 50, &c), CALX_DEADLINE_EXCEEDED,
              "the launcher of host 1: nobody serves the store at abstract:");
  options.url = "nonsense";
  check_fails(cx_store_client_open(&options, 50, &c), CALX_UNAVAILABLE,
              "nonsense");
  cx_store_server *s;
  cx_store_server_options bad = { .url = "tcp://192.0.2.1:1",
                                  .name = "x",
                                  .processes = 1 };
  check_fails(cx_store_server_start(&bad, &s), CALX_UNAVAILABLE,
              "cannot be served at tcp://192.0.2.1:1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_put_get),
    CHECK_TEST(test_large),
    CHECK_TEST(test_waiting),
    CHECK_TEST(test_meeting),
    CHECK_TEST(test_missing),
    CHECK_TEST(test_lost),
    CHECK_TEST(test_names_ranks),
    CHECK_TEST(test_first_failure),
    CHECK_TEST(test_failure_of_any_code),
    CHECK_TEST(test_events),
    CHECK_TEST(test_lost_server),
    CHECK_TEST(test_refused),
    CHECK_TEST(test_tokens),
    CHECK_TEST(test_nobody),
  };
  return cmocka_run_group_tests_name("world: the store's server", tests, NULL,
                                     NULL);
}
