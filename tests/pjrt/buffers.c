// buffers: clients, transfers and events, on the fake plugin, whose thread can
// be held: what happens before and after a transfer is not left to chance.
#include "fixture.h"

// ---- clients ----

static void test_client(void **state)
{
  (void)state;
  assert_string_equal(cx_pjrt_client_platform(client), "fake");
  assert_string_equal(cx_pjrt_client_platform_version(client), "one");
  assert_int_equal(cx_pjrt_client_device_count(client), FIXTURE_DEVICES);
  for (size_t i = 0; i < FIXTURE_DEVICES; i++) {
    assert_int_equal(cx_pjrt_client_device(client, i)->id, 10 + i);
    assert_string_equal(cx_pjrt_client_device(client, i)->kind, "pebble");
    assert_int_equal(cx_pjrt_client_device(client, i)->n_memories, 1);
    assert_string_equal(cx_pjrt_client_device(client, i)->memories[0],
                        "device");
  }
  assert_string_equal(cx_pjrt_client_device(client, 3)->text, "Fake(id=13)");
  cx_pjrt_memory_stats stats;
  CHECK_OK(cx_pjrt_device_memory_stats(client, 1, &stats));
  assert_int_equal(stats.bytes_in_use, 1000);
  assert_int_equal(stats.peak_bytes_in_use, 2000);
  assert_int_equal(stats.bytes_limit, -1);  // told, but not said to be set
  fixture_set("null=PJRT_Device_MemoryStats");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_device_memory_stats(client, 1, &stats),
              "PJRT_Device_MemoryStats", "fake_pjrt.so", "0.114");
}

static void test_no_devices(void **state)
{
  (void)state;
  cx_pjrt_client *c = NULL;
  fixture_set("devices=0");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_client_open(plugin, NULL, &c),
              "no usable device");
  fixture_set("devices=1;fail=PJRT_Client_Create@1:5:no chip found");
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_client_open(plugin, NULL, &c),
              "PJRT_Client_Create", "fake_pjrt.so", "no chip found");
  fixture_set("fail=PJRT_Client_Create@1:99:an odd code");
  CHECK_FAILS(CALX_UNKNOWN, cx_pjrt_client_open(plugin, NULL, &c),
              "an odd code");
  assert_null(c);
}

// The client's object lives until its last buffer is gone.
static void test_close_before_the_buffers(void **state)
{
  (void)state;
  cx_pjrt_client *c = NULL;
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &c));
  cx_pjrt_shape s = vector(1);
  float in = 3;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(
      cx_pjrt_buffer_from_host(c, 0, &s, &in, CX_PJRT_COPY, NULL, NULL, &b));
  cx_pjrt_client_close(c);
  check_floats(b, 1, 3);
  cx_pjrt_buffer_release(b);
  cx_pjrt_client_close(NULL);
}

// ---- shapes ----

static void test_types(void **state)
{
  (void)state;
  for (int d = CALX_BOOL; d <= CALX_C128; d++) {
    int type = cx_pjrt_type_of((calx_dtype)d);
    assert_int_not_equal(type, 0);
    assert_int_equal(cx_pjrt_dtype_of(type), d);
    assert_string_equal(cx_pjrt_type_name(type),
                        calx_dtype_name((calx_dtype)d));
    assert_int_equal(cx_pjrt_type_bytes(type), calx_dtype_size((calx_dtype)d));
  }
  assert_int_equal(cx_pjrt_type_of(CALX_DTYPE_DEFAULT), 0);
  assert_int_equal(cx_pjrt_dtype_of(PJRT_Buffer_Type_S4), CALX_DTYPE_DEFAULT);
  assert_int_equal(cx_pjrt_dtype_of(-1), CALX_DTYPE_DEFAULT);
  assert_int_equal(cx_pjrt_dtype_of(10000), CALX_DTYPE_DEFAULT);
  int64_t dims[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
  cx_pjrt_shape s;
  assert_true(cx_pjrt_shape_make(CALX_F32, dims, 8, &s));
  assert_false(cx_pjrt_shape_make(CALX_F32, dims, 9, &s));
  assert_true(cx_pjrt_shape_make(CALX_F32, NULL, 0, &s));
}

static calx_status *upload_shape(const cx_pjrt_shape *s, const void *data)
{
  cx_pjrt_buffer *b = NULL;
  calx_status *status = cx_pjrt_buffer_from_host(client, 0, s, data,
                                                 CX_PJRT_COPY, NULL, NULL, &b);
  cx_pjrt_buffer_release(b);
  return status;
}

static void test_bad_shapes(void **state)
{
  (void)state;
  long calls = plugin_control.calls("PJRT_Client_BufferFromHostBuffer");
  float data = 1;
  cx_pjrt_shape s = vector(-1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, upload_shape(&s, &data), "f32[-1]");
  s = (cx_pjrt_shape){ .type = PJRT_Buffer_Type_F32,
                       .rank = 3,
                       .dims = { INT64_MAX, INT64_MAX, 2 } };
  CHECK_FAILS(CALX_INVALID_ARGUMENT, upload_shape(&s, &data), "f32[92233720");
  s = (cx_pjrt_shape){ .type = PJRT_Buffer_Type_F32, .rank = 99 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT, upload_shape(&s, &data), "99");
  s = (cx_pjrt_shape){ .type = 77 };
  CHECK_FAILS(CALX_UNIMPLEMENTED, upload_shape(&s, &data), "77");
  s = (cx_pjrt_shape){ .type = -7 };
  CHECK_FAILS(CALX_UNIMPLEMENTED, upload_shape(&s, &data), "-7");
  s = (cx_pjrt_shape){ .type = PJRT_Buffer_Type_TOKEN };
  CHECK_FAILS(CALX_INVALID_ARGUMENT, upload_shape(&s, &data), "token[]");
  s = vector(1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, upload_shape(&s, NULL), "no data");
  cx_pjrt_buffer *b = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_buffer_from_host(client, 4, &s, &data, CX_PJRT_COPY, NULL,
                                       NULL, &b),
              "device 4", "has 4");
  fixture_set("minor=113");
  s = (cx_pjrt_shape){ .type = PJRT_Buffer_Type_F6E2M3FN };
  CHECK_FAILS(CALX_UNIMPLEMENTED, upload_shape(&s, &data), "f6e2m3fn", "0.113");
  assert_int_equal(plugin_control.calls("PJRT_Client_BufferFromHostBuffer"),
                   calls);
}

// ---- uploads ----

static void test_copy(void **state)
{
  (void)state;
  fixture_set("async=1");
  cx_pjrt_shape s = vector(4);
  float data[] = { 1, 2, 3, 4 };
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 2, &s, data, CX_PJRT_COPY, count,
                                    &done, &b));
  assert_int_equal(atomic_load(&done), 1);
  memset(data, 0, sizeof data);
  check_floats(b, 4, 1);
  assert_int_equal(cx_pjrt_buffer_device(b), 2);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
}

static void test_borrow(void **state)
{
  (void)state;
  fixture_set("async=1;hold=1");
  cx_pjrt_shape s = vector(4);
  float data[] = { 1, 2, 3, 4 };
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_BORROW, count,
                                    &done, &b));
  assert_int_equal(atomic_load(&done), 0);
  assert_false(cx_pjrt_buffer_is_ready(b));
  data[0] = 5;  // not read yet
  fixture_set("hold=0");
  wait_until(&done, 1);
  CHECK_OK(cx_pjrt_buffer_await(b));
  assert_true(cx_pjrt_buffer_is_ready(b));
  float back[4];
  CHECK_OK(cx_pjrt_buffer_to_host(b, back, sizeof back));
  assert_true(back[0] == 5);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
}

// The buffer may go before the transfer: done comes all the same.
static void test_release_before_the_transfer(void **state)
{
  (void)state;
  fixture_set("async=1;hold=1");
  cx_pjrt_shape s = vector(4);
  float data[] = { 1, 2, 3, 4 };
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_BORROW, count,
                                    &done, &b));
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 0);
  fixture_set("hold=0");
  wait_until(&done, 1);
}

static void test_zero_copy(void **state)
{
  (void)state;
  cx_pjrt_shape s = vector(16);
  float *data = aligned_alloc(64, 16 * sizeof *data);
  for (int i = 0; i < 16; i++) data[i] = (float)i;
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                    count, &done, &b));
  data[0] = 9;
  float back[16];
  CHECK_OK(cx_pjrt_buffer_to_host(b, back, sizeof back));
  assert_true(back[0] == 9);
  cx_pjrt_buffer_retain(b);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 0);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
  free(data);
}

// What cannot be kept is copied: where the plugin refuses, and where nobody
// would hear of the end.
static void test_zero_copy_falls_back(void **state)
{
  (void)state;
  static const char *const reasons[] = {
    "fail=PJRT_Client_BufferFromHostBuffer@1:12:no zero copy",
    "null=PJRT_Event_OnReady",
  };
  float *data = aligned_alloc(64, 16 * sizeof *data);
  for (size_t i = 0; i < 2; i++) {
    fixture_set("reset");
    fixture_set(reasons[i]);
    for (int k = 0; k < 16; k++) data[k] = (float)k;
    cx_pjrt_shape s = vector(16);
    atomic_int done = 0;
    cx_pjrt_buffer *b = NULL;
    CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                      count, &done, &b));
    assert_int_equal(atomic_load(&done), 1);
    data[0] = 9;
    check_floats(b, 16, 0);
    cx_pjrt_buffer_release(b);
    assert_int_equal(atomic_load(&done), 1);
  }
  free(data);
}

static void check_failed_upload(cx_pjrt_upload mode, const char *settings,
                                calx_code code, const char *text)
{
  fixture_set("reset;async=1");
  fixture_set(settings);
  _Alignas(64) float data[16] = { 0 };
  cx_pjrt_shape s = vector(16);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_FAILS(
      code,
      cx_pjrt_buffer_from_host(client, 0, &s, data, mode, count, &done, &b),
      text);
  assert_null(b);
  assert_int_equal(atomic_load(&done), 1);
}

static void test_failed_uploads_are_done_too(void **state)
{
  (void)state;
  static const cx_pjrt_upload modes[] = { CX_PJRT_COPY, CX_PJRT_BORROW,
                                          CX_PJRT_ZERO_COPY };
  for (size_t i = 0; i < 3; i++) {
    check_failed_upload(modes[i],
                        "fail=PJRT_Client_BufferFromHostBuffer@1:8:full;"
                        "fail=PJRT_Client_BufferFromHostBuffer@2:8:full",
                        CALX_RESOURCE_EXHAUSTED, "full");
    check_failed_upload(modes[i], "lose=output", CALX_INTERNAL,
                        "returned no buffer");
    check_failed_upload(modes[i], "null=PJRT_Client_BufferFromHostBuffer",
                        CALX_UNIMPLEMENTED, "PJRT_Client_BufferFromHostBuffer");
  }
  check_failed_upload(CX_PJRT_BORROW, "fail=PJRT_Event_OnReady@1:13:deaf",
                      CALX_INTERNAL, "deaf");
  check_failed_upload(CX_PJRT_ZERO_COPY, "fail=PJRT_Event_OnReady@1:13:deaf",
                      CALX_INTERNAL, "deaf");
  fixture_set("reset");
  cx_pjrt_shape s = vector(1);
  cx_pjrt_buffer *b = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_buffer_from_host(client, 0, &s, "abcd", CX_PJRT_BORROW,
                                       NULL, NULL, &b),
              "done");
}

// A plugin that gives no event is done at once.
static void test_upload_without_event(void **state)
{
  (void)state;
  fixture_set("lose=event");
  cx_pjrt_shape s = vector(4);
  float data[] = { 1, 2, 3, 4 };
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_BORROW, count,
                                    &done, &b));
  assert_int_equal(atomic_load(&done), 1);
  cx_pjrt_buffer_release(b);
}

// ---- downloads ----

static void test_to_host(void **state)
{
  (void)state;
  cx_pjrt_buffer *b = floats(0, 4, 1);
  float out[5];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_buffer_to_host(b, out, sizeof out),
              "reading f32[4] wants 16 bytes, got room for 20");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_buffer_to_host(b, out, 12),
              "room for 12");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_buffer_to_host(b, NULL, 16),
              "room for 0");
  fixture_set("fail=PJRT_Buffer_ToHostBuffer@1:14:gone fishing");
  CHECK_FAILS(CALX_UNAVAILABLE, cx_pjrt_buffer_to_host(b, out, 16),
              "PJRT_Buffer_ToHostBuffer", "gone fishing");
  cx_pjrt_event *e = NULL;
  fixture_set("lose=event");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_buffer_to_host_async(b, out, 16, &e),
              "returned no event");
  assert_null(e);
  cx_pjrt_buffer_release(b);
}

// Whatever order the device keeps, the host gets rows first.
static void test_rows_first(void **state)
{
  (void)state;
  int64_t dims[] = { 2, 3, 2 };
  cx_pjrt_shape s;
  assert_true(cx_pjrt_shape_make(CALX_I32, dims, 3, &s));
  int32_t in[12];
  int32_t out[12] = { 0 };
  for (int i = 0; i < 12; i++) in[i] = i;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, in, CX_PJRT_COPY, NULL, NULL,
                                    &b));
  CHECK_OK(cx_pjrt_buffer_to_host(b, out, sizeof out));
  assert_memory_equal(in, out, sizeof in);
  cx_pjrt_buffer_release(b);
}

static void test_to_host_async(void **state)
{
  (void)state;
  cx_pjrt_buffer *b = floats(0, 4, 1);
  fixture_set("async=1;hold=1");
  float out[4] = { 0 };
  cx_pjrt_event *e = NULL;
  CHECK_OK(cx_pjrt_buffer_to_host_async(b, out, sizeof out, &e));
  cx_pjrt_buffer_release(b);
  assert_false(cx_pjrt_event_is_ready(e));
  fixture_set("hold=0");
  CHECK_OK(cx_pjrt_event_await(e));
  assert_true(cx_pjrt_event_is_ready(e));
  assert_true(out[3] == 4);
  cx_pjrt_event_free(e);
  cx_pjrt_event_free(NULL);
}

static void test_copy_to_device(void **state)
{
  (void)state;
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_copy_to_device(a, 2, &b));
  assert_int_equal(cx_pjrt_buffer_device(b), 2);
  check_floats(b, 4, 1);
  cx_pjrt_buffer_release(b);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_buffer_copy_to_device(a, 9, &b),
              "device 9");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_buffer_copy_to_device(a, 0, &b),
              "PJRT_Buffer_CopyToDevice", "the same device");
  fixture_set("lose=output");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_buffer_copy_to_device(a, 2, &b),
              "returned no buffer");
  assert_null(b);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(NULL);
}

// ---- events ----

typedef struct ending {
  atomic_int calls;
  calx_code code;
} ending;

static void note_ending(void *user, calx_status *status)
{
  ending *e = user;
  e->code = calx_status_code(status);
  calx_status_free(status);
  atomic_fetch_add(&e->calls, 1);
}

static void test_on_ready(void **state)
{
  (void)state;
  cx_pjrt_buffer *b = floats(0, 4, 1);
  fixture_set("async=1;hold=1");
  float out[4] = { 0 };
  cx_pjrt_event *e = NULL;
  ending endings[2] = { 0 };
  CHECK_OK(cx_pjrt_buffer_to_host_async(b, out, sizeof out, &e));
  CHECK_OK(cx_pjrt_event_on_ready(e, note_ending, &endings[0]));
  CHECK_OK(cx_pjrt_event_on_ready(e, note_ending, &endings[1]));
  cx_pjrt_event_free(e);  // does not cancel
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&endings[0].calls), 0);
  fixture_set("hold=0");
  for (int i = 0; i < 2; i++) {
    wait_until(&endings[i].calls, 1);
    assert_int_equal(endings[i].code, CALX_OK);
  }
  cx_pjrt_client_close(client);  // joins the thread: nothing comes later
  client = NULL;
  assert_int_equal(atomic_load(&endings[0].calls), 1);
  assert_int_equal(atomic_load(&endings[1].calls), 1);
}

static void test_on_ready_at_once(void **state)
{
  (void)state;
  cx_pjrt_buffer *b = floats(0, 4, 1);
  float out[4];
  cx_pjrt_event *e = NULL;
  ending ended = { 0 };
  CHECK_OK(cx_pjrt_buffer_to_host_async(b, out, sizeof out, &e));
  CHECK_OK(cx_pjrt_event_on_ready(e, note_ending, &ended));
  assert_int_equal(atomic_load(&ended.calls), 1);
  fixture_set("fail=PJRT_Event_OnReady@1:13:deaf");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_event_on_ready(e, note_ending, &ended),
              "PJRT_Event_OnReady");
  assert_int_equal(atomic_load(&ended.calls), 1);  // not by a failed call
  fixture_set("fail=PJRT_Event_IsReady@1:13:blind");
  assert_true(cx_pjrt_event_is_ready(e));
  fixture_set("fail=PJRT_Event_Await@1:13:impatient");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_event_await(e), "impatient");
  CHECK_OK(cx_pjrt_event_await(e));
  cx_pjrt_event_free(e);
  cx_pjrt_buffer_release(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FIXTURE_TEST(test_client),
    FIXTURE_TEST(test_no_devices),
    FIXTURE_TEST(test_close_before_the_buffers),
    FIXTURE_TEST(test_types),
    FIXTURE_TEST(test_bad_shapes),
    FIXTURE_TEST(test_copy),
    FIXTURE_TEST(test_borrow),
    FIXTURE_TEST(test_release_before_the_transfer),
    FIXTURE_TEST(test_zero_copy),
    FIXTURE_TEST(test_zero_copy_falls_back),
    FIXTURE_TEST(test_failed_uploads_are_done_too),
    FIXTURE_TEST(test_upload_without_event),
    FIXTURE_TEST(test_to_host),
    FIXTURE_TEST(test_rows_first),
    FIXTURE_TEST(test_to_host_async),
    FIXTURE_TEST(test_copy_to_device),
    FIXTURE_TEST(test_on_ready),
    FIXTURE_TEST(test_on_ready_at_once),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
