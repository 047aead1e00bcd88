// loader: the step that calx_loader_next() runs before it hands out a batch.
#include "base/metrics.h"
#include "calx/ops.h"
#include "loader.h"

static int64_t steps(void)
{
  const cx_counter *c = cx_counter_find("MarkStep");
  return c != NULL ? atomic_load(&c->value) : 0;
}

// Each call runs what is pending and what was not kept expires; without
// anything pending no step is counted.
void test_sync(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 8);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  int64_t before = steps();
  calx_batch batch;
  while (calx_loader_next(l, &batch)) {
  }
  assert_int_equal(steps(), before);
  assert_true(calx_loader_next(l, &batch));
  calx_scope *step = calx_scope_begin();
  calx_tensor *kept = calx_retain(calx_relu(batch.data));
  CHECK_OK(calx_scope_end(step));
  calx_tensor *dropped = calx_neg(batch.data);
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(steps(), before + 1);
  assert_null(calx_tensor_error(kept));
  float x[4];
  long launches = loader_fake.calls("PJRT_LoadedExecutable_Execute");
  CHECK_OK(calx_tensor_read(kept, x, sizeof x));
  assert_true(loader_fake.calls("PJRT_LoadedExecutable_Execute") == launches);
  assert_true(x[2] == 1.0f);  // the fake's result is its argument
  CHECK_FAILS(CALX_FAILED_PRECONDITION, calx_tensor_read(dropped, x, sizeof x),
              "sync");
  calx_release(kept);
  calx_loader_free(l);
  calx_dataset_free(d);
}

void test_sync_at_end(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 2);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  calx_tensor *kept = calx_retain(calx_relu(batch.data));
  int64_t before = steps();
  assert_false(calx_loader_next(l, &batch));
  assert_int_equal(steps(), before + 1);
  assert_null(calx_scope_error());
  calx_release(kept);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// The step that cannot be launched ends the epoch, and the scope tells why.
void test_failed_step(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 8);
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  calx_tensor *kept = calx_retain(calx_neg(batch.data));
  assert_true(
      loader_fake.set("fail=PJRT_LoadedExecutable_Execute@1:13:it broke"));
  assert_false(calx_loader_next(l, &batch));
  assert_null(batch.data);
  CHECK_FAILS(CALX_INTERNAL, calx_scope_take_error(), "it broke",
              "loader_steps.c:");
  calx_release(kept);
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 0);
  calx_loader_free(l);
  calx_dataset_free(d);
}

// A step that fails on the device after its launch: the loader's workers do not
// take the failure, the rank's own next step does.
void test_late_failure(void **state)
{
  (void)state;
  source s = SOURCE;
  calx_dataset *d = source_dataset(&s, 64);
  calx_loader *l = calx_loader_new(d, .batch_size = 1, .num_workers = 3);
  assert_true(loader_fake.set("async=1;late=1:13:it broke late"));
  calx_batch batch;
  int64_t batches = 0;
  while (calx_loader_next(l, &batch)) {
    calx_tensor *kept = calx_retain(calx_neg(batch.data));
    calx_sync(kept);
    calx_release(kept);
    batches++;
  }
  assert_true(batches < 64);
  CHECK_FAILS(CALX_INTERNAL, calx_scope_take_error(), "it broke late",
              "loader_steps.c:");
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 0);
  calx_loader_free(l);
  calx_dataset_free(d);
  CHECK_OK(calx_device_wait(NULL));
}
