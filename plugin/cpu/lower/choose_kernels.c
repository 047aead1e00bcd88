// lower/choose_kernels: how matrix products and convolutions are run. A kernel
// is measured once in this process; its choice is saved with the executable for
// later ones.
#include <string.h>

#include "base/thread.h"
#include "lower/lower.h"

// Choices of this process; the oldest go when it is full.
#define KEPT 512

typedef struct choice {
  int threads;  // that it was measured on
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
    const choice *at = &choices[i];
    if (at->threads == threads && memcmp(&at->asked, desc, sizeof *desc) == 0) {
      *desc = at->chosen;
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

static calx_status *choose(cpu_lower_state *c, cpu_lower_group *g)
{
  const int threads = cpu_threads_size(c->threads);
  cpu_kernel_desc chosen = *g->desc;
  bool tune = !c->deterministic && !recall(threads, &chosen);
  cpu_kernel *kernel = NULL;
  CALX_TRY(cpu_kernel_new(&chosen, c->threads, tune, &kernel));
  g->scratch = (int64_t)cpu_kernel_scratch(kernel);
  if (tune) remember(threads, g->desc, &chosen);
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
