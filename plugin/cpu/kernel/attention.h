// kernel/attention: softmax(scale * q k^T, masked) v, and its gradients,
// without a matrix of scores in memory.
//
// A thread takes one head at a time, and of its scores a strip: some rows with
// all the columns that their mask leaves. The strip stays in the cache from the
// product that makes it to the products that use it. Unlike in Dao et al.
// (FlashAttention, NeurIPS 2022) a row is complete in its strip, so a softmax
// is computed as it is written, and the gradient needs nothing of the forward
// pass: it computes the strip again. Columns that the mask hides from all rows
// of a strip are left out, where that cannot be seen in the result.
#ifndef CPU_KERNEL_ATTENTION_H
#define CPU_KERNEL_ATTENTION_H

#include "kernel/internal.h"

#define CPU_KERNEL_ATTENTION_DIMS 4

// Which tensor a layout or a buffer is of.
typedef enum cpu_kernel_attention_tensor {
  CPU_KERNEL_ATTENTION_Q,
  CPU_KERNEL_ATTENTION_K,
  CPU_KERNEL_ATTENTION_V,
  CPU_KERNEL_ATTENTION_MASK,
  // Forward: the result. Backward: its gradient, an input.
  CPU_KERNEL_ATTENTION_OUT,
  CPU_KERNEL_ATTENTION_DQ,
  CPU_KERNEL_ATTENTION_DK,
  CPU_KERNEL_ATTENTION_DV,
  CPU_KERNEL_ATTENTION_TENSORS
} cpu_kernel_attention_tensor;

// What the mask, whose rows are queries and whose columns are keys, does.
typedef enum cpu_kernel_attention_masking {
  CPU_KERNEL_ATTENTION_NO_MASK,
  CPU_KERNEL_ATTENTION_KEEP,  // i1: where it is false, the score is `hidden`
  CPU_KERNEL_ATTENTION_HIDE,  // i1: where it is true
  CPU_KERNEL_ATTENTION_ADD,   // f32: is added to the score
  CPU_KERNEL_ATTENTION_MASKINGS
} cpu_kernel_attention_masking;

// Strides in elements. A mask's may be 0, but for that of its columns, which is
// 1.
typedef struct cpu_kernel_attention_layout {
  int64_t batch[CPU_KERNEL_ATTENTION_DIMS], row, column;
} cpu_kernel_attention_layout;

// All fields are int64_t. The numbers are the bits of f32: the score is scale *
// q k^T; factor[t] multiplies what is written to OUT, DQ, DK, DV.
typedef struct cpu_kernel_attention_desc {
  int64_t kind, choice;
  int64_t type;      // F32, of all tensors but an i1 mask
  int64_t backward;  // 0 or 1
  int64_t masking, hidden, scale, factor[4];
  int64_t n_batch, batch[CPU_KERNEL_ATTENTION_DIMS];
  int64_t rows, keys, width, value_width;  // of q; of k and v; of q and k; of v
  cpu_kernel_attention_layout layout[CPU_KERNEL_ATTENTION_TENSORS];
} cpu_kernel_attention_desc;
_Static_assert(sizeof(cpu_kernel_attention_desc) <= sizeof(cpu_kernel_desc),
               "too long");

_Static_assert(CPU_KERNEL_ATTENTION_TENSORS <= CPU_KERNEL_BUFFERS, "too many");

// Whether the kernel has a buffer for the tensor. Buffers are in the tensors'
// order.
static inline bool cpu_kernel_attention_has(const cpu_kernel_attention_desc *d,
                                            int t)
{
  if (t == CPU_KERNEL_ATTENTION_MASK) {
    return d->masking != CPU_KERNEL_ATTENTION_NO_MASK;
  }
  return t <= CPU_KERNEL_ATTENTION_OUT || d->backward != 0;
}
// The number of buffers, and their sizes in bytes; 0: the description is not
// sound.
size_t cpu_kernel_attention_sizes(const cpu_kernel_desc *desc,
                                  size_t sizes[CPU_KERNEL_BUFFERS]);
double cpu_kernel_attention_flops(const cpu_kernel_desc *desc);

// ---- one vector width; see attention_width.h ----

// Columns of a panel: a matrix (k, n) is in panels [n / PANEL][k][PANEL].
#define CPU_KERNEL_ATTENTION_PANEL 64
// Sizes of scratch matrices are multiples of this.
#define CPU_KERNEL_ATTENTION_ROUND 16

// c (m, n) = or += a (m, k) b (k, n). b is in panels; if it has dense rows,
// their columns are panels too. n is a multiple of 16.
typedef struct cpu_kernel_attention_product {
  int64_t m, n, k;
  const float *a;
  int64_t a_row, a_column;
  const float *b;
  int64_t b_row, b_panel;
  float *c;
  int64_t c_row;
  bool add;
} cpu_kernel_attention_product;

// A strip of scores: columns lo to hi of some rows; both are multiples of
// PANEL, and what is behind `keys` becomes 0.
typedef struct cpu_kernel_attention_strip {
  float *scores;
  int64_t row;  // stride
  int64_t rows, lo, hi, keys;
  float scale, hidden;
  cpu_kernel_attention_masking masking;
  const void *mask;  // of the first row
  int64_t mask_row;
  float *most, *total;  // of each row
} cpu_kernel_attention_strip;

typedef struct cpu_kernel_attention_loops {
  void (*multiply)(const cpu_kernel_attention_product *p);
  // q k^T becomes exp(score - most), with most = the row's largest score and
  // total = the row's sum.
  void (*softmax)(const cpu_kernel_attention_strip *s);
  // s has exp(score - most), grads the gradients of the probabilities. s
  // becomes the probabilities, and grads the gradients of the scores.
  void (*gradient)(const cpu_kernel_attention_strip *s, float *grads);
  bool (*is_finite)(const float *x, int64_t n);  // n: a multiple of ROUND
} cpu_kernel_attention_loops;
extern const cpu_kernel_attention_loops cpu_kernel_attention_16,
    cpu_kernel_attention_32, cpu_kernel_attention_64;

#endif
