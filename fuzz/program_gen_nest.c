// fuzz/program_gen_nest: loops in loops with branches, on a few integers and a
// short row of them. What they carry changes places from iteration to
// iteration, and is read and written at indices that they compute, also outside
// of the row. Integers wrap around, so every value is exact.
#include <math.h>

#include "program_gen_parts.h"

enum { SCALARS = 3, CARRIED = SCALARS + 2, MOST_VALUES = 24, DEEPEST = 3 };

// The values that a body may use: integers of one type, and rows of them.
typedef struct nest {
  gen *g;
  cx_hlo_value *scalars[MOST_VALUES], *rows[MOST_VALUES];
  size_t n_scalars, n_rows;
  int depth;
} nest;

static cx_hlo_value *any_scalar(nest *n)
{
  return n->scalars[gen_below(n->g, n->n_scalars)];
}

static cx_hlo_value *any_row(nest *n)
{
  return n->rows[gen_below(n->g, n->n_rows)];
}

static void add_scalar(nest *n, cx_hlo_value *v)
{
  if (v != NULL && n->n_scalars < MOST_VALUES) n->scalars[n->n_scalars++] = v;
}

static void add_row(nest *n, cx_hlo_value *v)
{
  if (v != NULL && n->n_rows < MOST_VALUES) n->rows[n->n_rows++] = v;
}

static cx_hlo_value *arithmetic(nest *n, cx_hlo_value *x, cx_hlo_value *y)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD, CX_HLO_OP_SUBTRACT,
                                          CX_HLO_OP_MULTIPLY, CX_HLO_OP_MAXIMUM,
                                          CX_HLO_OP_XOR };
  return cx_hlo_binary(n->g->b, kinds[gen_below(n->g, 5)], x, y);
}

static cx_hlo_value *condition(nest *n)
{
  return cx_hlo_compare(n->g->b, gen_chance(n->g, 50) ? CX_HLO_LT : CX_HLO_EQ,
                        any_scalar(n), any_scalar(n));
}

static void add_loop(nest *n);

// One operation on scalars, at most one on rows, and their results.
static void add_branches(nest *n)
{
  gen *g = n->g;
  const bool is_if = gen_chance(g, 50);
  const size_t n_branches = is_if ? 2 : 1 + gen_below(g, 3);
  cx_hlo_value *which =
      is_if ? condition(n) : cx_hlo_convert(g->b, any_scalar(n), CX_HLO_I32);
  cx_hlo_op *op = cx_hlo_build_begin(
      g->b, is_if ? CX_HLO_OP_IF : CX_HLO_OP_CASE, &which, 1, 2, n_branches);
  if (op == NULL) return;
  for (size_t i = 0; i < n_branches; i++) {
    cx_hlo_block *outside;
    if (gen_region_open(g, op, i, NULL, 0, &outside) == NULL) return;
    nest inner = *n;
    inner.depth++;
    if (inner.depth < DEEPEST && gen_chance(g, 30)) add_loop(&inner);
    cx_hlo_value *out[2] = { any_scalar(&inner), any_row(&inner) };
    if (gen_chance(g, 70)) out[0] = arithmetic(n, out[0], any_scalar(&inner));
    if (gen_chance(g, 50)) out[1] = arithmetic(n, out[1], any_row(&inner));
    gen_region_close(g, out, 2, outside);
  }
  if (cx_hlo_build_end(g->b, op) == NULL) return;
  add_scalar(n, &op->results[0]);
  add_row(n, &op->results[1]);
}

static void add_operation(nest *n)
{
  gen *g = n->g;
  cx_hlo_builder *b = g->b;
  static const int64_t one = 1, zero = 0;
  cx_hlo_value *row = any_row(n);
  const cx_hlo_type *t = cx_hlo_value_type(row);
  cx_hlo_value *at = any_scalar(n);
  switch (gen_below(g, 9)) {
    case 0:
    case 1: add_scalar(n, arithmetic(n, any_scalar(n), any_scalar(n))); return;
    case 2:
      add_scalar(n,
                 cx_hlo_select(b, condition(n), any_scalar(n), any_scalar(n)));
      return;
    case 3:
      add_scalar(n, cx_hlo_reshape(b, cx_hlo_dynamic_slice(b, row, &at, &one),
                                   NULL, 0));
      return;
    case 4:
    case 5: {
      cx_hlo_value *x = cx_hlo_reshape(b, any_scalar(n), &one, 1);
      add_row(n, cx_hlo_dynamic_update_slice(b, row, x, &at));
      return;
    }
    case 6: {
      cx_hlo_value *x = cx_hlo_broadcast_in_dim(b, at, t->dims, 1, NULL);
      add_row(n, arithmetic(n, row, x));
      return;
    }
    case 7: {
      const cx_hlo_type scalar = { t->elem, 0, NULL };
      add_scalar(n,
                 cx_hlo_reduce_with(b, CX_HLO_OP_ADD, row,
                                    cx_hlo_splat_int(b, scalar, 0), &zero, 1));
      return;
    }
    default:
      if (n->depth >= DEEPEST) {
        add_row(n, cx_hlo_reverse(b, row, &zero, 1));
      } else if (gen_chance(g, 50)) {
        add_loop(n);
      } else {
        add_branches(n);
      }
      return;
  }
}

static void fill(nest *n, cx_hlo_value *const *carried)
{
  n->n_scalars = n->n_rows = 0;
  for (size_t i = 0; i < SCALARS; i++) add_scalar(n, carried[1 + i]);
  add_row(n, carried[1 + SCALARS]);
}

// The carried values: a counter, integers, a row.
static void add_loop(nest *n)
{
  gen *g = n->g;
  const cx_hlo_type counter = { CX_HLO_I32, 0, NULL };
  cx_hlo_value *start[CARRIED] = { cx_hlo_splat_int(g->b, counter, 0) };
  for (size_t i = 0; i < SCALARS; i++) start[1 + i] = any_scalar(n);
  start[1 + SCALARS] = any_row(n);
  cx_hlo_op *op =
      cx_hlo_build_begin(g->b, CX_HLO_OP_WHILE, start, CARRIED, CARRIED, 2);
  if (op == NULL) return;
  const cx_hlo_value *like[CARRIED];
  cx_hlo_value *args[CARRIED], *out[CARRIED];
  for (size_t i = 0; i < CARRIED; i++) like[i] = start[i];
  for (size_t r = 0; r < 2; r++) {
    cx_hlo_block *outside;
    cx_hlo_block *block = gen_region_open(g, op, r, like, CARRIED, &outside);
    if (block == NULL) return;
    for (size_t i = 0; i < CARRIED; i++) args[i] = &block->args[i];
    nest inner = { .g = g, .depth = n->depth + 1 };
    fill(&inner, args);
    if (r == 0) {
      const int64_t times = gen_range(g, 0, 4);
      out[0] = cx_hlo_compare(g->b, CX_HLO_LT, args[0],
                              cx_hlo_splat_int(g->b, counter, times));
      if (gen_chance(g, 30)) {
        cx_hlo_value *also =
            cx_hlo_unary(g->b, CX_HLO_OP_NOT, condition(&inner));
        out[0] = cx_hlo_binary(g->b, CX_HLO_OP_AND, out[0], also);
      }
    } else {
      const size_t n_ops = 1 + gen_below(g, 7);
      for (size_t i = 0; i < n_ops; i++) add_operation(&inner);
      out[0] = cx_hlo_binary(g->b, CX_HLO_OP_ADD, args[0],
                             cx_hlo_splat_int(g->b, counter, 1));
      for (size_t i = 0; i < SCALARS; i++) out[1 + i] = any_scalar(&inner);
      out[1 + SCALARS] = any_row(&inner);
    }
    gen_region_close(g, out, r == 0 ? 1 : CARRIED, outside);
  }
  if (cx_hlo_build_end(g->b, op) == NULL) return;
  for (size_t i = 0; i < SCALARS; i++) add_scalar(n, &op->results[1 + i]);
  add_row(n, &op->results[1 + SCALARS]);
}

bool gen_nest(gen *g)
{
  static const cx_hlo_elem elems[] = { CX_HLO_I32, CX_HLO_I8, CX_HLO_UI8,
                                       CX_HLO_I64 };
  // XLA reads ui8 indices as signed.
  const cx_hlo_elem e = elems[g->portable ? 0 : gen_below(g, 4)];
  const int64_t size = gen_range(g, 1, 9);
  const cx_hlo_type scalar = { e, 0, NULL }, row = { e, 1, &size };
  nest n = { .g = g };
  for (size_t i = 0; i < SCALARS; i++)
    add_scalar(&n, gen_like(g, &scalar, false).v);
  add_row(&n, gen_like(g, &row, false).v);
  add_loop(&n);
  if (n.n_rows < 2) return false;
  const gen_facts f = { ldexp(1, (int)cx_hlo_elem_bits(e)), 0, true, true };
  for (size_t i = 0; i < SCALARS; i++) {
    if (!gen_push(g, n.scalars[SCALARS + i], f)) return false;
  }
  return gen_push(g, n.rows[1], f);
}
