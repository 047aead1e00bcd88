// world/join: hosts, and the memory that each host's processes share.
//
// Not every launcher numbers the hosts (mpirun does not), so each process tells
// what its launcher said and an identity of its host, and all work out the same
// answer from the same list.
//
// The window comes from the launcher, or the host's first process makes it and
// the others open it through /proc. Where that is not allowed, all processes of
// that host learn it, and each goes on as a host of its own: slower, and a line
// says so.
#include "world/join.h"
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/client.h"
#include "world/endpoint.h"

calx_status *cx_world_exchange(const char *name, const void *value, size_t size,
                               int64_t timeout_ms, char **out, size_t *out_size)
{
  cx_store_request r;
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE_ALL, name, &r));
  r.a = cx_world_global.place.process;
  r.b = cx_world_global.place.processes;
  r.value = value;
  r.size = size;
  r.wait_ms = timeout_ms;
  return cx_store_client_call(cx_world_global.client, &r, out, out_size);
}

// ---- places -----------------------------------------------------------------

typedef struct told {
  int32_t host, hosts, local, locals;
  bool sure;         // the launcher told the host
  cx_hash identity;  // of the host
} told;

enum { TOLD_BYTES = 33 };

// Processes that can share memory through /proc see the same processes, of the
// same start of a kernel: the namespace that a kernel begins with has one
// number everywhere.
static cx_hash host_identity(void)
{
  char text[512] = "", name[256] = "", boot[64] = "";
  gethostname(name, sizeof name - 1);
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file != NULL && fgets(boot, sizeof boot, file) == NULL) boot[0] = '\0';
  if (file != NULL) fclose(file);
  ssize_t n = readlink("/proc/self/ns/pid", text, 128);
  size_t used = n > 0 ? (size_t)n : 0;
  used +=
      (size_t)snprintf(text + used, sizeof text - used, " %s %s", name, boot);
  return cx_hash_bytes(text, used, 0);
}

static void write_told(const told *t, unsigned char out[TOLD_BYTES])
{
  cx_store_wire_put32(out, (uint32_t)t->host);
  cx_store_wire_put32(out + 4, (uint32_t)t->hosts);
  cx_store_wire_put32(out + 8, (uint32_t)t->local);
  cx_store_wire_put32(out + 12, (uint32_t)t->locals);
  out[16] = t->sure;
  cx_store_wire_put64(out + 17, t->identity.low);
  cx_store_wire_put64(out + 25, t->identity.high);
}

static calx_status *read_told(const char *list, size_t left, told *out)
{
  for (int i = 0; i < cx_world_global.place.processes; i++) {
    const char *value;
    size_t size;
    if (!cx_store_wire_next(&list, &left, &value, &size) ||
        size != TOLD_BYTES) {
      return cx_error(CALX_DATA_LOSS,
                      "what process %d tells of its place is damaged", i);
    }
    const unsigned char *in = (const unsigned char *)value;
    out[i] = (told){ .host = (int32_t)cx_store_wire_get32(in),
                     .hosts = (int32_t)cx_store_wire_get32(in + 4),
                     .local = (int32_t)cx_store_wire_get32(in + 8),
                     .locals = (int32_t)cx_store_wire_get32(in + 12),
                     .sure = in[16] != 0,
                     .identity = { cx_store_wire_get64(in + 17),
                                   cx_store_wire_get64(in + 25) } };
  }
  return NULL;
}

// Hosts by their identities, in the order of their first processes.
static int number_hosts(told *t, int n)
{
  int hosts = 0;
  for (int i = 0; i < n; i++) {
    int same = 0;
    while (same < i && !cx_hash_equal(t[same].identity, t[i].identity)) same++;
    t[i].host = same < i ? t[same].host : hosts++;
  }
  for (int i = 0; i < n; i++) {
    t[i].hosts = hosts;
    t[i].local = t[i].locals = 0;
    for (int k = 0; k < n; k++) {
      if (t[k].host != t[i].host) continue;
      t[i].locals++;
      t[i].local += k < i;
    }
  }
  return hosts;
}

static calx_status *check_told(const told *t, int n)
{
  for (int i = 0; i < n; i++) {
    if (t[i].host < 0 || t[i].host >= t[i].hosts || t[i].hosts > n) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "process %d of %d says that it is on host %d of %d", i, n,
                      (int)t[i].host, (int)t[i].hosts);
    }
    if (t[i].hosts != t[0].hosts) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "process 0 says that there are %d hosts, process %d says "
                      "%d",
                      (int)t[0].hosts, i, (int)t[i].hosts);
    }
    int here = 0;
    for (int k = 0; k < n; k++) {
      here += t[k].host == t[i].host;
      if (k == i || t[k].host != t[i].host || t[k].local != t[i].local) {
        continue;
      }
      return cx_error(CALX_INVALID_ARGUMENT,
                      "processes %d and %d both say that they are number %d of "
                      "host %d",
                      i, k, (int)t[i].local, (int)t[i].host);
    }
    if (here == t[i].locals) continue;
    return cx_error(CALX_INVALID_ARGUMENT,
                    "process %d says that host %d has %d processes, it has %d",
                    i, (int)t[i].host, (int)t[i].locals, here);
  }
  return NULL;
}

static calx_status *place_all(told *t, int *hosts)
{
  cx_world_info *place = &cx_world_global.place;
  int n = place->processes;
  bool sure = true;
  for (int i = 0; i < n; i++) sure = sure && t[i].sure;
  if (sure) {
    CALX_TRY(check_told(t, n));
  } else {
    place->hosts = number_hosts(t, n);
  }
  const told *own = &t[place->process];
  place->host = own->host;
  place->local_process = own->local;
  place->local_processes = own->locals;
  for (int i = 0; i < n; i++) hosts[i] = t[i].host;
  return NULL;
}

calx_status *cx_world_join_hosts(bool hosts_told, int64_t timeout_ms,
                                 int **out_hosts)
{
  const cx_world_info *place = &cx_world_global.place;
  size_t n = (size_t)place->processes;
  told own = { place->host,          place->hosts,
               place->local_process, place->local_processes,
               hosts_told,           host_identity() };
  unsigned char bytes[TOLD_BYTES];
  write_told(&own, bytes);
  char *list;
  size_t size;
  CALX_TRY(cx_world_exchange("joining", bytes, sizeof bytes, timeout_ms, &list,
                             &size));
  told *all = cx_calloc(n, sizeof *all);
  *out_hosts = cx_calloc(n, sizeof **out_hosts);
  calx_status *status =
      all == NULL || *out_hosts == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = read_told(list, size, all);
  if (status == NULL) status = place_all(all, *out_hosts);
  cx_free(all);
  cx_free(list);
  return status;
}

// ---- the window -------------------------------------------------------------

static calx_status *window_of_launcher(cx_world_segment *out)
{
  int fd;
  CALX_TRY(cx_env_int("CALX_WINDOW_FD", 0, 1 << 20, &fd));
  return cx_annotate(
      cx_world_segment_open(fd, cx_world_global.place.local_processes, out),
      "CALX_WINDOW_FD is %d", fd);
}

// The first process of a host tells the others where its window is.
static calx_status *window_of_first(int64_t timeout_ms, cx_world_segment *out)
{
  const cx_world_info *place = &cx_world_global.place;
  char key[64], text[64] = "";
  snprintf(key, sizeof key, "world/window/%d", place->host);
  if (place->local_process == 0) {
    calx_status *status = cx_world_segment_create(place->local_processes, out);
    if (status == NULL) {
      snprintf(text, sizeof text, "%ld %d", (long)getpid(), out->fd);
    }
    calx_status *put = cx_world_store_put(key, text, strlen(text));
    if (status == NULL) return put;
    calx_status_free(put);
    return status;
  }
  char *value;
  size_t size;
  long long pid = 0;
  int fd = -1;
  CALX_TRY(cx_world_store_get(key, timeout_ms, &value, &size));
  int found = sscanf(value, "%lld %d", &pid, &fd);
  cx_free(value);
  if (found != 2) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "this host's first process has no memory to share");
  }
  return cx_world_segment_open_of(pid, fd, place->local_processes, out);
}

// The processes that share memory are one group: all of a host, or, where one
// of them could not, each by itself.
static void make_groups(const char *list, size_t left, int *hosts)
{
  int n = cx_world_global.place.processes, groups = 0;
  bool *shared = cx_calloc((size_t)n, sizeof *shared);
  int *group_of_host = cx_calloc((size_t)n, sizeof *group_of_host);
  if (shared == NULL || group_of_host == NULL) n = 0;
  for (int h = 0; h < n; h++) {
    shared[h] = true;
    group_of_host[h] = -1;
  }
  for (int i = 0; i < n; i++) {
    const char *value;
    size_t size;
    bool could = cx_store_wire_next(&list, &left, &value, &size) && size == 0;
    if (!could) shared[hosts[i]] = false;
  }
  for (int i = 0; i < n; i++) {
    int h = hosts[i];
    if (!shared[h] || group_of_host[h] < 0) {
      group_of_host[h] = groups++;
    }
    hosts[i] = group_of_host[h];
  }
  cx_world_global.groups = groups;
  cx_world_global.group = n > 0 ? hosts[cx_world_global.place.process] : 0;
  cx_free(shared);
  cx_free(group_of_host);
}

static bool host_shares(const char *list, size_t left, const int *hosts)
{
  bool shares = true;
  for (int i = 0; i < cx_world_global.place.processes; i++) {
    const char *value;
    size_t size;
    bool could = cx_store_wire_next(&list, &left, &value, &size) && size == 0;
    if (hosts[i] == cx_world_global.place.host) shares = shares && could;
  }
  return shares;
}

calx_status *cx_world_join_segment(int *hosts, int64_t timeout_ms)
{
  const cx_world_info *place = &cx_world_global.place;
  cx_world_segment window = { .fd = -1 };
  calx_status *why = NULL;
  // Also for one process: the engine looks there for the news.
  if (place->local_processes > 1 || place->hosts > 1) {
    why = cx_env_text("CALX_WINDOW_FD") != NULL
              ? window_of_launcher(&window)
              : window_of_first(timeout_ms, &window);
  }
  const char *text = why != NULL ? cx_status_sentence(why) : "";
  size_t length = strlen(text) < 1000 ? strlen(text) : 1000, size;
  char *list;
  calx_status *status = cx_world_exchange("sharing memory", text, length,
                                          timeout_ms, &list, &size);
  if (status == NULL && why != NULL) {
    cx_log(
        "the processes of this host share no memory (%s): their ranks agree "
        "through the store, which is slower",
        text);
  }
  calx_status_free(why);
  bool shares = status == NULL && host_shares(list, size, hosts);
  if (status == NULL) make_groups(list, size, hosts);
  if (status == NULL) cx_free(list);
  if (!shares) cx_world_segment_close(&window);
  cx_world_global.window = window;
  if (status != NULL) return status;
  return cx_world_global.groups > 0 ? NULL : cx_out_of_memory();
}
