// world/route: where the store of a launcher's processes is.
#ifndef CX_WORLD_ROUTE_H
#define CX_WORLD_ROUTE_H

#include "world/place.h"

// Fills in all but hosts_told.
calx_status *cx_route_read(const cx_world_place *place,
                           cx_route *route) CALX_MUST_USE;

// A line where a job on several hosts has a store that takes whoever can reach
// it.
void cx_route_warn(const char *url, int hosts, const char *token);

// A variable's text; NULL where it is not set or empty.
const char *cx_place_variable(const char *name);
// A variable that tells seconds, in ms: more than 0, with or_none also 0. Where
// it is not set, or, with a line about it, is no such number, `otherwise` s.
int64_t cx_place_seconds(const char *name, bool or_none, int otherwise);
// A variable for what this process starts.
void cx_place_set(const char *name, int value);
// A variable's number from 0 to `most`; -1 where it is not set, or name is
// NULL.
calx_status *cx_place_number(const char *name, int most,
                             int *out) CALX_MUST_USE;

#endif
