// opt/decompose: what the files of this pass share. Each function replaces the
// visited operation, or leaves it if it cannot.
#ifndef CPU_OPT_DECOMPOSE_H
#define CPU_OPT_DECOMPOSE_H

#include "opt/edit.h"

void cpu_opt_norm_training(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_norm_grad(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_norm_inference(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_einsum(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_unary_einsum(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_torch_index_select(cpu_opt_walk *w, cx_hlo_op *op);
// The dynamic_… and real_dynamic_slice with constant operands.
void cpu_opt_static_form(cpu_opt_walk *w, cx_hlo_op *op);
// The convolution of two operands with this padding, with op's other attributes
// and type.
cx_hlo_value *cpu_opt_convolution(cpu_opt_walk *w, const cx_hlo_op *op,
                                  cx_hlo_value *const *operands,
                                  const int64_t *padding);
// Convolutions with much padding.
void cpu_opt_wide_padding(cpu_opt_walk *w, cx_hlo_op *op);
void cpu_opt_map(cpu_opt_walk *w, cx_hlo_op *op);

#endif
