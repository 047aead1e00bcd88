// coll/meet: how the members of a group wait for each other.
//
// A circle is one collective of one group in one run: it is made by the first
// member that comes and freed by the last that leaves. It closes when all have
// come; from then on nobody leaves before all have finished, so that memory
// which others work on stays. Before that a wait can end without success: by
// time, by a member's launch that ended elsewhere, by a member that came with
// another operation.
#ifndef CPU_COLL_MEET_H
#define CPU_COLL_MEET_H

#include "coll/coll.h"
#include "coll/groups.h"

typedef struct cpu_coll_circle cpu_coll_circle;
typedef struct cpu_coll_window cpu_coll_window;

// What a member brings; its pointers are read by the others.
typedef struct cpu_coll_part {
  const cx_hlo_module *module;
  const cx_hlo_op *op;
  const cpu_ref_tensor *operands, *results;
} cpu_coll_part;

// Which device of its program a launch is: replica * n_partitions + partition.
static inline uint32_t cpu_coll_device(const cpu_coll_launch *l)
{
  return l->replica * l->n_partitions + l->partition;
}
static inline int64_t cpu_coll_limit_ms(const cpu_coll_launch *l)
{
  const int64_t most = 1000000000000;
  if (l->timeout_ms <= 0) return 1800000;
  return l->timeout_ms < most ? l->timeout_ms : most;
}
// Where devices of other processes are met; NULL: there are none.
cpu_coll_window *cpu_coll_window_of(const cpu_coll *coll);

// Waits until all of `group` have come. With success the caller must call
// cpu_coll_leave().
calx_status *cpu_coll_enter(cpu_coll_launch *launch,
                            const cpu_coll_group *group,
                            const cpu_coll_part *part,
                            cpu_coll_circle **out) CALX_MUST_USE;
// What the members brought, in the order of the group.
const cpu_coll_part *cpu_coll_parts(const cpu_coll_circle *circle);
// Waits until all have finished. `failed` (taken) is how the caller's part
// went; the first failure is everybody's.
calx_status *cpu_coll_leave(cpu_coll_launch *launch, cpu_coll_circle *circle,
                            calx_status *failed) CALX_MUST_USE;

#endif
