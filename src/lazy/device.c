// lazy/device: one client for the process, its devices, transfers from the
// host.
//
// The plugin is opened at the first use and kept until calx_shutdown(). After a
// failure the next use tries again, and reports what it finds.
#include "calx/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/metrics.h"
#include "lazy/internal.h"

CX_METRIC(to_device_time, "TransferToDeviceTime", CX_UNIT_NS);
CX_METRIC(outbound_data, "OutboundData", CX_UNIT_BYTES);

static struct {
  cx_mutex lock;
  atomic_bool open;
  cx_pjrt_client *client;
  calx_device *devices;
  int count;
} world = { .lock = CX_MUTEX_INIT };

static void device_init(calx_device *d, int index, cx_pjrt_client *client)
{
  d->index = index;
  snprintf(d->name, sizeof d->name, "xla:%d", index);
  d->client = client;
  cx_mutex_init(&d->lock);
}

// Under world.lock.
static calx_status *open_world(void)
{
  cx_pjrt_plugin *plugin;
  CALX_TRY(cx_pjrt_plugin_open(NULL, &plugin));
  cx_pjrt_client *client;
  CALX_TRY(cx_pjrt_client_open(plugin, NULL, &client));
  size_t n = cx_pjrt_client_device_count(client);
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
  world.client = client;
  world.devices = devices;
  world.count = (int)n;
  atomic_store_explicit(&world.open, true, memory_order_release);
  return NULL;
}

calx_device *cx_devices_open(calx_status **out_status)
{
  *out_status = NULL;
  if (!atomic_load_explicit(&world.open, memory_order_acquire)) {
    cx_log_hold_begin();
    cx_lock(&world.lock);
    if (!atomic_load(&world.open)) *out_status = open_world();
    cx_unlock(&world.lock);
    cx_log_hold_end();
    if (*out_status != NULL) return NULL;
  }
  return &world.devices[0];
}

calx_device *cx_device_at(int index)
{
  if (!atomic_load_explicit(&world.open, memory_order_acquire) || index < 0 ||
      index >= world.count) {
    return NULL;
  }
  return &world.devices[index];
}

bool cx_device_is_open(const calx_device *d)
{
  for (int i = 0; d != NULL && cx_device_at(i) != NULL; i++) {
    if (&world.devices[i] == d) return true;
  }
  return false;
}

calx_device *cx_device_or_current(calx_device *device)
{
  if (device != NULL) return device;
  return cx_self.device != NULL ? cx_self.device : calx_device_current();
}

// ---- public -----------------------------------------------------------------

calx_device *calx_device_current(void)
{
  if (cx_self.device != NULL) return cx_self.device;
  calx_status *status;
  calx_device *device = cx_devices_open(&status);
  cx_scope_pin(status);
  return device;
}

void calx_device_set_current(calx_device *device)
{
  cx_self.device = device;
}

int calx_device_count(void)
{
  calx_status *status;
  calx_device *first = cx_devices_open(&status);
  cx_scope_pin(status);
  return first != NULL ? world.count : 0;
}

calx_status *calx_device_open(const char *name, calx_device **out_device)
{
  *out_device = NULL;
  calx_status *status;
  if (cx_devices_open(&status) == NULL) return status;
  if (name == NULL || strcmp(name, "xla") == 0) {
    *out_device = calx_device_current();
    return NULL;
  }
  char *end = NULL;
  long index = strncmp(name, "xla:", 4) == 0 && name[4] != '\0'
                   ? strtol(name + 4, &end, 10)
                   : -1;
  if (end == NULL || *end != '\0' || name[4] < '0' || name[4] > '9') {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s' is no device: devices are xla, xla:0, xla:1, …",
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
  if (device == NULL && (device = cx_self.device) == NULL &&
      (device = cx_devices_open(&status)) == NULL) {
    return status;
  }
  cx_pjrt_memory_stats stats;
  CALX_TRY(cx_pjrt_device_memory_stats(device->client, (size_t)device->index,
                                       &stats));
  *out_info = (calx_memory_info){ stats.bytes_in_use, stats.peak_bytes_in_use,
                                  stats.bytes_limit };
  return NULL;
}

calx_status *calx_device_wait(calx_device *device)
{
  if (device == NULL) device = cx_self.device;
  if (device == NULL) device = cx_device_at(0);
  if (device == NULL) return NULL;
  return cx_flight_poll(device, true);
}

const char *calx_version(void)
{
  return CALX_VERSION;
}

static void device_end(calx_device *d)
{
  calx_status_free(cx_flight_poll(d, true));
  cx_order_free(&d->order);
  cx_problem_release(d->expired);
  cx_free(d->changed);
  cx_mutex_free(&d->lock);
}

void calx_shutdown(void)
{
  cx_scope_end_root();
  cx_lock(&world.lock);
  if (atomic_load(&world.open)) {
    for (int i = 0; i < world.count; i++) device_end(&world.devices[i]);
    cx_programs_free();
    cx_free(world.devices);
    cx_pjrt_client_close(world.client);
    world.client = NULL;
    world.devices = NULL;
    world.count = 0;
    atomic_store(&world.open, false);
  }
  cx_unlock(&world.lock);
  cx_self.device = cx_self.steps = NULL;
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

// A draw has 2^40 counters of its own: more than a tensor has elements. The
// rank's number is in the key, so that ranks draw different numbers.
void cx_random_draw(calx_device *device, uint64_t *out_key,
                    uint64_t *out_counter)
{
  cx_lock(&device->lock);
  *out_key = mix(mix(device->seed) + (uint64_t)device->index);
  *out_counter = device->draws++ << 40;
  cx_unlock(&device->lock);
}

void cx_random_seed(calx_device *device, uint64_t seed)
{
  cx_lock(&device->lock);
  device->seed = seed;
  device->draws = 0;
  cx_unlock(&device->lock);
}

// ---- transfers --------------------------------------------------------------

static calx_status *check_host_shape(const char *call, calx_dtype dtype,
                                     const int64_t *dims, size_t rank,
                                     cx_shape *out, size_t *out_bytes)
{
  int64_t elements;
  if (!cx_dtype_valid(dtype)) {
    return cx_error(CALX_INVALID_ARGUMENT, "%s: %d is no element type", call,
                    (int)dtype);
  }
  if (rank > CALX_MAX_RANK) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%s: rank %zu, at most %d are possible", call, rank,
                    CALX_MAX_RANK);
  }
  *out = (cx_shape){ .dtype = dtype, .rank = (uint32_t)rank };
  for (size_t i = 0; i < rank; i++) {
    out->dims[i] = dims[i];
    if (dims[i] < 0) {
      return cx_error(CALX_INVALID_ARGUMENT, "%s: size %lld of dimension %zu",
                      call, (long long)dims[i], i);
    }
  }
  if (!cx_dims_bytes(dtype, dims, rank, &elements, out_bytes)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: %s is too large", call,
                    cx_shape_str(out));
  }
  return NULL;
}

void cx_count_upload(int64_t start, size_t bytes)
{
  cx_metric_add(&to_device_time, (double)(cx_now_ns() - start));
  cx_metric_add(&outbound_data, (double)bytes);
}

static calx_status *upload(calx_device *d, const cx_shape *shape, size_t bytes,
                           const void *data, bool borrow,
                           void (*done)(void *user), void *user,
                           cx_node **out_node)
{
  *out_node = NULL;
  cx_pjrt_shape wire;
  cx_pjrt_shape_make(shape->dtype, shape->dims, shape->rank, &wire);
  cx_pjrt_buffer *buffer;
  int64_t start = cx_now_ns();
  calx_status *status = cx_pjrt_buffer_from_host(
      d->client, (size_t)d->index, &wire, data,
      borrow ? CX_PJRT_BORROW : CX_PJRT_COPY, done, user, &buffer);
  if (status != NULL) return status;
  cx_count_upload(start, bytes);
  *out_node = cx_node_data(shape, buffer);
  if (*out_node == NULL) return cx_out_of_memory();
  (*out_node)->site = *cx_site();
  return NULL;
}

calx_status *cx_upload(calx_device *device, calx_dtype dtype,
                       const int64_t *dims, size_t rank, const void *data,
                       bool borrow, void (*done)(void *user), void *user,
                       calx_tensor **out_tensor)
{
  *out_tensor = NULL;
  cx_shape shape;
  size_t bytes;
  calx_status *status =
      check_host_shape("upload", dtype, dims, rank, &shape, &bytes);
  if (status == NULL && data == NULL && bytes != 0) {
    status = cx_error(CALX_INVALID_ARGUMENT, "upload: the data of %s is NULL",
                      cx_shape_str(&shape));
  }
  if (status != NULL) {
    if (done != NULL) done(user);
    return status;
  }
  cx_node *node;
  CALX_TRY(upload(device, &shape, bytes, data, borrow, done, user, &node));
  calx_tensor *t = cx_tensor_alloc(device);
  if (t == NULL) {
    cx_node_release(node);
    return cx_out_of_memory();
  }
  atomic_store(&t->owners, 1);
  cx_tensor_settle(t, node);
  *out_tensor = t;
  return NULL;
}

calx_tensor *calx_tensor_from(const void *data, calx_dtype dtype,
                              calx_dims dims)
{
  calx_device *device = cx_device_or_current(NULL);
  if (device == NULL) {
    return cx_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  calx_tensor *t;
  calx_status *status = cx_upload(device, dtype, dims.values, dims.count, data,
                                  false, NULL, NULL, &t);
  if (status != NULL) return cx_tensor_poison(status);
  atomic_store(&t->owners, 0);
  return cx_scope_give(t);
}

static calx_status *host_new(const char *call, const void *data,
                             calx_dtype dtype, calx_dims dims, cx_host **out)
{
  *out = NULL;
  cx_shape shape;
  size_t bytes;
  CALX_TRY(
      check_host_shape(call, dtype, dims.values, dims.count, &shape, &bytes));
  size_t line = 64, all;
  if (!cx_add_size(bytes, sizeof(cx_host) + line, &all)) {
    return cx_out_of_memory();
  }
  cx_host *host = cx_alloc(all);
  if (host == NULL) return cx_out_of_memory();
  host->shape = shape;
  host->bytes = bytes;
  uintptr_t end = (uintptr_t)(host + 1) + line - 1;
  host->data = (unsigned char *)(end - end % line);
  if (data != NULL && bytes != 0) memcpy(host->data, data, bytes);
  *out = host;
  return NULL;
}

static calx_tensor *host_tensor(const char *call, const void *data,
                                calx_dtype dtype, calx_dims dims)
{
  cx_host *host;
  calx_status *status = host_new(call, data, dtype, dims, &host);
  if (status != NULL) return cx_tensor_poison(status);
  calx_tensor *t = cx_tensor_alloc(NULL);
  if (t == NULL) {
    cx_free(host);
    cx_scope_pin(cx_out_of_memory());
    return cx_tensor_nil();
  }
  t->host = host;
  return cx_scope_give(t);
}

calx_tensor *calx_host_tensor(const void *data, calx_dtype dtype,
                              calx_dims shape)
{
  return host_tensor("host_tensor", data, dtype, shape);
}

static calx_tensor *null_tensor(const char *call)
{
  return cx_tensor_poison(
      cx_error(CALX_INVALID_ARGUMENT, "%s: the tensor is NULL", call));
}

calx_tensor *calx_cpu(calx_tensor *t)
{
  if (t == NULL) return null_tensor("cpu");
  if (t->host != NULL) return t;
  calx_status *pending = cx_tensor_compute(t);
  if (pending != NULL) return cx_tensor_poison(pending);
  const cx_shape *s = cx_tensor_shape(t);
  calx_tensor *h =
      host_tensor("cpu", NULL, s->dtype, (calx_dims){ s->rank, s->dims });
  if (h->host == NULL) return h;
  calx_status *status = calx_tensor_read(t, h->host->data, h->host->bytes);
  return status == NULL ? h : cx_tensor_poison(status);
}

calx_tensor *calx_to(calx_tensor *t, calx_device *device)
{
  if (t == NULL) return null_tensor("to");
  device = cx_device_or_current(device);
  if (device == NULL) {
    return cx_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  if (t->device == device && t->host == NULL) return t;
  if (t->host != NULL) {
    const cx_host *h = t->host;
    calx_tensor *moved;
    calx_status *status =
        cx_upload(device, h->shape.dtype, h->shape.dims, h->shape.rank, h->data,
                  false, NULL, NULL, &moved);
    if (status != NULL) return cx_tensor_poison(status);
    atomic_store(&moved->owners, 0);
    return cx_scope_give(moved);
  }
  cx_pjrt_buffer *copy = NULL;
  calx_status *status = cx_tensor_compute(t);
  if (status == NULL) {
    status = cx_pjrt_buffer_copy_to_device(t->node->out[t->out].buffer,
                                           (size_t)device->index, &copy);
  }
  if (status != NULL) return cx_tensor_poison(status);
  cx_node *node = cx_node_data(cx_tensor_shape(t), copy);
  if (node == NULL) return cx_tensor_poison(cx_out_of_memory());
  calx_tensor *moved = cx_tensor_of((cx_value){ node, 0 }, device);
  cx_node_release(node);
  return moved;
}
