// opt/chlo: what the files of this pass share. `name` is without "chlo.". The
// functions return NULL if these types have no such operation.
#ifndef CPU_OPT_CHLO_H
#define CPU_OPT_CHLO_H

#include "opt/emit.h"

// The function of CHLO of this name ("chlo.erf") that the jit has for the type;
// OTHER: none.
cx_hlo_op_kind cpu_opt_chlo_function(cx_hlo_str name, cx_hlo_elem e);
// Whether the jit has the function for the operand's type.
bool cpu_opt_chlo_is_kept(const cx_hlo_op *op);
cpu_opt_value cpu_opt_chlo_one(cx_hlo_builder *b, cx_hlo_str name,
                               cpu_opt_value x);
cpu_opt_value cpu_opt_chlo_two(cx_hlo_builder *b, cx_hlo_str name,
                               cpu_opt_value x, cpu_opt_value y);
// Broadcasting operations and constants.
cpu_opt_value cpu_opt_chlo_shaped(cx_hlo_builder *b, cx_hlo_str name,
                                  const cx_hlo_op *op);
calx_status *cpu_opt_top_k(cpu_opt_walk *w, cx_hlo_op *op) CALX_MUST_USE;
// The custom call of this name.
void cpu_opt_approx_top_k(cpu_opt_walk *w, cx_hlo_op *op);

#endif
