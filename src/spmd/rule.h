// spmd/rule: which dimensions of an operation's operands and results are cut
// together.
//
// A factor is an index of the operation that runs over one dimension of some of
// its tensors: of a matrix product, rows, columns and the contracted index. All
// these dimensions may be cut alike, and then the operation runs on the blocks
// as it runs on the whole. Along a dimension without a factor the operation
// needs the whole.
#ifndef CX_SPMD_RULE_H
#define CX_SPMD_RULE_H

#include "base/arena.h"
#include "hlo/module.h"

typedef struct cx_spmd_rule {
  size_t n_tensors;        // operands, then results
  cx_hlo_value **tensors;  // [n_tensors]
  int32_t **factors;       // [n_tensors][rank]; -1: none
  size_t n_factors;
  // [n_factors]: a contracted index. Cut along it, each device has a part of
  // the results, which `combine` combines.
  bool *reduces;
  cx_hlo_op_kind combine;
  // It takes so little work that contracted indices may stay whole: each device
  // then does the work of all.
  bool is_light;
  // [n_factors]: a dimension in which indices choose elements. Cut along it,
  // a device takes those indices that are in its block.
  bool *indexed;
} cx_spmd_rule;

// NULL: there is no memory.
cx_spmd_rule *cx_spmd_rule_of(cx_arena *arena, const cx_hlo_op *op);

#endif
