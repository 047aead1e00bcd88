// lower/order: the units of a block one behind the other, each after those that
// it reads, near to where the program has them; and the times at which they
// run, of which the tables of values then know the first and the last.
#include <stdlib.h>

#include "lower/plan.h"
#include "opt/edit.h"

static int by_key(const void *a, const void *b)
{
  const cpu_lower_unit *const *x = a;
  const cpu_lower_unit *const *y = b;
  return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

// ---- what a unit waits for ----

typedef struct waiting {
  cpu_lower_unit **stack;
  size_t n, room;
  unsigned open;  // one more than the mark of units without a place
  const cpu_lower_unit *self;
} waiting;

static calx_status *wait_for(cpu_lower_planner *g, void *user, cx_hlo_value *v)
{
  waiting *w = user;
  cpu_lower_unit *home = cx_graph_value(g, v)->home;
  if (home == NULL || home == w->self || home->mark != w->open - 1) return NULL;
  return cpu_lower_push(g->l, &w->stack, &w->n, &w->room, home)
             ? NULL
             : cx_out_of_memory();
}

// Depth first. `mark` is open - 1 for a unit of this block without a place,
// open
// + 1 while others are waited for, open + 2 when it has its place; units of
// other blocks have other marks.
static calx_status *sort(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  if (plan->n_units > 1) {
    qsort(plan->units, plan->n_units, sizeof(cpu_lower_unit *), by_key);
  }
  cpu_lower_unit **sorted =
      CX_ARENA_ARRAY(&g->l->arena, cpu_lower_unit *, plan->n_units + 1);
  if (sorted == NULL) return cx_out_of_memory();
  size_t n = 0;
  waiting w = { .open = g->mark + 1 };
  g->mark += 4;
  for (size_t i = 0; i < plan->n_units; i++) plan->units[i]->mark = w.open - 1;
  for (size_t i = 0; i < plan->n_units; i++) {
    if (!cpu_lower_push(g->l, &w.stack, &w.n, &w.room, plan->units[i])) {
      return cx_out_of_memory();
    }
    while (w.n > 0) {
      cpu_lower_unit *u = w.stack[w.n - 1];
      if (u->mark >= w.open + 1) {
        w.n--;
        if (u->mark == w.open + 1) {
          u->mark = w.open + 2;
          sorted[n++] = u;
        }
        continue;
      }
      u->mark = w.open + 1;
      w.self = u;
      CALX_TRY(cpu_lower_each_read(g, u, wait_for, &w));
    }
  }
  plan->units = sorted;
  return NULL;
}

// ---- times ----

static calx_status *note_last(cpu_lower_planner *g, void *user, cx_hlo_value *v)
{
  const int64_t *time = user;
  cpu_lower_value_info *info = cx_graph_value(g, v);
  if (info->home != NULL && info->home->begin == 0) {
    return cx_error(CALX_INTERNAL, "lower: units that wait in a circle");
  }
  if (info->last < *time) info->last = *time;
  return NULL;
}

// Whether others read the operand of a collective since that began.
static calx_status *note_beside(cpu_lower_planner *g, void *user,
                                cx_hlo_value *v)
{
  const int64_t *begin = user;
  cpu_lower_value_info *info = cx_graph_value(g, v);
  if (info->last > *begin) info->beside = true;
  return NULL;
}

// A unit has ended, at u->end: what it reads was needed so long, and what it
// writes is there until then at least.
static calx_status *note_end(cpu_lower_planner *g, cpu_lower_unit *u)
{
  for (size_t o = 0; o < u->n_ops; o++) {
    for (uint32_t r = 0; r < u->ops[o]->n_results; r++) {
      cpu_lower_value_info *info = cx_graph_value(g, &u->ops[o]->results[r]);
      if (info->home != u) continue;
      if (info->last < u->end) info->last = u->end;
    }
  }
  return cpu_lower_each_read(g, u, note_last, &u->end);
}

// An operand that a region uses is needed until the region has run for the last
// time; those of a collective that others run beside, until it is ended.
static calx_status *give_times(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    u->begin = ++g->clock;
    if (u->kind == CPU_LOWER_UNIT_CONTROL) {
      for (uint32_t r = 0; r < u->ops[0]->n_regions; r++) {
        CALX_TRY(give_times(g, &u->regions[r]));
      }
    }
    u->end = u->kind == CPU_LOWER_UNIT_CONTROL ? ++g->clock : u->begin;
    CALX_TRY(note_end(g, u));
    if (u->kind == CPU_LOWER_UNIT_END) {
      CALX_TRY(cpu_lower_each_read(g, u->begun, note_beside, &u->begun->begin));
      u->begun->end = u->end;
      CALX_TRY(note_end(g, u->begun));
    }
  }
  int64_t end = ++g->clock;
  const cx_hlo_op *last = cx_hlo_terminator(plan->block);
  for (uint32_t i = 0; last != NULL && i < last->n_operands; i++) {
    CALX_TRY(note_last(g, &end, cx_value_root(g, last->operands[i])));
  }
  return NULL;
}

static calx_status *sort_all(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    for (uint32_t r = 0;
         u->kind == CPU_LOWER_UNIT_CONTROL && r < u->ops[0]->n_regions; r++) {
      CALX_TRY(sort_all(g, &u->regions[r]));
    }
  }
  return sort(g, plan);
}

calx_status *cpu_lower_order(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  CALX_TRY(sort_all(g, plan));
  CALX_TRY(cpu_lower_overlap(g, plan));
  return give_times(g, plan);
}
