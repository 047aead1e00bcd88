// api/transfer: buffers whose data arrives in pieces.
//
// A manager makes all buffers when it is created, pending. Each buffer is ready
// after its last piece, and each call copies its piece. When the manager is
// destroyed, its incomplete buffers get an error, so no thread waits forever.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

#define BUFFER_LIMIT (1 << 20)

struct PJRT_AsyncHostToDeviceTransferManager {
  cpu_api_space *space;
  cx_mutex lock;
  size_t n;
  struct part {
    PJRT_Buffer *buffer;   // NULL: the caller has retrieved it
    cpu_api_value *value;  // held
    cpu_api_shape shape;   // dims: `dims`
    int64_t *dims;
    size_t bytes;
  } * parts;
};

typedef struct part part;
typedef PJRT_AsyncHostToDeviceTransferManager manager;

static void manager_free(manager *m)
{
  if (m == NULL) return;
  for (size_t i = 0; i < m->n; i++) {
    part *p = &m->parts[i];
    if (p->value != NULL && !cpu_api_event_is_ready(p->value->ready)) {
      cpu_api_event_set(p->value->ready,
                        cx_error(CALX_CANCELLED,
                                 "%s: its transfer was abandoned before the "
                                 "last piece",
                                 cpu_api_shape_str(&p->shape).s));
    }
    cpu_api_buffer_free(p->buffer);
    cpu_api_value_release(p->value);
    cx_free(p->dims);
  }
  cx_mutex_free(&m->lock);
  if (m->space != NULL) cpu_api_client_release(m->space->device->client);
  cx_free(m->parts);
  cx_free(m);
}

static calx_status *open_part(manager *m, part *p, const PJRT_ShapeSpec *spec,
                              const PJRT_Buffer_MemoryLayout *layout)
{
  CALX_TRY(cpu_api_check_size("PJRT_ShapeSpec", PJRT_ShapeSpec_STRUCT_SIZE,
                              spec->struct_size));
  CALX_TRY(cpu_api_shape_read((int)spec->element_type, spec->dims,
                              spec->num_dims, layout, &p->shape, &p->bytes));
  p->dims = cx_alloc(p->shape.rank * sizeof *p->dims);
  PJRT_Event *ready = cpu_api_event_new();
  if (p->dims == NULL || ready == NULL) {
    cpu_api_event_release(ready);
    p->shape.rank = 0;
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < p->shape.rank; i++) p->dims[i] = spec->dims[i];
  p->shape.dims = p->dims;
  CALX_TRY(
      cpu_api_buffer_make(m->space, &p->shape, p->bytes, ready, &p->buffer));
  p->value = p->buffer->value;
  cpu_api_value_retain(p->value);
  return NULL;
}

static calx_status *create(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args, manager *m)
{
  CALX_TRY(cpu_api_choose(args->client, NULL, args->memory, &m->space));
  cpu_api_client_retain(args->client);
  if (args->num_shape_specs > BUFFER_LIMIT ||
      (args->num_shape_specs > 0 && args->shape_specs == NULL)) {
    return cx_invalid("%zu shapes, at most %d", args->num_shape_specs,
                      BUFFER_LIMIT);
  }
  m->parts = cx_calloc(args->num_shape_specs, sizeof *m->parts);
  if (m->parts == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < args->num_shape_specs; i++) {
    const PJRT_Buffer_MemoryLayout *layout =
        args->device_layouts != NULL && i < args->num_device_layouts
            ? args->device_layouts[i]
            : NULL;
    m->n = i + 1;
    CALX_TRY(open_part(m, &m->parts[i], &args->shape_specs[i], layout));
  }
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Client_CreateBuffersForAsyncHostToDevice(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args)
{
  CPU_API_ENTER(PJRT_Client_CreateBuffersForAsyncHostToDevice, client);
  args->transfer_manager = NULL;
  manager *m = cx_calloc(1, sizeof *m);
  if (m == NULL) return cpu_api_error(cx_out_of_memory());
  cx_mutex_init(&m->lock);
  calx_status *status = create(args, m);
  if (status != NULL) {
    manager_free(m);
    return cpu_api_error(status);
  }
  args->transfer_manager = m;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_AsyncHostToDeviceTransferManager_Destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_AsyncHostToDeviceTransferManager_Destroy, struct_size);
  manager_free(args->transfer_manager);
  return NULL;
}

static calx_status *part_of(manager *m, int index, part **out)
{
  *out = NULL;
  if (index < 0 || (size_t)index >= m->n) {
    return cx_invalid("buffer %d was asked for, the transfer has %zu", index,
                      m->n);
  }
  *out = &m->parts[index];
  return NULL;
}

static calx_status *check_pending(const part *p)
{
  if (!cpu_api_event_is_ready(p->value->ready)) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: its last piece was transferred already",
                  cpu_api_shape_str(&p->shape).s);
}

static calx_status *transfer(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args)
{
  part *p = NULL;
  args->done_with_h2d_transfer = NULL;
  CALX_TRY(part_of(args->transfer_manager, args->buffer_index, &p));
  if (!cpu_api_is_range(args->offset, args->transfer_size, p->bytes) ||
      (args->data == NULL && args->transfer_size > 0)) {
    return cx_invalid("a piece of %" PRId64 " bytes at %" PRId64 " of %zu",
                      args->transfer_size, args->offset, p->bytes);
  }
  CALX_TRY(check_pending(p));
  unsigned char *to = (unsigned char *)p->value->block.data + args->offset;
  if (cpu_api_type_is_narrow(p->shape.type)) {
    cpu_api_move move;
    cpu_api_move_init(&move,
                      &(cpu_api_shape){ .type = p->shape.type,
                                        .rank = 1,
                                        .dims = &args->transfer_size },
                      CPU_API_MOVE_IN);
    cpu_api_move_run(&move, to, args->data);
  } else if (args->transfer_size > 0) {
    memcpy(to, args->data, (size_t)args->transfer_size);
  }
  if (args->is_last_transfer) cpu_api_event_set(p->value->ready, NULL);
  args->done_with_h2d_transfer = cpu_api_event_ready();
  return NULL;
}

CPU_API_CALL(PJRT_AsyncHostToDeviceTransferManager_TransferData,
             transfer_manager, transfer(args))

static calx_status *transfer_literal(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args)
{
  part *p = NULL;
  cpu_api_move move;
  cpu_api_shape shape;
  size_t bytes = 0;
  args->done_with_h2d_transfer = NULL;
  CALX_TRY(part_of(args->transfer_manager, args->buffer_index, &p));
  CALX_TRY(cpu_api_shape_read((int)args->shape_element_type, args->shape_dims,
                              args->shape_num_dims, NULL, &shape, &bytes));
  if (!cpu_api_shape_equal(&shape, &p->shape)) {
    return cx_invalid("wanted %s, found %s", cpu_api_shape_str(&p->shape).s,
                      cpu_api_shape_str(&shape).s);
  }
  if (args->data == NULL && bytes > 0) {
    return cx_invalid("%s without data", cpu_api_shape_str(&p->shape).s);
  }
  CALX_TRY(check_pending(p));
  cpu_api_move_init(&move, &shape, CPU_API_MOVE_IN);
  CALX_TRY(
      cpu_api_layout_strides(args->shape_layout, &shape, move.src_strides));
  cpu_api_move_run(&move, p->value->block.data, args->data);
  cpu_api_event_set(p->value->ready, NULL);
  args->done_with_h2d_transfer = cpu_api_event_ready();
  return NULL;
}

CPU_API_CALL(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral,
             transfer_manager, transfer_literal(args))

// The caller can retrieve a buffer once, and then owns it.
static calx_status *retrieve(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args)
{
  manager *m = args->transfer_manager;
  part *p = NULL;
  args->buffer_out = NULL;
  CALX_TRY(part_of(m, args->buffer_index, &p));
  cx_lock(&m->lock);
  args->buffer_out = p->buffer;
  p->buffer = NULL;
  cx_unlock(&m->lock);
  if (args->buffer_out != NULL) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION, "buffer %d was retrieved already",
                  args->buffer_index);
}

CPU_API_CALL(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer,
             transfer_manager, retrieve(args))

static calx_status *set_error(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args)
{
  part *p = NULL;
  CALX_TRY(part_of(args->transfer_manager, args->buffer_index, &p));
  CALX_TRY(check_pending(p));
  cpu_api_event_set(p->value->ready,
                    cpu_api_callers_error(args->error_code, args->error_message,
                                          args->error_message_size));
  return NULL;
}

CPU_API_CALL(PJRT_AsyncHostToDeviceTransferManager_SetBufferError,
             transfer_manager, set_error(args))

// ---- properties ----

static calx_status *size_of(manager *m, int index, size_t *out)
{
  part *p = NULL;
  *out = 0;
  CALX_TRY(part_of(m, index, &p));
  *out = p->bytes;
  return NULL;
}

CPU_API_CALL(PJRT_AsyncHostToDeviceTransferManager_BufferSize, transfer_manager,
             size_of(args->transfer_manager, args->buffer_index,
                     &args->buffer_size))
CPU_API_GET(PJRT_AsyncHostToDeviceTransferManager_BufferCount, transfer_manager,
            buffer_count, args->transfer_manager->n)
CPU_API_GET(PJRT_AsyncHostToDeviceTransferManager_Device, transfer_manager,
            device_out, args->transfer_manager->space->device)
CPU_API_ACCEPT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata,
               transfer_manager)
