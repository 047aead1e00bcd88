// abi/pjrt_args_buffer: arguments of the functions that make buffers, read them
// and move them.
//
// `out` fields are written by the plugin, all others by the caller. A buffer
// that comes out is the caller's to destroy, an event too.
#ifndef CX_ABI_PJRT_ARGS_BUFFER_H
#define CX_ABI_PJRT_ARGS_BUFFER_H

#include "abi/pjrt_types.h"

// ---- making buffers ----

typedef struct PJRT_Client_CreateUninitializedBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Device *device;
  PJRT_Memory *memory;
  PJRT_Buffer *buffer;  // out
} PJRT_Client_CreateUninitializedBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_CreateUninitializedBuffer_Args, buffer, 80);

typedef struct PJRT_Client_CreateErrorBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Memory *memory;
  PJRT_Buffer *buffer;             // out
  const PJRT_NamedValue *payload;  // from 0.103
  size_t num_payload;              // from 0.103
} PJRT_Client_CreateErrorBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_CreateErrorBuffer_Args, num_payload, 112);

typedef struct PJRT_Client_CreateAliasBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Memory *memory;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Buffer *alias_buffer;                                 // out
  PJRT_FulfillAliasBufferCallback *fulfill_alias_buffer_cb;  // out
} PJRT_Client_CreateAliasBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb, 80);

typedef struct PJRT_Client_FulfillAliasBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Buffer *buffer;
  PJRT_Error_Code status_code;
  const char *error_message;
  size_t error_message_size;
  PJRT_FulfillAliasBufferCallback *fulfill_alias_buffer_cb;
} PJRT_Client_FulfillAliasBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb, 64);

typedef struct PJRT_Client_BufferFromHostBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  const void *data;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  const int64_t *byte_strides;  // NULL: dense, row-major
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device *device;  // or memory, which wins
  PJRT_Memory *memory;
  PJRT_Buffer_MemoryLayout *device_layout;  // NULL: the device's default
  PJRT_Event *done_with_host_buffer;        // out
  PJRT_Buffer *buffer;                      // out
} PJRT_Client_BufferFromHostBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_BufferFromHostBuffer_Args, buffer, 120);

typedef struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  void *device_buffer_ptr;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout *layout;
  PJRT_Device *device;
  void (*on_delete_callback)(void *device_buffer_ptr, void *user_arg);
  void *on_delete_callback_arg;
  intptr_t stream;
  PJRT_Buffer *buffer;  // out
  PJRT_Memory *memory;  // from 0.66
} PJRT_Client_CreateViewOfDeviceBuffer_Args;
CX_PJRT_SIZE(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory, 112);

typedef struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_ShapeSpec *shape_specs;
  size_t num_shape_specs;
  PJRT_Buffer_MemoryLayout **device_layouts;
  size_t num_device_layouts;
  PJRT_Memory *memory;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;  // out
} PJRT_Client_CreateBuffersForAsyncHostToDevice_Args;
CX_PJRT_SIZE(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args,
             transfer_manager, 72);

// ---- memory that the client pins ----

typedef struct PJRT_Client_DmaMap_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  void *data;
  size_t size;
} PJRT_Client_DmaMap_Args;
CX_PJRT_SIZE(PJRT_Client_DmaMap_Args, size, 40);

typedef struct PJRT_Client_DmaUnmap_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  void *data;
} PJRT_Client_DmaUnmap_Args;
CX_PJRT_SIZE(PJRT_Client_DmaUnmap_Args, data, 32);

// ---- buffers ----

CX_PJRT_OBJECT_ARGS(PJRT_Buffer_Destroy, PJRT_Buffer, buffer);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_ElementType, PJRT_Buffer, buffer,
                   PJRT_Buffer_Type, type);
CX_PJRT_LIST_ARGS(PJRT_Buffer_Dimensions, PJRT_Buffer, buffer, const int64_t,
                  dims, num_dims);
CX_PJRT_LIST_ARGS(PJRT_Buffer_UnpaddedDimensions, PJRT_Buffer, buffer,
                  const int64_t, unpadded_dims, num_dims);
CX_PJRT_LIST_ARGS(PJRT_Buffer_DynamicDimensionIndices, PJRT_Buffer, buffer,
                  const size_t, dynamic_dim_indices, num_dynamic_dims);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_GetMemoryLayout, PJRT_Buffer, buffer,
                   PJRT_Buffer_MemoryLayout, layout);

typedef struct PJRT_Buffer_ToHostBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *src;
  PJRT_Buffer_MemoryLayout *host_layout;  // NULL: as on the device
  void *dst;          // in, out: NULL asks for the size only
  size_t dst_size;    // in, out
  PJRT_Event *event;  // out
} PJRT_Buffer_ToHostBuffer_Args;
CX_PJRT_SIZE(PJRT_Buffer_ToHostBuffer_Args, event, 56);

CX_PJRT_VALUE_ARGS(PJRT_Buffer_OnDeviceSizeInBytes, PJRT_Buffer, buffer, size_t,
                   on_device_size_in_bytes);
CX_PJRT_OBJECT_ARGS(PJRT_Buffer_Delete, PJRT_Buffer, buffer);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_IsDeleted, PJRT_Buffer, buffer, bool,
                   is_deleted);

typedef struct PJRT_Buffer_CopyRawToHost_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  void *dst;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event *event;  // out
} PJRT_Buffer_CopyRawToHost_Args;
CX_PJRT_SIZE(PJRT_Buffer_CopyRawToHost_Args, event, 56);

typedef struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  void *dst;
} PJRT_Buffer_CopyRawToHostFuture_Callback_Args;
CX_PJRT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst, 48);

typedef struct PJRT_Buffer_CopyRawToHostFuture_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event *event;    // out
  void *callback_data;  // out
  void (*future_ready_callback)(
      PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args);  // out
} PJRT_Buffer_CopyRawToHostFuture_Args;
CX_PJRT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback, 64);

typedef struct PJRT_Buffer_CopyToDevice_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Device *dst_device;
  PJRT_Buffer *dst_buffer;  // out
} PJRT_Buffer_CopyToDevice_Args;
CX_PJRT_SIZE(PJRT_Buffer_CopyToDevice_Args, dst_buffer, 40);

typedef struct PJRT_Buffer_CopyToMemory_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Memory *dst_memory;
  PJRT_Buffer *dst_buffer;  // out
} PJRT_Buffer_CopyToMemory_Args;
CX_PJRT_SIZE(PJRT_Buffer_CopyToMemory_Args, dst_buffer, 40);

typedef struct PJRT_Buffer_Bitcast_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Buffer_Type element_type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_MemoryLayout *device_layout;
  PJRT_Buffer *out_buffer;  // out
} PJRT_Buffer_Bitcast_Args;
CX_PJRT_SIZE(PJRT_Buffer_Bitcast_Args, out_buffer, 64);

CX_PJRT_VALUE_ARGS(PJRT_Buffer_IsOnCpu, PJRT_Buffer, buffer, bool, is_on_cpu);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_Device, PJRT_Buffer, buffer, PJRT_Device *,
                   device);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_Memory, PJRT_Buffer, buffer, PJRT_Memory *,
                   memory);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_ReadyEvent, PJRT_Buffer, buffer, PJRT_Event *,
                   event);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_UnsafePointer, PJRT_Buffer, buffer, uintptr_t,
                   buffer_pointer);
CX_PJRT_OBJECT_ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, PJRT_Buffer,
                    buffer);
CX_PJRT_OBJECT_ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, PJRT_Buffer,
                    buffer);
CX_PJRT_VALUE_ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, PJRT_Buffer,
                   buffer, void *, device_memory_ptr);

typedef struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_Buffer_DonateWithControlDependency_Callback_Args;
CX_PJRT_SIZE(PJRT_Buffer_DonateWithControlDependency_Callback_Args,
             error_message_size, 40);

typedef struct PJRT_Buffer_DonateWithControlDependency_Args {
  CX_PJRT_HEAD;
  PJRT_Buffer *buffer;
  void *callback_data;  // out
  void (*dependency_ready_callback)(
      PJRT_Buffer_DonateWithControlDependency_Callback_Args *args);  // out
  PJRT_Buffer *out_buffer;                                           // out
} PJRT_Buffer_DonateWithControlDependency_Args;
CX_PJRT_SIZE(PJRT_Buffer_DonateWithControlDependency_Args, out_buffer, 48);

// ---- uploads in pieces ----

CX_PJRT_OBJECT_ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy,
                    PJRT_AsyncHostToDeviceTransferManager, transfer_manager);

typedef struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  const void *data;
  int64_t offset;
  int64_t transfer_size;
  bool is_last_transfer;
  PJRT_Event *done_with_h2d_transfer;  // out
} PJRT_AsyncHostToDeviceTransferManager_TransferData_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args,
             done_with_h2d_transfer, 72);

typedef struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  PJRT_Buffer *buffer_out;  // out
} PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args,
             buffer_out, 40);

CX_PJRT_VALUE_ARGS(PJRT_AsyncHostToDeviceTransferManager_Device,
                   PJRT_AsyncHostToDeviceTransferManager, transfer_manager,
                   PJRT_Device *, device_out);
CX_PJRT_VALUE_ARGS(PJRT_AsyncHostToDeviceTransferManager_BufferCount,
                   PJRT_AsyncHostToDeviceTransferManager, transfer_manager,
                   size_t, buffer_count);

typedef struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  size_t buffer_size;  // out
} PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size,
             40);

typedef struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args,
             error_message_size, 48);

typedef struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  const PJRT_NamedValue *transfer_metadata;
  size_t num_metadata;
} PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args,
             num_metadata, 40);

typedef struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
  CX_PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  const void *data;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Event *done_with_h2d_transfer;  // out
} PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args;
CX_PJRT_SIZE(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args,
             done_with_h2d_transfer, 80);

// ---- streams to a device ----

typedef struct PJRT_Chunk {
  void *data;
  size_t size;
  void (*deleter)(void *data, void *deleter_arg);
  void *deleter_arg;
} PJRT_Chunk;
_Static_assert(sizeof(PJRT_Chunk) == 32, "PJRT_Chunk");

CX_PJRT_OBJECT_ARGS(PJRT_CopyToDeviceStream_Destroy, PJRT_CopyToDeviceStream,
                    stream);

typedef struct PJRT_CopyToDeviceStream_AddChunk_Args {
  CX_PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
  PJRT_Chunk *chunk;
  PJRT_Event *transfer_complete;  // out
} PJRT_CopyToDeviceStream_AddChunk_Args;
CX_PJRT_SIZE(PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete, 40);

CX_PJRT_VALUE_ARGS(PJRT_CopyToDeviceStream_TotalBytes, PJRT_CopyToDeviceStream,
                   stream, int64_t, total_bytes);
CX_PJRT_VALUE_ARGS(PJRT_CopyToDeviceStream_GranuleSize, PJRT_CopyToDeviceStream,
                   stream, int64_t, granule_size_in_bytes);
CX_PJRT_VALUE_ARGS(PJRT_CopyToDeviceStream_CurrentBytes,
                   PJRT_CopyToDeviceStream, stream, int64_t, current_bytes);

#endif
