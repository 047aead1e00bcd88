// world/local_group: see cx_world_local_group() in world.h. All processes work
// it out from the same list, so they agree.
#include "world/state.h"

// Groups as blocks of processes; false: some group is in pieces.
static bool count_blocks(cx_world_group *out)
{
  const cx_world_info *here = &cx_world_global.place;
  *out = (cx_world_group){ .group = -1 };
  for (int i = 0; i < here->processes; i++) {
    if (i == 0 || cx_world_group_of(i) != cx_world_group_of(i - 1)) {
      if (cx_world_group_of(i) != out->groups++) return false;
      if (out->group < 0) out->first = i;
    }
    if (i == here->process) out->group = out->groups - 1;
    out->count += out->group < 0 ? 0 : out->group == out->groups - 1;
  }
  out->count += here->process - out->first;
  return true;
}

cx_world_group cx_world_local_group(void)
{
  const cx_world_info *here = &cx_world_global.place;
  cx_world_group near;
  if (count_blocks(&near)) {
    near.window_fd = cx_world_global.window.fd;
    return near;
  }
  return (cx_world_group){ .group = here->process,
                           .groups = here->processes,
                           .first = here->process,
                           .count = 1,
                           .window_fd = -1 };
}
