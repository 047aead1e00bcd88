// api/device: devices and memories, and their properties.
#include <string.h>

#include "api/api.h"

static cpu_api_space *space_of(PJRT_Memory *memory)
{
  return (cpu_api_space *)memory;
}

calx_status *cpu_api_choose(PJRT_Client *client, PJRT_Device *device,
                            PJRT_Memory *memory, cpu_api_space **out)
{
  if (memory == NULL && device == NULL) {
    return cx_invalid("neither a device nor a memory was named");
  }
  if (memory == NULL) memory = device->memories[0];
  device = space_of(memory)->device;
  if (device->client != client) {
    return cx_invalid("device %d is of another client", device->description.id);
  }
  CALX_TRY(cpu_api_check_local(device));
  *out = space_of(memory);
  return NULL;
}

calx_status *cpu_api_check_local(const PJRT_Device *device)
{
  if (device->local) return NULL;
  return cx_invalid(
      "device %d is of process %d; process %u has devices %zu to %zu",
      device->description.id, device->description.process,
      device->client->world.process, device->client->first,
      device->client->first + device->client->n_local - 1);
}

calx_status *cpu_api_device_find(const PJRT_Client *client, int id,
                                 PJRT_Device **out)
{
  *out = NULL;
  if (id < 0 || (size_t)id >= client->n_devices) {
    return cx_invalid(
        "No matching device found for device_id %d: there are %zu", id,
        client->n_devices);
  }
  *out = client->device_list[id];
  return NULL;
}

// ---- descriptions ----

CPU_API_GET(PJRT_DeviceDescription_Id, device_description, id,
            args->device_description->id)
CPU_API_GET(PJRT_DeviceDescription_ProcessIndex, device_description,
            process_index, args->device_description->process)
CPU_API_GET_LIST(PJRT_DeviceDescription_Attributes, device_description,
                 attributes, NULL, num_attributes, 0)
CPU_API_GET_TEXT(PJRT_DeviceDescription_Kind, device_description, device_kind,
                 "cpu")
CPU_API_GET_TEXT(PJRT_DeviceDescription_DebugString, device_description,
                 debug_string, args->device_description->debug_text)
CPU_API_GET_TEXT(PJRT_DeviceDescription_ToString, device_description, to_string,
                 args->device_description->text)

// ---- devices ----

CPU_API_GET(PJRT_Device_GetDescription, device, device_description,
            &args->device->description)
CPU_API_GET(PJRT_Device_IsAddressable, device, is_addressable,
            args->device->local)
CPU_API_GET(PJRT_Device_LocalHardwareId, device, local_hardware_id,
            !args->device->local ? -1
                                 : args->device->description.id -
                                       (int)args->device->client->first)
CPU_API_GET_LIST(PJRT_Device_AddressableMemories, device, memories,
                 args->device->memories, num_memories,
                 args->device->local ? CPU_RUN_MEMORIES : 0)

static calx_status *default_memory(PJRT_Device *device, PJRT_Memory **out)
{
  *out = NULL;
  CALX_TRY(cpu_api_check_local(device));
  *out = device->memories[0];
  return NULL;
}

CPU_API_CALL(PJRT_Device_DefaultMemory, device,
             default_memory(args->device, &args->memory))

static void no_attributes(PJRT_Device_Attributes *attributes)
{
  (void)attributes;
}

PJRT_Error *cpu_api_PJRT_Device_GetAttributes(
    PJRT_Device_GetAttributes_Args *args)
{
  CPU_API_ENTER(PJRT_Device_GetAttributes, device);
  args->attributes = NULL;
  args->num_attributes = 0;
  args->device_attributes = NULL;
  args->attributes_deleter = no_attributes;
  return NULL;
}

static calx_status *memory_stats(PJRT_Device_MemoryStats_Args *args)
{
  PJRT_Device *device = args->device;
  CALX_TRY(cpu_api_check_local(device));
  PJRT_Device_MemoryStats_Args stats = { .struct_size = args->struct_size,
                                         .extension_start =
                                             args->extension_start,
                                         .device = device };
  cpu_api_cache *cache = &device->cache;
  cx_lock(&cache->lock);
  stats.bytes_in_use = (int64_t)cache->in_use;
  stats.peak_bytes_in_use = (int64_t)cache->peak;
  stats.num_allocs = cache->n_allocs;
  stats.largest_alloc_size = (int64_t)cache->largest;
  stats.pool_bytes = (int64_t)(cache->in_use + cache->free_bytes);
  cx_unlock(&cache->lock);
  stats.bytes_limit = (int64_t)cpu_api_total_memory();
  stats.peak_bytes_in_use_is_set = true;
  stats.num_allocs_is_set = true;
  stats.largest_alloc_size_is_set = true;
  stats.pool_bytes_is_set = true;
  stats.bytes_limit_is_set = true;
  size_t size =
      args->struct_size < sizeof stats ? args->struct_size : sizeof stats;
  memcpy(args, &stats, size);
  return NULL;
}

// Callers of 0.113 and later have two more fields at the end.
CPU_API_CALL_FROM(PJRT_Device_MemoryStats, peak_pool_bytes_is_set, device,
                  memory_stats(args))

static calx_status *clear_stats(PJRT_Device *device)
{
  CALX_TRY(cpu_api_check_local(device));
  cpu_api_cache *cache = &device->cache;
  cx_lock(&cache->lock);
  cache->peak = cache->in_use;
  cache->largest = 0;
  cache->n_allocs = 0;
  cx_unlock(&cache->lock);
  return NULL;
}

CPU_API_CALL(PJRT_Device_ClearMemoryStats, device, clear_stats(args->device))

// Nothing reads a tracking event. Any object that is not NULL serves.
static char tracking;

CPU_API_GET(PJRT_Device_CreateAsyncTrackingEvent, device, event,
            (PJRT_AsyncTrackingEvent *)&tracking)
CPU_API_ACCEPT(PJRT_AsyncTrackingEvent_Destroy, struct_size)

// ---- memories ----

CPU_API_GET(PJRT_Memory_Id, memory, id,
            space_of(args->memory)->device->description.id *CPU_RUN_MEMORIES +
                (int)space_of(args->memory)->kind)
CPU_API_GET_TEXT(PJRT_Memory_Kind, memory, kind,
                 cpu_run_memory_name(space_of(args->memory)->kind))
CPU_API_GET(PJRT_Memory_Kind_Id, memory, kind_id,
            (int)space_of(args->memory)->kind)
CPU_API_GET_TEXT(PJRT_Memory_DebugString, memory, debug_string,
                 space_of(args->memory)->debug_text)
CPU_API_GET_TEXT(PJRT_Memory_ToString, memory, to_string,
                 space_of(args->memory)->text)

PJRT_Error *cpu_api_PJRT_Memory_AddressableByDevices(
    PJRT_Memory_AddressableByDevices_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_AddressableByDevices, memory);
  const PJRT_Device *device = space_of(args->memory)->device;
  args->devices = &device->client->device_list[device->description.id];
  args->num_devices = device->local ? 1 : 0;
  return NULL;
}
