// abi/xla_ffi: what a custom call's handler is called with: XLA's FFI.
//
// This declares version 0.3 of the interface (openxla/xla,
// xla/ffi/api/c_api.h, Apache-2.0), as far as the engine offers it. Names and
// layout are the interface's and must stay; comments are ours. As in PJRT, a
// struct begins with its size as its maker knew it.
#ifndef CX_ABI_XLA_FFI_H
#define CX_ABI_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

#define CX_XLA_FFI_SIZE(type, last, size)                                 \
  enum {                                                                  \
    type##_STRUCT_SIZE = offsetof(type, last) + sizeof(((type *)0)->last) \
  };                                                                      \
  _Static_assert((size_t)type##_STRUCT_SIZE == (size), #type)
#define CX_XLA_FFI_NEW(type) .struct_size = (size_t)type##_STRUCT_SIZE

typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Future XLA_FFI_Future;
typedef struct XLA_FFI_Api XLA_FFI_Api;

typedef enum XLA_FFI_Extension_Type {
  XLA_FFI_Extension_Metadata = 1
} XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base XLA_FFI_Extension_Base;
struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  XLA_FFI_Extension_Base *next;
};

#define CX_XLA_FFI_HEAD \
  size_t struct_size;   \
  XLA_FFI_Extension_Base *extension_start

typedef struct XLA_FFI_Api_Version {
  CX_XLA_FFI_HEAD;
  int major_version;  // out
  int minor_version;  // out
} XLA_FFI_Api_Version;
CX_XLA_FFI_SIZE(XLA_FFI_Api_Version, minor_version, 24);

// ---- values ----

// The numbers of xla.PrimitiveType. Types of less than 8 bits have a byte each.
typedef enum XLA_FFI_DataType {
  XLA_FFI_DataType_INVALID = 0,
  XLA_FFI_DataType_PRED = 1,
  XLA_FFI_DataType_S8 = 2,
  XLA_FFI_DataType_S16 = 3,
  XLA_FFI_DataType_S32 = 4,
  XLA_FFI_DataType_S64 = 5,
  XLA_FFI_DataType_U8 = 6,
  XLA_FFI_DataType_U16 = 7,
  XLA_FFI_DataType_U32 = 8,
  XLA_FFI_DataType_U64 = 9,
  XLA_FFI_DataType_F16 = 10,
  XLA_FFI_DataType_F32 = 11,
  XLA_FFI_DataType_F64 = 12,
  XLA_FFI_DataType_C64 = 15,
  XLA_FFI_DataType_BF16 = 16,
  XLA_FFI_DataType_TOKEN = 17,
  XLA_FFI_DataType_C128 = 18,
  XLA_FFI_DataType_F8E5M2 = 19,
  XLA_FFI_DataType_F8E4M3FN = 20,
  XLA_FFI_DataType_S4 = 21,
  XLA_FFI_DataType_U4 = 22,
  XLA_FFI_DataType_F8E4M3B11FNUZ = 23,
  XLA_FFI_DataType_F8E5M2FNUZ = 24,
  XLA_FFI_DataType_F8E4M3FNUZ = 25,
  XLA_FFI_DataType_S2 = 26,
  XLA_FFI_DataType_U2 = 27,
  XLA_FFI_DataType_F8E4M3 = 28,
  XLA_FFI_DataType_F8E3M4 = 29,
  XLA_FFI_DataType_F4E2M1FN = 32,
  XLA_FFI_DataType_F8E8M0FNU = 33
} XLA_FFI_DataType;

// A tensor, dense and row-major.
typedef struct XLA_FFI_Buffer {
  CX_XLA_FFI_HEAD;
  XLA_FFI_DataType dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} XLA_FFI_Buffer;
CX_XLA_FFI_SIZE(XLA_FFI_Buffer, dims, 48);

typedef enum XLA_FFI_ArgType { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum XLA_FFI_RetType { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;

typedef enum XLA_FFI_AttrType {
  XLA_FFI_AttrType_ARRAY = 1,       // XLA_FFI_Array
  XLA_FFI_AttrType_DICTIONARY = 2,  // XLA_FFI_Attrs
  XLA_FFI_AttrType_SCALAR = 3,      // XLA_FFI_Scalar
  XLA_FFI_AttrType_STRING = 4       // XLA_FFI_ByteSpan
} XLA_FFI_AttrType;

typedef struct XLA_FFI_ByteSpan {
  const char *ptr;
  size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void *value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void *data;
} XLA_FFI_Array;

typedef struct XLA_FFI_TypeId {
  int64_t type_id;  // 0: none
} XLA_FFI_TypeId;

// ---- the call ----

typedef enum XLA_FFI_ExecutionStage {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3
} XLA_FFI_ExecutionStage;

typedef struct XLA_FFI_Args {
  CX_XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_ArgType *types;
  void **args;
} XLA_FFI_Args;
CX_XLA_FFI_SIZE(XLA_FFI_Args, args, 40);

typedef struct XLA_FFI_Rets {
  CX_XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_RetType *types;
  void **rets;
} XLA_FFI_Rets;
CX_XLA_FFI_SIZE(XLA_FFI_Rets, rets, 40);

// Sorted by name.
typedef struct XLA_FFI_Attrs {
  CX_XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_AttrType *types;
  XLA_FFI_ByteSpan **names;
  void **attrs;
} XLA_FFI_Attrs;
CX_XLA_FFI_SIZE(XLA_FFI_Attrs, attrs, 48);

typedef struct XLA_FFI_CallFrame {
  CX_XLA_FFI_HEAD;
  const XLA_FFI_Api *api;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future *future;  // out: of an asynchronous handler
} XLA_FFI_CallFrame;
CX_XLA_FFI_SIZE(XLA_FFI_CallFrame, attrs, 168);

// NULL: success. The caller destroys the error.
typedef XLA_FFI_Error *XLA_FFI_Handler(XLA_FFI_CallFrame *frame);

// A frame with this extension asks the handler for its version alone.
typedef struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;  // out
  uint32_t traits;                  // out
  XLA_FFI_TypeId state_type_id;     // out
} XLA_FFI_Metadata;
CX_XLA_FFI_SIZE(XLA_FFI_Metadata, traits, 36);

typedef struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata *metadata;
} XLA_FFI_Metadata_Extension;
CX_XLA_FFI_SIZE(XLA_FFI_Metadata_Extension, metadata, 32);

// ---- functions for handlers ----

typedef struct XLA_FFI_Error_Create_Args {
  CX_XLA_FFI_HEAD;
  const char *message;
  int errc;  // a PJRT_Error_Code
} XLA_FFI_Error_Create_Args;
CX_XLA_FFI_SIZE(XLA_FFI_Error_Create_Args, errc, 28);

typedef struct XLA_FFI_Error_GetMessage_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_Error *error;
  const char *message;  // out
} XLA_FFI_Error_GetMessage_Args;

typedef struct XLA_FFI_Error_Destroy_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_Error *error;
} XLA_FFI_Error_Destroy_Args;

// Data that the launch's PJRT_ExecuteContext has.
typedef struct XLA_FFI_ExecutionContext_Get_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_TypeId *type_id;
  void *data;  // out
} XLA_FFI_ExecutionContext_Get_Args;
CX_XLA_FFI_SIZE(XLA_FFI_ExecutionContext_Get_Args, data, 40);

typedef struct XLA_FFI_DeviceMemory_Allocate_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  size_t size, alignment;
  void *data;  // out
} XLA_FFI_DeviceMemory_Allocate_Args;

typedef struct XLA_FFI_DeviceMemory_Free_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  size_t size;
  void *data;
} XLA_FFI_DeviceMemory_Free_Args;

typedef struct XLA_FFI_ThreadPool_Schedule_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  void (*task)(void *data);
  void *data;
} XLA_FFI_ThreadPool_Schedule_Args;

typedef struct XLA_FFI_ThreadPool_NumThreads_Args {
  CX_XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  int64_t *num_threads;  // out
} XLA_FFI_ThreadPool_NumThreads_Args;

// The table. A function that the engine does not have answers UNIMPLEMENTED;
// its arguments have no declaration here.
struct XLA_FFI_Api {
  CX_XLA_FFI_HEAD;
  XLA_FFI_Api_Version api_version;
  const void *internal_api;  // XLA's own; NULL
  XLA_FFI_Error *(*XLA_FFI_Error_Create)(XLA_FFI_Error_Create_Args *args);
  void (*XLA_FFI_Error_GetMessage)(XLA_FFI_Error_GetMessage_Args *args);
  void (*XLA_FFI_Error_Destroy)(XLA_FFI_Error_Destroy_Args *args);
  XLA_FFI_Error *(*XLA_FFI_Handler_Register)(void *args);
  XLA_FFI_Error *(*XLA_FFI_Stream_Get)(void *args);
  XLA_FFI_Error *(*XLA_FFI_Type_Register)(void *args);
  XLA_FFI_Error *(*XLA_FFI_ExecutionContext_Get)(
      XLA_FFI_ExecutionContext_Get_Args *args);
  XLA_FFI_Error *(*XLA_FFI_State_Set)(void *args);
  XLA_FFI_Error *(*XLA_FFI_State_Get)(void *args);
  XLA_FFI_Error *(*XLA_FFI_DeviceMemory_Allocate)(
      XLA_FFI_DeviceMemory_Allocate_Args *args);
  XLA_FFI_Error *(*XLA_FFI_DeviceMemory_Free)(
      XLA_FFI_DeviceMemory_Free_Args *args);
  XLA_FFI_Error *(*XLA_FFI_ThreadPool_Schedule)(
      XLA_FFI_ThreadPool_Schedule_Args *args);
  XLA_FFI_Error *(*XLA_FFI_ThreadPool_NumThreads)(
      XLA_FFI_ThreadPool_NumThreads_Args *args);
  XLA_FFI_Error *(*XLA_FFI_Future_Create)(void *args);
  XLA_FFI_Error *(*XLA_FFI_Future_SetAvailable)(void *args);
  XLA_FFI_Error *(*XLA_FFI_Future_SetError)(void *args);
  XLA_FFI_Error *(*XLA_FFI_RunId_Get)(void *args);
  XLA_FFI_Error *(*XLA_FFI_DeviceOrdinal_Get)(void *args);
};
CX_XLA_FFI_SIZE(XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get, 192);

#endif
