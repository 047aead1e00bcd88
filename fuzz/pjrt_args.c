// fuzz/pjrt_args: any bytes as calls of the engine's PJRT table.
//
// Each call is a letter and numbers: buffers are made, read, copied, given away
// and destroyed with shapes, strides, layouts and struct sizes of any kind;
// compile options, executables and topologies are the bytes that follow. Every
// pointer is to something that is there, since a wild one can only crash. Calls
// are answered, with success or with an error that says something; afterwards
// nothing is left over.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/calx_cpu.h"
#include "base/alloc.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFERS = 8, ROOM = 1 << 16, RANK = 80 };

#define CALL(function, ...) \
  api->function(            \
      &(function##_Args){ CX_PJRT_ARGS(function##_Args), __VA_ARGS__ })
#define ARGS(name, function, ...) \
  function##_Args name = { CX_PJRT_ARGS(function##_Args), __VA_ARGS__ }

// (x, y) -> x + y of f32[4], where x's memory becomes the result's
static const char program[] =
    "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, "
    "%b: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n";

typedef struct input {
  const uint8_t *at, *end;
  int64_t dims[RANK], strides[RANK];
} input;

static const PJRT_Api *api;
static PJRT_Client *client;
static PJRT_Device *devices[2];
static PJRT_LoadedExecutable *add;
static PJRT_Buffer *buffers[BUFFERS];
static _Alignas(64) unsigned char memory[ROOM];

static void check(int right)
{
  if (!right) abort();
}

// Whether it was well.
static bool take(PJRT_Error *error)
{
  if (error == NULL) return true;
  ARGS(text, PJRT_Error_Message, .error = error);
  api->PJRT_Error_Message(&text);
  check(text.message_size > 0);
  ARGS(code, PJRT_Error_GetCode, .error = error);
  check(api->PJRT_Error_GetCode(&code) == NULL && code.code != 0);
  CALL(PJRT_Error_Destroy, .error = error);
  return false;
}

static void finish(PJRT_Event *event)
{
  if (event == NULL) return;
  (void)take(CALL(PJRT_Event_Await, .event = event));
  check(take(CALL(PJRT_Event_Destroy, .event = event)));
}

// ---- numbers ----

static int byte(input *in)
{
  return in->at < in->end ? *in->at++ : 0;
}

// Small, or at the edges.
static int64_t number(input *in)
{
  static const int64_t edges[] = { -1,        INT64_MAX, INT64_MIN, 1LL << 31,
                                   1LL << 60, 4096,      16,        64 };
  int b = byte(in);
  return b < 248 ? b % 31 : edges[b - 248];
}

static size_t read_dims(input *in)
{
  size_t rank = (size_t)byte(in);
  rank = rank < 250 ? rank % 5 : rank - 250 + 62;
  for (size_t i = 0; i < rank && i < RANK; i++) {
    in->dims[i] = rank < 5 ? number(in) : 1;
  }
  return rank;
}

// Within the room for tensors of less than 31 elements a side: what a caller
// says about his own memory is believed.
static bool read_strides(input *in, size_t rank)
{
  bool small = rank <= 4;
  for (size_t i = 0; small && i < rank; i++) {
    in->strides[i] = (int8_t)byte(in);
    small = in->dims[i] >= 0 && in->dims[i] < 31;
  }
  return small;
}

static PJRT_Buffer **slot(input *in)
{
  return &buffers[byte(in) % BUFFERS];
}

static void drop(PJRT_Buffer **at)
{
  check(take(CALL(PJRT_Buffer_Destroy, .buffer = *at)));
  *at = NULL;
}

// ---- calls ----

static void upload(input *in)
{
  PJRT_Buffer **to = slot(in);
  drop(to);
  int how = byte(in);
  size_t rank = read_dims(in);
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = client,
       .data = memory + ROOM / 2, .type = (PJRT_Buffer_Type)(byte(in) % 40 - 2),
       .dims = in->dims, .num_dims = rank,
       .host_buffer_semantics = (PJRT_HostBufferSemantics)(how & 3),
       .device = devices[how >> 2 & 1]);
  bool strided = read_strides(in, rank);
  if ((how & 8) != 0 && strided) {
    args.byte_strides = in->strides;
    args.num_byte_strides = rank + (how >> 6 == 3);
  } else {
    // Dense: no more than there is, or than any machine has.
    int64_t n = 16;
    bool fits = true;
    for (size_t i = 0; i < rank; i++) {
      fits = fits && !__builtin_mul_overflow(n, in->dims[i], &n);
    }
    if (fits && n > ROOM / 2 && n < INT64_C(1) << 58) return;
  }
  if (take(api->PJRT_Client_BufferFromHostBuffer(&args))) {
    *to = args.buffer;
    // It fires when the buffer is gone, which comes later.
    check(take(CALL(PJRT_Event_Destroy, .event = args.done_with_host_buffer)));
  } else {
    check(args.buffer == NULL);
  }
}

static void plain(input *in)
{
  PJRT_Buffer **to = slot(in);
  drop(to);
  int64_t four = 4;
  ARGS(args, PJRT_Client_BufferFromHostBuffer, .client = client, .data = memory,
       .type = PJRT_Buffer_Type_F32, .dims = &four, .num_dims = 1,
       .device = devices[byte(in) & 1]);
  check(take(api->PJRT_Client_BufferFromHostBuffer(&args)));
  *to = args.buffer;
  finish(args.done_with_host_buffer);
}

static void read_back(input *in)
{
  static unsigned char out[ROOM];
  PJRT_Buffer *b = *slot(in);
  int how = byte(in);
  size_t rank = read_dims(in);
  (void)read_strides(in, rank);
  PJRT_Buffer_MemoryLayout layout = { CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout),
                                      .type = how & 1 };
  if ((how & 1) != 0) {
    layout.strides.byte_strides = in->strides;
    layout.strides.num_byte_strides = rank;
  } else {
    layout.tiled.minor_to_major = in->dims;
    layout.tiled.minor_to_major_size = rank;
  }
  if ((how & 16) != 0) layout.struct_size = (size_t)how;
  ARGS(args, PJRT_Buffer_ToHostBuffer, .src = b,
       .host_layout = (how & 2) != 0 ? &layout : NULL,
       .dst = (how & 4) != 0 ? out : NULL,
       .dst_size = (how & 8) != 0 ? (size_t)byte(in) : ROOM);
  if (take(api->PJRT_Buffer_ToHostBuffer(&args))) finish(args.event);
  ARGS(raw, PJRT_Buffer_CopyRawToHost, .buffer = b, .dst = out,
       .offset = number(in), .transfer_size = number(in));
  if (take(api->PJRT_Buffer_CopyRawToHost(&raw))) finish(raw.event);
}

static void copy(input *in)
{
  PJRT_Buffer *from = *slot(in);
  PJRT_Buffer **to = slot(in);
  ARGS(args, PJRT_Buffer_CopyToDevice, .buffer = from,
       .dst_device = devices[byte(in) & 1]);
  if (!take(api->PJRT_Buffer_CopyToDevice(&args))) return;
  drop(to);
  *to = args.dst_buffer;
}

static void bitcast(input *in)
{
  PJRT_Buffer *from = *slot(in);
  PJRT_Buffer **to = slot(in);
  size_t rank = read_dims(in);
  ARGS(args, PJRT_Buffer_Bitcast, .buffer = from,
       .element_type = (PJRT_Buffer_Type)(byte(in) % 36), .dims = in->dims,
       .num_dims = rank);
  if (!take(api->PJRT_Buffer_Bitcast(&args))) return;
  drop(to);
  *to = args.out_buffer;
}

static void execute(input *in)
{
  PJRT_Buffer *args[] = { *slot(in), *slot(in) };
  PJRT_Buffer **to = slot(in);
  PJRT_Buffer *sum = NULL;
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { &sum };
  int64_t kept = number(in);
  int how = byte(in);
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions),
                                  .non_donatable_input_indices = &kept,
                                  .num_non_donatable_input_indices = how & 1 };
  bool done = take(CALL(
      PJRT_LoadedExecutable_Execute, .executable = add, .options = &options,
      .argument_lists = lists, .num_devices = how < 250 ? 1 : (size_t)how,
      .num_args = how > 248 ? (size_t)number(in) : 2, .output_lists = outs,
      .execute_device = (how & 2) != 0 ? devices[how >> 2 & 1] : NULL));
  if (!done) return;
  drop(to);
  *to = sum;
}

static void touch(input *in)
{
  PJRT_Buffer *b = *slot(in);
  switch (byte(in) % 5) {
    case 0: (void)take(CALL(PJRT_Buffer_Delete, .buffer = b)); break;
    case 1:
      (void)take(CALL(PJRT_Buffer_IncreaseExternalReferenceCount, .buffer = b));
      break;
    case 2:
      (void)take(CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = b));
      break;
    case 3: (void)take(CALL(PJRT_Buffer_UnsafePointer, .buffer = b)); break;
    default: (void)take(CALL(PJRT_Buffer_GetMemoryLayout, .buffer = b)); break;
  }
}

// ---- the rest of the input as bytes ----

static void options(input *in)
{
  PJRT_Program p = { CX_PJRT_ARGS(PJRT_Program),
                     .code = (char *)(uintptr_t)program,
                     .code_size = sizeof program - 1, .format = "mlir",
                     .format_size = 4 };
  ARGS(args, PJRT_Client_Compile, .client = client, .program = &p,
       .compile_options = (const char *)in->at,
       .compile_options_size = (size_t)(in->end - in->at));
  if (take(api->PJRT_Client_Compile(&args))) {
    check(take(
        CALL(PJRT_LoadedExecutable_Destroy, .executable = args.executable)));
  }
}

static void load(input *in)
{
  ARGS(args, PJRT_Executable_DeserializeAndLoad, .client = client,
       .serialized_executable = (const char *)in->at,
       .serialized_executable_size = (size_t)(in->end - in->at));
  if (take(api->PJRT_Executable_DeserializeAndLoad(&args))) {
    check(take(CALL(PJRT_LoadedExecutable_Destroy,
                    .executable = args.loaded_executable)));
  }
}

static void topology(input *in)
{
  ARGS(args, PJRT_TopologyDescription_Deserialize,
       .serialized_topology = (const char *)in->at,
       .serialized_topology_size = (size_t)(in->end - in->at));
  if (take(api->PJRT_TopologyDescription_Deserialize(&args))) {
    check(take(
        CALL(PJRT_TopologyDescription_Destroy, .topology = args.topology)));
  }
}

static void (*const calls[])(input *in) = {
  upload,  upload,  plain, plain,   read_back, copy,     bitcast,
  execute, execute, touch, options, load,      topology,
};

static void begin(void)
{
  setenv("CALX_CPU_REF", "1", 1);
  api = calx_cpu_api();
  PJRT_NamedValue two = {
    CX_PJRT_ARGS(PJRT_NamedValue),  .name = "cpu_device_count", .name_size = 16,
    .type = PJRT_NamedValue_kInt64, .int64_value = 2,           .value_size = 1
  };
  ARGS(make, PJRT_Client_Create, .create_options = &two, .num_options = 1);
  check(take(api->PJRT_Client_Create(&make)));
  client = make.client;
  ARGS(list, PJRT_Client_Devices, .client = client);
  check(take(api->PJRT_Client_Devices(&list)));
  devices[0] = list.devices[0];
  devices[1] = list.devices[1];
  static const char portable[] = "\x1a\x04\x20\x01\x28\x01\x20\x01";
  PJRT_Program p = { CX_PJRT_ARGS(PJRT_Program),
                     .code = (char *)(uintptr_t)program,
                     .code_size = sizeof program - 1, .format = "mlir",
                     .format_size = 4 };
  ARGS(compile, PJRT_Client_Compile, .client = client, .program = &p,
       .compile_options = portable, .compile_options_size = 8);
  check(take(api->PJRT_Client_Compile(&compile)));
  add = compile.executable;
}

static PJRT_Buffer *zeros(PJRT_Device *device)
{
  int64_t four = 4;
  ARGS(args, PJRT_Client_CreateUninitializedBuffer, .client = client,
       .shape_dims = &four, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32, .device = device);
  check(take(api->PJRT_Client_CreateUninitializedBuffer(&args)));
  return args.buffer;
}

// Waits for what is queued: launches run in order.
static void drain(PJRT_Device *device)
{
  PJRT_Buffer *args[] = { zeros(device), zeros(device) };
  PJRT_Buffer *sum = NULL;
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { &sum };
  PJRT_Event *done = NULL;
  PJRT_ExecuteOptions none = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  check(take(CALL(PJRT_LoadedExecutable_Execute, .executable = add,
                  .options = &none, .argument_lists = lists, .num_devices = 1,
                  .num_args = 2, .output_lists = outs,
                  .device_complete_events = &done, .execute_device = device)));
  finish(done);
  drop(&args[0]);
  drop(&args[1]);
  drop(&sum);
}

static int64_t in_use(PJRT_Device *device)
{
  ARGS(stats, PJRT_Device_MemoryStats, .device = device);
  check(take(api->PJRT_Device_MemoryStats(&stats)));
  return stats.bytes_in_use;
}

// Threads that told of their end may still be putting away what they held.
static void give_time(int rounds)
{
  const struct timespec ms = { .tv_nsec = 1000000 };
  check(rounds < 10000);
  nanosleep(&ms, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (api == NULL) begin();
  const size_t kinds = sizeof calls / sizeof *calls;
  input in = { .at = data, .end = data + size };
  for (int i = 0; i < 200 && in.at < in.end; i++) {
    calls[(size_t)byte(&in) % kinds](&in);
  }
  for (int i = 0; i < BUFFERS; i++) drop(&buffers[i]);
  for (int i = 0; i < 2; i++) {
    drain(devices[i]);
    for (int k = 0; in_use(devices[i]) != 0; k++) give_time(k);
  }
  for (int k = 0; cx_status_live() != 0; k++) give_time(k);
  return 0;
}
