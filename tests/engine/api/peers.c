// peers: clients that share a segment tell the whole world's devices, and what
// goes wrong with one of them ends the others' waits by name. They are of one
// process here, which for them is no different.
#include <unistd.h>

#include "base/alloc.h"
#include "world.h"

#define REGION                                    \
  "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n" \
  "  %z = stablehlo.add %x, %y : tensor<f32>\n"   \
  "  stablehlo.return %z : tensor<f32>\n})"
// The sum of %a over the groups, plus `more`.
#define SUM(type, groups, more)                                        \
  "func.func @main(%a: tensor<" type ">) -> tensor<" type              \
  "> {\n"                                                              \
  "%c = stablehlo.constant dense<" more "> : tensor<" type             \
  ">\n"                                                                \
  "%s = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<" groups \
  "}> " REGION " : (tensor<" type ">) -> tensor<" type                 \
  ">\n"                                                                \
  "%r = stablehlo.add %s, %c : tensor<" type                           \
  ">\n"                                                                \
  "return %r : tensor<" type ">\n}"
#define TWO "[[0, 1]]> : tensor<1x2xi64>"
#define THREE "[[0, 1, 2]]> : tensor<1x3xi64>"
#define GATHER                                                     \
  "func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {\n"        \
  "%r = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, " \
  "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : "        \
  "(tensor<4xf32>) -> tensor<8xf32>\n return %r : tensor<8xf32>\n}"
// Replica 0 sums, replica 1 does not.
#define BRANCH                                                           \
  "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"              \
  "%i = stablehlo.replica_id : tensor<ui32>\n"                           \
  "%c = stablehlo.constant dense<0> : tensor<ui32>\n"                    \
  "%p = stablehlo.compare EQ, %i, %c : (tensor<ui32>, tensor<ui32>) -> " \
  "tensor<i1>\n"                                                         \
  "%r = \"stablehlo.if\"(%p) ({\n"                                       \
  "%s = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<" TWO      \
  "}> " REGION                                                           \
  " : (tensor<4xf32>) -> tensor<4xf32>\n"                                \
  "stablehlo.return %s : tensor<4xf32>\n}, {\n"                          \
  "stablehlo.return %a : tensor<4xf32>\n"                                \
  "}) : (tensor<i1>) -> tensor<4xf32>\nreturn %r : tensor<4xf32>\n}"

enum { MOST = 3 };

typedef struct peers {
  world world;
  int n;
  PJRT_Client *clients[MOST];
  PJRT_LoadedExecutable *programs[MOST];
  PJRT_Buffer *in[MOST], *out[MOST];
} peers;

static void open_clients(peers *p)
{
  for (int i = 0; i < p->n; i++) {
    p->clients[i] = world_client(&p->world, i);
    p->in[i] = host_floats(host_device(p->clients[i], 0), 4, (float)i);
  }
}

static void close_clients(peers *p)
{
  for (int i = 0; i < p->n; i++) {
    host_free(p->in[i]);
    host_client_free(p->clients[i]);
  }
}

static peers peers_new(int n)
{
  peers p = { .world = world_new(n, 1, 0), .n = n };
  open_clients(&p);
  return p;
}

static void peers_free(peers *p)
{
  close_clients(p);
  world_free(&p->world);
}

static PJRT_Error *run_one(peers *p, int i)
{
  PJRT_Buffer *const *args[] = { &p->in[i] };
  PJRT_Buffer **outs[] = { &p->out[i] };
  return world_run(p->programs[i], 1, 1, args, outs);
}

static void compile(peers *p, int i, const char *text)
{
  p->programs[i] = world_program(p->clients[i], text, p->n);
}

// 0 + 1 (+ 2) + n * k.
static void check_one(peers *p, int i)
{
  host_check_floats(p->out[i], 4, (float)(p->n * (p->n - 1) / 2), (float)p->n);
  host_free(p->out[i]);
}

static char said[1024];  // by the last that failed

static void fails_with(peers *p, int i, const char *words)
{
  assert_int_not_equal(host_take(host_ready(p->out[i])), 0);
  snprintf(said, sizeof said, "%s", host_words());
  print_message("%s\n", said);
  if (strstr(said, words) == NULL) fail_msg("wanted '%s'", words);
  host_free(p->out[i]);
}

static void check_all(peers *p, const char *text)
{
  for (int i = 0; i < p->n; i++) compile(p, i, text);
  for (int i = 0; i < p->n; i++) HOST_OK(run_one(p, i));
  for (int i = 0; i < p->n; i++) {
    check_one(p, i);
    host_program_free(p->programs[i]);
  }
}

// ---- what is told ----

static void check_device(PJRT_Device *device, int id, int process, bool local)
{
  ARGS(get, PJRT_Device_GetDescription, .device = device);
  HOST_OK(api->PJRT_Device_GetDescription(&get));
  ARGS(number, PJRT_DeviceDescription_Id,
       .device_description = get.device_description);
  HOST_OK(api->PJRT_DeviceDescription_Id(&number));
  assert_int_equal(number.id, id);
  ARGS(of, PJRT_DeviceDescription_ProcessIndex,
       .device_description = get.device_description);
  HOST_OK(api->PJRT_DeviceDescription_ProcessIndex(&of));
  assert_int_equal(of.process_index, process);
  ARGS(here, PJRT_Device_IsAddressable, .device = device);
  HOST_OK(api->PJRT_Device_IsAddressable(&here));
  assert_int_equal(here.is_addressable, local);
  ARGS(hardware, PJRT_Device_LocalHardwareId, .device = device);
  HOST_OK(api->PJRT_Device_LocalHardwareId(&hardware));
  assert_int_equal(hardware.local_hardware_id, local ? id % 2 : -1);
  ARGS(memories, PJRT_Device_AddressableMemories, .device = device);
  HOST_OK(api->PJRT_Device_AddressableMemories(&memories));
  assert_int_equal(memories.num_memories, local ? 3 : 0);
}

static void test_facts(void **state)
{
  (void)state;
  world w = world_new(2, 2, 0);
  PJRT_Client *client = world_client(&w, 1);
  ARGS(all, PJRT_Client_Devices, .client = client);
  HOST_OK(api->PJRT_Client_Devices(&all));
  assert_int_equal(all.num_devices, 4);
  for (int i = 0; i < 4; i++) {
    check_device(all.devices[i], i, i / 2, i >= 2);
    ARGS(look, PJRT_Client_LookupDevice, .client = client, .id = i);
    HOST_OK(api->PJRT_Client_LookupDevice(&look));
    assert_ptr_equal(look.device, all.devices[i]);
  }
  ARGS(own, PJRT_Client_AddressableDevices, .client = client);
  HOST_OK(api->PJRT_Client_AddressableDevices(&own));
  assert_int_equal(own.num_addressable_devices, 2);
  assert_ptr_equal(own.addressable_devices[0], all.devices[2]);
  ARGS(memories, PJRT_Client_AddressableMemories, .client = client);
  HOST_OK(api->PJRT_Client_AddressableMemories(&memories));
  assert_int_equal(memories.num_addressable_memories, 6);
  ARGS(look, PJRT_Client_LookupAddressableDevice, .client = client,
       .local_hardware_id = 1);
  HOST_OK(api->PJRT_Client_LookupAddressableDevice(&look));
  assert_ptr_equal(look.addressable_device, all.devices[3]);
  look.local_hardware_id = 2;
  HOST_FAILS(3, api->PJRT_Client_LookupAddressableDevice(&look), "there are 2");
  ARGS(index, PJRT_Client_ProcessIndex, .client = client);
  HOST_OK(api->PJRT_Client_ProcessIndex(&index));
  assert_int_equal(index.process_index, 1);
  int ids[4];
  ARGS(assign, PJRT_Client_DefaultDeviceAssignment, .client = client,
       .num_replicas = 4, .num_partitions = 1, .default_assignment_size = 4,
       .default_assignment = ids);
  HOST_OK(api->PJRT_Client_DefaultDeviceAssignment(&assign));
  assert_true(ids[0] == 0 && ids[3] == 3);
  assign.num_replicas = 1;
  HOST_OK(api->PJRT_Client_DefaultDeviceAssignment(&assign));
  assert_int_equal(ids[0], 2);
  host_client_free(client);
  world_free(&w);
}

// Programs and buffers are for the own devices.
static void test_foreign(void **state)
{
  (void)state;
  world w = world_new(2, 2, 0);
  PJRT_Client *client = world_client(&w, 1);
  ARGS(all, PJRT_Client_Devices, .client = client);
  HOST_OK(api->PJRT_Client_Devices(&all));
  float x = 1;
  ARGS(make, PJRT_Client_BufferFromHostBuffer, .client = client, .data = &x,
       .type = PJRT_Buffer_Type_F32, .device = all.devices[1]);
  HOST_FAILS(3, api->PJRT_Client_BufferFromHostBuffer(&make),
             "device 1 is of process 0; process 1 has devices 2 to 3");
  ARGS(stats, PJRT_Device_MemoryStats, .device = all.devices[0]);
  HOST_FAILS(3, api->PJRT_Device_MemoryStats(&stats), "process 0");
  PJRT_Buffer *b = host_floats(all.devices[2], 4, 0);
  ARGS(copy, PJRT_Buffer_CopyToDevice, .buffer = b,
       .dst_device = all.devices[0]);
  HOST_FAILS(3, api->PJRT_Buffer_CopyToDevice(&copy), "process 0");
  // One device's program is for the first own one.
  PJRT_LoadedExecutable *e =
      host_program(client, BINARY("add", "tensor<4xf32>"));
  ARGS(devices, PJRT_LoadedExecutable_AddressableDevices, .executable = e);
  HOST_OK(api->PJRT_LoadedExecutable_AddressableDevices(&devices));
  assert_int_equal(devices.num_addressable_devices, 1);
  assert_ptr_equal(devices.addressable_devices[0], all.devices[2]);
  PJRT_Buffer *args[] = { b, b }, *sum = NULL;
  HOST_OK(host_run(e, NULL, args, 2, &sum));
  host_check_floats(sum, 4, 0, 2);
  host_free(sum);
  HOST_FAILS(3, host_run(e, all.devices[1], args, 2, &sum), "process 0");
  host_program_free(e);
  host_options o = host_replicas(2, 1);
  HOST_FAILS(
      3, host_compile(client, SUM("4xf32", TWO, "0.0"), o.bytes, o.size, &e),
      "is for device 0 and others, of other processes than 1");
  o = host_replicas(4, 1);
  HOST_OK(host_compile(client,
                       SUM("4xf32", "[[0, 1, 2, 3]]> : tensor<1x4xi64>", "0.0"),
                       o.bytes, o.size, &e));
  ARGS(shares, PJRT_LoadedExecutable_AddressableDeviceLogicalIds,
       .executable = e);
  HOST_OK(api->PJRT_LoadedExecutable_AddressableDeviceLogicalIds(&shares));
  assert_int_equal(shares.num_addressable_device_logical_ids, 2);
  assert_int_equal(shares.addressable_device_logical_ids[1].replica, 3);
  host_program_free(e);
  host_free(b);
  host_client_free(client);
  world_free(&w);
}

static void test_topology(void **state)
{
  (void)state;
  world w = world_new(2, 2, 0);
  PJRT_Client *client = world_client(&w, 0);
  ARGS(get, PJRT_Client_TopologyDescription, .client = client);
  HOST_OK(api->PJRT_Client_TopologyDescription(&get));
  ARGS(save, PJRT_TopologyDescription_Serialize, .topology = get.topology);
  HOST_OK(api->PJRT_TopologyDescription_Serialize(&save));
  ARGS(load, PJRT_TopologyDescription_Deserialize,
       .serialized_topology = save.serialized_bytes,
       .serialized_topology_size = save.serialized_bytes_size);
  HOST_OK(api->PJRT_TopologyDescription_Deserialize(&load));
  ARGS(list, PJRT_TopologyDescription_GetDeviceDescriptions,
       .topology = load.topology);
  HOST_OK(api->PJRT_TopologyDescription_GetDeviceDescriptions(&list));
  assert_int_equal(list.num_descriptions, 4);
  ARGS(of, PJRT_DeviceDescription_ProcessIndex,
       .device_description = list.descriptions[3]);
  HOST_OK(api->PJRT_DeviceDescription_ProcessIndex(&of));
  assert_int_equal(of.process_index, 1);
  HOST_OK(CALL(PJRT_TopologyDescription_Destroy, .topology = load.topology));
  load.serialized_topology_size -= 1;  // "4 by "
  HOST_FAILS(3, api->PJRT_TopologyDescription_Deserialize(&load), "no serial");
  save.serialized_topology_deleter(save.serialized_topology);
  host_client_free(client);
  world_free(&w);
}

// A world that is described need not be there.
static void test_described(void **state)
{
  (void)state;
  const PJRT_NamedValue processes = { CX_PJRT_ARGS(PJRT_NamedValue),
                                      .name = "num_nodes",
                                      .name_size = strlen("num_nodes"),
                                      .type = PJRT_NamedValue_kInt64,
                                      .int64_value = 4,
                                      .value_size = 1 };
  ARGS(make, PJRT_TopologyDescription_Create, .create_options = &processes,
       .num_options = 1);
  HOST_OK(api->PJRT_TopologyDescription_Create(&make));
  ARGS(list, PJRT_TopologyDescription_GetDeviceDescriptions,
       .topology = make.topology);
  HOST_OK(api->PJRT_TopologyDescription_GetDeviceDescriptions(&list));
  assert_int_equal(list.num_descriptions, 4);
  HOST_OK(CALL(PJRT_TopologyDescription_Destroy, .topology = make.topology));
}

// ---- creation ----

static PJRT_Error *create(int64_t process, int64_t processes, int64_t fd,
                          int64_t host, int64_t hosts)
{
  const int64_t values[] = { process, processes, host, hosts, fd };
  static const char *const names[] = { "node_id", "num_nodes", CALX_OPTION_HOST,
                                       CALX_OPTION_HOSTS,
                                       CALX_OPTION_SEGMENT_FD };
  PJRT_NamedValue options[5];
  for (int i = 0; i < 5; i++) {
    options[i] = (PJRT_NamedValue){
      CX_PJRT_ARGS(PJRT_NamedValue), .name = names[i],
      .name_size = strlen(names[i]), .type = PJRT_NamedValue_kInt64,
      .int64_value = values[i],      .value_size = 1
    };
  }
  ARGS(args, PJRT_Client_Create, .create_options = options,
       .num_options = fd < 0 ? 4 : 5);
  PJRT_Error *error = api->PJRT_Client_Create(&args);
  if (error == NULL) host_client_free(args.client);
  return error;
}

static void test_options(void **state)
{
  (void)state;
  world w = world_new(2, 1, 0);
  HOST_OK(create(1, 2, w.segment.fd, 0, 1));
  HOST_OK(create(0, 1, -1, 0, 1));
  HOST_FAILS(9, create(1, 2, -1, 1, 2), "none of PMI_FD, PMI_PORT");
  HOST_FAILS(3, create(0, 2, -1, 0, 1), "no option calx_segment_fd");
  HOST_FAILS(3, create(2, 2, w.segment.fd, 0, 1), "node_id 2 of num_nodes 2");
  HOST_FAILS(3, create(0, 4, w.segment.fd, 1, 2), "is not on host 1 of 2");
  HOST_FAILS(3, create(0, 3, w.segment.fd, 0, 2), "as many on each of 2 hosts");
  HOST_FAILS(3, create(0, 3, w.segment.fd, 0, 1), "segment of 3 processes");
  HOST_FAILS(3, create(0, 0, -1, 0, 1), "num_nodes wants 1 to 4096");
  HOST_FAILS(3, create(0, 2, 0, 0, 1), "no shared segment");
  HOST_FAILS(3, create(0, 2, 900, 0, 1), "descriptor 900");
  world_free(&w);
}

static void test_no_memory(void **state)
{
  (void)state;
  world w = world_new(2, 1, 0);
  long n = 0;
  for (PJRT_Error *error = (PJRT_Error *)&n; error != NULL; n++) {
    cx_alloc_fail_at(n);
    error = create(1, 2, w.segment.fd, 0, 1);
    cx_alloc_fail_at(-1);
    if (error != NULL) assert_int_equal(host_take(error), 8);
  }
  assert_true(n > 5);
  world_free(&w);
}

// ---- what goes wrong ----

static void check_mismatch(const char *a, const char *b, const char *words)
{
  peers p = peers_new(2);
  check_all(&p, SUM("4xf32", TWO, "0.0"));
  compile(&p, 0, a);
  compile(&p, 1, b);
  PJRT_Buffer *in = p.in[1];
  if (strstr(b, "5xf32") != NULL) {
    p.in[1] = host_floats(host_device(p.clients[1], 0), 5, 0);
  }
  for (int i = 0; i < 2; i++) HOST_OK(run_one(&p, i));
  for (int i = 0; i < 2; i++) {
    fails_with(&p, i, words);
    host_program_free(p.programs[i]);
  }
  if (in != p.in[1]) host_free(p.in[1]);
  p.in[1] = in;
  check_all(&p, SUM("4xf32", TWO, "0.0"));
  peers_free(&p);
}

static void test_mismatch(void **state)
{
  (void)state;
  check_mismatch(SUM("4xf32", TWO, "0.0"), SUM("5xf32", TWO, "0.0"),
                 "collective 0 of the program: replica 0 has all_reduce of "
                 "f32[4], replica 1 has all_reduce of f32[5]");
  check_mismatch(GATHER, SUM("4xf32", TWO, "0.0"),
                 "replica 0 has all_gather of f32[4], replica 1 has all_reduce "
                 "of f32[4]");
  check_mismatch(SUM("4xf32", TWO, "0.0"), SUM("4xf32", TWO, "1.0"),
                 "of another program");
}

// The third hears what the first says, not that the second failed too.
static void test_failure(void **state)
{
  (void)state;
  peers p = peers_new(3);
  const char *text = SUM("4xf32", THREE, "0.0");
  for (int i = 0; i < 3; i++) compile(&p, i, text);
  host_pending late = host_promise(p.clients[1], 0, 4);
  PJRT_Buffer *in = p.in[1];
  p.in[1] = late.buffer;
  for (int i = 0; i < 3; i++) HOST_OK(run_one(&p, i));
  host_break(&late, "the disk is full");
  for (int i = 0; i < 3; i++) {
    fails_with(&p, i, "the disk is full");
    if (i != 1) {
      assert_non_null(strstr(said, "all_reduce of f32[4]: replica 1 failed: "));
      assert_null(strstr(said, "replica 0"));
      assert_null(strstr(said, "replica 2"));
    }
    host_program_free(p.programs[i]);
  }
  host_free(p.in[1]);
  p.in[1] = in;
  check_all(&p, text);
  peers_free(&p);
}

// A call that was refused is a launch that failed, for the others.
static void test_refused_call(void **state)
{
  (void)state;
  peers p = peers_new(2);
  const char *text = SUM("4xf32", TWO, "0.0");
  for (int i = 0; i < 2; i++) compile(&p, i, text);
  HOST_OK(run_one(&p, 0));
  PJRT_Buffer *in = p.in[1];
  p.in[1] = host_floats(host_device(p.clients[1], 0), 3, 0);
  HOST_FAILS(3, run_one(&p, 1), "found f32[3]");
  fails_with(&p, 0, "replica 1 failed: argument 0 of");
  host_free(p.in[1]);
  p.in[1] = in;
  for (int i = 0; i < 2; i++) host_program_free(p.programs[i]);
  check_all(&p, text);
  peers_free(&p);
}

// So is one for which there was no memory, whatever it was wanted for.
static void test_no_memory_to_launch(void **state)
{
  (void)state;
  peers p = peers_new(2);
  const char *text = SUM("4xf32", TWO, "0.0");
  for (int i = 0; i < 2; i++) compile(&p, i, text);
  cx_alloc_set_exact(true);
  int failed = 0;
  bool well = false;
  for (long n = 0; !well; n++) {
    cx_alloc_fail_at(n);
    int code = host_take(run_one(&p, 0));
    cx_alloc_fail_at(-1);
    HOST_OK(run_one(&p, 1));
    if (code == 0) {
      code = host_take(host_ready(p.out[0]));
      host_free(p.out[0]);
    }
    well = code == 0;
    assert_int_equal(host_take(host_ready(p.out[1])) == 0, well);
    host_free(p.out[1]);
    failed += !well;
  }
  cx_alloc_set_exact(false);
  assert_true(failed > 2);
  for (int i = 0; i < 2; i++) host_program_free(p.programs[i]);
  check_all(&p, text);
  peers_free(&p);
}

// … and one that was refused, where there is no memory to tell it either.
static void test_refused_without_memory(void **state)
{
  (void)state;
  peers p = peers_new(2);
  const char *text = SUM("4xf32", TWO, "0.0");
  for (int i = 0; i < 2; i++) compile(&p, i, text);
  PJRT_Buffer *in = p.in[0];
  PJRT_Buffer *wrong = host_floats(host_device(p.clients[0], 0), 3, 0);
  cx_alloc_set_exact(true);
  long count = 0;
  for (long n = -1; n < count; n++) {
    for (int i = 0; i < 2; i++) HOST_OK(run_one(&p, i));
    for (int i = 0; i < 2; i++) check_one(&p, i);
    p.in[0] = wrong;
    const long before = cx_alloc_count();
    cx_alloc_fail_at(n);
    const int code = host_take(run_one(&p, 0));
    cx_alloc_fail_at(-1);
    if (n < 0) count = cx_alloc_count() - before;
    assert_int_not_equal(code, 0);
    p.in[0] = in;
    HOST_OK(run_one(&p, 1));
    assert_int_not_equal(host_take(host_ready(p.out[1])), 0);
    host_free(p.out[1]);
  }
  cx_alloc_set_exact(false);
  assert_true(count > 2);
  for (int i = 0; i < 2; i++) host_program_free(p.programs[i]);
  host_free(wrong);
  check_all(&p, text);
  peers_free(&p);
}

static void test_late(void **state)
{
  (void)state;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "4", 1);
  peers p = peers_new(3);
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
  const char *text = SUM("4xf32", THREE, "0.0");
  for (int i = 0; i < 3; i++) compile(&p, i, text);
  HOST_OK(run_one(&p, 0));
  HOST_OK(run_one(&p, 2));
  fails_with(&p, 0, "replica 1");
  assert_null(strstr(said, "replica 2"));
  fails_with(&p, 2, "replica 1");
  HOST_OK(run_one(&p, 1));
  fails_with(&p, 1, "after 4000 ms these have not arrived: replica 1");
  for (int i = 0; i < 3; i++) host_program_free(p.programs[i]);
  check_all(&p, text);
  peers_free(&p);
}

static void test_not_coming(void **state)
{
  (void)state;
  peers p = peers_new(2);
  for (int i = 0; i < 2; i++) {
    compile(&p, i, BRANCH);
    HOST_OK(run_one(&p, i));
  }
  fails_with(&p, 0, "replica 1 ended its launch without arriving");
  HOST_OK(host_ready(p.out[1]));
  host_free(p.out[1]);
  for (int i = 0; i < 2; i++) host_program_free(p.programs[i]);
  check_all(&p, SUM("4xf32", TWO, "0.0"));
  peers_free(&p);
}

static void test_news(void **state)
{
  (void)state;
  peers p = peers_new(2);
  compile(&p, 0, SUM("4xf32", TWO, "0.0"));
  HOST_OK(run_one(&p, 0));
  usleep(10000);
  cx_world_segment_fail(p.world.segment.head, CALX_ABORTED,
                        "rank 1 ended by signal 9");
  fails_with(&p, 0, "all_reduce of f32[4]: rank 1 ended by signal 9");
  HOST_OK(run_one(&p, 0));
  fails_with(&p, 0, "rank 1 ended by signal 9");
  host_program_free(p.programs[0]);
  peers_free(&p);
}

// Clients that are opened anew meet each other, whatever those before did.
static void test_again(void **state)
{
  (void)state;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  peers p = peers_new(2);
  const char *text = SUM("4xf32", TWO, "0.0");
  for (int i = 0; i < 3; i++) {
    check_all(&p, text);
    compile(&p, 1, text);
    HOST_OK(run_one(&p, 1));
    fails_with(&p, 1, "replica 0");
    host_program_free(p.programs[1]);
    close_clients(&p);
    open_clients(&p);
  }
  check_all(&p, text);
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
  peers_free(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_facts),
    HOST_TEST(test_foreign),
    HOST_TEST(test_topology),
    HOST_TEST(test_described),
    HOST_TEST(test_options),
    HOST_TEST(test_no_memory),
    HOST_TEST(test_mismatch),
    HOST_TEST(test_failure),
    HOST_TEST(test_refused_call),
    HOST_TEST(test_no_memory_to_launch),
    HOST_TEST(test_refused_without_memory),
    HOST_TEST(test_late),
    HOST_TEST(test_not_coming),
    HOST_TEST(test_news),
    HOST_TEST(test_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
