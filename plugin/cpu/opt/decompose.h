// opt/decompose: what the files of this pass offer each other. Each replaces
// the visited operation, or leaves it where it cannot.
#ifndef CX_OPT_DECOMPOSE_H
#define CX_OPT_DECOMPOSE_H

#include "opt/edit.h"

void cx_opt_norm_training(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_norm_grad(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_norm_inference(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_einsum(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_unary_einsum(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_torch_index_select(cx_opt_walk *w, cx_hlo_op *op);
// The dynamic_… and real_dynamic_slice with constant operands.
void cx_opt_static_form(cx_opt_walk *w, cx_hlo_op *op);
void cx_opt_map(cx_opt_walk *w, cx_hlo_op *op);

#endif
