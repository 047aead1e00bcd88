// hlo/calls: finds recursion by topological sorting. Functions without calls
// are removed, then functions that call only removed ones, and so on. Functions
// that are left call each other recursively, or call such functions.
#include "hlo/calls.h"

#include "base/alloc.h"

calx_status *cx_hlo_calls_add(cx_hlo_calls *calls, const cx_hlo_func *caller,
                              const cx_hlo_func *callee)
{
  if (!cx_grow(&calls->items, &calls->capacity, calls->n + 1,
               sizeof *calls->items)) {
    return cx_out_of_memory();
  }
  calls->items[calls->n++] = (cx_hlo_call){ caller->index, callee->index };
  return NULL;
}

typedef struct graph {
  uint32_t *open;     // by function: its calls of functions that are left
  uint32_t *first;    // by function: index of its first caller in `callers`
  uint32_t *callers;  // sorted by callee
  uint32_t *ready;    // functions to remove
} graph;

static void sort_by_callee(const cx_hlo_calls *calls, size_t n_funcs, graph *g)
{
  for (size_t i = 0; i < calls->n; i++) {
    g->open[calls->items[i].caller]++;
    g->first[calls->items[i].callee + 1]++;
  }
  for (size_t f = 0; f < n_funcs; f++) g->first[f + 1] += g->first[f];
  // Filling moves first[f] to the end of f's callers, where f + 1's begin.
  for (size_t i = 0; i < calls->n; i++) {
    g->callers[g->first[calls->items[i].callee]++] = calls->items[i].caller;
  }
}

static void remove_functions(graph *g, size_t n_funcs)
{
  size_t n_ready = 0;
  for (uint32_t f = 0; f < n_funcs; f++) {
    if (g->open[f] == 0) g->ready[n_ready++] = f;
  }
  while (n_ready > 0) {
    const uint32_t f = g->ready[--n_ready];
    for (uint32_t i = f == 0 ? 0 : g->first[f - 1]; i < g->first[f]; i++) {
      if (--g->open[g->callers[i]] == 0) g->ready[n_ready++] = g->callers[i];
    }
  }
}

calx_status *cx_hlo_calls_check(const cx_hlo_calls *calls,
                                const cx_hlo_module *m)
{
  if (calls->n == 0) return NULL;
  const size_t n = m->n_funcs;
  uint32_t *all = cx_calloc(3 * n + 1 + calls->n, sizeof *all);
  if (all == NULL) return cx_out_of_memory();
  graph g = { all, all + n, all + 2 * n + 1, all + 2 * n + 1 + calls->n };
  sort_by_callee(calls, n, &g);
  remove_functions(&g, n);
  calx_status *status = NULL;
  for (const cx_hlo_func *f = m->first; f != NULL && status == NULL;
       f = f->next) {
    if (g.open[f->index] == 0) continue;
    status = cx_invalid("function '%.*s' calls itself, or functions that do",
                        (int)f->name.n, f->name.s);
  }
  cx_free(all);
  return status;
}
