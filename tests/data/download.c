// download: files from servers of this host: whole, resumed, damaged, absent;
// MNIST with its real checksums.
#include "data/download.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "calx/dataset.h"
#include "check.h"
#include "data/sha256.h"
#include "idx.h"

typedef struct web_server {
  pid_t pid;
  char url[64];
} web_server;

static char served[64], folder[64];
static web_server plain, ranges;

static const char *path_in(const char *where, const char *name)
{
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", where, name);
  return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

static void start(web_server *s, const char *kind)
{
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  s->pid = fork();
  assert_true(s->pid >= 0);
  if (s->pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execlp("python3", "python3", CX_TEST_DIR "/http_server.py", served, kind,
           (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *said = fdopen(ends[0], "r");
  int port = 0;
  assert_int_equal(fscanf(said, "%d", &port), 1);
  fclose(said);
  snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", port);
}

static void stop(web_server *s)
{
  kill(s->pid, SIGTERM);
  waitpid(s->pid, NULL, 0);
}

static int set_up(void **state)
{
  (void)state;
  strcpy(served, "/tmp/calx_served_XXXXXX");
  strcpy(folder, "/tmp/calx_downloaded_XXXXXX");
  assert_non_null(mkdtemp(served));
  assert_non_null(mkdtemp(folder));
  start(&plain, "plain");
  start(&ranges, "ranges");
  return 0;
}

static void empty(const char *where)
{
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", where);
  assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
  (void)state;
  stop(&plain);
  stop(&ranges);
  empty(served);
  empty(folder);
  return 0;
}

// ---- files ------------------------------------------------------------------

enum { SIZE = 70000 };
static char content[SIZE], checksum[65];

static void sum_of(const void *data, size_t size, char out[65])
{
  cx_data_sha256 s;
  cx_data_sha256_begin(&s);
  cx_data_sha256_add(&s, data, size);
  cx_data_sha256_end(&s, out);
}

// A file on the server, and nothing of it here.
static cx_data_web_file put(const char *name)
{
  for (size_t i = 0; i < SIZE; i++) content[i] = (char)(i * i / 7 + i);
  sum_of(content, SIZE, checksum);
  write_file(path_in(served, name), content, SIZE);
  unlink(path_in(folder, name));
  unlink(path_in(served, "requests"));
  return (cx_data_web_file){ name, SIZE, checksum };
}

static bool is_there(const char *name)
{
  return access(path_in(folder, name), F_OK) == 0;
}

static void check_file(const char *name)
{
  char *data, part[64];
  size_t size;
  CHECK_OK(cx_file_read(path_in(folder, name), 0, &data, &size));
  assert_int_equal(size, SIZE);
  assert_memory_equal(data, content, SIZE);
  cx_free(data);
  snprintf(part, sizeof part, "%s.part", name);
  assert_false(is_there(part));
}

static void check_requests(const char *expected)
{
  char *data;
  size_t size;
  if (expected[0] == '\0') {
    assert_false(access(path_in(served, "requests"), F_OK) == 0);
    return;
  }
  CHECK_OK(cx_file_read(path_in(served, "requests"), 0, &data, &size));
  assert_string_equal(data, expected);
  cx_free(data);
}

static void test_sha256(void **state)
{
  (void)state;
  char out[65];
  static char million[1000000];
  memset(million, 'a', sizeof million);
  sum_of("", 0, out);  // FIPS 180-4's examples
  assert_string_equal(
      out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sum_of("abc", 3, out);
  assert_string_equal(
      out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, out);
  assert_string_equal(
      out, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  sum_of(million, sizeof million, out);
  assert_string_equal(
      out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_whole(void **state)
{
  (void)state;
  cx_data_web_file f = put("whole");
  CHECK_OK(cx_data_download(folder, plain.url, &f));
  check_file("whole");
  check_requests("/whole -\n");
  unlink(path_in(served, "requests"));
  CHECK_OK(cx_data_download(folder, plain.url, &f));  // it is there
  check_requests("");
  write_file(path_in(folder, "whole"), "damaged", 7);
  char url[80];
  snprintf(url, sizeof url, "%s/", ranges.url);
  CHECK_OK(cx_data_download(folder, url, &f));
  check_file("whole");
  check_requests("/whole -\n");
}

static void test_resumed(void **state)
{
  (void)state;
  cx_data_web_file f = put("half");
  write_file(path_in(folder, "half.part"), content, SIZE / 2);
  CHECK_OK(cx_data_download(folder, ranges.url, &f));
  check_file("half");
  check_requests("/half bytes=35000-\n");
  f = put("half");  // this server begins at the beginning
  write_file(path_in(folder, "half.part"), content, SIZE / 2);
  CHECK_OK(cx_data_download(folder, plain.url, &f));
  check_file("half");
  check_requests("/half bytes=35000-\n/half -\n");
  f = put("half");  // complete, but for its name
  write_file(path_in(folder, "half.part"), content, SIZE);
  CHECK_OK(cx_data_download(folder, "http://127.0.0.1:1", &f));
  check_file("half");
  f = put("half");  // longer than it can be
  static char longer[SIZE + 1];
  write_file(path_in(folder, "half.part"), longer, sizeof longer);
  CHECK_OK(cx_data_download(folder, ranges.url, &f));
  check_file("half");
  check_requests("/half -\n");
}

static void test_breaks(void **state)
{
  (void)state;
  cx_data_web_file f = put("breaks");
  CHECK_FAILS(CALX_UNAVAILABLE, cx_data_download(folder, ranges.url, &f),
              "/breaks", "cannot download");
  assert_false(is_there("breaks"));
  assert_true(is_there("breaks.part"));
  CHECK_OK(cx_data_download(folder, ranges.url, &f));
  check_file("breaks");
  check_requests("/breaks -\n/breaks bytes=35000-\n");
}

static void test_answers(void **state)
{
  (void)state;
  cx_data_web_file f = put("here");
  f.name = "absent";
  CHECK_FAILS(CALX_NOT_FOUND, cx_data_download(folder, plain.url, &f),
              "/absent", "404");
  f.name = "broken";
  CHECK_FAILS(CALX_UNAVAILABLE, cx_data_download(folder, ranges.url, &f),
              "/broken", "500");
  f.name = "secret";
  CHECK_FAILS(CALX_PERMISSION_DENIED, cx_data_download(folder, ranges.url, &f),
              "403");
  f.name = "moved";
  CHECK_OK(cx_data_download(folder, ranges.url, &f));
  check_file("moved");
  f.name = "here";
  CHECK_FAILS(CALX_UNAVAILABLE,
              cx_data_download(folder, "http://127.0.0.1:1", &f),
              "127.0.0.1:1/here");
  char url[80];
  snprintf(url, sizeof url, "file://%s", served);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_data_download(folder, url, &f),
              "file://");
  CHECK_FAILS(CALX_NOT_FOUND, cx_data_download("/nowhere", plain.url, &f),
              "/nowhere/here.part");
  assert_false(is_there("here"));
}

static void test_other_content(void **state)
{
  (void)state;
  cx_data_web_file f = put("other");
  char found[65];
  strcpy(found, checksum);
  content[5] ^= 1;
  sum_of(content, SIZE, checksum);
  CHECK_FAILS(CALX_DATA_LOSS, cx_data_download(folder, plain.url, &f), "/other",
              "SHA-256", found, checksum);
  f.bytes = SIZE - 1;
  CHECK_FAILS(CALX_DATA_LOSS, cx_data_download(folder, plain.url, &f),
              "more than the 69999 bytes");
  f.bytes = SIZE + 1;
  CHECK_FAILS(CALX_DATA_LOSS, cx_data_download(folder, plain.url, &f),
              "70000 bytes, 70001 are expected");
  assert_false(is_there("other"));
  assert_false(is_there("other.part"));
}

// Processes that all want the file: one asks, all have it.
static void test_together(void **state)
{
  (void)state;
  cx_data_web_file f = put("shared");
  pid_t children[4];
  for (int i = 0; i < 4; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] != 0) continue;
    calx_status *status = cx_data_download(folder, ranges.url, &f);
    _exit(status != NULL);
  }
  for (int i = 0; i < 4; i++) {
    int code;
    waitpid(children[i], &code, 0);
    assert_int_equal(code, 0);
  }
  check_file("shared");
  check_requests("/shared -\n");
}

// ---- MNIST ------------------------------------------------------------------

static void copy(const char *from, const char *to)
{
  char *data;
  size_t size;
  CHECK_OK(cx_file_read(from, 0, &data, &size));
  write_file(to, data, size);
  cx_free(data);
}

static void put_bytes(const char *path, bytes b)
{
  write_file(path, b.data, b.size);
  drop(b);
}

// The real test set from a server, beside a training set that is there.
static void test_mnist(void **state)
{
  (void)state;
  const char *shared = getenv("CALX_SHARED");
  char where[128], data[300];
  snprintf(where, sizeof where, "%s/new/mnist", folder);
  snprintf(data, sizeof data, "%s/data/mnist", shared);
  for (int i = 2; i < 4; i++) {
    const char *name = cx_data_mnist_files[i].name;
    copy(path_in(data, name), path_in(served, name));
  }
  calx_dataset *train, *test;
  CHECK_FAILS(CALX_NOT_FOUND,
              calx_dataset_mnist(where, &train, &test, .download = true,
                                 .mirror = plain.url),
              "train-images-idx3-ubyte.gz", "404");
  assert_null(train);
  uint32_t n = 3;
  put_bytes(path_in(where, "train-images-idx3-ubyte"),
            make_idx(3, (uint32_t[]){ n, 28, 28 }, n * 784, 251));
  put_bytes(path_in(where, "train-labels-idx1-ubyte"), make_idx(1, &n, n, 10));
  setenv("CALX_MNIST_MIRROR", plain.url, 1);
  CHECK_OK(calx_dataset_mnist(where, &train, &test, .download = true));
  unsetenv("CALX_MNIST_MIRROR");
  assert_int_equal(calx_dataset_size(train), 3);
  assert_int_equal(calx_dataset_size(test), 10000);
  static float pixels[784];
  int64_t label;
  CHECK_OK(calx_dataset_get(test, 0, (void *[]){ pixels, &label }));
  assert_int_equal(label, 7);  // the set's first digit
  calx_dataset_free(train);
  calx_dataset_free(test);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              calx_dataset_mnist(NULL, &train, &test, .download = true),
              "folder");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_sha256),   CHECK_TEST(test_whole),
    CHECK_TEST(test_resumed),  CHECK_TEST(test_breaks),
    CHECK_TEST(test_answers),  CHECK_TEST(test_other_content),
    CHECK_TEST(test_together), CHECK_TEST(test_mnist),
  };
  return cmocka_run_group_tests_name("data_download", tests, set_up, tear_down);
}
