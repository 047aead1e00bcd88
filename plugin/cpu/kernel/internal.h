// kernel/internal: what the files of this module share: the layouts of
// descriptions, the kernel object, and copies between element types.
#ifndef CPU_KERNEL_INTERNAL_H
#define CPU_KERNEL_INTERNAL_H

#include "hlo/types.h"
#include "kernel/kernel.h"
#include "lapack/lapack.h"

#define CPU_KERNEL_DOT 1
#define CPU_KERNEL_CONV 2
#define CPU_KERNEL_CHOLESKY 3
#define CPU_KERNEL_SOLVE 4  // triangular_solve
#define CPU_KERNEL_FFT 5
#define CPU_KERNEL_SORT 6
#define CPU_KERNEL_ATTENTION 7
#define CPU_KERNEL_LAPACK 8

// Sizes of tensors are below 2^48 bytes, so that offsets cannot overflow.
#define CPU_KERNEL_MOST ((int64_t)1 << 44)  // elements

// ---- descriptions: all fields are int64_t, without gaps ----

// out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], where each of the
// four letters is a list of dimensions larger than 1, merged where possible.
// Strides are in elements; the result is dense.
#define CPU_KERNEL_DOT_DIMS 8
enum {
  CPU_KERNEL_DOT_PLAIN,
  CPU_KERNEL_DOT_PACK,   // packs rhs, the one operand, for such products
  CPU_KERNEL_DOT_PACKED  // rhs is what PACK has made
};
typedef struct cpu_kernel_dot_desc {
  int64_t kind, choice;
  int64_t types[3];  // cx_hlo_elem: of lhs, rhs, result
  int64_t n_batch, n_rows, n_columns, n_inner;
  int64_t batch[CPU_KERNEL_DOT_DIMS], lhs_batch[CPU_KERNEL_DOT_DIMS],
      rhs_batch[CPU_KERNEL_DOT_DIMS];
  int64_t rows[CPU_KERNEL_DOT_DIMS], lhs_rows[CPU_KERNEL_DOT_DIMS];
  int64_t columns[CPU_KERNEL_DOT_DIMS], rhs_columns[CPU_KERNEL_DOT_DIMS];
  int64_t inner[CPU_KERNEL_DOT_DIMS], lhs_inner[CPU_KERNEL_DOT_DIMS],
      rhs_inner[CPU_KERNEL_DOT_DIMS];
  int64_t packed;
} cpu_kernel_dot_desc;

// One spatial dimension; `at` is its position in lhs, rhs and result.
typedef struct cpu_kernel_conv_dim {
  int64_t in, kernel, out;
  int64_t stride, low, high, in_dilation, kernel_dilation, reversed;
  int64_t at[3];
} cpu_kernel_conv_dim;

// A convolution as in StableHLO. Each tensor is dense, in its own order of
// dimensions.
#define CPU_KERNEL_CONV_DIMS 6
typedef struct cpu_kernel_conv_desc {
  int64_t kind, choice;
  int64_t types[3];         // cx_hlo_elem: of lhs, rhs, result
  int64_t batch, features;  // of lhs
  int64_t kernel_in, kernel_out;
  int64_t feature_groups, batch_groups;
  // Positions: of batch and features in lhs, of in and out in rhs, of batch and
  // features in the result.
  int64_t at[3][2];
  int64_t n_dims;
  cpu_kernel_conv_dim dims[CPU_KERNEL_CONV_DIMS];
} cpu_kernel_conv_desc;

// cholesky or triangular_solve of dense tensors; flags are 0 or 1. `others` are
// the columns of the right-hand sides or, unless `left`, their rows.
typedef struct cpu_kernel_linalg_desc {
  int64_t kind, choice;
  int64_t type;  // cx_hlo_elem, of all
  int64_t batch, n, others;
  int64_t lower, left, unit, transpose;
} cpu_kernel_linalg_desc;

// fft of the last dimensions of a dense tensor. The length of RFFT's operand's
// and IRFFT's result's last dimension is the one that is real.
typedef struct cpu_kernel_fft_desc {
  int64_t kind, choice;
  int64_t how, wide;  // cx_hlo's FFT, IFFT, RFFT, IRFFT; 1: F64 and C128
  int64_t batch, n_dims, length[3];
} cpu_kernel_fft_desc;

// sort of [outer, n, inner] along n by the order of the first operand's
// elements; the second one's go along.
enum {
  CPU_KERNEL_SORT_ALONE,     // there is no second operand
  CPU_KERNEL_SORT_BESIDE,    // it is read
  CPU_KERNEL_SORT_POSITIONS  // its elements are their positions along n
};
typedef struct cpu_kernel_sort_desc {
  int64_t kind, choice;
  int64_t types[2];  // cx_hlo_elem
  int64_t outer, n, inner;
  int64_t equal, descending, payload;
  int64_t keep[2];  // of each line, the first elements that are wanted
} cpu_kernel_sort_desc;

_Static_assert(sizeof(cpu_kernel_dot_desc) <= sizeof(cpu_kernel_desc),
               "too long");
_Static_assert(sizeof(cpu_kernel_conv_desc) <= sizeof(cpu_kernel_desc),
               "too long");

// Whether the tensor is static and not too large for descriptions. An empty one
// is tested with its sizes of 0 as 1, because its strides are computed.
bool cpu_kernel_fits(const cx_hlo_type *t);
// *out is the product of the sizes, and *io_bound is multiplied by those above
// 0. False: a size is negative, or the bound becomes too large.
bool cpu_kernel_count(int64_t n, const int64_t *size, int64_t *io_bound,
                      int64_t *out);
bool cpu_kernel_dot_describe(const cx_hlo_op *op, cpu_kernel_dot_desc *out);
bool cpu_kernel_conv_describe(const cx_hlo_op *op, cpu_kernel_conv_desc *out);
// Spatial dimension i of a convolution, as the operation has it.
void cpu_kernel_conv_read_dim(const cx_hlo_op *op, size_t i,
                              cpu_kernel_conv_dim *out);
bool cpu_kernel_linalg_describe(const cx_hlo_op *op,
                                cpu_kernel_linalg_desc *out);
bool cpu_kernel_fft_describe(const cx_hlo_op *op, cpu_kernel_fft_desc *out);
bool cpu_kernel_sort_describe(const cx_hlo_op *op, cpu_kernel_sort_desc *out);
bool cpu_kernel_lapack_describe(const cx_hlo_op *op, cpu_lapack_desc *out);
bool cpu_kernel_sort_is_sound(const cpu_kernel_sort_desc *d);
// Whether the numbers are consistent; descriptions may come from a file.
bool cpu_kernel_conv_is_sound(const cpu_kernel_conv_desc *d);
// Floating-point operations; 0 if the description is not sound.
double cpu_kernel_dot_flops(const cpu_kernel_dot_desc *d);
// Of PACK and PACKED, the number of buffers and their sizes in bytes; 0: it is
// another description, or not sound.
size_t cpu_kernel_dot_sizes(const cpu_kernel_desc *desc,
                            size_t sizes[CPU_KERNEL_BUFFERS]);
double cpu_kernel_conv_flops(const cpu_kernel_conv_desc *d);
double cpu_kernel_linalg_flops(const cpu_kernel_linalg_desc *d);
double cpu_kernel_fft_flops(const cpu_kernel_fft_desc *d);
double cpu_kernel_sort_flops(const cpu_kernel_sort_desc *d);
// Whether the numbers are consistent, and no line is too long for tables.
bool cpu_kernel_fft_is_sound(const cpu_kernel_fft_desc *d);

// ---- kernels ----

// In place of `run`, where there are other buffers: the operands, the results,
// scratch.
typedef calx_status *cpu_kernel_run_buffers_fn(const cpu_kernel *kernel,
                                               cpu_threads *pool,
                                               void *const *buffers);

struct cpu_kernel {
  union {
    cpu_kernel_desc desc;
    cpu_kernel_dot_desc dot;
    cpu_kernel_conv_desc conv;
    cpu_kernel_linalg_desc linalg;
    cpu_kernel_fft_desc fft;
    cpu_kernel_sort_desc sort;
    cpu_lapack_desc lapack;
  };
  int threads;
  size_t scratch;
  size_t bytes[CPU_KERNEL_BUFFERS];  // lhs, rhs, result; or of run_buffers
  int n_buffers;                     // of run_buffers, without scratch
  char name[64];
  void *plan;  // of the implementation
  calx_status *(*run)(const cpu_kernel *kernel, cpu_threads *pool,
                      const void *lhs, const void *rhs, void *out,
                      unsigned char *scratch);
  cpu_kernel_run_buffers_fn *run_buffers;  // NULL: `run` is there
  void (*free_plan)(void *plan);
};
typedef calx_status *cpu_kernel_run_fn(const cpu_kernel *kernel,
                                       cpu_threads *pool, const void *lhs,
                                       const void *rhs, void *out,
                                       unsigned char *scratch);
// Sets the implementation. cx_free() frees its plan.
void cpu_kernel_set(cpu_kernel *kernel, cpu_kernel_run_fn *run, void *plan,
                    const char *name);

// Fill in a kernel that is zero but for desc and threads; the caller frees it
// on failure. They may set the choice.
calx_status *cpu_kernel_dot_new(cpu_kernel *kernel, cpu_threads *pool,
                                bool tune) CALX_MUST_USE;
calx_status *cpu_kernel_linalg_new(cpu_kernel *kernel) CALX_MUST_USE;
calx_status *cpu_kernel_fft_new(cpu_kernel *kernel) CALX_MUST_USE;
calx_status *cpu_kernel_sort_new(cpu_kernel *kernel) CALX_MUST_USE;
calx_status *cpu_kernel_lapack_new(cpu_kernel *kernel) CALX_MUST_USE;
calx_status *cpu_kernel_attention_new(cpu_kernel *kernel) CALX_MUST_USE;
calx_status *cpu_kernel_conv_new(cpu_kernel *kernel, cpu_threads *pool,
                                 bool tune) CALX_MUST_USE;
// Reserves `bytes` of scratch, aligned to 64; returns the offset. SIZE_MAX: too
// much.
size_t cpu_kernel_reserve(cpu_kernel *kernel, size_t bytes);
// The index of the calling thread's copy of scratch: its rank in the pool's
// parallel region; 0 inside another pool's, where the kernel runs on one
// thread.
int cpu_kernel_rank(const cpu_threads *pool);

// ---- arithmetic ----

// The type that a kernel computes in. Integers of up to 32 bits are computed in
// 32, which wraps in the same way; i1 is computed as an integer and stored as
// "not zero". Complex numbers are two planes of F32 or F64.
typedef enum cpu_kernel_math {
  CPU_KERNEL_F32,
  CPU_KERNEL_F64,
  CPU_KERNEL_U32,
  CPU_KERNEL_U64,
  CPU_KERNEL_MATH_COUNT
} cpu_kernel_math;
size_t cpu_kernel_math_bytes(cpu_kernel_math m);
// Of lhs, rhs and result, each a cx_hlo_elem if it is any; false: no kernel
// computes these types.
bool cpu_kernel_math_of(const int64_t types[3], cpu_kernel_math *math,
                        bool *complex);
// Whether the numbers are consistent, and the type that is computed in.
bool cpu_kernel_linalg_is_sound(const cpu_kernel_linalg_desc *d,
                                cpu_kernel_math *math);
// Whether tensors of this type need no conversion.
bool cpu_kernel_math_is(cpu_kernel_math m, cx_hlo_elem e);

// A part of a tensor: sizes and strides (which may be negative) in elements.
#define CPU_KERNEL_VIEW_DIMS 24
typedef struct cpu_kernel_view {
  cx_hlo_elem type;
  bool imaginary;  // the part of complex numbers that is read
  int64_t first;   // offset of the first element
  int n;
  int64_t size[CPU_KERNEL_VIEW_DIMS], stride[CPU_KERNEL_VIEW_DIMS];
} cpu_kernel_view;
void cpu_kernel_view_add(cpu_kernel_view *v, int64_t size, int64_t stride);

// Dimensions that two tensors have in common.
typedef struct cpu_kernel_pairs {
  int64_t n;
  int64_t size[CPU_KERNEL_VIEW_DIMS];
  int64_t lhs[CPU_KERNEL_VIEW_DIMS], rhs[CPU_KERNEL_VIEW_DIMS];  // strides
} cpu_kernel_pairs;
// Leaves out a dimension of size 1, and merges neighbours that are one
// dimension in the memory of both tensors; false: too many.
bool cpu_kernel_pairs_add(cpu_kernel_pairs *l, int64_t size, int64_t lhs,
                          int64_t rhs);
// Copies the list to a description; lhs and rhs may be NULL. False: too many.
bool cpu_kernel_pairs_put(const cpu_kernel_pairs *l, int64_t *n, int64_t *size,
                          int64_t *lhs, int64_t *rhs);
// Converts to dense row-major memory, on the pool.
void cpu_kernel_view_gather(const cpu_kernel_view *v, const void *from,
                            cpu_kernel_math math, void *to, cpu_threads *pool);
// A tensor in scratch memory: one plane or, if `imaginary`, the plane of the
// real parts and behind it that of the imaginary parts.
typedef struct cpu_kernel_operand {
  cpu_kernel_view view;  // what is gathered
  bool imaginary;
  size_t at, plane;  // bytes: its offset, and the size of a plane
} cpu_kernel_operand;
void cpu_kernel_operand_reserve(cpu_kernel *kernel, cpu_kernel_math math,
                                int64_t elements, cpu_kernel_operand *io);
void cpu_kernel_operand_gather(const cpu_kernel_operand *o, const void *from,
                               cpu_kernel_math math, unsigned char *scratch,
                               cpu_threads *pool);
// Rounds or narrows n results to memory of type `to`. `imaginary` is NULL
// unless the type is complex.
void cpu_kernel_math_store(cpu_kernel_math math, const void *real,
                           const void *imaginary, cx_hlo_elem to, void *out,
                           int64_t n, cpu_threads *pool);

#endif
