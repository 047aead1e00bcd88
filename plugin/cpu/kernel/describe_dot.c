// kernel/describe_dot: the description of a dot_general, without its dimension
// numbers.
//
// Batch and contracted dimensions are lists of pairs, the others belong to one
// operand. Neighbours that are one dimension in the memory of every tensor that
// has them are merged, so that most are one matrix product. The order of the
// contracted dimensions is free: the left or the right operand's, whichever
// leaves fewer elements to be copied.
#include "kernel/internal.h"

bool cpu_kernel_pairs_add(cpu_kernel_pairs *l, int64_t size, int64_t lhs,
                          int64_t rhs)
{
  if (size == 1) return true;
  if (l->n > 0 && l->lhs[l->n - 1] == lhs * size &&
      l->rhs[l->n - 1] == rhs * size) {
    l->size[l->n - 1] *= size;
    l->lhs[l->n - 1] = lhs;
    l->rhs[l->n - 1] = rhs;
    return true;
  }
  if (l->n == CPU_KERNEL_VIEW_DIMS) return false;
  l->size[l->n] = size;
  l->lhs[l->n] = lhs;
  l->rhs[l->n] = rhs;
  l->n++;
  return true;
}

static void dense_strides(const cx_hlo_type *t, int64_t *strides)
{
  int64_t n = 1;
  for (size_t i = t->rank; i-- > 0;) {
    strides[i] = n;
    n *= t->dims[i];
  }
}

static bool has(cx_hlo_ints dims, size_t dim)
{
  for (size_t i = 0; i < dims.n; i++) {
    if (dims.v[i] == (int64_t)dim) return true;
  }
  return false;
}

// The contracted dimensions, sorted by falling strides of one operand.
static bool list_inner(const cx_hlo_type *const t[2],
                       int64_t strides[2][CPU_KERNEL_VIEW_DIMS],
                       const cx_hlo_dot_numbers *d, int side,
                       cpu_kernel_pairs *out)
{
  size_t order[CPU_KERNEL_VIEW_DIMS];
  const int64_t *of = side == 0 ? d->lhs_contract.v : d->rhs_contract.v;
  for (size_t i = 0; i < d->lhs_contract.n; i++) {
    size_t at = i;
    while (at > 0 && of[order[at - 1]] > of[i]) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = i;
  }
  out->n = 0;
  for (size_t i = 0; i < d->lhs_contract.n; i++) {
    int64_t l = d->lhs_contract.v[order[i]], r = d->rhs_contract.v[order[i]];
    if (!cpu_kernel_pairs_add(out, t[0]->dims[l], strides[0][l],
                              strides[1][r])) {
      return false;
    }
  }
  return true;
}

// Whether the list is one dimension in the memory of one operand.
static bool is_one(const cpu_kernel_pairs *l, const int64_t *strides)
{
  for (int64_t i = 1; i < l->n; i++) {
    if (strides[i - 1] != strides[i] * l->size[i]) return false;
  }
  return true;
}

bool cpu_kernel_pairs_put(const cpu_kernel_pairs *l, int64_t *n, int64_t *size,
                          int64_t *lhs, int64_t *rhs)
{
  if (l->n > CPU_KERNEL_DOT_DIMS) return false;
  *n = l->n;
  for (int64_t i = 0; i < l->n; i++) {
    size[i] = l->size[i];
    if (lhs != NULL) lhs[i] = l->lhs[i];
    if (rhs != NULL) rhs[i] = l->rhs[i];
  }
  return true;
}

static bool list_free(const cx_hlo_type *t, const int64_t *strides,
                      cx_hlo_ints batch, cx_hlo_ints contract,
                      cpu_kernel_pairs *out)
{
  for (size_t i = 0; i < t->rank; i++) {
    if (has(batch, i) || has(contract, i)) continue;
    if (!cpu_kernel_pairs_add(out, t->dims[i], strides[i], strides[i]))
      return false;
  }
  return true;
}

static bool describe(const cx_hlo_type *const t[2], const cx_hlo_dot_numbers *d,
                     cpu_kernel_dot_desc *out)
{
  int64_t strides[2][CPU_KERNEL_VIEW_DIMS];
  if (t[0]->rank > CPU_KERNEL_VIEW_DIMS || t[1]->rank > CPU_KERNEL_VIEW_DIMS)
    return false;
  dense_strides(t[0], strides[0]);
  dense_strides(t[1], strides[1]);
  cpu_kernel_pairs batch = { 0 }, rows = { 0 }, columns = { 0 }, inner, other;
  for (size_t i = 0; i < d->lhs_batch.n; i++) {
    int64_t l = d->lhs_batch.v[i], r = d->rhs_batch.v[i];
    if (!cpu_kernel_pairs_add(&batch, t[0]->dims[l], strides[0][l],
                              strides[1][r])) {
      return false;
    }
  }
  if (!list_inner(t, strides, d, 0, &inner) ||
      !list_inner(t, strides, d, 1, &other)) {
    return false;
  }
  // In its own order the left operand needs no copy for these dimensions.
  if (!is_one(&inner, inner.rhs) &&
      (is_one(&other, other.lhs) ||
       cx_hlo_type_elements(t[0]) < cx_hlo_type_elements(t[1]))) {
    inner = other;
  }
  return list_free(t[0], strides[0], d->lhs_batch, d->lhs_contract, &rows) &&
         list_free(t[1], strides[1], d->rhs_batch, d->rhs_contract, &columns) &&
         cpu_kernel_pairs_put(&batch, &out->n_batch, out->batch, out->lhs_batch,
                              out->rhs_batch) &&
         cpu_kernel_pairs_put(&rows, &out->n_rows, out->rows, out->lhs_rows,
                              NULL) &&
         cpu_kernel_pairs_put(&columns, &out->n_columns, out->columns, NULL,
                              out->rhs_columns) &&
         cpu_kernel_pairs_put(&inner, &out->n_inner, out->inner, out->lhs_inner,
                              out->rhs_inner);
}

bool cpu_kernel_dot_describe(const cx_hlo_op *op, cpu_kernel_dot_desc *out)
{
  const cx_hlo_type *const t[2] = { &op->operands[0]->type.tensor,
                                    &op->operands[1]->type.tensor };
  const cx_hlo_type *r = &op->results[0].type.tensor;
  cpu_kernel_math math;
  bool complex;
  *out = (cpu_kernel_dot_desc){ .kind = CPU_KERNEL_DOT,
                                .types = { t[0]->elem, t[1]->elem, r->elem } };
  if (!cpu_kernel_math_of(out->types, &math, &complex) ||
      !cpu_kernel_fits(t[0]) || !cpu_kernel_fits(t[1]) || !cpu_kernel_fits(r)) {
    return false;
  }
  if (op->kind == CX_HLO_OP_DOT_GENERAL) {
    return describe(t, cx_hlo_op_struct(op, CX_HLO_A_DOT_DIMENSION_NUMBERS),
                    out);
  }
  static const int64_t zero[1] = { 0 };
  const int64_t last[1] = { (int64_t)t[0]->rank - 1 };
  const cx_hlo_dot_numbers plain = { .lhs_contract = { last, 1 },
                                     .rhs_contract = { zero, 1 } };
  return describe(t, &plain, out);
}
