// jit/reduce_emit: a phase of a reduction.
#include <math.h>

#include "jit/reduce.h"

// A phase in progress. Sum i of vector u is accs[u * n_sums + i].
typedef struct phase {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  const cpu_jit_plan *p;
  cpu_jit_ix index[CPU_JIT_RANK];  // of each run
  cpu_jit_ix piece;                // which piece
  LLVMValueRef lo, hi;             // of the run that is cut
  int mask_level;                  // where the mask in use was made
  cpu_jit_val accs[16 * CPU_JIT_SUMS];
} phase;

// ---- sums ----

// By bits, of an integer type; of a float its value.
static LLVMValueRef identity_part(cpu_jit_env *env, const cpu_jit_sum *s,
                                  cx_hlo_elem e, bool imaginary)
{
  LLVMTypeRef t = cpu_jit_register_type(env, e, false);
  const bool low = s->simple->kind == CX_HLO_OP_MAXIMUM;
  const bool is_float = cx_hlo_elem_is_float(e);
  switch (s->simple->kind) {
    case CX_HLO_OP_ADD:
      return is_float ? LLVMConstReal(t, -0.0) : LLVMConstNull(t);
    case CX_HLO_OP_MULTIPLY:
      if (is_float) return LLVMConstReal(t, imaginary ? 0 : 1);
      return LLVMConstInt(t, 1, 0);
    case CX_HLO_OP_AND: return LLVMConstAllOnes(t);
    case CX_HLO_OP_OR:
    case CX_HLO_OP_XOR: return LLVMConstNull(t);
    default: break;
  }
  if (is_float) return LLVMConstReal(t, (double)(low ? -INFINITY : INFINITY));
  const unsigned bits = cx_hlo_elem_bits(e);
  if (e == CX_HLO_I1 || cx_hlo_elem_is_unsigned(e)) {
    return low ? LLVMConstNull(t) : LLVMConstAllOnes(t);
  }
  const uint64_t least = (uint64_t)1 << (bits - 1);
  return LLVMConstInt(t, low ? least : least - 1, 0);
}

// `e`: that it is summed in here, or added up in.
static cpu_jit_val identity(cpu_jit_env *env, const cpu_jit_sum *s,
                            cx_hlo_elem e)
{
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  cpu_jit_val v = { .elem = e };
  v.re = identity_part(env, s, part, false);
  if (cx_hlo_elem_is_complex(e)) v.im = identity_part(env, s, part, true);
  return v;
}

// In the element type of a.
static cpu_jit_val combine_simple(cpu_jit_env *env, const cpu_jit_sum *s,
                                  cpu_jit_val a, cpu_jit_val b)
{
  return cpu_jit_combine(env, s->simple, a.elem, a, b);
}

// What vector u's sums become with the elements x.
static void combine(phase *f, cpu_jit_val *accs, const cpu_jit_val *x)
{
  const cpu_jit_plan *p = f->p;
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    if (s->simple != NULL) {
      accs[i] = combine_simple(f->env, s, accs[i], x[i]);
      continue;
    }
    if (s->index != 0) continue;
    const size_t n = s->op->n_results;
    cpu_jit_val args[2 * CPU_JIT_SUMS];
    cpu_jit_val out[CPU_JIT_SUMS];
    for (size_t j = 0; j < n; j++) {
      args[j] = accs[i + j];
      args[n + j] = x[i + j];
    }
    cpu_jit_region(f->env, &s->op->regions[0], args, 2 * n, out, n);
    for (size_t j = 0; j < n; j++) {
      accs[i + j] = p->vector < 0 ? out[j] : cpu_jit_widen(f->env, out[j]);
      accs[i + j].level = f->env->n_levels - 1;
    }
  }
}

static cpu_jit_val initial(cpu_jit_env *env, const cpu_jit_sum *s)
{
  cpu_jit_val v = cpu_jit_emit(
      env, s->op->operands[s->op->n_results + s->index], &env->scalar);
  v.elem = cpu_jit_sum_elem(s->simple, v.elem);
  return v;
}

static cpu_jit_val pick(cpu_jit_env *env, LLVMValueRef mask, cpu_jit_val x,
                        cpu_jit_val other)
{
  x = cpu_jit_widen(env, x);
  other = cpu_jit_widen(env, other);
  x.level = env->n_levels - 1;
  LLVMBuilderRef b = cpu_jit_at(env, x.level);
  x.re = LLVMBuildSelect(b, mask, x.re, other.re, "");
  if (x.im != NULL) x.im = LLVMBuildSelect(b, mask, x.im, other.im, "");
  return x;
}

// ---- elements ----

static LLVMValueRef scratch_at(phase *f, size_t offset)
{
  cpu_jit_env *env = f->env;
  LLVMValueRef base = cpu_jit_buffer(env, f->k->n_inputs + f->k->n_outputs);
  LLVMValueRef at = cpu_jit_i64(env, (int64_t)offset);
  return LLVMBuildGEP2(cpu_jit_at(env, 0), env->i8, base, &at, 1, "");
}

// The elements of all sums at the phase's indices.
static void elements(phase *f, LLVMValueRef mask, cpu_jit_val *x)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  cpu_jit_place place = { .mask = mask, .mask_level = f->mask_level };
  for (int i = 0; i < p->n; i++) {
    cpu_jit_place_push(&place, p->dims[i], p->sizes[i], f->index[i]);
  }
  const cpu_jit_place *at = cpu_jit_place_of(env, &place);
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    x[i] = p->second ? cpu_jit_load(env, scratch_at(f, s->offset), s->elem, at)
                     : cpu_jit_emit(env, s->op->operands[s->index], at);
    if (p->second && s->total != s->elem) {
      x[i] = cpu_jit_convert(env, x[i], s->total);
    }
  }
}

// ---- blocks ----

// A block begins: its sums are narrow ones; `totals` keeps what there is.
static void block_begin(phase *f, int unroll, cpu_jit_val *totals)
{
  const cpu_jit_plan *p = f->p;
  for (size_t i = 0; i < (size_t)unroll * p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i % p->n_sums];
    totals[i] = f->accs[i];
    if (s->total == s->elem) continue;
    f->accs[i] = identity(f->env, s, s->elem);
    if (p->vector >= 0) f->accs[i] = cpu_jit_widen(f->env, f->accs[i]);
  }
}

// It ends: what it has given is added to the totals; of a row's vectors, which
// are one sum in the end, as one.
static void block_end(phase *f, int unroll, const cpu_jit_val *totals)
{
  const cpu_jit_plan *p = f->p;
  const size_t n = (size_t)unroll * p->n_sums;
  for (size_t half = n; p->rows && half > p->n_sums; half /= 2) {
    for (size_t i = 0; i < half / 2; i++) {
      const cpu_jit_sum *s = &p->sums[i % p->n_sums];
      if (s->total == s->elem) continue;
      f->accs[i] = combine_simple(f->env, s, f->accs[i], f->accs[half / 2 + i]);
    }
  }
  for (size_t i = 0; i < n; i++) {
    const cpu_jit_sum *s = &p->sums[i % p->n_sums];
    if (s->total == s->elem) continue;
    const cpu_jit_val block = f->accs[i];
    f->accs[i] = totals[i];
    if (p->rows && i >= p->n_sums) continue;
    f->accs[i] = combine_simple(f->env, s, totals[i],
                                cpu_jit_convert(f->env, block, s->total));
  }
}

// Where the loop over the blocks of a run at `iv` ends its block.
static LLVMValueRef block_limit(cpu_jit_env *env, const cpu_jit_loop *loop,
                                int64_t step, LLVMValueRef hi)
{
  LLVMValueRef next =
      cpu_jit_op2(env, LLVMAdd, loop->iv, cpu_jit_i64(env, step), loop->level);
  return cpu_jit_least(env, next, hi, loop->level);
}

// ---- by rows ----

// The row's vectors in [lo, hi), `unroll` at a time, each into its own sums.
static void row_vectors(phase *f, LLVMValueRef lo, LLVMValueRef hi, int unroll,
                        bool masked)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  cpu_jit_loop loop;
  const int64_t step = (int64_t)p->lanes * unroll;
  const size_t n = p->n_sums * (size_t)unroll;
  cpu_jit_loop_begin(env, &loop, lo, hi, step, f->accs, n);
  LLVMValueRef mask =
      masked ? cpu_jit_lanes_below(env, hi, loop.iv, loop.level) : NULL;
  f->mask_level = loop.level;
  for (int u = 0; u < unroll; u++) {
    cpu_jit_val x[CPU_JIT_SUMS];
    cpu_jit_ix ix = cpu_jit_ix_scalar(loop.iv, loop.level, step);
    ix.lane = 1;
    f->index[p->vector] = cpu_jit_ix_offset(env, ix, u * (int64_t)p->lanes);
    elements(f, mask, x);
    for (size_t i = 0; masked && i < p->n_sums; i++) {
      cpu_jit_val none = identity(env, &p->sums[i], p->sums[i].elem);
      none.elem = x[i].elem;
      x[i] = pick(env, mask, x[i], none);
    }
    combine(f, f->accs + (size_t)u * p->n_sums, x);
  }
  cpu_jit_loop_end(env, &loop, f->accs);
}

// The same, in blocks where the row is cut into them.
static void row_blocks(phase *f, LLVMValueRef lo, LLVMValueRef hi, int unroll,
                       bool masked)
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
  row_vectors(f, loop.iv, block_limit(env, &loop, step, hi), unroll, masked);
  block_end(f, unroll, totals);
  cpu_jit_loop_end(env, &loop, f->accs);
}

static void row(phase *f)
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
  LLVMValueRef order[64];
  for (int i = 0; i < env->lanes; i++) {
    order[i] =
        LLVMConstInt(env->i32, (unsigned)((i + distance) % env->lanes), 0);
  }
  LLVMValueRef mask = LLVMConstVector(order, (unsigned)env->lanes);
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  LLVMValueRef none = LLVMGetPoison(LLVMTypeOf(v.re));
  v.re = LLVMBuildShuffleVector(b, v.re, none, mask, "");
  if (v.im != NULL) v.im = LLVMBuildShuffleVector(b, v.im, none, mask, "");
  return v;
}

// One number of all lanes of all vectors.
static cpu_jit_val across(phase *f, size_t i)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  const cpu_jit_sum *s = &p->sums[i];
  cpu_jit_val v = f->accs[i];
  for (int u = 1; u < p->unroll; u++) {
    v = combine_simple(env, s, v, f->accs[(size_t)u * p->n_sums + i]);
  }
  for (int d = p->lanes / 2; d > 0; d /= 2) {
    v = combine_simple(env, s, v, shuffled(env, v, d));
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
static void column(phase *f, cpu_jit_ix start, int unroll, LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  for (int u = 0; u < unroll; u++) {
    cpu_jit_val x[CPU_JIT_SUMS];
    if (p->vector >= 0) {
      f->index[p->vector] =
          cpu_jit_ix_offset(f->env, start, u * (int64_t)p->lanes);
    }
    elements(f, mask, x);
    combine(f, f->accs + (size_t)u * p->n_sums, x);
  }
}

static void reduce_from(phase *f, int i, cpu_jit_ix start, int unroll,
                        LLVMValueRef mask);

// The indices [lo, hi) of run `i`.
static void reduce_run(phase *f, int i, cpu_jit_ix start, int unroll,
                       LLVMValueRef mask, LLVMValueRef lo, LLVMValueRef hi)
{
  cpu_jit_env *env = f->env;
  cpu_jit_loop loop;
  const size_t n = (size_t)unroll * f->p->n_sums;
  cpu_jit_loop_begin(env, &loop, lo, hi, 1, f->accs, n);
  f->index[i] = cpu_jit_ix_scalar(loop.iv, loop.level, 1);
  reduce_from(f, i + 1, start, unroll, mask);
  cpu_jit_loop_end(env, &loop, f->accs);
}

// From run `i` on: a loop for each reduced run, and one for the blocks of one
// of them. Depth is at most the rank.
static void reduce_from(phase *f, int i, cpu_jit_ix start, int unroll,
                        LLVMValueRef mask)
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
             block_limit(env, &loop, p->block, hi));
  block_end(f, unroll, totals);
  cpu_jit_loop_end(env, &loop, f->accs);
}

// ---- results ----

static const cpu_jit_place *out_place(phase *f, cpu_jit_ix start,
                                      LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_place out = { .mask = mask, .mask_level = f->mask_level };
  const cx_hlo_op *op = p->sums[0].op;
  const int rank = (int)cpu_jit_type(&op->results[0])->rank;
  if (rank == 0) return &f->env->scalar;
  for (int i = 0; i < p->n; i++) {
    if (p->reduced[i]) continue;
    cpu_jit_place_push(&out, p->out_dims[i], p->sizes[i],
                       i == p->vector ? start : f->index[i]);
  }
  if (out.n == 0) {
    cpu_jit_place_push(&out, rank, 1, cpu_jit_ix_const(f->env, 0));
  }
  return cpu_jit_place_of(f->env, &out);
}

// Of a result's place in what the piece has in the scratch.
static cpu_jit_place partial_place(const phase *f, const cpu_jit_place *out)
{
  cpu_jit_place at = { .mask = out->mask, .mask_level = out->mask_level };
  cpu_jit_place_push(&at, 1, f->p->pieces, f->piece);
  for (int i = 0; i < out->n; i++) at.part[at.n++] = out->part[i];
  return at;
}

static void store_at(phase *f, size_t offset, cpu_jit_val v,
                     const cpu_jit_place *at)
{
  cpu_jit_store(f->env, scratch_at(f, offset), v, at, f->env->n_levels - 1);
}

static void store_partial(phase *f, const cpu_jit_val *sums,
                          const cpu_jit_place *out)
{
  const cpu_jit_plan *p = f->p;
  const cpu_jit_place at = partial_place(f, out);
  for (size_t i = 0; i < p->n_sums; i++) {
    store_at(f, p->sums[i].offset, sums[i], &at);
  }
}

// The sums without the identity that they began with, and what is made of
// them.
static void store_results(phase *f, cpu_jit_val *sums, const cpu_jit_place *out)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  const int level = env->n_levels - 1;
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    if (s->simple != NULL) {
      cpu_jit_val first = initial(env, s);
      if (first.elem != sums[i].elem) {
        first = cpu_jit_convert(env, first, sums[i].elem);
      }
      sums[i] = combine_simple(env, s, first, sums[i]);
    }
    const cx_hlo_elem e = cpu_jit_type(&s->op->results[s->index])->elem;
    sums[i] = cpu_jit_summed(env, sums[i], e);
    cpu_jit_known(env, &s->op->results[s->index], out, sums[i]);
  }
  cpu_jit_val v[CPU_JIT_MAX_OUTPUTS];
  for (size_t i = 0; i < f->k->n_outputs; i++) {
    v[i] = cpu_jit_emit(env, f->k->outputs[i], out);
  }
  if (cpu_jit_failed(env)) return;
  for (size_t i = 0; i < f->k->n_outputs; i++) {
    cpu_jit_store(env, cpu_jit_buffer(env, f->k->n_inputs + i), v[i], out,
                  level);
  }
}

// ---- an iteration ----

static void begin_sums(phase *f, int unroll)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  for (int u = 0; u < unroll; u++) {
    for (size_t i = 0; i < p->n_sums; i++) {
      const cpu_jit_sum *s = &p->sums[i];
      cpu_jit_val v =
          s->simple != NULL ? identity(env, s, s->total) : initial(env, s);
      if (p->vector >= 0) v = cpu_jit_widen(env, v);
      f->accs[(size_t)u * p->n_sums + i] = v;
    }
  }
}

static void block(phase *f, cpu_jit_ix start, int unroll, LLVMValueRef mask)
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
    const cpu_jit_place *out = out_place(f, ix, mask);
    if (p->split >= 0) {
      store_partial(f, sums, out);
    } else {
      store_results(f, sums, out);
    }
  }
}

// The block of columns that begins at `start`: whole, or what is left of the
// run, vector by vector.
static void columns(phase *f, cpu_jit_ix start)
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
    cpu_jit_loop_begin(env, &loop, start.base, hi, step, NULL, 0);
    cpu_jit_ix ix = cpu_jit_ix_scalar(loop.iv, loop.level, step);
    ix.lane = p->lanes == 1 ? 0 : 1;
    block(f, ix, p->unroll, NULL);
    cpu_jit_loop_end(env, &loop, NULL);
  }
  if (whole == p->columns) return;
  LLVMValueRef is =
      cpu_jit_compare(env, LLVMIntSLT, start.base, past, start.level);
  LLVMValueRef from = cpu_jit_choose(env, is, end, start.base, start.level);
  cpu_jit_loop_begin(env, &loop, from, end, p->lanes, NULL, 0);
  cpu_jit_ix ix = cpu_jit_ix_scalar(loop.iv, loop.level, p->lanes);
  ix.lane = 1;
  f->mask_level = loop.level;
  block(f, ix, 1, cpu_jit_lanes_below(env, end, loop.iv, loop.level));
  cpu_jit_loop_end(env, &loop, NULL);
}

// ---- by sweeps ----

typedef enum sweep_step { SWEEP_BEGIN, SWEEP_ROW, SWEEP_BLOCK } sweep_step;

// The sums in the scratch, at `at`: those of a block, or the totals.
static cpu_jit_val swept(phase *f, const cpu_jit_sum *s, bool totals,
                         const cpu_jit_place *at)
{
  return cpu_jit_load_at(f->env, scratch_at(f, totals ? s->offset : s->narrow),
                         totals ? s->total : s->elem, at, f->env->n_levels - 1);
}

// A vector of sums begins, or what a block has given goes to the totals.
static void sweep_sums(phase *f, sweep_step step, const cpu_jit_place *at)
{
  cpu_jit_env *env = f->env;
  for (size_t i = 0; i < f->p->n_sums; i++) {
    const cpu_jit_sum *s = &f->p->sums[i];
    cpu_jit_val none = cpu_jit_widen(env, identity(env, s, s->elem));
    if (s->total == s->elem) {
      if (step == SWEEP_BEGIN) store_at(f, s->offset, none, at);
      continue;
    }
    cpu_jit_val total = cpu_jit_widen(env, identity(env, s, s->total));
    if (step == SWEEP_BLOCK) {
      total = combine_simple(
          env, s, swept(f, s, true, at),
          cpu_jit_convert(env, swept(f, s, false, at), s->total));
    }
    store_at(f, s->offset, total, at);
    store_at(f, s->narrow, none, at);
  }
}

// One vector of columns: a row's elements are added to the sums in the scratch.
// One row at a time: memory that is read as it lies comes twice as fast as four
// rows side by side.
static void sweep_vector(phase *f, sweep_step step, cpu_jit_ix row,
                         cpu_jit_ix column, LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  const cpu_jit_place at = partial_place(f, out_place(f, column, mask));
  if (step != SWEEP_ROW) {
    sweep_sums(f, step, &at);
    return;
  }
  f->index[0] = row;
  f->index[1] = column;
  cpu_jit_val x[CPU_JIT_SUMS];
  elements(f, mask, x);
  for (size_t i = 0; i < p->n_sums; i++) {
    f->accs[i] = swept(f, &p->sums[i], false, &at);
  }
  combine(f, f->accs, x);
  for (size_t i = 0; i < p->n_sums; i++) {
    store_at(f, p->sums[i].narrow, f->accs[i], &at);
  }
}

// The columns [lo, hi): those of whole vectors, or what is left.
static void sweep_columns(phase *f, sweep_step step, cpu_jit_ix row,
                          LLVMValueRef lo, LLVMValueRef hi, bool masked)
{
  cpu_jit_env *env = f->env;
  cpu_jit_loop loop;
  cpu_jit_loop_begin(env, &loop, lo, hi, f->p->lanes, NULL, 0);
  cpu_jit_ix column = cpu_jit_ix_scalar(loop.iv, loop.level, f->p->lanes);
  column.lane = 1;
  f->mask_level = loop.level;
  LLVMValueRef mask =
      masked ? cpu_jit_lanes_below(env, hi, loop.iv, loop.level) : NULL;
  sweep_vector(f, step, row, column, mask);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void sweep_row(phase *f, sweep_step step, cpu_jit_ix row,
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

static void sweep_rows(phase *f, LLVMValueRef lo, LLVMValueRef hi,
                       cpu_jit_ix start)
{
  cpu_jit_loop loop;
  cpu_jit_loop_begin(f->env, &loop, lo, hi, 1, NULL, 0);
  sweep_row(f, SWEEP_ROW, cpu_jit_ix_scalar(loop.iv, loop.level, 1), start);
  cpu_jit_loop_end(f->env, &loop, NULL);
}

static void sweep(phase *f, cpu_jit_ix start)
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
  sweep_rows(f, loop.iv, block_limit(env, &loop, step, f->hi), start);
  sweep_row(f, SWEEP_BLOCK, none, start);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void iteration(phase *f, cpu_jit_ix t)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  cpu_jit_ix rest = t;
  cpu_jit_ix at;
  int64_t size = p->extent;
  if (p->split >= 0) {
    size /= p->pieces;
    cpu_jit_ix_split(env, t, size, p->extent, false, &f->piece, &rest);
    cpu_jit_ix lo = cpu_jit_ix_scale(env, f->piece, p->piece);
    cpu_jit_ix hi = cpu_jit_ix_offset(env, lo, p->piece);
    LLVMValueRef most = cpu_jit_i64(env, p->sizes[p->split]);
    f->lo = lo.base;
    f->hi = cpu_jit_least(env, hi.base, most, hi.level);
  }
  cpu_jit_ix block_index = cpu_jit_ix_const(env, 0);
  for (int i = p->n - 1; i >= 0; i--) {
    if (p->reduced[i]) continue;
    const int64_t n = i == p->vector ? p->blocks : p->sizes[i];
    cpu_jit_ix_split(env, rest, n, size, false, &rest, &at);
    if (n == 1) at = cpu_jit_ix_const(env, 0);
    size /= n;
    if (i == p->vector) {
      block_index = at;
    } else {
      f->index[i] = at;
    }
  }
  if (p->sweep) {
    sweep(f, cpu_jit_ix_scale(env, block_index, p->chunk));
    return;
  }
  if (p->rows || p->vector < 0) {
    block(f, cpu_jit_ix_const(env, 0), p->unroll, NULL);
    return;
  }
  columns(f, cpu_jit_ix_scale(env, block_index, (int64_t)p->lanes * p->unroll));
}

void cpu_jit_reduce_emit(cpu_jit_env *env, const cpu_jit_kernel *k,
                         const cpu_jit_plan *plan, int number)
{
  phase *f = CX_ARENA_NEW(&env->arena, phase);
  if (f == NULL) {
    if (env->status == NULL) env->status = cx_out_of_memory();
    return;
  }
  f->env = env;
  f->k = k;
  f->p = plan;
  cpu_jit_function_begin(env, number, plan->lanes);
  if (plan->extent > 0) {
    cpu_jit_loop loop;
    iteration(f, cpu_jit_iterations_begin(
                     env, &loop, LLVMGetParam(env->function, 1),
                     LLVMGetParam(env->function, 2), plan->extent));
    cpu_jit_iterations_end(env, &loop, plan->extent);
  }
  cpu_jit_function_end(env);
}
