// opt/shardy: Shardy's operations in a program for one partition.
#ifndef CPU_OPT_SHARDY_H
#define CPU_OPT_SHARDY_H

#include "hlo/module.h"

// Replaces the sharding constraints of a program for one partition by their
// operands. The program need not be verified.
void cpu_opt_shardy_drop(cx_hlo_module *m);

#endif
