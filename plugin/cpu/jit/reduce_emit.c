// jit/reduce_emit: a phase of a reduction.
#include "jit/reduce_phase.h"

// ---- blocks ----

// Begins a block: its sums are in the narrow type, and `totals` keeps the sums
// so far.
static void block_begin(cpu_jit_reduce_phase *f, int unroll,
                        cpu_jit_val *totals)
{
  const cpu_jit_plan *p = f->p;
  for (size_t i = 0; i < (size_t)unroll * p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i % p->n_sums];
    totals[i] = f->accs[i];
    if (s->total == s->elem) continue;
    f->accs[i] = cpu_jit_reduce_identity(f->env, s, s->elem);
    if (p->vector >= 0) f->accs[i] = cpu_jit_widen(f->env, f->accs[i]);
  }
}

// Ends a block: adds its sums to the totals. The vectors of a row are one sum
// in the end, so they are added up first.
static void block_end(cpu_jit_reduce_phase *f, int unroll,
                      const cpu_jit_val *totals)
{
  const cpu_jit_plan *p = f->p;
  const size_t n = (size_t)unroll * p->n_sums;
  for (size_t half = n; p->rows && half > p->n_sums; half /= 2) {
    for (size_t i = 0; i < half / 2; i++) {
      const cpu_jit_sum *s = &p->sums[i % p->n_sums];
      if (s->total == s->elem) continue;
      f->accs[i] =
          cpu_jit_combine(f->env, s->simple, f->accs[i], f->accs[half / 2 + i]);
    }
  }
  for (size_t i = 0; i < n; i++) {
    const cpu_jit_sum *s = &p->sums[i % p->n_sums];
    if (s->total == s->elem) continue;
    const cpu_jit_val block = f->accs[i];
    f->accs[i] = totals[i];
    if (p->rows && i >= p->n_sums) continue;
    f->accs[i] = cpu_jit_combine(f->env, s->simple, totals[i],
                                 cpu_jit_convert(f->env, block, s->total));
  }
}

// ---- by rows ----

// The row's vectors in [lo, hi), `unroll` at a time, each into its own sums.
static void row_vectors(cpu_jit_reduce_phase *f, LLVMValueRef lo,
                        LLVMValueRef hi, int unroll, bool masked)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  cpu_jit_loop loop;
  const int64_t step = (int64_t)p->lanes * unroll;
  const size_t n = p->n_sums * (size_t)unroll;
  cpu_jit_ix ix = cpu_jit_loop_begin(env, &loop, lo, hi, step, f->accs, n);
  ix.lane = 1;
  LLVMValueRef mask =
      masked ? cpu_jit_lanes_below(env, hi, loop.iv, loop.level) : NULL;
  f->mask_level = loop.level;
  for (int u = 0; u < unroll; u++) {
    cpu_jit_val x[CPU_JIT_SUMS];
    f->index[p->vector] = cpu_jit_ix_offset(env, ix, u * (int64_t)p->lanes);
    cpu_jit_reduce_elements(f, mask, x);
    for (size_t i = 0; masked && i < p->n_sums; i++) {
      const cpu_jit_val none =
          cpu_jit_reduce_identity(env, &p->sums[i], p->sums[i].elem);
      x[i] = cpu_jit_pick(env, mask, loop.level, x[i], none);
    }
    cpu_jit_reduce_combine(f, f->accs + (size_t)u * p->n_sums, x);
  }
  cpu_jit_loop_end(env, &loop, f->accs);
}

// The same, in blocks where the row is cut into them.
static void row_blocks(cpu_jit_reduce_phase *f, LLVMValueRef lo,
                       LLVMValueRef hi, int unroll, bool masked)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  if (p->block_run != p->vector) {
    row_vectors(f, lo, hi, unroll, masked);
    return;
  }
  cpu_jit_val totals[16 * CPU_JIT_SUMS];
  cpu_jit_loop loop;
  const int64_t step = p->block * p->lanes * unroll;
  cpu_jit_loop_begin(env, &loop, lo, hi, step, f->accs,
                     p->n_sums * (size_t)unroll);
  block_begin(f, unroll, totals);
  row_vectors(f, loop.iv, cpu_jit_reduce_block_limit(env, &loop, step, hi),
              unroll, masked);
  block_end(f, unroll, totals);
  cpu_jit_loop_end(env, &loop, f->accs);
}

static void row(cpu_jit_reduce_phase *f)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  const int64_t size = p->sizes[p->vector];
  const bool cut = p->split == p->vector;
  LLVMValueRef lo = cut ? f->lo : cpu_jit_i64(env, 0);
  LLVMValueRef hi = cut ? f->hi : cpu_jit_i64(env, size);
  const int level = cut ? f->piece.level : 0;
  const int64_t step = (int64_t)p->lanes * p->unroll;
  if (p->masked) {
    row_blocks(f, lo, hi, 1, true);
    return;
  }
  LLVMValueRef many =
      cpu_jit_op2(env, LLVMAnd, hi, cpu_jit_i64(env, -step), level);
  LLVMValueRef full =
      cpu_jit_op2(env, LLVMAnd, hi, cpu_jit_i64(env, -p->lanes), level);
  if (size >= step) row_blocks(f, lo, many, p->unroll, false);
  if (size < step) many = lo;
  if (p->unroll > 1 && size % step >= p->lanes) {
    row_blocks(f, many, full, 1, false);
  }
  if (size % p->lanes != 0) row_blocks(f, full, hi, 1, true);
}

static cpu_jit_val shuffled(cpu_jit_env *env, cpu_jit_val v, int distance)
{
  int order[64];
  for (int i = 0; i < env->lanes; i++) order[i] = (i + distance) % env->lanes;
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  v.re = cpu_jit_shuffle(env, b, v.re, NULL, order, env->lanes);
  if (v.im != NULL) {
    v.im = cpu_jit_shuffle(env, b, v.im, NULL, order, env->lanes);
  }
  return v;
}

// One number of all lanes of all vectors.
static cpu_jit_val across(cpu_jit_reduce_phase *f, size_t i)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  const cpu_jit_sum *s = &p->sums[i];
  cpu_jit_val v = f->accs[i];
  for (int u = 1; u < p->unroll; u++) {
    v = cpu_jit_combine(f->env, s->simple, v,
                        f->accs[(size_t)u * p->n_sums + i]);
  }
  for (int d = p->lanes / 2; d > 0; d /= 2) {
    v = cpu_jit_combine(f->env, s->simple, v, shuffled(env, v, d));
  }
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  LLVMValueRef zero = LLVMConstInt(env->i32, 0, 0);
  v.re = LLVMBuildExtractElement(b, v.re, zero, "");
  if (v.im != NULL) v.im = LLVMBuildExtractElement(b, v.im, zero, "");
  v.wide = false;
  return v;
}

// ---- the loops over what is reduced ----

// The element of each vector of the block.
static void column(cpu_jit_reduce_phase *f, cpu_jit_ix start, int unroll,
                   LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  for (int u = 0; u < unroll; u++) {
    cpu_jit_val x[CPU_JIT_SUMS];
    if (p->vector >= 0) {
      f->index[p->vector] =
          cpu_jit_ix_offset(f->env, start, u * (int64_t)p->lanes);
    }
    cpu_jit_reduce_elements(f, mask, x);
    cpu_jit_reduce_combine(f, f->accs + (size_t)u * p->n_sums, x);
  }
}

static void reduce_from(cpu_jit_reduce_phase *f, int i, cpu_jit_ix start,
                        int unroll, LLVMValueRef mask);

// The indices [lo, hi) of run `i`.
static void reduce_run(cpu_jit_reduce_phase *f, int i, cpu_jit_ix start,
                       int unroll, LLVMValueRef mask, LLVMValueRef lo,
                       LLVMValueRef hi)
{
  cpu_jit_env *env = f->env;
  cpu_jit_loop loop;
  const size_t n = (size_t)unroll * f->p->n_sums;
  f->index[i] = cpu_jit_loop_begin(env, &loop, lo, hi, 1, f->accs, n);
  reduce_from(f, i + 1, start, unroll, mask);
  cpu_jit_loop_end(env, &loop, f->accs);
}

// From run `i` on: a loop for each reduced run, and one for the blocks of one
// of them. Depth is at most the rank.
static void reduce_from(cpu_jit_reduce_phase *f, int i, cpu_jit_ix start,
                        int unroll, LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  while (i < p->n && (!p->reduced[i] || (p->rows && i == p->vector))) i++;
  if (i == p->n) {
    if (p->rows) {
      row(f);
    } else {
      column(f, start, unroll, mask);
    }
    return;
  }
  cpu_jit_env *env = f->env;
  const bool cut = p->split == i;
  LLVMValueRef lo = cut ? f->lo : cpu_jit_i64(env, 0);
  LLVMValueRef hi = cut ? f->hi : cpu_jit_i64(env, p->sizes[i]);
  if (p->block_run != i) {
    reduce_run(f, i, start, unroll, mask, lo, hi);
    return;
  }
  cpu_jit_val totals[16 * CPU_JIT_SUMS];
  cpu_jit_loop loop;
  const size_t n = (size_t)unroll * p->n_sums;
  cpu_jit_loop_begin(env, &loop, lo, hi, p->block, f->accs, n);
  block_begin(f, unroll, totals);
  reduce_run(f, i, start, unroll, mask, loop.iv,
             cpu_jit_reduce_block_limit(env, &loop, p->block, hi));
  block_end(f, unroll, totals);
  cpu_jit_loop_end(env, &loop, f->accs);
}

// ---- an iteration ----

static void begin_sums(cpu_jit_reduce_phase *f, int unroll)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  for (int u = 0; u < unroll; u++) {
    for (size_t i = 0; i < p->n_sums; i++) {
      const cpu_jit_sum *s = &p->sums[i];
      cpu_jit_val v = s->simple != NULL
                          ? cpu_jit_reduce_identity(env, s, s->total)
                          : cpu_jit_reduce_initial(env, s);
      if (p->vector >= 0) v = cpu_jit_widen(env, v);
      f->accs[(size_t)u * p->n_sums + i] = v;
    }
  }
}

static void block(cpu_jit_reduce_phase *f, cpu_jit_ix start, int unroll,
                  LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  begin_sums(f, unroll);
  reduce_from(f, 0, start, unroll, mask);
  if (cpu_jit_failed(env)) return;
  cpu_jit_val sums[CPU_JIT_SUMS];
  for (int u = 0; u < (p->rows ? 1 : unroll); u++) {
    for (size_t i = 0; i < p->n_sums; i++) {
      sums[i] = p->rows ? across(f, i) : f->accs[(size_t)u * p->n_sums + i];
    }
    const cpu_jit_ix ix =
        p->vector < 0 || p->rows
            ? start
            : cpu_jit_ix_offset(env, start, u * (int64_t)p->lanes);
    const cpu_jit_loc *out = cpu_jit_reduce_out_loc(f, ix, mask);
    if (p->split >= 0) {
      cpu_jit_reduce_store_partial(f, sums, out);
    } else {
      cpu_jit_reduce_store_results(f, sums, out);
    }
  }
}

// The block of columns that begins at `start`: whole, or what is left of the
// run, vector by vector.
static void columns(cpu_jit_reduce_phase *f, cpu_jit_ix start)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  const int64_t step = (int64_t)p->lanes * p->unroll;
  const int64_t whole = p->columns / step * step;
  LLVMValueRef end = cpu_jit_i64(env, p->columns);
  LLVMValueRef past = cpu_jit_i64(env, whole);
  cpu_jit_loop loop;
  if (p->masked) {
    cpu_jit_ix ix = start;
    ix.lane = 1;
    f->mask_level = env->n_levels - 1;
    block(f, ix, 1, cpu_jit_lanes_below(env, end, start.base, start.level));
    return;
  }
  if (whole > 0) {
    LLVMValueRef is =
        cpu_jit_compare(env, LLVMIntSLT, start.base, past, start.level);
    LLVMValueRef next = cpu_jit_op2(env, LLVMAdd, start.base,
                                    cpu_jit_i64(env, step), start.level);
    LLVMValueRef hi = cpu_jit_choose(env, is, next, start.base, start.level);
    if (whole == p->columns) hi = next;
    cpu_jit_ix ix =
        cpu_jit_loop_begin(env, &loop, start.base, hi, step, NULL, 0);
    ix.lane = p->lanes == 1 ? 0 : 1;
    block(f, ix, p->unroll, NULL);
    cpu_jit_loop_end(env, &loop, NULL);
  }
  if (whole == p->columns) return;
  LLVMValueRef is =
      cpu_jit_compare(env, LLVMIntSLT, start.base, past, start.level);
  LLVMValueRef from = cpu_jit_choose(env, is, end, start.base, start.level);
  LLVMValueRef mask;
  const cpu_jit_ix ix = cpu_jit_vectors_begin(env, &loop, from, end, &mask);
  f->mask_level = loop.level;
  block(f, ix, 1, mask);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void iteration(cpu_jit_reduce_phase *f, cpu_jit_ix t)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  int64_t size = p->extent;
  if (p->split >= 0) {
    size /= p->pieces;
    cpu_jit_ix_split(env, t, size, p->extent, false, &f->piece, &t);
    f->lo =
        cpu_jit_ix_block(env, f->piece, p->piece, p->sizes[p->split], &f->hi)
            .base;
  }
  cpu_jit_ix block_index = cpu_jit_ix_const(env, 0);
  for (int i = p->n - 1; i >= 0; i--) {
    if (p->reduced[i]) continue;
    const bool vector = i == p->vector;
    cpu_jit_ix *at = vector ? &block_index : &f->index[i];
    *at = cpu_jit_ix_take(env, &t, &size, vector ? p->blocks : p->sizes[i]);
  }
  if (p->sweep) {
    cpu_jit_reduce_sweep(f, cpu_jit_ix_scale(env, block_index, p->chunk));
    return;
  }
  if (p->rows || p->vector < 0) {
    block(f, cpu_jit_ix_const(env, 0), p->unroll, NULL);
    return;
  }
  columns(f, cpu_jit_ix_scale(env, block_index, (int64_t)p->lanes * p->unroll));
}

void cpu_jit_reduce_emit(cpu_jit_env *env, cpu_jit_kernel *k,
                         const cpu_jit_plan *plan, int phase, double elements)
{
  cpu_jit_reduce_phase *f = CX_ARENA_NEW(&env->arena, cpu_jit_reduce_phase);
  if (f == NULL) {
    cpu_jit_out_of_memory(env);
    return;
  }
  f->env = env;
  f->p = plan;
  cpu_jit_function_begin(env, k, phase, plan->extent,
                         cpu_jit_grain(env, elements), plan->lanes);
  if (plan->extent > 0) {
    cpu_jit_loop loop;
    iteration(f, cpu_jit_iterations_begin(env, &loop, plan->extent));
    cpu_jit_loop_end(env, &loop, NULL);
  }
  cpu_jit_function_end(env);
}
