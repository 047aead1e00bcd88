// opt/opt: passes over a verified module, which keep its meaning.
//
// A pass is a function that changes the module and reports whether it did;
// opt.c lists the passes in order. Afterwards the entry calls no function.
// Operations that the engine does not implement stay; lowering refuses them.
#ifndef CPU_OPT_OPT_H
#define CPU_OPT_OPT_H

#include "hlo/module.h"

typedef struct cpu_opt_options {
  bool decompose_only;  // for the interpreter: only calls and CHLO
  bool check;           // run the verifier after each pass that changed
} cpu_opt_options;

calx_status *cpu_opt_run(cx_hlo_module *m,
                         const cpu_opt_options *options) CALX_MUST_USE;

#endif
