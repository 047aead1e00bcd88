// kernel/implicit: matrix products of f32 whose left operand is gathered block
// by block, as those that convolutions are ("implicit GEMM", Chetlur et al.,
// cuDNN: Efficient Primitives for Deep Learning, 2014).
//
// The left operand is a tensor of points, at each of which a run of elements is
// dense. A tap moves a point to another; outside of the tensor there are zeros.
//
//                  rows               inner elements
//   plain          points             taps, the run's elements
//   transposed     taps, the run's    points
//                  elements
//
// Blocks of the right operand are copied; of the left one only if it is
// transposed, or if the product is large and the processor has AMX
// (implicit_split.c). oneDNN copies all weights of a convolution in each run.
#ifndef CPU_KERNEL_IMPLICIT_H
#define CPU_KERNEL_IMPLICIT_H

#include "kernel/packed.h"

#define CPU_KERNEL_IMPLICIT_DIMS 3
#define CPU_KERNEL_IMPLICIT_CLASSES 16
// The position of a point's tap with the shift 0, and where its image and its
// row of the result begin.
typedef struct cpu_kernel_implicit_point {
  int64_t image, row, at[CPU_KERNEL_IMPLICIT_DIMS];
} cpu_kernel_implicit_point;

// A dimension that points are counted in: the images, or a spatial one, whose
// positions are `step` apart.
typedef struct cpu_kernel_implicit_line {
  int64_t size, image, row;
  int dim;
  int64_t step;
} cpu_kernel_implicit_line;

// `other`: where its weights begin, or its rows of the result.
typedef struct cpu_kernel_implicit_tap {
  int64_t shift[CPU_KERNEL_IMPLICIT_DIMS], other;
} cpu_kernel_implicit_tap;

// Points that meet the same taps. Their rows of the result are `apart` where
// there are several classes.
typedef struct cpu_kernel_implicit_class {
  int n_lines;
  cpu_kernel_implicit_line
      lines[CPU_KERNEL_IMPLICIT_DIMS + 1];  // outermost first
  int64_t points, row;  // row: where the first begins in the result
  int64_t first_tap, taps;
  int64_t groups, first_block, blocks;
} cpu_kernel_implicit_class;

typedef struct cpu_kernel_implicit_plan {
  bool transposed;
  bool apart;  // rows of a class are apart in the result
  // Of the left operand: the dimensions in which points and taps are, and the
  // elements of a run.
  int64_t in[CPU_KERNEL_IMPLICIT_DIMS], stride[CPU_KERNEL_IMPLICIT_DIMS], run;
  int64_t n, b_row, b_column;  // columns; strides of the right operand
  int n_classes;               // one, if transposed
  cpu_kernel_implicit_class classes[CPU_KERNEL_IMPLICIT_CLASSES];
  cpu_kernel_implicit_tap *taps;

  // cpu_kernel_implicit_set() sets the rest.
  const cpu_kernel_packed_loops *loops;
  int64_t group;          // the most rows of a group
  int64_t groups_of_tap;  // if transposed
  int64_t segments;       // of a tile, at most
  int64_t blocks, parts;
  // In a thread's scratch, of `each` bytes.
  size_t points_at, panels_at, rows_at, segments_at, each;
  bool split;  // by implicit_split.c, if it can; where, in all scratch
  size_t listed_at, row_starts_at, sums_at, split_each;
} cpu_kernel_implicit_plan;

// Sets the kernel to run a plan whose left and right operand, classes and taps
// are described, and reserves scratch. The kernel frees the plan.
void cpu_kernel_implicit_set(cpu_kernel *kernel, cpu_kernel_implicit_plan *p);

// ---- implicit_points.c ----

// Sets out to `n` points from `first` on.
void cpu_kernel_implicit_list(const cpu_kernel_implicit_class *c, int64_t first,
                              int64_t n, cpu_kernel_implicit_point *out);
// NULL: outside of the input, where there are zeros.
const float *cpu_kernel_implicit_address(const cpu_kernel_implicit_plan *p,
                                         const float *input,
                                         const cpu_kernel_implicit_point *x,
                                         const cpu_kernel_implicit_tap *t);

// ---- implicit_split.c ----

// Whether products of these sizes are faster split (split.h) on this processor.
bool cpu_kernel_implicit_splits(int64_t rows, int64_t columns, int64_t inner);
// Reserves scratch for it. False: it does not pay.
bool cpu_kernel_implicit_plan_split(cpu_kernel *kernel,
                                    cpu_kernel_implicit_plan *p);
// False: an operand has an infinity or NaN; then the result is undefined.
bool cpu_kernel_implicit_run_split(const cpu_kernel_implicit_plan *p,
                                   cpu_threads *pool, const float *lhs,
                                   const float *rhs, float *out,
                                   unsigned char *scratch);

#endif
