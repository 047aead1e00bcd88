// world/hosts_meet: the board's part between those that share no memory.
#ifndef CX_WORLD_HOSTS_MEET_H
#define CX_WORLD_HOSTS_MEET_H

#include "world/board.h"

typedef enum cx_hosts_word {
  CX_HOSTS_AGREE,
  CX_HOSTS_DIFFER,  // or there is another reason; `out` says which
  CX_HOSTS_WAIT     // not all have come yet: look around, and meet again
} cx_hosts_word;

// For all ranks near `a->rank`, which have come to `target` with its key: the
// other groups' word, for a moment.
cx_hosts_word cx_hosts_meet(const cx_agreement *a, uint64_t target,
                            bool last_time, cx_verdict *out);
// A rank of this process has ended: for the other groups.
void cx_hosts_tell_end(int rank, uint64_t at, cx_board_state state,
                       const char *message);
// What another group told so.
void cx_hosts_hear_end(const char *bytes, size_t size);

// The verdict that two ranks differ.
void cx_board_say_differs(cx_verdict *out, uint64_t count, const int rank[2],
                          const char *const what[2], const cx_hash key[2]);

#endif
