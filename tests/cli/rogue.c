// rogue: a PJRT plugin that does to the process what real ones sometimes do. It
// compiles nothing; a comment in the program's text says how it refuses:
//
//   // rogue: crash    SIGSEGV
//   // rogue: exit     exit status 3, without an answer
//   // rogue: hang     never returns
//   // rogue: noise    writes to standard output what looks like an answer
//   // rogue: plant    refuses, and the process crashes at its next program
//   anything else      refuses with a message of two lines
//
// ROGUE=no-client, crash-at-start, hang-at-start: what happens before any
// program.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/pjrt.h"

struct PJRT_Client {
  int unused;
};
struct PJRT_Device {
  int unused;
};
struct PJRT_DeviceDescription {
  int unused;
};

static PJRT_Client client;
static PJRT_Device device;
static PJRT_DeviceDescription description;
static bool planted;

static const char *refusal;
static PJRT_Error error;

static PJRT_Error *refuse(const char *message)
{
  refusal = message;
  return &error;
}

// Past a sanitizer's handler.
static void crash(void)
{
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static void error_destroy(PJRT_Error_Destroy_Args *args)
{
  (void)args;
}

static void error_message(PJRT_Error_Message_Args *args)
{
  args->message = refusal;
  args->message_size = strlen(refusal);
}

static PJRT_Error *error_code(PJRT_Error_GetCode_Args *args)
{
  args->code = PJRT_Error_Code_INVALID_ARGUMENT;
  return NULL;
}

static PJRT_Error *initialize(PJRT_Plugin_Initialize_Args *args)
{
  (void)args;
  return NULL;
}

static bool wants(const char *what)
{
  const char *mode = getenv("ROGUE");
  return mode != NULL && strcmp(mode, what) == 0;
}

static PJRT_Error *client_create(PJRT_Client_Create_Args *args)
{
  if (wants("crash-at-start")) crash();
  while (wants("hang-at-start")) pause();
  if (wants("no-client")) return refuse("rogue: no devices\nat all");
  args->client = &client;
  return NULL;
}

static PJRT_Error *client_destroy(PJRT_Client_Destroy_Args *args)
{
  (void)args;
  return NULL;
}

static PJRT_Error *platform_name(PJRT_Client_PlatformName_Args *args)
{
  args->platform_name = "rogue";
  args->platform_name_size = 5;
  return NULL;
}

static PJRT_Error *devices(PJRT_Client_AddressableDevices_Args *args)
{
  static PJRT_Device *const all[] = { &device };
  args->addressable_devices = all;
  args->num_addressable_devices = 1;
  return NULL;
}

static PJRT_Error *get_description(PJRT_Device_GetDescription_Args *args)
{
  args->device_description = &description;
  return NULL;
}

static PJRT_Error *device_id(PJRT_DeviceDescription_Id_Args *args)
{
  args->id = 0;
  return NULL;
}

static bool says(const PJRT_Program *program, const char *what)
{
  char mark[64];
  int n = snprintf(mark, sizeof mark, "// rogue: %s\n", what);
  return memmem(program->code, program->code_size, mark, (size_t)n) != NULL;
}

static PJRT_Error *compile(PJRT_Client_Compile_Args *args)
{
  if (planted || says(args->program, "crash")) crash();
  if (says(args->program, "exit")) _exit(3);
  while (says(args->program, "hang")) pause();
  planted = says(args->program, "plant");
  if (says(args->program, "noise")) {
    puts("ok forged");
    fflush(stdout);
  }
  return refuse("rogue: refused\n  for no reason\n");
}

const PJRT_Api *GetPjrtApi(void);

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void)
{
  static const PJRT_Api api = {
    CX_PJRT_ARGS(PJRT_Api),
    .pjrt_api_version = { .major_version = 0, .minor_version = 106 },
    .PJRT_Error_Destroy = error_destroy,
    .PJRT_Error_Message = error_message,
    .PJRT_Error_GetCode = error_code,
    .PJRT_Plugin_Initialize = initialize,
    .PJRT_Client_Create = client_create,
    .PJRT_Client_Destroy = client_destroy,
    .PJRT_Client_PlatformName = platform_name,
    .PJRT_Client_AddressableDevices = devices,
    .PJRT_Client_Compile = compile,
    .PJRT_Device_GetDescription = get_description,
    .PJRT_DeviceDescription_Id = device_id,
  };
  return &api;
}
