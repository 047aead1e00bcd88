// Whose the disk cache's files are: what others could have written is neither
// loaded nor written through, and no file of another kind holds a run up.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "fixture.h"
#include "support/skip.h"

static char folder[256], entry[512], target[300];
static int folders;

static int begin(void **state)
{
  const char *tmp = getenv("TMPDIR");
  tmp = tmp != NULL ? tmp : "/tmp";
  snprintf(folder, sizeof folder, "%s/calx_own_%d_%d", tmp, (int)getpid(),
           folders);
  snprintf(target, sizeof target, "%s/calx_target_%d_%d", tmp, (int)getpid(),
           folders++);
  setenv("CALX_CACHE_DIR", folder, 1);
  alarm(60);  // for what waits for ever
  return lazy_begin(state);
}

static int end(void **state)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
  unlink(target);
  alarm(0);
  unsetenv("CALX_CACHE_SIZE");
  setenv("CALX_CACHE_DIR", "off", 1);
  return lazy_end(state);
}

#define OWN_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

static long compiled;
static calx_scope *scope;
static calx_tensor *made;

static calx_tensor *run_begin(void)
{
  calx_shutdown();
  compiled = lazy_compiles();
  scope = calx_scope_begin();
  return calx_neg(lazy_vector(4, 3));
}

static int run_end(calx_tensor *t)
{
  assert_true(lazy_holds(t, 3));
  CHECK_STATUS_OK(calx_scope_end(scope));
  return (int)(lazy_compiles() - compiled);
}

// Runs the program in a new world; how often it was compiled. A macro, because
// what is told once is told once a place.
#define run_once() (made = run_begin(), calx_sync(made), run_end(made))

static void find_entry(void)
{
  DIR *d = opendir(folder);
  int n = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (strstr(e->d_name, ".calxprog") == NULL) continue;
    snprintf(entry, sizeof entry, "%s/%s", folder, e->d_name);
    n++;
  }
  closedir(d);
  assert_int_equal(n, 1);
}

static mode_t mode_of_entry(void)
{
  struct stat info;
  assert_int_equal(lstat(entry, &info), 0);
  assert_true(S_ISREG(info.st_mode));
  assert_int_equal(info.st_uid, geteuid());
  return info.st_mode & 0777;
}

// An entry of which a run would be a hit.
static void make_entry(void)
{
  assert_int_equal(run_once(), 1);
  assert_int_equal(run_once(), 0);
  find_entry();
}

static void was_compiled(int times, const char *why)
{
  assert_int_equal(times, 1);
  assert_int_equal(lines_with("is not taken from disk"), why != NULL);
  if (why != NULL) assert_int_equal(lines_with(why), 1);
  find_entry();
  assert_int_equal(mode_of_entry(), 0600);
  assert_int_equal(run_once(), 0);
}

// It is compiled, the user is told why (once a place: NULL), and from then on
// it is a hit.
#define check_compiled(why) (lines_clear(), was_compiled(run_once(), why))

static void test_mode(void **state)
{
  (void)state;
  const mode_t masks[] = { 0, 022, 077, 0777 };
  for (int i = 0; i < 4; i++) {
    mode_t mask = umask(masks[i]);
    assert_int_equal(mkdir(folder, 0700) == 0 || errno == EEXIST, 1);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(run_once(), 1);
    umask(mask);
    find_entry();
    assert_int_equal(mode_of_entry(), 0600);
    assert_int_equal(unlink(entry), 0);
  }
}

static void test_writable_entry(void **state)
{
  (void)state;
  const mode_t modes[] = { 0622, 0620, 0602, 0666 };
  make_entry();
  for (int i = 0; i < 4; i++) {
    assert_int_equal(chmod(entry, modes[i]), 0);
    check_compiled(i == 0 ? "others may write it" : NULL);
  }
  assert_int_equal(chmod(entry, 0644), 0);  // to read is no harm
  assert_int_equal(run_once(), 0);
}

static void test_of_another_user(void **state)
{
  (void)state;
  if (geteuid() != 0) SKIP_HERE("only root can give a file away");
  make_entry();
  assert_int_equal(chown(entry, 12345, (gid_t)-1), 0);
  check_compiled("belongs to user 12345");
}

// The same program behind a link is not taken, and the target stays as it is.
static void test_link(void **state)
{
  (void)state;
  char *before, *after;
  size_t size, now;
  make_entry();
  assert_int_equal(rename(entry, target), 0);
  assert_int_equal(symlink(target, entry), 0);
  CHECK_STATUS_OK(cx_file_read(target, 0, &before, &size));
  before[size - 1] = (char)(before[size - 1] ^ 1);
  CHECK_STATUS_OK(cx_file_write(target, before, size));
  check_compiled("is a link");
  CHECK_STATUS_OK(cx_file_read(target, 0, &after, &now));
  assert_int_equal(now, size);
  assert_memory_equal(before, after, size);
  cx_free(before);
  cx_free(after);
}

static void test_pipe(void **state)
{
  (void)state;
  make_entry();
  assert_int_equal(unlink(entry), 0);
  assert_int_equal(mkfifo(entry, 0600), 0);
  check_compiled("no regular file");
}

static void test_link_to_pipe(void **state)
{
  (void)state;
  make_entry();
  assert_int_equal(unlink(entry), 0);
  assert_int_equal(mkfifo(target, 0600), 0);
  assert_int_equal(symlink(target, entry), 0);
  check_compiled("is a link");
}

// A folder of this name stays, and the program is compiled each time.
static void test_folder(void **state)
{
  (void)state;
  make_entry();
  assert_int_equal(unlink(entry), 0);
  assert_int_equal(mkdir(entry, 0700), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(run_once(), 1);
  assert_int_equal(rmdir(entry), 0);
}

// A claim that is no file of this user's alone is neither waited for, nor
// written to, nor removed.
static void test_claims(void **state)
{
  (void)state;
  char claim[600];
  make_entry();
  snprintf(claim, sizeof claim, "%s.claim", entry);
  for (int kind = 0; kind < 4; kind++) {
    CHECK_STATUS_OK(cx_file_write(target, "kept", 4));
    assert_int_equal(unlink(entry), 0);
    switch (kind) {
      case 0: assert_int_equal(link(target, claim), 0); break;
      case 1: assert_int_equal(symlink(target, claim), 0); break;
      case 2: assert_int_equal(mkfifo(claim, 0600), 0); break;
      default:
        CHECK_STATUS_OK(cx_file_write(claim, "", 0));
        assert_int_equal(chmod(claim, 0666), 0);
    }
    assert_int_equal(run_once(), 1);
    char *data;
    size_t size;
    CHECK_STATUS_OK(cx_file_read(target, 0, &data, &size));
    assert_string_equal(data, "kept");
    cx_free(data);
    assert_int_equal(unlink(claim), 0);
    assert_int_equal(mode_of_entry(), 0600);
  }
}

// What may not be replaced is still not believed.
static void test_readonly(void **state)
{
  (void)state;
  make_entry();
  assert_int_equal(chmod(entry, 0666), 0);
  lines_clear();
  for (int i = 0; i < 2; i++) {
    setenv("CALX_CACHE_SIZE", "0", 1);  // as a folder that is only read
    assert_int_equal(run_once(), i == 0);
    assert_int_equal(lines_with("is not taken from disk"), 1);
    assert_int_equal(chmod(entry, 0444), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    OWN_TEST(test_mode),     OWN_TEST(test_writable_entry),
    OWN_TEST(test_link),     OWN_TEST(test_of_another_user),
    OWN_TEST(test_pipe),     OWN_TEST(test_link_to_pipe),
    OWN_TEST(test_folder),   OWN_TEST(test_claims),
    OWN_TEST(test_readonly),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
