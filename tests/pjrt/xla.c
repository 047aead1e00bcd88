// xla: the client against real plugins, XLA's CPU plugin in two builds.
//
// Without an argument each build is tested in a process of its own (two copies
// of XLA in one process share symbols); one that is not installed is listed.
// With an argument: that plugin's path.
#include <math.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "check.h"
#include "pjrt/internal.h"
#include "programs.h"

#define N_DEVICES 4

static cx_pjrt_plugin *plugin;
static cx_pjrt_client *client;  // of four devices, for each test

static int open_client(void **state)
{
  (void)state;
  cx_pjrt_client_options options = { .device_count = N_DEVICES };
  CHECK_OK(cx_pjrt_client_open(plugin, &options, &client));
  return 0;
}

static int close_client(void **state)
{
  cx_pjrt_client_close(client);
  client = NULL;
  return check_nothing_left(state);
}

#define XLA_TEST(function) \
  cmocka_unit_test_setup_teardown(function, open_client, close_client)

// ---- shapes, buffers and programs ----

static cx_pjrt_shape shape(calx_dtype d, size_t rank, int64_t a, int64_t b)
{
  cx_pjrt_shape s;
  assert_true(cx_pjrt_shape_make(d, (int64_t[]){ a, b }, rank, &s));
  return s;
}

static cx_pjrt_buffer *upload(size_t device, const cx_pjrt_shape *s,
                              const void *data)
{
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, device, s, data, CX_PJRT_COPY, NULL,
                                    NULL, &b));
  return b;
}

static cx_pjrt_buffer *floats(size_t device, size_t n, float first)
{
  cx_pjrt_shape s = shape(CALX_F32, 1, (int64_t)n, 0);
  float *data = cx_alloc(n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = first + (float)i;
  cx_pjrt_buffer *b = upload(device, &s, data);
  cx_free(data);
  return b;
}

static void check_floats(cx_pjrt_buffer *b, size_t n, float first, float step)
{
  float *data = cx_alloc(n * sizeof *data);
  CHECK_OK(cx_pjrt_buffer_to_host(b, data, n * sizeof *data));
  for (size_t i = 0; i < n; i++) {
    assert_float_equal(data[i], first + step * (float)i, 0.0F);
  }
  cx_free(data);
}

// A signature of equal shapes.
typedef struct uniform {
  cx_pjrt_shape shapes[4];
  bool donated[4];
  cx_pjrt_signature signature;
} uniform;

static const cx_pjrt_signature *like(uniform *u, cx_pjrt_shape s,
                                     size_t n_params)
{
  *u = (uniform){ .shapes = { s, s, s, s } };
  u->signature = (cx_pjrt_signature){ .params = u->shapes,
                                      .donated = u->donated,
                                      .n_params = n_params,
                                      .results = u->shapes,
                                      .n_results = 1 };
  return &u->signature;
}

static cx_pjrt_executable *compile(const char *text,
                                   const cx_pjrt_compile_options *options,
                                   const cx_pjrt_signature *signature)
{
  cx_pjrt_executable *e = NULL;
  CHECK_OK(cx_pjrt_compile(client, text, strlen(text), options, signature, &e));
  return e;
}

static cx_pjrt_executable *compile_add(size_t n_params_donated)
{
  uniform u;
  like(&u, shape(CALX_F32, 1, 4, 0), 2);
  u.donated[0] = n_params_donated > 0;
  return compile(n_params_donated > 0 ? DONATING_ADD("tensor<4xf32>")
                                      : BINARY("add", "tensor<4xf32>"),
                 NULL, &u.signature);
}

static calx_status *run2(cx_pjrt_executable *e, cx_pjrt_buffer *a,
                         cx_pjrt_buffer *b, cx_pjrt_buffer **out)
{
  cx_pjrt_buffer *args[] = { a, b };
  return cx_pjrt_execute(e, 0, args, 2, out, NULL);
}

// ---- devices ----

static void test_devices(void **state)
{
  (void)state;
  assert_string_equal(cx_pjrt_client_platform(client), "cpu");
  assert_string_equal(cx_pjrt_client_platform_version(client), "cpu");
  assert_ptr_equal(cx_pjrt_client_plugin(client), plugin);
  assert_int_equal(cx_pjrt_client_device_count(client), N_DEVICES);
  for (size_t i = 0; i < N_DEVICES; i++) {
    assert_int_equal(cx_pjrt_device_id(client, i), i);
    assert_string_equal(cx_pjrt_device_kind(client, i), "cpu");
    assert_true(strlen(cx_pjrt_device_text(client, i)) > 0);
    size_t n = cx_pjrt_device_memory_count(client, i);
    assert_true(n >= 1);
    bool found = false;
    for (size_t m = 0; m < n; m++) {
      const char *kind = cx_pjrt_device_memory_kind(client, i, m);
      if (strcmp(kind, "device") == 0) found = true;
    }
    assert_true(found);
  }
}

static void test_description(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_pjrt_plugin_describe(plugin, &text);
  assert_non_null(strstr(cx_text_str(&text), "xla_version = 2\n"));
  assert_non_null(strstr(cx_text_str(&text), "stablehlo_current_version = 1."));
  cx_text_free(&text);
  int major = -1;
  int minor = -1;
  cx_pjrt_plugin_version(plugin, &major, &minor);
  assert_int_equal(major, 0);
  assert_true(minor >= 81);
  cx_hash a;
  cx_hash b;
  CHECK_OK(cx_pjrt_plugin_hash(plugin, &a));
  CHECK_OK(cx_pjrt_plugin_hash(plugin, &b));
  assert_true(cx_hash_equal(a, b));
  assert_true(a.low != 0 || a.high != 0);
}

static void test_memory_stats(void **state)
{
  (void)state;
  cx_pjrt_memory_stats stats;
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_device_memory_stats(client, 0, &stats),
              "PJRT_Device_MemoryStats", cx_pjrt_plugin_name(plugin));
  assert_int_equal(stats.bytes_in_use, -1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_device_memory_stats(client, 9, &stats), "device 9",
              "has 4");
}

static void test_device_count_from_environment(void **state)
{
  (void)state;
  cx_pjrt_client *c = NULL;
  unsetenv("CPU_NUM_DEVICES");
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &c));
  assert_int_equal(cx_pjrt_client_device_count(c), 1);
  cx_pjrt_client_close(c);
  setenv("CPU_NUM_DEVICES", "3", 1);
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &c));
  assert_int_equal(cx_pjrt_client_device_count(c), 3);
  cx_pjrt_client_close(c);
  unsetenv("CPU_NUM_DEVICES");
}

// ---- transfers ----

// Every bit pattern that a type has on the host comes back as it went. Which
// types a build cannot move is listed.
static bool build_lacks(int type)
{
  static const int both[] = { PJRT_Buffer_Type_F4E2M1FN, PJRT_Buffer_Type_S1,
                              PJRT_Buffer_Type_U1, PJRT_Buffer_Type_F6E2M3FN,
                              PJRT_Buffer_Type_F6E3M2FN };
  for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
    if (both[i] == type) return true;
  }
  return false;
}

static unsigned char pattern(int type, size_t i)
{
  switch (type) {
    case PJRT_Buffer_Type_PRED: return i % 2;
    case PJRT_Buffer_Type_S4:
    case PJRT_Buffer_Type_U4: return i % 16;
    case PJRT_Buffer_Type_S2:
    case PJRT_Buffer_Type_U2: return i % 4;
    default: return (unsigned char)(37 * i + 11);
  }
}

static void test_transfers(void **state)
{
  (void)state;
  int moved = 0;
  for (int type = 1; type < (int)CX_PJRT_TYPES; type++) {
    size_t bytes = cx_pjrt_type_bytes(type);
    if (bytes == 0 || build_lacks(type)) continue;
    cx_pjrt_shape s = { .type = type, .rank = 2, .dims = { 3, 5 } };
    unsigned char in[15 * 16];
    unsigned char out[15 * 16] = { 0 };
    for (size_t i = 0; i < 15 * bytes; i++) in[i] = pattern(type, i);
    cx_pjrt_buffer *b = NULL;
    calx_status *status = cx_pjrt_buffer_from_host(
        client, 1, &s, in, CX_PJRT_COPY, NULL, NULL, &b);
    if (status != NULL) print_message("type %s\n", cx_pjrt_type_name(type));
    CHECK_OK(status);
    size_t size = 0;
    CHECK_OK(cx_pjrt_buffer_host_size(b, &size));
    assert_int_equal(size, 15 * bytes);
    CHECK_OK(cx_pjrt_buffer_to_host(b, out, size));
    if (memcmp(in, out, size) != 0) {
      fail_msg("type %s changed on its way", cx_pjrt_type_name(type));
    }
    assert_int_equal(cx_pjrt_buffer_device(b), 1);
    cx_pjrt_buffer_release(b);
    moved++;
  }
  print_message("transfers: %d types\n", moved);
  assert_true(moved >= 20);
}

static void test_small_shapes(void **state)
{
  (void)state;
  cx_pjrt_shape scalar = shape(CALX_F64, 0, 0, 0);
  double in = 2.5;
  double out = 0;
  cx_pjrt_buffer *b = upload(0, &scalar, &in);
  CHECK_OK(cx_pjrt_buffer_to_host(b, &out, sizeof out));
  assert_true(out == 2.5);
  cx_pjrt_buffer_release(b);
  cx_pjrt_shape empty = shape(CALX_F32, 2, 3, 0);
  b = upload(0, &empty, NULL);
  size_t size = 1;
  CHECK_OK(cx_pjrt_buffer_host_size(b, &size));
  assert_int_equal(size, 0);
  CHECK_OK(cx_pjrt_buffer_to_host(b, NULL, 0));
  cx_pjrt_event *event = NULL;
  CHECK_OK(cx_pjrt_buffer_to_host_async(b, NULL, 0, &event));
  CHECK_OK(cx_pjrt_event_await(event));
  cx_pjrt_event_free(event);
  cx_pjrt_buffer_release(b);
}

static void count_done(void *user)
{
  atomic_fetch_add((atomic_int *)user, 1);
}

static void wait_for(atomic_int *count)
{
  while (atomic_load(count) == 0) usleep(1000);
}

static void test_zero_copy(void **state)
{
  (void)state;
  size_t n = 4096;
  float *data = aligned_alloc(64, n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = (float)i;
  cx_pjrt_shape s = shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                    count_done, &done, &b));
  CHECK_OK(cx_pjrt_buffer_await(b));
  check_floats(b, n, 0, 1);
  assert_int_equal(atomic_load(&done), 0);
  data[0] = 5;  // aliased: the device sees it
  float *back = cx_alloc(n * sizeof *back);
  CHECK_OK(cx_pjrt_buffer_to_host(b, back, n * sizeof *back));
  assert_true(back[0] == 5);
  cx_free(back);
  cx_pjrt_buffer_release(b);
  wait_for(&done);
  assert_int_equal(atomic_load(&done), 1);
  free(data);
}

static void test_zero_copy_unaligned(void **state)
{
  (void)state;
  size_t n = 4096;
  float *room = aligned_alloc(64, (n + 16) * sizeof *room);
  float *data = room + 1;
  for (size_t i = 0; i < n; i++) data[i] = (float)i;
  cx_pjrt_shape s = shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                    count_done, &done, &b));
  wait_for(&done);
  memset(data, 0, n * sizeof *data);
  check_floats(b, n, 0, 1);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
  free(room);
}

static void test_borrow(void **state)
{
  (void)state;
  size_t n = 1 << 20;
  float *data = cx_alloc(n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = 3.0F;
  cx_pjrt_shape s = shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 2, &s, data, CX_PJRT_BORROW,
                                    count_done, &done, &b));
  wait_for(&done);
  memset(data, 0, n * sizeof *data);
  CHECK_OK(cx_pjrt_buffer_to_host(b, data, n * sizeof *data));
  assert_true(data[0] == 3.0F && data[n - 1] == 3.0F);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
  cx_free(data);
}

static void test_copy_between_devices(void **state)
{
  (void)state;
  cx_pjrt_buffer *a = floats(0, 16, 1);
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_copy_to_device(a, 3, &b));
  assert_int_equal(cx_pjrt_buffer_device(b), 3);
  cx_pjrt_buffer_release(a);
  check_floats(b, 16, 1, 1);
  cx_pjrt_buffer_release(b);
}

// ---- compiling ----

static void test_compile_error_has_a_line(void **state)
{
  (void)state;
  static const char text[] =
      PROGRAM("(tensor<4xf32>) -> tensor<4xf32>", "",
              "  ^bb0(%a: tensor<4xf32>):\n"
              "    %0 = \"stablehlo.nonsense\"(%a) : (tensor<4xf32>) -> "
              "tensor<4xf32>\n"
              "    \"func.return\"(%0) : (tensor<4xf32>) -> ()\n");
  uniform u;
  cx_pjrt_executable *e = NULL;
  CHECK_FAILS(CALX_UNKNOWN,
              cx_pjrt_compile(client, text, strlen(text), NULL,
                              like(&u, shape(CALX_F32, 1, 4, 0), 1), &e),
              "PJRT_Client_Compile", ":4:", "nonsense");
  assert_null(e);
}

static void test_signature_is_compared(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  uniform u;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_signature s = *like(&u, shape(CALX_F32, 1, 4, 0), 2);
  u.shapes[0] = shape(CALX_I32, 1, 4, 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), NULL, &s, &e),
              "result 0 is i32 in the signature and f32");
  u.shapes[0] = shape(CALX_F32, 2, 2, 2);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), NULL, &s, &e),
              "result 0 is f32[2,2] in the signature and f32[4]");
  u.shapes[0] = shape(CALX_F32, 1, 4, 0);
  s.n_results = 2;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), NULL, &s, &e),
              "has 1 results", "its signature has 2");
}

static void test_too_many_replicas(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  uniform u;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_compile_options options = { .num_replicas = 5 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), &options,
                              like(&u, shape(CALX_F32, 1, 4, 0), 2), &e),
              "replica 4 wants device 4", "has 4 here");
}

static float max_with_nan(const cx_pjrt_compile_options *options)
{
  uniform u;
  like(&u, shape(CALX_F32, 1, 4, 0), 2);
  cx_pjrt_executable *e =
      compile(BINARY("maximum", "tensor<4xf32>"), options, &u.signature);
  float nans[] = { NAN, NAN, NAN, NAN };
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = upload(0, &u.shapes[0], nans);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(run2(e, a, b, &result));
  float out[4];
  CHECK_OK(cx_pjrt_buffer_to_host(result, out, sizeof out));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  return out[0];
}

static void test_overrides(void **state)
{
  (void)state;
  assert_true(isnan(max_with_nan(NULL)));
  cx_pjrt_override fast = { .name = "xla_cpu_enable_fast_min_max",
                            .type = CX_PJRT_OVERRIDE_BOOL,
                            .int_value = 1 };
  cx_pjrt_compile_options options = { .overrides = &fast, .n_overrides = 1 };
  assert_true(max_with_nan(&options) == 1.0F);  // the user's word wins
  fast.name = "no_such_key";
  uniform u;
  cx_pjrt_executable *e = NULL;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), &options,
                              like(&u, shape(CALX_F32, 1, 4, 0), 2), &e),
              "no_such_key");
}

// ---- executing ----

static void test_add(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(0);
  assert_int_equal(cx_pjrt_executable_result_count(e), 1);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *args[] = { a, b };
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_event *done = NULL;
  CHECK_OK(cx_pjrt_execute(e, 0, args, 2, &result, &done));
  CHECK_OK(cx_pjrt_event_await(done));
  CHECK_OK(cx_pjrt_event_await(done));
  assert_true(cx_pjrt_event_is_ready(done));
  assert_true(cx_pjrt_buffer_is_ready(result));
  check_floats(result, 4, 11, 2);
  assert_false(cx_pjrt_buffer_is_deleted(a));
  cx_pjrt_event_free(done);
  cx_pjrt_buffer_release(result);
  // The same buffer for both is fine when none is donated.
  CHECK_OK(run2(e, a, a, &result));
  check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_executable_release(e);
}

static void test_donation(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(1);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(run2(e, a, b, &result));
  assert_true(cx_pjrt_buffer_is_deleted(a));
  assert_false(cx_pjrt_buffer_is_deleted(b));
  check_floats(result, 4, 11, 2);
  cx_pjrt_buffer *second = NULL;
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run2(e, a, b, &second), "argument 0",
              "f32[4]", "gone");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run2(e, result, a, &second),
              "argument 1", "f32[4]", "gone");
  assert_false(cx_pjrt_buffer_is_deleted(result));  // its claim was given back
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, result, result, &second),
              "argument 1: the same buffer is also argument 0");
  float out[4];
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_to_host(a, out, sizeof out), "gone");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_buffer_await(a), "gone");
  CHECK_OK(run2(e, result, b, &second));
  check_floats(second, 4, 21, 3);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(second);
  cx_pjrt_executable_release(e);
}

static void test_wrong_arguments(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(0);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_shape ints_shape = shape(CALX_I32, 1, 4, 0);
  cx_pjrt_shape square_shape = shape(CALX_F32, 2, 2, 2);
  int32_t numbers[] = { 1, 2, 3, 4 };
  cx_pjrt_buffer *ints = upload(0, &ints_shape, numbers);
  cx_pjrt_buffer *square = upload(0, &square_shape, numbers);
  cx_pjrt_buffer *far = floats(1, 4, 1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, a, ints, &result),
              "argument 1: wants f32[4], got i32[4]");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, square, a, &result),
              "argument 0: wants f32[4], got f32[2,2]");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, a, far, &result),
              "argument 1: wants a buffer on device 0, got one on device 1");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, a, NULL, &result),
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

static void test_two_clients(void **state)
{
  (void)state;
  cx_pjrt_client *other = NULL;
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &other));
  cx_pjrt_executable *e = compile_add(0);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *foreign = NULL;
  cx_pjrt_shape s = shape(CALX_F32, 1, 4, 0);
  float data[] = { 1, 2, 3, 4 };
  CHECK_OK(cx_pjrt_buffer_from_host(other, 0, &s, data, CX_PJRT_COPY, NULL,
                                    NULL, &foreign));
  cx_pjrt_buffer *result = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run2(e, a, foreign, &result),
              "argument 1: its buffer belongs to another client");
  // Closing comes first, the buffer last.
  cx_pjrt_client_close(other);
  check_floats(foreign, 4, 1, 1);
  cx_pjrt_buffer_release(foreign);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

static void test_any_device(void **state)
{
  (void)state;
  uniform u;
  cx_pjrt_compile_options options = { .any_device = true };
  cx_pjrt_executable *e = compile(BINARY("add", "tensor<4xf32>"), &options,
                                  like(&u, shape(CALX_F32, 1, 4, 0), 2));
  for (size_t device = 0; device < N_DEVICES; device++) {
    cx_pjrt_buffer *a = floats(device, 4, 1);
    cx_pjrt_buffer *args[] = { a, a };
    cx_pjrt_buffer *result = NULL;
    CHECK_OK(cx_pjrt_execute(e, device, args, 2, &result, NULL));
    assert_int_equal(cx_pjrt_buffer_device(result), device);
    check_floats(result, 4, 2, 2);
    cx_pjrt_buffer_release(result);
    cx_pjrt_buffer_release(a);
  }
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute_all(e, NULL, 0, NULL, NULL), "any device");
  cx_pjrt_executable_release(e);
}

static void test_chosen_device(void **state)
{
  (void)state;
  uniform u;
  int64_t third = 2;
  cx_pjrt_compile_options options = { .devices = &third };
  cx_pjrt_executable *e = compile(BINARY("add", "tensor<4xf32>"), &options,
                                  like(&u, shape(CALX_F32, 1, 4, 0), 2));
  cx_pjrt_buffer *a = floats(2, 4, 1);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(cx_pjrt_execute(e, 2, args, 2, &result, NULL));
  check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(result);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

// Inputs and program may go while the work is under way.
static void test_release_while_running(void **state)
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
  uniform u;
  like(&u, shape(CALX_F32, 2, 256, 256), 2);
  u.donated[0] = true;
  cx_pjrt_executable *e = compile(text, NULL, &u.signature);
  float *data = cx_calloc(256 * 256, sizeof *data);
  for (size_t i = 0; i < 256; i++) data[i * 257] = 1;  // the unit matrix
  cx_pjrt_buffer *x = upload(0, &u.shapes[0], data);
  for (int step = 0; step < 50; step++) {
    cx_pjrt_buffer *unit = upload(0, &u.shapes[0], data);
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

static void test_events(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(0);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *result = NULL;
  cx_pjrt_event *done = NULL;
  atomic_int ready = 0;
  CHECK_OK(cx_pjrt_execute(e, 0, args, 2, &result, &done));
  CHECK_OK(cx_pjrt_event_on_ready(done, note_ready, &ready));
  cx_pjrt_event_free(done);
  wait_for(&ready);
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
  uniform u;
  cx_pjrt_compile_options options = { .num_replicas = N_DEVICES };
  return compile(ALL_REDUCE_4("tensor<4xf32>"), &options,
                 like(&u, shape(CALX_F32, 1, 4, 0), 1));
}

static void test_all_reduce_in_one_call(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_all_reduce();
  cx_pjrt_buffer *args[N_DEVICES];
  cx_pjrt_buffer *results[N_DEVICES];
  cx_pjrt_event *done[N_DEVICES];
  for (size_t r = 0; r < N_DEVICES; r++) args[r] = floats(r, 4, (float)r);
  for (int step = 0; step < 20; step++) {
    CHECK_OK(cx_pjrt_execute_all(e, args, N_DEVICES, results, done));
    for (size_t r = 0; r < N_DEVICES; r++) {
      CHECK_OK(cx_pjrt_event_await(done[r]));
      cx_pjrt_event_free(done[r]);
      assert_int_equal(cx_pjrt_buffer_device(results[r]), r);
      check_floats(results[r], 4, 6, 4);
      cx_pjrt_buffer_release(results[r]);
    }
  }
  cx_pjrt_buffer *swap = args[1];
  args[1] = args[2];
  args[2] = swap;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute_all(e, args, N_DEVICES, results, NULL),
              "replica 1, argument 0: wants a buffer on device 1");
  for (size_t r = 0; r < N_DEVICES; r++) cx_pjrt_buffer_release(args[r]);
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
  cx_pjrt_shape s = shape(CALX_F32, 1, 4, 0);
  float one[] = { 1, 1, 1, 1 };
  cx_pjrt_buffer *x = NULL;
  calx_status *status = cx_pjrt_buffer_from_host(client, r->device, &s, one,
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

static void test_all_reduce_with_threads(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_all_reduce();
  rank ranks[N_DEVICES];
  cx_thread threads[N_DEVICES] = { 0 };
  for (size_t r = 0; r < N_DEVICES; r++) {
    ranks[r] = (rank){ .e = e, .device = r };
    CHECK_OK(cx_thread_start(&threads[r], run_rank, &ranks[r]));
  }
  for (size_t r = 0; r < N_DEVICES; r++) cx_thread_join(&threads[r]);
  for (size_t r = 0; r < N_DEVICES; r++) assert_true(ranks[r].right);
  cx_pjrt_executable_release(e);
}

// ---- saving ----

static void test_serialize(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(1);
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_executable_serialize(e, &bytes, &size));
  assert_true(size > 0);
  cx_pjrt_executable_release(e);
  uniform u;
  like(&u, shape(CALX_F32, 1, 4, 0), 2);
  u.donated[0] = true;
  CHECK_OK(cx_pjrt_executable_deserialize(client, bytes, size, NULL,
                                          &u.signature, &e));
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 1);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(run2(e, a, b, &result));
  check_floats(result, 4, 2, 2);
  assert_true(cx_pjrt_buffer_is_deleted(a));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  // For a device other than the one it was compiled for.
  int64_t second = 1;
  cx_pjrt_compile_options options = { .devices = &second };
  CHECK_OK(cx_pjrt_executable_deserialize(client, bytes, size, &options,
                                          &u.signature, &e));
  a = floats(1, 4, 1);
  b = floats(1, 4, 1);
  cx_pjrt_buffer *args[] = { a, b };
  CHECK_OK(cx_pjrt_execute(e, 1, args, 2, &result, NULL));
  check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  // Of another type than was saved.
  u.shapes[0] = shape(CALX_I32, 1, 4, 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_executable_deserialize(client, bytes, size, NULL,
                                             &u.signature, &e),
              "result 0 is i32");
  CHECK_FAILS(CALX_INTERNAL,
              cx_pjrt_executable_deserialize(client, bytes, size / 2, NULL,
                                             &u.signature, &e),
              "PJRT_Executable_DeserializeAndLoad");
  CHECK_FAILS(CALX_INTERNAL,
              cx_pjrt_executable_deserialize(client, "rubbish", 7, NULL,
                                             &u.signature, &e),
              "PJRT_Executable_DeserializeAndLoad");
  assert_null(e);
  cx_free(bytes);
}

static void test_executable_memory(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_add(1);
  cx_pjrt_executable_stats stats;
  CHECK_OK(cx_pjrt_executable_memory(e, &stats));
  assert_int_equal(stats.arguments, 32);
  assert_int_equal(stats.outputs, 16);
  assert_int_equal(stats.aliased, 16);
  assert_true(stats.temporaries >= 0);
  cx_pjrt_executable_release(e);
}

// XLA's CPU plugin has no topologies by name.
static void test_no_topology(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  char *bytes = NULL;
  size_t size = 0;
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(plugin, "v5e:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, NULL),
              "PJRT_TopologyDescription_Create", "v5e:2x2");
}

static int test_plugin(const char *path)
{
  calx_status *status = cx_pjrt_plugin_open(path, &plugin);
  if (status != NULL) {
    calx_status_print(stderr, status);
    calx_status_free(status);
    return 1;
  }
  const struct CMUnitTest tests[] = {
    XLA_TEST(test_devices),
    XLA_TEST(test_description),
    XLA_TEST(test_memory_stats),
    XLA_TEST(test_device_count_from_environment),
    XLA_TEST(test_transfers),
    XLA_TEST(test_small_shapes),
    XLA_TEST(test_zero_copy),
    XLA_TEST(test_zero_copy_unaligned),
    XLA_TEST(test_borrow),
    XLA_TEST(test_copy_between_devices),
    XLA_TEST(test_compile_error_has_a_line),
    XLA_TEST(test_signature_is_compared),
    XLA_TEST(test_too_many_replicas),
    XLA_TEST(test_overrides),
    XLA_TEST(test_add),
    XLA_TEST(test_donation),
    XLA_TEST(test_wrong_arguments),
    XLA_TEST(test_two_clients),
    XLA_TEST(test_any_device),
    XLA_TEST(test_chosen_device),
    XLA_TEST(test_release_while_running),
    XLA_TEST(test_events),
    XLA_TEST(test_all_reduce_in_one_call),
    XLA_TEST(test_all_reduce_with_threads),
    XLA_TEST(test_serialize),
    XLA_TEST(test_executable_memory),
    XLA_TEST(test_no_topology),
  };
  return cmocka_run_group_tests_name(path, tests, NULL, NULL);
}

static int run_child(char *self, char *path)
{
  pid_t pid = fork();
  if (pid < 0) return 1;
  if (pid == 0) {
    execv(self, (char *[]){ self, path, NULL });
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return 1;
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "%s: signal %d\n", path, WTERMSIG(status));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
  if (argc > 1) return test_plugin(argv[1]);
  static const char *const builds[][2] = {
    { "xla-cpu-0.106", "libpjrt_cpu.so" },
    { "xla-cpu-0.81", "xla_cpu_pjrt.so" },
  };
  const char *folder = getenv("CALX_PLUGIN_DIR");
  if (folder == NULL) folder = CALX_PLUGIN_DIR_DEFAULT;
  int failed = 0;
  int ran = 0;
  int n = (int)(sizeof builds / sizeof *builds);
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", folder, builds[i][0], builds[i][1]);
    if (!cx_file_exists(path)) {
      printf("skipped: %s is not installed\n", builds[i][0]);
      continue;
    }
    fflush(stdout);
    failed += run_child("/proc/self/exe", path);
    ran++;
  }
  printf("plugins: %d ran, %d skipped\n", ran, n - ran);
  return failed;
}
