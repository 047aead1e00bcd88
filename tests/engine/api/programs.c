// programs: compiling, what is told about executables, and their bytes.
#include "base/alloc.h"
#include "base/file.h"
#include "host.h"

#define ADD BINARY("add", "tensor<2x2xf32>")

static PJRT_Error *compile(PJRT_Client *client, const char *format,
                           const char *code, size_t size, const char *options,
                           size_t options_size)
{
  PJRT_Program program = { CX_PJRT_ARGS(PJRT_Program),
                           .code = (char *)(uintptr_t)code, .code_size = size,
                           .format = format, .format_size = strlen(format) };
  ARGS(args, PJRT_Client_Compile, .client = client, .program = &program,
       .compile_options = options, .compile_options_size = options_size);
  PJRT_Error *error = api->PJRT_Client_Compile(&args);
  if (error == NULL) host_program_free(args.executable);
  return error;
}

static void test_formats(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  HOST_OK(compile(client, "mlir", ADD, strlen(ADD), NULL, 0));
  HOST_FAILS(3, compile(client, "mlir", "ML\xefR\x01", 5, NULL, 0), "byte 5");
  HOST_FAILS(12, compile(client, "hlo", "x", 1, NULL, 0), "'hlo'");
  HOST_FAILS(12, compile(client, "hlo_with_config", "x", 1, NULL, 0),
             "reads StableHLO");
  HOST_FAILS(3, compile(client, "foo", "x", 1, NULL, 0),
             "Unknown program format 'foo'.");
  PJRT_Error *error = compile(client, "mlir", "nonsense", 8, NULL, 0);
  assert_int_not_equal(host_take(error), 0);
  error = compile(client, "mlir", "", 0, NULL, 0);
  assert_int_not_equal(host_take(error), 0);
  host_client_free(client);
}

// StableHLO's own writer made add.bc of the function that ADD is.
static void test_bytecode(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  char *bytes = NULL;
  size_t size = 0;
  assert_null(cx_file_read(CX_TEST_DIR "/add.bc", 0, &bytes, &size));
  HOST_OK(compile(client, "mlir", bytes, size, NULL, 0));
  HOST_FAILS(3, compile(client, "mlir", bytes, size - 1, NULL, 0), "byte ");
  cx_free(bytes);
  host_client_free(client);
}

static void test_options(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(4);
  struct {
    const char *bytes;
    size_t size;
    const char *text;  // NULL: fine
  } cases[] = {
    { "\x1a\x04\x20\x01\x28\x01", 6, NULL },
    { "\x1a\x04\x20\x01\x28", 5, "failed to deserialize CompileOptionsProto" },
    { "garbage", 7, "failed to deserialize CompileOptionsProto" },
    // A field of a later version.
    { "\x1a\x04\x20\x01\x28\x01\xf2\x3f\x02hi", 11, NULL },
    { "\x1a\x04\x20\x05\x28\x01", 6, "No matching device found" },
    { "\x1a\x04\x20\x02\x28\x03", 6, "No matching device found" },
    { "\x1a\x0b\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13,
      "num_replicas is -1" },
    { "\x1a\x06\x28\xff\xff\xff\xff\x07", 8, "num_partitions is 2147483647" },
    // 1 replica on device 2, on 9, and an assignment of 2.
    { "\x1a\x0f\x20\x01\x28\x01\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x02",
      17, NULL },
    { "\x1a\x0f\x20\x01\x28\x01\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x09",
      17, "device_id 9" },
    { "\x1a\x10\x20\x01\x28\x01\x4a\x0a\x08\x02\x10\x01\x1a\x04\x0a\x02\x00"
      "\x01",
      18, "assignment of 2 replicas" },
    { "\x1a\x10\x20\x02\x28\x01\x4a\x0a\x08\x02\x10\x01\x1a\x04\x0a\x02\x01"
      "\x01",
      18, "device 1 is assigned 2 shares" },
    { "\x1a\x0c\x20\x02\x28\x01\x4a\x06\x08\x02\x10\x01\x1a\x00", 14,
      "assigned 0 devices, wanted 2" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PJRT_Error *error = compile(client, "mlir", ADD, strlen(ADD),
                                cases[i].bytes, cases[i].size);
    int code = host_take(error);
    bool right = cases[i].text == NULL
                     ? code == 0
                     : code == 3 && strstr(host_words(), cases[i].text) != NULL;
    if (!right) fail_msg("case %zu: %d %s", i, code, host_words());
  }
  host_client_free(client);
}

#define LOOP                                                              \
  "module @test {\n"                                                      \
  "  func.func public @main(%%x: tensor<32x32xf32>) -> "                  \
  "tensor<32x32xf32> {\n"                                                 \
  "    %%zero = stablehlo.constant dense<0> : tensor<i32>\n"              \
  "    %%limit = stablehlo.constant dense<%s> : tensor<i32>\n"            \
  "    %%step = stablehlo.constant dense<4> : tensor<i32>\n"              \
  "    %%r:2 = stablehlo.while(%%i = %%zero, %%y = %%x) : tensor<i32>, "  \
  "tensor<32x32xf32>\n"                                                   \
  "    cond {\n"                                                          \
  "      %%c = stablehlo.compare %s, %%i, %%limit, SIGNED : "             \
  "(tensor<i32>, tensor<i32>) -> tensor<i1>\n"                            \
  "      stablehlo.return %%c : tensor<i1>\n"                             \
  "    } do {\n"                                                          \
  "      %%n = stablehlo.add %%i, %%step : tensor<i32>\n"                 \
  "      %%z = stablehlo.dot_general %%y, %%x, contracting_dims = [1] x " \
  "[0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>\n"   \
  "      stablehlo.return %%n, %%z : tensor<i32>, tensor<32x32xf32>\n"    \
  "    }\n"                                                               \
  "    return %%r#1 : tensor<32x32xf32>\n"                                \
  "  }\n"                                                                 \
  "}\n"

static PJRT_Executable *of(PJRT_LoadedExecutable *loaded)
{
  ARGS(get, PJRT_LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_GetExecutable(&get));
  return get.executable;
}

static void check_facts(PJRT_Executable *e)
{
  ARGS(name, PJRT_Executable_Name, .executable = e);
  HOST_OK(api->PJRT_Executable_Name(&name));
  assert_memory_equal(name.executable_name, "test", 4);
  ARGS(outputs, PJRT_Executable_NumOutputs, .executable = e);
  HOST_OK(api->PJRT_Executable_NumOutputs(&outputs));
  assert_int_equal(outputs.num_outputs, 1);
  ARGS(types, PJRT_Executable_OutputElementTypes, .executable = e);
  HOST_OK(api->PJRT_Executable_OutputElementTypes(&types));
  assert_int_equal(types.output_types[0], PJRT_Buffer_Type_F32);
  ARGS(dims, PJRT_Executable_OutputDimensions, .executable = e);
  HOST_OK(api->PJRT_Executable_OutputDimensions(&dims));
  assert_int_equal(dims.dim_sizes[0], 2);
  assert_int_equal(dims.dims[1], 2);
  ARGS(kinds, PJRT_Executable_ParameterMemoryKinds, .executable = e);
  HOST_OK(api->PJRT_Executable_ParameterMemoryKinds(&kinds));
  assert_int_equal(kinds.num_parameters, 2);
  assert_memory_equal(kinds.memory_kinds[1], "device", 6);
  ARGS(print, PJRT_Executable_Fingerprint, .executable = e);
  HOST_OK(api->PJRT_Executable_Fingerprint(&print));
  assert_int_equal(print.executable_fingerprint_size, 32);
  ARGS(cost, PJRT_Executable_GetCostAnalysis, .executable = e);
  HOST_OK(api->PJRT_Executable_GetCostAnalysis(&cost));
  assert_int_equal(cost.num_properties, 4);
  ARGS(memory, PJRT_Executable_GetCompiledMemoryStats, .executable = e);
  // As a caller of 0.57 has it, what comes later stays as it is.
  memory.struct_size = 24 + 10 * sizeof(int64_t);
  memory.peak_memory_in_bytes = 77;
  HOST_OK(api->PJRT_Executable_GetCompiledMemoryStats(&memory));
  assert_int_equal(memory.argument_size_in_bytes, 32);
  assert_int_equal(memory.output_size_in_bytes, 16);
  assert_int_equal(memory.alias_size_in_bytes, 0);
  assert_int_equal(memory.peak_memory_in_bytes, 77);
}

static void test_facts(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *loaded = host_program(client, ADD);
  PJRT_Executable *e = of(loaded);
  check_facts(e);
  ARGS(devices, PJRT_LoadedExecutable_AddressableDevices, .executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_AddressableDevices(&devices));
  assert_int_equal(devices.num_addressable_devices, 1);
  assert_ptr_equal(devices.addressable_devices[0], host_device(client, 0));
  ARGS(where, PJRT_LoadedExecutable_GetDeviceAssignment, .executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_GetDeviceAssignment(&where));
  assert_int_equal(where.serialized_bytes_size, 9);
  assert_memory_equal(where.serialized_bytes,
                      "\x08\x01\x10\x01\x1a\x03\x0a\x01\x00", 9);
  where.serialized_device_assignment_deleter(
      where.serialized_device_assignment);
  ARGS(options, PJRT_Executable_GetCompileOptions, .executable = e);
  HOST_OK(api->PJRT_Executable_GetCompileOptions(&options));
  assert_int_equal(options.serialized_bytes_size, host_replicas(1, 1).size);
  options.serialized_compile_options_deleter(
      options.serialized_compile_options);
  // The handles are independent.
  host_program_free(loaded);
  check_facts(e);
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  host_client_free(client);
}

static double flops_of(PJRT_Executable *e)
{
  ARGS(cost, PJRT_Executable_GetCostAnalysis, .executable = e);
  HOST_OK(api->PJRT_Executable_GetCostAnalysis(&cost));
  for (size_t i = 0; i < cost.num_properties; i++) {
    if (cost.properties[i].name_size == 5 &&
        memcmp(cost.properties[i].name, "flops", 5) == 0) {
      return (double)cost.properties[i].float_value;
    }
  }
  return -1;
}

// Products of 32 x 32 x 32, as often as the loop runs.
static void test_work_of_loops(void **state)
{
  (void)state;
  static const struct {
    const char *direction, *limit;
    int rounds;
  } loops[] = { { "LT", "1", 1 },
                { "LT", "10", 3 },
                { "LE", "12", 4 },
                { "LT", "12", 3 },
                { "LT", "-1", 0 } };
  unsetenv("CALX_CPU_REF");  // the interpreter's work is not counted
  PJRT_Client *client = host_client(1);
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
    char text[2048];
    snprintf(text, sizeof text, LOOP, loops[i].limit, loops[i].direction);
    PJRT_LoadedExecutable *loaded = host_program(client, text);
    PJRT_Executable *e = of(loaded);
    const double flops = flops_of(e);
    const double each = 2.0 * 32 * 32 * 32;
    assert_in_range(flops, loops[i].rounds * each, loops[i].rounds * each + 16);
    HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
    host_program_free(loaded);
  }
  host_client_free(client);
  setenv("CALX_CPU_REF", "1", 1);
}

static void test_deleted(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *e = host_program(client, ADD);
  HOST_OK(CALL(PJRT_LoadedExecutable_Delete, .executable = e));
  ARGS(gone, PJRT_LoadedExecutable_IsDeleted, .executable = e);
  HOST_OK(api->PJRT_LoadedExecutable_IsDeleted(&gone));
  assert_true(gone.is_deleted);
  HOST_FAILS(3, host_run(e, NULL, NULL, 0, NULL), "was deleted");
  host_program_free(e);
  host_client_free(client);
}

// ---- as bytes ----

static PJRT_Error *load(PJRT_Client *client, const char *bytes, size_t size,
                        PJRT_LoadedExecutable **out)
{
  ARGS(args, PJRT_Executable_DeserializeAndLoad, .client = client,
       .serialized_executable = bytes, .serialized_executable_size = size);
  PJRT_Error *error = api->PJRT_Executable_DeserializeAndLoad(&args);
  *out = args.loaded_executable;
  return error;
}

static void test_bytes(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *loaded = host_program(client, ADD);
  PJRT_Executable *e = of(loaded);
  host_program_free(loaded);
  ARGS(saved, PJRT_Executable_Serialize, .executable = e);
  HOST_OK(api->PJRT_Executable_Serialize(&saved));
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  size_t size = saved.serialized_bytes_size;
  char *bytes = malloc(size + 1);
  assert_non_null(bytes);
  memcpy(bytes, saved.serialized_bytes, size);
  saved.serialized_executable_deleter(saved.serialized_executable);
  HOST_OK(load(client, bytes, size, &loaded));
  e = of(loaded);
  check_facts(e);
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  PJRT_Device *device = host_device(client, 0);
  PJRT_Buffer *a = host_buffer(device, PJRT_Buffer_Type_F32,
                               (float[]){ 1, 2, 3, 4 }, 2, (int64_t[]){ 2, 2 });
  PJRT_Buffer *args[] = { a, a };
  PJRT_Buffer *sum = NULL;
  HOST_OK(host_run(loaded, NULL, args, 2, &sum));
  host_check_floats(sum, 4, 2, 2);
  host_free(sum);
  host_free(a);
  host_program_free(loaded);
  // Torn anywhere, flipped anywhere.
  for (size_t n = 0; n < size; n += 1 + size / 97) {
    assert_int_not_equal(host_take(load(client, bytes, n, &loaded)), 0);
  }
  for (size_t n = 0; n < size; n += 1 + size / 97) {
    bytes[n] ^= 0x10;
    assert_int_not_equal(host_take(load(client, bytes, size, &loaded)), 0);
    bytes[n] ^= 0x10;
  }
  bytes[size] = 0;
  assert_int_not_equal(host_take(load(client, bytes, size + 1, &loaded)), 0);
  HOST_FAILS(3, load(client, NULL, 0, &loaded), "no executable");
  HOST_FAILS(3, load(client, "rubbish", 7, &loaded), "no executable");
  bytes[8] ^= 3;
  HOST_FAILS(9, load(client, bytes, size, &loaded), "layout");
  free(bytes);
  host_client_free(client);
}

// ---- optimized ----

// What nothing uses is left out.
#define UNUSED                                              \
  "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n" \
  "  %two = stablehlo.add %a, %a : tensor<2xf32>\n"         \
  "  %b = stablehlo.multiply %a, %a : tensor<2xf32>\n"      \
  "  return %b : tensor<2xf32>\n}\n"

static void check_costs(PJRT_Executable *e)
{
  // As XLA counts: 2 products; 8 bytes read and 8 written.
  static const struct {
    const char *name;
    float value;
  } costs[] = { { "flops", 2 },
                { "transcendentals", 0 },
                { "bytes accessed", 16 } };
  ARGS(cost, PJRT_Executable_GetCostAnalysis, .executable = e);
  HOST_OK(api->PJRT_Executable_GetCostAnalysis(&cost));
  for (size_t i = 0; i < 3; i++) {
    const PJRT_NamedValue *v = &cost.properties[i];
    assert_int_equal(v->name_size, strlen(costs[i].name));
    assert_memory_equal(v->name, costs[i].name, v->name_size);
    assert_int_equal(v->type, PJRT_NamedValue_kFloat);
    assert_true(v->float_value == costs[i].value);
  }
}

static void test_optimized(void **state)
{
  (void)state;
  unsetenv("CALX_CPU_REF");  // what is interpreted is not optimized
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *loaded = host_program(client, UNUSED);
  PJRT_Executable *e = of(loaded);
  check_costs(e);
  PJRT_Program program = { CX_PJRT_ARGS(PJRT_Program) };
  ARGS(args, PJRT_Executable_OptimizedProgram, .executable = e,
       .program = &program);
  HOST_OK(api->PJRT_Executable_OptimizedProgram(&args));
  assert_int_equal(program.format_size, 4);
  assert_memory_equal(program.format, "mlir", 4);
  const size_t size = program.code_size;
  char *text = calloc(1, size + 1);
  assert_non_null(text);
  program.code = text;
  program.code_size = size - 1;
  HOST_FAILS(3, api->PJRT_Executable_OptimizedProgram(&args), "bytes, not");
  program.code_size = size;
  HOST_OK(api->PJRT_Executable_OptimizedProgram(&args));
  assert_int_equal(strlen(text), size);
  assert_non_null(strstr(text, "stablehlo.multiply"));
  assert_null(strstr(text, "stablehlo.add"));
  HOST_OK(compile(client, "mlir", text, size, NULL, 0));
  free(text);
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  host_program_free(loaded);
  host_client_free(client);
  setenv("CALX_CPU_REF", "1", 1);
}

// ---- kinds of memory ----

#define KINDS(of_b)                                                           \
  "func.func @main(%a: tensor<2xf32> {mhlo.memory_kind = \"pinned_host\"})\n" \
  "    -> (tensor<2xf32>, tensor<2xf32> {mhlo.memory_kind = " of_b            \
  "}) {\n"                                                                    \
  "  %b = stablehlo.negate %a : tensor<2xf32>\n"                              \
  "  return %b, %b : tensor<2xf32>, tensor<2xf32>\n}\n"

static void check_kind(PJRT_Memory *memory, const char *wanted)
{
  ARGS(kind, PJRT_Memory_Kind, .memory = memory);
  HOST_OK(api->PJRT_Memory_Kind(&kind));
  assert_int_equal(kind.kind_size, strlen(wanted));
  assert_memory_equal(kind.kind, wanted, kind.kind_size);
}

static void check_buffer_kind(PJRT_Buffer *buffer, const char *wanted)
{
  ARGS(where, PJRT_Buffer_Memory, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_Memory(&where));
  check_kind(where.memory, wanted);
}

static void check_kinds(PJRT_LoadedExecutable *loaded, PJRT_Buffer *a)
{
  PJRT_Executable *e = of(loaded);
  ARGS(of_params, PJRT_Executable_ParameterMemoryKinds, .executable = e);
  HOST_OK(api->PJRT_Executable_ParameterMemoryKinds(&of_params));
  assert_int_equal(of_params.memory_kind_sizes[0], 11);
  assert_memory_equal(of_params.memory_kinds[0], "pinned_host", 11);
  ARGS(of_results, PJRT_Executable_OutputMemoryKinds, .executable = e);
  HOST_OK(api->PJRT_Executable_OutputMemoryKinds(&of_results));
  assert_memory_equal(of_results.memory_kinds[0], "device", 6);
  assert_memory_equal(of_results.memory_kinds[1], "unpinned_host", 13);
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  PJRT_Buffer *results[2] = { NULL, NULL };
  HOST_OK(host_run(loaded, NULL, &a, 1, results));
  check_buffer_kind(results[0], "device");
  check_buffer_kind(results[1], "unpinned_host");
  host_check_floats(results[1], 2, -1, -1);
  host_free(results[0]);
  host_free(results[1]);
}

static void test_memory_kinds(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_Device *device = host_device(client, 0);
  ARGS(all, PJRT_Device_AddressableMemories, .device = device);
  HOST_OK(api->PJRT_Device_AddressableMemories(&all));
  PJRT_Buffer *on_device = host_buffer(device, PJRT_Buffer_Type_F32,
                                       (float[]){ 1, 2 }, 1, (int64_t[]){ 2 });
  check_buffer_kind(on_device, "device");
  ARGS(copy, PJRT_Buffer_CopyToMemory, .buffer = on_device,
       .dst_memory = all.memories[1]);
  HOST_OK(api->PJRT_Buffer_CopyToMemory(&copy));
  check_buffer_kind(copy.dst_buffer, "pinned_host");
  PJRT_LoadedExecutable *loaded =
      host_program(client, KINDS("\"unpinned_host\""));
  check_kinds(loaded, copy.dst_buffer);
  PJRT_Executable *e = of(loaded);
  host_program_free(loaded);
  ARGS(saved, PJRT_Executable_Serialize, .executable = e);
  HOST_OK(api->PJRT_Executable_Serialize(&saved));
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  HOST_OK(load(client, saved.serialized_bytes, saved.serialized_bytes_size,
               &loaded));
  saved.serialized_executable_deleter(saved.serialized_executable);
  check_kinds(loaded, copy.dst_buffer);
  PJRT_Program program = { CX_PJRT_ARGS(PJRT_Program) };
  e = of(loaded);
  ARGS(text, PJRT_Executable_OptimizedProgram, .executable = e,
       .program = &program);
  HOST_FAILS(12, api->PJRT_Executable_OptimizedProgram(&text), "was loaded");
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = e));
  host_program_free(loaded);
  host_free(copy.dst_buffer);
  host_free(on_device);
  HOST_FAILS(3,
             compile(client, "mlir", KINDS("\"hbm\""), strlen(KINDS("\"hbm\"")),
                     NULL, 0),
             "result 1: wants \"device\", \"pinned_host\" or "
             "\"unpinned_host\", found hbm");
  host_client_free(client);
}

// ---- without a client ----

static void test_topology(void **state)
{
  (void)state;
  PJRT_NamedValue option = {
    CX_PJRT_ARGS(PJRT_NamedValue),  .name = "cpu_device_count", .name_size = 16,
    .type = PJRT_NamedValue_kInt64, .int64_value = 3,           .value_size = 1
  };
  ARGS(make, PJRT_TopologyDescription_Create, .create_options = &option,
       .num_options = 1);
  HOST_OK(api->PJRT_TopologyDescription_Create(&make));
  ARGS(saved, PJRT_TopologyDescription_Serialize, .topology = make.topology);
  HOST_OK(api->PJRT_TopologyDescription_Serialize(&saved));
  ARGS(read, PJRT_TopologyDescription_Deserialize,
       .serialized_topology = saved.serialized_bytes,
       .serialized_topology_size = saved.serialized_bytes_size);
  HOST_OK(api->PJRT_TopologyDescription_Deserialize(&read));
  ARGS(list, PJRT_TopologyDescription_GetDeviceDescriptions,
       .topology = read.topology);
  HOST_OK(api->PJRT_TopologyDescription_GetDeviceDescriptions(&list));
  assert_int_equal(list.num_descriptions, 3);
  ARGS(a, PJRT_TopologyDescription_Fingerprint, .topology = make.topology);
  ARGS(b, PJRT_TopologyDescription_Fingerprint, .topology = read.topology);
  HOST_OK(api->PJRT_TopologyDescription_Fingerprint(&a));
  HOST_OK(api->PJRT_TopologyDescription_Fingerprint(&b));
  assert_true(a.fingerprint == b.fingerprint);
  HOST_OK(CALL(PJRT_TopologyDescription_Destroy, .topology = read.topology));
  // "…: 3" cut at its end is no number.
  for (size_t n = 0; n < saved.serialized_bytes_size; n++) {
    read.serialized_topology_size = n;
    HOST_FAILS(3, api->PJRT_TopologyDescription_Deserialize(&read),
               "no serialised topology");
  }
  read.serialized_topology = "calx_cpu topology 1: 99999";
  read.serialized_topology_size = 26;
  HOST_FAILS(3, api->PJRT_TopologyDescription_Deserialize(&read), "topology");
  saved.serialized_topology_deleter(saved.serialized_topology);
  PJRT_Program program = { CX_PJRT_ARGS(PJRT_Program),
                           .code = (char *)(uintptr_t)ADD,
                           .code_size = strlen(ADD), .format = "mlir",
                           .format_size = 4 };
  ARGS(made, PJRT_Compile, .topology = make.topology, .program = &program);
  HOST_OK(api->PJRT_Compile(&made));
  check_facts(made.executable);
  PJRT_Client *client = host_client(1);
  ARGS(load_args, PJRT_Client_Load, .client = client,
       .executable = made.executable);
  HOST_OK(api->PJRT_Client_Load(&load_args));
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = made.executable));
  host_program_free(load_args.loaded_executable);
  host_client_free(client);
  HOST_OK(CALL(PJRT_TopologyDescription_Destroy, .topology = make.topology));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_formats),       HOST_TEST(test_bytecode),
    HOST_TEST(test_options),       HOST_TEST(test_facts),
    HOST_TEST(test_work_of_loops), HOST_TEST(test_deleted),
    HOST_TEST(test_bytes),         HOST_TEST(test_topology),
    HOST_TEST(test_optimized),     HOST_TEST(test_memory_kinds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
