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
#ifndef CX_LOWER_PLAN_H
#define CX_LOWER_PLAN_H

#include "lower/lower.h"

typedef enum cx_unit_kind {
  CX_UNIT_CODE,       // a loop that the jit compiles
  CX_UNIT_KERNEL,     // a matrix product or convolution
  CX_UNIT_INTERPRET,  // one operation
  CX_UNIT_COLLECTIVE,
  CX_UNIT_CONTROL,  // while, if, case
  CX_UNIT_END       // of a collective that others run beside
} cx_unit_kind;

typedef struct cx_plan cx_plan;

typedef struct cx_unit {
  cx_unit_kind kind;
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
  cx_kernel_desc *desc;  // KERNEL
  uint32_t index;        // of the code, kernel or function
  int64_t scratch;       // bytes
  struct cx_memory *scratch_memory;
  cx_plan *regions;  // CONTROL: op->n_regions
  size_t place;      // in its plan, while overlap looks at it
  // COLLECTIVE: others run beside it, and its number among such ones; END: the
  // collective.
  bool overlaps;
  uint32_t number;
  struct cx_unit *begun;
  // When it runs; equal but for CONTROL and a COLLECTIVE that others run
  // beside.
  int64_t begin, end;
} cx_unit;

struct cx_plan {
  cx_hlo_block *block;
  cx_unit **units;  // in the order in which they run
  size_t n_units;
};

// A piece of memory that one value has, or several one after the other.
typedef struct cx_memory {
  cx_place_kind kind;
  int64_t at, bytes;
  int64_t start, end;  // ARENA: times
  uint32_t place;      // UINT32_MAX: none yet
  struct cx_memory *next;
} cx_memory;

// What is known of a value, by its number.
typedef struct cx_value_info {
  cx_hlo_value *alias;  // whose memory this is; NULL: its own
  cx_unit *home;        // the unit that writes it
  uint32_t op;          // the place in its block of the operation that makes it
  int64_t last;         // the time of its last use
  bool beside;          // others read it while a collective on it is open
  cx_memory *memory;
  cx_memory *wanted;      // where its user would like to have it
  cx_hlo_value *instead;  // whose last use must be over before it may be there
} cx_value_info;

struct cx_planning {
  cx_lowering *l;
  cx_value_info *values;
  int64_t clock;
  cx_memory *memories;  // of the arena
  cx_unit **codes;      // CODE units in the order of their index
  size_t n_codes, codes_room;
  cx_unit **kernels;  // the first KERNEL unit of each index
  size_t n_kernels, kernels_room;
  cx_unit **sides;  // INTERPRET and COLLECTIVE units
  size_t n_sides, sides_room;
  unsigned mark;
};
typedef struct cx_planning cx_planning;

static inline cx_value_info *cx_value(const cx_planning *g,
                                      const cx_hlo_value *v)
{
  return &g->values[v->number];
}
// The value whose memory v has.
static inline cx_hlo_value *cx_value_root(const cx_planning *g, cx_hlo_value *v)
{
  while (g->values[v->number].alias != NULL) v = g->values[v->number].alias;
  return v;
}

bool cx_is_constant(const cx_hlo_value *v);

// Appends to an array in the lowering's arena; false: no memory.
bool cx_lower_push(cx_lowering *l, void *items, size_t *n, size_t *room,
                   void *item);

// ---- uses ----

typedef struct cx_use {
  uint32_t user;    // place in the block; the terminator's is n_ops - 1
  int32_t operand;  // -1: inside the user's regions, or by the terminator
} cx_use;

typedef struct cx_block_uses {
  cx_hlo_op **ops;
  size_t n_ops;
  cx_use *uses;
  uint32_t *first;  // n_ops + 1: the uses of the operation's results
} cx_block_uses;

calx_status *cx_lower_uses(cx_planning *g, cx_hlo_block *block,
                           cx_block_uses *out) CALX_MUST_USE;

// ---- the passes ----

// Units of the block, in no order, with inputs and outputs; those of regions
// too.
calx_status *cx_lower_fuse(cx_planning *g, cx_hlo_block *block,
                           cx_plan *out) CALX_MUST_USE;
// Takes views out of CODE units; before inputs and outputs are listed.
calx_status *cx_lower_views(cx_planning *g, cx_plan *plan) CALX_MUST_USE;
calx_status *cx_lower_order(cx_planning *g, cx_plan *plan) CALX_MUST_USE;
// Of the entry's plan in its order: another order, in which collectives begin
// early and end late. Only where that is worth it.
calx_status *cx_lower_overlap(cx_planning *g, cx_plan *plan) CALX_MUST_USE;
// Every value that the unit reads from outside of itself, as the one whose
// memory it is; those of regions too.
typedef calx_status *cx_lower_read_fn(cx_planning *g, void *user,
                                      cx_hlo_value *v);
calx_status *cx_lower_each_read(cx_planning *g, const cx_unit *u,
                                cx_lower_read_fn *fn, void *user) CALX_MUST_USE;
// A guess at how long a unit takes on one thread; of CONTROL without what is
// inside, of collectives without the wait.
double cx_lower_cost_ns(const cx_unit *u);
// Whether result i of a collective may lie in the memory of its operand i.
bool cx_lower_is_in_place(const cx_hlo_op *collective);
// The compiler's functions.
calx_status *cx_lower_jit(const cx_jit_api **out) CALX_MUST_USE;
// Compiles the CODE units; those that the compiler refuses become INTERPRET.
calx_status *cx_lower_codes(cx_planning *g) CALX_MUST_USE;
// Chooses how a KERNEL unit is run, by measuring.
calx_status *cx_lower_kernel(cx_planning *g, cx_unit *u) CALX_MUST_USE;
calx_status *cx_lower_memory(cx_planning *g, const cx_plan *plan,
                             cx_hlo_func *entry) CALX_MUST_USE;
calx_status *cx_lower_steps(cx_planning *g, const cx_plan *plan) CALX_MUST_USE;
calx_status *cx_lower_sides(cx_planning *g) CALX_MUST_USE;

#endif
