// The folder that the program chooses for the disk cache: when it may, what it
// changes, and what a folder that is only read is spared.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "fixture.h"

static char folder[256];
static int folders;

static int begin(void **state)
{
  const char *tmp = getenv("TMPDIR");
  char path[200];
  if (realpath(tmp != NULL ? tmp : "/tmp", path) == NULL) return 1;
  snprintf(folder, sizeof folder, "%s/calx_open_%d_%d", path, (int)getpid(),
           folders++);
  unsetenv("CALX_CACHE_DIR");
  return lazy_begin(state);
}

// Its files, or what it looks like from outside: names, sizes, times.
static void look(cx_text *out, bool remove)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    struct stat info;
    if (fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (strcmp(e->d_name, "..") == 0) continue;
    cx_text_format(out, "%s %lld %lld.%09ld %lld.%09ld\n", e->d_name,
                   (long long)info.st_size, (long long)info.st_mtim.tv_sec,
                   info.st_mtim.tv_nsec, (long long)info.st_ctim.tv_sec,
                   info.st_ctim.tv_nsec);
    if (remove) unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d != NULL) closedir(d);
}

static int end(void **state)
{
  cx_text seen = { 0 };
  chmod(folder, 0700);
  look(&seen, true);
  cx_text_free(&seen);
  rmdir(folder);
  setenv("CALX_CACHE_DIR", "off", 1);
  return lazy_end(state);
}

#define OPEN_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

static int64_t count(const char *name)
{
  return calx_counter_value(name);
}

static int run_size(int64_t n)
{
  long before = lazy_compiles();
  calx_tensor *t = calx_neg(lazy_vector(n, 3));
  calx_sync(t);
  assert_true(lazy_holds(t, 3));
  return (int)(lazy_compiles() - before);
}

static int run_in(const char *path, bool readonly, int64_t n)
{
  calx_shutdown();
  CHECK_STATUS_OK(calx_cache_open(path, readonly));
  return run_size(n);
}

// ---- when -------------------------------------------------------------------

// What a process counts that finds nothing, and one that finds it.
static void test_counts(void **state)
{
  (void)state;
  assert_int_equal(run_in(folder, false, 4), 1);
  assert_int_equal(count("PersistentCacheMiss"), 1);
  assert_int_equal(count("PersistentCacheHit"), 0);
  assert_int_equal(count("UncachedCompile"), 1);
  calx_metrics_clear();
  assert_int_equal(run_in(folder, false, 4), 0);
  assert_int_equal(count("PersistentCacheHit"), 1);
  assert_int_equal(count("UncachedCompile"), 0);
  assert_int_equal(count("CachedCompile"), 1);
  char *report = calx_metrics_report();
  assert_non_null(strstr(report, "PersistentCacheHit"));
  assert_null(strstr(report, "PersistentCacheMiss"));
  assert_null(strstr(report, "CompileTime"));
  calx_string_free(report);
  struct stat info;
  assert_int_equal(stat(folder, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

static void test_too_late(void **state)
{
  (void)state;
  assert_int_equal(run_in(folder, false, 4), 1);
  calx_shutdown();
  setenv("CALX_CACHE_DIR", "off", 1);
  assert_int_equal(run_size(4), 1);
  unsetenv("CALX_CACHE_DIR");
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_cache_open(folder, false),
               "calx_cache_open: it must be called before anything is compiled",
               "found 1 program");
  calx_shutdown();
  CHECK_STATUS_OK(calx_cache_open(folder, false));
}

// Every rank of a process says it; a later one after the first compiled.
static void test_again(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  assert_int_equal(run_size(4), 1);
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  char other[300];
  snprintf(other, sizeof other, "%s_1", folder);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_cache_open(other, false),
               "all ranks share one folder", other);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_cache_open(folder, true),
               "read only", "to be written");
  assert_int_equal(rmdir(other), 0);
}

// The same folder by another path, and after the program went elsewhere.
static void test_relative(void **state)
{
  (void)state;
  char here[PATH_MAX], up[300];
  assert_non_null(getcwd(here, sizeof here));
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  assert_int_equal(chdir(folder), 0);
  CHECK_STATUS_OK(calx_cache_open(".", false));
  snprintf(up, sizeof up, "%s/../%s", folder, strrchr(folder, '/') + 1);
  CHECK_STATUS_OK(calx_cache_open(up, false));
  calx_shutdown();
  CHECK_STATUS_OK(calx_cache_open(".", false));
  assert_int_equal(chdir(here), 0);
  assert_int_equal(run_size(4), 1);
  assert_int_equal(run_in(folder, false, 4), 0);
}

static void test_environment(void **state)
{
  (void)state;
  setenv("CALX_CACHE_DIR", "/nowhere/at/all", 1);
  assert_int_equal(run_in(folder, false, 4), 1);
  assert_int_equal(run_in(folder, false, 4), 0);
  setenv("CALX_CACHE_DIR", "off", 1);
  assert_int_equal(run_in(folder, false, 4), 1);
  assert_int_equal(count("PersistentCacheMiss"), 1);
}

static void test_refused(void **state)
{
  (void)state;
  char path[300];
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_cache_open(NULL, false),
               "a folder is wanted");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_cache_open("", true),
               "a folder is wanted");
  CHECK_STATUS(CALX_NOT_FOUND, calx_cache_open(folder, true), folder);
  assert_int_equal(access(folder, F_OK), -1);
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  calx_shutdown();
  assert_int_equal(chmod(folder, 0770), 0);
  CHECK_STATUS(CALX_PERMISSION_DENIED, calx_cache_open(folder, false),
               "others may write it");
  CHECK_STATUS(CALX_PERMISSION_DENIED, calx_cache_open(folder, true),
               "others may write it");
  assert_int_equal(chmod(folder, 0700), 0);
  snprintf(path, sizeof path, "%s/file", folder);
  CHECK_STATUS_OK(cx_file_write(path, "x", 1));
  CHECK_STATUS(CALX_NOT_FOUND, calx_cache_open(path, true), "file");
}

static void test_no_memory(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  calx_shutdown();
  cx_alloc_fail_at(0);
  calx_status *status = calx_cache_open(folder, true);
  cx_alloc_fail_at(-1);
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, status, "");
}

// ---- read only --------------------------------------------------------------

// Hits, misses and damage leave the folder as it is.
static void test_readonly(void **state)
{
  (void)state;
  cx_text before = { 0 }, after = { 0 };
  char path[300];
  assert_int_equal(run_in(folder, false, 4), 1);
  snprintf(path, sizeof path, "%s/%032x.calxprog", folder, 0);
  CHECK_STATUS_OK(cx_file_write(path, "x", 1));
  look(&before, false);
  assert_int_equal(run_in(folder, true, 4), 0);
  assert_int_equal(count("PersistentCacheHit"), 1);
  assert_int_equal(run_in(folder, true, 5), 1);
  assert_int_equal(run_in(folder, true, 5), 1);
  look(&after, false);
  assert_string_equal(cx_text_str(&before), cx_text_str(&after));
  assert_int_equal(lines_with("is not kept"), 0);
  cx_text_free(&before);
  cx_text_free(&after);
}

static void flip(const char *name)
{
  char path[600], *data;
  size_t size;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  CHECK_STATUS_OK(cx_file_read(path, 0, &data, &size));
  data[size - 1] = (char)(data[size - 1] ^ 1);
  CHECK_STATUS_OK(cx_file_write(path, data, size));
  cx_free(data);
}

static void test_readonly_damaged(void **state)
{
  (void)state;
  assert_int_equal(run_in(folder, false, 4), 1);
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (strstr(e->d_name, ".calxprog") != NULL) flip(e->d_name);
  }
  closedir(d);
  cx_text before = { 0 }, after = { 0 };
  look(&before, false);
  for (int i = 1; i <= 2; i++) {
    assert_int_equal(run_in(folder, true, 4), 1);
    assert_int_equal(count("PersistentCacheDeserializeFailure"), i);
  }
  look(&after, false);
  assert_string_equal(cx_text_str(&before), cx_text_str(&after));
  cx_text_free(&before);
  cx_text_free(&after);
  // Where it may be, it is replaced, and counted once.
  assert_int_equal(run_in(folder, false, 4), 1);
  assert_int_equal(count("PersistentCacheDeserializeFailure"), 3);
  assert_int_equal(run_in(folder, true, 4), 0);
  assert_int_equal(count("PersistentCacheDeserializeFailure"), 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    OPEN_TEST(test_counts),
    OPEN_TEST(test_too_late),
    OPEN_TEST(test_again),
    OPEN_TEST(test_relative),
    OPEN_TEST(test_environment),
    OPEN_TEST(test_refused),
    OPEN_TEST(test_no_memory),
    OPEN_TEST(test_readonly),
    OPEN_TEST(test_readonly_damaged),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
