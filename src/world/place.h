// world/place: what the environment says of this process's place, and of where
// the store is.
#ifndef CX_WORLD_PLACE_H
#define CX_WORLD_PLACE_H

#include "world/world.h"

typedef struct cx_route {
  char url[320];  // tcp://host:port, abstract://name; "": none is needed
  // Whether a process 0 serves the store; else the launcher does.
  bool by_process;
  // Whether the launcher told the hosts; else `place` has a guess, blocks of
  // equal size, which joining replaces by what the processes tell each other.
  bool hosts_told;
} cx_route;

calx_status *cx_place_read(cx_world_place *out_place,
                           cx_route *out_route) CALX_MUST_USE;

// The first name of a Slurm node list: "n[03-05,9],m" gives n03. False where it
// is none or does not fit.
bool cx_place_first_node(const char *list, char *out, size_t room);
// Entry `index` of a list such as "2(x3),1"; 0 where it has none.
int cx_place_tasks_of_node(const char *list, int index);

#endif
