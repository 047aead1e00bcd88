// lower/offsets: the offset of each range in the arena. Ranges that live at the
// same time do not overlap.
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"

static int by_start(const void *a, const void *b)
{
  const cpu_lower_range *const *x = a;
  const cpu_lower_range *const *y = b;
  if ((*x)->start != (*y)->start) return (*x)->start < (*y)->start ? -1 : 1;
  return ((*x)->bytes < (*y)->bytes) - ((*x)->bytes > (*y)->bytes);
}

// Best fit: the smallest gap between those that live at the same time that is
// large enough. `live` is sorted by offset.
static void insert(cpu_lower_range **live, size_t *n, cpu_lower_range *m)
{
  int64_t at = 0;
  size_t i = 0;
  int64_t best = -1, best_size = INT64_MAX;
  size_t best_index = 0;
  for (; i <= *n; i++) {
    int64_t end = i < *n ? live[i]->at : INT64_MAX;
    if (end - at >= m->bytes && (best < 0 || end - at < best_size)) {
      best = at;
      best_size = end - at;
      best_index = i;
    }
    if (i < *n) at = cpu_run_align_up(live[i]->at + live[i]->bytes);
  }
  m->at = best;
  memmove(live + best_index + 1, live + best_index,
          (*n - best_index) * sizeof *live);
  live[best_index] = m;
  (*n)++;
}

calx_status *cpu_lower_offsets(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  (void)schedule;
  size_t n = 0, n_live = 0;
  for (const cpu_lower_range *m = c->in_arena; m != NULL; m = m->next) n++;
  cpu_lower_range **all = CX_ARENA_ARRAY(&c->arena, cpu_lower_range *, n + 1);
  cpu_lower_range **live = CX_ARENA_ARRAY(&c->arena, cpu_lower_range *, n + 1);
  if (all == NULL || live == NULL) return cx_out_of_memory();
  size_t i = 0;
  for (cpu_lower_range *m = c->in_arena; m != NULL; m = m->next) {
    all[i++] = m;
  }
  qsort(all, n, sizeof(cpu_lower_range *), by_start);
  int64_t top = 0;
  for (i = 0; i < n; i++) {
    size_t kept = 0;
    for (size_t k = 0; k < n_live; k++) {
      if (live[k]->end >= all[i]->start) live[kept++] = live[k];
    }
    n_live = kept;
    insert(live, &n_live, all[i]);
    if (all[i]->at + all[i]->bytes > top) top = all[i]->at + all[i]->bytes;
    CALX_TRY(cpu_lower_check_total(c->a.program, top));
  }
  c->a.program->info.arena_bytes = (size_t)cpu_run_align_up(top);
  return NULL;
}
