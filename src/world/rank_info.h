// world/rank_info: reads from the environment which process this is and where
// the store is.
#ifndef CX_WORLD_RANK_INFO_H
#define CX_WORLD_RANK_INFO_H

#include "world/world.h"

// Where the store listens.
typedef struct cx_world_endpoint {
  char url[320];    // tcp://host:port, abstract://name; "": none is needed
  bool by_process;  // process 0 serves the store; else the launcher does
  // The launcher has named the hosts. Else the info is a guess, with blocks of
  // equal size, which joining replaces by what the processes report.
  bool hosts_known;
} cx_world_endpoint;

calx_status *cx_world_info_read(cx_world_info *out_info,
                                cx_world_endpoint *out_endpoint) CALX_MUST_USE;

// The first name of a Slurm node list: "n[03-05,9],m" gives n03. False: it is
// no list, or the name does not fit.
bool cx_world_first_node(const char *list, char *out, size_t room);
// Entry `index` of a list such as "2(x3),1"; 0 where it has none.
int cx_world_tasks_of_node(const char *list, int index);

#endif
