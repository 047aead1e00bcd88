// lower/limits: refuses sizes that no machine can hold, before anything
// multiplies with them.
//
// Values inside fused loops are never in memory, but a loop over 2^60 elements
// does not end either, so they are refused too.
#include <inttypes.h>

#include "lower/lower.h"
#include "opt/edit.h"

static calx_status *refuse(cx_hlo_str who, const cx_hlo_any *type,
                           const char *why)
{
  return cx_error(CALX_UNIMPLEMENTED, "%.*s: %s %s", (int)who.n, who.s,
                  cx_hlo_shape(&type->tensor).s, why);
}

static calx_status *check(cx_hlo_str who, const cx_hlo_any *type)
{
  if (type->non_tensor != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "%.*s: the CPU engine takes tuples and futures apart, and "
                    "here one is left whole",
                    (int)who.n, who.s);
  }
  for (size_t d = 0; d < type->tensor.rank; d++) {
    if (type->tensor.dims[d] < 0) return refuse(who, type, "is no fixed shape");
  }
  int64_t bytes = cx_hlo_type_bytes(&type->tensor);
  if (bytes >= 0 && bytes <= CPU_RUN_MEMORY_LIMIT) return NULL;
  return cx_error(
      CALX_RESOURCE_EXHAUSTED,
      "%.*s: %s is larger than any memory; the limit is %" PRId64 " bytes",
      (int)who.n, who.s, cx_hlo_shape(&type->tensor).s, CPU_RUN_MEMORY_LIMIT);
}

calx_status *cpu_lower_check_signature(const cx_hlo_func *entry)
{
  for (size_t i = 0; i < entry->n_params; i++) {
    CALX_TRY(check(entry->name, &entry->params[i]));
  }
  for (size_t i = 0; i < entry->n_results; i++) {
    CALX_TRY(check(entry->name, &entry->results[i]));
  }
  return NULL;
}

calx_status *cpu_lower_check_values(const cx_hlo_func *entry)
{
  for (const cx_hlo_op *op = cpu_opt_first(entry->body.first); op != NULL;
       op = cpu_opt_next(op)) {
    const cx_hlo_str who = cpu_opt_name(op);
    for (size_t i = 0; i < cx_hlo_op_n_types(op); i++) {
      CALX_TRY(check(who, cx_hlo_op_type(op, i)));
    }
  }
  return NULL;
}

calx_status *cpu_lower_check_total(const cpu_run_program *p, int64_t bytes)
{
  if (bytes <= CPU_RUN_MEMORY_LIMIT) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "program '%s' needs %" PRId64
                  " bytes of temporary memory, "
                  "more than any machine has",
                  p->info.name, bytes);
}
