// jit/gather: the operation gather, by element: the start index of each
// dimension is read from the indices, held within the operand, and the offset
// in the slice is added.
#include "hlo/infer.h"
#include "jit/inside.h"

uint32_t cpu_jit_gather_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  (void)env;
  const size_t rank = cpu_jit_type(&op->results[0])->rank;
  return ((uint32_t)1 << rank) - 1;
}

// The location in the indices of component k of the index vector.
static const cpu_jit_loc *indices_loc(cpu_jit_env *env, const cx_hlo_op *op,
                                      const cpu_jit_loc *at, int64_t k)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cx_hlo_type *t = cpu_jit_type(op->operands[1]);
  cpu_jit_loc out = { .mask = at->mask, .mask_level = at->mask_level };
  int batch = 0;
  for (size_t d = 0; d < t->rank; d++) {
    if ((int64_t)d == g->index_vector_dim) {
      cpu_jit_loc_push(&out, 1, t->dims[d], cpu_jit_ix_const(env, k));
      continue;
    }
    while (batch < at->n && cpu_jit_position(g->offset, batch) >= 0) batch++;
    cpu_jit_loc_push(&out, 1, t->dims[d], at->part[batch++].ix);
  }
  return cpu_jit_loc_of(env, &out);
}

// The result's dimension that runs along dimension d of the indices.
static int batch_dim(const cx_hlo_gather_numbers *g, int64_t d, int rank)
{
  int64_t nth = d > g->index_vector_dim ? d - 1 : d;
  for (int i = 0; i < rank; i++) {
    if (cpu_jit_position(g->offset, i) >= 0) continue;
    if (nth-- == 0) return i;
  }
  return 0;
}

cpu_jit_val cpu_jit_gather_emit(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cx_hlo_type *from = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *to = cpu_jit_type(&op->results[0]);
  const cx_hlo_ints sizes = cx_hlo_op_ints(op, CX_HLO_A_SLICE_SIZES);
  cpu_jit_loc at;
  cpu_jit_loc_cut(env, to, p, cpu_jit_gather_cuts(env, op), &at);
  cpu_jit_loc out = { .mask = p->mask, .mask_level = p->mask_level };
  size_t next = 0;  // of the offset dimensions
  for (size_t d = 0; d < from->rank; d++) {
    cpu_jit_ix ix = cpu_jit_ix_const(env, 0);
    const int batch = cpu_jit_position(g->operand_batch, (int64_t)d);
    const int k = cpu_jit_position(g->index_map, (int64_t)d);
    if (batch >= 0) {
      ix = at.part[batch_dim(g, g->indices_batch.v[batch], (int)to->rank)].ix;
    } else if (cpu_jit_position(g->collapsed, (int64_t)d) < 0) {
      ix = at.part[g->offset.v[next++]].ix;
    }
    if (k >= 0 && from->dims[d] > sizes.v[d]) {
      ix = cpu_jit_ix_add(env, ix,
                          cpu_jit_start_index(env, op->operands[1],
                                              indices_loc(env, op, &at, k),
                                              from->dims[d] - sizes.v[d]));
    }
    cpu_jit_loc_push(&out, 1, from->dims[d], ix);
  }
  return cpu_jit_emit(env, op->operands[0], cpu_jit_loc_of(env, &out));
}
