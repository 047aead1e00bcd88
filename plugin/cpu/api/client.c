// api/client: the life of a client, and its properties.
//
// A client is counted: its handle and each buffer, value and executable hold
// it. After the handle is destroyed, buffers can still be read and objects
// destroyed, but programs can no longer run.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

// ---- lifetime ----

static void client_free(PJRT_Client *c)
{
  for (size_t i = 0; i < c->n_devices; i++) {
    PJRT_Device *d = &c->devices[i];
    if (!d->local) continue;
    cpu_run_context_free(d->context);
    cpu_threads_free(d->threads);
    cpu_api_cache_free(&d->cache);
    cx_cond_free(&d->changed);
    cx_mutex_free(&d->lock);
  }
  cpu_threads_free(c->compile_threads);
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
  cpu_api_ref(&client->refs);
}

void cpu_api_client_release(PJRT_Client *client)
{
  if (cpu_api_unref(&client->refs)) client_free(client);
}

// ---- properties ----

CPU_API_GET_TEXT(PJRT_Client_PlatformName, client, platform_name,
                 args->client->world.platform)
CPU_API_GET_TEXT(PJRT_Client_PlatformVersion, client, platform_version,
                 args->client->version)
CPU_API_GET(PJRT_Client_ProcessIndex, client, process_index,
            (int)args->client->world.process)
CPU_API_GET(PJRT_Client_TopologyDescription, client, topology,
            args->client->topology)
CPU_API_GET_LIST(PJRT_Client_Devices, client, devices,
                 args->client->device_list, num_devices,
                 args->client->n_devices)
CPU_API_GET_LIST(PJRT_Client_AddressableDevices, client, addressable_devices,
                 args->client->device_list + args->client->first,
                 num_addressable_devices, args->client->n_local)
CPU_API_GET_LIST(PJRT_Client_AddressableMemories, client, addressable_memories,
                 args->client->memory_list +
                     args->client->first * CPU_RUN_MEMORIES,
                 num_addressable_memories,
                 args->client->n_local *CPU_RUN_MEMORIES)

CPU_API_CALL(PJRT_Client_LookupDevice, client,
             cpu_api_device_find(args->client, args->id, &args->device))

static calx_status *find_local(const PJRT_Client *c, int id, PJRT_Device **out)
{
  *out = NULL;
  if (id < 0 || (size_t)id >= c->n_local) {
    return cx_invalid(
        "No matching device found for local_hardware_id %d: there are %zu", id,
        c->n_local);
  }
  *out = c->device_list[c->first + (size_t)id];
  return NULL;
}

CPU_API_CALL(PJRT_Client_LookupAddressableDevice, client,
             find_local(args->client, args->local_hardware_id,
                        &args->addressable_device))

// A client knows the other processes from its options.
CPU_API_ACCEPT(PJRT_Client_UpdateGlobalProcessInfo, client)

static calx_status *assign(PJRT_Client_DefaultDeviceAssignment_Args *args)
{
  const PJRT_Client *c = args->client;
  const int r = args->num_replicas;
  const int p = args->num_partitions;
  size_t n = 0;
  if (r <= 0 || p <= 0 || !cx_mul_size((size_t)r, (size_t)p, &n) ||
      n > c->n_devices) {
    return cx_invalid("%d replicas of %d partitions do not fit %zu devices", r,
                      p, c->n_devices);
  }
  const size_t size =
      args->default_assignment == NULL ? 0 : args->default_assignment_size;
  if (size < n) {
    return cx_invalid("the assignment of %zu devices has space for %zu", n,
                      size);
  }
  // A program for one device gets a device of this process.
  const int first = n == 1 ? (int)c->first : 0;
  for (size_t i = 0; i < n; i++) args->default_assignment[i] = first + (int)i;
  return NULL;
}

CPU_API_CALL(PJRT_Client_DefaultDeviceAssignment, client, assign(args))

// All memory is the host's, so nothing needs to be pinned.
CPU_API_ACCEPT(PJRT_Client_DmaMap, client)
CPU_API_ACCEPT(PJRT_Client_DmaUnmap, client)
