// api/copy: copies tensors to the host and to other devices.
//
// If the source is ready, the caller copies at once. Otherwise the thread that
// completes the source copies, before the next launch of that device. Until
// then the copy holds the value, so the buffer may be deleted or donated.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

typedef struct copy {
  cpu_api_value *source;  // held
  cpu_api_value *target;  // held; NULL: to the host
  void *dst;
  bool raw;  // copies `bytes` at `offset`; else `move`
  size_t offset, bytes;
  cpu_api_move move;
  PJRT_Event *done;  // held, of a copy that waits
} copy;

static void move(const copy *c)
{
  const unsigned char *from = c->source->block.data;
  if (!c->raw) {
    cpu_api_move_run(&c->move, c->dst, from);
  } else if (c->bytes > 0) {
    memcpy(c->dst, from + c->offset, c->bytes);
  }
}

static void release(const copy *c)
{
  cpu_api_value_release(c->source);
  cpu_api_value_release(c->target);
}

static void finish(void *user, const calx_status *error)
{
  copy *c = user;
  calx_status *status = cx_status_copy(error);
  if (status == NULL) move(c);
  cpu_api_event_set(c->done, status);
  cpu_api_event_release(c->done);
  release(c);
  cx_free(c);
}

// The event of a copy of this value: the static one if the copy can be made
// now.
static calx_status *promise(const cpu_api_value *source, PJRT_Event **out)
{
  bool there = cpu_api_event_is_ready(source->ready) &&
               cpu_api_event_error(source->ready) == NULL;
  *out = there ? cpu_api_event_ready() : cpu_api_event_after(source->ready);
  return *out != NULL ? NULL : cx_out_of_memory();
}

// Copies now, or when the source is ready. Takes what *c holds, but not `done`.
static calx_status *start(const copy *c, PJRT_Event *done)
{
  if (done == cpu_api_event_ready()) {
    move(c);
    release(c);
    return NULL;
  }
  copy *kept = cx_alloc(sizeof *kept);
  calx_status *status = cx_out_of_memory();
  if (kept != NULL) {
    *kept = *c;
    kept->move.shape.dims = kept->move.dims;
    kept->done = cpu_api_event_retain(done);
    status = cpu_api_event_then(c->source->ready, finish, kept);
    if (status == NULL) return NULL;
    cpu_api_event_release(done);
  }
  cx_free(kept);
  release(c);
  return status;
}

// ---- to the host ----

// Copies the buffer's value; the source of *c is not set yet.
static calx_status *start_to_host(PJRT_Buffer *b, copy *c, PJRT_Event **out)
{
  CALX_TRY(cpu_api_buffer_value(b, &c->source));
  PJRT_Event *done = NULL;
  calx_status *status = promise(c->source, &done);
  if (status != NULL) {
    release(c);
    return status;
  }
  status = start(c, done);
  if (status == NULL) {
    *out = done;
  } else {
    cpu_api_event_release(done);
  }
  return status;
}

// Checks that the caller's strides stay within the caller's memory.
static calx_status *check_strides(const cpu_api_move *m, size_t size)
{
  int64_t low = 0;
  int64_t high = (int64_t)cpu_api_type_bytes(m->shape.type);
  bool ok = true;
  for (size_t i = 0; i < m->shape.rank; i++) {
    if (m->dims[i] == 0) return NULL;
    int64_t reach = 0;
    ok = ok &&
         !__builtin_mul_overflow(m->dims[i] - 1, m->dst_strides[i], &reach);
    int64_t *end = reach < 0 ? &low : &high;
    ok = ok && !__builtin_add_overflow(*end, reach, end);
  }
  if (ok && low == 0 && (uint64_t)high <= size) return NULL;
  return cx_invalid("%s does not fit the %zu bytes given for it",
                    cpu_api_shape_str(&m->shape).s, size);
}

static calx_status *to_host(PJRT_Buffer_ToHostBuffer_Args *args)
{
  PJRT_Buffer *b = args->src;
  copy c = { .dst = args->dst };
  args->event = NULL;
  cpu_api_move_init(&c.move, &b->shape, CPU_API_MOVE_OUT);
  CALX_TRY(
      cpu_api_layout_strides(args->host_layout, &b->shape, c.move.dst_strides));
  if (args->dst == NULL) {
    args->dst_size = b->bytes;
    return NULL;
  }
  CALX_TRY(check_strides(&c.move, args->dst_size));
  return start_to_host(b, &c, &args->event);
}

CPU_API_CALL(PJRT_Buffer_ToHostBuffer, src, to_host(args))

static calx_status *read_range(const PJRT_Buffer *b, int64_t offset,
                               int64_t size, copy *out)
{
  if (!cpu_api_is_range(offset, size, b->bytes)) {
    return cx_invalid("%" PRId64 " bytes at %" PRId64 " of a buffer of %zu",
                      size, offset, b->bytes);
  }
  *out = (copy){ .raw = true, .offset = (size_t)offset, .bytes = (size_t)size };
  return NULL;
}

static calx_status *set_address(copy *c, void *dst)
{
  c->dst = dst;
  if (dst != NULL || c->bytes == 0) return NULL;
  return cx_invalid("%zu bytes are copied to NULL", c->bytes);
}

static calx_status *raw_to_host(PJRT_Buffer_CopyRawToHost_Args *args)
{
  copy c;
  args->event = NULL;
  CALX_TRY(read_range(args->buffer, args->offset, args->transfer_size, &c));
  CALX_TRY(set_address(&c, args->dst));
  return start_to_host(args->buffer, &c, &args->event);
}

CPU_API_CALL(PJRT_Buffer_CopyRawToHost, buffer, raw_to_host(args))

// ---- to an address that the caller gives later ----

static void on_address(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args)
{
  copy *c = args->callback_data;
  PJRT_Event *done = c->done;
  calx_status *status = cpu_api_callers_error(
      args->error_code, args->error_message, args->error_message_size);
  if (status == NULL) status = set_address(c, args->dst);
  if (status != NULL) {
    release(c);
  } else {
    status = start(c, done);
  }
  if (status != NULL) cpu_api_event_set(done, status);
  cpu_api_event_release(done);
  cx_free(c);
}

static calx_status *raw_to_host_later(
    PJRT_Buffer_CopyRawToHostFuture_Args *args)
{
  copy c;
  args->event = NULL;
  args->callback_data = NULL;
  args->future_ready_callback = on_address;
  CALX_TRY(read_range(args->buffer, args->offset, args->transfer_size, &c));
  CALX_TRY(cpu_api_buffer_value(args->buffer, &c.source));
  copy *kept = cx_alloc(sizeof *kept);
  c.done = cpu_api_event_new();
  if (kept == NULL || c.done == NULL) {
    cpu_api_event_release(c.done);
    cx_free(kept);
    release(&c);
    return cx_out_of_memory();
  }
  *kept = c;
  args->callback_data = kept;
  args->event = cpu_api_event_retain(c.done);
  return NULL;
}

CPU_API_CALL(PJRT_Buffer_CopyRawToHostFuture, buffer, raw_to_host_later(args))

// ---- to a device ----

// To the memory, or to the default one of the device.
static calx_status *to_space(PJRT_Buffer *b, PJRT_Device *device,
                             PJRT_Memory *memory, PJRT_Buffer **out)
{
  cpu_api_space *space = NULL;
  copy c = { .raw = true, .bytes = b->bytes };
  PJRT_Event *done = NULL;
  *out = NULL;
  CALX_TRY(cpu_api_choose(b->device->client, device, memory, &space));
  CALX_TRY(cpu_api_buffer_value(b, &c.source));
  calx_status *status = promise(c.source, &done);
  if (status == NULL) {
    status = cpu_api_buffer_make(space, &b->shape, b->bytes,
                                 cpu_api_event_retain(done), out);
  }
  if (status != NULL) {
    cpu_api_event_release(done);
    release(&c);
    return status;
  }
  c.target = (*out)->value;
  c.dst = c.target->block.data;
  cpu_api_value_retain(c.target);
  status = start(&c, done);
  cpu_api_event_release(done);
  if (status != NULL) {
    cpu_api_buffer_free(*out);
    *out = NULL;
  }
  return status;
}

CPU_API_CALL2(PJRT_Buffer_CopyToDevice, buffer, dst_device,
              to_space(args->buffer, args->dst_device, NULL, &args->dst_buffer))

CPU_API_CALL2(PJRT_Buffer_CopyToMemory, buffer, dst_memory,
              to_space(args->buffer, NULL, args->dst_memory, &args->dst_buffer))
