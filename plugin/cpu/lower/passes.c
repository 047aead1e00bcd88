// lower/passes: those from a function to a program's steps.
#include "lower/plan.h"

// What each kind of unit needs beyond its order.
static calx_status *collect(cx_planning *g, const cx_plan *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    cx_unit *u = plan->units[i];
    bool ok = true;
    switch (u->kind) {
      case CX_UNIT_CODE:
        ok = cx_lower_push(g->l, &g->codes, &g->n_codes, &g->codes_room, u);
        break;
      case CX_UNIT_INTERPRET:
      case CX_UNIT_COLLECTIVE:
        ok = cx_lower_push(g->l, &g->sides, &g->n_sides, &g->sides_room, u);
        break;
      case CX_UNIT_KERNEL: CALX_TRY(cx_lower_kernel(g, u)); break;
      case CX_UNIT_CONTROL:
        for (uint32_t r = 0; r < u->ops[0]->n_regions; r++) {
          CALX_TRY(collect(g, &u->regions[r]));
        }
        break;
      case CX_UNIT_END: break;
    }
    if (!ok) return cx_out_of_memory();
  }
  return NULL;
}

calx_status *cx_lower_plan(cx_lowering *l, cx_hlo_func *entry)
{
  CALX_TRY(cx_lower_check_values(entry));
  cx_planning g = { .l = l, .mark = 4 };
  g.values = CX_ARENA_ARRAY(&l->arena, cx_value_info, l->module->n_values + 1);
  if (g.values == NULL) return cx_out_of_memory();
  cx_plan plan = { 0 };
  CALX_TRY(cx_lower_fuse(&g, entry->body.first, &plan));
  CALX_TRY(cx_lower_views(&g, &plan));
  CALX_TRY(cx_lower_order(&g, &plan));
  CALX_TRY(collect(&g, &plan));
  CALX_TRY(cx_lower_codes(&g));
  CALX_TRY(cx_lower_memory(&g, &plan, entry));
  CALX_TRY(cx_lower_sides(&g));
  return cx_lower_steps(&g, &plan);
}
