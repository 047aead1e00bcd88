// api/args: the functions of PJRT's table, their arguments and their errors.
#ifndef CPU_API_ARGS_H
#define CPU_API_ARGS_H

#include "abi/pjrt.h"
#include "base/status.h"

// ---- every slot of the table ----

#define CPU_API_DECLARE(name) PJRT_Error *cpu_api_##name(name##_Args *args);
#define CPU_API_DECLARE_VOID(name) void cpu_api_##name(name##_Args *args);
CX_PJRT_FUNCTIONS(CPU_API_DECLARE, CPU_API_DECLARE_VOID)

// ---- errors and arguments ----

// Takes the status; NULL is success.
PJRT_Error *cpu_api_error(calx_status *status) CALX_MUST_USE;
// A status with the caller's code and message; NULL for OK.
calx_status *cpu_api_callers_error(PJRT_Error_Code code, const char *message,
                                   size_t size) CALX_MUST_USE;
// Refuses a caller's struct that has fewer bytes than this version needs.
calx_status *cpu_api_check_size(const char *type, size_t wanted,
                                size_t found) CALX_MUST_USE;
// Says what is wrong with the arguments: there are none (struct_size is NULL),
// they are too small, or `object` is NULL.
PJRT_Error *cpu_api_refuse(const char *type, size_t wanted,
                           const size_t *struct_size, const char *object);

// Begins a function: its arguments have at least `wanted` bytes, and `object`
// is not NULL. A function without an object names struct_size.
#define CPU_API_CHECK(name, wanted, object)                               \
  do {                                                                    \
    const size_t wanted_ = (wanted);                                      \
    if (args == NULL || args->struct_size < wanted_ || !(args->object)) { \
      return cpu_api_refuse(#name "_Args", wanted_,                       \
                            args == NULL ? NULL : &args->struct_size,     \
                            #object);                                     \
    }                                                                     \
  } while (0)
// For arguments that have not changed since the oldest supported version.
#define CPU_API_ENTER(name, object) \
  CPU_API_CHECK(name, (size_t)name##_Args_STRUCT_SIZE, object)
// For arguments that old callers have only up to the field `last`.
#define CPU_API_ENTER_FROM(name, last, object)                              \
  CPU_API_CHECK(                                                            \
      name, offsetof(name##_Args, last) + sizeof(((name##_Args *)0)->last), \
      object)
// Whether the caller's struct has this field, which a later version added.
#define CPU_API_HAS(pointer, field)                                      \
  ((pointer)->struct_size >=                                             \
   (size_t)((const char *)&(pointer)->field - (const char *)(pointer)) + \
       sizeof((pointer)->field))

// Most functions of the table only report a property of their object. Each is
// one row: the function, its object, the fields of the answer and their values.
#define CPU_API_GET(name, object, field, value) \
  PJRT_Error *cpu_api_##name(name##_Args *args) \
  {                                             \
    CPU_API_ENTER(name, object);                \
    args->field = (value);                      \
    return NULL;                                \
  }
// A text and its length, which is the field FIELD_size.
#define CPU_API_GET_TEXT(name, object, field, value) \
  PJRT_Error *cpu_api_##name(name##_Args *args)      \
  {                                                  \
    CPU_API_ENTER(name, object);                     \
    args->field = (value);                           \
    args->field##_size = strlen(args->field);        \
    return NULL;                                     \
  }
// A list and the number of its elements.
#define CPU_API_GET_LIST(name, object, field, list, count, n) \
  PJRT_Error *cpu_api_##name(name##_Args *args)               \
  {                                                           \
    CPU_API_ENTER(name, object);                              \
    args->field = (list);                                     \
    args->count = (n);                                        \
    return NULL;                                              \
  }
// A function that has nothing to do.
#define CPU_API_ACCEPT(name, object)            \
  PJRT_Error *cpu_api_##name(name##_Args *args) \
  {                                             \
    CPU_API_ENTER(name, object);                \
    return NULL;                                \
  }
// A function that another one of the module does: `call` returns its status.
#define CPU_API_CALL(name, object, call)        \
  PJRT_Error *cpu_api_##name(name##_Args *args) \
  {                                             \
    CPU_API_ENTER(name, object);                \
    return cpu_api_error(call);                 \
  }
// The same with two objects.
#define CPU_API_CALL2(name, object, other, call) \
  PJRT_Error *cpu_api_##name(name##_Args *args)  \
  {                                              \
    CPU_API_ENTER(name, object);                 \
    CPU_API_ENTER(name, other);                  \
    return cpu_api_error(call);                  \
  }
// The same for arguments that old callers have only up to the field `last`.
#define CPU_API_CALL_FROM(name, last, object, call) \
  PJRT_Error *cpu_api_##name(name##_Args *args)     \
  {                                                 \
    CPU_API_ENTER_FROM(name, last, object);         \
    return cpu_api_error(call);                     \
  }

#endif
