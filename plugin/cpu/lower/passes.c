// lower/passes: those from a function to a program's steps.
#include "lower/plan.h"

// What each kind of unit needs beyond its order.
static calx_status *collect(cpu_lower_planner *g,
                            const cpu_lower_schedule *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    bool ok = true;
    switch (u->kind) {
      case CPU_LOWER_UNIT_CODE:
        ok = cpu_lower_push(g->l, &g->codes, &g->n_codes, &g->codes_room, u);
        break;
      case CPU_LOWER_UNIT_INTERPRET:
      case CPU_LOWER_UNIT_COLLECTIVE:
        ok = cpu_lower_push(g->l, &g->sides, &g->n_sides, &g->sides_room, u);
        break;
      case CPU_LOWER_UNIT_KERNEL: CALX_TRY(cpu_lower_kernel(g, u)); break;
      case CPU_LOWER_UNIT_CONTROL:
        for (uint32_t r = 0; r < u->ops[0]->n_regions; r++) {
          CALX_TRY(collect(g, &u->regions[r]));
        }
        break;
      case CPU_LOWER_UNIT_END: break;
    }
    if (!ok) return cx_out_of_memory();
  }
  return NULL;
}

calx_status *cpu_lower_plan(cpu_lower_compilation *l, cx_hlo_func *entry)
{
  CALX_TRY(cpu_lower_check_values(entry));
  cpu_lower_planner g = { .l = l, .mark = 4 };
  g.values =
      CX_ARENA_ARRAY(&l->arena, cpu_lower_value_info, l->module->n_values + 1);
  if (g.values == NULL) return cx_out_of_memory();
  cpu_lower_schedule plan = { 0 };
  CALX_TRY(cpu_lower_fuse(&g, entry->body.first, &plan));
  CALX_TRY(cpu_lower_views(&g, &plan));
  CALX_TRY(cpu_lower_order(&g, &plan));
  CALX_TRY(collect(&g, &plan));
  CALX_TRY(cpu_lower_codes(&g));
  CALX_TRY(cpu_lower_memory(&g, &plan, entry));
  CALX_TRY(cpu_lower_sides(&g));
  return cpu_lower_steps(&g, &plan);
}
