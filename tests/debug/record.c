// CALX_REPORT: what a run did, and the lines about habits, on the fake plugin.
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/trace.h"
#include "calx/progress.h"
#include "debug/advise.h"
#include "lazy/fixture.h"
#include "profiler/internal.h"

static char path[] = "/tmp/calx_record_XXXXXX";

static int begin(void **state)
{
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) return 1;
  close(fd);
  cx_profiler_habits_forget();
  return lazy_begin(state);
}

static int end(void **state)
{
  int left = lazy_end(state);
  unlink(path);
  unsetenv("CALX_REPORT");
  unsetenv("CALX_QUIET");
  return left;
}

static json_t *load(void)
{
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (root == NULL) fail_msg("%s:%d: %s", path, error.line, error.text);
  return root;
}

static int64_t whole(const json_t *o, const char *key)
{
  const json_t *v = json_object_get(o, key);
  assert_true(json_is_integer(v));
  return json_integer_value(v);
}

static double number(const json_t *o, const char *key)
{
  const json_t *v = json_object_get(o, key);
  assert_true(json_is_number(v));
  return json_number_value(v);
}

// n steps; each of another shape where that is wanted.
static void train(int n, bool shapes)
{
  for (int i = 0; i < n; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *y = calx_neg(lazy_vector(shapes ? i + 1 : 4, 1));
    calx_sync(y);
    float data[64];
    CHECK_STATUS_OK(
        calx_tensor_read(y, data, (size_t)calx_tensor_numel(y) * 4));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
}

static void test_record(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  train(4, true);
  calx_scope *step = calx_scope_begin();
  calx_tensor *early = calx_neg(lazy_vector(1, 1));
  calx_item(early);
  CHECK_STATUS_OK(calx_scope_end(step));
  calx_shutdown();
  json_t *root = load();
  assert_int_equal(whole(root, "calx_report"), 1);
  assert_int_equal(whole(root, "rank"), 0);
  assert_int_equal(whole(root, "world"), 1);
  assert_int_equal(whole(root, "syncs"), 4);
  assert_true(number(root, "seconds") > 0);
  // From the first sync on: three steps.
  const json_t *steps = json_object_get(root, "steps");
  assert_int_equal(json_array_size(steps), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t *s = json_array_get(steps, i);
    assert_int_equal(whole(s, "first"), (int64_t)i + 2);
    assert_int_equal(whole(s, "n"), 1);
    assert_true(number(s, "seconds") >= number(s, "compile"));
    assert_true(number(s, "compile") > 0 && number(s, "sync") > 0);
  }
  const json_t *compiles = json_object_get(root, "compiles");
  assert_int_equal(json_array_size(compiles), 4);
  assert_int_equal(whole(root, "compilations"), 4);
  const json_t *third = json_array_get(compiles, 2);
  assert_int_equal(whole(third, "step"), 3);
  assert_non_null(
      strstr(json_string_value(json_object_get(third, "why")), "f32[3]"));
  assert_non_null(
      strstr(json_string_value(json_object_get(third, "site")), "record.c:"));
  assert_true(json_is_false(json_object_get(third, "loaded")));
  assert_string_equal(
      json_string_value(json_object_get(json_array_get(compiles, 0), "why")),
      "");
  const json_t *reads = json_object_get(root, "reads");
  assert_int_equal(json_array_size(reads), 2);
  assert_int_equal(whole(json_array_get(reads, 0), "count"), 4);
  assert_int_equal(whole(json_array_get(reads, 0), "early"), 0);
  assert_int_equal(whole(json_array_get(reads, 1), "early"), 1);
  const json_t *metrics = json_object_get(root, "metrics");
  const json_t *compile = json_object_get(metrics, "CompileTime");
  assert_int_equal(whole(compile, "samples"), 4);
  assert_string_equal(json_string_value(json_object_get(compile, "unit")), "s");
  assert_true(number(compile, "max") >= number(compile, "p50"));
  const json_t *counters = json_object_get(root, "counters");
  assert_int_equal(whole(counters, "MarkStep"), 4);
  assert_int_equal(whole(counters, "aten::_local_scalar_dense"), 1);
  json_decref(root);
}

// Whoever watches has the record without CALX_REPORT, from then on, over the
// devices' close, until the next opening.
static void test_watch(void **state)
{
  (void)state;
  static cx_profiler_record r;
  cx_debug_run_data run;
  train(2, false);
  assert_false(cx_profiler_record_copy(&r));
  cx_profiler_watch(true);
  cx_profiler_watch(true);
  train(3, true);
  cx_profiler_watch(false);
  CHECK_STATUS_OK(calx_device_wait(NULL));
  CHECK_STATUS_OK(cx_debug_run_now(&run));
  assert_true(run.detailed && run.has_own && run.syncs == 3);
  assert_int_equal(run.n_steps, 2);
  assert_int_equal(run.compilations, 3);
  assert_non_null(strstr(run.sites[0].site, "record.c:"));
  assert_int_equal(run.sites[0].count, 3);
  assert_int_equal(run.steps[1].first, 3);
  assert_true(run.steps[1].seconds > 0);
  assert_string_equal(run.plugin, "fake_pjrt.so");
  assert_true(cx_debug_report_counter(&run.report, "MarkStep") >= 5);
  cx_debug_run_free(&run);
  calx_shutdown();
  assert_true(cx_profiler_record_copy(&r) && r.syncs == 3);
  train(1, false);
  CHECK_STATUS_OK(calx_device_wait(NULL));
  assert_true(cx_profiler_record_copy(&r) && r.syncs == 1);
  cx_profiler_watch(false);
  assert_false(cx_profiler_record_copy(&r));
  assert_false(cx_trace_wanted(CX_TRACE_SPANS));
  CHECK_STATUS_OK(cx_debug_run_now(&run));
  assert_true(!run.detailed && run.report.n_counters > 0);
  cx_debug_run_free(&run);
}

static void test_watch_no_memory(void **state)
{
  (void)state;
  cx_debug_run_data run;
  cx_profiler_watch(true);
  train(2, false);
  for (long n = 0;; n++) {
    cx_alloc_fail_at(n);
    calx_status *status = cx_debug_run_now(&run);
    cx_alloc_fail_at(-1);
    if (status == NULL) break;
    assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    calx_status_free(status);
    assert_true(n < 1000);
  }
  cx_debug_run_free(&run);
  cx_profiler_watch(false);
}

// Steps are put together when there are too many; none is lost.
static void test_many_steps(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  train(1, false);
  CHECK_STATUS_OK(calx_device_wait(NULL));
  for (int64_t i = 1; i <= 5000; i++) {
    cx_profiler_record_span(&(cx_trace_span){
        .kind = CX_SPAN_WAIT, .start = i * 10, .end = i * 10 + 2 });
    cx_profiler_record_span(&(cx_trace_span){ .kind = CX_SPAN_STEP,
                                              .start = i * 10,
                                              .end = i * 10 + 10,
                                              .value = i });
  }
  for (int i = 0; i < 300; i++) {
    cx_profiler_record_span(
        &(cx_trace_span){ .kind = CX_SPAN_COMPILE, .start = 1, .end = 2 });
  }
  calx_shutdown();
  json_t *root = load();
  const json_t *steps = json_object_get(root, "steps");
  assert_in_range(json_array_size(steps), 1024, 2048);
  int64_t n = 0;
  double wait = 0;
  for (size_t i = 0; i < json_array_size(steps); i++) {
    const json_t *s = json_array_get(steps, i);
    assert_int_equal(whole(s, "first"), n + 1);
    n += whole(s, "n");
    wait += number(s, "wait");
  }
  assert_int_equal(n, 5000);
  CHECK_CLOSE(wait, 5000 * 2e-9, 1e-9);
  assert_int_equal(json_array_size(json_object_get(root, "compiles")), 256);
  assert_int_equal(whole(root, "compilations"), 301);
  json_decref(root);
}

// A run after calx_shutdown() is counted from its own beginning.
static void test_second_run(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  for (int i = 0; i < 2; i++) {
    train(3, false);
    calx_shutdown();
    json_t *root = load();
    const json_t *first = json_array_get(json_object_get(root, "steps"), 0);
    assert_int_equal(whole(first, "first"), 2);
    json_decref(root);
  }
}

static void tell(int device, cx_trace_kind kind, const calx_site *site)
{
  cx_trace_emit_span(&(cx_trace_span){
      .kind = kind, .device = device, .start = 1, .end = 2, .site = site });
}

// The devices that synced are counted; a cause is that of its own device's next
// program, and of none where the sync ends without one. Files of sites need not
// outlive the call.
static void test_devices(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  train(1, false);
  CHECK_STATUS_OK(calx_device_wait(NULL));
  for (int i = 0; i < 3; i++) tell(i, CX_SPAN_SYNC, NULL);
  tell(CX_PROFILER_MOST_DEVICES, CX_SPAN_SYNC, NULL);
  char file[] = "short.c";
  const calx_site site = { .file = file, .line = 7 };
  cx_trace_emit_recompile(1, "another's");
  tell(0, CX_SPAN_COMPILE, &site);
  cx_trace_emit_recompile(0, "it failed");
  tell(0, CX_SPAN_SYNC, NULL);
  tell(0, CX_SPAN_COMPILE, &site);
  cx_trace_emit_recompile(0, "its own");
  tell(0, CX_SPAN_COMPILE, &site);
  tell(0, CX_SPAN_DOWNLOAD, &site);
  memset(file, 'x', sizeof file - 1);
  calx_shutdown();
  json_t *root = load();
  assert_int_equal(whole(root, "devices"), 3);
  const json_t *compiles = json_object_get(root, "compiles");
  assert_int_equal(json_array_size(compiles), 4);
  static const char *const whys[] = { "", "", "", "its own" };
  for (size_t i = 0; i < 4; i++) {
    const json_t *c = json_array_get(compiles, i);
    assert_string_equal(json_string_value(json_object_get(c, "why")), whys[i]);
    const char *at = json_string_value(json_object_get(c, "site"));
    if (i > 0) assert_string_equal(at, "short.c:7");
  }
  const json_t *reads = json_object_get(root, "reads");
  const json_t *last = json_array_get(reads, json_array_size(reads) - 1);
  assert_string_equal(json_string_value(json_object_get(last, "site")),
                      "short.c:7");
  json_decref(root);
}

static void call_back(void *user, const char *line)
{
  lines_take(user, line);
  unsetenv("CALX_REPORT");
  assert_int_equal(calx_device_count(), 1);
}

// Told without a lock: the callback may use the library, even open it again.
static void test_unwritable(void **state)
{
  (void)state;
  setenv("CALX_REPORT", "/nonexistent/x", 1);
  train(1, false);
  calx_log_set(call_back, NULL);
  calx_shutdown();
  calx_log_set(lines_take, NULL);
  assert_int_equal(lines_with("CALX_REPORT: "), 1);
}

// Whichever allocation of the writing fails: a line, and the next run is told.
static void test_no_memory(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  for (long n = 0;; n++) {
    assert_true(cx_profiler_record_open("p", "q"));
    lines_clear();
    cx_alloc_fail_at(n);
    cx_profiler_record_close();
    cx_alloc_fail_at(-1);
    if (lines_with("CALX_REPORT: ") == 0) break;
    assert_true(n < 1000);
  }
  json_decref(load());
}

// ---- habits -----------------------------------------------------------------

static void test_habits(void **state)
{
  (void)state;
  train(31, true);
  assert_int_equal(
      lines_with("CompileTime too frequent: 10 counts during 10 steps"), 1);
  assert_int_equal(lines_with("TransferFromDeviceTime too frequent: "), 1);
  assert_int_equal(lines_with("too slow"), 0);
  train(60, true);
  assert_int_equal(lines_with("too frequent"), 2);
}

static void test_good_habits(void **state)
{
  (void)state;
  for (int i = 0; i < 40; i++) calx_sync(calx_neg(lazy_vector(4, 1)));
  assert_int_equal(lines_with("too "), 0);
}

// A progress line reads each step's number when it is there.
static void test_habits_of_progress(void **state)
{
  (void)state;
  FILE *nowhere = fopen("/dev/null", "w");
  assert_non_null(nowhere);
  calx_progress *line = calx_progress_new("steps", 40, .file = nowhere);
  for (int i = 0; i < 40; i++) {
    calx_tensor *loss = calx_sum(lazy_vector(4, 1));
    calx_progress_value(line, "loss", loss);
    calx_sync(NULL);
    calx_progress_step(line, 1);
  }
  calx_progress_end(line);
  fclose(nowhere);
  assert_int_equal(lines_with("too "), 0);
}

// Four ranks in a process, of which one reads: what all do is compared with the
// steps of all.
static void test_habits_of_ranks(void **state)
{
  (void)state;
  for (int i = 0; i < 40; i++) {
    calx_sync(calx_neg(lazy_vector(4, 1)));
    cx_metric_add(cx_metric_find("CompileTime"), 1);
    for (int device = 1; device < 4; device++) cx_trace_emit_step(device);
  }
  assert_int_equal(lines_with("too "), 0);
  for (int i = 0; i < 400; i++) {
    calx_sync(calx_neg(lazy_vector(4, 1)));
    cx_metric_add(cx_metric_find("CompileTime"), 1);
  }
  assert_int_equal(lines_with("CompileTime too frequent"), 1);
}

static pthread_barrier_t all_threads;

static void *step_again_and_again(void *first)
{
  for (int round = 0; round < 200; round++) {
    pthread_barrier_wait(&all_threads);
    if (first != NULL) cx_profiler_habits_open();
    pthread_barrier_wait(&all_threads);
    for (int i = 0; i < 24; i++) cx_profiler_habits_step(0);
  }
  return NULL;
}

// Threads that step one device look at its habits one at a time: the thread
// sanitizer sees it if they do not.
static void test_habits_of_threads(void **state)
{
  (void)state;
  pthread_t threads[4];
  train(1, false);
  assert_int_equal(pthread_barrier_init(&all_threads, NULL, 4), 0);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, step_again_and_again,
                                    i == 0 ? &all_threads : NULL),
                     0);
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_threads);
}

static void test_quiet(void **state)
{
  (void)state;
  setenv("CALX_QUIET", "1", 1);
  train(31, true);
  assert_int_equal(lines_with("too "), 0);
}

static void test_slow(void **state)
{
  (void)state;
  train(3, false);
  cx_metric_add(cx_metric_find("CompileTime"), 301e9);
  cx_metric_add(cx_metric_find("ExecuteTime"), 29e9);
  train(10, false);
  assert_int_equal(lines_with("ExecuteTime too slow"), 0);
  assert_int_equal(lines_with("CompileTime too slow: longest instance took "
                              "05m01s000ms000.000us"),
                   1);
  cx_metric_add(cx_metric_find("ExecuteTime"), 31e9);
  train(30, false);
  assert_int_equal(lines_with("too slow"), 2);
}

#define RECORD_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

// A program that sleeps between its syncs: that is no time of the library's.
static void test_own_time(void **state)
{
  (void)state;
  setenv("CALX_REPORT", path, 1);
  for (int i = 0; i < 4; i++) {
    train(1, false);
    usleep(20000);
  }
  calx_shutdown();
  json_t *root = load(), *step;
  size_t i;
  json_array_foreach(json_object_get(root, "steps"), i, step)
  {
    double own = number(step, "record") + number(step, "sync");
    assert_true(number(step, "record") > 0);
    assert_true(number(step, "seconds") >= 0.02 + own);
  }
  assert_int_equal(i, 3);
  json_decref(root);
}

// ---- signals ----------------------------------------------------------------

// The thread sanitizer does not let a fork's child start threads.
#if !defined(__SANITIZE_THREAD__)
static void leave(int number)
{
  _exit(number == SIGTERM ? 7 : 8);
}

// A child that trains for three steps, says so, and waits; how the signal ended
// it. With a handler of its own where `own` is set.
static int interrupted(int number, bool own)
{
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv("CALX_REPORT", path, 1);
    if (own) signal(number, leave);
    alarm(20);
    train(3, false);
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  assert_int_equal(kill(child, number), 0);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void check_written(void)
{
  json_t *root = load();
  assert_int_equal(whole(root, "syncs"), 3);
  json_decref(root);
  assert_int_equal(truncate(path, 0), 0);
}

static void test_signals(void **state)
{
  (void)state;
  const int numbers[] = { SIGINT, SIGTERM };
  for (int i = 0; i < 2; i++) {
    int status = interrupted(numbers[i], false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), numbers[i]);
    check_written();
    status = interrupted(numbers[i], true);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), numbers[i] == SIGTERM ? 7 : 8);
    check_written();
  }
}

#endif

// After the close the program's disposition is there again.
static void test_signals_after(void **state)
{
  (void)state;
  struct sigaction there;
  setenv("CALX_REPORT", path, 1);
  train(1, false);
  sigaction(SIGINT, NULL, &there);
  assert_true(there.sa_handler != SIG_DFL);
  calx_shutdown();
  sigaction(SIGINT, NULL, &there);
  assert_true(there.sa_handler == SIG_DFL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    RECORD_TEST(test_own_time),
#if !defined(__SANITIZE_THREAD__)
    RECORD_TEST(test_signals),
#endif
    RECORD_TEST(test_signals_after),
    RECORD_TEST(test_record),
    RECORD_TEST(test_watch),
    RECORD_TEST(test_watch_no_memory),
    RECORD_TEST(test_many_steps),
    RECORD_TEST(test_unwritable),
    RECORD_TEST(test_habits),
    RECORD_TEST(test_second_run),
    RECORD_TEST(test_devices),
    RECORD_TEST(test_habits_of_ranks),
    RECORD_TEST(test_good_habits),
    RECORD_TEST(test_habits_of_threads),
    RECORD_TEST(test_habits_of_progress),
    RECORD_TEST(test_quiet),
    RECORD_TEST(test_slow),
    RECORD_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
