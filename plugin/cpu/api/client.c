// api/client: clients and their devices, from creation to the last user.
//
// A client is counted: its handle, each buffer, value and executable hold it.
// Destroying the handle ends the devices' threads after what is queued; what
// lives on can be read and destroyed, but not run.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "lower/compile.h"

#define DEFAULT_TIMEOUT_S 1800
#define MAX_TIMEOUT_S (INT64_C(10) * 365 * 24 * 3600)
#define MAX_THREADS 4096

// ---- options ----

calx_status *cpu_api_environment(const char *name, int64_t low, int64_t high,
                                 int64_t otherwise, int64_t *out)
{
  const char *text = getenv(name);
  *out = otherwise;
  if (text == NULL || text[0] == '\0') return NULL;
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < low || value > high) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%s wants a number from %" PRId64 " to %" PRId64
                    ", found '%.40s'",
                    name, low, high, text);
  }
  *out = value;
  return NULL;
}

// ---- lifetime ----

static void client_free(PJRT_Client *c)
{
  for (size_t i = 0; i < c->n_devices; i++) {
    PJRT_Device *d = &c->devices[i];
    if (!d->local) continue;
    cpu_run_context_free(d->context);
    cpu_threads_free(d->pool);
    cpu_api_cache_free(&d->cache);
    cx_cond_free(&d->changed);
    cx_mutex_free(&d->lock);
  }
  cpu_threads_free(c->compile_pool);
  cpu_coll_free(c->coll);
  cpu_api_topology_free(c->topology);
  cx_mutex_free(&c->compile_lock);
  cx_mutex_free(&c->launch_lock);
  cx_free(c->memory_list);
  cx_free(c->device_list);
  cx_free(c->devices);
  cx_free(c);
}

void cpu_api_client_retain(PJRT_Client *client)
{
  atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
}

void cpu_api_client_release(PJRT_Client *client)
{
  if (atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) == 1) {
    client_free(client);
  }
}

void cpu_api_describe(PJRT_DeviceDescription *description, int id, int process)
{
  description->id = id;
  description->process = process;
  snprintf(description->text, sizeof description->text, "CALX_CPU_%d", id);
  snprintf(description->debug_text, sizeof description->debug_text,
           "calx_cpu device %d of process %d", id, process);
}

static calx_status *open_device(PJRT_Client *c, int id, int threads)
{
  PJRT_Device *d = &c->devices[id];
  d->client = c;
  cpu_api_describe(&d->description, id, id / (int)c->world.per_process);
  d->local = d->description.process == (int)c->world.process;
  d->space.device = d;
  snprintf(d->space.text, sizeof d->space.text, "MEMORY_SPACE_%d", id);
  snprintf(d->space.debug_text, sizeof d->space.debug_text,
           "memory of calx_cpu device %d", id);
  d->memory = &d->space.base;
  c->device_list[id] = d;
  c->memory_list[id] = d->memory;
  c->n_devices = (size_t)id + 1;
  if (!d->local) return NULL;
  cpu_api_cache_init(&d->cache);
  cpu_api_queue_init(d);
  c->n_local++;
  CALX_TRY(cpu_threads_new(threads, &d->pool));
  return cpu_run_context_new(d->pool, &d->context);
}

// The processor's features by CPUID, for which kernels are compiled. They
// differ under valgrind or in another virtual machine.
static unsigned processor(void)
{
  unsigned hash = 2166136261U;
#if defined(__x86_64__)
  unsigned r[2][4] = { { 0 } };
  __get_cpuid(1, &r[0][0], &r[0][1], &r[0][2], &r[0][3]);
  __get_cpuid_count(7, 0, &r[1][0], &r[1][1], &r[1][2], &r[1][3]);
  r[0][1] = 0;  // which core it is
  for (int i = 0; i < 8; i++) hash = (hash ^ r[i / 4][i % 4]) * 16777619U;
#endif
  return hash;
}

// Callers cache executables under this version, so it names all environment
// variables that change executables.
static void write_version(PJRT_Client *c)
{
  const char *lanes = getenv("CALX_CPU_LANES");
  snprintf(c->version, sizeof c->version,
           "calx " CALX_VERSION ", x86 %08x%s%s%s%s%.8s", processor(),
           cpu_lower_is_set("CALX_CPU_REF") ? ", interpreted" : "",
           cpu_lower_is_set("CALX_DETERMINISTIC") ? ", deterministic" : "",
           cpu_lower_is_blocking() ? ", blocking" : "",
           lanes != NULL && lanes[0] != '\0' ? ", lanes " : "",
           lanes != NULL ? lanes : "");
}

static calx_status *join_world(PJRT_Client *c)
{
  const cpu_api_world *w = &c->world;
  const bool alone = w->n_processes == 1;
  const cpu_coll_topology topology = {
    .fd = alone ? -1 : w->segment_fd,
    .host_first = w->host_first * w->per_process,
    .n_host = w->host_processes * w->per_process,
    .own_first = (uint32_t)c->first,
    .n_own = w->per_process,
    .n_world = w->n_processes * w->per_process,
    .timeout_ms = c->timeout_ms
  };
  return cpu_coll_new(&topology, &c->coll);
}

// The threads of each device. By default the devices of a host share its cores.
static calx_status *count_threads(const cpu_api_world *w, int *out)
{
  int64_t total = 0;
  const int64_t on_host = w->host_processes;
  CALX_TRY(cpu_api_environment("CALX_CPU_THREADS", 1, MAX_THREADS,
                               cpu_threads_cores() / on_host, &total));
  *out = total > w->per_process ? (int)(total / w->per_process) : 1;
  return NULL;
}

static calx_status *open_client(PJRT_Client *c)
{
  const cpu_api_world *w = &c->world;
  const size_t n = (size_t)w->n_processes * w->per_process;
  int threads = 0;
  int64_t timeout_s = 0;
  c->first = (size_t)w->process * w->per_process;
  CALX_TRY(count_threads(w, &threads));
  CALX_TRY(cpu_api_environment("CALX_COLLECTIVE_TIMEOUT_S", 1, MAX_TIMEOUT_S,
                               DEFAULT_TIMEOUT_S, &timeout_s));
  c->timeout_ms = timeout_s * 1000;
  write_version(c);
  c->devices = cx_calloc(n, sizeof *c->devices);
  c->device_list = cx_calloc(n, sizeof(PJRT_Device *));
  c->memory_list = cx_calloc(n, sizeof(PJRT_Memory *));
  if (c->devices == NULL || c->device_list == NULL || c->memory_list == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(open_device(c, (int)i, threads));
  }
  CALX_TRY(cpu_threads_new(threads, &c->compile_pool));
  CALX_TRY(join_world(c));
  return cpu_api_topology_new(n, w->per_process, &c->topology);
}

static calx_status *create(const PJRT_NamedValue *options, size_t n_options,
                           PJRT_Client **out)
{
  cpu_api_world world;
  CALX_TRY(cpu_api_world_read(options, n_options, &world));
  CALX_TRY(cpu_api_world_check_segment(&world));
  PJRT_Client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  c->world = world;
  atomic_init(&c->refs, 1);
  atomic_init(&c->closed, false);
  cx_mutex_init(&c->compile_lock);
  cx_mutex_init(&c->launch_lock);
  calx_status *status = open_client(c);
  if (status != NULL) {
    client_free(c);
    return status;
  }
  *out = c;
  return NULL;
}

// ---- the table's ----

PJRT_Error *cpu_api_PJRT_Client_Create(PJRT_Client_Create_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Client_Create, client, struct_size);
  args->client = NULL;
  return cpu_api_error(
      create(args->create_options, args->num_options, &args->client));
}

PJRT_Error *cpu_api_PJRT_Client_Destroy(PJRT_Client_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Client_Destroy, struct_size);
  PJRT_Client *c = args->client;
  if (c == NULL) return NULL;
  atomic_store(&c->closed, true);
  for (size_t i = 0; i < c->n_local; i++) {
    cpu_api_queue_stop(&c->devices[c->first + i]);
  }
  cpu_api_client_release(c);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_PlatformName(
    PJRT_Client_PlatformName_Args *args)
{
  CPU_API_ENTER(PJRT_Client_PlatformName, client);
  args->platform_name = CPU_API_PLATFORM;
  args->platform_name_size = strlen(CPU_API_PLATFORM);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_PlatformVersion(
    PJRT_Client_PlatformVersion_Args *args)
{
  CPU_API_ENTER(PJRT_Client_PlatformVersion, client);
  args->platform_version = args->client->version;
  args->platform_version_size = strlen(args->client->version);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_ProcessIndex(
    PJRT_Client_ProcessIndex_Args *args)
{
  CPU_API_ENTER(PJRT_Client_ProcessIndex, client);
  args->process_index = (int)args->client->world.process;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_TopologyDescription(
    PJRT_Client_TopologyDescription_Args *args)
{
  CPU_API_ENTER(PJRT_Client_TopologyDescription, client);
  args->topology = args->client->topology;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_Devices(PJRT_Client_Devices_Args *args)
{
  CPU_API_ENTER(PJRT_Client_Devices, client);
  args->devices = args->client->device_list;
  args->num_devices = args->client->n_devices;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_AddressableDevices(
    PJRT_Client_AddressableDevices_Args *args)
{
  CPU_API_ENTER(PJRT_Client_AddressableDevices, client);
  args->addressable_devices = args->client->device_list + args->client->first;
  args->num_addressable_devices = args->client->n_local;
  return NULL;
}

static calx_status *look_up(const PJRT_Client *c, int id, PJRT_Device **out)
{
  *out = NULL;
  if (id < 0 || (size_t)id >= c->n_devices) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "No matching device found for device_id %d: there are %zu",
                    id, c->n_devices);
  }
  *out = c->device_list[id];
  return NULL;
}

static calx_status *look_up_local(const PJRT_Client *c, int id,
                                  PJRT_Device **out)
{
  *out = NULL;
  if (id < 0 || (size_t)id >= c->n_local) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "No matching device found for local_hardware_id %d: there "
                    "are %zu",
                    id, c->n_local);
  }
  *out = c->device_list[c->first + (size_t)id];
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_LookupDevice(
    PJRT_Client_LookupDevice_Args *args)
{
  CPU_API_ENTER(PJRT_Client_LookupDevice, client);
  return cpu_api_error(look_up(args->client, args->id, &args->device));
}

PJRT_Error *cpu_api_PJRT_Client_LookupAddressableDevice(
    PJRT_Client_LookupAddressableDevice_Args *args)
{
  CPU_API_ENTER(PJRT_Client_LookupAddressableDevice, client);
  return cpu_api_error(look_up_local(args->client, args->local_hardware_id,
                                     &args->addressable_device));
}

PJRT_Error *cpu_api_PJRT_Client_AddressableMemories(
    PJRT_Client_AddressableMemories_Args *args)
{
  CPU_API_ENTER(PJRT_Client_AddressableMemories, client);
  args->addressable_memories = args->client->memory_list + args->client->first;
  args->num_addressable_memories = args->client->n_local;
  return NULL;
}

// A process knows the others from its options.
PJRT_Error *cpu_api_PJRT_Client_UpdateGlobalProcessInfo(
    PJRT_Client_UpdateGlobalProcessInfo_Args *args)
{
  CPU_API_ENTER(PJRT_Client_UpdateGlobalProcessInfo, client);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_DefaultDeviceAssignment(
    PJRT_Client_DefaultDeviceAssignment_Args *args)
{
  CPU_API_ENTER(PJRT_Client_DefaultDeviceAssignment, client);
  int64_t n = 0;
  bool ok = args->num_replicas > 0 && args->num_partitions > 0 &&
            !__builtin_mul_overflow((int64_t)args->num_replicas,
                                    (int64_t)args->num_partitions, &n);
  if (!ok || (size_t)n > args->client->n_devices) {
    return cpu_api_error(cx_error(
        CALX_INVALID_ARGUMENT,
        "%d replicas of %d partitions do not fit %zu devices",
        args->num_replicas, args->num_partitions, args->client->n_devices));
  }
  if (args->default_assignment == NULL ||
      args->default_assignment_size < (size_t)n) {
    return cpu_api_error(cx_error(
        CALX_INVALID_ARGUMENT,
        "the assignment of %" PRId64 " devices has room for %zu", n,
        args->default_assignment == NULL ? 0 : args->default_assignment_size));
  }
  // One device's program is for one of this process.
  const int first = n == 1 ? (int)args->client->first : 0;
  for (int64_t i = 0; i < n; i++) args->default_assignment[i] = first + (int)i;
  return NULL;
}

// All memory is the host's: nothing needs to be pinned.
PJRT_Error *cpu_api_PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args *args)
{
  CPU_API_ENTER(PJRT_Client_DmaMap, client);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args *args)
{
  CPU_API_ENTER(PJRT_Client_DmaUnmap, client);
  return NULL;
}
