// jit/emit: what the files of the emitter share.
//
// A function is emitted into a stack of levels: level 0 is its entry, and each
// open loop is one more. An instruction goes to the innermost level of its
// operands. So loop-invariant code stands before the loop, and no pass has to
// move it. A level's builder points to where its next instruction goes; when a
// loop ends, the builder of the level around it points behind the loop.
//
// A value is emitted at a location: where its element is (one index for each
// run of merged dimensions) and which lanes are active. Equal locations are one
// object, and a value is emitted once for each location.
#ifndef CPU_JIT_EMIT_H
#define CPU_JIT_EMIT_H

#include <llvm-c/Core.h>

#include "base/arena.h"
#include "base/status.h"
#include "jit/jit.h"
#include "jit/math.h"

#define CPU_JIT_RANK 16         // most dimensions of a value
#define CPU_JIT_OPS 1024        // most operations of a kernel
#define CPU_JIT_LEVELS 40       // loops open at once
#define CPU_JIT_SIZE 40000      // most instructions of a function
#define CPU_JIT_COLUMNS 16      // most columns whose rows are lanes
#define CPU_JIT_MAX_OUTPUTS 64  // outputs of a kernel, results of a reduce

// ---- values ----

// One value in registers: `re` is a vector of the lanes (wide), or a scalar
// that is the same in all. bf16 and f16 are floats that their type can hold;
// i1 is i1; complex numbers have `im` too.
typedef struct cpu_jit_val {
  LLVMValueRef re, im;
  cx_hlo_elem elem;
  int level;
  bool wide;
} cpu_jit_val;

// An index: `base` + lane * number of the lane, or (wide) a vector.
typedef struct cpu_jit_ix {
  LLVMValueRef base;  // i64; wide: a vector of lane indices
  int64_t lane;
  int64_t multiple;  // base is a multiple of this; 0: it is 0
  // base is a multiple of `period` plus `residue`; period 0: nothing is known.
  int64_t period, residue;
  int level;
  bool wide;
} cpu_jit_ix;

// The row-major index into `dims` neighbouring dimensions, of `size` elements.
typedef struct cpu_jit_part {
  cpu_jit_ix ix;
  int64_t size;
  int dims;
} cpu_jit_part;

typedef struct cpu_jit_loc {
  struct cpu_jit_loc *next;  // in its bucket
  LLVMValueRef mask;         // <lanes x i1>: those that count; NULL: all
  int mask_level;
  int n;
  cpu_jit_part part[CPU_JIT_RANK];
} cpu_jit_loc;

// ---- the kernel in progress ----

typedef enum cpu_jit_slot_kind {
  CPU_JIT_SLOT_NONE,
  CPU_JIT_SLOT_BUFFER,  // an input, or (literals) data of the module
  CPU_JIT_SLOT_OP,      // a result of an operation of the group
  CPU_JIT_SLOT_KNOWN    // few elements, which are in registers
} cpu_jit_slot_kind;

// What is known of a value of the group.
typedef struct cpu_jit_slot {
  const cx_hlo_value *value;
  cpu_jit_slot_kind kind;
  LLVMValueRef pointer;      // BUFFER, in the current function
  size_t input;              // BUFFER
  uint32_t need;             // dimensions before which its index should be cut
  const cpu_jit_val *known;  // KNOWN: its elements
  int64_t n_known;
} cpu_jit_slot;

typedef struct cpu_jit_memo cpu_jit_memo;
typedef struct cpu_jit_cse cpu_jit_cse;

typedef struct cpu_jit_target {
  int lanes;  // of f32
  bool has_fma, has_f16c, has_masks;
  char *cpu;
  char *features;
} cpu_jit_target;

typedef struct cpu_jit_env {
  const cpu_jit_target *target;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, void_type;
  const cpu_jit_kernel *kernel;
  size_t number;        // of the kernel
  int64_t bytes;        // of its inputs and outputs
  double element_ns;    // of arithmetic for an element: a guess
  cx_arena arena;       // lives as long as the kernel's emission
  cx_arena fn_arena;    // … as the function's
  cpu_jit_slot *slots;  // open addressing by the value's address
  size_t n_slots;
  // The function in progress.
  LLVMValueRef function;
  LLVMBuilderRef level[CPU_JIT_LEVELS];
  int n_levels;
  LLVMValueRef lo, hi;  // its iterations
  int lanes;            // 1: scalars only
  int memory_level;     // of loads, at least: what is read may be written
  LLVMValueRef stream;  // index of what the loop passes in the order of memory
  int64_t columns;      // of the rows that are lanes; 0: lanes are no rows
  bool small;           // lane indices fit in 32 bits
  size_t budget;        // instructions left
  cpu_jit_memo **memo;
  cpu_jit_cse **cse;
  cpu_jit_loc **locs;
  cpu_jit_loc scalar;   // the location of rank 0
  calx_status *status;  // the first failure
} cpu_jit_env;

// ---- env.c ----

void cpu_jit_fail(cpu_jit_env *env, const char *why);  // UNIMPLEMENTED
bool cpu_jit_failed(const cpu_jit_env *env);
void cpu_jit_out_of_memory(cpu_jit_env *env);
// The function of the kernel's phase, of `extent` iterations.
void cpu_jit_function_begin(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                            int64_t extent, int64_t grain, int lanes);
void cpu_jit_function_end(cpu_jit_env *env);  // with its return
// A new innermost level, whose code begins in `block`.
int cpu_jit_level_begin(cpu_jit_env *env, LLVMBasicBlockRef block);
// Forgets which values and instructions there are: after a level whose code
// does not always run, and before values mean something else.
void cpu_jit_forget(cpu_jit_env *env);
LLVMTypeRef cpu_jit_register_type(cpu_jit_env *env, cx_hlo_elem e, bool wide);
LLVMTypeRef cpu_jit_memory_type(cpu_jit_env *env, cx_hlo_elem e);
LLVMTypeRef cpu_jit_wide_type(cpu_jit_env *env, LLVMTypeRef scalar);
unsigned cpu_jit_bytes_of(LLVMTypeRef t);  // of an element in memory
LLVMValueRef cpu_jit_i64(cpu_jit_env *env, int64_t v);
LLVMBuilderRef cpu_jit_at(cpu_jit_env *env, int level);  // counts the budget
LLVMValueRef cpu_jit_splat(cpu_jit_env *env, LLVMValueRef scalar, int level);
cpu_jit_val cpu_jit_widen(cpu_jit_env *env, cpu_jit_val v);
// `yes` where the condition holds, else `no`; at this level at least.
cpu_jit_val cpu_jit_pick(cpu_jit_env *env, LLVMValueRef condition, int level,
                         cpu_jit_val yes, cpu_jit_val no);
// The elements order[0 .. n) of x and, behind them, y (NULL: of x alone); -1:
// any element.
LLVMValueRef cpu_jit_shuffle(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                             LLVMValueRef y, const int *order, int n);
// The same pure instruction on the same operands is emitted once.
LLVMValueRef cpu_jit_op2(cpu_jit_env *env, LLVMOpcode op, LLVMValueRef a,
                         LLVMValueRef b, int level);
LLVMValueRef cpu_jit_compare(cpu_jit_env *env, LLVMIntPredicate p,
                             LLVMValueRef a, LLVMValueRef b, int level);
LLVMValueRef cpu_jit_choose(cpu_jit_env *env, LLVMValueRef c, LLVMValueRef a,
                            LLVMValueRef b, int level);
// Of signed integers.
LLVMValueRef cpu_jit_least(cpu_jit_env *env, LLVMValueRef a, LLVMValueRef b,
                           int level);
// Where the whole vectors of [lo, hi) end.
LLVMValueRef cpu_jit_whole_end(cpu_jit_env *env, LLVMValueRef lo,
                               LLVMValueRef hi, int level);
LLVMValueRef cpu_jit_iota(cpu_jit_env *env, LLVMTypeRef vector, int64_t step);
// A scalar or vector of integers as another integer type, by sign.
LLVMValueRef cpu_jit_resize(cpu_jit_env *env, LLVMValueRef v, LLVMTypeRef to,
                            bool is_signed, int level);
LLVMValueRef cpu_jit_buffer(cpu_jit_env *env, size_t i);  // its pointer
LLVMValueRef cpu_jit_scratch(cpu_jit_env *env, size_t offset);
// <lanes x i1>: the number of the lane is below hi - lo.
LLVMValueRef cpu_jit_lanes_below(cpu_jit_env *env, LLVMValueRef hi,
                                 LLVMValueRef lo, int level);
static inline int cpu_jit_deeper(int a, int b)
{
  return a > b ? a : b;
}
int64_t cpu_jit_elements(const cx_hlo_value *v);
const cx_hlo_type *cpu_jit_type(const cx_hlo_value *v);

cpu_jit_slot *cpu_jit_slot_of(cpu_jit_env *env, const cx_hlo_value *v);
// Before which dimensions the value's index should be cut.
uint32_t cpu_jit_need_of(cpu_jit_env *env, const cx_hlo_value *v);

// ---- loops.c ----

typedef struct cpu_jit_loop {
  LLVMBasicBlockRef before, body, after;
  LLVMValueRef iv, lo, hi;
  int64_t step;
  int level;
  bool once;  // no loop: its body stands where it is
  bool when;  // no loop: its body is wanted or not
  size_t n;   // values carried around
  LLVMValueRef *phis, *first, *next;
} cpu_jit_loop;

// for (iv = lo; iv < hi; iv += step), with n values carried around, whose
// registers at the start of an iteration come back in `carried`; end takes what
// they are at its end, and gives what they are after the loop. Returns iv, for
// an lo that is a multiple of the step.
cpu_jit_ix cpu_jit_loop_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                              LLVMValueRef lo, LLVMValueRef hi, int64_t step,
                              cpu_jit_val *carried, size_t n);
void cpu_jit_loop_end(cpu_jit_env *env, cpu_jit_loop *loop,
                      cpu_jit_val *carried);
// for (iv = 0; iv < n; iv++)
cpu_jit_ix cpu_jit_count_begin(cpu_jit_env *env, cpu_jit_loop *loop, int64_t n);
// The elements [lo, hi) vector by vector: the indices of the lanes. *mask:
// which of them are below hi; a NULL `mask`: all.
cpu_jit_ix cpu_jit_vectors_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                                 LLVMValueRef lo, LLVMValueRef hi,
                                 LLVMValueRef *mask);
// The loop over the iterations of a phase of `extent`; of a single one only
// whether it is wanted.
cpu_jit_ix cpu_jit_iterations_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                                    int64_t extent);

// ---- location.c ----

cpu_jit_ix cpu_jit_ix_const(cpu_jit_env *env, int64_t v);
cpu_jit_ix cpu_jit_ix_scalar(LLVMValueRef base, int level, int64_t multiple);
cpu_jit_ix cpu_jit_ix_wide(LLVMValueRef base, int level);
cpu_jit_ix cpu_jit_ix_add(cpu_jit_env *env, cpu_jit_ix a, cpu_jit_ix b);
cpu_jit_ix cpu_jit_ix_scale(cpu_jit_env *env, cpu_jit_ix a, int64_t k);
cpu_jit_ix cpu_jit_ix_offset(cpu_jit_env *env, cpu_jit_ix a, int64_t k);
// Quotient and remainder of a dimension of `size` by d. `masked`: lanes that do
// not count may be out of range.
void cpu_jit_ix_split(cpu_jit_env *env, cpu_jit_ix a, int64_t d, int64_t size,
                      bool masked, cpu_jit_ix *quotient, cpu_jit_ix *rest);
// *rest is an index into *size elements whose innermost dimension has n.
// Returns the index in that dimension; *rest and *size become those of the
// outer ones.
cpu_jit_ix cpu_jit_ix_take(cpu_jit_env *env, cpu_jit_ix *rest, int64_t *size,
                           int64_t n);
// The first element of block `ix`, of n elements each; *hi: its end, at most
// `most`.
cpu_jit_ix cpu_jit_ix_block(cpu_jit_env *env, cpu_jit_ix ix, int64_t n,
                            int64_t most, LLVMValueRef *hi);
bool cpu_jit_ix_same(const cpu_jit_ix *ix);  // the same in all lanes
LLVMValueRef cpu_jit_ix_widen(cpu_jit_env *env, cpu_jit_ix a);
LLVMTypeRef cpu_jit_lane_type(cpu_jit_env *env);  // of wide indices' elements

const cpu_jit_loc *cpu_jit_loc_of(cpu_jit_env *env, const cpu_jit_loc *p);
void cpu_jit_loc_push(cpu_jit_loc *p, int dims, int64_t size, cpu_jit_ix ix);
const cpu_jit_loc *cpu_jit_loc_masked(cpu_jit_env *env, const cpu_jit_loc *p,
                                      LLVMValueRef mask, int level);
// The location with parts cut at least before the dimensions whose bits are
// set.
void cpu_jit_loc_cut(cpu_jit_env *env, const cx_hlo_type *t,
                     const cpu_jit_loc *p, uint32_t cuts, cpu_jit_loc *out);
cpu_jit_ix cpu_jit_loc_linear(cpu_jit_env *env, const cpu_jit_loc *p);

// ---- row_end.c ----

// How many lanes a mask takes, if they are the first ones and their number is
// known; else 0.
int cpu_jit_first_lanes(const cpu_jit_env *env, LLVMValueRef mask);
// The first n lanes from `at` on; the others are zero.
LLVMValueRef cpu_jit_load_first(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMTypeRef t, LLVMValueRef at, int n);
void cpu_jit_store_first(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                         LLVMValueRef v, LLVMValueRef at, int n);

// ---- ahead.c ----

// The loop passes the elements at this location one after the other: those of
// long tensors at the same index are fetched ahead.
void cpu_jit_stream(cpu_jit_env *env, const cpu_jit_loc *p);
// Before the load of a vector at `ix`, which is p's, if the loop passes it.
void cpu_jit_read_ahead(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                        LLVMValueRef pointer, const cpu_jit_loc *p,
                        cpu_jit_ix ix);
// The same before a store.
void cpu_jit_write_ahead(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                         LLVMValueRef pointer, const cpu_jit_loc *p,
                         cpu_jit_ix ix);

// ---- memory.c ----

cpu_jit_val cpu_jit_load(cpu_jit_env *env, LLVMValueRef pointer, cx_hlo_elem e,
                         const cpu_jit_loc *p);
// The same at this level at least: what is read may be written in its loop.
cpu_jit_val cpu_jit_load_at(cpu_jit_env *env, LLVMValueRef pointer,
                            cx_hlo_elem e, const cpu_jit_loc *p, int level);
// At level `level`. A value that is the same in all lanes is stored once where
// the location has no lanes.
void cpu_jit_store(cpu_jit_env *env, LLVMValueRef pointer, cpu_jit_val v,
                   const cpu_jit_loc *p, int level);
// The columns v[0 .. n) of the row, or rows, at the location, whose last part
// is column 0 of n.
void cpu_jit_store_columns(cpu_jit_env *env, LLVMValueRef pointer,
                           const cpu_jit_val *v, int n, const cpu_jit_loc *p,
                           int level);
LLVMValueRef cpu_jit_literal(cpu_jit_env *env, const cx_hlo_elements *e);
cpu_jit_val cpu_jit_splat_of(cpu_jit_env *env, const cx_hlo_elements *e);

// ---- interleave.c ----

// A vector of the elements order[] of these n vectors, counted through them
// all.
LLVMValueRef cpu_jit_pick_lanes(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMValueRef *v, int n, const int *order);
// A column of the rows of n elements that fill n vectors of memory.
LLVMValueRef cpu_jit_column(cpu_jit_env *env, LLVMBuilderRef b,
                            LLVMValueRef *memory, int n, int column);
// n vectors, each a column of the same rows, become the rows' memory.
void cpu_jit_interleave(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef *v,
                        int n);

// ---- index.c ----

// Before which dimensions of its result an INDEX operation needs cuts, if its
// operands are cut as their slots say.
uint32_t cpu_jit_index_cuts(cpu_jit_env *env, const cx_hlo_op *op);
cpu_jit_val cpu_jit_index_emit(cpu_jit_env *env, const cx_hlo_op *op,
                               const cpu_jit_loc *p);
// gather.c
uint32_t cpu_jit_gather_cuts(cpu_jit_env *env, const cx_hlo_op *op);
cpu_jit_val cpu_jit_gather_emit(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p);
// window.c
uint32_t cpu_jit_window_cuts(cpu_jit_env *env, const cx_hlo_op *op);
cpu_jit_val cpu_jit_window_emit(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p);
// ---- value.c ----

cpu_jit_val cpu_jit_emit(cpu_jit_env *env, const cx_hlo_value *v,
                         const cpu_jit_loc *p);
// The same as a vector.
cpu_jit_val cpu_jit_emit_wide(cpu_jit_env *env, const cx_hlo_value *v,
                              const cpu_jit_loc *p);
// Emits the values and then stores them, the first to buffer `buffer`.
void cpu_jit_store_values(cpu_jit_env *env, const cx_hlo_value *const *values,
                          size_t n, size_t buffer, const cpu_jit_loc *at);
// A poison value, for loops that never run and for code after a failure.
cpu_jit_val cpu_jit_no_value(cpu_jit_env *env, cx_hlo_elem e);
// From now on this value at this location is `val`.
void cpu_jit_known(cpu_jit_env *env, const cx_hlo_value *v,
                   const cpu_jit_loc *p, cpu_jit_val val);
// The results of a region of ELEMENT operations on these arguments.
void cpu_jit_region(cpu_jit_env *env, const cx_hlo_region *region,
                    const cpu_jit_val *args, size_t n_args,
                    cpu_jit_val *results, size_t n_results);
// The result of a region of two arguments and one result.
cpu_jit_val cpu_jit_region_of_two(cpu_jit_env *env, const cx_hlo_region *region,
                                  cpu_jit_val x, cpu_jit_val y);

// ---- element*.c ----

cpu_jit_val cpu_jit_element(cpu_jit_env *env, const cx_hlo_op *op,
                            const cpu_jit_val *args);
// ---- convert.c ----
// A float of register type to what `e` can hold (bf16 and f16 only).
LLVMValueRef cpu_jit_round(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                           cx_hlo_elem e);
// Of a sum, difference, product, quotient or square root of numbers that `e`
// can hold. Its NaN is one of theirs, made quiet, or the processor's own, so
// `e` can hold it.
LLVMValueRef cpu_jit_round_arithmetic(cpu_jit_env *env, LLVMBuilderRef b,
                                      LLVMValueRef x, cx_hlo_elem e);
LLVMValueRef cpu_jit_to_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                               LLVMValueRef x,
                               cx_hlo_elem e);  // of a float that e can hold
LLVMValueRef cpu_jit_from_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                                 LLVMValueRef x, cx_hlo_elem e);
cpu_jit_val cpu_jit_convert(cpu_jit_env *env, cpu_jit_val v, cx_hlo_elem to);
cpu_jit_val cpu_jit_bitcast(cpu_jit_env *env, cpu_jit_val v, cx_hlo_elem to);

// ---- the kinds of kernels ----

// Makes the slots of the kernel's values.
calx_status *cpu_jit_set_slots(cpu_jit_env *env, const cpu_jit_kernel *k);
// native.c: a loop of steps.
calx_status *cpu_jit_emit_native(cpu_jit_env *env, const cpu_jit_native *n);

// A loop with transposes that are turned in registers; false: it has none, and
// nothing is emitted.
bool cpu_jit_kernel_turned(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_loop(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_reduce(cpu_jit_env *env, cpu_jit_kernel *k);

// ---- sum.c ----

// Additions of f32 one to another; what they give is added up in f64.
#define CPU_JIT_BLOCK 128
// The operation that makes result `i` of the body of `op`, if each result is
// made by one whose identity is known, of its own two arguments; else NULL.
const cx_hlo_op *cpu_jit_simple_body(const cx_hlo_op *op, size_t i);
// What a result of this element type is summed in: f32 for bf16 and f16.
cx_hlo_elem cpu_jit_sum_elem(const cx_hlo_op *simple, cx_hlo_elem e);
// Steps of a block, each of `chain` additions.
int64_t cpu_jit_block(int64_t chain);
// What more than CPU_JIT_BLOCK of them are added up in: f64 for f32.
cx_hlo_elem cpu_jit_total_elem(const cx_hlo_op *simple, cx_hlo_elem e);
// In the element type of a.
cpu_jit_val cpu_jit_combine(cpu_jit_env *env, const cx_hlo_op *simple,
                            cpu_jit_val a, cpu_jit_val b);
// A sum in its result's type.
cpu_jit_val cpu_jit_summed(cpu_jit_env *env, cpu_jit_val sum, cx_hlo_elem e);

// ---- merge.c ----

// Fills the slots' needs and element_ns. Operations in program order.
void cpu_jit_merge(cpu_jit_env *env);
// The runs of dimensions of a type between these cuts: sizes, and how many
// dimensions each has. Returns how many; none has size 1 unless all have.
int cpu_jit_runs(const cx_hlo_type *t, uint32_t cuts, int *dims,
                 int64_t *sizes);
// Bytes that one element moves.
double cpu_jit_element_bytes(const cpu_jit_env *env);
int64_t cpu_jit_grain(const cpu_jit_env *env, double elements_per_iteration);

#endif
