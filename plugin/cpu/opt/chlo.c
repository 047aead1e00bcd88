// opt/chlo: CHLO's operations become StableHLO, all but those functions of
// reals that the jit has; openxla/stablehlo, ChloOps.td, defines them. JAX's
// custom call ApproxTopK becomes StableHLO too.
#include "opt/chlo.h"

#include <string.h>

#include "opt/passes.h"

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_str name = cpu_opt_name(op);
  if (op->kind == CX_HLO_OP_CUSTOM_CALL &&
      cx_hlo_str_equal(cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME)->as.text,
                       "ApproxTopK")) {
    cpu_opt_approx_top_k(w, op);
    return NULL;
  }
  if (name.n < 5 || memcmp(name.s, "chlo.", 5) != 0) return NULL;
  name.s += 5;
  name.n -= 5;
  cx_hlo_builder *b = &w->b;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->type.non_tensor != NULL) return NULL;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (op->results[i].type.non_tensor != NULL) return NULL;
  }
  if (cpu_opt_chlo_is_kept(op)) return NULL;
  if (cx_hlo_str_equal(name, "top_k")) return cpu_opt_top_k(w, op);
  if (op->n_results != 1) return NULL;
  cpu_opt_value r = NULL;
  if (op->n_operands == 1) r = cpu_opt_chlo_one(b, name, op->operands[0]);
  if (op->n_operands == 2) {
    r = cpu_opt_chlo_two(b, name, op->operands[0], op->operands[1]);
  }
  if (r == NULL) r = cpu_opt_chlo_shaped(b, name, op);
  if (r != NULL) cpu_opt_replace(w, op, r);
  return NULL;
}

calx_status *cpu_opt_chlo(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
