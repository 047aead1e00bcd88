// lower/overlap: what the files that order collectives share: the units of a
// plan with what each reads from which, and what an order of them needs.
#ifndef CPU_LOWER_OVERLAP_H
#define CPU_LOWER_OVERLAP_H

#include "lower/plan.h"

typedef struct cpu_lower_order_node {
  cpu_lower_unit *unit;
  uint32_t *reads;  // the units before it that it reads from, some repeatedly
  uint32_t n_reads;
  uint32_t n_users;  // with repetitions
  int64_t bytes;     // of what it writes
  bool kept;         // read by the end of the program
  bool meets;        // is a collective or holds one
  bool feeds;        // a loop that only collectives read, or such loops
  unsigned seen;
  // Of one order:
  bool done, open;
} cpu_lower_order_node;

typedef struct cpu_lower_ordering {
  cpu_lower_planner *g;
  size_t n;
  cpu_lower_order_node *nodes;  // in the plan's order
  uint32_t *meetings;           // nodes that meet, in order
  size_t n_meetings;
  int64_t limit;  // of `ahead` and `held`, in bytes
  bool delays;    // what needs a result waits for all that does not
  // Of one order:
  size_t next;      // meeting
  uint32_t *begun;  // nodes, oldest first
  size_t n_begun, n_ended;
  uint32_t blocked_by;  // a node that the next meeting waits for; n: none known
  int64_t ahead, held;
  cpu_lower_unit **units;  // the result
  size_t n_units;
  uint32_t *stack, *loops;
  size_t n_loops;
  unsigned search;
} cpu_lower_ordering;

// The plan's units with who reads from whom; s->g is set.
calx_status *cpu_lower_overlap_nodes(
    cpu_lower_ordering *s, const cpu_lower_schedule *plan) CALX_MUST_USE;
// Of a collective that is worth a thread.
bool cpu_lower_overlap_is_large(const cpu_lower_unit *u);
// An estimate of the most memory that is in use at once. `units`: the nodes'
// units and ends.
calx_status *cpu_lower_overlap_peak(const cpu_lower_ordering *s,
                                    cpu_lower_unit *const *units,
                                    size_t n_units, int64_t *out) CALX_MUST_USE;
// What a collective's results need beyond its operands, if they are there
// early; and what is there while it is open.
int64_t cpu_lower_overlap_ahead(const cpu_lower_ordering *s,
                                const cpu_lower_order_node *x);
int64_t cpu_lower_overlap_held(const cpu_lower_ordering *s,
                               const cpu_lower_order_node *x);

#endif
