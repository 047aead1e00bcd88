// pjrt/buffer: tensors on a device, and their transfers from and to the host.
//
// A buffer has an atomic reference count. The last release destroys the
// plugin's object; the plugin keeps the memory while an execution reads it.
// Host data is dense and row-major. A device may use another layout, so each
// download names the layout that it wants.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "pjrt/internal.h"

CX_COUNTER(created, "CreateDataHandles");
CX_COUNTER(destroyed, "DestroyDataHandles");

// ---- lifetime ----

cx_pjrt_buffer *cx_pjrt_buffer_new(cx_pjrt_client *c, size_t device,
                                   const cx_pjrt_shape *shape)
{
  cx_pjrt_buffer *b = cx_calloc(1, sizeof *b);
  if (b == NULL) return NULL;
  atomic_init(&b->refs, 1);
  atomic_init(&b->state, CX_PJRT_LIVE);
  cx_pjrt_client_retain(c);
  b->client = c;
  b->device = device;
  b->shape = *shape;
  cx_pjrt_count(1);
  cx_counter_add(&created, 1);
  return b;
}

void cx_pjrt_buffer_retain(cx_pjrt_buffer *b)
{
  atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void cx_pjrt_buffer_release(cx_pjrt_buffer *b)
{
  if (b == NULL) return;
  if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) {
    return;
  }
  if (b->raw != NULL) {
    CX_PJRT_DESTROY(b->client->plugin, PJRT_Buffer, .buffer = b->raw);
  }
  for (size_t d = 0; b->shards != NULL && d < b->client->n_devices; d++) {
    cx_pjrt_buffer_release(b->shards[d]);
  }
  cx_free(b->shards);
  cx_pjrt_client_release(b->client);
  cx_pjrt_count(-1);
  cx_counter_add(&destroyed, 1);
  cx_free(b);
}

// ---- questions ----

const cx_pjrt_shape *cx_pjrt_buffer_shape(const cx_pjrt_buffer *b)
{
  return &b->shape;
}

size_t cx_pjrt_buffer_device(const cx_pjrt_buffer *b)
{
  return b->device;
}

bool cx_pjrt_buffer_is_deleted(cx_pjrt_buffer *b)
{
  if (atomic_load(&b->state) == CX_PJRT_DELETED) return true;
  if (b->shards != NULL) return cx_pjrt_buffer_is_deleted(b->shards[0]);
  CX_PJRT_DECLARE(args, PJRT_Buffer_IsDeleted, .buffer = b->raw);
  calx_status *status =
      CX_PJRT_CALL(b->client->plugin, PJRT_Buffer_IsDeleted, &args);
  bool deleted = status == NULL && args.is_deleted;
  cx_pjrt_ignore(status);
  return deleted;
}

static calx_status *check_live(const cx_pjrt_buffer *b)
{
  if (atomic_load(&b->state) != CX_PJRT_DELETED) return NULL;
  cx_pjrt_shape_text text;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "the buffer %s was donated to an execution and is deleted",
                  cx_pjrt_shape_str(&b->shape, &text));
}

static calx_status *ready_event(cx_pjrt_buffer *b, PJRT_Event **out)
{
  *out = NULL;
  CALX_TRY(check_live(b));
  CX_PJRT_DECLARE(args, PJRT_Buffer_ReadyEvent, .buffer = b->raw);
  CALX_TRY(CX_PJRT_CALL(b->client->plugin, PJRT_Buffer_ReadyEvent, &args));
  *out = args.event;
  return NULL;
}

// A buffer whose event cannot be read counts as ready: a wait for it returns
// the error.
bool cx_pjrt_buffer_is_ready(cx_pjrt_buffer *b)
{
  if (b->shards != NULL) return cx_pjrt_sharded_is_ready(b);
  PJRT_Event *raw = NULL;
  calx_status *status = ready_event(b, &raw);
  bool ready = true;
  if (raw != NULL) {
    cx_pjrt_event e = { .plugin = b->client->plugin, .raw = raw };
    ready = cx_pjrt_event_is_ready(&e);
    cx_pjrt_event_destroy(e.plugin, raw);
  }
  cx_pjrt_ignore(status);
  return ready;
}

calx_status *cx_pjrt_buffer_await(cx_pjrt_buffer *b)
{
  if (b->shards != NULL) return cx_pjrt_sharded_await(b);
  PJRT_Event *raw = NULL;
  CALX_TRY(ready_event(b, &raw));
  return cx_pjrt_event_finish(b->client->plugin, raw);
}

// ---- from the host ----

typedef struct host_upload {
  const void *data;
  cx_pjrt_upload mode;
  void (*done)(void *user);
  void *user;
} host_upload;

// The transfer has ended, with or without an error, and no longer reads the
// data.
static void upload_done(void *user, calx_status *status)
{
  host_upload u = *(host_upload *)user;
  cx_free(user);
  calx_status_free(status);
  u.done(u.user);
}

static PJRT_HostBufferSemantics semantics_of(cx_pjrt_upload mode)
{
  switch (mode) {
    case CX_PJRT_BORROW:
      return PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    case CX_PJRT_ZERO_COPY: return PJRT_HostBufferSemantics_kImmutableZeroCopy;
    case CX_PJRT_COPY: break;
  }
  return PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
}

// The caller destroys *out_event.
static calx_status *send(cx_pjrt_buffer *b, const host_upload *u,
                         PJRT_Event **out_event)
{
  cx_pjrt_client *c = b->client;
  PJRT_Client_BufferFromHostBuffer_Args args = {
    CX_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args),
    .client = c->raw,
    .data = u->data,
    .type = (PJRT_Buffer_Type)b->shape.type,
    .dims = b->shape.dims,
    .num_dims = b->shape.rank,
    .host_buffer_semantics = semantics_of(u->mode),
    .device = c->devices[b->device].raw,
  };
  CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_Client_BufferFromHostBuffer, &args));
  b->raw = args.buffer;
  *out_event = args.done_with_host_buffer;
  if (b->raw != NULL) return NULL;
  // The plugin may still read the data, so the event is awaited; not that of
  // zero copy, which fires when the missing buffer is destroyed.
  if (u->mode == CX_PJRT_ZERO_COPY) {
    cx_pjrt_event_destroy(c->plugin, *out_event);
  } else {
    cx_pjrt_ignore(cx_pjrt_event_finish(c->plugin, *out_event));
  }
  *out_event = NULL;
  return cx_pjrt_check_object(c->plugin, b->raw, "buffer");
}

// Registers u.done with the event. If that fails, the buffer is destroyed (an
// event of zero copy fires only then) and the event awaited, since nothing may
// read the data once this returns an error.
static calx_status *call_when_done(cx_pjrt_buffer *b, PJRT_Event *raw,
                                   host_upload *u)
{
  cx_pjrt_plugin *p = b->client->plugin;
  cx_pjrt_event e = { .plugin = p, .raw = raw };
  calx_status *status = cx_pjrt_event_on_ready(&e, upload_done, u);
  if (status == NULL) {
    cx_pjrt_event_destroy(p, raw);
    return NULL;
  }
  CX_PJRT_DESTROY(p, PJRT_Buffer, .buffer = b->raw);
  b->raw = NULL;
  cx_pjrt_ignore(cx_pjrt_event_finish(p, raw));
  upload_done(u, NULL);
  return status;
}

// `done` has been called on return, or will be. A plugin that cannot keep the
// data copies it.
static calx_status *transfer(cx_pjrt_buffer *b, const host_upload *asked)
{
  cx_pjrt_plugin *p = b->client->plugin;
  host_upload now = *asked;
  if (!CX_PJRT_HAS(p, PJRT_Event_OnReady)) now.mode = CX_PJRT_COPY;
  host_upload *later = NULL;
  PJRT_Event *raw = NULL;
  if (now.mode != CX_PJRT_COPY) {
    later = cx_alloc(sizeof *later);
    if (later == NULL) {
      now.done(now.user);
      return cx_out_of_memory();
    }
    *later = now;
  }
  calx_status *status = send(b, &now, &raw);
  if (status != NULL && now.mode == CX_PJRT_ZERO_COPY) {
    calx_status_free(status);
    now.mode = CX_PJRT_COPY;
    status = send(b, &now, &raw);
  }
  if (status == NULL && now.mode != CX_PJRT_COPY && raw != NULL) {
    return call_when_done(b, raw, later);
  }
  cx_pjrt_event_destroy(p, raw);
  cx_free(later);
  if (now.done != NULL) now.done(now.user);
  return status;
}

static calx_status *check_upload(cx_pjrt_client *c, size_t device,
                                 const cx_pjrt_shape *shape,
                                 const host_upload *asked)
{
  size_t bytes = 0;
  CALX_TRY(cx_pjrt_check_device(c, device));
  CALX_TRY(cx_pjrt_check_type(c->plugin, shape->type));
  CALX_TRY(cx_pjrt_shape_bytes(shape, &bytes));
  if (asked->data == NULL && bytes > 0) {
    return cx_invalid("%zu bytes were to be uploaded, but no data was given",
                      bytes);
  }
  if (asked->done == NULL && asked->mode != CX_PJRT_COPY) {
    return cx_invalid(
        "an upload that keeps the data needs to tell when it is done with it");
  }
  return NULL;
}

calx_status *cx_pjrt_buffer_from_host(cx_pjrt_client *c, size_t device,
                                      const cx_pjrt_shape *shape,
                                      const void *data, cx_pjrt_upload mode,
                                      void (*done)(void *user), void *user,
                                      cx_pjrt_buffer **out_buffer)
{
  *out_buffer = NULL;
  host_upload asked = {
    .data = data, .mode = mode, .done = done, .user = user
  };
  calx_status *status = check_upload(c, device, shape, &asked);
  cx_pjrt_buffer *b = NULL;
  if (status == NULL) {
    b = cx_pjrt_buffer_new(c, device, shape);
    if (b == NULL) status = cx_out_of_memory();
  }
  if (status != NULL) {
    if (done != NULL) done(user);
    return status;
  }
  // An empty tensor has no data, but plugins refuse a NULL address.
  static const char nothing[1];
  if (data == NULL) asked.data = nothing;
  status = transfer(b, &asked);
  if (status != NULL) {
    cx_pjrt_buffer_release(b);
    return status;
  }
  *out_buffer = b;
  return NULL;
}

// ---- to the host ----

calx_status *cx_pjrt_buffer_host_size(cx_pjrt_buffer *b, size_t *out_size)
{
  return cx_pjrt_shape_bytes(&b->shape, out_size);
}

static calx_status *check_download(cx_pjrt_buffer *b, const void *dst,
                                   size_t size)
{
  size_t bytes = 0;
  CALX_TRY(cx_pjrt_shape_bytes(&b->shape, &bytes));
  cx_pjrt_shape_text text;
  if (size != bytes || (dst == NULL && bytes > 0)) {
    return cx_error(
        CALX_INVALID_ARGUMENT, "reading %s wants %zu bytes, got room for %zu",
        cx_pjrt_shape_str(&b->shape, &text), bytes, dst == NULL ? 0 : size);
  }
  return check_live(b);
}

static calx_status *one_device_only(const cx_pjrt_buffer *b)
{
  cx_pjrt_shape_text text;
  return cx_error(CALX_UNIMPLEMENTED,
                  "%s is on all devices of a mesh; one of a single device is "
                  "wanted here",
                  cx_pjrt_shape_str(&b->shape, &text));
}

// The caller destroys *out_event.
static calx_status *receive(cx_pjrt_buffer *b, void *dst, size_t size,
                            PJRT_Event **out_event)
{
  *out_event = NULL;
  CALX_TRY(check_download(b, dst, size));
  if (b->shards != NULL) return one_device_only(b);
  // A NULL address would ask for the size.
  if (size == 0) return ready_event(b, out_event);
  int64_t minor_to_major[CALX_MAX_RANK] = { 0 };
  for (size_t i = 0; i < b->shape.rank; i++) {
    minor_to_major[i] = (int64_t)(b->shape.rank - 1 - i);
  }
  PJRT_Buffer_MemoryLayout layout = {
    CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout),
    .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
    .tiled = { CX_PJRT_ARGS(PJRT_Buffer_MemoryLayout_Tiled),
               .minor_to_major = minor_to_major,
               .minor_to_major_size = b->shape.rank },
  };
  PJRT_Buffer_ToHostBuffer_Args args = {
    CX_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args),
    .src = b->raw,
    .host_layout = &layout,
    .dst = dst,
    .dst_size = size,
  };
  CALX_TRY(CX_PJRT_CALL(b->client->plugin, PJRT_Buffer_ToHostBuffer, &args));
  *out_event = args.event;
  return NULL;
}

calx_status *cx_pjrt_buffer_to_host(cx_pjrt_buffer *b, void *dst, size_t size)
{
  PJRT_Event *raw = NULL;
  if (b->shards != NULL) {
    CALX_TRY(check_download(b, dst, size));
    return cx_pjrt_sharded_to_host(b, dst);
  }
  CALX_TRY(receive(b, dst, size, &raw));
  return cx_pjrt_event_finish(b->client->plugin, raw);
}

calx_status *cx_pjrt_buffer_to_host_async(cx_pjrt_buffer *b, void *dst,
                                          size_t size,
                                          cx_pjrt_event **out_event)
{
  *out_event = NULL;
  cx_pjrt_event *e = cx_pjrt_event_new(b->client->plugin);
  if (e == NULL) return cx_out_of_memory();
  calx_status *status = receive(b, dst, size, &e->raw);
  if (status == NULL) status = cx_pjrt_check_object(e->plugin, e->raw, "event");
  if (status != NULL) {
    cx_pjrt_event_free(e);
    return status;
  }
  *out_event = e;
  return NULL;
}

// ---- between devices ----

calx_status *cx_pjrt_buffer_copy_to_device(cx_pjrt_buffer *b, size_t device,
                                           cx_pjrt_buffer **out)
{
  *out = NULL;
  cx_pjrt_client *c = b->client;
  CALX_TRY(cx_pjrt_check_device(c, device));
  CALX_TRY(check_live(b));
  if (b->shards != NULL) return one_device_only(b);
  cx_pjrt_buffer *copy = cx_pjrt_buffer_new(c, device, &b->shape);
  if (copy == NULL) return cx_out_of_memory();
  CX_PJRT_DECLARE(args, PJRT_Buffer_CopyToDevice, .buffer = b->raw,
                  .dst_device = c->devices[device].raw);
  calx_status *status =
      CX_PJRT_CALL(c->plugin, PJRT_Buffer_CopyToDevice, &args);
  if (status == NULL) {
    copy->raw = args.dst_buffer;
    status = cx_pjrt_check_object(c->plugin, copy->raw, "buffer");
  }
  if (status != NULL) {
    cx_pjrt_buffer_release(copy);
    return status;
  }
  *out = copy;
  return NULL;
}
