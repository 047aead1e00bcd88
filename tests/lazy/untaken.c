// untaken: errors that nobody takes are written to standard error, each once;
// those that somebody took are not. And a number that is NaN is remarked on.
// Each program here is a process of its own, since most end with its exit.
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

static const char mark[] = "error that nobody took: ";

static void go_wrong(void)
{
  calx_add(lazy_vector(4, 1), lazy_vector(3, 1));
}

// Runs fn and exits as a program does; what it wrote to standard error.
static char *stderr_of(void (*fn)(void))
{
  char name[] = "/tmp/calx-untaken-XXXXXX";
  int file = mkstemp(name);
  assert_true(file >= 0);
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(file, STDERR_FILENO);
    calx_log_set(NULL, NULL);
    fn();
    exit(0);
  }
  int how;
  assert_int_equal(waitpid(pid, &how, 0), pid);
  assert_int_equal(how, 0);
  char *text = test_calloc(1, 1 << 16);
  assert_true(pread(file, text, (1 << 16) - 1, 0) >= 0);
  close(file);
  unlink(name);
  return text;
}

static int count(const char *text, const char *piece)
{
  int n = 0;
  while ((text = strstr(text, piece)) != NULL) {
    n++;
    text++;
  }
  return n;
}

static void check(void (*fn)(void), int errors, const char *piece)
{
  char *text = stderr_of(fn);
  if (count(text, mark) != errors || count(text, piece) != errors) {
    fail_msg("wanted %d times '%s', got:\n%s", errors, piece, text);
  }
  test_free(text);
}

// ---- at the end -------------------------------------------------------------

static void at_exit(void)
{
  go_wrong();
}

static void at_shutdown(void)
{
  go_wrong();
  calx_shutdown();
}

static void *in_thread(void *user)
{
  (void)user;
  go_wrong();
  return NULL;
}

static void at_thread_end(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, in_thread, NULL) != 0) _exit(1);
  pthread_join(thread, NULL);
}

static void in_open_scope(void)
{
  calx_scope_begin();
  go_wrong();
}

static void test_end(void **state)
{
  (void)state;
  check(at_exit, 1, "in go_wrong: add: ");
  check(at_shutdown, 1, "in go_wrong: add: ");
  check(at_thread_end, 1, "in go_wrong: add: ");
  check(in_open_scope, 1, "in go_wrong: add: ");
}

// ---- reads ------------------------------------------------------------------

static void read_one(void)
{
  calx_tensor *t = calx_add(lazy_vector(4, 1), lazy_vector(3, 1));
  if (!isnan(calx_item(t))) _exit(1);
  calx_print(t);
  calx_cpu(t);
  // It is told by the first read, not at the end.
  fprintf(stderr, "behind\n");
}

static void read_often(void)
{
  for (int i = 0; i < 100; i++) {
    calx_tensor *t = calx_add(lazy_vector(4, 1), lazy_vector(3, 1));
    calx_item(calx_mul(t, 2));
  }
}

static void read_others(void)
{
  calx_item(calx_add(lazy_vector(4, 1), lazy_vector(3, 1)));
  calx_item(calx_mul(lazy_vector(4, 1), lazy_vector(3, 1)));
}

static void test_reads(void **state)
{
  (void)state;
  check(read_one, 1, "in read_one: add: ");
  char *text = stderr_of(read_one);
  assert_true(strstr(text, "behind") > strstr(text, mark));
  test_free(text);
  check(read_often, 1, "in read_often: add: ");
  check(read_others, 2, "in read_others: ");
}

// ---- late failures ----------------------------------------------------------

static calx_tensor *late_failure(void)
{
  calx_tensor *w = lazy_durable(4, 1);
  calx_assign(w, calx_neg(w));
  lazy_set("late=1:8:no memory for it");
  calx_sync(NULL);
  return w;
}

static void late_at_shutdown(void)
{
  calx_release(late_failure());
  calx_status *status = calx_scope_take_error();
  if (status != NULL) _exit(1);
  calx_shutdown();
}

static void late_at_exit(void)
{
  late_failure();
  calx_status *status = calx_scope_take_error();
  if (status != NULL) _exit(1);
}

static void late_and_taken(void)
{
  late_failure();
  calx_status *status = calx_device_wait(NULL);
  if (status == NULL) _exit(1);
  calx_status_free(status);
}

static void test_late(void **state)
{
  (void)state;
  check(late_at_shutdown, 1, "no memory for it");
  check(late_at_exit, 1, "no memory for it");
  check(late_and_taken, 0, "no memory for it");
}

// ---- taken ------------------------------------------------------------------

static void taken(void)
{
  go_wrong();
  calx_status *status = calx_scope_take_error();
  if (status == NULL) _exit(1);
  calx_status_free(status);
  calx_shutdown();
}

static void returned(void)
{
  calx_scope *s = calx_scope_begin();
  calx_item(calx_add(lazy_vector(4, 1), lazy_vector(3, 1)));
  calx_status *status = calx_scope_end(s);
  if (status == NULL) _exit(1);
  calx_status_free(status);
}

// The same error again is a new one.
static void again(void)
{
  for (int i = 0; i < 2; i++) {
    go_wrong();
    if (i == 0) calx_status_free(calx_scope_take_error());
  }
}

static void test_taken(void **state)
{
  (void)state;
  check(taken, 0, "add: ");
  check(returned, 0, "add: ");
  check(again, 1, "add: ");
}

// ---- numbers that are NaN ---------------------------------------------------

static calx_tensor *number(float value)
{
  return calx_tensor_from(&value, CALX_F32, CALX_SCALAR);
}

static void read_nan(void)
{
  for (int i = 0; i < 3; i++) calx_item(number(NAN));
  calx_print(number(NAN));
  calx_item(number(1));
  float both[] = { NAN, NAN };
  calx_print(calx_tensor_from(both, CALX_F32, CALX_SHAPE(2)));
}

static void read_checked(void)
{
  setenv("CALX_DEBUG", "nan", 1);
  cx_lazy_mode_reload();
  calx_item(number(NAN));
}

static void test_nan(void **state)
{
  (void)state;
  char *text = stderr_of(read_nan);
  assert_int_equal(count(text, "the number that is read is NaN"), 2);
  assert_int_equal(count(text, "CALX_DEBUG=indices"), 2);
  assert_int_equal(count(text, "lazy/untaken.c:"), 2);
  test_free(text);
  text = stderr_of(read_checked);
  assert_int_equal(count(text, "NaN"), 0);
  test_free(text);
}

// ---- counted recompilations -------------------------------------------------

// One place of 8 programs: 2, three lines, and 3 that are counted.
static void recompile(void)
{
  for (int64_t n = 1; n <= 8; n++) {
    calx_scope *step = calx_scope_begin();
    calx_sync(calx_neg(lazy_vector(n, 1)));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
}

static void recompile_and_shut_down(void)
{
  recompile();
  calx_shutdown();
}

static void test_recompilations(void **state)
{
  (void)state;
  void (*const programs[])(void) = { recompile, recompile_and_shut_down };
  for (int i = 0; i < 2; i++) {
    char *text = stderr_of(programs[i]);
    if (count(text, ", 3 programs more until the end") != 1)
      fail_msg("%s", text);
    test_free(text);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_end),  LAZY_TEST(test_reads),
    LAZY_TEST(test_late), LAZY_TEST(test_taken),
    LAZY_TEST(test_nan),  LAZY_TEST(test_recompilations),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
