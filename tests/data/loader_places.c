// loader: samplers, and going on where another loader was.
#include "loader.h"

enum { SIZE = 50 };

// ---- samplers ---------------------------------------------------------------

// A loader's batches are its sampler's lists; epochs count by themselves, or
// are the ones that are chosen.
void test_sampler(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  for (int rank = 0; rank < 3; rank++) {
    calx_sampler *own =
        calx_distributed_sampler(d, .num_replicas = 3, .rank = rank);
    calx_sampler *other =
        calx_distributed_sampler(d, .num_replicas = 3, .rank = rank);
    calx_loader *l = calx_loader_new(d, .batch_size = 4, .sampler = own);
    assert_null(calx_loader_error(l));
    assert_int_equal(calx_loader_size(l), 5);  // 17 samples
    const int64_t epochs[] = { 0, 1, 2, 7, 8, 3 };
    for (size_t k = 0; k < 6; k++) {
      int64_t wanted[17], labels[17], count;
      if (epochs[k] == 7) calx_sampler_set_epoch(own, 7);
      if (epochs[k] == 3) calx_loader_set_epoch(l, 3);
      calx_sampler_set_epoch(other, epochs[k]);
      CHECK_OK(calx_sampler_order(other, wanted));
      assert_int_equal(source_epoch(l, labels, &count), 5);
      assert_int_equal(count, 17);
      assert_memory_equal(labels, wanted, sizeof wanted);
    }
    calx_loader_free(l);
    calx_sampler_free(own);
    calx_sampler_free(other);
  }
  calx_dataset_free(d);
}

// The epoch that is chosen while one runs is the next one.
void test_sampler_meanwhile(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_sampler *sampler = calx_random_sampler(d, .seed = 2);
  calx_loader *l = calx_loader_new(d, .batch_size = SIZE, .sampler = sampler);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  calx_sampler_set_epoch(sampler, 9);
  assert_false(calx_loader_next(l, &batch));
  assert_int_equal(calx_sampler_epoch(sampler), 9);
  int64_t wanted[SIZE], labels[SIZE], count;
  CHECK_OK(calx_sampler_order(sampler, wanted));
  source_epoch(l, labels, &count);
  assert_memory_equal(labels, wanted, sizeof wanted);
  assert_int_equal(calx_sampler_epoch(sampler), 10);
  calx_loader_free(l);
  calx_sampler_free(sampler);
  calx_dataset_free(d);
}

// Sizes that do not divide: the padded and the dropped share both give every
// rank the same number of batches, of the same sizes.
void test_even_ranks(void **state)
{
  (void)state;
  const int64_t sizes[] = { 1, 7, 16, 17, 31 };
  for (size_t k = 0; k < 5; k++) {
    for (int how = 0; how < 4; how++) {
      source s = SOURCE;
      calx_dataset *d = source_dataset(&s, sizes[k]);
      int64_t batches[4], count[4], labels[32];
      for (int rank = 0; rank < 4; rank++) {
        calx_sampler *sampler = calx_distributed_sampler(
            d, .num_replicas = 4, .rank = rank, .drop_last = how % 2 == 0);
        calx_loader *l = calx_loader_new(d, .batch_size = 3, .sampler = sampler,
                                         .drop_last = how / 2 == 0);
        int64_t promised = calx_loader_size(l);
        batches[rank] = source_epoch(l, labels, &count[rank]);
        assert_int_equal(batches[rank], promised);
        assert_int_equal(batches[rank], batches[0]);
        assert_int_equal(count[rank], count[0]);
        calx_loader_free(l);
        calx_sampler_free(sampler);
      }
      calx_dataset_free(d);
    }
  }
}

void test_sampler_refused(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 10), *less = source_dataset(&s, 9);
  calx_sampler *all = calx_sequential_sampler(d);
  calx_sampler *bad = calx_sequential_sampler(NULL);
  const struct {
    calx_loader *loader;
    const char *why;
  } cases[] = {
    { calx_loader_new(d, .sampler = all, .shuffle = true), ".shuffle" },
    { calx_loader_new(less, .sampler = all),
      "a sampler of 10 samples, the dataset has 9" },
    { calx_loader_new(d, .sampler = bad), "sampler: the dataset is NULL" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(cases[k].loader),
               cases[k].why);
    calx_loader_set_epoch(cases[k].loader, 1);
    CHECK_FAILS(
        CALX_INVALID_ARGUMENT,
        calx_loader_load_state(cases[k].loader, (calx_loader_position){ 0, 0 }),
        cases[k].why);
    assert_int_equal(calx_loader_state(cases[k].loader).epoch, 0);
    calx_loader_free(cases[k].loader);
  }
  calx_sampler_free(all);
  calx_sampler_free(bad);
  calx_dataset_free(d);
  calx_dataset_free(less);
}

// ---- places -----------------------------------------------------------------

static void check_position(const calx_loader *l, int64_t epoch, int64_t samples)
{
  calx_loader_position at = calx_loader_state(l);
  assert_int_equal(at.epoch, epoch);
  assert_int_equal(at.samples, samples);
}

void test_position(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 10);
  calx_loader *l = calx_loader_new(d, .batch_size = 4);
  calx_batch batch;
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    check_position(l, epoch, 0);
    const int64_t after[] = { 4, 8, 10 };
    for (int i = 0; i < 3; i++) {
      assert_true(calx_loader_next(l, &batch));
      check_position(l, epoch, after[i]);
    }
    assert_false(calx_loader_next(l, &batch));
  }
  assert_true(calx_loader_next(l, &batch));
  calx_loader_end_epoch(l);
  check_position(l, 3, 0);
  calx_loader_set_epoch(l, 8);
  check_position(l, 8, 0);
  calx_loader_free(l);
  calx_dataset_free(d);
}

typedef struct seen {
  calx_loader_position before;  // the batch, or the end
  int64_t index, size;          // of the batch; 0, 0: the end
  int64_t labels[8];
} seen;

static seen look(calx_loader *l)
{
  seen what = { .before = calx_loader_state(l) };
  calx_batch batch;
  if (calx_loader_next(l, &batch)) {
    what.index = batch.index;
    what.size = batch.size;
    source_labels(&batch, what.labels);
  }
  assert_null(calx_scope_error());
  return what;
}

static calx_loader *resumable(calx_dataset *d, calx_sampler *sampler,
                              bool drop_last)
{
  return calx_loader_new(d, .batch_size = 6, .num_workers = 3, .prefetch = 3,
                         .shuffle = sampler == NULL, .sampler = sampler,
                         .drop_last = drop_last);
}

// From every place of two epochs, also from their ends, another loader sees
// what the first one saw.
static void check_resume(calx_dataset *d, calx_sampler *sampler, bool drop_last)
{
  enum { MOST = 24 };
  seen all[MOST];
  if (sampler != NULL) calx_sampler_set_epoch(sampler, 0);
  calx_loader *l = resumable(d, sampler, drop_last);
  for (int i = 0; i < MOST; i++) all[i] = look(l);
  calx_loader_free(l);
  for (int from = 0; from < MOST; from++) {
    if (sampler != NULL) calx_sampler_set_epoch(sampler, 77);
    l = resumable(d, sampler, drop_last);
    if (from % 2 == 1) (void)look(l);  // in the middle of something else
    CHECK_OK(calx_loader_load_state(l, all[from].before));
    for (int i = from; i < MOST && i < from + 12; i++) {
      seen what = look(l);
      assert_int_equal(what.before.epoch, all[i].before.epoch);
      assert_int_equal(what.before.samples, all[i].before.samples);
      assert_int_equal(what.index, all[i].index);
      assert_int_equal(what.size, all[i].size);
      assert_memory_equal(what.labels, all[i].labels, sizeof what.labels);
    }
    calx_loader_free(l);
  }
}

void test_resume(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_sampler *sampler =
      calx_distributed_sampler(d, .num_replicas = 2, .rank = 1);
  for (int drop = 0; drop < 2; drop++) {
    check_resume(d, NULL, drop == 1);
    check_resume(d, sampler, drop == 1);
  }
  calx_sampler_free(sampler);
  calx_dataset_free(d);
}

// Another batch size goes on at the same sample.
void test_resume_other_size(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 20);
  calx_loader *l = calx_loader_new(d, .batch_size = 8);
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 2, 5 }));
  const int64_t sizes[] = { 8, 7 }, firsts[] = { 5, 13 };
  calx_batch batch;
  for (int i = 0; i < 2; i++) {
    int64_t labels[8];
    assert_true(calx_loader_next(l, &batch));
    assert_int_equal(batch.size, sizes[i]);
    source_labels(&batch, labels);
    assert_int_equal(labels[0], firsts[i]);
  }
  check_position(l, 2, 20);
  assert_false(calx_loader_next(l, &batch));
  check_position(l, 3, 0);
  const calx_loader_position wrong[] = { { -1, 0 }, { 0, -1 }, { 0, 21 } };
  for (size_t k = 0; k < 3; k++) {
    CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_loader_load_state(l, wrong[k]),
                "an epoch has 20 samples", "loader_places.c:");
  }
  check_position(l, 3, 0);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// Making a loader touches no device: that comes with the first batch.
void test_late_device(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 4);
  calx_device *second;
  CHECK_OK(calx_device_open("xla:1", &second));
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  calx_device_set_current(second);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  calx_device_set_current(NULL);
  assert_ptr_equal(calx_tensor_device(batch.data), second);
  assert_true(calx_loader_next(l, &batch));
  assert_ptr_equal(calx_tensor_device(batch.data), second);
  calx_loader_free(l);
  calx_dataset_free(d);
}
