// spmd/rule_index: the rules of gather and scatter.
//
// Batches of indices are cut as the slices that they choose. A dimension of the
// operand that slices have whole is cut in them too. A dimension from which an
// index takes one element is an indexed factor (spmd/index.c).
#include "hlo/infer.h"
#include "spmd/factor.h"

static const cx_hlo_type *type_of(const cx_spmd_rule *r, size_t t)
{
  return &r->tensors[t]->type.tensor;
}

static bool is_indexed(cx_hlo_ints index_map, int64_t d)
{
  return cx_hlo_ints_have(index_map, d);
}

// Whether an i64 holds every index.
static bool fits_i64(const cx_hlo_type *indices)
{
  return indices->elem != CX_HLO_UI64;
}

// The index of v in the list, which has it.
static size_t index_of(cx_hlo_ints list, int64_t v)
{
  size_t i = 0;
  while (list.v[i] != v) i++;
  return i;
}

// ---- gather ----

// Each index of a cut dimension gives a value on one device and zeros on the
// others; an element of at least a byte can be added so. It is less to move
// than the operand only if few elements are gathered.
static bool may_mask(const cx_spmd_rule *r)
{
  const cx_hlo_type *x = type_of(r, 0), *y = type_of(r, 2);
  const bool bytes = cx_hlo_elem_bits(x->elem) >= 8 || x->elem == CX_HLO_I1;
  return bytes && !cx_hlo_elem_is_complex(x->elem) && fits_i64(type_of(r, 1)) &&
         cx_hlo_type_elements(y) <= cx_hlo_type_elements(x) / 2;
}

static void gather_window(cx_spmd_rule *r, const cx_hlo_op *op,
                          const cx_hlo_gather_numbers *n)
{
  const cx_hlo_ints sizes = cx_hlo_op_ints(op, CX_HLO_A_SLICE_SIZES);
  const cx_hlo_type *x = type_of(r, 0);
  size_t window = 0;
  for (int64_t d = 0; d < (int64_t)x->rank; d++) {
    if (cx_hlo_ints_have(n->operand_batch, d)) continue;
    const bool collapsed = cx_hlo_ints_have(n->collapsed, d);
    const int64_t to = collapsed ? -1 : n->offset.v[window++];
    if (to >= 0 && sizes.v[d] == x->dims[d]) {
      cx_spmd_pair(r, 0, d, 2, to, false);
    } else if (sizes.v[d] == 1 && is_indexed(n->index_map, d) && may_mask(r)) {
      r->factors[0][d] = cx_spmd_factor(r, true);
      r->indexed[r->factors[0][d]] = true;
    }
  }
}

void cx_spmd_gather_rule(cx_spmd_rule *r, const cx_hlo_op *op)
{
  const cx_hlo_gather_numbers *n =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  int64_t to = 0;
  r->combine = type_of(r, 0)->elem == CX_HLO_I1 ? CX_HLO_OP_OR : CX_HLO_OP_ADD;
  gather_window(r, op, n);
  for (int64_t d = 0; d < (int64_t)type_of(r, 1)->rank; d++) {
    if (d == n->index_vector_dim) continue;
    while (cx_hlo_ints_have(n->offset, to)) to++;
    cx_spmd_pair(r, 1, d, 2, to, false);
    if (cx_hlo_ints_have(n->indices_batch, d)) {
      const size_t i = index_of(n->indices_batch, d);
      r->factors[0][n->operand_batch.v[i]] = r->factors[2][to];
    }
    to++;
  }
}

// ---- scatter ----

typedef struct scatter_rule {
  cx_spmd_rule *r;
  const cx_hlo_scatter_numbers *n;
  size_t n_inputs;  // operands, as many updates, as many results
} scatter_rule;

static size_t updates_of(const scatter_rule *s, size_t i)
{
  return s->n_inputs + 1 + i;
}

static void put_operand(const scatter_rule *s, int64_t d, int32_t f)
{
  for (size_t i = 0; i < s->n_inputs; i++) {
    s->r->factors[i][d] = s->r->factors[2 * s->n_inputs + 1 + i][d] = f;
  }
}

static void put_updates(const scatter_rule *s, int64_t d, int32_t f)
{
  for (size_t i = 0; i < s->n_inputs; i++) {
    s->r->factors[updates_of(s, i)][d] = f;
  }
}

static void scatter_window(const scatter_rule *s)
{
  const cx_hlo_type *x = type_of(s->r, 0), *u = type_of(s->r, updates_of(s, 0));
  size_t window = 0;
  for (int64_t d = 0; d < (int64_t)x->rank; d++) {
    if (cx_hlo_ints_have(s->n->operand_batch, d)) continue;
    const bool inserted = cx_hlo_ints_have(s->n->inserted, d);
    const int64_t at = inserted ? -1 : s->n->window.v[window++];
    const bool one = inserted || u->dims[at] == 1;
    // An index other than 0 would move elements to another device's block.
    if (!inserted && u->dims[at] == x->dims[d] &&
        !is_indexed(s->n->index_map, d)) {
      const int32_t f = cx_spmd_factor(s->r, false);
      put_operand(s, d, f);
      put_updates(s, at, f);
    } else if (one && is_indexed(s->n->index_map, d) &&
               fits_i64(type_of(s->r, s->n_inputs))) {
      const int32_t f = cx_spmd_factor(s->r, false);
      put_operand(s, d, f);
      s->r->indexed[f] = true;
    }
  }
}

// Whether the results of parts of the updates can be combined.
static bool has_parts(const scatter_rule *s, const cx_hlo_op *op)
{
  const cx_hlo_op *how = cx_hlo_block_combiner(op->regions[0].first, 0);
  if (s->n_inputs != 1 || how == NULL ||
      !cx_spmd_may_repeat(how->kind, op->operands[0])) {
    return false;
  }
  s->r->combine = how->kind;
  s->r->is_light = true;
  return true;
}

void cx_spmd_scatter_rule(cx_spmd_rule *r, const cx_hlo_op *op)
{
  const scatter_rule s = {
    r, cx_hlo_op_struct(op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS), op->n_results
  };
  const bool parts = has_parts(&s, op);
  int64_t to = 0;
  scatter_window(&s);
  for (int64_t d = 0; d < (int64_t)type_of(r, s.n_inputs)->rank; d++) {
    if (d == s.n->index_vector_dim) continue;
    while (cx_hlo_ints_have(s.n->window, to)) to++;
    const bool batch = cx_hlo_ints_have(s.n->indices_batch, d);
    if (batch || parts) {
      const int32_t f = cx_spmd_factor(r, !batch);
      r->factors[s.n_inputs][d] = f;
      put_updates(&s, to, f);
      if (batch) {
        put_operand(&s, s.n->operand_batch.v[index_of(s.n->indices_batch, d)],
                    f);
      }
    }
    to++;
  }
}
