// lower/kernel: how matrix products and convolutions are run: found by
// measuring once, for this process and, with the executable, for later ones.
#include <string.h>

#include "base/thread.h"
#include "lower/plan.h"

// Choices made so far, for teams of one size; the oldest go when it is full.
#define KEPT 512

typedef struct choice {
  int threads;
  cx_kernel_desc asked, chosen;
} choice;

static cx_mutex choices_lock = CX_MUTEX_INIT;
static choice choices[KEPT];
static size_t n_choices;

static bool recall(int threads, cx_kernel_desc *desc)
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

static void remember(int threads, const cx_kernel_desc *asked,
                     const cx_kernel_desc *chosen)
{
  cx_lock(&choices_lock);
  choices[n_choices++ % KEPT] = (choice){ threads, *asked, *chosen };
  cx_unlock(&choices_lock);
}

static calx_status *choose(cx_planning *g, cx_unit *u)
{
  cx_lowering *l = g->l;
  cx_kernel_desc chosen = *u->desc;
  bool tune = !l->deterministic && !recall(cx_pool_size(l->pool), &chosen);
  cx_kernel *kernel = NULL;
  CALX_TRY(cx_kernel_new(&chosen, l->pool, tune, &kernel));
  u->scratch = (int64_t)cx_kernel_scratch(kernel);
  if (tune) remember(cx_pool_size(l->pool), u->desc, &chosen);
  u->index = cx_assemble_kernel(&l->a, &chosen, kernel);
  return NULL;
}

// Equal ones are one kernel.
calx_status *cx_lower_kernel(cx_planning *g, cx_unit *u)
{
  for (size_t i = 0; i < g->n_kernels; i++) {
    const cx_unit *other = g->kernels[i];
    if (memcmp(u->desc, other->desc, sizeof *u->desc) == 0) {
      u->index = other->index;
      u->scratch = other->scratch;
      return NULL;
    }
  }
  CALX_TRY(choose(g, u));
  return cx_lower_push(g->l, &g->kernels, &g->n_kernels, &g->kernels_room, u)
             ? NULL
             : cx_out_of_memory();
}
