// host: calls through the table.
#include "host.h"

#include "api/api.h"
#include "base/alloc.h"
#include "base/status.h"

const PJRT_Api *api;
static _Thread_local char words[1024];
static long blocks;

int host_begin(void **state)
{
  (void)state;
  setenv("CALX_CPU_REF", "1", 1);
  api = calx_cpu_api();
  blocks = cx_alloc_live();
  return 0;
}

int host_end(void **state)
{
  (void)state;
  long left = cx_alloc_live() - blocks;
  if (left == 0 && cx_status_live() == 0) return 0;
  print_error("left over: %ld blocks, %ld statuses\n", left, cx_status_live());
  return 1;
}

// ---- errors ----

int host_take(PJRT_Error *error)
{
  words[0] = '\0';
  if (error == NULL) return 0;
  ARGS(code, PJRT_Error_GetCode, .error = error);
  assert_null(api->PJRT_Error_GetCode(&code));
  ARGS(text, PJRT_Error_Message, .error = error);
  api->PJRT_Error_Message(&text);
  snprintf(words, sizeof words, "%.*s", (int)text.message_size, text.message);
  CALL(PJRT_Error_Destroy, .error = error);
  return (int)code.code;
}

const char *host_words(void)
{
  return words;
}

void host_ok(PJRT_Error *error, const char *file, int line)
{
  int code = host_take(error);
  if (code == 0) return;
  print_error("%d: %s\n", code, words);
  _fail(file, line);
}

void host_fails(int code, PJRT_Error *error, const char *text, const char *file,
                int line)
{
  int found = host_take(error);
  if (found == code && strstr(words, text) != NULL) return;
  print_error("wanted %d with '%s', found %d: %s\n", code, text, found, words);
  _fail(file, line);
}

// ---- clients ----

PJRT_Client *host_client(int64_t n_devices)
{
  PJRT_NamedValue option = { CX_PJRT_ARGS(PJRT_NamedValue),
                             .name = "cpu_device_count",
                             .name_size = strlen("cpu_device_count"),
                             .type = PJRT_NamedValue_kInt64,
                             .int64_value = n_devices,
                             .value_size = 1 };
  ARGS(args, PJRT_Client_Create, .create_options = &option, .num_options = 1);
  HOST_OK(api->PJRT_Client_Create(&args));
  return args.client;
}

void host_client_free(PJRT_Client *client)
{
  HOST_OK(CALL(PJRT_Client_Destroy, .client = client));
}

PJRT_Device *host_device(PJRT_Client *client, size_t i)
{
  ARGS(args, PJRT_Client_AddressableDevices, .client = client);
  HOST_OK(api->PJRT_Client_AddressableDevices(&args));
  assert_true(i < args.num_addressable_devices);
  return args.addressable_devices[i];
}

// ---- buffers ----

// The interface has no way from a device to its client.
static PJRT_Client *client_of(PJRT_Device *device)
{
  return device->client;
}

PJRT_Buffer *host_buffer(PJRT_Device *device, PJRT_Buffer_Type type,
                         const void *data, size_t rank, const int64_t *dims)
{
  PJRT_Client *client = client_of(device);
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = client, .data = data,
       .type = type, .dims = dims, .num_dims = rank, .device = device);
  HOST_OK(api->PJRT_Client_BufferFromHostBuffer(&args));
  HOST_OK(host_wait(args.done_with_host_buffer));
  return args.buffer;
}

PJRT_Buffer *host_floats(PJRT_Device *device, size_t n, float first)
{
  float *data = malloc(n * sizeof *data);
  assert_non_null(data);
  for (size_t i = 0; i < n; i++) data[i] = first + (float)i;
  int64_t dims[] = { (int64_t)n };
  PJRT_Buffer *b = host_buffer(device, PJRT_Buffer_Type_F32, data, 1, dims);
  free(data);
  return b;
}

bool host_is_ready(PJRT_Buffer *buffer)
{
  ARGS(get, PJRT_Buffer_ReadyEvent, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_ReadyEvent(&get));
  ARGS(ready, PJRT_Event_IsReady, .event = get.event);
  HOST_OK(api->PJRT_Event_IsReady(&ready));
  HOST_OK(CALL(PJRT_Event_Destroy, .event = get.event));
  return ready.is_ready;
}

void host_free(PJRT_Buffer *buffer)
{
  HOST_OK(CALL(PJRT_Buffer_Destroy, .buffer = buffer));
}

bool host_is_deleted(PJRT_Buffer *buffer)
{
  ARGS(args, PJRT_Buffer_IsDeleted, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_IsDeleted(&args));
  return args.is_deleted;
}

void host_read(PJRT_Buffer *buffer, void *dst, size_t size)
{
  ARGS(args, PJRT_Buffer_ToHostBuffer, .src = buffer);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&args));
  assert_int_equal(args.dst_size, size);
  assert_null(args.event);
  args.dst = dst;
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&args));
  HOST_OK(host_wait(args.event));
}

void host_check_floats(PJRT_Buffer *buffer, size_t n, float first, float step)
{
  float *data = malloc(n * sizeof *data);
  assert_non_null(data);
  host_read(buffer, data, n * sizeof *data);
  for (size_t i = 0; i < n; i++) {
    assert_true(data[i] == first + step * (float)i);
  }
  free(data);
}

PJRT_Error *host_wait(PJRT_Event *event)
{
  PJRT_Error *error = CALL(PJRT_Event_Await, .event = event);
  HOST_OK(CALL(PJRT_Event_Destroy, .event = event));
  return error;
}

PJRT_Error *host_ready(PJRT_Buffer *buffer)
{
  ARGS(args, PJRT_Buffer_ReadyEvent, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_ReadyEvent(&args));
  return host_wait(args.event);
}

// ---- programs ----

// A varint of at most 14 bits is two bytes.
host_options host_replicas(int replicas, int partitions)
{
  char build[] = {
    0x20, (char)(0x80 | (replicas & 0x7f)),   (char)(replicas >> 7 & 0x7f),
    0x28, (char)(0x80 | (partitions & 0x7f)), (char)(partitions >> 7 & 0x7f)
  };
  host_options o = { .bytes = { 0x1a, sizeof build },
                     .size = 2 + sizeof build };
  memcpy(o.bytes + 2, build, sizeof build);
  return o;
}

PJRT_Error *host_compile(PJRT_Client *client, const char *text,
                         const char *options, size_t size,
                         PJRT_LoadedExecutable **out)
{
  PJRT_Program program = { CX_PJRT_ARGS(PJRT_Program),
                           .code = (char *)(uintptr_t)text,
                           .code_size = strlen(text), .format = "mlir",
                           .format_size = 4 };
  ARGS(args, PJRT_Client_Compile, .client = client, .program = &program,
       .compile_options = options, .compile_options_size = size);
  PJRT_Error *error = api->PJRT_Client_Compile(&args);
  *out = args.executable;
  return error;
}

PJRT_LoadedExecutable *host_program(PJRT_Client *client, const char *text)
{
  PJRT_LoadedExecutable *e = NULL;
  host_options o = host_replicas(1, 1);
  HOST_OK(host_compile(client, text, o.bytes, o.size, &e));
  return e;
}

void host_program_free(PJRT_LoadedExecutable *executable)
{
  HOST_OK(CALL(PJRT_LoadedExecutable_Destroy, .executable = executable));
}

PJRT_Error *host_run(PJRT_LoadedExecutable *executable, PJRT_Device *device,
                     PJRT_Buffer *const *args, size_t n, PJRT_Buffer **out)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { out };
  return CALL(PJRT_LoadedExecutable_Execute, .executable = executable,
              .options = &options, .argument_lists = lists, .num_devices = 1,
              .num_args = n, .output_lists = outs, .execute_device = device);
}

// ---- pending buffers ----

host_pending host_promise(PJRT_Client *client, size_t device, size_t n)
{
  host_pending p = { .n = n };
  int64_t dims[] = { (int64_t)n };
  PJRT_ShapeSpec spec = { CX_PJRT_ARGS(PJRT_ShapeSpec), .dims = dims,
                          .num_dims = 1, .element_type = PJRT_Buffer_Type_F32 };
  ARGS(memory, PJRT_Device_DefaultMemory,
       .device = host_device(client, device));
  HOST_OK(api->PJRT_Device_DefaultMemory(&memory));
  ARGS(args, PJRT_Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .shape_specs = &spec, .num_shape_specs = 1, .memory = memory.memory);
  HOST_OK(api->PJRT_Client_CreateBuffersForAsyncHostToDevice(&args));
  p.manager = args.transfer_manager;
  ARGS(get, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer,
       .transfer_manager = p.manager);
  HOST_OK(api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&get));
  p.buffer = get.buffer_out;
  return p;
}

void host_fulfil(host_pending *pending, float first)
{
  float *data = malloc(pending->n * sizeof *data);
  assert_non_null(data);
  for (size_t i = 0; i < pending->n; i++) data[i] = first + (float)i;
  ARGS(args, PJRT_AsyncHostToDeviceTransferManager_TransferData,
       .transfer_manager = pending->manager, .data = data,
       .transfer_size = (int64_t)(pending->n * sizeof *data),
       .is_last_transfer = true);
  HOST_OK(api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&args));
  HOST_OK(host_wait(args.done_with_h2d_transfer));
  HOST_OK(CALL(PJRT_AsyncHostToDeviceTransferManager_Destroy,
               .transfer_manager = pending->manager));
  free(data);
}

void host_break(host_pending *pending, const char *why)
{
  HOST_OK(CALL(PJRT_AsyncHostToDeviceTransferManager_SetBufferError,
               .transfer_manager = pending->manager,
               .error_code = PJRT_Error_Code_ABORTED, .error_message = why,
               .error_message_size = strlen(why)));
  HOST_OK(CALL(PJRT_AsyncHostToDeviceTransferManager_Destroy,
               .transfer_manager = pending->manager));
}
