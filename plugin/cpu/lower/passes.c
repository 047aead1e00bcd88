// lower/passes: the stages from a function to a program's steps, in order.
#include "lower/lower.h"

static cpu_lower_stage *const stages[] = {
  cpu_lower_uses,          cpu_lower_fuse,   cpu_lower_views,
  cpu_lower_buffers,       cpu_lower_order,  cpu_lower_overlap,
  cpu_lower_lifetimes,     cpu_lower_slices, cpu_lower_choose_kernels,
  cpu_lower_compile_loops, cpu_lower_memory, cpu_lower_offsets,
  cpu_lower_outline,       cpu_lower_steps,  cpu_lower_native,
  cpu_lower_grains,
};

calx_status *cpu_lower_run_passes(cpu_lower_state *c, cx_hlo_func *entry)
{
  cpu_lower_schedule s = { .block = entry->body.first };
  c->values =
      CX_ARENA_ARRAY(&c->arena, cpu_lower_value, c->module->n_values + 1);
  if (c->values == NULL) return cx_out_of_memory();
  CALX_TRY(cpu_lower_check_values(entry));
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    CALX_TRY(stages[i](c, &s));
  }
  return NULL;
}
