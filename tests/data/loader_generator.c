// loader: the generator, which hands out one batch again and again.
#include "loader.h"

static const float x[] = { 1, 2, 3, 4 };
static const int64_t y[] = { 5, 6 };

// One batch of the generator below: x and y, or the other way round.
static void check_batch(const calx_batch *batch, bool swapped)
{
  float floats[4];
  int64_t ints[2];
  assert_int_equal(batch->size, 2);
  assert_int_equal(batch->n_fields, 2);
  assert_false(calx_tensor_is_host(batch->data));
  assert_false(calx_tensor_is_host(batch->target));
  CHECK_OK(calx_tensor_read(swapped ? batch->target : batch->data, floats,
                            sizeof floats));
  CHECK_OK(calx_tensor_read(swapped ? batch->data : batch->target, ints,
                            sizeof ints));
  assert_memory_equal(floats, x, sizeof x);
  assert_memory_equal(ints, y, sizeof y);
}

static long uploads(void)
{
  return loader_fake.calls("PJRT_Client_BufferFromHostBuffer");
}

void test_generator(void **state)
{
  const check_before *before = *state;
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_tensor *device = calx_tensor_from(y, CALX_I64, CALX_SHAPE(2));
  for (int swapped = 0; swapped < 2; swapped++) {
    calx_loader *l = calx_sample_generator(swapped ? device : host,
                                           swapped ? host : device, 5);
    assert_null(calx_loader_error(l));
    assert_int_equal(calx_loader_size(l), 5);
    long uploads_before = uploads();
    calx_batch batch;
    for (int epoch = 0; epoch < 3; epoch++) {
      for (int i = 0; i < 5; i++) {
        assert_true(calx_loader_next(l, &batch));
        assert_int_equal(batch.index, i);
        check_batch(&batch, swapped);
      }
      assert_false(calx_loader_next(l, &batch));
    }
    assert_int_equal(uploads(), uploads_before);
    assert_int_equal(cx_lazy_tensor_live() - before->tensors, 3);
    assert_true(calx_loader_next(l, &batch));
    calx_loader_end_epoch(l);
    assert_true(calx_loader_next(l, &batch));
    assert_int_equal(batch.index, 0);
    calx_loader_free(l);
  }
}

void test_generator_small(void **state)
{
  (void)state;
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_loader *l = calx_sample_generator(host, NULL, 1);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  assert_null(batch.target);
  assert_int_equal(batch.n_fields, 1);
  calx_loader_free(l);
  l = calx_sample_generator(host, NULL, 0);
  assert_null(calx_loader_error(l));
  assert_false(calx_loader_next(l, &batch));
  assert_null(calx_scope_error());
  calx_loader_free(l);
}

// Two loops over one generator, one in the other: each call takes the next of
// the same epoch, as with PyTorch/XLA's. A place in it can be gone back to.
void test_generator_places(void **state)
{
  (void)state;
  calx_tensor *host = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_loader *l = calx_sample_generator(host, NULL, 5);
  calx_batch batch;
  int outer = 0, inner = 0;
  while (calx_loader_next(l, &batch)) {
    outer++;
    while (inner < 4 && calx_loader_next(l, &batch)) inner++;
  }
  assert_int_equal(outer, 1);
  assert_int_equal(inner, 4);
  assert_int_equal(calx_loader_state(l).epoch, 1);
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 1, 6 }));
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 3);
  assert_int_equal(calx_loader_state(l).samples, 8);
  assert_true(calx_loader_next(l, &batch));
  assert_false(calx_loader_next(l, &batch));
  calx_loader_free(l);
}

void test_generator_refused(void **state)
{
  (void)state;
  calx_tensor *two = calx_host_tensor(x, CALX_F32, CALX_SHAPE(2, 2));
  calx_tensor *three = calx_host_tensor(x, CALX_F32, CALX_SHAPE(3));
  calx_tensor *scalar = calx_host_tensor(x, CALX_F32, CALX_SCALAR);
  calx_tensor *poison = calx_host_tensor(x, 99, CALX_SHAPE(2));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "99");
  const struct {
    calx_tensor *data, *target;
    int64_t count;
    const char *why;
  } cases[] = {
    { two, NULL, -1, "-1 batches" },
    { two, NULL, INT64_MAX, "are too many" },
    { NULL, NULL, 1, "data is NULL" },
    { scalar, NULL, 1, "the data has no batch dimension" },
    { two, scalar, 1, "the target has no batch dimension" },
    { two, three, 1, "a batch of 2 in data, of 3 in target" },
    { poison, NULL, 1, "the data: " },
    { two, poison, 1, "the target: " },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    calx_loader *l =
        calx_sample_generator(cases[k].data, cases[k].target, cases[k].count);
    CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), cases[k].why,
               "loader_generator.c:", "sample generator: ");
    assert_int_equal(calx_loader_size(l), 0);
    calx_batch batch;
    assert_false(calx_loader_next(l, &batch));
    CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), cases[k].why);
    calx_loader_free(l);
  }
  assert_true(
      loader_fake.set("fail=PJRT_Client_BufferFromHostBuffer@1:8:full"));
  calx_loader *l = calx_sample_generator(two, NULL, 1);
  CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, calx_loader_error(l), "full");
  calx_loader_free(l);
}
