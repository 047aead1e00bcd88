// ranks: samplers and loaders inside of a launch, on the fake plugin's four
// devices.
#include "calx/dist.h"
#include "loader.h"

enum { RANKS = 4, SIZE = 4096, LEAVE = 10 };

fake loader_fake;

typedef struct job {
  calx_dataset *dataset;
  calx_loader *loader;  // made before the ranks started
  int64_t seen[RANKS][SIZE];
  int64_t batches[RANKS];
} job;

static calx_status *take(job *j, int index, calx_loader *loader, int64_t most)
{
  calx_batch batch;
  int64_t count = 0, n = 0;
  while (n != most && calx_loader_next(loader, &batch)) {
    if (calx_tensor_device(batch.data) != calx_device_current()) {
      return cx_error(CALX_INTERNAL, "the batch is on another device");
    }
    size_t bytes = (size_t)batch.size * sizeof(int64_t);
    CALX_TRY(calx_tensor_read(batch.target, j->seen[index] + count, bytes));
    count += batch.size;
    n++;
  }
  j->batches[index] = n;
  return calx_scope_take_error();
}

static void launch(calx_rank_fn *fn, job *j)
{
  calx_shutdown();
  CHECK_OK(calx_launch_with(
      fn, j, &(calx_launch_options){ .size = sizeof(calx_launch_options) }));
}

// Each rank has a sampler of its own, which knows the rank.
static calx_status *read_share(int index, void *user)
{
  job *j = user;
  calx_sampler *s = calx_distributed_sampler(j->dataset, .no_shuffle = true);
  calx_loader *from =
      calx_loader_new(j->dataset, .batch_size = 3, .sampler = s);
  calx_loader *l = calx_mp_device_loader(from, NULL);
  calx_status *status = take(j, index, l, -1);
  calx_loader_free(l);
  calx_loader_free(from);
  calx_sampler_free(s);
  return status;
}

static void test_shares(void **state)
{
  (void)state;
  static job j;
  source s = SOURCE;
  j.dataset = source_dataset(&s, 41);
  launch(read_share, &j);
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(j.batches[rank], 4);  // 11 samples, three of them twice
    for (int64_t i = 0; i < 11; i++) {
      assert_int_equal(j.seen[rank][i], (rank + RANKS * i) % 41);
    }
  }
  calx_dataset_free(j.dataset);
}

// Ten of 1024 batches on every rank, which then end.
static calx_status *leave_early(int index, void *user)
{
  job *j = user;
  calx_loader *l = calx_mp_device_loader(j->loader, calx_device_current());
  calx_status *status = take(j, index, l, LEAVE);
  calx_loader_free(l);
  return status;
}

// A loader that is made before the launch has opened no device, and describes
// what each rank reads.
static void test_leaving_ranks(void **state)
{
  (void)state;
  static job j;
  source s = SOURCE;
  j.dataset = source_dataset(&s, SIZE);
  calx_shutdown();
  j.loader = calx_loader_new(j.dataset, .batch_size = 4);
  launch(leave_early, &j);
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(j.batches[rank], LEAVE);
    for (int64_t i = 0; i < 40; i++) assert_int_equal(j.seen[rank][i], i);
  }
  calx_loader_free(j.loader);
  calx_dataset_free(j.dataset);
}

// ---- a rank that leaves the others alone ------------------------------------

enum { TAKES = 3, AHEAD = 2 };

typedef struct leaving {
  calx_dataset *dataset;
  calx_parallel_loader *loader;
  calx_status *leaves_with;
  int64_t batches;  // that the others get
  const char *why;  // then
} leaving;

static calx_status *share_loader(leaving *l)
{
  calx_device *devices[RANKS];
  for (int i = 0; i < RANKS; i++) {
    char name[8];
    snprintf(name, sizeof name, "xla:%d", i);
    CALX_TRY(calx_device_open(name, &devices[i]));
  }
  calx_loader *from = calx_loader_new(l->dataset, .batch_size = 2);
  l->loader = calx_parallel_loader_new(from, devices, RANKS,
                                       .device_prefetch_size = AHEAD);
  calx_loader_free(from);
  return NULL;
}

// Without a collective, and for as many epochs as it is given.
static calx_status *read_alone(leaving *l)
{
  calx_batch batch;
  int64_t n = 0;
  calx_loader *mine = calx_per_device_loader(l->loader, NULL);
  for (int epoch = 0; calx_scope_error() == NULL && epoch < 100; epoch++) {
    while (calx_loader_next(mine, &batch)) n++;
  }
  calx_status *status = calx_scope_take_error();
  bool right = calx_status_code(status) == CALX_ABORTED &&
               strstr(calx_status_message(status), l->why) != NULL &&
               n == l->batches;
  calx_status *wrong = right ? NULL
                             : cx_error(CALX_INTERNAL, "%d batches, then: %s",
                                        (int)n, calx_status_message(status));
  calx_status_free(status);
  return wrong;
}

static calx_status *leave_others(int index, void *user)
{
  leaving *l = user;
  if (index == 0) CALX_TRY(share_loader(l));
  CALX_TRY(calx_rendezvous("shared", NULL, 0, NULL, NULL));
  if (index != 1) return read_alone(l);
  calx_batch batch;
  calx_loader *mine = calx_per_device_loader(l->loader, NULL);
  for (int i = 0; i < TAKES; i++) {
    if (!calx_loader_next(mine, &batch)) return calx_scope_take_error();
  }
  return cx_status_copy(l->leaves_with);
}

static void check_leaving(leaving l)
{
  calx_shutdown();
  calx_status *status = calx_launch_with(
      leave_others, &l,
      &(calx_launch_options){ .size = sizeof(calx_launch_options) });
  calx_parallel_loader_free(l.loader);
  calx_dataset_free(l.dataset);
  if (l.leaves_with == NULL) {
    CHECK_OK(status);
  } else {
    CHECK_FAILS(CALX_DATA_LOSS, status, "rank 1: ", "the file is short");
    calx_status_free(l.leaves_with);
  }
}

// In mid-epoch, by a failure and without one: the others get what could still
// be made, then they are told, and nobody waits for ever.
static void test_left_in_epoch(void **state)
{
  (void)state;
  source s = SOURCE;
  for (int fails = 0; fails < 2; fails++) {
    check_leaving((leaving){
        .dataset = source_dataset(&s, SIZE),
        .leaves_with =
            fails != 0 ? cx_error(CALX_DATA_LOSS, "the file is short") : NULL,
        .batches = TAKES + AHEAD,
        .why = "rank 1 ended after 3 batches" });
  }
}

// It took all its batches, but never came to the epoch's end.
static void test_left_at_the_end(void **state)
{
  (void)state;
  source s = SOURCE;
  check_leaving(
      (leaving){ .dataset = source_dataset(&s, (int64_t)RANKS * 2 * TAKES),
                 .batches = TAKES,
                 .why = "rank 1 ended and has not ended its epoch 0" });
}

static int begin_all(void **state)
{
  (void)state;
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  loader_fake = fake_open(CX_FAKE_PLUGIN);
  return loader_fake.set == NULL || !loader_fake.set("reset;devices=4");
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  return loader_fake.live() != 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shares),
    cmocka_unit_test(test_leaving_ranks),
    cmocka_unit_test(test_left_in_epoch),
    cmocka_unit_test(test_left_at_the_end),
  };
  return cmocka_run_group_tests_name("data_ranks", tests, begin_all, end_all);
}
