// abi/pjrt_types: the values that the PJRT C API's functions exchange: handles,
// enumerations, small structs.
//
// Together with the pjrt_args_*.h this declares version 0.114 of the interface
// (openxla/xla, xla/pjrt/c/pjrt_c_api.h, Apache-2.0), whose table is the same
// up to 0.117. Names and layout are the interface's and must stay; comments are
// ours. A plugin and its client are built apart, so each struct that may grow
// starts with its size as its maker knew it: offset plus size of the last
// field, tail padding not counted. A plugin built from XLA refuses a smaller
// struct than its own and accepts a larger one. CX_PJRT_SIZE names that size
// and checks it against the number of the interface.
#ifndef CX_ABI_PJRT_TYPES_H
#define CX_ABI_PJRT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 114

// How nearly every struct starts. Who makes a struct zeroes all the rest.
#define CX_PJRT_HEAD  \
  size_t struct_size; \
  PJRT_Extension_Base *extension_start

#define CX_PJRT_SIZE(type, last, size)                                    \
  enum {                                                                  \
    type##_STRUCT_SIZE = offsetof(type, last) + sizeof(((type *)0)->last) \
  };                                                                      \
  _Static_assert((size_t)type##_STRUCT_SIZE == (size), #type)

// The start of an initialiser: the size set, the rest zero.
#define CX_PJRT_ARGS(type) .struct_size = (size_t)type##_STRUCT_SIZE

// Most functions take an object and nothing else. Their arguments have one of
// four shapes, by what the plugin returns: nothing, a value, a text that is not
// terminated, or a list.
#define CX_PJRT_OBJECT_ARGS(function, type, object) \
  typedef struct function##_Args {                  \
    CX_PJRT_HEAD;                                   \
    type *object;                                   \
  } function##_Args;                                \
  CX_PJRT_SIZE(function##_Args, object, 24)

#define CX_PJRT_VALUE_ARGS(function, type, object, value_type, value) \
  typedef struct function##_Args {                                    \
    CX_PJRT_HEAD;                                                     \
    type *object;                                                     \
    value_type value; /* out */                                       \
  } function##_Args;                                                  \
  CX_PJRT_SIZE(function##_Args, value, 24 + sizeof(value_type))

#define CX_PJRT_TEXT_ARGS(function, type, object, text) \
  typedef struct function##_Args {                      \
    CX_PJRT_HEAD;                                       \
    type *object;                                       \
    const char *text;   /* out */                       \
    size_t text##_size; /* out: bytes */                \
  } function##_Args;                                    \
  CX_PJRT_SIZE(function##_Args, text##_size, 40)

#define CX_PJRT_LIST_ARGS(function, type, object, element, list, n) \
  typedef struct function##_Args {                                  \
    CX_PJRT_HEAD;                                                   \
    type *object;                                                   \
    element *list; /* out */                                        \
    size_t n;      /* out: elements */                              \
  } function##_Args;                                                \
  CX_PJRT_SIZE(function##_Args, n, 40)

// ---- objects of the plugin, seen through pointers only ----

typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_AsyncHostToDeviceTransferManager
    PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_PhaseCompiler PJRT_PhaseCompiler;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;

// ---- the extension chain ----

// Extensions hang on the table's extension_start as a list; unknown types are
// skipped. Their structs are outside the promise of the version number:
// base.struct_size tells which functions are there.
typedef enum PJRT_Extension_Type {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Custom_Partitioner = 2,
  PJRT_Extension_Type_Stream = 3,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_Triton = 7,
  PJRT_Extension_Type_RawBuffer = 8,
  PJRT_Extension_Type_PhaseCompile = 9,
  PJRT_Extension_Type_Example = 10,
  PJRT_Extension_Type_Unknown = 11,
  PJRT_Extension_Type_CrossHostTransfers = 12,
  PJRT_Extension_Type_ExecutableMetadata = 13,
  PJRT_Extension_Type_Callback = 14,
  PJRT_Extension_Type_HostAllocator = 15,
  PJRT_Extension_Type_TpuTopology = 16,
  PJRT_Extension_Type_TpuExecutable = 17,
  PJRT_Extension_Type_Megascale = 18,
  PJRT_Extension_Type_Shardings = 19,
  PJRT_Extension_Type_AbiVersion = 20,
  PJRT_Extension_Type_Collectives = 21,
  PJRT_Extension_Type_MultiSlice = 22,
  PJRT_Extension_Type_HostMemoryAllocator = 23,
  PJRT_Extension_Type_XlaTransform = 24,
} PJRT_Extension_Type;

typedef struct PJRT_Extension_Base PJRT_Extension_Base;
struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base *next;
};
CX_PJRT_SIZE(PJRT_Extension_Base, next, 24);

typedef struct PJRT_Api_Version {
  CX_PJRT_HEAD;
  int major_version;  // out
  int minor_version;  // out
} PJRT_Api_Version;
CX_PJRT_SIZE(PJRT_Api_Version, minor_version, 24);

// ---- named values: options of creation, attributes ----

typedef enum PJRT_NamedValue_Type {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
} PJRT_NamedValue_Type;

typedef struct PJRT_NamedValue {
  CX_PJRT_HEAD;
  const char *name;  // not terminated
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;  // bytes of a string, elements of a list, else 1
} PJRT_NamedValue;
CX_PJRT_SIZE(PJRT_NamedValue, value_size, 56);

// ---- element types, layouts, host memory ----

typedef enum PJRT_Buffer_Type {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_C64 = 14,
  PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
  PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19,
  PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24,
  PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26,
  PJRT_Buffer_Type_F8E3M4 = 27,
  PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29,
  PJRT_Buffer_Type_S1 = 30,
  PJRT_Buffer_Type_U1 = 31,
  PJRT_Buffer_Type_F6E2M3FN = 32,
  PJRT_Buffer_Type_F6E3M2FN = 33,
} PJRT_Buffer_Type;

// When the host memory of an upload may be reused: at return; when the done
// event fires; when the buffer is gone (twice).
typedef enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
} PJRT_HostBufferSemantics;

typedef enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1,
} PJRT_Buffer_MemoryLayout_Type;

typedef struct PJRT_Buffer_MemoryLayout_Tiled {
  CX_PJRT_HEAD;
  const int64_t *minor_to_major;  // dimension numbers, fastest first
  size_t minor_to_major_size;
  const int64_t *tile_dims;      // of all tiles, one after the other
  const size_t *tile_dim_sizes;  // how many of them each tile has
  size_t num_tiles;
} PJRT_Buffer_MemoryLayout_Tiled;
CX_PJRT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles, 56);

typedef struct PJRT_Buffer_MemoryLayout_Strides {
  CX_PJRT_HEAD;
  const int64_t *byte_strides;  // signed
  size_t num_byte_strides;
} PJRT_Buffer_MemoryLayout_Strides;
CX_PJRT_SIZE(PJRT_Buffer_MemoryLayout_Strides, num_byte_strides, 32);

typedef struct PJRT_Buffer_MemoryLayout {
  CX_PJRT_HEAD;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
} PJRT_Buffer_MemoryLayout;
CX_PJRT_SIZE(PJRT_Buffer_MemoryLayout, type, 76);

typedef struct PJRT_ShapeSpec {
  CX_PJRT_HEAD;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
} PJRT_ShapeSpec;
CX_PJRT_SIZE(PJRT_ShapeSpec, element_type, 36);

// ---- errors ----

typedef enum PJRT_Error_Code {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
} PJRT_Error_Code;

// Codes are absl's, and calx_code has the same numbers. An error belongs to who
// received it. From 0.107 on its first word points to functions, so that one
// side can hand its own errors to the other; before, the object is opaque.
typedef struct PJRT_Error PJRT_Error;

// Called once for each payload of an error; the bytes live for the call only.
typedef void (*PJRT_Error_PayloadVisitor)(const char *key, size_t key_size,
                                          const char *value, size_t value_size,
                                          void *user_arg);

typedef struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *error);
  void (*message)(const PJRT_Error *error, const char **message,
                  size_t *message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error *error);
  void (*for_each_payload)(const PJRT_Error *error,
                           PJRT_Error_PayloadVisitor visitor, void *user_arg);
} PJRT_Error_FunctionTable;
CX_PJRT_SIZE(PJRT_Error_FunctionTable, for_each_payload, 56);

struct PJRT_Error {
  const PJRT_Error_FunctionTable *vtable;
};
_Static_assert(sizeof(PJRT_Error) == 8, "PJRT_Error");

// How a callback of the caller makes an error for the plugin that called it.
typedef PJRT_Error *(*PJRT_CallbackError)(PJRT_Error_Code code,
                                          const char *message,
                                          size_t message_size);

// ---- memories ----

// From 0.105 on a memory's first word points to functions (or is NULL); before,
// the object is opaque.
typedef struct PJRT_Memory PJRT_Memory;

typedef struct PJRT_Memory_FunctionTable {
  CX_PJRT_HEAD;
  size_t instance_struct_size;
  void *(*get_user_data)(PJRT_Memory *memory, const void *key);
  void (*set_user_data)(PJRT_Memory *memory, const void *key, void *data,
                        void (*dtor)(void *));
} PJRT_Memory_FunctionTable;
CX_PJRT_SIZE(PJRT_Memory_FunctionTable, set_user_data, 40);

struct PJRT_Memory {
  const PJRT_Memory_FunctionTable *vtable;
};
_Static_assert(sizeof(PJRT_Memory) == 8, "PJRT_Memory");

#endif
