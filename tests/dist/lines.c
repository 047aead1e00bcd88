// lines: what ranks print: when it is seen, and whose it is. On the fake
// plugin.
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "launcher/spawn.h"
#include "ranks.h"

// ---- standard output --------------------------------------------------------

// Bytes that are in the pipe.
static int seen(void)
{
  int n = -1;
  return ioctl(STDOUT_FILENO, FIONREAD, &n) == 0 ? n : -1;
}

static calx_status *print_line(int index, void *user)
{
  (void)index;
  RANK_CHECK(printf("one\n") == 4);
  *(int *)user = seen();
  return NULL;
}

// How much of "one\n" is seen at once, in a process whose output is a pipe and
// nothing was printed by, or `before`.
static int seen_at_once(bool launched, const char *before)
{
  pid_t child = fork();
  if (child == 0) {
    int ends[2], n = -1;
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) _exit(99);
    if (launched) {
      setenv("RANK", "0", 1);
      setenv("WORLD_SIZE", "1", 1);
    }
    fputs(before, stdout);
    calx_status *status = calx_launch(print_line, &n);
    _exit(status == NULL ? n : 98);
  }
  int how;
  if (child < 0 || waitpid(child, &how, 0) != child) return -1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

// Processes that calx_launch() starts share the program's output: a line of one
// of them is seen at once, so that no line ends in the middle of another's.
static int seen_of_forked(void)
{
  pid_t child = fork();
  if (child == 0) {
    int ends[2];
    int *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n == MAP_FAILED || pipe(ends) != 0 ||
        dup2(ends[1], STDOUT_FILENO) < 0) {
      _exit(99);
    }
    calx_launch_options o = { .size = sizeof o, .processes = 2 };
    calx_status *status = calx_launch_with(print_line, n, &o);
    _exit(status == NULL ? *n : 98);
  }
  int how;
  if (child < 0 || waitpid(child, &how, 0) != child) return -1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static int at_once, alone, after, forked;  // told before cmocka prints

static void test_standard_output(void **state)
{
  (void)state;
  assert_int_equal(at_once, 4);
  assert_int_equal(alone, 0);               // nobody's but the program's
  assert_int_equal(after, 2);               // what was there before the launch
  assert_true(forked == 4 || forked == 8);  // the other's line may be there
}

// ---- the library's lines ----------------------------------------------------

typedef struct lines {
  cx_mutex lock;
  char text[8][64];
  int n;
} lines;

static void keep(void *user, const char *line)
{
  lines *l = user;
  cx_lock(&l->lock);
  snprintf(l->text[l->n++ % 8], sizeof l->text[0], "%s", line);
  cx_unlock(&l->lock);
}

static int count(const lines *l, const char *text)
{
  int n = 0;
  for (int i = 0; i < l->n && i < 8; i++) n += strcmp(l->text[i], text) == 0;
  return n;
}

static calx_status *say(int index, void *user)
{
  (void)index;
  (void)user;
  cx_log("hello");
  return NULL;
}

static void test_ranks_are_told(void **state)
{
  (void)state;
  lines l = { .lock = CX_MUTEX_INIT };
  calx_log_set(keep, &l);
  set_devices(3);
  calx_status *status = calx_launch(say, NULL);
  int each = count(&l, "rank 0: hello") + count(&l, "rank 1: hello") +
             count(&l, "rank 2: hello");
  calx_shutdown();
  CHECK_STATUS_OK(status);
  assert_int_equal(each, 3);
  assert_int_equal(l.n, 3);
  set_devices(1);
  status = calx_launch(say, NULL);
  calx_log_set(NULL, NULL);
  CHECK_STATUS_OK(status);
  assert_int_equal(count(&l, "hello"), 1);  // a world of one
}

static void say_beside(void *user)
{
  cx_log("beside");
  (void)user;
}

static calx_status *say_in_a_process(int index, void *user)
{
  (void)user;
  static lines l = { .lock = CX_MUTEX_INIT };
  calx_log_set(keep, &l);
  cx_log("hello");
  cx_thread thread;
  CALX_TRY(cx_thread_start(&thread, say_beside, NULL));
  cx_thread_join(&thread);
  calx_log_set(NULL, NULL);
  char wanted[32];
  snprintf(wanted, sizeof wanted, "rank %d: hello", index);
  RANK_CHECK(count(&l, wanted) == 1);
  snprintf(wanted, sizeof wanted, "process %d: beside", index);
  RANK_CHECK(count(&l, wanted) == 1);
  return NULL;
}

static void test_processes_are_told(void **state)
{
  (void)state;
  set_devices(1);
  CHECK_STATUS_OK(calx_launch(say_in_a_process, NULL, .processes = 2));
}

// ---- a launch after one that failed -----------------------------------------

static calx_status *fail_at_1(int index, void *user)
{
  (void)user;
  if (index == 1) return cx_error(CALX_DATA_LOSS, "the file is short");
  return calx_rendezvous("epoch", NULL, 0, NULL, NULL);
}

static calx_status *launch_again(void *user)
{
  atomic_int *right = user;
  calx_status *first = calx_launch(fail_at_1, NULL);
  calx_status *wrong =
      rank_wants(calx_launch(rank_nothing, NULL), CALX_FAILED_PRECONDITION,
                 "an earlier launch of this job has failed");
  if (first != NULL && wrong == NULL) atomic_fetch_add(right, 1);
  calx_status_free(wrong);
  return first;
}

static void test_after_a_failure(void **state)
{
  (void)state;
  atomic_int *right = mmap(NULL, sizeof *right, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(right, MAP_FAILED);
  set_devices(1);
  cx_launcher_options o = { .processes = 2, .fn = launch_again, .user = right };
  cx_launcher_exit end;
  calx_status *status = cx_launcher_spawn(&o, &end);
  int n = atomic_load(right);
  calx_status_free(status);
  assert_int_equal(munmap(right, sizeof *right), 0);
  assert_int_equal(n, 2);
}

int main(void)
{
  void *state = NULL;
  if (ranks_setup_fake(&state) != 0) return 1;
  set_devices(1);
  at_once = seen_at_once(true, "");
  alone = seen_at_once(false, "");
  after = seen_at_once(true, "a\n");
  forked = seen_of_forked();
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_standard_output),
    SUPPORT_TEST(test_ranks_are_told),
    SUPPORT_TEST(test_processes_are_told),
    SUPPORT_TEST(test_after_a_failure),
  };
  return cmocka_run_group_tests(tests, ranks_setup_fake, NULL);
}
