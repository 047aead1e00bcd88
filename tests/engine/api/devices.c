// devices: creating clients, launches on several devices, collectives.
#include <pthread.h>

#include "host.h"

#define F4 "tensor<4xf32>"

// ---- creation ----

static PJRT_Error *create(const char *name, PJRT_NamedValue_Type type,
                          int64_t value, size_t *n_devices)
{
  PJRT_NamedValue option = { CX_PJRT_ARGS(PJRT_NamedValue), .name = name,
                             .name_size = strlen(name),     .type = type,
                             .int64_value = value,          .value_size = 1 };
  if (type == PJRT_NamedValue_kString) option.string_value = "2";
  ARGS(args, PJRT_Client_Create, .create_options = &option, .num_options = 1);
  PJRT_Error *error = api->PJRT_Client_Create(&args);
  if (error != NULL) return error;
  ARGS(list, PJRT_Client_Devices, .client = args.client);
  HOST_OK(api->PJRT_Client_Devices(&list));
  *n_devices = list.num_devices;
  host_client_free(args.client);
  return NULL;
}

static void test_creation(void **state)
{
  (void)state;
  size_t n = 0;
  const char *name = "cpu_device_count";
  HOST_OK(create(name, PJRT_NamedValue_kInt64, 3, &n));
  assert_int_equal(n, 3);
  HOST_FAILS(3, create(name, PJRT_NamedValue_kInt64, 0, &n), "found 0");
  HOST_FAILS(3, create(name, PJRT_NamedValue_kInt64, 4097, &n), "1 to 4096");
  HOST_FAILS(3, create(name, PJRT_NamedValue_kString, 0, &n),
             "wants an int64, found a value of type string");
  HOST_OK(create("preallocate", PJRT_NamedValue_kBool, 1, &n));
  assert_int_equal(n, 1);
  setenv("CPU_NUM_DEVICES", "2", 1);
  HOST_OK(create("process_id", PJRT_NamedValue_kInt64, 7, &n));
  assert_int_equal(n, 2);
  setenv("CPU_NUM_DEVICES", "many", 1);
  HOST_FAILS(3, create("x", PJRT_NamedValue_kBool, 1, &n),
             "CPU_NUM_DEVICES wants a number from 1 to 4096, found 'many'");
  unsetenv("CPU_NUM_DEVICES");
  setenv("CALX_CPU_THREADS", "0", 1);
  HOST_FAILS(3, create("x", PJRT_NamedValue_kBool, 1, &n), "CALX_CPU_THREADS");
  unsetenv("CALX_CPU_THREADS");
  ARGS(args, PJRT_Client_Create, .num_options = 1);
  HOST_FAILS(3, api->PJRT_Client_Create(&args), "no list");
}

static PJRT_Error *create_as(const char *platform, PJRT_Client **out)
{
  PJRT_NamedValue option = { CX_PJRT_ARGS(PJRT_NamedValue),
                             .name = "platform_name",
                             .name_size = strlen("platform_name"),
                             .type = PJRT_NamedValue_kString,
                             .string_value = platform,
                             .value_size = strlen(platform) };
  ARGS(args, PJRT_Client_Create, .create_options = &option, .num_options = 1);
  PJRT_Error *error = api->PJRT_Client_Create(&args);
  *out = args.client;
  return error;
}

static void test_platform(void **state)
{
  (void)state;
  PJRT_Client *client = NULL;
  HOST_FAILS(3, create_as("gpu", &client),
             "platform_name wants 'calx_cpu' or 'cpu', found string 'gpu'");
  HOST_OK(create_as("cpu", &client));
  ARGS(name, PJRT_Client_PlatformName, .client = client);
  HOST_OK(api->PJRT_Client_PlatformName(&name));
  assert_int_equal(name.platform_name_size, 3);
  assert_memory_equal(name.platform_name, "cpu", 3);
  ARGS(get, PJRT_Client_TopologyDescription, .client = client);
  HOST_OK(api->PJRT_Client_TopologyDescription(&get));
  // A topology keeps the platform, in a file too.
  ARGS(save, PJRT_TopologyDescription_Serialize, .topology = get.topology);
  HOST_OK(api->PJRT_TopologyDescription_Serialize(&save));
  ARGS(load, PJRT_TopologyDescription_Deserialize,
       .serialized_topology = save.serialized_bytes,
       .serialized_topology_size = save.serialized_bytes_size);
  HOST_OK(api->PJRT_TopologyDescription_Deserialize(&load));
  save.serialized_topology_deleter(save.serialized_topology);
  PJRT_TopologyDescription *both[] = { get.topology, load.topology };
  for (int i = 0; i < 2; i++) {
    ARGS(also, PJRT_TopologyDescription_PlatformName, .topology = both[i]);
    HOST_OK(api->PJRT_TopologyDescription_PlatformName(&also));
    assert_int_equal(also.platform_name_size, 3);
  }
  HOST_OK(CALL(PJRT_TopologyDescription_Destroy, .topology = load.topology));
  host_client_free(client);
}

static void test_facts(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(3);
  ARGS(name, PJRT_Client_PlatformName, .client = client);
  HOST_OK(api->PJRT_Client_PlatformName(&name));
  assert_int_equal(name.platform_name_size, 8);
  assert_memory_equal(name.platform_name, "calx_cpu", 8);
  for (int i = 0; i < 3; i++) {
    PJRT_Device *device = host_device(client, (size_t)i);
    ARGS(look, PJRT_Client_LookupDevice, .client = client, .id = i);
    HOST_OK(api->PJRT_Client_LookupDevice(&look));
    assert_ptr_equal(look.device, device);
    ARGS(get, PJRT_Device_GetDescription, .device = device);
    HOST_OK(api->PJRT_Device_GetDescription(&get));
    ARGS(id, PJRT_DeviceDescription_Id,
         .device_description = get.device_description);
    HOST_OK(api->PJRT_DeviceDescription_Id(&id));
    assert_int_equal(id.id, i);
    ARGS(memories, PJRT_Device_AddressableMemories, .device = device);
    HOST_OK(api->PJRT_Device_AddressableMemories(&memories));
    static const char *const kinds[] = { "device", "pinned_host",
                                         "unpinned_host" };
    assert_int_equal(memories.num_memories, 3);
    for (int k = 0; k < 3; k++) {
      PJRT_Memory *m = memories.memories[k];
      assert_null(m->vtable);
      ARGS(kind, PJRT_Memory_Kind, .memory = m);
      HOST_OK(api->PJRT_Memory_Kind(&kind));
      assert_int_equal(kind.kind_size, strlen(kinds[k]));
      assert_memory_equal(kind.kind, kinds[k], kind.kind_size);
      ARGS(number, PJRT_Memory_Kind_Id, .memory = m);
      HOST_OK(api->PJRT_Memory_Kind_Id(&number));
      assert_int_equal(number.kind_id, k);
      ARGS(own, PJRT_Memory_Id, .memory = m);
      HOST_OK(api->PJRT_Memory_Id(&own));
      assert_int_equal(own.id, 3 * i + k);
    }
    ARGS(first, PJRT_Device_DefaultMemory, .device = device);
    HOST_OK(api->PJRT_Device_DefaultMemory(&first));
    assert_ptr_equal(first.memory, memories.memories[0]);
    ARGS(users, PJRT_Memory_AddressableByDevices,
         .memory = memories.memories[0]);
    HOST_OK(api->PJRT_Memory_AddressableByDevices(&users));
    assert_int_equal(users.num_devices, 1);
    assert_ptr_equal(users.devices[0], device);
    ARGS(attributes, PJRT_Device_GetAttributes, .device = device);
    HOST_OK(api->PJRT_Device_GetAttributes(&attributes));
    attributes.attributes_deleter(attributes.device_attributes);
  }
  ARGS(look, PJRT_Client_LookupDevice, .client = client, .id = 3);
  HOST_FAILS(3, api->PJRT_Client_LookupDevice(&look), "device_id 3");
  look.id = -1;
  HOST_FAILS(3, api->PJRT_Client_LookupDevice(&look), "device_id -1");
  int ids[4] = { -1, -1, -1, -1 };
  ARGS(assign, PJRT_Client_DefaultDeviceAssignment, .client = client,
       .num_replicas = 3, .num_partitions = 1, .default_assignment_size = 4,
       .default_assignment = ids);
  HOST_OK(api->PJRT_Client_DefaultDeviceAssignment(&assign));
  assert_true(ids[0] == 0 && ids[2] == 2 && ids[3] == -1);
  assign.default_assignment_size = 2;
  HOST_FAILS(3, api->PJRT_Client_DefaultDeviceAssignment(&assign), "space");
  assign.num_partitions = INT32_MAX;
  HOST_FAILS(3, api->PJRT_Client_DefaultDeviceAssignment(&assign), "3 devices");
  host_client_free(client);
}

// ---- all_reduce over four replicas ----

typedef struct group {
  PJRT_Client *client;
  PJRT_LoadedExecutable *program;
  PJRT_Buffer *in[4], *out[4];
} group;

static group group_new(void)
{
  group g = { .client = host_client(4) };
  host_options o = host_replicas(4, 1);
  HOST_OK(
      host_compile(g.client, ALL_REDUCE_4(F4), o.bytes, o.size, &g.program));
  for (size_t i = 0; i < 4; i++) {
    g.in[i] = host_floats(host_device(g.client, i), 4, (float)(10 * i));
  }
  return g;
}

static void group_free(group *g)
{
  for (size_t i = 0; i < 4; i++) host_free(g->in[i]);
  host_program_free(g->program);
  host_client_free(g->client);
}

static void check_sums(group *g)
{
  for (size_t i = 0; i < 4; i++) {
    host_check_floats(g->out[i], 4, 60, 4);
    host_free(g->out[i]);
  }
}

static PJRT_Error *run_all(group *g, size_t n, PJRT_Event **events)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  PJRT_Buffer *const *lists[4];
  PJRT_Buffer **outs[4];
  for (size_t i = 0; i < 4; i++) {
    lists[i] = &g->in[i];
    outs[i] = &g->out[i];
  }
  return CALL(PJRT_LoadedExecutable_Execute, .executable = g->program,
              .options = &options, .argument_lists = lists, .num_devices = n,
              .num_args = 1, .output_lists = outs,
              .device_complete_events = events);
}

static void test_one_call(void **state)
{
  (void)state;
  group g = group_new();
  for (int i = 0; i < 3; i++) {
    PJRT_Event *events[4];
    HOST_OK(run_all(&g, 4, events));
    for (size_t k = 0; k < 4; k++) HOST_OK(host_wait(events[k]));
    check_sums(&g);
  }
  HOST_FAILS(3, run_all(&g, 3, NULL),
             "Attempted to execute with 3 argument lists when local device "
             "count is 4 (total replica count: 4, partition count: 1)");
  ARGS(ids, PJRT_LoadedExecutable_AddressableDeviceLogicalIds,
       .executable = g.program);
  HOST_OK(api->PJRT_LoadedExecutable_AddressableDeviceLogicalIds(&ids));
  assert_int_equal(ids.num_addressable_device_logical_ids, 4);
  assert_int_equal(ids.addressable_device_logical_ids[3].replica, 3);
  assert_int_equal(ids.addressable_device_logical_ids[3].partition, 0);
  group_free(&g);
}

// A failed check of one list leaves all as they were.
static void test_one_wrong_list(void **state)
{
  (void)state;
  group g = group_new();
  PJRT_Buffer *right = g.in[2];
  g.in[2] = g.in[1];
  HOST_FAILS(3, run_all(&g, 4, NULL),
             "wanted f32[4] on device 2, found f32[4] on device 1");
  g.in[2] = right;
  HOST_OK(run_all(&g, 4, NULL));
  check_sums(&g);
  group_free(&g);
}

typedef struct member {
  group *group;
  size_t i;
} member;

static void *run_member(void *user)
{
  member *m = user;
  for (int k = 0; k < 5; k++) {
    PJRT_Buffer *out = NULL;
    HOST_OK(host_run(m->group->program, host_device(m->group->client, m->i),
                     &m->group->in[m->i], 1, &out));
    host_check_floats(out, 4, 60, 4);
    host_free(out);
  }
  return NULL;
}

static void test_threads(void **state)
{
  (void)state;
  group g = group_new();
  pthread_t threads[4];
  member members[4];
  for (size_t i = 0; i < 4; i++) {
    members[i] = (member){ &g, i };
    assert_int_equal(pthread_create(&threads[i], NULL, run_member, &members[i]),
                     0);
  }
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  group_free(&g);
}

// Calls of several threads do not mix: each meets its own.
static void *run_group(void *user)
{
  group mine = *(group *)user;
  for (int i = 0; i < 5; i++) {
    HOST_OK(run_all(&mine, 4, NULL));
    check_sums(&mine);
  }
  return NULL;
}

static void test_calls_at_once(void **state)
{
  (void)state;
  group g = group_new();
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, run_group, &g), 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  group_free(&g);
}

// One whose argument failed: the others hear of it and do not wait.
static void test_failed_member(void **state)
{
  (void)state;
  group g = group_new();
  host_pending p = host_promise(g.client, 1, 4);
  PJRT_Buffer *right = g.in[1];
  g.in[1] = p.buffer;
  HOST_OK(run_all(&g, 4, NULL));
  host_break(&p, "no input");
  HOST_FAILS(10, host_ready(g.out[1]), "no input");
  for (size_t i = 0; i < 4; i++) {
    int code = host_take(host_ready(g.out[i]));
    assert_int_not_equal(code, 0);
    assert_non_null(strstr(host_words(), "no input"));
    host_free(g.out[i]);
  }
  g.in[1] = right;
  host_free(p.buffer);
  HOST_OK(run_all(&g, 4, NULL));
  check_sums(&g);
  group_free(&g);
}

// One that never comes is named when the time is over.
static void test_missing_member(void **state)
{
  (void)state;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  group g = group_new();
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
  for (size_t i = 0; i < 3; i++) {
    HOST_OK(
        host_run(g.program, host_device(g.client, i), &g.in[i], 1, &g.out[i]));
  }
  for (size_t i = 0; i < 3; i++) {
    assert_int_not_equal(host_take(host_ready(g.out[i])), 0);
    host_free(g.out[i]);
  }
  group_free(&g);
}

// ---- options ----

// Options of XLA are accepted, and other names refused.
static void test_option_names(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  static const char known[] =
      "\x3a\x09\x0a\x05xla_a\x12\x00"
      "\x3a\x16\x0a\x12optimization_level\x12\x00";
  static const char unknown[] = "\x3a\x09\x0a\x05xlb_a\x12\x00";
  PJRT_LoadedExecutable *e = NULL;
  HOST_OK(host_compile(client, BINARY("add", F4), known, sizeof known - 1, &e));
  host_program_free(e);
  HOST_FAILS(
      3,
      host_compile(client, BINARY("add", F4), unknown, sizeof unknown - 1, &e),
      "No such compile option: 'xlb_a'");
  host_client_free(client);
}

// ---- executables that are bound to no device ----

static void test_portable(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(3);
  static const char options[] = "\x1a\x04\x20\x01\x28\x01\x20\x01";
  PJRT_LoadedExecutable *e = NULL;
  HOST_OK(host_compile(client, BINARY("add", F4), options, 8, &e));
  ARGS(devices, PJRT_LoadedExecutable_AddressableDevices, .executable = e);
  HOST_OK(api->PJRT_LoadedExecutable_AddressableDevices(&devices));
  assert_int_equal(devices.num_addressable_devices, 0);
  for (size_t i = 0; i < 3; i++) {
    PJRT_Buffer *a = host_floats(host_device(client, i), 4, (float)i);
    PJRT_Buffer *args[] = { a, a };
    for (int told = 0; told < 2; told++) {
      PJRT_Buffer *sum = NULL;
      HOST_OK(host_run(e, told ? host_device(client, i) : NULL, args, 2, &sum));
      host_check_floats(sum, 4, 2 * (float)i, 2);
      ARGS(where, PJRT_Buffer_Device, .buffer = sum);
      HOST_OK(api->PJRT_Buffer_Device(&where));
      assert_ptr_equal(where.device, host_device(client, i));
      host_free(sum);
    }
    host_free(a);
  }
  ARGS(assignment, PJRT_LoadedExecutable_GetDeviceAssignment, .executable = e);
  HOST_OK(api->PJRT_LoadedExecutable_GetDeviceAssignment(&assignment));
  assert_int_equal(assignment.serialized_bytes_size, 0);
  assignment.serialized_device_assignment_deleter(
      assignment.serialized_device_assignment);
  host_program_free(e);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_creation),       HOST_TEST(test_platform),
    HOST_TEST(test_facts),          HOST_TEST(test_one_call),
    HOST_TEST(test_one_wrong_list), HOST_TEST(test_threads),
    HOST_TEST(test_calls_at_once),  HOST_TEST(test_failed_member),
    HOST_TEST(test_missing_member), HOST_TEST(test_portable),
    HOST_TEST(test_option_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
