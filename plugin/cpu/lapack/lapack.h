// lapack/lapack: the targets of custom calls that the engine has, which are
// LAPACK's routines.
//
// table.c lists them. A call is described without pointers, so that an
// executable can store it; a plan adds the library's function and the sizes of
// memory. Tensors are row-major, LAPACK's matrices are column-major: each
// matrix is transposed on its way. The library is loaded with the first plan.
#ifndef CPU_LAPACK_LAPACK_H
#define CPU_LAPACK_LAPACK_H

#include "base/status.h"
#include "hlo/module.h"

#define CPU_LAPACK_FLAGS 4
#define CPU_LAPACK_BUFFERS 9  // operands and results of a call, at most
#define CPU_LAPACK_SIZES 8

typedef struct cpu_lapack_desc {
  int64_t kind, choice;  // of the kernel; this module does not read them
  int64_t target;        // row of the table
  int64_t type;          // cx_hlo_elem: F32, F64, C64 or C128
  int64_t batch;         // matrices
  // By the letters of the row's shapes: a b k m n u v.
  int64_t sizes[CPU_LAPACK_SIZES];
  int64_t flags[CPU_LAPACK_FLAGS];  // attributes, in the row's order
} cpu_lapack_desc;

// The description of a custom call. An error names the target, and what is
// wrong with the call or, if there is no such target, all that there are.
calx_status *cpu_lapack_describe(const cx_hlo_op *op,
                                 cpu_lapack_desc *out) CALX_MUST_USE;

// One operand or result of one matrix's call.
typedef struct cpu_lapack_tensor {
  int64_t rows, columns;  // a vector has one column
  int64_t bytes;          // of an element
  size_t at;              // in scratch, column-major
  bool cleared;           // a result that does not begin as an operand
} cpu_lapack_tensor;

typedef void cpu_lapack_function(void);  // of any type

typedef struct cpu_lapack_plan {
  cpu_lapack_desc d;
  cpu_lapack_function *function;  // of the library
  size_t n_operands, n_tensors;
  cpu_lapack_tensor tensors[CPU_LAPACK_BUFFERS];  // operands, then results
  int lwork, liwork, lrwork;                      // elements
  size_t work_at, iwork_at, rwork_at;
  size_t scratch;  // bytes of each thread's, aligned to 64
} cpu_lapack_plan;

// Checks the description, which may come from a file, and loads the library.
calx_status *cpu_lapack_plan_make(const cpu_lapack_desc *d,
                                  cpu_lapack_plan *out) CALX_MUST_USE;
// Bytes of the tensor i of all matrices.
size_t cpu_lapack_plan_bytes(const cpu_lapack_plan *p, size_t i);
// "sgetrf"
void cpu_lapack_plan_name(const cpu_lapack_plan *p, char *out, size_t room);
double cpu_lapack_flops(const cpu_lapack_desc *d);
// The matrices [lo, hi). Buffers are row-major operands, then results; scratch
// has p->scratch bytes. Thread-safe.
void cpu_lapack_run(const cpu_lapack_plan *p, void *const *buffers, int64_t lo,
                    int64_t hi, unsigned char *scratch);

#endif
