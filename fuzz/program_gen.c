// fuzz/program_gen: the program as a whole: arguments, choice of operations,
// results. What is known of values and how they are picked: program_gen_pick.c.
#include "program_gen.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "program_gen_parts.h"

enum { MOST_PARAMS = 4, MOST_RESULTS = 4, TRIES = 40 };

// How often each family is taken, of the sum.
static const struct {
  gen_op *op;
  int weight;
} families[] = {
  { gen_unary_float, 10 },
  { gen_unary_exact, 6 },
  { gen_unary_integer, 4 },
  { gen_binary, 16 },
  { gen_bitwise, 5 },
  { gen_guarded, 6 },
  { gen_compare_select, 8 },
  { gen_convert_one, 8 },
  { gen_clamp_one, 2 },
  { gen_bitcast, 2 },
  { gen_reshape_one, 6 },
  { gen_broadcast, 8 },
  { gen_transpose_one, 6 },
  { gen_slice_one, 6 },
  { gen_pad_one, 4 },
  { gen_concat, 4 },
  { gen_reverse_one, 3 },
  { gen_iota_one, 3 },
  { gen_dynamic_slice, 3 },
  { gen_dynamic_update, 3 },
  { gen_reduce_one, 12 },
  { gen_reduce_pair, 3 },
  { gen_window, 5 },
  { gen_select_scatter, 2 },
  { gen_dot, 8 },
  { gen_conv, 5 },
  { gen_gather_one, 5 },
  { gen_scatter_one, 5 },
  { gen_sort_one, 3 },
  { gen_while_one, 3 },
  { gen_nest, 4 },
  { gen_if_one, 2 },
  { gen_case_one, 2 },
  { gen_call_one, 2 },
  { gen_barrier, 1 },
  { gen_random_bits, 1 },
};
enum { N_FAMILIES = sizeof families / sizeof *families };

// Each operation has numbers of its own, so that fewer of them make the same
// beginning.
static void seed_of_op(gen *g, uint64_t seed, uint64_t i)
{
  g->state = (seed + 1) * 0x9E3779B97F4A7C15u + i * 0xD1342543DE82EF95u;
  gen_random(g);
}

static void add_op(gen *g)
{
  int sum = 0;
  for (size_t i = 0; i < N_FAMILIES; i++) sum += families[i].weight;
  for (int tries = 0; tries < TRIES && g->b->failed == NULL; tries++) {
    int at = (int)gen_below(g, (size_t)sum);
    size_t i = 0;
    while (at >= families[i].weight) at -= families[i++].weight;
    if (families[i].op(g)) return;
  }
}

// ---- arguments ----

static calx_status *make_params(gen *g, cx_gen_program *out)
{
  const size_t n = 1 + gen_below(g, MOST_PARAMS);
  cx_hlo_type *types = CX_ARENA_ARRAY(&out->arena, cx_hlo_type, n);
  out->args = CX_ARENA_ARRAY(&out->arena, void *, n);
  if (types == NULL || out->args == NULL) return cx_out_of_memory();
  gen_facts facts[MOST_PARAMS];
  for (size_t i = 0; i < n; i++) {
    const gen_dims dims = gen_shape(g, 4);
    int64_t *copy = CX_ARENA_ARRAY(&out->arena, int64_t, GEN_RANK);
    if (copy == NULL) return cx_out_of_memory();
    memcpy(copy, dims.d, sizeof dims.d);
    types[i] = (cx_hlo_type){ gen_elem(g, GEN_ANY), dims.rank, copy };
    const size_t size = (size_t)cx_hlo_type_elements(&types[i]) *
                        cx_hlo_elem_bytes(types[i].elem);
    out->args[i] = cx_arena_alloc(&out->arena, size + 1);
    if (out->args[i] == NULL) return cx_out_of_memory();
    gen_fill(g, &types[i], out->args[i], &facts[i]);
  }
  out->params = types;
  out->n_params = n;
  CALX_TRY(cx_hlo_builder_new("random", "main", types, n, &g->b));
  for (size_t i = 0; i < n; i++) gen_push(g, cx_hlo_param(g->b, i), facts[i]);
  return NULL;
}

// ---- results ----

// The numbers of the values that are returned.
static size_t choose_results(gen *g, const cx_gen_options *options, size_t *out)
{
  size_t n = 0;
  if (options->only >= 0) {
    out[n++] = (size_t)options->only < g->n ? (size_t)options->only : g->n - 1;
  } else if (options->all) {
    for (size_t i = 0; i < g->n; i++) out[n++] = i;
  } else {
    out[n++] = g->n - 1;
    for (size_t i = 1; i < MOST_RESULTS; i++) {
      if (gen_chance(g, 50)) out[n++] = gen_below(g, g->n);
    }
  }
  return n;
}

static bool uses(const cx_hlo_op *op, const cx_hlo_op *made);

static bool region_uses(const cx_hlo_region *r, const cx_hlo_op *made)
{
  for (const cx_hlo_op *op = r->first->first; op != NULL; op = op->next) {
    if (uses(op, made)) return true;
  }
  return false;
}

// Regions of the generator are one block and two deep.
static bool uses(const cx_hlo_op *op, const cx_hlo_op *made)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->op == made) return true;
  }
  for (uint32_t i = 0; i < op->n_regions; i++) {
    if (region_uses(&op->regions[i], made)) return true;
  }
  return false;
}

// Takes the operations out of the entry that no result needs.
static void drop_unused(cx_hlo_func *f)
{
  cx_hlo_block *b = f->body.first;
  cx_hlo_op *previous;
  for (cx_hlo_op *op = b->last->previous; op != NULL; op = previous) {
    previous = op->previous;
    bool used = false;
    for (const cx_hlo_op *u = op->next; u != NULL && !used; u = u->next) {
      used = uses(u, op);
    }
    if (used) continue;
    op->next->previous = previous;
    if (previous != NULL) {
      previous->next = op->next;
    } else {
      b->first = op->next;
    }
  }
}

static calx_status *make_results(gen *g, const cx_gen_options *options,
                                 cx_gen_program *out)
{
  size_t chosen[GEN_VALUES];
  cx_hlo_value *values[GEN_VALUES];
  const size_t n = choose_results(g, options, chosen);
  cx_gen_result *results = CX_ARENA_ARRAY(&out->arena, cx_gen_result, n);
  if (results == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const gen_value *v = &g->pool[chosen[i]];
    values[i] = v->v;
    results[i] = (cx_gen_result){ .type = *gen_type(*v),
                                  .value = chosen[i],
                                  .magnitude = v->f.magnitude,
                                  .error = v->f.error };
  }
  cx_hlo_builder *b = g->b;
  g->b = NULL;
  CALX_TRY(cx_hlo_builder_finish(b, values, n, &out->module));
  out->results = results;
  out->n_results = n;
  if (options->only >= 0) drop_unused(cx_hlo_entry(out->module));
  return NULL;
}

calx_status *cx_gen_program_new(const cx_gen_options *options,
                                cx_gen_program *out)
{
  *out = (cx_gen_program){ 0 };
  gen *g = cx_calloc(1, sizeof *g);
  if (g == NULL) return cx_out_of_memory();
  g->portable = options->portable;
  seed_of_op(g, options->seed, 0);
  calx_status *status = make_params(g, out);
  out->n_ops = options->n_ops != 0 ? options->n_ops : 2 + gen_below(g, 24);
  for (size_t i = 0; status == NULL && i < out->n_ops; i++) {
    seed_of_op(g, options->seed, i + 1);
    add_op(g);
  }
  if (status == NULL) {
    seed_of_op(g, options->seed, 1000000);
    status = make_results(g, options, out);
  }
  cx_hlo_builder_free(g->b);
  cx_free(g);
  if (status != NULL) cx_gen_program_free(out);
  return cx_annotate(status, "while making the program of seed %llu",
                     (unsigned long long)options->seed);
}

void cx_gen_program_free(cx_gen_program *p)
{
  cx_hlo_module_free(p->module);
  cx_arena_free(&p->arena);
  *p = (cx_gen_program){ 0 };
}
