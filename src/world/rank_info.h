// world/rank_info: what the environment says of this process's place, and of
// where the store is.
#ifndef CX_WORLD_RANK_INFO_H
#define CX_WORLD_RANK_INFO_H

#include "world/world.h"

typedef struct cx_world_endpoint {
  char url[320];  // tcp://host:port, abstract://name; "": none is needed
  // Whether a process 0 serves the store; else the launcher does.
  bool by_process;
  // Whether the launcher told the hosts; else `place` has a guess, blocks of
  // equal size, which joining replaces by what the processes tell each other.
  bool hosts_told;
} cx_world_endpoint;

calx_status *cx_world_info_read(cx_world_info *out_place,
                                cx_world_endpoint *out_route) CALX_MUST_USE;

// The first name of a Slurm node list: "n[03-05,9],m" gives n03. False where it
// is none or does not fit.
bool cx_world_first_node(const char *list, char *out, size_t room);
// Entry `index` of a list such as "2(x3),1"; 0 where it has none.
int cx_world_tasks_of_node(const char *list, int index);

#endif
