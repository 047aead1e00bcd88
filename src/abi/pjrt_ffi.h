// abi/pjrt_ffi: the extension by which a program registers C functions as the
// targets of custom calls, and gives them data for one launch.
//
// Extensions are outside the promise of the version number: base.struct_size
// tells which functions are there. xla_ffi.h declares the functions themselves.
#ifndef CX_ABI_PJRT_FFI_H
#define CX_ABI_PJRT_FFI_H

#include "abi/pjrt_types.h"

typedef struct PJRT_FFI_Type_Info {
  void (*deleter)(void *object);
  void (*serialize)(void);
  void (*deserialize)(void);
} PJRT_FFI_Type_Info;

// Gives a name of a type its number. type_id 0: the next free one.
typedef struct PJRT_FFI_Type_Register_Args {
  CX_PJRT_HEAD;
  const char *type_name;
  size_t type_name_size;
  int64_t type_id;  // in and out
  PJRT_FFI_Type_Info *type_info;
} PJRT_FFI_Type_Register_Args;
CX_PJRT_SIZE(PJRT_FFI_Type_Register_Args, type_info, 48);

typedef struct PJRT_FFI_UserData {
  int64_t type_id;
  void *data;
} PJRT_FFI_UserData;

// The data must live until the launch has ended.
typedef struct PJRT_FFI_UserData_Add_Args {
  CX_PJRT_HEAD;
  PJRT_ExecuteContext *context;
  PJRT_FFI_UserData user_data;
} PJRT_FFI_UserData_Add_Args;
CX_PJRT_SIZE(PJRT_FFI_UserData_Add_Args, user_data, 40);

// It has no extension chain.
typedef struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char *target_name;
  size_t target_name_size;
  void *handler;  // an XLA_FFI_Handler
  const char *platform_name;
  size_t platform_name_size;
  uint32_t traits;
} PJRT_FFI_Register_Handler_Args;
CX_PJRT_SIZE(PJRT_FFI_Register_Handler_Args, traits, 52);

typedef struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*type_register)(PJRT_FFI_Type_Register_Args *args);
  PJRT_Error *(*user_data_add)(PJRT_FFI_UserData_Add_Args *args);
  PJRT_Error *(*register_handler)(PJRT_FFI_Register_Handler_Args *args);
} PJRT_FFI_Extension;
CX_PJRT_SIZE(PJRT_FFI_Extension, register_handler, 48);

#endif
