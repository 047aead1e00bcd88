// lower/lower: what the files of this module share.
//
// A program is lowered to a schedule for each of its blocks: a list of groups
// in the order in which they run. A group is one or more operations that become
// one step of the executable: a fused loop, a kernel call, a collective, an
// interpreted operation, or control flow with schedules of its own inside.
// passes.c lists the stages that make the schedules and turn them into steps.
#ifndef CPU_LOWER_LOWER_H
#define CPU_LOWER_LOWER_H

#include "base/arena.h"
#include "hlo/module.h"
#include "lower/assemble.h"

typedef struct cpu_lower_schedule cpu_lower_schedule;

typedef enum cpu_lower_group_kind {
  CPU_LOWER_GROUP_LOOP,         // a fusion group: a loop that the jit compiles
  CPU_LOWER_GROUP_KERNEL,       // a function of kernel/kernel.h
  CPU_LOWER_GROUP_INTERPRETED,  // operations that nothing compiles
  CPU_LOWER_GROUP_COLLECTIVE,
  CPU_LOWER_GROUP_CONTROL,  // while, if, case
  CPU_LOWER_GROUP_DONE      // waits for a collective that runs in background
} cpu_lower_group_kind;

typedef struct cpu_lower_group {
  cpu_lower_group_kind kind;
  cpu_lower_schedule *schedule;  // whose group this is
  // LOOP: in program order, without duplicates; DONE: none; else one.
  cx_hlo_op **ops;
  size_t n_ops, ops_room;
  cx_hlo_value **inputs, **outputs;  // in memory
  size_t n_inputs, n_outputs;
  size_t inputs_room, outputs_room;
  // LOOP: its operation of class REDUCE or ROOT; NULL: an elementwise loop.
  cx_hlo_op *root;
  int64_t elements;           // iterations of the loop
  size_t n_repeated;          // operations with fewer elements than iterations
  size_t n_written;           // results that it writes
  size_t n_extra_reductions;  // beside the root
  uint32_t position;          // in the block, of its last operation
  bool is_open, is_sorted;    // while the block is ordered
  size_t node;                // in the dependency graph of the overlap stage
  unsigned seen;              // the last search that met this group
  cpu_kernel_desc *desc;      // KERNEL
  uint32_t index;             // of the compiled loop, kernel or function
  int64_t scratch;            // bytes
  struct cpu_lower_range *scratch_range;
  cpu_lower_schedule *regions;  // CONTROL: op->n_regions
  // COLLECTIVE: whether it runs in background, and its number among those that
  // do. DONE: the collective that it waits for.
  bool in_background;
  uint32_t background_index;
  struct cpu_lower_group *collective;
  // When it runs. The two times differ for CONTROL and for a COLLECTIVE in
  // background.
  int64_t begin, end;
} cpu_lower_group;

// ---- uses ----

typedef struct cpu_lower_use {
  uint32_t user;    // position in the block; the terminator's is n_ops - 1
  int32_t operand;  // -1: inside the user's regions, or by the terminator
} cpu_lower_use;

typedef struct cpu_lower_use_list {
  cx_hlo_op **ops;
  size_t n_ops;
  cpu_lower_use *uses;
  uint32_t *first;               // n_ops + 1: the uses of op i's results begin
  cpu_lower_schedule **regions;  // of op i; NULL: no control flow
} cpu_lower_use_list;

struct cpu_lower_schedule {
  cx_hlo_block *block;
  cpu_lower_use_list uses;
  cpu_lower_group **groups;  // from `order` on in the order in which they run
  size_t n_groups, groups_room;
};

// ---- memory ----

// A range of memory that holds one value, or several one after the other.
typedef struct cpu_lower_range {
  cpu_run_slot_kind kind;
  int64_t at, bytes;
  int64_t start, end;  // ARENA: times
  uint32_t slot;       // in the program's table; UINT32_MAX: not there yet
  // ROW: the tensor, and which row of it.
  struct cpu_lower_range *whole;
  cx_hlo_value *index;
  struct cpu_lower_range *next;
} cpu_lower_range;

// What is known of a value, by its number.
typedef struct cpu_lower_value {
  cx_hlo_value *alias;        // of which this is a view; NULL: of none
  int64_t offset;             // bytes of `alias` before this
  bool has_parts;             // views that begin inside of it
  cpu_lower_group *producer;  // the group that writes it; NULL: none does
  uint32_t position;          // in its block, of the operation that computes it
  int64_t last_use;           // time
  // Other groups read it while a collective on it runs in background.
  bool read_in_background;
  cpu_lower_range *range;
  cpu_lower_range *preferred;  // that its user prefers; NULL: none
  // The value in `preferred` whose last use must come first; NULL: none.
  cx_hlo_value *occupant;
} cpu_lower_value;

// One compilation.
typedef struct cpu_lower_state {
  cx_hlo_module *module;
  cx_arena arena;  // of all that is needed only while compiling
  cpu_lower_assembly a;
  cpu_threads *threads;   // the threads that the program will run on
  bool interpret;         // the whole program
  bool deterministic;     // choose kernels without measuring
  int64_t most_measured;  // nanoseconds that measuring may take
  bool blocking;          // no collective runs in background
  // Of the passes:
  cpu_lower_value *values;    // by the value's number
  cpu_lower_range *in_arena;  // all ranges of the arena
  int64_t clock;
  cpu_lower_group **group_of;  // by step: the LOOP group; NULL: another step
  size_t n_group_of, group_of_room;
} cpu_lower_state;

static inline cpu_lower_value *cpu_lower_info(const cpu_lower_state *c,
                                              const cx_hlo_value *v)
{
  return &c->values[v->number];
}
// The value whose memory v has.
static inline cx_hlo_value *cpu_lower_storage(const cpu_lower_state *c,
                                              cx_hlo_value *v)
{
  while (c->values[v->number].alias != NULL) v = c->values[v->number].alias;
  return v;
}

// The bytes of that memory before v.
int64_t cpu_lower_offset(const cpu_lower_state *c, const cx_hlo_value *v);

// Whether result i of a collective may be in the memory of its operand i.
bool cpu_lower_is_in_place(const cx_hlo_op *collective);
bool cpu_lower_is_constant(const cx_hlo_value *v);
bool cpu_lower_is_among(cx_hlo_op *const *ops, size_t n, const cx_hlo_op *op);
// Whether the group's loop reduces tensors of these dimensions.
bool cpu_lower_reduces(const cpu_lower_group *g, const cx_hlo_type *t);
// The bytes of all these values.
int64_t cpu_lower_bytes(cx_hlo_value *const *values, size_t n);

// Appends to an array in the compilation's arena.
calx_status *cpu_lower_push(cpu_lower_state *c, void *items, size_t *n,
                            size_t *room, void *item) CALX_MUST_USE;

// Calls fn for each group, and after one of CONTROL for those of its regions.
typedef calx_status *cpu_lower_group_fn(cpu_lower_state *c, void *user,
                                        cpu_lower_group *g);
calx_status *cpu_lower_each_group(cpu_lower_state *c,
                                  const cpu_lower_schedule *schedule,
                                  cpu_lower_group_fn *fn,
                                  void *user) CALX_MUST_USE;
// Calls fn for every value that the group reads and does not compute, also
// inside regions, as the value whose memory it is.
typedef calx_status *cpu_lower_read_fn(cpu_lower_state *c, void *user,
                                       cx_hlo_value *v);
calx_status *cpu_lower_each_read(cpu_lower_state *c, const cpu_lower_group *g,
                                 cpu_lower_read_fn *fn,
                                 void *user) CALX_MUST_USE;

// ---- cost ----

// More than a few instructions per element.
bool cpu_lower_is_expensive(const cx_hlo_op *op);
// An estimate of how long a group takes on one thread: of CONTROL without its
// regions, of collectives without waiting for other devices. Once values have
// memory, it knows what works in place.
double cpu_lower_cost_ns(const cpu_lower_state *c, const cpu_lower_group *g);
// Adds what the group does in this many rounds.
void cpu_lower_add_work(const cpu_lower_state *c, const cpu_lower_group *g,
                        double rounds, cpu_run_work *total);
// Where a loop may run for any time. Whatever an iteration takes, so many are
// too much for the thread of a caller.
#define CPU_LOWER_UNKNOWN_ROUNDS 1e9
// How often a while runs at most.
double cpu_lower_rounds(const cx_hlo_op *loop);

// The update of a row, all that the loop does with the variable; NULL: it does
// something else.
const cx_hlo_op *cpu_lower_written_row(const cx_hlo_op *loop,
                                       uint32_t variable);
// The variables of the loop have memory. Gives values that its body writes to
// rows of them the memory of these rows.
calx_status *cpu_lower_rows(cpu_lower_state *c,
                            cpu_lower_group *loop) CALX_MUST_USE;
// Whether the group only writes a value to a row in which it is already.
bool cpu_lower_is_written(const cpu_lower_state *c, const cpu_lower_group *g);
// Whether the group only fills a variable with which a loop begins, and the
// loop writes over all of it without reading it.
bool cpu_lower_is_overwritten(const cpu_lower_state *c,
                              const cpu_lower_group *g);

// ---- limits ----

// Refuse types without a size in bytes, and sizes above the limit: of the
// entry's parameters and results; of all its values.
calx_status *cpu_lower_check_signature(const cx_hlo_func *entry) CALX_MUST_USE;
calx_status *cpu_lower_check_values(const cx_hlo_func *entry) CALX_MUST_USE;
// Refuses more temporary memory than the limit.
calx_status *cpu_lower_check_total(const cpu_run_program *p,
                                   int64_t bytes) CALX_MUST_USE;

// ---- stages ----

// The entry as one step of the interpreter.
calx_status *cpu_lower_interpret(cpu_lower_state *c,
                                 cx_hlo_func *entry) CALX_MUST_USE;
// The entry as steps, through all the stages below.
calx_status *cpu_lower_run_passes(cpu_lower_state *c,
                                  cx_hlo_func *entry) CALX_MUST_USE;

typedef calx_status *cpu_lower_stage(cpu_lower_state *c,
                                     cpu_lower_schedule *schedule);
// Finds the uses in schedule->block, and makes the schedules of its regions.
cpu_lower_stage cpu_lower_uses;
// Puts the block's operations into groups.
cpu_lower_stage cpu_lower_fuse;
// Takes views of memory out of LOOP groups.
cpu_lower_stage cpu_lower_views;
// Lists what each group reads from memory and writes to it.
cpu_lower_stage cpu_lower_buffers;
// Sorts the groups of each block, producers first.
cpu_lower_stage cpu_lower_order;
// Reorders the entry's groups so that collectives run in background, where that
// is worth it.
cpu_lower_stage cpu_lower_overlap;
// Gives each group its times and each value its last use.
cpu_lower_stage cpu_lower_lifetimes;
// Slices that only kernels read become views, where their operands are in
// memory for as long.
cpu_lower_stage cpu_lower_slices;
// Chooses how each KERNEL group is run, by measuring.
cpu_lower_stage cpu_lower_choose_kernels;
// Compiles the LOOP groups; those that the jit refuses become INTERPRETED.
cpu_lower_stage cpu_lower_compile_loops;
// Gives each value a range of memory.
cpu_lower_stage cpu_lower_memory;
// Gives each range in the arena its offset.
cpu_lower_stage cpu_lower_offsets;
// Copies what is interpreted, and the collectives, to functions of a module of
// their own.
cpu_lower_stage cpu_lower_outline;
// Appends the program's steps.
cpu_lower_stage cpu_lower_steps;
// Compiles loops of short iterations to one function each.
cpu_lower_stage cpu_lower_native;
// Loops inside a while that did not become one function get smaller parts for
// each thread.
cpu_lower_stage cpu_lower_grains;

// What CALX_CPU_LANES asks for; 0: what the processor has.
calx_status *cpu_lower_read_lanes(int *out) CALX_MUST_USE;
// LOOP: what the jit is to compile.
cpu_jit_kernel cpu_lower_kernel_of(const cpu_lower_group *g);
// Appends an object to the program, and gives the object back to the jit.
calx_status *cpu_lower_take_object(cpu_lower_state *c, const cpu_jit_api *jit,
                                   cx_text *object) CALX_MUST_USE;
// Copies a status that is in the jit's memory, and gives it back.
calx_status *cpu_lower_take_failure(const cpu_jit_api *jit,
                                    calx_status *failed) CALX_MUST_USE;
// The jit's functions; loads libcalx_jit.so when first called.
calx_status *cpu_lower_load_jit(const cpu_jit_api **out) CALX_MUST_USE;

#endif
