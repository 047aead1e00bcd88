// lower/overlap: collectives beside what others do meanwhile.
//
// In a step of training all gradients are made, then they are summed over the
// devices in buckets, then the parameters change. Here a collective begins as
// soon as its operands are there, with the loops before it that only feed
// collectives (a bucket's copies); what needs a result comes as late as it can;
// and where only that is left, the oldest collective is ended. Other units keep
// their order, and collectives theirs, so that devices meet whatever they
// compiled.
//
// What is open costs memory, so there is a limit to it: before one more begins,
// the oldest is ended, and what waits for it runs. One whose results are larger
// than its operands does not begin early beyond that limit. An order that needs
// much more than the program's own is not taken.
#include "lower/overlap.h"

#include <stdlib.h>

#define LEAST_NS 50000.0  // of what runs beside it: about a thread's waking
#define MOST_OVERLAPS 1024
// What is open at once may have so much, or an eighth of what the program needs
// without.
#define OPEN_BYTES ((int64_t)96 << 20)

// ---- one order ----

static void put(cpu_lower_ordering *s, cpu_lower_order_node *x)
{
  x->done = true;
  s->units[s->n_units++] = x->unit;
  if (x->meets) {
    s->next++;
    s->blocked_by = (uint32_t)s->n;
  }
}

static bool any_open(const cpu_lower_ordering *s)
{
  return s->n_ended < s->n_begun;
}

static calx_status *end_oldest(cpu_lower_ordering *s)
{
  cpu_lower_order_node *x = &s->nodes[s->begun[s->n_ended++]];
  cpu_lower_unit *end = CX_ARENA_NEW(&s->g->l->arena, cpu_lower_unit);
  if (end == NULL) return cx_out_of_memory();
  end->kind = CPU_LOWER_UNIT_END;
  end->begun = x->unit;
  s->units[s->n_units++] = end;
  x->open = false;
  s->ahead -= cpu_lower_overlap_ahead(s, x);
  s->held -= cpu_lower_overlap_held(s, x);
  return NULL;
}

static calx_status *begin(cpu_lower_ordering *s, uint32_t i)
{
  cpu_lower_order_node *x = &s->nodes[i];
  const int64_t bytes = cpu_lower_overlap_held(s, x);
  while (any_open(s) && s->held + bytes > s->limit) {
    CALX_TRY(end_oldest(s));
  }
  s->held += bytes;
  s->ahead += cpu_lower_overlap_ahead(s, x);
  x->open = true;
  x->unit->overlaps = true;
  s->begun[s->n_begun++] = i;
  put(s, x);
  return NULL;
}

// Whether a collective waits only for loops that feed it; these are then in
// s->loops.
static bool is_ready(cpu_lower_ordering *s, uint32_t i)
{
  if (s->blocked_by < s->n) {
    const cpu_lower_order_node *x = &s->nodes[s->blocked_by];
    if (!x->done || x->open) return false;
  }
  size_t depth = 0;
  s->search++;
  s->n_loops = 0;
  s->stack[depth++] = i;
  while (depth > 0) {
    const cpu_lower_order_node *x = &s->nodes[s->stack[--depth]];
    for (uint32_t k = 0; k < x->n_reads; k++) {
      cpu_lower_order_node *from = &s->nodes[x->reads[k]];
      if (from->seen == s->search) continue;
      from->seen = s->search;
      if (from->done && !from->open) continue;
      if (from->done || !from->feeds) {
        s->blocked_by = x->reads[k];
        return false;
      }
      s->loops[s->n_loops++] = x->reads[k];
      s->stack[depth++] = x->reads[k];
    }
  }
  return true;
}

static int by_number(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// Begins the next collective, if it can be now and something is to run beside
// it.
static calx_status *begin_next(cpu_lower_ordering *s, bool *out)
{
  *out = false;
  if (s->next == s->n_meetings || s->n_begun == MOST_OVERLAPS) return NULL;
  const uint32_t i = s->meetings[s->next];
  const cpu_lower_order_node *x = &s->nodes[i];
  if (x->unit->kind != CPU_LOWER_UNIT_COLLECTIVE ||
      (!cpu_lower_overlap_is_large(x->unit) && !any_open(s)) ||
      !is_ready(s, i) || s->ahead + cpu_lower_overlap_ahead(s, x) > s->limit) {
    return NULL;
  }
  qsort(s->loops, s->n_loops, sizeof *s->loops, by_number);
  for (size_t k = 0; k < s->n_loops; k++) put(s, &s->nodes[s->loops[k]]);
  CALX_TRY(begin(s, i));
  *out = true;
  return NULL;
}

static bool must_wait(const cpu_lower_ordering *s,
                      const cpu_lower_order_node *x)
{
  if (x->meets && any_open(s) &&
      (x->unit->kind != CPU_LOWER_UNIT_COLLECTIVE ||
       s->n_begun == MOST_OVERLAPS)) {
    return true;
  }
  for (uint32_t k = 0; k < x->n_reads; k++) {
    const cpu_lower_order_node *from = &s->nodes[x->reads[k]];
    if (!from->done || from->open) return true;
  }
  return x->meets && s->meetings[s->next] != (uint32_t)(x - s->nodes);
}

// The first unit from *at on that waits for nothing that is open; n: there is
// none.
static size_t find(cpu_lower_ordering *s, size_t *at)
{
  for (; *at < s->n; ++*at) {
    const cpu_lower_order_node *x = &s->nodes[*at];
    if (x->done) continue;
    if (!must_wait(s, x)) return (*at)++;
    if (!s->delays) break;
  }
  return s->n;
}

static calx_status *run(cpu_lower_ordering *s, uint32_t i)
{
  cpu_lower_order_node *x = &s->nodes[i];
  if (x->unit->kind == CPU_LOWER_UNIT_COLLECTIVE &&
      s->n_begun < MOST_OVERLAPS &&
      (cpu_lower_overlap_is_large(x->unit) || any_open(s))) {
    return begin(s, i);
  }
  put(s, x);
  return NULL;
}

static calx_status *order(cpu_lower_ordering *s)
{
  for (size_t i = 0; i < s->n; i++) {
    cpu_lower_order_node *x = &s->nodes[i];
    x->done = x->open = x->unit->overlaps = false;
  }
  s->next = s->n_begun = s->n_ended = s->n_units = 0;
  s->ahead = s->held = 0;
  s->blocked_by = (uint32_t)s->n;
  s->units = CX_ARENA_ARRAY(&s->g->l->arena, cpu_lower_unit *, 2 * s->n + 1);
  if (s->units == NULL) return cx_out_of_memory();
  size_t at = 0;
  for (size_t n_ended = 0;;) {
    bool begun = false;
    CALX_TRY(begin_next(s, &begun));
    if (begun) continue;
    if (n_ended != s->n_ended) at = 0;  // those before may wait no more
    n_ended = s->n_ended;
    const size_t i = find(s, &at);
    if (i < s->n) {
      CALX_TRY(run(s, (uint32_t)i));
    } else if (any_open(s)) {
      CALX_TRY(end_oldest(s));
    } else {
      break;
    }
  }
  return s->n_units == s->n + s->n_begun
             ? NULL
             : cx_error(CALX_INTERNAL, "lower: units that nothing lets begin");
}

// ---- what is worth it ----

static double cost_beside(const cpu_lower_unit *u)
{
  // What is inside of a loop counts as much.
  return u->kind == CPU_LOWER_UNIT_CONTROL ? LEAST_NS : cpu_lower_cost_ns(u);
}

// Collectives that little runs beside are done at once, unless another is open,
// behind which they would wait.
static void drop_idle(cpu_lower_ordering *s)
{
  size_t n_open = 0;
  for (size_t i = 0; i < s->n_units; i++) {
    cpu_lower_unit *u = s->units[i];
    if (u->kind == CPU_LOWER_UNIT_END) {
      if (u->begun->overlaps) n_open--;
      continue;
    }
    if (!u->overlaps) continue;
    double ns = 0;
    for (size_t k = i + 1; n_open == 0 && ns < LEAST_NS; k++) {
      const cpu_lower_unit *next = s->units[k];
      if (next->kind == CPU_LOWER_UNIT_END && next->begun == u) {
        u->overlaps = false;
        break;
      }
      if (next->kind != CPU_LOWER_UNIT_END && !next->overlaps)
        ns += cost_beside(next);
    }
    if (u->overlaps) n_open++;
  }
  uint32_t number = 0;
  size_t kept = 0;
  for (size_t i = 0; i < s->n_units; i++) {
    cpu_lower_unit *u = s->units[i];
    if (u->kind == CPU_LOWER_UNIT_END && !u->begun->overlaps) continue;
    if (u->overlaps) u->number = number++;
    s->units[kept++] = u;
  }
  s->n_units = kept;
}

// Whether the order stays near to the memory that the plan's own needs.
static calx_status *is_affordable(const cpu_lower_ordering *s, int64_t own,
                                  bool *out)
{
  int64_t peak = 0;
  CALX_TRY(cpu_lower_overlap_peak(s, s->units, s->n_units, &peak));
  *out = peak <= own + own / 4 + OPEN_BYTES;
  return NULL;
}

static bool any_large(const cpu_lower_schedule *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    if (cpu_lower_overlap_is_large(plan->units[i])) return true;
  }
  return false;
}

calx_status *cpu_lower_overlap(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  const cpu_run_program_info *info = &g->l->a.program->info;
  const bool alone = info->n_replicas <= 1 && info->n_partitions <= 1;
  if (alone || g->l->blocking || !any_large(plan)) return NULL;
  cpu_lower_ordering s = { .g = g };
  int64_t own = 0;
  CALX_TRY(cpu_lower_overlap_nodes(&s, plan));
  CALX_TRY(cpu_lower_overlap_peak(&s, plan->units, plan->n_units, &own));
  s.limit = own / 8 > OPEN_BYTES ? own / 8 : OPEN_BYTES;
  for (int tries = 0; tries < 3; tries++) {
    bool affordable = false;
    if (tries == 1) s.limit /= 4;
    s.delays = tries < 2;
    CALX_TRY(order(&s));
    drop_idle(&s);
    CALX_TRY(is_affordable(&s, own, &affordable));
    if (affordable) {
      plan->units = s.units;
      plan->n_units = s.n_units;
      return NULL;
    }
  }
  for (size_t i = 0; i < s.n; i++) s.nodes[i].unit->overlaps = false;
  return NULL;
}
