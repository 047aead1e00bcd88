// lower/choose_kernels: how matrix products and convolutions are run. A kernel
// is measured once in this process; its choice is saved with the executable for
// later ones.
#include <string.h>

#include "kernel/choices.h"
#include "lower/lower.h"

static calx_status *choose(cpu_lower_state *c, cpu_lower_group *g)
{
  const int threads = cpu_threads_size(c->threads);
  cpu_kernel_desc chosen = *g->desc;
  bool tune = !c->deterministic && !cpu_kernel_choice_recall(threads, &chosen);
  cpu_kernel *kernel = NULL;
  CALX_TRY(cpu_kernel_new(&chosen, c->threads, tune, &kernel));
  g->scratch = (int64_t)cpu_kernel_scratch(kernel);
  if (tune) cpu_kernel_choice_remember(threads, &chosen);
  g->index = cpu_lower_assemble_kernel(&c->a, &chosen, kernel);
  return NULL;
}

typedef struct kernels {
  cpu_lower_group **groups;  // the first one of each kernel
  size_t n, room;
} kernels;

static calx_status *choose_once(cpu_lower_state *c, void *user,
                                cpu_lower_group *g)
{
  kernels *k = user;
  if (g->kind != CPU_LOWER_GROUP_KERNEL) return NULL;
  for (size_t i = 0; i < k->n; i++) {
    const cpu_lower_group *other = k->groups[i];
    if (memcmp(g->desc, other->desc, sizeof *g->desc) == 0) {
      g->index = other->index;
      g->scratch = other->scratch;
      return NULL;
    }
  }
  CALX_TRY(choose(c, g));
  return cpu_lower_push(c, &k->groups, &k->n, &k->room, g);
}

calx_status *cpu_lower_choose_kernels(cpu_lower_state *c,
                                      cpu_lower_schedule *schedule)
{
  kernels k = { 0 };
  return cpu_lower_each_group(c, schedule, choose_once, &k);
}
