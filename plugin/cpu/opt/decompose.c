// opt/decompose: replaces operations that neither the jit nor a kernel
// implements by those that one of them does.
#include "opt/decompose.h"

#include <string.h>

#include "opt/passes.h"

// ---- contractions and shapes ----

static void visit_dot(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const int64_t last = (int64_t)op->operands[0]->type.tensor.rank - 1;
  const int64_t first = 0;
  const cx_hlo_dot_numbers numbers = { .lhs_contract = { &last, 1 },
                                       .rhs_contract = { &first, 1 } };
  cx_hlo_op *r =
      cx_hlo_build_begin(b, CX_HLO_OP_DOT_GENERAL, op->operands, 2, 1, 0);
  cx_hlo_build_attr(b, r, CX_HLO_A_DOT_DIMENSION_NUMBERS,
                    cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_DOT, &numbers));
  cpu_opt_keep_attr(b, r, op, CX_HLO_A_PRECISION_CONFIG);
  cx_hlo_build_declare(b, r, 0, &op->results[0].type.tensor);
  cpu_opt_replace(w, op, cx_hlo_build_end(b, r));
}

static void visit_broadcast(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const size_t rank = op->operands[0]->type.tensor.rank;
  int64_t *at = cpu_opt_list(w, rank);
  if (at == NULL) return;
  for (size_t i = 0; i < rank; i++) at[i] = (int64_t)(to->rank - rank + i);
  cpu_opt_replace(w, op, cpu_opt_broadcast(&w->b, op->operands[0], to, at));
}

static void visit_dimension_size(cpu_opt_walk *w, cx_hlo_op *op)
{
  const int64_t d = cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  cpu_opt_replace(w, op,
                  cx_hlo_splat_int(&w->b, op->results[0].type.tensor,
                                   op->operands[0]->type.tensor.dims[d]));
}

// Scalar operands of select and clamp are broadcast to the result's shape.
static void visit_scalars(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_type *to = &op->results[0].type.tensor;
  if (to->rank == 0) return;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->type.tensor.rank != 0) continue;
    cx_hlo_value *wide = cpu_opt_broadcast(&w->b, op->operands[i], to, NULL);
    if (wide == NULL) return;
    op->operands[i] = wide;
    w->changed = true;
  }
}

// ---- devices ----

static void visit_cross_replica_sum(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_elem e = op->operands[0]->type.tensor.elem;
  const cx_hlo_elem elems[] = { e, e };
  cx_hlo_op_kind sum = CX_HLO_OP_ADD;
  cx_hlo_op *r =
      cx_hlo_build_begin(b, CX_HLO_OP_ALL_REDUCE, op->operands, 1, 1, 1);
  cx_hlo_build_body(b, r, 0, elems, 2, 1, cx_hlo_build_one, &sum);
  cpu_opt_keep_attr(b, r, op, CX_HLO_A_REPLICA_GROUPS);
  cpu_opt_replace(w, op, cx_hlo_build_end(b, r));
}

// What JAX writes for a partitioner; on one device it is an identity.
static void visit_custom_call(cpu_opt_walk *w, cx_hlo_op *op)
{
  static const char *const identities[] = {
    "Sharding",         "SPMDFullToShardShape",      "SPMDShardToFullShape",
    "MoveToHost",       "annotate_device_placement", "MoveToDevice",
    "LayoutConstraint", "xla.sdy.FuncResultSharding"
  };
  const cx_hlo_str name =
      cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME)->as.text;
  if (op->n_operands != 1 || op->n_results != 1 ||
      !cx_hlo_any_equal(&op->operands[0]->type, &op->results[0].type)) {
    return;
  }
  for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
    if (cx_hlo_str_equal(name, identities[i])) {
      cpu_opt_replace(w, op, op->operands[0]);
    }
  }
}

// ---- the pass ----

static void visit_tuple_element(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_op *tuple = cpu_opt_made_by(op->operands[0], CX_HLO_OP_TUPLE);
  if (tuple == NULL) return;
  cpu_opt_replace(w, op, tuple->operands[cx_hlo_op_int(op, CX_HLO_A_INDEX)]);
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_DOT: visit_dot(w, op); break;
    case CX_HLO_OP_CONVOLUTION: cpu_opt_wide_padding(w, op); break;
    case CX_HLO_OP_BROADCAST: visit_broadcast(w, op); break;
    case CX_HLO_OP_GET_DIMENSION_SIZE: visit_dimension_size(w, op); break;
    case CX_HLO_OP_SELECT:
    case CX_HLO_OP_CLAMP: visit_scalars(w, op); break;
    case CX_HLO_OP_CROSS_REPLICA_SUM: visit_cross_replica_sum(w, op); break;
    case CX_HLO_OP_CUSTOM_CALL: visit_custom_call(w, op); break;
    case CX_HLO_OP_GET_TUPLE_ELEMENT: visit_tuple_element(w, op); break;
    case CX_HLO_OP_MAP: cpu_opt_map(w, op); break;
    case CX_HLO_OP_BATCH_NORM_TRAINING: cpu_opt_norm_training(w, op); break;
    case CX_HLO_OP_BATCH_NORM_GRAD: cpu_opt_norm_grad(w, op); break;
    case CX_HLO_OP_BATCH_NORM_INFERENCE: cpu_opt_norm_inference(w, op); break;
    case CX_HLO_OP_EINSUM: cpu_opt_einsum(w, op); break;
    case CX_HLO_OP_UNARY_EINSUM: cpu_opt_unary_einsum(w, op); break;
    case CX_HLO_OP_TORCH_INDEX_SELECT: cpu_opt_torch_index_select(w, op); break;
    case CX_HLO_OP_DYNAMIC_BROADCAST_IN_DIM:
    case CX_HLO_OP_DYNAMIC_CONV:
    case CX_HLO_OP_DYNAMIC_GATHER:
    case CX_HLO_OP_DYNAMIC_IOTA:
    case CX_HLO_OP_DYNAMIC_PAD:
    case CX_HLO_OP_DYNAMIC_RESHAPE:
    case CX_HLO_OP_REAL_DYNAMIC_SLICE: cpu_opt_static_form(w, op); break;
    default: break;
  }
  return NULL;
}

calx_status *cpu_opt_decompose(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
