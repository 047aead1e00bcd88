// opt/concatenate: a concatenation of more operands than a loop takes becomes a
// tree.
//
// Neighbouring operands are concatenated in groups, and the groups' results are
// its new operands. Only as many groups are made as necessary, since the
// operands of a group are copied twice. It runs after the rounds, in which the
// shapes pass makes one list of such a tree.
#include "hlo/ops.h"
#include "jit/jit.h"
#include "opt/edit.h"
#include "opt/passes.h"

// Makes groups, from the first operand on, until a loop takes what is left or
// all operands are in groups. Returns how many are left; 0: the builder has
// failed.
static size_t group(cpu_opt_walk *w, cx_hlo_value **list, size_t n, int64_t dim)
{
  size_t left = n;
  size_t kept = 0;
  for (size_t i = 0; i < n;) {
    // One more than the surplus, since the group's result is one operand.
    size_t size = left > CPU_JIT_PIECES ? left - CPU_JIT_PIECES + 1 : 1;
    if (size > CPU_JIT_PIECES) size = CPU_JIT_PIECES;
    if (size > n - i) size = n - i;
    cx_hlo_value *v = list[i];
    if (size > 1) v = cx_hlo_concatenate(&w->b, list + i, size, dim);
    if (v == NULL) return 0;
    list[kept++] = v;
    left -= size - 1;
    i += size;
  }
  return kept;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CONCATENATE || op->n_operands <= CPU_JIT_PIECES ||
      cpu_jit_has_pieces(op)) {
    return NULL;
  }
  const int64_t dim = cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  size_t n = op->n_operands;
  cx_hlo_value **list = cpu_opt_values(w, n);
  if (list == NULL) return NULL;
  for (size_t i = 0; i < n; i++) list[i] = op->operands[i];
  while (n > CPU_JIT_PIECES) n = group(w, list, n, dim);
  if (n != 0) {
    cpu_opt_replace(w, op, cx_hlo_concatenate(&w->b, list, n, dim));
  }
  return NULL;
}

calx_status *cpu_opt_concatenate(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
