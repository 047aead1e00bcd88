// One dot_general or convolution with its data and its expected result.
#ifndef CX_TEST_KERNELS_CASE_H
#define CX_TEST_KERNELS_CASE_H

#include "hlo/build.h"
#include "kernel/kernel.h"

// Deterministic; below n.
unsigned pick(unsigned n);
void pick_seed(uint64_t seed);

// A number of any type: floats and complex in re and im, integers in bits.
typedef struct number {
  double re, im;
  uint64_t bits;
} number;

// A dense tensor.
typedef struct array {
  cx_hlo_elem elem;
  size_t rank, n;
  int64_t dims[8];
  unsigned char *data;
} array;

void array_init(array *a, cx_hlo_elem elem, const int64_t *dims, size_t rank);
void array_fill(array *a);  // random, of moderate size
void array_free(array *a);
cx_hlo_type array_type(const array *a);
number array_get(const array *a, size_t i);

// A sum of products, and the sum of their magnitudes, which bounds the error.
typedef struct sum {
  number value;
  double size;
} sum;
void sum_add(sum *s, const array *x, size_t i, const array *y, size_t k,
             cx_hlo_elem out);
// Whether `got` at i is that sum, within the accuracy of its type.
bool sum_is(const sum *s, const array *got, size_t i);

typedef struct kernel_case {
  cx_hlo_module *module;
  const cx_hlo_op *op;
  array lhs, rhs, out;
  sum *want;  // out.n
  // The choice of the description and a part of its kernel's name; 0:
  // none is asked for.
  int64_t choice;
  const char *name;
} kernel_case;

// Takes over the builder; `value` is the operation's result, `elem` its wanted
// type.
void case_finish(kernel_case *c, cx_hlo_builder *b, cx_hlo_value *value,
                 cx_hlo_elem elem);
void case_free(kernel_case *c);

// Runs the case's kernel on a pool and compares; prints and returns the number
// of wrong elements.
size_t case_run(kernel_case *c, cpu_threads *pool, bool tune);

// Runs a kernel of one or two operands (lhs and rhs the same) and one result.
calx_status *kernel_run(const cpu_kernel *kernel, cpu_threads *pool,
                        const void *lhs, const void *rhs, void *out,
                        void *scratch);
// A product of f32: lhs (m, k) or, if turned, (k, m); rhs (k, n) or (n, k).
cpu_kernel_desc product_desc(int64_t m, int64_t n, int64_t k, bool lhs_turned,
                             bool rhs_turned);
// Makes the kernel of a description and runs it.
void desc_run(cpu_kernel_desc *desc, cpu_threads *pool, const void *lhs,
              const void *rhs, void *out);
// Makes the kernel of a description, which may be damaged, and runs it on zeros
// if it is small; *out is what the run gives. false: the description is
// refused.
bool desc_run_zeros(cpu_kernel_desc *desc, cpu_threads *pool,
                    calx_status **out);

// Random cases. `elems`: of lhs, rhs, result.
void dot_case(kernel_case *c, const cx_hlo_elem elems[3]);
void large_dot_case(kernel_case *c, const cx_hlo_elem elems[3]);
// Few rows or columns.
void thin_dot_case(kernel_case *c, const cx_hlo_elem elems[3]);
// Many products, of at most 5 inner elements and columns.
void tiny_dot_case(kernel_case *c, const cx_hlo_elem elems[3]);
void conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
// Few channels and many images; the same in the order of lanes; many groups of
// one channel.
void narrow_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
void lanes_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
void depthwise_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
// Matrix products; convolutions that Winograd's algorithm computes.
void product_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
void winograd_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
// With channels last, as implicit matrix products.
void implicit_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
void split_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);
// A gradient by the weights, of f32, whose sums are long.
void long_conv_case(kernel_case *c, const cx_hlo_elem elems[3]);

#endif
