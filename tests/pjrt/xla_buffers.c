// xla_buffers: devices and transfers on real plugins.
#include <unistd.h>

#include "xla.h"

// ---- devices ----

void test_devices(void **state)
{
  (void)state;
  assert_string_equal(cx_pjrt_client_platform(xla_client), "cpu");
  assert_string_equal(cx_pjrt_client_platform_version(xla_client), "cpu");
  assert_ptr_equal(cx_pjrt_client_plugin(xla_client), xla_plugin);
  assert_int_equal(cx_pjrt_client_device_count(xla_client), XLA_DEVICES);
  for (size_t i = 0; i < XLA_DEVICES; i++) {
    assert_int_equal(cx_pjrt_client_device(xla_client, i)->id, i);
    assert_string_equal(cx_pjrt_client_device(xla_client, i)->kind, "cpu");
    assert_true(strlen(cx_pjrt_client_device(xla_client, i)->text) > 0);
    size_t n = cx_pjrt_client_device(xla_client, i)->n_memories;
    assert_true(n >= 1);
    bool found = false;
    for (size_t m = 0; m < n; m++) {
      const char *kind = cx_pjrt_client_device(xla_client, i)->memories[m];
      if (strcmp(kind, "device") == 0) found = true;
    }
    assert_true(found);
  }
}

void test_description(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_pjrt_plugin_describe(xla_plugin, &text);
  assert_non_null(strstr(cx_text_str(&text), "xla_version = 2\n"));
  assert_non_null(strstr(cx_text_str(&text), "stablehlo_current_version = 1."));
  cx_text_free(&text);
  int major = -1;
  int minor = -1;
  cx_pjrt_plugin_version(xla_plugin, &major, &minor);
  assert_int_equal(major, 0);
  assert_true(minor >= 81);
  cx_hash a;
  cx_hash b;
  CHECK_OK(cx_pjrt_plugin_hash(xla_plugin, &a));
  CHECK_OK(cx_pjrt_plugin_hash(xla_plugin, &b));
  assert_true(cx_hash_equal(a, b));
  assert_true(a.low != 0 || a.high != 0);
}

void test_memory_stats(void **state)
{
  (void)state;
  cx_pjrt_memory_stats stats;
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_device_memory_stats(xla_client, 0, &stats),
              "PJRT_Device_MemoryStats", cx_pjrt_plugin_name(xla_plugin));
  assert_int_equal(stats.bytes_in_use, -1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_device_memory_stats(xla_client, 9, &stats), "device 9",
              "has 4");
}

void test_device_count_from_environment(void **state)
{
  (void)state;
  cx_pjrt_client *c = NULL;
  unsetenv("CPU_NUM_DEVICES");
  CHECK_OK(cx_pjrt_client_open(xla_plugin, NULL, &c));
  assert_int_equal(cx_pjrt_client_device_count(c), 1);
  cx_pjrt_client_close(c);
  setenv("CPU_NUM_DEVICES", "3", 1);
  CHECK_OK(cx_pjrt_client_open(xla_plugin, NULL, &c));
  assert_int_equal(cx_pjrt_client_device_count(c), 3);
  cx_pjrt_client_close(c);
  unsetenv("CPU_NUM_DEVICES");
}

// ---- transfers ----

// Bits that the type has on the host: types below a byte are zero-extended.
static unsigned char pattern(int type, size_t i)
{
  switch (type) {
    case PJRT_Buffer_Type_PRED:
    case PJRT_Buffer_Type_S1:
    case PJRT_Buffer_Type_U1: return i % 2;
    case PJRT_Buffer_Type_S2:
    case PJRT_Buffer_Type_U2: return i % 4;
    case PJRT_Buffer_Type_S4:
    case PJRT_Buffer_Type_U4:
    case PJRT_Buffer_Type_F4E2M1FN: return i % 16;
    default: return (unsigned char)(37 * i + 11);
  }
}

static void check_transfer(int type, size_t bytes)
{
  cx_pjrt_shape s = { .type = type, .rank = 2, .dims = { 3, 5 } };
  unsigned char in[15 * 16];
  unsigned char out[15 * 16] = { 0 };
  for (size_t i = 0; i < 15 * bytes; i++) in[i] = pattern(type, i);
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(xla_client, 1, &s, in, CX_PJRT_COPY, NULL,
                                    NULL, &b));
  size_t size = 0;
  CHECK_OK(cx_pjrt_buffer_host_size(b, &size));
  assert_int_equal(size, 15 * bytes);
  CHECK_OK(cx_pjrt_buffer_to_host(b, out, size));
  if (memcmp(in, out, size) != 0) {
    fail_msg("type %s changed on its way", cx_pjrt_type_name(type));
  }
  assert_int_equal(cx_pjrt_buffer_device(b), 1);
  assert_true(cx_pjrt_buffer_shape(b)->dims[1] == 5);
  cx_pjrt_buffer_release(b);
}

// Every type of the interface; one that came after the plugin is refused by us,
// the plugin would end the process.
void test_transfers(void **state)
{
  (void)state;
  int moved = 0;
  int refused = 0;
  for (int type = 1; type < (int)CX_PJRT_TYPES; type++) {
    size_t bytes = cx_pjrt_type_bytes(type);
    calx_status *known = cx_pjrt_check_type(xla_plugin, type);
    bool newer = known != NULL;
    calx_status_free(known);
    if (newer) {
      cx_pjrt_shape s = { .type = type, .rank = 0 };
      cx_pjrt_buffer *b = NULL;
      CHECK_FAILS(CALX_UNIMPLEMENTED,
                  cx_pjrt_buffer_from_host(xla_client, 1, &s, "x", CX_PJRT_COPY,
                                           NULL, NULL, &b),
                  cx_pjrt_type_name(type), "does not know the type");
      refused++;
    } else if (bytes > 0) {
      check_transfer(type, bytes);
      moved++;
    }
  }
  print_message("transfers: %d types, %d newer than the plugin\n", moved,
                refused);
  assert_true(moved >= 28);
}

void test_small_shapes(void **state)
{
  (void)state;
  cx_pjrt_shape scalar = xla_shape(CALX_F64, 0, 0, 0);
  double in = 2.5;
  double out = 0;
  cx_pjrt_buffer *b = xla_upload(0, &scalar, &in);
  CHECK_OK(cx_pjrt_buffer_to_host(b, &out, sizeof out));
  assert_true(out == 2.5);
  cx_pjrt_buffer_release(b);
  cx_pjrt_shape empty = xla_shape(CALX_F32, 2, 3, 0);
  b = xla_upload(0, &empty, NULL);
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

void test_zero_copy(void **state)
{
  (void)state;
  size_t n = 4096;
  float *data = aligned_alloc(64, n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = (float)i;
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(xla_client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                    xla_count_done, &done, &b));
  CHECK_OK(cx_pjrt_buffer_await(b));
  xla_check_floats(b, n, 0, 1);
  assert_int_equal(atomic_load(&done), 0);
  data[0] = 5;  // aliased: the device sees it
  float *back = cx_alloc(n * sizeof *back);
  CHECK_OK(cx_pjrt_buffer_to_host(b, back, n * sizeof *back));
  assert_true(back[0] == 5);
  cx_free(back);
  cx_pjrt_buffer_release(b);
  xla_wait_for(&done);
  assert_int_equal(atomic_load(&done), 1);
  free(data);
}

void test_zero_copy_unaligned(void **state)
{
  (void)state;
  size_t n = 4096;
  float *room = aligned_alloc(64, (n + 16) * sizeof *room);
  float *data = room + 1;
  for (size_t i = 0; i < n; i++) data[i] = (float)i;
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(xla_client, 0, &s, data, CX_PJRT_ZERO_COPY,
                                    xla_count_done, &done, &b));
  xla_wait_for(&done);
  memset(data, 0, n * sizeof *data);
  xla_check_floats(b, n, 0, 1);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
  free(room);
}

void test_borrow(void **state)
{
  (void)state;
  size_t n = 1 << 20;
  float *data = cx_alloc(n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = 3.0F;
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, (int64_t)n, 0);
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(xla_client, 2, &s, data, CX_PJRT_BORROW,
                                    xla_count_done, &done, &b));
  xla_wait_for(&done);
  memset(data, 0, n * sizeof *data);
  CHECK_OK(cx_pjrt_buffer_to_host(b, data, n * sizeof *data));
  assert_true(data[0] == 3.0F && data[n - 1] == 3.0F);
  cx_pjrt_buffer_release(b);
  assert_int_equal(atomic_load(&done), 1);
  cx_free(data);
}

void test_copy_between_devices(void **state)
{
  (void)state;
  cx_pjrt_buffer *a = xla_floats(0, 16, 1);
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_copy_to_device(a, 3, &b));
  assert_int_equal(cx_pjrt_buffer_device(b), 3);
  cx_pjrt_buffer_release(a);
  xla_check_floats(b, 16, 1, 1);
  cx_pjrt_buffer_release(b);
}
