// abi/pjrt: the table of functions that a plugin hands out.
//
// The table only ever grew at its end (but for 0.56, which put a slot in the
// middle), so an older plugin has a shorter one: a slot is there when it ends
// within api->struct_size, and may be NULL even so. CX_PJRT_FUNCTIONS lists the
// slots in the table's order: F(name) returns a PJRT_Error * (NULL: success),
// V(name) returns nothing. Each takes a pointer to name_Args.
#ifndef CX_ABI_PJRT_H
#define CX_ABI_PJRT_H

#include "abi/pjrt_args_buffer.h"
#include "abi/pjrt_args_client.h"
#include "abi/pjrt_args_device.h"
#include "abi/pjrt_args_program.h"

#define CX_PJRT_FUNCTIONS(F, V)                                \
  V(PJRT_Error_Destroy)                                        \
  V(PJRT_Error_Message)                                        \
  F(PJRT_Error_GetCode)                                        \
  F(PJRT_Plugin_Initialize)                                    \
  F(PJRT_Plugin_Attributes)                                    \
  F(PJRT_Event_Destroy)                                        \
  F(PJRT_Event_IsReady)                                        \
  F(PJRT_Event_Error)                                          \
  F(PJRT_Event_Await)                                          \
  F(PJRT_Event_OnReady)                                        \
  F(PJRT_Client_Create)                                        \
  F(PJRT_Client_Destroy)                                       \
  F(PJRT_Client_PlatformName)                                  \
  F(PJRT_Client_ProcessIndex)                                  \
  F(PJRT_Client_PlatformVersion)                               \
  F(PJRT_Client_Devices)                                       \
  F(PJRT_Client_AddressableDevices)                            \
  F(PJRT_Client_LookupDevice)                                  \
  F(PJRT_Client_LookupAddressableDevice)                       \
  F(PJRT_Client_AddressableMemories)                           \
  F(PJRT_Client_Compile)                                       \
  F(PJRT_Client_DefaultDeviceAssignment)                       \
  F(PJRT_Client_BufferFromHostBuffer)                          \
  F(PJRT_DeviceDescription_Id)                                 \
  F(PJRT_DeviceDescription_ProcessIndex)                       \
  F(PJRT_DeviceDescription_Attributes)                         \
  F(PJRT_DeviceDescription_Kind)                               \
  F(PJRT_DeviceDescription_DebugString)                        \
  F(PJRT_DeviceDescription_ToString)                           \
  F(PJRT_Device_GetDescription)                                \
  F(PJRT_Device_IsAddressable)                                 \
  F(PJRT_Device_LocalHardwareId)                               \
  F(PJRT_Device_AddressableMemories)                           \
  F(PJRT_Device_DefaultMemory)                                 \
  F(PJRT_Device_MemoryStats)                                   \
  F(PJRT_Memory_Id)                                            \
  F(PJRT_Memory_Kind)                                          \
  F(PJRT_Memory_DebugString)                                   \
  F(PJRT_Memory_ToString)                                      \
  F(PJRT_Memory_AddressableByDevices)                          \
  F(PJRT_Executable_Destroy)                                   \
  F(PJRT_Executable_Name)                                      \
  F(PJRT_Executable_NumReplicas)                               \
  F(PJRT_Executable_NumPartitions)                             \
  F(PJRT_Executable_NumOutputs)                                \
  F(PJRT_Executable_SizeOfGeneratedCodeInBytes)                \
  F(PJRT_Executable_GetCostAnalysis)                           \
  F(PJRT_Executable_OutputMemoryKinds)                         \
  F(PJRT_Executable_OptimizedProgram)                          \
  F(PJRT_Executable_Serialize)                                 \
  F(PJRT_LoadedExecutable_Destroy)                             \
  F(PJRT_LoadedExecutable_GetExecutable)                       \
  F(PJRT_LoadedExecutable_AddressableDevices)                  \
  F(PJRT_LoadedExecutable_Delete)                              \
  F(PJRT_LoadedExecutable_IsDeleted)                           \
  F(PJRT_LoadedExecutable_Execute)                             \
  F(PJRT_Executable_DeserializeAndLoad)                        \
  F(PJRT_LoadedExecutable_Fingerprint)                         \
  F(PJRT_Buffer_Destroy)                                       \
  F(PJRT_Buffer_ElementType)                                   \
  F(PJRT_Buffer_Dimensions)                                    \
  F(PJRT_Buffer_UnpaddedDimensions)                            \
  F(PJRT_Buffer_DynamicDimensionIndices)                       \
  F(PJRT_Buffer_GetMemoryLayout)                               \
  F(PJRT_Buffer_OnDeviceSizeInBytes)                           \
  F(PJRT_Buffer_Device)                                        \
  F(PJRT_Buffer_Memory)                                        \
  F(PJRT_Buffer_Delete)                                        \
  F(PJRT_Buffer_IsDeleted)                                     \
  F(PJRT_Buffer_CopyToDevice)                                  \
  F(PJRT_Buffer_ToHostBuffer)                                  \
  F(PJRT_Buffer_IsOnCpu)                                       \
  F(PJRT_Buffer_ReadyEvent)                                    \
  F(PJRT_Buffer_UnsafePointer)                                 \
  F(PJRT_Buffer_IncreaseExternalReferenceCount)                \
  F(PJRT_Buffer_DecreaseExternalReferenceCount)                \
  F(PJRT_Buffer_OpaqueDeviceMemoryDataPointer)                 \
  F(PJRT_CopyToDeviceStream_Destroy)                           \
  F(PJRT_CopyToDeviceStream_AddChunk)                          \
  F(PJRT_CopyToDeviceStream_TotalBytes)                        \
  F(PJRT_CopyToDeviceStream_GranuleSize)                       \
  F(PJRT_CopyToDeviceStream_CurrentBytes)                      \
  F(PJRT_TopologyDescription_Create)                           \
  F(PJRT_TopologyDescription_Destroy)                          \
  F(PJRT_TopologyDescription_PlatformName)                     \
  F(PJRT_TopologyDescription_PlatformVersion)                  \
  F(PJRT_TopologyDescription_GetDeviceDescriptions)            \
  F(PJRT_TopologyDescription_Serialize)                        \
  F(PJRT_TopologyDescription_Attributes)                       \
  F(PJRT_Compile)                                              \
  F(PJRT_Executable_OutputElementTypes)                        \
  F(PJRT_Executable_OutputDimensions)                          \
  F(PJRT_Buffer_CopyToMemory)                                  \
  F(PJRT_Client_CreateViewOfDeviceBuffer)                      \
  F(PJRT_Executable_Fingerprint)                               \
  F(PJRT_Client_TopologyDescription)                           \
  F(PJRT_Executable_GetCompiledMemoryStats)                    \
  F(PJRT_Memory_Kind_Id)                                       \
  F(PJRT_ExecuteContext_Create)                                \
  F(PJRT_ExecuteContext_Destroy)                               \
  F(PJRT_Buffer_CopyRawToHost)                                 \
  F(PJRT_AsyncHostToDeviceTransferManager_Destroy)             \
  F(PJRT_AsyncHostToDeviceTransferManager_TransferData)        \
  F(PJRT_Client_CreateBuffersForAsyncHostToDevice)             \
  F(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer)      \
  F(PJRT_AsyncHostToDeviceTransferManager_Device)              \
  F(PJRT_AsyncHostToDeviceTransferManager_BufferCount)         \
  F(PJRT_AsyncHostToDeviceTransferManager_BufferSize)          \
  F(PJRT_AsyncHostToDeviceTransferManager_SetBufferError)      \
  F(PJRT_AsyncHostToDeviceTransferManager_AddMetadata)         \
  F(PJRT_Client_DmaMap)                                        \
  F(PJRT_Client_DmaUnmap)                                      \
  F(PJRT_Client_CreateUninitializedBuffer)                     \
  F(PJRT_Client_UpdateGlobalProcessInfo)                       \
  F(PJRT_TopologyDescription_Deserialize)                      \
  F(PJRT_Client_CreateAliasBuffer)                             \
  F(PJRT_Client_FulfillAliasBuffer)                            \
  F(PJRT_LoadedExecutable_GetDeviceAssignment)                 \
  F(PJRT_Client_CreateErrorBuffer)                             \
  F(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral)     \
  F(PJRT_Buffer_CopyRawToHostFuture)                           \
  F(PJRT_Device_PoisonExecution)                               \
  F(PJRT_Device_CreateAsyncTrackingEvent)                      \
  F(PJRT_AsyncTrackingEvent_Destroy)                           \
  F(PJRT_Executable_GetCompileOptions)                         \
  F(PJRT_Buffer_DonateWithControlDependency)                   \
  F(PJRT_Event_Create)                                         \
  F(PJRT_Event_Set)                                            \
  F(PJRT_Device_GetAttributes)                                 \
  F(PJRT_Client_Load)                                          \
  F(PJRT_LoadedExecutable_AddressableDeviceLogicalIds)         \
  F(PJRT_Buffer_Bitcast)                                       \
  F(PJRT_Error_ForEachPayload)                                 \
  F(PJRT_TopologyDescription_Fingerprint)                      \
  F(PJRT_Executable_ParameterMemoryKinds)                      \
  F(PJRT_Device_ClearMemoryStats)                              \
  F(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace) \
  F(PJRT_TopologyDescription_GetMemorySpaceKindIds)

#define CX_PJRT_SLOT(name) PJRT_Error *(*name)(name##_Args * args);
#define CX_PJRT_VOID_SLOT(name) void (*name)(name##_Args * args);
typedef struct PJRT_Api {
  CX_PJRT_HEAD;
  PJRT_Api_Version pjrt_api_version;
  CX_PJRT_FUNCTIONS(CX_PJRT_SLOT, CX_PJRT_VOID_SLOT)
} PJRT_Api;
CX_PJRT_SIZE(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds, 1144);

// What a plugin exports under the name "GetPjrtApi": its static table.
typedef const PJRT_Api *(*cx_abi_get_api_fn)(void);

#endif
