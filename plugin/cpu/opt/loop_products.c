// opt/loop_products: products of a while over the rows of tensors become one
// product over all rows.
//
// A product of row i of an outside tensor with an outside value becomes row i
// of the product of the whole tensor, which the pass "loops" then moves before
// the loop. A variable to which each iteration adds a product leaves the loop:
// the iterations keep the two factors as rows of tensors, unless these are rows
// already, and the sum is one product behind the loop that contracts the
// dimension of the iterations too. So the weights of a recurrent network and
// their gradients are in two large products instead of two small ones a step.
//
// Both only where the loop counts 0, 1, … n - 1, so that nothing is computed
// that the loop would not, and each row is written.
#include <string.h>

#include "base/alloc.h"
#include "opt/loops.h"
#include "opt/passes.h"

#define MOST_BYTES (INT64_C(1) << 30)  // of what is kept
// A factor is kept if it has at most so many times the bytes of the sum.
#define MOST_FACTOR 2

typedef struct products_state {
  uint32_t *uses;
  uint32_t n;
} products_state;

// ---- rows ----

static cx_hlo_ints one_more(cpu_opt_walk *w, cx_hlo_ints list, bool with_first)
{
  int64_t *v = cpu_opt_list(w, list.n + 1);
  cx_hlo_ints out = { v, 0 };
  if (v == NULL) return list;
  if (with_first) v[out.n++] = 0;
  for (size_t i = 0; i < list.n; i++) v[out.n++] = list.v[i] + 1;
  return out;
}

static const cx_hlo_dot_numbers *numbers_of(const cx_hlo_op *dot)
{
  return cx_hlo_op_struct(dot, CX_HLO_A_DOT_DIMENSION_NUMBERS);
}

static cx_hlo_value *like_dot(cpu_opt_walk *w, const cx_hlo_op *dot,
                              cx_hlo_value *lhs, cx_hlo_value *rhs,
                              const cx_hlo_dot_numbers *n,
                              const cx_hlo_type *type)
{
  cx_hlo_value *const operands[2] = { lhs, rhs };
  cx_hlo_op *made = cpu_opt_begin_like(&w->b, dot, operands);
  cx_hlo_build_attr(&w->b, made, CX_HLO_A_DOT_DIMENSION_NUMBERS,
                    cx_hlo_attr_struct(w->b.module, CX_HLO_STRUCT_DOT, n));
  cx_hlo_build_declare(&w->b, made, 0, type);
  return cx_hlo_build_end(&w->b, made);
}

// `type` with n as one dimension more, at `at`; NULL: too large, or the builder
// has failed.
static cx_hlo_type *with_rows(cpu_opt_walk *w, const cx_hlo_type *type,
                              size_t at, int64_t n)
{
  int64_t *dims = cpu_opt_list(w, type->rank + 1);
  cx_hlo_type *out = CX_ARENA_NEW(&w->b.module->arena, cx_hlo_type);
  if (dims == NULL || out == NULL) return NULL;
  for (size_t d = 0; d <= type->rank; d++) {
    dims[d] = d < at ? type->dims[d] : (d == at ? n : type->dims[d - 1]);
  }
  *out = (cx_hlo_type){ type->elem, type->rank + 1, dims };
  const int64_t bytes = cx_hlo_type_bytes(type);
  return bytes >= 0 && n > 0 && bytes <= MOST_BYTES / n ? out : NULL;
}

// ---- a product with a row ----

static void visit_dot(cpu_opt_walk *w, cx_hlo_op *dot)
{
  const cx_hlo_op *loop =
      dot->block->region == NULL ? NULL : dot->block->region->op;
  if (loop == NULL || loop->kind != CX_HLO_OP_WHILE ||
      dot->block != loop->regions[1].first) {
    return;
  }
  const cpu_opt_loop_count c = cpu_opt_loop_count_of(loop);
  const cx_hlo_dot_numbers *n = numbers_of(dot);
  if (c.n < 2 || n->lhs_batch.n != 0) return;
  for (size_t side = 0; side < 2; side++) {
    const cx_hlo_op *slice = cpu_opt_loop_row(&c, dot->operands[side]);
    cx_hlo_value *other = dot->operands[1 - side];
    if (slice == NULL || cpu_opt_block_of(other) == c.body) continue;
    // The rows' dimension is the first of those of its side.
    const cx_hlo_type *type = &dot->results[0].type.tensor;
    const size_t at =
        side == 0 ? 0 : dot->operands[0]->type.tensor.rank - n->lhs_contract.n;
    const cx_hlo_type *all = with_rows(w, type, at, c.n);
    if (all == NULL) return;
    cx_hlo_dot_numbers numbers = *n;
    cx_hlo_ints *list =
        side == 0 ? &numbers.lhs_contract : &numbers.rhs_contract;
    *list = one_more(w, *list, false);
    cx_hlo_value *whole = slice->operands[0];
    cx_hlo_value *product = side == 0
                                ? like_dot(w, dot, whole, other, &numbers, all)
                                : like_dot(w, dot, other, whole, &numbers, all);
    cx_hlo_value **starts = cpu_opt_values(w, all->rank);
    int64_t *sizes = cpu_opt_list(w, all->rank);
    if (starts == NULL || sizes == NULL) return;
    const cx_hlo_type index = slice->operands[1]->type.tensor;
    cx_hlo_value *zero = cx_hlo_splat_int(&w->b, index, 0);
    for (size_t d = 0; d < all->rank; d++) {
      starts[d] = d == at ? slice->operands[1] : zero;
      sizes[d] = d == at ? 1 : all->dims[d];
    }
    cx_hlo_value *row = cx_hlo_dynamic_slice(&w->b, product, starts, sizes);
    cpu_opt_replace(w, dot, cx_hlo_reshape(&w->b, row, type->dims, type->rank));
    return;
  }
}

// ---- a sum of products ----

// A value of which the loop keeps row `index`.
typedef struct kept {
  cx_hlo_value *value;
  const cx_hlo_op *row;  // whose index it is; NULL: the counter
  cx_hlo_value *result;  // of the new loop
} kept;

#define MOST_KEPT 16
#define NOT_KEPT SIZE_MAX

typedef struct sum {
  uint32_t variable;
  cx_hlo_op *dot;
  const cx_hlo_op *row[2];  // the factor is this row
  size_t kept[2];           // else it is kept as this one
} sum;

typedef struct sums {
  cpu_opt_loop_count c;
  cx_hlo_op *loop;
  sum sums[MOST_KEPT];
  kept kept[MOST_KEPT];
  size_t n, n_kept;
} sums;

static bool is_used_once(const products_state *s, const cx_hlo_value *v)
{
  return v->number < s->n && s->uses[v->number] == 1;
}

// The product that an iteration adds to variable i; NULL: it does something
// else, or something else uses the variable.
static cx_hlo_op *added_product(const products_state *s, const sums *x,
                                uint32_t i)
{
  const cx_hlo_value *arg = &x->c.body->args[i];
  const cx_hlo_value *seen = &x->loop->regions[0].first->args[i];
  const cx_hlo_value *next = x->c.body->last->operands[i];
  const cx_hlo_op *add = cpu_opt_made_by(next, CX_HLO_OP_ADD);
  if (add == NULL || add->block != x->c.body || !is_used_once(s, arg) ||
      !is_used_once(s, next) || seen->number >= s->n ||
      s->uses[seen->number] != 0) {
    return NULL;
  }
  const uint32_t other = add->operands[0] == arg ? 1 : 0;
  if (add->operands[1 - other] != arg) return NULL;
  cx_hlo_op *dot = cpu_opt_made_by(add->operands[other], CX_HLO_OP_DOT_GENERAL);
  return dot != NULL && dot->block == x->c.body &&
                 is_used_once(s, &dot->results[0])
             ? dot
             : NULL;
}

static size_t keep(sums *x, cx_hlo_value *value, const cx_hlo_op *row)
{
  for (size_t i = 0; i < x->n_kept; i++) {
    const cx_hlo_op *has = x->kept[i].row;
    const bool same = has == row || (has != NULL && row != NULL &&
                                     has->operands[1] == row->operands[1]);
    if (x->kept[i].value == value && same) return i;
  }
  if (x->n_kept == MOST_KEPT) return NOT_KEPT;
  x->kept[x->n_kept] = (kept){ value, row, NULL };
  return x->n_kept++;
}

static void add_sum(const products_state *s, sums *x, uint32_t i)
{
  cx_hlo_op *dot = added_product(s, x, i);
  if (dot == NULL || x->n == MOST_KEPT) return;
  sum *out = &x->sums[x->n];
  *out = (sum){ .variable = i, .dot = dot, .kept = { NOT_KEPT, NOT_KEPT } };
  const cx_hlo_op *row = NULL;
  for (int k = 0; k < 2; k++) {
    const cx_hlo_op *r = cpu_opt_loop_row(&x->c, dot->operands[k]);
    if (r == NULL || !cpu_opt_loop_permutes(&x->c, r->operands[1])) continue;
    if (row != NULL && row->operands[1] != r->operands[1]) continue;
    row = out->row[k] = r;
  }
  const int64_t limit =
      MOST_FACTOR * cx_hlo_type_bytes(&dot->results[0].type.tensor);
  for (int k = 0; k < 2; k++) {
    cx_hlo_value *factor = dot->operands[k];
    const int64_t bytes = cx_hlo_type_bytes(&factor->type.tensor);
    if (out->row[k] != NULL) continue;
    if (cpu_opt_block_of(factor) != x->c.body || bytes > limit ||
        bytes > MOST_BYTES / x->c.n) {
      return;
    }
  }
  for (int k = 0; k < 2; k++) {
    if (out->row[k] != NULL) continue;
    out->kept[k] = keep(x, dot->operands[k], row);
    if (out->kept[k] == NOT_KEPT) return;
  }
  x->n++;
}

// Writes the rows at the end of the new loop's body.
static void write_rows(cpu_opt_walk *w, const sums *x, cx_hlo_block *body,
                       size_t first, const uint32_t *positions)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_block *outside = b->block;
  cx_hlo_op *end = body->last;
  cx_hlo_value **out = cpu_opt_values(w, first + x->n_kept);
  if (out == NULL) return;
  memcpy(out, end->operands, first * sizeof(cx_hlo_value *));
  cpu_opt_unlink(end);
  b->block = body;
  for (size_t i = 0; i < x->n_kept; i++) {
    const kept *k = &x->kept[i];
    cx_hlo_value *value = k->value;
    if (value->op == NULL) value = &body->args[positions[value->index]];
    const cx_hlo_type *t = &value->type.tensor;
    cx_hlo_value *index = k->row != NULL
                              ? k->row->operands[1]
                              : &body->args[positions[x->c.i->index]];
    const cx_hlo_type *row = with_rows(w, t, 0, 1);
    cx_hlo_value **starts = cpu_opt_values(w, t->rank + 1);
    if (row == NULL || starts == NULL) break;
    cx_hlo_value *zero = cx_hlo_splat_int(b, index->type.tensor, 0);
    for (size_t d = 0; d <= t->rank; d++) starts[d] = d == 0 ? index : zero;
    out[first + i] = cx_hlo_dynamic_update_slice(
        b, &body->args[first + i],
        cx_hlo_reshape(b, value, row->dims, row->rank), starts);
  }
  b->block = outside;
  cx_hlo_op_append(body, end);
  end->operands = out;
  end->n_operands = (uint32_t)(first + x->n_kept);
}

static cx_hlo_value *sum_of(cpu_opt_walk *w, const sums *x, const sum *s)
{
  const cx_hlo_dot_numbers *n = numbers_of(s->dot);
  const cx_hlo_dot_numbers all = { one_more(w, n->lhs_batch, false),
                                   one_more(w, n->rhs_batch, false),
                                   one_more(w, n->lhs_contract, true),
                                   one_more(w, n->rhs_contract, true) };
  cx_hlo_value *factors[2];
  for (int k = 0; k < 2; k++) {
    factors[k] =
        s->row[k] != NULL ? s->row[k]->operands[0] : x->kept[s->kept[k]].result;
  }
  cx_hlo_value *product = like_dot(w, s->dot, factors[0], factors[1], &all,
                                   &s->dot->results[0].type.tensor);
  return cx_hlo_binary(&w->b, CX_HLO_OP_ADD, x->loop->operands[s->variable],
                       product);
}

static calx_status *move_sums(cpu_opt_walk *w, sums *x)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_op *loop = x->loop;
  const size_t n = loop->n_operands, first = n - x->n;
  bool *stays = CX_ARENA_ARRAY(&b->module->arena, bool, n);
  uint32_t *positions = CX_ARENA_ARRAY(&b->module->arena, uint32_t, n);
  cx_hlo_value **operands = cpu_opt_values(w, first + x->n_kept);
  cx_hlo_value **out = cpu_opt_values(w, n);
  if (stays == NULL || positions == NULL || operands == NULL || out == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) stays[i] = true;
  for (size_t i = 0; i < x->n; i++) stays[x->sums[i].variable] = false;
  uint32_t k = 0;
  for (size_t i = 0; i < n; i++) {
    positions[i] = k;
    if (stays[i]) operands[k++] = loop->operands[i];
  }
  for (size_t i = 0; i < x->n_kept; i++) {
    const cx_hlo_type *t =
        with_rows(w, &x->kept[i].value->type.tensor, 0, x->c.n);
    operands[first + i] = t == NULL ? NULL : cx_hlo_splat(b, *t, 0);
    if (operands[first + i] == NULL) return NULL;
  }
  cx_hlo_op *to = cx_hlo_build_begin(b, CX_HLO_OP_WHILE, operands,
                                     first + x->n_kept, first + x->n_kept, 2);
  if (to == NULL) return NULL;
  to->extra = loop->extra;
  to->n_extra = loop->n_extra;
  for (size_t r = 0; r < 2; r++) {
    if (!cpu_opt_move_block(w, loop, to, r, stays)) return cx_out_of_memory();
    for (size_t i = first; i < to->n_operands; i++) {
      to->regions[r].first->args[i].type = operands[i]->type;
    }
  }
  write_rows(w, x, to->regions[1].first, first, positions);
  cx_hlo_build_end(b, to);
  for (size_t i = 0; i < x->n_kept; i++) {
    x->kept[i].result = &to->results[first + i];
  }
  for (size_t i = 0; i < n; i++) {
    if (stays[i]) out[i] = &to->results[positions[i]];
  }
  for (size_t i = 0; i < x->n; i++) {
    out[x->sums[i].variable] = sum_of(w, x, &x->sums[i]);
  }
  cpu_opt_replace_all(w, loop, out);
  return NULL;
}

static calx_status *visit_loop(cpu_opt_walk *w, cx_hlo_op *loop)
{
  sums x = { .c = cpu_opt_loop_count_of(loop), .loop = loop };
  if (x.c.n < 2) return NULL;
  for (uint32_t i = 0; i < loop->n_operands; i++) add_sum(w->user, &x, i);
  return x.n == 0 ? NULL : move_sums(w, &x);
}

// ---- the pass ----

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_DOT_GENERAL) visit_dot(w, op);
  return op->kind == CX_HLO_OP_WHILE ? visit_loop(w, op) : NULL;
}

calx_status *cpu_opt_loop_products(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  if (!cpu_opt_any(f, cpu_opt_is_loop)) return NULL;
  products_state s = { .n = m->n_values };
  s.uses = cpu_opt_uses(m, f);
  if (s.uses == NULL) return cx_out_of_memory();
  calx_status *status = cpu_opt_walk_func(m, f, visit, &s, changed);
  cx_free(s.uses);
  return status;
}
