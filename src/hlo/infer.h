// hlo/infer: the rules of operations: their result types, and what they require
// of operands, attributes and regions.
//
// ops.def names the rule of each operation. The builder takes the result types
// from it; the verifier compares them with the declared types. Where operands
// and attributes do not determine a result type (reshape, convert, the element
// type of a dot), the rule reads the declared one.
#ifndef CX_HLO_INFER_H
#define CX_HLO_INFER_H

#include "hlo/module.h"
#include "hlo/ops.h"

typedef struct cx_hlo_infer {
  const cx_hlo_op *op;
  const cx_hlo_module *module;  // for calls
  cx_arena *arena;              // holds the sizes of the results
  // One per result. On entry: the declared type; its element type is INVALID
  // where none is declared. On return: the type that the result must have.
  cx_hlo_any *results;
} cx_hlo_infer;

typedef calx_status *cx_hlo_infer_fn(cx_hlo_infer *in);

// Checks counts, attributes and element classes by ops.def, then runs the rule.
calx_status *cx_hlo_infer_run(cx_hlo_infer *in) CALX_MUST_USE;

// The rule of an operation that ops.def does not have.
calx_status *cx_hlo_infer_sdy(cx_hlo_infer *in) CALX_MUST_USE;

// ---- for the rules ----

// INVALID_ARGUMENT: the operation's name, ": " and the formatted sentence.
calx_status *cx_hlo_bad(const cx_hlo_infer *in, const char *format, ...)
    CALX_PRINTF(2, 3) CALX_MUST_USE;

// A tensor type in a message: f32[2].
#define CX_HLO_SHAPE(type) cx_hlo_shape(type).s
// The same for any type. A type that is no tensor is printed as in a program.
#define CX_HLO_ANY(type) cx_hlo_any_text(type).s
cx_hlo_shape_text cx_hlo_any_text(const cx_hlo_any *type);

static inline const cx_hlo_type *cx_hlo_operand(const cx_hlo_infer *in,
                                                size_t i)
{
  return &in->op->operands[i]->type.tensor;
}

// Result i becomes a tensor; dims belong to the arena or to an operand.
calx_status *cx_hlo_result(cx_hlo_infer *in, size_t i, cx_hlo_elem elem,
                           size_t rank, const int64_t *dims) CALX_MUST_USE;
// A copy of the sizes; NULL: there is no memory.
int64_t *cx_hlo_dims_copy(cx_hlo_infer *in, const cx_hlo_type *t);

// Each dimension is in [0, rank), and none occurs twice. `what` is the name of
// the attribute.
calx_status *cx_hlo_need_dims(const cx_hlo_infer *in, const char *what,
                              cx_hlo_ints dims, size_t rank) CALX_MUST_USE;
calx_status *cx_hlo_need_dim(const cx_hlo_infer *in, const char *what,
                             int64_t dim, size_t rank) CALX_MUST_USE;
// The list has n values, or is absent: ops.def may have a default for it.
calx_status *cx_hlo_need_count(const cx_hlo_infer *in, cx_hlo_attr_id id,
                               size_t n) CALX_MUST_USE;
bool cx_hlo_ints_have(cx_hlo_ints list, int64_t v);
// Element i of a list, or its default.
int64_t cx_hlo_op_int_at(const cx_hlo_op *op, cx_hlo_attr_id id, size_t i);

// Operands a and b have the same element type.
calx_status *cx_hlo_need_same_elem(const cx_hlo_infer *in, size_t a,
                                   size_t b) CALX_MUST_USE;
// The element type of complex numbers whose parts are elements of operand 0.
calx_status *cx_hlo_complex_elem(const cx_hlo_infer *in,
                                 cx_hlo_elem *out) CALX_MUST_USE;
bool cx_hlo_same_dims(const cx_hlo_type *a, const cx_hlo_type *b);
// The first n operands have the same sizes. `what` names them in the message.
calx_status *cx_hlo_need_same_dims(const cx_hlo_infer *in, const char *what,
                                   size_t n) CALX_MUST_USE;
// Operand i has rank 0 and the element type of operand `like`.
calx_status *cx_hlo_need_scalar(const cx_hlo_infer *in, const char *what,
                                size_t i, size_t like) CALX_MUST_USE;
// There are n results. `what` names the n operands in the message.
calx_status *cx_hlo_need_results(const cx_hlo_infer *in, const char *what,
                                 size_t n) CALX_MUST_USE;
// The same; the results have the types of the first n operands.
calx_status *cx_hlo_same_results(cx_hlo_infer *in, const char *what,
                                 size_t n) CALX_MUST_USE;

// The literal of a constant; NULL: the value is no constant.
const cx_hlo_elements *cx_hlo_literal_of(const cx_hlo_value *v);
// Operand i is a vector of n integers. *out is its literal, or NULL.
calx_status *cx_hlo_need_vector(const cx_hlo_infer *in, size_t i, size_t n,
                                const cx_hlo_elements **out) CALX_MUST_USE;
// The result of slicing operand 0, by its starts, limits and strides; of
// padding it, by low, high and interior.
calx_status *cx_hlo_sliced(cx_hlo_infer *in,
                           const cx_hlo_ints ranges[3]) CALX_MUST_USE;
calx_status *cx_hlo_padded(cx_hlo_infer *in,
                           const cx_hlo_ints padding[3]) CALX_MUST_USE;

// The region has one block, which takes values of the types `args` and returns
// n_results values of the types `results`; NULL: of any types.
calx_status *cx_hlo_need_body(const cx_hlo_infer *in, size_t region,
                              const cx_hlo_any *args, size_t n_args,
                              const cx_hlo_any *results,
                              size_t n_results) CALX_MUST_USE;
// The type of value i that the region returns, once it is checked.
static inline const cx_hlo_any *cx_hlo_returned(const cx_hlo_infer *in,
                                                size_t region, size_t i)
{
  return &in->op->regions[region].first->last->operands[i]->type;
}

// The region is a reducer: it takes 2n scalars and returns n. Their element
// types are those of the inputs, or wider ones of the same class. Writes them.
calx_status *cx_hlo_need_reducer(cx_hlo_infer *in, size_t region,
                                 const cx_hlo_elem *inputs, size_t n,
                                 cx_hlo_elem *out_elems) CALX_MUST_USE;

// One dimension of a window. *out is the number of its positions over `size`
// elements.
typedef struct cx_hlo_window_dim {
  int64_t size, stride, base_dilation, dilation, low, high;
} cx_hlo_window_dim;
calx_status *cx_hlo_windowed(const cx_hlo_infer *in, size_t dim, int64_t size,
                             const cx_hlo_window_dim *w,
                             int64_t *out) CALX_MUST_USE;
// The attribute `padding` is absent or has n pairs. Side 0 is low, 1 is high.
calx_status *cx_hlo_need_padding(const cx_hlo_infer *in,
                                 size_t n) CALX_MUST_USE;
int64_t cx_hlo_padding_at(const cx_hlo_op *op, size_t i, size_t side);

#define CX_HLO_OP(id, name, operands, results, regions, elems, rule, attrs, \
                  form)                                                     \
  cx_hlo_infer_fn cx_hlo_infer_##rule;
#include "hlo/ops.def"

#endif
