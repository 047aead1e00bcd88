// kill: a process that saves is killed at any moment, and the file is the old
// one or the new one, whole. TEST_KILLS says how often; else 60 times, 200 of
// the long tests.
#include <signal.h>
#include <sys/wait.h>

#include "calx/io.h"
#include "files.h"
#include "support/long.h"

enum { ELEMENTS = 200000 };

// All elements, and the number beside them, are the version's.
static calx_value *version(int n)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  int32_t *data = test_malloc(ELEMENTS * sizeof *data);
  for (int i = 0; i < ELEMENTS; i++) data[i] = n;
  calx_scope *s = calx_scope_begin();
  for (int k = 0; k < 3; k++) {
    char key[8];
    snprintf(key, sizeof key, "t%d", k);
    calx_tensor *t = calx_host_tensor(data, CALX_I32, CALX_SHAPE(ELEMENTS));
    CHECK_STATUS_OK(calx_value_set(d, key, calx_value_tensor(t)));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  test_free(data);
  return d;
}

static void save_for_ever(const char *path)
{
  calx_value *versions[2] = { version(0), version(1) };
  for (int i = 0;; i++) {
    calx_status *status = calx_save(versions[i % 2], path);
    if (status != NULL) _exit(1);
  }
}

static void check_whole(const char *path)
{
  calx_value *d;
  CHECK_STATUS_OK(calx_load(path, &d));
  assert_int_equal(calx_value_count(d), 3);
  int32_t first = -1;
  for (size_t k = 0; k < 3; k++) {
    const calx_tensor *t = calx_value_as_tensor(calx_value_item(d, k));
    assert_int_equal(calx_tensor_numel(t), ELEMENTS);
    const int32_t *data = calx_host_data(t);
    if (first < 0) first = data[0];
    for (int i = 0; i < ELEMENTS; i++) assert_int_equal(data[i], first);
  }
  calx_value_free(d);
}

static void kill_saves(const char *name)
{
  const char *path = file_in_folder(name), *wanted = getenv("TEST_KILLS");
  long kills = wanted != NULL ? strtol(wanted, NULL, 10) : long_or(200, 60);
  uint64_t random = 88172645463325252u;
  calx_value *first = version(0);
  CHECK_STATUS_OK(calx_save(first, path));
  calx_value_free(first);
  for (long i = 0; i < kills; i++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) save_for_ever(path);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    usleep((useconds_t)(random % 40000));
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    check_whole(path);
  }
  // What the last one left goes with the next save.
  int left = files_in_folder(false) - 1;
  calx_value *last = version(0);
  CHECK_STATUS_OK(calx_save(last, path));
  calx_value_free(last);
  assert_int_equal(files_in_folder(true), 1);
  print_message("%s: %ld kills, the last one left %d files\n", name, kills,
                left);
}

static void test_pt(void **state)
{
  (void)state;
  kill_saves("killed.pt");
}

static void test_safetensors(void **state)
{
  (void)state;
  kill_saves("killed.safetensors");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_pt),
    SUPPORT_TEST(test_safetensors),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
