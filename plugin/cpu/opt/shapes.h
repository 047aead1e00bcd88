// opt/shapes: what the files of this pass share. Functions that take the walk
// return the value that replaces the visited operation; NULL: none.
#ifndef CPU_OPT_SHAPES_H
#define CPU_OPT_SHAPES_H

#include "opt/edit.h"

cx_hlo_value *cpu_opt_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_dynamic_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_dynamic_update_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_gather(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_scatter(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_sum_of_pads(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_reduce(cpu_opt_walk *w, cx_hlo_op *op);

#endif
