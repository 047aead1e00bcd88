// A device's communication thread: order, failure, the end of a run, sleep.
#include <dirent.h>

#include "base/thread.h"
#include "comm.h"

static void ordered(void **unused)
{
  (void)unused;
  cpu_run_comm *c = NULL;
  CHECK_STATUS_OK(cpu_run_comm_new(&c));
  work w = { .fails = -1 };
  for (int i = 0; i < 50; i++) in_order(c, &w);
  cpu_run_comm_free(c);
}

static void one_fails(void **unused)
{
  (void)unused;
  cpu_run_comm *c = NULL;
  CHECK_STATUS_OK(cpu_run_comm_new(&c));
  work w = { .fails = 2 };
  begin(c, &w, 6);
  CHECK_STATUS_OK(cpu_run_comm_wait(c, 1));
  CHECK_STATUS(CALX_ABORTED, cpu_run_comm_wait(c, 2), "item 2");
  CHECK_STATUS(CALX_ABORTED, cpu_run_comm_wait(c, 4), "item 2");
  CHECK_STATUS(CALX_ABORTED, cpu_run_comm_drain(c), "item 2");
  cpu_run_comm_finish(c);
  assert_int_equal(atomic_load(&w.n), 3);  // none behind it
  in_order(c, &w);
  cpu_run_comm_free(c);
}

static void let_go(void *user)
{
  work *w = user;
  usleep(20000);
  atomic_store(&w->held, false);
}

// The end of a run waits for the item that is being done, and forgets the rest.
static void ends_while_open(void **unused)
{
  (void)unused;
  cpu_run_comm *c = NULL;
  CHECK_STATUS_OK(cpu_run_comm_new(&c));
  for (int i = 0; i < 5; i++) {
    work *w = calloc(1, sizeof *w);
    w->fails = -1;
    atomic_store(&w->held, true);
    begin(c, w, 6);
    assert_int_equal(cpu_run_comm_open(c), 6);
    cx_thread helper;
    CHECK_STATUS_OK(cx_thread_start(&helper, let_go, w));
    cpu_run_comm_finish(c);
    const int n = atomic_load(&w->n);
    cx_thread_join(&helper);
    assert_true(n <= 6 && atomic_load(&w->n) == n);
    free(w);
  }
  work after = { .fails = -1 };
  in_order(c, &after);
  cpu_run_comm_free(c);
}

// How many threads the process has, and whether all but the caller sleep.
static size_t threads(bool *out_asleep)
{
  size_t n = 0;
  *out_asleep = true;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    const int id = atoi(e->d_name);
    if (id == 0) continue;
    n++;
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    const char *state =
        fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
    fclose(file);
    if (id != getpid() && state != NULL && state[2] != 'S') *out_asleep = false;
  }
  closedir(folder);
  return n;
}

// Those that never had work have no thread, and idle ones sleep.
static void sleeps(void **unused)
{
  (void)unused;
  enum { N = 16 };
  cpu_run_comm *c[N];
  work w = { .fails = -1 };
  bool asleep = false;
  const size_t before = threads(&asleep);
  for (int i = 0; i < N; i++) CHECK_STATUS_OK(cpu_run_comm_new(&c[i]));
  assert_int_equal(threads(&asleep), before);
  for (int i = 0; i < N; i++) in_order(c[i], &w);
  assert_int_equal(threads(&asleep), before + N);
  for (int i = 0; i < 10000 && !asleep; i++) {
    usleep(1000);
    threads(&asleep);
  }
  assert_true(asleep);
  for (int i = 0; i < N; i++) cpu_run_comm_free(c[i]);
  assert_int_equal(threads(&asleep), before);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(ordered),
    cmocka_unit_test(one_fails),
    cmocka_unit_test(ends_while_open),
    cmocka_unit_test(sleeps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
