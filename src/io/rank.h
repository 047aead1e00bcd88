// io/rank: which rank the calling thread is.
#ifndef CX_IO_RANK_H
#define CX_IO_RANK_H

#include "lazy/lazy.h"
#include "world/world.h"

// The calling thread's global ordinal. Where a process has one rank it is the
// process's, so that no device is opened to ask for it.
static inline int cx_io_rank(void)
{
  const cx_world_info *here = cx_world_self();
  if (here->devices <= 1) return here->process;
  calx_device *device = calx_device_current();
  return device != NULL ? cx_lazy_device_rank(device) : here->process;
}

static inline int cx_io_ranks(void)
{
  return cx_world_size(cx_world_self());
}

#endif
