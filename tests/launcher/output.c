// Lines of ranks: prefixes, whole lines, streams apart, log files.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/file.h"
#include "launcher/output.h"
#include "spawn.h"

// This process's streams are a file each while ranks write.
typedef struct redirected {
  int saved[2];
  char path[2][64];
} redirected;

static void redirect(redirected *r)
{
  fflush(NULL);
  for (int i = 0; i < 2; i++) {
    snprintf(r->path[i], sizeof r->path[i], "/tmp/calx_output_XXXXXX");
    int fd = mkstemp(r->path[i]);
    assert_true(fd >= 0);
    r->saved[i] = dup(1 + i);
    dup2(fd, 1 + i);
    close(fd);
  }
}

// What was written; freed by the caller.
static void restore(redirected *r, char *text[2])
{
  fflush(NULL);
  for (int i = 0; i < 2; i++) {
    size_t size;
    dup2(r->saved[i], 1 + i);
    close(r->saved[i]);
    check_ok(cx_file_read(r->path[i], 0, &text[i], &size));
    unlink(r->path[i]);
  }
}

static void run_with(const cx_launcher_output_options *o, cx_launcher_fn *fn,
                     int ranks, int restarts, calx_code wanted, char *text[2])
{
  cx_launcher_output *output;
  redirected r;
  cx_launcher_exit end;
  check_ok(cx_launcher_output_new(o, &output));
  redirect(&r);
  calx_status *status =
      cx_launcher_spawn(&(cx_launcher_options){ .processes = ranks,
                                                .fn = fn,
                                                .max_restarts = restarts,
                                                .output = output },
                        &end);
  restore(&r, text);
  assert_int_equal(calx_status_code(status), wanted);
  calx_status_free(status);
  cx_launcher_output_free(output);
}

static void put(int fd, const char *text)
{
  size_t n = strlen(text);
  if (write(fd, text, n) != (ssize_t)n) _exit(9);
}

// ---- lines ------------------------------------------------------------------

enum { LINES = 200 };
#define LONG_HOST "a-host.of-a-long-name.in-a-domain.example"

// Each line in two pieces, so that those of others come between.
static calx_status *write_pieces(void *user)
{
  (void)user;
  note_and_meet();
  char text[64];
  for (int i = 0; i < LINES; i++) {
    put(STDOUT_FILENO, "line ");
    if (i % 50 == 0) pause_ms(1);
    snprintf(text, sizeof text, "%d of %d\n", i, own_rank());
    put(STDOUT_FILENO, text);
    put(STDERR_FILENO, text);
  }
  put(STDOUT_FILENO, "no end");
  return NULL;
}

static void test_lines(void **state)
{
  (void)state;
  char *text[2];
  run_with(&(cx_launcher_output_options){ .host = LONG_HOST ":" }, write_pieces,
           3, 0, CALX_OK, text);
  int next[2][3] = { 0 }, ends = 0;
  for (int err = 0; err < 2; err++) {
    char *rest;
    for (char *line = strtok_r(text[err], "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
      int rank, number, said;
      const char *form = err ? "[" LONG_HOST ":%d] %d of %d"
                             : "[" LONG_HOST ":%d] line %d of %d";
      if (sscanf(line, form, &rank, &number, &said) == 3) {
        assert_int_equal(rank, said);
        assert_int_equal(number, next[err][rank]++);
      } else {
        assert_int_equal(
            sscanf(line, "[" LONG_HOST ":%d] no en%*1[d]%n", &rank, &said), 1);
        ends++;
      }
    }
    cx_free(text[err]);
  }
  for (int i = 0; i < 3; i++) {
    assert_int_equal(next[0][i], LINES);
    assert_int_equal(next[1][i], LINES);
  }
  assert_int_equal(ends, 3);
}

enum { LONG_LINE = 3 << 20 };

static calx_status *write_long_line(void *user)
{
  (void)user;
  note_and_meet();
  char *line = malloc(LONG_LINE + 1);
  memset(line, 'a' + own_rank(), LONG_LINE);
  line[LONG_LINE] = '\n';
  fwrite(line, 1, LONG_LINE + 1, stdout);
  free(line);
  return NULL;
}

static void test_long_lines_stay_whole(void **state)
{
  (void)state;
  char *text[2];
  run_with(&(cx_launcher_output_options){ 0 }, write_long_line, 2, 0, CALX_OK,
           text);
  const char *at = text[0];
  for (int i = 0; i < 2; i++) {
    int rank = at[1] - '0';
    assert_true(rank == 0 || rank == 1);
    at += 4;
    for (int k = 0; k < LONG_LINE; k++) {
      if (at[k] != 'a' + rank) fail_msg("byte %d of rank %d", k, rank);
    }
    assert_int_equal(at[LONG_LINE], '\n');
    at += LONG_LINE + 1;
  }
  assert_int_equal(*at, '\0');
  cx_free(text[0]);
  cx_free(text[1]);
}

static calx_status *write_once(void *user)
{
  (void)user;
  put(STDERR_FILENO, "e\n");
  put(STDOUT_FILENO, "\n");
  return NULL;
}

static void test_tags_and_none(void **state)
{
  (void)state;
  char *text[2];
  int hour, minute, second, ms, n = 0;
  run_with(&(cx_launcher_output_options){ .tag = true }, write_once, 1, 0,
           CALX_OK, text);
  assert_int_equal(sscanf(text[1], "[0 %2d:%2d:%2d.%3d err] e%n", &hour,
                          &minute, &second, &ms, &n),
                   4);
  assert_string_equal(text[1] + n, "\n");
  assert_non_null(strstr(text[0], " out] \n"));
  cx_free(text[0]);
  cx_free(text[1]);
  run_with(&(cx_launcher_output_options){ .bare = true }, write_once, 1, 0,
           CALX_OK, text);
  assert_string_equal(text[1], "e\n");
  assert_string_equal(text[0], "\n");
  cx_free(text[0]);
  cx_free(text[1]);
}

// ---- files ------------------------------------------------------------------

// The second attempt ends well; both are in the files.
static calx_status *write_to_files(void *user)
{
  (void)user;
  char text[64];
  int attempt = own_number("CALX_RESTART");
  snprintf(text, sizeof text, "out %d\n\n%d", own_rank(), attempt);
  put(STDOUT_FILENO, text);
  put(STDERR_FILENO, "err\n");
  shared->count++;
  WAIT_WHILE(shared->count < 2 * (attempt + 1));
  if (own_rank() == 1 && attempt == 0) _exit(1);
  while (attempt == 0) pause();
  return NULL;
}

static void drop_line(void *user, const char *line)
{
  (void)user;
  (void)line;
}

static void test_log_files(void **state)
{
  (void)state;
  char folder[] = "/tmp/calx_logs_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/rank_1.out", folder);
  check_ok(cx_file_write(path, "from before", 11));
  char *text[2];
  calx_log_set(drop_line, NULL);
  run_with(&(cx_launcher_output_options){ .log_dir = folder }, write_to_files,
           2, 1, CALX_OK, text);
  calx_log_set(NULL, NULL);
  static const char *const lines[] = { "[1] out 1\n", "[1] \n", "[1] 0\n",
                                       "[1] 1\n" };
  for (size_t i = 0; i < 4; i++) assert_non_null(strstr(text[0], lines[i]));
  cx_free(text[0]);
  cx_free(text[1]);
  static const char *const files[][2] = {
    { "rank_0.out", "out 0\n\n0out 0\n\n1" },
    { "rank_0.err", "err\nerr\n" },
    { "rank_1.out", "out 1\n\n0out 1\n\n1" },
    { "rank_1.err", "err\nerr\n" },
  };
  for (size_t i = 0; i < 4; i++) {
    char *data;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
    check_ok(cx_file_read(path, 0, &data, &size));
    assert_string_equal(data, files[i][1]);
    cx_free(data);
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void test_folder_that_cannot_be(void **state)
{
  (void)state;
  cx_launcher_output *output;
  calx_status *status = cx_launcher_output_new(
      &(cx_launcher_output_options){ .log_dir = "/dev/null/logs" }, &output);
  assert_non_null(status);
  assert_null(output);
  assert_non_null(strstr(calx_status_message(status), "/dev/null"));
  calx_status_free(status);
}

// ---- readers ---------------------------------------------------------

static volatile sig_atomic_t heard;

static void note_signal(int number)
{
  heard = number;
}

static calx_status *write_much(void *user)
{
  enum { MUCH = 256 << 10 };
  char line[1024];
  (void)user;
  struct sigaction pipe_action, note = { .sa_handler = note_signal };
  sigaction(SIGPIPE, NULL, &pipe_action);
  sigaction(SIGTERM, &note, NULL);
  memset(line, 'x', sizeof line);
  line[sizeof line - 1] = '\n';
  for (int i = 0; i < MUCH; i += (int)sizeof line) {
    if (write(STDOUT_FILENO, line, sizeof line) != (ssize_t)sizeof line) {
      _exit(9);
    }
  }
  shared->seen[1] = pipe_action.sa_handler == SIG_DFL;
  shared->count++;
  if (*(bool *)user) WAIT_WHILE(heard == 0);
  shared->seen[0] = heard;
  return NULL;
}

// A launcher whose standard output is the pipe.
static pid_t start_launcher(int out, bool waits)
{
  fflush(NULL);
  pid_t pid = fork();
  if (pid != 0) return pid;
  cx_launcher_output *output;
  cx_launcher_exit end;
  dup2(out, STDOUT_FILENO);
  signal(SIGPIPE, SIG_DFL);
  alarm(2 * PATIENCE_MS / 1000);
  if (cx_launcher_output_new(&(cx_launcher_output_options){ 0 }, &output) !=
      NULL)
    _exit(98);
  calx_status *status = cx_launcher_spawn(
      &(cx_launcher_options){
          .processes = 1, .fn = write_much, .user = &waits, .output = output },
      &end);
  _exit(status == NULL ? 0 : 97);
}

static void test_nobody_reads_any_more(void **state)
{
  (void)state;
  int ends[2], how;
  assert_int_equal(pipe(ends), 0);
  close(ends[0]);
  pid_t launcher = start_launcher(ends[1], false);
  close(ends[1]);
  assert_int_equal(waitpid(launcher, &how, 0), launcher);
  assert_int_equal(how, 0);
  assert_int_equal(shared->count, 1);
  assert_int_equal(shared->seen[1], 1);  // the rank may die of its own pipes
}

static bool has_written(void)
{
  return shared->count == 1;
}

static bool has_heard(void)
{
  return shared->seen[0] == SIGTERM;
}

// As when a pager waits: signals pass, and the lines are there later.
static void test_nobody_reads_yet(void **state)
{
  (void)state;
  int ends[2], how;
  assert_int_equal(pipe(ends), 0);
  pid_t launcher = start_launcher(ends[1], true);
  close(ends[1]);
  wait_until(has_written, "a rank whose lines nobody reads");
  kill(launcher, SIGTERM);
  wait_until(has_heard, "the signal");
  char piece[4096];
  size_t lines = 0;
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) {
    for (ssize_t i = 0; i < n; i++) lines += piece[i] == '\n';
  }
  close(ends[0]);
  assert_int_equal(lines, 256);
  assert_int_equal(waitpid(launcher, &how, 0), launcher);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SPAWN_TEST(test_lines),
    SPAWN_TEST(test_long_lines_stay_whole),
    SPAWN_TEST(test_tags_and_none),
    SPAWN_TEST(test_log_files),
    SPAWN_TEST(test_folder_that_cannot_be),
    SPAWN_TEST(test_nobody_reads_any_more),
    SPAWN_TEST(test_nobody_reads_yet),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
