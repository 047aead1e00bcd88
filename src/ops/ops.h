// ops/ops: what the op families share. An op is one descriptor in its family's
// file: shape rule, gradient, emission, entry, in that order. The elementwise
// ops are rows of unary.def and binary.def.
#ifndef CX_OPS_OPS_H
#define CX_OPS_OPS_H

#include "base/hook.h"
#include "calx/autograd.h"
#include "calx/collective.h"
#include "calx/complex.h"
#include "calx/ops.h"
#include "graph/lower.h"
#include "lazy/lazy.h"
#include "lazy/tape.h"

enum cx_ops_id {
  CX_OPS_ID_DATA = 0,  // cx_graph_op_data
#define CX_OPS_ROW(name) CX_OPS_ID_##name,
#include "ops/table.def"
};

#define CX_OPS_ROW(name) extern const cx_graph_op cx_ops_##name;
#include "ops/table.def"

// Defines the descriptor of an op of table.def; the arguments initialise its
// fields.
#define CX_OPS_DEFINE(op, ...)                            \
  const cx_graph_op cx_ops_##op = { .name = #op,          \
                                    .id = CX_OPS_ID_##op, \
                                    __VA_ARGS__ };

// ---- entries ----------------------------------------------------------------

// Records an op of the given operands and attribute struct (NULL: none).
calx_tensor *cx_ops_record(const cx_graph_op *op, calx_tensor *const *in,
                           uint32_t n_in, const void *attrs);
// "op: message", with the shapes of the operands and the ops that made them.
CX_COLD calx_status *cx_ops_error(const cx_graph_node *node, const char *format,
                                  ...) CALX_PRINTF(2, 3) CALX_MUST_USE;
// A tensor with such an error, for a check that comes before the node.
CX_COLD calx_tensor *cx_ops_poison(calx_code code, const char *format, ...)
    CALX_PRINTF(2, 3);
// The same of an INVALID_ARGUMENT.
CX_COLD calx_tensor *cx_ops_invalid(const char *format, ...) CALX_PRINTF(1, 2);
// Whether an operand cannot be used: it is NULL, on the host, failed or
// expired. Then the public function returns *out.
bool cx_ops_unfit(const char *op, calx_tensor *const *in, uint32_t n,
                  calx_tensor **out);
// The error of a bitwise op for an operand of a floating type.
CX_COLD calx_tensor *cx_ops_no_bits(const char *op, const calx_tensor *x);
// Makes a dimension number, which may be negative, one of [0, rank). A scalar
// accepts 0 and -1. False: there is no such dimension.
bool cx_ops_dim(int64_t dim, uint32_t rank, uint32_t *out);
// The error for a number that cx_ops_dim refused; `which` is its name. `rank`
// is the rank asked about, which is x's own or, for a new dimension, one more.
CX_COLD calx_tensor *cx_ops_no_dim(const char *op, const char *which,
                                   int64_t dim, uint32_t rank,
                                   const cx_graph_shape *x);
// Whether an option struct is of this version or an older one. False: the
// public function returns *out.
bool cx_ops_options_fit(const char *op, size_t size, size_t known,
                        calx_tensor **out);
// Copies them as cx_options_take() does.
bool cx_ops_options_take(const char *op, const void *given, void *taken,
                         size_t bytes, calx_tensor **out);

// A literal of an op's own as an operand. It is part of the program and, like a
// user's number, does not decide the result's type.
calx_tensor *cx_ops_number(double value);
// The number of a weak operand. False: t is no number, or with `constant_only`
// not a literal.
bool cx_ops_weak_number(const calx_tensor *t, bool constant_only, double *out);
// The error for a number that an integer type cannot hold, after it is cut to
// an integer. As in PyTorch, unsigned types accept negative numbers and wrap
// them around once.
calx_status *cx_ops_check_number(const char *op, double number,
                                 calx_dtype dtype) CALX_MUST_USE;
// The same check of a weak operand. Any other tensor passes.
calx_status *cx_ops_check_weak(const char *op, const calx_tensor *t,
                               calx_dtype dtype) CALX_MUST_USE;
// Converts a weak operand to an element type, on a device (NULL: the operand's
// own).
calx_tensor *cx_ops_weak_as(const calx_tensor *t, calx_dtype dtype,
                            calx_device *device);
// Converts the operands to PyTorch's common type, which it returns.
calx_dtype cx_ops_promote(calx_tensor **in, uint32_t n);

// With CALX_DEBUG=indices reads the indices, which are those of classes or of
// elements: true where each is `ignore` or in [0, n), else the scope has the
// error. True without it.
bool cx_ops_check_indices(const char *op, bool classes, calx_tensor *index,
                          int64_t n, int64_t ignore);
// Whether a tensor can have this shape and these options. False: the public
// function returns *out.
bool cx_ops_good_shape(const char *op, calx_dims dims, calx_dtype dtype,
                       const calx_create_options *o, calx_tensor **out);
calx_tensor *cx_ops_zeros_like(const calx_tensor *t);
// calx_rand with rank 0's numbers on every rank.
calx_tensor *cx_ops_rand_common(calx_dims shape, const calx_create_options *o);
// The same of calx_randn.
calx_tensor *cx_ops_randn_common(calx_dims shape, const calx_create_options *o);
// Runs the gradient rule of a holomorphic function, which is written as for
// real numbers: g f'(x). PyTorch's gradient of complex numbers is that of a
// real loss by the conjugate, g conj(f'(x)), which is conj(conj(g) f'(x)).
void cx_ops_grad_holomorphic(cx_lazy_tape *t, void (*rule)(cx_lazy_tape *t));
// The absolute values of complex numbers.
calx_tensor *cx_ops_modulus(calx_tensor *x);
// Sums a broadcast gradient back to the operand's shape.
calx_tensor *cx_ops_sum_to(calx_tensor *g, const cx_graph_shape *shape);
// x reshaped to the sizes of a shape.
calx_tensor *cx_ops_reshape_to(calx_tensor *x, const cx_graph_shape *shape);
calx_dims cx_ops_dims_of(const cx_graph_shape *shape);
// x with so many `value`s before and after dimension `dim`; negative: cropped.
calx_tensor *cx_ops_pad_dim(calx_tensor *x, uint32_t dim, int64_t low,
                            int64_t high, double value);
// The type of indices into a dimension of size n in a program: i32 if it can
// hold them, else i64.
static inline calx_dtype cx_ops_index_dtype(int64_t n)
{
  return n <= INT32_MAX ? CALX_I32 : CALX_I64;
}
// A bool tensor that is true where `index` points along dimension `dim`, of
// size n. `index` lacks that dimension, the result has it.
calx_tensor *cx_ops_points_at(calx_tensor *index, uint32_t dim, int64_t n,
                              uint32_t rank);

static inline calx_tensor *cx_ops_plus(calx_tensor *a, calx_tensor *b)
{
  return calx_add_with(a, b, NULL);
}

static inline calx_tensor *cx_ops_minus(calx_tensor *a, calx_tensor *b)
{
  return calx_sub_with(a, b, NULL);
}

// Field i of an option that is a list. 0 is the default; behind the first field
// it repeats the first. CALX_ZERO_INT is 0.
static inline int64_t cx_ops_pair(const int64_t *pair, int i, int64_t or_else)
{
  int64_t value = pair[i] == 0 ? pair[0] : pair[i];
  if (value == CALX_ZERO_INT) return 0;
  return value == 0 ? or_else : value;
}
// Whether a number of a window lies in [least, most]; no `most` exceeds 2^31 -
// 1, so that sums of these numbers do not overflow. False: `why` says what is
// wrong.
bool cx_ops_in_range(cx_text *why, const char *name, int64_t n, int64_t least,
                     int64_t most);

// Operands of one calx_cat, at most.
enum { CX_OPS_CAT_MOST = 4096 };

// ---- functions with a gradient of their own ---------------------------------

// What a node of `function` holds; freed with the node, once.
typedef struct cx_ops_function cx_ops_function;
struct cx_ops_function {
  void (*backward)(cx_ops_function *f, const cx_lazy_tape *tape);
  void (*free)(cx_ops_function *f);
};
// Outputs of one such function, as many as a node can have.
enum { CX_OPS_FUNCTION_OUTPUTS = 8 };

// Records that `results` (n_out of them, detached) are f's outputs for the
// first n_in operands, through which gradients flow. Further operands are for
// the backward only. Operands: inputs, results, others. Takes f over.
void cx_ops_function_record(cx_ops_function *f, const char *name,
                            calx_tensor *const *operands, uint32_t n_operands,
                            uint32_t n_in, calx_tensor **outs, uint32_t n_out);
// x as a result of its own, on which hooks can be registered.
calx_tensor *cx_ops_identity(calx_tensor *x);
// Adds a hook where the gradient of a tensor that requires one is found.
// Without memory hook.drop is called, and the scope has the error.
calx_hook cx_ops_hook(calx_tensor *t, cx_hook hook);
// x, but what is computed from it is computed after all `n` operands and is not
// merged with what is computed from x itself. in[0] is x.
calx_tensor *cx_ops_barrier(calx_tensor *const *in, uint32_t n);

// ---- batch normalisation ----------------------------------------------------

// All dimensions but 1, the channels. Returns how many.
size_t cx_ops_norm_dims(uint32_t rank, int64_t *out);
// (x - mean) / sqrt(var + eps), times the options' weight, plus their bias;
// mean, var, weight and bias have shape (C).
calx_tensor *cx_ops_norm_apply(calx_tensor *x, calx_tensor *mean,
                               calx_tensor *var,
                               const calx_batch_norm_options *o);
// running = (1 - momentum) running + momentum seen. Does nothing where
// `running` is NULL.
void cx_ops_norm_update(calx_tensor *running, calx_tensor *seen,
                        const calx_batch_norm_options *o);

// ---- collectives ------------------------------------------------------------

// Sums each tensor over the ranks and multiplies it by `scale` (0: 1), with one
// collective for all tensors of a dtype. `groups` NULL: all ranks. The operands
// must be usable. The results have a gradient unless the caller's region has
// none.
void cx_ops_all_reduce_bucket(calx_tensor *const *tensors, size_t n,
                              double scale, const calx_groups *groups,
                              calx_tensor **out);

// ---- shape rules ------------------------------------------------------------

calx_status *cx_ops_infer_same(cx_graph_node *node);  // out 0 as in 0
// The shape to which all operands broadcast, with the dtype of operand 0.
calx_status *cx_ops_infer_broadcast(cx_graph_node *node);

// ---- emission ---------------------------------------------------------------

cx_hlo_type cx_ops_out_type(const cx_graph_emit *e, uint32_t k);
// Broadcasts v to the shape, as numpy does.
cx_hlo_value *cx_ops_emit_expand(const cx_graph_emit *e, cx_hlo_value *v,
                                 const cx_graph_shape *to);
// Repeats v, which lies along dimension dim, along all other dimensions.
cx_hlo_value *cx_ops_emit_along(const cx_graph_emit *e, cx_hlo_value *v,
                                const cx_graph_shape *to, int64_t dim);
cx_hlo_value *cx_ops_emit_splat(const cx_graph_emit *e, cx_hlo_elem elem,
                                const cx_graph_shape *like, double value);
// The type in which sums and transcendental functions are computed: f32 for
// bf16 and f16.
cx_hlo_elem cx_ops_emit_wide(calx_dtype d);
cx_hlo_value *cx_ops_emit_cast(const cx_graph_emit *e, cx_hlo_value *v,
                               cx_hlo_elem to);
// Complex numbers of real ones, which are converted to the parts' type first.
// im NULL: 0.
cx_hlo_value *cx_ops_emit_complex(const cx_graph_emit *e, cx_hlo_value *re,
                                  cx_hlo_value *im, calx_dtype dtype);
// x rounded towards zero; `zero` has its type and shape.
cx_hlo_value *cx_ops_emit_trunc(const cx_graph_emit *e, cx_hlo_value *x,
                                cx_hlo_value *zero);
// Whether a remainder of a division by y, which has the dividend's sign, is not
// 0 and has not y's sign: there the floor of the quotient is one less than the
// quotient rounded towards zero.
cx_hlo_value *cx_ops_emit_opposed(const cx_graph_emit *e, cx_hlo_value *rest,
                                  cx_hlo_value *y, cx_hlo_value *zero);

#endif
