// lower/kernel: how matrix products and convolutions are run: found by
// measuring once, for this process and, with the executable, for later ones.
#include <string.h>

#include "base/thread.h"
#include "lower/plan.h"

// Choices made so far, for teams of one size; the oldest go when it is full.
#define KEPT 512

typedef struct choice {
  int threads;
  cpu_kernel_desc asked, chosen;
} choice;

static cx_mutex choices_lock = CX_MUTEX_INIT;
static choice choices[KEPT];
static size_t n_choices;

static bool recall(int threads, cpu_kernel_desc *desc)
{
  bool found = false;
  cx_lock(&choices_lock);
  size_t n = n_choices < KEPT ? n_choices : KEPT;
  for (size_t i = 0; i < n && !found; i++) {
    const choice *c = &choices[i];
    if (c->threads == threads && memcmp(&c->asked, desc, sizeof *desc) == 0) {
      *desc = c->chosen;
      found = true;
    }
  }
  cx_unlock(&choices_lock);
  return found;
}

static void remember(int threads, const cpu_kernel_desc *asked,
                     const cpu_kernel_desc *chosen)
{
  cx_lock(&choices_lock);
  choices[n_choices++ % KEPT] = (choice){ threads, *asked, *chosen };
  cx_unlock(&choices_lock);
}

static calx_status *choose(cpu_lower_planner *g, cpu_lower_unit *u)
{
  cpu_lower_compilation *l = g->l;
  cpu_kernel_desc chosen = *u->desc;
  bool tune = !l->deterministic && !recall(cpu_threads_size(l->pool), &chosen);
  cpu_kernel *kernel = NULL;
  CALX_TRY(cpu_kernel_new(&chosen, l->pool, tune, &kernel));
  u->scratch = (int64_t)cpu_kernel_scratch(kernel);
  if (tune) remember(cpu_threads_size(l->pool), u->desc, &chosen);
  u->index = cpu_lower_assemble_kernel(&l->a, &chosen, kernel);
  return NULL;
}

// Equal ones are one kernel.
calx_status *cpu_lower_kernel(cpu_lower_planner *g, cpu_lower_unit *u)
{
  for (size_t i = 0; i < g->n_kernels; i++) {
    const cpu_lower_unit *other = g->kernels[i];
    if (memcmp(u->desc, other->desc, sizeof *u->desc) == 0) {
      u->index = other->index;
      u->scratch = other->scratch;
      return NULL;
    }
  }
  CALX_TRY(choose(g, u));
  return cpu_lower_push(g->l, &g->kernels, &g->n_kernels, &g->kernels_room, u)
             ? NULL
             : cx_out_of_memory();
}
