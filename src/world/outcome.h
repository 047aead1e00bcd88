// world/outcome: the messages of agreements that fail.
#ifndef CX_WORLD_OUTCOME_H
#define CX_WORLD_OUTCOME_H

#include "world/agreement.h"

// What a rank has submitted, as it is sent to other hosts: hosts of one job
// have one byte order.
typedef struct cx_world_rank_key {
  cx_hash key;
  int64_t rank;
  char what[CX_WORLD_OPERATION_BYTES];
} cx_world_rank_key;

_Static_assert(sizeof(cx_world_rank_key) == 24 + CX_WORLD_OPERATION_BYTES,
               "cx_world_rank_key: it has no padding");

cx_world_rank_key cx_world_rank_key_of(const cx_world_proposal *a);

// Each sets the code and the text; `a` is the proposal of the rank that waits.
void cx_world_outcome_differs(cx_world_outcome *out, uint64_t target,
                              const cx_world_rank_key *a,
                              const cx_world_rank_key *b);
// A rank ended, at `at`, before it reached the agreement `target`.
void cx_world_outcome_ended(cx_world_outcome *out, const cx_world_proposal *a,
                            uint64_t target, int rank, uint64_t at);
void cx_world_outcome_failed(cx_world_outcome *out, int rank,
                             const char *message);
// who: the ranks that did not arrive.
void cx_world_outcome_late(cx_world_outcome *out, const cx_world_proposal *a,
                           uint64_t target, const char *who);
void cx_world_outcome_set(cx_world_outcome *out, calx_code code,
                          const char *text);

#endif
