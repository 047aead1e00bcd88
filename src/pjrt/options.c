// pjrt/options: the options of clients and topologies, and the encoded options
// of a compilation.
//
// calx adds these options by itself:
// - A client of a CPU plugin gets cpu_device_count (XLA's default is 4). A
//   client of CUDA does not allocate the card's memory beforehand. libtpu gets
//   nothing, because an unknown name has ended the process.
// - In programs for XLA's CPU, maximum and minimum return a NaN if an operand
//   is one, as StableHLO requires. XLA 0.81 and 0.106 know the option. A plugin
//   that refuses it gets later programs without it.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/env.h"
#include "options.pb-c.h"
#include "pjrt/internal.h"

#define DEVICE_LIMIT 4096
#define REPLICA_LIMIT (1 << 20)

// ---- named values ----

_Static_assert((int)CX_PJRT_STRING == (int)PJRT_NamedValue_kString &&
                   (int)CX_PJRT_INT == (int)PJRT_NamedValue_kInt64 &&
                   (int)CX_PJRT_INTS == (int)PJRT_NamedValue_kInt64List &&
                   (int)CX_PJRT_FLOAT == (int)PJRT_NamedValue_kFloat &&
                   (int)CX_PJRT_BOOL == (int)PJRT_NamedValue_kBool,
               "options have the interface's types");

static PJRT_NamedValue value_of(const cx_pjrt_option *o)
{
  PJRT_NamedValue v = { CX_PJRT_ARGS(PJRT_NamedValue), .name = o->name,
                        .name_size = strlen(o->name),
                        .type = (PJRT_NamedValue_Type)o->type,
                        .value_size = 1 };
  switch (o->type) {
    case CX_PJRT_STRING:
      v.string_value = o->string_value;
      v.value_size = strlen(o->string_value);
      break;
    case CX_PJRT_INT: v.int64_value = o->int_value; break;
    case CX_PJRT_INTS:
      v.int64_array_value = o->ints_value;
      v.value_size = o->n_ints;
      break;
    case CX_PJRT_FLOAT: v.float_value = (float)o->float_value; break;
    case CX_PJRT_BOOL: v.bool_value = o->int_value != 0; break;
  }
  return v;
}

calx_status *cx_pjrt_values_make(const cx_pjrt_option *options, size_t n,
                                 PJRT_NamedValue **out)
{
  *out = NULL;
  if (n == 0) return NULL;
  PJRT_NamedValue *values = cx_calloc(n, sizeof *values);
  if (values == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) values[i] = value_of(&options[i]);
  *out = values;
  return NULL;
}

// ---- clients ----

static calx_status *device_count(int64_t asked, int64_t *out)
{
  *out = asked;
  if (asked == 0) {
    int count;
    CALX_TRY(cx_env_int("CPU_NUM_DEVICES", 1, DEVICE_LIMIT, &count));
    *out = count > 0 ? count : 1;
  }
  if (*out >= 1 && *out <= DEVICE_LIMIT) return NULL;
  return cx_invalid("device_count: wants 1 to %d, found %" PRId64, DEVICE_LIMIT,
                    *out);
}

static bool is_asked(const cx_pjrt_option *list, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++) {
    if (strcmp(list[i].name, name) == 0) return true;
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
  static const cx_pjrt_client_options none = { 0 };
  if (asked == NULL) asked = &none;
  size_t n_extra = asked->n_extra;
  cx_pjrt_option *list = cx_calloc(n_extra + 1 + CX_PJRT_WORLD, sizeof *list);
  if (list == NULL) return cx_out_of_memory();
  size_t n = 0;
  bool counted = asked->device_count != 0;
  if ((plugin->kind == CX_PJRT_KIND_CPU ||
       (plugin->kind == CX_PJRT_KIND_OTHER && counted)) &&
      !is_asked(asked->extra, n_extra, "cpu_device_count")) {
    int64_t count = 0;
    calx_status *status = device_count(asked->device_count, &count);
    if (status != NULL) {
      cx_free(list);
      return status;
    }
    list[n++] = (cx_pjrt_option){ .name = "cpu_device_count",
                                  .type = CX_PJRT_INT,
                                  .int_value = count };
  }
  if (plugin->kind == CX_PJRT_KIND_CUDA &&
      !is_asked(asked->extra, n_extra, "preallocate")) {
    list[n++] = (cx_pjrt_option){ .name = "preallocate",
                                  .type = CX_PJRT_BOOL,
                                  .int_value = 0 };
  }
  n += cx_pjrt_world_options(plugin, asked->world, list + n);
  for (size_t i = 0; i < n_extra; i++) list[n++] = asked->extra[i];
  *out_options = list;
  *out_n = n;
  return NULL;
}

// ---- compile options ----

static const cx_pjrt_option cpu_defaults[] = {
  { .name = "xla_cpu_enable_fast_min_max",
    .type = CX_PJRT_BOOL,
    .int_value = 0 },
};

static size_t default_overrides(const cx_pjrt_client *c,
                                const cx_pjrt_option **out)
{
  *out = cpu_defaults;
  bool wanted = c != NULL && c->plugin->is_xla &&
                strcmp(c->platform, "cpu") == 0 &&
                !atomic_load(&c->plugin->refuses_defaults);
  return wanted ? sizeof cpu_defaults / sizeof *cpu_defaults : 0;
}

bool cx_pjrt_defaults_refused(cx_pjrt_client *c, const calx_status *status)
{
  const cx_pjrt_option *list = NULL;
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

// The arena holds parts of the message until it is packed.
typedef struct encoder {
  cx_arena arena;
  const cx_pjrt_compile_options *options;
  cx_pjrt_client *client;  // NULL: devices are ids, no defaults
  size_t n_replicas;
} encoder;

// protobuf-c takes strings that it only reads as char *.
static char *copy(encoder *e, const char *s)
{
  return cx_arena_strndup(&e->arena, s, strlen(s));
}

static CxPjrt__Entry *encode_override(encoder *e, const cx_pjrt_option *from)
{
  CX_ASSERT(from->type != CX_PJRT_INTS);
  CxPjrt__Entry *entry = CX_ARENA_NEW(&e->arena, CxPjrt__Entry);
  CxPjrt__Override *value = CX_ARENA_NEW(&e->arena, CxPjrt__Override);
  if (entry == NULL || value == NULL) return NULL;
  cx_pjrt__entry__init(entry);
  cx_pjrt__override__init(value);
  entry->key = copy(e, from->name);
  entry->value = value;
  bool failed = entry->key == NULL;
  switch (from->type) {
    case CX_PJRT_STRING:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_STRING_FIELD;
      value->string_field = copy(e, from->string_value);
      failed = failed || value->string_field == NULL;
      break;
    case CX_PJRT_BOOL:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_BOOL_FIELD;
      value->bool_field = from->int_value != 0;
      break;
    case CX_PJRT_INT:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_INT_FIELD;
      value->int_field = from->int_value;
      break;
    case CX_PJRT_FLOAT:
      value->value_case = CX_PJRT__OVERRIDE__VALUE_DOUBLE_FIELD;
      value->double_field = from->float_value;
      break;
    case CX_PJRT_INTS: break;
  }
  return failed ? NULL : entry;
}

static bool encode_overrides(encoder *e, CxPjrt__CompileOptions *message)
{
  const cx_pjrt_option *defaults = NULL;
  size_t n_defaults = default_overrides(e->client, &defaults);
  size_t most = e->options->n_overrides + n_defaults;
  if (most == 0) return true;
  CxPjrt__Entry **list = CX_ARENA_ARRAY(&e->arena, CxPjrt__Entry *, most);
  if (list == NULL) return false;
  message->env_option_overrides = list;
  size_t n = 0;
  const cx_pjrt_option *asked = e->options->overrides;
  for (size_t i = 0; i < most; i++) {
    bool is_default = i < n_defaults;
    const cx_pjrt_option *from =
        is_default ? &defaults[i] : &asked[i - n_defaults];
    if (is_default && is_asked(asked, e->options->n_overrides, from->name)) {
      continue;
    }
    list[n] = encode_override(e, from);
    if (list[n++] == NULL) return false;
  }
  message->n_env_option_overrides = n;
  return true;
}

// The ids of the replicas' devices. Without a client the caller's numbers are
// ids.
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
      return cx_invalid("replica %zu wants device %" PRId64
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

// One replica of many partitions: partition p runs on the client's device p,
// the only one of row p.
static calx_status *encode_partitions(encoder *e, CxPjrt__Build *build,
                                      CxPjrt__DeviceAssignment *assignment)
{
  const size_t n = (size_t)e->options->num_partitions;
  int64_t *ids = CX_ARENA_ARRAY(&e->arena, int64_t, n);
  CxPjrt__Computation *rows = CX_ARENA_ARRAY(&e->arena, CxPjrt__Computation, n);
  assignment->computation_devices =
      CX_ARENA_ARRAY(&e->arena, CxPjrt__Computation *, n);
  if (ids == NULL || rows == NULL || assignment->computation_devices == NULL) {
    return cx_out_of_memory();
  }
  for (size_t p = 0; p < n; p++) {
    ids[p] = e->client != NULL ? e->client->devices[p].id : (int64_t)p;
    rows[p] = (CxPjrt__Computation)CX_PJRT__COMPUTATION__INIT;
    rows[p].replica_device_ids = &ids[p];
    rows[p].n_replica_device_ids = 1;
    assignment->computation_devices[p] = &rows[p];
  }
  assignment->replica_count = 1;
  assignment->computation_count = (int32_t)n;
  assignment->n_computation_devices = n;
  build->device_assignment = assignment;
  build->num_partitions = (int32_t)n;
  build->use_spmd_partitioning = true;
  build->use_shardy_partitioner = true;
  return NULL;
}

static calx_status *encode(encoder *e, char **out, size_t *out_size)
{
  const cx_pjrt_compile_options *o = e->options;
  // Replica r runs on the device row.replica_device_ids[r]; one partition.
  CxPjrt__Computation row = CX_PJRT__COMPUTATION__INIT;
  CxPjrt__Computation *rows[] = { &row };
  CxPjrt__DeviceAssignment assignment = CX_PJRT__DEVICE_ASSIGNMENT__INIT;
  CxPjrt__Build build = CX_PJRT__BUILD__INIT;
  CxPjrt__CompileOptions message = CX_PJRT__COMPILE_OPTIONS__INIT;
  build.num_replicas = (int32_t)e->n_replicas;
  build.num_partitions = 1;
  message.executable_build_options = &build;
  message.compile_portable_executable = o->any_device;
  if (o->num_partitions > 1) {
    CALX_TRY(encode_partitions(e, &build, &assignment));
  } else if (!o->any_device && (e->client != NULL || o->devices != NULL)) {
    row.replica_device_ids = CX_ARENA_ARRAY(&e->arena, int64_t, e->n_replicas);
    if (row.replica_device_ids == NULL) return cx_out_of_memory();
    CALX_TRY(device_ids(e, row.replica_device_ids));
    row.n_replica_device_ids = e->n_replicas;
    assignment.replica_count = (int32_t)e->n_replicas;
    assignment.computation_count = 1;
    assignment.computation_devices = rows;
    assignment.n_computation_devices = 1;
    build.device_assignment = &assignment;
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
    return cx_invalid("num_replicas: wants 1 to %d, found %" PRId64,
                      REPLICA_LIMIT, o->num_replicas);
  }
  if (o->any_device && o->num_replicas > 1) {
    return cx_invalid(
        "a program for any device has one replica, found %" PRId64,
        o->num_replicas);
  }
  if (o->num_partitions < 0 ||
      (o->num_partitions > 1 &&
       (o->num_replicas > 1 || o->any_device ||
        (client_or_null != NULL &&
         (size_t)o->num_partitions != client_or_null->n_devices)))) {
    return cx_invalid(
        "num_partitions: wants one replica on all devices of the "
        "client, found %" PRId64,
        o->num_partitions);
  }
  encoder e = { .options = o,
                .client = client_or_null,
                .n_replicas =
                    o->num_replicas == 0 ? 1 : (size_t)o->num_replicas };
  calx_status *status = encode(&e, out, out_size);
  cx_arena_free(&e.arena);
  return status;
}
