// opt/decompose: einsum by dot_general, unary_einsum by reduce and transpose,
// torch_index_select by gather.
//
// "ab,bc->ac": a letter is a dimension. A letter of both operands and the
// result is a batch dimension; one of both operands only is contracted; one of
// a single operand only is summed first. Configurations with other characters,
// or with a letter twice in one operand, are left as they are.
#include <string.h>

#include "opt/decompose.h"
#include "opt/emit.h"

#define MOST 32

typedef struct labels {
  char s[MOST];
  size_t n;
} labels;

static bool has(const labels *l, char c)
{
  return memchr(l->s, c, l->n) != NULL;
}

static int64_t where(const labels *l, char c)
{
  return (const char *)memchr(l->s, c, l->n) - l->s;
}

// The letters from *at to the end or to a stop; *at moves behind them.
static bool read_labels(cx_hlo_str text, size_t *at, labels *out)
{
  out->n = 0;
  for (; *at < text.n; ++*at) {
    const char c = text.s[*at];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == ' ') continue;
    if (!letter) return true;
    if (out->n == MOST || has(out, c)) return false;
    out->s[out->n++] = c;
  }
  return true;
}

static bool read_stop(cx_hlo_str text, size_t *at, const char *stop)
{
  const size_t n = strlen(stop);
  if (text.n - *at < n || memcmp(text.s + *at, stop, n) != 0) return false;
  *at += n;
  return true;
}

// The sum of x over the dimensions that are not in `keep`.
static cpu_opt_value sum_others(cx_hlo_builder *b, cpu_opt_value x, labels *l,
                                const labels *keep)
{
  int64_t dims[MOST];
  size_t n = 0;
  labels left = { .n = 0 };
  for (size_t i = 0; i < l->n; i++) {
    if (has(keep, l->s[i])) {
      left.s[left.n++] = l->s[i];
    } else {
      dims[n++] = (int64_t)i;
    }
  }
  *l = left;
  if (n == 0 || x == NULL) return x;
  const cx_hlo_type scalar = { x->type.tensor.elem, 0, NULL };
  return cx_hlo_reduce_with(b, CX_HLO_OP_ADD, x, cx_hlo_splat(b, scalar, 0),
                            dims, n);
}

// x with the letters `from` transposed to the order `to`.
static cpu_opt_value ordered(cx_hlo_builder *b, cpu_opt_value x,
                             const labels *from, const labels *to)
{
  int64_t permutation[MOST];
  bool same = true;
  for (size_t i = 0; i < to->n; i++) {
    permutation[i] = where(from, to->s[i]);
    same = same && permutation[i] == (int64_t)i;
  }
  return same || x == NULL ? x : cx_hlo_transpose(b, x, permutation);
}

static bool all_in(const labels *some, const labels *x, const labels *y)
{
  for (size_t i = 0; i < some->n; i++) {
    if (!has(x, some->s[i]) && !has(y, some->s[i])) return false;
  }
  return true;
}

static cpu_opt_value contracted(cpu_opt_walk *w, const cx_hlo_op *op,
                                const labels *x, const labels *y,
                                const labels *z)
{
  cx_hlo_builder *b = &w->b;
  labels both_of[2] = { *x, *y };
  cpu_opt_value v[2];
  for (int i = 0; i < 2; i++) {
    labels keep = i == 0 ? *y : *x;
    for (size_t k = 0; k < z->n && keep.n < MOST; k++) {
      if (!has(&keep, z->s[k])) keep.s[keep.n++] = z->s[k];
    }
    v[i] = sum_others(b, op->operands[i], &both_of[i], &keep);
  }
  const labels *p = &both_of[0];
  const labels *q = &both_of[1];
  int64_t lb[MOST], rb[MOST], lc[MOST], rc[MOST];
  labels made = { .n = 0 };
  size_t n_batch = 0;
  size_t n_contract = 0;
  for (size_t i = 0; i < p->n; i++) {
    if (!has(q, p->s[i])) continue;
    if (has(z, p->s[i])) {
      made.s[made.n++] = p->s[i];
      lb[n_batch] = (int64_t)i;
      rb[n_batch++] = where(q, p->s[i]);
    } else {
      lc[n_contract] = (int64_t)i;
      rc[n_contract++] = where(q, p->s[i]);
    }
  }
  for (int k = 0; k < 2; k++) {
    const labels *mine = k == 0 ? p : q;
    for (size_t i = 0; i < mine->n && made.n < MOST; i++) {
      if (!has(k == 0 ? q : p, mine->s[i])) made.s[made.n++] = mine->s[i];
    }
  }
  const cx_hlo_dot_dims dims = { lb, rb, n_batch, lc, rc, n_contract };
  cpu_opt_value r =
      cx_hlo_dot_general(b, v[0], v[1], &dims, op->results[0].type.tensor.elem);
  return ordered(b, r, &made, z);
}

void cpu_opt_einsum(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_str text = cx_hlo_op_attr(op, CX_HLO_A_EINSUM_CONFIG)->as.text;
  size_t at = 0;
  labels x, y, z;
  if (!read_labels(text, &at, &x) || !read_stop(text, &at, ",") ||
      !read_labels(text, &at, &y) || !read_stop(text, &at, "->") ||
      !read_labels(text, &at, &z) || at != text.n ||
      x.n != op->operands[0]->type.tensor.rank ||
      y.n != op->operands[1]->type.tensor.rank ||
      z.n != op->results[0].type.tensor.rank || !all_in(&z, &x, &y)) {
    return;
  }
  cpu_opt_replace(w, op, contracted(w, op, &x, &y, &z));
}

void cpu_opt_unary_einsum(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_str text = cx_hlo_op_attr(op, CX_HLO_A_EINSUM_CONFIG)->as.text;
  size_t at = 0;
  labels x, z;
  if (!read_labels(text, &at, &x) || !read_stop(text, &at, "->") ||
      !read_labels(text, &at, &z) || at != text.n ||
      x.n != op->operands[0]->type.tensor.rank ||
      z.n != op->results[0].type.tensor.rank || !all_in(&z, &x, &x)) {
    return;
  }
  cpu_opt_value sum = sum_others(&w->b, op->operands[0], &x, &z);
  cpu_opt_replace(w, op, ordered(&w->b, sum, &x, &z));
}

// result[b…, before…, i…, after…] = x[b…, before…, index[b…, i…], after…]
void cpu_opt_torch_index_select(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *index = &op->operands[1]->type.tensor;
  const int64_t dim = cx_hlo_op_int(op, CX_HLO_A_DIM);
  const int64_t batch = cx_hlo_op_int(op, CX_HLO_A_BATCH_DIMS);
  if (batch < 0 || batch > dim || dim >= (int64_t)x->rank ||
      batch > (int64_t)index->rank || x->rank > MOST || index->rank > MOST) {
    return;
  }
  int64_t offset[MOST], sizes[MOST], batches[MOST];
  size_t n_offset = 0;
  const int64_t inserted = (int64_t)index->rank - batch;
  for (int64_t i = 0; i < (int64_t)x->rank; i++) {
    const bool whole = i >= batch && i != dim;
    sizes[i] = whole ? x->dims[i] : 1;
    if (i < batch) batches[i] = i;
    if (whole) offset[n_offset++] = i < dim ? i : i - 1 + inserted;
  }
  const cx_hlo_gather_numbers numbers = {
    .offset = { offset, n_offset },
    .collapsed = { &dim, 1 },
    .operand_batch = { batches, (size_t)batch },
    .indices_batch = { batches, (size_t)batch },
    .index_map = { &dim, 1 },
    .index_vector_dim = (int64_t)index->rank,
  };
  cx_hlo_op *r = cx_hlo_build_begin(b, CX_HLO_OP_GATHER, op->operands, 2, 1, 0);
  cx_hlo_build_attr(
      b, r, CX_HLO_A_GATHER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_GATHER, &numbers));
  cx_hlo_build_ints(b, r, CX_HLO_A_SLICE_SIZES, sizes, x->rank);
  cpu_opt_replace(w, op, cx_hlo_build_end(b, r));
}
