// processes: a loader's worker processes, how they fail and how they end. All
// loaders are made before the device is opened. On the fake plugin.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "loader.h"

static fake process_fake;

enum { SIZE = 12 };

// What sample `at` does instead.
typedef enum mischief { NOTHING, FAIL, BE_KILLED, EXIT, HANG, PRINT } mischief;

typedef struct risky {
  mischief what;
  int64_t at;
  int changed;  // by the callback: seen in its own process only
} risky;

// The sample's number, its process, its worker and the epoch.
static calx_status *get(void *user, int64_t index, void *const *fields)
{
  risky *r = user;
  int64_t *out = fields[0];
  calx_worker_info info;
  r->changed++;
  if (index == r->at) {
    switch (r->what) {
      case FAIL: return cx_error(CALX_DATA_LOSS, "it is broken");
      case BE_KILLED: raise(SIGKILL); break;
      case EXIT: _exit(3);
      case HANG: sleep(600); break;
      case PRINT: printf("printed by a worker\n"); break;
      case NOTHING: break;
    }
  }
  if (!calx_get_worker_info(&info)) info.id = -1;
  out[0] = index;
  out[1] = getpid();
  out[2] = info.id;
  out[3] = info.epoch;
  return NULL;
}

static const calx_field four = {
  .name = "n", .dtype = CALX_I64, .rank = 1, .dims = { 4 }
};

// A loader that was made while there was one thread.
typedef struct early {
  risky r;
  calx_dataset *d;
  calx_loader *l;
} early;

static early plain, shuffled, broken, killed, exited, hanging, shared, spare,
    counted;
// The number at which a process dies; in memory that all share.
static _Atomic int64_t *bad_number;

static void make(early *e, mischief what, bool shuffle, double timeout)
{
  e->r = (risky){ .what = what, .at = 7 };
  e->d = calx_dataset_new(SIZE, &four, 1, get, &e->r, NULL);
  e->l = calx_loader_new(e->d, .batch_size = 2, .num_processes = 2,
                         .shuffle = shuffle, .timeout = timeout, .seed = 5);
}

static void drop(early *e)
{
  calx_loader_free(e->l);
  calx_dataset_free(e->d);
  *e = (early){ 0 };
}

// Reads an epoch: each sample's four numbers. @return samples
static int64_t read_epoch(calx_loader *l, int64_t *out)
{
  int64_t n = 0;
  calx_batch batch;
  while (calx_loader_next(l, &batch)) {
    size_t bytes = (size_t)batch.size * 4 * sizeof *out;
    CHECK_OK(calx_tensor_read(batch.data, out + 4 * n, bytes));
    n += batch.size;
  }
  return n;
}

static void test_samples(void **state)
{
  (void)state;
  assert_null(calx_loader_error(plain.l));
  int64_t got[4 * SIZE], pids[2] = { 0, 0 };
  for (int64_t epoch = 0; epoch < 3; epoch++) {
    assert_int_equal(read_epoch(plain.l, got), SIZE);
    for (int64_t i = 0; i < SIZE; i++) {
      const int64_t *s = got + 4 * i;
      assert_int_equal(s[0], i);
      assert_true(s[1] != getpid());
      assert_in_range(s[2], 0, 1);
      assert_int_equal(s[3], epoch);
      if (pids[s[2]] == 0) pids[s[2]] = s[1];
      assert_int_equal(pids[s[2]], s[1]);  // a worker is one process
    }
  }
  assert_int_equal(plain.r.changed, 0);
  drop(&plain);
}

static void test_shuffled(void **state)
{
  (void)state;
  int64_t got[4 * SIZE], seen = 0;
  calx_sampler *s = calx_random_sampler(shuffled.d, .seed = 5);
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    int64_t order[SIZE];
    calx_sampler_set_epoch(s, epoch);
    CHECK_OK(calx_sampler_order(s, order));
    assert_int_equal(read_epoch(shuffled.l, got), SIZE);
    for (int64_t i = 0; i < SIZE; i++) {
      assert_int_equal(got[4 * i], order[i]);
      seen++;
    }
  }
  assert_int_equal(seen, 2 * SIZE);
  // An epoch that is left early, and one that goes on in its middle.
  calx_batch batch;
  assert_true(calx_loader_next(shuffled.l, &batch));
  calx_loader_end_epoch(shuffled.l);
  CHECK_OK(calx_loader_load_state(shuffled.l, (calx_loader_position){ 0, 8 }));
  assert_int_equal(read_epoch(shuffled.l, got), 4);
  calx_sampler_free(s);
  drop(&shuffled);
}

static void check_failure(calx_loader *l, calx_code code, const char *says,
                          const char *also)
{
  int64_t got[4 * SIZE];
  assert_int_equal(read_epoch(l, got), 6);  // before the batch of sample 7
  CHECK_FAILS(code, calx_scope_take_error(), "sample 7 of 12: ", says, also);
}

static void test_error(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {  // the process goes on
    check_failure(broken.l, CALX_DATA_LOSS, "it is broken", "");
  }
  drop(&broken);
}

static void check_gone(calx_loader *l, const char *says)
{
  int64_t got[4 * SIZE];
  int failures = 0;
  // The other process may be fast enough for a whole epoch.
  for (int i = 0; i < 1000 && failures == 0; i++) {
    read_epoch(l, got);
    calx_status *status = calx_scope_take_error();
    failures += status != NULL;
    if (status != NULL) CHECK_FAILS(CALX_ABORTED, status, says, "again");
  }
  assert_true(failures > 0);
}

static void test_killed(void **state)
{
  (void)state;
  check_failure(killed.l, CALX_ABORTED, "was ended by signal 9 (Killed)",
                "worker process ");
  check_gone(killed.l, "was ended by signal 9");
  drop(&killed);
}

static void test_exited(void **state)
{
  (void)state;
  check_failure(exited.l, CALX_ABORTED, "ended with exit status 3",
                "worker process ");
  drop(&exited);
}

static void test_timeout(void **state)
{
  (void)state;
  int64_t begin = cx_now_ms();
  check_failure(hanging.l, CALX_DEADLINE_EXCEEDED, "made no batch in 2 s",
                "and was ended");
  assert_true(cx_now_ms() - begin < 30000);
  drop(&hanging);
}

// Loaders that are made of it have the same processes.
static void test_shared(void **state)
{
  (void)state;
  int64_t got[4 * SIZE], more[4 * SIZE];
  calx_loader *l = calx_mp_device_loader(shared.l, NULL);
  assert_int_equal(read_epoch(shared.l, got), SIZE);
  calx_loader_free(shared.l);
  shared.l = NULL;
  assert_int_equal(read_epoch(l, more), SIZE);
  for (int64_t i = 0; i < SIZE; i++) {
    assert_int_equal(more[4 * i], i);
    assert_true(more[4 * i + 1] != getpid());
  }
  calx_loader_free(l);
  drop(&shared);
}

// ---- iterable datasets ------------------------------------------------------

// Each process reads every second number below 14.
static calx_status *begin(void *user, const calx_worker_info *info,
                          void **out_iterator)
{
  static int64_t at[2];
  risky *r = user;
  r->changed++;
  at[0] = info->id;
  at[1] = info->num_workers;
  *out_iterator = at;
  return NULL;
}

static calx_status *next(void *iterator, void *const *fields, bool *out_over)
{
  int64_t *at = iterator, *out = fields[0];
  *out_over = at[0] >= 14;
  if (*out_over) return NULL;
  if (at[0] == atomic_load(bad_number)) raise(SIGKILL);
  out[0] = at[0];
  out[1] = getpid();
  at[0] += at[1];
  return NULL;
}

static void end(void *iterator)
{
  ((int64_t *)iterator)[1] = 0;
}

static void make_iterable(early *e)
{
  static const calx_iterable functions = { begin, next, end };
  e->r = (risky){ .at = -1 };
  e->d = calx_dataset_iterable(&four, 1, &functions, &e->r, NULL);
  e->l = calx_loader_new(e->d, .batch_size = 3, .num_processes = 2);
}

static void test_iterable(void **state)
{
  (void)state;
  const int64_t expected[] = { 0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11, 12, 13 };
  int64_t got[4 * 14];
  for (int epoch = 0; epoch < 3; epoch++) {
    assert_int_equal(read_epoch(counted.l, got), 14);
    for (int i = 0; i < 14; i++) {
      assert_int_equal(got[4 * i], expected[i]);
      assert_true(got[4 * i + 1] != getpid());
      assert_int_equal(got[4 * i + 1], got[expected[i] % 2 == 0 ? 1 : 13]);
    }
  }
  assert_int_equal(counted.r.changed, 0);
  // The iterators are one loader's until its epoch ends.
  calx_batch batch;
  calx_loader *other = calx_mp_device_loader(counted.l, NULL);
  assert_true(calx_loader_next(counted.l, &batch));
  assert_false(calx_loader_next(other, &batch));
  CHECK_FAILS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
              "another loader reads");
  calx_loader_end_epoch(counted.l);
  assert_int_equal(read_epoch(other, got), 14);
  calx_loader_free(other);
  atomic_store(bad_number, 8);
  assert_int_equal(read_epoch(counted.l, got), 6);
  CHECK_FAILS(CALX_ABORTED, calx_scope_take_error(), "signal 9 (Killed)",
              "while making batch 2");
  drop(&counted);
}

static void *wait_for_it(void *user)
{
  while (!atomic_load((atomic_bool *)user)) usleep(1000);
  return NULL;
}

static void check_refused(calx_loader *l, calx_code code, const char *says)
{
  CHECK_SAYS(code, calx_loader_error(l), says);
  calx_loader_free(l);
}

static void test_refused(void **state)
{
  (void)state;
  risky r = { .at = -1 };
  atomic_bool end = false;
  pthread_t thread;
  const calx_code bad = CALX_INVALID_ARGUMENT;
  calx_dataset *d = calx_dataset_new(4, &four, 1, get, &r, NULL);
  assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &end), 0);
  check_refused(calx_loader_new(d, .num_processes = 1),
                CALX_FAILED_PRECONDITION, "make the loader before");
  atomic_store(&end, true);
  pthread_join(thread, NULL);
  check_refused(calx_loader_new(d, .num_processes = -1), bad,
                "num_processes is -1");
  check_refused(calx_loader_new(d, .num_processes = 2, .num_workers = 3), bad,
                "3 workers and 2 processes");
  check_refused(calx_loader_new(d, .timeout = 1), bad, "a timeout of 1 s");
  check_refused(calx_loader_new(d, .num_processes = 1, .timeout = -1), bad,
                "a timeout of -1 s");
  calx_dataset_free(d);
}

// A process whose program is killed sees it and leaves. This process adopts
// what the killed one leaves, and so sees its end.
static void test_orphans(void **state)
{
  (void)state;
  drop(&spare);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);  // all others have ended
  assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int tell[2];
  char byte;
  assert_int_equal(pipe(tell), 0);
  pid_t pid = fork();
  if (pid == 0) {
    early e;
    make(&e, NOTHING, false, 0);
    bool whole = calx_loader_error(e.l) == NULL;
    if (write(tell[1], whole ? "y" : "n", 1) == 1) pause();
    _exit(1);
  }
  assert_int_equal(read(tell[0], &byte, 1), 1);
  close(tell[0]);
  close(tell[1]);
  kill(pid, SIGKILL);
  int ended = 0;
  for (int64_t begin = cx_now_ms(); cx_now_ms() - begin < 20000;) {
    pid_t got = waitpid(-1, NULL, WNOHANG);
    if (got < 0) break;
    ended += got > 0;
    if (got == 0) usleep(1000);
  }
  assert_int_equal(byte, 'y');
  assert_int_equal(ended, 3);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// ---- running ----------------------------------------------------------------

static int begin_all(void **state)
{
  (void)state;
  bad_number = mmap(NULL, sizeof *bad_number, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (bad_number == MAP_FAILED) return 1;
  atomic_store(bad_number, -1);
  make_iterable(&counted);
  make(&plain, PRINT, false, 0);
  make(&shuffled, NOTHING, true, 0);
  make(&broken, FAIL, false, 0);
  make(&killed, BE_KILLED, false, 0);
  make(&exited, EXIT, false, 0);
  make(&hanging, HANG, false, 2);
  make(&shared, NOTHING, false, 0);
  make(&spare, NOTHING, false, 0);
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  process_fake = fake_open(CX_FAKE_PLUGIN);
  if (process_fake.set == NULL || !process_fake.set("reset;devices=2")) {
    return 1;
  }
  return calx_device_current() == NULL;
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  return process_fake.live() == 0 ? 0 : 1;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_samples), cmocka_unit_test(test_shuffled),
    cmocka_unit_test(test_error),   cmocka_unit_test(test_killed),
    cmocka_unit_test(test_exited),  cmocka_unit_test(test_timeout),
    cmocka_unit_test(test_shared),  cmocka_unit_test(test_iterable),
    CHECK_TEST(test_refused),       cmocka_unit_test(test_orphans),
  };
  int failed =
      cmocka_run_group_tests_name("data_processes", tests, begin_all, end_all);
  if (cx_status_live() == 0) return failed;
  print_error("left over: %ld statuses\n", cx_status_live());
  return 1;
}
