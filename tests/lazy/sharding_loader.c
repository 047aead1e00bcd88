// Loaders whose batches are split among four devices: marks, values, epochs,
// and what is refused.
#include "calx/data.h"
#include "sharding.h"

enum { SAMPLES = 16, WIDTH = 8 };

// Sample i: a row of WIDTH numbers from WIDTH i on, and the label i.
static calx_dataset *rows(int64_t n)
{
  float data[SAMPLES * WIDTH];
  int64_t labels[SAMPLES];
  for (int64_t i = 0; i < n * WIDTH; i++) data[i] = (float)i;
  for (int64_t i = 0; i < n; i++) labels[i] = i;
  calx_tensor *fields[] = {
    calx_host_tensor(data, CALX_F32, CALX_SHAPE(n, WIDTH)),
    calx_host_tensor(labels, CALX_I64, CALX_SHAPE(n)),
  };
  return calx_dataset_tensors(fields, 2);
}

static calx_input_sharding split_by_x(const calx_mesh *mesh)
{
  return (calx_input_sharding){ .mesh = mesh,
                                .partition_spec = CALX_AXES("x") };
}

static void check_rows(const calx_batch *batch, int64_t first)
{
  double data[SAMPLES * WIDTH], labels[SAMPLES];
  for (int64_t i = 0; i < batch->size * WIDTH; i++) {
    data[i] = (double)(first * WIDTH + i);
  }
  for (int64_t i = 0; i < batch->size; i++) labels[i] = (double)(first + i);
  support_values(batch->data, data, (size_t)batch->size * WIDTH, 0, __FILE__,
                 __LINE__);
  support_values(batch->target, labels, (size_t)batch->size, 0, __FILE__,
                 __LINE__);
}

static void test_rows(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_dataset *d = rows(SAMPLES);
  calx_loader *l = calx_loader_new(
      d, .batch_size = 8,
      .input_sharding = { .mesh = mesh, .partition_spec = CALX_AXES("x") });
  CHECK_STATUS_OK(cx_status_copy(calx_loader_error(l)));
  calx_mesh_free(mesh);  // the loader has its own
  calx_batch batch;
  for (int epoch = 0; epoch < 2; epoch++) {
    for (int k = 0; k < 2; k++) {
      assert_true(calx_loader_next(l, &batch));
      sharding_check(batch.data, "{devices=[4,1]0,1,2,3}");
      sharding_check(batch.target, "{devices=[4]0,1,2,3}");
      assert_int_equal(calx_shard_shape(batch.data).values[0], 2);
      check_rows(&batch, 8 * k);
      CHECK_VALUES(calx_sum(batch.data), 0, 64 * (31.5 + 64 * k));
    }
    assert_false(calx_loader_next(l, &batch));
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_loader_free(l);
  calx_dataset_free(d);
}

// Columns do not lie one after another on the host. A device loader takes the
// loader's way, or its own.
static void test_columns(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(2, 2), CALX_AXES("x", "y"));
  float data[SAMPLES * WIDTH];
  for (int64_t i = 0; i < SAMPLES * WIDTH; i++) data[i] = (float)i;
  calx_tensor *field =
      calx_host_tensor(data, CALX_F32, CALX_SHAPE(SAMPLES, WIDTH));
  calx_dataset *d = calx_dataset_tensors(&field, 1);
  calx_loader *l = calx_loader_new(
      d, .batch_size = 3, .drop_last = true,
      .input_sharding = { .mesh = mesh,
                          .partition_spec = CALX_AXES(NULL, "y") });
  calx_loader *same = calx_mp_device_loader(l, NULL);
  calx_loader *other = calx_mp_device_loader(
      l, NULL,
      .input_sharding = { .mesh = mesh,
                          .partition_spec = CALX_AXES(NULL, "y,x") });
  calx_loader *all[] = { l, same, other };
  for (size_t i = 0; i < 3; i++) {
    calx_batch batch;
    double sum = 0, wanted = 0;
    CHECK_STATUS_OK(cx_status_copy(calx_loader_error(all[i])));
    while (calx_loader_next(all[i], &batch)) {
      sharding_check(batch.data, i == 2 ? "{devices=[1,4]0,2,1,3}"
                                        : "{devices=[1,2,2]0,2,1,3 "
                                          "last_tile_dim_replicate}");
      double v[3 * WIDTH];
      for (int64_t k = 0; k < 3 * WIDTH; k++) {
        v[k] = (double)(batch.index * 3 * WIDTH + k);
        wanted += v[k];
      }
      support_values(batch.data, v, 3 * WIDTH, 0, __FILE__, __LINE__);
      sum += calx_item(calx_sum(batch.data));
    }
    assert_true(sum == wanted && wanted > 0);
    calx_loader_free(all[i]);
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_dataset_free(d);
  calx_mesh_free(mesh);
}

// ---- what is refused --------------------------------------------------------

static void check_refused(calx_dataset *d, int64_t batch_size,
                          const calx_mesh *mesh, calx_axes spec, calx_code code,
                          const char *piece, const char *other)
{
  calx_loader *l = calx_loader_new(
      d, .batch_size = batch_size,
      .input_sharding = { .mesh = mesh, .partition_spec = spec });
  CHECK_STATUS(code, cx_status_copy(calx_loader_error(l)), piece, other);
  calx_loader_free(l);
}

static void test_refused(void **state)
{
  (void)state;
  const calx_code invalid = CALX_INVALID_ARGUMENT;
  calx_dataset *d = rows(14);
  check_refused(d, 4, NULL, CALX_AXES("x"), CALX_FAILED_PRECONDITION,
                "input_sharding", "calx_use_spmd() first");
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  check_refused(d, 4, NULL, CALX_AXES("x"), invalid, "input_sharding",
                "the mesh is NULL");
  check_refused(d, 4, mesh, CALX_AXES("y"), invalid, "{\"x\"=4} has no axis",
                "'y'");
  check_refused(d, 6, mesh, CALX_AXES("x"), invalid,
                "'x' splits dimension 0 of f32[6,8] into 4 parts", "field 0");
  check_refused(d, 4, mesh, CALX_AXES("x"), invalid, "f32[2,8] into 4 parts",
                "last batch of 2 samples, which .drop_last leaves out");
  check_refused(d, 7, mesh, CALX_AXES(NULL, "x"), invalid,
                "the spec has 2 entries, and i64[7] has rank 1", "field 1");
  calx_loader *one =
      calx_sample_generator(calx_ones(CALX_SHAPE(4, 2)), NULL, 3);
  calx_loader *l =
      calx_mp_device_loader(one, NULL, .input_sharding = split_by_x(mesh));
  CHECK_STATUS(CALX_UNIMPLEMENTED, cx_status_copy(calx_loader_error(l)),
               "calx_mark_sharding()");
  calx_loader_free(l);
  calx_loader_free(one);
  calx_dataset_free(d);
  calx_mesh_free(mesh);
}

// From sample 3 on 13 are left, and the last batch would have one.
static void test_resumed(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_dataset *d = rows(16);
  calx_loader *l =
      calx_loader_new(d, .batch_size = 4, .input_sharding = split_by_x(mesh));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_loader_load_state(l, (calx_loader_position){ 0, 3 }),
               "last batch of 1 samples", "after sample 3");
  CHECK_STATUS_OK(calx_loader_load_state(l, (calx_loader_position){ 0, 4 }));
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  check_rows(&batch, 4);
  calx_loader_free(l);
  calx_dataset_free(d);
  calx_mesh_free(mesh);
}

// A batch whose size is known only when it is made.
static void test_late(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_dataset *d = rows(14);
  calx_sampler *in_order = calx_sequential_sampler(d);
  calx_sampler *s = calx_batch_sampler(in_order, 8);
  calx_loader *l = calx_loader_new(d, .batch_sampler = s,
                                   .input_sharding = split_by_x(mesh));
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  check_rows(&batch, 0);
  assert_false(calx_loader_next(l, &batch));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "f32[6,8] into 4 parts",
               "in field 0 of a batch of 6 samples; while making batch 1");
  calx_loader_free(l);
  calx_sampler_free(s);
  calx_sampler_free(in_order);
  calx_dataset_free(d);
  calx_mesh_free(mesh);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_rows),    SUPPORT_TEST(test_columns),
    SUPPORT_TEST(test_refused), SUPPORT_TEST(test_resumed),
    SUPPORT_TEST(test_late),
  };
  return cmocka_run_group_tests(tests, sharding_setup, NULL);
}
