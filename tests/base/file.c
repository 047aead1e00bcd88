// Whole files, folders, content hashes.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "check.h"
#include "support/skip.h"

static char folder[256];

static const char *at(const char *name)
{
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int begin(void **state)
{
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_file_XXXXXX",
           tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(folder) == NULL) return 1;
  return check_begin(state);
}

static int entries(void)
{
  int n = 0;
  DIR *d = opendir(folder);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n - 2;
}

static int end(void **state)
{
  DIR *d = opendir(folder);
  for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
    if (e->d_name[0] != '.') unlink(at(e->d_name));
  }
  closedir(d);
  rmdir(folder);
  return check_end(state);
}

#define FILE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

static void test_round_trip(void **state)
{
  (void)state;
  for (size_t n = 0; n < 300000; n = n * 3 + 1) {
    char *data = test_malloc(n + 1);
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 7);
    check_ok(cx_file_write(at("f"), data, n));
    char *back;
    size_t size;
    check_ok(cx_file_read(at("f"), 0, &back, &size));
    assert_int_equal(size, n);
    assert_memory_equal(back, data, n);
    assert_int_equal(back[size], 0);
    cx_free(back);
    test_free(data);
  }
  assert_true(cx_file_exists(at("f")));
  assert_int_equal(entries(), 1);  // nothing beside it
}

static void test_mode(void **state)
{
  (void)state;
  mode_t mask = umask(027);
  check_ok(cx_file_write(at("f"), "x", 1));
  umask(mask);
  struct stat info;
  assert_int_equal(stat(at("f"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
}

static void test_read_fails(void **state)
{
  (void)state;
  char *data = (char *)1;
  size_t size = 5;
  check_fails(cx_file_read(at("none"), 0, &data, &size), CALX_NOT_FOUND,
              "none': No such file");
  assert_null(data);
  assert_int_equal(size, 0);
  check_fails(cx_file_read(folder, 0, &data, &size), CALX_DATA_LOSS, folder);
  check_ok(cx_file_write(at("f"), "0123456789", 10));
  check_fails(cx_file_read(at("f"), 9, &data, &size), CALX_RESOURCE_EXHAUSTED,
              "more than the 9 bytes");
  assert_null(data);
  check_ok(cx_file_read(at("f"), 10, &data, &size));
  cx_free(data);
  // A file that tells no size, and one without an end.
  check_ok(cx_file_read("/proc/self/status", 0, &data, &size));
  assert_true(size > 10);
  cx_free(data);
  check_fails(cx_file_read("/dev/zero", 100000, &data, &size),
              CALX_RESOURCE_EXHAUSTED, "/dev/zero");
}

static void test_write_fails(void **state)
{
  (void)state;
  check_fails(cx_file_write(at("no/such/f"), "x", 1), CALX_NOT_FOUND,
              "no/such/f");
  assert_int_equal(mkdir(at("taken"), 0700), 0);
  check_fails(cx_file_write(at("taken"), "x", 1), CALX_INVALID_ARGUMENT,
              "taken");
  rmdir(at("taken"));
  assert_int_equal(entries(), 0);
  check_fails(cx_file_write("/dev/full/x", "x", 1), CALX_NOT_FOUND, "");
}

// What was there stays, whole, when a write fails.
static void test_replaced(void **state)
{
  (void)state;
  check_ok(cx_file_write(at("f"), "old", 3));
  cx_alloc_fail_at(0);
  calx_status *status = cx_file_write(at("f"), "new!", 4);
  cx_alloc_fail_at(-1);
  assert_non_null(status);
  calx_status_free(status);
  char *data;
  size_t size;
  check_ok(cx_file_read(at("f"), 0, &data, &size));
  assert_string_equal(data, "old");
  cx_free(data);
  check_ok(cx_file_write(at("f"), "new!", 4));
  check_ok(cx_file_read(at("f"), 0, &data, &size));
  assert_string_equal(data, "new!");
  cx_free(data);
  assert_int_equal(entries(), 1);
}

// Devices, pipes and standard output stay what they are and get the bytes.
static void test_streams(void **state)
{
  (void)state;
  struct stat before, after;
  assert_int_equal(stat("/dev/null", &before), 0);
  check_ok(cx_file_write("/dev/null", "x", 1));
  assert_int_equal(lstat("/dev/null", &after), 0);
  assert_true(S_ISCHR(after.st_mode) && after.st_ino == before.st_ino);
  check_fails(cx_file_write("/dev/full", "x", 1), CALX_RESOURCE_EXHAUSTED,
              "cannot write '/dev/full'");
  // A pipe, by its descriptor's name; and a log, which keeps its lines.
  int ends[2];
  char name[40], got[8] = "";
  assert_int_equal(pipe(ends), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
  check_ok(cx_file_write(name, "piped", 5));
  assert_int_equal(read(ends[0], got, sizeof got), 5);
  assert_string_equal(got, "piped");
  close(ends[0]);
  close(ends[1]);
  FILE *log = fopen(at("log"), "w");
  assert_non_null(log);
  fputs("one\n", log);
  fflush(log);
  snprintf(name, sizeof name, "/dev/fd/%d", fileno(log));
  check_ok(cx_file_write(name, "two\n", 4));
  fclose(log);
  char *data;
  size_t size;
  check_ok(cx_file_read(at("log"), 0, &data, &size));
  assert_string_equal(data, "one\ntwo\n");
  cx_free(data);
}

// A link stays one; what it leads to is replaced.
static void test_link(void **state)
{
  (void)state;
  check_ok(cx_file_write(at("target"), "old", 3));
  assert_int_equal(symlink(at("target"), at("link")), 0);
  check_ok(cx_file_write(at("link"), "new", 3));
  struct stat info;
  assert_int_equal(lstat(at("link"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  char *data;
  size_t size;
  check_ok(cx_file_read(at("target"), 0, &data, &size));
  assert_string_equal(data, "new");
  cx_free(data);
}

// ---- files that are believed ------------------------------------------------

// Neither waits for a writer nor reads without an end.
static void test_read_regular(void **state)
{
  (void)state;
  char *data = (char *)1;
  size_t size = 5;
  check_fails(cx_file_read_regular(at("none"), 0, &data, &size), CALX_NOT_FOUND,
              "none': No such file");
  assert_null(data);
  assert_int_equal(size, 0);
  check_ok(cx_file_write(at("f"), "0123", 4));
  assert_int_equal(symlink(at("f"), at("link")), 0);
  check_ok(cx_file_read_regular(at("link"), 4, &data, &size));
  assert_string_equal(data, "0123");
  cx_free(data);
  check_fails(cx_file_read_regular(at("f"), 3, &data, &size),
              CALX_RESOURCE_EXHAUSTED, "more than the 3 bytes");
  assert_int_equal(mkfifo(at("pipe"), 0600), 0);
  check_fails(cx_file_read_regular(at("pipe"), 0, &data, &size),
              CALX_INVALID_ARGUMENT, "is a pipe; a regular file is wanted");
  check_fails(cx_file_read_regular("/dev/zero", 0, &data, &size),
              CALX_INVALID_ARGUMENT, "is a device");
  check_fails(cx_file_read_regular(folder, 0, &data, &size),
              CALX_INVALID_ARGUMENT, "is a directory");
  assert_null(data);
}

static void check_refused(const char *path, bool root_too, const char *why)
{
  char *data = (char *)1;
  size_t size = 5;
  check_fails(cx_file_read_own(path, 0, root_too, &data, &size),
              CALX_PERMISSION_DENIED, why);
  assert_null(data);
  assert_int_equal(size, 0);
}

static void test_read_own(void **state)
{
  (void)state;
  char *data;
  size_t size;
  check_fails(cx_file_read_own(at("none"), 0, false, &data, &size),
              CALX_NOT_FOUND, "none");
  mode_t mask = umask(0);
  check_ok(cx_file_write_private(at("f"), "0123", 4));
  umask(mask);
  struct stat info;
  assert_int_equal(stat(at("f"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  check_ok(cx_file_read_own(at("f"), 4, false, &data, &size));
  assert_string_equal(data, "0123");
  cx_free(data);
  check_fails(cx_file_read_own(at("f"), 3, false, &data, &size),
              CALX_RESOURCE_EXHAUSTED, "more than the 3 bytes");
  assert_int_equal(symlink(at("f"), at("link")), 0);
  check_refused(at("link"), true, "is a link");
  assert_int_equal(mkfifo(at("pipe"), 0600), 0);
  check_refused(at("pipe"), true, "no regular file");
  check_refused("/dev/null", true, "no regular file");
  check_refused(folder, true, "no regular file");
  const mode_t wide[] = { 0620, 0602, 0666 };
  for (int i = 0; i < 3; i++) {
    assert_int_equal(chmod(at("f"), wide[i]), 0);
    check_refused(at("f"), true, "others may write it");
  }
  assert_int_equal(chmod(at("f"), 0644), 0);
  if (geteuid() != 0) SKIP_HERE("only root can give a file away");
  assert_int_equal(chown(at("f"), 12345, 12345), 0);
  check_refused(at("f"), true, "belongs to user 12345, not to 0");
}

// What has the name is replaced, and nothing is written through it.
static void test_write_private(void **state)
{
  (void)state;
  char *data;
  size_t size;
  check_ok(cx_file_write(at("target"), "kept", 4));
  assert_int_equal(symlink(at("target"), at("f")), 0);
  check_ok(cx_file_write_private(at("f"), "new", 3));
  check_ok(cx_file_read_own(at("f"), 0, false, &data, &size));
  assert_string_equal(data, "new");
  cx_free(data);
  assert_int_equal(chmod(at("f"), 0444), 0);
  check_ok(cx_file_write_private(at("f"), "more", 4));
  assert_int_equal(unlink(at("f")), 0);
  assert_int_equal(mkfifo(at("f"), 0666), 0);
  check_ok(cx_file_write_private(at("f"), "newer", 5));
  check_ok(cx_file_read_own(at("f"), 0, false, &data, &size));
  assert_string_equal(data, "newer");
  cx_free(data);
  check_ok(cx_file_read(at("target"), 0, &data, &size));
  assert_string_equal(data, "kept");
  cx_free(data);
  assert_int_equal(entries(), 2);
  assert_int_equal(mkdir(at("taken"), 0700), 0);
  calx_status *status = cx_file_write_private(at("taken"), "x", 1);
  assert_non_null(status);
  calx_status_free(status);
  rmdir(at("taken"));
}

static void test_read_without_memory(void **state)
{
  (void)state;
  check_ok(cx_file_write(at("f"), "0123456789", 10));
  bool done = false;
  for (long n = 0; !done; n++) {
    char *data;
    size_t size;
    cx_alloc_fail_at(n);
    calx_status *status = cx_file_read(at("f"), 0, &data, &size);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    assert_true(done == (data != NULL));
    calx_status_free(status);
    cx_free(data);
  }
}

static void test_folders(void **state)
{
  (void)state;
  char deep[512];
  snprintf(deep, sizeof deep, "%s/a/b/c", folder);
  check_ok(cx_folder_make(deep, 0750));
  check_ok(cx_folder_make(deep, 0700));
  struct stat info;
  assert_int_equal(stat(deep, &info), 0);
  assert_true(S_ISDIR(info.st_mode));
  assert_int_equal(info.st_mode & 0777, 0750);
  snprintf(deep, sizeof deep, "%s/d//e/", folder);
  check_ok(cx_folder_make(deep, 0700));
  check_fails(cx_folder_make("", 0700), CALX_INVALID_ARGUMENT, "empty");
  check_ok(cx_folder_make("/", 0700));
  check_ok(cx_file_write(at("f"), "x", 1));
  snprintf(deep, sizeof deep, "%s/f/below", folder);
  check_fails(cx_folder_make(deep, 0700), CALX_NOT_FOUND, "f/below");
  rmdir(at("d/e"));
  rmdir(at("d"));
  rmdir(at("a/b/c"));
  rmdir(at("a/b"));
  rmdir(at("a"));
}

// ---- hashes -----------------------------------------------------------------

// The vector of xxHash's own documentation: XXH128 of nothing.
static void test_hash(void **state)
{
  (void)state;
  char hex[33];
  cx_hash_hex(cx_hash_bytes("", 0, 0), hex);
  assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
  cx_hash a = cx_hash_bytes("abc", 3, 0), b = cx_hash_bytes("abd", 3, 0);
  assert_true(cx_hash_equal(a, cx_hash_bytes("abc", 3, 0)));
  assert_false(cx_hash_equal(a, b));
  assert_false(cx_hash_equal(a, cx_hash_bytes("abc", 3, 1)));
  cx_hash c = a;
  c.high ^= 1;
  assert_false(cx_hash_equal(a, c));
}

static void test_file_hash(void **state)
{
  (void)state;
  const size_t sizes[] = {
    0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 19
  };
  char *data = test_calloc(1, 5 << 19);
  for (size_t i = 0; i < 5 << 19; i++) data[i] = (char)(i >> 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_ok(cx_file_write(at("f"), data, sizes[i]));
    cx_hash h;
    check_ok(cx_hash_file(at("f"), &h));
    assert_true(cx_hash_equal(h, cx_hash_bytes(data, sizes[i], 0)));
  }
  test_free(data);
  cx_hash h;
  check_fails(cx_hash_file(at("none"), &h), CALX_NOT_FOUND, "none");
  check_fails(cx_hash_file(folder, &h), CALX_DATA_LOSS, folder);
  cx_alloc_fail_at(0);
  check_fails(cx_hash_file(at("f"), &h), CALX_RESOURCE_EXHAUSTED, "memory");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FILE_TEST(test_round_trip),   FILE_TEST(test_mode),
    FILE_TEST(test_read_fails),   FILE_TEST(test_write_fails),
    FILE_TEST(test_replaced),     FILE_TEST(test_streams),
    FILE_TEST(test_link),         FILE_TEST(test_read_without_memory),
    FILE_TEST(test_folders),      FILE_TEST(test_hash),
    FILE_TEST(test_file_hash),    FILE_TEST(test_read_own),
    FILE_TEST(test_read_regular), FILE_TEST(test_write_private),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
