// lower/interpret: a program as one step of the interpreter.
#include "lower/lower.h"
#include "opt/edit.h"

static size_t count_ops(const cx_hlo_module *m)
{
  size_t n = 0;
  for (const cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    for (const cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
         op = cpu_opt_next(op)) {
      n++;
    }
  }
  return n;
}

// The interpreter may still read an argument when it writes a result, so a
// result in an argument's memory is written to the arena first, and copied.
calx_status *cpu_lower_interpret(cpu_lower_state *c, cx_hlo_func *entry)
{
  cpu_run_program *p = c->a.program;
  const cpu_run_program_info *info = &p->info;
  size_t n = info->n_params + info->n_results;
  uint32_t *slots = CX_ARENA_ARRAY(&c->arena, uint32_t, n + 1);
  if (slots == NULL) return cx_out_of_memory();
  int64_t at = 0;
  for (size_t i = 0; i < info->n_params; i++) {
    slots[i] = cpu_lower_assemble_slot(&c->a, CPU_RUN_SLOT_PARAM, (int64_t)i,
                                       cx_hlo_type_bytes(&info->params[i]));
  }
  for (size_t i = 0; i < info->n_results; i++) {
    int64_t bytes = cx_hlo_type_bytes(&info->results[i]);
    bool own = info->alias[i] < 0;
    slots[info->n_params + i] = cpu_lower_assemble_slot(
        &c->a, own ? CPU_RUN_SLOT_RESULT : CPU_RUN_SLOT_ARENA,
        own ? (int64_t)i : at, bytes);
    if (!own) at = cpu_run_align_up(at + bytes);
    CALX_TRY(cpu_lower_check_total(p, at));
  }
  p->info.arena_bytes = (size_t)at;
  cpu_lower_assemble_blocks(&c->a, 1);
  cpu_lower_assemble_step(&c->a, CPU_RUN_STEP_INTERPRET, entry->index, 0, slots,
                          n);
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias[i] < 0) continue;
    uint32_t copy[2] = { slots[info->n_params + i],
                         cpu_lower_assemble_slot(
                             &c->a, CPU_RUN_SLOT_RESULT, (int64_t)i,
                             cx_hlo_type_bytes(&info->results[i])) };
    cpu_lower_assemble_step(&c->a, CPU_RUN_STEP_COPY, 0, 0, copy, 2);
  }
  if (c->a.failed) return cx_out_of_memory();
  p->blocks[0].n = (uint32_t)p->n_steps;
  p->info.n_interpreted = count_ops(c->module);
  p->info.cost_ns = 1e9;
  return cpu_lower_assemble_outlined(&c->a, c->module);
}
