// world/local_group: see cx_world_local_group() in world.h. All processes
// compute it from the same list, so they agree.
#include "world/state.h"

// Finds this process's group. False: the processes of some group are not
// consecutive.
static bool find_group(cx_world_group *out)
{
  const cx_world_info *self = &cx_world_global.info;
  *out = (cx_world_group){ .segment_fd = cx_world_global.segment.fd };
  for (int i = 0; i < self->processes; i++) {
    int group = cx_world_group_of(i);
    if (i == 0 || group != cx_world_group_of(i - 1)) {
      if (group != out->groups++) return false;
      if (group == cx_world_group_of(self->process)) {
        out->group = group;
        out->first = i;
      }
    }
    out->count += group == cx_world_group_of(self->process);
  }
  return true;
}

cx_world_group cx_world_local_group(void)
{
  const cx_world_info *self = &cx_world_global.info;
  cx_world_group group;
  if (find_group(&group)) return group;
  return (cx_world_group){ .group = self->process,
                           .groups = self->processes,
                           .first = self->process,
                           .count = 1,
                           .segment_fd = -1 };
}
