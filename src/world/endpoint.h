// world/endpoint: where the store of a launcher's processes is.
#ifndef CX_WORLD_ENDPOINT_H
#define CX_WORLD_ENDPOINT_H

#include "world/rank_info.h"

// Fills in all but hosts_told.
calx_status *cx_world_endpoint_read(const cx_world_info *place,
                                    cx_world_endpoint *route) CALX_MUST_USE;

// A line where a job on several hosts has a store that takes whoever can reach
// it.
void cx_world_endpoint_warn(const char *url, int hosts, const char *token);

#endif
