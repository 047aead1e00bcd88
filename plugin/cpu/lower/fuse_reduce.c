// lower/fuse_reduce: reductions. Those over the same elements of something that
// they share become one loop, and elementwise operations on the results follow
// in the same loop. What is reduced and also needed in memory is written by the
// loop that reduces it.
#include "lower/fuse.h"
#include "opt/edit.h"

#define GROUPS_SEARCHED 256  // for a reduction that shares something
// Of fewer elements a reduction may run on fewer threads than other loops do.
#define LEAST_WRITTEN (1 << 16)
// Longer chains of operations are faster in a loop of their own, if it computes
// several vectors side by side, or if there are fewer elements: a sum then has
// few pieces, which some numbers of threads do not divide evenly.
#define MOST_NS 2.0
#define MANY_ELEMENTS (1 << 19)

static bool has_same_domain(const cx_hlo_op *a, const cx_hlo_op *b)
{
  return a->kind == CX_HLO_OP_REDUCE && b->kind == CX_HLO_OP_REDUCE &&
         a->n_results == 1 && b->n_results == 1 &&
         cpu_opt_same_dims(&a->operands[0]->type.tensor,
                           &b->operands[0]->type.tensor) &&
         cpu_opt_same_ints(cx_hlo_op_ints(a, CX_HLO_A_DIMENSIONS),
                           cx_hlo_op_ints(b, CX_HLO_A_DIMENSIONS));
}

// Whether v is computed from `source`, in at most `depth` operations.
static bool derives_from(const cx_hlo_value *v, const cx_hlo_value *source,
                         int depth)
{
  if (v == source) return true;
  if (depth == 0 || v->op == NULL || cpu_lower_is_constant(v)) return false;
  for (uint32_t i = 0; i < v->op->n_operands && i < 4; i++) {
    if (derives_from(v->op->operands[i], source, depth - 1)) return true;
  }
  return false;
}

static bool has_common_source(const cx_hlo_op *a, const cx_hlo_op *b)
{
  const cx_hlo_value *x = a->operands[0];
  const cx_hlo_value *y = b->operands[0];
  if (derives_from(y, x, 3) || derives_from(x, y, 3)) return true;
  for (uint32_t i = 0; x->op != NULL && i < x->op->n_operands && i < 4; i++) {
    const cx_hlo_value *operand = x->op->operands[i];
    if (!cpu_lower_is_constant(operand) && derives_from(y, operand, 3)) {
      return true;
    }
  }
  return false;
}

static bool may_join(cpu_lower_fusion *f, uint32_t i, const cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->root == NULL ||
      g->n_ops >= CPU_LOWER_FUSE_OPS ||
      g->n_written >= CPU_LOWER_FUSE_OUTPUTS ||
      g->n_extra_reductions >= CPU_LOWER_FUSE_REDUCTIONS ||
      !has_same_domain(op, g->root)) {
    return false;
  }
  bool used = false;
  const bool after = cpu_lower_fuse_is_used_after_reduction(f, i, g, &used);
  return (used ? after : has_common_source(op, g->root)) &&
         !cpu_lower_fuse_has_path(f, i, g);
}

// Whether g is a loop over the reduction's results alone, which can follow the
// reduction in one group.
static bool may_follow(const cx_hlo_op *op, const cpu_lower_group *g)
{
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->root != NULL ||
      op->n_results != 1) {
    return false;
  }
  for (size_t i = 0; i < g->n_ops; i++) {
    if (cpu_jit_class_of(g->ops[i]) != CPU_JIT_ELEMENT ||
        !cpu_opt_same_dims(cpu_lower_result_type(g->ops[i]),
                           cpu_lower_result_type(op))) {
      return false;
    }
  }
  return true;
}

calx_status *cpu_lower_fuse_reduction(cpu_lower_fusion *f, uint32_t i)
{
  cx_hlo_op *op = f->uses->ops[i];
  const cx_hlo_type *reduced = &op->operands[0]->type.tensor;
  const cpu_lower_users users = cpu_lower_fuse_users(f, i);
  const bool once = users.n == 1 && !users.elsewhere && !users.too_many;
  if (once && may_follow(op, users.groups[0])) {
    cpu_lower_group *g = users.groups[0];
    for (size_t k = 0; k < g->n_ops; k++) {
      const cx_hlo_value *result = &g->ops[k]->results[0];
      const uint32_t at = cpu_lower_info(f->c, result)->position;
      cpu_lower_fuse_member(f, at, g)->after_reduction = true;
    }
    g->root = op;
    g->elements = cx_hlo_type_elements(reduced);
    return cpu_lower_fuse_join(f, i, g);
  }
  // Reductions that share something stand near each other.
  const cpu_lower_schedule *s = f->schedule;
  for (size_t k = 0; k < s->n_groups && k < GROUPS_SEARCHED; k++) {
    cpu_lower_group *g = s->groups[s->n_groups - 1 - k];
    if (!may_join(f, i, g)) continue;
    CALX_TRY(cpu_lower_fuse_join(f, i, g));
    g->n_extra_reductions++;
    if (!once || users.groups[0] != g) cpu_lower_fuse_write(f, i, g);
    return NULL;
  }
  return cpu_lower_fuse_new_loop(f, i, op, reduced);
}

// ---- what is reduced ----

bool cpu_lower_reduces(const cpu_lower_group *g, const cx_hlo_type *t)
{
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->root == NULL ||
      cpu_jit_class_of(g->root) != CPU_JIT_REDUCE) {
    return false;
  }
  return cpu_opt_same_dims(t, &g->root->operands[0]->type.tensor) &&
         !cpu_opt_same_dims(t, cpu_lower_result_type(g->root));
}

// Of short rows a reduction may run along other dimensions, and what it wrote
// would be scattered.
bool cpu_lower_fuse_writes_reduced(cpu_lower_fusion *f, uint32_t i,
                                   const cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  const cx_hlo_type *t = cpu_lower_result_type(op);
  const int64_t n = cx_hlo_type_elements(t);
  return cpu_lower_reduces(g, t) && g->root->n_results == 1 &&
         cpu_jit_class_of(op) == CPU_JIT_ELEMENT &&
         t->dims[t->rank - 1] >= CPU_LOWER_FUSE_ROW && n >= LEAST_WRITTEN &&
         !cpu_lower_fuse_is_long(f, i, n < MANY_ELEMENTS, MOST_NS);
}
