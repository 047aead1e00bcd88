// opt: the list of passes.
//
// The first passes run once and reduce the kinds of operations. The next ones
// simplify, in rounds, until nothing changes or the limit is reached: a round
// takes linear time, and a late one gains little. The last ones run once and
// fit the program to the jit's limits, which a round would undo.
#include "opt/opt.h"

#include "hlo/verify.h"
#include "opt/edit.h"
#include "opt/passes.h"

#define MOST_ROUNDS 4

typedef struct pass {
  const char *name;
  cpu_opt_pass_fn *run;
  bool simple;  // also for the interpreter
} pass;

static const pass once[] = {
  { "async", cpu_opt_async, false },
  { "inline", cpu_opt_inline, true },
  { "chlo", cpu_opt_chlo, true },
  { "decompose", cpu_opt_decompose, false },
};

static const pass rounds[] = {
  { "algebra", cpu_opt_algebra, false },
  { "shapes", cpu_opt_shapes, false },
  { "fold", cpu_opt_fold, false },
  { "move", cpu_opt_move, false },
  { "products", cpu_opt_products, false },
  { "loop_products", cpu_opt_loop_products, false },
  { "loop_variables", cpu_opt_loop_variables, false },
  { "loop_rows", cpu_opt_loop_rows, false },
  { "loops", cpu_opt_loops, false },
  { "cse", cpu_opt_cse, false },
  { "dce", cpu_opt_dce, false },
};

static const pass last[] = {
  { "lanes", cpu_opt_lanes, false },
  { "relu", cpu_opt_relu, false },
  { "attention", cpu_opt_attention_pass, false },
  { "dce", cpu_opt_dce, false },
  { "short_rows", cpu_opt_short_rows, false },
  { "concatenate", cpu_opt_concatenate, false },
  { "fills", cpu_opt_fills, false },
  { "pack", cpu_opt_pack, false },
};

static calx_status *run_pass(cx_hlo_module *m, const pass *p,
                             const cpu_opt_options *options, bool *changed)
{
  if (options->decompose_only && !p->simple) return NULL;
  bool here = false;
  calx_status *status = p->run(m, &here);
  if (status == NULL && here && options->check) {
    status = cx_hlo_verify(m);
    if (status != NULL) return cx_annotate(status, "after pass %s", p->name);
  }
  *changed = *changed || here;
  return status;
}

// ---- numbers ----

static uint32_t number_values(cx_hlo_value *values, size_t n, uint32_t next)
{
  for (size_t i = 0; i < n; i++) values[i].number = next++;
  return next;
}

static uint32_t number_block(cx_hlo_block *block, uint32_t next)
{
  if (block == NULL) return next;
  next = number_values(block->args, block->n_args, next);
  for (cx_hlo_op *op = cpu_opt_first(block); op != NULL;
       op = cpu_opt_next(op)) {
    for (uint32_t r = 0; r < op->n_regions; r++) {
      cx_hlo_block *inner = op->regions[r].first;
      if (inner == NULL) continue;
      next = number_values(inner->args, inner->n_args, next);
    }
    next = number_values(op->results, op->n_results, next);
  }
  return next;
}

// Numbers the values without gaps, so that tables by number are as small as the
// program. Operations beside the functions are of other dialects; if they have
// regions, all numbers stay.
static void renumber(cx_hlo_module *m)
{
  uint32_t next = 0;
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    if (op->n_regions != 0) return;
  }
  for (cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    next = number_values(op->results, op->n_results, next);
  }
  for (cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    next = number_block(f->body.first, next);
  }
  m->n_values = next;
}

calx_status *cpu_opt_run(cx_hlo_module *m, const cpu_opt_options *options)
{
  bool changed = false;
  for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
    CALX_TRY(run_pass(m, &once[i], options, &changed));
  }
  for (int round = 0; round < MOST_ROUNDS; round++) {
    changed = false;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
      CALX_TRY(run_pass(m, &rounds[i], options, &changed));
    }
    if (!changed) break;
  }
  for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
    CALX_TRY(run_pass(m, &last[i], options, &changed));
  }
  renumber(m);
  return options->check ? cx_hlo_verify(m) : NULL;
}
