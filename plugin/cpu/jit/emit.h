// jit/emit: what the files of the emitter share.
//
// A function is emitted into a stack of levels: level 0 is its entry, each loop
// that is open is one more. An instruction goes to the innermost level that its
// operands come from, so what does not change in a loop stands before it, and
// no pass has to move it. A level's builder stands where its next instruction
// goes; after a loop has ended it stands behind it.
//
// A value is emitted at a place: where its element is (one index for each run
// of merged dimensions) and which lanes count. Equal places are one object, and
// a value is emitted once for each place.
#ifndef CX_JIT_EMIT_H
#define CX_JIT_EMIT_H

#include <llvm-c/Core.h>

#include "base/arena.h"
#include "base/status.h"
#include "jit/jit.h"
#include "jit/math.h"

#define CX_JIT_RANK 16         // most dimensions of a value
#define CX_JIT_OPS 1024        // most operations of a kernel
#define CX_JIT_LEVELS 40       // loops open at once
#define CX_JIT_SIZE 40000      // most instructions of a function
#define CX_JIT_MAX_OUTPUTS 64  // outputs of a kernel, results of a reduce

// ---- values ----

// One value in registers: `re` is a vector of the lanes (wide), or a scalar
// that is the same in all. bf16 and f16 are floats that their type can hold;
// i1 is i1; complex numbers have `im` too.
typedef struct cx_jit_val {
  LLVMValueRef re, im;
  cx_hlo_elem elem;
  int level;
  bool wide;
} cx_jit_val;

// An index: `base` + lane * number of the lane, or (wide) a vector.
typedef struct cx_jit_ix {
  LLVMValueRef base;  // i64; wide: a vector of lane indices
  int64_t lane;
  int64_t multiple;  // base is a multiple of this; 0: it is 0
  int level;
  bool wide;
} cx_jit_ix;

// The row-major index into `dims` neighbouring dimensions, of `size` elements.
typedef struct cx_jit_part {
  cx_jit_ix ix;
  int64_t size;
  int dims;
} cx_jit_part;

typedef struct cx_jit_place {
  struct cx_jit_place *next;  // in its bucket
  LLVMValueRef mask;          // <lanes x i1>: those that count; NULL: all
  int mask_level;
  int n;
  cx_jit_part part[CX_JIT_RANK];
} cx_jit_place;

// ---- the kernel in progress ----

typedef enum cx_jit_slot_kind {
  CX_JIT_SLOT_NONE,
  CX_JIT_SLOT_BUFFER,  // an input, or (literals) data of the module
  CX_JIT_SLOT_OP       // a result of an operation of the group
} cx_jit_slot_kind;

// What is known of a value of the group.
typedef struct cx_jit_slot {
  const cx_hlo_value *value;
  cx_jit_slot_kind kind;
  LLVMValueRef pointer;  // BUFFER, in the current function
  size_t input;          // BUFFER
  uint32_t need;         // dimensions before which its index should be cut
} cx_jit_slot;

typedef struct cx_jit_memo cx_jit_memo;
typedef struct cx_jit_cse cx_jit_cse;

typedef struct cx_jit_target {
  int lanes;  // of f32
  bool has_fma, has_f16c, has_masks;
  char *cpu;
  char *features;
} cx_jit_target;

typedef struct cx_jit_env {
  const cx_jit_target *target;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, void_type;
  const cx_jit_kernel *kernel;
  size_t number;       // of the kernel
  cx_arena arena;      // lives as long as the kernel's emission
  cx_arena fn_arena;   // … as the function's
  cx_jit_slot *slots;  // open addressing by the value's address
  size_t n_slots;
  // The function in progress.
  LLVMValueRef function;
  LLVMBuilderRef level[CX_JIT_LEVELS];
  int n_levels;
  int lanes;      // 1: scalars only
  bool small;     // lane indices fit in 32 bits
  size_t budget;  // instructions left
  cx_jit_memo **memo;
  cx_jit_cse **cse;
  cx_jit_place **places;
  cx_jit_place scalar;  // the place of rank 0
  calx_status *status;  // the first failure
} cx_jit_env;

// ---- env.c ----

void cx_jit_fail(cx_jit_env *env, const char *why);  // UNIMPLEMENTED
bool cx_jit_failed(const cx_jit_env *env);
void cx_jit_function_begin(cx_jit_env *env, int phase, int lanes);
void cx_jit_function_end(cx_jit_env *env);  // with its return
LLVMTypeRef cx_jit_register_type(cx_jit_env *env, cx_hlo_elem e, bool wide);
LLVMTypeRef cx_jit_memory_type(cx_jit_env *env, cx_hlo_elem e);
LLVMTypeRef cx_jit_wide_type(cx_jit_env *env, LLVMTypeRef scalar);
LLVMValueRef cx_jit_i64(cx_jit_env *env, int64_t v);
// The constant in every lane where `type` is a vector.
LLVMValueRef cx_jit_const_int(LLVMTypeRef type, uint64_t v);
LLVMValueRef cx_jit_const_real(LLVMTypeRef type, double v);
LLVMBuilderRef cx_jit_at(cx_jit_env *env, int level);  // counts the budget
LLVMValueRef cx_jit_splat(cx_jit_env *env, LLVMValueRef scalar, int level);
cx_jit_val cx_jit_widen(cx_jit_env *env, cx_jit_val v);
LLVMValueRef cx_jit_intrinsic(cx_jit_env *env, LLVMBuilderRef b,
                              const char *name, LLVMTypeRef *types,
                              size_t n_types, LLVMValueRef *args,
                              size_t n_args);
// The same pure instruction on the same operands is emitted once.
LLVMValueRef cx_jit_op2(cx_jit_env *env, LLVMOpcode op, LLVMValueRef a,
                        LLVMValueRef b, int level);
LLVMValueRef cx_jit_compare(cx_jit_env *env, LLVMIntPredicate p, LLVMValueRef a,
                            LLVMValueRef b, int level);
LLVMValueRef cx_jit_choose(cx_jit_env *env, LLVMValueRef c, LLVMValueRef a,
                           LLVMValueRef b, int level);
// Of signed integers.
LLVMValueRef cx_jit_least(cx_jit_env *env, LLVMValueRef a, LLVMValueRef b,
                          int level);
LLVMValueRef cx_jit_iota(cx_jit_env *env, LLVMTypeRef vector, int64_t step);
// A scalar or vector of integers as another integer type, by sign.
LLVMValueRef cx_jit_resize(cx_jit_env *env, LLVMValueRef v, LLVMTypeRef to,
                           bool is_signed, int level);
LLVMValueRef cx_jit_buffer(cx_jit_env *env, size_t i);  // its pointer
// <lanes x i1>: the number of the lane is below hi - lo.
LLVMValueRef cx_jit_lanes_below(cx_jit_env *env, LLVMValueRef hi,
                                LLVMValueRef lo, int level);
int64_t cx_jit_elements(const cx_hlo_value *v);
const cx_hlo_type *cx_jit_type(const cx_hlo_value *v);

cx_jit_slot *cx_jit_slot_of(cx_jit_env *env, const cx_hlo_value *v);

// ---- loops.c ----

typedef struct cx_jit_loop {
  LLVMBasicBlockRef before, body, after;
  LLVMValueRef iv, lo, hi;
  int64_t step;
  int level;
  bool once;  // no loop: its body stands where it is
  size_t n;   // values carried around
  LLVMValueRef *phis, *first, *next;
} cx_jit_loop;

// for (iv = lo; iv < hi; iv += step), with n values carried around, whose
// registers at the start of an iteration come back in `carried`; end takes what
// they are at its end, and gives what they are after the loop.
void cx_jit_loop_begin(cx_jit_env *env, cx_jit_loop *loop, LLVMValueRef lo,
                       LLVMValueRef hi, int64_t step, cx_jit_val *carried,
                       size_t n);
void cx_jit_loop_end(cx_jit_env *env, cx_jit_loop *loop, cx_jit_val *carried);
// The loop over the iterations [lo, hi) of a phase of `extent`; of a single one
// only whether it is wanted.
cx_jit_ix cx_jit_iterations_begin(cx_jit_env *env, cx_jit_loop *loop,
                                  LLVMValueRef lo, LLVMValueRef hi,
                                  int64_t extent);
void cx_jit_iterations_end(cx_jit_env *env, cx_jit_loop *loop, int64_t extent);

// ---- place.c ----

cx_jit_ix cx_jit_ix_const(cx_jit_env *env, int64_t v);
cx_jit_ix cx_jit_ix_scalar(LLVMValueRef base, int level, int64_t multiple);
cx_jit_ix cx_jit_ix_add(cx_jit_env *env, cx_jit_ix a, cx_jit_ix b);
cx_jit_ix cx_jit_ix_scale(cx_jit_env *env, cx_jit_ix a, int64_t k);
cx_jit_ix cx_jit_ix_offset(cx_jit_env *env, cx_jit_ix a, int64_t k);
// Quotient and remainder of a dimension of `size` by d. `masked`: lanes that do
// not count may be out of range.
void cx_jit_ix_split(cx_jit_env *env, cx_jit_ix a, int64_t d, int64_t size,
                     bool masked, cx_jit_ix *quotient, cx_jit_ix *rest);
bool cx_jit_ix_same(const cx_jit_ix *ix);  // the same in all lanes
LLVMValueRef cx_jit_ix_widen(cx_jit_env *env, cx_jit_ix a);
LLVMTypeRef cx_jit_lane_type(cx_jit_env *env);  // of wide indices' elements

const cx_jit_place *cx_jit_place_of(cx_jit_env *env, const cx_jit_place *p);
void cx_jit_place_push(cx_jit_place *p, int dims, int64_t size, cx_jit_ix ix);
const cx_jit_place *cx_jit_place_masked(cx_jit_env *env, const cx_jit_place *p,
                                        LLVMValueRef mask, int level);
// The place with parts cut at least before the dimensions whose bits are set.
void cx_jit_place_cut(cx_jit_env *env, const cx_hlo_type *t,
                      const cx_jit_place *p, uint32_t cuts, cx_jit_place *out);
cx_jit_ix cx_jit_place_linear(cx_jit_env *env, const cx_jit_place *p);

// ---- memory.c ----

cx_jit_val cx_jit_load(cx_jit_env *env, LLVMValueRef pointer, cx_hlo_elem e,
                       const cx_jit_place *p);
// The same at this level at least: what is read may be written in its loop.
cx_jit_val cx_jit_load_at(cx_jit_env *env, LLVMValueRef pointer, cx_hlo_elem e,
                          const cx_jit_place *p, int level);
// At level `level`. A value that is the same in all lanes is stored once where
// the place has no lanes.
void cx_jit_store(cx_jit_env *env, LLVMValueRef pointer, cx_jit_val v,
                  const cx_jit_place *p, int level);
LLVMValueRef cx_jit_literal(cx_jit_env *env, const cx_hlo_elements *e);
cx_jit_val cx_jit_splat_of(cx_jit_env *env, const cx_hlo_elements *e);

// ---- index.c ----

// Before which dimensions of its result an INDEX operation needs cuts, if its
// operands are cut as their slots say.
uint32_t cx_jit_index_cuts(cx_jit_env *env, const cx_hlo_op *op);
cx_jit_val cx_jit_index_emit(cx_jit_env *env, const cx_hlo_op *op,
                             const cx_jit_place *p);
// gather.c
uint32_t cx_jit_gather_cuts(const cx_hlo_op *op);
cx_jit_val cx_jit_gather_emit(cx_jit_env *env, const cx_hlo_op *op,
                              const cx_jit_place *p);
// window.c
uint32_t cx_jit_window_cuts(cx_jit_env *env, const cx_hlo_op *op);
cx_jit_val cx_jit_window_emit(cx_jit_env *env, const cx_hlo_op *op,
                              const cx_jit_place *p);
// An integer of rank 0 as an index within [0, limit].
cx_jit_ix cx_jit_start_index(cx_jit_env *env, const cx_hlo_value *v,
                             int64_t limit);

// ---- value.c ----

cx_jit_val cx_jit_emit(cx_jit_env *env, const cx_hlo_value *v,
                       const cx_jit_place *p);
// From now on this value at this place is `val`.
void cx_jit_known(cx_jit_env *env, const cx_hlo_value *v, const cx_jit_place *p,
                  cx_jit_val val);
// The results of a region of ELEMENT operations on these arguments.
void cx_jit_region(cx_jit_env *env, const cx_hlo_region *region,
                   const cx_jit_val *args, size_t n_args, cx_jit_val *results,
                   size_t n_results);

// ---- element*.c ----

cx_jit_val cx_jit_element(cx_jit_env *env, const cx_hlo_op *op,
                          const cx_jit_val *args);
// The pieces, all on operands of one shape at the builder's place.
typedef struct cx_jit_ctx {
  cx_jit_env *env;
  LLVMBuilderRef b;
  cx_hlo_elem elem;  // of the operands (or their parts)
  LLVMTypeRef type;  // of the operands in registers
  LLVMTypeRef ints;  // integers as wide as that
  bool wide;
} cx_jit_ctx;
cx_jit_ctx cx_jit_ctx_of(cx_jit_env *env, LLVMBuilderRef b, cx_hlo_elem e,
                         bool wide);
LLVMValueRef cx_jit_int_op(const cx_jit_ctx *c, const cx_hlo_op *op,
                           LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cx_jit_real_op(const cx_jit_ctx *c, const cx_hlo_op *op,
                            LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cx_jit_reduce_precision(const cx_jit_ctx *c, LLVMValueRef x,
                                     int64_t exponent, int64_t mantissa);
LLVMValueRef cx_jit_max(const cx_jit_ctx *c, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cx_jit_min(const cx_jit_ctx *c, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cx_jit_call(const cx_jit_ctx *c, const char *name, LLVMValueRef x,
                         LLVMValueRef y);  // an intrinsic on c->type
LLVMValueRef cx_jit_int_const(const cx_jit_ctx *c, uint64_t v);  // of c->ints
LLVMValueRef cx_jit_real_const(const cx_jit_ctx *c, double v);
// ---- convert.c ----
// A float of register type to what `e` can hold (bf16 and f16 only).
LLVMValueRef cx_jit_round(cx_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                          cx_hlo_elem e);
LLVMValueRef cx_jit_to_bits16(cx_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                              cx_hlo_elem e);  // of a float that e can hold
LLVMValueRef cx_jit_from_bits16(cx_jit_env *env, LLVMBuilderRef b,
                                LLVMValueRef x, cx_hlo_elem e);
cx_jit_val cx_jit_convert(cx_jit_env *env, cx_jit_val v, cx_hlo_elem to);
cx_jit_val cx_jit_bitcast(cx_jit_env *env, cx_jit_val v, cx_hlo_elem to);

// ---- the kinds of kernels ----

// A loop with transposes that are turned in registers; false: it has none, and
// nothing is emitted.
bool cx_jit_kernel_turned(cx_jit_env *env, cx_jit_kernel *k);
calx_status *cx_jit_kernel_loop(cx_jit_env *env, cx_jit_kernel *k);
calx_status *cx_jit_kernel_reduce(cx_jit_env *env, cx_jit_kernel *k);
// Additions of f32 one to another; what they give is added up in f64.
#define CX_JIT_BLOCK 128
// The operation that makes result `i` of the body of `op`, if each result is
// made by one whose identity is known, of its own two arguments; else NULL.
const cx_hlo_op *cx_jit_simple_body(const cx_hlo_op *op, size_t i);
// What a result of this element type is summed in: f32 for bf16 and f16.
cx_hlo_elem cx_jit_sum_elem(const cx_hlo_op *simple, cx_hlo_elem e);
// Steps of a block, each of `chain` additions.
int64_t cx_jit_block(int64_t chain);
// What more than CX_JIT_BLOCK of them are added up in: f64 for f32.
cx_hlo_elem cx_jit_total_elem(const cx_hlo_op *simple, cx_hlo_elem e);
cx_jit_val cx_jit_combine(cx_jit_env *env, const cx_hlo_op *simple,
                          cx_hlo_elem e, cx_jit_val a, cx_jit_val b);
// A sum in its result's type.
cx_jit_val cx_jit_summed(cx_jit_env *env, cx_jit_val sum, cx_hlo_elem e);

// ---- merge.c ----

// Fills the slots' needs. Operations in program order.
void cx_jit_merge(cx_jit_env *env);
// The runs of dimensions of a type between these cuts: sizes, and how many
// dimensions each has. Returns how many; none has size 1 unless all have.
int cx_jit_runs(const cx_hlo_type *t, uint32_t cuts, int *dims, int64_t *sizes);
// Nanoseconds of one element, and bytes that it moves: guesses for `grain`.
double cx_jit_element_ns(const cx_jit_env *env);
double cx_jit_element_bytes(const cx_jit_env *env);
int64_t cx_jit_grain(const cx_jit_env *env, double elements_per_iteration);

#endif
