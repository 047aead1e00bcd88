// jit/scatter: the operation scatter, as a root. One phase copies the operand,
// the next goes through the updates in order.
//
// Lanes run along the last dimension of the updates where that is of a window:
// then no two of them meet. Blocks of that dimension, and parts of another one
// of windows, are the iterations where no index moves it; else one iteration
// does all, so that updates of one element follow each other. Of the lanes'
// line only what is in range is gone through; scalars out of range write back
// what they read.
#include "jit/inside.h"
#include "jit/root.h"

#define BLOCKS 8  // of the lanes' dimension, of which each is an iteration
#define BLOCK 32  // elements of a block, at least
#define PARTS 4   // of another dimension of windows
// Fewer updates are one iteration: the ends of the blocks are in cache lines
// that two threads write, which costs more than one thread needs.
#define LEAST_SPLIT (1 << 19)

typedef struct scatter {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  const cx_hlo_op *op;
  const cx_hlo_scatter_numbers *g;
  const cx_hlo_type *to, *indices, *updates;
  int lane;    // the updates' dimension; -1: scalars
  int parted;  // another one; -1: none
  // What of the two is updated here.
  LLVMValueRef lane_lo, lane_hi, part_lo, part_hi;
  cpu_jit_ix at[CPU_JIT_RANK];  // in the updates
  bool inside;                  // where `at` is, nothing is out of range
  LLVMValueRef mask;
  int mask_level;
} scatter;

// The updates' dimension that is the nth of those not in a window.
static int outer_dim(const scatter *s, int nth)
{
  for (size_t d = 0; d < s->updates->rank; d++) {
    if (cpu_jit_position(s->g->window, (int64_t)d) < 0 && nth-- == 0)
      return (int)d;
  }
  return 0;
}

// The updates' dimension that runs along the operand's dimension d within the
// window, or -1.
static int window_dim(const scatter *s, int64_t d)
{
  int nth = 0;
  for (int64_t i = 0; i < d; i++) {
    if (cpu_jit_position(s->g->inserted, i) < 0 &&
        cpu_jit_position(s->g->operand_batch, i) < 0) {
      nth++;
    }
  }
  if (cpu_jit_position(s->g->inserted, d) >= 0 ||
      cpu_jit_position(s->g->operand_batch, d) >= 0) {
    return -1;
  }
  return (int)s->g->window.v[nth];
}

static cpu_jit_ix start_of(scatter *s, int component)
{
  cpu_jit_env *env = s->env;
  cpu_jit_loc p = { 0 };
  int nth = 0;
  for (size_t d = 0; d < s->indices->rank; d++) {
    if ((int64_t)d == s->g->index_vector_dim) {
      cpu_jit_loc_push(&p, 1, s->indices->dims[d],
                       cpu_jit_ix_const(env, component));
    } else {
      cpu_jit_loc_push(&p, 1, s->indices->dims[d], s->at[outer_dim(s, nth++)]);
    }
  }
  const cpu_jit_val v =
      cpu_jit_emit(env, s->op->operands[1], cpu_jit_loc_of(env, &p));
  const bool u = cx_hlo_elem_is_unsigned(v.elem) || v.elem == CX_HLO_I1;
  return cpu_jit_ix_scalar(cpu_jit_resize(env, v.re, env->i64, !u, v.level),
                           v.level, 1);
}

// The element's index in the result's dimension d, with its place in the window
// unless that runs along the lanes and they are `apart`.
static cpu_jit_ix index_in(scatter *s, size_t d, bool apart)
{
  cpu_jit_env *env = s->env;
  cpu_jit_ix ix = cpu_jit_ix_const(env, 0);
  const int batch = cpu_jit_position(s->g->operand_batch, (int64_t)d);
  const int k = cpu_jit_position(s->g->index_map, (int64_t)d);
  const int w = window_dim(s, (int64_t)d);
  if (w >= 0 && !(apart && w == s->lane)) ix = s->at[w];
  if (batch >= 0) {
    int64_t nth = s->g->indices_batch.v[batch];
    if (nth > s->g->index_vector_dim) nth--;
    ix = s->at[outer_dim(s, (int)nth)];
  }
  return k >= 0 ? cpu_jit_ix_add(env, ix, start_of(s, k)) : ix;
}

// The element's location in the result; *ok: whether it is there.
static void target_loc(scatter *s, cpu_jit_loc *out, LLVMValueRef *ok,
                       int level)
{
  cpu_jit_env *env = s->env;
  for (size_t d = 0; d < s->to->rank; d++) {
    cpu_jit_ix ix = index_in(s, d, false);
    if (!s->inside && cpu_jit_position(s->g->index_map, (int64_t)d) >= 0) {
      LLVMValueRef most = cpu_jit_i64(env, s->to->dims[d]);
      LLVMValueRef c =
          cpu_jit_compare(env, LLVMIntULT, ix.base, most, ix.level);
      ix.base = cpu_jit_choose(env, c, ix.base, cpu_jit_i64(env, 0), ix.level);
      *ok = *ok == NULL ? c : cpu_jit_op2(env, LLVMAnd, *ok, c, level);
    }
    cpu_jit_loc_push(out, 1, s->to->dims[d], ix);
  }
}

static void update(scatter *s)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  cpu_jit_loc from = { .mask = s->mask, .mask_level = s->mask_level };
  for (size_t d = 0; d < s->updates->rank; d++) {
    cpu_jit_loc_push(&from, 1, s->updates->dims[d], s->at[d]);
  }
  cpu_jit_loc to = { .mask_level = level };
  LLVMValueRef ok = NULL;
  target_loc(s, &to, &ok, level);
  to.mask = s->mask;
  cpu_jit_val x =
      cpu_jit_emit(env, s->op->operands[2], cpu_jit_loc_of(env, &from));
  LLVMValueRef memory = cpu_jit_buffer(env, s->k->n_inputs);
  // Not hoisted: it reads what an earlier update wrote.
  cpu_jit_val old = cpu_jit_load_at(env, memory, s->to->elem, &to, level);
  if (s->lane >= 0) {
    old = cpu_jit_widen(env, old);
    x = cpu_jit_widen(env, x);
  }
  cpu_jit_val out = cpu_jit_region_of_two(env, &s->op->regions[0], old, x);
  if (ok != NULL) out = cpu_jit_pick(env, ok, level, out, old);
  cpu_jit_store(env, memory, out, &to, level);
}

// Of the lanes' elements [*lo, *hi) those that are in range; none where another
// index is not.
static void limit(scatter *s, LLVMValueRef *lo, LLVMValueRef *hi)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  for (size_t d = 0; d < s->to->rank; d++) {
    if (cpu_jit_position(s->g->index_map, (int64_t)d) < 0) continue;
    LLVMValueRef ix = index_in(s, d, true).base;
    LLVMValueRef n = cpu_jit_i64(env, s->to->dims[d]);
    if (window_dim(s, (int64_t)d) != s->lane) {
      LLVMValueRef in = cpu_jit_compare(env, LLVMIntULT, ix, n, level);
      *hi = cpu_jit_choose(env, in, *hi, *lo, level);
      continue;
    }
    LLVMValueRef least =
        cpu_jit_op2(env, LLVMSub, cpu_jit_i64(env, 0), ix, level);
    LLVMValueRef more = cpu_jit_compare(env, LLVMIntSGT, least, *lo, level);
    *lo = cpu_jit_choose(env, more, least, *lo, level);
    *hi =
        cpu_jit_least(env, *hi, cpu_jit_op2(env, LLVMSub, n, ix, level), level);
  }
  LLVMValueRef none = cpu_jit_compare(env, LLVMIntSLT, *hi, *lo, level);
  *hi = cpu_jit_choose(env, none, *lo, *hi, level);
}

static void vectors_of(scatter *s, LLVMValueRef lo, LLVMValueRef hi,
                       bool masked)
{
  cpu_jit_env *env = s->env;
  const int lane = s->lane;
  cpu_jit_loop loop;
  s->mask = NULL;
  s->at[lane] =
      cpu_jit_vectors_begin(env, &loop, lo, hi, masked ? &s->mask : NULL);
  s->at[lane].multiple = 1;
  s->mask_level = loop.level;
  if (env->lanes == 1) s->lane = -1;
  update(s);
  s->lane = lane;
  s->mask = NULL;
  cpu_jit_loop_end(env, &loop, NULL);
}

// Whether an index moves the windows along the updates' dimension.
static bool is_moved(const scatter *s, int dim)
{
  for (size_t d = 0; d < s->to->rank; d++) {
    if (window_dim(s, (int64_t)d) == dim) {
      return cpu_jit_position(s->g->index_map, (int64_t)d) >= 0;
    }
  }
  return true;
}

// The updates of the lanes at hand: whole vectors, and for what is left one
// with a mask, or single elements where stores with masks are slow.
static void row(scatter *s)
{
  cpu_jit_env *env = s->env;
  s->inside = s->lane >= 0;
  if (s->lane < 0) {
    update(s);
    return;
  }
  LLVMValueRef lo = s->lane_lo, hi = s->lane_hi;
  limit(s, &lo, &hi);
  const int lanes = env->lanes;
  const bool whole =
      s->updates->dims[s->lane] % lanes == 0 && !is_moved(s, s->lane);
  LLVMValueRef full =
      whole ? hi : cpu_jit_whole_end(env, lo, hi, env->n_levels - 1);
  vectors_of(s, lo, full, false);
  if (whole) return;
  cpu_jit_forget(env);
  if (env->target->has_masks) {
    vectors_of(s, full, hi, true);
    return;
  }
  env->lanes = 1;
  vectors_of(s, full, hi, false);
  env->lanes = lanes;
  cpu_jit_forget(env);
}

// Loops over the updates' dimensions, those outside of windows first, that of
// the lanes last. At most the rank of them.
static void loops(scatter *s, int pass, size_t d)
{
  cpu_jit_env *env = s->env;
  while (d < s->updates->rank &&
         ((int)d == s->lane ||
          (cpu_jit_position(s->g->window, (int64_t)d) >= 0) != (pass == 1))) {
    d++;
  }
  if (d == s->updates->rank) {
    if (pass == 0) {
      loops(s, 1, 0);
    } else {
      row(s);
    }
    return;
  }
  cpu_jit_loop loop;
  s->at[d] =
      (int)d == s->parted
          ? cpu_jit_loop_begin(env, &loop, s->part_lo, s->part_hi, 1, NULL, 0)
          : cpu_jit_count_begin(env, &loop, s->updates->dims[d]);
  loops(s, pass, d + 1);
  cpu_jit_loop_end(env, &loop, NULL);
}

// The first dimension of windows that no index moves, beside the lanes': its
// parts do not meet either.
static int parted_dim(const scatter *s)
{
  for (int d = 0; d < (int)s->updates->rank; d++) {
    if (d != s->lane && s->updates->dims[d] > 1 &&
        cpu_jit_position(s->g->window, d) >= 0 && !is_moved(s, d)) {
      return d;
    }
  }
  return -1;
}

static void second_phase(scatter *s, cpu_jit_kernel *k)
{
  cpu_jit_env *env = s->env;
  const int last = (int)s->updates->rank - 1;
  const int lanes = env->target->lanes;
  const bool window = last >= 0 && cpu_jit_position(s->g->window, last) >= 0;
  s->lane = window && s->updates->dims[last] >= lanes / 2 ? last : -1;
  s->parted = parted_dim(s);
  const bool moved = s->lane >= 0 && is_moved(s, s->lane);
  const int64_t size = s->lane >= 0 ? s->updates->dims[s->lane] : 1;
  const int64_t wide = (size / BLOCKS + lanes - 1) / lanes * lanes;
  const bool whole = moved || cx_hlo_type_elements(s->updates) < LEAST_SPLIT;
  if (whole) s->parted = -1;
  const int64_t block = whole ? size : (wide < BLOCK ? BLOCK : wide);
  const int64_t blocks = (size + block - 1) / block;
  const int64_t of = s->parted < 0 ? 1 : s->updates->dims[s->parted];
  const int64_t step = (of + PARTS - 1) / PARTS;
  const int64_t extent = blocks * ((of + step - 1) / step);
  const double each = (double)cx_hlo_type_elements(s->updates) / (double)extent;
  cpu_jit_function_begin(env, k, 1, extent, cpu_jit_grain(env, each),
                         s->lane >= 0 ? lanes : 1);
  cpu_jit_loop loop;
  cpu_jit_ix part, which;
  const cpu_jit_ix iv =
      cpu_jit_loop_begin(env, &loop, env->lo, env->hi, 1, NULL, 0);
  cpu_jit_ix_split(env, iv, blocks, extent, false, &part, &which);
  s->part_lo = cpu_jit_ix_block(env, part, step, of, &s->part_hi).base;
  s->lane_lo = cpu_jit_ix_block(env, which, block, size, &s->lane_hi).base;
  loops(s, 0, 0);
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
}

calx_status *cpu_jit_kernel_scatter(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  scatter s = { .env = env,
                .k = k,
                .op = op,
                .g = cx_hlo_op_struct(op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS),
                .to = cpu_jit_type(op->operands[0]),
                .indices = cpu_jit_type(op->operands[1]),
                .updates = cpu_jit_type(op->operands[2]) };
  const cpu_jit_slot *slot = cpu_jit_slot_of(env, op->operands[0]);
  cpu_jit_phase_copy(env, k, 0, op->operands[0], 0,
                     slot->kind == CPU_JIT_SLOT_BUFFER);
  if (cx_hlo_type_elements(s.to) == 0 || cx_hlo_type_elements(s.updates) == 0 ||
      cpu_jit_failed(env)) {
    return env->status;
  }
  second_phase(&s, k);
  return env->status;
}
