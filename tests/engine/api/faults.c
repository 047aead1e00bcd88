// faults: every allocation fails once. The caller hears of it, nothing is lost
// or used twice, and the next try works.
#include "base/alloc.h"
#include "base/status.h"
#include "host.h"

#define F4 "tensor<4xf32>"

typedef struct fixture {
  PJRT_Client *client;
  PJRT_Device *device;
  PJRT_LoadedExecutable *program;
  PJRT_Buffer *one;
} fixture;

static void free_event(PJRT_Event *event)
{
  (void)host_take(CALL(PJRT_Event_Destroy, .event = event));
}

static int upload(fixture *f)
{
  float data[4] = { 1, 2, 3, 4 };
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = f->client,
       .data = data, .type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 4 },
       .num_dims = 1, .device = f->device);
  int code = host_take(api->PJRT_Client_BufferFromHostBuffer(&args));
  if (code != 0) assert_null(args.buffer);
  free_event(args.done_with_host_buffer);
  host_free(args.buffer);
  return code;
}

static int lend(fixture *f)
{
  static _Alignas(64) float data[4];
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = f->client,
       .data = data, .type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 4 },
       .num_dims = 1, .device = f->device,
       .host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy);
  int code = host_take(api->PJRT_Client_BufferFromHostBuffer(&args));
  host_free(args.buffer);
  free_event(args.done_with_host_buffer);
  return code;
}

static int execute(fixture *f)
{
  PJRT_Buffer *args[] = { f->one, f->one };
  PJRT_Buffer *sum = NULL;
  int code = host_take(host_run(f->program, NULL, args, 2, &sum));
  if (code == 0) code = host_take(host_ready(sum));
  host_free(sum);
  return code;
}

static int compile(fixture *f)
{
  PJRT_LoadedExecutable *e = NULL;
  host_options o = host_replicas(1, 1);
  int code = host_take(
      host_compile(f->client, BINARY("add", F4), o.bytes, o.size, &e));
  if (code == 0) host_program_free(e);
  return code;
}

static int create(fixture *f)
{
  (void)f;
  ARGS(args, PJRT_Client_Create, 0);
  int code = host_take(api->PJRT_Client_Create(&args));
  (void)host_take(CALL(PJRT_Client_Destroy, .client = args.client));
  return code;
}

static int serialize(fixture *f)
{
  ARGS(get, PJRT_LoadedExecutable_GetExecutable,
       .loaded_executable = f->program);
  int code = host_take(api->PJRT_LoadedExecutable_GetExecutable(&get));
  if (code != 0) return code;
  ARGS(saved, PJRT_Executable_Serialize, .executable = get.executable);
  code = host_take(api->PJRT_Executable_Serialize(&saved));
  if (code == 0) {
    ARGS(read, PJRT_Executable_DeserializeAndLoad, .client = f->client,
         .serialized_executable = saved.serialized_bytes,
         .serialized_executable_size = saved.serialized_bytes_size);
    code = host_take(api->PJRT_Executable_DeserializeAndLoad(&read));
    if (code == 0) host_program_free(read.loaded_executable);
    saved.serialized_executable_deleter(saved.serialized_executable);
  }
  (void)host_take(CALL(PJRT_Executable_Destroy, .executable = get.executable));
  return code;
}

static void test_each(void **state)
{
  (void)state;
  fixture f = { .client = host_client(1) };
  f.device = host_device(f.client, 0);
  f.program = host_program(f.client, BINARY("add", F4));
  f.one = host_floats(f.device, 4, 1);
  int (*const actions[])(fixture *) = { upload,  lend,   execute,
                                        compile, create, serialize };
  cx_alloc_set_exact(true);
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
    int failed = 0;
    int code = 1;
    for (long n = 0; code != 0 || n == 0; n++) {
      cx_alloc_fail_at(n);
      code = actions[i](&f);
      cx_alloc_fail_at(-1);
      if (code != 0) {
        assert_int_equal(code, PJRT_Error_Code_RESOURCE_EXHAUSTED);
        failed++;
      }
      assert_true(n < 20000);
    }
    assert_true(failed > 0);
    assert_int_equal(actions[i](&f), 0);
  }
  cx_alloc_set_exact(false);
  host_check_floats(f.one, 4, 1, 1);
  host_free(f.one);
  host_program_free(f.program);
  host_client_free(f.client);
}

int main(void)
{
  const struct CMUnitTest tests[] = { HOST_TEST(test_each) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
