// opt/decompose: a map whose region has only elementwise operations becomes the
// same operations on whole tensors.
#include "hlo/ops.h"
#include "opt/decompose.h"
#include "opt/emit.h"

typedef struct lift {
  cx_hlo_builder *b;
  const cx_hlo_block *body;
  const cx_hlo_type *shape;
  cpu_opt_value *made;  // by the operation's position in the body
} lift;

static bool liftable(const cx_hlo_block *body)
{
  for (const cx_hlo_op *op = body->first; op != NULL; op = op->next) {
    if (op->kind == CX_HLO_OP_CONSTANT || op->kind == CX_HLO_OP_RETURN) {
      continue;
    }
    if (!cpu_opt_is_elementwise(op) || op->kind == CX_HLO_OP_MAP) return false;
    if (op->n_results != 1 || op->results[0].type.tensor.rank != 0) {
      return false;
    }
  }
  return true;
}

static size_t position_of(const cx_hlo_op *op)
{
  size_t n = 0;
  while (op->previous != NULL) {
    op = op->previous;
    n++;
  }
  return n;
}

// The tensor for a scalar of the body.
static cpu_opt_value lifted(const lift *l, const cx_hlo_op *map,
                            cpu_opt_value x)
{
  if (x->op == NULL && x->block == l->body) return map->operands[x->index];
  if (x->op != NULL && x->op->block == l->body) {
    return l->made[position_of(x->op)];
  }
  return cpu_opt_broadcast(l->b, x, l->shape, NULL);
}

static cpu_opt_value lift_op(const lift *l, const cx_hlo_op *map,
                             const cx_hlo_op *op)
{
  cx_hlo_type type = *l->shape;
  type.elem = op->results[0].type.tensor.elem;
  if (op->kind == CX_HLO_OP_CONSTANT) {
    return cpu_opt_splat_like(l->b, &type, cpu_opt_splat(&op->results[0]));
  }
  cpu_opt_value operands[3] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < op->n_operands && i < 3; i++) {
    operands[i] = lifted(l, map, op->operands[i]);
  }
  cx_hlo_op *r = cpu_opt_begin_like(l->b, op, operands);
  cx_hlo_build_declare(l->b, r, 0, &type);
  return cx_hlo_build_end(l->b, r);
}

void cpu_opt_map(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_block *body = op->regions[0].first;
  const cx_hlo_op *end = body->last;
  lift l = { &w->b, body, &op->results[0].type.tensor, NULL };
  if (!liftable(body)) return;
  l.made = cpu_opt_values(w, position_of(end));
  if (l.made == NULL) return;
  size_t n = 0;
  for (const cx_hlo_op *x = body->first; x != end; x = x->next) {
    l.made[n++] = lift_op(&l, op, x);
  }
  cpu_opt_replace(w, op, lifted(&l, op, end->operands[0]));
}
