// writer: a file that is written piece by piece is seen whole or not at all.
#include "base/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/temporary.h"
#include "calx/io.h"

#include "files.h"
#include "support/skip.h"

static void check_content(const char *path, const char *wanted, size_t size)
{
  char *data;
  size_t got;
  CHECK_STATUS_OK(cx_file_read(path, 0, &data, &got));
  assert_int_equal(got, size);
  assert_memory_equal(data, wanted, size);
  cx_free(data);
}

static void test_pieces(void **state)
{
  (void)state;
  const char *path = file_in_folder("a");
  size_t size = 3 << 20;
  char *all = test_malloc(size);
  for (size_t i = 0; i < size; i++) all[i] = (char)(i * 31 >> 3);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open(path, &w));
  size_t at = 0;
  for (size_t piece = 0; at < size; piece = (piece * 5 + 1) % 700001) {
    size_t n = piece < size - at ? piece : size - at;
    CHECK_STATUS_OK(cx_writer_put(w, all + at, n));
    at += n;
    assert_int_equal(cx_writer_size(w), at);
  }
  assert_false(cx_file_exists(path));
  CHECK_STATUS_OK(cx_writer_commit(w));
  check_content(path, all, size);
  assert_int_equal(files_in_folder(true), 1);
  test_free(all);
}

static void test_abandon(void **state)
{
  (void)state;
  const char *path = file_in_folder("b");
  write_file(path, "old", 3);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open(path, &w));
  CHECK_STATUS_OK(cx_writer_put(w, "new", 3));
  check_content(path, "old", 3);
  cx_writer_abandon(w);
  cx_writer_abandon(NULL);
  check_content(path, "old", 3);
  CHECK_STATUS_OK(cx_writer_open(path, &w));
  CHECK_STATUS_OK(cx_writer_put(w, "newer", 5));
  CHECK_STATUS_OK(cx_writer_commit(w));
  check_content(path, "newer", 5);
  assert_int_equal(files_in_folder(true), 1);
}

// A link stays a link; what it leads to is replaced.
static void test_link(void **state)
{
  (void)state;
  const char *target = file_in_folder("target"), *link = file_in_folder("link");
  write_file(target, "old", 3);
  assert_int_equal(symlink(target, link), 0);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open(link, &w));
  CHECK_STATUS_OK(cx_writer_put(w, "new", 3));
  CHECK_STATUS_OK(cx_writer_commit(w));
  struct stat info;
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  check_content(target, "new", 3);
  assert_int_equal(files_in_folder(true), 2);
}

static void test_refused(void **state)
{
  (void)state;
  cx_writer *w;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_writer_open("", &w), "empty");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_writer_open("/dev/null", &w),
               "/dev/null", "no regular file");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_writer_open(file_in_folder(""), &w),
               "no regular file");
  CHECK_STATUS(CALX_NOT_FOUND, cx_writer_open("/nowhere/at/all", &w),
               "/nowhere/at/all");
  char *longer = test_malloc(70000);
  memset(longer, 'x', 69999);
  longer[69999] = '\0';
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_writer_open(longer, &w), "too long");
  test_free(longer);
}

static mode_t mode_of(const char *path)
{
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return info.st_mode & 07777;
}

// A new file follows the umask; one that is replaced keeps its mode.
static void test_modes(void **state)
{
  (void)state;
  const char *path = file_in_folder("m"), *link = file_in_folder("l");
  const mode_t masks[] = { 0, 022, 027, 077 };
  assert_int_equal(symlink(path, link), 0);
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    mode_t mask = umask(masks[i]);
    CHECK_STATUS_OK(cx_file_write(path, "new", 3));
    assert_int_equal(mode_of(path), 0666 & ~masks[i]);
    const mode_t kept[] = { 0600, 0640, 0664, 0755, 0200, 0466 };
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
      if ((kept[k] & 0200) == 0 && geteuid() != 0) continue;
      assert_int_equal(chmod(path, kept[k]), 0);
      CHECK_STATUS_OK(cx_file_write(k % 2 ? path : link, "newer", 5));
      assert_int_equal(mode_of(path), kept[k]);
    }
    umask(mask);
    assert_int_equal(unlink(path), 0);
  }
  files_in_folder(true);
}

// Root's right to write all is no reason to replace what was made read-only.
static void test_read_only_file(void **state)
{
  (void)state;
  const char *path = file_in_folder("best.pt");
  const mode_t modes[] = { 0444, 0400, 0555, 0 };
  calx_value *v = calx_value_int(7);
  write_file(path, "old", 3);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assert_int_equal(chmod(path, modes[i]), 0);
    CHECK_STATUS(CALX_PERMISSION_DENIED, calx_save(v, path),
                 "best.pt': it is read-only", "chmod u+w", "was not saved");
    assert_int_equal(mode_of(path), modes[i]);
  }
  assert_int_equal(chmod(path, 0600), 0);
  check_content(path, "old", 3);
  CHECK_STATUS_OK(calx_save(v, path));
  assert_int_equal(mode_of(path), 0600);
  calx_value_free(v);
  assert_int_equal(files_in_folder(true), 1);
}

// Saves over a file of user 1, group 2 and mode 0664, as `user` of group 2 or
// of no group that it is in.
static int save_as(const char *path, uid_t user, gid_t group)
{
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (setgid(group) != 0 || setuid(user) != 0) _exit(9);
    calx_status *status = cx_file_write(path, "new", 3);
    _exit(status == NULL                                       ? 0
          : calx_status_code(status) == CALX_PERMISSION_DENIED ? 1
                                                               : 2);
  }
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

// Root's save leaves a user's file that user's; a member of the group keeps the
// group; who may not write is told.
static void test_owners(void **state)
{
  (void)state;
  if (geteuid() != 0) SKIP_HERE("only root can give a file away");
  const char *path = file_in_folder("shared");
  assert_int_equal(chmod(file_in_folder(""), 0777), 0);
  const struct {
    uid_t user;
    gid_t group;
    mode_t mode;
    int code;
    uid_t owner;  // afterwards
  } cases[] = { { 0, 0, 0664, 0, 1 },
                { 1, 2, 0600, 0, 1 },
                { 77, 2, 0664, 0, 77 },
                { 77, 77, 0664, 1, 1 },
                { 1, 77, 0662, 0, 1 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(path, "old", 3);
    assert_int_equal(chown(path, 1, 2), 0);
    assert_int_equal(chmod(path, cases[i].mode), 0);
    assert_int_equal(save_as(path, cases[i].user, cases[i].group),
                     cases[i].code);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_uid, cases[i].owner);
    // In another group the group may do what all may.
    bool group_kept = info.st_gid == 2;
    assert_int_equal(group_kept, i != 4);
    assert_int_equal(info.st_mode & 07777, i == 4 ? 0622 : cases[i].mode);
    assert_int_equal(unlink(path), 0);
  }
  assert_int_equal(chmod(file_in_folder(""), 0700), 0);
}

// A path without a folder is one of the current folder.
static void test_current_folder(void **state)
{
  (void)state;
  char before[1024];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(file_in_folder("")), 0);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open("plain", &w));
  CHECK_STATUS_OK(cx_writer_put(w, "x", 1));
  CHECK_STATUS_OK(cx_writer_commit(w));
  check_content("plain", "x", 1);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(files_in_folder(true), 1);
}

// Where the folder can't be read, and so not be synced, the old file stays. In
// a process of its own, which is nobody's: root may read all.
static void test_unreadable_folder(void **state)
{
  (void)state;
  char folder[PATH_MAX], path[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", file_in_folder(""));
  snprintf(path, sizeof path, "%s", file_in_folder("a"));
  write_file(path, "old", 3);
  assert_int_equal(chmod(path, 0666), 0);
  assert_int_equal(chmod(folder, 0333), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cx_writer *w;
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    calx_status *status = cx_writer_open(path, &w);
    if (status == NULL) status = cx_writer_put(w, "new", 3);
    if (status == NULL) status = cx_writer_commit(w);
    _exit(calx_status_code(status) == CALX_PERMISSION_DENIED ? 0 : 1);
  }
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(chmod(folder, 0700), 0);
  assert_int_equal(ended, 0);
  check_content(path, "old", 3);
  assert_int_equal(files_in_folder(true), 1);
}

// An empty file with the name that a process gives a temporary one.
static void leave_one(const char *path)
{
  char name[PATH_MAX];
  cx_temporary_name(path, name);
  write_file(name, "", 0);
}

// What a dead process left goes with the folder's next save, whatever is saved;
// never what a living one is writing, or what is named otherwise.
static void test_leftovers(void **state)
{
  (void)state;
  const char *path = file_in_folder("a.pt");
  char name[PATH_MAX];
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    leave_one(path);
    leave_one(file_in_folder("b.pt"));
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  leave_one(path);
  static const char *const others[] = {
    "a.pt.calx-0000000000000001-999999-0.tmp",  // of another machine
    "a.pt.1-2.tmp",
    "a.pt.tmp",
    "a.calx-1.tmp",
    "a.calx-.tmp",
  };
  enum { OTHERS = sizeof others / sizeof *others };
  for (int i = 0; i < OTHERS; i++) write_file(file_in_folder(others[i]), "", 0);
  cx_temporary_name(path, name);  // but for a byte of its end
  name[strlen(name) - 1] = 'q';
  write_file(name, "", 0);
  assert_int_equal(files_in_folder(false), 2 + 1 + OTHERS + 1);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open(path, &w));
  CHECK_STATUS_OK(cx_writer_put(w, "new", 3));
  CHECK_STATUS_OK(cx_writer_commit(w));
  check_content(path, "new", 3);
  for (int i = 0; i < OTHERS; i++) {
    assert_true(cx_file_exists(file_in_folder(others[i])));
  }
  // And the living one's own, the misnamed one, the saved one.
  assert_int_equal(files_in_folder(true), OTHERS + 3);
}

// A name that is as long as names can be has a temporary one, too.
static void test_long_name(void **state)
{
  (void)state;
  char name[256], path[PATH_MAX];
  memset(name, 'n', 255);
  name[255] = '\0';
  snprintf(path, sizeof path, "%s/%s", file_in_folder(""), name);
  cx_writer *w;
  CHECK_STATUS_OK(cx_writer_open(path, &w));
  CHECK_STATUS_OK(cx_writer_put(w, "x", 1));
  CHECK_STATUS_OK(cx_writer_commit(w));
  check_content(path, "x", 1);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(files_in_folder(true), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_pieces),         SUPPORT_TEST(test_abandon),
    SUPPORT_TEST(test_link),           SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_current_folder), SUPPORT_TEST(test_leftovers),
    SUPPORT_TEST(test_long_name),      SUPPORT_TEST(test_unreadable_folder),
    SUPPORT_TEST(test_modes),          SUPPORT_TEST(test_read_only_file),
    SUPPORT_TEST(test_owners),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
