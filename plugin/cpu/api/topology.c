// api/topology: descriptions of devices that need not exist.
//
// A topology is a number of devices in all, and per process. Its serialised
// form is a line of text with these numbers ("4", or "4 by 2") and with the
// platform where that is "cpu"; its fingerprint is the hash of that line.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/hash.h"

#define LINE CPU_API_PLATFORM " topology 1: "
#define BY " by "
#define AS_CPU " as cpu"

typedef struct line {
  char s[64];
} line;

void cpu_api_describe(PJRT_DeviceDescription *description, int id, int process)
{
  description->id = id;
  description->process = process;
  snprintf(description->text, sizeof description->text, "CALX_CPU_%d", id);
  snprintf(description->debug_text, sizeof description->debug_text,
           "calx_cpu device %d of process %d", id, process);
}

calx_status *cpu_api_topology_new(size_t n, size_t per_process,
                                  const char *platform,
                                  PJRT_TopologyDescription **out)
{
  PJRT_TopologyDescription *t = cx_calloc(1, sizeof *t);
  if (t == NULL) return cx_out_of_memory();
  t->n = n;
  t->per_process = per_process;
  t->platform = platform;
  t->descriptions = cx_calloc(n, sizeof *t->descriptions);
  t->list = cx_calloc(n, sizeof(PJRT_DeviceDescription *));
  if (t->descriptions == NULL || t->list == NULL) {
    cpu_api_topology_free(t);
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    cpu_api_describe(&t->descriptions[i], (int)i, (int)(i / per_process));
    t->list[i] = &t->descriptions[i];
  }
  *out = t;
  return NULL;
}

void cpu_api_topology_free(PJRT_TopologyDescription *topology)
{
  if (topology == NULL) return;
  cx_free(topology->descriptions);
  cx_free(topology->list);
  cx_free(topology);
}

static line line_of(const PJRT_TopologyDescription *t)
{
  line text;
  int n = snprintf(text.s, sizeof text.s, LINE "%zu", t->n);
  if (t->per_process != t->n) {
    n += snprintf(text.s + n, sizeof text.s - (size_t)n, BY "%zu",
                  t->per_process);
  }
  if (strcmp(t->platform, CPU_API_PLATFORM) != 0) {
    snprintf(text.s + n, sizeof text.s - (size_t)n, AS_CPU);
  }
  return text;
}

static calx_status *create(const PJRT_TopologyDescription_Create_Args *args,
                           PJRT_TopologyDescription **out)
{
  *out = NULL;
  size_t size = args->topology_name == NULL ? 0 : args->topology_name_size;
  if (size > 0 && (size != strlen(CPU_API_PLATFORM) ||
                   memcmp(args->topology_name, CPU_API_PLATFORM, size) != 0)) {
    return cx_error(CALX_NOT_FOUND,
                    "no topology is called '%.*s'; there is " CPU_API_PLATFORM
                    " with the option cpu_device_count",
                    (int)(size < 100 ? size : 100), args->topology_name);
  }
  cpu_api_world w;
  CALX_TRY(cpu_api_world_read(args->create_options, args->num_options, &w));
  CALX_TRY(cpu_api_topology_new((size_t)w.n_processes * w.per_process,
                                w.per_process, w.platform, out));
  return NULL;
}

CPU_API_CALL(PJRT_TopologyDescription_Create, struct_size,
             create(args, &args->topology))

PJRT_Error *cpu_api_PJRT_TopologyDescription_Destroy(
    PJRT_TopologyDescription_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_TopologyDescription_Destroy, struct_size);
  cpu_api_topology_free(args->topology);
  return NULL;
}

CPU_API_GET_TEXT(PJRT_TopologyDescription_PlatformVersion, topology,
                 platform_version, "calx " CALX_VERSION)
CPU_API_GET_TEXT(PJRT_TopologyDescription_PlatformName, topology, platform_name,
                 args->topology->platform)
CPU_API_GET_LIST(PJRT_TopologyDescription_GetDeviceDescriptions, topology,
                 descriptions, args->topology->list, num_descriptions,
                 args->topology->n)
CPU_API_GET_LIST(PJRT_TopologyDescription_Attributes, topology, attributes,
                 NULL, num_attributes, 0)

static const int memory_kinds[CPU_RUN_MEMORIES] = {
  CPU_RUN_MEMORY_DEVICE, CPU_RUN_MEMORY_PINNED_HOST,
  CPU_RUN_MEMORY_UNPINNED_HOST
};
CPU_API_GET_LIST(PJRT_TopologyDescription_GetMemorySpaceKindIds, topology,
                 memory_space_kind_ids, memory_kinds, num_memory_space_kind_ids,
                 CPU_RUN_MEMORIES)

PJRT_Error *cpu_api_PJRT_TopologyDescription_Fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args *args)
{
  CPU_API_ENTER(PJRT_TopologyDescription_Fingerprint, topology);
  line text = line_of(args->topology);
  args->fingerprint = cx_hash_bytes(text.s, strlen(text.s), 0).low;
  return NULL;
}

// ---- as text ----

static void free_line(PJRT_SerializedTopology *serialized)
{
  cx_free(serialized);
}

PJRT_Error *cpu_api_PJRT_TopologyDescription_Serialize(
    PJRT_TopologyDescription_Serialize_Args *args)
{
  CPU_API_ENTER(PJRT_TopologyDescription_Serialize, topology);
  line text = line_of(args->topology);
  char *copy = cx_strdup(text.s);
  if (copy == NULL) return cpu_api_error(cx_out_of_memory());
  args->serialized_bytes = copy;
  args->serialized_bytes_size = strlen(copy);
  args->serialized_topology = (PJRT_SerializedTopology *)copy;
  args->serialized_topology_deleter = free_line;
  return NULL;
}

// Reads a number of devices at *at and moves *at behind it. 0: there is none.
static size_t read_number(const char **at)
{
  if (**at < '1' || **at > '9') return 0;
  char *end = NULL;
  const long long n = strtoll(*at, &end, 10);
  *at = end;
  return n >= 1 && n <= CPU_API_MAX_DEVICES ? (size_t)n : 0;
}

static calx_status *deserialize(const char *bytes, size_t size,
                                PJRT_TopologyDescription **out)
{
  char text[64];
  *out = NULL;
  const size_t head = strlen(LINE);
  if (bytes != NULL && size > head && size < sizeof text &&
      memcmp(bytes, LINE, head) == 0) {
    memcpy(text, bytes, size);
    text[size] = '\0';
    const char *at = text + head;
    const size_t n = read_number(&at);
    size_t per_process = n;
    if (strncmp(at, BY, strlen(BY)) == 0) {
      at += strlen(BY);
      per_process = read_number(&at);
    }
    const char *platform = CPU_API_PLATFORM;
    if (strcmp(at, AS_CPU) == 0) {
      at += strlen(AS_CPU);
      platform = "cpu";
    }
    if (n != 0 && per_process != 0 && n % per_process == 0 && *at == '\0') {
      return cpu_api_topology_new(n, per_process, platform, out);
    }
  }
  return cx_invalid("%zu bytes that are no serialised topology of calx_cpu",
                    size);
}

CPU_API_CALL(PJRT_TopologyDescription_Deserialize, struct_size,
             deserialize(args->serialized_topology,
                         args->serialized_topology_size, &args->topology))
