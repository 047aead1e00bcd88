// fake/buffers: tensors in the host's memory, and transfers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// ---- shapes ----

size_t fake_type_bytes(int type)
{
  switch (type) {
    case PJRT_Buffer_Type_S16:
    case PJRT_Buffer_Type_U16:
    case PJRT_Buffer_Type_F16:
    case PJRT_Buffer_Type_BF16: return 2;
    case PJRT_Buffer_Type_S32:
    case PJRT_Buffer_Type_U32:
    case PJRT_Buffer_Type_F32: return 4;
    case PJRT_Buffer_Type_S64:
    case PJRT_Buffer_Type_U64:
    case PJRT_Buffer_Type_F64:
    case PJRT_Buffer_Type_C64: return 8;
    case PJRT_Buffer_Type_C128: return 16;
    default: return 1;
  }
}

size_t fake_shape_bytes(const fake_shape *s)
{
  size_t bytes = fake_type_bytes(s->type);
  for (size_t i = 0; i < s->rank; i++) bytes *= (size_t)s->dims[i];
  return bytes;
}

bool fake_shape_equal(const fake_shape *a, const fake_shape *b)
{
  return a->type == b->type && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

// ---- lifetime ----

PJRT_Buffer *fake_buffer_new(PJRT_Device *device, const fake_shape *shape,
                             bool with_data)
{
  PJRT_Buffer *b = calloc(1, sizeof *b);
  if (b == NULL) abort();
  atomic_init(&b->refs, 1);
  b->device = device;
  b->shape = *shape;
  b->ready = fake_event_new();
  b->owned = with_data;
  if (with_data) {
    b->data = calloc(1, fake_shape_bytes(shape) + 1);
    if (b->data == NULL) abort();
  }
  atomic_fetch_add(&fake_live_objects, 1);
  return b;
}

PJRT_Buffer *fake_buffer_keep(PJRT_Buffer *b)
{
  atomic_fetch_add(&b->refs, 1);
  return b;
}

void fake_buffer_release(PJRT_Buffer *b)
{
  if (b == NULL || atomic_fetch_sub(&b->refs, 1) != 1) return;
  if (b->owned) free(b->data);
  if (b->host_done != NULL) {
    fake_event_set(b->host_done, 0, NULL);
    fake_event_release(b->host_done);
  }
  fake_event_release(b->ready);
  atomic_fetch_sub(&fake_live_objects, 1);
  free(b);
}

// ---- transfers ----

typedef struct transfer {
  PJRT_Buffer *buffer;
  void *dst;
  const void *src;
  size_t size;
  PJRT_Event *event;
} transfer;

static PJRT_Event *start(transfer t, void (*run)(void *user))
{
  transfer *kept = malloc(sizeof *kept);
  if (kept == NULL) abort();
  t.event = fake_event_new();
  *kept = t;
  fake_buffer_keep(t.buffer);
  fake_event_keep(t.event);
  fake_work(t.buffer->device->client, run, kept);
  if (fake_loses("event")) {
    fake_event_wait(t.event, NULL);
    fake_event_release(t.event);
    return NULL;
  }
  return t.event;
}

static void end(transfer *t, int code, const char *text)
{
  fake_event_set(t->event, code, text);
  fake_event_release(t->event);
  fake_buffer_release(t->buffer);
  free(t);
}

static void run_upload(void *user)
{
  transfer *t = user;
  memcpy(t->dst, t->src, t->size);
  fake_event_set(t->buffer->ready, 0, NULL);
  end(t, 0, NULL);
}

static void run_download(void *user)
{
  transfer *t = user;
  char text[128];
  int code = fake_event_wait(t->buffer->ready, text);
  if (code == 0) memcpy(t->dst, t->src, t->size);
  end(t, code, text);
}

static bool is_aligned(const void *p)
{
  return (uintptr_t)p % 64 == 0;
}

static PJRT_Error *from_host(PJRT_Client_BufferFromHostBuffer_Args *args)
{
  if (args->device == NULL || args->data == NULL ||
      args->num_dims > FAKE_RANK || args->byte_strides != NULL) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake: bad upload");
  }
  fake_shape shape = { .type = (int)args->type, .rank = args->num_dims };
  if (shape.rank > 0) {
    memcpy(shape.dims, args->dims, shape.rank * sizeof *args->dims);
  }
  bool alias = args->host_buffer_semantics ==
                   PJRT_HostBufferSemantics_kImmutableZeroCopy &&
               is_aligned(args->data);
  PJRT_Buffer *b = fake_buffer_new(args->device, &shape, !alias);
  args->buffer = fake_loses("output") ? NULL : b;
  if (alias) {
    b->data = (void *)(uintptr_t)args->data;  // only read
    b->host_done = fake_event_new();
    fake_event_set(b->ready, 0, NULL);
    args->done_with_host_buffer = fake_event_keep(b->host_done);
  } else {
    transfer t = { .buffer = b,
                   .dst = b->data,
                   .src = args->data,
                   .size = fake_shape_bytes(&shape) };
    PJRT_HostBufferSemantics now =
        PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args->done_with_host_buffer = start(t, run_upload);
    if (args->host_buffer_semantics == now) fake_event_wait(b->ready, NULL);
  }
  if (args->buffer == NULL) fake_buffer_release(b);
  return NULL;
}

static bool is_row_major(const PJRT_Buffer_MemoryLayout *layout, size_t rank)
{
  if (layout == NULL || layout->struct_size < 76 ||
      layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled ||
      layout->tiled.struct_size < 56 || layout->tiled.num_tiles != 0 ||
      layout->tiled.minor_to_major_size != rank) {
    return false;
  }
  for (size_t i = 0; i < rank; i++) {
    if (layout->tiled.minor_to_major[i] != (int64_t)(rank - 1 - i)) {
      return false;
    }
  }
  return true;
}

static PJRT_Error *to_host(PJRT_Buffer_ToHostBuffer_Args *args)
{
  PJRT_Buffer *b = args->src;
  size_t size = fake_shape_bytes(&b->shape);
  if (args->dst == NULL) {
    args->dst_size = size;
    args->event = NULL;
    return NULL;
  }
  if (atomic_load(&b->deleted)) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "Buffer has been deleted or donated.");
  }
  if (args->dst_size < size ||
      !is_row_major(args->host_layout, b->shape.rank)) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake: bad download");
  }
  transfer t = { .buffer = b, .dst = args->dst, .src = b->data, .size = size };
  args->event = start(t, run_download);
  return NULL;
}

static PJRT_Error *copy_to_device(PJRT_Buffer_CopyToDevice_Args *args)
{
  PJRT_Buffer *b = args->buffer;
  if (args->dst_device == b->device) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "fake: source and destination are the same device");
  }
  char text[128];
  int code = fake_event_wait(b->ready, text);
  PJRT_Buffer *copy = fake_buffer_new(args->dst_device, &b->shape, true);
  memcpy(copy->data, b->data, fake_shape_bytes(&b->shape));
  fake_event_set(copy->ready, code, text);
  args->dst_buffer = fake_loses("output") ? NULL : copy;
  if (args->dst_buffer == NULL) fake_buffer_release(copy);
  return NULL;
}

// ---- questions ----

static PJRT_Error *buffer_destroy(PJRT_Buffer_Destroy_Args *args)
{
  fake_buffer_release(args->buffer);
  return NULL;
}

static PJRT_Error *buffer_is_deleted(PJRT_Buffer_IsDeleted_Args *args)
{
  args->is_deleted = atomic_load(&args->buffer->deleted);
  return NULL;
}

static PJRT_Error *buffer_ready_event(PJRT_Buffer_ReadyEvent_Args *args)
{
  args->event = fake_event_keep(args->buffer->ready);
  return NULL;
}

static PJRT_Error *buffer_element_type(PJRT_Buffer_ElementType_Args *args)
{
  args->type = (PJRT_Buffer_Type)args->buffer->shape.type;
  return NULL;
}

static PJRT_Error *buffer_dimensions(PJRT_Buffer_Dimensions_Args *args)
{
  args->dims = args->buffer->shape.dims;
  args->num_dims = args->buffer->shape.rank;
  return NULL;
}

void fake_fill_buffers(PJRT_Api *api)
{
  api->PJRT_Client_BufferFromHostBuffer = from_host;
  api->PJRT_Buffer_ToHostBuffer = to_host;
  api->PJRT_Buffer_CopyToDevice = copy_to_device;
  api->PJRT_Buffer_Destroy = buffer_destroy;
  api->PJRT_Buffer_IsDeleted = buffer_is_deleted;
  api->PJRT_Buffer_ReadyEvent = buffer_ready_event;
  api->PJRT_Buffer_ElementType = buffer_element_type;
  api->PJRT_Buffer_Dimensions = buffer_dimensions;
}
