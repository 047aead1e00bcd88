// hlo/build: operations in which all replicas take part. They have no channel,
// so groups are groups of replicas. StableHLO 1.0 and all compilers have this
// mode.
#include "hlo/build_op.h"

static void add_groups(cx_hlo_builder *b, cx_hlo_op *op, const cx_hlo_groups *g)
{
  if (op == NULL) return;
  cx_hlo_build_attr(
      b, op, CX_HLO_A_REPLICA_GROUPS,
      cx_hlo_attr_matrix(b->module, g->ids, g->groups, g->members));
}

// Begins an operation with a region that combines two scalars of the type of x.
static cx_hlo_op *begin_reducing(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                 cx_hlo_op_kind how, cx_hlo_value *x,
                                 const cx_hlo_groups *groups)
{
  const cx_hlo_elem e = cx_hlo_value_type(x)->elem;
  const cx_hlo_elem elems[] = { e, e };
  cx_hlo_op *op = cx_hlo_build_begin(b, kind, &x, 1, 1, 1);
  add_groups(b, op, groups);
  cx_hlo_build_body(b, op, 0, elems, 2, 1, cx_hlo_build_one, &how);
  return op;
}

cx_hlo_value *cx_hlo_all_reduce(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                cx_hlo_value *x, const cx_hlo_groups *groups)
{
  return cx_hlo_build_end(
      b, begin_reducing(b, CX_HLO_OP_ALL_REDUCE, kind, x, groups));
}

cx_hlo_value *cx_hlo_reduce_scatter(cx_hlo_builder *b, cx_hlo_op_kind kind,
                                    cx_hlo_value *x, int64_t dim,
                                    const cx_hlo_groups *groups)
{
  cx_hlo_op *op = begin_reducing(b, CX_HLO_OP_REDUCE_SCATTER, kind, x, groups);
  cx_hlo_build_int(b, op, CX_HLO_A_SCATTER_DIMENSION, dim);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_all_gather(cx_hlo_builder *b, cx_hlo_value *x, int64_t dim,
                                const cx_hlo_groups *groups)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_ALL_GATHER, &x, 1, 1, 0);
  cx_hlo_build_int(b, op, CX_HLO_A_ALL_GATHER_DIM, dim);
  add_groups(b, op, groups);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_all_to_all(cx_hlo_builder *b, cx_hlo_value *x,
                                int64_t split_dim, int64_t concat_dim,
                                const cx_hlo_groups *groups)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_ALL_TO_ALL, &x, 1, 1, 0);
  cx_hlo_build_int(b, op, CX_HLO_A_SPLIT_DIMENSION, split_dim);
  cx_hlo_build_int(b, op, CX_HLO_A_CONCAT_DIMENSION, concat_dim);
  cx_hlo_build_int(b, op, CX_HLO_A_SPLIT_COUNT, (int64_t)groups->members);
  add_groups(b, op, groups);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_collective_permute(cx_hlo_builder *b, cx_hlo_value *x,
                                        const int64_t *pairs, size_t n_pairs)
{
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_COLLECTIVE_PERMUTE, &x, 1, 1, 0);
  if (op != NULL) {
    cx_hlo_build_attr(b, op, CX_HLO_A_SOURCE_TARGET_PAIRS,
                      cx_hlo_attr_matrix(b->module, pairs, n_pairs, 2));
  }
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_replica_id(cx_hlo_builder *b)
{
  return cx_hlo_build_end(
      b, cx_hlo_build_begin(b, CX_HLO_OP_REPLICA_ID, NULL, 0, 1, 0));
}
