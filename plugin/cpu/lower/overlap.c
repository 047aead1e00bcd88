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
// What others read meanwhile costs memory. Results that are there before their
// time are counted, and none begins early beyond a limit; operands that stay
// until the end are freed by ending older collectives first; and an order that
// needs much more than the program's own is not taken.
#include <stdlib.h>

#include "lower/plan.h"
#include "opt/edit.h"

#define LEAST_BYTES 65536  // of operands: less is done at once
#define LEAST_NS 50000.0   // of what runs beside it: about a thread's waking
#define MOST_OVERLAPS 1024
#define AHEAD_BYTES ((int64_t)64 << 20)
#define SLACK_BYTES ((int64_t)16 << 20)

typedef struct node {
  cx_unit *unit;
  uint32_t *reads;  // the units before it that it reads from, some repeatedly
  uint32_t n_reads;
  uint32_t n_users;  // with repetitions
  int64_t bytes;     // of what it writes
  bool kept;         // read by the end of the program
  bool meets;        // is a collective or holds one
  bool feeds;        // a loop that only collectives read, or such loops
  unsigned seen;
  // Of one order:
  bool done, open;
} node;

typedef struct ordering {
  cx_planning *g;
  size_t n;
  node *nodes;         // in the plan's order
  uint32_t *meetings;  // nodes that meet, in order
  size_t n_meetings;
  bool delays;  // what needs a result waits for all that does not
  // Of one order:
  size_t next;      // meeting
  uint32_t *begun;  // nodes, oldest first
  size_t n_begun, n_ended;
  uint32_t blocked_by;  // a node that the next meeting waits for; n: none known
  int64_t ahead, pinned;
  cx_unit **units;  // the result
  size_t n_units;
  uint32_t *stack, *loops;
  size_t n_loops;
  unsigned search;
} ordering;

// ---- what is there ----

static bool is_collective(const node *x)
{
  return x->unit->kind == CX_UNIT_COLLECTIVE;
}

static int64_t operand_bytes(const cx_unit *u)
{
  int64_t bytes = 0;
  for (size_t i = 0; i < u->n_inputs; i++) {
    bytes += cx_type_bytes(&u->inputs[i]->type.tensor);
  }
  return bytes;
}

static bool is_large(const node *x)
{
  return is_collective(x) && operand_bytes(x->unit) >= LEAST_BYTES;
}

static bool holds_collective(const cx_unit *u)
{
  if (u->kind == CX_UNIT_CODE) return false;
  const cx_hlo_op *op = u->ops[0];
  for (const cx_hlo_op *at = cx_opt_inner(op); at != op; at = cx_opt_next(at)) {
    if (cx_lower_is_collective(at)) return true;
  }
  return false;
}

static int64_t result_bytes(const cx_planning *g, const cx_unit *u)
{
  int64_t bytes = 0;
  for (size_t o = 0; o < u->n_ops; o++) {
    for (uint32_t r = 0; r < u->ops[o]->n_results; r++) {
      const cx_hlo_value *v = &u->ops[o]->results[r];
      if (cx_value(g, v)->home == u) bytes += cx_type_bytes(&v->type.tensor);
    }
  }
  return bytes;
}

// The node that makes a value; n: it is made elsewhere, or there is nothing to
// make.
static uint32_t maker_of(const ordering *s, const cx_hlo_value *root)
{
  const cx_unit *home = cx_value(s->g, root)->home;
  if (home == NULL || home->place >= s->n ||
      s->nodes[home->place].unit != home) {
    return (uint32_t)s->n;
  }
  return (uint32_t)home->place;
}

typedef struct reading {
  ordering *s;
  uint32_t user;
} reading;

static calx_status *count_read(cx_planning *g, void *user, cx_hlo_value *v)
{
  (void)g;
  reading *r = user;
  const uint32_t maker = maker_of(r->s, v);
  if (maker < r->user) r->s->nodes[r->user].n_reads++;
  return NULL;
}

static calx_status *note_read(cx_planning *g, void *user, cx_hlo_value *v)
{
  (void)g;
  reading *r = user;
  const uint32_t maker = maker_of(r->s, v);
  if (maker >= r->user) return NULL;
  node *x = &r->s->nodes[r->user];
  x->reads[x->n_reads++] = maker;
  r->s->nodes[maker].n_users++;
  return NULL;
}

static calx_status *list_reads(ordering *s, uint32_t i)
{
  node *x = &s->nodes[i];
  reading r = { s, i };
  CALX_TRY(cx_lower_each_read(s->g, x->unit, count_read, &r));
  x->reads = CX_ARENA_ARRAY(&s->g->l->arena, uint32_t, x->n_reads + 1);
  if (x->reads == NULL) return cx_out_of_memory();
  x->n_reads = 0;
  return cx_lower_each_read(s->g, x->unit, note_read, &r);
}

// Loops of which all users are collectives or such loops.
static void find_feeders(ordering *s)
{
  for (size_t i = 0; i < s->n; i++) {
    node *x = &s->nodes[i];
    x->feeds = x->unit->kind == CX_UNIT_CODE && x->n_users > 0 && !x->kept;
  }
  for (size_t i = s->n; i > 0; i--) {
    const node *x = &s->nodes[i - 1];
    if (x->feeds || is_collective(x)) continue;
    for (uint32_t k = 0; k < x->n_reads; k++) {
      s->nodes[x->reads[k]].feeds = false;
    }
  }
}

static calx_status *make_nodes(ordering *s, const cx_plan *plan)
{
  cx_arena *arena = &s->g->l->arena;
  s->n = plan->n_units;
  s->nodes = CX_ARENA_ARRAY(arena, node, s->n + 1);
  s->meetings = CX_ARENA_ARRAY(arena, uint32_t, s->n + 1);
  s->begun = CX_ARENA_ARRAY(arena, uint32_t, s->n + 1);
  s->stack = CX_ARENA_ARRAY(arena, uint32_t, s->n + 1);
  s->loops = CX_ARENA_ARRAY(arena, uint32_t, s->n + 1);
  if (s->nodes == NULL || s->meetings == NULL || s->begun == NULL ||
      s->stack == NULL || s->loops == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < s->n; i++) {
    plan->units[i]->place = i;
    s->nodes[i].unit = plan->units[i];
  }
  for (uint32_t i = 0; i < s->n; i++) {
    node *x = &s->nodes[i];
    CALX_TRY(list_reads(s, i));
    x->bytes = result_bytes(s->g, x->unit);
    x->meets = is_collective(x) || holds_collective(x->unit);
    if (x->meets) s->meetings[s->n_meetings++] = i;
  }
  const cx_hlo_op *end = cx_hlo_terminator(plan->block);
  for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
    const uint32_t maker = maker_of(s, cx_value_root(s->g, end->operands[i]));
    if (maker < s->n) s->nodes[maker].kept = true;
  }
  find_feeders(s);
  return NULL;
}

// ---- memory ----

// Whether the sums lie where the operands were.
static bool is_in_place(const ordering *s, const node *x)
{
  if (!is_collective(x) || !cx_lower_is_in_place(x->unit->ops[0])) return false;
  for (uint32_t k = 0; k < x->n_reads; k++) {
    const node *from = &s->nodes[x->reads[k]];
    if (from->n_users != 1 || from->kept) return false;
  }
  return x->n_reads == x->unit->n_inputs;
}

// An estimate of the most that is there at once. `units`: the nodes' units and
// ends.
static calx_status *peak_of(const ordering *s, cx_unit *const *units,
                            size_t n_units, int64_t *out)
{
  cx_arena *arena = &s->g->l->arena;
  size_t *last = CX_ARENA_ARRAY(arena, size_t, s->n + 1);
  int64_t *freed = CX_ARENA_ARRAY(arena, int64_t, n_units + 1);
  if (last == NULL || freed == NULL) return cx_out_of_memory();
  for (size_t at = 0; at < n_units; at++) {
    const bool ends = units[at]->kind == CX_UNIT_END;
    const cx_unit *u = ends ? units[at]->begun : units[at];
    const node *x = &s->nodes[u->place];
    if (ends && is_in_place(s, x)) continue;
    last[u->place] = at;
    for (uint32_t k = 0; k < x->n_reads; k++) last[x->reads[k]] = at;
  }
  for (size_t i = 0; i < s->n; i++) {
    if (s->nodes[i].kept) last[i] = n_units;
    freed[last[i]] += s->nodes[i].bytes;
  }
  int64_t live = 0, most = 0;
  for (size_t at = 0; at < n_units; at++) {
    if (units[at]->kind != CX_UNIT_END) {
      const node *x = &s->nodes[units[at]->place];
      live += x->bytes;
      const int64_t extra = is_in_place(s, x) ? x->bytes : 0;
      if (live - extra > most) most = live - extra;
    }
    live -= freed[at];
  }
  *out = most;
  return NULL;
}

// What its results need beyond its operands, if they are there early; and what
// its operands need, if they stay late.
static int64_t ahead_of(const ordering *s, const node *x)
{
  const int64_t more = x->bytes - operand_bytes(x->unit);
  return is_in_place(s, x) || more < 0 ? 0 : more;
}

static int64_t pinned_by(const ordering *s, const node *x)
{
  return is_in_place(s, x) ? 0 : operand_bytes(x->unit);
}

// ---- one order ----

static void put(ordering *s, node *x)
{
  x->done = true;
  s->units[s->n_units++] = x->unit;
  if (x->meets) {
    s->next++;
    s->blocked_by = (uint32_t)s->n;
  }
}

static bool any_open(const ordering *s)
{
  return s->n_ended < s->n_begun;
}

static calx_status *end_oldest(ordering *s)
{
  node *x = &s->nodes[s->begun[s->n_ended++]];
  cx_unit *end = CX_ARENA_NEW(&s->g->l->arena, cx_unit);
  if (end == NULL) return cx_out_of_memory();
  end->kind = CX_UNIT_END;
  end->begun = x->unit;
  s->units[s->n_units++] = end;
  x->open = false;
  s->ahead -= ahead_of(s, x);
  s->pinned -= pinned_by(s, x);
  return NULL;
}

static calx_status *begin(ordering *s, uint32_t i)
{
  node *x = &s->nodes[i];
  const int64_t bytes = pinned_by(s, x);
  while (any_open(s) && s->pinned + bytes > AHEAD_BYTES) {
    CALX_TRY(end_oldest(s));
  }
  s->pinned += bytes;
  s->ahead += ahead_of(s, x);
  x->open = true;
  x->unit->overlaps = true;
  s->begun[s->n_begun++] = i;
  put(s, x);
  return NULL;
}

// Whether a collective waits only for loops that feed it; these are then in
// s->loops.
static bool is_ready(ordering *s, uint32_t i)
{
  if (s->blocked_by < s->n) {
    const node *x = &s->nodes[s->blocked_by];
    if (!x->done || x->open) return false;
  }
  size_t depth = 0;
  s->search++;
  s->n_loops = 0;
  s->stack[depth++] = i;
  while (depth > 0) {
    const node *x = &s->nodes[s->stack[--depth]];
    for (uint32_t k = 0; k < x->n_reads; k++) {
      node *from = &s->nodes[x->reads[k]];
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
static calx_status *begin_next(ordering *s, bool *out)
{
  *out = false;
  if (s->next == s->n_meetings || s->n_begun == MOST_OVERLAPS) return NULL;
  const uint32_t i = s->meetings[s->next];
  const node *x = &s->nodes[i];
  if (!is_collective(x) || (!is_large(x) && !any_open(s)) || !is_ready(s, i) ||
      s->ahead + ahead_of(s, x) > AHEAD_BYTES) {
    return NULL;
  }
  qsort(s->loops, s->n_loops, sizeof *s->loops, by_number);
  for (size_t k = 0; k < s->n_loops; k++) put(s, &s->nodes[s->loops[k]]);
  CALX_TRY(begin(s, i));
  *out = true;
  return NULL;
}

static bool must_wait(const ordering *s, const node *x)
{
  if (x->meets && any_open(s) &&
      (!is_collective(x) || s->n_begun == MOST_OVERLAPS)) {
    return true;
  }
  for (uint32_t k = 0; k < x->n_reads; k++) {
    const node *from = &s->nodes[x->reads[k]];
    if (!from->done || from->open) return true;
  }
  return x->meets && s->meetings[s->next] != (uint32_t)(x - s->nodes);
}

// The first unit from *at on that waits for nothing that is open; n: there is
// none.
static size_t find(ordering *s, size_t *at)
{
  for (; *at < s->n; ++*at) {
    const node *x = &s->nodes[*at];
    if (x->done) continue;
    if (!must_wait(s, x)) return (*at)++;
    if (!s->delays) break;
  }
  return s->n;
}

static calx_status *run(ordering *s, uint32_t i)
{
  node *x = &s->nodes[i];
  if (is_collective(x) && s->n_begun < MOST_OVERLAPS &&
      (is_large(x) || any_open(s))) {
    return begin(s, i);
  }
  put(s, x);
  return NULL;
}

static calx_status *order(ordering *s)
{
  for (size_t i = 0; i < s->n; i++) {
    node *x = &s->nodes[i];
    x->done = x->open = x->unit->overlaps = false;
  }
  s->next = s->n_begun = s->n_ended = s->n_units = 0;
  s->ahead = s->pinned = 0;
  s->blocked_by = (uint32_t)s->n;
  s->units = CX_ARENA_ARRAY(&s->g->l->arena, cx_unit *, 2 * s->n + 1);
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

static double cost_beside(const cx_unit *u)
{
  // What is inside of a loop counts as much.
  return u->kind == CX_UNIT_CONTROL ? LEAST_NS : cx_lower_cost_ns(u);
}

// Collectives that little runs beside are done at once, unless another is open,
// behind which they would wait.
static void drop_idle(ordering *s)
{
  size_t n_open = 0;
  for (size_t i = 0; i < s->n_units; i++) {
    cx_unit *u = s->units[i];
    if (u->kind == CX_UNIT_END) {
      if (u->begun->overlaps) n_open--;
      continue;
    }
    if (!u->overlaps) continue;
    double ns = 0;
    for (size_t k = i + 1; n_open == 0 && ns < LEAST_NS; k++) {
      const cx_unit *next = s->units[k];
      if (next->kind == CX_UNIT_END && next->begun == u) {
        u->overlaps = false;
        break;
      }
      if (next->kind != CX_UNIT_END && !next->overlaps) ns += cost_beside(next);
    }
    if (u->overlaps) n_open++;
  }
  uint32_t number = 0;
  size_t kept = 0;
  for (size_t i = 0; i < s->n_units; i++) {
    cx_unit *u = s->units[i];
    if (u->kind == CX_UNIT_END && !u->begun->overlaps) continue;
    if (u->overlaps) u->number = number++;
    s->units[kept++] = u;
  }
  s->n_units = kept;
}

// Whether the order stays near to the memory that the plan's own needs.
static calx_status *is_affordable(const ordering *s, int64_t own, bool *out)
{
  int64_t peak = 0;
  CALX_TRY(peak_of(s, s->units, s->n_units, &peak));
  *out = peak <= own + own / 4 + SLACK_BYTES;
  return NULL;
}

static bool any_large(const cx_plan *plan)
{
  for (size_t i = 0; i < plan->n_units; i++) {
    const node x = { .unit = plan->units[i] };
    if (is_large(&x)) return true;
  }
  return false;
}

calx_status *cx_lower_overlap(cx_planning *g, cx_plan *plan)
{
  const cx_program_info *info = &g->l->a.program->info;
  const bool alone = info->n_replicas <= 1 && info->n_partitions <= 1;
  if (alone || g->l->blocking || !any_large(plan)) return NULL;
  ordering s = { .g = g };
  int64_t own = 0;
  CALX_TRY(make_nodes(&s, plan));
  CALX_TRY(peak_of(&s, plan->units, plan->n_units, &own));
  for (int tries = 0; tries < 2; tries++) {
    bool affordable = false;
    s.delays = tries == 0;
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
