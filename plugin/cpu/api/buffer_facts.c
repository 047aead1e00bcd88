// api/buffer_facts: what is told about buffers, and their addresses.
#include "api/api.h"

PJRT_Error *cpu_api_PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_ElementType, buffer);
  args->type = (PJRT_Buffer_Type)args->buffer->shape.type;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_Dimensions, buffer);
  args->dims = args->buffer->shape.dims;
  args->num_dims = args->buffer->shape.rank;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_UnpaddedDimensions(
    PJRT_Buffer_UnpaddedDimensions_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_UnpaddedDimensions, buffer);
  args->unpadded_dims = args->buffer->shape.dims;
  args->num_dims = args->buffer->shape.rank;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_DynamicDimensionIndices(
    PJRT_Buffer_DynamicDimensionIndices_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_DynamicDimensionIndices, buffer);
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_GetMemoryLayout(
    PJRT_Buffer_GetMemoryLayout_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_GetMemoryLayout, buffer);
  size_t rank = args->buffer->shape.rank;
  args->layout = (PJRT_Buffer_MemoryLayout){
    CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout),
    .tiled = { CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout_Tiled),
               .minor_to_major = cpu_api_row_major(rank),
               .minor_to_major_size = rank },
    .type = PJRT_Buffer_MemoryLayout_Type_Tiled
  };
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_OnDeviceSizeInBytes(
    PJRT_Buffer_OnDeviceSizeInBytes_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_OnDeviceSizeInBytes, buffer);
  args->on_device_size_in_bytes = args->buffer->bytes;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_Device(PJRT_Buffer_Device_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_Device, buffer);
  args->device = args->buffer->device;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_Memory(PJRT_Buffer_Memory_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_Memory, buffer);
  args->memory = args->buffer->device->memory;
  return NULL;
}

// Who hears "yes" reads the memory itself. Elements of less than 8 bits lie
// there extended, which is not their form on the host.
PJRT_Error *cpu_api_PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_IsOnCpu, buffer);
  int type = args->buffer->shape.type;
  args->is_on_cpu =
      type == PJRT_Buffer_Type_PRED || !cpu_api_type_is_narrow(type);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_ReadyEvent, buffer);
  cpu_api_value *value = NULL;
  calx_status *status = cpu_api_buffer_value(args->buffer, &value);
  if (status != NULL) return cpu_api_error(status);
  args->event = cpu_api_event_retain(value->ready);
  cpu_api_value_release(value);
  return NULL;
}

// ---- addresses ----

// Waits: before, a value has no memory.
static calx_status *address(PJRT_Buffer *buffer, void **out)
{
  cpu_api_value *value = NULL;
  CALX_TRY(cpu_api_buffer_value(buffer, &value));
  calx_status *status = cpu_api_value_wait(value);
  if (status == NULL) *out = value->block.data;
  cpu_api_value_release(value);
  return status;
}

PJRT_Error *cpu_api_PJRT_Buffer_UnsafePointer(
    PJRT_Buffer_UnsafePointer_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_UnsafePointer, buffer);
  void *data = NULL;
  calx_status *status = address(args->buffer, &data);
  args->buffer_pointer = (uintptr_t)data;
  return cpu_api_error(status);
}

PJRT_Error *cpu_api_PJRT_Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, buffer);
  args->device_memory_ptr = NULL;
  return cpu_api_error(address(args->buffer, &args->device_memory_ptr));
}

// While there is a reference the buffer is not given away, and its memory stays
// even when it is deleted.
PJRT_Error *cpu_api_PJRT_Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
  PJRT_Buffer *b = args->buffer;
  cx_lock(&b->lock);
  bool alive = b->value != NULL;
  if (alive && b->external++ == 0) {
    b->pinned = b->value;
    cpu_api_value_retain(b->pinned);
  }
  cx_unlock(&b->lock);
  return cpu_api_error(alive ? NULL : cpu_api_buffer_gone(b));
}

PJRT_Error *cpu_api_PJRT_Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_DecreaseExternalReferenceCount, buffer);
  PJRT_Buffer *b = args->buffer;
  cpu_api_value *unpinned = NULL;
  cx_lock(&b->lock);
  bool held = b->external > 0;
  if (held && --b->external == 0) {
    unpinned = b->pinned;
    b->pinned = NULL;
  }
  cx_unlock(&b->lock);
  cpu_api_value_release(unpinned);
  if (held) return NULL;
  return cpu_api_error(cx_error(CALX_FAILED_PRECONDITION,
                                "the buffer has no external reference"));
}
