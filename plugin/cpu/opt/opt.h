// opt/opt: passes over a verified module, each the module's meaning kept.
//
// A pass is a function that changes the module and says whether it did; the
// list and its order stand in opt.c. With checks on, the verifier runs after
// each. Afterwards the entry calls no function (but what a region cannot
// inline). An operation that no room runs stays; whoever places it refuses it.
#ifndef CPU_OPT_OPT_H
#define CPU_OPT_OPT_H

#include "hlo/module.h"

typedef struct cpu_opt_options {
  bool decompose_only;  // for the interpreter: calls and CHLO, no more
  bool check;           // the verifier after each pass
} cpu_opt_options;

calx_status *cpu_opt_run(cx_hlo_module *m,
                         const cpu_opt_options *options) CALX_MUST_USE;

#endif
