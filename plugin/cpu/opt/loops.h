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

#endif
