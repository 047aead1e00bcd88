// xla_execute: launches on real plugins, on one device and on several.
#include <unistd.h>

#include "base/thread.h"
#include "xla.h"

// ---- executing ----

void test_add(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(false);
  assert_int_equal(cx_pjrt_executable_result_count(e), 1);
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *b = xla_floats(0, 4, 10);
  cx_pjrt_buffer *args[] = { a, b };
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_event *done = NULL;
  CHECK_OK(cx_pjrt_execute(e, 0, args, 2, &result, &done));
  CHECK_OK(cx_pjrt_event_await(done));
  CHECK_OK(cx_pjrt_event_await(done));
  assert_true(cx_pjrt_event_is_ready(done));
  assert_true(cx_pjrt_buffer_is_ready(result));
  xla_check_floats(result, 4, 11, 2);
  assert_false(cx_pjrt_buffer_is_deleted(a));
  cx_pjrt_event_free(done);
  cx_pjrt_buffer_release(result);
  // The same buffer for both is fine when none is donated.
  CHECK_OK(xla_run2(e, a, a, &result));
  xla_check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_executable_release(e);
}

void test_donation(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(true);
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *b = xla_floats(0, 4, 10);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(xla_run2(e, a, b, &result));
  assert_true(cx_pjrt_buffer_is_deleted(a));
  assert_false(cx_pjrt_buffer_is_deleted(b));
  xla_check_floats(result, 4, 11, 2);
  cx_pjrt_buffer *second = NULL;
  CHECK_FAILS(CALX_FAILED_PRECONDITION, xla_run2(e, a, b, &second),
              "argument 0", "f32[4]", "deleted");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, xla_run2(e, result, a, &second),
              "argument 1", "f32[4]", "deleted");
  assert_false(cx_pjrt_buffer_is_deleted(result));  // its claim was given back
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, result, result, &second),
              "argument 1: the same buffer is also argument 0");
  float out[4];
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_to_host(a, out, sizeof out), "deleted");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_buffer_await(a), "deleted");
  CHECK_OK(xla_run2(e, result, b, &second));
  xla_check_floats(second, 4, 21, 3);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(second);
  cx_pjrt_executable_release(e);
}

void test_wrong_arguments(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(false);
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_shape ints_shape = xla_shape(CALX_I32, 1, 4, 0);
  cx_pjrt_shape square_shape = xla_shape(CALX_F32, 2, 2, 2);
  int32_t numbers[] = { 1, 2, 3, 4 };
  cx_pjrt_buffer *ints = xla_upload(0, &ints_shape, numbers);
  cx_pjrt_buffer *square = xla_upload(0, &square_shape, numbers);
  cx_pjrt_buffer *far = xla_floats(1, 4, 1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, a, ints, &result),
              "argument 1: wants f32[4], got i32[4]");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, square, a, &result),
              "argument 0: wants f32[4], got f32[2,2]");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, a, far, &result),
              "argument 1: wants a buffer on device 0, got one on device 1");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, a, NULL, &result),
              "argument 1: no buffer");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 0, &a, 1, &result, NULL),
              "wants 2 arguments, got 1");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 1, &a, 2, &result, NULL),
              "not compiled for device 1");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 7, &a, 2, &result, NULL), "device 7");
  assert_null(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(ints);
  cx_pjrt_buffer_release(square);
  cx_pjrt_buffer_release(far);
  cx_pjrt_executable_release(e);
}

void test_two_clients(void **state)
{
  (void)state;
  cx_pjrt_client *other = NULL;
  CHECK_OK(cx_pjrt_client_open(xla_plugin, NULL, &other));
  cx_pjrt_executable *e = xla_compile_add(false);
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *foreign = NULL;
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, 4, 0);
  float data[] = { 1, 2, 3, 4 };
  CHECK_OK(cx_pjrt_buffer_from_host(other, 0, &s, data, CX_PJRT_COPY, NULL,
                                    NULL, &foreign));
  cx_pjrt_buffer *result = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, xla_run2(e, a, foreign, &result),
              "argument 1: its buffer belongs to another client");
  // Closing comes first, the buffer last.
  cx_pjrt_client_close(other);
  xla_check_floats(foreign, 4, 1, 1);
  cx_pjrt_buffer_release(foreign);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

void test_any_device(void **state)
{
  (void)state;
  xla_uniform u;
  cx_pjrt_compile_options options = { .any_device = true };
  cx_pjrt_executable *e =
      xla_compile(BINARY("add", "tensor<4xf32>"), &options,
                  xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2));
  for (size_t device = 0; device < XLA_DEVICES; device++) {
    cx_pjrt_buffer *a = xla_floats(device, 4, 1);
    cx_pjrt_buffer *args[] = { a, a };
    cx_pjrt_buffer *result = NULL;
    CHECK_OK(cx_pjrt_execute(e, device, args, 2, &result, NULL));
    assert_int_equal(cx_pjrt_buffer_device(result), device);
    xla_check_floats(result, 4, 2, 2);
    cx_pjrt_buffer_release(result);
    cx_pjrt_buffer_release(a);
  }
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute_all(e, NULL, 0, NULL, NULL), "any device");
  cx_pjrt_executable_release(e);
}

void test_chosen_device(void **state)
{
  (void)state;
  xla_uniform u;
  int64_t third = 2;
  cx_pjrt_compile_options options = { .devices = &third };
  cx_pjrt_executable *e =
      xla_compile(BINARY("add", "tensor<4xf32>"), &options,
                  xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2));
  cx_pjrt_buffer *a = xla_floats(2, 4, 1);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(cx_pjrt_execute(e, 2, args, 2, &result, NULL));
  xla_check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

// Inputs and program may go while the work is under way.
void test_release_while_running(void **state)
{
  (void)state;
  static const char text[] = PROGRAM(
      "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>",
      ", arg_attrs = [{tf.aliasing_output = 0 : i32}, {}]",
      "  ^bb0(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>):\n"
      "    %0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
      "#stablehlo.dot<lhs_contracting_dimensions = [1], "
      "rhs_contracting_dimensions = [0]>}> : (tensor<256x256xf32>, "
      "tensor<256x256xf32>) -> tensor<256x256xf32>\n"
      "    \"func.return\"(%0) : (tensor<256x256xf32>) -> ()\n");
  xla_uniform u;
  xla_like(&u, xla_shape(CALX_F32, 2, 256, 256), 2);
  u.donated[0] = true;
  cx_pjrt_executable *e = xla_compile(text, NULL, &u.signature);
  float *data = cx_calloc(256 * 256, sizeof *data);
  for (size_t i = 0; i < 256; i++) data[i * 257] = 1;  // the unit matrix
  cx_pjrt_buffer *x = xla_upload(0, &u.shapes[0], data);
  for (int step = 0; step < 50; step++) {
    cx_pjrt_buffer *unit = xla_upload(0, &u.shapes[0], data);
    cx_pjrt_buffer *args[] = { x, unit };
    cx_pjrt_buffer *result = NULL;
    CHECK_OK(cx_pjrt_execute(e, 0, args, 2, &result, NULL));
    cx_pjrt_buffer_release(unit);
    cx_pjrt_buffer_release(x);
    x = result;
  }
  cx_pjrt_executable_release(e);
  float *back = cx_alloc(256 * 256 * sizeof *back);
  CHECK_OK(cx_pjrt_buffer_to_host(x, back, 256 * 256 * sizeof *back));
  assert_memory_equal(back, data, 256 * 256 * sizeof *back);
  cx_pjrt_buffer_release(x);
  cx_free(back);
  cx_free(data);
}

static void note_ready(void *user, calx_status *status)
{
  if (status == NULL) atomic_fetch_add((atomic_int *)user, 1);
  calx_status_free(status);
}

void test_events(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(false);
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_event *done = NULL;
  atomic_int ready = 0;
  CHECK_OK(cx_pjrt_execute(e, 0, args, 2, &result, &done));
  CHECK_OK(cx_pjrt_event_on_ready(done, note_ready, &ready));
  cx_pjrt_event_free(done);
  xla_wait_for(&ready);
  float out[4];
  CHECK_OK(cx_pjrt_buffer_to_host_async(result, out, sizeof out, &done));
  CHECK_OK(cx_pjrt_event_await(done));
  assert_true(out[3] == 8);
  CHECK_OK(cx_pjrt_event_on_ready(done, note_ready, &ready));
  while (atomic_load(&ready) < 2) usleep(1000);
  cx_pjrt_event_free(done);
  assert_int_equal(atomic_load(&ready), 2);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

// ---- replicas ----

static cx_pjrt_executable *compile_all_reduce(void)
{
  xla_uniform u;
  cx_pjrt_compile_options options = { .num_replicas = XLA_DEVICES };
  return xla_compile(ALL_REDUCE_4("tensor<4xf32>"), &options,
                     xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 1));
}

void test_all_reduce_in_one_call(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_all_reduce();
  cx_pjrt_buffer *args[XLA_DEVICES];
  cx_pjrt_buffer *results[XLA_DEVICES];
  cx_pjrt_event *done[XLA_DEVICES];
  for (size_t r = 0; r < XLA_DEVICES; r++) args[r] = xla_floats(r, 4, (float)r);
  for (int step = 0; step < 20; step++) {
    CHECK_OK(cx_pjrt_execute_all(e, args, XLA_DEVICES, results, done));
    for (size_t r = 0; r < XLA_DEVICES; r++) {
      CHECK_OK(cx_pjrt_event_await(done[r]));
      cx_pjrt_event_free(done[r]);
      assert_int_equal(cx_pjrt_buffer_device(results[r]), r);
      xla_check_floats(results[r], 4, 6, 4);
      cx_pjrt_buffer_release(results[r]);
    }
  }
  cx_pjrt_buffer *swap = args[1];
  args[1] = args[2];
  args[2] = swap;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute_all(e, args, XLA_DEVICES, results, NULL),
              "replica 1, argument 0: wants a buffer on device 1");
  for (size_t r = 0; r < XLA_DEVICES; r++) cx_pjrt_buffer_release(args[r]);
  cx_pjrt_executable_release(e);
}

typedef struct rank {
  cx_pjrt_executable *e;
  size_t device;
  bool right;
} rank;

static void run_rank(void *user)
{
  rank *r = user;
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, 4, 0);
  float one[] = { 1, 1, 1, 1 };
  cx_pjrt_buffer *x = NULL;
  calx_status *status = cx_pjrt_buffer_from_host(xla_client, r->device, &s, one,
                                                 CX_PJRT_COPY, NULL, NULL, &x);
  for (int step = 0; step < 10 && status == NULL; step++) {
    cx_pjrt_buffer *y = NULL;
    status = cx_pjrt_execute(r->e, r->device, &x, 1, &y, NULL);
    cx_pjrt_buffer_release(x);
    x = y;
  }
  float out[4] = { 0 };
  if (status == NULL) status = cx_pjrt_buffer_to_host(x, out, sizeof out);
  r->right = status == NULL && out[0] == 1048576.0F;  // 4 to the 10th
  cx_pjrt_buffer_release(x);
  calx_status_free(status);
}

void test_all_reduce_with_threads(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_all_reduce();
  rank ranks[XLA_DEVICES];
  cx_thread threads[XLA_DEVICES] = { 0 };
  for (size_t r = 0; r < XLA_DEVICES; r++) {
    ranks[r] = (rank){ .e = e, .device = r };
    CHECK_OK(cx_thread_start(&threads[r], run_rank, &ranks[r]));
  }
  for (size_t r = 0; r < XLA_DEVICES; r++) cx_thread_join(&threads[r]);
  for (size_t r = 0; r < XLA_DEVICES; r++) assert_true(ranks[r].right);
  cx_pjrt_executable_release(e);
}
