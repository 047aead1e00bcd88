// jit/reduce: how a reduction is run: along which dimensions the lanes go, and
// how it is cut into iterations.
#include "jit/reduce.h"

#include "hlo/infer.h"

#define SPLIT_ITERATIONS 32   // fewer than these are cut into pieces …
#define SPLIT_ELEMENTS 65536  // … where there are as many elements
#define PIECE_ELEMENTS 16384  // that a piece has at least
#define MOST_PIECES 64
#define SWEEP_COLUMNS 1024  // whose sums are 4 KiB of each result
#define SWEEP_ROWS 16       // fewer of a piece are not worth its sums
#define SWEEP_SUMS 4
#define FEW_VECTORS 8  // of a row that may have masks throughout

// ---- what is reduced ----

static bool is_reduced(const cx_hlo_op *op, size_t d)
{
  return cx_hlo_ints_have(cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS), (int64_t)d);
}

static bool add_sums(cpu_jit_env *env, cpu_jit_plan *p, const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  if (p->from == NULL) p->from = t;
  if (t->rank != p->from->rank || p->n_sums + op->n_results > CPU_JIT_SUMS) {
    cpu_jit_fail(env, "reductions that are too different, or too many");
    return false;
  }
  for (size_t d = 0; d < t->rank; d++) {
    if (t->dims[d] == p->from->dims[d] &&
        is_reduced(op, d) == (p->n_sums == 0 ? is_reduced(op, d)
                                             : is_reduced(p->sums[0].op, d))) {
      continue;
    }
    cpu_jit_fail(env, "reductions of different dimensions");
    return false;
  }
  for (size_t i = 0; i < op->n_results; i++) {
    cpu_jit_sum *s = &p->sums[p->n_sums++];
    *s = (cpu_jit_sum){ .op = op,
                        .index = i,
                        .simple = cpu_jit_simple_body(op, i) };
    s->elem = cpu_jit_sum_elem(s->simple, cpu_jit_type(&op->results[i])->elem);
    s->total = s->elem;
  }
  return true;
}

static void set_runs(cpu_jit_env *env, cpu_jit_plan *p)
{
  uint32_t cuts = 0;
  const cx_hlo_op *op = p->sums[0].op;
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    cuts |= cpu_jit_slot_of(env, s->op->operands[s->index])->need;
  }
  const cpu_jit_kernel *k = env->kernel;
  for (size_t i = 0; i < k->n_outputs; i++) {
    if (!cpu_jit_is_unreduced(p, k->outputs[i])) continue;
    cuts |= cpu_jit_slot_of(env, k->outputs[i])->need;
  }
  int last = -1;
  for (size_t d = 0; d < p->from->rank; d++) {
    if (p->from->dims[d] == 1) continue;
    if (last >= 0 && is_reduced(op, (size_t)last) != is_reduced(op, d)) {
      // Before the first dimension of size 1 between them would do as well.
      cuts |= (uint32_t)1 << d;
    }
    last = (int)d;
  }
  p->n = cpu_jit_runs(p->from, cuts, p->dims, p->sizes);
  size_t d = 0;
  int pending = 0;
  int kept = -1;
  p->outs = 1;
  for (int i = 0; i < p->n; i++) {
    p->reduced[i] = p->sizes[i] == 1;
    const size_t first = d;
    for (; d < first + (size_t)p->dims[i]; d++) {
      if (p->from->dims[d] != 1) p->reduced[i] = is_reduced(op, d);
    }
    if (!p->reduced[i]) {
      kept = i;
      p->outs *= p->sizes[i];
    }
    for (size_t j = first; j < d; j++) {
      if (is_reduced(op, j)) continue;
      if (kept < 0) {
        pending++;
      } else {
        p->out_dims[kept]++;
      }
    }
    if (kept >= 0) p->out_dims[kept] += pending;
    if (kept >= 0) pending = 0;
  }
}

// ---- how it is run ----

// Whether each result is made by one operation whose identity is known.
static bool is_simple(const cpu_jit_plan *p)
{
  for (size_t i = 0; i < p->n_sums; i++) {
    if (p->sums[i].simple == NULL) return false;
  }
  return true;
}

static int best_column(const cpu_jit_plan *p, int lanes)
{
  int best = -1;
  for (int i = p->n - 1; i >= 0; i--) {
    if (p->reduced[i]) continue;
    if (best < 0 || (p->sizes[best] < lanes / 2 && p->sizes[i] >= lanes)) {
      best = i;
    }
  }
  return best;
}

static void set_lanes(cpu_jit_env *env, cpu_jit_plan *p)
{
  const int lanes = env->target->lanes;
  const int column = best_column(p, lanes);
  const bool last = p->n > 0 && p->reduced[p->n - 1];
  const int64_t row = last ? p->sizes[p->n - 1] : 0;
  const int64_t width = column < 0 ? 1 : p->sizes[column];
  const int registers = lanes == 16 ? 16 : 8;
  const int sums = (int)p->n_sums;
  p->lanes = lanes;
  if (is_simple(p) && last && row >= lanes / 2 &&
      (row >= lanes || width < lanes)) {
    p->rows = true;
    p->vector = p->n - 1;
    p->unroll = row >= FEW_VECTORS * lanes && sums <= 4 ? 4 : 1;
    p->masked = env->target->has_masks && p->unroll == 1 && row % lanes != 0;
    return;
  }
  p->vector = width >= lanes / 4 ? column : -1;
  if (p->vector < 0) p->lanes = 1;
  p->unroll = registers / sums;
  if (env->kernel->n_ops > 6 && p->unroll > 4) p->unroll = 4;
  while (p->unroll > 1 && width < (int64_t)p->unroll * p->lanes) p->unroll /= 2;
  // What is gathered takes its time, however many there are.
  if (p->vector != p->n - 1 && p->unroll > 2) p->unroll = 2;
  if (p->unroll < 1 || p->lanes == 1) p->unroll = 1;
  const int64_t step = (int64_t)p->unroll * p->lanes;
  p->masked = env->target->has_masks && p->vector >= 0 && width % step != 0 &&
              cx_hlo_type_elements(p->from) < SPLIT_ELEMENTS;
  if (p->masked) p->unroll = 1;
}

// Rows of many columns: [rows][columns] over rows.
static bool set_sweep(cpu_jit_plan *p)
{
  const int64_t total = cx_hlo_type_elements(p->from);
  if (p->n_sums > SWEEP_SUMS || !is_simple(p) || p->n != 2 || !p->reduced[0] ||
      p->vector != 1 || p->columns <= (int64_t)p->lanes * p->unroll ||
      total < SPLIT_ELEMENTS || p->sizes[0] < SWEEP_ROWS) {
    return false;
  }
  const int64_t size = p->sizes[0];
  p->sweep = true;
  p->chunk = p->columns < SWEEP_COLUMNS ? p->columns : SWEEP_COLUMNS;
  p->blocks = (p->columns + p->chunk - 1) / p->chunk;
  int64_t pieces = MOST_PIECES / p->blocks;
  if (pieces > size / SWEEP_ROWS) pieces = size / SWEEP_ROWS;
  if (pieces > total / PIECE_ELEMENTS) pieces = total / PIECE_ELEMENTS;
  if (pieces < 1) pieces = 1;
  p->piece = (size + pieces - 1) / pieces;
  p->pieces = (size + p->piece - 1) / p->piece;
  p->split = 0;
  p->extent = p->pieces * p->blocks;
  return true;
}

static void set_pieces(cpu_jit_plan *p)
{
  const int64_t total = cx_hlo_type_elements(p->from);
  const int64_t step = (int64_t)p->lanes * p->unroll;
  p->columns = p->vector < 0 || p->rows ? 1 : p->sizes[p->vector];
  p->blocks = p->rows ? 1 : (p->columns + step - 1) / step;
  if (p->vector < 0) p->blocks = 1;
  p->extent = p->blocks;
  for (int i = 0; i < p->n; i++) {
    if (!p->reduced[i] && (i != p->vector)) p->extent *= p->sizes[i];
  }
  p->split = -1;
  p->pieces = 1;
  if (set_sweep(p)) return;
  if (p->extent >= SPLIT_ITERATIONS || total < SPLIT_ELEMENTS) return;
  if (!is_simple(p)) return;
  int widest = -1;
  for (int i = 0; i < p->n; i++) {
    if (p->reduced[i] && (widest < 0 || p->sizes[i] > p->sizes[widest])) {
      widest = i;
    }
  }
  if (widest < 0) return;
  const int64_t unit = p->rows && widest == p->vector ? step : 1;
  int64_t pieces = total / PIECE_ELEMENTS;
  if (pieces > MOST_PIECES) pieces = MOST_PIECES;
  const int64_t size = p->sizes[widest];
  p->piece = (size + pieces - 1) / pieces;
  p->piece = (p->piece + unit - 1) / unit * unit;
  p->pieces = (size + p->piece - 1) / p->piece;
  if (p->pieces > 1) p->split = widest;
  if (p->split < 0) p->pieces = 1;
  p->extent *= p->pieces;
}

static bool has_totals(const cpu_jit_plan *p)
{
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    if (cpu_jit_total_elem(s->simple, s->elem) != s->elem) return true;
  }
  return false;
}

// Steps of the loop over run i.
static int64_t trips(const cpu_jit_plan *p, int i)
{
  const int64_t size = i == p->split ? p->piece : p->sizes[i];
  const int64_t step = (int64_t)p->lanes * p->unroll;
  return p->rows && i == p->vector ? (size + step - 1) / step : size;
}

// The loop around which more than a block would be added one to another.
static void set_blocks(cpu_jit_plan *p)
{
  int64_t chain = 1;  // steps of the loops inside
  int i = p->n - 1;
  p->block_run = -1;
  if (!has_totals(p)) return;
  for (; i >= 0; i--) {
    if (!p->reduced[i]) continue;
    if (trips(p, i) > CPU_JIT_BLOCK / chain) break;
    chain *= trips(p, i);
  }
  if (i < 0) return;
  p->block_run = i;
  p->block = cpu_jit_block(chain);
  for (size_t k = 0; k < p->n_sums; k++) {
    cpu_jit_sum *s = &p->sums[k];
    s->total = cpu_jit_total_elem(s->simple, s->elem);
  }
}

// ---- phases ----

static size_t reserve(const cpu_jit_plan *p, cpu_jit_kernel *k, cx_hlo_elem e)
{
  const size_t at = k->scratch;
  const size_t n = (size_t)(p->pieces * p->outs);
  k->scratch = (at + n * cx_hlo_elem_bytes(e) + 63) / 64 * 64;
  return at;
}

static void set_scratch(cpu_jit_plan *p, cpu_jit_kernel *k)
{
  for (size_t i = 0; i < p->n_sums; i++) {
    cpu_jit_sum *s = &p->sums[i];
    s->offset = s->narrow = reserve(p, k, s->total);
    if (p->sweep && s->total != s->elem) s->narrow = reserve(p, k, s->elem);
  }
}

// The pieces' results, [pieces][outs], reduced by columns.
static void second_plan(cpu_jit_env *env, const cpu_jit_plan *first,
                        cpu_jit_plan *p)
{
  *p = *first;
  p->second = true;
  p->sweep = false;
  p->n = 2;
  p->sizes[0] = first->pieces;
  p->sizes[1] = first->outs;
  p->reduced[0] = true;
  p->reduced[1] = false;
  p->dims[0] = p->dims[1] = 1;
  p->out_dims[1] =
      (int)cpu_jit_type(&p->sums[0].op->results[p->sums[0].index])->rank;
  p->rows = false;
  p->lanes = first->outs > 1 ? env->target->lanes : 1;
  p->vector = p->lanes > 1 ? 1 : -1;
  p->unroll = 1;
  p->masked =
      env->target->has_masks && p->vector >= 0 && first->outs % p->lanes != 0;
  p->columns = first->outs;
  p->blocks = (first->outs + p->lanes - 1) / p->lanes;
  p->extent = p->blocks;
  p->split = p->block_run = -1;
  for (size_t i = 0; i < p->n_sums; i++) {
    cpu_jit_sum *s = &p->sums[i];
    s->elem = s->total;
    s->total = cpu_jit_total_elem(s->simple, s->elem);
  }
}

calx_status *cpu_jit_kernel_reduce(cpu_jit_env *env, cpu_jit_kernel *k)
{
  cpu_jit_plan plan = { .vector = -1, .split = -1, .block_run = -1 };
  for (size_t i = 0; i < k->n_ops; i++) {
    if (cpu_jit_class_of(k->ops[i]) != CPU_JIT_REDUCE) continue;
    if (!add_sums(env, &plan, k->ops[i])) return env->status;
  }
  set_runs(env, &plan);
  set_lanes(env, &plan);
  set_pieces(&plan);
  set_blocks(&plan);
  const double elements = (double)cx_hlo_type_elements(plan.from) /
                          (double)(plan.extent > 0 ? plan.extent : 1);
  if (plan.split >= 0) set_scratch(&plan, k);
  cpu_jit_reduce_emit(env, k, &plan, 0, elements);
  if (plan.split < 0 || cpu_jit_failed(env)) return env->status;
  cpu_jit_plan second;
  second_plan(env, &plan, &second);
  cpu_jit_reduce_emit(env, k, &second, 1, (double)(plan.pieces * second.lanes));
  return env->status;
}
