// ref/handler: the table of the registered functions, and the functions that
// they call.
#include "ref/handler.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "hlo/module.h"

// ---- the table ----

// Not of the counted allocations: it stays until the process ends.
typedef struct target target;
struct target {
  target *next;
  XLA_FFI_Handler *handler;
  size_t n;
  char name[];
};

static struct {
  cx_mutex lock;
  target *first;
} table = { .lock = CX_MUTEX_INIT };

static XLA_FFI_Handler *find(cx_hlo_str name)
{
  for (const target *t = table.first; t != NULL; t = t->next) {
    if (t->n == name.n && memcmp(t->name, name.s, name.n) == 0) {
      return t->handler;
    }
  }
  return NULL;
}

XLA_FFI_Handler *cpu_ref_handler_find(cx_hlo_str name)
{
  cx_lock(&table.lock);
  XLA_FFI_Handler *handler = find(name);
  cx_unlock(&table.lock);
  return handler;
}

static calx_status *add(cx_hlo_str name, XLA_FFI_Handler *handler)
{
  XLA_FFI_Handler *before = find(name);
  if (before == handler) return NULL;
  if (before != NULL) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "the custom call target '%.*s' is registered already, with "
                    "another function",
                    (int)name.n, name.s);
  }
  target *t = malloc(sizeof *t + name.n);
  if (t == NULL) return cx_out_of_memory();
  t->next = table.first;
  t->handler = handler;
  t->n = name.n;
  memcpy(t->name, name.s, name.n);
  table.first = t;
  return NULL;
}

// Asks a handler which version of the interface it was built for.
static calx_status *check_version(cx_hlo_str name, XLA_FFI_Handler *handler)
{
  XLA_FFI_Metadata answer = { CX_XLA_FFI_NEW(XLA_FFI_Metadata),
                              .api_version = {
                                  CX_XLA_FFI_NEW(XLA_FFI_Api_Version) } };
  XLA_FFI_Metadata_Extension question = {
    .extension_base = { CX_XLA_FFI_NEW(XLA_FFI_Metadata_Extension),
                        .type = XLA_FFI_Extension_Metadata },
    .metadata = &answer
  };
  XLA_FFI_CallFrame frame = { CX_XLA_FFI_NEW(XLA_FFI_CallFrame),
                              .extension_start = &question.extension_base,
                              .api = cpu_ref_handler_api(),
                              .stage = XLA_FFI_ExecutionStage_EXECUTE };
  calx_status *status = cpu_ref_handler_status(handler(&frame));
  if (status != NULL) {
    return cx_annotate(status, "asking '%.*s' for its version", (int)name.n,
                       name.s);
  }
  if (answer.api_version.major_version == XLA_FFI_API_MAJOR) return NULL;
  return cx_invalid(
      "the custom call target '%.*s' is of version %d of XLA's FFI, the engine "
      "has version %d",
      (int)name.n, name.s, answer.api_version.major_version, XLA_FFI_API_MAJOR);
}

calx_status *cpu_ref_handler_add(cx_hlo_str name, XLA_FFI_Handler *handler)
{
  if (name.n == 0 || handler == NULL) {
    return cx_invalid("a custom call target needs a name and a function");
  }
  CALX_TRY(check_version(name, handler));
  cx_lock(&table.lock);
  calx_status *status = add(name, handler);
  cx_unlock(&table.lock);
  return status;
}

// ---- errors ----

struct XLA_FFI_Error {
  int code;
  char *message;
};

static XLA_FFI_Error *error_create(XLA_FFI_Error_Create_Args *args)
{
  // Without memory the handler fails all the same.
  static XLA_FFI_Error none = { CALX_RESOURCE_EXHAUSTED, NULL };
  XLA_FFI_Error *e = cx_calloc(1, sizeof *e);
  if (e == NULL) return &none;
  e->code = args->errc;
  e->message = cx_strdup(args->message == NULL ? "" : args->message);
  if (e->message != NULL) return e;
  cx_free(e);
  return &none;
}

static void error_message(XLA_FFI_Error_GetMessage_Args *args)
{
  args->message = args->error->message == NULL ? "" : args->error->message;
}

static void error_destroy(XLA_FFI_Error_Destroy_Args *args)
{
  if (args->error == NULL || args->error->message == NULL) return;
  cx_free(args->error->message);
  cx_free(args->error);
}

calx_status *cpu_ref_handler_status(XLA_FFI_Error *error)
{
  if (error == NULL) return NULL;
  const int code =
      error->code >= CALX_CANCELLED && error->code <= CALX_UNAUTHENTICATED
          ? error->code
          : CALX_INTERNAL;
  calx_status *status = error->message == NULL
                            ? cx_out_of_memory()
                            : cx_error((calx_code)code, "%s", error->message);
  error_destroy(&(XLA_FFI_Error_Destroy_Args){ .error = error });
  return status;
}

static XLA_FFI_Error *refuse(const char *why)
{
  return error_create(&(XLA_FFI_Error_Create_Args){
      .message = why, .errc = CALX_UNIMPLEMENTED });
}

#define REFUSED(name, why)            \
  static XLA_FFI_Error *name(void *a) \
  {                                   \
    (void)a;                          \
    return refuse(why);               \
  }
REFUSED(no_register, "handlers are registered by PJRT's FFI extension")
REFUSED(no_stream, "a CPU device has no stream")
REFUSED(no_state, "the engine keeps no state of a handler")
REFUSED(no_future, "a handler returns when its results are complete")
REFUSED(no_number, "the engine does not tell handlers the launch or the device")

// ---- what handlers ask for ----

static XLA_FFI_Error *context_get(XLA_FFI_ExecutionContext_Get_Args *args)
{
  args->data = NULL;
  for (size_t i = 0; args->ctx != NULL && i < args->ctx->n; i++) {
    if (args->ctx->data[i].type_id != args->type_id->type_id) continue;
    args->data = args->ctx->data[i].data;
    return NULL;
  }
  return error_create(&(XLA_FFI_Error_Create_Args){
      .message = "the launch has no user data of this type",
      .errc = CALX_NOT_FOUND });
}

static XLA_FFI_Error *memory_allocate(XLA_FFI_DeviceMemory_Allocate_Args *args)
{
  const size_t least = sizeof(void *);
  const size_t alignment = args->alignment < least ? least : args->alignment;
  void *data = NULL;
  if (posix_memalign(&data, alignment, args->size == 0 ? 1 : args->size) != 0) {
    args->data = NULL;
    return error_create(&(XLA_FFI_Error_Create_Args){
        .message = "no memory for a handler's temporary",
        .errc = CALX_RESOURCE_EXHAUSTED });
  }
  args->data = data;
  return NULL;
}

static XLA_FFI_Error *memory_free(XLA_FFI_DeviceMemory_Free_Args *args)
{
  free(args->data);
  return NULL;
}

// A device's threads run loops, not tasks, so a task is run at once.
static XLA_FFI_Error *schedule(XLA_FFI_ThreadPool_Schedule_Args *args)
{
  args->task(args->data);
  return NULL;
}

static XLA_FFI_Error *num_threads(XLA_FFI_ThreadPool_NumThreads_Args *args)
{
  *args->num_threads = 1;
  return NULL;
}

const XLA_FFI_Api *cpu_ref_handler_api(void)
{
  static const XLA_FFI_Api api = {
    CX_XLA_FFI_NEW(XLA_FFI_Api),
    .api_version = { CX_XLA_FFI_NEW(XLA_FFI_Api_Version),
                     .major_version = XLA_FFI_API_MAJOR,
                     .minor_version = XLA_FFI_API_MINOR },
    .XLA_FFI_Error_Create = error_create,
    .XLA_FFI_Error_GetMessage = error_message,
    .XLA_FFI_Error_Destroy = error_destroy,
    .XLA_FFI_Handler_Register = no_register,
    .XLA_FFI_Stream_Get = no_stream,
    .XLA_FFI_Type_Register = no_register,
    .XLA_FFI_ExecutionContext_Get = context_get,
    .XLA_FFI_State_Set = no_state,
    .XLA_FFI_State_Get = no_state,
    .XLA_FFI_DeviceMemory_Allocate = memory_allocate,
    .XLA_FFI_DeviceMemory_Free = memory_free,
    .XLA_FFI_ThreadPool_Schedule = schedule,
    .XLA_FFI_ThreadPool_NumThreads = num_threads,
    .XLA_FFI_Future_Create = no_future,
    .XLA_FFI_Future_SetAvailable = no_future,
    .XLA_FFI_Future_SetError = no_future,
    .XLA_FFI_RunId_Get = no_number,
    .XLA_FFI_DeviceOrdinal_Get = no_number
  };
  return &api;
}
