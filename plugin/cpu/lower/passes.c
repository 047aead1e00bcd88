// lower/passes: the stages from a function to a program's steps, in order.
#include "lower/lower.h"

calx_status *cpu_lower_run_passes(cpu_lower_compilation *c, cx_hlo_func *entry)
{
  cpu_lower_schedule s = { .block = entry->body.first };
  c->values =
      CX_ARENA_ARRAY(&c->arena, cpu_lower_value_info, c->module->n_values + 1);
  if (c->values == NULL) return cx_out_of_memory();
  CALX_TRY(cpu_lower_check_values(entry));
  CALX_TRY(cpu_lower_uses(c, &s));
  CALX_TRY(cpu_lower_fuse(c, &s));
  CALX_TRY(cpu_lower_views(c, &s));
  CALX_TRY(cpu_lower_buffers(c, &s));
  CALX_TRY(cpu_lower_order(c, &s));
  CALX_TRY(cpu_lower_overlap(c, &s));
  CALX_TRY(cpu_lower_lifetimes(c, &s));
  CALX_TRY(cpu_lower_choose_kernels(c, &s));
  CALX_TRY(cpu_lower_compile_loops(c, &s));
  CALX_TRY(cpu_lower_memory(c, &s));
  CALX_TRY(cpu_lower_offsets(c));
  CALX_TRY(cpu_lower_outline(c, &s));
  return cpu_lower_steps(c, &s);
}
