// The environment's switches: eager mode, dumps, debug modes, the pending
// graph's limit; where the library's lines go; opening and closing.
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "fixture.h"
#include "lazy/lazy.h"

static void debug(const char *flags)
{
  setenv("CALX_DEBUG", flags, 1);
  cx_lazy_mode_reload();
}

static int unset_all(void **state)
{
  unsetenv("CALX_DEBUG");
  unsetenv("CALX_EAGER");
  unsetenv("CALX_DUMP");
  unsetenv("CALX_PENDING_LIMIT");
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  cx_lazy_mode_reload();
  calx_log_set(lines_take, NULL);
  return lazy_end(state);
}

#define MODE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, lazy_begin, unset_all)

// ---- eager ------------------------------------------------------------------

// Each op runs as it is called; a step's sync has nothing left to run.
static void test_eager(void **state)
{
  (void)state;
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  calx_tensor *w = lazy_durable(4, 1), *x = lazy_vector(4, 5);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    long launches = lazy_launches();
    calx_tensor *a = calx_neg(x);
    assert_int_equal(lazy_launches(), launches + 1);
    assert_true(calx_is_ready(a));
    calx_tensor *b = calx_sub(a, w);
    assert_int_equal(lazy_launches(), launches + 2);
    calx_assign(w, b);
    calx_sync(NULL);
    assert_int_equal(lazy_launches(), launches + 2);
    assert_int_equal(calx_counter_value("MarkStep"), i + 1);
    assert_null(calx_tensor_error(a));  // nothing expires
    calx_tensor *again = calx_sub(a, w);
    assert_null(calx_tensor_error(again));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  // One program an op: neg and sub.
  assert_int_equal(calx_counter_value("UncachedCompile"), 2);
  assert_true(lazy_sum("InputOutputAliasCount") == 0);
  assert_int_equal(lines_with("before the sync"), 0);
  calx_release(w);
}

// A failed op is told where it was called.
// A draw is one op: nothing of its size is made beside it.
static void test_eager_draw(void **state)
{
  (void)state;
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  calx_scope *step = calx_scope_begin();
  long launches = lazy_launches();
  calx_tensor *t = calx_rand(CALX_SHAPE(4), .requires_grad = true);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_true(calx_tensor_requires_grad(t));
  CHECK_STATUS_OK(calx_scope_end(step));
}

static void test_eager_failure(void **state)
{
  (void)state;
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  calx_tensor *x = lazy_vector(4, 5);
  lazy_set("fail=PJRT_LoadedExecutable_Execute@1:13:no luck");
  int line = __LINE__ + 1;
  calx_neg(x);
  char where[64];
  snprintf(where, sizeof where, "modes.c:%d: ", line);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), where, "no luck");
}

// ---- the pending graph ------------------------------------------------------

static void record(int n)
{
  calx_tensor *t = calx_scalar(1);
  for (int i = 1; i < n; i++) t = calx_neg(t);
}

static void test_pending_limit(void **state)
{
  (void)state;
  setenv("CALX_PENDING_LIMIT", "1000", 1);
  cx_lazy_mode_reload();
  calx_sync(NULL);  // counted from here
  calx_scope *scope = calx_scope_begin();
  record(999);
  assert_int_equal(lines_with("never syncs"), 0);
  calx_tensor *x = lazy_vector(1, 0);
  int line = __LINE__ + 1;
  calx_neg(x);
  char where[128];
  snprintf(where, sizeof where,
           "1000 ops were recorded and none of them run: the loop around "
           "tests/lazy/modes.c:%d never syncs",
           line);
  assert_int_equal(lines_with(where), 1);
  record(5000);
  assert_int_equal(lines_with("never syncs"), 1);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// A program that syncs, or whose graph does not grow, hears nothing.
static void test_no_pending_limit(void **state)
{
  (void)state;
  setenv("CALX_PENDING_LIMIT", "1000", 1);
  cx_lazy_mode_reload();
  for (int i = 0; i < 30; i++) {
    calx_scope *scope = calx_scope_begin();
    record(100);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  calx_tensor *x = lazy_vector(4, 1);
  for (int i = 0; i < 30; i++) {
    calx_scope *scope = calx_scope_begin();
    record(100);
    calx_item(calx_sum(x));
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_int_equal(lines_with("never syncs"), 0);
}

static void test_limit_off(void **state)
{
  (void)state;
  setenv("CALX_PENDING_LIMIT", "0", 1);
  cx_lazy_mode_reload();
  calx_scope *scope = calx_scope_begin();
  record(3000);
  assert_int_equal(lines_with("never syncs"), 0);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// ---- dumps ------------------------------------------------------------------

static char *only_dump(const char *folder, int *out_count)
{
  DIR *d = opendir(folder);
  assert_non_null(d);
  char *text = NULL;
  *out_count = 0;
  for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
    if (strstr(e->d_name, ".mlir") == NULL) continue;
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    cx_free(text);
    CHECK_STATUS_OK(cx_file_read(path, 0, &text, &size));
    unlink(path);
    ++*out_count;
  }
  closedir(d);
  return text;
}

static void test_dump(void **state)
{
  (void)state;
  char folder[256];
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_dump/deep/er",
           tmp != NULL ? tmp : "/tmp");
  setenv("CALX_DUMP", folder, 1);
  calx_tensor *x = lazy_vector(4, 1);
  int line = __LINE__ + 1;
  calx_tensor *n = calx_neg(x);
  calx_sync(n);
  int count;
  char *text = only_dump(folder, &count);
  assert_int_equal(count, 1);
  char where[96];
  snprintf(where, sizeof where, "loc(\"tests/lazy/modes.c\":%d", line);
  assert_non_null(strstr(text, "stablehlo.negate"));
  assert_non_null(strstr(text, where));
  cx_free(text);
  calx_tensor *e = calx_exp(calx_neg(x)), *l = calx_log(x);
  calx_sync(e, l);
  calx_sync(calx_neg(x));  // cached: not written again
  text = only_dump(folder, &count);
  assert_int_equal(count, 1);
  cx_free(text);
  rmdir(folder);
}

static void test_dump_refused(void **state)
{
  (void)state;
  setenv("CALX_DUMP", "/dev/null/here", 1);
  calx_tensor *w = lazy_durable(4, 1);
  calx_assign(w, calx_neg(lazy_vector(4, 5)));
  calx_sync(NULL);
  calx_status *status = calx_scope_take_error();
  assert_non_null(strstr(calx_status_message(status), "/dev/null"));
  calx_status_free(status);
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// ---- debug modes ------------------------------------------------------------

static void test_nan(void **state)
{
  (void)state;
  debug("nan");
  const float good[4] = { 1, INFINITY, -INFINITY, 0 };
  const float bad[4] = { 1, 2, NAN, 4 };
  calx_tensor *a = calx_tensor_from(good, CALX_F32, CALX_SHAPE(4));
  calx_tensor *b = calx_tensor_from(bad, CALX_F32, CALX_SHAPE(4));
  a = calx_neg(a), b = calx_neg(b);
  calx_sync(a);
  assert_null(calx_scope_error());
  b = calx_neg(calx_tensor_from(bad, CALX_F32, CALX_SHAPE(4)));
  int line = __LINE__ + 1;
  calx_sync(NULL, a, b);
  char where[64];
  snprintf(where, sizeof where, "modes.c:%d: in test_nan: sync: ", line);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), where,
               "element 2 of named tensor 2", "f32[4]", "NaN");
  debug("");
  calx_sync(calx_neg(b));
  assert_null(calx_scope_error());
}

static void test_unknown_flag(void **state)
{
  (void)state;
  debug("nan,,handels,trapp,donation");
  assert_true(cx_lazy_debug_on(CX_LAZY_DEBUG_NAN));
  assert_true(cx_lazy_debug_on(CX_LAZY_DEBUG_DONATION));
  assert_false(cx_lazy_debug_on(CX_LAZY_DEBUG_HANDLES));
  assert_false(cx_lazy_debug_on(CX_LAZY_DEBUG_TRAP));
  assert_int_equal(lines_with("CALX_DEBUG: 'handels' is none of"), 1);
  assert_int_equal(lines_with("CALX_DEBUG: 'trapp' is none of"), 1);
}

// The error is on standard error before the process stops.
static void test_trap(void **state)
{
  (void)state;
  int told[2];
  char text[400] = { 0 };
  assert_int_equal(pipe(told), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(told[1], STDERR_FILENO);
    signal(SIGILL, SIG_DFL);  // the test's frame catches it
    debug("trap");
    calx_add(lazy_vector(3, 0), lazy_vector(4, 0));
    _exit(0);
  }
  close(told[1]);
  size_t n = 0;
  for (ssize_t got = 1; got > 0; n += (size_t)got) {
    got = read(told[0], text + n, sizeof text - 1 - n);
    if (got <= 0) break;
  }
  close(told[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_non_null(strstr(text, "add: "));
  assert_non_null(strstr(text, "modes.c:"));
}

// ---- lines ------------------------------------------------------------------

// A callback may use the library: no lock is held when it is called.
static void curious(void *user, const char *line)
{
  static bool inside;
  lines_take(NULL, line);
  if (inside) return;
  inside = true;
  calx_tensor *t = user;
  assert_true(calx_device_count() > 0);
  calx_manual_seed(1);
  assert_true(calx_is_ready(t));
  assert_true(lazy_holds(t, 3));
  calx_sync(t);
  inside = false;
}

static void step_of(int64_t n)
{
  calx_scope *step = calx_scope_begin();
  calx_sync(calx_neg(lazy_vector(n, 0)));
  CHECK_STATUS_OK(calx_scope_end(step));
}

static void test_curious_callback(void **state)
{
  (void)state;
  calx_tensor *t = lazy_durable(4, 3);
  calx_log_set(curious, t);
  step_of(2);
  step_of(3);
  step_of(4);
  assert_int_equal(lines_with("recompile"), 1);
  setenv("CALX_MAX_STEPS_IN_FLIGHT", "a few", 1);
  step_of(4);
  unsetenv("CALX_MAX_STEPS_IN_FLIGHT");
  setenv("CALX_CACHE_DIR", "/dev/null/cache", 1);
  step_of(5);
  setenv("CALX_CACHE_DIR", "off", 1);
  assert_true(lines_with("a few") > 0);
  assert_int_equal(lines_with("/dev/null/cache"), 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *n = calx_neg(t);
  calx_item(calx_sum(n));
  calx_sync(n);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(lines_with("before the sync"), 1);
  calx_log_set(lines_take, NULL);
  calx_release(t);
}

// ---- opening and closing ----------------------------------------------------

// All is made anew after a shutdown.
static void test_reopen(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    calx_tensor *w = lazy_durable(4, 1);
    calx_assign(w, calx_neg(w));
    calx_sync(NULL);
    calx_tensor *x = calx_neg(w);
    calx_no_grad_begin();
    assert_false(calx_is_ready(x));
    calx_release(w);
    calx_shutdown();
    assert_int_equal(cx_lazy_tensor_live(), 0);
    assert_int_equal(cx_graph_node_live(), 0);
    assert_int_equal(cx_pjrt_live(), 0);
    assert_int_equal(lazy_fake.live(), 0);
    assert_null(calx_scope_error());
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), 3);
  calx_shutdown();
  calx_shutdown();
}

static void test_shutdown_in_scope(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_neg(lazy_vector(4, 1));
  calx_shutdown();
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "not open");
  assert_true(lazy_holds(lazy_vector(4, 2), 2));
}

static void test_shutdown_waits(void **state)
{
  (void)state;
  lazy_set("async=1");
  calx_tensor *w = lazy_durable(4, 1);
  for (int i = 0; i < 3; i++) {
    calx_assign(w, calx_neg(w));
    calx_sync(NULL);
  }
  calx_release(w);
  calx_shutdown();
  assert_int_equal(lazy_fake.live(), 0);
}

// Without a plugin each use says so, and nothing is recorded.
static void test_no_plugin(void **state)
{
  (void)state;
  setenv("CALX_PLUGIN", "/nowhere/plugin.so", 1);
  for (int i = 0; i < 2; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *t = lazy_vector(4, 1);
    assert_non_null(calx_tensor_error(t));
    calx_neg(t);
    calx_scalar(1);
    calx_sync(t);
    CHECK_STATUS(CALX_NOT_FOUND, calx_scope_end(scope), "/nowhere/plugin.so");
  }
  assert_null(calx_device_current());
  CHECK_STATUS(CALX_NOT_FOUND, calx_scope_take_error(), "/nowhere");
  assert_int_equal(calx_device_count(), 0);
  CHECK_STATUS(CALX_NOT_FOUND, calx_scope_take_error(), "/nowhere");
  calx_device *d;
  CHECK_STATUS(CALX_NOT_FOUND, calx_device_open("xla", &d), "/nowhere");
  calx_memory_info info;
  CHECK_STATUS(CALX_NOT_FOUND, calx_device_memory(NULL, &info), "/nowhere");
  CHECK_STATUS_OK(calx_device_wait(NULL));
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  assert_true(lazy_holds(lazy_vector(4, 2), 2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    MODE_TEST(test_eager),
    MODE_TEST(test_eager_draw),
    MODE_TEST(test_eager_failure),
    MODE_TEST(test_pending_limit),
    MODE_TEST(test_no_pending_limit),
    MODE_TEST(test_limit_off),
    MODE_TEST(test_dump),
    MODE_TEST(test_dump_refused),
    MODE_TEST(test_nan),
    MODE_TEST(test_trap),
    MODE_TEST(test_unknown_flag),
    MODE_TEST(test_curious_callback),
    MODE_TEST(test_reopen),
    MODE_TEST(test_shutdown_in_scope),
    MODE_TEST(test_shutdown_waits),
    MODE_TEST(test_no_plugin),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
