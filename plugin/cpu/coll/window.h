// coll/window: memory in which devices of several processes meet.
//
// A team is the list of the devices that some programs run on. Each of them
// numbers the team's launches for itself; the numbers agree because all start
// the same programs in the same order. In a team each device has a state, which
// it alone writes: where it is (launch, collective, phase), what it came with
// (the header), how its last launch ended. A barrier is that all members of a
// group have reached a phase: there is no count that somebody who gives up
// could leave wrong, and no table of groups.
//
// A device that has left a collective says so, and before it writes to its
// memory again it waits until the other members have left too. So while anyone
// is in a collective, the states of those who went through it stay where they
// were, and nobody's memory changes under a reader.
#ifndef CPU_COLL_WINDOW_H
#define CPU_COLL_WINDOW_H

#include "coll/coll.h"
#include "coll/groups.h"
#include "coll/reduce.h"

// Bytes of a piece of an operand. A device has room for two of what it brings
// and two of what it makes.
#define CPU_COLL_PIECE ((size_t)512 << 10)
// … between hosts it has room for more of what it makes.
#define CPU_COLL_OUTS 6

// What a member submits; members of the same process read its pointers.
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

// One device's visit of one collective.
typedef struct cpu_coll_visit {
  cpu_coll_launch *launch;
  const cpu_coll_group *group;
  const cpu_coll_part *part;
  cpu_coll *window;
  struct cpu_coll_own *self;
  uint32_t phase;  // barriers so far
  // All members are devices of this process: they use each other's operands
  // and results where they are.
  bool direct;
  // The members by hosts, and those of this one; near_me is this device's place
  // among them.
  const struct cpu_coll_side *sides;
  uint32_t n_sides, own_side;
  const uint32_t *near;  // NULL: all are
  uint32_t n_near, near_me;
} cpu_coll_visit;

// Of the members of this host, number k.
static inline uint32_t cpu_coll_near(const cpu_coll_visit *v, uint32_t k)
{
  return v->near == NULL ? k : v->near[k];
}

// Begins a collective: from here on the device's memory is its own to write.
calx_status *cpu_coll_visit_begin(
    cpu_coll_visit *visit, const cpu_coll_reducer *reducer) CALX_MUST_USE;
// Waits for all members, the first time; also sees that all came with the same
// operation. Later: for those of this host.
calx_status *cpu_coll_visit_wait(cpu_coll_visit *visit) CALX_MUST_USE;
// Of a direct collective, between cpu_coll_visit_wait() and the return: what
// member i submitted; and the end of the member's work, which went as `status`
// (taken) says. Waits until all members have finished. Also after an error of
// the wait: then no member works on the device's memory any more.
const cpu_coll_part *cpu_coll_visit_part(const cpu_coll_visit *visit,
                                         uint32_t i);
calx_status *cpu_coll_visit_leave(cpu_coll_visit *visit,
                                  calx_status *status) CALX_MUST_USE;
// The collective went well and is counted among those done: the device reads
// nobody's memory any more.
void cpu_coll_visit_end(cpu_coll_visit *visit);

// What makes a wait of this visit vain; NULL: nothing that is known.
calx_status *cpu_coll_visit_trouble(const cpu_coll_visit *visit) CALX_MUST_USE;

// Pieces of member i, of this host; `which` is 0 or 1, of what comes out up to
// CPU_COLL_OUTS - 1.
unsigned char *cpu_coll_piece_in(const cpu_coll_visit *visit, uint32_t i,
                                 unsigned which);
unsigned char *cpu_coll_piece_out(const cpu_coll_visit *visit, uint32_t i,
                                  unsigned which);
// Member i's memory for whole operands. Large ones are given back to the system
// when all have left.
calx_status *cpu_coll_region(const cpu_coll_visit *visit, uint32_t i,
                             size_t bytes, unsigned char **out) CALX_MUST_USE;

// The end of a launch: others that wait for it hear how it ended.
void cpu_coll_visits_over(cpu_coll_launch *launch, const calx_status *how);

#endif
