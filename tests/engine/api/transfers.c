// transfers: uploads in pieces, copies that wait for them, and between devices.
#include <stdatomic.h>

#include "host.h"

static PJRT_Error *piece(host_pending *p, const void *data, int64_t at,
                         int64_t size, bool last)
{
  ARGS(args, PJRT_AsyncHostToDeviceTransferManager_TransferData,
       .transfer_manager = p->manager, .data = data, .offset = at,
       .transfer_size = size, .is_last_transfer = last);
  PJRT_Error *error =
      api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&args);
  return error != NULL ? error : host_wait(args.done_with_h2d_transfer);
}

static void end(host_pending *p)
{
  HOST_OK(CALL(PJRT_AsyncHostToDeviceTransferManager_Destroy,
               .transfer_manager = p->manager));
}

static void test_pieces(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  host_pending p = host_promise(client, 0, 4);
  ARGS(size, PJRT_AsyncHostToDeviceTransferManager_BufferSize,
       .transfer_manager = p.manager);
  HOST_OK(api->PJRT_AsyncHostToDeviceTransferManager_BufferSize(&size));
  assert_int_equal(size.buffer_size, 16);
  const float data[] = { 1, 2, 3, 4 };
  HOST_OK(piece(&p, data + 2, 8, 8, false));
  HOST_FAILS(3, piece(&p, data, 12, 8, false), "8 bytes at 12 of 16");
  HOST_FAILS(3, piece(&p, data, -4, 8, false), "at -4");
  HOST_FAILS(3, piece(&p, data, INT64_MAX, 8, false), "of 16");
  HOST_OK(piece(&p, data, 0, 8, true));
  HOST_FAILS(9, piece(&p, data, 0, 8, true), "already");
  host_check_floats(p.buffer, 4, 1, 1);
  ARGS(again, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer,
       .transfer_manager = p.manager);
  HOST_FAILS(9,
             api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&again),
             "already");
  again.buffer_index = 1;
  HOST_FAILS(3,
             api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&again),
             "the transfer has 1");
  end(&p);
  host_free(p.buffer);
  host_client_free(client);
}

static void test_literal(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  host_pending p = host_promise(client, 0, 4);
  const float data[] = { 1, 2, 3, 4 };
  int64_t dims[] = { 2 };
  ARGS(args, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral,
       .transfer_manager = p.manager, .data = data, .shape_dims = dims,
       .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32);
  HOST_FAILS(3,
             api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&args),
             "wanted f32[4], found f32[2]");
  dims[0] = 4;
  HOST_OK(api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&args));
  HOST_OK(host_wait(args.done_with_h2d_transfer));
  host_check_floats(p.buffer, 4, 1, 1);
  end(&p);
  host_free(p.buffer);
  host_client_free(client);
}

static void test_given_up(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  host_pending p = host_promise(client, 0, 4);
  end(&p);
  HOST_FAILS(1, host_ready(p.buffer), "before the last piece");
  host_free(p.buffer);
  host_client_free(client);
}

// ---- copies that wait ----

static bool is_ready(PJRT_Event *event)
{
  ARGS(args, PJRT_Event_IsReady, .event = event);
  HOST_OK(api->PJRT_Event_IsReady(&args));
  return args.is_ready;
}

static void test_waiting_copies(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(2);
  host_pending p = host_promise(client, 0, 4);
  float back[4] = { 0 };
  ARGS(read, PJRT_Buffer_ToHostBuffer, .src = p.buffer, .dst = back,
       .dst_size = sizeof back);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&read));
  ARGS(copy, PJRT_Buffer_CopyToDevice, .buffer = p.buffer,
       .dst_device = host_device(client, 1));
  HOST_OK(api->PJRT_Buffer_CopyToDevice(&copy));
  assert_false(is_ready(read.event));
  // Neither needs the buffer any more.
  host_free(p.buffer);
  host_fulfil(&p, 7);
  assert_true(is_ready(read.event));
  HOST_OK(host_wait(read.event));
  assert_true(back[0] == 7 && back[3] == 10);
  host_check_floats(copy.dst_buffer, 4, 7, 1);
  ARGS(device, PJRT_Buffer_Device, .buffer = copy.dst_buffer);
  HOST_OK(api->PJRT_Buffer_Device(&device));
  assert_ptr_equal(device.device, host_device(client, 1));
  host_free(copy.dst_buffer);
  host_client_free(client);
}

static void test_failing_copies(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(2);
  host_pending p = host_promise(client, 0, 4);
  float back[4] = { 0 };
  ARGS(read, PJRT_Buffer_ToHostBuffer, .src = p.buffer, .dst = back,
       .dst_size = sizeof back);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&read));
  ARGS(copy, PJRT_Buffer_CopyToDevice, .buffer = p.buffer,
       .dst_device = host_device(client, 1));
  HOST_OK(api->PJRT_Buffer_CopyToDevice(&copy));
  host_break(&p, "torn");
  HOST_FAILS(10, host_wait(read.event), "torn");
  HOST_FAILS(10, host_ready(copy.dst_buffer), "torn");
  host_free(copy.dst_buffer);
  host_free(p.buffer);
  host_client_free(client);
}

static void test_copies(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(2);
  PJRT_Client *other = host_client(1);
  PJRT_Buffer *b = host_floats(host_device(client, 0), 4, 1);
  ARGS(memory, PJRT_Device_DefaultMemory, .device = host_device(client, 1));
  HOST_OK(api->PJRT_Device_DefaultMemory(&memory));
  ARGS(copy, PJRT_Buffer_CopyToMemory, .buffer = b,
       .dst_memory = memory.memory);
  HOST_OK(api->PJRT_Buffer_CopyToMemory(&copy));
  host_check_floats(copy.dst_buffer, 4, 1, 1);
  ARGS(where, PJRT_Buffer_Memory, .buffer = copy.dst_buffer);
  HOST_OK(api->PJRT_Buffer_Memory(&where));
  assert_ptr_equal(where.memory, memory.memory);
  host_free(copy.dst_buffer);
  HOST_FAILS(3,
             CALL(PJRT_Buffer_CopyToDevice, .buffer = b,
                  .dst_device = host_device(other, 0)),
             "another client");
  host_free(b);
  host_client_free(client);
  host_client_free(other);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_pieces),         HOST_TEST(test_literal),
    HOST_TEST(test_given_up),       HOST_TEST(test_waiting_copies),
    HOST_TEST(test_failing_copies), HOST_TEST(test_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
