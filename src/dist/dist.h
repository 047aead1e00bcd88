// dist/dist: what the files of this module share.
#ifndef CX_DIST_DIST_H
#define CX_DIST_DIST_H

#include "calx/dist.h"
#include "world/world.h"

// The calling thread's rank among this process's, by its device.
int cx_dist_local_rank(void);

// Called before the ranks of a launch start and after they have ended. ranks:
// those of this process.
calx_status *cx_dist_meet_begin(int ranks) CALX_MUST_USE;
void cx_dist_meet_end(void);

// Makes standard output line-buffered. The ranks' processes share it, and full
// buffers would be written in the middle of a line. Does nothing where the
// program has written already, or has chosen a buffer.
void cx_dist_show_lines(void);

#endif
