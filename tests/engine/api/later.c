// later: aliases, donations, copies and launches that are decided after their
// call.
#include "host.h"

static PJRT_Memory *memory_of(PJRT_Client *client)
{
  ARGS(memory, PJRT_Device_DefaultMemory, .device = host_device(client, 0));
  HOST_OK(api->PJRT_Device_DefaultMemory(&memory));
  return memory.memory;
}

static PJRT_Client_CreateAliasBuffer_Args alias_of(PJRT_Client *client)
{
  static const int64_t dims[] = { 4 };
  ARGS(args, PJRT_Client_CreateAliasBuffer, .client = client,
       .memory = memory_of(client), .shape_dims = dims, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32);
  HOST_OK(api->PJRT_Client_CreateAliasBuffer(&args));
  return args;
}

static void test_alias(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_Client_CreateAliasBuffer_Args alias = alias_of(client);
  PJRT_Buffer *small = host_floats(host_device(client, 0), 2, 1);
  host_pending p = host_promise(client, 0, 4);
  ARGS(fulfill, PJRT_Client_FulfillAliasBuffer, .client = client,
       .buffer = small,
       .fulfill_alias_buffer_cb = alias.fulfill_alias_buffer_cb);
  HOST_FAILS(3, api->PJRT_Client_FulfillAliasBuffer(&fulfill),
             "an alias of f32[4] is fulfilled with f32[2]");
  fulfill.buffer = NULL;
  HOST_FAILS(3, api->PJRT_Client_FulfillAliasBuffer(&fulfill), "no buffer");
  fulfill.buffer = p.buffer;
  HOST_OK(api->PJRT_Client_FulfillAliasBuffer(&fulfill));
  assert_false(host_is_ready(alias.alias_buffer));
  // The alias holds the memory, so the buffer is no longer needed.
  host_free(p.buffer);
  host_fulfil(&p, 5);
  host_check_floats(alias.alias_buffer, 4, 5, 1);
  host_free(alias.alias_buffer);
  host_free(small);
  host_client_free(client);
}

static void test_failed_alias(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_Client_CreateAliasBuffer_Args alias = alias_of(client);
  ARGS(fulfill, PJRT_Client_FulfillAliasBuffer, .client = client,
       .status_code = PJRT_Error_Code_INTERNAL, .error_message = "torn",
       .error_message_size = 4,
       .fulfill_alias_buffer_cb = alias.fulfill_alias_buffer_cb);
  HOST_OK(api->PJRT_Client_FulfillAliasBuffer(&fulfill));
  HOST_FAILS(13, host_ready(alias.alias_buffer), "torn");
  host_free(alias.alias_buffer);
  host_client_free(client);
}

static void test_donation(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  for (int fails = 0; fails < 2; fails++) {
    PJRT_Buffer *b = host_floats(host_device(client, 0), 4, 1);
    ARGS(donate, PJRT_Buffer_DonateWithControlDependency, .buffer = b);
    HOST_OK(api->PJRT_Buffer_DonateWithControlDependency(&donate));
    assert_true(host_is_deleted(b));
    assert_false(host_is_ready(donate.out_buffer));
    PJRT_Buffer_DonateWithControlDependency_Callback_Args done = {
      .struct_size = sizeof done,
      .callback_data = donate.callback_data,
      .error_code = fails ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK,
      .error_message = "torn",
      .error_message_size = 4
    };
    donate.dependency_ready_callback(&done);
    if (fails) {
      HOST_FAILS(10, host_ready(donate.out_buffer), "torn");
    } else {
      host_check_floats(donate.out_buffer, 4, 1, 1);
    }
    host_free(donate.out_buffer);
    HOST_FAILS(3, api->PJRT_Buffer_DonateWithControlDependency(&donate),
               "deleted or donated");
    host_free(b);
  }
  host_client_free(client);
}

static void test_copy(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_Buffer *b = host_floats(host_device(client, 0), 4, 1);
  for (int fails = 0; fails < 2; fails++) {
    float back[2] = { 0 };
    ARGS(copy, PJRT_Buffer_CopyRawToHostFuture, .buffer = b, .offset = 4,
         .transfer_size = 8);
    HOST_OK(api->PJRT_Buffer_CopyRawToHostFuture(&copy));
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args address = {
      .struct_size = sizeof address,
      .callback_data = copy.callback_data,
      .error_code = fails ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK,
      .error_message = "torn",
      .error_message_size = 4,
      .dst = back
    };
    copy.future_ready_callback(&address);
    if (fails) {
      HOST_FAILS(10, host_wait(copy.event), "torn");
    } else {
      HOST_OK(host_wait(copy.event));
      assert_true(back[0] == 2 && back[1] == 3);
    }
    copy.offset = 12;
    HOST_FAILS(3, api->PJRT_Buffer_CopyRawToHostFuture(&copy),
               "of a buffer of 16");
  }
  host_free(b);
  host_client_free(client);
}

static PJRT_Buffer *launch(PJRT_LoadedExecutable *program, PJRT_Buffer *x,
                           int id)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions),
                                  .launch_id = id };
  PJRT_Buffer *args[] = { x, x };
  PJRT_Buffer *sum = NULL;
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { &sum };
  HOST_OK(CALL(PJRT_LoadedExecutable_Execute, .executable = program,
               .options = &options, .argument_lists = lists, .num_devices = 1,
               .num_args = 2, .output_lists = outs));
  return sum;
}

// The first launch waits for its argument, so the second one stays queued.
static void test_poison(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *program =
      host_program(client, BINARY("add", "tensor<4xf32>"));
  PJRT_Buffer *one = host_floats(host_device(client, 0), 4, 1);
  host_pending p = host_promise(client, 0, 4);
  PJRT_Buffer *first = launch(program, p.buffer, 5);
  PJRT_Buffer *second = launch(program, one, 6);
  ARGS(poison, PJRT_Device_PoisonExecution, .device = host_device(client, 0),
       .launch_id = 7, .error_code = PJRT_Error_Code_ABORTED,
       .error_message = "torn", .error_message_size = 4);
  HOST_OK(api->PJRT_Device_PoisonExecution(&poison));
  assert_false(poison.poisoned);
  poison.launch_id = 6;
  HOST_OK(api->PJRT_Device_PoisonExecution(&poison));
  assert_true(poison.poisoned);
  host_fulfil(&p, 1);
  host_check_floats(first, 4, 2, 2);
  HOST_FAILS(10, host_ready(second), "torn");
  poison.error_code = PJRT_Error_Code_OK;
  HOST_FAILS(3, api->PJRT_Device_PoisonExecution(&poison), "code 0");
  host_free(first);
  host_free(second);
  host_free(p.buffer);
  host_free(one);
  host_program_free(program);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_alias),    HOST_TEST(test_failed_alias),
    HOST_TEST(test_donation), HOST_TEST(test_copy),
    HOST_TEST(test_poison),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
