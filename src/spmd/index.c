// spmd/index: a device's indices into its block of a dimension that is cut.
//
// An index minus the start of the block is the index into the block. A scatter
// drops what is outside of it. A gather reads any element there, and puts zero
// in its place: the sum over the devices is what one of them has read.
//   moved  = clamp(0, indices, size of the whole - 1) - start
//   inside = 0 <= moved < size of the block, for all cut dimensions
#include <string.h>

#include "hlo/infer.h"
#include "spmd/internal.h"

typedef struct indices {
  cx_spmd_state *s;
  const cx_hlo_type *type;  // the part's, before it is i64
  cx_hlo_ints map;          // the operand's dimension for each component
  int64_t vector_dim;
  const cx_hlo_type *operand;  // the whole
  const cx_spmd_axes *cut;     // of each component; 0: it stays
} indices;

static const int64_t none[1] = { 0 };

// Component i of each index vector is value i.
static cx_hlo_value *spread(const indices *x, cx_hlo_value *v)
{
  cx_hlo_builder *b = &x->s->b;
  const bool scalar = x->vector_dim == (int64_t)x->type->rank;
  if (scalar) v = cx_hlo_reshape(b, v, NULL, 0);
  return cx_hlo_broadcast_in_dim(b, v, x->type->dims, x->type->rank,
                                 scalar ? none : &x->vector_dim);
}

static int64_t size_of(const indices *x, size_t i)
{
  return x->operand->dims[x->map.v[i]];
}

static int64_t block_of(const indices *x, size_t i)
{
  return size_of(x, i) / cx_spmd_parts(&x->s->mesh, x->cut[i]);
}

typedef int64_t bound(const indices *x, size_t i);
static int64_t last_of(const indices *x, size_t i)
{
  return size_of(x, i) - 1;
}
static int64_t end_of(const indices *x, size_t i)
{
  return block_of(x, i) - 1;
}
static int64_t zero(const indices *x, size_t i)
{
  (void)x;
  (void)i;
  return 0;
}

// The bounds of the components that are cut, `other` for the others.
static cx_hlo_value *bounds(const indices *x, bound *of, int64_t other)
{
  const int64_t n = (int64_t)x->map.n;
  const cx_hlo_type type = { CX_HLO_I64, 1, &n };
  int64_t *v = CX_ARENA_ARRAY(&x->s->arena, int64_t, x->map.n + 1);
  if (v == NULL) {
    cx_hlo_builder_fail(&x->s->b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < x->map.n; i++) {
    v[i] = x->cut[i] != 0 ? of(x, i) : other;
  }
  return spread(x, cx_hlo_constant(&x->s->b, type, v, x->map.n * sizeof *v));
}

static cx_hlo_value *starts(const indices *x)
{
  cx_hlo_builder *b = &x->s->b;
  const int64_t one = 1;
  const cx_hlo_type scalar = { CX_HLO_I64, 0, NULL };
  cx_hlo_value **v = CX_ARENA_ARRAY(&x->s->arena, cx_hlo_value *, x->map.n + 1);
  if (v == NULL) {
    cx_hlo_builder_fail(b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < x->map.n; i++) {
    cx_hlo_value *start = x->cut[i] != 0
                              ? cx_spmd_start(x->s, x->cut[i], block_of(x, i))
                              : cx_hlo_splat_int(b, scalar, 0);
    v[i] = cx_hlo_reshape(b, start, &one, 1);
  }
  return spread(x,
                x->map.n == 1 ? v[0] : cx_hlo_concatenate(b, v, x->map.n, 0));
}

// Of each index vector, whether it is in the block.
static cx_hlo_value *inside(const indices *x, cx_hlo_value *moved)
{
  cx_hlo_builder *b = &x->s->b;
  const cx_hlo_type flag = { CX_HLO_I1, 0, NULL };
  cx_hlo_value *from =
      cx_hlo_compare(b, CX_HLO_GE, moved, bounds(x, zero, INT64_MIN));
  cx_hlo_value *to =
      cx_hlo_compare(b, CX_HLO_LE, moved, bounds(x, end_of, INT64_MAX));
  cx_hlo_value *both = cx_hlo_binary(b, CX_HLO_OP_AND, from, to);
  if (x->vector_dim == (int64_t)x->type->rank) return both;
  return cx_hlo_reduce_with(b, CX_HLO_OP_AND, both,
                            cx_hlo_splat_int(b, flag, 1), &x->vector_dim, 1);
}

// Which components are cut. False: none, or there is no memory.
static bool cut_of(indices *x, const cx_spmd_rule *r, const cx_spmd_axes *axes)
{
  cx_spmd_axes *cut = CX_ARENA_ARRAY(&x->s->arena, cx_spmd_axes, x->map.n + 1);
  bool any = false;
  if (cut == NULL) {
    cx_hlo_builder_fail(&x->s->b, cx_out_of_memory());
    return false;
  }
  for (size_t i = 0; i < x->map.n; i++) {
    const int32_t f = r->factors[0][x->map.v[i]];
    cut[i] = f >= 0 && r->indexed[f] ? axes[f] : 0;
    any = any || cut[i] != 0;
  }
  x->cut = cut;
  return any;
}

// ---- gather and scatter ----

static indices indices_of(cx_spmd_state *s, const cx_hlo_op *op,
                          const cx_hlo_value *at, cx_hlo_ints map,
                          int64_t vector_dim)
{
  return (indices){ .s = s,
                    .type = cx_hlo_value_type(at),
                    .map = map,
                    .vector_dim = vector_dim,
                    .operand = &op->operands[0]->type.tensor };
}

void cx_spmd_move_scatter(cx_spmd_state *s, const cx_hlo_op *op,
                          const cx_spmd_rule *r, const cx_spmd_axes *axes,
                          cx_hlo_value **operands)
{
  const cx_hlo_scatter_numbers *n =
      cx_hlo_op_struct(op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS);
  cx_hlo_value **at = &operands[op->n_results];
  indices x = indices_of(s, op, *at, n->index_map, n->index_vector_dim);
  if (*at == NULL || !cut_of(&x, r, axes)) return;
  *at = cx_hlo_binary(&s->b, CX_HLO_OP_SUBTRACT,
                      cx_hlo_convert(&s->b, *at, CX_HLO_I64), starts(&x));
}

cx_hlo_value *cx_spmd_move_gather(cx_spmd_state *s, const cx_hlo_op *op,
                                  const cx_spmd_rule *r,
                                  const cx_spmd_axes *axes,
                                  cx_hlo_value **operands)
{
  const cx_hlo_gather_numbers *n =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  cx_hlo_value **at = &operands[1];
  indices x = indices_of(s, op, *at, n->index_map, n->index_vector_dim);
  if (*at == NULL || !cut_of(&x, r, axes)) return NULL;
  cx_hlo_value *known = cx_hlo_clamp(&s->b, bounds(&x, zero, INT64_MIN),
                                     cx_hlo_convert(&s->b, *at, CX_HLO_I64),
                                     bounds(&x, last_of, INT64_MAX));
  *at = cx_hlo_binary(&s->b, CX_HLO_OP_SUBTRACT, known, starts(&x));
  return inside(&x, *at);
}

// The integers of the same bits, which add to the same bits: -0 stays. An i1 is
// as it is.
static cx_hlo_type bits_type(const cx_hlo_type *t)
{
  cx_hlo_type bits = *t;
  switch (cx_hlo_elem_bits(t->elem)) {
    case 8: bits.elem = CX_HLO_UI8; break;
    case 16: bits.elem = CX_HLO_UI16; break;
    case 32: bits.elem = CX_HLO_UI32; break;
    case 64: bits.elem = CX_HLO_UI64; break;
    default: break;
  }
  return bits;
}

cx_hlo_value *cx_spmd_keep_inside(cx_spmd_state *s, const cx_hlo_op *op,
                                  cx_hlo_value *v, cx_hlo_value *is_inside)
{
  const cx_hlo_gather_numbers *n =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cx_hlo_type *t = cx_hlo_value_type(v);
  int64_t *at = CX_ARENA_ARRAY(&s->arena, int64_t, t->rank + 1);
  size_t count = 0;
  if (at == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  for (int64_t d = 0; d < (int64_t)t->rank; d++) {
    if (!cx_hlo_ints_have(n->offset, d)) at[count++] = d;
  }
  cx_hlo_value *all =
      cx_hlo_broadcast_in_dim(&s->b, is_inside, t->dims, t->rank, at);
  const cx_hlo_type bits = bits_type(t);
  return cx_hlo_select(&s->b, all, cx_hlo_bitcast_convert(&s->b, v, bits),
                       cx_hlo_splat_int(&s->b, bits, 0));
}
