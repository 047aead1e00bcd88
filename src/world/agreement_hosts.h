// world/agreement_hosts: the board's part between those that share no memory.
#ifndef CX_WORLD_AGREEMENT_HOSTS_H
#define CX_WORLD_AGREEMENT_HOSTS_H

#include "world/agreement.h"

typedef enum cx_world_hosts_result {
  CX_WORLD_HOSTS_AGREE,
  CX_WORLD_HOSTS_FAIL,  // or there is another reason; `out` says which
  CX_WORLD_HOSTS_WAIT   // not all have come yet: look around, and meet again
} cx_world_hosts_result;

// For all ranks near `a->rank`, which have come to `target` with its key: the
// other groups' word, for a moment.
cx_world_hosts_result cx_world_hosts_agree(const cx_world_proposal *a,
                                           uint64_t target, bool last_time,
                                           cx_world_outcome *out);
// A rank of this process has ended: for the other groups.
void cx_world_hosts_report_end(int rank, uint64_t at, cx_world_rank_state state,
                               const char *message);
// What another group told so.
void cx_world_hosts_receive_end(const char *bytes, size_t size);

// The verdict that two ranks differ.
void cx_world_format_differs(cx_world_outcome *out, uint64_t count,
                             const int rank[2], const char *const what[2],
                             const cx_hash key[2]);

#endif
