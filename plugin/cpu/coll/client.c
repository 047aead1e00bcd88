// coll/client: what a client of the engine has for its collectives, and the
// numbers of device groups and launches.
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "coll/remote.h"
#include "coll/state.h"
#include "threads/threads.h"

enum { SPINS = 20000 };

void cpu_coll_free(cpu_coll *coll)
{
  if (coll == NULL) return;
  // MPI may still write to buffers of transfers that were given up. Those stay
  // mapped for as long as the process lives.
  cpu_coll_segment_close(coll, cpu_coll_link_close(coll->link));
  cpu_coll_peers_close(coll);
  for (uint32_t i = 0; coll->local != NULL && i < coll->topology.n_own; i++) {
    cx_free(coll->local[i].host_groups);
  }
  cx_mutex_free(&coll->lock);
  cx_free(coll->local);
  cx_free(coll->hosts);
  cx_free(coll);
}

// The number of this client among those that the process has opened.
static uint64_t count_client(cpu_coll *coll)
{
  static _Atomic uint32_t clients;  // without a segment from outside
  if (coll->topology.fd < 0) return atomic_fetch_add(&clients, 1);
  return atomic_fetch_add(&coll->head->clients[coll->local[0].slot], 1);
}

static calx_status *open_all(cpu_coll *coll)
{
  const cpu_coll_topology *t = &coll->topology;
  CALX_TRY(cpu_coll_peers_open(coll));
  CALX_TRY(cpu_coll_segment_open(coll));
  coll->local = cx_calloc(t->n_own, sizeof *coll->local);
  coll->hosts = cx_calloc(t->n_world / t->n_own, sizeof *coll->hosts);
  if (coll->local == NULL || coll->hosts == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < t->n_own; i++) {
    coll->local[i].slot = t->own_first - t->host_first + i;
  }
  coll->seed = count_client(coll);
  coll->parity = (unsigned)coll->seed & 1;
  // Spinning only helps where every device has a core, and the link's thread.
  const bool remote = t->n_world > t->n_host;
  coll->spins = t->n_host + remote <= (uint32_t)cpu_threads_cores() ? SPINS : 0;
  if (remote) return cpu_coll_remote_open(coll);
  coll->hosts[coll->n_hosts++] = (cpu_coll_host){ t->host_first, t->n_host };
  return NULL;
}

calx_status *cpu_coll_new(const cpu_coll_topology *topology, cpu_coll **out)
{
  *out = NULL;
  if (topology->n_host > CPU_COLL_HOST_DEVICES) {
    return cx_invalid("%u devices on this host; at most %d are supported",
                      (unsigned)topology->n_host, CPU_COLL_HOST_DEVICES);
  }
  cpu_coll *coll = cx_calloc(1, sizeof *coll);
  if (coll == NULL) return cx_out_of_memory();
  coll->fd = -1;
  coll->topology = *topology;
  if (coll->topology.n_world < topology->n_host) {
    coll->topology.n_world = topology->n_host;
  }
  if (coll->topology.n_world == topology->n_own) coll->topology.fd = -1;
  cx_mutex_init(&coll->lock);
  calx_status *status = open_all(coll);
  coll->topology.meet = NULL;  // it was the caller's
  coll->topology.meet_user = NULL;
  if (status != NULL) {
    cpu_coll_free(coll);
    return status;
  }
  *out = coll;
  return NULL;
}

// ---- device groups and launches ----

calx_status *cpu_coll_device_group(cpu_coll *coll, const uint32_t *devices,
                                   size_t n, uint32_t *out)
{
  const cx_hash hash = cx_hash_bytes(devices, n * sizeof *devices, coll->seed);
  // A key of 0 would mean a free entry.
  if (cpu_coll_find_device_group(coll, hash.low | 1, out)) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "programs with collectives run on at most %d different lists "
                  "of devices; those of closed clients count too",
                  CPU_COLL_DEVICE_GROUPS);
}

static _Atomic uint64_t *launches_of(cpu_coll *coll, uint32_t device_group,
                                     uint32_t device)
{
  return &coll->local[device - coll->topology.own_first].launches[device_group];
}

uint64_t cpu_coll_launch_count(cpu_coll *coll, uint32_t device_group,
                               uint32_t device)
{
  return atomic_load(launches_of(coll, device_group, device));
}

uint64_t cpu_coll_next_launch(cpu_coll *coll, uint32_t device_group,
                              uint32_t device, uint64_t least)
{
  _Atomic uint64_t *count = launches_of(coll, device_group, device);
  uint64_t n = atomic_load(count);
  if (n < least) n = least;
  atomic_store(count, n + 1);
  return n + 1;
}
