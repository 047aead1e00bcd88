// parallel: loaders of one and of several devices, on the fake plugin's four.
#include <pthread.h>
#include <sched.h>

#include "base/metrics.h"
#include "calx/ops.h"
#include "loader.h"

enum { RANKS = 4, MOST = 1024 };

fake loader_fake;
static calx_device *devices[RANKS];

// ---- one device -------------------------------------------------------------

// The batches of the loader that is given, on another device, whatever the
// depths; that loader is left as it is.
static void test_device_loader(void **state)
{
  (void)state;
  const calx_device_loader_options depths[] = {
    { .size = sizeof *depths },
    { .size = sizeof *depths,
      .loader_prefetch_size = 1,
      .device_prefetch_size = 1 },
    { .size = sizeof *depths,
      .loader_prefetch_size = 3,
      .device_prefetch_size = 5,
      .host_to_device_transfer_threads = 4 },
  };
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 50);
  calx_loader *from = calx_loader_new(d, .batch_size = 4, .shuffle = true,
                                      .seed = 3, .num_workers = 3);
  int64_t wanted[50], labels[50], count;
  for (size_t k = 0; k < 3; k++) {
    calx_loader *l = calx_mp_device_loader_with(from, devices[2], &depths[k]);
    assert_null(calx_loader_error(l));
    assert_int_equal(calx_loader_size(l), 13);
    for (int64_t epoch = (int64_t)k; epoch < 3; epoch++) {
      calx_loader_set_epoch(from, epoch);
      assert_int_equal(source_epoch(from, wanted, &count), 13);
      calx_loader_set_epoch(from, (int64_t)k + 1);
      calx_batch batch;
      assert_true(calx_loader_next(l, &batch));
      assert_ptr_equal(calx_tensor_device(batch.data), devices[2]);
      calx_loader_set_epoch(l, epoch);
      assert_int_equal(source_epoch(l, labels, &count), 13);
      assert_memory_equal(labels, wanted, sizeof wanted);
    }
    calx_loader_free(l);
  }
  // The place is taken over, and can be set.
  CHECK_OK(calx_loader_load_state(from, (calx_loader_position){ 2, 40 }));
  calx_loader *l = calx_mp_device_loader(from, NULL);
  assert_int_equal(calx_loader_state(l).samples, 40);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 10);
  source_labels(&batch, labels);
  assert_memory_equal(labels, wanted + 40, 4 * sizeof *labels);
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 2, 8 }));
  assert_true(calx_loader_next(l, &batch));
  source_labels(&batch, labels);
  assert_memory_equal(labels, wanted + 8, 4 * sizeof *labels);
  calx_loader_free(l);
  calx_loader_free(from);
  calx_dataset_free(d);
}

static int64_t steps(void)
{
  const cx_counter *c = cx_counter_find("MarkStep");
  return c != NULL ? atomic_load(&c->value) : 0;
}

// A sync at each k-th next and where the epoch ends; meanwhile a step is told
// that the loader will sync.
static void test_batches_per_execution(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 8);
  calx_loader *from = calx_loader_new(d);
  for (int k = 1; k <= 9; k++) {
    calx_loader *l =
        calx_mp_device_loader(from, NULL, .batches_per_execution = k);
    for (int epoch = 0; epoch < 2; epoch++) {
      int64_t before = steps();
      calx_batch batch;
      for (int i = 0; i < 8; i++) {
        assert_true(calx_loader_next(l, &batch));
        assert_int_equal(steps() - before, i / k);
        assert_true(cx_lazy_sync_is_deferred() == (k > 1));
        calx_scope *step = calx_scope_begin();
        calx_release(calx_retain(calx_relu(batch.data)));
        calx_tensor *kept = calx_retain(calx_relu(batch.data));
        CHECK_OK(calx_scope_end(step));
        calx_tensor *outer = calx_neg(kept);  // pending until the sync
        assert_null(calx_tensor_error(outer));
        calx_release(kept);
      }
      assert_false(calx_loader_next(l, &batch));
      assert_int_equal(steps() - before, (8 + k - 1) / k);
      assert_false(cx_lazy_sync_is_deferred());
    }
    calx_batch batch;
    assert_true(calx_loader_next(l, &batch));
    assert_true(cx_lazy_sync_is_deferred() == (k > 1));
    // A loop inside, with a sync of its own at each batch, changes nothing.
    calx_batch inner;
    while (calx_loader_next(from, &inner)) {
    }
    assert_true(cx_lazy_sync_is_deferred() == (k > 1));
    if (k % 3 != 0) calx_loader_end_epoch(l);
    calx_loader_free(l);
    assert_false(cx_lazy_sync_is_deferred());
  }
  calx_loader_free(from);
  calx_dataset_free(d);
}

static void test_device_generator(void **state)
{
  (void)state;
  const float x[] = { 1, 2, 3, 4 };
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_loader *from = calx_sample_generator(host, NULL, 5);
  calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
  assert_null(calx_parallel_loader_error(p));
  assert_int_equal(calx_parallel_loader_size(p), 2);
  calx_loader *loaders[] = { calx_mp_device_loader(from, devices[1]),
                             calx_per_device_loader(p, devices[0]),
                             calx_per_device_loader(p, devices[1]) };
  for (int k = 0; k < 3; k++) {
    calx_batch batch;
    int64_t count = k == 0 ? 5 : 2;
    assert_int_equal(calx_loader_size(loaders[k]), count);
    for (int epoch = 0; epoch < 2; epoch++) {
      for (int64_t i = 0; i < count; i++) {
        float back[4];
        assert_true(calx_loader_next(loaders[k], &batch));
        assert_ptr_equal(calx_tensor_device(batch.data), devices[k != 1]);
        CHECK_OK(calx_tensor_read(batch.data, back, sizeof back));
        assert_memory_equal(back, x, sizeof x);
      }
      assert_false(calx_loader_next(loaders[k], &batch));
    }
  }
  calx_loader_free(loaders[0]);
  calx_parallel_loader_free(p);
  calx_loader_free(from);
}

// ---- several devices --------------------------------------------------------

typedef struct rank {
  calx_parallel_loader *parallel;
  int index;
  int epochs;      // to run
  int64_t leaves;  // after so many batches of each; -1: never
  bool ends;       // tells the loader that it leaves
  bool closes;     // closes all instead
  int64_t labels[MOST], count;
  int64_t batches;  // of the last epoch
  calx_status *error;
  bool right;
} rank;

static bool read_labels(rank *r, const calx_batch *batch)
{
  size_t n = (size_t)batch->size;
  if (r->count + batch->size > MOST) return false;
  calx_status *status = calx_tensor_read(batch->target, r->labels + r->count,
                                         n * sizeof *r->labels);
  bool right = status == NULL;
  calx_status_free(status);
  r->count += batch->size;
  return right && calx_tensor_device(batch->data) == devices[r->index];
}

static void *run_rank(void *user)
{
  rank *r = user;
  calx_device_set_current(devices[r->index]);
  calx_scope *scope = calx_scope_begin();
  calx_loader *l = calx_per_device_loader(r->parallel, NULL);
  r->right = true;
  for (int e = 0; e < r->epochs && r->right; e++) {
    calx_batch batch;
    r->count = r->batches = 0;
    while (r->batches != r->leaves && calx_loader_next(l, &batch)) {
      r->right &= batch.index == r->batches && read_labels(r, &batch);
      r->batches++;
    }
    if (r->closes) calx_parallel_loader_close(r->parallel);
    if (r->ends) calx_loader_end_epoch(l);
    if (calx_scope_error() != NULL && r->error == NULL) {
      r->error = calx_scope_take_error();
    }
    calx_status_free(calx_scope_take_error());
  }
  calx_status *status = calx_scope_end(scope);
  r->right &= status == NULL;
  calx_status_free(status);
  CHECK_OK(cx_lazy_scope_end_thread());
  return NULL;
}

// All ranks as `like`; the caller frees their errors.
static void run_ranks(calx_parallel_loader *p, int n, const rank *like,
                      rank *ranks)
{
  pthread_t threads[RANKS];
  for (int i = 0; i < n; i++) {
    ranks[i] = *like;
    ranks[i].parallel = p;
    ranks[i].index = i;
    assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
  }
  for (int i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    assert_true(ranks[i].right);
  }
}

// Batch i goes to device i mod n; an incomplete last group is dropped.
static void test_lanes(void **state)
{
  (void)state;
  const int64_t sizes[] = { 0, 3, 8, 41, 64, 203 };
  static rank ranks[RANKS];
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    for (int n = 1; n <= RANKS; n++) {
      source s = SOURCE;
      calx_dataset *d = source_dataset(&s, sizes[k]);
      calx_loader *from = calx_loader_new(d, .batch_size = 2, .shuffle = true);
      calx_parallel_loader *p = calx_parallel_loader_new(
          from, devices, (size_t)n, .loader_prefetch_size = 1 + n,
          .device_prefetch_size = n, .host_to_device_transfer_threads = n);
      assert_null(calx_parallel_loader_error(p));
      int64_t groups = (sizes[k] + 1) / 2 / n;
      assert_int_equal(calx_parallel_loader_size(p), groups);
      run_ranks(p, n, &(rank){ .epochs = 3, .leaves = -1 }, ranks);
      int64_t wanted[256], count;
      calx_loader_set_epoch(from, 2);
      source_epoch(from, wanted, &count);
      for (int i = 0; i < n; i++) {
        assert_null(ranks[i].error);
        assert_int_equal(ranks[i].batches, groups);
        for (int64_t j = 0; j < ranks[i].count; j++) {
          int64_t place = ((j / 2) * n + i) * 2 + j % 2;
          assert_int_equal(ranks[i].labels[j], wanted[place]);
        }
      }
      calx_parallel_loader_free(p);
      calx_loader_free(from);
      calx_dataset_free(d);
    }
  }
}

// The sample's failure reaches all, after equally many batches: those of the
// groups before it.
static void test_lanes_bad_sample(void **state)
{
  (void)state;
  static rank ranks[RANKS];
  for (int64_t bad = 0; bad < 40; bad += 3) {
    source s = SOURCE;
    s.bad = bad;
    calx_dataset *d = source_dataset(&s, 48);
    calx_loader *from = calx_loader_new(d, .batch_size = 2, .num_workers = 3);
    calx_parallel_loader *p = calx_parallel_loader_new(
        from, devices, RANKS, .host_to_device_transfer_threads = 2);
    run_ranks(p, RANKS, &(rank){ .epochs = 2, .leaves = -1 }, ranks);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "sample %d of 48: it is broken", (int)bad);
    for (int i = 0; i < RANKS; i++) {
      assert_int_equal(ranks[i].batches, bad / 2 / RANKS);
      CHECK_FAILS(CALX_DATA_LOSS, ranks[i].error, wanted, "parallel.c:");
    }
    calx_parallel_loader_free(p);
    calx_loader_free(from);
    calx_dataset_free(d);
  }
}

// Ten of 1024 batches on every rank, once without telling the loader and once
// with; or a rank leaves and the others go on; or a rank closes all.
static void test_lanes_early(void **state)
{
  (void)state;
  static rank ranks[RANKS];
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, MOST);
  calx_loader *from = calx_loader_new(d);
  for (int how = 0; how < 3; how++) {
    calx_parallel_loader *p = calx_parallel_loader_new(from, devices, RANKS);
    run_ranks(p, RANKS,
              &(rank){ .epochs = how == 1 ? 3 : 1,
                       .leaves = 10,
                       .ends = how != 0,
                       .closes = how == 2 },
              ranks);
    for (int i = 0; i < RANKS; i++) {
      assert_null(ranks[i].error);
      assert_true(how == 2 || ranks[i].batches == 10);
    }
    calx_parallel_loader_free(p);
  }
  calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
  calx_loader *first = calx_per_device_loader(p, devices[0]);
  calx_loader *other = calx_per_device_loader(p, devices[1]);
  calx_batch batch;
  assert_true(calx_loader_next(first, &batch));
  assert_true(calx_loader_next(other, &batch));
  calx_loader_end_epoch(other);
  int64_t left = 1;
  while (calx_loader_next(first, &batch)) left++;
  assert_int_equal(left, MOST / 2);
  assert_true(calx_loader_next(other, &batch));  // of the next epoch
  assert_int_equal(batch.index, 0);
  assert_int_equal(calx_loader_state(other).epoch, 1);
  calx_parallel_loader_close(p);
  assert_false(calx_loader_next(first, &batch));
  assert_false(calx_loader_next(other, &batch));
  assert_false(calx_loader_next(other, &batch));
  assert_null(calx_scope_error());
  calx_parallel_loader_free(p);
  calx_loader_free(from);
  calx_dataset_free(d);
}

static void *close_it(void *user)
{
  calx_parallel_loader_close(user);
  return NULL;
}

// Whoever waits for a batch, or for the others' epochs, is woken.
static void test_close_wakes(void **state)
{
  (void)state;
  for (int waits = 0; waits < 2; waits++) {
    source s = SOURCE;
    calx_dataset *d = source_dataset(&s, 4);
    calx_loader *from = calx_loader_new(d);
    calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
    calx_loader *first = calx_per_device_loader(p, devices[0]);
    calx_batch batch;
    if (waits == 0) {
      atomic_store(&s.hold, 1);  // the dataset does not answer
    } else {
      assert_true(calx_loader_next(first, &batch));
      assert_true(calx_loader_next(first, &batch));
      assert_false(calx_loader_next(first, &batch));
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_it, p), 0);
    assert_false(calx_loader_next(first, &batch));
    pthread_join(thread, NULL);
    atomic_store(&s.hold, 0);
    calx_parallel_loader_free(p);
    calx_loader_free(from);
    calx_dataset_free(d);
  }
}

// The place to go on from is the loader's that it is made of.
static void test_lanes_place(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 20);
  calx_loader *from = calx_loader_new(d, .batch_size = 2);
  CHECK_OK(calx_loader_load_state(from, (calx_loader_position){ 3, 8 }));
  calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
  calx_loader *lanes[] = { calx_per_device_loader(p, devices[0]),
                           calx_per_device_loader(p, devices[1]) };
  for (int i = 0; i < 2; i++) {
    calx_batch batch;
    int64_t labels[2];
    assert_true(calx_loader_next(lanes[i], &batch));
    assert_int_equal(batch.index, 2);
    source_labels(&batch, labels);
    assert_int_equal(labels[0], 8 + 2 * i);
    assert_int_equal(calx_loader_state(lanes[i]).samples, 12);
    assert_int_equal(calx_loader_state(lanes[i]).epoch, 3);
  }
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              calx_loader_load_state(lanes[0], (calx_loader_position){ 0, 0 }),
              "made of");
  for (int i = 0; i < 2; i++) calx_loader_set_epoch(lanes[i], 7);
  for (int i = 0; i < 2; i++) {
    calx_batch batch;
    assert_true(calx_loader_next(lanes[i], &batch));
    assert_int_equal(batch.index, 0);
    assert_int_equal(calx_loader_state(lanes[i]).epoch, 7);
  }
  calx_parallel_loader_free(p);
  calx_loader_free(from);
  calx_dataset_free(d);
}

// ---- refusals ---------------------------------------------------------------

static void check_refused(calx_parallel_loader *p, const char *why)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_parallel_loader_error(p), why,
             "parallel.c:");
  assert_int_equal(calx_parallel_loader_size(p), 0);
  calx_loader *l = calx_per_device_loader(p, devices[0]);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), why);
  calx_batch batch;
  assert_false(calx_loader_next(l, &batch));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), why);
  calx_parallel_loader_close(p);
  calx_parallel_loader_free(p);
}

static void test_lanes_refused(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 20);
  calx_loader *from = calx_loader_new(d), *bad = calx_loader_new(NULL);
  calx_device *twice[] = { devices[0], devices[1], devices[0] };
  calx_device *null[] = { devices[0], NULL };
  check_refused(calx_parallel_loader_new(from, devices, 0), "0 devices");
  check_refused(calx_parallel_loader_new(from, NULL, 2), "0 devices");
  check_refused(calx_parallel_loader_new(from, null, 2), "device 1 is NULL");
  check_refused(calx_parallel_loader_new(from, twice, 3),
                "device 2 is device 0 again");
  check_refused(calx_parallel_loader_new(bad, devices, 1),
                "the dataset is NULL");
  check_refused(calx_parallel_loader_new(NULL, devices, 1),
                "the loader is NULL");
  check_refused(
      calx_parallel_loader_new(from, devices, 1, .batches_per_execution = -1),
      "batches_per_execution is -1");
  const struct {
    calx_loader *loader;
    const char *why;
  } cases[] = {
    { calx_mp_device_loader(from, NULL, .loader_prefetch_size = -1),
      "loader_prefetch_size is -1" },
    { calx_mp_device_loader(from, NULL, .device_prefetch_size = 65537),
      "device_prefetch_size is 65537" },
    { calx_mp_device_loader(from, NULL,
                            .host_to_device_transfer_threads = 2000),
      "host_to_device_transfer_threads is 2000" },
    { calx_mp_device_loader(bad, NULL), "the dataset is NULL" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(cases[k].loader),
               cases[k].why);
    calx_loader_free(cases[k].loader);
  }
  calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
  calx_loader *l = calx_per_device_loader(p, devices[3]);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), "none of its 2");
  l = calx_mp_device_loader(calx_per_device_loader(p, devices[0]), NULL);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), "on its device");
  calx_loader_free(l);
  calx_parallel_loader_free(p);
  calx_parallel_loader_free(NULL);
  calx_loader_free(from);
  calx_loader_free(bad);
  calx_dataset_free(d);
}

// Whichever allocation fails: an error that says so on each lane, and nothing
// left.
static void test_lanes_no_memory(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 12);
  calx_loader *from = calx_loader_new(d, .batch_size = 2, .shuffle = true);
  bool whole = false;
  int failures = 0;
  for (long n = 0; !whole; n++) {
    assert_in_range(n, 0, 2000);
    cx_alloc_fail_at(n);
    calx_parallel_loader *p = calx_parallel_loader_new(from, devices, 2);
    calx_batch batch;
    int64_t batches = 0;
    for (int k = 0; k < 3; k++) {
      for (int i = 0; i < 2; i++) {
        calx_loader *l = calx_per_device_loader(p, devices[i]);
        batches += calx_loader_next(l, &batch);
      }
      if (calx_scope_error() != NULL) break;
    }
    cx_alloc_fail_at(-1);
    calx_status *error = calx_scope_take_error();
    if (error != NULL) {
      failures++;
      CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, error, "memory");
      assert_true(batches < 6);
    }
    whole = error == NULL && n > 50;
    calx_parallel_loader_free(p);
  }
  assert_true(failures > 5);
  calx_loader_free(from);
  calx_dataset_free(d);
}

// ---- running ----------------------------------------------------------------

static int begin_all(void **state)
{
  (void)state;
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  loader_fake = fake_open(CX_FAKE_PLUGIN);
  if (loader_fake.set == NULL || !loader_fake.set("reset;devices=4")) return 1;
  cx_alloc_set_exact(true);
  for (int i = 0; i < RANKS; i++) {
    char name[8];
    snprintf(name, sizeof name, "xla:%d", i);
    CHECK_OK(calx_device_open(name, &devices[i]));
  }
  return 0;
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  return loader_fake.live() != 0;
}

// Compiled programs stay: only tensors are counted after a test that has some.
static int end_step(void **state)
{
  const check_before *before = *state;
  CHECK_OK(calx_scope_end(before->scope));
  return cx_lazy_tensor_live() != before->tensors;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_device_loader),
    CHECK_TEST(test_device_generator),
    CHECK_TEST(test_lanes),
    CHECK_TEST(test_lanes_bad_sample),
    CHECK_TEST(test_lanes_early),
    CHECK_TEST(test_close_wakes),
    CHECK_TEST(test_lanes_place),
    CHECK_TEST(test_lanes_refused),
    CHECK_TEST(test_lanes_no_memory),
    cmocka_unit_test_setup_teardown(test_batches_per_execution, check_begin,
                                    end_step),
  };
  return cmocka_run_group_tests_name("data_parallel", tests, begin_all,
                                     end_all);
}
