// fuzz/program_gen_control: loops, branches, calls, barriers, random bits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "program_gen_parts.h"

static const gen_facts whole = { 0x1p64, 0, true, true };

// One step on x with what is known after `times` of it; y has x's type.
static cx_hlo_value *step(gen *g, cx_hlo_value *x, gen_value y, int times,
                          gen_facts *f, int which)
{
  const cx_hlo_elem e = cx_hlo_value_type(x)->elem;
  const bool is_float = cx_hlo_elem_is_float(e);
  if (which == 0 && is_float) {
    f->magnitude = 1 + y.f.magnitude;
    f->error += 1;
    gen_facts one = { 1, f->error - 1, f->finite, false };
    for (int i = 0; i < times; i++) gen_rounded(e, false, &one);
    f->error = one.error;
    f->integral = false;
    return cx_hlo_unary(g->b, CX_HLO_OP_TANH, x);
  }
  if (which == 1 && e != CX_HLO_I1) {
    f->magnitude += times * y.f.magnitude;
    f->error += times * y.f.error;
    f->finite = f->finite && y.f.finite;
    f->integral = f->integral && y.f.integral;
    for (int i = 0; i < times; i++) {
      if (!gen_rounded(e, true, f)) f->magnitude = (double)INFINITY;
    }
    return cx_hlo_binary(g->b, CX_HLO_OP_ADD, x, y.v);
  }
  const size_t rank = cx_hlo_value_type(x)->rank;
  if (which == 2 && rank > 0) {
    const int64_t d = (int64_t)gen_below(g, rank);
    return cx_hlo_reverse(g->b, x, &d, 1);
  }
  *f = gen_both(f, &y.f);
  return cx_hlo_binary(g->b, CX_HLO_OP_MAXIMUM, x, y.v);
}

bool gen_while_one(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY });
  gen_value y = gen_like(g, gen_type(x), false);
  const cx_hlo_type counter = { CX_HLO_I32, 0, NULL };
  const int times = (int)gen_below(g, 5), which = (int)gen_below(g, 4);
  gen_facts f = x.f;
  cx_hlo_value *start[2] = { cx_hlo_splat_int(g->b, counter, 0), x.v };
  cx_hlo_op *op = cx_hlo_build_begin(g->b, CX_HLO_OP_WHILE, start, 2, 2, 2);
  if (op == NULL) return false;
  const cx_hlo_value *like[2] = { start[0], start[1] };
  cx_hlo_block *outside;
  cx_hlo_block *block = gen_region_open(g, op, 0, like, 2, &outside);
  if (block == NULL) return false;
  cx_hlo_value *out[2];
  out[0] = cx_hlo_compare(g->b, CX_HLO_LT, &block->args[0],
                          cx_hlo_splat_int(g->b, counter, times));
  gen_region_close(g, out, 1, outside);
  block = gen_region_open(g, op, 1, like, 2, &outside);
  if (block == NULL) return false;
  out[0] = cx_hlo_binary(g->b, CX_HLO_OP_ADD, &block->args[0],
                         cx_hlo_splat_int(g->b, counter, 1));
  out[1] = step(g, &block->args[1], y, times, &f, which);
  gen_region_close(g, out, 2, outside);
  if (times == 0) f = x.f;
  if (!(f.magnitude < 1e12) && cx_hlo_elem_is_float(gen_type(x)->elem)) {
    return false;
  }
  if (cx_hlo_build_end(g->b, op) == NULL) return false;
  gen_push(g, &op->results[0], (gen_facts){ 5, 0, true, true });
  return gen_push(g, &op->results[1], f);
}

// Branches that return values from outside, or a step on them.
static bool branches(gen *g, cx_hlo_op_kind kind, cx_hlo_value *which, size_t n)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY });
  gen_facts f = x.f;
  cx_hlo_op *op = cx_hlo_build_begin(g->b, kind, &which, 1, 1, n);
  if (op == NULL) return false;
  bool right = true;
  for (size_t i = 0; i < n; i++) {
    gen_value y = gen_like(g, gen_type(x), false);
    gen_facts own = x.f;
    cx_hlo_block *outside;
    if (gen_region_open(g, op, i, NULL, 0, &outside) == NULL) return false;
    cx_hlo_value *out =
        i == 0 ? x.v : step(g, x.v, y, 1, &own, (int)gen_below(g, 4));
    gen_region_close(g, &out, 1, outside);
    right = right && own.magnitude < (double)INFINITY;
    f = gen_both(&f, &own);
  }
  if (!right) return false;
  return gen_push(g, cx_hlo_build_end(g->b, op), f);
}

bool gen_if_one(gen *g)
{
  const cx_hlo_type t = { CX_HLO_I1, 0, NULL };
  return branches(g, CX_HLO_OP_IF, gen_like(g, &t, false).v, 2);
}

bool gen_case_one(gen *g)
{
  const cx_hlo_type t = { CX_HLO_I32, 0, NULL };
  const size_t n = 1 + gen_below(g, 4);
  return branches(g, CX_HLO_OP_CASE, gen_like(g, &t, false).v, n);
}

// A private function of two values of one type.
static cx_hlo_func *make_function(gen *g, gen_value x, gen_value y,
                                  gen_facts *f)
{
  cx_hlo_module *m = g->b->module;
  char name[32];
  snprintf(name, sizeof name, "f%d", g->functions++);
  const cx_hlo_str copy = cx_hlo_str_copy(m, name, strlen(name));
  cx_hlo_func *made = cx_hlo_func_new(m, copy);
  cx_hlo_any *types = CX_ARENA_ARRAY(&m->arena, cx_hlo_any, 2);
  if (made == NULL || types == NULL) return NULL;
  cx_hlo_block *block = cx_hlo_block_new(m, &made->body, 2);
  if (block == NULL) return NULL;
  types[0] = types[1] = x.v->type;
  block->args[0].type = block->args[1].type = x.v->type;
  made->visibility = (cx_hlo_str){ "private", 7 };
  made->params = types;
  made->n_params = 2;
  made->results = types;
  made->n_results = 1;
  cx_hlo_block *outside = g->b->block;
  g->b->block = block;
  const gen_value arg = { &block->args[1], y.f };
  cx_hlo_value *out = step(g, &block->args[0], arg, 1, f, (int)gen_below(g, 4));
  cx_hlo_build_end(
      g->b, cx_hlo_build_begin(g->b, CX_HLO_OP_FUNC_RETURN, &out, 1, 0, 0));
  g->b->block = outside;
  return made;
}

bool gen_call_one(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY });
  gen_value y = gen_like(g, gen_type(x), false);
  gen_facts f = x.f;
  if (y.v == NULL) return false;
  cx_hlo_func *callee = make_function(g, x, y, &f);
  cx_hlo_attr *symbol = CX_ARENA_NEW(&g->b->module->arena, cx_hlo_attr);
  if (callee == NULL || symbol == NULL) {
    cx_hlo_builder_fail(g->b, cx_out_of_memory());
    return false;
  }
  if (!(f.magnitude < (double)INFINITY)) return false;
  symbol->kind = CX_HLO_ATTR_SYMBOL;
  symbol->as.text = callee->name;
  cx_hlo_value *args[2] = { x.v, y.v };
  cx_hlo_op *op = cx_hlo_build_begin(g->b, CX_HLO_OP_CALL, args, 2, 1, 0);
  cx_hlo_build_attr(g->b, op, CX_HLO_A_CALLEE, symbol);
  cx_hlo_build_declare(g->b, op, 0, gen_type(x));
  return gen_push(g, cx_hlo_build_end(g->b, op), f);
}

bool gen_barrier(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY });
  cx_hlo_value *out = NULL;
  cx_hlo_optimization_barrier(g->b, &x.v, 1, &out);
  return gen_push(g, out, x.f);
}

bool gen_random_bits(gen *g)
{
  static const cx_hlo_elem elems[] = { CX_HLO_UI32, CX_HLO_UI64 };
  const int64_t two = 2;
  const gen_dims s = gen_shape(g, 2);
  const cx_hlo_type key = { CX_HLO_UI64, 1, &two };
  const cx_hlo_type t = { elems[gen_below(g, 2)], s.rank, s.d };
  cx_hlo_value *next = NULL, *bits = NULL;
  cx_hlo_rng_bit_generator(g->b, gen_like(g, &key, false).v, t, &next, &bits);
  return gen_push(g, next, whole) && gen_push(g, bits, whole);
}
