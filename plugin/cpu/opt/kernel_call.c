// opt/kernel_call: operations that become calls of kernels.
#include "opt/kernel_call.h"

#include <string.h>

cx_hlo_op *cpu_opt_kernel_call(cx_hlo_builder *b, const cpu_kernel_desc *desc,
                               cx_hlo_value *const *operands, size_t n,
                               const cx_hlo_type *const *types,
                               size_t n_results)
{
  cx_hlo_op *call =
      cx_hlo_build_begin(b, CX_HLO_OP_CUSTOM_CALL, operands, n, n_results, 0);
  if (call == NULL) return NULL;
  cx_hlo_build_attr(
      b, call, CX_HLO_A_CALL_TARGET_NAME,
      cx_hlo_attr_text(b->module, CX_HLO_ATTR_STRING, cpu_kernel_target,
                       strlen(cpu_kernel_target)));
  cx_hlo_build_attr(
      b, call, CX_HLO_A_BACKEND_CONFIG,
      cx_hlo_attr_text(b->module, CX_HLO_ATTR_STRING, desc, sizeof *desc));
  for (size_t i = 0; i < n_results; i++) {
    cx_hlo_build_declare(b, call, i, types[i]);
  }
  return cx_hlo_build_end(b, call) == NULL ? NULL : call;
}
