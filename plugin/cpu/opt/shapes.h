// opt/shapes: what the files of this pass offer each other. Each says what
// stands for the visited operation; NULL: itself.
#ifndef CX_OPT_SHAPES_H
#define CX_OPT_SHAPES_H

#include "opt/edit.h"

bool cx_opt_is_identity(const int64_t *list, size_t n);

cx_hlo_value *cx_opt_slice(cx_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cx_opt_dynamic_slice(cx_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cx_opt_dynamic_update_slice(cx_opt_walk *w, cx_hlo_op *op);
cx_hlo_value *cx_opt_reduce(cx_opt_walk *w, cx_hlo_op *op);

// The one binary operation that the region is, which is commutative and
// associative; OTHER: it is something else.
cx_hlo_op_kind cx_opt_combiner(const cx_hlo_region *region);

#endif
