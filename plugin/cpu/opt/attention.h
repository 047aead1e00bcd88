// opt/attention: what the files of the attention pass share: the description of
// one attention in a block, and what is known of a value that comes from its
// scores.
//
// attention_find.c walks over the operations after the product that makes the
// scores, attention_facts.c computes what is known of each result,
// attention_axes.c which dimension is which, and attention.c makes the calls.
#ifndef CPU_OPT_ATTENTION_H
#define CPU_OPT_ATTENTION_H

#include "kernel/attention.h"
#include "opt/edit.h"

// What a dimension of a tensor is. Batch dimensions are 0, 1, …
#define CPU_OPT_AXIS_RANK 8
typedef enum cpu_opt_axis {
  CPU_OPT_AXIS_ROW = CPU_KERNEL_ATTENTION_DIMS,  // queries
  CPU_OPT_AXIS_COLUMN,                           // keys
  CPU_OPT_AXIS_WIDTH,                            // what q and k contract
  CPU_OPT_AXIS_VALUE,                            // of v and the result
  CPU_OPT_AXES,
  CPU_OPT_AXIS_ONE = -1,  // of size 1
  CPU_OPT_AXIS_ANY = -2   // the tensor is the same along it
} cpu_opt_axis;
typedef struct cpu_opt_axes {
  int of[CPU_OPT_AXIS_RANK];
} cpu_opt_axes;

// coefficient * E^e * G^g * L^l * R^r, with E = exp(score - row's largest), G
// the gradient of the probabilities, and the row sums L of E and R of E * G.
typedef struct cpu_opt_term {
  double coefficient;
  int e, g, l, r;
} cpu_opt_term;
#define CPU_OPT_TERMS 4

typedef enum cpu_opt_fact_kind {
  CPU_OPT_FACT_NONE,
  CPU_OPT_FACT_SCORE,    // scaled and masked as far as `steps` says
  CPU_OPT_FACT_MOST,     // the row's largest of that score
  CPU_OPT_FACT_SHIFTED,  // their difference
  CPU_OPT_FACT_TERMS     // a sum
} cpu_opt_fact_kind;

typedef struct cpu_opt_fact {
  cpu_opt_fact_kind kind;
  cpu_opt_axes axes;
  int steps;
  size_t n;
  cpu_opt_term terms[CPU_OPT_TERMS];
  bool gated;  // TERMS: and 0 where the mask hides the score
} cpu_opt_fact;

// A tensor behind its transposes and broadcasts.
typedef struct cpu_opt_origin {
  cx_hlo_value *value;
  cpu_opt_axes axes;
} cpu_opt_origin;

// A product that the kernel replaces, by the tensor that it makes.
typedef struct cpu_opt_product {
  cx_hlo_op *op;      // NULL: not found
  cpu_opt_axes axes;  // of its result
  double factor;
} cpu_opt_product;

typedef struct cpu_opt_attention {
  cpu_kernel_attention_desc desc;
  int steps;  // of the score that the softmax is of; 0: not known
  double scale;
  cpu_opt_fact *facts;  // by the value's number
  // Of Q, K, V, MASK and OUT (the gradient): as the products use them.
  cx_hlo_value *inputs[CPU_KERNEL_ATTENTION_TENSORS];
  cpu_opt_axes input_axes[CPU_KERNEL_ATTENTION_TENSORS];
  cpu_opt_product products[CPU_KERNEL_ATTENTION_TENSORS];  // OUT, DQ, DK, DV
  cx_hlo_op *grads;        // the product that makes G; NULL: none
  cx_hlo_value *out_grad;  // the other operand of DV's product
  cpu_opt_axes out_grad_axes;
} cpu_opt_attention;

// ---- attention_axes.c ----

// The axes of the other shape of a reshape that only adds or removes dimensions
// of size 1; false: it does more.
bool cpu_opt_axes_reshape(const cx_hlo_type *from, const cpu_opt_axes *axes,
                          const cx_hlo_type *to, cpu_opt_axes *out);
// Of the result of a reshape, a transpose or a broadcast_in_dim.
bool cpu_opt_axes_move(const cx_hlo_op *op, const cpu_opt_axes *axes,
                       cpu_opt_axes *out);
// Of a value that is the same along ANY as one and as the other; false: they
// differ.
bool cpu_opt_axes_merge(size_t rank, const cpu_opt_axes *a,
                        const cpu_opt_axes *b, cpu_opt_axes *out);
// The tensor that v is a transpose, reshape or, if `broadcast`, a broadcast of.
cpu_opt_origin cpu_opt_origin_of(cx_hlo_value *v, const cpu_opt_axes *axes,
                                 bool broadcast);
bool cpu_opt_same_origin(cx_hlo_value *a, const cpu_opt_axes *a_axes,
                         cx_hlo_value *b, const cpu_opt_axes *b_axes,
                         bool broadcast);
// The axes of v, which is a reshape or transpose of the origin or the origin
// itself; false: it is not.
bool cpu_opt_axes_from(const cpu_opt_origin *origin, cx_hlo_value *v,
                       cpu_opt_axes *out);
// From the axes of operand `which` of a dot_general, `axes`, those of its other
// operand, with `free` for the dimension that only that one has, and of its
// result. `contracted` is the axis, as of `axes`, that is summed over. False:
// it has several, or is no product of matrices in all batches.
bool cpu_opt_axes_product(const cx_hlo_op *op, int which,
                          const cpu_opt_axes *axes, int64_t n_batch, int free,
                          cpu_opt_axes *other, cpu_opt_axes *result,
                          int *contracted);
// The strides of a dense tensor with these axes as its rows and columns.
cpu_kernel_attention_layout cpu_opt_axes_layout(const cx_hlo_type *type,
                                                const cpu_opt_axes *axes,
                                                int row, int column);

// ---- attention_find.c ----

// Finds the attention that the exponential belongs to; false: it belongs to
// none that is whole and worth a kernel. `facts` is zero, before and after.
bool cpu_opt_attention_find(cpu_opt_fact *facts, const cx_hlo_op *exponential,
                            cpu_opt_attention *out);

// ---- attention_facts.c ----

// What is known of the result of an operation that has operands with facts;
// false: it is used in a way that the kernel does not compute.
bool cpu_opt_attention_fact(cpu_opt_attention *a, const cx_hlo_op *op,
                            cpu_opt_fact *out);
// c * E / L; c * (E G / L - E R / L^2).
bool cpu_opt_is_probability(const cpu_opt_fact *f, double *factor);
bool cpu_opt_is_score_gradient(const cpu_opt_attention *a,
                               const cpu_opt_fact *f, double *factor);

#endif
