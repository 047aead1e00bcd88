// pjrt/client: a plugin's client and its addressable devices.
//
// The devices are described once, when the client is opened. The client lives
// until the user has closed it and the last of its buffers and executables is
// released.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "pjrt/internal.h"

#define DEVICE_LIMIT (1 << 16)
#define MEMORY_LIMIT 64

// ---- lifetime ----

static void device_clear(cx_pjrt_device *d)
{
  for (size_t i = 0; i < d->n_memories; i++) cx_free(d->memories[i]);
  cx_free(d->memories);
  cx_free(d->kind);
  cx_free(d->text);
}

static void client_free(cx_pjrt_client *c)
{
  if (c->raw != NULL) {
    CX_PJRT_DESTROY(c->plugin, PJRT_Client, .client = c->raw);
  }
  for (size_t i = 0; i < c->n_devices; i++) device_clear(&c->devices[i]);
  cx_free(c->devices);
  cx_free(c->platform);
  cx_free(c->platform_version);
  cx_free(c);
  cx_pjrt_count(-1);
}

void cx_pjrt_client_retain(cx_pjrt_client *c)
{
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void cx_pjrt_client_release(cx_pjrt_client *c)
{
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) {
    client_free(c);
  }
}

void cx_pjrt_client_close(cx_pjrt_client *c)
{
  if (c != NULL) cx_pjrt_client_release(c);
}

// ---- opening ----

static calx_status *create(cx_pjrt_client *c,
                           const cx_pjrt_client_options *asked)
{
  cx_pjrt_option *options = NULL;
  PJRT_NamedValue *values = NULL;
  size_t n = 0;
  if (asked != NULL && asked->world != NULL) c->world = *asked->world;
  CALX_TRY(cx_pjrt_client_defaults(c->plugin, asked, &options, &n));
  calx_status *status = cx_pjrt_values_make(options, n, &values);
  if (status == NULL) {
    CX_PJRT_DECLARE(args, PJRT_Client_Create, .create_options = values,
                    .num_options = n);
    cx_pjrt_world_callbacks(c, &args);
    status = CX_PJRT_CALL(c->plugin, PJRT_Client_Create, &args);
    if (status != NULL && atomic_load(&c->plugin->automatic)) {
      status = cx_pjrt_annotate_automatic(c->plugin->name, status);
    }
    if (status == NULL) {
      c->raw = args.client;
      status = cx_pjrt_check_object(c->plugin, c->raw, "client");
    }
  }
  cx_free(values);
  cx_free(options);
  return status;
}

static calx_status *ask_platform(cx_pjrt_client *c)
{
  CX_PJRT_DECLARE(name, PJRT_Client_PlatformName, .client = c->raw);
  CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_Client_PlatformName, &name));
  c->platform = cx_pjrt_string(name.platform_name, name.platform_name_size);
  CX_PJRT_DECLARE(version, PJRT_Client_PlatformVersion, .client = c->raw);
  cx_pjrt_ignore(
      CX_PJRT_CALL(c->plugin, PJRT_Client_PlatformVersion, &version));
  c->platform_version =
      cx_pjrt_string(version.platform_version, version.platform_version_size);
  bool ok = c->platform != NULL && c->platform_version != NULL;
  return ok ? NULL : cx_out_of_memory();
}

// Kind and text only appear in messages: a plugin may lack them.
static calx_status *ask_description(cx_pjrt_client *c, cx_pjrt_device *d)
{
  PJRT_DeviceDescription *about = NULL;
  CALX_TRY(cx_pjrt_device_describe(c->plugin, d->raw, &about, &d->id));
  CX_PJRT_DECLARE(kind, PJRT_DeviceDescription_Kind,
                  .device_description = about);
  cx_pjrt_ignore(CX_PJRT_CALL(c->plugin, PJRT_DeviceDescription_Kind, &kind));
  d->kind = cx_pjrt_string(kind.device_kind, kind.device_kind_size);
  CX_PJRT_DECLARE(text, PJRT_DeviceDescription_ToString,
                  .device_description = about);
  cx_pjrt_ignore(
      CX_PJRT_CALL(c->plugin, PJRT_DeviceDescription_ToString, &text));
  d->text = cx_pjrt_string(text.to_string, text.to_string_size);
  bool ok = d->kind != NULL && d->text != NULL;
  return ok ? NULL : cx_out_of_memory();
}

static char *ask_memory_kind(cx_pjrt_client *c, PJRT_Memory *memory)
{
  CX_PJRT_DECLARE(args, PJRT_Memory_Kind, .memory = memory);
  if (memory != NULL) {
    cx_pjrt_ignore(CX_PJRT_CALL(c->plugin, PJRT_Memory_Kind, &args));
  }
  return cx_pjrt_string(args.kind, args.kind_size);
}

// A plugin need not describe its memories.
static calx_status *ask_memories(cx_pjrt_client *c, cx_pjrt_device *d)
{
  CX_PJRT_DECLARE(args, PJRT_Device_AddressableMemories, .device = d->raw);
  calx_status *status =
      CX_PJRT_CALL(c->plugin, PJRT_Device_AddressableMemories, &args);
  bool reported = status == NULL && args.memories != NULL;
  cx_pjrt_ignore(status);
  if (!reported) return NULL;
  size_t n =
      args.num_memories < MEMORY_LIMIT ? args.num_memories : MEMORY_LIMIT;
  d->memories = cx_calloc(n, sizeof *d->memories);
  if (d->memories == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    d->memories[i] = ask_memory_kind(c, args.memories[i]);
    if (d->memories[i] == NULL) return cx_out_of_memory();
    d->n_memories = i + 1;
  }
  return NULL;
}

// A plugin that does not report the devices of other processes has none of
// them.
static void count_everywhere(cx_pjrt_client *c)
{
  CX_PJRT_DECLARE(args, PJRT_Client_Devices, .client = c->raw);
  cx_pjrt_ignore(CX_PJRT_CALL(c->plugin, PJRT_Client_Devices, &args));
  c->n_everywhere =
      args.num_devices > c->n_devices ? args.num_devices : c->n_devices;
}

static calx_status *ask_devices(cx_pjrt_client *c)
{
  CX_PJRT_DECLARE(args, PJRT_Client_AddressableDevices, .client = c->raw);
  CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_Client_AddressableDevices, &args));
  size_t n = args.num_addressable_devices;
  if (n == 0 || n > DEVICE_LIMIT || args.addressable_devices == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "plugin '%s' has no usable device, it reports %zu",
                    c->plugin->name, n);
  }
  c->devices = cx_calloc(n, sizeof *c->devices);
  if (c->devices == NULL) return cx_out_of_memory();
  c->n_devices = n;
  for (size_t i = 0; i < n; i++) {
    cx_pjrt_device *d = &c->devices[i];
    d->raw = args.addressable_devices[i];
    if (d->raw == NULL) {
      return cx_error(CALX_INTERNAL, "plugin '%s' returned no device %zu",
                      c->plugin->name, i);
    }
    CALX_TRY(ask_description(c, d));
    CALX_TRY(ask_memories(c, d));
  }
  count_everywhere(c);
  return NULL;
}

calx_status *cx_pjrt_client_open(cx_pjrt_plugin *plugin,
                                 const cx_pjrt_client_options *options,
                                 cx_pjrt_client **out_client)
{
  *out_client = NULL;
  cx_file_keep_standard();
  cx_pjrt_client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  cx_pjrt_count(1);
  atomic_init(&c->refs, 1);
  c->plugin = plugin;
  calx_status *status = create(c, options);
  if (status == NULL) status = ask_platform(c);
  if (status == NULL) status = ask_devices(c);
  if (status != NULL) {
    client_free(c);
    return status;
  }
  *out_client = c;
  return NULL;
}

// ---- questions ----

cx_pjrt_plugin *cx_pjrt_client_plugin(const cx_pjrt_client *c)
{
  return c->plugin;
}

const char *cx_pjrt_client_platform(const cx_pjrt_client *c)
{
  return c->platform;
}

const char *cx_pjrt_client_platform_version(const cx_pjrt_client *c)
{
  return c->platform_version;
}

bool cx_pjrt_client_is_own(const cx_pjrt_client *c)
{
  return c->plugin->is_own;
}

size_t cx_pjrt_client_world_count(const cx_pjrt_client *c)
{
  return c->n_everywhere;
}

size_t cx_pjrt_client_device_count(const cx_pjrt_client *c)
{
  return c->n_devices;
}

const cx_pjrt_device *cx_pjrt_client_device(const cx_pjrt_client *c,
                                            size_t device)
{
  return &c->devices[device];
}

size_t cx_pjrt_device_index(const cx_pjrt_client *c, const PJRT_Device *raw)
{
  size_t i = 0;
  while (i < c->n_devices && c->devices[i].raw != raw) i++;
  return i;
}

calx_status *cx_pjrt_check_device(const cx_pjrt_client *c, size_t device)
{
  if (device < c->n_devices) return NULL;
  return cx_invalid("device %zu was asked for, platform '%s' has %zu here",
                    device, c->platform, c->n_devices);
}

calx_status *cx_pjrt_device_memory_stats(cx_pjrt_client *c, size_t device,
                                         cx_pjrt_memory_stats *out)
{
  *out = (cx_pjrt_memory_stats){ -1, -1, -1 };
  CALX_TRY(cx_pjrt_check_device(c, device));
  CX_PJRT_DECLARE(args, PJRT_Device_MemoryStats,
                  .device = c->devices[device].raw, .bytes_in_use = -1);
  CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_Device_MemoryStats, &args));
  out->bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) {
    out->peak_bytes_in_use = args.peak_bytes_in_use;
  }
  if (args.bytes_limit_is_set) out->bytes_limit = args.bytes_limit;
  return NULL;
}
