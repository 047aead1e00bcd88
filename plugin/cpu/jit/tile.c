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
#include "hlo/infer.h"
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

bool cpu_jit_lie_apart(const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *source = cpu_jit_type(op->operands[1]);
  for (size_t d = 0; d < t->rank; d++) {
    const int64_t n = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    if (cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) != n ||
        cx_hlo_padding_at(op, d, 0) != 0 || cx_hlo_padding_at(op, d, 1) != 0 ||
        source->dims[d] * n != t->dims[d]) {
      return false;
    }
  }
  return true;
}

bool cpu_jit_is_tiled(const cpu_jit_env *env, const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *source = cpu_jit_type(op->operands[1]);
  int64_t positions = 1;
  for (size_t d = 0; d < t->rank; d++) {
    const int64_t n = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    if (d + 2 < t->rank && n != 1) return false;
    positions *= n;
  }
  if (t->rank == 0 || positions > MOST_POSITIONS || !cpu_jit_lie_apart(op)) {
    return false;
  }
  const int64_t columns = source->dims[t->rank - 1];
  return cx_hlo_type_elements(t) > 0 && columns >= env->target->lanes / 4;
}

// ---- shuffles ----

// Where an element of the vectors of memory belongs: which window of the
// vector, and which position in it.
static void window_of(const tiling *s, int64_t vector, int64_t lane,
                      int *window, int *position)
{
  const int64_t segment = vector / s->each;
  const int64_t at = vector % s->each * s->env->lanes + lane;
  if (!s->whole) {
    *window = (int)(at / s->wide);
    *position = (int)(segment * s->wide + at % s->wide);
    return;
  }
  const int64_t width = s->columns * s->wide;
  *window = (int)(at / (width * s->high) * s->columns + at % width / s->wide);
  *position = (int)(at / width % s->high * s->wide + at % s->wide);
}

// Vectors of memory to vectors of positions, or back.
static void regroup(tiling *s, const cpu_jit_val *from, bool back,
                    cpu_jit_val *to)
{
  cpu_jit_env *env = s->env;
  const int lanes = env->lanes;
  const int n = (int)s->positions;
  LLVMValueRef re[MOST_POSITIONS];
  LLVMValueRef im[MOST_POSITIONS];
  int order[MOST_POSITIONS][64];
  for (int i = 0; i < n; i++) {
    re[i] = from[i].re;
    im[i] = from[i].im;
    for (int k = 0; k < lanes; k++) {
      int window = 0;
      int position = 0;
      window_of(s, i, k, &window, &position);
      if (back) {
        order[i][k] = position * lanes + window;
      } else {
        order[position][window] = i * lanes + k;
      }
    }
  }
  for (int i = 0; i < n; i++) {
    LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
    to[i] = from[0];
    to[i].level = env->n_levels - 1;
    to[i].re = cpu_jit_pick_lanes(env, b, re, n, order[i]);
    if (im[0] != NULL) to[i].im = cpu_jit_pick_lanes(env, b, im, n, order[i]);
  }
}

// ---- locations ----

static LLVMValueRef memory_mask(tiling *s, int64_t vector)
{
  if (s->mask == NULL) return NULL;
  cpu_jit_env *env = s->env;
  int window[64];
  for (int k = 0; k < env->lanes; k++) {
    int position = 0;
    window_of(s, vector, k, &window[k], &position);
  }
  return cpu_jit_shuffle(env, cpu_jit_at(env, s->mask_level), s->mask, NULL,
                         window, env->lanes);
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
    LLVMValueRef keep =
        cpu_jit_widen(
            env, cpu_jit_region_of_two(env, &s->op->regions[0], best, x[q]))
            .re;
    LLVMBuilderRef b = cpu_jit_at(env, level);
    chosen[q] = LLVMBuildNot(b, keep, "");
    for (int64_t i = 0; i < q; i++) {
      chosen[i] = LLVMBuildAnd(b, chosen[i], keep, "");
    }
    if (q + 1 == s->positions) return;
    best = cpu_jit_pick(env, keep, level, best, x[q]);
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
    memory[i] = cpu_jit_emit_wide(env, s->op->operands[0], s->loc[i]);
  }
  regroup(s, memory, false, x);
  choose(s, x, chosen);
  const cpu_jit_val init =
      cpu_jit_emit_wide(env, s->op->operands[2], &env->scalar);
  const cpu_jit_val source =
      cpu_jit_emit_wide(env, s->op->operands[1], source_loc(s));
  const cpu_jit_val sum = cpu_jit_widen(
      env, cpu_jit_region_of_two(env, &s->op->regions[1], init, source));
  if (cpu_jit_failed(env)) return;
  for (int64_t q = 0; q < s->positions; q++) {
    x[q] = cpu_jit_pick(env, chosen[q], level, sum, init);
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
  s->mask = NULL;
  s->column = cpu_jit_vectors_begin(env, &loop, cpu_jit_i64(env, 0), hi,
                                    exact ? NULL : &s->mask);
  s->column.lane = 0;
  s->mask_level = loop.level;
  windows(s);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void set_sizes(tiling *s)
{
  const size_t rank = s->t->rank;
  s->high = rank < 2
                ? 1
                : cx_hlo_op_int_at(s->op, CX_HLO_A_WINDOW_DIMENSIONS, rank - 2);
  s->wide = cx_hlo_op_int_at(s->op, CX_HLO_A_WINDOW_DIMENSIONS, rank - 1);
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
  cpu_jit_function_begin(env, k, 0, extent, cpu_jit_grain(env, elements),
                         lanes);
  cpu_jit_loop loop;
  const cpu_jit_ix iv = cpu_jit_iterations_begin(env, &loop, extent);
  s.row = cpu_jit_ix_scale(env, iv, each);
  s.column = cpu_jit_ix_const(env, 0);
  if (s.whole) {
    windows(&s);
  } else {
    row(&s);
  }
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
  return env->status;
}
