// hlo/infer: what each operation's results are, and what it demands of its
// operands, attributes and regions.
//
// One rule per operation (ops.def names it) serves the builder, which takes the
// result types from it, and the verifier, which compares them with those that
// were declared. Where operands and attributes do not decide a type (reshape,
// convert, a dot's element type), the rule reads the declared one.
#ifndef CX_HLO_INFER_H
#define CX_HLO_INFER_H

#include "hlo/module.h"
#include "hlo/ops.h"

struct cx_hlo_infer {
  const cx_hlo_op *op;
  const cx_hlo_module *module;  // for calls
  cx_arena *arena;              // where the results' sizes are made
  // One per result. Before: the declared type, element INVALID where nothing
  // was said. After: the type that it must have.
  cx_hlo_any *results;
};

// Checks counts, attributes and element classes by ops.def, then the rule.
calx_status *cx_hlo_infer_run(cx_hlo_infer *in) CALX_MUST_USE;

// Whether attr is of the kind that ops.def gives this name.
bool cx_hlo_attr_fits(const cx_hlo_attr *attr, const cx_hlo_name_info *info);

// ---- for the rules ----

// "dot_general: " and the sentence.
calx_status *cx_hlo_bad(const cx_hlo_infer *in, const char *format, ...)
    CALX_PRINTF(2, 3) CALX_MUST_USE;

// A type in a message: SHAPE(a).
#define CX_HLO_SHAPE(type) cx_hlo_shape(type).s
// The same for any type: f32[2], or as it is spelled where it is no tensor.
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
// A copy of sizes with room for `extra` more.
int64_t *cx_hlo_dims_copy(cx_hlo_infer *in, const cx_hlo_type *t, size_t extra);

// Each in [0, rank), none twice. `what` is the attribute's name.
calx_status *cx_hlo_need_dims(const cx_hlo_infer *in, const char *what,
                              cx_hlo_ints dims, size_t rank) CALX_MUST_USE;
calx_status *cx_hlo_need_dim(const cx_hlo_infer *in, const char *what,
                             int64_t dim, size_t rank) CALX_MUST_USE;
// A list has n values; absent is allowed where ops.def gives a default.
calx_status *cx_hlo_need_count(const cx_hlo_infer *in, cx_hlo_attr_id id,
                               size_t n) CALX_MUST_USE;
bool cx_hlo_ints_have(cx_hlo_ints list, int64_t v);
// Element i of a list, or its default.
int64_t cx_hlo_op_int_at(const cx_hlo_op *op, cx_hlo_attr_id id, size_t i);

// The literal that a value is; NULL: it is computed.
const cx_hlo_elements *cx_hlo_literal_of(const cx_hlo_value *v);
// Operand i is n integers; *out: which ones, where it is a constant.
calx_status *cx_hlo_need_vector(const cx_hlo_infer *in, size_t i, size_t n,
                                const cx_hlo_elements **out) CALX_MUST_USE;
// What [start:limit:stride], or this padding, makes of dimension i of the first
// operand.
calx_status *cx_hlo_sliced(const cx_hlo_infer *in, size_t i, int64_t start,
                           int64_t limit, int64_t stride,
                           int64_t *out) CALX_MUST_USE;
calx_status *cx_hlo_padded(const cx_hlo_infer *in, size_t i, int64_t low,
                           int64_t high, int64_t interior,
                           int64_t *out) CALX_MUST_USE;
// Operand 1 is one element of operand 0.
calx_status *cx_hlo_need_padding_value(const cx_hlo_infer *in) CALX_MUST_USE;

// A region with one block that takes and returns exactly these types. A
// NULL `results` is filled: *out_returned are the values returned.
calx_status *cx_hlo_need_body(const cx_hlo_infer *in, size_t region,
                              const cx_hlo_any *args, size_t n_args,
                              size_t n_results,
                              cx_hlo_value *const **out_returned) CALX_MUST_USE;

// (N inputs, N inits) -> N: a body of 2n scalars of the result's element types
// that returns n such. Writes these element types.
calx_status *cx_hlo_need_reducer(cx_hlo_infer *in, size_t region,
                                 const cx_hlo_elem *inputs, size_t n,
                                 cx_hlo_elem *out_elems) CALX_MUST_USE;

// One dimension of a window, and how many places it has over `size` elements.
typedef struct cx_hlo_window_dim {
  int64_t size, stride, base_dilation, dilation, low, high;
} cx_hlo_window_dim;
calx_status *cx_hlo_windowed(const cx_hlo_infer *in, size_t dim, int64_t size,
                             const cx_hlo_window_dim *w,
                             int64_t *out) CALX_MUST_USE;
// The attribute `padding`: absent, or n pairs; side 0 is low, 1 is high.
calx_status *cx_hlo_need_padding(const cx_hlo_infer *in,
                                 size_t n) CALX_MUST_USE;
int64_t cx_hlo_padding_at(const cx_hlo_op *op, size_t i, size_t side);

#define CX_HLO_OP(id, name, operands, results, regions, elems, rule, attrs, \
                  form)                                                     \
  cx_hlo_infer_fn cx_hlo_infer_##rule;
#include "hlo/ops.def"

#endif
