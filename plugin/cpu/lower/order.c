// lower/order: sorts the groups of each block, so that each one runs after
// those that it reads from, and otherwise as near as possible to where the
// program has it.
#include <stdlib.h>

#include "lower/lower.h"

static int by_position(const void *a, const void *b)
{
  const cpu_lower_group *const *x = a;
  const cpu_lower_group *const *y = b;
  return ((*x)->position > (*y)->position) - ((*x)->position < (*y)->position);
}

// ---- one block ----

typedef struct group_sort {
  const cpu_lower_schedule *schedule;
  cpu_lower_group **stack;  // of the depth-first search
  size_t n, room;
} group_sort;

static calx_status *push_producer(cpu_lower_state *c, void *user,
                                  cx_hlo_value *v)
{
  group_sort *s = user;
  cpu_lower_group *producer = cpu_lower_info(c, v)->producer;
  if (producer == NULL || producer->schedule != s->schedule ||
      producer->is_open || producer->is_sorted) {
    return NULL;
  }
  return cpu_lower_push(c, &s->stack, &s->n, &s->room, producer);
}

// Depth first: a group is open while its producers are on the stack above it.
static calx_status *sort(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  cpu_lower_group **groups = schedule->groups;
  const size_t n_groups = schedule->n_groups;
  if (n_groups > 1) qsort(groups, n_groups, sizeof *groups, by_position);
  cpu_lower_group **sorted =
      CX_ARENA_ARRAY(&c->arena, cpu_lower_group *, n_groups + 1);
  if (sorted == NULL) return cx_out_of_memory();
  size_t n = 0;
  group_sort s = { .schedule = schedule };
  for (size_t i = 0; i < n_groups; i++) {
    CALX_TRY(cpu_lower_push(c, &s.stack, &s.n, &s.room, groups[i]));
    while (s.n > 0) {
      cpu_lower_group *g = s.stack[s.n - 1];
      if (!g->is_open && !g->is_sorted) {
        g->is_open = true;
        CALX_TRY(cpu_lower_each_read(c, g, push_producer, &s));
        continue;
      }
      s.n--;
      if (!g->is_sorted) sorted[n++] = g;
      g->is_sorted = true;
    }
  }
  CX_ASSERT(n == n_groups);
  schedule->groups = sorted;
  return NULL;
}

static calx_status *sort_regions(cpu_lower_state *c, void *user,
                                 cpu_lower_group *g)
{
  (void)user;
  if (g->kind != CPU_LOWER_GROUP_CONTROL) return NULL;
  for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
    CALX_TRY(sort(c, &g->regions[r]));
  }
  return NULL;
}

calx_status *cpu_lower_order(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  CALX_TRY(sort(c, schedule));
  return cpu_lower_each_group(c, schedule, sort_regions, NULL);
}
