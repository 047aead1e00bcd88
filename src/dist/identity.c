// dist/identity: which rank the calling thread is. The world knows the
// process's number, the thread's device its number in the process.
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>

#include "debug/screen.h"
#include "dist/dist.h"
#include "lazy/lazy.h"

int cx_dist_local_rank(void)
{
  // Outside of a launch the world has one rank, whatever devices there are.
  int index = cx_lazy_device_index_of_thread();
  return index < cx_world_self()->devices ? index : 0;
}

int calx_world_size(void)
{
  return cx_world_size(cx_world_self());
}

int calx_global_ordinal(void)
{
  const cx_world_info *here = cx_world_self();
  return here->process * here->devices + cx_dist_local_rank();
}

int calx_local_ordinal(void)
{
  const cx_world_info *here = cx_world_self();
  return here->local_process * here->devices + cx_dist_local_rank();
}

int calx_local_world_size(void)
{
  const cx_world_info *here = cx_world_self();
  return here->local_processes * here->devices;
}

int calx_process_index(void)
{
  return cx_world_self()->process;
}

int calx_process_count(void)
{
  return cx_world_self()->processes;
}

int calx_host_index(void)
{
  return cx_world_self()->host;
}

int calx_host_count(void)
{
  return cx_world_self()->hosts;
}

bool calx_is_master_ordinal(bool local)
{
  return (local ? calx_local_ordinal() : calx_global_ordinal()) == 0;
}

void calx_master_print(const char *format, ...)
{
  if (!calx_is_master_ordinal(false)) return;
  cx_debug_screen_make_room();
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  fflush(stdout);
}

void cx_dist_show_lines(void)
{
  // The mode of a stream may be set before anything else is done with it: as
  // long as it has no buffer (stdio_ext(3)).
  if (__fbufsize(stdout) == 0) {
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  } else {
    fflush(stdout);
  }
}
