// jit/select: the operation select_and_scatter, as a root.
//
// An iteration is one plane: the dimensions that have no window are fixed, but
// for the last dimension, along which the lanes run. The plane is filled with
// the initial value; then each window chooses its element, and for each
// position in the window the lanes that chose it add their source to it. Lanes
// never meet: at one position they are a stride apart. Where windows lie side
// by side, each element is in one window, which writes it: nothing is filled,
// and windows are met in the order in which they lie in memory. An iteration
// then fixes the dimensions up to the first that has windows.
#include "hlo/infer.h"
#include "jit/inside.h"
#include "jit/root.h"

typedef struct selecting {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  const cx_hlo_op *op;
  const cx_hlo_type *t, *source;
  int lane;
  cpu_jit_ix at[CPU_JIT_RANK];  // of the element, or of the window
  LLVMValueRef mask;            // lanes within the source
  int mask_level;
  cpu_jit_val init;
  bool apart;                // the windows lie side by side
  bool fixed[CPU_JIT_RANK];  // which dimensions an iteration fixes
} selecting;

static bool is_plain(const cx_hlo_op *op, size_t d)
{
  return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d) == 1 &&
         cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) == 1 &&
         cx_hlo_padding_at(op, d, 0) == 0 && cx_hlo_padding_at(op, d, 1) == 0;
}

// ---- loops over a plane ----

typedef void visit_fn(selecting *s);

// The lanes' dimension in whole vectors, the last of which begins earlier and
// computes some elements again. Only where windows lie side by side: nothing
// that a window writes is read.
static void begin_whole_vectors(selecting *s, cpu_jit_loop *loop, int64_t size)
{
  cpu_jit_env *env = s->env;
  const int64_t lanes = env->lanes;
  const cpu_jit_ix i =
      cpu_jit_count_begin(env, loop, (size + lanes - 1) / lanes);
  LLVMBuilderRef b = cpu_jit_at(env, i.level);
  LLVMValueRef last = cpu_jit_i64(env, size - lanes);
  LLVMValueRef at = LLVMBuildMul(b, i.base, cpu_jit_i64(env, lanes), "");
  LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, at, last, "");
  at = LLVMBuildSelect(b, less, at, last, "");
  s->at[s->lane] = cpu_jit_ix_scalar(at, i.level, 1);
  s->at[s->lane].lane = lanes == 1 ? 0 : 1;
  s->mask = LLVMConstAllOnes(cpu_jit_wide_type(env, env->i1));
  s->mask_level = 0;
}

// The lanes' dimension with a mask of those within it.
static void begin_vectors(selecting *s, cpu_jit_loop *loop, int64_t size)
{
  cpu_jit_env *env = s->env;
  s->at[s->lane] = cpu_jit_vectors_begin(env, loop, cpu_jit_i64(env, 0),
                                         cpu_jit_i64(env, size), &s->mask);
  s->mask_level = loop->level;
}

static void fix_dims(selecting *s)
{
  bool found = false;
  for (int d = 0; d < s->lane; d++) {
    const bool plain = is_plain(s->op, (size_t)d);
    s->fixed[d] = s->apart ? !found : plain;
    found = found || !plain;
  }
}

// From dimension d on: of the operand's sizes or the source's. At most the rank
// of them.
static void visit(selecting *s, const cx_hlo_type *t, size_t d, visit_fn *fn)
{
  cpu_jit_env *env = s->env;
  while (d < t->rank && s->fixed[d]) d++;
  if (d == t->rank) {
    fn(s);
    return;
  }
  cpu_jit_loop loop;
  if ((int)d == s->lane) {
    const bool whole = s->apart && t->dims[d] >= env->lanes;
    (whole ? begin_whole_vectors : begin_vectors)(s, &loop, t->dims[d]);
  } else {
    s->at[d] = cpu_jit_count_begin(env, &loop, t->dims[d]);
  }
  visit(s, t, d + 1, fn);
  cpu_jit_loop_end(env, &loop, NULL);
}

static const cpu_jit_loc *loc_at(selecting *s, const cx_hlo_type *t)
{
  cpu_jit_loc p = { .mask = s->mask, .mask_level = s->mask_level };
  for (size_t d = 0; d < t->rank; d++) {
    cpu_jit_loc_push(&p, 1, t->dims[d], s->at[d]);
  }
  return cpu_jit_loc_of(s->env, &p);
}

static void fill(selecting *s)
{
  cpu_jit_env *env = s->env;
  cpu_jit_store(env, cpu_jit_buffer(env, s->k->n_inputs), s->init,
                loc_at(s, s->t), env->n_levels - 1);
}

// ---- one vector of windows ----

// The location of position q of the window, and the lanes for which it is in
// the operand.
static LLVMValueRef position_loc(selecting *s, int64_t q, cpu_jit_loc *out)
{
  cpu_jit_env *env = s->env;
  const cx_hlo_op *op = s->op;
  const int level = env->n_levels - 1;
  cpu_jit_inside in = { 0 };
  *out = (cpu_jit_loc){ .mask_level = level };
  int64_t offset[CPU_JIT_RANK];
  for (size_t d = s->t->rank; d-- > 0;) {
    const int64_t n = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    offset[d] = q % n;
    q /= n;
  }
  for (size_t d = 0; d < s->t->rank; d++) {
    const int64_t stride = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d);
    const int64_t low = cx_hlo_padding_at(op, d, 0);
    cpu_jit_ix ix = cpu_jit_ix_scale(env, s->at[d], stride);
    ix = cpu_jit_ix_offset(env, ix, offset[d] - low);
    const int64_t last = (s->source->dims[d] - 1) * stride + offset[d] - low;
    if (offset[d] < low || last >= s->t->dims[d]) {
      cpu_jit_within(env, &ix, s->t->dims[d], &in);
    }
    cpu_jit_loc_push(out, 1, s->t->dims[d], ix);
  }
  LLVMValueRef mask = s->mask;
  if (in.lanes != NULL) mask = cpu_jit_op2(env, LLVMAnd, mask, in.lanes, level);
  if (in.all != NULL) {
    LLVMValueRef all = cpu_jit_splat(env, in.all, in.all_level);
    mask = cpu_jit_op2(env, LLVMAnd, mask, all, level);
  }
  if (in.never) mask = LLVMConstNull(LLVMTypeOf(mask));
  out->mask = mask;
  return mask;
}

// The position that each lane chooses; -1: none.
static LLVMValueRef chosen(selecting *s, int64_t total)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  LLVMTypeRef t = cpu_jit_wide_type(env, env->i32);
  LLVMValueRef none = cpu_jit_const_int(t, UINT32_MAX);
  LLVMValueRef where = none;
  cpu_jit_val best = { 0 };
  for (int64_t q = 0; q < total; q++) {
    cpu_jit_loc p;
    LLVMValueRef in = position_loc(s, q, &p);
    cpu_jit_val x =
        cpu_jit_emit_wide(env, s->op->operands[0], cpu_jit_loc_of(env, &p));
    LLVMBuilderRef b = cpu_jit_at(env, level);
    LLVMValueRef take = in;
    if (q > 0) {
      const cpu_jit_val keep = cpu_jit_widen(
          env, cpu_jit_region_of_two(env, &s->op->regions[0], best, x));
      LLVMValueRef empty = LLVMBuildICmp(b, LLVMIntEQ, where, none, "");
      LLVMValueRef loses = LLVMBuildNot(b, keep.re, "");
      take = LLVMBuildAnd(b, in, LLVMBuildOr(b, empty, loses, ""), "");
      x = cpu_jit_pick(env, take, level, x, best);
    }
    best = x;
    best.level = level;
    where =
        LLVMBuildSelect(b, take, cpu_jit_const_int(t, (uint64_t)q), where, "");
  }
  return where;
}

static int64_t window_size(const selecting *s)
{
  int64_t total = 1;
  for (size_t d = 0; d < s->t->rank; d++) {
    total *= cx_hlo_op_int_at(s->op, CX_HLO_A_WINDOW_DIMENSIONS, d);
  }
  return total;
}

static void window(selecting *s)
{
  cpu_jit_env *env = s->env;
  const int level = env->n_levels - 1;
  const int64_t total = window_size(s);
  LLVMValueRef memory = cpu_jit_buffer(env, s->k->n_inputs);
  LLVMTypeRef t = cpu_jit_wide_type(env, env->i32);
  LLVMValueRef where = chosen(s, total);
  const cpu_jit_val source =
      cpu_jit_emit_wide(env, s->op->operands[1], loc_at(s, s->source));
  for (int64_t q = 0; q < total && !cpu_jit_failed(env); q++) {
    cpu_jit_loc p;
    position_loc(s, q, &p);
    LLVMBuilderRef b = cpu_jit_at(env, level);
    LLVMValueRef is = LLVMBuildICmp(b, LLVMIntEQ, where,
                                    cpu_jit_const_int(t, (uint64_t)q), "");
    if (s->apart) {
      const cpu_jit_val sum = cpu_jit_region_of_two(
          env, &s->op->regions[1], cpu_jit_widen(env, s->init), source);
      const cpu_jit_val out = cpu_jit_pick(
          env, is, level, cpu_jit_widen(env, sum), cpu_jit_widen(env, s->init));
      cpu_jit_store(env, memory, out, &p, level);
      continue;
    }
    p.mask = LLVMBuildAnd(b, is, s->mask, "");
    p.mask_level = level;
    cpu_jit_val old = cpu_jit_load_at(env, memory, s->t->elem, &p, level);
    const cpu_jit_val out = cpu_jit_region_of_two(
        env, &s->op->regions[1], cpu_jit_widen(env, old), source);
    cpu_jit_store(env, memory, cpu_jit_widen(env, out), &p, level);
  }
}

calx_status *cpu_jit_kernel_select(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  selecting s = { .env = env,
                  .k = k,
                  .op = op,
                  .t = cpu_jit_type(op->operands[0]),
                  .source = cpu_jit_type(op->operands[1]) };
  s.lane = (int)s.t->rank - 1;
  s.apart = cpu_jit_lie_apart(op);
  fix_dims(&s);
  int64_t extent = 1;
  for (size_t d = 0; d < s.t->rank; d++) {
    if (s.fixed[d]) extent *= s.source->dims[d];
  }
  const double elements = (double)cx_hlo_type_elements(s.t);
  if (elements == 0) extent = 0;
  cpu_jit_function_begin(
      env, k, 0, extent,
      extent > 0 ? cpu_jit_grain(env, 4 * elements / (double)extent) : 1,
      env->target->lanes);
  if (extent > 0) {
    cpu_jit_loop loop;
    cpu_jit_ix rest = cpu_jit_iterations_begin(env, &loop, extent);
    int64_t size = extent;
    for (int d = s.lane - 1; d >= 0; d--) {
      if (!s.fixed[d]) continue;
      s.at[d] = cpu_jit_ix_take(env, &rest, &size, s.source->dims[d]);
    }
    s.init = cpu_jit_emit_wide(env, op->operands[2], &env->scalar);
    if (!s.apart) visit(&s, s.t, 0, fill);
    visit(&s, s.source, 0, window);
    cpu_jit_loop_end(env, &loop, NULL);
  }
  cpu_jit_function_end(env);
  return env->status;
}
