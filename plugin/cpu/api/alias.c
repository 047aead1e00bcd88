// api/alias: buffers whose memory another buffer provides later.
//
// An alias is a pending buffer. When it is fulfilled with a buffer, its value
// waits for that buffer's value, and then is a view of the same memory, which
// it holds. An alias that is never fulfilled stays pending, and so does a
// launch that has it as an argument: the caller must fulfil it, with a buffer
// or an error, before it destroys the client.
#include "api/api.h"
#include "base/alloc.h"

// What PJRT calls a PJRT_FulfillAliasBufferCallback. It is used once.
typedef struct promise {
  cpu_api_value *alias;   // held
  cpu_api_value *source;  // held; NULL: not known yet
  cpu_api_shape shape;    // dims: `dims`
  int64_t dims[CPU_API_MAX_RANK];
} promise;

static calx_status *promise_new(cpu_api_space *space,
                                const cpu_api_shape *shape, size_t bytes,
                                promise **out, PJRT_Buffer **buffer)
{
  PJRT_Event *ready = cpu_api_event_new();
  if (ready == NULL) return cx_out_of_memory();
  cpu_api_value *value = cpu_api_value_new(space->device, ready);
  if (value == NULL) return cx_out_of_memory();
  promise *p = cx_calloc(1, sizeof *p);
  if (p == NULL) {
    cpu_api_value_release(value);
    return cx_out_of_memory();
  }
  cpu_api_value_retain(value);
  p->alias = value;
  p->shape = *shape;
  p->shape.dims = p->dims;
  for (size_t i = 0; i < shape->rank; i++) p->dims[i] = shape->dims[i];
  calx_status *status = cpu_api_buffer_new(value, space, shape, bytes, buffer);
  if (status == NULL) {
    *out = p;
  } else {
    cpu_api_value_release(p->alias);
    cx_free(p);
  }
  return status;
}

static void release_source(void *data, void *user)
{
  (void)data;
  cpu_api_value_release(user);
}

// Called when the source is ready, or with an error.
static void finish(void *user, const calx_status *error)
{
  promise *p = user;
  if (error == NULL) {
    p->alias->block = (cpu_api_block){ .data = p->source->block.data,
                                       .capacity = p->source->block.capacity,
                                       .kind = CPU_API_BLOCK_VIEW,
                                       .on_delete = release_source,
                                       .on_delete_user = p->source };
  } else {
    cpu_api_value_release(p->source);
  }
  cpu_api_event_set(p->alias->ready, cx_status_copy(error));
  cpu_api_value_release(p->alias);
  cx_free(p);
}

// Takes the promise and the error. Without an error, the source is set.
static void fulfil(promise *p, calx_status *error)
{
  if (error == NULL) error = cpu_api_event_then(p->source->ready, finish, p);
  if (error == NULL) return;
  finish(p, error);
  calx_status_free(error);
}

// ---- aliases ----

static calx_status *create(PJRT_Client_CreateAliasBuffer_Args *args)
{
  cpu_api_space *space = NULL;
  cpu_api_shape shape;
  size_t bytes = 0;
  promise *p = NULL;
  args->alias_buffer = NULL;
  args->fulfill_alias_buffer_cb = NULL;
  CALX_TRY(cpu_api_choose(args->client, NULL, args->memory, &space));
  CALX_TRY(cpu_api_shape_read((int)args->shape_element_type, args->shape_dims,
                              args->shape_num_dims, args->shape_layout, &shape,
                              &bytes));
  CALX_TRY(promise_new(space, &shape, bytes, &p, &args->alias_buffer));
  args->fulfill_alias_buffer_cb = (PJRT_FulfillAliasBufferCallback *)p;
  return NULL;
}

CPU_API_CALL(PJRT_Client_CreateAliasBuffer, client, create(args))

// After a refusal the promise can be used again.
static calx_status *fulfil_alias(
    const PJRT_Client_FulfillAliasBuffer_Args *args)
{
  promise *p = (promise *)args->fulfill_alias_buffer_cb;
  PJRT_Buffer *b = args->buffer;
  if (args->status_code == PJRT_Error_Code_OK) {
    if (b == NULL || b->device != p->alias->device ||
        !cpu_api_shape_equal(&b->shape, &p->shape)) {
      return cx_error(
          CALX_INVALID_ARGUMENT, "an alias of %s is fulfilled with %s",
          cpu_api_shape_str(&p->shape).s,
          b == NULL                       ? "no buffer"
          : b->device != p->alias->device ? "a buffer of another device"
                                          : cpu_api_shape_str(&b->shape).s);
    }
    CALX_TRY(cpu_api_buffer_value(b, &p->source));
    if (p->source == p->alias) {
      cpu_api_value_release(p->source);
      p->source = NULL;
      return cx_invalid("an alias is fulfilled with itself");
    }
  }
  fulfil(p, cpu_api_callers_error(args->status_code, args->error_message,
                                  args->error_message_size));
  return NULL;
}

CPU_API_CALL2(PJRT_Client_FulfillAliasBuffer, client, fulfill_alias_buffer_cb,
              fulfil_alias(args))

// ---- donation that waits ----

static void on_dependency(
    PJRT_Buffer_DonateWithControlDependency_Callback_Args *args)
{
  fulfil(args->callback_data,
         cpu_api_callers_error(args->error_code, args->error_message,
                               args->error_message_size));
}

// The donated buffer loses its value to a new buffer, which is ready after the
// caller's dependency.
static calx_status *donate(PJRT_Buffer_DonateWithControlDependency_Args *args)
{
  PJRT_Buffer *b = args->buffer;
  promise *p = NULL;
  args->out_buffer = NULL;
  args->callback_data = NULL;
  args->dependency_ready_callback = on_dependency;
  CALX_TRY(promise_new(b->space, &b->shape, b->bytes, &p, &args->out_buffer));
  cx_lock(&b->lock);
  const bool referenced = b->external > 0;
  if (!referenced) {
    p->source = b->value;
    b->value = NULL;
  }
  cx_unlock(&b->lock);
  args->callback_data = p;
  if (p->source != NULL) return NULL;
  calx_status *status =
      referenced ? cx_error(CALX_FAILED_PRECONDITION,
                            "a buffer with external references is donated")
                 : cpu_api_buffer_deleted(b);
  fulfil(p, cx_status_copy(status));
  cpu_api_buffer_free(args->out_buffer);
  args->out_buffer = NULL;
  args->callback_data = NULL;
  return status;
}

CPU_API_CALL(PJRT_Buffer_DonateWithControlDependency, buffer, donate(args))
