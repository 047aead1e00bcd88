// api/buffer: buffers, and the functions that make them.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

#define ALIGN 64

// ---- lifetime ----

static calx_status *keep_dims(PJRT_Buffer *b, const cpu_api_shape *shape)
{
  int64_t *dims = b->few;
  if (shape->rank > CPU_API_FEW_DIMS) {
    dims = cx_alloc(shape->rank * sizeof *dims);
    if (dims == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < shape->rank; i++) dims[i] = shape->dims[i];
  b->shape = *shape;
  b->shape.dims = dims;
  return NULL;
}

calx_status *cpu_api_buffer_new(cpu_api_value *value, cpu_api_space *space,
                                const cpu_api_shape *shape, size_t bytes,
                                PJRT_Buffer **out)
{
  *out = NULL;
  PJRT_Buffer *b = cx_alloc(sizeof *b);
  calx_status *status = b == NULL ? cx_out_of_memory() : keep_dims(b, shape);
  if (status != NULL) {
    cx_free(b);
    cpu_api_value_release(value);
    return status;
  }
  cx_mutex_init(&b->lock);
  b->device = space->device;
  b->space = space;
  b->value = value;
  b->pinned = NULL;
  b->external = 0;
  b->bytes = bytes;
  cpu_api_client_retain(b->device->client);
  *out = b;
  return NULL;
}

void cpu_api_buffer_free(PJRT_Buffer *buffer)
{
  if (buffer == NULL) return;
  PJRT_Client *client = buffer->device->client;
  cpu_api_value_release(buffer->value);
  cpu_api_value_release(buffer->pinned);
  if (buffer->shape.dims != buffer->few) {
    cx_free((int64_t *)(uintptr_t)buffer->shape.dims);
  }
  cx_mutex_free(&buffer->lock);
  cx_free(buffer);
  cpu_api_client_release(client);
}

calx_status *cpu_api_buffer_deleted(const PJRT_Buffer *buffer)
{
  return cx_invalid("Buffer has been deleted or donated: %s on device %d",
                    cpu_api_shape_str(&buffer->shape).s,
                    buffer->device->description.id);
}

calx_status *cpu_api_buffer_value(PJRT_Buffer *buffer, cpu_api_value **out)
{
  cx_lock(&buffer->lock);
  *out = buffer->value;
  if (*out != NULL) cpu_api_value_retain(*out);
  cx_unlock(&buffer->lock);
  return *out != NULL ? NULL : cpu_api_buffer_deleted(buffer);
}

calx_status *cpu_api_buffer_make(cpu_api_space *space,
                                 const cpu_api_shape *shape, size_t bytes,
                                 PJRT_Event *ready, PJRT_Buffer **out)
{
  *out = NULL;
  PJRT_Device *device = space->device;
  cpu_api_value *value = cpu_api_value_new(device, ready);
  if (value == NULL) return cx_out_of_memory();
  calx_status *status = cpu_api_block_new(&device->cache, bytes, &value->block);
  if (status == NULL)
    return cpu_api_buffer_new(value, space, shape, bytes, out);
  cpu_api_value_release(value);
  return status;
}

// A buffer of a new value with this memory. Takes the event and the memory,
// also on failure.
static calx_status *wrap(cpu_api_space *space, PJRT_Event *ready,
                         cpu_api_block block, const cpu_api_shape *shape,
                         size_t bytes, PJRT_Buffer **out)
{
  cpu_api_value *value = cpu_api_value_new(space->device, ready);
  if (value == NULL) {
    cpu_api_block_release(&space->device->cache, &block);
    return cx_out_of_memory();
  }
  value->block = block;
  return cpu_api_buffer_new(value, space, shape, bytes, out);
}

// ---- from the host ----

// A checked upload.
typedef struct upload {
  cpu_api_space *space;
  cpu_api_move move;
  size_t bytes;
  bool dense;
} upload;

static calx_status *read_upload(
    const PJRT_Client_BufferFromHostBuffer_Args *args, upload *u)
{
  cpu_api_shape shape;
  CALX_TRY(cpu_api_choose(args->client, args->device, args->memory, &u->space));
  CALX_TRY(cpu_api_shape_read((int)args->type, args->dims, args->num_dims,
                              args->device_layout, &shape, &u->bytes));
  if (args->data == NULL && u->bytes > 0) {
    return cx_invalid("%s without data", cpu_api_shape_str(&shape).s);
  }
  cpu_api_move_init(&u->move, &shape, CPU_API_MOVE_IN);
  if (args->byte_strides != NULL) {
    if (args->num_byte_strides != shape.rank) {
      return cx_invalid("%zu byte strides for %s", args->num_byte_strides,
                        cpu_api_shape_str(&shape).s);
    }
    for (size_t i = 0; i < shape.rank; i++) {
      u->move.src_strides[i] = args->byte_strides[i];
    }
  }
  u->dense = cpu_api_is_dense(&shape, u->move.src_strides);
  return NULL;
}

static bool may_alias(const PJRT_Client_BufferFromHostBuffer_Args *args,
                      const upload *u)
{
  bool asked =
      args->host_buffer_semantics ==
          PJRT_HostBufferSemantics_kImmutableZeroCopy ||
      args->host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  return asked && u->dense && u->bytes > 0 &&
         (uintptr_t)args->data % ALIGN == 0 &&
         !cpu_api_type_is_narrow(u->move.shape.type);
}

static calx_status *alias(PJRT_Client_BufferFromHostBuffer_Args *args,
                          const upload *u)
{
  PJRT_Event *done = cpu_api_event_new();
  if (done == NULL) return cx_out_of_memory();
  const cpu_api_block block = { .data = (void *)(uintptr_t)args->data,
                                .capacity = u->bytes,
                                .kind = CPU_API_BLOCK_BORROWED,
                                .writable =
                                    args->host_buffer_semantics ==
                                    PJRT_HostBufferSemantics_kMutableZeroCopy,
                                .done = cpu_api_event_retain(done) };
  calx_status *status = wrap(u->space, cpu_api_event_ready(), block,
                             &u->move.shape, u->bytes, &args->buffer);
  if (status == NULL) {
    args->done_with_host_buffer = done;
  } else {
    cpu_api_event_release(done);
  }
  return status;
}

static calx_status *from_host(PJRT_Client_BufferFromHostBuffer_Args *args)
{
  upload u = { 0 };
  args->buffer = NULL;
  args->done_with_host_buffer = NULL;
  CALX_TRY(read_upload(args, &u));
  if (may_alias(args, &u)) return alias(args, &u);
  CALX_TRY(cpu_api_buffer_make(u.space, &u.move.shape, u.bytes,
                               cpu_api_event_ready(), &args->buffer));
  cpu_api_move_run(&u.move, args->buffer->value->block.data, args->data);
  args->done_with_host_buffer = cpu_api_event_ready();
  return NULL;
}

CPU_API_CALL(PJRT_Client_BufferFromHostBuffer, client, from_host(args))

// ---- without data, or with the caller's memory ----

static calx_status *uninitialized(
    PJRT_Client_CreateUninitializedBuffer_Args *args)
{
  cpu_api_shape shape;
  cpu_api_space *space = NULL;
  size_t bytes = 0;
  args->buffer = NULL;
  CALX_TRY(cpu_api_choose(args->client, args->device, args->memory, &space));
  CALX_TRY(cpu_api_shape_read((int)args->shape_element_type, args->shape_dims,
                              args->shape_num_dims, args->shape_layout, &shape,
                              &bytes));
  CALX_TRY(cpu_api_buffer_make(space, &shape, bytes, cpu_api_event_ready(),
                               &args->buffer));
  // Booleans must be 0 or 1, and the data of earlier buffers must not be seen.
  memset(args->buffer->value->block.data, 0, bytes);
  return NULL;
}

CPU_API_CALL(PJRT_Client_CreateUninitializedBuffer, client, uninitialized(args))

static calx_status *error_buffer(PJRT_Client_CreateErrorBuffer_Args *args)
{
  cpu_api_shape shape;
  cpu_api_space *space = NULL;
  size_t bytes = 0;
  args->buffer = NULL;
  CALX_TRY(cpu_api_choose(args->client, NULL, args->memory, &space));
  CALX_TRY(cpu_api_shape_read((int)args->shape_element_type, args->shape_dims,
                              args->shape_num_dims, NULL, &shape, &bytes));
  calx_status *error = cpu_api_callers_error(
      args->error_code, args->error_message, args->error_message_size);
  if (error == NULL) {
    return cx_invalid("a buffer of an error needs an error, found code 0");
  }
  return wrap(space, cpu_api_event_done(error), (cpu_api_block){ 0 }, &shape,
              bytes, &args->buffer);
}

CPU_API_CALL_FROM(PJRT_Client_CreateErrorBuffer, buffer, client,
                  error_buffer(args))

static calx_status *view(PJRT_Client_CreateViewOfDeviceBuffer_Args *args)
{
  cpu_api_shape shape;
  PJRT_Memory *memory = CPU_API_HAS(args, memory) ? args->memory : NULL;
  cpu_api_space *space = NULL;
  size_t bytes = 0;
  args->buffer = NULL;
  CALX_TRY(cpu_api_choose(args->client, args->device, memory, &space));
  CALX_TRY(cpu_api_shape_read((int)args->element_type, args->dims,
                              args->num_dims, args->layout, &shape, &bytes));
  if (args->device_buffer_ptr == NULL && bytes > 0) {
    return cx_invalid("a view of %s without memory",
                      cpu_api_shape_str(&shape).s);
  }
  if ((uintptr_t)args->device_buffer_ptr % ALIGN != 0) {
    return cx_invalid(
        "the memory %p of a view of %s is not aligned to %d bytes",
        args->device_buffer_ptr, cpu_api_shape_str(&shape).s, ALIGN);
  }
  const cpu_api_block block = { .data = args->device_buffer_ptr,
                                .capacity = bytes,
                                .kind = CPU_API_BLOCK_VIEW,
                                .on_delete_user =
                                    args->on_delete_callback_arg };
  CALX_TRY(
      wrap(space, cpu_api_event_ready(), block, &shape, bytes, &args->buffer));
  // Set last, because the callback must not be called after a failure.
  args->buffer->value->block.on_delete = args->on_delete_callback;
  return NULL;
}

CPU_API_CALL_FROM(PJRT_Client_CreateViewOfDeviceBuffer, buffer, client,
                  view(args))

// The same memory, with another shape of the same size.
static calx_status *bitcast(PJRT_Buffer_Bitcast_Args *args)
{
  cpu_api_shape shape;
  size_t bytes = 0;
  cpu_api_value *value = NULL;
  const cpu_api_shape *from = &args->buffer->shape;
  args->out_buffer = NULL;
  CALX_TRY(cpu_api_shape_read((int)args->element_type, args->dims,
                              args->num_dims, args->device_layout, &shape,
                              &bytes));
  bool narrow =
      cpu_api_type_is_narrow(shape.type) || cpu_api_type_is_narrow(from->type);
  if (bytes != args->buffer->bytes || (narrow && shape.type != from->type)) {
    return cx_invalid("%s is no bitcast of %s", cpu_api_shape_str(&shape).s,
                      cpu_api_shape_str(from).s);
  }
  CALX_TRY(cpu_api_buffer_value(args->buffer, &value));
  return cpu_api_buffer_new(value, args->buffer->space, &shape, bytes,
                            &args->out_buffer);
}

CPU_API_CALL(PJRT_Buffer_Bitcast, buffer, bitcast(args))

// ---- destroying ----

PJRT_Error *cpu_api_PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_Destroy, struct_size);
  cpu_api_buffer_free(args->buffer);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_Delete, buffer);
  PJRT_Buffer *b = args->buffer;
  cx_lock(&b->lock);
  cpu_api_value *value = b->value;
  b->value = NULL;
  cx_unlock(&b->lock);
  cpu_api_value_release(value);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_IsDeleted, buffer);
  cx_lock(&args->buffer->lock);
  args->is_deleted = args->buffer->value == NULL;
  cx_unlock(&args->buffer->lock);
  return NULL;
}
