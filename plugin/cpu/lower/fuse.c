// lower/fuse: operations into units, from the last to the first.
//
// An operation joins the loop that uses it when all its users are in that one
// loop, or when it costs nothing and can be computed in each. What has to be in
// memory anyway becomes an output of a loop over the same elements, where no
// way leads from it through other units back into that loop. Reductions over
// the same elements of something they share become one loop.
#include <string.h>

#include "lower/plan.h"
#include "opt/edit.h"
#include "ref/ref.h"

#define UNIT_OPS 160
#define UNIT_OUTPUTS 48  // the compiler takes 64, and 32 results of reductions
#define UNIT_SUMS 32
#define STRETCHED_OPS 6
#define SEARCH_LIMIT 4000
#define UNITS_NEAR 256

// The units that an operation was put into.
typedef struct link {
  cpu_lower_unit *unit;
  struct link *next;
} link;

typedef struct fusing {
  cpu_lower_planner *g;
  cx_hlo_block *block;
  cpu_lower_block_uses uses;
  link **links;     // by operation
  bool *in_memory;  // by operation: some unit writes its results
  bool *after;      // by operation: in its loop it works on reductions' results
  cpu_lower_unit **units;
  size_t n_units, units_room;
  uint32_t *stack;  // of searches
  unsigned *seen;   // by operation: the last search that saw it
  // Of the operations that have been placed, the later ones first: from those
  // of a span, up to the next span, ways come back to `lowest`, but not before
  // it.
  struct span {
    uint32_t first, lowest;
  } * spans;
  size_t n_spans;
  unsigned search;
} fusing;
typedef struct span span;

// ---- what operations are ----

static const cx_hlo_type *type_of(const cx_hlo_op *op)
{
  return &op->results[0].type.tensor;
}

static int64_t elements_of(const cx_hlo_op *op)
{
  return cx_hlo_type_elements(type_of(op));
}

// More than a few instructions per element.
static bool is_dear(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_EXPONENTIAL:
    case CX_HLO_OP_EXPONENTIAL_MINUS_ONE:
    case CX_HLO_OP_LOG:
    case CX_HLO_OP_LOG_PLUS_ONE:
    case CX_HLO_OP_LOGISTIC:
    case CX_HLO_OP_TANH:
    case CX_HLO_OP_TAN:
    case CX_HLO_OP_SINE:
    case CX_HLO_OP_COSINE:
    case CX_HLO_OP_SQRT:
    case CX_HLO_OP_RSQRT:
    case CX_HLO_OP_CBRT:
    case CX_HLO_OP_POWER:
    case CX_HLO_OP_ATAN2:
    case CX_HLO_OP_DIVIDE:
    case CX_HLO_OP_REMAINDER: return true;
    default: return false;
  }
}

// Whether `op` is a branch of a tree of concatenations, whose operands are
// together more than a loop takes.
static bool is_piece(const cx_hlo_op *op, const cx_hlo_op *user)
{
  return op->kind == CX_HLO_OP_CONCATENATE &&
         cx_hlo_op_int(op, CX_HLO_A_DIMENSION) ==
             cx_hlo_op_int(user, CX_HLO_A_DIMENSION);
}

// Costs nothing wherever it is computed again.
static bool is_free(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_IOTA:
    case CX_HLO_OP_RESHAPE: return true;
    case CX_HLO_OP_BROADCAST_IN_DIM:
      return elements_of(op) >
                 cx_hlo_type_elements(&op->operands[0]->type.tensor) ||
             elements_of(op) == 1;
    default: return false;
  }
}

static bool is_barrier(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_OPTIMIZATION_BARRIER;
}

static bool is_token(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_AFTER_ALL || op->kind == CX_HLO_OP_CREATE_TOKEN;
}

static bool same_ints(cx_hlo_ints a, cx_hlo_ints b)
{
  return a.n == b.n && memcmp(a.v, b.v, a.n * sizeof *a.v) == 0;
}

// ---- units ----

static bool is_in(const fusing *f, uint32_t i, const cpu_lower_unit *u)
{
  for (const link *l = f->links[i]; l != NULL; l = l->next) {
    if (l->unit == u) return true;
  }
  return false;
}

// Whether what u does with the operation's results is only what comes after its
// reductions; *out_any: whether it does anything with them.
static bool used_after(const fusing *f, uint32_t i, const cpu_lower_unit *u,
                       bool *out_any)
{
  *out_any = false;
  for (uint32_t k = f->uses.first[i]; k < f->uses.first[i + 1]; k++) {
    uint32_t user = f->uses.uses[k].user;
    if (!is_in(f, user, u)) continue;
    *out_any = true;
    if (!f->after[user]) return false;
  }
  return true;
}

static cpu_lower_unit *new_unit(fusing *f, cpu_lower_unit_kind kind, uint32_t i)
{
  cpu_lower_unit *u = CX_ARENA_NEW(&f->g->l->arena, cpu_lower_unit);
  if (u == NULL) return NULL;
  u->kind = kind;
  u->key = i;
  if (!cpu_lower_push(f->g->l, &u->ops, &u->n_ops, &u->ops_room,
                      f->uses.ops[i]) ||
      !cpu_lower_push(f->g->l, &f->units, &f->n_units, &f->units_room, u)) {
    return NULL;
  }
  return u;
}

static calx_status *enter(fusing *f, uint32_t i, cpu_lower_unit *u)
{
  link *l = CX_ARENA_NEW(&f->g->l->arena, link);
  if (l == NULL) return cx_out_of_memory();
  l->unit = u;
  l->next = f->links[i];
  f->links[i] = l;
  return NULL;
}

static calx_status *join(fusing *f, uint32_t i, cpu_lower_unit *u)
{
  cx_hlo_op *op = f->uses.ops[i];
  if (!cpu_lower_push(f->g->l, &u->ops, &u->n_ops, &u->ops_room, op)) {
    return cx_out_of_memory();
  }
  cpu_jit_class class = cpu_jit_class_of(op);
  bool used = false;
  if (class == CPU_JIT_ELEMENT && used_after(f, i, u, &used) && used) {
    f->after[i] = true;
  } else if (class == CPU_JIT_ELEMENT && elements_of(op) < u->elements) {
    u->n_stretched++;
  }
  return enter(f, i, u);
}

static void write_here(fusing *f, uint32_t i, cpu_lower_unit *u)
{
  f->in_memory[i] = true;
  const cx_hlo_op *op = f->uses.ops[i];
  u->n_written += op->n_results;
  for (uint32_t r = 0; r < op->n_results; r++) {
    cx_graph_value(f->g, &op->results[r])->home = u;
  }
}

// ---- whether a way leads from an operation to a unit ----

// A way goes through operations that come later: to those that use a result,
// and within a unit to all that it writes, which may stand before. `lowest`
// tells how far back ways from an operation come, so that what is behind the
// unit for good is not searched.
static uint32_t lowest(const fusing *f, uint32_t i)
{
  size_t from = 0;
  size_t to = f->n_spans;  // the first span that begins at i or before
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (f->spans[middle].first <= i) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  return to < f->n_spans ? f->spans[to].lowest : i;
}

static void go_to(fusing *f, uint32_t i, const cpu_lower_unit *u, size_t *depth)
{
  if (f->seen[i] == f->search || lowest(f, i) >= u->key) return;
  f->seen[i] = f->search;
  f->stack[(*depth)++] = i;
}

static void go_through(fusing *f, uint32_t i, const cpu_lower_unit *u,
                       size_t *depth)
{
  if (!is_in(f, i, u)) go_to(f, i, u, depth);
  for (const link *l = f->links[i]; l != NULL; l = l->next) {
    cpu_lower_unit *unit = l->unit;
    if (unit == u || unit->seen == f->search) continue;
    unit->seen = f->search;
    for (size_t o = 0; o < unit->n_ops; o++) {
      const cx_hlo_op *op = unit->ops[o];
      if (op->n_results == 0) continue;
      uint32_t other = cx_graph_value(f->g, &op->results[0])->op;
      if (f->in_memory[other]) go_to(f, other, u, depth);
    }
  }
}

// Whether something that is not in u has to run between `from` and u.
static bool leads_to(fusing *f, uint32_t from, const cpu_lower_unit *u)
{
  size_t depth = 0;
  f->search++;
  f->stack[depth++] = from;
  for (size_t steps = 0; depth > 0; steps++) {
    uint32_t at = f->stack[--depth];
    if (steps > SEARCH_LIMIT) return true;
    for (uint32_t k = f->uses.first[at]; k < f->uses.first[at + 1]; k++) {
      uint32_t user = f->uses.uses[k].user;
      if (at != from && is_in(f, user, u)) return true;
      go_through(f, user, u, &depth);
    }
  }
  return false;
}

// From the operations behind i up to the last of its units, and from those
// whose ways come back to them, ways now come back to i. These are whole spans,
// since a span's value lies before it.
static void lower_to(fusing *f, uint32_t i)
{
  size_t last = i;
  for (const link *l = f->links[i]; l != NULL; l = l->next) {
    if (l->unit->key > last) last = l->unit->key;
  }
  if (f->in_memory[i] && last != i) {
    while (f->n_spans > 0 && (f->spans[f->n_spans - 1].first <= last ||
                              f->spans[f->n_spans - 1].lowest <= last)) {
      f->n_spans--;
    }
    f->spans[f->n_spans++] = (span){ .first = i + 1, .lowest = i };
  }
  f->spans[f->n_spans++] = (span){ .first = i, .lowest = i };
}

// ---- whether an operation may be computed in a unit ----

static bool fits(const fusing *f, uint32_t i, const cpu_lower_unit *u)
{
  const cx_hlo_op *op = f->uses.ops[i];
  cpu_jit_class class = cpu_jit_class_of(op);
  if (u->kind != CPU_LOWER_UNIT_CODE || u->n_ops >= UNIT_OPS) return false;
  if (class != CPU_JIT_ELEMENT && class != CPU_JIT_INDEX) return false;
  if (u->hero != NULL && cpu_jit_class_of(u->hero) == CPU_JIT_ROOT &&
      (is_dear(op) || u->n_ops > 12)) {
    return false;
  }
  bool used = false;
  if (used_after(f, i, u, &used) && used) {
    return class == CPU_JIT_ELEMENT &&
           cpu_opt_same_dims(type_of(op), type_of(u->hero));
  }
  int64_t n = elements_of(op);
  bool stretched = n < u->elements && class == CPU_JIT_ELEMENT;
  if (stretched && (is_dear(op) || u->n_stretched >= STRETCHED_OPS)) {
    return false;
  }
  for (uint32_t k = f->uses.first[i]; k < f->uses.first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses.uses[k];
    const cx_hlo_op *user = f->uses.ops[use->user];
    if (!is_in(f, use->user, u)) continue;
    if (f->after[use->user]) return false;  // and before, too
    if (use->operand < 0 || !cpu_jit_fuses(user, (size_t)use->operand)) {
      return false;
    }
    // A gather computes what it picks for each element that it gives.
    if (user->kind == CX_HLO_OP_GATHER && class == CPU_JIT_ELEMENT)
      return false;
    if (user->kind == CX_HLO_OP_CONCATENATE &&
        (is_dear(op) || is_piece(op, user))) {
      return false;
    }
  }
  return true;
}

typedef struct users {
  cpu_lower_unit *units[16];
  size_t n;
  bool elsewhere;  // some use is in no unit that could compute the value
  bool too_many;
} users;

static void add_user(users *u, cpu_lower_unit *unit)
{
  for (size_t i = 0; i < u->n; i++) {
    if (u->units[i] == unit) return;
  }
  if (u->n == sizeof u->units / sizeof u->units[0]) {
    u->too_many = true;
  } else {
    u->units[u->n++] = unit;
  }
}

static users users_of(const fusing *f, uint32_t i)
{
  users u = { 0 };
  for (uint32_t k = f->uses.first[i]; k < f->uses.first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses.uses[k];
    const link *l = f->links[use->user];
    if (use->operand < 0 || l == NULL) u.elsewhere = true;
    for (; l != NULL; l = l->next) {
      if (l->unit->kind == CPU_LOWER_UNIT_CODE && use->operand >= 0) {
        add_user(&u, l->unit);
      } else {
        u.elsewhere = true;
      }
    }
  }
  return u;
}

// ---- reductions ----

static bool same_reduction(const cx_hlo_op *a, const cx_hlo_op *b)
{
  return a->kind == CX_HLO_OP_REDUCE && b->kind == CX_HLO_OP_REDUCE &&
         a->n_results == 1 && b->n_results == 1 &&
         cpu_opt_same_dims(&a->operands[0]->type.tensor,
                           &b->operands[0]->type.tensor) &&
         same_ints(cx_hlo_op_ints(a, CX_HLO_A_DIMENSIONS),
                   cx_hlo_op_ints(b, CX_HLO_A_DIMENSIONS));
}

static bool makes_from(const cx_hlo_value *v, const cx_hlo_value *what,
                       int depth)
{
  if (v == what) return true;
  if (depth == 0 || v->op == NULL || v->op->kind == CX_HLO_OP_CONSTANT) {
    return false;
  }
  for (uint32_t i = 0; i < v->op->n_operands && i < 4; i++) {
    if (makes_from(v->op->operands[i], what, depth - 1)) return true;
  }
  return false;
}

static bool share(const cx_hlo_op *a, const cx_hlo_op *b)
{
  const cx_hlo_value *x = a->operands[0];
  const cx_hlo_value *y = b->operands[0];
  if (makes_from(y, x, 3) || makes_from(x, y, 3)) return true;
  for (uint32_t i = 0; x->op != NULL && i < x->op->n_operands && i < 4; i++) {
    const cx_hlo_value *part = x->op->operands[i];
    if (!cpu_lower_is_constant(part) && makes_from(y, part, 3)) return true;
  }
  return false;
}

static bool may_reduce_in(fusing *f, uint32_t i, const cpu_lower_unit *u)
{
  const cx_hlo_op *op = f->uses.ops[i];
  bool used = false;
  return u->kind == CPU_LOWER_UNIT_CODE && u->hero != NULL &&
         u->n_ops < UNIT_OPS && u->n_written < UNIT_OUTPUTS &&
         u->n_sums < UNIT_SUMS && same_reduction(op, u->hero) &&
         used_after(f, i, u, &used) && (used || share(op, u->hero)) &&
         !leads_to(f, i, u);
}

// A loop over the results alone, which can follow the reduction at once.
static bool may_follow(const cx_hlo_op *op, const cpu_lower_unit *u)
{
  if (u->kind != CPU_LOWER_UNIT_CODE || u->hero != NULL || op->n_results != 1) {
    return false;
  }
  for (size_t i = 0; i < u->n_ops; i++) {
    if (cpu_jit_class_of(u->ops[i]) != CPU_JIT_ELEMENT ||
        !cpu_opt_same_dims(type_of(u->ops[i]), type_of(op))) {
      return false;
    }
  }
  return true;
}

static calx_status *place_reduce(fusing *f, uint32_t i)
{
  cx_hlo_op *op = f->uses.ops[i];
  users to = users_of(f, i);
  bool alone = to.n == 1 && !to.elsewhere && !to.too_many;
  if (alone && may_follow(op, to.units[0])) {
    cpu_lower_unit *u = to.units[0];
    for (size_t k = 0; k < u->n_ops; k++) {
      f->after[cx_graph_value(f->g, &u->ops[k]->results[0])->op] = true;
    }
    u->hero = op;
    u->elements = cx_hlo_type_elements(&op->operands[0]->type.tensor);
    return join(f, i, u);
  }
  // Reductions that share something stand near each other.
  size_t near = f->n_units < UNITS_NEAR ? f->n_units : UNITS_NEAR;
  for (size_t k = 0; k < near; k++) {
    cpu_lower_unit *u = f->units[f->n_units - 1 - k];
    if (!may_reduce_in(f, i, u)) continue;
    CALX_TRY(join(f, i, u));
    u->n_sums++;
    if (!alone || to.units[0] != u) write_here(f, i, u);
    return NULL;
  }
  cpu_lower_unit *u = new_unit(f, CPU_LOWER_UNIT_CODE, i);
  if (u == NULL) return cx_out_of_memory();
  u->hero = op;
  u->elements = cx_hlo_type_elements(&op->operands[0]->type.tensor);
  write_here(f, i, u);
  return enter(f, i, u);
}

// ---- loops ----

static bool may_write(fusing *f, uint32_t i, cpu_lower_unit *u)
{
  const cx_hlo_op *op = f->uses.ops[i];
  return u->hero == NULL && u->n_written < UNIT_OUTPUTS && fits(f, i, u) &&
         cpu_opt_same_dims(type_of(op), &u->outputs[0]->type.tensor) &&
         !leads_to(f, i, u);
}

static calx_status *place_loop(fusing *f, uint32_t i)
{
  cx_hlo_op *op = f->uses.ops[i];
  users to = users_of(f, i);
  if (to.n == 0 && !to.elsewhere) return NULL;  // nobody wants it
  bool all = !to.too_many;
  for (size_t k = 0; k < to.n && all; k++) all = fits(f, i, to.units[k]);
  bool once = to.n == 1 && !to.elsewhere;
  if (all && (once || (is_free(op) && to.n > 0))) {
    for (size_t k = 0; k < to.n; k++) CALX_TRY(join(f, i, to.units[k]));
    if (!to.elsewhere) return NULL;
  } else {
    for (size_t k = 0; k < to.n; k++) {
      if (may_write(f, i, to.units[k])) {
        CALX_TRY(join(f, i, to.units[k]));
        write_here(f, i, to.units[k]);
        return NULL;
      }
    }
  }
  cpu_lower_unit *u = new_unit(f, CPU_LOWER_UNIT_CODE, i);
  if (u == NULL) return cx_out_of_memory();
  u->elements = elements_of(op);
  // What a loop goes over, for those that come later.
  u->outputs = CX_ARENA_ARRAY(&f->g->l->arena, cx_hlo_value *, 1);
  if (u->outputs == NULL) return cx_out_of_memory();
  u->outputs[0] = &op->results[0];
  write_here(f, i, u);
  return enter(f, i, u);
}

// ---- the others ----

static calx_status *place_control(fusing *f, uint32_t i)
{
  cx_hlo_op *op = f->uses.ops[i];
  cpu_lower_unit *u = new_unit(f, CPU_LOWER_UNIT_CONTROL, i);
  if (u == NULL) return cx_out_of_memory();
  u->regions =
      CX_ARENA_ARRAY(&f->g->l->arena, cpu_lower_schedule, op->n_regions);
  if (u->regions == NULL) return cx_out_of_memory();
  for (uint32_t r = 0; r < op->n_regions; r++) {
    CALX_TRY(cpu_lower_fuse(f->g, op->regions[r].first, &u->regions[r]));
  }
  if (op->n_results > 0) write_here(f, i, u);
  return enter(f, i, u);
}

static calx_status *place_single(fusing *f, uint32_t i,
                                 cpu_lower_unit_kind kind)
{
  cpu_lower_unit *u = new_unit(f, kind, i);
  if (u == NULL) return cx_out_of_memory();
  write_here(f, i, u);
  return enter(f, i, u);
}

static calx_status *place_kernel(fusing *f, uint32_t i, bool *done)
{
  cpu_kernel_desc desc;
  memset(&desc, 0, sizeof desc);
  *done = cpu_kernel_describe(f->uses.ops[i], &desc);
  if (!*done) return NULL;
  CALX_TRY(place_single(f, i, CPU_LOWER_UNIT_KERNEL));
  cpu_lower_unit *u = f->units[f->n_units - 1];
  u->desc = CX_ARENA_NEW(&f->g->l->arena, cpu_kernel_desc);
  if (u->desc == NULL) return cx_out_of_memory();
  *u->desc = desc;
  return NULL;
}

static calx_status *place_root(fusing *f, uint32_t i)
{
  CALX_TRY(place_single(f, i, CPU_LOWER_UNIT_CODE));
  cpu_lower_unit *u = f->units[f->n_units - 1];
  u->hero = f->uses.ops[i];
  u->elements = elements_of(u->hero);
  return NULL;
}

static calx_status *refuse(const cx_hlo_op *op)
{
  cx_hlo_str name = cpu_opt_name(op);
  return cx_error(CALX_UNIMPLEMENTED,
                  "%.*s: the CPU engine does not have it for these types",
                  (int)name.n, name.s);
}

static calx_status *place(fusing *f, uint32_t i)
{
  cx_hlo_op *op = f->uses.ops[i];
  if (op == cx_hlo_terminator(f->block) || op->kind == CX_HLO_OP_CONSTANT ||
      is_token(op)) {
    return NULL;
  }
  if (is_barrier(op)) {
    for (uint32_t r = 0; r < op->n_results; r++) {
      cx_graph_value(f->g, &op->results[r])->alias = op->operands[r];
    }
    return NULL;
  }
  if (cpu_opt_is_control(op)) return place_control(f, i);
  if (cpu_lower_is_collective(op)) {
    return place_single(f, i, CPU_LOWER_UNIT_COLLECTIVE);
  }
  bool done = false;
  if (op->kind == CX_HLO_OP_DOT_GENERAL || op->kind == CX_HLO_OP_CONVOLUTION) {
    CALX_TRY(place_kernel(f, i, &done));
    if (done) return NULL;
  }
  switch (cpu_jit_class_of(op)) {
    case CPU_JIT_ELEMENT:
    case CPU_JIT_INDEX: return place_loop(f, i);
    case CPU_JIT_REDUCE: return place_reduce(f, i);
    case CPU_JIT_ROOT: return place_root(f, i);
    case CPU_JIT_NONE: break;
  }
  if (!cpu_ref_can(op)) return refuse(op);
  return place_single(f, i, CPU_LOWER_UNIT_INTERPRET);
}

static bool prepare(fusing *f)
{
  cx_arena *arena = &f->g->l->arena;
  size_t n = f->uses.n_ops + 1;
  f->links = CX_ARENA_ARRAY(arena, link *, n);
  f->in_memory = CX_ARENA_ARRAY(arena, bool, n);
  f->after = CX_ARENA_ARRAY(arena, bool, n);
  f->stack = CX_ARENA_ARRAY(arena, uint32_t, 2 * n);
  f->seen = CX_ARENA_ARRAY(arena, unsigned, n);
  f->spans = CX_ARENA_ARRAY(arena, span, n + 1);
  return f->links != NULL && f->in_memory != NULL && f->after != NULL &&
         f->stack != NULL && f->seen != NULL && f->spans != NULL;
}

calx_status *cpu_lower_fuse(cpu_lower_planner *g, cx_hlo_block *block,
                            cpu_lower_schedule *out)
{
  fusing f = { .g = g, .block = block };
  CALX_TRY(cpu_lower_uses(g, block, &f.uses));
  if (!prepare(&f)) return cx_out_of_memory();
  for (size_t i = f.uses.n_ops; i > 0; i--) {
    CALX_TRY(place(&f, (uint32_t)(i - 1)));
    lower_to(&f, (uint32_t)(i - 1));
  }
  out->block = block;
  out->units = f.units;
  out->n_units = f.n_units;
  return NULL;
}
