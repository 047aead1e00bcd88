// opt/chlo: what the files of this pass offer each other. `name` is without
// "chlo.". NULL: no such operation, or not on these types.
#ifndef CX_OPT_CHLO_H
#define CX_OPT_CHLO_H

#include "opt/emit.h"

cx_v cx_opt_chlo_two(cx_hlo_builder *b, cx_hlo_str name, cx_v x, cx_v y);
// Broadcasting operations and constants.
cx_v cx_opt_chlo_shaped(cx_hlo_builder *b, cx_hlo_str name,
                        const cx_hlo_op *op);
calx_status *cx_opt_top_k(cx_opt_walk *w, cx_hlo_op *op) CALX_MUST_USE;

#endif
