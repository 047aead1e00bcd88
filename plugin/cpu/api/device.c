// api/device: what is told about devices and memories.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

#define KIND "cpu"
#define MEMORY_KIND "device"

PJRT_Device *cpu_api_memory_device(PJRT_Memory *memory)
{
  return ((cpu_api_space *)memory)->device;
}

calx_status *cpu_api_choose(PJRT_Client *client, PJRT_Device *device,
                            PJRT_Memory *memory, PJRT_Device **out)
{
  if (memory != NULL) device = cpu_api_memory_device(memory);
  if (device == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "neither a device nor a memory was named");
  }
  if (device->client != client) {
    return cx_error(CALX_INVALID_ARGUMENT, "device %d is of another client",
                    device->description.id);
  }
  CALX_TRY(cpu_api_check_local(device));
  *out = device;
  return NULL;
}

calx_status *cpu_api_check_local(const PJRT_Device *device)
{
  if (device->local) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "device %d is of process %d; process %u has devices %zu to "
                  "%zu",
                  device->description.id, device->description.process,
                  device->client->world.process, device->client->first,
                  device->client->first + device->client->n_local - 1);
}

// ---- descriptions ----

PJRT_Error *cpu_api_PJRT_DeviceDescription_Id(
    PJRT_DeviceDescription_Id_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_Id, device_description);
  args->id = args->device_description->id;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_DeviceDescription_ProcessIndex(
    PJRT_DeviceDescription_ProcessIndex_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_ProcessIndex, device_description);
  args->process_index = args->device_description->process;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_DeviceDescription_Attributes(
    PJRT_DeviceDescription_Attributes_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_Attributes, device_description);
  args->num_attributes = 0;
  args->attributes = NULL;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_DeviceDescription_Kind(
    PJRT_DeviceDescription_Kind_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_Kind, device_description);
  args->device_kind = KIND;
  args->device_kind_size = strlen(KIND);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_DeviceDescription_DebugString(
    PJRT_DeviceDescription_DebugString_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_DebugString, device_description);
  args->debug_string = args->device_description->debug_text;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_DeviceDescription_ToString(
    PJRT_DeviceDescription_ToString_Args *args)
{
  CPU_API_ENTER(PJRT_DeviceDescription_ToString, device_description);
  args->to_string = args->device_description->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

// ---- devices ----

PJRT_Error *cpu_api_PJRT_Device_GetDescription(
    PJRT_Device_GetDescription_Args *args)
{
  CPU_API_ENTER(PJRT_Device_GetDescription, device);
  args->device_description = &args->device->description;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Device_IsAddressable(
    PJRT_Device_IsAddressable_Args *args)
{
  CPU_API_ENTER(PJRT_Device_IsAddressable, device);
  args->is_addressable = args->device->local;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Device_LocalHardwareId(
    PJRT_Device_LocalHardwareId_Args *args)
{
  CPU_API_ENTER(PJRT_Device_LocalHardwareId, device);
  const PJRT_Device *d = args->device;
  args->local_hardware_id =
      d->local ? d->description.id - (int)d->client->first : -1;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Device_AddressableMemories(
    PJRT_Device_AddressableMemories_Args *args)
{
  CPU_API_ENTER(PJRT_Device_AddressableMemories, device);
  args->memories = &args->device->memory;
  args->num_memories = args->device->local ? 1 : 0;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Device_DefaultMemory(
    PJRT_Device_DefaultMemory_Args *args)
{
  CPU_API_ENTER(PJRT_Device_DefaultMemory, device);
  args->memory = NULL;
  calx_status *status = cpu_api_check_local(args->device);
  if (status == NULL) args->memory = args->device->memory;
  return cpu_api_error(status);
}

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

// A client of 0.113 and later has two fields more at the end.
PJRT_Error *cpu_api_PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Device_MemoryStats, peak_pool_bytes_is_set, device);
  PJRT_Device *device = args->device;
  calx_status *status = cpu_api_check_local(device);
  if (status != NULL) return cpu_api_error(status);
  PJRT_Device_MemoryStats_Args told = { .struct_size = args->struct_size,
                                        .extension_start =
                                            args->extension_start,
                                        .device = device };
  cpu_api_cache *cache = &device->cache;
  cx_lock(&cache->lock);
  told.bytes_in_use = (int64_t)cache->in_use;
  told.peak_bytes_in_use = (int64_t)cache->peak;
  told.num_allocs = cache->n_allocs;
  told.largest_alloc_size = (int64_t)cache->largest;
  told.pool_bytes = (int64_t)(cache->in_use + cache->free_bytes);
  cx_unlock(&cache->lock);
  told.bytes_limit = (int64_t)cpu_api_total_memory();
  told.peak_bytes_in_use_is_set = true;
  told.num_allocs_is_set = true;
  told.largest_alloc_size_is_set = true;
  told.pool_bytes_is_set = true;
  told.bytes_limit_is_set = true;
  size_t size =
      args->struct_size < sizeof told ? args->struct_size : sizeof told;
  memcpy(args, &told, size);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Device_ClearMemoryStats(
    PJRT_Device_ClearMemoryStats_Args *args)
{
  CPU_API_ENTER(PJRT_Device_ClearMemoryStats, device);
  cpu_api_cache *cache = &args->device->cache;
  calx_status *status = cpu_api_check_local(args->device);
  if (status != NULL) return cpu_api_error(status);
  cx_lock(&cache->lock);
  cache->peak = cache->in_use;
  cache->largest = 0;
  cache->n_allocs = 0;
  cx_unlock(&cache->lock);
  return NULL;
}

// What is tracked is not looked at: any object that is not NULL will do.
static char tracking;

PJRT_Error *cpu_api_PJRT_Device_CreateAsyncTrackingEvent(
    PJRT_Device_CreateAsyncTrackingEvent_Args *args)
{
  CPU_API_ENTER(PJRT_Device_CreateAsyncTrackingEvent, device);
  args->event = (PJRT_AsyncTrackingEvent *)&tracking;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_AsyncTrackingEvent_Destroy(
    PJRT_AsyncTrackingEvent_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_AsyncTrackingEvent_Destroy, struct_size);
  return NULL;
}

// ---- memories ----

PJRT_Error *cpu_api_PJRT_Memory_Id(PJRT_Memory_Id_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_Id, memory);
  args->id = cpu_api_memory_device(args->memory)->description.id;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Memory_Kind(PJRT_Memory_Kind_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_Kind, memory);
  args->kind = MEMORY_KIND;
  args->kind_size = strlen(MEMORY_KIND);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_Kind_Id, memory);
  args->kind_id = 0;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Memory_DebugString(PJRT_Memory_DebugString_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_DebugString, memory);
  args->debug_string = ((cpu_api_space *)args->memory)->debug_text;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Memory_ToString(PJRT_Memory_ToString_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_ToString, memory);
  args->to_string = ((cpu_api_space *)args->memory)->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Memory_AddressableByDevices(
    PJRT_Memory_AddressableByDevices_Args *args)
{
  CPU_API_ENTER(PJRT_Memory_AddressableByDevices, memory);
  PJRT_Device *device = cpu_api_memory_device(args->memory);
  args->devices = &device->client->device_list[device->description.id];
  args->num_devices = device->local ? 1 : 0;
  return NULL;
}
