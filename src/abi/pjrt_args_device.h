// abi/pjrt_args_device: arguments of the functions on devices, memories and
// topologies.
//
// `out` fields are written by the plugin, all others by the caller.
#ifndef CX_ABI_PJRT_ARGS_DEVICE_H
#define CX_ABI_PJRT_ARGS_DEVICE_H

#include "abi/pjrt_types.h"

// ---- device descriptions: what a device is ----

CX_PJRT_VALUE_ARGS(PJRT_DeviceDescription_Id, PJRT_DeviceDescription,
                   device_description, int, id);
CX_PJRT_VALUE_ARGS(PJRT_DeviceDescription_ProcessIndex, PJRT_DeviceDescription,
                   device_description, int, process_index);

typedef struct PJRT_DeviceDescription_Attributes_Args {
  CX_PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  size_t num_attributes;              // out
  const PJRT_NamedValue *attributes;  // out
} PJRT_DeviceDescription_Attributes_Args;
CX_PJRT_SIZE(PJRT_DeviceDescription_Attributes_Args, attributes, 40);

CX_PJRT_TEXT_ARGS(PJRT_DeviceDescription_Kind, PJRT_DeviceDescription,
                  device_description, device_kind);
CX_PJRT_TEXT_ARGS(PJRT_DeviceDescription_DebugString, PJRT_DeviceDescription,
                  device_description, debug_string);
CX_PJRT_TEXT_ARGS(PJRT_DeviceDescription_ToString, PJRT_DeviceDescription,
                  device_description, to_string);

// ---- devices of a client ----

CX_PJRT_VALUE_ARGS(PJRT_Device_GetDescription, PJRT_Device, device,
                   PJRT_DeviceDescription *, device_description);
CX_PJRT_VALUE_ARGS(PJRT_Device_IsAddressable, PJRT_Device, device, bool,
                   is_addressable);
CX_PJRT_VALUE_ARGS(PJRT_Device_LocalHardwareId, PJRT_Device, device, int,
                   local_hardware_id);
CX_PJRT_LIST_ARGS(PJRT_Device_AddressableMemories, PJRT_Device, device,
                  PJRT_Memory *const, memories, num_memories);
CX_PJRT_VALUE_ARGS(PJRT_Device_DefaultMemory, PJRT_Device, device,
                   PJRT_Memory *, memory);

typedef struct PJRT_Device_MemoryStats_Args {
  CX_PJRT_HEAD;
  PJRT_Device *device;
  int64_t bytes_in_use;                  // out
  int64_t peak_bytes_in_use;             // out
  bool peak_bytes_in_use_is_set;         // out
  int64_t num_allocs;                    // out
  bool num_allocs_is_set;                // out
  int64_t largest_alloc_size;            // out
  bool largest_alloc_size_is_set;        // out
  int64_t bytes_limit;                   // out
  bool bytes_limit_is_set;               // out
  int64_t bytes_reserved;                // out
  bool bytes_reserved_is_set;            // out
  int64_t peak_bytes_reserved;           // out
  bool peak_bytes_reserved_is_set;       // out
  int64_t bytes_reservable_limit;        // out
  bool bytes_reservable_limit_is_set;    // out
  int64_t largest_free_block_bytes;      // out
  bool largest_free_block_bytes_is_set;  // out
  int64_t pool_bytes;                    // out
  bool pool_bytes_is_set;                // out
  int64_t peak_pool_bytes;               // out
  bool peak_pool_bytes_is_set;           // out
  int64_t peak_allocated_bytes;          // out, from 0.113
  bool peak_allocated_bytes_is_set;      // out, from 0.113
} PJRT_Device_MemoryStats_Args;
CX_PJRT_SIZE(PJRT_Device_MemoryStats_Args, peak_allocated_bytes_is_set, 201);

CX_PJRT_OBJECT_ARGS(PJRT_Device_ClearMemoryStats, PJRT_Device, device);

typedef struct PJRT_Device_PoisonExecution_Args {
  CX_PJRT_HEAD;
  PJRT_Device *device;
  int32_t launch_id;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  bool poisoned;                   // out
  const PJRT_NamedValue *payload;  // from 0.100
  size_t num_payload;              // from 0.100
} PJRT_Device_PoisonExecution_Args;
CX_PJRT_SIZE(PJRT_Device_PoisonExecution_Args, num_payload, 72);

typedef struct PJRT_Device_GetAttributes_Args {
  CX_PJRT_HEAD;
  PJRT_Device *device;
  const PJRT_NamedValue *attributes;                                      // out
  size_t num_attributes;                                                  // out
  PJRT_Device_Attributes *device_attributes;                              // out
  void (*attributes_deleter)(PJRT_Device_Attributes *device_attributes);  // out
} PJRT_Device_GetAttributes_Args;
CX_PJRT_SIZE(PJRT_Device_GetAttributes_Args, attributes_deleter, 56);

typedef struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  CX_PJRT_HEAD;
  PJRT_Device *device;
  const char *description;
  size_t description_size;
  PJRT_AsyncTrackingEvent *event;  // out
} PJRT_Device_CreateAsyncTrackingEvent_Args;
CX_PJRT_SIZE(PJRT_Device_CreateAsyncTrackingEvent_Args, event, 48);

CX_PJRT_OBJECT_ARGS(PJRT_AsyncTrackingEvent_Destroy, PJRT_AsyncTrackingEvent,
                    event);

// ---- memories ----

CX_PJRT_VALUE_ARGS(PJRT_Memory_Id, PJRT_Memory, memory, int, id);
CX_PJRT_TEXT_ARGS(PJRT_Memory_Kind, PJRT_Memory, memory, kind);
CX_PJRT_VALUE_ARGS(PJRT_Memory_Kind_Id, PJRT_Memory, memory, int, kind_id);
CX_PJRT_TEXT_ARGS(PJRT_Memory_DebugString, PJRT_Memory, memory, debug_string);
CX_PJRT_TEXT_ARGS(PJRT_Memory_ToString, PJRT_Memory, memory, to_string);
CX_PJRT_LIST_ARGS(PJRT_Memory_AddressableByDevices, PJRT_Memory, memory,
                  PJRT_Device *const, devices, num_devices);

// ---- topologies: devices that need not be there ----

typedef struct PJRT_TopologyDescription_Create_Args {
  CX_PJRT_HEAD;
  const char *topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue *create_options;
  size_t num_options;
  PJRT_TopologyDescription *topology;  // out
} PJRT_TopologyDescription_Create_Args;
CX_PJRT_SIZE(PJRT_TopologyDescription_Create_Args, topology, 56);

CX_PJRT_OBJECT_ARGS(PJRT_TopologyDescription_Destroy, PJRT_TopologyDescription,
                    topology);
CX_PJRT_TEXT_ARGS(PJRT_TopologyDescription_PlatformVersion,
                  PJRT_TopologyDescription, topology, platform_version);
CX_PJRT_TEXT_ARGS(PJRT_TopologyDescription_PlatformName,
                  const PJRT_TopologyDescription, topology, platform_name);
CX_PJRT_LIST_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions,
                  const PJRT_TopologyDescription, topology,
                  PJRT_DeviceDescription *const, descriptions,
                  num_descriptions);

typedef struct PJRT_TopologyDescription_Serialize_Args {
  CX_PJRT_HEAD;
  PJRT_TopologyDescription *topology;
  const char *serialized_bytes;                  // out
  size_t serialized_bytes_size;                  // out
  PJRT_SerializedTopology *serialized_topology;  // out
  void (*serialized_topology_deleter)(
      PJRT_SerializedTopology *serialized_topology);  // out
} PJRT_TopologyDescription_Serialize_Args;
CX_PJRT_SIZE(PJRT_TopologyDescription_Serialize_Args,
             serialized_topology_deleter, 56);

typedef struct PJRT_TopologyDescription_Deserialize_Args {
  CX_PJRT_HEAD;
  const char *serialized_topology;
  size_t serialized_topology_size;
  PJRT_TopologyDescription *topology;  // out
} PJRT_TopologyDescription_Deserialize_Args;
CX_PJRT_SIZE(PJRT_TopologyDescription_Deserialize_Args, topology, 40);

CX_PJRT_LIST_ARGS(PJRT_TopologyDescription_Attributes, PJRT_TopologyDescription,
                  topology, const PJRT_NamedValue, attributes, num_attributes);
CX_PJRT_VALUE_ARGS(PJRT_TopologyDescription_Fingerprint,
                   const PJRT_TopologyDescription, topology, uint64_t,
                   fingerprint);

typedef struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  CX_PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  int memory_space_kind_id;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout *layout;
  const char *serialized_shape;                    // out
  size_t serialized_shape_size;                    // out
  void (*serialized_shape_deleter)(const char *);  // out
} PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args;
CX_PJRT_SIZE(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args,
             serialized_shape_deleter, 88);

CX_PJRT_LIST_ARGS(PJRT_TopologyDescription_GetMemorySpaceKindIds,
                  const PJRT_TopologyDescription, topology, const int,
                  memory_space_kind_ids, num_memory_space_kind_ids);

#endif
