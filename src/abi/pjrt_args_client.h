// abi/pjrt_args_client: arguments of the functions on errors, the plugin,
// events and clients.
//
// `out` fields are written by the plugin, all others by the caller. Strings and
// lists that come out belong to the object they were asked of and live as long
// as it, unless a deleter comes with them.
#ifndef CX_ABI_PJRT_ARGS_CLIENT_H
#define CX_ABI_PJRT_ARGS_CLIENT_H

#include "abi/pjrt_types.h"

// ---- errors ----

CX_PJRT_OBJECT_ARGS(PJRT_Error_Destroy, PJRT_Error, error);
CX_PJRT_TEXT_ARGS(PJRT_Error_Message, const PJRT_Error, error, message);
CX_PJRT_VALUE_ARGS(PJRT_Error_GetCode, const PJRT_Error, error, PJRT_Error_Code,
                   code);

typedef struct PJRT_Error_ForEachPayload_Args {
  CX_PJRT_HEAD;
  const PJRT_Error *error;
  PJRT_Error_PayloadVisitor visitor;
  void *user_arg;
} PJRT_Error_ForEachPayload_Args;
CX_PJRT_SIZE(PJRT_Error_ForEachPayload_Args, user_arg, 40);

// ---- the plugin itself ----

typedef struct PJRT_Plugin_Initialize_Args {
  CX_PJRT_HEAD;
} PJRT_Plugin_Initialize_Args;
CX_PJRT_SIZE(PJRT_Plugin_Initialize_Args, extension_start, 16);

typedef struct PJRT_Plugin_Attributes_Args {
  CX_PJRT_HEAD;
  const PJRT_NamedValue *attributes;  // out
  size_t num_attributes;              // out
} PJRT_Plugin_Attributes_Args;
CX_PJRT_SIZE(PJRT_Plugin_Attributes_Args, num_attributes, 32);

// ---- events ----

// Owns the error. Runs in the calling thread when the event is ready already,
// else in one of the plugin.
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg);

CX_PJRT_OBJECT_ARGS(PJRT_Event_Destroy, PJRT_Event, event);
CX_PJRT_VALUE_ARGS(PJRT_Event_IsReady, PJRT_Event, event, bool, is_ready);
CX_PJRT_OBJECT_ARGS(PJRT_Event_Error, PJRT_Event, event);
CX_PJRT_OBJECT_ARGS(PJRT_Event_Await, PJRT_Event, event);

typedef struct PJRT_Event_OnReady_Args {
  CX_PJRT_HEAD;
  PJRT_Event *event;
  PJRT_Event_OnReadyCallback callback;
  void *user_arg;
} PJRT_Event_OnReady_Args;
CX_PJRT_SIZE(PJRT_Event_OnReady_Args, user_arg, 40);

typedef struct PJRT_Event_Create_Args {
  CX_PJRT_HEAD;
  PJRT_Event *event;  // out
} PJRT_Event_Create_Args;
CX_PJRT_SIZE(PJRT_Event_Create_Args, event, 24);

typedef struct PJRT_Event_Set_Args {
  CX_PJRT_HEAD;
  PJRT_Event *event;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_Event_Set_Args;
CX_PJRT_SIZE(PJRT_Event_Set_Args, error_message_size, 48);

// ---- key-value callbacks of a client ----

// Several threads of the plugin call them at once, during the whole life of the
// client. XLA fills only key, key_size, the time, value, value_size,
// callback_error and user_arg: the head holds rubbish. Keys and values are
// bytes, not strings. A value is memory of the callback's side with its
// deleter. An error is made with callback_error.
typedef void (*PJRT_KeyValueGetCallback_ValueDeleter)(char *value);

typedef struct PJRT_KeyValueGetCallback_Args {
  CX_PJRT_HEAD;
  const char *key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError *callback_error;
  void *user_arg;
  char *value;                                                   // out
  size_t value_size;                                             // out
  PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback;  // out
} PJRT_KeyValueGetCallback_Args;
CX_PJRT_SIZE(PJRT_KeyValueGetCallback_Args, value_deleter_callback, 80);

typedef PJRT_Error *(*PJRT_KeyValueGetCallback)(
    PJRT_KeyValueGetCallback_Args *args);

typedef void (*PJRT_KeyValueTryGetCallback_ValueDeleter)(char *value);

typedef struct PJRT_KeyValueTryGetCallback_Args {
  CX_PJRT_HEAD;
  const char *key;
  size_t key_size;
  PJRT_CallbackError *callback_error;
  void *user_arg;
  char *value;                                                      // out
  size_t value_size;                                                // out
  PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback;  // out
} PJRT_KeyValueTryGetCallback_Args;
CX_PJRT_SIZE(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback, 72);

typedef PJRT_Error *(*PJRT_KeyValueTryGetCallback)(
    PJRT_KeyValueTryGetCallback_Args *args);

typedef struct PJRT_KeyValuePutCallback_Args {
  CX_PJRT_HEAD;
  const char *key;
  size_t key_size;
  const char *value;
  size_t value_size;
  PJRT_CallbackError *callback_error;
  void *user_arg;
} PJRT_KeyValuePutCallback_Args;
CX_PJRT_SIZE(PJRT_KeyValuePutCallback_Args, user_arg, 64);

typedef PJRT_Error *(*PJRT_KeyValuePutCallback)(
    PJRT_KeyValuePutCallback_Args *args);

// ---- clients ----

typedef enum PJRT_ProcessState {
  PJRT_ProcessState_kUnspecified = 0,
  PJRT_ProcessState_kUninitialized = 1,
  PJRT_ProcessState_kDisconnected = 2,
  PJRT_ProcessState_kConnected = 3,
  PJRT_ProcessState_kError = 4,
} PJRT_ProcessState;

// The one struct that got its size later (0.75); it has no extension chain.
typedef struct PJRT_ProcessInfo {
  size_t struct_size;  // from 0.75
  int task_id;
  uint64_t incarnation_id;
  PJRT_ProcessState state;
  int error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_ProcessInfo;
CX_PJRT_SIZE(PJRT_ProcessInfo, error_message_size, 48);

typedef struct PJRT_Client_Create_Args {
  CX_PJRT_HEAD;
  const PJRT_NamedValue *create_options;
  size_t num_options;
  PJRT_KeyValueGetCallback kv_get_callback;  // NULL: single process
  void *kv_get_user_arg;
  PJRT_KeyValuePutCallback kv_put_callback;
  void *kv_put_user_arg;
  PJRT_Client *client;                              // out
  PJRT_KeyValueTryGetCallback kv_try_get_callback;  // from 0.61
  void *kv_try_get_user_arg;                        // from 0.61
} PJRT_Client_Create_Args;
CX_PJRT_SIZE(PJRT_Client_Create_Args, kv_try_get_user_arg, 88);

CX_PJRT_OBJECT_ARGS(PJRT_Client_Destroy, PJRT_Client, client);
CX_PJRT_TEXT_ARGS(PJRT_Client_PlatformName, PJRT_Client, client, platform_name);
CX_PJRT_VALUE_ARGS(PJRT_Client_ProcessIndex, PJRT_Client, client, int,
                   process_index);
CX_PJRT_TEXT_ARGS(PJRT_Client_PlatformVersion, PJRT_Client, client,
                  platform_version);
CX_PJRT_VALUE_ARGS(PJRT_Client_TopologyDescription, PJRT_Client, client,
                   PJRT_TopologyDescription *, topology);
CX_PJRT_LIST_ARGS(PJRT_Client_Devices, PJRT_Client, client, PJRT_Device *const,
                  devices, num_devices);
CX_PJRT_LIST_ARGS(PJRT_Client_AddressableDevices, PJRT_Client, client,
                  PJRT_Device *const, addressable_devices,
                  num_addressable_devices);

typedef struct PJRT_Client_LookupDevice_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  int id;
  PJRT_Device *device;  // out
} PJRT_Client_LookupDevice_Args;
CX_PJRT_SIZE(PJRT_Client_LookupDevice_Args, device, 40);

typedef struct PJRT_Client_LookupAddressableDevice_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  int local_hardware_id;
  PJRT_Device *addressable_device;  // out
} PJRT_Client_LookupAddressableDevice_Args;
CX_PJRT_SIZE(PJRT_Client_LookupAddressableDevice_Args, addressable_device, 40);

typedef struct PJRT_Client_UpdateGlobalProcessInfo_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_ProcessInfo *process_infos;
  size_t num_process_infos;
} PJRT_Client_UpdateGlobalProcessInfo_Args;
CX_PJRT_SIZE(PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos, 40);

CX_PJRT_LIST_ARGS(PJRT_Client_AddressableMemories, PJRT_Client, client,
                  PJRT_Memory *const, addressable_memories,
                  num_addressable_memories);

typedef struct PJRT_Client_DefaultDeviceAssignment_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int *default_assignment;  // in, out: replicas x partitions
} PJRT_Client_DefaultDeviceAssignment_Args;
CX_PJRT_SIZE(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment, 48);

#endif
