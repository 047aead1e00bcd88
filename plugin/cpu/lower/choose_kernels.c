// lower/choose_kernels: how matrix products and convolutions are run. A kernel
// is measured once in this process; its choice is saved with the executable for
// later ones. After most_measured nanoseconds of a compilation no other kernel
// is measured: a rule decides, and that is not remembered.
#include <string.h>

#include "base/thread.h"
#include "kernel/choices.h"
#include "lower/lower.h"

typedef struct kernels {
  cpu_lower_group **groups;  // the first one of each kernel
  size_t n, room;
  int64_t measured;  // nanoseconds
} kernels;

static calx_status *choose(cpu_lower_state *c, kernels *k, cpu_lower_group *g)
{
  const int threads = cpu_threads_size(c->threads);
  cpu_kernel_desc chosen = *g->desc;
  const bool known =
      !c->deterministic && cpu_kernel_choice_recall(threads, &chosen);
  const bool tune =
      !c->deterministic && !known && k->measured < c->most_measured;
  cpu_kernel *kernel = NULL;
  const int64_t begin = cx_now_ns();
  CALX_TRY(cpu_kernel_new(&chosen, c->threads, tune, &kernel));
  g->scratch = (int64_t)cpu_kernel_scratch(kernel);
  if (tune && cpu_kernel_choice_remember(threads, &chosen)) {
    k->measured += cx_now_ns() - begin;
  }
  g->index = cpu_lower_assemble_kernel(&c->a, &chosen, kernel);
  return NULL;
}

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
  CALX_TRY(choose(c, k, g));
  return cpu_lower_push(c, &k->groups, &k->n, &k->room, g);
}

calx_status *cpu_lower_choose_kernels(cpu_lower_state *c,
                                      cpu_lower_schedule *schedule)
{
  kernels k = { 0 };
  return cpu_lower_each_group(c, schedule, choose_once, &k);
}
