// coll/peers: see peers.h.
#include "coll/peers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/state.h"

static uint32_t count(const cpu_coll *coll)
{
  return coll->topology.n_host / coll->topology.n_own;
}

calx_status *cpu_coll_peers_open(cpu_coll *coll)
{
  const int64_t *pids = coll->topology.pids;
  coll->topology.pids = NULL;  // it is the caller's
  if (pids == NULL) return NULL;
  coll->peers = cx_calloc(count(coll), sizeof *coll->peers);
  if (coll->peers == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < count(coll); i++) {
    coll->peers[i] = (cpu_coll_peer){
      .pid = pids[i], .fd = (int)syscall(SYS_pidfd_open, (pid_t)pids[i], 0)
    };
  }
  return NULL;
}

void cpu_coll_peers_close(cpu_coll *coll)
{
  for (uint32_t i = 0; coll->peers != NULL && i < count(coll); i++) {
    if (coll->peers[i].fd >= 0) close(coll->peers[i].fd);
  }
  cx_free(coll->peers);
}

// The descriptor becomes readable when the process ends, and cannot mean a
// later process with the same id. Without it a process whose parent has not
// waited for its end is taken to live.
bool cpu_coll_peer_has_ended(const cpu_coll *coll, uint32_t slot)
{
  if (coll->peers == NULL || slot >= coll->topology.n_host) return false;
  const cpu_coll_peer *peer = &coll->peers[slot / coll->topology.n_own];
  struct pollfd watched = { .fd = peer->fd, .events = POLLIN };
  if (peer->fd >= 0) return poll(&watched, 1, 0) == 1;
  return kill((pid_t)peer->pid, 0) != 0 && errno == ESRCH;
}

calx_status *cpu_coll_peer_error(const cpu_coll *coll, uint32_t slot,
                                 const cpu_coll_submission *submission)
{
  const cpu_coll_topology *t = &coll->topology;
  const uint32_t device = cpu_coll_device_of_slot(coll, slot);
  return cx_error(CALX_ABORTED,
                  "%s: process %u (pid %lld), which has device "
                  "%u, has ended",
                  submission == NULL ? "a program with collectives"
                                     : cpu_coll_name(submission->op),
                  (unsigned)(device / t->n_own),
                  (long long)coll->peers[slot / t->n_own].pid,
                  (unsigned)device);
}
