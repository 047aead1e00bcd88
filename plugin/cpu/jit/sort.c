// jit/sort: the operation sort, as a root.
//
// A merge sort from below that asks what the interpreter (ref/sort) asks: of
// the runs [low, middle) and [middle, high) an element of the second goes first
// where the comparator says that it is before the first's. So it is stable, and
// a comparator that is no order gets the same answer from both. No branch
// depends on what is sorted.
//
// Lines lie one behind another in two memories, between which the passes go to
// and fro; the last one ends in memory 0, which is the result itself where its
// lines lie so too. Of long lines the first phase sorts blocks, which are its
// iterations; the second merges a line's blocks.
#include "jit/root.h"

#define MOST CPU_JIT_MAX_OUTPUTS
#define LONG 16384  // elements of a line that is cut into blocks
#define BLOCKS 16   // of such a line, at most
#define STEP_NS 4   // of an element in a pass: a guess
#define ABREAST 2   // merges beside each other; a power of 2

typedef struct sorting {
  cpu_jit_env *env;
  cpu_jit_kernel *k;
  const cx_hlo_op *op;
  size_t n;             // operands
  int dim;              // along which they are sorted
  int64_t size, lines;  // elements of a line, and how many there are
  int64_t step;         // between neighbours of a line in the operands
  int64_t block;        // a power of 2, or all of a line
  int block_passes, passes;
  // In the function in progress:
  LLVMValueRef memory[2][MOST];
  // To be filled from memory 0; NULL: memory 0 is the result, or no output of
  // the kernel is.
  LLVMValueRef result[MOST];
  cpu_jit_ix line;
} sorting;

static int passes_of(int64_t size)
{
  int passes = 0;
  while ((size - 1) >> passes > 0) passes++;
  return passes;
}

// Where the result of this operand goes, or NULL: it is no output.
static LLVMValueRef result_of(const sorting *s, size_t operand)
{
  for (size_t i = 0; i < s->k->n_outputs; i++) {
    if (s->k->outputs[i]->index == operand) {
      return cpu_jit_buffer(s->env, s->k->n_inputs + i);
    }
  }
  return NULL;
}

static LLVMValueRef take_scratch(sorting *s, size_t operand)
{
  const size_t at = s->k->scratch;
  const cx_hlo_type *t = cpu_jit_type(s->op->operands[operand]);
  s->k->scratch += ((size_t)cx_hlo_type_bytes(t) + 63) / 64 * 64;
  return cpu_jit_scratch(s->env, at);
}

// Where everything lies, in the function that has begun.
static void set_memory(sorting *s)
{
  s->k->scratch = 0;
  for (size_t i = 0; i < s->n; i++) {
    s->result[i] = result_of(s, i);
    if (s->result[i] != NULL && s->step == 1) {
      s->memory[0][i] = s->result[i];
      s->result[i] = NULL;
    } else {
      s->memory[0][i] = take_scratch(s, i);
    }
    s->memory[1][i] = take_scratch(s, i);
  }
}

// ---- locations ----

// Of element i of the line in the operands and results.
static const cpu_jit_loc *tensor_loc(sorting *s, cpu_jit_ix i)
{
  const int behind = (int)cpu_jit_type(s->op->operands[0])->rank - s->dim - 1;
  cpu_jit_loc p = { 0 };
  cpu_jit_ix outer;
  cpu_jit_ix inner;
  cpu_jit_ix_split(s->env, s->line, s->step, s->lines, false, &outer, &inner);
  if (s->dim > 0) {
    cpu_jit_loc_push(&p, s->dim, s->lines / s->step, outer);
  }
  cpu_jit_loc_push(&p, 1, s->size, i);
  if (behind > 0) cpu_jit_loc_push(&p, behind, s->step, inner);
  return cpu_jit_loc_of(s->env, &p);
}

static cpu_jit_loc memory_loc(sorting *s, cpu_jit_ix i)
{
  cpu_jit_loc p = { 0 };
  cpu_jit_ix start = cpu_jit_ix_scale(s->env, s->line, s->size);
  cpu_jit_loc_push(&p, 1, INT64_MAX, cpu_jit_ix_add(s->env, start, i));
  return p;
}

static cpu_jit_val load(sorting *s, LLVMValueRef memory, size_t operand,
                        LLVMValueRef i)
{
  const int level = s->env->n_levels - 1;
  const cpu_jit_loc p = memory_loc(s, cpu_jit_ix_scalar(i, level, 1));
  return cpu_jit_load_at(
      s->env, memory, cpu_jit_type(s->op->operands[operand])->elem, &p, level);
}

static void store(sorting *s, LLVMValueRef memory, cpu_jit_val v,
                  LLVMValueRef i)
{
  const int level = s->env->n_levels - 1;
  const cpu_jit_loc p = memory_loc(s, cpu_jit_ix_scalar(i, level, 1));
  cpu_jit_store(s->env, memory, v, &p, level);
}

// ---- between tensors and memories ----

static void fill(sorting *s, int side, LLVMValueRef begin, LLVMValueRef end)
{
  cpu_jit_env *env = s->env;
  cpu_jit_loop loop;
  const cpu_jit_ix i = cpu_jit_loop_begin(env, &loop, begin, end, 1, NULL, 0);
  const cpu_jit_loc *from = tensor_loc(s, i);
  for (size_t k = 0; k < s->n; k++) {
    store(s, s->memory[side][k], cpu_jit_emit(env, s->op->operands[k], from),
          loop.iv);
  }
  cpu_jit_loop_end(env, &loop, NULL);
}

static void put_results(sorting *s)
{
  cpu_jit_env *env = s->env;
  for (size_t k = 0; k < s->n; k++) {
    if (s->result[k] == NULL) continue;
    cpu_jit_loop loop;
    const cpu_jit_ix i = cpu_jit_count_begin(env, &loop, s->size);
    cpu_jit_store(env, s->result[k], load(s, s->memory[0][k], k, loop.iv),
                  tensor_loc(s, i), loop.level);
    cpu_jit_loop_end(env, &loop, NULL);
  }
}

// ---- merging ----

// Whether y, of the second run, goes before x.
static LLVMValueRef is_before(sorting *s, const cpu_jit_val *x,
                              const cpu_jit_val *y)
{
  cpu_jit_val args[2 * MOST];
  cpu_jit_val before;
  for (size_t k = 0; k < s->n; k++) {
    args[2 * k] = y[k];
    args[2 * k + 1] = x[k];
  }
  cpu_jit_region(s->env, &s->op->regions[0], args, 2 * s->n, &before, 1);
  return before.re;
}

// Two neighbouring runs of a pass, which become one.
typedef struct pair {
  LLVMValueRef low, middle, high;
} pair;

typedef struct merge_pass {
  LLVMValueRef from[MOST], to[MOST];
  LLVMValueRef begin, end;
  LLVMValueRef width, twice;  // of its runs, and the logarithm of two of them
} merge_pass;

// The element of a pair that goes to `to`; at[]: how far its runs are read.
static void merge_one(sorting *s, const merge_pass *p, const pair *r,
                      cpu_jit_val *at, LLVMValueRef to)
{
  cpu_jit_env *env = s->env;
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  cpu_jit_val x[MOST];
  cpu_jit_val y[MOST];
  LLVMValueRef more_x = LLVMBuildICmp(b, LLVMIntSLT, at[0].re, r->middle, "");
  LLVMValueRef more_y = LLVMBuildICmp(b, LLVMIntSLT, at[1].re, r->high, "");
  // Of a run that has ended anything is read.
  LLVMValueRef from_x = LLVMBuildSelect(b, more_x, at[0].re, r->low, "");
  LLVMValueRef from_y = LLVMBuildSelect(b, more_y, at[1].re, r->low, "");
  for (size_t k = 0; k < s->n; k++) {
    x[k] = load(s, p->from[k], k, from_x);
    y[k] = load(s, p->from[k], k, from_y);
  }
  LLVMValueRef second = LLVMBuildAnd(b, more_y, is_before(s, x, y), "");
  second = LLVMBuildOr(b, LLVMBuildNot(b, more_x, ""), second, "");
  for (size_t k = 0; k < s->n; k++) {
    store(s, p->to[k], cpu_jit_pick(env, second, 0, y[k], x[k]), to);
  }
  LLVMValueRef first = LLVMBuildNot(b, second, "");
  first = LLVMBuildZExt(b, first, env->i64, "");
  at[0].re = LLVMBuildAdd(b, at[0].re, first, "");
  second = LLVMBuildZExt(b, second, env->i64, "");
  at[1].re = LLVMBuildAdd(b, at[1].re, second, "");
}

// The pairs from `first` to `last` of a pass, `abreast` of them at a time:
// while one waits for what it has loaded, another goes on. Those beside each
// other are of one length.
static void merge_pairs(sorting *s, const merge_pass *p, LLVMValueRef first,
                        LLVMValueRef last, int abreast)
{
  cpu_jit_env *env = s->env;
  pair r[ABREAST];
  cpu_jit_val at[2 * ABREAST];
  cpu_jit_loop pairs;
  cpu_jit_loop_begin(env, &pairs, first, last, abreast, NULL, 0);
  const int level = env->n_levels - 1;
  LLVMBuilderRef b = cpu_jit_at(env, level);
  for (int i = 0; i < abreast; i++) {
    LLVMValueRef which = LLVMBuildAdd(b, pairs.iv, cpu_jit_i64(env, i), "");
    which = LLVMBuildShl(b, which, p->twice, "");
    r[i].low = LLVMBuildAdd(b, p->begin, which, "");
    r[i].middle = cpu_jit_least(env, LLVMBuildAdd(b, r[i].low, p->width, ""),
                                p->end, level);
    r[i].high = cpu_jit_least(env, LLVMBuildAdd(b, r[i].middle, p->width, ""),
                              p->end, level);
    at[2 * i] = (cpu_jit_val){ .re = r[i].low, .elem = CX_HLO_I64 };
    at[2 * i + 1] = (cpu_jit_val){ .re = r[i].middle, .elem = CX_HLO_I64 };
  }
  cpu_jit_loop loop;
  LLVMValueRef n = LLVMBuildSub(b, r[0].high, r[0].low, "");
  cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0), n, 1, at,
                     2 * (size_t)abreast);
  for (int i = 0; i < abreast; i++) {
    b = cpu_jit_at(env, loop.level);
    merge_one(s, p, &r[i], &at[2 * i], LLVMBuildAdd(b, r[i].low, loop.iv, ""));
  }
  cpu_jit_loop_end(env, &loop, at);
  cpu_jit_loop_end(env, &pairs, NULL);
}

// Pass i makes runs of 2^(i + 1) out of such of 2^i.
static void run_passes(sorting *s, int first, int last, LLVMValueRef begin,
                       LLVMValueRef end)
{
  cpu_jit_env *env = s->env;
  if (first == last) return;
  cpu_jit_loop loop;
  cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, first),
                     cpu_jit_i64(env, last), 1, NULL, 0);
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  LLVMValueRef one = cpu_jit_i64(env, 1);
  LLVMValueRef left = LLVMBuildSub(b, cpu_jit_i64(env, s->passes), loop.iv, "");
  LLVMValueRef odd = LLVMBuildTrunc(b, left, env->i1, "");
  merge_pass p = { .begin = begin, .end = end };
  for (size_t k = 0; k < s->n; k++) {
    LLVMValueRef m[2] = { s->memory[0][k], s->memory[1][k] };
    p.from[k] = LLVMBuildSelect(b, odd, m[1], m[0], "");
    p.to[k] = LLVMBuildSelect(b, odd, m[0], m[1], "");
  }
  p.width = LLVMBuildShl(b, one, loop.iv, "");
  p.twice = LLVMBuildAdd(b, loop.iv, one, "");
  LLVMValueRef n = LLVMBuildSub(b, end, begin, "");
  LLVMValueRef whole = LLVMBuildLShr(b, n, p.twice, "");
  LLVMValueRef even = LLVMBuildAnd(b, whole, cpu_jit_i64(env, -ABREAST), "");
  n = LLVMBuildAdd(b, n, LLVMBuildShl(b, one, p.twice, ""), "");
  n = LLVMBuildLShr(b, LLVMBuildSub(b, n, one, ""), p.twice, "");
  merge_pairs(s, &p, cpu_jit_i64(env, 0), even, ABREAST);
  merge_pairs(s, &p, even, n, 1);
  cpu_jit_loop_end(env, &loop, NULL);
}

// ---- phases ----

static void begin_phase(sorting *s, int phase, int64_t iterations,
                        int64_t elements, int passes)
{
  const double ns =
      (double)elements * (double)(s->n * (size_t)(passes + 1)) * STEP_NS;
  cpu_jit_function_begin(s->env, s->k, phase, iterations,
                         ns > 20000 ? 1 : (int64_t)(20000 / ns), 1);
  set_memory(s);
}

static void sort_blocks(sorting *s)
{
  cpu_jit_env *env = s->env;
  const int64_t blocks = (s->size + s->block - 1) / s->block;
  const int64_t extent = s->lines * blocks;
  begin_phase(s, 0, extent, s->block, s->block_passes);
  cpu_jit_loop loop;
  cpu_jit_ix which = cpu_jit_iterations_begin(env, &loop, extent);
  cpu_jit_ix part;
  cpu_jit_ix_split(env, which, blocks, extent, false, &s->line, &part);
  LLVMValueRef end;
  LLVMValueRef begin =
      cpu_jit_ix_block(env, part, s->block, s->size, &end).base;
  fill(s, s->passes % 2, begin, end);
  run_passes(s, 0, s->block_passes, begin, end);
  if (s->block_passes == s->passes) put_results(s);
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
}

static void merge_blocks(sorting *s)
{
  cpu_jit_env *env = s->env;
  begin_phase(s, 1, s->lines, s->size, s->passes - s->block_passes);
  cpu_jit_loop loop;
  s->line = cpu_jit_iterations_begin(env, &loop, s->lines);
  run_passes(s, s->block_passes, s->passes, cpu_jit_i64(env, 0),
             cpu_jit_i64(env, s->size));
  put_results(s);
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
}

calx_status *cpu_jit_kernel_sort(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  sorting s = { .env = env, .k = k, .op = op, .n = op->n_operands, .step = 1 };
  s.dim = (int)cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (s.dim < 0) s.dim += (int)t->rank;
  for (size_t d = (size_t)s.dim + 1; d < t->rank; d++) s.step *= t->dims[d];
  s.size = t->dims[s.dim];
  s.lines = cx_hlo_type_elements(t) / s.size;
  s.passes = passes_of(s.size);
  s.block = s.size;
  s.block_passes = s.passes;
  if (s.size >= LONG && s.lines < BLOCKS) {
    s.block_passes = passes_of((s.size + BLOCKS - 1) / BLOCKS);
    s.block = INT64_C(1) << s.block_passes;
  }
  sort_blocks(&s);
  if (s.block_passes < s.passes && !cpu_jit_failed(env)) merge_blocks(&s);
  return env->status;
}
