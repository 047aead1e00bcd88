// kernel/dot: how a dot_general is run: dot_plan.c decides, dot.c does it.
#ifndef CPU_KERNEL_DOT_H
#define CPU_KERNEL_DOT_H

#include "kernel/internal.h"
#include "kernel/matmul.h"
#include "kernel/narrow.h"
#include "kernel/onednn.h"
#include "kernel/rows.h"
#include "kernel/split.h"

// lhs: rows are m and columns k. rhs: rows are k and columns n.
typedef struct cpu_kernel_dot_factor {
  bool gathered;                       // copied
  int64_t row, column;                 // strides in elements
  int64_t batch[CPU_KERNEL_DOT_DIMS];  // likewise
} cpu_kernel_dot_factor;

typedef struct cpu_kernel_dot_plan {
  cpu_kernel_dot_desc d;
  cpu_kernel_math math;
  bool complex;
  bool stored;  // the result is computed in scratch and then converted
  // What computes a product: rows.h, else packed.h, else narrow.h, else matmul,
  // else split.h, else sgemm of onednn, else gemm.h.
  bool few_rows, few_columns;  // rows.h, at most one
  bool narrow;                 // both operands are 8-bit integers
  bool many;                   // tiny ones, a run of batches in one call
  cpu_kernel_matmul *matmul;   // bf16 as it is; NULL: not used
  const cpu_kernel_onednn *onednn;
  // split.h; what follows it above, if an operand has an infinity or NaN.
  bool split;
  bool turned;   // sgemm computes the transposed product in scratch
  bool divided;  // each matmul among the threads
  bool packed;   // packed.h; d.packed says who packs
  int64_t batches, m, n, k;
  cpu_kernel_dot_factor factors[2];
  cpu_kernel_operand operands[3];  // lhs, rhs, result
  int64_t bytes[3];                // of an element of what products read, write
  // Scratch of each thread; if turned, of all.
  size_t panels_at, panels_each;
  size_t sums_at;  // of split.h; of a single product
} cpu_kernel_dot_plan;

// Sets the plan's sizes and type; false: the description contradicts itself.
bool cpu_kernel_dot_is_sound(const cpu_kernel_dot_desc *d,
                             cpu_kernel_dot_plan *p);
cpu_kernel_run_fn cpu_kernel_dot_run;
// Elements of the right operand, packed for loops: panels of packed.h, and
// behind them those of split.h, whatever the processor.
int64_t cpu_kernel_dot_packed_elements(int64_t n, int64_t k);
// Whether a kernel that packs makes split.h's panels too; if not `packs`,
// whether one that multiplies uses them.
bool cpu_kernel_dot_packed_splits(const cpu_kernel_dot_plan *p, bool packs);
// dot_packed.c: packs the right operand, which is the only one; multiplies.
cpu_kernel_run_fn cpu_kernel_dot_pack, cpu_kernel_dot_run_packed;

// Replaces the kernel's plan, if the product has few rows and many weights.
calx_status *cpu_kernel_dot_implicit_new(cpu_kernel *kernel,
                                         bool *out_taken) CALX_MUST_USE;

#endif
