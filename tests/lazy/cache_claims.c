// Processes that want the same new program: one compiles it, the others wait
// for that, and go on when it ends or dies.
//
// On the fake plugin, where a process can be stopped while it compiles. What a
// process did is in memory that all share.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "lazy/cache/cache.h"

enum { MOST = 4 };

// As on a file system without locks.
static bool no_locks;
int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
  va_list args;
  va_start(args, cmd);
  void *arg = va_arg(args, void *);
  va_end(args);
  if (!no_locks || cmd != F_OFD_SETLK) return __real_fcntl(fd, cmd, arg);
  errno = EINVAL;
  return -1;
}

static char folder[256];
static int folders;

static int begin(void **state)
{
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_claims_%d_%d",
           tmp != NULL ? tmp : "/tmp", (int)getpid(), folders++);
  setenv("CALX_CACHE_DIR", folder, 1);
  unsetenv("CALX_CACHE_WAIT_S");
  return lazy_begin(state);
}

// How many files' names hold this.
static int files_with(const char *piece)
{
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    n += e->d_name[0] != '.' && strstr(e->d_name, piece) != NULL;
  }
  if (d != NULL) closedir(d);
  return n;
}

static void remove_programs(void)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    size_t n = strlen(e->d_name), end = strlen(CX_LAZY_CACHE_SUFFIX);
    if (n > end && strcmp(e->d_name + n - end, CX_LAZY_CACHE_SUFFIX) == 0) {
      unlinkat(dirfd(d), e->d_name, 0);
    }
  }
  if (d != NULL) closedir(d);
}

static int end(void **state)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
  setenv("CALX_CACHE_DIR", "off", 1);
  return lazy_end(state);
}

#define CLAIMS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

// ---- processes --------------------------------------------------------------

typedef struct record {
  int64_t compiled, hits, misses;
  int late;  // lines about that
} record;

static record *records;  // of each process, shared

static int run(record *out)
{
  calx_metrics_clear();
  lines_clear();
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_neg(lazy_vector(4, 3));
  calx_sync(t);
  float data[4] = { 0 };
  calx_status *status = calx_tensor_read(t, data, sizeof data);
  bool right = status == NULL && data[0] == 3 && data[3] == 6;
  calx_status_free(status);
  status = calx_scope_end(scope);
  right &= status == NULL;
  calx_status_free(status);
  out->compiled = calx_counter_value("UncachedCompile");
  out->hits = calx_counter_value("PersistentCacheHit");
  out->misses = calx_counter_value("PersistentCacheMiss");
  out->late = lines_with("was waited for 1 s: it is compiled here too");
  calx_shutdown();
  return right ? 0 : 1;
}

static pid_t start(int i, const char *settings)
{
  calx_shutdown();
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped one has no alarm
    if (settings != NULL && !lazy_fake.set(settings)) _exit(90);
    _exit(run(&records[i]));
  }
  assert_true(pid > 0);
  return pid;
}

static int wait_for(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

static void wait_until_stopped(pid_t pid)
{
  int status;
  assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
  assert_true(WIFSTOPPED(status));
}

// Process 0, which holds the claim and compiles for as long as it is left.
static pid_t start_stopped(const char *more)
{
  char settings[256];
  snprintf(settings, sizeof settings, "stop=PJRT_Client_Compile%s", more);
  pid_t pid = start(0, settings);
  wait_until_stopped(pid);
  assert_int_equal(files_with(".calxprog.claim"), 1);
  assert_int_equal(files_with(""), 1);
  return pid;
}

static int64_t sum_compiled(int n)
{
  int64_t sum = 0;
  for (int i = 0; i < n; i++) sum += records[i].compiled;
  return sum;
}

// ---- tests ------------------------------------------------------------------

// However many come while it is compiled.
static void test_one_compiles(void **state)
{
  (void)state;
  pid_t pids[MOST];
  pids[0] = start_stopped("");
  for (int i = 1; i < MOST; i++) pids[i] = start(i, NULL);
  struct timespec moment = { .tv_nsec = 50000000 };  // to be there, mostly
  nanosleep(&moment, NULL);
  kill(pids[0], SIGCONT);
  for (int i = 0; i < MOST; i++) assert_int_equal(wait_for(pids[i]), 0);
  assert_int_equal(records[0].compiled, 1);
  assert_int_equal(records[0].misses, 1);
  for (int i = 1; i < MOST; i++) {
    assert_int_equal(records[i].compiled, 0);
    assert_int_equal(records[i].hits, 1);
    assert_int_equal(records[i].misses, 0);
  }
  assert_int_equal(files_with(""), 1);
}

static void test_holder_killed(void **state)
{
  (void)state;
  pid_t pids[MOST];
  pids[0] = start_stopped("");
  for (int i = 1; i < MOST; i++) pids[i] = start(i, NULL);
  struct timespec moment = { .tv_nsec = 50000000 };
  nanosleep(&moment, NULL);
  kill(pids[0], SIGKILL);
  records[0].compiled = 0;
  assert_true(WIFSIGNALED(wait_for(pids[0])));
  for (int i = 1; i < MOST; i++) assert_int_equal(wait_for(pids[i]), 0);
  assert_int_equal(sum_compiled(MOST), 1);
  assert_int_equal(files_with(""), 1);
}

// It died before anybody else came.
static void test_left_claim(void **state)
{
  (void)state;
  pid_t pid = start_stopped("");
  kill(pid, SIGKILL);
  wait_for(pid);
  assert_int_equal(files_with(".claim"), 1);
  assert_int_equal(run(&records[1]), 0);
  assert_int_equal(records[1].compiled, 1);
  assert_int_equal(files_with(".claim"), 0);
  assert_int_equal(files_with(".calxprog"), 1);
}

// What is not kept is waited for by those that come while it is compiled; they
// compile it, and the first that keeps it ends that.
static void test_not_kept(void **state)
{
  (void)state;
  pid_t pids[MOST];
  pids[0] = start_stopped(";fail=PJRT_Executable_Serialize@1:13:broken");
  for (int i = 1; i < MOST; i++) pids[i] = start(i, NULL);
  struct timespec moment = { .tv_nsec = 50000000 };
  nanosleep(&moment, NULL);
  kill(pids[0], SIGCONT);
  for (int i = 0; i < MOST; i++) assert_int_equal(wait_for(pids[i]), 0);
  assert_int_equal(records[0].compiled, 1);
  assert_true(sum_compiled(MOST) >= 2);
  assert_int_equal(files_with(".claim"), 0);
}

static void test_limit(void **state)
{
  (void)state;
  pid_t pid = start_stopped("");
  for (int seconds = 0; seconds < 2; seconds++) {
    setenv("CALX_CACHE_WAIT_S", seconds == 0 ? "0" : "1", 1);
    assert_int_equal(run(&records[1]), 0);
    assert_int_equal(records[1].compiled, 1);
    // Who is not to wait has waited for nothing that is worth a line.
    assert_int_equal(records[1].late, seconds);
    assert_int_equal(files_with(".claim"), 1);  // it is still the other's
    remove_programs();
  }
  kill(pid, SIGCONT);
  assert_int_equal(wait_for(pid), 0);
  assert_int_equal(files_with(""), 1);
}

// Where a folder has no locks all compile, and no claim is left lying.
static void test_no_locks(void **state)
{
  (void)state;
  no_locks = true;
  assert_int_equal(run(&records[1]), 0);
  no_locks = false;
  assert_int_equal(records[1].compiled, 1);
  assert_int_equal(records[1].late, 0);
  assert_int_equal(files_with(".claim"), 0);
  assert_int_equal(files_with(".calxprog"), 1);
}

// Who only reads waits for nobody, and neither does who has the file.
static void test_no_need_to_wait(void **state)
{
  (void)state;
  pid_t pid = start_stopped("");
  CHECK_STATUS_OK(calx_cache_open(folder, true));
  assert_int_equal(run(&records[1]), 0);
  assert_int_equal(records[1].compiled, 1);
  setenv("CALX_CACHE_SIZE", "0", 1);
  assert_int_equal(run(&records[1]), 0);
  assert_int_equal(records[1].compiled, 1);
  unsetenv("CALX_CACHE_SIZE");
  assert_int_equal(files_with(""), 1);
  kill(pid, SIGKILL);
  wait_for(pid);
  assert_int_equal(run(&records[1]), 0);
  pid = start(0, "stop=PJRT_Executable_DeserializeAndLoad");
  wait_until_stopped(pid);
  assert_int_equal(run(&records[1]), 0);
  assert_int_equal(records[1].hits, 1);
  kill(pid, SIGCONT);
  assert_int_equal(wait_for(pid), 0);
}

// A program that does not compile is every process's own failure.
static void test_compile_fails(void **state)
{
  (void)state;
  // The read tries again what the sync failed to run.
  pid_t pid = start_stopped(
      ";fail=PJRT_Client_Compile@1:3:no such thing"
      ";fail=PJRT_Client_Compile@2:3:no such thing");
  pid_t other = start(1, NULL);
  kill(pid, SIGCONT);
  assert_int_equal(wait_for(pid), 1 << 8);
  assert_int_equal(wait_for(other), 0);
  assert_int_equal(records[1].compiled, 1);
  assert_int_equal(files_with(".claim"), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CLAIMS_TEST(test_one_compiles),  CLAIMS_TEST(test_holder_killed),
    CLAIMS_TEST(test_left_claim),    CLAIMS_TEST(test_not_kept),
    CLAIMS_TEST(test_limit),         CLAIMS_TEST(test_no_need_to_wait),
    CLAIMS_TEST(test_compile_fails), CLAIMS_TEST(test_no_locks),
  };
  records = mmap(NULL, MOST * sizeof *records, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (records == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
