// The desk by itself, with a clock of the test's own.
#include "store/core.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../world/check.h"
#include "store/core_internal.h"
#include "support/skip.h"

enum { LIMIT_MS = 5000, GRACE_MS = 500, LAUNCHER = 10 };

typedef struct heard {
  int answers, news;
  calx_code code;
  char text[CX_STORE_FAILURE_BYTES];  // of the news, else of the last answer
} heard;

static void note(void *user, const cx_store_reply_address *to,
                 const cx_store_reply *reply)
{
  heard *h = user;
  (void)to;
  h->answers++;
  h->code = reply->code;
  if (h->news > 0 && reply->kind != CX_STORE_REPLY_FAILURE) return;
  if (reply->kind == CX_STORE_REPLY_FAILURE) h->news++;
  snprintf(h->text, sizeof h->text, "%.*s", (int)reply->size,
           reply->size != 0 ? reply->value : "");
}

// A member's last words, as bytes.
static void ask_abort(cx_store_core *desk, uint32_t pipe, const char *words,
                      size_t n)
{
  unsigned char bytes[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + 256];
  cx_store_request r = { .op = CX_STORE_OP_ABORT,
                         .a = CALX_INTERNAL,
                         .size = (uint32_t)n };
  size_t size = cx_store_wire_request(&r, bytes);
  memcpy(bytes + size, words, n);
  cx_store_core_receive(desk, &(cx_store_reply_address){ .pipe = pipe }, bytes,
                        size + n, false, 0);
}

static void ask(cx_store_core *desk, uint32_t pipe, cx_store_op op, int32_t a,
                int32_t b, int64_t now)
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
  cx_store_core_receive(desk, &(cx_store_reply_address){ .pipe = pipe }, bytes,
                        size, false, now);
}

// Processes 0 and 1 over connections 1 and 2, host 1's launcher over LAUNCHER.
static cx_store_core *open_desk(heard *h)
{
  cx_store_server_options options = { .who = "process 0",
                                      .processes = 2,
                                      .hosts = 2,
                                      .heartbeat_ms = LIMIT_MS,
                                      .grace_ms = GRACE_MS };
  *h = (heard){ 0 };
  cx_store_core *desk = cx_store_core_new(&options, note, h);
  assert_non_null(desk);
  ask(desk, 1, CX_STORE_OP_HELLO, 0, 2, 0);
  ask(desk, 2, CX_STORE_OP_HELLO, 1, 2, 0);
  ask(desk, LAUNCHER, CX_STORE_OP_HELLO, -2, 2, 0);
  assert_int_equal(h->answers, 3);
  assert_int_equal(h->code, CALX_OK);
  return desk;
}

// From `begin` to `end`, ticking; of the connections, `first` to `last` show
// signs of life.
static void pass(cx_store_core *desk, int64_t begin, int64_t end,
                 uint32_t first, uint32_t last)
{
  for (int64_t now = begin; now <= end; now += 100) {
    for (uint32_t i = first; i <= last && now % 1000 == 0; i++) {
      ask(desk, i, CX_STORE_OP_DROP, 0, 0, now);
    }
    cx_store_core_tick(desk, now);
  }
}

static void test_silence(void **state)
{
  (void)state;
  heard h;
  cx_store_core *desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  pass(desk, 0, LIMIT_MS, 1, 1);
  assert_int_equal(h.news, 0);
  cx_store_core_closed(desk, LAUNCHER, LIMIT_MS);
  cx_store_core_free(desk);

  desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(desk, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  pass(desk, 0, LIMIT_MS, 1, 1);
  assert_int_equal(h.news, 0);
  pass(desk, LIMIT_MS + 100, LIMIT_MS + 100, 1, 1);
  assert_int_equal(h.news, 1);
  assert_string_equal(h.text,
                      "process 1 has gone (no sign of it for 5 s: stopped, or "
                      "its host is unreachable)");
  cx_store_core_free(desk);
}

static void test_no_silence(void **state)
{
  (void)state;
  heard h;
  cx_store_core *desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(desk, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  pass(desk, 0, 10 * LIMIT_MS, 1, 2);
  assert_int_equal(h.news, 0);
  // Who was stopped itself has heard nobody, and listens anew.
  pass(desk, 20 * LIMIT_MS, 21 * LIMIT_MS, 1, 0);
  assert_int_equal(h.news, 0);
  pass(desk, 21 * LIMIT_MS + 100, 21 * LIMIT_MS + 100, 1, 0);
  assert_int_equal(h.news, 1);
  cx_store_core_free(desk);
}

// A launcher that saw how a process ended can say it within the time of grace.
static void test_grace(void **state)
{
  (void)state;
  heard h;
  for (int late = 0; late < 2; late++) {
    cx_store_core *desk = open_desk(&h);
    ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
    cx_store_core_closed(desk, 2, 1000);
    cx_store_core_tick(desk, 1000 + GRACE_MS - 1 + late);
    assert_int_equal(h.news, late);
    cx_store_core_fail(desk, CALX_ABORTED, "rank 1 ended by signal 9 (Killed)");
    assert_int_equal(h.news, 1);
    assert_string_equal(h.text, late != 0
                                    ? "process 1 has gone (its connection "
                                      "closed)"
                                    : "rank 1 ended by signal 9 (Killed)");
    cx_store_core_free(desk);
  }
}

// What a member says of its failure is shown on the terminals of the others.
static void test_words_are_plain(void **state)
{
  (void)state;
  static const char words[] =
      "rank 1: \033[2J\rno\xc2\x9b"
      "thing\xff\n";
  heard h;
  cx_store_core *desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask_abort(desk, 2, words, sizeof words - 1);
  assert_int_equal(h.code, CALX_INTERNAL);
  assert_string_equal(h.text, "rank 1:  [2J nothing? ");
  cx_store_core_free(desk);
  desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask_abort(desk, 2, words, 0);
  assert_string_equal(h.text, "");
  cx_store_core_free(desk);
}

// A host's launcher that goes without a word is news, though its ranks have
// left: host 0's waits for it.
static void test_launchers(void **state)
{
  (void)state;
  heard h;
  for (int silent = 0; silent < 2; silent++) {
    cx_store_core *desk = open_desk(&h);
    ask(desk, 2, CX_STORE_OP_BYE, 0, 0, 0);
    ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
    if (silent == 0) cx_store_core_closed(desk, LAUNCHER, 0);
    pass(desk, 0, LIMIT_MS + 100, 1, 1);
    assert_int_equal(h.news, 1);
    assert_string_equal(
        h.text, silent == 0 ? "the launcher of host 1 has gone (its "
                              "connection closed)"
                            : "the launcher of host 1 has gone (no sign of "
                              "it for 5 s: stopped, or its host is "
                              "unreachable)");
    cx_store_core_free(desk);
  }
  cx_store_core *desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_WATCH, 0, 0, 0);
  ask(desk, LAUNCHER, CX_STORE_OP_BYE, 0, 0, 0);
  cx_store_core_closed(desk, LAUNCHER, 0);
  assert_int_equal(h.news, 0);
  cx_store_core_free(desk);
}

static void test_missing(void **state)
{
  (void)state;
  heard h;
  cx_store_core *desk = open_desk(&h);
  ask(desk, 1, CX_STORE_OP_EXCHANGE_ALL, 0, 2, 0);
  cx_store_core_tick(desk, 400);
  assert_int_equal(h.code, CALX_DEADLINE_EXCEEDED);
  assert_string_equal(h.text, "'key': no word within 400 ms from process 1");
  ask(desk, 1, CX_STORE_OP_EXCHANGE, 1, 2, 400);
  cx_store_core_tick(desk, 800);
  assert_string_equal(h.text, "'key': no word within 400 ms from number 0");
  cx_store_core_free(desk);
}

// The thread sanitizer's own code would be counted, too.
#if !defined(__SANITIZE_THREAD__)
// The instructions of one comparison, by stepping a child through it; -1: this
// machine does not let one do so.
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
    CHECK_TEST(test_words_are_plain),
    CHECK_TEST(test_launchers),
    CHECK_TEST(test_missing),
#if !defined(__SANITIZE_THREAD__)
    CHECK_TEST(test_token_takes_constant_time),
#endif
  };
  return cmocka_run_group_tests_name("world: the desk", tests, NULL, NULL);
}
