// coll/peers: whether the other processes of this host live.
//
// Where a launcher watches the processes it reports the one that ends
// (abi/calx_segment.h). Processes that met without a launcher watch each other:
// a member that waits asks whether the processes of those that are missing have
// ended.
#ifndef CPU_COLL_PEERS_H
#define CPU_COLL_PEERS_H

#include "coll/participant.h"

typedef struct cpu_coll_peer {
  int64_t pid;
  int fd;  // of the process (pidfd_open(2)); -1: it could not be opened
} cpu_coll_peer;

// Begins to watch the processes of the topology. Without their ids none is
// watched.
calx_status *cpu_coll_peers_open(cpu_coll *coll) CALX_MUST_USE;
void cpu_coll_peers_close(cpu_coll *coll);

// Whether the process that has the device of this slot is known to have ended.
bool cpu_coll_peer_has_ended(const cpu_coll *coll, uint32_t slot);
// "process 1 (pid 4711) has ended", of such a device.
calx_status *cpu_coll_peer_error(const cpu_coll *coll, uint32_t slot,
                                 const cpu_coll_submission *submission)
    CALX_MUST_USE;

#endif
