// lower/overlap: what the files of the overlap stage share: the dependency
// graph of the entry's groups, and the state of one search for an order.
#ifndef CPU_LOWER_OVERLAP_H
#define CPU_LOWER_OVERLAP_H

#include "lower/lower.h"

typedef struct cpu_lower_node {
  cpu_lower_group *group;
  // The nodes before it that it reads from, some repeatedly.
  struct cpu_lower_node **reads;
  size_t n_reads, reads_room;
  uint32_t n_users;       // with repetitions
  int64_t bytes;          // of its outputs
  bool is_result;         // the program returns an output
  bool has_collective;    // is a collective, or has one in a region
  bool feeds_collective;  // a loop that only collectives and such loops read
  unsigned seen;          // the last search that met it
  // In one order:
  bool placed;   // for a collective in background: started
  bool running;  // in background
} cpu_lower_node;

typedef struct cpu_lower_search {
  cpu_lower_state *c;
  cpu_lower_node *nodes;  // in the schedule's order
  size_t n_nodes;
  cpu_lower_node **collectives;  // nodes with `has_collective`, in order
  size_t n_collectives;
  int64_t limit;  // of early_bytes and of held_bytes
  bool delay;     // place what waits for a collective as late as possible
  // In one order:
  size_t next;               // of `collectives`
  cpu_lower_node **started;  // in background, oldest first
  size_t n_started, n_done;
  const cpu_lower_node *blocker;    // the next collective waits for it
  int64_t early_bytes, held_bytes;  // of those that are running
  cpu_lower_group **groups;         // the order
  size_t n_groups;
  cpu_lower_node **stack, **loops;
  size_t n_loops;
  unsigned search;
} cpu_lower_search;

// Makes the nodes; s->c is set.
calx_status *cpu_lower_overlap_graph(
    cpu_lower_search *s, const cpu_lower_schedule *schedule) CALX_MUST_USE;
// Whether it is a collective of so many bytes that it is worth a thread.
bool cpu_lower_overlap_is_large(const cpu_lower_group *g);
// An estimate of the most memory in use at once, in bytes, when the groups run
// in this order.
calx_status *cpu_lower_overlap_peak(const cpu_lower_search *s,
                                    cpu_lower_group *const *groups,
                                    size_t n_groups,
                                    int64_t *out) CALX_MUST_USE;
// The bytes by which a collective's results exceed its operands: that much more
// is in use from an early start on.
int64_t cpu_lower_overlap_early_bytes(const cpu_lower_node *x);
// The bytes in use for a collective while it runs.
int64_t cpu_lower_overlap_held_bytes(const cpu_lower_node *x);

#endif
