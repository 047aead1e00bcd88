// world/hosts_meet: the board's part between those that share no memory.
#ifndef CX_WORLD_HOSTS_MEET_H
#define CX_WORLD_HOSTS_MEET_H

#include "world/board.h"

// For all ranks near `a->rank`, which have come to `target` with its key: waits
// for the other groups' word. False: `out` says why they cannot agree.
bool cx_hosts_meet(const cx_agreement *a, uint64_t target, int64_t timeout_ms,
                   cx_verdict *out);
// A rank of this process has ended: for the other groups.
void cx_hosts_tell_end(int rank, uint64_t at, cx_board_state state,
                       const char *message);

// The verdict that two ranks differ.
void cx_board_say_differs(cx_verdict *out, uint64_t count, const int rank[2],
                          const char *const what[2], const cx_hash key[2]);

#endif
