// kernel/lanes: convolutions with few channels, 16 images at a time.
//
// With 1, 10 or 20 channels, vectors of channels are mostly empty. Here a
// vector holds the same pixel of 16 images: images are (height, width,
// channels, 16), so that the channels of neighbouring taps are one run of
// vectors. The inner loops are compiled once for each vector width, as those of
// gemm.h.
#ifndef CPU_KERNEL_LANES_H
#define CPU_KERNEL_LANES_H

#include "kernel/kernel.h"

// Out features that the forward loop computes at a time.
#define CPU_KERNEL_LANES_OUTS 5

// One convolution: result r reads at tap t the position r * stride + t *
// dilation - low of the input, whose elements are `hole` apart. [0] is
// vertical.
typedef struct cpu_kernel_lanes {
  int64_t channels, outs;
  int64_t in[2], taps[2], results[2];
  int64_t stride[2], dilation[2], low[2], hole[2];
  int64_t width;  // of a row with its padding and holes
} cpu_kernel_lanes;

typedef struct cpu_kernel_lanes_loops {
  // Two numbers of out features of which gradients take multiples.
  int gradient_outs[2];
  // x (in, width, channels, 16) of 16 images; w (outs / OUTS, taps, channels,
  // OUTS), padded with zeros; y (results, outs, 16). Of the rows [lo, hi) of
  // the results.
  void (*forward)(const cpu_kernel_lanes *l, const float *x, const float *w,
                  int64_t lo, int64_t hi, float *y);
  // Adds to sums (results, channels, outs, 16) those of 16 images; the taps are
  // g's pixels: x (in, width, channels, 16), g (taps, outs, 16). Of the rows
  // [lo, hi) of the results; outs is a multiple of gradient_outs[by].
  void (*gradient)(const cpu_kernel_lanes *l, int by, const float *x,
                   const float *g, int64_t lo, int64_t hi, float *sums);
  // Adds one image of 16 groups of one channel: x (in, width, 16), g (taps,
  // 16), to (results, 16).
  void (*depthwise)(const cpu_kernel_lanes *l, const float *x, const float *g,
                    float *to);
  // 16 rows of 16 elements, the rows from_step and to_step apart.
  void (*transpose)(const float *from, int64_t from_step, float *to,
                    int64_t to_step);
} cpu_kernel_lanes_loops;

extern const cpu_kernel_lanes_loops cpu_kernel_lanes_16, cpu_kernel_lanes_32,
    cpu_kernel_lanes_64;
const cpu_kernel_lanes_loops *cpu_kernel_lanes_get(void);  // for this processor

// The row of the input that a result reads at a tap; -1: none.
static inline int64_t cpu_kernel_lanes_row(const cpu_kernel_lanes *l,
                                           int64_t result, int64_t tap)
{
  const int64_t at = result * l->stride[0] + tap * l->dilation[0] - l->low[0];
  if (at < 0) return -1;
  // A division takes as long as the sums over a row of few taps.
  if (l->hole[0] == 1) return at < l->in[0] ? at : -1;
  if (at % l->hole[0] != 0) return -1;
  return at / l->hole[0] < l->in[0] ? at / l->hole[0] : -1;
}

#endif
