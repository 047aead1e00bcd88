// lower/overlap: an order of the entry's groups in which collectives run in
// background while other groups compute.
//
// A training step computes all gradients, sums them over the devices in
// buckets, and then changes the parameters. Here a collective starts as soon as
// its operands are there, after the loops that only feed collectives (the
// copies to a bucket). What needs a result comes as late as possible. When
// nothing else is left, the program waits for the oldest collective: its DONE
// group. All other groups keep their order, and so do the collectives: the
// devices must meet in the same order even if they compiled different programs.
//
// A collective that runs holds memory, so there is a limit: before one more
// starts, the program waits for the oldest, and then what waited for that one
// runs. A collective with results larger than its operands does not start early
// beyond that limit. An order that needs much more memory than the program's
// own is not taken.
#include "lower/overlap.h"

#include <stdlib.h>

// Work beside a collective that is worth a thread: about the time of its
// wake-up.
#define LEAST_NS 50000.0
#define MOST_IN_BACKGROUND 1024
// Running collectives may hold so much, or an eighth of what the program needs
// without them.
#define HELD_BYTES ((int64_t)96 << 20)

// ---- one order ----

static void append(cpu_lower_search *s, cpu_lower_node *x)
{
  x->placed = true;
  s->groups[s->n_groups++] = x->group;
  if (x->has_collective) {
    s->next++;
    s->blocker = NULL;
  }
}

static bool is_any_running(const cpu_lower_search *s)
{
  return s->n_done < s->n_started;
}

static bool is_available(const cpu_lower_node *x)
{
  return x->placed && !x->running;
}

static calx_status *wait_for_oldest(cpu_lower_search *s)
{
  cpu_lower_node *x = s->started[s->n_done++];
  cpu_lower_group *done = CX_ARENA_NEW(&s->c->arena, cpu_lower_group);
  if (done == NULL) return cx_out_of_memory();
  done->kind = CPU_LOWER_GROUP_DONE;
  done->collective = x->group;
  s->groups[s->n_groups++] = done;
  x->running = false;
  s->early_bytes -= cpu_lower_overlap_early_bytes(x);
  s->held_bytes -= cpu_lower_overlap_held_bytes(x);
  return NULL;
}

static calx_status *start(cpu_lower_search *s, cpu_lower_node *x)
{
  const int64_t bytes = cpu_lower_overlap_held_bytes(x);
  while (is_any_running(s) && s->held_bytes + bytes > s->limit) {
    CALX_TRY(wait_for_oldest(s));
  }
  s->held_bytes += bytes;
  s->early_bytes += cpu_lower_overlap_early_bytes(x);
  x->running = true;
  x->group->in_background = true;
  s->started[s->n_started++] = x;
  append(s, x);
  return NULL;
}

// Whether a collective waits only for loops that feed collectives; these are
// then in s->loops.
static bool is_ready(cpu_lower_search *s, cpu_lower_node *x)
{
  if (s->blocker != NULL && !is_available(s->blocker)) return false;
  size_t depth = 0;
  s->search++;
  s->n_loops = 0;
  s->stack[depth++] = x;
  while (depth > 0) {
    const cpu_lower_node *at = s->stack[--depth];
    for (size_t k = 0; k < at->n_reads; k++) {
      cpu_lower_node *from = at->reads[k];
      if (from->seen == s->search) continue;
      from->seen = s->search;
      if (is_available(from)) continue;
      if (from->placed || !from->feeds_collective) {
        s->blocker = from;
        return false;
      }
      s->loops[s->n_loops++] = from;
      s->stack[depth++] = from;
    }
  }
  return true;
}

// Nodes are in one array, in the schedule's order.
static int by_address(const void *a, const void *b)
{
  const cpu_lower_node *const *x = a;
  const cpu_lower_node *const *y = b;
  return (*x > *y) - (*x < *y);
}

static bool may_run_in_background(const cpu_lower_search *s,
                                  const cpu_lower_node *x)
{
  return x->group->kind == CPU_LOWER_GROUP_COLLECTIVE &&
         s->n_started < MOST_IN_BACKGROUND &&
         (cpu_lower_overlap_is_large(x->group) || is_any_running(s));
}

// Starts the next collective, if that is possible now.
static calx_status *start_next(cpu_lower_search *s, bool *out)
{
  *out = false;
  if (s->next == s->n_collectives) return NULL;
  cpu_lower_node *x = s->collectives[s->next];
  if (!may_run_in_background(s, x) || !is_ready(s, x) ||
      s->early_bytes + cpu_lower_overlap_early_bytes(x) > s->limit) {
    return NULL;
  }
  qsort(s->loops, s->n_loops, sizeof *s->loops, by_address);
  for (size_t k = 0; k < s->n_loops; k++) append(s, s->loops[k]);
  *out = true;
  return start(s, x);
}

static bool must_wait(const cpu_lower_search *s, const cpu_lower_node *x)
{
  for (size_t k = 0; k < x->n_reads; k++) {
    if (!is_available(x->reads[k])) return true;
  }
  if (!x->has_collective) return false;
  // What runs in background is over before a collective that does not.
  return s->collectives[s->next] != x ||
         (is_any_running(s) && !may_run_in_background(s, x));
}

// The first node from *at on that has to wait for nothing; NULL: there is none.
static cpu_lower_node *find(cpu_lower_search *s, size_t *at)
{
  for (; *at < s->n_nodes; ++*at) {
    cpu_lower_node *x = &s->nodes[*at];
    if (x->placed) continue;
    if (!must_wait(s, x)) {
      ++*at;
      return x;
    }
    if (!s->delay) break;
  }
  return NULL;
}

static calx_status *begin_order(cpu_lower_search *s)
{
  for (size_t i = 0; i < s->n_nodes; i++) {
    cpu_lower_node *x = &s->nodes[i];
    x->placed = x->running = x->group->in_background = false;
  }
  s->next = s->n_started = s->n_done = s->n_groups = 0;
  s->early_bytes = s->held_bytes = 0;
  s->blocker = NULL;
  s->groups =
      CX_ARENA_ARRAY(&s->c->arena, cpu_lower_group *, 2 * s->n_nodes + 1);
  return s->groups == NULL ? cx_out_of_memory() : NULL;
}

static calx_status *make_order(cpu_lower_search *s)
{
  CALX_TRY(begin_order(s));
  size_t at = 0;
  for (size_t n_done = 0;;) {
    bool started = false;
    CALX_TRY(start_next(s, &started));
    if (started) continue;
    if (n_done != s->n_done) at = 0;  // earlier nodes may wait no more
    n_done = s->n_done;
    cpu_lower_node *x = find(s, &at);
    if (x != NULL && may_run_in_background(s, x)) {
      CALX_TRY(start(s, x));
    } else if (x != NULL) {
      append(s, x);
    } else if (is_any_running(s)) {
      CALX_TRY(wait_for_oldest(s));
    } else {
      break;
    }
  }
  return s->n_groups == s->n_nodes + s->n_started
             ? NULL
             : cx_error(CALX_INTERNAL, "lower: groups that never become ready");
}

// ---- what is worth it ----

// Whether little runs between groups[i], a collective, and its DONE group.
static bool is_idle(const cpu_lower_search *s, size_t i)
{
  double ns = 0;
  for (size_t k = i + 1; ns < LEAST_NS; k++) {
    const cpu_lower_group *g = s->groups[k];
    if (g->kind == CPU_LOWER_GROUP_DONE) {
      if (g->collective == s->groups[i]) return true;
    } else if (g->kind == CPU_LOWER_GROUP_CONTROL) {
      return false;  // its regions count as much work
    } else if (!g->in_background) {
      ns += cpu_lower_cost_ns(s->c, g);
    }
  }
  return false;
}

// Takes collectives that little runs beside out of the background, unless they
// would then wait for another one that is running.
static void drop_idle(cpu_lower_search *s)
{
  size_t n_running = 0, n = 0;
  uint32_t n_background = 0;
  for (size_t i = 0; i < s->n_groups; i++) {
    cpu_lower_group *g = s->groups[i];
    if (g->kind == CPU_LOWER_GROUP_DONE) {
      if (g->collective->in_background) n_running--;
    } else if (g->in_background) {
      g->in_background = n_running > 0 || !is_idle(s, i);
      if (g->in_background) n_running++;
    }
  }
  for (size_t i = 0; i < s->n_groups; i++) {
    cpu_lower_group *g = s->groups[i];
    if (g->kind == CPU_LOWER_GROUP_DONE && !g->collective->in_background) {
      continue;
    }
    if (g->in_background) g->background_index = n_background++;
    s->groups[n++] = g;
  }
  s->n_groups = n;
}

static bool has_large(const cpu_lower_schedule *schedule)
{
  for (size_t i = 0; i < schedule->n_groups; i++) {
    if (cpu_lower_overlap_is_large(schedule->groups[i])) return true;
  }
  return false;
}

calx_status *cpu_lower_overlap(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  const cpu_run_program_info *info = &c->a.program->info;
  const bool alone = info->n_replicas <= 1 && info->n_partitions <= 1;
  if (alone || c->blocking || !has_large(schedule)) return NULL;
  cpu_lower_search s = { .c = c };
  int64_t own = 0, peak = 0;  // bytes: of the schedule, of the new order
  CALX_TRY(cpu_lower_overlap_graph(&s, schedule));
  CALX_TRY(
      cpu_lower_overlap_peak(&s, schedule->groups, schedule->n_groups, &own));
  s.limit = own / 8 > HELD_BYTES ? own / 8 : HELD_BYTES;
  for (int tries = 0; tries < 3; tries++) {
    if (tries == 1) s.limit /= 4;
    s.delay = tries < 2;
    CALX_TRY(make_order(&s));
    drop_idle(&s);
    CALX_TRY(cpu_lower_overlap_peak(&s, s.groups, s.n_groups, &peak));
    if (peak <= own + own / 4 + HELD_BYTES) {
      schedule->groups = s.groups;
      schedule->n_groups = s.n_groups;
      return NULL;
    }
  }
  for (size_t i = 0; i < s.n_nodes; i++) {
    s.nodes[i].group->in_background = false;
  }
  return NULL;
}
