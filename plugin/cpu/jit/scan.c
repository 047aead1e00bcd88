// jit/scan: a reduce_window that is a prefix scan, as a root: each result is
// the last one and an element. In linear time, and in the order of the elements
// or another that the operation's associativity allows.
//
// Where the dimension is not the innermost one, lanes run along what lies
// behind it. Else they run along the dimension: a vector becomes its own
// prefixes in as many steps as its number of lanes has bits (W. D. Hillis, G.
// L. Steele, "Data parallel algorithms", 1986), and the carry is added to all
// of them. A long row is cut into blocks: the first phase makes their totals,
// the second scans each from the totals of those before it. How it is cut
// depends on the sizes alone.
//
// At most one vector of f32 is added up in f32; the carry is f64: see
// docs/decisions/019-long-sums-in-blocks.md.
#include "jit/root.h"

#define MOST_VECTORS 4  // beside each other, of what lies behind the dimension
#define LONG 32768      // elements of a row that is cut into blocks
#define FEW_ROWS 16     // more of them are not cut
#define BLOCK 8192      // elements of a block, at least
#define MOST_BLOCKS 64

typedef struct scan {
  cpu_jit_env *env;
  cpu_jit_kernel *k;
  const cx_hlo_op *op;
  const cx_hlo_op *simple;  // NULL: the region is emitted
  cx_hlo_elem elem;         // of the result
  cx_hlo_elem sum, total;   // of a vector's prefixes; of the carry
  size_t dim;
  bool reverse;
  int64_t n;             // elements along the dimension
  int64_t rows, behind;  // before the dimension, and behind it
  int64_t block, blocks;
  // In the function in progress:
  cpu_jit_val init;
  cpu_jit_ix row;
  LLVMValueRef mask;  // of the elements in the vector
  int mask_level;
} scan;

// ---- elements ----

// Of the elements at `at`, counted in the scan's direction, and at `column`
// behind the dimension.
static const cpu_jit_loc *loc_of(const scan *s, cpu_jit_ix at,
                                 cpu_jit_ix column)
{
  const int behind =
      (int)cpu_jit_type(s->op->operands[0])->rank - (int)s->dim - 1;
  cpu_jit_loc p = { .mask = s->mask, .mask_level = s->mask_level };
  if (s->reverse) {
    at = cpu_jit_ix_offset(s->env, cpu_jit_ix_scale(s->env, at, -1), s->n - 1);
  }
  if (s->dim > 0) cpu_jit_loc_push(&p, (int)s->dim, s->rows, s->row);
  cpu_jit_loc_push(&p, 1, s->n, at);
  if (behind > 0) cpu_jit_loc_push(&p, behind, s->behind, column);
  return cpu_jit_loc_of(s->env, &p);
}

static cpu_jit_val load(const scan *s, const cpu_jit_loc *p)
{
  cpu_jit_val x = cpu_jit_emit_wide(s->env, s->op->operands[0], p);
  x.elem = s->sum;
  return x;
}

static void store(const scan *s, cpu_jit_val v, const cpu_jit_loc *p)
{
  cpu_jit_store(s->env, cpu_jit_buffer(s->env, s->k->n_inputs),
                cpu_jit_summed(s->env, v, s->elem), p, s->env->n_levels - 1);
}

// What comes of `before` and then, in the scan's direction, `after`.
static cpu_jit_val combine(const scan *s, cpu_jit_val before, cpu_jit_val after)
{
  const cpu_jit_val first = s->reverse ? after : before;
  const cpu_jit_val second = s->reverse ? before : after;
  return s->simple != NULL
             ? cpu_jit_combine(s->env, s->simple, first, second)
             : cpu_jit_region_of_two(s->env, &s->op->regions[0], first, second);
}

static cpu_jit_val to_total(const scan *s, cpu_jit_val x)
{
  return s->total == s->sum ? x : cpu_jit_convert(s->env, x, s->total);
}

// ---- lanes ----

static cpu_jit_val shuffled(const scan *s, cpu_jit_val x, const int *order)
{
  cpu_jit_env *env = s->env;
  LLVMBuilderRef b = cpu_jit_at(env, x.level);
  x.re = cpu_jit_shuffle(env, b, x.re, NULL, order, env->lanes);
  if (x.im != NULL) {
    x.im = cpu_jit_shuffle(env, b, x.im, NULL, order, env->lanes);
  }
  return x;
}

// Each lane becomes what comes of the lanes up to it.
static cpu_jit_val prefixes(const scan *s, cpu_jit_val x)
{
  cpu_jit_env *env = s->env;
  for (int step = 1; step < env->lanes; step *= 2) {
    int order[64];
    LLVMValueRef has[64];
    for (int i = 0; i < env->lanes; i++) {
      order[i] = i < step ? i : i - step;
      has[i] = LLVMConstInt(env->i1, i >= step, 0);
    }
    const cpu_jit_val sum = combine(s, shuffled(s, x, order), x);
    x = cpu_jit_pick(env, LLVMConstVector(has, (unsigned)env->lanes), x.level,
                     sum, x);
  }
  return x;
}

static cpu_jit_val last_lane(const scan *s, cpu_jit_val x)
{
  int order[64];
  for (int i = 0; i < s->env->lanes; i++) order[i] = s->env->lanes - 1;
  return shuffled(s, x, order);
}

// ---- rows ----

static void scan_vector(scan *s, cpu_jit_ix at, bool stores, cpu_jit_val *carry)
{
  const cpu_jit_loc *p = loc_of(s, at, cpu_jit_ix_const(s->env, 0));
  const cpu_jit_val x = to_total(s, prefixes(s, load(s, p)));
  const cpu_jit_val out = combine(s, *carry, x);
  if (stores) store(s, out, p);
  // What is carried waits for one operation, where that is cheap.
  *carry = s->simple != NULL ? combine(s, *carry, last_lane(s, x))
                             : last_lane(s, out);
  carry->level = s->env->n_levels - 1;
}

// The elements [lo, hi) of the row, whose last vector may be `masked`; lo is a
// multiple of the lanes.
static void scan_elements(scan *s, LLVMValueRef lo, LLVMValueRef hi,
                          bool masked, bool stores, cpu_jit_val *carry)
{
  cpu_jit_env *env = s->env;
  cpu_jit_loop loop;
  cpu_jit_ix at = cpu_jit_loop_begin(env, &loop, lo, hi, env->lanes, carry, 1);
  at.lane = 1;
  s->mask = NULL;
  if (masked) {
    s->mask = cpu_jit_lanes_below(env, hi, loop.iv, loop.level);
    s->mask_level = loop.level;
  }
  scan_vector(s, at, stores, carry);
  s->mask = NULL;
  cpu_jit_loop_end(env, &loop, carry);
}

static void scan_row(scan *s, LLVMValueRef lo, LLVMValueRef hi,
                     cpu_jit_val carry)
{
  cpu_jit_env *env = s->env;
  if (s->n % env->lanes == 0) {
    scan_elements(s, lo, hi, false, true, &carry);
    return;
  }
  const int level = env->n_levels - 1;
  LLVMValueRef whole =
      cpu_jit_op2(env, LLVMAnd, hi, cpu_jit_i64(env, -env->lanes), level);
  if (s->n > env->lanes) scan_elements(s, lo, whole, false, true, &carry);
  scan_elements(s, s->n > env->lanes ? whole : lo, hi, true, true, &carry);
}

static cpu_jit_val initial(scan *s)
{
  s->init = cpu_jit_emit(s->env, s->op->operands[1], &s->env->scalar);
  s->init.elem = s->sum;
  return cpu_jit_widen(s->env, to_total(s, s->init));
}

static calx_status *scan_rows(scan *s)
{
  cpu_jit_env *env = s->env;
  cpu_jit_function_begin(env, s->k, 0, s->rows,
                         cpu_jit_grain(env, 4 * (double)s->n),
                         env->target->lanes);
  cpu_jit_loop loop;
  s->row = cpu_jit_iterations_begin(env, &loop, s->rows);
  scan_row(s, cpu_jit_i64(env, 0), cpu_jit_i64(env, s->n), initial(s));
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
  return env->status;
}

// ---- long rows ----

static cpu_jit_loc total_loc(scan *s, cpu_jit_ix block)
{
  cpu_jit_loc p = { 0 };
  cpu_jit_loc_push(&p, 1, s->rows, s->row);
  cpu_jit_loc_push(&p, 1, s->blocks, block);
  return p;
}

// What comes of a block; its elements in lanes, where their order is free.
static void make_total(scan *s, cpu_jit_ix block)
{
  cpu_jit_env *env = s->env;
  LLVMValueRef hi;
  const cpu_jit_ix lo = cpu_jit_ix_block(env, block, s->block, s->n, &hi);
  cpu_jit_val carry = initial(s);
  if (s->simple == NULL) {
    scan_elements(s, lo.base, hi, false, false, &carry);
  } else {
    cpu_jit_loop loop;
    cpu_jit_ix at =
        cpu_jit_loop_begin(env, &loop, lo.base, hi, env->lanes, &carry, 1);
    at.lane = 1;
    const cpu_jit_loc *p = loc_of(s, at, cpu_jit_ix_const(env, 0));
    carry = combine(s, carry, to_total(s, load(s, p)));
    carry.level = loop.level;
    cpu_jit_loop_end(env, &loop, &carry);
    carry = prefixes(s, carry);
  }
  const int level = env->n_levels - 1;
  LLVMBuilderRef b = cpu_jit_at(env, level);
  LLVMValueRef end = LLVMConstInt(env->i32, (unsigned)env->lanes - 1, 0);
  carry.re = LLVMBuildExtractElement(b, carry.re, end, "");
  if (carry.im != NULL)
    carry.im = LLVMBuildExtractElement(b, carry.im, end, "");
  carry.wide = false;
  const cpu_jit_loc p = total_loc(s, block);
  cpu_jit_store(env, cpu_jit_scratch(env, 0), carry, &p, level);
}

// What comes of the blocks before this one.
static cpu_jit_val carry_into(scan *s, cpu_jit_ix block)
{
  cpu_jit_env *env = s->env;
  cpu_jit_val carry = to_total(s, (initial(s), s->init));
  cpu_jit_loop loop;
  const cpu_jit_ix i = cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0),
                                          block.base, 1, &carry, 1);
  const cpu_jit_loc p = total_loc(s, i);
  carry = combine(
      s, carry,
      cpu_jit_load_at(env, cpu_jit_scratch(env, 0), s->total, &p, loop.level));
  carry.level = loop.level;
  cpu_jit_loop_end(env, &loop, &carry);
  return cpu_jit_widen(env, carry);
}

// A phase over these many blocks of each row: their totals, or their results.
static void block_phase(scan *s, int phase, int64_t blocks)
{
  cpu_jit_env *env = s->env;
  const int64_t extent = s->rows * blocks;
  cpu_jit_function_begin(env, s->k, phase, extent,
                         cpu_jit_grain(env, 2 * (double)s->block),
                         env->target->lanes);
  cpu_jit_loop loop;
  cpu_jit_ix block;
  const cpu_jit_ix i = cpu_jit_iterations_begin(env, &loop, extent);
  cpu_jit_ix_split(env, i, blocks, extent, false, &s->row, &block);
  if (phase == 0) {
    make_total(s, block);
  } else {
    LLVMValueRef hi;
    const cpu_jit_ix lo = cpu_jit_ix_block(env, block, s->block, s->n, &hi);
    scan_row(s, lo.base, hi, carry_into(s, block));
  }
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
}

static calx_status *scan_blocks(scan *s)
{
  s->k->scratch = (size_t)(s->rows * s->blocks) * cx_hlo_elem_bytes(s->total);
  block_phase(s, 0, s->blocks - 1);
  if (!cpu_jit_failed(s->env)) block_phase(s, 1, s->blocks);
  return s->env->status;
}

// ---- columns ----

// Some vectors of what lies behind the dimension, element by element.
static void scan_columns(scan *s, cpu_jit_ix first, LLVMValueRef hi,
                         int vectors, bool masked)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  cpu_jit_ix column[MOST_VECTORS];
  LLVMValueRef mask[MOST_VECTORS] = { 0 };
  cpu_jit_val carry[MOST_VECTORS];
  const cpu_jit_val init = initial(s);
  for (int i = 0; i < vectors; i++) {
    carry[i] = init;
    column[i] = cpu_jit_ix_offset(env, first, i * (int64_t)env->lanes);
    if (masked) {
      mask[i] = cpu_jit_lanes_below(env, hi, column[i].base, level);
    }
    column[i].lane = 1;
  }
  cpu_jit_loop loop;
  const cpu_jit_ix at =
      cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0),
                         cpu_jit_i64(env, s->n), 1, carry, (size_t)vectors);
  for (int i = 0; i < vectors; i++) {
    s->mask = mask[i];
    s->mask_level = level;
    const cpu_jit_loc *p = loc_of(s, at, column[i]);
    carry[i] = combine(s, carry[i], to_total(s, load(s, p)));
    carry[i].level = loop.level;
    store(s, carry[i], p);
  }
  s->mask = NULL;
  cpu_jit_loop_end(env, &loop, carry);
}

static calx_status *scan_all_columns(scan *s)
{
  cpu_jit_env *env = s->env;
  const int lanes = env->target->lanes;
  const int64_t needed = (s->behind + lanes - 1) / lanes;
  const int vectors = needed < MOST_VECTORS ? (int)needed : MOST_VECTORS;
  const int64_t step = (int64_t)vectors * lanes;
  const int64_t steps = (s->behind + step - 1) / step;
  const int64_t extent = s->rows * steps;
  cpu_jit_function_begin(env, s->k, 0, extent,
                         cpu_jit_grain(env, (double)(s->n * step)), lanes);
  cpu_jit_loop loop;
  cpu_jit_ix which;
  const cpu_jit_ix i = cpu_jit_iterations_begin(env, &loop, extent);
  cpu_jit_ix_split(env, i, steps, extent, false, &s->row, &which);
  LLVMValueRef hi;
  const cpu_jit_ix first = cpu_jit_ix_block(env, which, step, s->behind, &hi);
  scan_columns(s, first, hi, vectors, s->behind % step != 0);
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
  return env->status;
}

// ---- the kernel ----

static void cut_into_blocks(scan *s, int64_t lanes)
{
  s->blocks = 1;
  if (s->behind > 1 || s->n < LONG || s->rows >= FEW_ROWS) return;
  s->block = (s->n + MOST_BLOCKS - 1) / MOST_BLOCKS;
  if (s->block < BLOCK) s->block = BLOCK;
  s->block = (s->block + lanes - 1) / lanes * lanes;
  s->blocks = (s->n + s->block - 1) / s->block;
}

calx_status *cpu_jit_kernel_scan(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  scan s = { .env = env, .k = k, .op = op, .elem = t->elem, .behind = 1 };
  if (!cpu_jit_scan_of(op, &s.dim, &s.reverse)) {
    cpu_jit_fail(env, "windows that are no scan");
    return env->status;
  }
  s.n = t->dims[s.dim];
  for (size_t d = s.dim + 1; d < t->rank; d++) s.behind *= t->dims[d];
  s.rows = cx_hlo_type_elements(t) / (s.n * s.behind);
  s.simple = cpu_jit_simple_body(op, 0);
  s.sum = s.total = cpu_jit_sum_elem(s.simple, s.elem);
  if (s.n > CPU_JIT_BLOCK) s.total = cpu_jit_total_elem(s.simple, s.sum);
  cut_into_blocks(&s, env->target->lanes);
  if (s.behind > 1) return scan_all_columns(&s);
  return s.blocks > 1 ? scan_blocks(&s) : scan_rows(&s);
}
