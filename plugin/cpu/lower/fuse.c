// lower/fuse: puts the operations of a block into groups, from the last
// operation to the first.
//
// An operation joins the loop that uses it when all its users are in that one
// loop, or when it costs little and can be computed in each. What must be in
// memory anyway becomes an output of a loop over the same elements, unless the
// loop would then wait for itself. All else begins a group of its own.
#include "lower/fuse.h"

#include <string.h>

#include "opt/edit.h"
#include "ref/handler.h"

#define REPEATED_OPS 6  // of one loop
// What its copies may cost: as much as to write an element and to read it.
#define COPIES_NS 0.8
#define PADDED_NS 0.5  // more for a copy that a pad reads, with a mask
// Of a loop with a root of class ROOT, when another operation is to join: its
// operands may be computed several times.
#define ROOT_OPS 12

static int64_t elements_of(const cx_hlo_op *op)
{
  return cx_hlo_type_elements(cpu_lower_result_type(op));
}

// Whether `op` belongs to a tree of concatenations with `user` on top: together
// they have more operands than a loop takes.
static bool is_nested_concatenation(const cx_hlo_op *op, const cx_hlo_op *user)
{
  return op->kind == CX_HLO_OP_CONCATENATE &&
         cx_hlo_op_int(op, CX_HLO_A_DIMENSION) ==
             cx_hlo_op_int(user, CX_HLO_A_DIMENSION);
}

// Whether the value comes from outside of the block, which is then that of a
// loop or a branch: it is in memory, and nothing in the block writes over it.
static bool is_from_outside(const cx_hlo_value *v, const cx_hlo_block *block)
{
  if (v->op != NULL) return v->op->block != block;
  return v < block->args || v >= block->args + block->n_args;
}

// Costs nothing wherever it is computed again.
static bool is_free(const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_lower_result_type(op);
  switch (op->kind) {
    case CX_HLO_OP_DYNAMIC_SLICE:
      // To read it is to read the copy, unless rows are short.
      return t->rank > 0 && t->dims[t->rank - 1] >= CPU_LOWER_FUSE_ROW &&
             is_from_outside(op->operands[0], op->block);
    case CX_HLO_OP_IOTA:
    case CX_HLO_OP_RESHAPE: return true;
    case CX_HLO_OP_BROADCAST_IN_DIM:
      return elements_of(op) >
                 cx_hlo_type_elements(&op->operands[0]->type.tensor) ||
             elements_of(op) == 1;
    default: return false;
  }
}

// ---- loops ----

// Whether `user`, which is in a loop, can have operation i in the same loop as
// its operand.
static bool takes_operand(const cpu_lower_fusion *f, uint32_t i,
                          const cpu_lower_use *use)
{
  const cx_hlo_op *op = f->uses->ops[i];
  const cx_hlo_op *user = f->uses->ops[use->user];
  if (use->operand < 0 || !cpu_jit_fuses(user, (size_t)use->operand)) {
    return false;
  }
  // A gather computes what it picks once for each element of its result.
  if (user->kind == CX_HLO_OP_GATHER) {
    return cpu_jit_class_of(op) != CPU_JIT_ELEMENT;
  }
  return user->kind != CX_HLO_OP_CONCATENATE ||
         !(cpu_lower_is_expensive(op) || is_nested_concatenation(op, user));
}

static bool is_read_by_pad(const cpu_lower_fusion *f, uint32_t i,
                           const cpu_lower_group *g)
{
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const uint32_t user = f->uses->uses[k].user;
    if (f->uses->ops[user]->kind == CX_HLO_OP_PAD &&
        cpu_lower_fuse_is_in(f, user, g)) {
      return true;
    }
  }
  return false;
}

// Whether operation i is better read from memory than computed at all places
// where g wants it. Without this, a chain of sums of a value and the same value
// moved doubles with each link.
static bool has_many_copies(const cpu_lower_fusion *f, uint32_t i,
                            const cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  const unsigned copies = cpu_lower_fuse_copies(f, i, g);
  if (copies > CPU_LOWER_FUSE_POSITIONS) return true;
  if (cpu_jit_class_of(op) != CPU_JIT_ELEMENT) return false;
  const double ns =
      cpu_jit_op_ns(op) + (is_read_by_pad(f, i, g) ? PADDED_NS : 0);
  return (copies - 1) * ns > COPIES_NS;
}

// Whether operation i may be computed in g.
static bool fits(const cpu_lower_fusion *f, uint32_t i,
                 const cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  const cpu_jit_class class = cpu_jit_class_of(op);
  const bool expensive = cpu_lower_is_expensive(op);
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->n_ops >= CPU_LOWER_FUSE_OPS ||
      (class != CPU_JIT_ELEMENT && class != CPU_JIT_INDEX) ||
      has_many_copies(f, i, g)) {
    return false;
  }
  if (g->root != NULL && cpu_jit_class_of(g->root) == CPU_JIT_ROOT &&
      (expensive || g->n_ops > ROOT_OPS)) {
    return false;
  }
  bool used = false;
  if (cpu_lower_fuse_is_used_after_reduction(f, i, g, &used)) {
    return class == CPU_JIT_ELEMENT &&
           cpu_opt_same_dims(cpu_lower_result_type(op),
                             cpu_lower_result_type(g->root));
  }
  // Of what is copied piece by piece, each piece computes its own.
  const bool pieces = g->root != NULL && cpu_jit_has_pieces(g->root);
  if (class == CPU_JIT_ELEMENT && elements_of(op) < g->elements &&
      (expensive || (g->n_repeated >= REPEATED_OPS && !pieces))) {
    return false;
  }
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses->uses[k];
    const cpu_lower_member *m = cpu_lower_fuse_member(f, use->user, g);
    // Used before the loop's reductions and after them: in none of the two.
    if (m != NULL && (m->after_reduction || !takes_operand(f, i, use))) {
      return false;
    }
  }
  return true;
}

// Whether g's loop meets each element of operation i's result once.
static bool iterates_over(cpu_lower_fusion *f, uint32_t i,
                          const cpu_lower_group *g)
{
  bool used = false;
  if (g->root == NULL) {
    return cpu_opt_same_dims(cpu_lower_result_type(f->uses->ops[i]),
                             cpu_lower_result_type(g->ops[0]));
  }
  return cpu_lower_fuse_is_used_after_reduction(f, i, g, &used) ||
         cpu_lower_fuse_writes_reduced(f, i, g);
}

static bool may_write(cpu_lower_fusion *f, uint32_t i, const cpu_lower_group *g)
{
  return iterates_over(f, i, g) && g->n_written < CPU_LOWER_FUSE_OUTPUTS &&
         fits(f, i, g) && !cpu_lower_fuse_has_path(f, i, g);
}

static calx_status *fuse_loop_op(cpu_lower_fusion *f, uint32_t i)
{
  cx_hlo_op *op = f->uses->ops[i];
  const cpu_lower_users users = cpu_lower_fuse_users(f, i);
  if (users.n == 0 && !users.elsewhere) return NULL;  // unused
  bool all = !users.too_many;
  for (size_t k = 0; k < users.n && all; k++) all = fits(f, i, users.groups[k]);
  const bool once = users.n == 1 && !users.elsewhere;
  if (all && (once || (is_free(op) && users.n > 0) ||
              cpu_lower_fuse_recomputes(f, i, &users))) {
    for (size_t k = 0; k < users.n; k++) {
      CALX_TRY(cpu_lower_fuse_join(f, i, users.groups[k]));
    }
    if (!users.elsewhere) return NULL;
  } else {
    for (size_t k = 0; k < users.n; k++) {
      cpu_lower_group *g = users.groups[k];
      if (!may_write(f, i, g)) continue;
      CALX_TRY(cpu_lower_fuse_join(f, i, g));
      cpu_lower_fuse_write(f, i, g);
      return NULL;
    }
  }
  return cpu_lower_fuse_new_loop(f, i, NULL, cpu_lower_result_type(op));
}

// ---- groups of one operation ----

static calx_status *make_control(cpu_lower_fusion *f, uint32_t i)
{
  cpu_lower_group *g = NULL;
  CALX_TRY(cpu_lower_fuse_new_group(f, CPU_LOWER_GROUP_CONTROL, i, &g));
  g->regions = f->uses->regions[i];
  for (uint32_t r = 0; r < f->uses->ops[i]->n_regions; r++) {
    CALX_TRY(cpu_lower_fuse(f->c, &g->regions[r]));
  }
  return NULL;
}

// The elements of each line of the result that a use takes: those that a slice
// begins with, or all.
static int64_t first_taken(const cpu_lower_fusion *f, const cx_hlo_op *sort,
                           const cpu_lower_use *use)
{
  const cx_hlo_op *user = f->uses->ops[use->user];
  const int64_t rank = (int64_t)cpu_lower_result_type(sort)->rank;
  int64_t d = cx_hlo_op_int(sort, CX_HLO_A_DIMENSION);
  if (d < 0) d += rank;
  if (use->operand < 0 || user->kind != CX_HLO_OP_SLICE ||
      cx_hlo_op_ints(user, CX_HLO_A_START_INDICES).v[d] != 0) {
    return INT64_MAX;
  }
  return cx_hlo_op_ints(user, CX_HLO_A_LIMIT_INDICES).v[d];
}

// Says what of the results of a sort is used.
static void keep_first(const cpu_lower_fusion *f, uint32_t i,
                       cpu_kernel_desc *desc)
{
  const cx_hlo_op *op = f->uses->ops[i];
  int64_t keep[2] = { 0, 0 };
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses->uses[k];
    const cx_hlo_op *user = f->uses->ops[use->user];
    const int64_t n = first_taken(f, op, use);
    for (uint32_t r = 0; r < op->n_results; r++) {
      const bool other =
          use->operand >= 0 && user->operands[use->operand] != &op->results[r];
      if (!other && n > keep[r]) keep[r] = n;
    }
  }
  for (uint32_t r = 0; r < op->n_results; r++) {
    cpu_kernel_keep(desc, r, keep[r]);
  }
}

static calx_status *make_kernel(cpu_lower_fusion *f, uint32_t i,
                                const cpu_kernel_desc *desc)
{
  cpu_lower_group *g = NULL;
  CALX_TRY(cpu_lower_fuse_new_group(f, CPU_LOWER_GROUP_KERNEL, i, &g));
  g->desc = CX_ARENA_NEW(&f->c->arena, cpu_kernel_desc);
  if (g->desc == NULL) return cx_out_of_memory();
  *g->desc = *desc;
  if (f->uses->ops[i]->kind == CX_HLO_OP_SORT) keep_first(f, i, g->desc);
  return NULL;
}

static calx_status *refuse(const cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_CUSTOM_CALL) {
    CALX_TRY(cpu_ref_custom_call_check(op));
  }
  cx_hlo_str name = cpu_opt_name(op);
  return cx_error(CALX_UNIMPLEMENTED,
                  "%.*s: the CPU engine does not implement it for these types",
                  (int)name.n, name.s);
}

// ---- the block ----

static calx_status *fuse_op(cpu_lower_fusion *f, uint32_t i)
{
  cx_hlo_op *op = f->uses->ops[i];
  cpu_lower_group *g = NULL;
  if (op == cx_hlo_terminator(op->block)) return NULL;
  switch (op->kind) {
    case CX_HLO_OP_CONSTANT:
    case CX_HLO_OP_AFTER_ALL:
    case CX_HLO_OP_CREATE_TOKEN: return NULL;
    case CX_HLO_OP_OPTIMIZATION_BARRIER:
      for (uint32_t r = 0; r < op->n_results; r++) {
        cpu_lower_info(f->c, &op->results[r])->alias = op->operands[r];
      }
      return NULL;
    default: break;
  }
  if (cpu_opt_is_control(op)) return make_control(f, i);
  if (cpu_opt_is_collective(op)) {
    return cpu_lower_fuse_new_group(f, CPU_LOWER_GROUP_COLLECTIVE, i, &g);
  }
  cpu_kernel_desc desc;
  memset(&desc, 0, sizeof desc);  // padding too: equal ones are equal bytes
  const bool registered =
      op->kind == CX_HLO_OP_CUSTOM_CALL && cpu_ref_handler_takes(op);
  if (op->kind != CX_HLO_OP_DOT && !registered &&
      cpu_kernel_describe(op, &desc)) {
    return make_kernel(f, i, &desc);
  }
  switch (cpu_jit_class_of(op)) {
    case CPU_JIT_ELEMENT:
    case CPU_JIT_INDEX:
      return cpu_jit_has_pieces(op)
                 ? cpu_lower_fuse_new_loop(f, i, op, cpu_lower_result_type(op))
                 : fuse_loop_op(f, i);
    case CPU_JIT_REDUCE: return cpu_lower_fuse_reduction(f, i);
    case CPU_JIT_ROOT:
      return cpu_lower_fuse_new_loop(f, i, op, cpu_lower_result_type(op));
    case CPU_JIT_NONE: break;
  }
  if (!cpu_ref_can(op)) return refuse(op);
  return cpu_lower_fuse_new_group(f, CPU_LOWER_GROUP_INTERPRETED, i, &g);
}

static bool prepare(cpu_lower_fusion *f)
{
  cx_arena *arena = &f->c->arena;
  const size_t n = f->uses->n_ops + 1;
  f->members = CX_ARENA_ARRAY(arena, cpu_lower_member *, n);
  f->in_memory = CX_ARENA_ARRAY(arena, bool, n);
  f->stack = CX_ARENA_ARRAY(arena, uint32_t, 2 * n);
  f->seen = CX_ARENA_ARRAY(arena, unsigned, n);
  f->spans = CX_ARENA_ARRAY(arena, cpu_lower_span, n + 1);
  return f->members != NULL && f->in_memory != NULL && f->stack != NULL &&
         f->seen != NULL && f->spans != NULL;
}

calx_status *cpu_lower_fuse(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  cpu_lower_fusion f = { .c = c,
                         .schedule = schedule,
                         .uses = &schedule->uses };
  if (!prepare(&f)) return cx_out_of_memory();
  for (uint32_t i = (uint32_t)f.uses->n_ops; i-- > 0;) {
    CALX_TRY(fuse_op(&f, i));
    cpu_lower_fuse_note_placed(&f, i);
  }
  return NULL;
}
