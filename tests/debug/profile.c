// The profile: valid JSON with a span for each thing that happened, bounded,
// and regions.
#include <jansson.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/trace.h"
#include "lazy/fixture.h"
#include "profiler/internal.h"

static char path[] = "/tmp/calx_profile_XXXXXX";

static int begin(void **state)
{
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) return 1;
  close(fd);
  return lazy_begin(state);
}

static int end(void **state)
{
  unlink(path);
  unsetenv("CALX_PROFILE");
  cx_trace_set_ranks(&(cx_trace_ranks){ 0, 1, true });
  return lazy_end(state);
}

static json_t *load(const char *name)
{
  json_error_t error;
  json_t *root = json_load_file(name, 0, &error);
  if (root == NULL) fail_msg("%s:%d: %s", name, error.line, error.text);
  return root;
}

static const char *text_of(const json_t *event, const char *key)
{
  const char *s = json_string_value(json_object_get(event, key));
  return s != NULL ? s : "";
}

// Complete events of a category, with a name unless it is NULL; the last one.
static int events(const json_t *root, const char *category, const char *name,
                  const json_t **out)
{
  int n = 0;
  size_t i;
  json_t *e;
  json_array_foreach(json_object_get(root, "traceEvents"), i, e)
  {
    if (strcmp(text_of(e, "ph"), "X") != 0) continue;
    assert_true(json_number_value(json_object_get(e, "dur")) >= 0);
    assert_true(json_is_integer(json_object_get(e, "tid")));
    if (strcmp(text_of(e, "cat"), category) != 0) continue;
    if (name != NULL && strcmp(text_of(e, "name"), name) != 0) continue;
    n++;
    if (out != NULL) *out = e;
  }
  return n;
}

static void train(int steps)
{
  for (int i = 0; i < steps; i++) {
    calx_scope *step = calx_scope_begin();
    calx_trace_begin("forward \"1\"\n\xff");
    calx_trace_begin("conv1");
    calx_tensor *y = calx_neg(lazy_vector(4, 1));
    calx_trace_end();
    calx_trace_end();
    calx_sync(y);
    calx_item(calx_sum(y));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_STATUS_OK(calx_device_wait(NULL));
}

static void test_spans(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_profile_start(path));
  train(5);
  CHECK_STATUS_OK(calx_profile_stop());
  json_t *root = load(path);
  const json_t *e = NULL;
  assert_int_equal(events(root, "sync", NULL, NULL), 5);
  // From the first sync on: four steps, with what was recorded in them.
  assert_int_equal(events(root, "step", NULL, &e), 4);
  assert_string_equal(text_of(e, "name"), "step 5");
  assert_int_equal(events(root, "trace", NULL, NULL), 4);
  assert_int_equal(events(root, "compile", NULL, &e), 2);
  const char *site = text_of(json_object_get(e, "args"), "site");
  assert_non_null(strstr(site, "profile.c:"));
  assert_int_equal(events(root, "execute", NULL, NULL), 10);
  assert_int_equal(events(root, "transfer to device", NULL, &e), 5);
  assert_int_equal(
      json_integer_value(json_object_get(json_object_get(e, "args"), "bytes")),
      16);
  assert_int_equal(events(root, "transfer from device", NULL, NULL), 5);
  assert_int_equal(events(root, "region", "conv1", NULL), 5);
  // What is not UTF-8 is a question mark.
  assert_int_equal(events(root, "region", "forward \"1\"\n?", NULL), 5);
  json_decref(root);
}

// What lies between two profiles is no step of the second.
static void test_second_profile(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS_OK(calx_profile_start(path));
    train(3);
    CHECK_STATUS_OK(calx_profile_stop());
    json_t *root = load(path);
    assert_int_equal(events(root, "step", NULL, NULL), 2);
    assert_int_equal(events(root, "trace", NULL, NULL), 2);
    json_decref(root);
  }
}

// Of what began before the profile only the rest is shown. A site's file need
// not outlive the call.
static void test_begun_before(void **state)
{
  (void)state;
  char file[] = "short.c";
  int64_t before = cx_now_ns();
  CHECK_STATUS_OK(calx_profile_start(path));
  int64_t hour = INT64_C(3600000000000);
  cx_trace_emit_span(
      &(cx_trace_span){ .kind = CX_SPAN_WAIT,
                        .start = before - hour,
                        .end = before + hour,
                        .site = &(calx_site){ .file = file, .line = 7 } });
  memset(file, 'x', sizeof file - 1);
  CHECK_STATUS_OK(calx_profile_stop());
  json_t *root = load(path);
  const json_t *e = NULL;
  assert_int_equal(events(root, "wait", NULL, &e), 1);
  assert_true(json_number_value(json_object_get(e, "ts")) == 0);
  double dur = json_number_value(json_object_get(e, "dur"));
  assert_true(dur > 0 && dur <= (double)hour / 1e3);
  assert_string_equal(text_of(json_object_get(e, "args"), "site"), "short.c:7");
  json_decref(root);
}

static void test_environment(void **state)
{
  (void)state;
  setenv("CALX_PROFILE", path, 1);
  train(2);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_profile_start("/tmp/other"),
               "one is running", path);
  calx_shutdown();
  json_t *root = load(path);
  assert_int_equal(events(root, "sync", NULL, NULL), 2);
  json_decref(root);
  assert_int_equal(atomic_load(&cx_trace_kinds_wanted), 0);
}

// Each rank's process writes a file of its own, with its ranks' numbers.
static void test_rank(void **state)
{
  (void)state;
  cx_trace_set_ranks(&(cx_trace_ranks){ 3, 4, false });
  CHECK_STATUS_OK(calx_profile_start(path));
  train(1);
  CHECK_STATUS_OK(calx_profile_stop());
  char name[64];
  snprintf(name, sizeof name, "%s.3", path);
  json_t *root = load(name);
  const json_t *e = NULL;
  assert_int_equal(events(root, "sync", NULL, &e), 1);
  assert_int_equal(json_integer_value(json_object_get(e, "pid")), 3);
  json_decref(root);
  unlink(name);
  // A device is no name that others are made of.
  CHECK_STATUS_OK(calx_profile_start("/dev/null"));
  train(1);
  CHECK_STATUS_OK(calx_profile_stop());
  assert_false(cx_file_exists("/dev/null.3"));
}

static void test_misuse(void **state)
{
  (void)state;
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_profile_stop(),
               "none is running");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_profile_start(""), "no path");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_profile_start(NULL), "no path");
  CHECK_STATUS_OK(calx_profile_start("/nonexistent/x"));
  calx_status *status = calx_profile_stop();
  assert_non_null(strstr(calx_status_message(status), "writing the profile"));
  calx_status_free(status);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_profile_stop(),
               "none is running");
}

// A full ring loses its oldest, and says so.
static void test_bounded(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_profile_start(path));
  for (int i = 1; i <= 10000; i++) {
    cx_trace_emit_span(&(cx_trace_span){
        .kind = CX_SPAN_WAIT, .start = i, .end = i + 1, .value = i });
  }
  CHECK_STATUS_OK(calx_profile_stop());
  json_t *root = load(path);
  const json_t *e = NULL;
  assert_int_equal(events(root, "wait", NULL, &e), 8192);
  assert_int_equal(
      json_integer_value(json_object_get(json_object_get(e, "args"), "bytes")),
      10000);
  assert_int_equal(json_integer_value(json_object_get(
                       json_object_get(root, "otherData"), "lost")),
                   10000 - 8192);
  json_decref(root);
}

// A second device's spans are those of the next rank.
static void test_ranks_of_threads(void **state)
{
  (void)state;
  cx_trace_set_ranks(&(cx_trace_ranks){ 4, 8, true });
  CHECK_STATUS_OK(calx_profile_start(path));
  int64_t t = cx_now_ns();
  for (int i = 0; i < 2; i++) {
    cx_trace_emit_span(&(cx_trace_span){
        .kind = CX_SPAN_EXECUTE, .device = i, .start = t + 5, .end = t + 9 });
    // Waits for the one before: nothing is left of it but its end.
    cx_trace_emit_span(&(cx_trace_span){
        .kind = CX_SPAN_EXECUTE, .device = i, .start = t + 6, .end = t + 8 });
  }
  // Past all devices: it is nobody's.
  cx_trace_emit_span(&(cx_trace_span){ .kind = CX_SPAN_EXECUTE,
                                       .device = CX_PROFILER_MOST_DEVICES,
                                       .start = t + 1,
                                       .end = t + 2 });
  CHECK_STATUS_OK(calx_profile_stop());
  char name[64];
  snprintf(name, sizeof name, "%s.4", path);
  json_t *root = load(name);
  unlink(name);
  int of_rank[2] = { 0 }, empty = 0;
  size_t i;
  json_t *e;
  json_array_foreach(json_object_get(root, "traceEvents"), i, e)
  {
    if (strcmp(text_of(e, "cat"), "execute") != 0) continue;
    int pid = (int)json_integer_value(json_object_get(e, "pid"));
    assert_in_range(pid, 4, 5);
    of_rank[pid - 4]++;
    empty += json_number_value(json_object_get(e, "dur")) == 0;
  }
  assert_true(of_rank[0] == 2 && of_rank[1] == 2 && empty == 2);
  json_decref(root);
}

static atomic_bool over;

static void tell_much(void *user)
{
  int *told = user;
  while (!atomic_load(&over)) {
    calx_trace_begin("thread");
    calx_trace_end();
    ++*told;
  }
}

// Threads tell while profiles begin and end: each file is whole.
static void test_threads(void **state)
{
  (void)state;
  cx_thread threads[4] = { { 0 } };
  int told[4] = { 0 };
  atomic_store(&over, false);
  for (int i = 0; i < 4; i++) {
    CHECK_STATUS_OK(cx_thread_start(&threads[i], tell_much, &told[i]));
  }
  for (int i = 0; i < 10; i++) {
    CHECK_STATUS_OK(calx_profile_start(path));
    CHECK_STATUS_OK(calx_profile_stop());
    json_decref(load(path));
  }
  atomic_store(&over, true);
  for (int i = 0; i < 4; i++) cx_thread_join(&threads[i]);
}

// Each allocation of the end fails once: an error, and no profile runs then.
static void test_no_memory(void **state)
{
  (void)state;
  for (long n = 0;; n++) {
    CHECK_STATUS_OK(calx_profile_start(path));
    cx_trace_emit_span(
        &(cx_trace_span){ .kind = CX_SPAN_WAIT, .start = 1, .end = 2 });
    cx_alloc_fail_at(n);
    calx_status *status = calx_profile_stop();
    cx_alloc_fail_at(-1);
    bool done = status == NULL;
    calx_status_free(status);
    if (done) break;
    assert_true(n < 1000);
  }
  json_decref(load(path));
}

// ---- regions ----------------------------------------------------------------

static void test_b36_sync_in_region(void **state)
{
  (void)state;
  calx_scope *step = calx_scope_begin();
  calx_tensor *w = lazy_durable(4, 1);
  long launches = lazy_launches();
  calx_trace_begin("conv1");
  calx_assign(w, calx_neg(w));
  calx_sync(NULL);
  calx_trace_end();
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(step),
               "Expecting scope to be empty but it is conv1", __FILE__);
  // The step failed as any does: nothing ran, the tensor is as before.
  assert_int_equal(lazy_launches(), launches);
  assert_true(lazy_holds(w, 1));
  calx_sync(NULL);
  assert_null(calx_scope_error());
  calx_release(w);
}

static void test_regions(void **state)
{
  (void)state;
  // They end with their scope.
  calx_scope *step = calx_scope_begin();
  calx_trace_begin("outer");
  calx_scope *inner = calx_scope_begin();
  calx_trace_begin("inner");
  CHECK_STATUS_OK(calx_scope_end(inner));
  assert_string_equal(cx_trace_region_name(), "outer");
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_null(cx_trace_region_name());
  // Too many, and one end too much.
  step = calx_scope_begin();
  for (int i = 0; i < CX_TRACE_MOST_REGIONS; i++) calx_trace_begin("x");
  assert_null(calx_scope_error());
  calx_trace_begin("last");
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_end(step), "'last'");
  step = calx_scope_begin();
  calx_trace_begin(NULL);
  calx_trace_end();
  assert_null(calx_scope_error());
  calx_trace_end();
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(step),
               "no region is open");
}

static void test_strings(void **state)
{
  (void)state;
  static const struct {
    const char *text, *json;
  } cases[] = {
    { "", "\"\"" },
    { "a\"b\\c", "\"a\\\"b\\\\c\"" },
    { "\n\x01", "\"\\u000a\\u0001\"" },
    { "Grün €", "\"Grün €\"" },
    { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
    { "\xc0\x80", "\"??\"" },
    { "\xed\xa0\x80", "\"???\"" },
    { "\xf4\x90\x80\x80", "\"????\"" },
    { "\xe2\x82", "\"??\"" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_text out = { 0 };
    cx_json_string(&out, cases[i].text);
    assert_string_equal(cx_text_str(&out), cases[i].json);
    cx_text_free(&out);
  }
}

#define PROFILE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    PROFILE_TEST(test_spans),
    PROFILE_TEST(test_environment),
    PROFILE_TEST(test_second_profile),
    PROFILE_TEST(test_begun_before),
    PROFILE_TEST(test_rank),
    PROFILE_TEST(test_misuse),
    PROFILE_TEST(test_bounded),
    PROFILE_TEST(test_b36_sync_in_region),
    PROFILE_TEST(test_regions),
    PROFILE_TEST(test_strings),
    PROFILE_TEST(test_ranks_of_threads),
    PROFILE_TEST(test_threads),
    PROFILE_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
