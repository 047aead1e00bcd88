// world/outcome: the messages of agreements that fail.
#ifndef CX_WORLD_OUTCOME_H
#define CX_WORLD_OUTCOME_H

#include "world/agreement.h"

// One of two ranks whose keys differ.
typedef struct cx_world_side {
  int rank;
  const char *what;
  cx_hash key;
} cx_world_side;

// Each sets the code and the text; `a` is the proposal of the rank that waits.
void cx_world_outcome_differs(cx_world_outcome *out, uint64_t target,
                              const cx_world_side *a, const cx_world_side *b);
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
