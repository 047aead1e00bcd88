// lower/overlap_nodes: what is known of the units that are to be ordered, and
// how much memory an order of them needs.
#include "lower/overlap.h"
#include "opt/edit.h"

#define LEAST_BYTES 65536  // of operands: less is done at once

// ---- what is there ----

static int64_t operand_bytes(const cpu_lower_unit *u)
{
  int64_t bytes = 0;
  for (size_t i = 0; i < u->n_inputs; i++) {
    bytes += cx_hlo_type_bytes(&u->inputs[i]->type.tensor);
  }
  return bytes;
}

bool cpu_lower_overlap_is_large(const cpu_lower_unit *u)
{
  return u->kind == CPU_LOWER_UNIT_COLLECTIVE &&
         operand_bytes(u) >= LEAST_BYTES;
}

static bool holds_collective(const cpu_lower_unit *u)
{
  if (u->kind == CPU_LOWER_UNIT_CODE) return false;
  const cx_hlo_op *op = u->ops[0];
  for (const cx_hlo_op *at = cpu_opt_inner(op); at != op;
       at = cpu_opt_next(at)) {
    if (cpu_lower_is_collective(at)) return true;
  }
  return false;
}

static int64_t result_bytes(const cpu_lower_planner *g, const cpu_lower_unit *u)
{
  int64_t bytes = 0;
  for (size_t o = 0; o < u->n_ops; o++) {
    for (uint32_t r = 0; r < u->ops[o]->n_results; r++) {
      const cx_hlo_value *v = &u->ops[o]->results[r];
      if (cx_graph_value(g, v)->home == u)
        bytes += cx_hlo_type_bytes(&v->type.tensor);
    }
  }
  return bytes;
}

// The node that makes a value; n: it is made elsewhere, or there is nothing to
// make.
static uint32_t maker_of(const cpu_lower_ordering *s, const cx_hlo_value *root)
{
  const cpu_lower_unit *home = cx_graph_value(s->g, root)->home;
  if (home == NULL || home->place >= s->n ||
      s->nodes[home->place].unit != home) {
    return (uint32_t)s->n;
  }
  return (uint32_t)home->place;
}

typedef struct reading {
  cpu_lower_ordering *s;
  uint32_t user;
} reading;

static calx_status *count_read(cpu_lower_planner *g, void *user,
                               cx_hlo_value *v)
{
  (void)g;
  reading *r = user;
  const uint32_t maker = maker_of(r->s, v);
  if (maker < r->user) r->s->nodes[r->user].n_reads++;
  return NULL;
}

static calx_status *note_read(cpu_lower_planner *g, void *user, cx_hlo_value *v)
{
  (void)g;
  reading *r = user;
  const uint32_t maker = maker_of(r->s, v);
  if (maker >= r->user) return NULL;
  cpu_lower_order_node *x = &r->s->nodes[r->user];
  x->reads[x->n_reads++] = maker;
  r->s->nodes[maker].n_users++;
  return NULL;
}

static calx_status *list_reads(cpu_lower_ordering *s, uint32_t i)
{
  cpu_lower_order_node *x = &s->nodes[i];
  reading r = { s, i };
  CALX_TRY(cpu_lower_each_read(s->g, x->unit, count_read, &r));
  x->reads = CX_ARENA_ARRAY(&s->g->l->arena, uint32_t, x->n_reads + 1);
  if (x->reads == NULL) return cx_out_of_memory();
  x->n_reads = 0;
  return cpu_lower_each_read(s->g, x->unit, note_read, &r);
}

// Loops of which all users are collectives or such loops.
static void find_feeders(cpu_lower_ordering *s)
{
  for (size_t i = 0; i < s->n; i++) {
    cpu_lower_order_node *x = &s->nodes[i];
    x->feeds =
        x->unit->kind == CPU_LOWER_UNIT_CODE && x->n_users > 0 && !x->kept;
  }
  for (size_t i = s->n; i > 0; i--) {
    const cpu_lower_order_node *x = &s->nodes[i - 1];
    if (x->feeds || x->unit->kind == CPU_LOWER_UNIT_COLLECTIVE) continue;
    for (uint32_t k = 0; k < x->n_reads; k++) {
      s->nodes[x->reads[k]].feeds = false;
    }
  }
}

calx_status *cpu_lower_overlap_nodes(cpu_lower_ordering *s,
                                     const cpu_lower_schedule *plan)
{
  cx_arena *arena = &s->g->l->arena;
  s->n = plan->n_units;
  s->nodes = CX_ARENA_ARRAY(arena, cpu_lower_order_node, s->n + 1);
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
    cpu_lower_order_node *x = &s->nodes[i];
    CALX_TRY(list_reads(s, i));
    x->bytes = result_bytes(s->g, x->unit);
    x->meets =
        x->unit->kind == CPU_LOWER_UNIT_COLLECTIVE || holds_collective(x->unit);
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
static bool is_in_place(const cpu_lower_ordering *s,
                        const cpu_lower_order_node *x)
{
  if (x->unit->kind != CPU_LOWER_UNIT_COLLECTIVE ||
      !cpu_lower_is_in_place(x->unit->ops[0]))
    return false;
  for (uint32_t k = 0; k < x->n_reads; k++) {
    const cpu_lower_order_node *from = &s->nodes[x->reads[k]];
    if (from->n_users != 1 || from->kept) return false;
  }
  return x->n_reads == x->unit->n_inputs;
}

// An estimate of the most that is there at once. `units`: the nodes' units and
// ends.
calx_status *cpu_lower_overlap_peak(const cpu_lower_ordering *s,
                                    cpu_lower_unit *const *units,
                                    size_t n_units, int64_t *out)
{
  cx_arena *arena = &s->g->l->arena;
  size_t *last = CX_ARENA_ARRAY(arena, size_t, s->n + 1);
  int64_t *freed = CX_ARENA_ARRAY(arena, int64_t, n_units + 1);
  if (last == NULL || freed == NULL) return cx_out_of_memory();
  for (size_t at = 0; at < n_units; at++) {
    const bool ends = units[at]->kind == CPU_LOWER_UNIT_END;
    const cpu_lower_unit *u = ends ? units[at]->begun : units[at];
    const cpu_lower_order_node *x = &s->nodes[u->place];
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
    if (units[at]->kind != CPU_LOWER_UNIT_END) {
      const cpu_lower_order_node *x = &s->nodes[units[at]->place];
      live += x->bytes;
      const int64_t extra = is_in_place(s, x) ? x->bytes : 0;
      if (live - extra > most) most = live - extra;
    }
    live -= freed[at];
  }
  *out = most;
  return NULL;
}

// What its results need beyond its operands, if they are there early.
int64_t cpu_lower_overlap_ahead(const cpu_lower_ordering *s,
                                const cpu_lower_order_node *x)
{
  const int64_t more = x->bytes - operand_bytes(x->unit);
  return is_in_place(s, x) || more < 0 ? 0 : more;
}

// What is there while it is open.
int64_t cpu_lower_overlap_held(const cpu_lower_ordering *s,
                               const cpu_lower_order_node *x)
{
  return x->bytes + (is_in_place(s, x) ? 0 : operand_bytes(x->unit));
}
