// world/join: what processes tell each other when they meet first.
#ifndef CX_WORLD_JOIN_H
#define CX_WORLD_JOIN_H

#include "world/state.h"

// All processes tell where they are; completes cx_world_global's place, where
// the launcher did not tell the hosts, and out_hosts: the host of each process
// (cx_free() it).
calx_status *cx_world_join_hosts(bool hosts_told, int64_t timeout_ms,
                                 int **out_hosts) CALX_MUST_USE;
// The window of this host's processes, if there are several, and the groups.
calx_status *cx_world_join_segment(int *hosts,
                                   int64_t timeout_ms) CALX_MUST_USE;

// All processes bring a value and get those of all: cx_store_wire_next()'s
// list.
calx_status *cx_world_exchange(const char *name, const void *value, size_t size,
                               int64_t timeout_ms, char **out,
                               size_t *out_size) CALX_MUST_USE;

#endif
