// The disk cache's folder and files alone: what goes when there is no room, and
// that nothing in a file is believed.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "lazy/cache/cache.h"
#include "lines.h"
#include "support/support.h"

static char folder[256];
static int folders;

static int begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_files_%d_%d",
           tmp != NULL ? tmp : "/tmp", (int)getpid(), folders++);
  lines_clear();
  // A limit of its own: the folder may have the inode of an earlier test's,
  // whose room is known.
  char limit[32];
  snprintf(limit, sizeof limit, "%d", (1 << 30) + folders);
  setenv("CALX_CACHE_SIZE", limit, 1);
  CHECK_STATUS_OK(cx_lazy_cache_folder(folder, false));
  return 0;
}

static int end(void **state)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
  unsetenv("CALX_CACHE_SIZE");
  return support_nothing_left(state);
}

#define FILES_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

// ---- room -------------------------------------------------------------------

static const char *path_of(const char *name)
{
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static const char *name_of(int n)
{
  static char name[64];
  snprintf(name, sizeof name, "%032x" CX_LAZY_CACHE_SUFFIX, (unsigned)n);
  return name;
}

static bool there(const char *name)
{
  return access(path_of(name), F_OK) == 0;
}

// Writes `size` bytes under this name, as if `age` seconds ago.
static void put(const char *name, int64_t size, int64_t age)
{
  int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, size), 0);
  struct timespec t[2];
  clock_gettime(CLOCK_REALTIME, &t[0]);
  t[0].tv_sec -= age;
  t[1] = t[0];
  assert_int_equal(futimens(fd, t), 0);
  close(fd);
}

static calx_status *keep(int n, size_t size)
{
  cx_text data = { 0 };
  for (size_t i = 0; i < size; i++) cx_text_char(&data, 'x');
  calx_status *status = cx_lazy_cache_keep(folder, name_of(n), &data);
  cx_text_free(&data);
  return status;
}

static void test_room(void **state)
{
  (void)state;
  setenv("CALX_CACHE_SIZE", "1K", 1);
  for (int i = 1; i <= 4; i++) put(name_of(i), 250, 100 * i);
  CHECK_STATUS_OK(keep(5, 24));  // just fits
  for (int i = 1; i <= 5; i++) assert_true(there(name_of(i)));
  CHECK_STATUS_OK(keep(6, 1));
  for (int i = 1; i <= 6; i++) assert_int_equal(there(name_of(i)), i != 4);
  CHECK_STATUS_OK(keep(7, 500));
  for (int i = 1; i <= 7; i++) {
    assert_int_equal(there(name_of(i)), i != 2 && i != 3 && i != 4);
  }
  CHECK_STATUS_OK(keep(8, 1024));
  for (int i = 1; i <= 8; i++) assert_int_equal(there(name_of(i)), i == 8);
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, keep(9, 1025),
               "it has 1025 bytes, CALX_CACHE_SIZE is 1024");
  assert_true(there(name_of(8)));
}

// The folder is read again when a sixteenth of the limit has been written.
static void test_seldom_read(void **state)
{
  (void)state;
  setenv("CALX_CACHE_SIZE", "1600", 1);
  CHECK_STATUS_OK(keep(1, 10));
  put(name_of(2), 5000, 100);  // another process's
  CHECK_STATUS_OK(keep(3, 50));
  CHECK_STATUS_OK(keep(4, 50));
  assert_true(there(name_of(2)));
  CHECK_STATUS_OK(keep(5, 1));
  for (int i = 1; i <= 5; i++) assert_int_equal(there(name_of(i)), i != 2);
}

// Its old content makes room by itself.
static void test_replaced(void **state)
{
  (void)state;
  setenv("CALX_CACHE_SIZE", "1000", 1);
  put(name_of(1), 500, 200);
  put(name_of(2), 500, 100);
  CHECK_STATUS_OK(keep(2, 500));
  assert_true(there(name_of(1)));
  CHECK_STATUS_OK(keep(1, 501));
  assert_false(there(name_of(2)));
}

static void test_only_own_names(void **state)
{
  (void)state;
  setenv("CALX_CACHE_SIZE", "100", 1);
  const char *others[] = { "notes", "00.calxprog",
                           "0000000000000000000000000000000G.calxprog",
                           "00000000000000000000000000000001.calxprog.old" };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    put(others[i], 5000, 1000000);
  }
  put(name_of(1), 100, 0);
  CHECK_STATUS_OK(keep(2, 100));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_true(there(others[i]));
  }
  assert_false(there(name_of(1)));
}

static void test_unfinished(void **state)
{
  (void)state;
  setenv("CALX_CACHE_SIZE", "100", 1);
  const char *fresh = "00000000000000000000000000000001.calxprog.77-0";
  const char *stale = "00000000000000000000000000000001.calxprog.77-1";
  put(fresh, 5000, 3500);
  put(stale, 5000, 3700);
  put(name_of(2), 50, 0);
  CHECK_STATUS_OK(keep(3, 50));
  assert_true(there(fresh));
  assert_false(there(stale));
  assert_true(there(name_of(2)));  // what is not finished takes no room
}

// Another process was faster.
static void test_gone_meanwhile(void **state)
{
  (void)state;
  put(name_of(1), 10, 0);
  cx_lazy_cache c;
  CHECK_STATUS_OK(cx_lazy_cache_open(folder, &c));
  assert_int_equal(c.n, 1);
  unlink(path_of(name_of(1)));
  assert_true(cx_lazy_cache_remove(&c, &c.files[0]));
  cx_lazy_cache_close(&c);
}

// Times that no clock shows.
static void test_odd_times(void **state)
{
  (void)state;
  const time_t odd[] = { -1000, 0, INT_MAX, (time_t)1 << 33, (time_t)1 << 60 };
  cx_lazy_cache c;
  for (int i = 0; i < 5; i++) {
    put(name_of(i), 10, 0);
    struct timespec t[2] = { { .tv_sec = odd[i] }, { .tv_sec = odd[i] } };
    utimensat(AT_FDCWD, path_of(name_of(i)), t, 0);
  }
  CHECK_STATUS_OK(cx_lazy_cache_open(folder, &c));
  assert_int_equal(c.n, 5);
  for (size_t i = 0; i < c.n; i++) {
    assert_true(c.files[i].used >= 0);
    assert_true(i == 0 || c.files[i].used >= c.files[i - 1].used);
  }
  cx_lazy_cache_close(&c);
  setenv("CALX_CACHE_SIZE", "10", 1);
  CHECK_STATUS_OK(keep(6, 10));
  for (int i = 0; i < 5; i++) assert_false(there(name_of(i)));
}

static void test_no_memory(void **state)
{
  (void)state;
  put(name_of(1), 10, 0);
  bool done = false;
  for (long n = 0; !done; n++) {
    assert_true(n < 100);
    cx_text data = { 0 };
    cx_text_append(&data, "x");
    cx_alloc_fail_at(n);
    calx_status *status = cx_lazy_cache_keep(folder, name_of(2), &data);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
    cx_text_free(&data);
  }
}

static void test_limit(void **state)
{
  (void)state;
  const struct {
    const char *text;
    uint64_t limit;
  } right[] = { { "0", 0 },
                { "1", 1 },
                { "17179869184", (uint64_t)16 << 30 },
                { "3K", 3 << 10 },
                { "500M", (uint64_t)500 << 20 },
                { "8G", (uint64_t)8 << 30 },
                { "", (uint64_t)2 << 30 } };
  const char *wrong[] = { "x",    "-1",
                          " 1",   "+1",
                          "1X",   "1KB",
                          "1.5G", "99999999999999999999",
                          "K",    "18446744073709551615K" };
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    setenv("CALX_CACHE_SIZE", right[i].text, 1);
    assert_true(cx_lazy_cache_limit() == right[i].limit);
  }
  assert_int_equal(lines_with("CALX_CACHE_SIZE"), 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("CALX_CACHE_SIZE", wrong[i], 1);
    assert_true(cx_lazy_cache_limit() == (uint64_t)2 << 30);
  }
  assert_int_equal(lines_with("found 'x': 2G is taken"), 1);
  unsetenv("CALX_CACHE_SIZE");
  assert_true(cx_lazy_cache_limit() == (uint64_t)2 << 30);
}

// ---- claims -----------------------------------------------------------------

static bool claim(int n, cx_lazy_cache_lock *out)
{
  return cx_lazy_cache_claim(folder, name_of(n), 0, out);
}

static const char *claim_of(int n)
{
  static char name[96];
  snprintf(name, sizeof name, "%s" CX_LAZY_CACHE_CLAIM, name_of(n));
  return name;
}

static void test_claim(void **state)
{
  (void)state;
  cx_lazy_cache_lock first, second, other;
  assert_true(claim(1, &first));
  assert_true(there(claim_of(1)));
  assert_false(claim(1, &second));  // in one process too
  assert_int_equal(lines_with("is compiled here too"), 0);  // nobody waited
  cx_lazy_cache_claim_end(&second);
  assert_false(cx_lazy_cache_claim(folder, name_of(1), 1, &second));
  assert_int_equal(lines_with("is compiled here too"), 1);
  cx_lazy_cache_claim_end(&second);
  assert_true(there(claim_of(1)));
  assert_true(claim(2, &other));
  cx_lazy_cache_claim_end(&other);
  cx_lazy_cache_claim_end(&first);
  assert_false(there(claim_of(1)));
  assert_true(claim(1, &first));
  cx_lazy_cache_claim_end(&first);
}

// A holder that comes to its end leaves nothing to hold.
static void test_claim_ends(void **state)
{
  (void)state;
  cx_lazy_cache_lock first, second;
  assert_true(claim(1, &first));
  unlink(path_of(claim_of(1)));
  assert_true(claim(1, &second));  // a new file
  cx_lazy_cache_claim_end(&second);
  cx_lazy_cache_claim_end(&first);
  assert_false(there(claim_of(1)));
}

static void test_no_claim(void **state)
{
  (void)state;
  cx_lazy_cache_lock c;
  assert_int_equal(symlink("/dev/null", path_of(claim_of(1))), 0);
  assert_false(claim(1, &c));
  cx_lazy_cache_claim_end(&c);
  unlink(path_of(claim_of(1)));
  assert_int_equal(mkfifo(path_of(claim_of(2)), 0600), 0);
  assert_false(claim(2, &c));
  cx_lazy_cache_claim_end(&c);
  assert_false(cx_lazy_cache_claim("/nowhere", name_of(1), 0, &c));
  cx_lazy_cache_claim_end(&c);
}

// Only what nobody holds goes, and of itself only after an hour.
static void test_claims_that_are_left(void **state)
{
  (void)state;
  cx_lazy_cache_lock held;
  long pid;
  put(claim_of(2), 5, 3500);
  put(claim_of(3), 5, 3700);
  assert_true(claim(1, &held));
  put(claim_of(1), 0, 5000);  // of a long compilation
  cx_lazy_cache c;
  CHECK_STATUS_OK(cx_lazy_cache_open(folder, &c));
  assert_int_equal(c.n, 3);
  for (size_t i = 0; i < c.n; i++) {
    const cx_lazy_cache_file *f = &c.files[i];
    bool is_held = strcmp(f->name, claim_of(1)) == 0;
    assert_true(f->claim && f->unfinished);
    assert_int_equal(cx_lazy_cache_claim_held(&c, f, &pid), is_held);
    assert_int_equal(pid, 0);
    assert_true(!is_held || cx_lazy_cache_remove(&c, f));
  }
  CHECK_STATUS_OK(keep(9, 10));
  assert_true(there(claim_of(1)));
  assert_true(there(claim_of(2)));
  assert_false(there(claim_of(3)));
  for (size_t i = 0; i < c.n; i++) {
    assert_true(cx_lazy_cache_remove(&c, &c.files[i]));
  }
  assert_true(there(claim_of(1)));
  assert_false(there(claim_of(2)));
  cx_lazy_cache_close(&c);
  cx_lazy_cache_claim_end(&held);
  assert_int_equal(there(claim_of(1)), 0);
}

static void test_claim_is_signed(void **state)
{
  (void)state;
  cx_lazy_cache_lock held;
  long pid;
  cx_lazy_cache c;
  assert_true(claim(1, &held));
  CHECK_STATUS_OK(cx_lazy_cache_open(folder, &c));
  assert_int_equal(c.n, 1);
  assert_true(cx_lazy_cache_claim_held(&c, &c.files[0], &pid));
  assert_int_equal(pid, getpid());
  cx_lazy_cache_close(&c);
  cx_lazy_cache_claim_end(&held);
}

// ---- files ------------------------------------------------------------------

enum { LABEL_SIZE_AT = 12, CHECKSUM_AT = 16, SIZES_AT = 32, BODY_AT = 56 };

static void write_entry(cx_text *out)
{
  cx_lazy_cache_entry e = { .plugin = "ab",
                            .platform = "cd",
                            .program = "ef",
                            .key = "key",
                            .options = "opt",
                            .bytes = "program",
                            .key_size = 3,
                            .options_size = 3,
                            .n_bytes = 7 };
  cx_lazy_cache_entry_write(&e, out);
}

static void test_entry(void **state)
{
  (void)state;
  cx_text file = { 0 };
  write_entry(&file);
  cx_lazy_cache_entry e;
  assert_int_equal(cx_lazy_cache_entry_read(file.data, file.size, &e),
                   CX_LAZY_CACHE_WHOLE);
  assert_string_equal(e.plugin, "ab");
  assert_string_equal(e.platform, "cd");
  assert_string_equal(e.program, "ef");
  assert_true(e.key_size == 3 && e.options_size == 3 && e.n_bytes == 7);
  assert_memory_equal(e.key, "keyoptprogram", 13);
  assert_true(e.options == e.key + 3 && e.bytes == e.options + 3);
  cx_text_free(&file);
}

static cx_lazy_cache_state read_copy(const char *data, size_t size)
{
  // Of its exact size, so that a byte too far is seen.
  char *copy = cx_alloc(size);
  if (size != 0) memcpy(copy, data, size);
  cx_lazy_cache_entry e;
  cx_lazy_cache_state s = cx_lazy_cache_entry_read(copy, size, &e);
  cx_free(copy);
  return s;
}

static void test_cut_and_flipped(void **state)
{
  (void)state;
  cx_text file = { 0 };
  write_entry(&file);
  for (size_t n = 0; n < file.size; n++) {
    assert_int_equal(read_copy(file.data, n), CX_LAZY_CACHE_DAMAGED);
  }
  for (size_t bit = 0; bit < 8 * file.size; bit++) {
    char *at = &file.data[bit / 8], was = *at;
    *at = (char)(was ^ (1 << bit % 8));
    bool version = bit / 8 >= 8 && bit / 8 < 12;
    assert_int_equal(
        read_copy(file.data, file.size),
        version ? CX_LAZY_CACHE_OTHER_FORMAT : CX_LAZY_CACHE_DAMAGED);
    *at = was;
  }
  assert_int_equal(read_copy(file.data, file.size), CX_LAZY_CACHE_WHOLE);
  cx_text_free(&file);
}

// Labels whose checksum is right.
static void test_odd_labels(void **state)
{
  (void)state;
  cx_text file = { 0 };
  write_entry(&file);
  // ab0cd0ef0keyoptprogram
  const struct {
    uint32_t label;
    uint64_t key;
  } odd[] = { { 0, 12 },
              { 8, 4 },
              { 3, 9 },
              { 6, 6 },
              { 10, 2 },
              { 12, 0 },
              { 9, UINT64_MAX - 5 },
              { 22, 0 },
              { 23, 0 },
              { UINT32_MAX, 3 },
              { UINT32_MAX, UINT64_MAX - UINT32_MAX + 12 } };
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    memcpy(file.data + LABEL_SIZE_AT, &odd[i].label, sizeof odd[i].label);
    memcpy(file.data + SIZES_AT, &odd[i].key, sizeof odd[i].key);
    assert_int_equal(read_copy(file.data, file.size), CX_LAZY_CACHE_DAMAGED);
  }
  cx_text_clear(&file);
  char part[301];
  memset(part, 'p', 300);
  part[300] = '\0';
  cx_lazy_cache_entry e = { .plugin = part, .platform = NULL, .program = part };
  cx_lazy_cache_entry_write(&e, &file);
  cx_lazy_cache_entry read;
  assert_int_equal(cx_lazy_cache_entry_read(file.data, file.size, &read),
                   CX_LAZY_CACHE_WHOLE);
  assert_int_equal(strlen(read.plugin), 255);
  assert_string_equal(read.platform, "");
  assert_int_equal(strlen(read.program), 255);
  // A part of 256: the zero between the first two is gone, one is at the end.
  memset(file.data + BODY_AT, 'p', 256);
  memset(file.data + BODY_AT + 300, '\0', 1);
  cx_hash sum = cx_hash_bytes(file.data + BODY_AT, file.size - BODY_AT, 0);
  memcpy(file.data + CHECKSUM_AT, &sum, sizeof sum);
  assert_int_equal(read_copy(file.data, file.size), CX_LAZY_CACHE_DAMAGED);
  cx_text_free(&file);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FILES_TEST(test_room),
    FILES_TEST(test_seldom_read),
    FILES_TEST(test_replaced),
    FILES_TEST(test_only_own_names),
    FILES_TEST(test_unfinished),
    FILES_TEST(test_gone_meanwhile),
    FILES_TEST(test_odd_times),
    FILES_TEST(test_no_memory),
    FILES_TEST(test_limit),
    FILES_TEST(test_entry),
    FILES_TEST(test_cut_and_flipped),
    FILES_TEST(test_odd_labels),
    FILES_TEST(test_claim),
    FILES_TEST(test_claim_ends),
    FILES_TEST(test_no_claim),
    FILES_TEST(test_claims_that_are_left),
    FILES_TEST(test_claim_is_signed),
  };
  calx_log_set(lines_take, NULL);
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
