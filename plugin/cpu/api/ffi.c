// api/ffi: PJRT's FFI extension: functions of the caller as targets of custom
// calls, and the data that a launch gives them.
#include "abi/pjrt_ffi.h"

#include <stdlib.h>
#include <string.h>

#include "api/launch.h"
#include "base/alloc.h"
#include "ref/handler.h"

// ---- types of user data ----

// Numbers below this are the callers' own choice.
#define FIRST_TYPE 1000000

// Not of the counted allocations: it stays until the process ends.
typedef struct type type;
struct type {
  type *next;
  int64_t number;
  size_t size;
  char name[];
};

static struct {
  cx_mutex lock;
  type *first;
} types = { .lock = CX_MUTEX_INIT };

// The number of a name, which is added where it is new.
static calx_status *number_of(const char *name, size_t size, int64_t *out)
{
  type *t = types.first;
  while (t != NULL && (t->size != size || memcmp(t->name, name, size) != 0)) {
    t = t->next;
  }
  if (t == NULL) {
    t = malloc(sizeof *t + size);
    if (t == NULL) return cx_out_of_memory();
    t->next = types.first;
    t->number = t->next == NULL ? FIRST_TYPE : t->next->number + 1;
    t->size = size;
    memcpy(t->name, name, size);
    types.first = t;
  }
  *out = t->number;
  return NULL;
}

static PJRT_Error *type_register(PJRT_FFI_Type_Register_Args *args)
{
  CPU_API_ENTER(PJRT_FFI_Type_Register, type_name);
  if (args->type_id != 0) return NULL;
  cx_lock(&types.lock);
  calx_status *status =
      number_of(args->type_name, args->type_name_size, &args->type_id);
  cx_unlock(&types.lock);
  return cpu_api_error(status);
}

// ---- the data of a launch ----

static calx_status *add(PJRT_ExecuteContext *context, PJRT_FFI_UserData data)
{
  if (!cx_grow(&context->data, &context->room, context->n + 1,
               sizeof *context->data)) {
    return cx_out_of_memory();
  }
  context->data[context->n++] = (cpu_ref_user_data){ data.type_id, data.data };
  return NULL;
}

static PJRT_Error *user_data_add(PJRT_FFI_UserData_Add_Args *args)
{
  CPU_API_ENTER(PJRT_FFI_UserData_Add, context);
  return cpu_api_error(add(args->context, args->user_data));
}

PJRT_Error *cpu_api_PJRT_ExecuteContext_Create(
    PJRT_ExecuteContext_Create_Args *args)
{
  CPU_API_ENTER(PJRT_ExecuteContext_Create, struct_size);
  args->context = cx_calloc(1, sizeof *args->context);
  return args->context == NULL ? cpu_api_error(cx_out_of_memory()) : NULL;
}

PJRT_Error *cpu_api_PJRT_ExecuteContext_Destroy(
    PJRT_ExecuteContext_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_ExecuteContext_Destroy, struct_size);
  if (args->context == NULL) return NULL;
  cx_free(args->context->data);
  cx_free(args->context);
  return NULL;
}

// ---- handlers ----

static PJRT_Error *register_handler(PJRT_FFI_Register_Handler_Args *args)
{
  CPU_API_ENTER(PJRT_FFI_Register_Handler, target_name);
  // The platform's name is not asked for: what is registered with this plugin
  // is to run on it, and clients have several names for a CPU.
  const cx_hlo_str name = { args->target_name, args->target_name_size };
  // An object pointer that is a function's, which POSIX allows.
  XLA_FFI_Handler *handler = NULL;
  memcpy(&handler, &args->handler, sizeof handler);
  return cpu_api_error(cpu_ref_handler_add(name, handler));
}

PJRT_FFI_Extension cpu_api_ffi = { .base = { CX_PJRT_ARGS(PJRT_FFI_Extension),
                                             .type = PJRT_Extension_Type_FFI,
                                             .next = &cpu_api_layouts.base },
                                   .type_register = type_register,
                                   .user_data_add = user_data_add,
                                   .register_handler = register_handler };
