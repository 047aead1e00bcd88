// jit/jit: loops of operations as native code.
//
// A kernel is a group of operations that becomes one loop nest: it reads its
// inputs from memory once, keeps what lies between in registers and writes its
// outputs. The emitter writes vectors itself and gives LLVM nothing to find;
// the object code comes back as bytes, for run/object to load. The module is
// linked with LLVM and loaded on its own (libcalx_jit.so), through the table
// below, so a process whose programs come from a cache never loads LLVM.
#ifndef CPU_JIT_JIT_H
#define CPU_JIT_JIT_H

#include "base/text.h"
#include "hlo/module.h"

// What a kernel may hold.
typedef enum cpu_jit_class {
  CPU_JIT_NONE,     // not compiled
  CPU_JIT_ELEMENT,  // one element from elements at the same index
  CPU_JIT_INDEX,    // one element from elements at other indices (broadcast,
                    // transpose, slice, pad, concatenate, gather, iota …)
  CPU_JIT_REDUCE,   // reduce: ends a loop over its operands' elements
  CPU_JIT_ROOT      // only as the one root of a kernel, whose operands may be
                    // fused as said by cpu_jit_fuses()
} cpu_jit_class;

// These need no LLVM: they are also in the engine itself (class.c,
// scan_form.c).
cpu_jit_class cpu_jit_class_of(const cx_hlo_op *op);
// A float of 8 bits with a sign, exponent and mantissa: only conversions from
// and to it are compiled.
bool cpu_jit_is_f8(cx_hlo_elem e);
// Whether the producer of operand `i` may be in the same kernel as `op`.
bool cpu_jit_fuses(const cx_hlo_op *op, size_t i);
// An estimate of the time per element of the result, in ns on one thread of a
// vectorized loop, without loading operands and storing the result.
double cpu_jit_op_ns(const cx_hlo_op *op);
// Whether a reduce_window of one operand is a prefix scan along a dimension,
// from its end if `reverse`: the operation is associative and the padding is
// its identity (scan_form.c).
bool cpu_jit_scan_of(const cx_hlo_op *op, size_t *out_dim, bool *out_reverse);

#define CPU_JIT_PIECES 16  // most operands of a concatenation in a loop
// Whether a concatenation is copied piece by piece, in a kernel of its own.
// Then it may have more operands.
bool cpu_jit_has_pieces(const cx_hlo_op *op);

#define CPU_JIT_PHASES 2

// One function per phase, `void f(void *const *buffers, int64_t lo, int64_t
// hi)`: does the iterations [lo, hi) of [0, extent). Iterations of a phase are
// independent; a later phase starts when the earlier one is done. `buffers`
// are the inputs, the outputs, and the scratch where scratch > 0. Without a
// ROOT an element is loaded before one is stored in its place, so an output may
// lie in the memory of an input that is used only by ELEMENT operations. An
// output that is not reduced may do so where REDUCE operations use the input.
// The output of a scatter or dynamic_update_slice may be the memory of its
// first operand, where that is an input that nothing else in the group reads.
// Memory is aligned to its element; arena memory to 64 bytes.
typedef struct cpu_jit_phase {
  int64_t extent;
  int64_t grain;  // fewest iterations that are worth a thread
  // It copies the first buffer to the second, and does nothing where they are
  // the same memory. Both 0: it is another phase.
  int64_t from, to;
} cpu_jit_phase;

typedef struct cpu_jit_kernel {
  // The group in program order. Its roots are the outputs; all of them have
  // the same dimensions or (REDUCE) reduce the same dimensions of operands of
  // the same dimensions, with ELEMENT operations on the results allowed. Such
  // an operand, or an ELEMENT operation before it, may be an output too.
  const cx_hlo_op *const *ops;
  size_t n_ops;
  const cx_hlo_value *const *inputs;
  size_t n_inputs;
  const cx_hlo_value *const *outputs;
  size_t n_outputs;
  // Filled by compile.
  size_t n_phases;
  cpu_jit_phase phases[CPU_JIT_PHASES];
  size_t scratch;  // bytes
  bool refused;    // why compile answered UNIMPLEMENTED: to be split
} cpu_jit_kernel;

// ---- loops of short iterations ----

#define CPU_JIT_CELL_MOST 8  // elements of a cell that are kept in registers

// What the steps of such a loop work on. A cell is a slot of the program.
typedef struct cpu_jit_cell {
  size_t buffer;  // where its address is among the buffers
  int64_t bytes;
  // in_register: of its n elements, which are kept in registers where they are
  // known, and also in memory where something reads them there.
  cx_hlo_elem elem;
  int64_t n;
  bool in_register, in_memory;
} cpu_jit_cell;

typedef enum cpu_jit_step_kind {
  // The kernel's code in place: its outputs have at most CPU_JIT_CELL_MOST
  // elements, or its root is a dynamic_update_slice in place of as many. Cells:
  // inputs, outputs.
  CPU_JIT_STEP_INLINE,
  // Calls compiled functions. Cells: inputs, outputs, scratch.
  CPU_JIT_STEP_CALL,
  CPU_JIT_STEP_COPY,  // cells: source, destination
  // Cell: the condition's result, or the selector. Blocks: as regions.
  CPU_JIT_STEP_WHILE,
  CPU_JIT_STEP_IF,
  CPU_JIT_STEP_CASE
} cpu_jit_step_kind;

// What control flow does with a cell.
#define CPU_JIT_CELL_READS 1    // reads it before any step has written it
#define CPU_JIT_CELL_WRITES 2   // may write it
#define CPU_JIT_CELL_CARRIES 4  // writes it for a later iteration or step

typedef struct cpu_jit_step {
  cpu_jit_step_kind kind;
  const uint32_t *cells;
  size_t n_cells, n_inputs;
  const cpu_jit_kernel *kernel;  // INLINE
  size_t buffer;                 // CALL: its first
  size_t n_calls;
  size_t functions[CPU_JIT_PHASES];  // numbers in the table
  int64_t extents[CPU_JIT_PHASES];
  const struct cpu_jit_steps *blocks;
  size_t n_blocks;
  const unsigned char *flags;  // of control flow, by cell
} cpu_jit_step;

typedef struct cpu_jit_steps {
  cpu_jit_step *steps;
  size_t n;
} cpu_jit_steps;

// A while as one function of the form of a phase, that runs on one thread.
typedef struct cpu_jit_native {
  const cpu_jit_step *loop;
  const cpu_jit_cell *cells;
  size_t n_cells;
  size_t table;  // the buffer that is the table of functions
  bool refused;  // why compile_native answered UNIMPLEMENTED
} cpu_jit_native;

typedef struct cpu_jit_options {
  int lanes;  // of f32: 16, 8, 4; 0: what this CPU has
} cpu_jit_options;

// The kernels as one ELF object, position-independent x86-64, that needs
// nothing from outside but memset, memcpy and memmove. Kernel i's phase p is
// the symbol "k<i>_<p>".
typedef struct cpu_jit_api {
  size_t struct_size;
  calx_status *(*compile)(const cpu_jit_options *options,
                          cpu_jit_kernel *kernels, size_t n,
                          cx_text *out_object);
  // Loop i is the symbol "k<i>_0".
  calx_status *(*compile_native)(const cpu_jit_options *options,
                                 cpu_jit_native *loops, size_t n,
                                 cx_text *out_object);
  // Give back what compile gave: the shared object has memory of its own.
  void (*free_object)(cx_text *object);
  void (*free_status)(calx_status *status);
} cpu_jit_api;

// Exported by libcalx_jit.so.
const cpu_jit_api *cpu_jit_get_api(void);

#endif
