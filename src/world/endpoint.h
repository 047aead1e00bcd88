// world/endpoint: finds where the store listens, by the launcher's variables.
#ifndef CX_WORLD_ENDPOINT_H
#define CX_WORLD_ENDPOINT_H

#include "world/rank_info.h"

// Sets all fields but hosts_known.
calx_status *cx_world_endpoint_read(const cx_world_info *info,
                                    cx_world_endpoint *out) CALX_MUST_USE;

// Logs a warning if anybody who can reach the store could join a job of several
// hosts.
void cx_world_endpoint_warn(const char *url, int hosts, const char *token);

#endif
