// The store's core by itself, with a clock of the test's own.
#include "store/core.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../world/check.h"
#include "store/core_internal.h"
#include "support/skip.h"

enum { LIMIT_MS = 5000, GRACE_MS = 500, LAUNCHER = 10 };

typedef struct received {
  int replies, failures;
  calx_code code;
  char text[CX_STORE_FAILURE_BYTES];  // the failure, else the last reply
} received;

static void note(void *user, const cx_store_reply_address *to,
                 const cx_store_reply *reply)
{
  received *h = user;
  (void)to;
  h->replies++;
  h->code = reply->code;
  if (h->failures > 0 && reply->kind != CX_STORE_REPLY_FAILURE) return;
  if (reply->kind == CX_STORE_REPLY_FAILURE) h->failures++;
  snprintf(h->text, sizeof h->text, "%.*s", (int)reply->size,
           reply->size != 0 ? reply->value : "");
}

// A process fails the job with a message of any bytes.
static void send_abort(cx_store_core *s, uint32_t connection,
                       const char *message, size_t n)
{
  unsigned char bytes[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + 256];
  cx_store_request r = { .op = CX_STORE_OP_ABORT,
                         .a = CALX_INTERNAL,
                         .size = (uint32_t)n };
  size_t size = cx_store_wire_request(&r, bytes);
  memcpy(bytes + size, message, n);
  cx_store_core_receive(s, &(cx_store_reply_address){ connection, 0 }, bytes,
                        size + n, false, 0);
}

static void ask(cx_store_core *s, uint32_t connection, cx_store_op op,
                int32_t a, int32_t b, int64_t now)
{
  unsigned char
      bytes[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + CX_STORE_ORIGIN_BYTES];
  cx_store_request r = { .op = op, .a = a, .b = b, .wait_ms = 1 << 20 };
  if (op == CX_STORE_OP_GET || op == CX_STORE_OP_EXCHANGE_ALL ||
      op == CX_STORE_OP_EXCHANGE) {
    snprintf(r.name, sizeof r.name, "key");
    r.wait_ms = 400;
  }
  cx_store_origin origin = { .host = -1 };
  if (op == CX_STORE_OP_HELLO) r.size = CX_STORE_ORIGIN_BYTES;
  size_t size = cx_store_wire_request(&r, bytes);
  cx_store_wire_origin(&origin, bytes + size);
  size += r.size;
  cx_store_core_receive(s,
                        &(cx_store_reply_address){ .connection = connection },
                        bytes, size, false, now);
}

// Processes 0 and 1 over connections 1 and 2, host 1's launcher over LAUNCHER.
static cx_store_core *open_core(received *h)
{
  cx_store_server_options options = { .name = "process 0",
                                      .processes = 2,
                                      .hosts = 2,
                                      .heartbeat_ms = LIMIT_MS,
                                      .grace_ms = GRACE_MS };
  *h = (received){ 0 };
  cx_store_core *s = cx_store_core_new(&options, note, h);
  assert_non_null(s);
  ask(s, 1, CX_STORE_OP_HELLO, 0, 2, 0);
  ask(s, 2, CX_STORE_OP_HELLO, 1, 2, 0);
  ask(s, LAUNCHER, CX_STORE_OP_HELLO, -2, 2, 0);
  assert_int_equal(h->replies, 3);
  assert_int_equal(h->code, CALX_OK);
  return s;
}

// Ticks from `begin` to `end`. The connections `first` to `last` send requests.
static void pass(cx_store_core *s, int64_t begin, int64_t end, uint32_t first,
                 uint32_t last)
{
  for (int64_t now = begin; now <= end; now += 100) {
    for (uint32_t i = first; i <= last && now % 1000 == 0; i++) {
      ask(s, i, CX_STORE_OP_DROP, 0, 0, now);
    }
    cx_store_core_tick(s, now);
  }
}

static void test_silence(void **state)
{
  (void)state;
  received h;
  cx_store_core *s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  pass(s, 0, LIMIT_MS, 1, 1);
  assert_int_equal(h.failures, 0);
  cx_store_core_closed(s, LAUNCHER, LIMIT_MS);
  cx_store_core_free(s);

  s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(s, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  pass(s, 0, LIMIT_MS, 1, 1);
  assert_int_equal(h.failures, 0);
  pass(s, LIMIT_MS + 100, LIMIT_MS + 100, 1, 1);
  assert_int_equal(h.failures, 1);
  assert_string_equal(h.text,
                      "process 1 was lost (silent for 5 s: stopped, or "
                      "its host is unreachable)");
  cx_store_core_free(s);
}

static void test_no_silence(void **state)
{
  (void)state;
  received h;
  cx_store_core *s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(s, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  pass(s, 0, 10 * LIMIT_MS, 1, 2);
  assert_int_equal(h.failures, 0);
  // The server itself was stopped, so the limit starts again.
  pass(s, 20 * LIMIT_MS, 21 * LIMIT_MS, 1, 0);
  assert_int_equal(h.failures, 0);
  pass(s, 21 * LIMIT_MS + 100, 21 * LIMIT_MS + 100, 1, 0);
  assert_int_equal(h.failures, 1);
  cx_store_core_free(s);
}

// A launcher can report how a process ended within the grace period.
static void test_grace(void **state)
{
  (void)state;
  received h;
  for (int late = 0; late < 2; late++) {
    cx_store_core *s = open_core(&h);
    ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
    cx_store_core_closed(s, 2, 1000);
    cx_store_core_tick(s, 1000 + GRACE_MS - 1 + late);
    assert_int_equal(h.failures, late);
    cx_store_core_fail(s, CALX_ABORTED, "rank 1 ended by signal 9 (Killed)");
    assert_int_equal(h.failures, 1);
    assert_string_equal(h.text, late != 0
                                    ? "process 1 was lost (its connection "
                                      "closed)"
                                    : "rank 1 ended by signal 9 (Killed)");
    cx_store_core_free(s);
  }
}

// The message of one process's failure is shown on the terminals of others.
static void test_plain_message(void **state)
{
  (void)state;
  static const char message[] =
      "rank 1: \033[2J\rno\xc2\x9b"
      "thing\xff\n";
  received h;
  cx_store_core *s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  send_abort(s, 2, message, sizeof message - 1);
  assert_int_equal(h.code, CALX_INTERNAL);
  assert_string_equal(h.text, "rank 1:  [2J nothing? ");
  cx_store_core_free(s);
  s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  send_abort(s, 2, message, 0);
  assert_string_equal(h.text, "");
  cx_store_core_free(s);
}

// The loss of a host's launcher is a failure even after its ranks have left,
// because host 0's launcher waits for it.
static void test_launchers(void **state)
{
  (void)state;
  received h;
  for (int silent = 0; silent < 2; silent++) {
    cx_store_core *s = open_core(&h);
    ask(s, 2, CX_STORE_OP_BYE, 0, 0, 0);
    ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
    if (silent == 0) cx_store_core_closed(s, LAUNCHER, 0);
    pass(s, 0, LIMIT_MS + 100, 1, 1);
    assert_int_equal(h.failures, 1);
    assert_string_equal(h.text, silent == 0
                                    ? "the launcher of host 1 was lost (its "
                                      "connection closed)"
                                    : "the launcher of host 1 was lost (silent "
                                      "for 5 s: stopped, or its host is "
                                      "unreachable)");
    cx_store_core_free(s);
  }
  cx_store_core *s = open_core(&h);
  ask(s, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(s, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  cx_store_core_closed(s, LAUNCHER, 0);
  assert_int_equal(h.failures, 0);
  cx_store_core_free(s);
}

static void test_missing(void **state)
{
  (void)state;
  received h;
  cx_store_core *s = open_core(&h);
  ask(s, 1, CX_STORE_OP_EXCHANGE_ALL, 0, 2, 0);
  cx_store_core_tick(s, 400);
  assert_int_equal(h.code, CALX_DEADLINE_EXCEEDED);
  assert_string_equal(h.text, "'key': process 1 did not arrive within 400 ms");
  ask(s, 1, CX_STORE_OP_EXCHANGE, 1, 2, 400);
  cx_store_core_tick(s, 800);
  assert_string_equal(h.text, "'key': member 0 did not arrive within 400 ms");
  cx_store_core_free(s);
}

// A wait that fails also reports a refused process, until all have joined.
static void test_missing_and_refused(void **state)
{
  (void)state;
  received h = { 0 };
  cx_store_server_options options = { .name = "process 0", .processes = 2 };
  cx_store_core *s = cx_store_core_new(&options, note, &h);
  assert_non_null(s);
  ask(s, 1, CX_STORE_OP_HELLO, 0, 2, 0);
  ask(s, 2, CX_STORE_OP_HELLO, 1, 3, 0);
  assert_int_equal(h.code, CALX_FAILED_PRECONDITION);
  ask(s, 1, CX_STORE_OP_EXCHANGE_ALL, 0, 2, 0);
  cx_store_core_tick(s, 400);
  assert_string_equal(
      h.text,
      "'key': process 1 did not arrive within 400 ms; 1 attempt "
      "to join was refused: process 1 expects a job of 3 "
      "processes, the store serves one of 2");
  ask(s, 3, CX_STORE_OP_HELLO, 7, 2, 400);
  ask(s, 1, CX_STORE_OP_EXCHANGE_ALL, 0, 2, 400);
  cx_store_core_tick(s, 800);
  assert_string_equal(h.text,
                      "'key': process 1 did not arrive within 400 ms; 2 "
                      "attempts to join were refused, the last one: there is "
                      "no process 7 of 2");
  ask(s, 4, CX_STORE_OP_HELLO, 1, 2, 800);
  ask(s, 1, CX_STORE_OP_EXCHANGE_ALL, 0, 2, 800);
  cx_store_core_tick(s, 1200);
  assert_string_equal(h.text, "'key': process 1 did not arrive within 400 ms");
  cx_store_core_free(s);
}

// The thread sanitizer's instructions would be counted too.
#if !defined(__SANITIZE_THREAD__)
// Counts the instructions of one comparison in a child process, by single
// steps. -1: this machine does not allow ptrace.
static long count_steps(const char *ours, const char *theirs, bool *out_same)
{
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(2);
    raise(SIGSTOP);
    bool same = cx_store_core_is_token(ours, theirs);
    raise(SIGSTOP);
    _exit(same ? 1 : 0);
  }
  int how;
  long steps = -1;
  assert_int_equal(waitpid(child, &how, 0), child);
  if (WIFSTOPPED(how)) {
    do {
      steps++;
      assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
      assert_int_equal(waitpid(child, &how, 0), child);
    } while (WIFSTOPPED(how) && WSTOPSIG(how) != SIGSTOP);
    assert_true(WIFSTOPPED(how));
    ptrace(PTRACE_DETACH, child, NULL, NULL);
    waitpid(child, &how, 0);
    *out_same = WIFEXITED(how) && WEXITSTATUS(how) == 1;
  }
  return steps;
}

static void test_token_takes_constant_time(void **state)
{
  (void)state;
  static const char token[] = "0123456789abcdef0123456789abcdef";
  static const char *const tried[] = { "0123456789abcdef0123456789abcdef",
                                       "x123456789abcdef0123456789abcdef",
                                       "0123456789abcdefx123456789abcdef",
                                       "0123456789abcdef0123456789abcdex",
                                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" };
  long first = -1;
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    bool same = false;
    long steps = count_steps(token, tried[i], &same);
    if (steps < 0) SKIP_HERE("stepping through a child");
    if (i == 0) first = steps;
    assert_int_equal(same, i == 0);
    assert_int_equal(steps, first);
  }
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_silence),
    CHECK_TEST(test_no_silence),
    CHECK_TEST(test_grace),
    CHECK_TEST(test_plain_message),
    CHECK_TEST(test_launchers),
    CHECK_TEST(test_missing),
    CHECK_TEST(test_missing_and_refused),
#if !defined(__SANITIZE_THREAD__)
    CHECK_TEST(test_token_takes_constant_time),
#endif
  };
  return cmocka_run_group_tests_name("store: the core", tests, NULL, NULL);
}
