// world/rank_end: how the processes learn that a rank has ended.
#ifndef CX_WORLD_RANK_END_H
#define CX_WORLD_RANK_END_H

#include <stddef.h>

// Takes an event that a process of another host group has sent.
void cx_world_rank_end_receive(const char *bytes, size_t size);

#endif
