// opt/loops: what the passes over loops share.
#ifndef CPU_OPT_LOOPS_H
#define CPU_OPT_LOOPS_H

#include "opt/edit.h"

// Moves a block of a while to another one, whose first variables are those that
// `keep` names, in their order. Uses of the others become uses of their initial
// values. The caller gives the types of variables behind them, and returns
// them. False: out of memory.
bool cpu_opt_move_block(cpu_opt_walk *w, const cx_hlo_op *loop, cx_hlo_op *to,
                        size_t region, const bool *keep);

bool cpu_opt_is_loop(const cx_hlo_op *op);  // a while

// ---- loops that count ----

typedef struct cpu_opt_loop_count {
  cx_hlo_block *body;
  const cx_hlo_value *i;  // the body's argument that is 0, 1, …
  int64_t n;              // iterations; 0: they are not known
} cpu_opt_loop_count;

cpu_opt_loop_count cpu_opt_loop_count_of(const cx_hlo_op *loop);
// Whether the iterations have each of [0, n) as this index once.
bool cpu_opt_loop_permutes(const cpu_opt_loop_count *c,
                           const cx_hlo_value *index);
// Whether a slice of `all` of the type `row`, which has as many dimensions, is
// one of the first dimension's rows.
bool cpu_opt_is_row(const cx_hlo_type *all, const cx_hlo_type *row);
// The dynamic_update_slice by which the body replaces one row of variable i;
// NULL: it does something else.
const cx_hlo_op *cpu_opt_loop_update(const cx_hlo_op *loop, uint32_t i);
// The dynamic_slice that v is, if it is a row of a tensor of n rows from
// outside the loop: index i of its first dimension.
cx_hlo_op *cpu_opt_loop_row(const cpu_opt_loop_count *c, const cx_hlo_value *v);

#endif
