// hlo/infer: dot products and convolutions.
//
// The element type of the result may be wider than that of the operands, as i32
// for two of i8. So the rules take the declared one, and that of the operands
// where none is declared.
#include "hlo/infer.h"

#include <string.h>

static calx_status *contracted_elem(const cx_hlo_infer *in, cx_hlo_elem *out)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *y = cx_hlo_operand(in, 1);
  *out = in->results[0].tensor.elem;
  if (*out == CX_HLO_INVALID) {
    *out = x->elem;
    if (y->elem != x->elem) {
      return cx_hlo_bad(in,
                        "operands have different element types: lhs %s, "
                        "rhs %s",
                        CX_HLO_SHAPE(x), CX_HLO_SHAPE(y));
    }
  }
  const bool complex = cx_hlo_elem_is_complex(x->elem);
  if (cx_hlo_elem_class(*out) == 0 || cx_hlo_elem_is_complex(*out) != complex ||
      cx_hlo_elem_is_complex(y->elem) != complex) {
    return cx_hlo_bad(in, "lhs %s and rhs %s do not make %s", CX_HLO_SHAPE(x),
                      CX_HLO_SHAPE(y), cx_hlo_elem_name(*out));
  }
  return NULL;
}

static calx_status *check_precisions(const cx_hlo_infer *in)
{
  const cx_hlo_attr *p = cx_hlo_op_attr(in->op, CX_HLO_A_PRECISION_CONFIG);
  if (p == NULL || p->as.list.n == 2 || p->as.list.n == 0) return NULL;
  return cx_hlo_bad(in, "precision_config has %zu values, it needs 2",
                    p->as.list.n);
}

// ---- dots ----

static calx_status *check_dot_dims(const cx_hlo_infer *in,
                                   const cx_hlo_dot_numbers *d)
{
  const cx_hlo_ints batch[2] = { d->lhs_batch, d->rhs_batch };
  const cx_hlo_ints contract[2] = { d->lhs_contract, d->rhs_contract };
  static const char *const names[2][2] = {
    { "lhs_batching_dimensions", "lhs_contracting_dimensions" },
    { "rhs_batching_dimensions", "rhs_contracting_dimensions" }
  };
  for (size_t s = 0; s < 2; s++) {
    const size_t rank = cx_hlo_operand(in, s)->rank;
    CALX_TRY(cx_hlo_need_dims(in, names[s][0], batch[s], rank));
    CALX_TRY(cx_hlo_need_dims(in, names[s][1], contract[s], rank));
    for (size_t i = 0; i < batch[s].n; i++) {
      if (!cx_hlo_ints_have(contract[s], batch[s].v[i])) continue;
      return cx_hlo_bad(in, "dimension %lld is in both %s and %s",
                        (long long)batch[s].v[i], names[s][0], names[s][1]);
    }
  }
  return NULL;
}

// Checks pairs of dimensions, which must have the same size.
static calx_status *check_dot_pairs(const cx_hlo_infer *in, const char *what,
                                    cx_hlo_ints lhs, cx_hlo_ints rhs)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *y = cx_hlo_operand(in, 1);
  if (lhs.n != rhs.n) {
    return cx_hlo_bad(in, "%zu %s dimensions of lhs, but %zu of rhs", lhs.n,
                      what, rhs.n);
  }
  for (size_t i = 0; i < lhs.n; i++) {
    const int64_t a = x->dims[lhs.v[i]];
    const int64_t b = y->dims[rhs.v[i]];
    if (a == b) continue;
    return cx_hlo_bad(in, "%s sizes differ: %lld of lhs %s, %lld of rhs %s",
                      what, (long long)a, CX_HLO_SHAPE(x), (long long)b,
                      CX_HLO_SHAPE(y));
  }
  return NULL;
}

// Appends the sizes of the other dimensions; returns the new count.
static size_t add_free(const cx_hlo_type *x, cx_hlo_ints batch,
                       cx_hlo_ints contract, int64_t *dims, size_t n)
{
  for (size_t i = 0; i < x->rank; i++) {
    if (cx_hlo_ints_have(batch, (int64_t)i) ||
        cx_hlo_ints_have(contract, (int64_t)i)) {
      continue;
    }
    dims[n++] = x->dims[i];
  }
  return n;
}

calx_status *cx_hlo_infer_dot_general(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *y = cx_hlo_operand(in, 1);
  const cx_hlo_dot_numbers *d =
      cx_hlo_op_struct(in->op, CX_HLO_A_DOT_DIMENSION_NUMBERS);
  CALX_TRY(check_precisions(in));
  CALX_TRY(check_dot_dims(in, d));
  CALX_TRY(check_dot_pairs(in, "batching", d->lhs_batch, d->rhs_batch));
  CALX_TRY(
      check_dot_pairs(in, "contracting", d->lhs_contract, d->rhs_contract));
  cx_hlo_elem elem;
  CALX_TRY(contracted_elem(in, &elem));
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, x->rank + y->rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  size_t n = 0;
  for (; n < d->lhs_batch.n; n++) dims[n] = x->dims[d->lhs_batch.v[n]];
  n = add_free(x, d->lhs_batch, d->lhs_contract, dims, n);
  n = add_free(y, d->rhs_batch, d->rhs_contract, dims, n);
  return cx_hlo_result(in, 0, elem, n, dims);
}

calx_status *cx_hlo_infer_dot(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *y = cx_hlo_operand(in, 1);
  CALX_TRY(check_precisions(in));
  if (x->rank < 1 || x->rank > 2 || y->rank < 1 || y->rank > 2 ||
      x->dims[x->rank - 1] != y->dims[0]) {
    return cx_hlo_bad(in, "%s and %s are no vectors or matrices that fit",
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(y));
  }
  cx_hlo_elem elem;
  CALX_TRY(contracted_elem(in, &elem));
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, 2);
  if (dims == NULL) return cx_out_of_memory();
  size_t n = 0;
  if (x->rank == 2) dims[n++] = x->dims[0];
  if (y->rank == 2) dims[n++] = y->dims[1];
  return cx_hlo_result(in, 0, elem, n, dims);
}

// ---- convolution ----

// Every dimension of input, kernel or output occurs once among the two named
// dimensions and the spatial ones.
static calx_status *check_conv_tensor(const cx_hlo_infer *in, const char *what,
                                      int64_t first, int64_t second,
                                      cx_hlo_ints spatial, size_t rank)
{
  int64_t *all = CX_ARENA_ARRAY(in->arena, int64_t, spatial.n + 2);
  if (all == NULL) return cx_out_of_memory();
  all[0] = first;
  all[1] = second;
  if (spatial.n != 0) memcpy(all + 2, spatial.v, spatial.n * sizeof *all);
  if (spatial.n + 2 != rank) {
    return cx_hlo_bad(in,
                      "dimension_numbers name %zu dimensions of the %s, "
                      "its rank is %zu",
                      spatial.n + 2, what, rank);
  }
  return cx_hlo_need_dims(in, what, (cx_hlo_ints){ all, rank }, rank);
}

static calx_status *check_conv_numbers(const cx_hlo_infer *in,
                                       const cx_hlo_conv_numbers *c)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *k = cx_hlo_operand(in, 1);
  if (x->rank != k->rank || x->rank < 2) {
    return cx_hlo_bad(in, "ranks must be equal and at least 2, got %s and %s",
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(k));
  }
  CALX_TRY(check_conv_tensor(in, "input", c->input_batch, c->input_feature,
                             c->input_spatial, x->rank));
  CALX_TRY(check_conv_tensor(in, "kernel", c->kernel_input, c->kernel_output,
                             c->kernel_spatial, x->rank));
  return check_conv_tensor(in, "output", c->output_batch, c->output_feature,
                           c->output_spatial, x->rank);
}

static calx_status *check_conv_groups(const cx_hlo_infer *in,
                                      const cx_hlo_conv_numbers *c)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *k = cx_hlo_operand(in, 1);
  const long long features = x->dims[c->input_feature];
  const long long batch = x->dims[c->input_batch];
  const long long inputs = k->dims[c->kernel_input];
  const long long outputs = k->dims[c->kernel_output];
  const long long fg = cx_hlo_op_int(in->op, CX_HLO_A_FEATURE_GROUP_COUNT);
  const long long bg = cx_hlo_op_int(in->op, CX_HLO_A_BATCH_GROUP_COUNT);
  if (fg < 1 || bg < 1 || (fg > 1 && bg > 1)) {
    return cx_hlo_bad(in,
                      "feature_group_count %lld and batch_group_count %lld "
                      "must be positive, and one of them 1",
                      fg, bg);
  }
  if (features % fg != 0 || features / fg != inputs) {
    return cx_hlo_bad(in,
                      "input features %lld of %s in %lld groups do not fit "
                      "the %lld of kernel %s",
                      features, CX_HLO_SHAPE(x), fg, inputs, CX_HLO_SHAPE(k));
  }
  if (outputs % fg != 0 || outputs % bg != 0 || batch % bg != 0) {
    return cx_hlo_bad(in,
                      "output features %lld or batch %lld cannot be split "
                      "into %lld groups",
                      outputs, batch, fg > 1 ? fg : bg);
  }
  return NULL;
}

// The padding of a dynamic_conv is its last operand; *out is NULL where that is
// no constant.
static calx_status *conv_padding(const cx_hlo_infer *in, size_t n,
                                 const cx_hlo_elements **out)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(in->op, CX_HLO_A_PADDING);
  *out = attr == NULL ? NULL : &attr->as.elements;
  if (in->op->kind == CX_HLO_OP_CONVOLUTION) {
    return cx_hlo_need_padding(in, n);
  }
  const cx_hlo_type *t = cx_hlo_operand(in, 2);
  if (t->rank != 2 || t->dims[0] != (int64_t)n || t->dims[1] != 2 ||
      !cx_hlo_elem_is_int(t->elem)) {
    return cx_hlo_bad(in, "padding must be %zu pairs of integers, got %s", n,
                      CX_HLO_SHAPE(t));
  }
  *out = cx_hlo_literal_of(in->op->operands[2]);
  return NULL;
}

// The size of the result along spatial dimension i.
static calx_status *conv_size(const cx_hlo_infer *in,
                              const cx_hlo_conv_numbers *c, size_t i,
                              const cx_hlo_elements *padding, int64_t *out)
{
  const int64_t d = c->output_spatial.v[i];
  if (in->op->kind == CX_HLO_OP_DYNAMIC_CONV && padding == NULL) {
    const cx_hlo_type *to = &in->results[0].tensor;
    CALX_TRY(cx_hlo_need_dim(in, "the result", d, to->rank));
    *out = to->dims[d];
    return NULL;
  }
  const cx_hlo_window_dim w = {
    .size = cx_hlo_operand(in, 1)->dims[c->kernel_spatial.v[i]],
    .stride = cx_hlo_op_int_at(in->op, CX_HLO_A_WINDOW_STRIDES, i),
    .base_dilation = cx_hlo_op_int_at(in->op, CX_HLO_A_LHS_DILATION, i),
    .dilation = cx_hlo_op_int_at(in->op, CX_HLO_A_RHS_DILATION, i),
    .low = padding == NULL ? 0 : cx_hlo_elements_int(padding, 2 * i),
    .high = padding == NULL ? 0 : cx_hlo_elements_int(padding, 2 * i + 1),
  };
  const int64_t size = cx_hlo_operand(in, 0)->dims[c->input_spatial.v[i]];
  return cx_hlo_windowed(in, i, size, &w, out);
}

calx_status *cx_hlo_infer_convolution(cx_hlo_infer *in)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(in->op);
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_elements *padding = NULL;
  CALX_TRY(check_precisions(in));
  CALX_TRY(check_conv_numbers(in, c));
  CALX_TRY(check_conv_groups(in, c));
  const size_t n = c->input_spatial.n;
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_WINDOW_STRIDES, n));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_LHS_DILATION, n));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_RHS_DILATION, n));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_WINDOW_REVERSAL, n));
  CALX_TRY(conv_padding(in, n, &padding));
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, n + 2);
  if (dims == NULL) return cx_out_of_memory();
  dims[c->output_batch] = x->dims[c->input_batch] /
                          cx_hlo_op_int(in->op, CX_HLO_A_BATCH_GROUP_COUNT);
  dims[c->output_feature] = cx_hlo_operand(in, 1)->dims[c->kernel_output];
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(conv_size(in, c, i, padding, &dims[c->output_spatial.v[i]]));
  }
  cx_hlo_elem elem;
  CALX_TRY(contracted_elem(in, &elem));
  return cx_hlo_result(in, 0, elem, n + 2, dims);
}
