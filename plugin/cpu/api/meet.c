// api/meet: how the processes of a world meet through their caller's key-value
// store, as JAX's distributed runtime offers one.
//
// Each process puts a record of itself, and reads those of all others. So all
// know which of them are of one host. The first process of a host makes the
// shared segment; the others open it through /proc, and say so before the first
// one goes on. What another process has put is data from outside: it is bounded
// and checked.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/calx_cpu.h"
#include "api/api.h"
#include "base/alloc.h"
#include "base/host.h"

// ---- records ----

typedef struct process_record {
  uint32_t devices;
  int64_t pid;
  char host[33], build[33];  // hashes, in hexadecimal
} process_record;

static calx_status *put_record(const cpu_api_store *s)
{
  cx_hash build;
  process_record own = { 0 };
  char text[CPU_API_STORE_TEXT];
  CALX_TRY(calx_cpu_identity(&build));
  cx_hash_hex(build, own.build);
  cx_hash_hex(cx_host_identity(), own.host);
  snprintf(text, sizeof text, "%u %ld %s %s", (unsigned)s->world->per_process,
           (long)getpid(), own.host, own.build);
  return cpu_api_store_put(s, "process", text);
}

static calx_status *get_record(const cpu_api_store *s, uint32_t process,
                               process_record *out)
{
  char text[CPU_API_STORE_TEXT];
  int end = 0;
  CALX_TRY(cpu_api_store_get(s, "process", process, text));
  if (strcmp(text, CPU_API_STORE_NO) == 0) return cpu_api_store_failed(process);
  if (sscanf(text, "%9" SCNu32 " %9" SCNd64 " %32[0-9a-f] %32[0-9a-f]%n",
             &out->devices, &out->pid, out->host, out->build, &end) == 4 &&
      text[end] == '\0' && out->pid > 0) {
    return NULL;
  }
  char plain[CPU_API_STORE_TEXT];
  cx_text_plain(text, strlen(text), plain, sizeof plain);
  return cx_error(CALX_DATA_LOSS,
                  "process %u has put '%s' about itself, which this engine "
                  "does not understand",
                  (unsigned)process, plain);
}

static calx_status *check_record(const cpu_api_store *s,
                                 const process_record *own,
                                 const process_record *c, uint32_t process)
{
  if (c->devices != own->devices) {
    return cx_invalid(
        "process %u has %u devices, process %u has %u; all must "
        "have as many (CPU_NUM_DEVICES, cpu_device_count)",
        (unsigned)process, (unsigned)c->devices, (unsigned)s->world->process,
        (unsigned)own->devices);
  }
  if (strcmp(c->build, own->build) == 0) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "processes %u and %u have different builds of calx's engine; "
                  "libcalx_cpu.so and libcalx_jit.so must be the same files",
                  (unsigned)process, (unsigned)s->world->process);
}

static calx_status *get_records(const cpu_api_store *s, process_record *all)
{
  const cpu_api_world *w = s->world;
  for (uint32_t i = 0; i < w->n_processes; i++) {
    CALX_TRY(get_record(s, i, &all[i]));
  }
  for (uint32_t i = 0; i < w->n_processes; i++) {
    CALX_TRY(check_record(s, &all[w->process], &all[i], i));
  }
  return NULL;
}

// ---- hosts ----

// The processes of a host must follow each other.
static calx_status *find_hosts(const process_record *all, cpu_api_world *w)
{
  uint32_t first = 0;  // of the host of process i
  w->n_hosts = 1;
  for (uint32_t i = 0; i < w->n_processes; i++) {
    uint32_t same = 0;
    while (strcmp(all[same].host, all[i].host) != 0) same++;
    if (same == i && i != 0) {
      first = i;
      w->n_hosts++;
    } else if (same != first) {
      return cx_invalid(
          "processes %u and %u are of one host, process %u "
          "between them is not: number the processes host by "
          "host",
          (unsigned)same, (unsigned)i, (unsigned)first);
    }
    if (i <= w->process) {
      w->host = w->n_hosts - 1;
      w->host_first = first;
    }
    if (first == w->host_first) w->host_processes = i - first + 1;
  }
  return NULL;
}

// ---- the segment ----

// Waits until the other processes of this host have opened it: until then this
// descriptor must stay as it is.
static calx_status *share_segment(const cpu_api_store *s, cpu_api_meeting *out)
{
  const cpu_api_world *w = s->world;
  char text[CPU_API_STORE_TEXT];
  CALX_TRY(cpu_coll_segment_create(w->host_processes, &out->fd));
  snprintf(text, sizeof text, "%d", out->fd);
  calx_status *status = cpu_api_store_put(s, "segment", text);
  for (uint32_t i = 1; i < w->host_processes && status == NULL; i++) {
    status = cpu_api_store_get(s, "opened", w->host_first + i, text);
    if (status == NULL && strcmp(text, "yes") != 0) {
      status = cpu_api_store_failed(w->host_first + i);
    }
  }
  return status;
}

static calx_status *open_of(int64_t pid, const char *number, int *out)
{
  char path[64];
  int fd = -1, end = 0;
  if (sscanf(number, "%9d%n", &fd, &end) != 1 || number[end] != '\0' ||
      fd < 0) {
    char plain[CPU_API_STORE_TEXT];
    cx_text_plain(number, strlen(number), plain, sizeof plain);
    return cx_error(CALX_DATA_LOSS, "'%s' is no number of a descriptor", plain);
  }
  snprintf(path, sizeof path, "/proc/%" PRId64 "/fd/%d", pid, fd);
  *out = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*out >= 0) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "cannot open '%s': %s; processes of one host must be of one "
                  "user",
                  path, strerror(errno));
}

static calx_status *open_segment(const cpu_api_store *s, cpu_api_meeting *out)
{
  const uint32_t first = s->world->host_first;
  char number[CPU_API_STORE_TEXT];
  CALX_TRY(cpu_api_store_get(s, "segment", first, number));
  if (strcmp(number, CPU_API_STORE_NO) == 0) return cpu_api_store_failed(first);
  calx_status *status = open_of(out->pids[0], number, &out->fd);
  if (status == NULL) status = cpu_api_store_put(s, "opened", "yes");
  return cx_annotate(status,
                     "while the memory of this host's processes, which "
                     "process %u makes, was opened",
                     (unsigned)first);
}

// ---- meeting ----

static calx_status *meet(const cpu_api_store *s, process_record *all,
                         cpu_api_world *w, cpu_api_meeting *out)
{
  CALX_TRY(put_record(s));
  CALX_TRY(get_records(s, all));
  CALX_TRY(find_hosts(all, w));
  out->pids = cx_calloc(w->host_processes, sizeof *out->pids);
  if (out->pids == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < w->host_processes; i++) {
    out->pids[i] = all[w->host_first + i].pid;
  }
  CALX_TRY(w->process == w->host_first ? share_segment(s, out)
                                       : open_segment(s, out));
  w->segment_fd = out->fd;
  return NULL;
}

calx_status *cpu_api_meet(const cpu_api_store *store, cpu_api_world *w,
                          cpu_api_meeting *out)
{
  process_record *all = cx_calloc(w->n_processes, sizeof *all);
  if (all == NULL) return cx_out_of_memory();
  calx_status *status = meet(store, all, w, out);
  cx_free(all);
  if (status != NULL) cpu_api_meeting_end(out);
  return status;
}

void cpu_api_meeting_end(cpu_api_meeting *meeting)
{
  if (meeting->fd >= 0) close(meeting->fd);
  cx_free(meeting->pids);
  *meeting = (cpu_api_meeting){ .fd = -1 };
}
