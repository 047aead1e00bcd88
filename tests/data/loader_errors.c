// loader: failures of datasets, uploads and memory, and epochs cut short.
#include <sched.h>

#include "loader.h"

// ---- a dataset's errors -----------------------------------------------------

// The samples before it come, its error comes with its number and the
// consumer's place, and the next epoch starts again.
void test_bad_sample(void **state)
{
  (void)state;
  for (int workers = 1; workers <= 5; workers++) {
    source s = SOURCE;
    s.bad = 5;
    calx_dataset *d = source_dataset(&s, 10);
    calx_loader *l = calx_loader_new(d, .batch_size = 2, .num_workers = workers,
                                     .prefetch = 4);
    for (int epoch = 0; epoch < 3; epoch++) {
      int64_t labels[10], count;
      assert_int_equal(source_epoch(l, labels, &count), 2);
      for (int64_t i = 0; i < 4; i++) assert_int_equal(labels[i], i);
      CHECK_FAILS(CALX_DATA_LOSS, calx_scope_take_error(), "source.c:",
                  "in source_epoch: ", "sample 5 of 10: it is broken");
    }
    s.bad = -1;
    int64_t labels[10], count;
    assert_int_equal(source_epoch(l, labels, &count), 5);
    assert_int_equal(count, 10);
    calx_loader_free(l);
    calx_dataset_free(d);
  }
}

// The number is the sample's, not its place in the epoch.
void test_bad_sample_shuffled(void **state)
{
  (void)state;
  for (int64_t epoch = 0; epoch < 8; epoch++) {
    source s = SOURCE;
    s.bad = 5;
    calx_dataset *all = source_dataset(&s, 30);
    calx_dataset *d = calx_dataset_range(all, 2, 12);
    calx_loader *l = calx_loader_new(d, .shuffle = true, .batch_size = 3);
    calx_loader_set_epoch(l, epoch);
    int64_t labels[10], count;
    source_epoch(l, labels, &count);
    CHECK_FAILS(CALX_DATA_LOSS, calx_scope_take_error(),
                "sample 3 of 10: it is broken");
    calx_loader_free(l);
    calx_dataset_free(d);
    calx_dataset_free(all);
  }
}

// Datasets may use the library: what they leave on the worker's own scope is an
// error of the sample, what they make in a scope goes away with it.
static calx_status *get_with_tensors(void *user, int64_t index,
                                     void *const *fields)
{
  const source *s = user;
  calx_scope *scope = s->bad < 0 ? calx_scope_begin() : NULL;
  calx_dtype dtype = index == s->bad ? (calx_dtype)99 : CALX_I64;
  calx_tensor *t = calx_host_tensor(&index, dtype, CALX_SCALAR);
  const void *data = calx_host_data(t);
  memcpy(fields[0], data != NULL ? data : &index, sizeof index);
  return scope != NULL ? calx_scope_end(scope) : NULL;
}

static calx_dataset *dataset_with_tensors(source *s)
{
  const calx_field field = { .dtype = CALX_I64 };
  return calx_dataset_new(10, &field, 1, get_with_tensors, s, NULL);
}

void test_error_in_scope(void **state)
{
  (void)state;
  source s = SOURCE;
  s.bad = 7;
  calx_dataset *d = dataset_with_tensors(&s);
  calx_loader *l = calx_loader_new(d, .batch_size = 5);
  calx_batch batch;
  for (int epoch = 0; epoch < 2; epoch++) {
    assert_true(calx_loader_next(l, &batch));
    assert_false(calx_loader_next(l, &batch));
    CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
                "sample 7 of 10: ", "99");
  }
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_tensors_in_get(void **state)
{
  const check_before *before = *state;
  source s = SOURCE;
  calx_dataset *d = dataset_with_tensors(&s);
  calx_loader *l = calx_loader_new(d, .batch_size = 10);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  int64_t labels[10];
  CHECK_OK(calx_tensor_read(batch.data, labels, sizeof labels));
  for (int64_t i = 0; i < 10; i++) assert_int_equal(labels[i], i);
  assert_int_equal(cx_lazy_tensor_live() - before->tensors, 1);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// ---- other errors -----------------------------------------------------------

// A scope that failed hands out no batch.
void test_failed_scope(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 10);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  calx_batch batch;
  cx_lazy_scope_pin(cx_error(CALX_ABORTED, "an op failed"));
  assert_false(calx_loader_next(l, &batch));
  assert_int_equal(s.gets, 0);
  CHECK_FAILS(CALX_ABORTED, calx_scope_take_error(), "an op failed");
  assert_true(calx_loader_next(l, &batch));
  cx_lazy_scope_pin(cx_error(CALX_ABORTED, "an op failed"));
  assert_false(calx_loader_next(l, &batch));
  assert_null(batch.data);
  CHECK_FAILS(CALX_ABORTED, calx_scope_take_error(), "an op failed");
  // An inner scope's failure does not reach the loop around it.
  calx_scope *inner = calx_scope_begin();
  cx_lazy_scope_pin(cx_error(CALX_ABORTED, "inside"));
  CHECK_FAILS(CALX_ABORTED, calx_scope_end(inner), "inside");
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 0);
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_failed_upload(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 10);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  for (int k = 1; k <= 2; k++) {  // of the third batch: data, then target
    char setting[96];
    snprintf(setting, sizeof setting,
             "reset;devices=2;fail=PJRT_Client_BufferFromHostBuffer@%d:8:no "
             "more room",
             4 + k);
    assert_true(loader_fake.set(setting));
    int64_t labels[10], count;
    assert_int_equal(source_epoch(l, labels, &count), 2);
    CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, calx_scope_take_error(),
                "no more room", "while making batch 2");
  }
  int64_t labels[10], count;
  assert_int_equal(source_epoch(l, labels, &count), 5);
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_failed_dataset(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_digits(-1, 0);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), "a size of -1");
  assert_int_equal(calx_loader_size(l), 0);
  calx_batch batch;
  for (int i = 0; i < 2; i++) {
    assert_false(calx_loader_next(l, &batch));
    CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "a size of -1");
  }
  calx_loader_end_epoch(l);
  calx_loader_set_epoch(l, 3);
  calx_loader_free(l);
  calx_dataset_free(d);
  calx_loader_free(NULL);
}

void test_refused_options(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 10);
  const size_t size = sizeof(calx_loader_options);
  const struct {
    calx_loader_options options;
    const char *why;
  } cases[] = {
    { { .size = size, .batch_size = -1 }, "batch_size is -1" },
    { { .size = size, .num_workers = -2 }, "num_workers is -2" },
    { { .size = size, .num_workers = 1025 }, "0 (the default) to 1024" },
    { { .size = size, .prefetch = -1 }, "prefetch is -1" },
    { { .size = size, .prefetch = 1 << 20 }, "prefetch is 1048576" },
    { { .size = size + 8 }, "set .size" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    calx_loader *l = calx_loader_new_with(d, &cases[k].options);
    CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l),
               "loader: ", cases[k].why);
    calx_loader_free(l);
  }
  calx_loader *l = calx_loader_new(NULL, .batch_size = 2);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l),
             "loader_errors.c:", "the dataset is NULL");
  calx_loader_free(l);
  calx_dataset_free(d);
  // Batches that no memory has, refused without asking for it.
  const calx_field field = { .dtype = CALX_F64,
                             .rank = 1,
                             .dims = { INT64_C(1) << 40 } };
  d = calx_dataset_new(INT64_C(1) << 40, &field, 1, get_with_tensors, &s, NULL);
  l = calx_loader_new(d, .batch_size = INT64_C(1) << 32);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), "too many bytes");
  calx_loader_free(l);
  calx_dataset_free(d);
}

// ---- epochs cut short -------------------------------------------------------

void test_leaving_early(void **state)
{
  (void)state;
  enum { SIZE = 40 };
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, SIZE);
  calx_loader *l = calx_loader_new(d, .batch_size = 3, .shuffle = true,
                                   .num_workers = 3, .seed = 4);
  int64_t wanted[4][SIZE], labels[SIZE], count;
  for (int e = 0; e < 4; e++) source_epoch(l, wanted[e], &count);
  calx_loader_end_epoch(l);  // none runs
  calx_loader_set_epoch(l, 0);
  calx_batch batch;
  for (int i = 0; i < 5; i++) assert_true(calx_loader_next(l, &batch));
  calx_loader_end_epoch(l);
  long long gets = atomic_load(&s.gets);
  for (int i = 0; i < 50; i++) sched_yield();
  assert_true(atomic_load(&s.gets) == gets);  // nobody is in the dataset
  source_labels(&batch, labels);  // the last batch is still the user's
  assert_memory_equal(labels, wanted[0] + 12, 3 * sizeof *labels);
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 0);
  source_labels(&batch, labels);
  assert_memory_equal(labels, wanted[1], 3 * sizeof *labels);
  // Choosing an epoch drops the running one, too.
  calx_loader_set_epoch(l, 3);
  source_epoch(l, labels, &count);
  assert_int_equal(count, SIZE);
  assert_memory_equal(labels, wanted[3], sizeof labels);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// A loader ends in any state: unused, in the middle, at the end, and while its
// workers are inside the dataset.
void test_closing_early(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 1024);
  for (int taken = 0; taken <= 12; taken++) {
    calx_loader *l = calx_loader_new(d, .batch_size = 100, .num_workers = 4,
                                     .prefetch = 1 + taken);
    calx_batch batch;
    for (int i = 0; i < taken; i++) {
      assert_true(calx_loader_next(l, &batch) == (i < 11));
    }
    calx_loader_free(l);
  }
  calx_dataset_free(d);
}

// ---- memory -----------------------------------------------------------------

// Whichever allocation fails: an error that says so, and nothing left.
void test_no_memory(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 12);
  bool whole = false;
  int failures = 0;
  for (long n = 0; !whole; n++) {
    assert_in_range(n, 0, 2000);
    cx_alloc_fail_at(n);
    calx_loader *l = calx_loader_new(d, .batch_size = 4, .shuffle = true);
    calx_batch batch;
    int64_t batches = 0;
    while (calx_loader_next(l, &batch)) batches++;
    cx_alloc_fail_at(-1);
    calx_status *error = calx_scope_take_error();
    if (error != NULL) {
      failures++;
      CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, error, "memory");
      assert_true(batches < 3);
    }
    whole = error == NULL && n > 50;
    calx_loader_free(l);
  }
  assert_true(failures > 5);
  calx_dataset_free(d);
}

// ---- no object at all -------------------------------------------------------

// One that is NULL is a failed one: its error says so, and it is empty.
void test_absent(void **state)
{
  (void)state;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_status_copy(calx_dataset_error(NULL)),
              "the dataset is NULL");
  assert_int_equal(calx_dataset_size(NULL), 0);
  assert_int_equal(calx_dataset_field_count(NULL), 0);
  assert_null(calx_dataset_field(NULL, 0));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_dataset_get(NULL, 0, NULL), "NULL");
  calx_dataset *range = calx_dataset_range(NULL, 0, 1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_status_copy(calx_dataset_error(range)),
              "the dataset is NULL");
  calx_dataset_free(range);

  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_status_copy(calx_sampler_error(NULL)),
              "the sampler is NULL");
  assert_int_equal(calx_sampler_size(NULL), 0);
  calx_sampler_set_epoch(NULL, 3);
  assert_int_equal(calx_sampler_epoch(NULL), 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_order(NULL, NULL), "NULL");

  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_status_copy(calx_loader_error(NULL)),
              "the loader is NULL");
  assert_int_equal(calx_loader_size(NULL), 0);
  calx_loader_set_epoch(NULL, 3);
  calx_loader_end_epoch(NULL);
  assert_int_equal(calx_loader_state(NULL).epoch, 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              calx_loader_load_state(NULL, (calx_loader_position){ 0 }),
              "NULL");
  calx_batch batch;
  assert_false(calx_loader_next(NULL, &batch));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
              "loader_errors.c:", "the loader is NULL");

  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_status_copy(calx_parallel_loader_error(NULL)),
              "the parallel loader is NULL");
  assert_int_equal(calx_parallel_loader_size(NULL), 0);
  calx_parallel_loader_close(NULL);
  assert_false(calx_loader_next(calx_per_device_loader(NULL, NULL), &batch));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
}

// Results that have no room.
void test_no_room(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 4);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_dataset_get(d, 0, NULL), "fields");
  calx_sampler *order = calx_sequential_sampler(d);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_sampler_order(order, NULL), "NULL");
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  assert_false(calx_loader_next(l, NULL));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
              "the batch is NULL");
  calx_loader_free(l);
  calx_sampler_free(order);
  calx_dataset_free(d);
}
