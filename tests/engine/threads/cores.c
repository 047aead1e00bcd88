// How many cores a control group leaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "threads/cores.h"
#include "threads/threads.h"

static char root[] = "/tmp/cx_cores_XXXXXX";

static void put(const char *folder, const char *name, const char *text)
{
  char path[512];
  snprintf(path, sizeof path, "%s/%s", root, folder);
  assert_null(cx_folder_make(path, 0700));
  snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
  assert_null(cx_file_write(path, text, strlen(text)));
}

static int make_root(void **state)
{
  (void)state;
  return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
  (void)state;
  char command[512];
  snprintf(command, sizeof command, "rm -r '%s'", root);
  return system(command);
}

static void smallest_quota_along_the_path(void **state)
{
  (void)state;
  put("a", "cpu.max", "350000 100000\n");
  put("a/b", "cpu.max", "max 100000\n");
  put("a/c", "cpu.max", "150000 100000\n");
  assert_int_equal(cpu_threads_quota("0::/a/b\n", root), 4);
  assert_int_equal(cpu_threads_quota("0::/a/c\n", root), 2);
  assert_int_equal(cpu_threads_quota("0::/a/c/not/seen/here\n", root), 2);
  assert_int_equal(cpu_threads_quota("0::/other\n", root), 0);
}

static void version_1_by_its_controller(void **state)
{
  (void)state;
  put("cpu,cpuacct/d", "cpu.cfs_quota_us", "250000\n");
  put("cpu,cpuacct/d", "cpu.cfs_period_us", "100000\n");
  put("cpuset/d", "cpu.cfs_quota_us", "1000\n");
  put("cpuset/d", "cpu.cfs_period_us", "1000\n");
  put("cpu,cpuacct/e", "cpu.cfs_quota_us", "-1\n");
  put("cpu,cpuacct/e", "cpu.cfs_period_us", "100000\n");
  assert_int_equal(cpu_threads_quota("3:cpuset:/d\n4:cpu,cpuacct:/d\n", root),
                   3);
  assert_int_equal(cpu_threads_quota("4:cpu,cpuacct:/e", root), 0);
}

static void strange_lists(void **state)
{
  (void)state;
  static const char *const lists[] = { "",    "\n", ":",     "::",
                                       "0::", "x",  "1:cpu", "\n\n:::::\n" };
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    assert_int_equal(cpu_threads_quota(lists[i], "/nowhere"), 0);
  }
}

static void at_least_one_core(void **state)
{
  (void)state;
  assert_true(cpu_threads_cores() >= 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(smallest_quota_along_the_path),
    cmocka_unit_test(version_1_by_its_controller),
    cmocka_unit_test(strange_lists),
    cmocka_unit_test(at_least_one_core),
  };
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
