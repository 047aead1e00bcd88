// world/origin: which job and which start of it this process belongs to.
#ifndef CX_WORLD_ORIGIN_H
#define CX_WORLD_ORIGIN_H

#include "store/wire.h"
#include "world/world.h"

// The job's name, as all its hosts know it: CALX_JOB, else that of a launcher
// that has one.
cx_hash cx_world_origin_job(cx_world_launcher launcher);
// Of one start of a host's command; `text` is CALX_LAUNCH.
cx_hash cx_world_origin_launch(const char *text);
// Of a process that a launcher started.
cx_store_origin cx_world_origin_read(const cx_world_info *place);

#endif
