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
// ROOT each iteration loads all that it loads before it stores, so an output
// may lie in the memory of an input that is used only by ELEMENT operations.
// The output of a scatter or dynamic_update_slice may be the memory of its
// first operand, where that is an input that nothing else in the group reads.
// Memory is aligned to its element; arena memory to 64 bytes.
typedef struct cpu_jit_phase {
  int64_t extent;
  int64_t grain;  // fewest iterations that are worth a thread
} cpu_jit_phase;

typedef struct cpu_jit_kernel {
  // The group in program order. Its roots are the outputs; all of them have
  // the same dimensions or (REDUCE) reduce the same dimensions of operands of
  // the same dimensions, with ELEMENT operations on the results allowed.
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
  // Give back what compile gave: the shared object has memory of its own.
  void (*free_object)(cx_text *object);
  void (*free_status)(calx_status *status);
} cpu_jit_api;

// Exported by libcalx_jit.so.
const cpu_jit_api *cpu_jit_get_api(void);

#endif
