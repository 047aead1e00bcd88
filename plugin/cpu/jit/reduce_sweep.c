// jit/reduce_sweep: reductions by sweeps: the sums of many columns lie in the
// scratch, and rows are read one after the other.
#include "jit/reduce_phase.h"

typedef enum sweep_step { SWEEP_BEGIN, SWEEP_ROW, SWEEP_BLOCK } sweep_step;

// The sums in the scratch, at `at`: those of a block, or the totals.
static cpu_jit_val swept(cpu_jit_reduce_phase *f, const cpu_jit_sum *s,
                         bool totals, const cpu_jit_loc *at)
{
  return cpu_jit_load_at(
      f->env, cpu_jit_scratch(f->env, totals ? s->offset : s->narrow),
      totals ? s->total : s->elem, at, f->env->n_levels - 1);
}

// A vector of sums begins, or what a block has given goes to the totals.
static void sweep_sums(cpu_jit_reduce_phase *f, sweep_step step,
                       const cpu_jit_loc *at)
{
  cpu_jit_env *env = f->env;
  for (size_t i = 0; i < f->p->n_sums; i++) {
    const cpu_jit_sum *s = &f->p->sums[i];
    cpu_jit_val none =
        cpu_jit_widen(env, cpu_jit_reduce_identity(env, s, s->elem));
    if (s->total == s->elem) {
      if (step == SWEEP_BEGIN) cpu_jit_reduce_store_at(f, s->offset, none, at);
      continue;
    }
    cpu_jit_val total =
        cpu_jit_widen(env, cpu_jit_reduce_identity(env, s, s->total));
    if (step == SWEEP_BLOCK) {
      total = cpu_jit_combine(
          env, s->simple, swept(f, s, true, at),
          cpu_jit_convert(env, swept(f, s, false, at), s->total));
    }
    cpu_jit_reduce_store_at(f, s->offset, total, at);
    cpu_jit_reduce_store_at(f, s->narrow, none, at);
  }
}

// One vector of columns: a row's elements are added to the sums in the scratch.
// One row at a time: memory that is read as it lies comes twice as fast as four
// rows side by side.
static void sweep_vector(cpu_jit_reduce_phase *f, sweep_step step,
                         cpu_jit_ix row, cpu_jit_ix column, LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  const cpu_jit_loc at =
      cpu_jit_reduce_partial_loc(f, cpu_jit_reduce_out_loc(f, column, mask));
  if (step != SWEEP_ROW) {
    sweep_sums(f, step, &at);
    return;
  }
  f->index[0] = row;
  f->index[1] = column;
  cpu_jit_val x[CPU_JIT_SUMS];
  cpu_jit_reduce_elements(f, mask, x);
  for (size_t i = 0; i < p->n_sums; i++) {
    f->accs[i] = swept(f, &p->sums[i], false, &at);
  }
  cpu_jit_reduce_combine(f, f->accs, x);
  for (size_t i = 0; i < p->n_sums; i++) {
    cpu_jit_reduce_store_at(f, p->sums[i].narrow, f->accs[i], &at);
  }
}

// The columns [lo, hi): those of whole vectors, or what is left.
static void sweep_columns(cpu_jit_reduce_phase *f, sweep_step step,
                          cpu_jit_ix row, LLVMValueRef lo, LLVMValueRef hi,
                          bool masked)
{
  cpu_jit_loop loop;
  LLVMValueRef mask = NULL;
  const cpu_jit_ix column =
      cpu_jit_vectors_begin(f->env, &loop, lo, hi, masked ? &mask : NULL);
  f->mask_level = loop.level;
  sweep_vector(f, step, row, column, mask);
  cpu_jit_loop_end(f->env, &loop, NULL);
}

static void sweep_row(cpu_jit_reduce_phase *f, sweep_step step, cpu_jit_ix row,
                      cpu_jit_ix start)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  LLVMValueRef hi = cpu_jit_i64(env, p->columns);
  if (p->blocks > 1) {
    cpu_jit_ix end = cpu_jit_ix_offset(env, start, p->chunk);
    hi = cpu_jit_least(env, end.base, hi, end.level);
  }
  const bool exact = p->columns % p->lanes == 0;
  if (exact || env->target->has_masks) {
    sweep_columns(f, step, row, start.base, hi, !exact);
    return;
  }
  LLVMValueRef full =
      cpu_jit_op2(env, LLVMAnd, hi, cpu_jit_i64(env, -p->lanes), start.level);
  sweep_columns(f, step, row, start.base, full, false);
  sweep_columns(f, step, row, full, hi, true);
}

static void sweep_rows(cpu_jit_reduce_phase *f, LLVMValueRef lo,
                       LLVMValueRef hi, cpu_jit_ix start)
{
  cpu_jit_loop loop;
  sweep_row(f, SWEEP_ROW, cpu_jit_loop_begin(f->env, &loop, lo, hi, 1, NULL, 0),
            start);
  cpu_jit_loop_end(f->env, &loop, NULL);
}

void cpu_jit_reduce_sweep(cpu_jit_reduce_phase *f, cpu_jit_ix start)
{
  cpu_jit_env *env = f->env;
  const cpu_jit_ix none = cpu_jit_ix_const(env, 0);
  sweep_row(f, SWEEP_BEGIN, none, start);
  if (f->p->block_run < 0) {
    sweep_rows(f, f->lo, f->hi, start);
    return;
  }
  cpu_jit_loop loop;
  const int64_t step = f->p->block;
  cpu_jit_loop_begin(env, &loop, f->lo, f->hi, step, NULL, 0);
  sweep_rows(f, loop.iv, cpu_jit_reduce_block_limit(env, &loop, step, f->hi),
             start);
  sweep_row(f, SWEEP_BLOCK, none, start);
  cpu_jit_loop_end(env, &loop, NULL);
}
