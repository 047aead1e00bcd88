// opt/loops: removes variables of loops, moves invariant operations out of
// them, and takes branches that are known.
//
// A while whose condition is false is removed. A variable that the body never
// changes becomes a value from outside; a variable that nothing needs is
// removed. Pure operations that depend on no variable move before the loop;
// they cannot fail, so this is safe if the loop never runs. Operations that are
// cheaper to compute than to keep in memory, like constants and broadcasts,
// stay inside. An if or case with a constant selector becomes the branch.
#include <string.h>

#include "base/alloc.h"
#include "hlo/number.h"
#include "opt/loops.h"
#include "opt/passes.h"
#include "opt/shapes.h"

// Marks by value number, for values that existed before the pass. A mark is set
// if it equals the present generation, so all are cleared by the next one.
typedef struct loop_state {
  uint32_t *uses;
  uint32_t *needed;
  uint32_t *steady;       // computed in the loop from invariant values only
  cx_hlo_value **copies;  // while one loop is visited; else NULL
  uint32_t n;
  uint32_t generation;
} loop_state;

static bool is_marked(const loop_state *s, const uint32_t *marks,
                      const cx_hlo_value *v)
{
  return v->number < s->n && marks[v->number] == s->generation;
}

static void mark(const loop_state *s, uint32_t *marks, const cx_hlo_value *v)
{
  if (v->number < s->n) marks[v->number] = s->generation;
}

// Calls `use` for each operand of op and of the operations in its regions.
typedef void use_fn(void *user, cx_hlo_value **operand);

static void each_use(cx_hlo_op *op, use_fn *use, void *user)
{
  cx_hlo_op *inner = cpu_opt_inner(op);
  for (; inner != op; inner = cpu_opt_next(inner)) {
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      use(user, &inner->operands[i]);
    }
  }
  for (uint32_t i = 0; i < op->n_operands; i++) use(user, &op->operands[i]);
}

// ---- branches ----

static void take_branch(cpu_opt_walk *w, cx_hlo_op *op, size_t region)
{
  cx_hlo_block *block = op->regions[region].first;
  cpu_opt_take_block(w, block);
  cpu_opt_replace_all(w, op, block->last->operands);
}

static void visit_branches(cpu_opt_walk *w, cx_hlo_op *op)
{
  const unsigned char *p = cpu_opt_splat(op->operands[0]);
  if (p == NULL) return;
  const int64_t v = cx_hlo_load_int(op->operands[0]->type.tensor.elem, p);
  if (op->kind == CX_HLO_OP_IF) {
    take_branch(w, op, v != 0 ? 0 : 1);
    return;
  }
  const bool known = v >= 0 && v < (int64_t)op->n_regions;
  take_branch(w, op, known ? (size_t)v : op->n_regions - 1);
}

// ---- variables ----

static void need(void *user, cx_hlo_value **operand)
{
  const loop_state *s = user;
  mark(s, s->needed, *operand);
}

static bool is_result_needed(const loop_state *s, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_value *v = &op->results[i];
    if (v->number >= s->n || is_marked(s, s->needed, v)) return true;
  }
  return !cpu_opt_pure(op);
}

// Marks what the body needs to compute the live variables.
static void mark_body(loop_state *s, const cx_hlo_op *loop, const bool *live)
{
  const cx_hlo_block *body = loop->regions[1].first;
  s->generation++;
  for (cx_hlo_op *op = body->last; op != NULL; op = op->previous) {
    if (op == body->last) {
      for (uint32_t i = 0; i < op->n_operands; i++) {
        if (live[i]) mark(s, s->needed, op->operands[i]);
      }
    } else if (is_result_needed(s, op)) {
      each_use(op, need, s);
    }
  }
}

static void mark_condition(loop_state *s, const cx_hlo_op *loop)
{
  s->generation++;
  for (cx_hlo_op *op = loop->regions[0].first->first; op != NULL;
       op = op->next) {
    each_use(op, need, s);
  }
}

// Which variables are needed, to a fixed point. In the worst case each round
// finds one more, so after some rounds all are kept.
static void find_live(loop_state *s, const cx_hlo_op *loop, bool *live)
{
  const cx_hlo_block *condition = loop->regions[0].first;
  const cx_hlo_block *body = loop->regions[1].first;
  mark_condition(s, loop);
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    const cx_hlo_value *r = &loop->results[i];
    live[i] = r->number >= s->n || s->uses[r->number] != 0 ||
              condition->args[i].number >= s->n ||
              is_marked(s, s->needed, &condition->args[i]);
  }
  bool again = true;
  for (int round = 0; again && round < 8; round++) {
    mark_body(s, loop, live);
    again = false;
    for (uint32_t i = 0; i < loop->n_operands; i++) {
      const cx_hlo_value *arg = &body->args[i];
      if (live[i]) continue;
      live[i] = arg->number >= s->n || is_marked(s, s->needed, arg);
      again = again || live[i];
    }
  }
  for (uint32_t i = 0; again && i < loop->n_operands; i++) live[i] = true;
}

// Does not keep variables that the body returns unchanged or as they began.
static void drop_unchanged(const cx_hlo_op *loop, bool *keep)
{
  const cx_hlo_block *body = loop->regions[1].first;
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    const cx_hlo_value *r = body->last->operands[i];
    if (r == &body->args[i] || r == loop->operands[i]) keep[i] = false;
  }
}

typedef struct exchange {
  const cx_hlo_block *from;  // its arguments
  cx_hlo_value **to;         // become these
} exchange;

static void exchange_use(void *user, cx_hlo_value **operand)
{
  const exchange *x = user;
  const cx_hlo_value *v = *operand;
  if (v->op == NULL && v->block == x->from) *operand = x->to[v->index];
}

bool cpu_opt_move_block(cpu_opt_walk *w, const cx_hlo_op *loop, cx_hlo_op *to,
                        size_t region, const bool *keep)
{
  cx_hlo_block *from = loop->regions[region].first;
  cx_hlo_block *block =
      cx_hlo_block_new(w->b.module, &to->regions[region], to->n_operands);
  exchange x = { from, cpu_opt_values(w, loop->n_operands) };
  if (block == NULL || x.to == NULL) return false;
  size_t k = 0;
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    x.to[i] = loop->operands[i];
    if (!keep[i]) continue;
    block->args[k].type = from->args[i].type;
    x.to[i] = &block->args[k++];
  }
  while (from->first != NULL) {
    cx_hlo_op *op = from->first;
    each_use(op, exchange_use, &x);
    cpu_opt_unlink(op);
    cx_hlo_op_append(block, op);
  }
  if (region == 0) return true;
  cx_hlo_op *end = block->last;
  k = 0;
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    if (keep[i]) end->operands[k++] = end->operands[i];
  }
  end->n_operands = (uint32_t)k;
  return true;
}

static calx_status *remove_variables(cpu_opt_walk *w, cx_hlo_op *loop,
                                     const bool *keep, size_t n)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_value **operands = cpu_opt_values(w, n);
  cx_hlo_value **out = cpu_opt_values(w, loop->n_operands);
  if (operands == NULL || out == NULL) return NULL;
  size_t k = 0;
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    if (keep[i]) operands[k++] = loop->operands[i];
  }
  cx_hlo_op *to = cx_hlo_build_begin(b, CX_HLO_OP_WHILE, operands, n, n, 2);
  if (to == NULL) return NULL;
  to->extra = loop->extra;
  to->n_extra = loop->n_extra;
  if (!cpu_opt_move_block(w, loop, to, 0, keep) ||
      !cpu_opt_move_block(w, loop, to, 1, keep)) {
    return cx_out_of_memory();
  }
  k = 0;
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    out[i] = keep[i] ? &to->results[k++] : loop->operands[i];
  }
  cx_hlo_build_end(b, to);
  cpu_opt_replace_all(w, loop, out);
  return NULL;
}

// ---- loop invariants ----

static bool is_cheap(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_CONSTANT:
    case CX_HLO_OP_IOTA:
    case CX_HLO_OP_BROADCAST_IN_DIM:
    case CX_HLO_OP_RESHAPE:
    case CX_HLO_OP_SLICE: return true;
    default: return false;
  }
}

typedef struct dependence {
  const loop_state *s;
  const cx_hlo_block *block;
  bool steady;
} dependence;

static void depend(void *user, cx_hlo_value **operand)
{
  dependence *d = user;
  const cx_hlo_value *v = *operand;
  if (cpu_opt_block_of(v) != d->block) return;
  if (v->op == NULL || !is_marked(d->s, d->s->steady, v)) d->steady = false;
}

static bool is_invariant(const loop_state *s, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_RETURN || op->n_results == 0 ||
      op->kind == CX_HLO_OP_OPTIMIZATION_BARRIER || !cpu_opt_pure(op)) {
    return false;
  }
  dependence d = { s, op->block, true };
  each_use(op, depend, &d);
  return d.steady;
}

// Cheap operations have at most one operand, so they form chains. Only short
// ones are followed.
static bool is_short(const cx_hlo_op *op)
{
  const cx_hlo_block *block = op->block;
  for (int depth = 0; depth < 8; depth++) {
    if (op->n_operands == 0 || cpu_opt_block_of(op->operands[0]) != block)
      return true;
    op = op->operands[0]->op;
  }
  return false;
}

typedef struct hoist {
  cpu_opt_walk *w;
  const cx_hlo_block *block;
  bool failed;
} hoist;

// Replaces a cheap value of the block by a copy of its chain before the loop.
static void outside(void *user, cx_hlo_value **operand)
{
  hoist *h = user;
  loop_state *s = h->w->user;
  cx_hlo_op *made[16];
  size_t n = 0;
  cx_hlo_value **at = operand;
  while (cpu_opt_block_of(*at) == h->block && n < 16) {
    cx_hlo_value *v = *at;
    if (s->copies[v->number] == NULL) {
      made[n] = cpu_opt_copy_op(h->w->b.module, v->op, s->copies);
      if (made[n] == NULL) {
        h->failed = true;
        return;
      }
      *at = s->copies[v->number];
      if (made[n]->n_operands == 0) {
        n++;
        break;
      }
      at = &made[n++]->operands[0];
    } else {
      *at = s->copies[v->number];
    }
  }
  while (n > 0) cx_hlo_op_append(&h->w->made, made[--n]);
}

static calx_status *hoist_from(cpu_opt_walk *w, cx_hlo_block *block)
{
  loop_state *s = w->user;
  s->generation++;
  cx_hlo_op *next = NULL;
  for (cx_hlo_op *op = block->first; op != NULL; op = next) {
    next = op->next;
    if (!is_invariant(s, op)) continue;
    if (is_cheap(op)) {
      if (!is_short(op)) continue;
      for (uint32_t i = 0; i < op->n_results; i++) {
        mark(s, s->steady, &op->results[i]);
      }
      continue;
    }
    hoist h = { w, block, false };
    each_use(op, outside, &h);
    if (h.failed) return cx_out_of_memory();
    cpu_opt_unlink(op);
    cx_hlo_op_append(&w->made, op);
    w->changed = true;
  }
  return NULL;
}

static calx_status *hoist_all(cpu_opt_walk *w, cx_hlo_op *loop)
{
  loop_state *s = w->user;
  s->copies = cx_calloc((size_t)w->b.module->n_values + 1, sizeof(*s->copies));
  if (s->copies == NULL) return cx_out_of_memory();
  calx_status *status = hoist_from(w, loop->regions[0].first);
  if (status == NULL) status = hoist_from(w, loop->regions[1].first);
  cx_free(s->copies);
  s->copies = NULL;
  return status;
}

// ---- the pass ----

static calx_status *visit_loop(cpu_opt_walk *w, cx_hlo_op *loop)
{
  const cx_hlo_block *condition = loop->regions[0].first;
  if (cpu_opt_is_number(condition->last->operands[0], 0)) {
    cpu_opt_replace_all(w, loop, loop->operands);
    return NULL;
  }
  CALX_TRY(hoist_all(w, loop));
  bool *keep = CX_ARENA_ARRAY(&w->b.module->arena, bool, loop->n_operands + 1);
  if (keep == NULL) return cx_out_of_memory();
  find_live(w->user, loop, keep);
  drop_unchanged(loop, keep);
  size_t n = 0;
  for (uint32_t i = 0; i < loop->n_operands; i++) n += keep[i];
  return n == loop->n_operands ? NULL : remove_variables(w, loop, keep, n);
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_WHILE: return visit_loop(w, op);
    case CX_HLO_OP_IF:
    case CX_HLO_OP_CASE: visit_branches(w, op); return NULL;
    default: return NULL;
  }
}

calx_status *cpu_opt_loops(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  if (!cpu_opt_any(f, cpu_opt_is_control)) return NULL;
  loop_state s = { .n = m->n_values };
  s.uses = cpu_opt_uses(m, f);
  s.needed = cx_calloc((size_t)s.n + 1, sizeof *s.needed);
  s.steady = cx_calloc((size_t)s.n + 1, sizeof *s.steady);
  calx_status *status = cx_out_of_memory();
  if (s.uses != NULL && s.needed != NULL && s.steady != NULL) {
    status = cpu_opt_walk_func(m, f, visit, &s, changed);
  }
  cx_free(s.uses);
  cx_free(s.needed);
  cx_free(s.steady);
  return status;
}
