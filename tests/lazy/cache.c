// The disk cache: what was compiled once is loaded by every later process, and
// nothing in its folder is trusted.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "fixture.h"
#include "lazy/cache/cache.h"
#include "support/skip.h"

static char folder[256];
static int folders;

// Each test has a folder of its own, not made yet.
static int begin(void **state)
{
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_cache_%d_%d",
           tmp != NULL ? tmp : "/tmp", (int)getpid(), folders++);
  setenv("CALX_CACHE_DIR", folder, 1);
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  return lazy_begin(state);
}

// The only file of the folder, or that with another name than `but`.
static bool find_file(const char *but, char out[512])
{
  DIR *d = opendir(folder);
  bool found = false;
  for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL && !found;
       e = readdir(d)) {
    snprintf(out, 512, "%s/%s", folder, e->d_name);
    found = strstr(e->d_name, ".calxprog") != NULL &&
            (but == NULL || strcmp(out, but) != 0);
  }
  if (d != NULL) closedir(d);
  return found;
}

static int end(void **state)
{
  char path[512];
  unsetenv("CALX_CACHE_SIZE");
  chmod(folder, 0700);
  while (find_file(NULL, path)) unlink(path);
  rmdir(folder);
  return lazy_end(state);
}

#define CACHE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

// Runs the program in a new world; how often it was compiled.
static int run_once(void)
{
  calx_shutdown();
  long before = lazy_compiles();
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_neg(lazy_vector(4, 3));
  calx_sync(t);
  assert_true(lazy_holds(t, 3));
  CHECK_STATUS_OK(calx_scope_end(scope));
  return (int)(lazy_compiles() - before);
}

static int64_t count(const char *name)
{
  return calx_counter_value(name);
}

static char *load(const char *path, size_t *size)
{
  char *data;
  CHECK_STATUS_OK(cx_file_read(path, 0, &data, size));
  return data;
}

// The file of a program that was compiled for it.
static char *load_first(char path[512], size_t *size)
{
  assert_int_equal(run_once(), 1);
  assert_true(find_file(NULL, path));
  return load(path, size);
}

static void check_not_kept(void)
{
  for (int i = 0; i < 2; i++) assert_int_equal(run_once(), 1);
}

// ---- hits -------------------------------------------------------------------

static void test_hit(void **state)
{
  (void)state;
  assert_int_equal(run_once(), 1);
  assert_int_equal(count("PersistentCacheMiss"), 1);
  for (int i = 0; i < 3; i++) assert_int_equal(run_once(), 0);
  assert_int_equal(count("PersistentCacheHit"), 3);
  assert_int_equal(count("PersistentCacheDeserializeFailure"), 0);
  struct stat info;
  assert_int_equal(stat(folder, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

// The call sites are no part of it.
static void test_other_line(void **state)
{
  (void)state;
  assert_int_equal(run_once(), 1);
  calx_shutdown();
  long before = lazy_compiles();
  calx_sync(calx_neg(lazy_vector(4, 1)));
  assert_int_equal(lazy_compiles(), before);
}

// What a donating program does to its inputs is part of the program.
static void test_donation(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    calx_shutdown();
    calx_tensor *w = lazy_durable(4, 1);
    calx_assign(w, calx_neg(w));
    calx_sync(NULL);
    calx_assign(w, calx_neg(w));
    calx_sync(w);
    assert_null(calx_scope_error());
    assert_true(lazy_sum("InputOutputAliasCount") == 2 * (i + 1));
    calx_release(w);
  }
  assert_int_equal(count("PersistentCacheHit"), 1);
}

static int child(void)
{
  if (lazy_setup(NULL) != 0) return 90;
  setenv("CALX_CACHE_DIR", getenv("CACHE_TEST_FOLDER"), 1);
  int compiled = run_once();
  calx_shutdown();
  return compiled;
}

static int run_child(void)
{
  setenv("CACHE_TEST_FOLDER", folder, 1);
  pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", "cache", "child", (char *)NULL);
    _exit(91);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void test_second_process(void **state)
{
  (void)state;
  assert_int_equal(run_child(), 1);
  assert_int_equal(run_child(), 0);
  assert_int_equal(run_once(), 0);
}

// ---- damage -----------------------------------------------------------------

static void put(const char *path, const char *data, size_t size)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_true(write(fd, data, size) == (ssize_t)size);
  close(fd);
}

// The file is told from a good one, replaced, and hits again.
static void check_damaged(void)
{
  int64_t damaged = count("PersistentCacheDeserializeFailure");
  assert_int_equal(run_once(), 1);
  assert_int_equal(count("PersistentCacheDeserializeFailure"), damaged + 1);
  assert_int_equal(run_once(), 0);
}

static void test_flipped(void **state)
{
  (void)state;
  char path[512];
  size_t size;
  char *data = load_first(path, &size);
  for (size_t at = 0; at < size; at += at < 64 ? 1 : size / 40) {
    data[at] = (char)(data[at] ^ 0x10);
    put(path, data, size);
    data[at] = (char)(data[at] ^ 0x10);
    check_damaged();
  }
  cx_free(data);
}

static void test_cut(void **state)
{
  (void)state;
  char path[512];
  size_t size;
  char *data = load_first(path, &size);
  for (size_t n = 0; n < size; n += n < 70 ? 7 : size / 10) {
    put(path, data, n);
    check_damaged();
  }
  put(path, data, size - 1);
  check_damaged();
  char *longer = cx_calloc(1, size + 1);
  memcpy(longer, data, size);
  put(path, longer, size + 1);
  check_damaged();
  cx_free(longer);
  cx_free(data);
}

// magic, version, the label's size, checksum, then the sizes of key, options,
// program.
enum { LABEL_SIZE_AT = 12, CHECKSUM_AT = 16, SIZES_AT = 32, BODY_AT = 56 };

static uint32_t label_size(const char *data)
{
  uint32_t n;
  memcpy(&n, data + LABEL_SIZE_AT, sizeof n);
  return n;
}

static void test_sizes(void **state)
{
  (void)state;
  char path[512];
  size_t size;
  char *data = load_first(path, &size);
  uint64_t own[3];
  memcpy(own, data + SIZES_AT, sizeof own);
  assert_true(label_size(data) + own[0] + own[1] + own[2] + BODY_AT == size);
  const uint64_t odd[] = { 0,         1,   UINT64_MAX, UINT64_MAX - own[0] + 1,
                           INT64_MAX, size };
  for (size_t i = 0; i < 3 * sizeof odd / sizeof *odd; i++) {
    uint64_t sizes[3] = { own[0], own[1], own[2] };
    sizes[i % 3] = odd[i / 3];
    if (memcmp(sizes, own, sizeof own) == 0) continue;
    memcpy(data + SIZES_AT, sizes, sizeof sizes);
    put(path, data, size);
    check_damaged();
  }
  cx_free(data);
}

// A file that is whole but holds no program of the plugin's.
static void test_refused(void **state)
{
  (void)state;
  char path[512];
  size_t size;
  char *data = load_first(path, &size);
  uint64_t sizes[3];
  memcpy(sizes, data + SIZES_AT, sizeof sizes);
  memset(data + size - sizes[2], 'x', sizes[2]);
  cx_hash sum = cx_hash_bytes(data + BODY_AT, size - BODY_AT, 0);
  memcpy(data + CHECKSUM_AT, &sum, sizeof sum);
  put(path, data, size);
  check_damaged();
  cx_free(data);
}

// Another program's file under this one's name.
static void test_other_key(void **state)
{
  (void)state;
  char path[512], other[512];
  assert_int_equal(run_once(), 1);
  assert_true(find_file(NULL, path));
  calx_tensor *t = calx_exp(lazy_vector(4, 0));
  calx_sync(t);
  assert_true(find_file(path, other));
  size_t size;
  char *data = load(other, &size);
  put(path, data, size);
  cx_free(data);
  check_damaged();
}

// ---- what the key holds -----------------------------------------------------

static void test_flags(void **state)
{
  (void)state;
  assert_int_equal(run_once(), 1);
  setenv("XLA_FLAGS", "--xla_some_flag=1", 1);
  assert_int_equal(run_once(), 1);
  assert_int_equal(run_once(), 0);
  unsetenv("XLA_FLAGS");
  assert_int_equal(run_once(), 0);
}

// The plugin's content counts, not its name or version.
static void test_plugin_file(void **state)
{
  (void)state;
  assert_int_equal(run_once(), 1);
  size_t size;
  char *data = load(CX_FAKE_PLUGIN, &size), path[512];
  snprintf(path, sizeof path, "%s_same.so", folder);
  put(path, data, size);
  setenv("CALX_PLUGIN", path, 1);
  fake own = lazy_fake;
  lazy_fake = fake_open(path);
  assert_int_equal(run_once(), 0);
  unlink(path);
  snprintf(path, sizeof path, "%s_other.so", folder);
  char *longer = cx_calloc(1, size + 1);
  memcpy(longer, data, size);
  put(path, longer, size + 1);
  setenv("CALX_PLUGIN", path, 1);
  lazy_fake = fake_open(path);
  assert_int_equal(run_once(), 1);
  calx_shutdown();
  support_kept = cx_alloc_live() - 2;  // two plugins more are loaded for ever
  cx_free(longer);
  cx_free(data);
  unlink(path);
  lazy_fake = own;
}

// ---- the bound --------------------------------------------------------------

static struct timespec used(const char *path)
{
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return info.st_mtim;
}

static void set_used(const char *path, int64_t seconds_ago)
{
  struct timespec t[2];
  clock_gettime(CLOCK_REALTIME, &t[0]);
  t[0].tv_sec -= seconds_ago;
  t[1] = t[0];
  assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void test_hit_is_use(void **state)
{
  (void)state;
  char path[512];
  assert_int_equal(run_once(), 1);
  assert_true(find_file(NULL, path));
  set_used(path, 5000);
  struct timespec before = used(path);
  assert_int_equal(run_once(), 0);
  assert_true(used(path).tv_sec > before.tv_sec + 4000);
}

// A program of its own for each n; how often it was compiled.
static int run_size(int64_t n)
{
  calx_shutdown();
  long before = lazy_compiles();
  calx_sync(calx_neg(lazy_vector(n, 3)));
  return (int)(lazy_compiles() - before);
}

static void test_longest_unused_goes(void **state)
{
  (void)state;
  char first[512], second[512], size[32];
  assert_int_equal(run_size(1), 1);
  assert_true(find_file(NULL, first));
  assert_int_equal(run_size(2), 1);
  assert_true(find_file(first, second));
  struct stat a, b;
  assert_int_equal(stat(first, &a), 0);
  assert_int_equal(stat(second, &b), 0);
  snprintf(size, sizeof size, "%lld", (long long)(a.st_size + b.st_size));
  setenv("CALX_CACHE_SIZE", size, 1);
  set_used(first, 200);
  set_used(second, 100);
  assert_int_equal(run_size(1), 0);  // so the second one is the oldest
  assert_int_equal(run_size(3), 1);
  assert_int_equal(access(second, F_OK), -1);
  assert_int_equal(run_size(1), 0);
  assert_int_equal(run_size(3), 0);
  assert_int_equal(run_size(2), 1);
}

static void test_no_writing(void **state)
{
  (void)state;
  assert_int_equal(run_size(1), 1);
  setenv("CALX_CACHE_SIZE", "0", 1);
  assert_int_equal(run_size(1), 0);
  assert_int_equal(run_size(2), 1);
  assert_int_equal(run_size(2), 1);
  assert_int_equal(lines_with("is not kept"), 0);
}

static void test_too_large(void **state)
{
  (void)state;
  assert_int_equal(run_size(1), 1);
  setenv("CALX_CACHE_SIZE", "50", 1);
  assert_int_equal(run_size(2), 1);
  assert_int_equal(lines_with("CALX_CACHE_SIZE is 50"), 1);
  assert_int_equal(run_size(1), 0);  // nothing went for it
}

// The file tells people what it is for.
static void test_label(void **state)
{
  (void)state;
  char path[512];
  size_t size;
  char *data = load_first(path, &size);
  cx_lazy_cache_entry e;
  assert_int_equal(cx_lazy_cache_entry_read(data, size, &e),
                   CX_LAZY_CACHE_WHOLE);
  assert_string_equal(e.platform, "fake");
  assert_non_null(strstr(e.plugin, "fake"));
  assert_non_null(strstr(e.program, "cache.c:"));
  cx_free(data);
}

// ---- the folder -------------------------------------------------------------

static void check_unused(const char *why)
{
  lines_clear();
  check_not_kept();
  assert_int_equal(count("PersistentCacheMiss"), 0);
  assert_int_equal(lines_with("is not used"), 1);
  assert_int_equal(lines_with(why), 1);
}

static void test_writable_by_others(void **state)
{
  (void)state;
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(chmod(folder, 0770), 0);
  check_unused("others may write it");
}

static void test_writable_by_all(void **state)
{
  (void)state;
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(chmod(folder, 0702), 0);
  check_not_kept();
}

static void test_not_own(void **state)
{
  (void)state;
  if (geteuid() != 0) SKIP_HERE("only root can give a folder away");
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(chown(folder, 12345, 12345), 0);
  check_not_kept();
  char path[512];
  assert_false(find_file(NULL, path));
}

static void test_no_folder(void **state)
{
  (void)state;
  put(folder, "x", 1);
  check_not_kept();
  unlink(folder);
  setenv("CALX_CACHE_DIR", "/dev/null/x", 1);
  check_not_kept();
}

static void test_off(void **state)
{
  (void)state;
  setenv("CALX_CACHE_DIR", "off", 1);
  check_not_kept();
  assert_int_equal(count("PersistentCacheMiss"), 0);
  assert_int_equal(access("off", F_OK), -1);
}

// Where nothing is said: the user's cache folder.
static void test_default_folder(void **state)
{
  (void)state;
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char kept_cache[256], kept_home[256], base[256];
  snprintf(kept_cache, sizeof kept_cache, "%s", cache != NULL ? cache : "");
  snprintf(kept_home, sizeof kept_home, "%s", home != NULL ? home : "");
  snprintf(base, sizeof base, "%s", folder);
  unsetenv("CALX_CACHE_DIR");
  setenv("XDG_CACHE_HOME", base, 1);
  snprintf(folder, sizeof folder, "%.200s/calx/programs", base);
  char path[512];
  assert_int_equal(run_once(), 1);
  assert_true(find_file(NULL, path));
  unlink(path);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", base, 1);
  snprintf(folder, sizeof folder, "%.200s/.cache/calx/programs", base);
  assert_int_equal(run_once(), 1);
  assert_true(find_file(NULL, path));
  unsetenv("HOME");
  assert_int_equal(run_once(), 1);  // nowhere to keep it
  if (kept_cache[0] != '\0') setenv("XDG_CACHE_HOME", kept_cache, 1);
  setenv("HOME", kept_home, 1);
}

// ---- plugins that cannot ----------------------------------------------------

static void test_cannot_serialize(void **state)
{
  (void)state;
  lazy_set("fail=PJRT_Executable_Serialize@1:12:not here");
  assert_int_equal(run_once(), 1);
  assert_int_equal(lines_with("is not kept"), 0);
  char path[512];
  assert_false(find_file(NULL, path));
  calx_shutdown();
  lazy_set("fail=PJRT_Executable_Serialize@1:13:broken");
  calx_sync(calx_neg(lazy_vector(4, 3)));
  assert_int_equal(lines_with("a compiled program is not kept"), 1);
  assert_int_equal(lines_with("broken"), 1);
  assert_null(calx_scope_error());
}

static void test_cannot_write(void **state)
{
  (void)state;
  // One's own, and nobody makes files there, root either.
  setenv("CALX_CACHE_DIR", "/proc/self/fdinfo", 1);
  check_not_kept();
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "child") == 0) return child();
  const struct CMUnitTest tests[] = {
    CACHE_TEST(test_hit),
    CACHE_TEST(test_other_line),
    CACHE_TEST(test_donation),
    CACHE_TEST(test_second_process),
    CACHE_TEST(test_flipped),
    CACHE_TEST(test_cut),
    CACHE_TEST(test_sizes),
    CACHE_TEST(test_refused),
    CACHE_TEST(test_other_key),
    CACHE_TEST(test_flags),
    CACHE_TEST(test_hit_is_use),
    CACHE_TEST(test_longest_unused_goes),
    CACHE_TEST(test_no_writing),
    CACHE_TEST(test_too_large),
    CACHE_TEST(test_label),
    CACHE_TEST(test_writable_by_others),
    CACHE_TEST(test_writable_by_all),
    CACHE_TEST(test_not_own),
    CACHE_TEST(test_no_folder),
    CACHE_TEST(test_off),
    CACHE_TEST(test_default_folder),
    CACHE_TEST(test_cannot_serialize),
    CACHE_TEST(test_cannot_write),
    CACHE_TEST(test_plugin_file),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
