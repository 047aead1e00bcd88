// dist/dist: what the files of this room share.
#ifndef CX_DIST_DIST_H
#define CX_DIST_DIST_H

#include "calx/dist.h"
#include "world/world.h"

// The calling thread's rank among this process's, by its device.
int cx_dist_local_rank(void);

// Around the life of all ranks of a launch: how many of them this process has.
calx_status *cx_dist_meet_begin(int ranks) CALX_MUST_USE;
void cx_dist_meet_end(void);

// The ranks' processes share standard output, in which lines would wait until
// many are there and then be cut in two: from now on each is written when it
// ends. Not where the program has written something already, or has chosen a
// buffer.
void cx_dist_show_lines(void);

#endif
