// pjrt/options: what is told to a plugin beside the program: creation options
// of clients and topologies, and the compile options' bytes.
//
// What calx adds by itself is all here:
// - clients: a CPU plugin gets cpu_device_count (XLA's default would be 4),
//   CUDA does not take the card's memory beforehand, libtpu gets nothing
//   (wrong names were seen to end the process);
// - programs for XLA's CPU: maximum and minimum hand on a NaN, as StableHLO
//   says. XLA 0.81 and 0.106 know the key; a build that refuses it is compiled
//   without it from then on.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "options.pb-c.h"
#include "pjrt/internal.h"

#define DEVICE_LIMIT 4096
#define REPLICA_LIMIT (1 << 20)

// ---- named values ----

calx_status *cx_pjrt_values_make(const cx_pjrt_option *options, size_t n,
                                 PJRT_NamedValue **out)
{
  *out = NULL;
  if (n == 0) return NULL;
  PJRT_NamedValue *values = cx_calloc(n, sizeof *values);
  if (values == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_pjrt_option *o = &options[i];
    PJRT_NamedValue *v = &values[i];
    v->struct_size = PJRT_NamedValue_STRUCT_SIZE;
    v->name = o->name;
    v->name_size = strlen(o->name);
    v->value_size = 1;
    switch (o->type) {
      case CX_PJRT_STRING:
        v->type = PJRT_NamedValue_kString;
        v->string_value = o->string_value;
        v->value_size = strlen(o->string_value);
        break;
      case CX_PJRT_INT:
        v->type = PJRT_NamedValue_kInt64;
        v->int64_value = o->int_value;
        break;
      case CX_PJRT_INTS:
        v->type = PJRT_NamedValue_kInt64List;
        v->int64_array_value = o->ints_value;
        v->value_size = o->n_ints;
        break;
      case CX_PJRT_FLOAT:
        v->type = PJRT_NamedValue_kFloat;
        v->float_value = o->float_value;
        break;
      case CX_PJRT_BOOL:
        v->type = PJRT_NamedValue_kBool;
        v->bool_value = o->int_value != 0;
        break;
    }
  }
  *out = values;
  return NULL;
}

// ---- clients ----

static calx_status *device_count(const cx_pjrt_client_options *asked,
                                 int64_t *out)
{
  *out = asked == NULL ? 0 : asked->device_count;
  if (*out == 0) {
    *out = 1;
    const char *text = getenv("CPU_NUM_DEVICES");
    if (text == NULL || text[0] == '\0') return NULL;
    char *end = NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || *out < 1 || *out > DEVICE_LIMIT) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "CPU_NUM_DEVICES: wants 1 to %d, found '%s'",
                      DEVICE_LIMIT, text);
    }
  }
  if (*out < 1 || *out > DEVICE_LIMIT) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "device_count: wants 1 to %d, found %" PRId64, DEVICE_LIMIT,
                    *out);
  }
  return NULL;
}

static bool is_asked(const cx_pjrt_client_options *asked, const char *name)
{
  for (size_t i = 0; asked != NULL && i < asked->n_extra; i++) {
    if (strcmp(asked->extra[i].name, name) == 0) return true;
  }
  return false;
}

calx_status *cx_pjrt_client_defaults(const cx_pjrt_plugin *plugin,
                                     const cx_pjrt_client_options *asked,
                                     cx_pjrt_option **out_options,
                                     size_t *out_n)
{
  *out_options = NULL;
  *out_n = 0;
  size_t n_extra = asked == NULL ? 0 : asked->n_extra;
  cx_pjrt_option *list = cx_calloc(n_extra + 1 + CX_PJRT_WORLD, sizeof *list);
  if (list == NULL) return cx_out_of_memory();
  size_t n = 0;
  bool counted = asked != NULL && asked->device_count != 0;
  if ((plugin->kind == CX_PJRT_KIND_CPU ||
       (plugin->kind == CX_PJRT_KIND_OTHER && counted)) &&
      !is_asked(asked, "cpu_device_count")) {
    int64_t count = 0;
    calx_status *status = device_count(asked, &count);
    if (status != NULL) {
      cx_free(list);
      return status;
    }
    list[n++] = (cx_pjrt_option){ .name = "cpu_device_count",
                                  .type = CX_PJRT_INT,
                                  .int_value = count };
  }
  if (plugin->kind == CX_PJRT_KIND_CUDA && !is_asked(asked, "preallocate")) {
    list[n++] = (cx_pjrt_option){ .name = "preallocate",
                                  .type = CX_PJRT_BOOL,
                                  .int_value = 0 };
  }
  if (asked != NULL) n += cx_pjrt_world_options(plugin, asked->world, list + n);
  for (size_t i = 0; i < n_extra; i++) list[n++] = asked->extra[i];
  *out_options = list;
  *out_n = n;
  return NULL;
}

// ---- compile options ----

static const cx_pjrt_override cpu_defaults[] = {
  { .name = "xla_cpu_enable_fast_min_max",
    .type = CX_PJRT_OVERRIDE_BOOL,
    .int_value = 0 },
};

static size_t default_overrides(const cx_pjrt_client *c,
                                const cx_pjrt_override **out)
{
  *out = cpu_defaults;
  bool wanted = c != NULL && c->plugin->is_xla &&
                strcmp(c->platform, "cpu") == 0 &&
                !atomic_load(&c->plugin->refuses_defaults);
  return wanted ? sizeof cpu_defaults / sizeof *cpu_defaults : 0;
}

bool cx_pjrt_defaults_refused(cx_pjrt_client *c, const calx_status *status)
{
  const cx_pjrt_override *list = NULL;
  size_t n = default_overrides(c, &list);
  for (size_t i = 0; i < n && status != NULL; i++) {
    if (calx_status_code(status) == CALX_INVALID_ARGUMENT &&
        strstr(calx_status_message(status), list[i].name) != NULL) {
      atomic_store(&c->plugin->refuses_defaults, true);
      return true;
    }
  }
  return false;
}

// Builds the message in an arena that lives until it is packed.
typedef struct encoder {
  cx_arena arena;
  const cx_pjrt_compile_options *options;
  cx_pjrt_client *client;  // NULL: devices are ids, no defaults
  size_t n_replicas;
} encoder;

static bool encode_override(encoder *e, const cx_pjrt_override *from,
                            CxPjrt__Entry **out)
{
  CxPjrt__Entry *entry = CX_ARENA_NEW(&e->arena, CxPjrt__Entry);
  CxPjrt__Override *value = CX_ARENA_NEW(&e->arena, CxPjrt__Override);
  if (entry == NULL || value == NULL) return false;
  cx_pjrt__entry__init(entry);
  cx_pjrt__override__init(value);
  // protobuf-c takes strings that it only reads as char *.
  entry->key = cx_arena_strndup(&e->arena, from->name, strlen(from->name));
  entry->value = value;
  switch (from->type) {
    case CX_PJRT_OVERRIDE_STRING:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_STRING_FIELD;
      value->string_field = cx_arena_strndup(&e->arena, from->string_value,
                                             strlen(from->string_value));
      if (value->string_field == NULL) return false;
      break;
    case CX_PJRT_OVERRIDE_BOOL:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_BOOL_FIELD;
      value->bool_field = from->int_value != 0;
      break;
    case CX_PJRT_OVERRIDE_INT:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_INT_FIELD;
      value->int_field = from->int_value;
      break;
    case CX_PJRT_OVERRIDE_DOUBLE:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_DOUBLE_FIELD;
      value->double_field = from->double_value;
      break;
  }
  *out = entry;
  return entry->key != NULL;
}

static bool has_override(const cx_pjrt_compile_options *o, const char *name)
{
  for (size_t i = 0; i < o->n_overrides; i++) {
    if (strcmp(o->overrides[i].name, name) == 0) return true;
  }
  return false;
}

static bool encode_overrides(encoder *e, CxPjrt__CompileOptions *message)
{
  const cx_pjrt_override *defaults = NULL;
  size_t n_defaults = default_overrides(e->client, &defaults);
  size_t most = e->options->n_overrides + n_defaults;
  if (most == 0) return true;
  CxPjrt__Entry **list = CX_ARENA_ARRAY(&e->arena, CxPjrt__Entry *, most);
  if (list == NULL) return false;
  message->env_option_overrides = list;
  size_t n = 0;
  for (size_t i = 0; i < n_defaults; i++) {
    if (has_override(e->options, defaults[i].name)) continue;
    if (!encode_override(e, &defaults[i], &list[n])) return false;
    n++;
  }
  for (size_t i = 0; i < e->options->n_overrides; i++) {
    if (!encode_override(e, &e->options->overrides[i], &list[n])) return false;
    n++;
  }
  message->n_env_option_overrides = n;
  return true;
}

// Replica r runs on ids[r]; one partition.
static bool encode_assignment(encoder *e, const int64_t *ids,
                              CxPjrt__Build *build)
{
  CxPjrt__DeviceAssignment *a =
      CX_ARENA_NEW(&e->arena, CxPjrt__DeviceAssignment);
  CxPjrt__Computation *row = CX_ARENA_NEW(&e->arena, CxPjrt__Computation);
  CxPjrt__Computation **rows =
      CX_ARENA_ARRAY(&e->arena, CxPjrt__Computation *, 1);
  int64_t *copy = CX_ARENA_ARRAY(&e->arena, int64_t, e->n_replicas);
  if (a == NULL || row == NULL || rows == NULL || copy == NULL) return false;
  memcpy(copy, ids, e->n_replicas * sizeof *ids);
  cx_pjrt__device_assignment__init(a);
  cx_pjrt__computation__init(row);
  row->replica_device_ids = copy;
  row->n_replica_device_ids = e->n_replicas;
  rows[0] = row;
  a->replica_count = (int32_t)e->n_replicas;
  a->computation_count = 1;
  a->computation_devices = rows;
  a->n_computation_devices = 1;
  build->device_assignment = a;
  return true;
}

// Looks the ids up where a client is given; without one the numbers are ids.
static calx_status *device_ids(encoder *e, int64_t *ids)
{
  const int64_t *devices = e->options->devices;
  if (e->options->everywhere && e->client != NULL &&
      (e->client->world.processes > 1 ||
       e->n_replicas > e->client->n_devices)) {
    return cx_pjrt_world_devices(e->client, e->n_replicas, ids);
  }
  for (size_t r = 0; r < e->n_replicas; r++) {
    int64_t device = devices == NULL ? (int64_t)r : devices[r];
    if (e->client == NULL) {
      ids[r] = device;
    } else if (device < 0 || device >= (int64_t)e->client->n_devices) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "replica %zu wants device %" PRId64
                      ", platform '%s' has %zu here",
                      r, device, e->client->platform, e->client->n_devices);
    } else {
      ids[r] = e->client->devices[device].id;
    }
  }
  return NULL;
}

static calx_status *pack(const CxPjrt__CompileOptions *message, char **out,
                         size_t *out_size)
{
  size_t size = cx_pjrt__compile_options__get_packed_size(message);
  char *bytes = cx_alloc(size);
  if (bytes == NULL) return cx_out_of_memory();
  cx_pjrt__compile_options__pack(message, (uint8_t *)bytes);
  *out = bytes;
  *out_size = size;
  return NULL;
}

static calx_status *encode(encoder *e, char **out, size_t *out_size)
{
  const cx_pjrt_compile_options *o = e->options;
  CxPjrt__Build build;
  CxPjrt__CompileOptions message;
  cx_pjrt__build__init(&build);
  cx_pjrt__compile_options__init(&message);
  build.num_replicas = (int32_t)e->n_replicas;
  build.num_partitions = 1;
  message.executable_build_options = &build;
  message.compile_portable_executable = o->any_device;
  bool assign = !o->any_device && (e->client != NULL || o->devices != NULL);
  if (assign) {
    int64_t *ids = CX_ARENA_ARRAY(&e->arena, int64_t, e->n_replicas);
    if (ids == NULL) return cx_out_of_memory();
    CALX_TRY(device_ids(e, ids));
    if (!encode_assignment(e, ids, &build)) return cx_out_of_memory();
  }
  if (!encode_overrides(e, &message)) return cx_out_of_memory();
  return pack(&message, out, out_size);
}

calx_status *cx_pjrt_options_encode(const cx_pjrt_compile_options *o,
                                    cx_pjrt_client *client_or_null, char **out,
                                    size_t *out_size)
{
  *out = NULL;
  *out_size = 0;
  static const cx_pjrt_compile_options none = { 0 };
  if (o == NULL) o = &none;
  if (o->num_replicas < 0 || o->num_replicas > REPLICA_LIMIT) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "num_replicas: wants 1 to %d, found %" PRId64,
                    REPLICA_LIMIT, o->num_replicas);
  }
  if (o->any_device && o->num_replicas > 1) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "a program for any device has one replica, found %" PRId64,
                    o->num_replicas);
  }
  encoder e = { .options = o,
                .client = client_or_null,
                .n_replicas =
                    o->num_replicas == 0 ? 1 : (size_t)o->num_replicas };
  calx_status *status = encode(&e, out, out_size);
  cx_arena_free(&e.arena);
  return status;
}
