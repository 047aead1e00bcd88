// api/copy: tensors to the host and to other devices.
//
// A copy whose source is there is done at once, by the caller. Else it is done
// by whoever completes the source, before the next launch of that device; until
// then it holds the value, so deleting or giving away the buffer does not
// matter.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

typedef struct copy {
  cpu_api_value *source;  // held
  cpu_api_value *target;  // held; NULL: to the host
  void *dst;
  bool raw;  // so many bytes at that offset; else `move`
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

static void let_go(const copy *c)
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
  let_go(c);
  cx_free(c);
}

// The event of a copy of this value: the one that is always ready when the copy
// can be done now.
static calx_status *promise(const cpu_api_value *source, PJRT_Event **out)
{
  bool there = cpu_api_event_is_ready(source->ready) &&
               cpu_api_event_error(source->ready) == NULL;
  *out = there ? cpu_api_event_ready() : cpu_api_event_new();
  return *out != NULL ? NULL : cx_out_of_memory();
}

// Does the copy, or sees to it. Lets go of what *c holds, but not of `done`.
static calx_status *start(const copy *c, PJRT_Event *done)
{
  if (done == cpu_api_event_ready()) {
    move(c);
    let_go(c);
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
  let_go(c);
  return status;
}

// ---- to the host ----

// Strides of the caller's must stay within his memory.
static calx_status *check_room(const cpu_api_move *m, size_t size)
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
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%s does not fit the %zu bytes given for it",
                  cpu_api_shape_str(&m->shape).s, size);
}

static calx_status *to_host(PJRT_Buffer_ToHostBuffer_Args *args)
{
  PJRT_Buffer *b = args->src;
  copy c = { .dst = args->dst };
  c.move.shape = b->shape;
  c.move.narrow = CPU_API_MOVE_OUT;
  for (size_t i = 0; i < b->shape.rank; i++) {
    c.move.dims[i] = b->shape.dims[i];
  }
  cpu_api_dense_strides(&b->shape, c.move.src_strides);
  CALX_TRY(
      cpu_api_layout_strides(args->host_layout, &b->shape, c.move.dst_strides));
  if (args->dst == NULL) {
    args->dst_size = b->bytes;
    return NULL;
  }
  CALX_TRY(check_room(&c.move, args->dst_size));
  CALX_TRY(cpu_api_buffer_value(b, &c.source));
  PJRT_Event *done = NULL;
  calx_status *status = promise(c.source, &done);
  if (status != NULL) {
    cpu_api_value_release(c.source);
    return status;
  }
  status = start(&c, done);
  if (status == NULL) {
    args->event = done;
  } else {
    cpu_api_event_release(done);
  }
  return status;
}

PJRT_Error *cpu_api_PJRT_Buffer_ToHostBuffer(
    PJRT_Buffer_ToHostBuffer_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_ToHostBuffer, src);
  args->event = NULL;
  return cpu_api_error(to_host(args));
}

static calx_status *raw_to_host(PJRT_Buffer_CopyRawToHost_Args *args)
{
  PJRT_Buffer *b = args->buffer;
  int64_t end = 0;
  if (args->offset < 0 || args->transfer_size < 0 ||
      __builtin_add_overflow(args->offset, args->transfer_size, &end) ||
      (uint64_t)end > b->bytes ||
      (args->dst == NULL && args->transfer_size > 0)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%" PRId64 " bytes at %" PRId64 " of a buffer of %zu",
                    args->transfer_size, args->offset, b->bytes);
  }
  copy c = { .dst = args->dst,
             .raw = true,
             .offset = (size_t)args->offset,
             .bytes = (size_t)args->transfer_size };
  CALX_TRY(cpu_api_buffer_value(b, &c.source));
  PJRT_Event *done = NULL;
  calx_status *status = promise(c.source, &done);
  if (status != NULL) {
    cpu_api_value_release(c.source);
    return status;
  }
  status = start(&c, done);
  if (status == NULL) {
    args->event = done;
  } else {
    cpu_api_event_release(done);
  }
  return status;
}

PJRT_Error *cpu_api_PJRT_Buffer_CopyRawToHost(
    PJRT_Buffer_CopyRawToHost_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_CopyRawToHost, buffer);
  args->event = NULL;
  return cpu_api_error(raw_to_host(args));
}

// ---- to a device ----

static calx_status *to_device(PJRT_Buffer *b, PJRT_Device *device,
                              PJRT_Buffer **out)
{
  CALX_TRY(cpu_api_choose(b->device->client, device, NULL, &device));
  copy c = { .raw = true, .bytes = b->bytes };
  PJRT_Event *done = NULL;
  CALX_TRY(cpu_api_buffer_value(b, &c.source));
  calx_status *status = promise(c.source, &done);
  if (status == NULL) {
    status =
        cpu_api_buffer_make(device, &b->shape, cpu_api_event_retain(done), out);
  }
  if (status != NULL) {
    cpu_api_event_release(done);
    cpu_api_value_release(c.source);
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

PJRT_Error *cpu_api_PJRT_Buffer_CopyToDevice(
    PJRT_Buffer_CopyToDevice_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_CopyToDevice, buffer);
  CPU_API_ENTER(PJRT_Buffer_CopyToDevice, dst_device);
  args->dst_buffer = NULL;
  return cpu_api_error(
      to_device(args->buffer, args->dst_device, &args->dst_buffer));
}

PJRT_Error *cpu_api_PJRT_Buffer_CopyToMemory(
    PJRT_Buffer_CopyToMemory_Args *args)
{
  CPU_API_ENTER(PJRT_Buffer_CopyToMemory, buffer);
  CPU_API_ENTER(PJRT_Buffer_CopyToMemory, dst_memory);
  args->dst_buffer = NULL;
  return cpu_api_error(to_device(args->buffer,
                                 cpu_api_memory_device(args->dst_memory),
                                 &args->dst_buffer));
}
