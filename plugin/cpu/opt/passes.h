// opt/passes: each pass of the list in opt.c. All keep the module's meaning,
// set *changed where they did something, and leave the module valid (and so
// does a failure but for no memory: then it is to be thrown away).
#ifndef CPU_OPT_PASSES_H
#define CPU_OPT_PASSES_H

#include "hlo/module.h"

typedef calx_status *cpu_opt_pass_fn(cx_hlo_module *m, bool *changed);

// What runs beside other things runs in its place.
cpu_opt_pass_fn cpu_opt_async;
// Calls and composites become what they call; unused functions go.
cpu_opt_pass_fn cpu_opt_inline;
// CHLO to StableHLO.
cpu_opt_pass_fn cpu_opt_chlo;
// What no kernel takes to what kernels take.
cpu_opt_pass_fn cpu_opt_decompose;
// Identities of arithmetic.
cpu_opt_pass_fn cpu_opt_algebra;
// What moves elements: less of it.
cpu_opt_pass_fn cpu_opt_shapes;
// Operations on literals are done now.
cpu_opt_pass_fn cpu_opt_fold;
// Transposes go into contractions; broadcasts, reshapes and transposes go
// behind elementwise operations.
cpu_opt_pass_fn cpu_opt_move;
// Loops carry and do no more than they need; choices that are known are made.
cpu_opt_pass_fn cpu_opt_loops;
// Concatenations of many operands become ones of as few as kernels take.
cpu_opt_pass_fn cpu_opt_concatenate;
// What nothing uses goes.
cpu_opt_pass_fn cpu_opt_dce;
// What was computed already is not computed again.
cpu_opt_pass_fn cpu_opt_cse;

#endif
