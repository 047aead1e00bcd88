// buffers: from the host and back, in every type, layout and way of lending.
#include <stdatomic.h>

#include "host.h"

typedef struct fixture {
  PJRT_Client *client;
  PJRT_Device *device;
} fixture;

static fixture setup(void)
{
  fixture f = { .client = host_client(1) };
  f.device = host_device(f.client, 0);
  return f;
}

static void teardown(fixture *f)
{
  host_client_free(f->client);
}

// ---- types ----

static const size_t sizes[] = { 0, 1, 1, 2,  4, 8, 1, 2, 4, 8, 2, 4,
                                8, 2, 8, 16, 1, 1, 1, 1, 1, 1, 1, 0,
                                1, 1, 1, 1,  1, 1, 1, 1, 1, 1 };
static const unsigned char masks[34] = {
  [1] = 1,   [21] = 15, [22] = 15, [24] = 3,  [25] = 3,
  [29] = 15, [30] = 1,  [31] = 1,  [32] = 63, [33] = 63
};

static void test_types(void **state)
{
  (void)state;
  fixture f = setup();
  for (int type = 1; type < 34; type++) {
    unsigned char data[128];
    unsigned char back[128];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37);
    int64_t dims[] = { 2, 3 };
    size_t bytes = 6 * sizes[type];
    PJRT_Buffer *b =
        host_buffer(f.device, (PJRT_Buffer_Type)type, data, 2, dims);
    ARGS(told, PJRT_Buffer_ElementType, .buffer = b);
    HOST_OK(api->PJRT_Buffer_ElementType(&told));
    assert_int_equal(told.type, type);
    memset(back, 0xee, sizeof back);
    host_read(b, back, bytes);
    for (size_t i = 0; i < bytes; i++) {
      unsigned char wanted = data[i];
      if (masks[type] != 0) wanted &= masks[type];
      if (type == PJRT_Buffer_Type_PRED) wanted = data[i] != 0;
      assert_int_equal(back[i], wanted);
    }
    assert_int_equal(back[bytes], 0xee);
    host_free(b);
  }
  float data[1] = { 0 };
  ARGS(bad, PJRT_Client_BufferFromHostBuffer, .client = f.client, .data = data,
       .type = (PJRT_Buffer_Type)34, .device = f.device);
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&bad), "type 34");
  bad.type = (PJRT_Buffer_Type)-1;
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&bad), "type -1");
  teardown(&f);
}

static void test_facts(void **state)
{
  (void)state;
  fixture f = setup();
  float data[24] = { 0 };
  int64_t dims[] = { 1, 2, 1, 3, 1, 4, 1 };  // more than are kept inside
  PJRT_Buffer *b = host_buffer(f.device, PJRT_Buffer_Type_F32, data, 7, dims);
  ARGS(shape, PJRT_Buffer_Dimensions, .buffer = b);
  HOST_OK(api->PJRT_Buffer_Dimensions(&shape));
  assert_int_equal(shape.num_dims, 7);
  assert_memory_equal(shape.dims, dims, sizeof dims);
  ARGS(size, PJRT_Buffer_OnDeviceSizeInBytes, .buffer = b);
  HOST_OK(api->PJRT_Buffer_OnDeviceSizeInBytes(&size));
  assert_int_equal(size.on_device_size_in_bytes, 96);
  ARGS(layout, PJRT_Buffer_GetMemoryLayout, .buffer = b);
  HOST_OK(api->PJRT_Buffer_GetMemoryLayout(&layout));
  assert_int_equal(layout.layout.type, PJRT_Buffer_MemoryLayout_Type_Tiled);
  assert_int_equal(layout.layout.tiled.minor_to_major_size, 7);
  assert_int_equal(layout.layout.tiled.minor_to_major[0], 6);
  ARGS(device, PJRT_Buffer_Device, .buffer = b);
  HOST_OK(api->PJRT_Buffer_Device(&device));
  assert_ptr_equal(device.device, f.device);
  ARGS(cpu, PJRT_Buffer_IsOnCpu, .buffer = b);
  HOST_OK(api->PJRT_Buffer_IsOnCpu(&cpu));
  assert_true(cpu.is_on_cpu);
  HOST_OK(host_ready(b));
  host_free(b);
  PJRT_Buffer *none =
      host_buffer(f.device, PJRT_Buffer_Type_F32, NULL, 1, (int64_t[]){ 0 });
  host_read(none, data, 0);
  host_free(none);
  PJRT_Buffer *scalar = host_floats(f.device, 1, 5);
  host_check_floats(scalar, 1, 5, 0);
  host_free(scalar);
  teardown(&f);
}

static void test_bad_shapes(void **state)
{
  (void)state;
  fixture f = setup();
  float data[1] = { 0 };
  int64_t dims[70] = { -1 };
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = f.client, .data = data,
       .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 1,
       .device = f.device);
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args), "f32[-1]");
  dims[0] = INT64_C(1) << 60;
  HOST_FAILS(8, api->PJRT_Client_BufferFromHostBuffer(&args), "memory");
  dims[0] = dims[1] = INT64_C(1) << 40;
  args.num_dims = 2;
  HOST_FAILS(8, api->PJRT_Client_BufferFromHostBuffer(&args), "memory");
  dims[1] = 0;  // too large, but of no elements
  HOST_OK(api->PJRT_Client_BufferFromHostBuffer(&args));
  host_free(args.buffer);
  args.num_dims = 70;
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args), "70 dimensions");
  args.num_dims = 2;
  args.dims = NULL;
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args), "no list");
  args.dims = (int64_t[]){ 1, 1 };
  args.data = NULL;
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args), "without data");
  args.data = data;
  args.device = NULL;
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args), "neither");
  assert_null(args.buffer);
  teardown(&f);
}

// ---- layouts ----

static void test_strides(void **state)
{
  (void)state;
  fixture f = setup();
  int32_t data[6] = { 0, 1, 2, 3, 4, 5 };
  int64_t dims[] = { 3, 2 };
  struct {
    const int32_t *start;
    int64_t strides[2];
    int32_t wanted[6];
  } cases[] = {
    { data, { 8, 4 }, { 0, 1, 2, 3, 4, 5 } },
    { data, { 4, 12 }, { 0, 3, 1, 4, 2, 5 } },       // transposed
    { data + 5, { -8, -4 }, { 5, 4, 3, 2, 1, 0 } },  // backwards
    { data + 2, { 0, 0 }, { 2, 2, 2, 2, 2, 2 } },    // broadcast
    { data, { 4, 4 }, { 0, 1, 1, 2, 2, 3 } },        // overlapping
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = f.client,
         .data = cases[i].start, .type = PJRT_Buffer_Type_S32, .dims = dims,
         .num_dims = 2, .byte_strides = cases[i].strides, .num_byte_strides = 2,
         .device = f.device);
    HOST_OK(api->PJRT_Client_BufferFromHostBuffer(&args));
    HOST_OK(host_wait(args.done_with_host_buffer));
    int32_t back[6];
    host_read(args.buffer, back, sizeof back);
    assert_memory_equal(back, cases[i].wanted, sizeof back);
    host_free(args.buffer);
    args.num_byte_strides = 1;
    HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&args),
               "1 byte strides");
  }
  teardown(&f);
}

static void test_host_layouts(void **state)
{
  (void)state;
  fixture f = setup();
  int32_t data[6] = { 0, 1, 2, 3, 4, 5 };
  int64_t dims[] = { 3, 2 };
  PJRT_Buffer *b = host_buffer(f.device, PJRT_Buffer_Type_S32, data, 2, dims);
  int64_t order[] = { 0, 1 };
  PJRT_Buffer_MemoryLayout layout = {
    CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout),
    .tiled = { CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout_Tiled),
               .minor_to_major = order, .minor_to_major_size = 2 },
    .type = PJRT_Buffer_MemoryLayout_Type_Tiled
  };
  int32_t back[8] = { 0 };
  ARGS(args, PJRT_Buffer_ToHostBuffer, .src = b, .host_layout = &layout,
       .dst = back, .dst_size = 24);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&args));
  HOST_OK(host_wait(args.event));
  const int32_t turned[6] = { 0, 2, 4, 1, 3, 5 };
  assert_memory_equal(back, turned, sizeof turned);
  order[1] = 0;
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "no order");
  order[1] = 7;
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "no order");
  layout.tiled.minor_to_major_size = 3;
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "3 dimensions");
  layout.tiled.num_tiles = 1;
  HOST_FAILS(12, api->PJRT_Buffer_ToHostBuffer(&args), "tiles");
  int64_t strides[] = { 8, 4 };
  layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  layout.strides = (PJRT_Buffer_MemoryLayout_Strides){
    CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout_Strides), .byte_strides = strides,
    .num_byte_strides = 2
  };
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&args));
  HOST_OK(host_wait(args.event));
  assert_memory_equal(back, data, sizeof data);
  strides[0] = 12;  // beyond the room
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "does not fit");
  strides[0] = -8;  // before it
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "does not fit");
  strides[0] = INT64_MAX;
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "does not fit");
  args.host_layout = NULL;
  args.dst_size = 23;
  HOST_FAILS(3, api->PJRT_Buffer_ToHostBuffer(&args), "23 bytes");
  host_free(b);
  teardown(&f);
}

static void test_raw(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *b = host_floats(f.device, 4, 1);
  float back[2] = { 0 };
  ARGS(args, PJRT_Buffer_CopyRawToHost, .buffer = b, .dst = back, .offset = 4,
       .transfer_size = 8);
  HOST_OK(api->PJRT_Buffer_CopyRawToHost(&args));
  HOST_OK(host_wait(args.event));
  assert_true(back[0] == 2 && back[1] == 3);
  args.offset = 12;
  HOST_FAILS(3, api->PJRT_Buffer_CopyRawToHost(&args), "of a buffer of 16");
  args.offset = -1;
  HOST_FAILS(3, api->PJRT_Buffer_CopyRawToHost(&args), "at -1");
  args.offset = INT64_MAX;
  HOST_FAILS(3, api->PJRT_Buffer_CopyRawToHost(&args), "of a buffer of 16");
  host_free(b);
  teardown(&f);
}

// ---- lending ----

static bool is_ready(PJRT_Event *event)
{
  ARGS(args, PJRT_Event_IsReady, .event = event);
  HOST_OK(api->PJRT_Event_IsReady(&args));
  return args.is_ready;
}

static void *address(PJRT_Buffer *buffer)
{
  ARGS(args, PJRT_Buffer_OpaqueDeviceMemoryDataPointer, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&args));
  return args.device_memory_ptr;
}

static void test_semantics(void **state)
{
  (void)state;
  fixture f = setup();
  float *data = aligned_alloc(64, 128);
  assert_non_null(data);
  int64_t dims[] = { 4 };
  for (int semantics = 0; semantics < 4; semantics++) {
    for (int shift = 0; shift < 2; shift++) {
      for (int i = 0; i < 4; i++) data[shift + i] = (float)i;
      ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = f.client,
           .data = data + shift, .type = PJRT_Buffer_Type_F32, .dims = dims,
           .num_dims = 1, .device = f.device,
           .host_buffer_semantics = (PJRT_HostBufferSemantics)semantics);
      HOST_OK(api->PJRT_Client_BufferFromHostBuffer(&args));
      bool lent = semantics >= 2 && shift == 0;
      assert_int_equal(is_ready(args.done_with_host_buffer), !lent);
      assert_int_equal(address(args.buffer) == data + shift, lent);
      assert_int_equal((uintptr_t)address(args.buffer) % 64, 0);
      data[shift] = 9;
      float back[4];
      host_read(args.buffer, back, sizeof back);
      assert_true(back[0] == (lent ? 9.0F : 0.0F) && back[3] == 3);
      host_free(args.buffer);
      assert_true(is_ready(args.done_with_host_buffer));
      HOST_OK(host_wait(args.done_with_host_buffer));
    }
  }
  free(data);
  teardown(&f);
}

static atomic_int deletions;

static void on_delete(void *data, void *user)
{
  assert_ptr_equal(data, user);
  atomic_fetch_add(&deletions, 1);
}

static void test_views(void **state)
{
  (void)state;
  fixture f = setup();
  float *data = aligned_alloc(64, 64);
  assert_non_null(data);
  for (int i = 0; i < 4; i++) data[i] = (float)i;
  int64_t dims[] = { 4 };
  atomic_store(&deletions, 0);
  ARGS(args, PJRT_Client_CreateViewOfDeviceBuffer, .client = f.client,
       .device_buffer_ptr = data, .dims = dims, .num_dims = 1,
       .element_type = PJRT_Buffer_Type_F32, .device = f.device,
       .on_delete_callback = on_delete, .on_delete_callback_arg = data);
  HOST_OK(api->PJRT_Client_CreateViewOfDeviceBuffer(&args));
  data[0] = 5;
  float back[4];
  host_read(args.buffer, back, sizeof back);
  assert_true(back[0] == 5);
  assert_ptr_equal(address(args.buffer), data);
  // A second buffer of the same memory keeps it.
  ARGS(cast, PJRT_Buffer_Bitcast, .buffer = args.buffer,
       .element_type = PJRT_Buffer_Type_S64, .dims = (int64_t[]){ 1, 2 },
       .num_dims = 2);
  HOST_OK(api->PJRT_Buffer_Bitcast(&cast));
  host_free(args.buffer);
  assert_int_equal(atomic_load(&deletions), 0);
  int64_t words[2];
  host_read(cast.out_buffer, words, sizeof words);
  assert_memory_equal(words, data, sizeof words);
  host_free(cast.out_buffer);
  assert_int_equal(atomic_load(&deletions), 1);
  args.device_buffer_ptr = data + 1;
  HOST_FAILS(3, api->PJRT_Client_CreateViewOfDeviceBuffer(&args),
             "not aligned to 64 bytes");
  assert_int_equal(atomic_load(&deletions), 1);
  free(data);
  teardown(&f);
}

static void test_bitcast_refuses(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *b = host_floats(f.device, 4, 1);
  ARGS(cast, PJRT_Buffer_Bitcast, .buffer = b,
       .element_type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 5 },
       .num_dims = 1);
  HOST_FAILS(3, api->PJRT_Buffer_Bitcast(&cast), "f32[5]");
  cast.element_type = PJRT_Buffer_Type_PRED;  // bytes of any value
  cast.dims = (int64_t[]){ 16 };
  HOST_FAILS(3, api->PJRT_Buffer_Bitcast(&cast), "pred[16]");
  host_free(b);
  teardown(&f);
}

// ---- deleting ----

static void test_deleting(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *b = host_floats(f.device, 4, 1);
  assert_false(host_is_deleted(b));
  HOST_OK(CALL(PJRT_Buffer_Delete, .buffer = b));
  HOST_OK(CALL(PJRT_Buffer_Delete, .buffer = b));
  assert_true(host_is_deleted(b));
  float back[4];
  HOST_FAILS(3,
             CALL(PJRT_Buffer_ToHostBuffer, .src = b, .dst = back,
                  .dst_size = sizeof back),
             "Buffer has been deleted or donated");
  HOST_FAILS(3, CALL(PJRT_Buffer_ReadyEvent, .buffer = b), "deleted");
  HOST_FAILS(3, CALL(PJRT_Buffer_UnsafePointer, .buffer = b), "deleted");
  HOST_FAILS(
      3, CALL(PJRT_Buffer_CopyToDevice, .buffer = b, .dst_device = f.device),
      "f32[4] on device 0");
  host_free(b);
  teardown(&f);
}

static void test_external_references(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *b = host_floats(f.device, 4, 1);
  HOST_FAILS(9, CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = b),
             "no external reference");
  HOST_OK(CALL(PJRT_Buffer_IncreaseExternalReferenceCount, .buffer = b));
  HOST_OK(CALL(PJRT_Buffer_IncreaseExternalReferenceCount, .buffer = b));
  const float *data = address(b);
  HOST_OK(CALL(PJRT_Buffer_Delete, .buffer = b));
  PJRT_Buffer *other = host_floats(f.device, 4, 50);
  assert_true(data[3] == 4);  // still there
  HOST_OK(CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = b));
  HOST_OK(CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = b));
  HOST_FAILS(9, CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = b),
             "no external reference");
  host_free(other);
  host_free(b);
  teardown(&f);
}

static void test_others(void **state)
{
  (void)state;
  fixture f = setup();
  int64_t dims[] = { 4 };
  ARGS(empty, PJRT_Client_CreateUninitializedBuffer, .client = f.client,
       .shape_dims = dims, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32, .device = f.device);
  HOST_OK(api->PJRT_Client_CreateUninitializedBuffer(&empty));
  host_check_floats(empty.buffer, 4, 0, 0);
  host_free(empty.buffer);
  ARGS(memory, PJRT_Device_DefaultMemory, .device = f.device);
  HOST_OK(api->PJRT_Device_DefaultMemory(&memory));
  ARGS(broken, PJRT_Client_CreateErrorBuffer, .client = f.client,
       .error_code = PJRT_Error_Code_DATA_LOSS, .error_message = "lost it",
       .error_message_size = 7, .shape_dims = dims, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32, .memory = memory.memory);
  HOST_OK(api->PJRT_Client_CreateErrorBuffer(&broken));
  HOST_FAILS(15, host_ready(broken.buffer), "lost it");
  float back[4];
  ARGS(read, PJRT_Buffer_ToHostBuffer, .src = broken.buffer, .dst = back,
       .dst_size = sizeof back);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&read));
  HOST_FAILS(15, host_wait(read.event), "lost it");
  HOST_FAILS(15, CALL(PJRT_Buffer_UnsafePointer, .buffer = broken.buffer),
             "lost it");
  host_free(broken.buffer);
  broken.error_code = PJRT_Error_Code_OK;
  HOST_FAILS(3, api->PJRT_Client_CreateErrorBuffer(&broken), "code 0");
  teardown(&f);
}

// Memory that was given back is used again, and counted.
static void test_memory(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *a = host_floats(f.device, 1000, 1);
  void *first = address(a);
  ARGS(stats, PJRT_Device_MemoryStats, .device = f.device);
  HOST_OK(api->PJRT_Device_MemoryStats(&stats));
  assert_true(stats.bytes_in_use >= 4000 && stats.bytes_in_use < 6000);
  assert_true(stats.peak_bytes_in_use_is_set && stats.bytes_limit_is_set);
  host_free(a);
  PJRT_Buffer *b = host_floats(f.device, 1010, 1);  // of the same size class
  assert_ptr_equal(address(b), first);
  host_free(b);
  HOST_OK(api->PJRT_Device_MemoryStats(&stats));
  assert_int_equal(stats.bytes_in_use, 0);
  assert_true(stats.peak_bytes_in_use >= 4000);
  assert_int_equal(stats.num_allocs, 2);
  teardown(&f);
}

// Large blocks come from regions that they share: each keeps its values while
// its neighbours are given back and taken again.
static void test_large_memory(void **state)
{
  (void)state;
  static const size_t n[] = { 64000, 300000, 700000, 2000000, 9000000, 1 };
  PJRT_Buffer *all[24];
  size_t size[24];
  fixture f = setup();
  for (size_t round = 0; round < 3; round++) {
    for (size_t i = 0; i < 24; i++) {
      if (round > 0 && i % 3 == round) host_free(all[i]);
    }
    for (size_t i = 0; i < 24; i++) {
      if (round > 0 && i % 3 != round) continue;
      size[i] = n[(i + round) % 6];
      all[i] = host_floats(f.device, size[i], (float)i);
      assert_int_equal((uintptr_t)address(all[i]) % 64, 0);
    }
    for (size_t i = 0; i < 24; i++) {
      host_check_floats(all[i], size[i], (float)i, 1);
    }
  }
  for (size_t i = 0; i < 24; i++) host_free(all[i]);
  teardown(&f);
}

// The client goes first, what it made is read and destroyed after.
static void test_outliving_the_client(void **state)
{
  (void)state;
  fixture f = setup();
  PJRT_Buffer *b = host_floats(f.device, 4, 1);
  host_client_free(f.client);
  host_check_floats(b, 4, 1, 1);
  host_free(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_types),
    HOST_TEST(test_facts),
    HOST_TEST(test_bad_shapes),
    HOST_TEST(test_strides),
    HOST_TEST(test_host_layouts),
    HOST_TEST(test_raw),
    HOST_TEST(test_semantics),
    HOST_TEST(test_views),
    HOST_TEST(test_bitcast_refuses),
    HOST_TEST(test_deleting),
    HOST_TEST(test_external_references),
    HOST_TEST(test_others),
    HOST_TEST(test_memory),
    HOST_TEST(test_large_memory),
    HOST_TEST(test_outliving_the_client),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
