// world/agreement_hosts: an agreement between host groups, which share no
// memory.
#ifndef CX_WORLD_AGREEMENT_HOSTS_H
#define CX_WORLD_AGREEMENT_HOSTS_H

#include "world/agreement.h"

typedef enum cx_world_hosts_result {
  CX_WORLD_HOSTS_AGREE,
  CX_WORLD_HOSTS_FAIL,  // with the reason in *out
  CX_WORLD_HOSTS_WAIT   // not all groups have arrived: call it again
} cx_world_hosts_result;

// Called by one rank for its group, of which all ranks have reached `target`
// with the key of `a`. It waits for a moment at most. last_time: the time limit
// has passed.
cx_world_hosts_result cx_world_hosts_agree(const cx_world_proposal *a,
                                           uint64_t target, bool last_time,
                                           cx_world_outcome *out);

#endif
