// hlo/build: operations that move elements, contractions, windows, and the
// other operations of build.h.
#include "hlo/build_op.h"
#include "hlo/ops.h"

static size_t rank_of(const cx_hlo_value *x)
{
  return cx_hlo_value_type(x)->rank;
}

// ---- shape ----

cx_hlo_value *cx_hlo_reshape(cx_hlo_builder *b, cx_hlo_value *x,
                             const int64_t *dims, size_t rank)
{
  const cx_hlo_type type = { CX_HLO_INVALID, rank, dims };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_RESHAPE, &x, 1, 1, 0);
  cx_hlo_build_declare(b, op, 0, &type);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_broadcast_in_dim(cx_hlo_builder *b, cx_hlo_value *x,
                                      const int64_t *dims, size_t rank,
                                      const int64_t *at)
{
  const cx_hlo_type type = { CX_HLO_INVALID, rank, dims };
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_BROADCAST_IN_DIM, &x, 1, 1, 0);
  cx_hlo_build_ints(b, op, CX_HLO_A_BROADCAST_DIMENSIONS, at, rank_of(x));
  cx_hlo_build_declare(b, op, 0, &type);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_transpose(cx_hlo_builder *b, cx_hlo_value *x,
                               const int64_t *permutation)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_TRANSPOSE, &x, 1, 1, 0);
  cx_hlo_build_ints(b, op, CX_HLO_A_PERMUTATION, permutation, rank_of(x));
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_slice(cx_hlo_builder *b, cx_hlo_value *x,
                           const int64_t *start, const int64_t *limit,
                           const int64_t *stride)
{
  const size_t rank = rank_of(x);
  if (stride == NULL && b->failed == NULL) {
    int64_t *ones = CX_ARENA_ARRAY(&b->module->arena, int64_t, rank + 1);
    if (ones == NULL) {
      cx_hlo_builder_fail(b, cx_out_of_memory());
      return NULL;
    }
    for (size_t i = 0; i < rank; i++) ones[i] = 1;
    stride = ones;
  }
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_SLICE, &x, 1, 1, 0);
  cx_hlo_build_ints(b, op, CX_HLO_A_START_INDICES, start, rank);
  cx_hlo_build_ints(b, op, CX_HLO_A_LIMIT_INDICES, limit, rank);
  cx_hlo_build_ints(b, op, CX_HLO_A_STRIDES, stride, rank);
  return cx_hlo_build_end(b, op);
}

// The operands are the n first ones, then one start for each dimension of x.
static cx_hlo_op *begin_with_starts(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                    cx_hlo_value *const *first, size_t n,
                                    cx_hlo_value *const *starts)
{
  if (b->failed != NULL) return NULL;
  const size_t rank = rank_of(first[0]);
  cx_hlo_value **all =
      CX_ARENA_ARRAY(&b->module->arena, cx_hlo_value *, n + rank);
  if (all == NULL) {
    cx_hlo_builder_fail(b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < n; i++) all[i] = first[i];
  for (size_t i = 0; i < rank; i++) all[n + i] = starts[i];
  return cx_hlo_build_begin(b, kind, all, n + rank, 1, 0);
}

cx_hlo_value *cx_hlo_dynamic_slice(cx_hlo_builder *b, cx_hlo_value *x,
                                   cx_hlo_value *const *starts,
                                   const int64_t *sizes)
{
  cx_hlo_op *op = begin_with_starts(b, CX_HLO_OP_DYNAMIC_SLICE, &x, 1, starts);
  cx_hlo_build_ints(b, op, CX_HLO_A_SLICE_SIZES, sizes, rank_of(x));
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_dynamic_update_slice(cx_hlo_builder *b, cx_hlo_value *x,
                                          cx_hlo_value *update,
                                          cx_hlo_value *const *starts)
{
  cx_hlo_value *const first[] = { x, update };
  return cx_hlo_build_end(
      b,
      begin_with_starts(b, CX_HLO_OP_DYNAMIC_UPDATE_SLICE, first, 2, starts));
}

cx_hlo_value *cx_hlo_concatenate(cx_hlo_builder *b, cx_hlo_value *const *xs,
                                 size_t n, int64_t dimension)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CONCATENATE, xs, n, 1, 0);
  cx_hlo_build_int(b, op, CX_HLO_A_DIMENSION, dimension);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_pad(cx_hlo_builder *b, cx_hlo_value *x,
                         cx_hlo_value *padding, const int64_t *low,
                         const int64_t *high, const int64_t *interior)
{
  cx_hlo_value *const operands[] = { x, padding };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_PAD, operands, 2, 1, 0);
  cx_hlo_build_ints(b, op, CX_HLO_A_EDGE_PADDING_LOW, low, rank_of(x));
  cx_hlo_build_ints(b, op, CX_HLO_A_EDGE_PADDING_HIGH, high, rank_of(x));
  cx_hlo_build_ints(b, op, CX_HLO_A_INTERIOR_PADDING, interior, rank_of(x));
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_reverse(cx_hlo_builder *b, cx_hlo_value *x,
                             const int64_t *dims, size_t n_dims)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_REVERSE, &x, 1, 1, 0);
  cx_hlo_build_ints(b, op, CX_HLO_A_DIMENSIONS, dims, n_dims);
  return cx_hlo_build_end(b, op);
}

// ---- contractions ----

cx_hlo_value *cx_hlo_dot_general(cx_hlo_builder *b, cx_hlo_value *x,
                                 cx_hlo_value *y, const cx_hlo_dot_dims *dims,
                                 cx_hlo_elem out)
{
  cx_hlo_value *const operands[] = { x, y };
  const cx_hlo_type type = { out, 0, NULL };
  const cx_hlo_dot_numbers numbers = {
    .lhs_batch = { dims->lhs_batch, dims->n_batch },
    .rhs_batch = { dims->rhs_batch, dims->n_batch },
    .lhs_contract = { dims->lhs_contract, dims->n_contract },
    .rhs_contract = { dims->rhs_contract, dims->n_contract },
  };
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_DOT_GENERAL, operands, 2, 1, 0);
  if (op == NULL) return NULL;
  cx_hlo_build_attr(b, op, CX_HLO_A_DOT_DIMENSION_NUMBERS,
                    cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_DOT, &numbers));
  cx_hlo_build_declare(b, op, 0, &type);
  return cx_hlo_build_end(b, op);
}

static void add_window_list(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                            const int64_t *v, size_t n)
{
  if (v != NULL) cx_hlo_build_ints(b, op, id, v, n);
}

static void add_padding(cx_hlo_builder *b, cx_hlo_op *op, const int64_t *pairs,
                        size_t n)
{
  if (op == NULL || pairs == NULL) return;
  cx_hlo_build_attr(b, op, CX_HLO_A_PADDING,
                    cx_hlo_attr_matrix(b->module, pairs, n, 2));
}

static void add_reversal(cx_hlo_builder *b, cx_hlo_op *op, const bool *v,
                         size_t n)
{
  if (op == NULL || v == NULL) return;
  int64_t *flags = CX_ARENA_ARRAY(&b->module->arena, int64_t, n);
  for (size_t i = 0; flags != NULL && i < n; i++) flags[i] = v[i];
  cx_hlo_build_attr(
      b, op, CX_HLO_A_WINDOW_REVERSAL,
      flags == NULL ? NULL : cx_hlo_attr_ints(b->module, CX_HLO_I1, flags, n));
}

cx_hlo_value *cx_hlo_convolution(cx_hlo_builder *b, cx_hlo_value *x,
                                 cx_hlo_value *kernel,
                                 const cx_hlo_conv_dims *dims)
{
  cx_hlo_value *const operands[] = { x, kernel };
  const size_t n = dims->n_spatial;
  const cx_hlo_conv_numbers numbers = {
    .input_batch = dims->input_batch,
    .input_feature = dims->input_feature,
    .input_spatial = { dims->input_spatial, n },
    .kernel_input = dims->kernel_input,
    .kernel_output = dims->kernel_output,
    .kernel_spatial = { dims->kernel_spatial, n },
    .output_batch = dims->output_batch,
    .output_feature = dims->output_feature,
    .output_spatial = { dims->output_spatial, n },
  };
  const int64_t features = dims->feature_groups == 0 ? 1 : dims->feature_groups;
  const int64_t batches = dims->batch_groups == 0 ? 1 : dims->batch_groups;
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_CONVOLUTION, operands, 2, 1, 0);
  if (op == NULL) return NULL;
  add_window_list(b, op, CX_HLO_A_WINDOW_STRIDES, dims->strides, n);
  add_padding(b, op, dims->padding, n);
  add_window_list(b, op, CX_HLO_A_LHS_DILATION, dims->lhs_dilation, n);
  add_window_list(b, op, CX_HLO_A_RHS_DILATION, dims->rhs_dilation, n);
  add_reversal(b, op, dims->reversal, n);
  cx_hlo_build_attr(b, op, CX_HLO_A_CONV_DIMENSION_NUMBERS,
                    cx_hlo_attr_conv(b->module, &numbers));
  cx_hlo_build_int(b, op, CX_HLO_A_FEATURE_GROUP_COUNT, features);
  cx_hlo_build_int(b, op, CX_HLO_A_BATCH_GROUP_COUNT, batches);
  return cx_hlo_build_end(b, op);
}

// ---- reductions and windows ----

void cx_hlo_build_one(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                      cx_hlo_value **out)
{
  const cx_hlo_op_kind *kind = user;
  out[0] = cx_hlo_binary(b, *kind, args[0], args[1]);
}

// n inputs, n inits, and a region of 2n scalars of the inputs' types.
static cx_hlo_op *begin_reduction(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                  size_t n, cx_hlo_value *const *inputs,
                                  cx_hlo_value *const *inits,
                                  cx_hlo_body_fn *body, void *user)
{
  if (b->failed != NULL) return NULL;
  cx_arena *arena = &b->module->arena;
  cx_hlo_value **all = CX_ARENA_ARRAY(arena, cx_hlo_value *, 2 * n);
  cx_hlo_elem *elems = CX_ARENA_ARRAY(arena, cx_hlo_elem, 2 * n);
  if (all == NULL || elems == NULL) {
    cx_hlo_builder_fail(b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < n; i++) {
    all[i] = inputs[i];
    all[n + i] = inits[i];
    elems[i] = cx_hlo_value_type(inputs[i])->elem;
    elems[n + i] = elems[i];
  }
  cx_hlo_op *op = cx_hlo_build_begin(b, kind, all, 2 * n, n, 1);
  cx_hlo_build_body(b, op, 0, elems, 2 * n, n, body, user);
  return op;
}

// Appends the operation and writes its results: NULL after a failure.
static void end_many(cx_hlo_builder *b, cx_hlo_op *op, size_t n,
                     cx_hlo_value **out)
{
  const bool ok = cx_hlo_build_end(b, op) != NULL;
  for (size_t i = 0; i < n; i++) out[i] = ok ? &op->results[i] : NULL;
}

void cx_hlo_reduce(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inputs,
                   cx_hlo_value *const *inits, const int64_t *dims,
                   size_t n_dims, cx_hlo_body_fn *body, void *user,
                   cx_hlo_value **out)
{
  cx_hlo_op *op =
      begin_reduction(b, CX_HLO_OP_REDUCE, n, inputs, inits, body, user);
  cx_hlo_build_ints(b, op, CX_HLO_A_DIMENSIONS, dims, n_dims);
  end_many(b, op, n, out);
}

cx_hlo_value *cx_hlo_reduce_with(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                 cx_hlo_value *x, cx_hlo_value *init,
                                 const int64_t *dims, size_t n_dims)
{
  cx_hlo_value *out = NULL;
  cx_hlo_reduce(b, 1, &x, &init, dims, n_dims, cx_hlo_build_one, &kind, &out);
  return out;
}

void cx_hlo_reduce_window(cx_hlo_builder *b, size_t n,
                          cx_hlo_value *const *inputs,
                          cx_hlo_value *const *inits,
                          const cx_hlo_window *window, cx_hlo_body_fn *body,
                          void *user, cx_hlo_value **out)
{
  const size_t rank = n == 0 ? 0 : rank_of(inputs[0]);
  cx_hlo_op *op =
      begin_reduction(b, CX_HLO_OP_REDUCE_WINDOW, n, inputs, inits, body, user);
  add_window_list(b, op, CX_HLO_A_WINDOW_DIMENSIONS, window->dimensions, rank);
  add_window_list(b, op, CX_HLO_A_WINDOW_STRIDES, window->strides, rank);
  add_window_list(b, op, CX_HLO_A_BASE_DILATIONS, window->base_dilations, rank);
  add_window_list(b, op, CX_HLO_A_WINDOW_DILATIONS, window->dilations, rank);
  add_padding(b, op, window->padding, rank);
  end_many(b, op, n, out);
}

cx_hlo_value *cx_hlo_reduce_window_with(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                        cx_hlo_value *x, cx_hlo_value *init,
                                        const cx_hlo_window *window)
{
  cx_hlo_value *out = NULL;
  cx_hlo_reduce_window(b, 1, &x, &init, window, cx_hlo_build_one, &kind, &out);
  return out;
}

cx_hlo_value *cx_hlo_select_and_scatter(cx_hlo_builder *b, cx_hlo_value *x,
                                        cx_hlo_value *source,
                                        cx_hlo_value *init,
                                        const cx_hlo_window *window,
                                        cx_hlo_body_fn *select,
                                        cx_hlo_body_fn *scatter, void *user)
{
  cx_hlo_value *const operands[] = { x, source, init };
  const size_t rank = rank_of(x);
  const cx_hlo_elem e = cx_hlo_value_type(x)->elem;
  const cx_hlo_elem elems[] = { e, e };
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_SELECT_AND_SCATTER, operands, 3, 1, 2);
  add_window_list(b, op, CX_HLO_A_WINDOW_DIMENSIONS, window->dimensions, rank);
  add_window_list(b, op, CX_HLO_A_WINDOW_STRIDES, window->strides, rank);
  add_padding(b, op, window->padding, rank);
  cx_hlo_build_body(b, op, 0, elems, 2, 1, select, user);
  cx_hlo_build_body(b, op, 1, elems, 2, 1, scatter, user);
  return cx_hlo_build_end(b, op);
}

// ---- the rest ----

void cx_hlo_rng_bit_generator(cx_hlo_builder *b, cx_hlo_value *state,
                              cx_hlo_type type, cx_hlo_value **out_state,
                              cx_hlo_value **out_bits)
{
  cx_hlo_value *out[2] = { NULL, NULL };
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_RNG_BIT_GENERATOR, &state, 1, 2, 0);
  if (op != NULL) {
    cx_hlo_build_attr(b, op, CX_HLO_A_RNG_ALGORITHM,
                      cx_hlo_attr_choice(b->module, CX_HLO_RNG_ALGORITHM,
                                         CX_HLO_RNG_THREE_FRY));
    cx_hlo_build_declare(b, op, 1, &type);
    end_many(b, op, 2, out);
  }
  *out_state = out[0];
  *out_bits = out[1];
}

void cx_hlo_optimization_barrier(cx_hlo_builder *b, cx_hlo_value *const *xs,
                                 size_t n, cx_hlo_value **out)
{
  end_many(b,
           cx_hlo_build_begin(b, CX_HLO_OP_OPTIMIZATION_BARRIER, xs, n, n, 0),
           n, out);
}
