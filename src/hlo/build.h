// hlo/build: makes modules, one call per operation.
//
// A builder has an insertion point in one function. Each call appends one
// operation and returns its value. The result type comes from the rule of the
// operation in ops.def, which the verifier uses too. The builder keeps the
// first failure, and cx_hlo_builder_finish() returns it. After a failure, calls
// do nothing and return NULL, and NULL operands are accepted. So callers need
// no checks between calls.
#ifndef CX_HLO_BUILD_H
#define CX_HLO_BUILD_H

#include "base/arena.h"
#include "hlo/module.h"
#include "hlo/types.h"

typedef struct cx_hlo_builder cx_hlo_builder;

// A module with one public function `name`, whose parameters have these types.
// cx_hlo_builder_finish() or cx_hlo_builder_free() frees the builder.
calx_status *cx_hlo_builder_new(const char *module_name, const char *name,
                                const cx_hlo_type *params, size_t n_params,
                                cx_hlo_builder **out_builder) CALX_MUST_USE;
cx_hlo_value *cx_hlo_param(cx_hlo_builder *b, size_t index);
void cx_hlo_param_alias(cx_hlo_builder *b, size_t param,
                        size_t result);  // tf.aliasing_output: donation
void cx_hlo_module_attr_int(cx_hlo_builder *b, const char *name,
                            int64_t value);  // mhlo.num_replicas = 4 : i32
// Ends the function with a return of these values, and frees the builder in any
// case. The caller frees the module with cx_hlo_module_free().
calx_status *cx_hlo_builder_finish(cx_hlo_builder *b,
                                   cx_hlo_value *const *results,
                                   size_t n_results,
                                   cx_hlo_module **out_module) CALX_MUST_USE;
void cx_hlo_builder_free(
    cx_hlo_builder *b);  // abandons an unfinished one; NULL is accepted
void cx_hlo_builder_fail(cx_hlo_builder *b, calx_status *status);  // takes it
// The location of the operations that follow, printed as loc("file":line:0).
// NULL: unknown. The file is copied.
void cx_hlo_builder_at(cx_hlo_builder *b, const char *file, int line);

const cx_hlo_type *cx_hlo_value_type(
    const cx_hlo_value
        *v);  // never NULL: a NULL value has the invalid type of rank 0

// ---- values ----
// `bytes`: row-major elements, little-endian, one byte for i1.
cx_hlo_value *cx_hlo_constant(cx_hlo_builder *b, cx_hlo_type type,
                              const void *bytes, size_t size);
// A constant whose elements are `value`. Integers are exact where they fit.
cx_hlo_value *cx_hlo_splat(cx_hlo_builder *b, cx_hlo_type type, double value);
cx_hlo_value *cx_hlo_splat_int(cx_hlo_builder *b, cx_hlo_type type,
                               int64_t value);
// A rank-0 constant of the type's lowest (-inf; INT_MIN; false) or highest
// value.
cx_hlo_value *cx_hlo_lowest(cx_hlo_builder *b, cx_hlo_elem e);
cx_hlo_value *cx_hlo_highest(cx_hlo_builder *b, cx_hlo_elem e);
cx_hlo_value *cx_hlo_iota(cx_hlo_builder *b, cx_hlo_type type,
                          int64_t dimension);

// ---- elementwise ---- `kind` is the operation: CX_HLO_OP_EXPONENTIAL,
// CX_HLO_OP_ADD, …
cx_hlo_value *cx_hlo_unary(cx_hlo_builder *b, cx_hlo_op_kind kind,
                           cx_hlo_value *x);
cx_hlo_value *cx_hlo_binary(cx_hlo_builder *b, cx_hlo_op_kind kind,
                            cx_hlo_value *x, cx_hlo_value *y);
typedef enum cx_hlo_direction {
  CX_HLO_EQ,
  CX_HLO_NE,
  CX_HLO_GE,
  CX_HLO_GT,
  CX_HLO_LE,
  CX_HLO_LT
} cx_hlo_direction;
cx_hlo_value *cx_hlo_compare(cx_hlo_builder *b, cx_hlo_direction d,
                             cx_hlo_value *x, cx_hlo_value *y);
cx_hlo_value *cx_hlo_select(cx_hlo_builder *b, cx_hlo_value *pred,
                            cx_hlo_value *on_true, cx_hlo_value *on_false);
cx_hlo_value *cx_hlo_clamp(cx_hlo_builder *b, cx_hlo_value *low,
                           cx_hlo_value *x, cx_hlo_value *high);
cx_hlo_value *cx_hlo_convert(cx_hlo_builder *b, cx_hlo_value *x,
                             cx_hlo_elem to);
cx_hlo_value *cx_hlo_bitcast_convert(cx_hlo_builder *b, cx_hlo_value *x,
                                     cx_hlo_type to);

// ---- shape ----
cx_hlo_value *cx_hlo_reshape(cx_hlo_builder *b, cx_hlo_value *x,
                             const int64_t *dims, size_t rank);
// Dimension k of x becomes dimension at[k] of the result; sizes of 1 stretch.
cx_hlo_value *cx_hlo_broadcast_in_dim(cx_hlo_builder *b, cx_hlo_value *x,
                                      const int64_t *dims, size_t rank,
                                      const int64_t *at);
cx_hlo_value *cx_hlo_transpose(cx_hlo_builder *b, cx_hlo_value *x,
                               const int64_t *permutation);
// NULL strides: 1 in each dimension.
cx_hlo_value *cx_hlo_slice(cx_hlo_builder *b, cx_hlo_value *x,
                           const int64_t *start, const int64_t *limit,
                           const int64_t *stride);
// starts: one rank-0 integer value per dimension of x.
cx_hlo_value *cx_hlo_dynamic_slice(cx_hlo_builder *b, cx_hlo_value *x,
                                   cx_hlo_value *const *starts,
                                   const int64_t *sizes);
cx_hlo_value *cx_hlo_dynamic_update_slice(cx_hlo_builder *b, cx_hlo_value *x,
                                          cx_hlo_value *update,
                                          cx_hlo_value *const *starts);
cx_hlo_value *cx_hlo_concatenate(cx_hlo_builder *b, cx_hlo_value *const *xs,
                                 size_t n, int64_t dimension);
cx_hlo_value *cx_hlo_pad(cx_hlo_builder *b, cx_hlo_value *x,
                         cx_hlo_value *padding, const int64_t *low,
                         const int64_t *high, const int64_t *interior);
cx_hlo_value *cx_hlo_reverse(cx_hlo_builder *b, cx_hlo_value *x,
                             const int64_t *dims, size_t n_dims);

// ---- transforms ----
typedef enum cx_hlo_fft_kind {
  CX_HLO_FFT,
  CX_HLO_IFFT,
  CX_HLO_RFFT,
  CX_HLO_IRFFT
} cx_hlo_fft_kind;
// Over the last n dimensions, 1 to 3, which have these lengths where they are
// not half ones.
cx_hlo_value *cx_hlo_fft(cx_hlo_builder *b, cx_hlo_fft_kind kind,
                         cx_hlo_value *x, const int64_t *lengths, size_t n);

// ---- contractions ----
typedef struct cx_hlo_dot_dims {
  const int64_t *lhs_batch, *rhs_batch;  // n_batch each
  size_t n_batch;
  const int64_t *lhs_contract, *rhs_contract;  // n_contract each
  size_t n_contract;
} cx_hlo_dot_dims;
// `out` INVALID: the operands' element type.
cx_hlo_value *cx_hlo_dot_general(cx_hlo_builder *b, cx_hlo_value *x,
                                 cx_hlo_value *y, const cx_hlo_dot_dims *dims,
                                 cx_hlo_elem out);

// Which dimensions of input, kernel and output are batch, feature and spatial
// dimensions. Arrays have n_spatial numbers; padding has n_spatial pairs (low,
// high). NULL: ones; for padding zeros.
typedef struct cx_hlo_conv_dims {
  size_t n_spatial;
  int64_t input_batch, input_feature;
  const int64_t *input_spatial;
  int64_t kernel_output, kernel_input;
  const int64_t *kernel_spatial;
  int64_t output_batch, output_feature;
  const int64_t *output_spatial;
  const int64_t *strides, *padding, *lhs_dilation, *rhs_dilation;
  const bool *reversal;                  // NULL: none
  int64_t feature_groups, batch_groups;  // 0 = 1
} cx_hlo_conv_dims;
cx_hlo_value *cx_hlo_convolution(cx_hlo_builder *b, cx_hlo_value *x,
                                 cx_hlo_value *kernel,
                                 const cx_hlo_conv_dims *dims);

// ---- reductions and windows ----
// Builds the body of a region. args are the arguments of its block. It writes
// the values to return into out.
typedef void cx_hlo_body_fn(cx_hlo_builder *b, void *user,
                            cx_hlo_value *const *args, cx_hlo_value **out);
// n inputs and n inits of rank 0. The body has 2n arguments (accumulators, then
// elements) and n results.
void cx_hlo_reduce(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inputs,
                   cx_hlo_value *const *inits, const int64_t *dims,
                   size_t n_dims, cx_hlo_body_fn *body, void *user,
                   cx_hlo_value **out);
// One input, and the body is one binary operation.
cx_hlo_value *cx_hlo_reduce_with(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                 cx_hlo_value *x, cx_hlo_value *init,
                                 const int64_t *dims, size_t n_dims);
typedef struct cx_hlo_window {  // arrays of the operand's rank; NULL: 1s, or 0s
                                // for padding (pairs low, high)
  const int64_t *dimensions, *strides, *base_dilations, *dilations, *padding;
} cx_hlo_window;
void cx_hlo_reduce_window(cx_hlo_builder *b, size_t n,
                          cx_hlo_value *const *inputs,
                          cx_hlo_value *const *inits,
                          const cx_hlo_window *window, cx_hlo_body_fn *body,
                          void *user, cx_hlo_value **out);
cx_hlo_value *cx_hlo_reduce_window_with(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                        cx_hlo_value *x, cx_hlo_value *init,
                                        const cx_hlo_window *window);
// select: (current, new) -> i1; scatter: (a, b) -> combined. Rank-0 arguments
// of x's element type.
cx_hlo_value *cx_hlo_select_and_scatter(cx_hlo_builder *b, cx_hlo_value *x,
                                        cx_hlo_value *source,
                                        cx_hlo_value *init,
                                        const cx_hlo_window *window,
                                        cx_hlo_body_fn *select,
                                        cx_hlo_body_fn *scatter, void *user);

// ---- indexing and sorting ----
// Slices of size 1 along dimension `dim` of x, at the rank-k indices, which
// take that dimension's place in the result.
cx_hlo_value *cx_hlo_gather_along(cx_hlo_builder *b, cx_hlo_value *x,
                                  cx_hlo_value *indices, int64_t dim);
// x (n, …) with the rows of updates (m, …) combined into the rows that indices
// (m) name; those out of range are dropped. `kind` combines, as in
// cx_hlo_reduce_with; CX_HLO_OP_SCATTER: the update replaces the row.
cx_hlo_value *cx_hlo_scatter_rows(cx_hlo_builder *b, cx_hlo_value *x,
                                  cx_hlo_value *indices, cx_hlo_value *updates,
                                  cx_hlo_op_kind kind);
// Sorts n inputs of one shape together, stably. The body has 2n arguments (two
// elements of each input in turn) and says whether the first come first.
void cx_hlo_sort(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inputs,
                 int64_t dim, cx_hlo_body_fn *body, void *user,
                 cx_hlo_value **out);

// ---- systems of equations ---- of matrices, the last two dimensions
// The lower triangle L with L L^T = x; x is symmetric. NaN where there is none.
cx_hlo_value *cx_hlo_cholesky(cx_hlo_builder *b, cx_hlo_value *x);
// x with a x = y, or a^T x = y; `lower`: the triangle of `a` that is read;
// `unit`: its diagonal counts as ones.
cx_hlo_value *cx_hlo_triangular_solve(cx_hlo_builder *b, cx_hlo_value *a,
                                      cx_hlo_value *y, bool lower, bool unit,
                                      bool transpose);

// ---- control flow ----
// A loop over n variables: `condition` returns an i1, `body` the variables'
// next values. Both have the variables as arguments.
void cx_hlo_while(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inits,
                  cx_hlo_body_fn *condition, cx_hlo_body_fn *body, void *user,
                  cx_hlo_value **out);

// ---- collectives, across replicas ----
// The ids of one group after the other, `members` in each. Every replica is in
// exactly one group.
typedef struct cx_hlo_groups {
  const int64_t *ids;
  size_t groups, members;
} cx_hlo_groups;
// `kind` is the operation that combines, as in cx_hlo_reduce_with.
cx_hlo_value *cx_hlo_all_reduce(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                cx_hlo_value *x, const cx_hlo_groups *groups);
cx_hlo_value *cx_hlo_reduce_scatter(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                    cx_hlo_value *x, int64_t dim,
                                    const cx_hlo_groups *groups);
cx_hlo_value *cx_hlo_all_gather(cx_hlo_builder *b, cx_hlo_value *x, int64_t dim,
                                const cx_hlo_groups *groups);
cx_hlo_value *cx_hlo_all_to_all(cx_hlo_builder *b, cx_hlo_value *x,
                                int64_t split_dim, int64_t concat_dim,
                                const cx_hlo_groups *groups);
// pairs: source, target, source, target, …
cx_hlo_value *cx_hlo_collective_permute(cx_hlo_builder *b, cx_hlo_value *x,
                                        const int64_t *pairs, size_t n_pairs);
cx_hlo_value *cx_hlo_replica_id(cx_hlo_builder *b);  // ui32 of rank 0

// ---- shardings ---- attributes of Shardy as texts; the mesh is @mesh
cx_hlo_value *cx_hlo_sharding_constraint(cx_hlo_builder *b, cx_hlo_value *x,
                                         const char *sharding);
// Of a finished module, and of parameter or result i of its entry. False: there
// is no memory.
bool cx_hlo_declare_mesh(cx_hlo_module *m, const char *mesh);
bool cx_hlo_shard_param(cx_hlo_module *m, size_t i, const char *sharding);
bool cx_hlo_shard_result(cx_hlo_module *m, size_t i, const char *sharding);

// ---- the rest ----
// THREE_FRY: state tensor<2xui64>; bits of type `type`.
void cx_hlo_rng_bit_generator(cx_hlo_builder *b, cx_hlo_value *state,
                              cx_hlo_type type, cx_hlo_value **out_state,
                              cx_hlo_value **out_bits);
void cx_hlo_optimization_barrier(cx_hlo_builder *b, cx_hlo_value *const *xs,
                                 size_t n, cx_hlo_value **out);

#endif
