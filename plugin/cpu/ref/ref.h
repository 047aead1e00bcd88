// ref/ref: the reference interpreter.
//
// Runs functions and single operations of verified programs with plain loops
// that a reader can hold against the specification. It is the oracle for every
// pass and kernel, it folds constants, and it runs what nothing else takes.
// Tensors are dense and row-major, in the host form of cx_hlo_elem_bytes():
// i1 and the types of less than 8 bits a byte each (integers extended).
// Floats are computed in double and rounded to their type after each operation
// (complex: in double parts). Sums of products, and reductions whose body is
// one operation, are rounded once, at their end.
#ifndef CPU_REF_REF_H
#define CPU_REF_REF_H

#include "hlo/module.h"

typedef struct cpu_ref_tensor {
  cx_hlo_type type;
  void *data;
} cpu_ref_tensor;

// What a launch gives the functions of its custom calls, by the type's number.
typedef struct cpu_ref_user_data {
  int64_t type_id;
  void *data;
} cpu_ref_user_data;

// What a program can ask of the device that it runs on. All zero: one device,
// no collectives.
typedef struct cpu_ref_context {
  uint32_t replica, partition;
  // Runs a collective operation; NULL: they are refused by name. The results'
  // memory is the caller's.
  calx_status *(*collective)(void *user, const cx_hlo_op *op,
                             const cpu_ref_tensor *operands,
                             const cpu_ref_tensor *results);
  void *user;
  // Whether to give up: asked from time to time, by loops too. NULL: never.
  calx_status *(*interrupt)(void *user);
  uint64_t *rng_state;  // two words, of the operation `rng`; NULL: from zero
  size_t memory_limit;  // bytes of temporaries; 0: 16 GiB
  const cpu_ref_user_data *user_data;
  size_t n_user_data;
} cpu_ref_context;

// Runs `f` of `m` (and what it calls). The arguments are read, the results'
// memory is the caller's and is written.
calx_status *cpu_ref_run(const cx_hlo_module *m, const cx_hlo_func *f,
                         const cpu_ref_tensor *args,
                         const cpu_ref_tensor *results,
                         const cpu_ref_context *context) CALX_MUST_USE;

// One operation whose regions use nothing from outside. `m` is for calls.
calx_status *cpu_ref_op(const cx_hlo_module *m, const cx_hlo_op *op,
                        const cpu_ref_tensor *operands,
                        const cpu_ref_tensor *results,
                        const cpu_ref_context *context) CALX_MUST_USE;

// The one block of a region, on scalars or tensors: what a reduction's body
// does to two elements.
calx_status *cpu_ref_region(const cx_hlo_module *m, const cx_hlo_region *region,
                            const cpu_ref_tensor *args,
                            const cpu_ref_tensor *results,
                            const cpu_ref_context *context) CALX_MUST_USE;

// Whether the interpreter has this operation (for these types).
bool cpu_ref_can(const cx_hlo_op *op);

#endif
