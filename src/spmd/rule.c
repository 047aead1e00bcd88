#include "spmd/rule.h"

#include "hlo/infer.h"
#include "spmd/factor.h"
#include "spmd/spmd.h"

typedef cx_spmd_rule rule;

static const cx_hlo_type *type_of(const rule *r, size_t t)
{
  return &r->tensors[t]->type.tensor;
}

// All tensors of the rank of tensor `like` are cut together in dimension d.
static void all(rule *r, size_t like, size_t d)
{
  const size_t rank = type_of(r, like)->rank;
  const int32_t f = cx_spmd_factor(r, false);
  for (size_t t = 0; t < r->n_tensors; t++) {
    if (type_of(r, t)->rank == rank) r->factors[t][d] = f;
  }
}

// ---- one function for each family ----

static void elementwise(rule *r, const cx_hlo_op *op)
{
  for (size_t d = 0; d < type_of(r, op->n_operands)->rank; d++) {
    all(r, op->n_operands, d);
  }
}

static void made(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_attr *value = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
  const bool iota = op->kind == CX_HLO_OP_IOTA;
  if (!iota && !value->as.elements.splat) return;
  for (size_t d = 0; d < type_of(r, 0)->rank; d++) {
    if (iota && (int64_t)d == cx_hlo_op_int(op, CX_HLO_A_IOTA_DIMENSION)) {
      continue;
    }
    r->factors[0][d] = cx_spmd_factor(r, false);
  }
}

static void barrier(rule *r, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    for (size_t d = 0; d < type_of(r, i)->rank; d++) {
      cx_spmd_pair(r, i, (int64_t)d, op->n_operands + i, (int64_t)d, false);
    }
  }
}

static void broadcast(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  for (size_t d = 0; d < type_of(r, 1)->rank; d++) {
    r->factors[1][d] = cx_spmd_factor(r, false);
  }
  for (size_t i = 0; i < at.n; i++) {
    if (type_of(r, 0)->dims[i] == type_of(r, 1)->dims[at.v[i]]) {
      r->factors[0][i] = r->factors[1][at.v[i]];
    }
  }
}

static void transpose(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  for (size_t d = 0; d < p.n; d++)
    cx_spmd_pair(r, 0, p.v[d], 1, (int64_t)d, false);
}

// The first dimension from `at` on, before `end`, that is longer than 1.
static size_t longer(const cx_hlo_type *t, size_t at, size_t end)
{
  while (at < end && t->dims[at] == 1) at++;
  return at;
}

// Dimensions with equal products of sizes have the same elements in the same
// order. Equal blocks of the outermost ones on both sides are the same
// elements.
static void reshape(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_type *x = type_of(r, 0), *y = type_of(r, 1);
  size_t i = 0, j = 0;
  (void)op;
  if (cx_hlo_type_elements(x) <= 0) return;
  while (i < x->rank && j < y->rank) {
    const size_t from_i = i, from_j = j;
    int64_t a = x->dims[i++], b = y->dims[j++];
    while (a != b) {
      if (a < b) {
        a *= x->dims[i++];
      } else {
        b *= y->dims[j++];
      }
    }
    const size_t k = longer(x, from_i, i), l = longer(y, from_j, j);
    if (k < i && l < j) cx_spmd_pair(r, 0, (int64_t)k, 1, (int64_t)l, false);
  }
}

// Along a dimension where this holds, an element of the result comes from the
// element at the same place of the operand.
static bool keeps(const cx_hlo_op *op, const rule *r, size_t d)
{
  const int64_t n = type_of(r, 0)->dims[d];
  switch (op->kind) {
    case CX_HLO_OP_SLICE:
      return type_of(r, 1)->dims[d] == n &&
             cx_hlo_op_int_at(op, CX_HLO_A_STRIDES, d) == 1;
    case CX_HLO_OP_PAD:
      return cx_hlo_op_int_at(op, CX_HLO_A_EDGE_PADDING_LOW, d) == 0 &&
             cx_hlo_op_int_at(op, CX_HLO_A_EDGE_PADDING_HIGH, d) == 0 &&
             cx_hlo_op_int_at(op, CX_HLO_A_INTERIOR_PADDING, d) == 0;
    case CX_HLO_OP_CONCATENATE:
      return (int64_t)d != cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
    case CX_HLO_OP_DYNAMIC_SLICE:  // the start can only be 0
      return cx_hlo_op_int_at(op, CX_HLO_A_SLICE_SIZES, d) == n;
    case CX_HLO_OP_DYNAMIC_UPDATE_SLICE: return type_of(r, 1)->dims[d] == n;
    case CX_HLO_OP_REDUCE_WINDOW:
    case CX_HLO_OP_SELECT_AND_SCATTER:
      return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d) == 1 &&
             cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) == 1 &&
             (op->kind == CX_HLO_OP_SELECT_AND_SCATTER ||
              cx_hlo_op_int_at(op, CX_HLO_A_BASE_DILATIONS, d) == 1) &&
             cx_hlo_padding_at(op, d, 0) == 0 &&
             cx_hlo_padding_at(op, d, 1) == 0;
    default:
      return !cx_hlo_ints_have(cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS),
                               (int64_t)d);
  }
}

static void keeping(rule *r, const cx_hlo_op *op)
{
  const bool scalar = op->kind == CX_HLO_OP_PAD && type_of(r, 0)->rank == 0;
  for (size_t d = 0; !scalar && d < type_of(r, 0)->rank; d++) {
    if (keeps(op, r, d)) all(r, 0, d);
  }
}

static void reduce(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const cx_hlo_op *how = cx_hlo_block_combiner(op->regions[0].first, 0);
  const bool parts = op->n_results == 1 && how != NULL &&
                     cx_spmd_may_repeat(how->kind, op->operands[1]);
  int64_t left = 0;
  if (parts) r->combine = how->kind;
  for (size_t d = 0; d < type_of(r, 0)->rank; d++) {
    const bool reduced = cx_hlo_ints_have(dims, (int64_t)d);
    const int32_t f = !reduced || parts ? cx_spmd_factor(r, reduced) : -1;
    for (uint32_t i = 0; i < op->n_results; i++) {
      r->factors[i][d] = f;
      if (!reduced) r->factors[op->n_operands + i][left] = f;
    }
    if (!reduced) left++;
  }
}

// Rows of one side that are neither batch nor contracted, at `at` of the result
static void free_dims(rule *r, size_t side, cx_hlo_ints batch,
                      cx_hlo_ints contract, int64_t *at)
{
  for (size_t d = 0; d < type_of(r, side)->rank; d++) {
    if (cx_hlo_ints_have(batch, (int64_t)d)) continue;
    if (cx_hlo_ints_have(contract, (int64_t)d)) continue;
    cx_spmd_pair(r, side, (int64_t)d, 2, (*at)++, false);
  }
}

static void dot(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_dot_numbers *n =
      cx_hlo_op_struct(op, CX_HLO_A_DOT_DIMENSION_NUMBERS);
  int64_t at = 0;
  for (size_t i = 0; i < n->lhs_batch.n; i++) {
    cx_spmd_pair(r, 0, n->lhs_batch.v[i], 2, at, false);
    r->factors[1][n->rhs_batch.v[i]] = r->factors[2][at++];
  }
  free_dims(r, 0, n->lhs_batch, n->lhs_contract, &at);
  free_dims(r, 1, n->rhs_batch, n->rhs_contract, &at);
  if (type_of(r, 2)->elem == CX_HLO_I1) return;
  r->combine = CX_HLO_OP_ADD;
  for (size_t i = 0; i < n->lhs_contract.n; i++) {
    cx_spmd_pair(r, 0, n->lhs_contract.v[i], 1, n->rhs_contract.v[i], true);
  }
}

static void convolution(rule *r, const cx_hlo_op *op)
{
  const cx_hlo_conv_numbers *n = cx_hlo_op_conv(op);
  if (cx_hlo_op_int(op, CX_HLO_A_BATCH_GROUP_COUNT) != 1) return;
  cx_spmd_pair(r, 0, n->input_batch, 2, n->output_batch, false);
  if (cx_hlo_op_int(op, CX_HLO_A_FEATURE_GROUP_COUNT) != 1) return;
  cx_spmd_pair(r, 1, n->kernel_output, 2, n->output_feature, false);
  if (type_of(r, 2)->elem == CX_HLO_I1) return;
  r->combine = CX_HLO_OP_ADD;
  cx_spmd_pair(r, 0, n->input_feature, 1, n->kernel_input, true);
}

// Linear algebra on the matrices of the last `inner` dimensions.
static void batched(rule *r, const cx_hlo_op *op, size_t inner)
{
  const size_t rank = type_of(r, 0)->rank;
  (void)op;
  for (size_t d = 0; d + inner < rank; d++) all(r, 0, d);
}

static void sort(rule *r, const cx_hlo_op *op)
{
  const int64_t rank = (int64_t)type_of(r, 0)->rank;
  int64_t at = cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (at < 0) at += rank;
  for (int64_t d = 0; d < rank; d++) {
    if (d != at) all(r, 0, (size_t)d);
  }
}

// ---- the table ----

static bool is_elementwise(const cx_hlo_op *op)
{
  return (op->kind >= CX_HLO_OP_ADD && op->kind <= CX_HLO_OP_CLAMP) ||
         (op->kind >= CX_HLO_OP_CHLO_ACOS && op->kind <= CX_HLO_OP_CHLO_ZETA) ||
         op->kind == CX_HLO_OP_CONVERT || cx_spmd_is_identity(op);
}

static void fill(rule *r, const cx_hlo_op *op)
{
  if (is_elementwise(op)) {
    elementwise(r, op);
    return;
  }
  switch (op->kind) {
    case CX_HLO_OP_CONSTANT:
    case CX_HLO_OP_IOTA: made(r, op); break;
    case CX_HLO_OP_OPTIMIZATION_BARRIER: barrier(r, op); break;
    case CX_HLO_OP_BROADCAST_IN_DIM: broadcast(r, op); break;
    case CX_HLO_OP_TRANSPOSE: transpose(r, op); break;
    case CX_HLO_OP_RESHAPE: reshape(r, op); break;
    case CX_HLO_OP_SLICE:
    case CX_HLO_OP_PAD:
    case CX_HLO_OP_CONCATENATE:
    case CX_HLO_OP_REVERSE:
    case CX_HLO_OP_DYNAMIC_SLICE:
    case CX_HLO_OP_DYNAMIC_UPDATE_SLICE:
    case CX_HLO_OP_REDUCE_WINDOW:
    case CX_HLO_OP_SELECT_AND_SCATTER: keeping(r, op); break;
    case CX_HLO_OP_GATHER: cx_spmd_gather_rule(r, op); break;
    case CX_HLO_OP_SCATTER: cx_spmd_scatter_rule(r, op); break;
    case CX_HLO_OP_REDUCE: reduce(r, op); break;
    case CX_HLO_OP_DOT_GENERAL: dot(r, op); break;
    case CX_HLO_OP_CONVOLUTION: convolution(r, op); break;
    case CX_HLO_OP_SORT: sort(r, op); break;
    case CX_HLO_OP_CHOLESKY:
    case CX_HLO_OP_TRIANGULAR_SOLVE: batched(r, op, 2); break;
    default: break;
  }
}

// Whether all types are tensors of known sizes.
static bool is_static(const rule *r)
{
  for (size_t t = 0; t < r->n_tensors; t++) {
    const cx_hlo_any *any = &r->tensors[t]->type;
    if (any->non_tensor != NULL) return false;
    for (size_t d = 0; d < any->tensor.rank; d++) {
      if (any->tensor.dims[d] < 0) return false;
    }
  }
  return true;
}

cx_spmd_rule *cx_spmd_rule_of(cx_arena *arena, const cx_hlo_op *op)
{
  rule *r = CX_ARENA_NEW(arena, rule);
  size_t ranks = 1;
  if (r == NULL) return NULL;
  r->n_tensors = cx_hlo_op_n_types(op);
  r->tensors = CX_ARENA_ARRAY(arena, cx_hlo_value *, r->n_tensors + 1);
  r->factors = CX_ARENA_ARRAY(arena, int32_t *, r->n_tensors + 1);
  if (r->tensors == NULL || r->factors == NULL) return NULL;
  for (size_t t = 0; t < r->n_tensors; t++) {
    r->tensors[t] =
        t < op->n_operands ? op->operands[t] : &op->results[t - op->n_operands];
    const size_t rank = type_of(r, t)->rank;
    r->factors[t] = CX_ARENA_ARRAY(arena, int32_t, rank + 1);
    if (r->factors[t] == NULL) return NULL;
    for (size_t d = 0; d < rank; d++) r->factors[t][d] = -1;
    ranks += rank;
  }
  r->reduces = CX_ARENA_ARRAY(arena, bool, ranks);
  r->indexed = CX_ARENA_ARRAY(arena, bool, ranks);
  if (r->reduces == NULL || r->indexed == NULL) return NULL;
  if (is_static(r)) fill(r, op);
  return r;
}
