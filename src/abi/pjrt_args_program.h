// abi/pjrt_args_program: arguments of the functions that compile programs and
// run them.
//
// `out` fields are written by the plugin, all others by the caller. An
// executable is a compiled program; a loaded one is bound to a client's
// devices. Each is an object of its own to destroy.
#ifndef CX_ABI_PJRT_ARGS_PROGRAM_H
#define CX_ABI_PJRT_ARGS_PROGRAM_H

#include "abi/pjrt_args_buffer.h"

// ---- compiling ----

typedef struct PJRT_Program {
  CX_PJRT_HEAD;
  char *code;  // in, out: NULL asks OptimizedProgram for the size
  size_t code_size;
  const char *format;  // "mlir" (text or bytecode) or "hlo"
  size_t format_size;
} PJRT_Program;
CX_PJRT_SIZE(PJRT_Program, format_size, 48);

typedef struct PJRT_Client_Compile_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  const PJRT_Program *program;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable *executable;  // out
} PJRT_Client_Compile_Args;
CX_PJRT_SIZE(PJRT_Client_Compile_Args, executable, 56);

typedef struct PJRT_Compile_Args {
  CX_PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  const PJRT_Program *program;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_Client *client;          // may be NULL
  PJRT_Executable *executable;  // out
} PJRT_Compile_Args;
CX_PJRT_SIZE(PJRT_Compile_Args, executable, 64);

typedef struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t *computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config *multi_slice_config;
} PJRT_LoadOptions;
CX_PJRT_SIZE(PJRT_LoadOptions, multi_slice_config, 32);

typedef struct PJRT_Client_Load_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Executable *executable;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable *loaded_executable;  // out
} PJRT_Client_Load_Args;
CX_PJRT_SIZE(PJRT_Client_Load_Args, loaded_executable, 56);

// ---- executables ----

CX_PJRT_OBJECT_ARGS(PJRT_Executable_Destroy, PJRT_Executable, executable);
CX_PJRT_TEXT_ARGS(PJRT_Executable_Name, PJRT_Executable, executable,
                  executable_name);
CX_PJRT_VALUE_ARGS(PJRT_Executable_NumReplicas, PJRT_Executable, executable,
                   size_t, num_replicas);
CX_PJRT_VALUE_ARGS(PJRT_Executable_NumPartitions, PJRT_Executable, executable,
                   size_t, num_partitions);

typedef struct PJRT_Executable_OptimizedProgram_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  PJRT_Program *program;  // in, out
} PJRT_Executable_OptimizedProgram_Args;
CX_PJRT_SIZE(PJRT_Executable_OptimizedProgram_Args, program, 32);

CX_PJRT_VALUE_ARGS(PJRT_Executable_NumOutputs, PJRT_Executable, executable,
                   size_t, num_outputs);
CX_PJRT_VALUE_ARGS(PJRT_Executable_SizeOfGeneratedCodeInBytes, PJRT_Executable,
                   executable, int64_t, size_in_bytes);
CX_PJRT_TEXT_ARGS(PJRT_Executable_Fingerprint, PJRT_Executable, executable,
                  executable_fingerprint);

typedef struct PJRT_Executable_GetCostAnalysis_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_properties;              // out
  const PJRT_NamedValue *properties;  // out
} PJRT_Executable_GetCostAnalysis_Args;
CX_PJRT_SIZE(PJRT_Executable_GetCostAnalysis_Args, properties, 40);

typedef struct PJRT_Executable_GetCompiledMemoryStats_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  int64_t generated_code_size_in_bytes;       // out
  int64_t argument_size_in_bytes;             // out
  int64_t output_size_in_bytes;               // out
  int64_t alias_size_in_bytes;                // out
  int64_t temp_size_in_bytes;                 // out
  int64_t host_generated_code_size_in_bytes;  // out
  int64_t host_argument_size_in_bytes;        // out
  int64_t host_output_size_in_bytes;          // out
  int64_t host_alias_size_in_bytes;           // out
  int64_t host_temp_size_in_bytes;            // out
  int64_t peak_memory_in_bytes;               // out, from 0.72
  int64_t total_size_in_bytes;                // out, from 0.90
  int64_t total_allocation_bytes;             // out, from 0.104
  int64_t indefinite_allocations;             // out, from 0.104
  int64_t peak_unpadded_heap_bytes;           // out, from 0.104
} PJRT_Executable_GetCompiledMemoryStats_Args;
CX_PJRT_SIZE(PJRT_Executable_GetCompiledMemoryStats_Args,
             peak_unpadded_heap_bytes, 144);

CX_PJRT_LIST_ARGS(PJRT_Executable_OutputElementTypes, PJRT_Executable,
                  executable, PJRT_Buffer_Type, output_types, num_output_types);

typedef struct PJRT_Executable_OutputDimensions_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;       // out
  const int64_t *dims;      // out: of all outputs, one after the other
  const size_t *dim_sizes;  // out
} PJRT_Executable_OutputDimensions_Args;
CX_PJRT_SIZE(PJRT_Executable_OutputDimensions_Args, dim_sizes, 48);

typedef struct PJRT_Executable_ParameterMemoryKinds_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;            // out
  const char *const *memory_kinds;  // out
  const size_t *memory_kind_sizes;  // out
} PJRT_Executable_ParameterMemoryKinds_Args;
CX_PJRT_SIZE(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes, 48);

typedef struct PJRT_Executable_OutputMemoryKinds_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;               // out
  const char *const *memory_kinds;  // out
  const size_t *memory_kind_sizes;  // out
} PJRT_Executable_OutputMemoryKinds_Args;
CX_PJRT_SIZE(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes, 48);

typedef struct PJRT_Executable_Serialize_Args {
  CX_PJRT_HEAD;
  const PJRT_Executable *executable;
  const char *serialized_bytes;                      // out
  size_t serialized_bytes_size;                      // out
  PJRT_SerializedExecutable *serialized_executable;  // out
  void (*serialized_executable_deleter)(
      PJRT_SerializedExecutable *exec);  // out
} PJRT_Executable_Serialize_Args;
CX_PJRT_SIZE(PJRT_Executable_Serialize_Args, serialized_executable_deleter, 56);

typedef struct PJRT_Executable_GetCompileOptions_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  const char *serialized_bytes;                               // out
  size_t serialized_bytes_size;                               // out
  PJRT_SerializedCompileOptions *serialized_compile_options;  // out
  void (*serialized_compile_options_deleter)(
      PJRT_SerializedCompileOptions *options);  // out
} PJRT_Executable_GetCompileOptions_Args;
CX_PJRT_SIZE(PJRT_Executable_GetCompileOptions_Args,
             serialized_compile_options_deleter, 56);

typedef struct PJRT_Executable_DeserializeAndLoad_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  const char *serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable *loaded_executable;           // out
  const char *overridden_serialized_compile_options;  // from 0.71
  size_t overridden_serialized_compile_options_size;  // from 0.71
  PJRT_LoadOptions *load_options;                     // from 0.111
} PJRT_Executable_DeserializeAndLoad_Args;
CX_PJRT_SIZE(PJRT_Executable_DeserializeAndLoad_Args, load_options, 72);

// ---- loaded executables ----

typedef struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
} PJRT_LogicalDeviceIds;
_Static_assert(sizeof(PJRT_LogicalDeviceIds) == 8, "PJRT_LogicalDeviceIds");

CX_PJRT_OBJECT_ARGS(PJRT_LoadedExecutable_Destroy, PJRT_LoadedExecutable,
                    executable);
CX_PJRT_VALUE_ARGS(PJRT_LoadedExecutable_GetExecutable, PJRT_LoadedExecutable,
                   loaded_executable, PJRT_Executable *, executable);

typedef struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  CX_PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  const char *serialized_bytes;                                   // out
  size_t serialized_bytes_size;                                   // out
  PJRT_DeviceAssignmentSerialized *serialized_device_assignment;  // out
  void (*serialized_device_assignment_deleter)(
      PJRT_DeviceAssignmentSerialized *da);  // out
} PJRT_LoadedExecutable_GetDeviceAssignment_Args;
CX_PJRT_SIZE(PJRT_LoadedExecutable_GetDeviceAssignment_Args,
             serialized_device_assignment_deleter, 56);

CX_PJRT_LIST_ARGS(PJRT_LoadedExecutable_AddressableDevices,
                  PJRT_LoadedExecutable, executable, PJRT_Device *const,
                  addressable_devices, num_addressable_devices);
CX_PJRT_LIST_ARGS(PJRT_LoadedExecutable_AddressableDeviceLogicalIds,
                  PJRT_LoadedExecutable, executable, PJRT_LogicalDeviceIds,
                  addressable_device_logical_ids,
                  num_addressable_device_logical_ids);
CX_PJRT_OBJECT_ARGS(PJRT_LoadedExecutable_Delete, PJRT_LoadedExecutable,
                    executable);
CX_PJRT_VALUE_ARGS(PJRT_LoadedExecutable_IsDeleted, PJRT_LoadedExecutable,
                   executable, bool, is_deleted);
CX_PJRT_TEXT_ARGS(PJRT_LoadedExecutable_Fingerprint, PJRT_LoadedExecutable,
                  executable, executable_fingerprint);

// ---- executing ----

typedef struct PJRT_ExecuteContext_Create_Args {
  CX_PJRT_HEAD;
  PJRT_ExecuteContext *context;  // out
} PJRT_ExecuteContext_Create_Args;
CX_PJRT_SIZE(PJRT_ExecuteContext_Create_Args, context, 24);

CX_PJRT_OBJECT_ARGS(PJRT_ExecuteContext_Destroy, PJRT_ExecuteContext, context);

typedef PJRT_Error *(*PJRT_SendCallback)(PJRT_Chunk *chunk,
                                         PJRT_CallbackError *callback_error,
                                         size_t total_size_in_bytes, bool done,
                                         void *user_arg);

typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream *stream,
                                  void *user_arg);

typedef struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_SendCallback send_callback;
} PJRT_SendCallbackInfo;
_Static_assert(sizeof(PJRT_SendCallbackInfo) == 24, "PJRT_SendCallbackInfo");

typedef struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_RecvCallback recv_callback;
} PJRT_RecvCallbackInfo;
_Static_assert(sizeof(PJRT_RecvCallbackInfo) == 24, "PJRT_RecvCallbackInfo");

typedef void (*PJRT_HloOutputCallback)(int64_t replica_id, int64_t partition_id,
                                       const void *data,
                                       const int64_t *shape_dims,
                                       size_t shape_num_dims,
                                       PJRT_Buffer_Type shape_element_type,
                                       int64_t operand_index, void *user_arg);

typedef struct PJRT_HloOutputCallbackInfo {
  void *user_arg;
  PJRT_HloOutputCallback callback;
  int64_t callback_id;
  size_t num_operands;
} PJRT_HloOutputCallbackInfo;
_Static_assert(sizeof(PJRT_HloOutputCallbackInfo) == 32,
               "PJRT_HloOutputCallbackInfo");

typedef struct PJRT_ExecuteOptions {
  CX_PJRT_HEAD;
  PJRT_SendCallbackInfo **send_callbacks;
  PJRT_RecvCallbackInfo **recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;  // the same on all processes for one launch
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext *context;                       // from 0.64
  const char *call_location;                          // from 0.76
  size_t num_tasks;                                   // from 0.78
  int *task_ids;                                      // from 0.78
  int64_t *incarnation_ids;                           // from 0.78
  PJRT_MultiSlice_Config *multi_slice_config;         // from 0.97
  bool use_major_to_minor_data_layout_for_callbacks;  // from 0.108
  PJRT_HloOutputCallbackInfo *hlo_output_callbacks;   // from 0.112
  size_t num_hlo_output_callbacks;                    // from 0.112
} PJRT_ExecuteOptions;
CX_PJRT_SIZE(PJRT_ExecuteOptions, num_hlo_output_callbacks, 144);

// The inner arrays are the caller's too. On success each output is a new buffer
// and each complete event a new event.
typedef struct PJRT_LoadedExecutable_Execute_Args {
  CX_PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  PJRT_ExecuteOptions *options;
  PJRT_Buffer *const *const *argument_lists;  // [num_devices][num_args]
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer **const *output_lists;    // in, out: [num_devices][outputs]
  PJRT_Event **device_complete_events;  // in, out: NULL: none
  PJRT_Device *execute_device;          // num_devices 1: this shard alone
} PJRT_LoadedExecutable_Execute_Args;
CX_PJRT_SIZE(PJRT_LoadedExecutable_Execute_Args, execute_device, 80);

#endif
