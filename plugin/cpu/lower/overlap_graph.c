// lower/overlap_graph: which groups read from which, and how much memory an
// order of them needs.
#include "lower/overlap.h"
#include "opt/edit.h"

#define LEAST_BYTES 65536  // of operands: less is not worth a thread

// ---- sizes ----

static int64_t operand_bytes(const cpu_lower_group *g)
{
  return cpu_lower_bytes(g->inputs, g->n_inputs);
}

bool cpu_lower_overlap_is_large(const cpu_lower_group *g)
{
  return g->kind == CPU_LOWER_GROUP_COLLECTIVE &&
         operand_bytes(g) >= LEAST_BYTES;
}

// ---- nodes ----

static bool has_collective(const cpu_lower_group *g)
{
  if (g->kind == CPU_LOWER_GROUP_COLLECTIVE) return true;
  if (g->kind == CPU_LOWER_GROUP_LOOP) return false;
  const cx_hlo_op *op = g->ops[0];
  for (const cx_hlo_op *at = cpu_opt_inner(op); at != op;
       at = cpu_opt_next(at)) {
    if (cpu_opt_is_collective(at)) return true;
  }
  return false;
}

// The node that produces a value; NULL: a region's group does, or none.
static cpu_lower_node *producer_of(const cpu_lower_search *s,
                                   const cx_hlo_value *storage)
{
  const cpu_lower_group *g = cpu_lower_info(s->c, storage)->producer;
  return g != NULL && g->node < s->n_nodes && s->nodes[g->node].group == g
             ? &s->nodes[g->node]
             : NULL;
}

typedef struct node_reader {
  cpu_lower_search *s;
  cpu_lower_node *node;
} node_reader;

static calx_status *add_read(cpu_lower_state *c, void *user, cx_hlo_value *v)
{
  const node_reader *r = user;
  cpu_lower_node *x = r->node;
  cpu_lower_node *producer = producer_of(r->s, v);
  if (producer == NULL || producer >= x) return NULL;
  producer->n_users++;
  return cpu_lower_push(c, &x->reads, &x->n_reads, &x->reads_room, producer);
}

static void mark_feeding(cpu_lower_search *s)
{
  for (size_t i = 0; i < s->n_nodes; i++) {
    cpu_lower_node *x = &s->nodes[i];
    x->feeds_collective = x->group->kind == CPU_LOWER_GROUP_LOOP &&
                          x->n_users > 0 && !x->is_result;
  }
  for (size_t i = s->n_nodes; i > 0; i--) {
    const cpu_lower_node *x = &s->nodes[i - 1];
    if (x->feeds_collective || x->group->kind == CPU_LOWER_GROUP_COLLECTIVE) {
      continue;
    }
    for (size_t k = 0; k < x->n_reads; k++) {
      x->reads[k]->feeds_collective = false;
    }
  }
}

static calx_status *make_node(cpu_lower_search *s, cpu_lower_node *x)
{
  node_reader r = { s, x };
  x->bytes = cpu_lower_bytes(x->group->outputs, x->group->n_outputs);
  x->has_collective = has_collective(x->group);
  if (x->has_collective) s->collectives[s->n_collectives++] = x;
  return cpu_lower_each_read(s->c, x->group, add_read, &r);
}

calx_status *cpu_lower_overlap_graph(cpu_lower_search *s,
                                     const cpu_lower_schedule *schedule)
{
  cx_arena *arena = &s->c->arena;
  const size_t n = schedule->n_groups;
  s->n_nodes = n;
  s->nodes = CX_ARENA_ARRAY(arena, cpu_lower_node, n + 1);
  s->collectives = CX_ARENA_ARRAY(arena, cpu_lower_node *, n + 1);
  s->started = CX_ARENA_ARRAY(arena, cpu_lower_node *, n + 1);
  s->stack = CX_ARENA_ARRAY(arena, cpu_lower_node *, n + 1);
  s->loops = CX_ARENA_ARRAY(arena, cpu_lower_node *, n + 1);
  if (s->nodes == NULL || s->collectives == NULL || s->started == NULL ||
      s->stack == NULL || s->loops == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    schedule->groups[i]->node = i;
    s->nodes[i].group = schedule->groups[i];
  }
  for (size_t i = 0; i < n; i++) CALX_TRY(make_node(s, &s->nodes[i]));
  const cx_hlo_op *end = cx_hlo_terminator(schedule->block);
  for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
    const cx_hlo_value *v = cpu_lower_storage(s->c, end->operands[i]);
    cpu_lower_node *producer = producer_of(s, v);
    if (producer != NULL) producer->is_result = true;
  }
  mark_feeding(s);
  return NULL;
}

// ---- memory ----

// Whether the results are written over the operands.
static bool is_in_place(const cpu_lower_node *x)
{
  const cpu_lower_group *g = x->group;
  if (g->kind != CPU_LOWER_GROUP_COLLECTIVE ||
      !cpu_lower_is_in_place(g->ops[0])) {
    return false;
  }
  for (size_t k = 0; k < x->n_reads; k++) {
    if (x->reads[k]->n_users != 1 || x->reads[k]->is_result) return false;
  }
  return x->n_reads == g->n_inputs;
}

calx_status *cpu_lower_overlap_peak(const cpu_lower_search *s,
                                    cpu_lower_group *const *groups,
                                    size_t n_groups, int64_t *out)
{
  cx_arena *arena = &s->c->arena;
  size_t *last_use = CX_ARENA_ARRAY(arena, size_t, s->n_nodes + 1);
  int64_t *freed = CX_ARENA_ARRAY(arena, int64_t, n_groups + 1);
  if (last_use == NULL || freed == NULL) return cx_out_of_memory();
  for (size_t at = 0; at < n_groups; at++) {
    const bool done = groups[at]->kind == CPU_LOWER_GROUP_DONE;
    const cpu_lower_group *g = done ? groups[at]->collective : groups[at];
    const cpu_lower_node *x = &s->nodes[g->node];
    if (done && is_in_place(x)) continue;
    last_use[g->node] = at;
    for (size_t k = 0; k < x->n_reads; k++) {
      last_use[x->reads[k]->group->node] = at;
    }
  }
  for (size_t i = 0; i < s->n_nodes; i++) {
    if (s->nodes[i].is_result) last_use[i] = n_groups;
    freed[last_use[i]] += s->nodes[i].bytes;
  }
  int64_t live = 0, most = 0;
  for (size_t at = 0; at < n_groups; at++) {
    if (groups[at]->kind != CPU_LOWER_GROUP_DONE) {
      const cpu_lower_node *x = &s->nodes[groups[at]->node];
      live += x->bytes;
      const int64_t shared = is_in_place(x) ? x->bytes : 0;
      if (live - shared > most) most = live - shared;
    }
    live -= freed[at];
  }
  *out = most;
  return NULL;
}

int64_t cpu_lower_overlap_early_bytes(const cpu_lower_node *x)
{
  const int64_t more = x->bytes - operand_bytes(x->group);
  return is_in_place(x) || more < 0 ? 0 : more;
}

int64_t cpu_lower_overlap_held_bytes(const cpu_lower_node *x)
{
  return x->bytes + (is_in_place(x) ? 0 : operand_bytes(x->group));
}
