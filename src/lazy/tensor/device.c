// lazy/tensor/device: one client for the process, its devices, and each
// device's stream of random numbers.
//
// The plugin is opened at the first use and kept until calx_shutdown(), see
// shutdown.c. After a failure the next use tries again, and reports what it
// finds.
#include "calx/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "calx/spmd.h"
#include "lazy/internal.h"
#include "profiler/profiler.h"
#include "world/world.h"

static struct {
  cx_mutex lock;
  atomic_bool open;
  bool for_ranks;  // opened by cx_lazy_devices_claim()
  bool sharded;    // one device that stands for all: calx_use_spmd()
  pid_t process;   // that opened it
  cx_pjrt_client *client;
  calx_device *devices;
  int count;
} world = { .lock = CX_MUTEX_INIT };

bool cx_lazy_devices_are_open(void)
{
  return atomic_load_explicit(&world.open, memory_order_acquire);
}

static void device_init(calx_device *d, int index, cx_pjrt_client *client)
{
  d->index = index;
  snprintf(d->name, sizeof d->name, "xla:%d", index);
  d->client = client;
  cx_mutex_init(&d->lock);
}

static const char *launcher_name(cx_world_launcher launcher)
{
  switch (launcher) {
    case CX_WORLD_LAUNCHER_NONE: break;
    case CX_WORLD_LAUNCHER_CALX: return "calx run";
    case CX_WORLD_LAUNCHER_TORCHRUN: return "torchrun";
    case CX_WORLD_LAUNCHER_MPICH: return "MPICH";
    case CX_WORLD_LAUNCHER_OPENMPI: return "Open MPI";
    case CX_WORLD_LAUNCHER_PMIX: return "PMIx";
    case CX_WORLD_LAUNCHER_SLURM: return "Slurm";
  }
  return "a launcher";
}

// One of several processes that a launcher started, and a device is used before
// they met: their models will have nothing to do with each other.
static void report_alone(void)
{
  cx_world_info rank;
  calx_status *status = cx_world_find(&rank);
  if (status == NULL && rank.processes > 1) {
    cx_log_once_per_site("alone",
                         "process %d of %d, started by %s, trains alone: "
                         "calx_launch was not called before a device was used",
                         rank.process, rank.processes,
                         launcher_name(rank.launcher));
  }
  calx_status_free(status);
}

static calx_status *open_client(cx_pjrt_plugin *plugin, cx_pjrt_client **out)
{
  if (!cx_world_joined() && !world.sharded) report_alone();
  const cx_world_info *here = cx_world_self();
  const cx_world_group near = cx_world_local_group();
  cx_pjrt_world w = { .process = here->process,
                      .processes = here->processes,
                      .local_process = here->local_process,
                      .local_processes = here->local_processes,
                      .host = near.group,
                      .hosts = near.groups,
                      .host_first = near.first,
                      .host_processes = near.count,
                      .segment_fd = near.segment_fd,
                      .get = cx_world_store_get,
                      .try_get = cx_world_store_try_get,
                      .put = cx_world_store_put };
  return cx_annotate(cx_pjrt_client_open(
                         plugin, &(cx_pjrt_client_options){ .world = &w }, out),
                     "`calx doctor` looks for the cause");
}

enum { EXIT_WAIT_MS = 2000 };

// Locks and executions belong to the process that opened the devices, and
// another thread may hold the locks for as long as it compiles.
static void report_late(void)
{
  if (!atomic_load(&world.open) || world.process != getpid()) return;
  calx_log_set(NULL, NULL);  // what a callback logs to may be gone by now
  int64_t end = cx_now_ns() + EXIT_WAIT_MS * INT64_C(1000000);
  for (int i = 0; i < world.count; i++) {
    calx_status *late = NULL;
    while (late == NULL && cx_lazy_flight_try(&world.devices[i], &late) &&
           cx_now_ns() < end) {
      nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    cx_lazy_log_untaken(late);
  }
}

// Under world.lock.
static calx_status *open_world(void)
{
  cx_pjrt_plugin *plugin;
  CALX_TRY(cx_pjrt_plugin_open(NULL, &plugin));
  cx_pjrt_client *client;
  CALX_TRY(open_client(plugin, &client));
  size_t n = cx_pjrt_client_device_count(client);
  if (world.sharded && n > 1) n = 1;
  calx_device *devices = cx_calloc(n + 1, sizeof *devices);
  if (n == 0 || devices == NULL) {
    cx_free(devices);
    calx_status *status =
        n != 0 ? cx_out_of_memory()
               : cx_error(CALX_NOT_FOUND, "plugin %s ('%s') has no device here",
                          cx_pjrt_plugin_name(plugin),
                          cx_pjrt_plugin_path(plugin));
    cx_pjrt_client_close(client);
    return status;
  }
  for (size_t i = 0; i < n; i++) device_init(&devices[i], (int)i, client);
  devices[0].sharded = world.sharded;
  world.client = client;
  world.devices = devices;
  world.count = (int)n;
  world.process = getpid();
  // Behind those of the plugin, which is loaded by now.
  static bool registered;
  if (!registered) registered = atexit(report_late) == 0;
  cx_profiler_open(cx_pjrt_plugin_name(plugin),
                   cx_pjrt_client_platform(client));
  atomic_store_explicit(&world.open, true, memory_order_release);
  return NULL;
}

static calx_device *open_devices(calx_status **out_status)
{
  *out_status = NULL;
  if (!cx_lazy_devices_are_open()) {
    cx_log_hold_begin();
    cx_lock(&world.lock);
    if (!atomic_load(&world.open)) *out_status = open_world();
    cx_unlock(&world.lock);
    cx_log_hold_end();
    if (*out_status != NULL) return NULL;
  }
  return &world.devices[0];
}

calx_status *cx_lazy_devices_claim(int *out_count)
{
  calx_status *status = NULL;
  cx_log_hold_begin();
  cx_lock(&world.lock);
  if (world.sharded) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      "calx_use_spmd() was called: one program runs on all "
                      "devices, and no ranks can be started beside it");
  } else if (!atomic_load(&world.open)) {
    status = open_world();
    world.for_ranks = status == NULL;
  } else if (!world.for_ranks) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      "Runtime is already initialized. Do not use the XLA "
                      "device before calling calx_launch");
  }
  *out_count = world.count;
  cx_unlock(&world.lock);
  cx_log_hold_end();
  return status;
}

static void device_end(calx_device *d)
{
  cx_lazy_log_untaken(cx_lazy_flight_poll(d, true));
  cx_graph_order_free(&d->order);
  cx_lazy_problem_release(d->expired.problem);
  cx_lazy_problem_release(d->consumed.problem);
  cx_free(d->changed);
  cx_mutex_free(&d->lock);
}

void cx_lazy_devices_close(void (*release_programs)(void))
{
  cx_log_hold_begin();
  cx_lock(&world.lock);
  if (atomic_load(&world.open)) {
    for (int i = 0; i < world.count; i++) device_end(&world.devices[i]);
    release_programs();
    cx_free(world.devices);
    cx_pjrt_client_close(world.client);
    world.client = NULL;
    world.devices = NULL;
    world.count = 0;
    world.for_ranks = false;
    atomic_store(&world.open, false);
    cx_spmd_placements_free();
  }
  world.sharded = false;
  cx_unlock(&world.lock);
  cx_log_hold_end();
}

size_t cx_lazy_sharded_count(void)
{
  if (!cx_lazy_devices_are_open() || !world.sharded) return 0;
  return cx_pjrt_client_device_count(world.client);
}

calx_device *cx_lazy_device_at(int index)
{
  if (!cx_lazy_devices_are_open() || index < 0 || index >= world.count) {
    return NULL;
  }
  return &world.devices[index];
}

bool cx_lazy_device_is_open(const calx_device *d)
{
  for (int i = 0; d != NULL && cx_lazy_device_at(i) != NULL; i++) {
    if (&world.devices[i] == d) return true;
  }
  return false;
}

calx_device *cx_lazy_device_or_current(calx_device *device)
{
  if (device != NULL) return device;
  return cx_lazy_self.device != NULL ? cx_lazy_self.device
                                     : calx_device_current();
}

// ---- public -----------------------------------------------------------------

calx_device *calx_device_current(void)
{
  if (cx_lazy_self.device != NULL) return cx_lazy_self.device;
  calx_status *status;
  calx_device *device = open_devices(&status);
  cx_lazy_scope_pin(status);
  return device;
}

void calx_device_set_current(calx_device *device)
{
  cx_lazy_self.device = device;
}

int calx_device_count(void)
{
  calx_status *status;
  calx_device *first = open_devices(&status);
  cx_lazy_scope_pin(status);
  return first != NULL ? world.count : 0;
}

calx_status *calx_device_open(const char *name, calx_device **out_device)
{
  *out_device = NULL;
  calx_status *status;
  if (open_devices(&status) == NULL) return status;
  if (name == NULL || strcmp(name, "xla") == 0) {
    *out_device = calx_device_current();
    return NULL;
  }
  char *end = NULL;
  long index = strncmp(name, "xla:", 4) == 0 && name[4] != '\0'
                   ? strtol(name + 4, &end, 10)
                   : -1;
  if (end == NULL || *end != '\0' || name[4] < '0' || name[4] > '9') {
    return cx_invalid("'%s' is no device: devices are xla, xla:0, xla:1, …",
                      name);
  }
  if (index >= world.count) {
    return cx_error(
        CALX_OUT_OF_RANGE,
        "device '%s' is out of range: there %s %d, xla:0%s%s", name,
        world.count == 1 ? "is" : "are", world.count,
        world.count == 1 ? "" : " … ",
        world.count == 1 ? "" : world.devices[world.count - 1].name);
  }
  *out_device = &world.devices[index];
  return NULL;
}

const char *calx_device_name(const calx_device *device)
{
  return device != NULL ? device->name : "xla";
}

const char *calx_device_platform(const calx_device *device)
{
  return device != NULL ? cx_pjrt_client_platform(device->client) : "?";
}

calx_status *calx_device_memory(calx_device *device, calx_memory_info *out_info)
{
  *out_info = (calx_memory_info){ -1, -1, -1 };
  calx_status *status;
  if (device == NULL && (device = cx_lazy_self.device) == NULL &&
      (device = open_devices(&status)) == NULL) {
    return status;
  }
  const size_t first = (size_t)device->index;
  const size_t end =
      device->sharded ? cx_pjrt_client_device_count(device->client) : first + 1;
  for (size_t i = first; i < end; i++) {
    cx_pjrt_memory_stats stats;
    CALX_TRY(cx_pjrt_device_memory_stats(device->client, i, &stats));
    if (i != first && stats.bytes_in_use <= out_info->bytes_in_use) continue;
    *out_info = (calx_memory_info){ stats.bytes_in_use, stats.peak_bytes_in_use,
                                    stats.bytes_limit };
  }
  return NULL;
}

// ---- one program on all devices ---------------------------------------------

static calx_status *check_alone(void)
{
  cx_world_info rank;
  CALX_TRY(cx_world_find(&rank));
  if (rank.processes <= 1) return NULL;
  return cx_error(CALX_UNIMPLEMENTED,
                  "use_spmd: one process drives all devices, and this is one "
                  "of %d, started by %s",
                  rank.processes, launcher_name(rank.launcher));
}

calx_status *calx_use_spmd(void)
{
  CALX_TRY(check_alone());
  calx_status *status = NULL;
  cx_lock(&world.lock);
  if (!atomic_load(&world.open)) {
    world.sharded = true;
  } else if (!world.sharded) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      "use_spmd: a device was used before; call "
                      "calx_use_spmd() first");
  }
  cx_unlock(&world.lock);
  return status;
}

bool calx_is_spmd(void)
{
  cx_lock(&world.lock);
  bool sharded = world.sharded;
  cx_unlock(&world.lock);
  return sharded;
}

int calx_spmd_device_count(void)
{
  calx_status *status;
  calx_device *first = open_devices(&status);
  cx_lazy_scope_pin(status);
  if (first == NULL) return 0;
  return (int)cx_pjrt_client_device_count(first->client);
}

const char *calx_version(void)
{
  return CALX_VERSION;
}

// ---- random streams ---------------------------------------------------------

// The finaliser of splitmix64 (S. Vigna, public domain).
static uint64_t mix(uint64_t z)
{
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int cx_lazy_device_rank(const calx_device *device)
{
  const cx_world_info *here = cx_world_self();
  return here->process * here->devices + device->index;
}

// A draw has 2^40 counters of its own: more than a tensor has elements. The
// rank's number is in the key, so that ranks draw different numbers.
void cx_lazy_random_draw(calx_device *device, bool common, uint64_t *out_key,
                         uint64_t *out_counter)
{
  uint64_t rank = common ? 0 : (uint64_t)cx_lazy_device_rank(device);
  cx_lock(&device->lock);
  *out_key = mix(mix(device->seed) + rank);
  *out_counter = device->draws++ << 40;
  cx_unlock(&device->lock);
}
