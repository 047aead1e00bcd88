// jit/tile: select_and_scatter whose windows lie side by side, as a root.
//
// Windows that neither overlap nor leave gaps write each element once, so
// nothing is filled first and nothing is read back. A vector is `lanes`
// neighbouring windows; what they cover is read and written as whole vectors of
// neighbours, and shuffles make of those the elements at one position of each
// window, and the other way around.
//
// Where the windows of a row are many, a vector of them is a piece of a row,
// and covers as many segments of memory as a window has rows. Where a vector
// holds whole rows of windows, what it covers is one segment.
#include "jit/root.h"

#define MOST_POSITIONS 16  // of a window

typedef struct tiling {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  const cx_hlo_op *op;
  const cx_hlo_type *t, *source;
  int64_t high, wide;                 // of a window
  int64_t columns;                    // windows in a row
  int64_t rows;                       // rows of windows, of all planes
  bool whole;                         // a vector holds whole rows
  cpu_jit_ix row, column;             // of the first window
  int64_t positions, segments, each;  // vectors of a segment
  LLVMValueRef mask;                  // of windows; NULL: all
  int mask_level;
  const cpu_jit_loc *loc[MOST_POSITIONS];  // of the vectors of memory
} tiling;

static int64_t listed(const cx_hlo_op *op, cx_hlo_attr_id id, size_t d)
{
  const cx_hlo_attr *a = cx_hlo_op_attr(op, id);
  return a == NULL ? 1 : a->as.ints.v[d];
}

static bool is_padded(const cx_hlo_op *op, size_t d)
{
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_PADDING);
  return a != NULL && (cx_hlo_elements_int(&a->as.elements, 2 * d) != 0 ||
                       cx_hlo_elements_int(&a->as.elements, 2 * d + 1) != 0);
}

bool cpu_jit_is_tiled(const cpu_jit_env *env, const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *source = cpu_jit_type(op->operands[1]);
  int64_t positions = 1;
  for (size_t d = 0; d < t->rank; d++) {
    const int64_t n = listed(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    if (listed(op, CX_HLO_A_WINDOW_STRIDES, d) != n || is_padded(op, d) ||
        source->dims[d] * n != t->dims[d] || (d + 2 < t->rank && n != 1)) {
      return false;
    }
    positions *= n;
  }
  if (t->rank == 0 || positions > MOST_POSITIONS) return false;
  const int64_t columns = source->dims[t->rank - 1];
  return cx_hlo_type_elements(t) > 0 && columns >= env->target->lanes / 4;
}

// ---- shuffles ----

// Where an element of the vectors of memory belongs: which window of the
// vector, and which position in it.
static void window_of(const tiling *s, int64_t vector, int64_t lane,
                      int64_t *window, int64_t *position)
{
  const int64_t segment = vector / s->each;
  const int64_t at = vector % s->each * s->env->lanes + lane;
  if (!s->whole) {
    *window = at / s->wide;
    *position = segment * s->wide + at % s->wide;
    return;
  }
  const int64_t width = s->columns * s->wide;
  *window = at / (width * s->high) * s->columns + at % width / s->wide;
  *position = at / width % s->high * s->wide + at % s->wide;
}

// A vector of the elements order[] of these vectors, counted through them all.
static LLVMValueRef shuffled(tiling *s, LLVMBuilderRef b, LLVMValueRef *v,
                             int64_t n, const int64_t *order)
{
  cpu_jit_env *env = s->env;
  const int64_t lanes = env->lanes;
  LLVMValueRef out = LLVMGetPoison(LLVMTypeOf(v[0]));
  LLVMValueRef any = LLVMGetPoison(env->i32);
  bool first = true;
  bool have[64] = { false };
  for (int64_t i = 0; i < n; i++) {
    LLVMValueRef mask[64];
    bool used = false;
    for (int64_t k = 0; k < lanes; k++) {
      mask[k] = have[k] ? LLVMConstInt(env->i32, (uint64_t)k, 0) : any;
      if (order[k] / lanes != i) continue;
      used = have[k] = true;
      mask[k] = LLVMConstInt(env->i32, (uint64_t)(lanes + order[k] % lanes), 0);
    }
    if (!used) continue;
    if (first) {
      for (int64_t k = 0; k < lanes; k++) {
        if (!have[k]) continue;
        mask[k] = LLVMConstInt(env->i32, (uint64_t)(order[k] % lanes), 0);
      }
    }
    LLVMValueRef x = first ? v[i] : out;
    LLVMValueRef y = first ? out : v[i];
    out = LLVMBuildShuffleVector(b, x, y,
                                 LLVMConstVector(mask, (unsigned)lanes), "");
    first = false;
  }
  return out;
}

// Vectors of memory to vectors of positions, or back.
static void regroup(tiling *s, const cpu_jit_val *from, bool back,
                    cpu_jit_val *to)
{
  cpu_jit_env *env = s->env;
  const int64_t lanes = env->lanes;
  const int64_t n = s->positions;
  LLVMValueRef re[MOST_POSITIONS];
  LLVMValueRef im[MOST_POSITIONS];
  int64_t order[MOST_POSITIONS][64];
  for (int64_t i = 0; i < n; i++) {
    re[i] = from[i].re;
    im[i] = from[i].im;
    for (int64_t k = 0; k < lanes; k++) {
      int64_t window = 0;
      int64_t position = 0;
      window_of(s, i, k, &window, &position);
      if (back) {
        order[i][k] = position * lanes + window;
      } else {
        order[position][window] = i * lanes + k;
      }
    }
  }
  for (int64_t i = 0; i < n; i++) {
    LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
    to[i] = from[0];
    to[i].level = env->n_levels - 1;
    to[i].re = shuffled(s, b, re, n, order[i]);
    if (im[0] != NULL) to[i].im = shuffled(s, b, im, n, order[i]);
  }
}

// ---- locations ----

static LLVMValueRef memory_mask(tiling *s, int64_t vector)
{
  if (s->mask == NULL) return NULL;
  cpu_jit_env *env = s->env;
  LLVMValueRef order[64];
  for (int64_t k = 0; k < env->lanes; k++) {
    int64_t window = 0;
    int64_t position = 0;
    window_of(s, vector, k, &window, &position);
    order[k] = LLVMConstInt(env->i32, (uint64_t)window, 0);
  }
  return LLVMBuildShuffleVector(cpu_jit_at(env, s->mask_level), s->mask,
                                LLVMGetPoison(LLVMTypeOf(s->mask)),
                                LLVMConstVector(order, (unsigned)env->lanes),
                                "");
}

static void set_locs(tiling *s)
{
  cpu_jit_env *env = s->env;
  const int64_t row = s->columns * s->wide;
  for (int64_t i = 0; i < s->positions; i++) {
    cpu_jit_ix at = cpu_jit_ix_scale(env, s->row, row * s->high);
    at = cpu_jit_ix_add(env, at, cpu_jit_ix_scale(env, s->column, s->wide));
    at = cpu_jit_ix_offset(env, at,
                           i / s->each * row + i % s->each * env->lanes);
    at.lane = 1;
    cpu_jit_loc p = { .mask = memory_mask(s, i), .mask_level = s->mask_level };
    cpu_jit_loc_push(&p, (int)s->t->rank, cx_hlo_type_elements(s->t), at);
    s->loc[i] = cpu_jit_loc_of(env, &p);
  }
}

static const cpu_jit_loc *source_loc(tiling *s)
{
  cpu_jit_env *env = s->env;
  cpu_jit_loc p = { .mask = s->mask, .mask_level = s->mask_level };
  const int rank = (int)s->t->rank;
  if (s->whole || rank == 1) {
    cpu_jit_ix at =
        s->whole ? cpu_jit_ix_scale(env, s->row, s->columns) : s->column;
    at.lane = 1;
    cpu_jit_loc_push(&p, rank, s->rows * s->columns, at);
    return cpu_jit_loc_of(env, &p);
  }
  cpu_jit_ix column = s->column;
  column.lane = 1;
  cpu_jit_loc_push(&p, rank - 1, s->rows, s->row);
  cpu_jit_loc_push(&p, 1, s->columns, column);
  return cpu_jit_loc_of(env, &p);
}

// ---- one vector of windows ----

// Which lanes choose each position: the first, unless a later one beats it.
static void choose(tiling *s, const cpu_jit_val *x, LLVMValueRef *chosen)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  cpu_jit_val best = x[0];
  chosen[0] = LLVMConstAllOnes(cpu_jit_wide_type(env, env->i1));
  for (int64_t q = 1; q < s->positions; q++) {
    const cpu_jit_val args[2] = { best, x[q] };
    cpu_jit_val keep;
    cpu_jit_region(env, &s->op->regions[0], args, 2, &keep, 1);
    keep = cpu_jit_widen(env, keep);
    LLVMBuilderRef b = cpu_jit_at(env, level);
    chosen[q] = LLVMBuildNot(b, keep.re, "");
    for (int64_t i = 0; i < q; i++) {
      chosen[i] = LLVMBuildAnd(b, chosen[i], keep.re, "");
    }
    if (q + 1 == s->positions) return;
    best.re = LLVMBuildSelect(b, keep.re, best.re, x[q].re, "");
    if (best.im != NULL) {
      best.im = LLVMBuildSelect(b, keep.re, best.im, x[q].im, "");
    }
  }
}

static void windows(tiling *s)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  cpu_jit_val memory[MOST_POSITIONS];
  cpu_jit_val x[MOST_POSITIONS];
  LLVMValueRef chosen[MOST_POSITIONS];
  set_locs(s);
  for (int64_t i = 0; i < s->positions; i++) {
    memory[i] =
        cpu_jit_widen(env, cpu_jit_emit(env, s->op->operands[0], s->loc[i]));
  }
  regroup(s, memory, false, x);
  choose(s, x, chosen);
  const cpu_jit_val init =
      cpu_jit_widen(env, cpu_jit_emit(env, s->op->operands[2], &env->scalar));
  const cpu_jit_val source =
      cpu_jit_widen(env, cpu_jit_emit(env, s->op->operands[1], source_loc(s)));
  const cpu_jit_val args[2] = { init, source };
  cpu_jit_val sum;
  cpu_jit_region(env, &s->op->regions[1], args, 2, &sum, 1);
  sum = cpu_jit_widen(env, sum);
  if (cpu_jit_failed(env)) return;
  for (int64_t q = 0; q < s->positions; q++) {
    LLVMBuilderRef b = cpu_jit_at(env, level);
    x[q].re = LLVMBuildSelect(b, chosen[q], sum.re, init.re, "");
    if (sum.im != NULL) {
      x[q].im = LLVMBuildSelect(b, chosen[q], sum.im, init.im, "");
    }
  }
  regroup(s, x, true, memory);
  for (int64_t i = 0; i < s->positions; i++) {
    cpu_jit_store(env, cpu_jit_buffer(env, s->k->n_inputs), memory[i],
                  s->loc[i], level);
  }
}

// ---- the loops ----

// A row of windows, in vectors, the last of which may be short.
static void row(tiling *s)
{
  cpu_jit_env *env = s->env;
  LLVMValueRef hi = cpu_jit_i64(env, s->columns);
  const bool exact = s->columns % env->lanes == 0;
  cpu_jit_loop loop;
  cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0), hi, env->lanes, NULL, 0);
  s->column = cpu_jit_ix_scalar(loop.iv, loop.level, env->lanes);
  s->mask_level = loop.level;
  s->mask = exact ? NULL : cpu_jit_lanes_below(env, hi, loop.iv, loop.level);
  windows(s);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void set_sizes(tiling *s)
{
  const size_t rank = s->t->rank;
  s->high = rank < 2 ? 1 : listed(s->op, CX_HLO_A_WINDOW_DIMENSIONS, rank - 2);
  s->wide = listed(s->op, CX_HLO_A_WINDOW_DIMENSIONS, rank - 1);
  s->columns = s->source->dims[rank - 1];
  s->rows = cx_hlo_type_elements(s->source) / s->columns;
  s->positions = s->high * s->wide;
  const int lanes = s->env->target->lanes;
  const int64_t per_vector = lanes / s->columns;
  s->whole = lanes % s->columns == 0 && s->rows % per_vector == 0;
  s->segments = s->whole ? 1 : s->high;
  s->each = s->positions / s->segments;
}

calx_status *cpu_jit_kernel_tiled(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  tiling s = { .env = env,
               .k = k,
               .op = op,
               .t = cpu_jit_type(op->operands[0]),
               .source = cpu_jit_type(op->operands[1]) };
  set_sizes(&s);
  const int lanes = env->target->lanes;
  const int64_t each = s.whole ? lanes / s.columns : 1;  // rows
  const int64_t extent = s.rows / each;
  const double elements = (double)(each * s.columns * s.positions);
  k->n_phases = 1;
  k->phases[0] = (cpu_jit_phase){ extent, cpu_jit_grain(env, elements) };
  cpu_jit_function_begin(env, 0, lanes);
  cpu_jit_loop loop;
  const cpu_jit_ix iv =
      cpu_jit_iterations_begin(env, &loop, LLVMGetParam(env->function, 1),
                               LLVMGetParam(env->function, 2), extent);
  s.row = cpu_jit_ix_scale(env, iv, each);
  s.column = cpu_jit_ix_const(env, 0);
  if (s.whole) {
    windows(&s);
  } else {
    row(&s);
  }
  cpu_jit_iterations_end(env, &loop, extent);
  cpu_jit_function_end(env);
  return env->status;
}
