// Many processes and one folder, on a real engine: what they count, what
// killing some of them at any moment leaves, and which programs differ.
//
// test_lazy_cache_ranks [KILLS]: so many processes are killed, 6 by default.
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calx/debug.h"
#include "calx/dist.h"
#include "calx/ops.h"
#include "lazy/cache/cache.h"
#include "lines.h"
#include "support/ranks.h"

enum { PROCESSES = 8 };

static char folder[256];
static int folders, kills = 6;

typedef struct record {
  int64_t compiled, hits, misses, damaged;
} record;

static struct shared {
  record of[PROCESSES];
  atomic_int ready;
} * shared;

static int begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_ranks_%d_%d",
           tmp != NULL ? tmp : "/tmp", (int)getpid(), folders++);
  unsetenv("CALX_CACHE_DIR");
  calx_metrics_clear();
  return 0;
}

// How many files' names hold this.
static int files_with(const char *piece, bool remove)
{
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    bool is = e->d_name[0] != '.' && strstr(e->d_name, piece) != NULL;
    n += is;
    if (is && remove) unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d != NULL) closedir(d);
  return n;
}

static int end(void **state)
{
  files_with("", true);
  rmdir(folder);
  setenv("CALX_CACHE_DIR", "off", 1);
  return ranks_end(state);
}

#define CACHE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

// ---- processes --------------------------------------------------------------

static void count(record *out)
{
  *out = (record){
    .compiled = calx_counter_value("UncachedCompile"),
    .hits = calx_counter_value("PersistentCacheHit"),
    .misses = calx_counter_value("PersistentCacheMiss"),
    .damaged = calx_counter_value("PersistentCacheDeserializeFailure"),
  };
}

// A product and a sum over 16 elements of 2: 16 * 4 * 2.
static int train(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_full(CALX_SHAPE(16, 16), 2);
  calx_tensor *y = calx_exp(calx_mul(calx_matmul(x, x), calx_scalar(0)));
  calx_tensor *z = calx_sum(y);
  double found = calx_item(z);
  calx_status *status = calx_scope_end(scope);
  bool right = status == NULL && found == 256;
  calx_status_print(stderr, status);
  calx_status_free(status);
  return right ? 0 : 1;
}

static _Noreturn void be_process(int i, int n)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(120);
  atomic_fetch_add(&shared->ready, 1);
  while (atomic_load(&shared->ready) < n) sched_yield();
  calx_status *status = calx_cache_open(folder, false);
  int code = status == NULL ? train() : 2;
  count(&shared->of[i]);
  calx_shutdown();
  _exit(code);
}

static void start(pid_t *pids, int n)
{
  calx_shutdown();
  fflush(NULL);
  memset(shared, 0, sizeof *shared);
  for (int i = 0; i < n; i++) {
    pids[i] = fork();
    if (pids[i] == 0) be_process(i, n);
    assert_true(pids[i] > 0);
  }
}

static int wait_for(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

static record sum(void)
{
  record all = { 0 };
  for (int i = 0; i < PROCESSES; i++) {
    all.compiled += shared->of[i].compiled;
    all.hits += shared->of[i].hits;
    all.misses += shared->of[i].misses;
    all.damaged += shared->of[i].damaged;
  }
  return all;
}

// ---- tests ------------------------------------------------------------------

static record run_processes(int n)
{
  pid_t pids[PROCESSES];
  start(pids, n);
  for (int i = 0; i < n; i++) assert_int_equal(wait_for(pids[i]), 0);
  return sum();
}

static void test_one_compiles(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof ranks_worlds / sizeof *ranks_worlds; i++) {
    int n = ranks_worlds[i];
    files_with("", true);
    for (int round = 0; round < 2; round++) {
      record all = run_processes(n);
      int programs = files_with(".calxprog", false);
      int missed = round == 0 ? programs : 0;
      assert_true(programs > 0);
      assert_int_equal(all.compiled, missed);
      assert_int_equal(all.misses, missed);
      assert_int_equal(all.hits, n * programs - missed);
      assert_int_equal(all.damaged, 0);
      assert_int_equal(files_with(".claim", false), 0);
    }
  }
}

// Whoever is killed, and whenever: the others are right, and no file is broken.
static void test_kills(void **state)
{
  (void)state;
  unsigned seed = 12345;
  enum { N = 4 };
  for (int n = 0; n < kills; n++) {
    pid_t pids[N];
    files_with("", true);
    start(pids, N);
    struct timespec moment = { .tv_nsec =
                                   1000000L * (rand_r(&seed) % 150) + 1000 };
    while (atomic_load(&shared->ready) < N) sched_yield();
    nanosleep(&moment, NULL);
    int victim = rand_r(&seed) % N;
    kill(pids[victim], SIGKILL);
    for (int i = 0; i < N; i++) {
      int status = wait_for(pids[i]);
      if (i != victim) assert_int_equal(status, 0);
    }
    assert_int_equal(sum().damaged, 0);
    record all = run_processes(N);
    assert_int_equal(all.compiled, 0);
    assert_int_equal(all.damaged, 0);
  }
  print_message("%d processes were killed\n", kills);
}

// ---- ranks that are processes -----------------------------------------------

static calx_status *run_rank(int rank, void *user)
{
  const int *n = user;
  CALX_TRY(calx_cache_open(folder, false));
  calx_scope *scope = calx_scope_begin();
  for (int i = 0; i < 3; i++) {
    calx_tensor *x = calx_full(CALX_SHAPE(4), rank + 1);
    calx_tensor *y = calx_all_reduce(x, CALX_REDUCE_SUM);
    calx_sync(y);
    float sum[4] = { 0 };
    CALX_TRY(calx_tensor_read(y, sum, sizeof sum));
    if (sum[3] != (float)(*n * (*n + 1) / 2)) {
      return cx_error(CALX_INTERNAL, "the sum is %g", (double)sum[3]);
    }
  }
  // Whichever of a process's ranks ends last has counted all.
  count(&shared->of[calx_process_index()]);
  return calx_scope_end(scope);
}

// A program of all ranks, on one device of each process or on two of those that
// it has.
static void check_launched(int processes, int devices, int round)
{
  int n = processes * devices;
  memset(shared, 0, sizeof *shared);
  CHECK_STATUS_OK(
      calx_launch(run_rank, &n, .processes = processes, .devices = devices));
  record all = sum();
  assert_int_equal(all.compiled, 1 - round);
  assert_int_equal(all.misses, 1 - round);
  assert_int_equal(all.hits, processes - all.misses);
  assert_int_equal(all.damaged, 0);
}

static void test_launched(void **state)
{
  (void)state;
  for (int round = 0; round < 2; round++) {
    setenv("CPU_NUM_DEVICES", "1", 1);
    for (size_t i = 0; i < sizeof ranks_worlds / sizeof *ranks_worlds; i++) {
      check_launched(ranks_worlds[i], 1, round);
    }
    setenv("CPU_NUM_DEVICES", "4", 1);
    check_launched(2, 2, round);
  }
  assert_int_equal(files_with(".calxprog", false), 5);
}

// ---- keys -------------------------------------------------------------------

static calx_status *reduce(ranks_one *r)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(1, 2);
  calx_tensor *y =
      r->n == 1 ? calx_neg(x) : calx_all_reduce(x, CALX_REDUCE_SUM);
  double factor = r->n == 1 ? -1 : r->n;
  calx_sync(y);
  RANK_VALUES(r, y, 0, factor, 2 * factor);
  return calx_scope_end(scope);
}

static record run_ranks(int n)
{
  calx_shutdown();
  calx_metrics_clear();
  CHECK_STATUS_OK(calx_cache_open(folder, false));
  ranks_run(n, reduce, NULL);
  record one;
  count(&one);
  return one;
}

// A program of all ranks is another one for each number of them; the threads of
// a process load it once.
static void test_replicated(void **state)
{
  (void)state;
  for (int round = 0; round < 2; round++) {
    for (int n = 1; n <= 8; n += n < 4 ? 1 : 4) {
      record one = run_ranks(n);
      assert_int_equal(one.hits, round);
      assert_int_equal(one.misses, 1 - round);
      assert_int_equal(one.compiled, 1 - round);
    }
  }
  assert_int_equal(files_with(".calxprog", false), 5);
}

static int setup(void **state)
{
  if (getenv("CALX_PLUGIN") == NULL) setenv("CALX_PLUGIN", "calx", 1);
  return support_setup(state);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest processes[] = {
    // First, because a process with threads launches no others.
    CACHE_TEST(test_launched),
    CACHE_TEST(test_one_compiles),
    CACHE_TEST(test_kills),
  };
  const struct CMUnitTest threads[] = { CACHE_TEST(test_replicated) };
  if (argc == 2) kills = atoi(argv[1]);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  int failed = cmocka_run_group_tests(processes, setup, NULL);
  return failed + cmocka_run_group_tests(threads, ranks_setup, NULL);
}
