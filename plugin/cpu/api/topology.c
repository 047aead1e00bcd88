// api/topology: descriptions of devices that need not be there.
//
// A topology is a number of devices. Serialised it is a line of text that says
// so, which is also what its fingerprint is of.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/hash.h"

#define LINE CX_API_PLATFORM " topology 1: "

typedef struct line {
  char s[64];
} line;

calx_status *cx_api_topology_new(size_t n, PJRT_TopologyDescription **out)
{
  PJRT_TopologyDescription *t = cx_calloc(1, sizeof *t);
  if (t == NULL) return cx_out_of_memory();
  t->n = n;
  t->descriptions = cx_calloc(n, sizeof *t->descriptions);
  t->list = cx_calloc(n, sizeof(PJRT_DeviceDescription *));
  if (t->descriptions == NULL || t->list == NULL) {
    cx_api_topology_free(t);
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    cx_api_describe(&t->descriptions[i], (int)i);
    t->list[i] = &t->descriptions[i];
  }
  *out = t;
  return NULL;
}

void cx_api_topology_free(PJRT_TopologyDescription *topology)
{
  if (topology == NULL) return;
  cx_free(topology->descriptions);
  cx_free(topology->list);
  cx_free(topology);
}

static line line_of(const PJRT_TopologyDescription *t)
{
  line text;
  snprintf(text.s, sizeof text.s, LINE "%zu", t->n);
  return text;
}

static calx_status *create(const PJRT_TopologyDescription_Create_Args *args,
                           PJRT_TopologyDescription **out)
{
  size_t size = args->topology_name == NULL ? 0 : args->topology_name_size;
  if (size > 0 && (size != strlen(CX_API_PLATFORM) ||
                   memcmp(args->topology_name, CX_API_PLATFORM, size) != 0)) {
    return cx_error(CALX_NOT_FOUND,
                    "no topology is called '%.*s'; there is " CX_API_PLATFORM
                    " with the option cpu_device_count",
                    (int)(size < 100 ? size : 100), args->topology_name);
  }
  int64_t n = 0;
  CALX_TRY(cx_api_device_count(args->create_options, args->num_options, &n));
  return cx_api_topology_new((size_t)n, out);
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Create(
    PJRT_TopologyDescription_Create_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Create, struct_size);
  args->topology = NULL;
  return cx_api_error(create(args, &args->topology));
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Destroy(
    PJRT_TopologyDescription_Destroy_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Destroy, struct_size);
  cx_api_topology_free(args->topology);
  return NULL;
}

PJRT_Error *cx_api_PJRT_TopologyDescription_PlatformVersion(
    PJRT_TopologyDescription_PlatformVersion_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_PlatformVersion, topology);
  args->platform_version = "calx " CALX_VERSION;
  args->platform_version_size = strlen(args->platform_version);
  return NULL;
}

PJRT_Error *cx_api_PJRT_TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_PlatformName, topology);
  args->platform_name = CX_API_PLATFORM;
  args->platform_name_size = strlen(CX_API_PLATFORM);
  return NULL;
}

PJRT_Error *cx_api_PJRT_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_GetDeviceDescriptions, topology);
  args->descriptions = args->topology->list;
  args->num_descriptions = args->topology->n;
  return NULL;
}

static void free_line(PJRT_SerializedTopology *serialized)
{
  cx_free(serialized);
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Serialize(
    PJRT_TopologyDescription_Serialize_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Serialize, topology);
  line text = line_of(args->topology);
  char *copy = cx_strdup(text.s);
  if (copy == NULL) return cx_api_error(cx_out_of_memory());
  args->serialized_bytes = copy;
  args->serialized_bytes_size = strlen(copy);
  args->serialized_topology = (PJRT_SerializedTopology *)copy;
  args->serialized_topology_deleter = free_line;
  return NULL;
}

static calx_status *deserialize(const char *bytes, size_t size,
                                PJRT_TopologyDescription **out)
{
  char text[64];
  const size_t head = strlen(LINE);
  int64_t n = 0;
  if (bytes != NULL && size > head && size < sizeof text &&
      memcmp(bytes, LINE, head) == 0) {
    memcpy(text, bytes, size);
    text[size] = '\0';
    char *end = NULL;
    bool digit = text[head] >= '1' && text[head] <= '9';
    n = digit ? strtoll(text + head, &end, 10) : 0;
    if (digit && *end != '\0') n = 0;
  }
  if (n >= 1 && n <= CX_API_MAX_DEVICES) {
    return cx_api_topology_new((size_t)n, out);
  }
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%zu bytes that are no serialised topology of calx_cpu",
                  size);
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Deserialize(
    PJRT_TopologyDescription_Deserialize_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Deserialize, struct_size);
  args->topology = NULL;
  return cx_api_error(deserialize(args->serialized_topology,
                                  args->serialized_topology_size,
                                  &args->topology));
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Attributes(
    PJRT_TopologyDescription_Attributes_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Attributes, topology);
  args->attributes = NULL;
  args->num_attributes = 0;
  return NULL;
}

PJRT_Error *cx_api_PJRT_TopologyDescription_Fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_Fingerprint, topology);
  line text = line_of(args->topology);
  args->fingerprint = cx_hash_bytes(text.s, strlen(text.s), 0).low;
  return NULL;
}

PJRT_Error *cx_api_PJRT_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args)
{
  CX_API_ENTER(PJRT_TopologyDescription_GetMemorySpaceKindIds, topology);
  static const int kinds[] = { 0 };
  args->memory_space_kind_ids = kinds;
  args->num_memory_space_kind_ids = 1;
  return NULL;
}
