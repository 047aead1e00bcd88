// world/join: the exchanges by which processes join.
#ifndef CX_WORLD_JOIN_H
#define CX_WORLD_JOIN_H

#include "world/state.h"

// All processes exchange their rank infos. Completes this process's own info
// where the launcher did not name the hosts, and gives the host of each process
// (the caller frees *out_hosts with cx_free()).
calx_status *cx_world_join_hosts(bool hosts_known, int64_t timeout_ms,
                                 int **out_hosts) CALX_MUST_USE;
// Opens the segment that this host's processes share, if there are several, and
// forms the groups: *hosts becomes the group of each process.
calx_status *cx_world_join_segment(int *hosts,
                                   int64_t timeout_ms) CALX_MUST_USE;

#endif
