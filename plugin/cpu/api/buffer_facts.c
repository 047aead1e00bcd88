// api/buffer_facts: the properties of buffers, and their addresses.
#include "api/api.h"

// ---- properties ----

CPU_API_GET(PJRT_Buffer_ElementType, buffer, type,
            (PJRT_Buffer_Type)args->buffer->shape.type)
CPU_API_GET_LIST(PJRT_Buffer_Dimensions, buffer, dims, args->buffer->shape.dims,
                 num_dims, args->buffer->shape.rank)
CPU_API_GET_LIST(PJRT_Buffer_UnpaddedDimensions, buffer, unpadded_dims,
                 args->buffer->shape.dims, num_dims, args->buffer->shape.rank)
CPU_API_GET_LIST(PJRT_Buffer_DynamicDimensionIndices, buffer,
                 dynamic_dim_indices, NULL, num_dynamic_dims, 0)
CPU_API_GET(PJRT_Buffer_OnDeviceSizeInBytes, buffer, on_device_size_in_bytes,
            args->buffer->bytes)
CPU_API_GET(PJRT_Buffer_Device, buffer, device, args->buffer->device)
CPU_API_GET(PJRT_Buffer_Memory, buffer, memory, &args->buffer->space->base)

static PJRT_Buffer_MemoryLayout row_major(size_t rank)
{
  return (PJRT_Buffer_MemoryLayout){
    CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout),
    .tiled = { CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout_Tiled),
               .minor_to_major = cpu_api_row_major(rank),
               .minor_to_major_size = rank },
    .type = PJRT_Buffer_MemoryLayout_Type_Tiled
  };
}

CPU_API_GET(PJRT_Buffer_GetMemoryLayout, buffer, layout,
            row_major(args->buffer->shape.rank))

// Clients read the memory of a buffer on the CPU directly. Elements of less
// than 8 bits are extended there, which is not their form on the host.
static bool is_as_on_host(int type)
{
  return type == PJRT_Buffer_Type_PRED || !cpu_api_type_is_narrow(type);
}

CPU_API_GET(PJRT_Buffer_IsOnCpu, buffer, is_on_cpu,
            is_as_on_host(args->buffer->shape.type))

static calx_status *ready_event(PJRT_Buffer *buffer, PJRT_Event **out)
{
  cpu_api_value *value = NULL;
  CALX_TRY(cpu_api_buffer_value(buffer, &value));
  *out = cpu_api_event_retain(value->ready);
  cpu_api_value_release(value);
  return NULL;
}

CPU_API_CALL(PJRT_Buffer_ReadyEvent, buffer,
             ready_event(args->buffer, &args->event))

// ---- addresses ----

// Waits, because a pending value has no memory.
static calx_status *address(PJRT_Buffer *buffer, void **out)
{
  cpu_api_value *value = NULL;
  *out = NULL;
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

CPU_API_CALL(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, buffer,
             address(args->buffer, &args->device_memory_ptr))

// A buffer with an external reference is not donated, and its memory is kept
// also after the buffer is deleted.
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
  return cpu_api_error(alive ? NULL : cpu_api_buffer_deleted(b));
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
