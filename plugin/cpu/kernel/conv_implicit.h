// kernel/conv_implicit: convolutions as matrix products whose left operand is
// gathered block by block ("implicit GEMM", Chetlur et al., cuDNN: Efficient
// Primitives for Deep Learning, 2014).
//
// With channels last neither images nor weights are copied to oneDNN's layouts,
// which takes most of the time where few pixels meet many weights.
//
//              rows                         columns     inner elements
//   forward    points (the result's         features    taps of the kernel,
//              pixels of all images)        that come   features that go in
//                                           out
//   gradient   taps (the result's pixels),  the same    points (pixels of the
//   by weights batch                                    kernel, of all images)
//
// So in both forms a point and a tap have one position in the input, where a
// run of elements begins: features, or the batch. An input gradient with
// strides has holes in its input. Of its results those with the same remainders
// meet the same taps; they are one class, whose input has no holes.
#ifndef CPU_KERNEL_CONV_IMPLICIT_H
#define CPU_KERNEL_CONV_IMPLICIT_H

#include "kernel/packed.h"

#define CPU_KERNEL_IMPLICIT_DIMS 3
#define CPU_KERNEL_IMPLICIT_CLASSES 16
// Inner elements and rows of a block, columns of a part: what is read of both
// operands and the block of the result stay in the second cache, one panel of
// columns in the first.
#define CPU_KERNEL_IMPLICIT_INNER 256
#define CPU_KERNEL_IMPLICIT_ROWS 384
#define CPU_KERNEL_IMPLICIT_COLUMNS 768

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

typedef struct cpu_kernel_implicit_class {
  int n_lines;
  cpu_kernel_implicit_line
      lines[CPU_KERNEL_IMPLICIT_DIMS + 1];  // outermost first
  int64_t points, row;  // row: where the first begins in the result
  int64_t first_tap, taps;
  int64_t groups, first_block, blocks;
} cpu_kernel_implicit_class;

typedef struct cpu_kernel_implicit_plan {
  const cpu_kernel_packed_loops *loops;
  bool by_weights;
  bool apart;  // rows of a class are apart in the result
  int64_t in[CPU_KERNEL_IMPLICIT_DIMS],
      stride[CPU_KERNEL_IMPLICIT_DIMS];  // of the input
  int64_t run, n;  // run: elements of the input at one position
  int64_t b_row, b_column;
  int64_t group;          // the most rows of a group
  int64_t groups_of_tap;  // of a gradient by the weights
  int64_t segments;       // of a tile, at most; of forward
  int n_classes;
  cpu_kernel_implicit_class classes[CPU_KERNEL_IMPLICIT_CLASSES];
  cpu_kernel_implicit_tap *taps;
  int64_t blocks, parts;
  // In a thread's scratch, of `each` bytes.
  size_t points_at, panels_at, rows_at, segments_at, each;
} cpu_kernel_implicit_plan;

cpu_kernel_run_fn cpu_kernel_implicit_run;

#endif
