// world/origin: the job and the launch that this process belongs to.
#ifndef CX_WORLD_ORIGIN_H
#define CX_WORLD_ORIGIN_H

#include "store/wire.h"
#include "world/world.h"

// Hash of the job's name, which is the same on all hosts: CALX_JOB, else the
// launcher's name for it.
cx_hash cx_world_origin_job(cx_world_launcher launcher);
// Hash of one start of a host's command; `text` is CALX_LAUNCH.
cx_hash cx_world_origin_launch(const char *text);
// The origin of a process that a launcher has started.
cx_store_origin cx_world_origin_read(const cx_world_info *info);

#endif
