// opt/passes: the passes that opt.c lists. All keep the module's meaning, set
// *changed if they changed something, and leave the module valid, unless memory
// runs out.
#ifndef CPU_OPT_PASSES_H
#define CPU_OPT_PASSES_H

#include "hlo/module.h"

typedef calx_status *cpu_opt_pass_fn(cx_hlo_module *m, bool *changed);

// Asynchronous operations become synchronous.
cpu_opt_pass_fn cpu_opt_async;
// Calls and composites are replaced by what they call.
cpu_opt_pass_fn cpu_opt_inline;
// CHLO becomes StableHLO.
cpu_opt_pass_fn cpu_opt_chlo;
// Operations without an implementation become ones that have one.
cpu_opt_pass_fn cpu_opt_decompose;
// Arithmetic identities.
cpu_opt_pass_fn cpu_opt_algebra;
// Simplifies operations that move elements.
cpu_opt_pass_fn cpu_opt_shapes;
// Computes operations on constants.
cpu_opt_pass_fn cpu_opt_fold;
// Moves broadcasts, reshapes and transposes toward the results.
cpu_opt_pass_fn cpu_opt_move;
// Matrix products of narrow types, and slices of products.
cpu_opt_pass_fn cpu_opt_products;
// Products of loops become products of all iterations at once.
cpu_opt_pass_fn cpu_opt_loop_products;
// Variables of loops that are always equal become one.
cpu_opt_pass_fn cpu_opt_loop_variables;
// Rows that loops keep are computed of others where they are read.
cpu_opt_pass_fn cpu_opt_loop_rows;
// Loop invariants, unused variables of loops, known branches.
cpu_opt_pass_fn cpu_opt_loops;
// Images of few channels lie as the convolutions of 16 images at a time want.
cpu_opt_pass_fn cpu_opt_lanes;
// The gradient of relu reads what relu gave.
cpu_opt_pass_fn cpu_opt_relu;
// Sums and broadcasts over a short last dimension get longer rows.
cpu_opt_pass_fn cpu_opt_short_rows;
// Concatenations of many operands become trees.
cpu_opt_pass_fn cpu_opt_concatenate;
// Constants that loops begin with are written in place.
cpu_opt_pass_fn cpu_opt_fills;
// What products of loops multiply with is packed before the loop.
cpu_opt_pass_fn cpu_opt_pack;
// Attention becomes calls of a kernel.
cpu_opt_pass_fn cpu_opt_attention_pass;
// Removes unused operations.
cpu_opt_pass_fn cpu_opt_dce;
// Replaces operations by equal earlier ones.
cpu_opt_pass_fn cpu_opt_cse;

#endif
