// opt/loop_count: loops that count, and what an iteration's number says of the
// values in it.
#include "base/alloc.h"
#include "hlo/number.h"
#include "opt/loops.h"

#define MOST_TIMES (INT64_C(1) << 16)  // whose indices are checked one by one

bool cpu_opt_is_loop(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_WHILE;
}

static bool is_increment(const cx_hlo_value *v, const cx_hlo_value *arg)
{
  const cx_hlo_op *add = cpu_opt_made_by(v, CX_HLO_OP_ADD);
  return add != NULL &&
         ((add->operands[0] == arg && cpu_opt_is_number(add->operands[1], 1)) ||
          (add->operands[1] == arg && cpu_opt_is_number(add->operands[0], 1)));
}

cpu_opt_loop_count cpu_opt_loop_count_of(const cx_hlo_op *loop)
{
  const cx_hlo_block *condition = loop->regions[0].first;
  cpu_opt_loop_count c = { .body = loop->regions[1].first };
  const cx_hlo_op *less =
      cpu_opt_made_by(condition->last->operands[0], CX_HLO_OP_COMPARE);
  if (less == NULL ||
      cx_hlo_op_int(less, CX_HLO_A_COMPARISON_DIRECTION) != CX_HLO_LT) {
    return c;
  }
  const cx_hlo_value *arg = less->operands[0];
  const cx_hlo_elem e = arg->type.tensor.elem;
  const unsigned char *limit = cpu_opt_splat(less->operands[1]);
  if (arg->op != NULL || arg->block != condition || limit == NULL ||
      (e != CX_HLO_I32 && e != CX_HLO_I64) || arg->type.tensor.rank != 0 ||
      !cpu_opt_is_number(loop->operands[arg->index], 0)) {
    return c;
  }
  c.i = &c.body->args[arg->index];
  if (is_increment(c.body->last->operands[arg->index], c.i)) {
    c.n = cx_hlo_load_int(e, limit);
  }
  if (c.n < 0) c.n = 0;
  return c;
}

// The value of a scalar in iteration i; false: not known.
static bool value_at(const cpu_opt_loop_count *c, const cx_hlo_value *v,
                     int64_t i, int *fuel, int64_t *out)
{
  const cx_hlo_type *t = &v->type.tensor;
  if (--*fuel < 0 || t->rank != 0 || v->type.non_tensor != NULL) return false;
  if (v == c->i) {
    *out = i;
    return true;
  }
  const unsigned char *p = cpu_opt_splat(v);
  if (p != NULL && (cx_hlo_elem_is_int(t->elem) || t->elem == CX_HLO_I1)) {
    *out = cx_hlo_load_int(t->elem, p);
    return true;
  }
  const cx_hlo_op *op = v->op;
  if (op == NULL || op->n_operands == 0 || op->n_operands > 3) return false;
  int64_t x[3];
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (!value_at(c, op->operands[k], i, fuel, &x[k])) return false;
    if (x[k] < -INT32_MAX || x[k] > INT32_MAX) return false;
  }
  switch (op->kind) {
    case CX_HLO_OP_ADD: *out = x[0] + x[1]; break;
    case CX_HLO_OP_SUBTRACT: *out = x[0] - x[1]; break;
    case CX_HLO_OP_SELECT: *out = x[0] != 0 ? x[1] : x[2]; break;
    case CX_HLO_OP_COMPARE:
      if (cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION) != CX_HLO_LT) {
        return false;
      }
      *out = x[0] < x[1];
      break;
    default: return false;
  }
  return t->elem == CX_HLO_I32 || t->elem == CX_HLO_I64 || t->elem == CX_HLO_I1;
}

bool cpu_opt_loop_permutes(const cpu_opt_loop_count *c,
                           const cx_hlo_value *index)
{
  if (c->n > MOST_TIMES) return false;
  bool *seen = cx_calloc((size_t)c->n + 1, sizeof *seen);
  bool all = seen != NULL;
  for (int64_t i = 0; i < c->n && all; i++) {
    int fuel = 32;
    int64_t at = -1;
    all =
        value_at(c, index, i, &fuel, &at) && at >= 0 && at < c->n && !seen[at];
    if (all) seen[at] = true;
  }
  cx_free(seen);
  return all;
}

bool cpu_opt_is_row(const cx_hlo_type *all, const cx_hlo_type *row)
{
  if (all->rank == 0 || row->dims[0] != 1) return false;
  for (size_t d = 1; d < all->rank; d++) {
    if (row->dims[d] != all->dims[d]) return false;
  }
  return true;
}

const cx_hlo_op *cpu_opt_loop_update(const cx_hlo_op *loop, uint32_t i)
{
  const cx_hlo_block *body = loop->regions[1].first;
  const cx_hlo_op *update =
      cpu_opt_made_by(body->last->operands[i], CX_HLO_OP_DYNAMIC_UPDATE_SLICE);
  if (update == NULL || update->block != body ||
      update->operands[0] != &body->args[i]) {
    return NULL;
  }
  return cpu_opt_is_row(&update->operands[0]->type.tensor,
                        &update->operands[1]->type.tensor)
             ? update
             : NULL;
}

cx_hlo_op *cpu_opt_loop_row(const cpu_opt_loop_count *c, const cx_hlo_value *v)
{
  const cx_hlo_op *shaped = cpu_opt_made_by(v, CX_HLO_OP_RESHAPE);
  cx_hlo_op *slice = shaped == NULL ? NULL
                                    : cpu_opt_made_by(shaped->operands[0],
                                                      CX_HLO_OP_DYNAMIC_SLICE);
  if (slice == NULL || slice->block != c->body) return NULL;
  const cx_hlo_value *whole = slice->operands[0];
  const cx_hlo_type *from = &whole->type.tensor;
  const cx_hlo_type *row = &v->type.tensor;
  if (cpu_opt_block_of(whole) == c->body || from->rank != row->rank + 1 ||
      from->dims[0] != c->n || slice->results[0].type.tensor.dims[0] != 1) {
    return NULL;
  }
  for (size_t d = 0; d < row->rank; d++) {
    if (from->dims[d + 1] != row->dims[d]) return NULL;
  }
  return slice;
}
