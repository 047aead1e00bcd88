// opt/passes: each pass of the list in opt.c. All keep the module's meaning,
// set *changed where they did something, and leave the module valid (and so
// does a failure but for no memory: then it is to be thrown away).
#ifndef CX_OPT_PASSES_H
#define CX_OPT_PASSES_H

#include "hlo/module.h"

typedef calx_status *cx_opt_pass_fn(cx_hlo_module *m, bool *changed);

// What runs beside other things runs in its place.
cx_opt_pass_fn cx_opt_async;
// Calls and composites become what they call; unused functions go.
cx_opt_pass_fn cx_opt_inline;
// CHLO to StableHLO.
cx_opt_pass_fn cx_opt_chlo;
// What no kernel takes to what kernels take.
cx_opt_pass_fn cx_opt_decompose;
// Identities of arithmetic.
cx_opt_pass_fn cx_opt_algebra;
// What moves elements: less of it.
cx_opt_pass_fn cx_opt_shapes;
// Operations on literals are done now.
cx_opt_pass_fn cx_opt_fold;
// Transposes go into contractions; broadcasts, reshapes and transposes go
// behind elementwise operations.
cx_opt_pass_fn cx_opt_move;
// Loops carry and do no more than they need; choices that are known are made.
cx_opt_pass_fn cx_opt_loops;
// Concatenations of many operands become ones of as few as kernels take.
cx_opt_pass_fn cx_opt_pieces;
// What nothing uses goes.
cx_opt_pass_fn cx_opt_dce;
// What was computed already is not computed again.
cx_opt_pass_fn cx_opt_cse;

#endif
