// The counters and timers of the core, by PyTorch/XLA's names: what one step
// adds to each, and what a consumed gradient is.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calx/autograd.h"
#include "fixture.h"
#include "lazy/lazy.h"

typedef struct counts {
  long mark, compiled, cached, compile_time, execute_time, up, down, graphs;
  double out_bytes, in_bytes, graph_nodes;
} counts;

static counts look(void)
{
  return (counts){
    .mark = (long)calx_counter_value("MarkStep"),
    .compiled = (long)calx_counter_value("UncachedCompile"),
    .cached = (long)calx_counter_value("CachedCompile"),
    .compile_time = lazy_samples("CompileTime"),
    .execute_time = lazy_samples("ExecuteTime"),
    .up = lazy_samples("TransferToDeviceTime"),
    .down = lazy_samples("TransferFromDeviceTime"),
    .graphs = lazy_samples("TensorsGraphSize"),
    .out_bytes = lazy_sum("OutboundData"),
    .in_bytes = lazy_sum("InboundData"),
    .graph_nodes = lazy_sum("TensorsGraphSize"),
  };
}

static void check(const counts *wanted)
{
  counts c = look();
  assert_int_equal(c.mark, wanted->mark);
  assert_int_equal(c.compiled, wanted->compiled);
  assert_int_equal(c.cached, wanted->cached);
  assert_int_equal(c.compile_time, wanted->compile_time);
  assert_int_equal(c.execute_time, wanted->execute_time);
  assert_int_equal(c.up, wanted->up);
  assert_int_equal(c.down, wanted->down);
  assert_int_equal(c.graphs, wanted->graphs);
  assert_true(c.out_bytes == wanted->out_bytes);
  assert_true(c.in_bytes == wanted->in_bytes);
  assert_true(c.graph_nodes == wanted->graph_nodes);
}

static void test_steps(void **state)
{
  (void)state;
  check(&(counts){ 0 });
  calx_tensor *x = lazy_vector(4, 1);
  check(&(counts){ .up = 1, .out_bytes = 16 });
  for (int i = 1; i <= 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *t = calx_neg(calx_mul(x, 2.5));
    calx_sync(t);
    // One program for all; the number is uploaded once: 4 bytes.
    counts c = { .mark = i,
                 .compiled = 1,
                 .cached = i - 1,
                 .compile_time = 1,
                 .execute_time = i,
                 .up = 2,
                 .down = i - 1,
                 .graphs = i,
                 .out_bytes = 20,
                 .in_bytes = 16 * (i - 1),
                 .graph_nodes = 3 * i };
    check(&c);
    lazy_holds(t, 1);
    c.down = i;
    c.in_bytes = 16 * i;
    check(&c);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  assert_true(lazy_sum("CompileTime") > 0);
  assert_true(lazy_sum("ExecuteTime") > 0);
  assert_true(lazy_sum("CompileTime") < 60);  // seconds
}

// A failed compilation is one too; a failed launch has no time.
static void test_failures(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 1);
  lazy_set("fail=PJRT_Client_Compile@1:13:no luck");
  calx_sync(calx_neg(x));
  calx_status_free(calx_scope_take_error());
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_int_equal(lazy_samples("ExecuteTime"), 0);
  assert_int_equal(lazy_samples("InputOutputAliasCount"), 0);
}

static void test_report(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  for (int i = 0; i < 2; i++) {
    calx_assign(w, calx_neg(w));
    calx_sync(NULL);
    lazy_holds(w, 1);
  }
  char *report = calx_metrics_report();
  static const char *const names[] = { "CompileTime",
                                       "ExecuteTime",
                                       "TransferToDeviceTime",
                                       "TransferFromDeviceTime",
                                       "TensorsGraphSize",
                                       "InputOutputAliasCount",
                                       "UncachedCompile",
                                       "CachedCompile",
                                       "MarkStep",
                                       "InboundData",
                                       "OutboundData" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char line[64];
    snprintf(line, sizeof line, ": %s\n", names[i]);
    const char *first = strstr(report, line);
    if (first == NULL || strstr(first + 1, line) != NULL) {
      fail_msg("%s is not once in:\n%s", names[i], report);
    }
  }
  calx_string_free(report);
  calx_release(w);
}

// ---- gradients that a step consumed -----------------------------------------

static calx_tensor *with_gradient(void)
{
  calx_tensor *w = lazy_durable(4, 1);
  calx_requires_grad(w, true);
  calx_backward(calx_sum(calx_mul(w, w)));
  return w;
}

// It is a temporary: not written out, and told of when it is used later.
static void test_consumed(void **state)
{
  (void)state;
  calx_tensor *w = with_gradient();
  calx_no_grad_begin();
  calx_assign(w, calx_sub(w, calx_grad(w)));
  calx_no_grad_end();
  cx_lazy_tensor_mark(calx_grad(w), CX_LAZY_T_CONSUMED);
  int line = __LINE__ + 1;
  calx_sync(NULL);
  char where[64];
  snprintf(where, sizeof where, "tests/lazy/counters.c:%d", line);
  float data[4];
  calx_tensor *grad = cx_lazy_tensor_grad(w);
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_tensor_read(grad, data, sizeof data), "consumed", where,
               ".keep_gradients", "calx_optimizer_zero_grad",
               "name it in the sync");
  calx_neg(grad);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "consumed");
  calx_backward(calx_sum(calx_mul(w, w)));
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_neg(calx_grad(w));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "consumed",
               "zero_grad");
  calx_release(w);
}

// Named in the sync it is kept; and not consumed, it is durable.
static void test_kept_gradients(void **state)
{
  (void)state;
  calx_tensor *w = with_gradient(), *v = with_gradient();
  cx_lazy_tensor_mark(calx_grad(w), CX_LAZY_T_CONSUMED);
  calx_sync(calx_grad(w));
  assert_true(calx_is_ready(calx_grad(w)));
  assert_true(calx_is_ready(calx_grad(v)));
  assert_null(calx_scope_error());
  calx_release(w);
  calx_release(v);
}

// Nothing but a consumed gradient is pending: nothing to run.
static void test_consumed_is_not_pending(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *w = with_gradient();
  cx_lazy_tensor_mark(calx_grad(w), CX_LAZY_T_CONSUMED);
  CHECK_STATUS_OK(calx_scope_end(scope));
  cx_lazy_sync_pending();
  assert_int_equal(calx_counter_value("MarkStep"), 0);
  calx_release(w);
}

// ---- CALX_DEBUG=trap --------------------------------------------------------

// The process stops where the first error arises, for a debugger.
static void test_trap(void **state)
{
  (void)state;
  lazy_vector(4, 1);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("CALX_DEBUG", "trap", 1);
    signal(SIGILL, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
    cx_lazy_mode_reload();
    calx_scalar(1);  // no error, no trap
    cx_lazy_scope_pin(cx_error(CALX_INTERNAL, "stop"));
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  assert_true(WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_steps),          LAZY_TEST(test_failures),
    LAZY_TEST(test_report),         LAZY_TEST(test_consumed),
    LAZY_TEST(test_kept_gradients), LAZY_TEST(test_consumed_is_not_pending),
    LAZY_TEST(test_trap),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
