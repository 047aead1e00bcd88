// source: the dataset of the loader's tests, and what reads its batches.
#include <sched.h>

#include "loader.h"
#include "support/wait.h"

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  source *s = user;
  atomic_fetch_add(&s->gets, 1);
  long long last = atomic_load(&s->last);
  while (index > last &&
         !atomic_compare_exchange_weak(&s->last, &last, index)) {
  }
  while (atomic_load(&s->hold) != 0) sched_yield();
  if (index == s->bad) return cx_error(CALX_DATA_LOSS, "it is broken");
  ((float *)fields[0])[0] = (float)index;
  ((float *)fields[0])[1] = (float)-index;
  *(int64_t *)fields[1] = index;
  return NULL;
}

calx_dataset *source_dataset(source *s, int64_t size)
{
  const calx_field fields[] = {
    { .dtype = CALX_F32, .rank = 1, .dims = { 2 } },
    { .dtype = CALX_I64 },
  };
  return calx_dataset_new(size, fields, 2, get, s, NULL);
}

void source_labels(const calx_batch *batch, int64_t *out_labels)
{
  size_t n = (size_t)batch->size;
  assert_int_equal(batch->n_fields, 2);
  assert_ptr_equal(batch->fields[0], batch->data);
  assert_ptr_equal(batch->fields[1], batch->target);
  assert_null(batch->fields[2]);
  assert_int_equal(calx_tensor_rank(batch->data), 2);
  assert_int_equal(calx_tensor_dim(batch->data, 0), n);
  assert_int_equal(calx_tensor_dim(batch->data, 1), 2);
  assert_int_equal(calx_tensor_dtype(batch->data), CALX_F32);
  assert_int_equal(calx_tensor_rank(batch->target), 1);
  assert_int_equal(calx_tensor_dim(batch->target, 0), n);
  assert_int_equal(calx_tensor_dtype(batch->target), CALX_I64);
  float *x = test_malloc(n * 2 * sizeof *x);
  CHECK_OK(calx_tensor_read(batch->data, x, n * 2 * sizeof *x));
  CHECK_OK(calx_tensor_read(batch->target, out_labels, n * sizeof(int64_t)));
  for (size_t i = 0; i < n; i++) {
    assert_true(x[2 * i] == (float)out_labels[i]);
    assert_true(x[2 * i + 1] == (float)-out_labels[i]);
  }
  test_free(x);
}

int64_t source_epoch(calx_loader *loader, int64_t *out_labels,
                     int64_t *out_count)
{
  int64_t batches = 0;
  *out_count = 0;
  calx_batch batch;
  while (calx_loader_next(loader, &batch)) {
    assert_int_equal(batch.index, batches);
    source_labels(&batch, out_labels + *out_count);
    *out_count += batch.size;
    batches++;
  }
  assert_null(batch.data);
  assert_int_equal(batch.size, 0);
  return batches;
}

void source_wait_home(void **state)
{
  const check_before *before = *state;
  // The scope of the test itself is not in the count.
  WAIT_UNTIL(cx_alloc_live() <= before->blocks + 1);
  assert_true(cx_alloc_live() <= before->blocks + 1);
}
