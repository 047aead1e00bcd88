// api/world: reads from a client's options which process of the world it is.
//
// All processes have the same number of devices. The ids of the devices are
// consecutive, process by process, and the processes of a host follow each
// other. Every client lists all devices of the world, and runs programs on
// those of its own process.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/calx_segment.h"
#include "api/api.h"
#include "base/env.h"

calx_status *cpu_api_environment(const char *name, int64_t low, int64_t high,
                                 int64_t otherwise, int64_t *out)
{
  const char *text = cx_env_text(name);
  *out = otherwise;
  if (text == NULL) return NULL;
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < low || value > high) {
    return cx_invalid("%s wants a number from %" PRId64 " to %" PRId64
                      ", found '%.40s'",
                      name, low, high, text);
  }
  *out = value;
  return NULL;
}

static const char *type_name(PJRT_NamedValue_Type type)
{
  static const char *const names[] = { "string", "int64", "int64 list", "float",
                                       "bool" };
  return (unsigned)type < sizeof names / sizeof *names ? names[type]
                                                       : "unknown type";
}

// An option of 32 bits, and its bounds.
typedef struct option {
  const char *name;
  size_t field;  // offset in cpu_api_world
  int64_t low, high;
} option;

static const option known[] = {
  { "cpu_device_count", offsetof(cpu_api_world, per_process), 1,
    CPU_API_MAX_DEVICES },
  { "node_id", offsetof(cpu_api_world, process), 0, CPU_API_MAX_DEVICES },
  { "num_nodes", offsetof(cpu_api_world, n_processes), 1, CPU_API_MAX_DEVICES },
  // From here on, which processes share a host.
  { CALX_OPTION_SEGMENT_FD, offsetof(cpu_api_world, segment_fd), 0, INT32_MAX },
  { CALX_OPTION_HOST, offsetof(cpu_api_world, host), 0, CPU_API_MAX_DEVICES },
  { CALX_OPTION_HOSTS, offsetof(cpu_api_world, n_hosts), 1,
    CPU_API_MAX_DEVICES },
  { CALX_OPTION_HOST_FIRST, offsetof(cpu_api_world, host_first), 0,
    CPU_API_MAX_DEVICES },
  { CALX_OPTION_HOST_PROCESSES, offsetof(cpu_api_world, host_processes), 1,
    CPU_API_MAX_DEVICES },
};

enum { FIRST_OF_HOST = 3 };

static calx_status *read_option(const PJRT_NamedValue *o, const option *which,
                                cpu_api_world *out)
{
  if (o->type != PJRT_NamedValue_kInt64) {
    return cx_invalid("option %s wants an int64, found a value of type %s",
                      which->name, type_name(o->type));
  }
  if (o->int64_value < which->low || o->int64_value > which->high) {
    return cx_invalid("option %s wants %" PRId64 " to %" PRId64
                      ", found %" PRId64,
                      which->name, which->low, which->high, o->int64_value);
  }
  const int32_t value = (int32_t)o->int64_value;
  memcpy((char *)out + which->field, &value, sizeof value);
  return NULL;
}

// JAX chooses by the platform's name what it sends. As "cpu" it takes the rules
// that it has for XLA's CPU client.
static calx_status *read_platform(const PJRT_NamedValue *o, cpu_api_world *out)
{
  static const char *const names[] = { CPU_API_PLATFORM, "cpu" };
  const bool text = o->type == PJRT_NamedValue_kString;
  for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
    if (o->value_size == strlen(names[i]) &&
        memcmp(o->string_value, names[i], o->value_size) == 0) {
      out->platform = names[i];
      return NULL;
    }
  }
  return cx_invalid("option platform_name wants '" CPU_API_PLATFORM
                    "' or 'cpu', found %s '%.*s'",
                    type_name(o->type),
                    text ? (int)(o->value_size < 40 ? o->value_size : 40) : 0,
                    text ? o->string_value : "");
}

static bool is_named(const PJRT_NamedValue *o, const char *name)
{
  return o->name != NULL && o->name_size == strlen(name) &&
         memcmp(o->name, name, o->name_size) == 0;
}

// Ignores unknown options, which are for other platforms (preallocate,
// process_id).
static calx_status *read_options(const PJRT_NamedValue *options, size_t n,
                                 cpu_api_world *out)
{
  if (n > 0 && options == NULL) {
    return cx_invalid("%zu options, but no list of them", n);
  }
  for (size_t i = 0; i < n; i++) {
    const PJRT_NamedValue *o = &options[i];
    CALX_TRY(cpu_api_check_size("PJRT_NamedValue", PJRT_NamedValue_STRUCT_SIZE,
                                o->struct_size));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
      if (!is_named(o, known[k].name)) continue;
      CALX_TRY(read_option(o, &known[k], out));
      out->placed = out->placed || k >= FIRST_OF_HOST;
    }
    if (is_named(o, "platform_name")) CALX_TRY(read_platform(o, out));
  }
  return NULL;
}

// Without the options for it, all hosts have the same number of processes.
static calx_status *split_evenly(cpu_api_world *w)
{
  w->host_processes = w->n_processes / w->n_hosts;
  w->host_first = w->host * w->host_processes;
  if (w->n_processes % w->n_hosts == 0) return NULL;
  return cx_invalid(
      "num_nodes %u are not as many on each of %u hosts, and there is no "
      "option " CALX_OPTION_HOST_PROCESSES,
      w->n_processes, w->n_hosts);
}

static calx_status *check_world(const cpu_api_world *w)
{
  if (w->process >= w->n_processes || w->host >= w->n_hosts) {
    return cx_invalid("node_id %u of num_nodes %u, " CALX_OPTION_HOST
                      " %u of " CALX_OPTION_HOSTS " %u: they count from 0",
                      w->process, w->n_processes, w->host, w->n_hosts);
  }
  if ((uint64_t)w->n_processes * w->per_process > CPU_API_MAX_DEVICES) {
    return cx_invalid("%u processes of %u devices are more than %d devices",
                      w->n_processes, w->per_process, CPU_API_MAX_DEVICES);
  }
  if (w->process - w->host_first >= w->host_processes ||
      w->host_first > w->n_processes ||
      w->host_processes > w->n_processes - w->host_first) {
    return cx_invalid(
        "node_id %u of num_nodes %u is not on host %u of %u, which has "
        "processes %u to %u",
        w->process, w->n_processes, w->host, w->n_hosts, w->host_first,
        w->host_first + w->host_processes - 1);
  }
  return NULL;
}

calx_status *cpu_api_world_check_segment(const cpu_api_world *w)
{
  if (w->host_processes <= 1 || w->segment_fd >= 0) return NULL;
  return cx_invalid(
      "num_nodes is %u: processes of one host need a shared segment, and there "
      "is no option " CALX_OPTION_SEGMENT_FD
      ", nor do key-value callbacks let them meet; were they of several "
      "hosts, " CALX_OPTION_HOSTS " would say so",
      w->n_processes);
}

calx_status *cpu_api_world_read(const PJRT_NamedValue *options, size_t n,
                                cpu_api_world *out)
{
  // Without an option, these are no valid values: per_process and
  // host_processes 0, host_first UINT32_MAX.
  *out = (cpu_api_world){ .n_processes = 1,
                          .n_hosts = 1,
                          .host_first = UINT32_MAX,
                          .segment_fd = -1,
                          .platform = CPU_API_PLATFORM };
  CALX_TRY(read_options(options, n, out));
  if (out->per_process == 0) {
    int64_t count = 0;
    CALX_TRY(cpu_api_environment("CPU_NUM_DEVICES", 1, CPU_API_MAX_DEVICES, 1,
                                 &count));
    out->per_process = (uint32_t)count;
  }
  if ((out->host_first == UINT32_MAX) != (out->host_processes == 0)) {
    return cx_invalid(CALX_OPTION_HOST_FIRST " and " CALX_OPTION_HOST_PROCESSES
                                             " go together");
  }
  if (out->host_processes == 0) CALX_TRY(split_evenly(out));
  return check_world(out);
}
