// api/options: reads a program's compile options: its number of replicas and
// partitions, and the devices that they run on.
//
// The options are a serialised xla.CompileOptionsProto. Their size is limited,
// every number is checked, and fields that this engine does not use are
// skipped.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "compile_options.pb-c.h"

#define SIZE_LIMIT ((size_t)16 << 20)

// `user` may be a bool, which becomes true if there is no memory. protobuf-c
// itself reports the same failure for damaged bytes.
static void *allocate(void *user, size_t size)
{
  void *p = cx_alloc(size);
  bool *failed = user;
  if (p == NULL && failed != NULL) *failed = true;
  return p;
}

static void release(void *user, void *p)
{
  (void)user;
  cx_free(p);
}

static ProtobufCAllocator allocator = { .alloc = allocate, .free = release };

// ---- reading ----

static calx_status *read_count(const char *name, int64_t value, uint32_t *out)
{
  if (value < 0 || value > CPU_API_MAX_DEVICES) {
    return cx_invalid("compile options: %s is %" PRId64 ", at most %d can be",
                      name, value, CPU_API_MAX_DEVICES);
  }
  *out = (uint32_t)value;
  return NULL;
}

static calx_status *read_assignment(const CpuApi__DeviceAssignment *a,
                                    cpu_api_options *out)
{
  uint32_t replicas = 0;
  uint32_t partitions = 0;
  CALX_TRY(read_count("the assignment's replica_count", a->replica_count,
                      &replicas));
  CALX_TRY(read_count("the assignment's computation_count",
                      a->computation_count, &partitions));
  size_t n = (size_t)replicas * partitions;
  bool same = replicas == (out->n_replicas == 0 ? 1 : out->n_replicas) &&
              partitions == (out->n_partitions == 0 ? 1 : out->n_partitions);
  if (!same || n == 0 || n > CPU_API_MAX_DEVICES ||
      a->n_computation_devices != partitions) {
    return cx_invalid(
        "compile options: an assignment of %u replicas and %u partitions (%zu "
        "listed) for %u and %u",
        replicas, partitions, a->n_computation_devices, out->n_replicas,
        out->n_partitions);
  }
  out->assigned = cx_alloc(n * sizeof *out->assigned);
  if (out->assigned == NULL) return cx_out_of_memory();
  out->n_assigned = n;
  for (size_t p = 0; p < partitions; p++) {
    const CpuApi__Computation *c = a->computation_devices[p];
    if (c->n_replica_device_ids != replicas) {
      return cx_invalid(
          "compile options: partition %zu is assigned %zu devices, wanted %u",
          p, c->n_replica_device_ids, replicas);
    }
    for (size_t r = 0; r < replicas; r++) {
      int64_t id = c->replica_device_ids[r];
      if (id < 0 || id > INT32_MAX) id = INT32_MAX;  // none has it
      out->assigned[r * partitions + p] = (int)id;
    }
  }
  return NULL;
}

// XLA's own options (xla.DebugOptions, and those of
// CompileOptions::ApplyOption) have no effect here, whatever their value. A
// name that XLA does not have is a mistake.
static calx_status *check_overrides(const CpuApi__CompileOptions *o)
{
  static const char *const others[] = { "exec_time_optimization_effort",
                                        "memory_fitting_effort",
                                        "optimization_level",
                                        "memory_fitting_level" };
  for (size_t i = 0; i < o->n_env_option_overrides; i++) {
    const char *key = o->env_option_overrides[i]->key;
    bool known = strncmp(key, "xla_", 4) == 0;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
      known = known || strcmp(key, others[k]) == 0;
    }
    if (!known) {
      return cx_invalid(
          "No such compile option: '%.80s'; XLA's begin with xla_", key);
    }
  }
  return NULL;
}

static calx_status *read_options(const CpuApi__CompileOptions *o,
                                 cpu_api_options *out)
{
  CALX_TRY(check_overrides(o));
  out->portable = o->compile_portable_executable != 0;
  const CpuApi__Build *b = o->executable_build_options;
  if (b == NULL) return NULL;
  CALX_TRY(read_count("num_replicas", b->num_replicas, &out->n_replicas));
  CALX_TRY(read_count("num_partitions", b->num_partitions, &out->n_partitions));
  if (b->device_ordinal > INT32_MAX || b->device_ordinal < -1) {
    return cx_invalid("compile options: device_ordinal is %" PRId64,
                      b->device_ordinal);
  }
  out->device = (int)b->device_ordinal;
  if (b->device_assignment == NULL) return NULL;
  return read_assignment(b->device_assignment, out);
}

calx_status *cpu_api_options_parse(const char *bytes, size_t size,
                                   cpu_api_options *out)
{
  *out = (cpu_api_options){ .bytes = bytes, .size = size, .device = -1 };
  if (size == 0) return NULL;
  CpuApi__CompileOptions *message = NULL;
  bool failed = false;
  ProtobufCAllocator noting = { allocate, release, &failed };
  if (bytes != NULL && size <= SIZE_LIMIT) {
    message =
        cpu_api__compile_options__unpack(&noting, size, (const uint8_t *)bytes);
  }
  if (message == NULL && failed) return cx_out_of_memory();
  if (message == NULL) {
    return cx_invalid("failed to deserialize CompileOptionsProto, %zu bytes",
                      size);
  }
  calx_status *status = read_options(message, out);
  cpu_api__compile_options__free_unpacked(message, &allocator);
  if (status != NULL) cpu_api_options_clear(out);
  return status;
}

void cpu_api_options_clear(cpu_api_options *options)
{
  cx_free(options->assigned);
  *options = (cpu_api_options){ .device = -1 };
}

// ---- writing ----

calx_status *cpu_api_assignment_write(const int *ids, size_t n_replicas,
                                      size_t n_partitions, char **out,
                                      size_t *out_size)
{
  CpuApi__DeviceAssignment message = CPU_API__DEVICE_ASSIGNMENT__INIT;
  cx_arena arena = { 0 };
  CpuApi__Computation *parts =
      CX_ARENA_ARRAY(&arena, CpuApi__Computation, n_partitions);
  CpuApi__Computation **list =
      CX_ARENA_ARRAY(&arena, CpuApi__Computation *, n_partitions);
  int64_t *numbers = CX_ARENA_ARRAY(&arena, int64_t, n_partitions * n_replicas);
  *out = NULL;
  if (parts != NULL && list != NULL && numbers != NULL) {
    for (size_t p = 0; p < n_partitions; p++) {
      cpu_api__computation__init(&parts[p]);
      list[p] = &parts[p];
      parts[p].n_replica_device_ids = n_replicas;
      parts[p].replica_device_ids = numbers + p * n_replicas;
      for (size_t r = 0; r < n_replicas; r++) {
        parts[p].replica_device_ids[r] = ids[r * n_partitions + p];
      }
    }
    message.replica_count = (int64_t)n_replicas;
    message.computation_count = (int64_t)n_partitions;
    message.n_computation_devices = n_partitions;
    message.computation_devices = list;
    *out_size = cpu_api__device_assignment__get_packed_size(&message);
    *out = cx_alloc(*out_size);
  }
  if (*out != NULL) {
    (void)cpu_api__device_assignment__pack(&message, (uint8_t *)*out);
  }
  cx_arena_free(&arena);
  return *out == NULL ? cx_out_of_memory() : NULL;
}
