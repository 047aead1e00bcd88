// world/join: finds the hosts, and opens the memory that each host's processes
// share.
//
// Not every launcher numbers the hosts (mpirun does not). So each process sends
// its launcher's numbers and an identity of its host, and all compute the
// same result from the same list.
//
// The launcher passes the segment, or the host's first process creates it and
// the others open it through /proc. If one of them cannot open it, all
// processes of the host learn so, and each becomes a group of its own. That is
// slower, and is logged.
#include "world/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/host.h"
#include "store/client.h"

// ---- hosts ------------------------------------------------------------------

// What a process sends about itself, as it lies in memory: hosts of one job
// have one byte order.
typedef struct report {
  cx_hash identity;  // of the host
  int32_t host, hosts, local, locals;
  int64_t hosts_known;  // not 0: the launcher has named the host
} report;

_Static_assert(sizeof(report) == 40, "report: it has no padding");

static calx_status *read_reports(const char *list, size_t left, report *out)
{
  for (int i = 0; i < cx_world_global.info.processes; i++) {
    if (cx_world_exchange_next(&list, &left, &out[i], sizeof *out)) continue;
    return cx_error(CALX_DATA_LOSS, "the rank info of process %d is damaged",
                    i);
  }
  return NULL;
}

// Numbers the hosts by their identities, in the order of their first processes.
static void number_hosts(report *r, int n)
{
  int hosts = 0;
  for (int i = 0; i < n; i++) {
    int same = 0;
    while (same < i && !cx_hash_equal(r[same].identity, r[i].identity)) same++;
    r[i].host = same < i ? r[same].host : hosts++;
  }
  for (int i = 0; i < n; i++) {
    r[i].hosts = hosts;
    r[i].local = r[i].locals = 0;
    for (int k = 0; k < n; k++) {
      if (r[k].host != r[i].host) continue;
      r[i].locals++;
      r[i].local += k < i;
    }
  }
}

// Checks that the launchers' numbers agree.
static calx_status *check_reports(const report *r, int n)
{
  for (int i = 0; i < n; i++) {
    if (r[i].host < 0 || r[i].host >= r[i].hosts || r[i].hosts > n) {
      return cx_invalid("process %d of %d reports that it is on host %d of %d",
                        i, n, (int)r[i].host, (int)r[i].hosts);
    }
    if (r[i].hosts != r[0].hosts) {
      return cx_invalid("process 0 reports %d hosts, process %d reports %d",
                        (int)r[0].hosts, i, (int)r[i].hosts);
    }
    int here = 0;
    for (int k = 0; k < n; k++) {
      here += r[k].host == r[i].host;
      if (k == i || r[k].host != r[i].host || r[k].local != r[i].local) {
        continue;
      }
      return cx_invalid(
          "processes %d and %d both report that they are number %d of host %d",
          i, k, (int)r[i].local, (int)r[i].host);
    }
    if (here == r[i].locals) continue;
    return cx_invalid(
        "process %d reports that host %d has %d processes, it has %d", i,
        (int)r[i].host, (int)r[i].locals, here);
  }
  return NULL;
}

static calx_status *use_reports(report *r, int *hosts)
{
  cx_world_info *self = &cx_world_global.info;
  int n = self->processes;
  bool known = true;
  for (int i = 0; i < n; i++) known = known && r[i].hosts_known != 0;
  if (known) {
    CALX_TRY(check_reports(r, n));
  } else {
    number_hosts(r, n);
  }
  const report *own = &r[self->process];
  self->host = own->host;
  self->hosts = own->hosts;
  self->local_process = own->local;
  self->local_processes = own->locals;
  for (int i = 0; i < n; i++) hosts[i] = r[i].host;
  return NULL;
}

calx_status *cx_world_join_hosts(bool hosts_known, int64_t timeout_ms,
                                 int **out_hosts)
{
  const cx_world_info *self = &cx_world_global.info;
  size_t n = (size_t)self->processes;
  report own = { .identity = cx_host_identity(),
                 .host = self->host,
                 .hosts = self->hosts,
                 .local = self->local_process,
                 .locals = self->local_processes,
                 .hosts_known = hosts_known };
  char *list;
  size_t size;
  CALX_TRY(
      cx_world_exchange("joining", &own, sizeof own, timeout_ms, &list, &size));
  report *all = cx_calloc(n, sizeof *all);
  *out_hosts = cx_calloc(n, sizeof **out_hosts);
  calx_status *status =
      all == NULL || *out_hosts == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = read_reports(list, size, all);
  if (status == NULL) status = use_reports(all, *out_hosts);
  cx_free(all);
  cx_free(list);
  return status;
}

// ---- the segment ------------------------------------------------------------

static calx_status *open_from_launcher(cx_world_segment *out)
{
  int fd;
  CALX_TRY(cx_env_int("CALX_SEGMENT_FD", 0, 1 << 20, &fd));
  return cx_annotate(
      cx_world_segment_open(fd, cx_world_global.info.local_processes, out),
      "CALX_SEGMENT_FD is %d", fd);
}

// The host's first process creates the segment, and puts "PID FD" into the
// store; without memory it puts an empty text.
static calx_status *create_for_host(const char *key, cx_world_segment *out)
{
  char text[64] = "";
  calx_status *status =
      cx_world_segment_create(cx_world_global.info.local_processes, out);
  if (status == NULL) {
    snprintf(text, sizeof text, "%ld %d", (long)getpid(), out->fd);
  }
  calx_status *put = cx_world_store_put(key, text, strlen(text));
  if (status == NULL) return put;
  calx_status_free(put);
  return status;
}

static calx_status *open_of_host(int64_t timeout_ms, cx_world_segment *out)
{
  const cx_world_info *self = &cx_world_global.info;
  char key[64], *value;
  size_t size;
  long long pid = 0;
  int fd = -1;
  snprintf(key, sizeof key, "world/segment/%d", self->host);
  if (self->local_process == 0) return create_for_host(key, out);
  CALX_TRY(cx_world_store_get(key, timeout_ms, &value, &size));
  int found = sscanf(value, "%lld %d", &pid, &fd);
  cx_free(value);
  if (found != 2) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "this host's first process has no memory to share");
  }
  return cx_world_segment_open_of(pid, fd, self->local_processes, out);
}

// Forms a group of each host, or of each process where one of the host's could
// not open the segment (its value in the list is the reason). Returns whether
// this host shares its segment.
static calx_status *form_groups(const char *list, size_t left, int *hosts,
                                bool *out_shares)
{
  cx_world_state *w = &cx_world_global;
  int n = w->info.processes, groups = 0;
  bool *failed = cx_calloc((size_t)n, sizeof *failed);     // [host]
  int *group_of = cx_calloc((size_t)n, sizeof *group_of);  // [host], 0: none
  calx_status *status =
      failed == NULL || group_of == NULL ? cx_out_of_memory() : NULL;
  for (int i = 0; i < n && status == NULL; i++) {
    const char *value;
    size_t size;
    bool opened = cx_store_wire_next(&list, &left, &value, &size) && size == 0;
    failed[hosts[i]] = failed[hosts[i]] || !opened;
  }
  *out_shares = status == NULL && !failed[w->info.host];
  for (int i = 0; i < n && status == NULL; i++) {
    int h = hosts[i];
    if (failed[h] || group_of[h] == 0) group_of[h] = ++groups;
    hosts[i] = group_of[h] - 1;
  }
  if (status == NULL) {
    w->groups = groups;
    w->group = hosts[w->info.process];
  }
  cx_free(failed);
  cx_free(group_of);
  return status;
}

calx_status *cx_world_join_segment(int *hosts, int64_t timeout_ms)
{
  const cx_world_info *self = &cx_world_global.info;
  cx_world_segment segment = { .fd = -1 };
  calx_status *why = NULL;
  // One process of several hosts needs it too: the engine reads the job's
  // failure there.
  if (self->local_processes > 1 || self->hosts > 1) {
    why = cx_env_text("CALX_SEGMENT_FD") != NULL
              ? open_from_launcher(&segment)
              : open_of_host(timeout_ms, &segment);
  }
  const char *text = why != NULL ? cx_status_sentence(why) : "";
  size_t length = strnlen(text, 1000), size;
  char *list = NULL;
  bool shares = false;
  calx_status *status = cx_world_exchange("sharing memory", text, length,
                                          timeout_ms, &list, &size);
  if (status == NULL && why != NULL) {
    cx_log(
        "the processes of this host share no memory (%s): their ranks agree "
        "through the store, which is slower",
        text);
  }
  calx_status_free(why);
  if (status == NULL) status = form_groups(list, size, hosts, &shares);
  cx_free(list);
  if (!shares) cx_world_segment_close(&segment);
  cx_world_global.segment = segment;
  return status;
}
