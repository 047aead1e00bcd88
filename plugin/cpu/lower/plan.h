// lower/plan: a block of operations as units, each of which becomes one step.
//
//   uses     who uses what
//   fuse     operations into units
//   views    what is memory of something else under another shape
//   order    units one behind the other, with times
//   overlap  collectives beside what others do meanwhile
//   memory   which memory each value has
//   steps    the program's steps
//
// Values are looked up by number in tables of the lowering.
#ifndef CPU_LOWER_PLAN_H
#define CPU_LOWER_PLAN_H

#include "lower/lower.h"

typedef enum cpu_lower_unit_kind {
  CPU_LOWER_UNIT_CODE,       // a loop that the jit compiles
  CPU_LOWER_UNIT_KERNEL,     // a matrix product or convolution
  CPU_LOWER_UNIT_INTERPRET,  // one operation
  CPU_LOWER_UNIT_COLLECTIVE,
  CPU_LOWER_UNIT_CONTROL,  // while, if, case
  CPU_LOWER_UNIT_END       // of a collective that others run beside
} cpu_lower_unit_kind;

typedef struct cpu_lower_schedule cpu_lower_schedule;

typedef struct cpu_lower_unit {
  cpu_lower_unit_kind kind;
  // CODE: in program order, without duplicates; else the one.
  cx_hlo_op **ops;
  size_t n_ops, ops_room;
  cx_hlo_value **inputs, **outputs;  // in memory
  size_t n_inputs, n_outputs;
  size_t inputs_room, outputs_room;
  // CODE: its REDUCE or ROOT; NULL: a plain loop over `elements`.
  cx_hlo_op *hero;
  int64_t elements;    // of the loop
  size_t n_stretched;  // operations computed more often than they have elements
  size_t n_written;    // results that it writes
  size_t n_sums;       // reductions beside the first
  size_t key;          // where in the block it belongs
  unsigned mark, seen;
  cpu_kernel_desc *desc;  // KERNEL
  uint32_t index;         // of the code, kernel or function
  int64_t scratch;        // bytes
  struct cpu_lower_allocation *scratch_memory;
  cpu_lower_schedule *regions;  // CONTROL: op->n_regions
  size_t place;                 // in its plan, while overlap looks at it
  // COLLECTIVE: others run beside it, and its number among such ones; END: the
  // collective.
  bool overlaps;
  uint32_t number;
  struct cpu_lower_unit *begun;
  // When it runs; equal but for CONTROL and a COLLECTIVE that others run
  // beside.
  int64_t begin, end;
} cpu_lower_unit;

struct cpu_lower_schedule {
  cx_hlo_block *block;
  cpu_lower_unit **units;  // in the order in which they run
  size_t n_units;
};

// A piece of memory that one value has, or several one after the other.
typedef struct cpu_lower_allocation {
  cpu_run_place_kind kind;
  int64_t at, bytes;
  int64_t start, end;  // ARENA: times
  uint32_t place;      // UINT32_MAX: none yet
  struct cpu_lower_allocation *next;
} cpu_lower_allocation;

// What is known of a value, by its number.
typedef struct cpu_lower_value_info {
  cx_hlo_value *alias;   // whose memory this is; NULL: its own
  cpu_lower_unit *home;  // the unit that writes it
  uint32_t op;   // the place in its block of the operation that makes it
  int64_t last;  // the time of its last use
  bool beside;   // others read it while a collective on it is open
  cpu_lower_allocation *memory;
  cpu_lower_allocation *wanted;  // where its user would like to have it
  cx_hlo_value *instead;  // whose last use must be over before it may be there
} cpu_lower_value_info;

struct cpu_lower_planner {
  cpu_lower_compilation *l;
  cpu_lower_value_info *values;
  int64_t clock;
  cpu_lower_allocation *memories;  // of the arena
  cpu_lower_unit **codes;          // CODE units in the order of their index
  size_t n_codes, codes_room;
  cpu_lower_unit **kernels;  // the first KERNEL unit of each index
  size_t n_kernels, kernels_room;
  cpu_lower_unit **sides;  // INTERPRET and COLLECTIVE units
  size_t n_sides, sides_room;
  unsigned mark;
};
typedef struct cpu_lower_planner cpu_lower_planner;

static inline cpu_lower_value_info *cx_graph_value(const cpu_lower_planner *g,
                                                   const cx_hlo_value *v)
{
  return &g->values[v->number];
}
// The value whose memory v has.
static inline cx_hlo_value *cx_value_root(const cpu_lower_planner *g,
                                          cx_hlo_value *v)
{
  while (g->values[v->number].alias != NULL) v = g->values[v->number].alias;
  return v;
}

bool cpu_lower_is_constant(const cx_hlo_value *v);

// Appends to an array in the lowering's arena; false: no memory.
bool cpu_lower_push(cpu_lower_compilation *l, void *items, size_t *n,
                    size_t *room, void *item);

// ---- uses ----

typedef struct cpu_lower_use {
  uint32_t user;    // place in the block; the terminator's is n_ops - 1
  int32_t operand;  // -1: inside the user's regions, or by the terminator
} cpu_lower_use;

typedef struct cpu_lower_block_uses {
  cx_hlo_op **ops;
  size_t n_ops;
  cpu_lower_use *uses;
  uint32_t *first;  // n_ops + 1: the uses of the operation's results
} cpu_lower_block_uses;

calx_status *cpu_lower_uses(cpu_lower_planner *g, cx_hlo_block *block,
                            cpu_lower_block_uses *out) CALX_MUST_USE;

// ---- the passes ----

// Units of the block, in no order, with inputs and outputs; those of regions
// too.
calx_status *cpu_lower_fuse(cpu_lower_planner *g, cx_hlo_block *block,
                            cpu_lower_schedule *out) CALX_MUST_USE;
// Takes views out of CODE units; before inputs and outputs are listed.
calx_status *cpu_lower_views(cpu_lower_planner *g,
                             cpu_lower_schedule *plan) CALX_MUST_USE;
calx_status *cpu_lower_order(cpu_lower_planner *g,
                             cpu_lower_schedule *plan) CALX_MUST_USE;
// Of the entry's plan in its order: another order, in which collectives begin
// early and end late. Only where that is worth it.
calx_status *cpu_lower_overlap(cpu_lower_planner *g,
                               cpu_lower_schedule *plan) CALX_MUST_USE;
// Every value that the unit reads from outside of itself, as the one whose
// memory it is; those of regions too.
typedef calx_status *cpu_lower_read_fn(cpu_lower_planner *g, void *user,
                                       cx_hlo_value *v);
calx_status *cpu_lower_each_read(cpu_lower_planner *g, const cpu_lower_unit *u,
                                 cpu_lower_read_fn *fn,
                                 void *user) CALX_MUST_USE;
// A guess at how long a unit takes on one thread; of CONTROL without what is
// inside, of collectives without the wait.
double cpu_lower_cost_ns(const cpu_lower_unit *u);
// Whether result i of a collective may lie in the memory of its operand i.
bool cpu_lower_is_in_place(const cx_hlo_op *collective);
// The compiler's functions.
calx_status *cpu_lower_jit(const cpu_jit_api **out) CALX_MUST_USE;
// Compiles the CODE units; those that the compiler refuses become INTERPRET.
calx_status *cpu_lower_codes(cpu_lower_planner *g) CALX_MUST_USE;
// Chooses how a KERNEL unit is run, by measuring.
calx_status *cpu_lower_kernel(cpu_lower_planner *g,
                              cpu_lower_unit *u) CALX_MUST_USE;
calx_status *cpu_lower_memory(cpu_lower_planner *g,
                              const cpu_lower_schedule *plan,
                              cx_hlo_func *entry) CALX_MUST_USE;
calx_status *cpu_lower_steps(cpu_lower_planner *g,
                             const cpu_lower_schedule *plan) CALX_MUST_USE;
calx_status *cpu_lower_sides(cpu_lower_planner *g) CALX_MUST_USE;

#endif
