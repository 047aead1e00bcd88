// engine: the loader on real plugins: what arrives is what the dataset made.
#include "calx/ops.h"
#include "check.h"

enum { SIZE = 150, BATCH = 64, PIXELS = 784 };

// The batch's digits are those of the dataset: each once, in some order.
static void check_batch(calx_dataset *d, const calx_batch *batch, bool *seen)
{
  static float x[BATCH][PIXELS], wanted[PIXELS];
  int64_t y[BATCH], label = 0;
  size_t n = (size_t)batch->size;
  assert_in_range(n, 1, BATCH);
  assert_int_equal(calx_tensor_rank(batch->data), 4);
  CHECK_OK(calx_tensor_read(batch->data, x, n * sizeof *x));
  CHECK_OK(calx_tensor_read(batch->target, y, n * sizeof *y));
  for (size_t k = 0; k < n; k++) {
    int64_t i = 0;
    do {
      assert_true(i < SIZE);
      CHECK_OK(calx_dataset_get(d, i, (void *const[]){ wanted, &label }));
    } while (memcmp(x[k], wanted, sizeof wanted) != 0 && ++i < SIZE);
    assert_int_equal(y[k], label);
    assert_false(seen[i]);
    seen[i] = true;
  }
}

static void test_loader(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_digits(SIZE, 6);
  calx_loader *l = calx_loader_new(d, .batch_size = BATCH, .shuffle = true,
                                   .num_workers = 3);
  for (int epoch = 0; epoch < 3; epoch++) {
    bool seen[SIZE] = { false };
    calx_batch batch;
    int64_t samples = 0;
    while (calx_loader_next(l, &batch)) {
      check_batch(d, &batch, seen);
      samples += batch.size;
    }
    assert_null(calx_scope_error());
    assert_int_equal(samples, SIZE);
  }
  calx_loader_free(l);
  calx_dataset_free(d);
}

// Many steps that read their batch after the loader moved on.
static void test_steps(void **state)
{
  (void)state;
  const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(10));
  calx_dataset *d = calx_dataset_tensors(&host, 1);
  calx_loader *l = calx_loader_new(d, .batch_size = 1, .prefetch = 4);
  calx_tensor *kept[10];
  for (int epoch = 0; epoch < 10; epoch++) {
    calx_batch batch;
    while (calx_loader_next(l, &batch)) {
      calx_scope *step = calx_scope_begin();
      kept[batch.index] = calx_retain(calx_neg(batch.data));
      CHECK_OK(calx_scope_end(step));
    }
    for (int i = 0; i < 10; i++) {
      float y;
      CHECK_OK(calx_tensor_read(kept[i], &y, sizeof y));
      assert_true(y == -x[i]);
      calx_release(kept[i]);
    }
  }
  calx_loader_free(l);
  calx_dataset_free(d);
}

static calx_status *add_up(void *user, calx_tensor *const *tensors, size_t n)
{
  double *sum = user;
  for (size_t i = 0; i < n; i++) *sum += calx_item(tensors[i]);
  return NULL;
}

// A loop that syncs each third batch: the running sum is right all the same,
// and closures see their own step's value, on either thread.
static void test_device_loader(void **state)
{
  (void)state;
  float x[10];
  for (int i = 0; i < 10; i++) x[i] = (float)(i + 1);
  calx_tensor *rows = calx_host_tensor(x, CALX_F32, CALX_SHAPE(10));
  calx_dataset *d = calx_dataset_tensors(&rows, 1);
  calx_loader *from = calx_loader_new(d);
  calx_loader *l =
      calx_mp_device_loader(from, NULL, .batches_per_execution = 3);
  calx_tensor *total =
      calx_take(calx_tensor_from(&(float){ 0 }, CALX_F32, CALX_SHAPE(1)));
  double sums[2] = { 0 };
  calx_batch batch;
  while (calx_loader_next(l, &batch)) {
    calx_scope *step = calx_scope_begin();
    calx_assign(total, calx_add(total, batch.data));
    calx_tensor *value = calx_mul(batch.data, 2);
    calx_add_step_closure(add_up, &sums[0], &value, 1);
    calx_add_step_closure(add_up, &sums[1], &value, 1, .run_async = true);
    CHECK_OK(calx_scope_end(step));
  }
  CHECK_OK(calx_wait_step_closures());
  assert_true(calx_item(total) == 55);
  assert_true(sums[0] == 110 && sums[1] == 110);
  calx_release(total);
  calx_loader_free(l);
  calx_loader_free(from);
  calx_dataset_free(d);
}

static void test_generator(void **state)
{
  (void)state;
  const float x[] = { 1, -2, 3, -4 };
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_tensor *made = calx_neg(calx_tensor_from(x, CALX_F32, CALX_SHAPE(2, 2)));
  calx_loader *l = calx_sample_generator(host, made, 3);
  for (int epoch = 0; epoch < 2; epoch++) {
    calx_batch batch;
    int count = 0;
    while (calx_loader_next(l, &batch)) {
      float data[4], target[4];
      CHECK_OK(calx_tensor_read(batch.data, data, sizeof data));
      CHECK_OK(calx_tensor_read(batch.target, target, sizeof target));
      for (int k = 0; k < 4; k++) {
        assert_true(data[k] == x[k] && target[k] == -x[k]);
      }
      count++;
    }
    assert_int_equal(count, 3);
  }
  calx_loader_free(l);
}

static void test_device_tensors_refused(void **state)
{
  (void)state;
  const float x[2] = { 0 };
  calx_tensor *t = calx_tensor_from(x, CALX_F32, CALX_SHAPE(2));
  calx_dataset *d = calx_dataset_tensors(&t, 1);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d),
             "tensor 0 is on xla:0, the rows must be on the host", "calx_cpu");
  calx_dataset_free(d);
}

static int begin_all(void **state)
{
  (void)state;
  cx_alloc_set_exact(true);
  if (calx_device_current() == NULL) return 1;
  // The first transfer makes what is kept for ever.
  calx_scope *scope = calx_scope_begin();
  calx_item(calx_neg(calx_tensor_from(&(float){ 1 }, CALX_F32, CALX_SCALAR)));
  CHECK_OK(calx_scope_end(scope));
  return 0;
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  return 0;
}

// Compiled programs and what the device keeps for its next step stay: only
// tensors and statuses are counted.
static int end(void **state)
{
  const check_before *before = *state;
  CHECK_OK(calx_scope_end(before->scope));
  long tensors = cx_lazy_tensor_live() - before->tensors;
  long statuses = cx_status_live() - before->statuses;
  if (tensors == 0 && statuses == 0) return 0;
  print_error("left over: %ld tensors, %ld statuses\n", tensors, statuses);
  return 1;
}

#define ENGINE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, check_begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    ENGINE_TEST(test_loader),
    ENGINE_TEST(test_steps),
    ENGINE_TEST(test_device_loader),
    ENGINE_TEST(test_generator),
    ENGINE_TEST(test_device_tensors_refused),
  };
  return cmocka_run_group_tests_name("data_engine", tests, begin_all, end_all);
}
