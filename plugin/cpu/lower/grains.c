// lower/grains: how finely loops are divided that run in each iteration of a
// while that is a list of steps.
//
// A loop alone is worth a second thread when that saves more than waking the
// thread takes. Inside such a while the threads are awake, because the steps
// before it were divided too.
#include "lower/lower.h"

#define AWAKE 2  // how many times smaller the parts may be

static void divide(cpu_run_program *p, bool *done, uint32_t loop)
{
  if (done[loop]) return;
  done[loop] = true;
  for (int64_t k = 0; k < p->loops[loop].n_phases; k++) {
    cpu_jit_phase *phase = &p->loops[loop].phases[k];
    phase->grain = phase->grain > AWAKE ? phase->grain / AWAKE : 1;
  }
}

static void divide_block(cpu_run_program *p, bool *done, size_t block)
{
  const cpu_run_step_block *b = &p->blocks[block];
  for (uint32_t i = 0; i < b->n; i++) {
    const cpu_run_step *s = &p->steps[b->first + i];
    if (s->kind == CPU_RUN_STEP_LOOP) divide(p, done, s->index);
  }
}

calx_status *cpu_lower_grains(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  (void)schedule;
  cpu_run_program *p = c->a.program;
  bool *done = CX_ARENA_ARRAY(&c->arena, bool, p->n_loops + 1);
  if (done == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < p->n_steps; i++) {
    if (p->steps[i].kind != CPU_RUN_STEP_WHILE) continue;
    divide_block(p, done, p->steps[i].index + 1);
  }
  return NULL;
}
