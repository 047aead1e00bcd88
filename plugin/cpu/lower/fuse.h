// lower/fuse: what the files of the fusion stage share: the state of fusing one
// block.
//
// fuse.c decides for each operation, from the last to the first, and uses
// fuse_reduce.c (reductions), fuse_recompute.c (is it cheaper to compute than
// to read?), fuse_paths.c (would the groups wait for each other?) and
// fuse_group.c (which operation is in which group).
#ifndef CPU_LOWER_FUSE_H
#define CPU_LOWER_FUSE_H

#include "lower/lower.h"

// Limits of one loop.
#define CPU_LOWER_FUSE_OPS 160
// The jit takes 64 outputs, and 32 results of reductions.
#define CPU_LOWER_FUSE_OUTPUTS 48
#define CPU_LOWER_FUSE_REDUCTIONS 32

// Elements of a row along which a loop's vectors run, at least.
#define CPU_LOWER_FUSE_ROW 16

// Positions at which one operation may be computed.
#define CPU_LOWER_FUSE_POSITIONS 64

// One of the groups that an operation is in.
typedef struct cpu_lower_member {
  cpu_lower_group *group;
  // The positions at which it is computed for an element of the group: what
  // slices, pads and the like read is at another position than they are. A
  // position is a hash of the operations that lead to it. At most
  // FUSE_POSITIONS + 1 are kept.
  uint64_t *positions;
  unsigned copies;       // how many positions
  bool after_reduction;  // here it works on results of the group's reductions
  struct cpu_lower_member *next;
} cpu_lower_member;

typedef struct cpu_lower_span {
  uint32_t first, lowest;
} cpu_lower_span;

typedef struct cpu_lower_fusion {
  cpu_lower_state *c;
  cpu_lower_schedule *schedule;
  const cpu_lower_use_list *uses;
  // By the operation's position in the block:
  cpu_lower_member **members;  // the groups that compute it
  bool *in_memory;             // some group writes its results
  // Of searches:
  uint32_t *stack;
  unsigned *seen;  // by operation: the last search that met it
  unsigned search;
  cpu_lower_span *spans;
  size_t n_spans;
} cpu_lower_fusion;

// ---- fuse_group.c ----

static inline const cx_hlo_type *cpu_lower_result_type(const cx_hlo_op *op)
{
  return &op->results[0].type.tensor;
}

// NULL: operation i is not in g.
cpu_lower_member *cpu_lower_fuse_member(const cpu_lower_fusion *f, uint32_t i,
                                        const cpu_lower_group *g);
static inline bool cpu_lower_fuse_is_in(const cpu_lower_fusion *f, uint32_t i,
                                        const cpu_lower_group *g)
{
  return cpu_lower_fuse_member(f, i, g) != NULL;
}
// Whether g uses operation i, and only in operations on its reductions'
// results.
bool cpu_lower_fuse_is_used_after_reduction(const cpu_lower_fusion *f,
                                            uint32_t i,
                                            const cpu_lower_group *g,
                                            bool *out_used);

// The copies of operation i if it joins g, which uses it.
unsigned cpu_lower_fuse_copies(const cpu_lower_fusion *f, uint32_t i,
                               const cpu_lower_group *g);

// The groups that use the results of an operation.
typedef struct cpu_lower_users {
  cpu_lower_group *groups[16];  // LOOP groups
  size_t n;
  bool elsewhere;  // some use is in no loop, so the value must be in memory
  bool too_many;   // not all are listed
} cpu_lower_users;
cpu_lower_users cpu_lower_fuse_users(const cpu_lower_fusion *f, uint32_t i);

// A new group of operation i, which writes its results.
calx_status *cpu_lower_fuse_new_group(cpu_lower_fusion *f,
                                      cpu_lower_group_kind kind, uint32_t i,
                                      cpu_lower_group **out) CALX_MUST_USE;
// A new LOOP; `root` may be NULL. It iterates over the elements of `type`.
calx_status *cpu_lower_fuse_new_loop(cpu_lower_fusion *f, uint32_t i,
                                     cx_hlo_op *root,
                                     const cx_hlo_type *type) CALX_MUST_USE;
// Adds operation i to a loop.
calx_status *cpu_lower_fuse_join(cpu_lower_fusion *f, uint32_t i,
                                 cpu_lower_group *g) CALX_MUST_USE;
// From now on g writes the results of i to memory.
void cpu_lower_fuse_write(cpu_lower_fusion *f, uint32_t i, cpu_lower_group *g);

// ---- fuse_paths.c ----

// Whether something outside of g uses the results of i, directly or through
// others, and g uses what comes of it. Then i cannot be in g.
bool cpu_lower_fuse_has_path(cpu_lower_fusion *f, uint32_t i,
                             const cpu_lower_group *g);
// Operation i has its groups now.
void cpu_lower_fuse_note_placed(cpu_lower_fusion *f, uint32_t i);

// ---- fuse_recompute.c ----

// Whether each of the loops that use operation i may better compute it than
// read it.
bool cpu_lower_fuse_recomputes(cpu_lower_fusion *f, uint32_t i,
                               const cpu_lower_users *users);
// Whether operation i and those that its loop would compute for it take more
// than `most` nanoseconds an element. Without `rows` a chain with values of
// rows or columns is not long: its loop would not compute several vectors side
// by side.
bool cpu_lower_fuse_is_long(cpu_lower_fusion *f, uint32_t i, bool rows,
                            double most);

// ---- fuse_reduce.c ----

// Puts a reduction into a group.
calx_status *cpu_lower_fuse_reduction(cpu_lower_fusion *f,
                                      uint32_t i) CALX_MUST_USE;
// Whether g reduces what elementwise operation i gives and may write it too.
bool cpu_lower_fuse_writes_reduced(cpu_lower_fusion *f, uint32_t i,
                                   const cpu_lower_group *g);

#endif
