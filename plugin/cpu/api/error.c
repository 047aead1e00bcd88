// api/error: errors as PJRT has them, and the errors of unfit arguments.
//
// An error is a status. A static object stands for "out of memory", so that
// this error needs no memory itself.
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

#define MESSAGE_LIMIT 65536

typedef struct error {
  PJRT_Error base;  // its field stays NULL: errors are opaque before 0.107
  calx_status *status;
} error;

static error no_memory;

PJRT_Error *cpu_api_error(calx_status *status)
{
  if (status == NULL) return NULL;
  error *e = cx_calloc(1, sizeof *e);
  if (e == NULL) {
    calx_status_free(status);
    return &no_memory.base;
  }
  e->status = status;
  return &e->base;
}

calx_status *cpu_api_callers_error(PJRT_Error_Code code, const char *message,
                                   size_t size)
{
  if (code == PJRT_Error_Code_OK) return NULL;
  bool known =
      code > PJRT_Error_Code_OK && code <= PJRT_Error_Code_UNAUTHENTICATED;
  if (message == NULL) size = 0;
  if (size > MESSAGE_LIMIT) size = MESSAGE_LIMIT;
  return cx_error(known ? (calx_code)code : CALX_UNKNOWN, "%.*s", (int)size,
                  message == NULL ? "" : message);
}

calx_status *cpu_api_check_size(const char *type, size_t wanted, size_t found)
{
  if (found >= wanted) return NULL;
  return cx_invalid("Unexpected %s size: expected %zu, got %zu", type, wanted,
                    found);
}

static calx_status *refusal(const char *type, size_t wanted,
                            const size_t *struct_size, const char *object)
{
  if (struct_size == NULL) {
    return cx_invalid("%s: there is no struct", type);
  }
  CALX_TRY(cpu_api_check_size(type, wanted, *struct_size));
  return cx_invalid("%s: %s is NULL", type, object);
}

PJRT_Error *cpu_api_refuse(const char *type, size_t wanted,
                           const size_t *struct_size, const char *object)
{
  return cpu_api_error(refusal(type, wanted, struct_size, object));
}

void cpu_api_PJRT_Error_Destroy(PJRT_Error_Destroy_Args *args)
{
  if (args == NULL || args->struct_size < PJRT_Error_Destroy_Args_STRUCT_SIZE ||
      args->error == NULL || args->error == &no_memory.base) {
    return;
  }
  error *e = (error *)args->error;
  calx_status_free(e->status);
  cx_free(e);
}

void cpu_api_PJRT_Error_Message(PJRT_Error_Message_Args *args)
{
  if (args == NULL || args->struct_size < PJRT_Error_Message_Args_STRUCT_SIZE) {
    return;
  }
  const error *e = (const error *)args->error;
  args->message = "ok";
  if (e == &no_memory) {
    args->message = "out of memory";
  } else if (e != NULL) {
    // Without the call site: the client adds its own.
    args->message = cx_status_sentence(e->status);
  }
  args->message_size = strlen(args->message);
}

PJRT_Error *cpu_api_PJRT_Error_GetCode(PJRT_Error_GetCode_Args *args)
{
  CPU_API_ENTER(PJRT_Error_GetCode, error);
  const error *e = (const error *)args->error;
  args->code = e == &no_memory ? PJRT_Error_Code_RESOURCE_EXHAUSTED
                               : (PJRT_Error_Code)calx_status_code(e->status);
  return NULL;
}

// Errors have no payloads. This never fails, because the client would ask that
// error for its payloads too.
PJRT_Error *cpu_api_PJRT_Error_ForEachPayload(
    PJRT_Error_ForEachPayload_Args *args)
{
  (void)args;
  return NULL;
}
