// Several ranks, as threads and as processes: whose files are written, and by
// whom.
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trace.h"
#include "calx/debug.h"
#include "calx/ops.h"
#include "dist/ranks.h"

enum { NAME = 64 };
static char folder[] = "/tmp/calx_ranks_XXXXXX";

static void path_of(const char *name, int rank, char out[NAME])
{
  snprintf(out, NAME, "%s/%s.%d", folder, name, rank);
}

static int begin(void **state)
{
  (void)state;
  char path[NAME];
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  if (mkdtemp(folder) == NULL) return 1;
  static const char *const names[][2] = { { "CALX_METRICS_FILE", "metrics" },
                                          { "CALX_PROFILE", "profile" },
                                          { "CALX_REPORT", "report" },
                                          { "CALX_DEBUG_FILE", "debug" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i][1]);
    setenv(names[i][0], path, 1);
  }
  setenv("CALX_DEBUG", "1", 1);
  return 0;
}

static int end(void **state)
{
  static const char *const files[] = { "metrics", "profile", "report" };
  char path[NAME];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    for (int rank = 0; rank < 4; rank++) {
      path_of(files[i], rank, path);
      unlink(path);
    }
  }
  unlink(getenv("CALX_DEBUG_FILE"));
  if (rmdir(folder) != 0) {
    print_error("something else is in '%s'\n", folder);
    return 1;
  }
  static const char *const names[] = { "CALX_METRICS_FILE", "CALX_PROFILE",
                                       "CALX_REPORT", "CALX_DEBUG_FILE",
                                       "CALX_DEBUG" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  cx_trace_set_ranks(&(cx_trace_ranks){ 0, 1, true });
  return support_nothing_left(state);
}

static calx_status *two_steps(int index, void *user)
{
  (void)user;
  for (int i = 0; i < 2; i++) {
    calx_scope *step = calx_scope_begin();
    float data[4] = { (float)index, 1, 2, 3 };
    calx_tensor *x = calx_tensor_from(data, CALX_F32, CALX_SHAPE(4));
    calx_sync(calx_neg(x));
    CALX_TRY(calx_scope_end(step));
  }
  return NULL;
}

static calx_status *sum_up(int index, void *user)
{
  (void)user;
  calx_scope *step = calx_scope_begin();
  float one = (float)index;
  calx_tensor *x = calx_tensor_from(&one, CALX_F32, CALX_SHAPE(1));
  calx_tensor *sum = calx_all_reduce(x, CALX_REDUCE_SUM);
  calx_sync(sum);
  RANK_CHECK(calx_item(sum) == 1);
  return calx_scope_end(step);
}

static bool exists(const char *name, int rank)
{
  char path[NAME];
  path_of(name, rank, path);
  return cx_file_exists(path);
}

// The ranks whose spans are in a process's profile, as bits.
static unsigned ranks_in_profile(int first)
{
  char path[NAME];
  path_of("profile", first, path);
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (root == NULL) fail_msg("%s:%d: %s", path, error.line, error.text);
  unsigned found = 0;
  size_t i;
  json_t *e;
  json_array_foreach(json_object_get(root, "traceEvents"), i, e)
  {
    const char *category = json_string_value(json_object_get(e, "cat"));
    if (category == NULL || strcmp(category, "sync") != 0) continue;
    found |= 1U << json_integer_value(json_object_get(e, "pid"));
  }
  json_decref(root);
  return found;
}

static void check_report(int first, int world)
{
  char path[NAME];
  path_of("report", first, path);
  json_t *root = json_load_file(path, 0, NULL);
  assert_non_null(root);
  assert_int_equal(json_integer_value(json_object_get(root, "rank")), first);
  assert_int_equal(json_integer_value(json_object_get(root, "world")), world);
  assert_int_equal(json_integer_value(json_object_get(root, "syncs")), 2);
  json_decref(root);
}

static int blocks(void)
{
  char *text;
  size_t size;
  CHECK_STATUS_OK(
      cx_file_read(getenv("CALX_DEBUG_FILE"), 1 << 20, &text, &size));
  int n = 0;
  for (const char *p = text; (p = strstr(p, "Execution Cause")) != NULL; p++) {
    n++;
  }
  cx_free(text);
  return n;
}

// One process: one file of each kind, its first rank's; the profile has all.
static void test_threads(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch_with(two_steps, NULL, NULL));
  calx_shutdown();
  for (int rank = 0; rank < 3; rank++) {
    assert_true(exists("metrics", rank) == (rank == 0));
    assert_true(exists("profile", rank) == (rank == 0));
  }
  assert_int_equal(ranks_in_profile(0), 7);
  check_report(0, 3);
  assert_int_equal(blocks(), 2);
}

// Programs with collectives are counted as such, and as executions.
static void test_replicated(void **state)
{
  (void)state;
  set_devices(2);
  calx_metrics_clear();
  CHECK_STATUS_OK(calx_launch_with(sum_up, NULL, NULL));
  calx_shutdown();
  assert_int_equal(calx_counter_value("ExecuteReplicated"), 2);
  assert_int_equal(calx_counter_value("ExecuteComputation"), 2);
  calx_metric_data data;
  assert_true(calx_metric_value("ExecuteReplicatedTime", &data));
  assert_int_equal(data.samples, 2);
}

// One file of each kind a process; the first of the host writes its analysis.
static void test_processes(void **state)
{
  (void)state;
  set_devices(1);
  CHECK_STATUS_OK(calx_launch_with(
      two_steps, NULL,
      &(calx_launch_options){ .size = sizeof(calx_launch_options),
                              .processes = 2 }));
  for (int rank = 0; rank < 2; rank++) {
    assert_true(exists("metrics", rank));
    assert_int_equal(ranks_in_profile(rank), 1U << rank);
    check_report(rank, 2);
  }
  assert_int_equal(blocks(), 2);
}

// ---- files of programs ------------------------------------------------------

// Behaviour 37: each rank's programs are files of its own. Removes them.
static int dumped(int rank)
{
  char suffix[32];
  int n = 0;
  snprintf(suffix, sizeof suffix, rank < 0 ? ".mlir" : ".rank%d.mlir", rank);
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t length = strlen(e->d_name), end = strlen(suffix);
    bool fits = length > end && strcmp(e->d_name + length - end, suffix) == 0;
    if (!fits || strncmp(e->d_name, "00001-", 6) != 0) continue;
    n++;
    assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
  }
  closedir(dir);
  return n;
}

static void test_b37_programs(void **state)
{
  (void)state;
  const char *before = getenv("CALX_DUMP");
  char *kept = before != NULL ? strdup(before) : NULL;
  setenv("CALX_DUMP", folder, 1);
  set_devices(1);
  calx_status *status = calx_launch_with(
      two_steps, NULL,
      &(calx_launch_options){ .size = sizeof(calx_launch_options),
                              .processes = 4 });
  calx_status *threads = NULL;
  int found[4];
  for (int rank = 0; rank < 4; rank++) found[rank] = dumped(rank);
  int others = dumped(-1);
  set_devices(4);
  threads = calx_launch_with(two_steps, NULL, NULL);
  calx_shutdown();
  int shared = dumped(-1);
  if (kept != NULL) {
    setenv("CALX_DUMP", kept, 1);
  } else {
    unsetenv("CALX_DUMP");
  }
  free(kept);
  CHECK_STATUS_OK(status);
  CHECK_STATUS_OK(threads);
  for (int rank = 0; rank < 4; rank++) assert_int_equal(found[rank], 1);
  assert_int_equal(others, 0);
  assert_int_equal(shared, 1);  // ranks that are threads share one program
}

// ---- the chosen device ------------------------------------------------------

// Of several processes, the host's first says which device was chosen.
static void test_chosen_device(void **state)
{
  (void)state;
  char path[NAME], plugin[256], *text = NULL;
  size_t size;
  snprintf(plugin, sizeof plugin, "%s", getenv("CALX_PLUGIN"));
  snprintf(path, NAME, "%s/lines", folder);
  int out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int before = dup(STDERR_FILENO);
  assert_true(out >= 0 && before >= 0);
  unsetenv("CALX_PLUGIN");
  set_devices(1);
  assert_true(dup2(out, STDERR_FILENO) >= 0);
  calx_status *status = calx_launch_with(
      two_steps, NULL,
      &(calx_launch_options){ .size = sizeof(calx_launch_options),
                              .processes = 3 });
  assert_true(dup2(before, STDERR_FILENO) >= 0);
  setenv("CALX_PLUGIN", plugin, 1);
  close(before);
  close(out);
  CHECK_STATUS_OK(status);
  CHECK_STATUS_OK(cx_file_read(path, 1 << 20, &text, &size));
  unlink(path);
  const char *first = strstr(text, "process 0: device: plugin '");
  bool once = first != NULL && strstr(first + 20, "device: plugin") == NULL;
  if (!once) print_error("%s\n", text);
  cx_free(text);
  assert_true(once);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_processes, begin, end),
    cmocka_unit_test_setup_teardown(test_threads, begin, end),
    cmocka_unit_test_setup_teardown(test_replicated, begin, end),
    cmocka_unit_test_setup_teardown(test_b37_programs, begin, end),
    cmocka_unit_test_setup_teardown(test_chosen_device, begin, end),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
