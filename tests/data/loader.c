// loader: batches, orders and epochs, on the fake plugin.
#include "loader.h"

#include <sched.h>

fake loader_fake;

// ---- batches ----------------------------------------------------------------

void test_batches(void **state)
{
  (void)state;
  const struct {
    int64_t size, batch_size;
    bool drop_last;
    int64_t batches, samples, last;
  } cases[] = {
    { 10, 3, false, 4, 10, 1 },   { 10, 3, true, 3, 9, 3 },
    { 9, 3, true, 3, 9, 3 },      { 10, 0, false, 10, 10, 1 },
    { 10, 10, false, 1, 10, 10 }, { 10, 64, false, 1, 10, 10 },
    { 10, 64, true, 0, 0, 0 },    { 10, INT64_MAX, false, 1, 10, 10 },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    source s = SOURCE;
    calx_dataset *d = source_dataset(&s, cases[k].size);
    calx_loader *l = calx_loader_new(d, .batch_size = cases[k].batch_size,
                                     .drop_last = cases[k].drop_last);
    assert_null(calx_loader_error(l));
    assert_int_equal(calx_loader_size(l), cases[k].batches);
    int64_t labels[10], count = 0;
    calx_batch batch;
    for (int64_t b = 0; b < cases[k].batches; b++) {
      assert_true(calx_loader_next(l, &batch));
      assert_int_equal(batch.index, b);
      source_labels(&batch, labels + count);
      count += batch.size;
    }
    if (cases[k].batches > 0) assert_int_equal(batch.size, cases[k].last);
    assert_false(calx_loader_next(l, &batch));
    assert_null(calx_scope_error());
    assert_int_equal(count, cases[k].samples);
    for (int64_t i = 0; i < count; i++) assert_int_equal(labels[i], i);
    assert_int_equal(s.gets, count);
    calx_loader_free(l);
    calx_dataset_free(d);
  }
}

void test_options(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 3);
  calx_loader *l = calx_loader_new(d);
  assert_int_equal(calx_loader_size(l), 3);  // batches of one
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  assert_ptr_equal(calx_tensor_device(batch.data), calx_device_current());
  calx_loader_free(l);
  l = calx_loader_new_with(d, NULL);
  assert_int_equal(calx_loader_size(l), 3);
  calx_loader_free(l);
  calx_device *second;
  CHECK_OK(calx_device_open("xla:1", &second));
  l = calx_loader_new(d, .device = second);
  assert_true(calx_loader_next(l, &batch));
  assert_ptr_equal(calx_tensor_device(batch.target), second);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// The batches do not depend on who fills them, or how far ahead.
void test_workers(void **state)
{
  (void)state;
  enum { SIZE = 103 };
  int64_t first[SIZE];
  const int workers[] = { 1, 2, 5 }, ahead[] = { 1, 2, 7, 100 };
  for (size_t k = 0; k < 12; k++) {
    source s = SOURCE;
    calx_dataset *d = source_dataset(&s, SIZE);
    calx_loader *l = calx_loader_new(d, .batch_size = 4, .shuffle = true,
                                     .seed = 11, .num_workers = workers[k % 3],
                                     .prefetch = ahead[k / 3]);
    for (int epoch = 0; epoch < 3; epoch++) {
      int64_t labels[SIZE], count;
      assert_int_equal(source_epoch(l, labels, &count), 26);
      assert_int_equal(count, SIZE);
      if (epoch != 2) continue;
      if (k == 0) memcpy(first, labels, sizeof first);
      assert_memory_equal(first, labels, sizeof first);
    }
    assert_int_equal(s.gets, 3 * SIZE);
    calx_loader_free(l);
    calx_dataset_free(d);
  }
}

void test_shuffle(void **state)
{
  (void)state;
  enum { SIZE = 50 };
  int64_t labels[3][SIZE], count;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_loader *l =
      calx_loader_new(d, .batch_size = 8, .shuffle = true, .seed = 1);
  for (int epoch = 0; epoch < 3; epoch++) {
    source_epoch(l, labels[epoch], &count);
    assert_int_equal(count, SIZE);
    bool seen[SIZE] = { false };
    for (int i = 0; i < SIZE; i++) seen[labels[epoch][i]] = true;
    for (int i = 0; i < SIZE; i++) assert_true(seen[i]);
  }
  assert_memory_not_equal(labels[0], labels[1], sizeof labels[0]);
  assert_memory_not_equal(labels[1], labels[2], sizeof labels[0]);
  // An epoch can be repeated, by this loader and by another.
  int64_t again[SIZE];
  calx_loader_set_epoch(l, 1);
  source_epoch(l, again, &count);
  assert_memory_equal(again, labels[1], sizeof again);
  source_epoch(l, again, &count);
  assert_memory_equal(again, labels[2], sizeof again);
  calx_loader_free(l);
  l = calx_loader_new(d, .batch_size = 5, .shuffle = true, .seed = 1);
  calx_loader_set_epoch(l, 2);
  source_epoch(l, again, &count);
  assert_memory_equal(again, labels[2], sizeof again);
  calx_loader_free(l);
  l = calx_loader_new(d, .batch_size = 8, .shuffle = true, .seed = 2);
  source_epoch(l, again, &count);
  assert_memory_not_equal(again, labels[0], sizeof again);
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_epochs(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 7);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  for (int epoch = 0; epoch < 20; epoch++) {
    int64_t labels[7], count;
    assert_int_equal(source_epoch(l, labels, &count), 4);
    for (int64_t i = 0; i < 7; i++) assert_int_equal(labels[i], i);
  }
  calx_loader_free(l);
  calx_dataset_free(d);
}

static calx_status *get_byte(void *user, int64_t index, void *const *fields)
{
  (void)user;
  *(uint8_t *)fields[0] = (uint8_t)index;
  return NULL;
}

void test_one_field(void **state)
{
  (void)state;
  const calx_field field = { .dtype = CALX_U8 };
  calx_dataset *d = calx_dataset_new(3, &field, 1, get_byte, NULL, NULL);
  calx_loader *l = calx_loader_new(d, .batch_size = 3);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.n_fields, 1);
  assert_null(batch.target);
  uint8_t x[3];
  CHECK_OK(calx_tensor_read(batch.data, x, 3));
  assert_memory_equal(x, "\0\1\2", 3);
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_empty(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 0);
  calx_loader *l = calx_loader_new(d, .batch_size = 4, .shuffle = true);
  assert_null(calx_loader_error(l));
  assert_int_equal(calx_loader_size(l), 0);
  calx_batch batch;
  for (int i = 0; i < 3; i++) assert_false(calx_loader_next(l, &batch));
  assert_null(calx_scope_error());
  calx_loader_free(l);
  calx_dataset_free(d);
}

// ---- memory -----------------------------------------------------------------

// A batch is the loader's until the next call, and the user's who retains it.
void test_kept_tensors(void **state)
{
  const check_before *before = *state;
  enum { SIZE = 40 };
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_loader *l = calx_loader_new(d, .num_workers = 1, .prefetch = 1);
  calx_tensor *kept[SIZE];
  calx_batch batch;
  for (int i = 0; i < SIZE; i++) {
    assert_true(calx_loader_next(l, &batch));
    kept[i] = calx_retain(batch.target);
    // Those kept, this batch and at most one ahead.
    assert_in_range(cx_lazy_tensor_live() - before->tensors, i + 1,
                    i + 1 + 1 + 2);
  }
  assert_false(calx_loader_next(l, &batch));
  assert_int_equal(cx_lazy_tensor_live() - before->tensors, SIZE);
  calx_loader_free(l);
  for (int64_t i = 0; i < SIZE; i++) {
    int64_t label;
    CHECK_OK(calx_tensor_read(kept[i], &label, sizeof label));
    assert_int_equal(label, i);
    calx_release(kept[i]);
  }
  calx_dataset_free(d);
}

// A consumer that takes its time is not overwhelmed: at most prefetch + workers
// batches are under way.
void test_bounds(void **state)
{
  (void)state;
  enum { SIZE = 60 };
  for (int workers = 1; workers <= 4; workers++) {
    source s = SOURCE;
    calx_dataset *d = source_dataset(&s, SIZE);
    calx_loader *l = calx_loader_new(d, .batch_size = 2, .prefetch = 3,
                                     .num_workers = workers);
    sched_yield();
    assert_int_equal(atomic_load(&s.gets), 0);  // nothing before it is asked
    calx_batch batch;
    for (int64_t taken = 1; taken <= SIZE / 2; taken++) {
      assert_true(calx_loader_next(l, &batch));
      for (int i = 0; i < 20; i++) sched_yield();
      assert_true(atomic_load(&s.last) < 2 * (taken + 3 + workers));
    }
    assert_false(calx_loader_next(l, &batch));
    calx_loader_free(l);
    calx_dataset_free(d);
  }
}

// Uploads borrow the batch's memory: on a device that copies later, on a thread
// of its own, no block may be filled again too early.
void test_slow_transfers(void **state)
{
  enum { SIZE = 200 };
  assert_true(loader_fake.set("async=1"));
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_loader *l = calx_loader_new(d, .batch_size = 3, .num_workers = 3);
  for (int epoch = 0; epoch < 3; epoch++) {
    int64_t labels[SIZE], count;
    source_epoch(l, labels, &count);
    assert_int_equal(count, SIZE);
    for (int64_t i = 0; i < SIZE; i++) assert_int_equal(labels[i], i);
  }
  calx_loader_free(l);
  calx_dataset_free(d);
  source_wait_home(state);
}

// Transfers that end after the loader is gone find their memory.
void test_late_transfers(void **state)
{
  assert_true(loader_fake.set("async=1;hold=1"));
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 100);
  calx_loader *l = calx_loader_new(d, .batch_size = 5);
  calx_batch batch;
  for (int i = 0; i < 6; i++) assert_true(calx_loader_next(l, &batch));
  calx_tensor *kept = calx_retain(batch.target);
  calx_loader_free(l);
  calx_dataset_free(d);
  assert_true(loader_fake.set("hold=0"));
  int64_t labels[5];
  CHECK_OK(calx_tensor_read(kept, labels, sizeof labels));
  for (int64_t i = 0; i < 5; i++) assert_int_equal(labels[i], 25 + i);
  calx_release(kept);
  source_wait_home(state);
}

// ---- running ----------------------------------------------------------------

static int begin_all(void **state)
{
  (void)state;
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  loader_fake = fake_open(CX_FAKE_PLUGIN);
  if (loader_fake.set == NULL || !loader_fake.set("reset;devices=2")) return 1;
  cx_alloc_set_exact(true);
  return calx_device_current() == NULL;
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  if (loader_fake.live() == 0) return 0;
  print_error("the plugin has %ld objects left\n", loader_fake.live());
  return 1;
}

static int begin(void **state)
{
  if (!loader_fake.set("reset;devices=2")) return 1;
  return check_begin(state);
}

// Compiled programs stay: only tensors are counted after a test that has some.
static int end_step(void **state)
{
  const check_before *before = *state;
  CHECK_OK(calx_scope_end(before->scope));
  long tensors = cx_lazy_tensor_live() - before->tensors;
  if (tensors == 0) return 0;
  print_error("left over: %ld tensors\n", tensors);
  return 1;
}

#define LOADER_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, check_end)
#define STEP_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end_step)

int main(void)
{
  const struct CMUnitTest tests[] = {
    LOADER_TEST(test_batches),
    LOADER_TEST(test_options),
    LOADER_TEST(test_workers),
    LOADER_TEST(test_shuffle),
    LOADER_TEST(test_epochs),
    LOADER_TEST(test_one_field),
    LOADER_TEST(test_empty),
    LOADER_TEST(test_kept_tensors),
    LOADER_TEST(test_bounds),
    LOADER_TEST(test_slow_transfers),
    LOADER_TEST(test_late_transfers),
    LOADER_TEST(test_bad_sample),
    LOADER_TEST(test_bad_sample_shuffled),
    LOADER_TEST(test_error_in_scope),
    LOADER_TEST(test_tensors_in_get),
    LOADER_TEST(test_failed_scope),
    LOADER_TEST(test_failed_upload),
    LOADER_TEST(test_failed_dataset),
    LOADER_TEST(test_refused_options),
    LOADER_TEST(test_leaving_early),
    LOADER_TEST(test_closing_early),
    LOADER_TEST(test_no_memory),
    LOADER_TEST(test_absent),
    LOADER_TEST(test_no_room),
    LOADER_TEST(test_sampler),
    LOADER_TEST(test_sampler_meanwhile),
    LOADER_TEST(test_even_ranks),
    LOADER_TEST(test_sampler_refused),
    LOADER_TEST(test_position),
    LOADER_TEST(test_resume),
    LOADER_TEST(test_resume_other_size),
    LOADER_TEST(test_late_device),
    LOADER_TEST(test_generator),
    LOADER_TEST(test_generator_small),
    LOADER_TEST(test_generator_places),
    LOADER_TEST(test_generator_refused),
    // Last: what these leave, a loader's threads may still free in the next
    // test.
    STEP_TEST(test_sync),
    STEP_TEST(test_sync_at_end),
    STEP_TEST(test_failed_step),
    STEP_TEST(test_late_failure),
  };
  return cmocka_run_group_tests_name("data_loader", tests, begin_all, end_all);
}
