// opt/shapes: what the files of this pass share. Functions that take the walk
// return the value that replaces the visited operation; NULL: none.
#ifndef CPU_OPT_SHAPES_H
#define CPU_OPT_SHAPES_H

#include "opt/edit.h"

bool cpu_opt_is_identity(const int64_t *list, size_t n);

cx_hlo_value *cpu_opt_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_dynamic_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_dynamic_update_slice(cpu_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cpu_opt_reduce(cpu_opt_walk *w, cx_hlo_op *op);

// The commutative and associative binary operation that is all of the region;
// OTHER: the region is something else.
cx_hlo_op_kind cpu_opt_combiner(const cx_hlo_region *region);

#endif
