// opt/kernel_call: operations that become calls of kernels.
#ifndef CPU_OPT_KERNEL_CALL_H
#define CPU_OPT_KERNEL_CALL_H

#include "hlo/build_op.h"
#include "kernel/kernel.h"

// A custom_call of cpu_kernel_target with results of these types; NULL: the
// builder has failed.
cx_hlo_op *cpu_opt_kernel_call(cx_hlo_builder *b, const cpu_kernel_desc *desc,
                               cx_hlo_value *const *operands, size_t n,
                               const cx_hlo_type *const *types,
                               size_t n_results);

#endif
