// jit/loop: kernels whose outputs have one element for each element.
//
// The outputs' dimensions are merged into runs. The last run is the inner loop,
// in vectors, cut into blocks where it is long; the others and the blocks are
// the phase's iterations. Where the last run is much shorter than a vector, all
// dimensions are one run and indices are divided lane by lane. A concatenation
// of long pieces is a nest for each of them. Where all
// dimensions are one run by themselves, an iteration is an element: such code
// knows no sizes, so that loops that differ in them alone are one function, or
// two: long tensors are read ahead.
// Where the last run is short and no whole number of vectors, and all that is
// read beside it repeats with it, an iteration is so many runs that they are
// whole vectors: which elements of what repeats these need is known.
// Rows of a few columns are in columns.c.
#include "hlo/infer.h"
#include "jit/nest.h"
#include "jit/root.h"

#define FEW_VECTORS 8     // of which a loop may have masks throughout
#define EXPENSIVE_NS 0.4  // per element
#define LONG_NS 1.0       // of which several vectors are computed together
#define PERIOD_VECTORS 8  // of an iteration of several runs
#define PERIOD_OPS 240    // … operations in its code

// The vectors of [lo, hi), whole ones, or (masked) each with the mask of what
// is below hi. lo is a multiple of `multiple`.
static void vectors_of(cpu_jit_env *env, const cpu_jit_work *k,
                       const cpu_jit_nest *s, const cpu_jit_loc *outer,
                       LLVMValueRef lo, LLVMValueRef hi, int64_t multiple,
                       bool masked)
{
  cpu_jit_loop loop;
  LLVMValueRef mask = NULL;
  cpu_jit_ix iv =
      cpu_jit_vectors_begin(env, &loop, lo, hi, masked ? &mask : NULL);
  iv.multiple = multiple;
  cpu_jit_store_at(env, k, s, outer, iv, mask);
  cpu_jit_loop_end(env, &loop, NULL);
}

// Masks of small elements cost as much as half the loop.
static bool has_small_elements(const cpu_jit_kernel *k)
{
  for (size_t i = 0; i < k->n_inputs; i++) {
    if (cx_hlo_elem_bytes(cpu_jit_type(k->inputs[i])->elem) < 4) return true;
  }
  for (size_t i = 0; i < k->n_outputs; i++) {
    if (cx_hlo_elem_bytes(cpu_jit_type(k->outputs[i])->elem) < 4) return true;
  }
  return false;
}

// Whether every third or fourth element is read: without a mask that is three
// or four loads, and with one each element is gathered.
static bool reads_spaced(const cpu_jit_kernel *k)
{
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    const size_t rank = cpu_jit_type(&op->results[0])->rank;
    if (op->kind != CX_HLO_OP_SLICE || rank == 0) continue;
    const int64_t step = cx_hlo_op_int_at(op, CX_HLO_A_STRIDES, rank - 1);
    if (step == 3 || step == 4) return true;
  }
  return false;
}

// Whether a loop with a mask is better than one without and code for its end:
// where masks cost nothing, or the end would be much of the work or most of
// the code.
static bool prefers_masks(const cpu_jit_env *env, int64_t inner)
{
  return env->target->has_masks && env->small && !reads_spaced(env->kernel) &&
         (inner < FEW_VECTORS * env->lanes || env->element_ns > EXPENSIVE_NS ||
          !has_small_elements(env->kernel));
}

// The elements [lo, hi) of the only run.
static void open_vectors(cpu_jit_env *env, const cpu_jit_work *k,
                         const cpu_jit_nest *s)
{
  LLVMValueRef lo = env->lo, hi = env->hi;
  const cpu_jit_loc outer = { .n = 0 };
  if (prefers_masks(env, INT64_MAX)) {
    vectors_of(env, k, s, &outer, lo, hi, 1, true);
    return;
  }
  LLVMValueRef full = cpu_jit_whole_end(env, lo, hi, 0);
  vectors_of(env, k, s, &outer, lo, full, 1, false);
  vectors_of(env, k, s, &outer, full, hi, 1, true);
}

static void vectors(cpu_jit_env *env, const cpu_jit_work *k,
                    const cpu_jit_nest *s, const cpu_jit_loc *outer,
                    cpu_jit_ix start)
{
  const int64_t lanes = env->lanes;
  LLVMValueRef hi = cpu_jit_i64(env, s->inner);
  if (s->blocks > 1) {
    cpu_jit_ix end = cpu_jit_ix_offset(env, start, s->block);
    hi = cpu_jit_least(env, end.base, hi, end.level);
  }
  // Blocks are whole vectors, so only the last of the run has a tail.
  const int64_t tail = s->inner % lanes;
  if (tail == 0) {
    vectors_of(env, k, s, outer, start.base, hi, lanes, false);
    return;
  }
  if (s->inner < lanes || prefers_masks(env, s->inner)) {
    vectors_of(env, k, s, outer, start.base, hi, lanes, true);
    return;
  }
  LLVMValueRef full =
      cpu_jit_op2(env, LLVMAnd, hi, cpu_jit_i64(env, -lanes), start.level);
  vectors_of(env, k, s, outer, start.base, full, lanes, false);
  vectors_of(env, k, s, outer, full, hi, lanes, true);
}

// ---- several runs at a time ----

static int64_t greatest_divisor(int64_t a, int64_t b)
{
  return b == 0 ? a : greatest_divisor(b, a % b);
}

// Whether what is read from other indices repeats with the inner run.
static bool repeats(const cpu_jit_kernel *k, int64_t inner)
{
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    if (cpu_jit_class_of(op) == CPU_JIT_ELEMENT ||
        op->kind == CX_HLO_OP_CONSTANT) {
      continue;
    }
    if (op->kind != CX_HLO_OP_BROADCAST_IN_DIM ||
        cpu_jit_elements(op->operands[0]) > inner) {
      return false;
    }
  }
  return true;
}

// The elements of an iteration of several runs; 0: they are not worth it.
static int64_t period_of(const cpu_jit_env *env, const cpu_jit_kernel *k,
                         const cpu_jit_work *w, const cpu_jit_nest *s)
{
  const int64_t lanes = env->target->lanes;
  if (s->n != 2 || w->update != NULL || s->inner < 2 || s->inner % lanes == 0) {
    return 0;
  }
  const int64_t vectors = s->inner / greatest_divisor(s->inner, lanes);
  return vectors <= PERIOD_VECTORS &&
                 vectors * (int64_t)k->n_ops <= PERIOD_OPS &&
                 s->sizes[0] * s->inner % (vectors * lanes) == 0 &&
                 repeats(k, s->inner)
             ? vectors * lanes
             : 0;
}

static void periods(cpu_jit_env *env, const cpu_jit_work *w,
                    const cx_hlo_type *t, int64_t period, int64_t extent)
{
  cpu_jit_nest flat = { 0 };
  flat.n = cpu_jit_runs(t, 0, flat.dims, flat.sizes);
  flat.inner = flat.sizes[0];
  const cpu_jit_loc outer = { .n = 0 };
  cpu_jit_loop loop;
  const cpu_jit_ix first = cpu_jit_ix_scale(
      env, cpu_jit_iterations_begin(env, &loop, extent), period);
  for (int64_t at = 0; at < period; at += env->lanes) {
    cpu_jit_ix ix = cpu_jit_ix_offset(env, first, at);
    ix.lane = 1;
    ix.period = period;
    ix.residue = at;
    cpu_jit_store_at(env, w, &flat, &outer, ix, NULL);
  }
  cpu_jit_loop_end(env, &loop, NULL);
}

static void nested_vectors(cpu_jit_env *env, const cpu_jit_work *k,
                           const cpu_jit_nest *s, int64_t extent)
{
  cpu_jit_loop loop;
  cpu_jit_loc p;
  const cpu_jit_ix iv = cpu_jit_iterations_begin(env, &loop, extent);
  const cpu_jit_ix start = cpu_jit_iteration(env, s, iv, extent, &p);
  vectors(env, k, s, &p, start);
  cpu_jit_loop_end(env, &loop, NULL);
}

// Whether all is computed at the same place, as floats of so many bytes at
// least.
static bool is_plain(const cpu_jit_kernel *k, size_t least_bytes)
{
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    const cpu_jit_class class = cpu_jit_class_of(op);
    const cx_hlo_elem e = cpu_jit_type(&op->results[0])->elem;
    const bool number = e == CX_HLO_F32 || e == CX_HLO_F16 || e == CX_HLO_BF16;
    if ((class != CPU_JIT_ELEMENT && op->kind != CX_HLO_OP_CONSTANT &&
         op->kind != CX_HLO_OP_BROADCAST_IN_DIM) ||
        (e != CX_HLO_I1 && (!number || cx_hlo_elem_bytes(e) < least_bytes))) {
      return false;
    }
  }
  return least_bytes < 4 || !has_small_elements(k);
}

// In a long chain each instruction waits for the one before, so several chains
// side by side take hardly longer than one. With 16 registers there are two,
// and some of their values go through memory; with AVX-512's 32 there are four.
// Masks of small elements take too many instructions where every vector has
// one.
static int loop_lanes(const cpu_jit_env *env, const cpu_jit_nest *s)
{
  const int lanes = env->target->lanes;
  if (s->inner == 1) return 1;
  const bool masks = env->target->has_masks;
  const bool wide = masks || (env->target->has_fma && lanes == 8);
  if (!s->open || !wide || env->element_ns <= LONG_NS ||
      !is_plain(env->kernel, masks ? 4 : 2)) {
    return lanes;
  }
  return masks ? 4 * lanes : 2 * lanes;
}

static calx_status *emit_phase(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                               const cpu_jit_work *w)
{
  const cx_hlo_type *t = cpu_jit_type(w->values[0]);
  uint32_t cuts = 0;
  for (size_t i = 0; i < w->n; i++) {
    cuts |= cpu_jit_slot_of(env, w->values[i])->need;
  }
  if (w->update != NULL) cuts |= cpu_jit_update_cuts(w->update);
  if (cpu_jit_columns(env, k, phase, w, t, cuts)) return env->status;
  const cpu_jit_nest s = cpu_jit_nest_of(env, t, cuts);
  int64_t extent = cpu_jit_nest_extent(&s);
  const int64_t period = period_of(env, k, w, &s);
  if (period > 0) extent = extent * s.inner / period;
  const double each = (double)cx_hlo_type_elements(t) / (double)extent;
  cpu_jit_function_begin(env, k, phase, extent,
                         extent > 0 ? cpu_jit_grain(env, each) : 1,
                         loop_lanes(env, &s));
  if (w->in_place) {
    k->phases[phase].from = (int64_t)cpu_jit_slot_of(env, w->values[0])->input;
    k->phases[phase].to = (int64_t)w->buffer;
  }
  if (extent > 0 && s.open) open_vectors(env, w, &s);
  if (extent > 0 && period > 0) periods(env, w, t, period, extent);
  if (extent > 0 && !s.open && period == 0) {
    nested_vectors(env, w, &s, extent);
  }
  cpu_jit_function_end(env);
  return env->status;
}

// The blocks of the operands, one operand's after the other's; returns how
// many there are. Without a function that has begun it only counts them.
static int64_t pieces(cpu_jit_env *env, const cpu_jit_kernel *k, bool emits)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  const size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  const LLVMValueRef lo = env->lo, hi = env->hi;
  int64_t begin = 0, first = 0;
  for (size_t i = 0; i < op->n_operands && !cpu_jit_failed(env); i++) {
    const cx_hlo_value *v = op->operands[i];
    const cx_hlo_type *t = cpu_jit_type(v);
    if (cx_hlo_type_elements(t) == 0) continue;
    cpu_jit_nest s =
        cpu_jit_nest_of(env, t, cpu_jit_need_of(env, v) | (uint32_t)1 << d);
    s.open = false;  // the iterations of all pieces are counted in blocks
    const int64_t extent = cpu_jit_nest_extent(&s);
    if (emits) {
      const cpu_jit_work w = {
        .values = &v, .n = 1, .buffer = k->n_inputs, .whole = op, .first = first
      };
      LLVMValueRef none = cpu_jit_i64(env, 0);
      cpu_jit_forget(env);  // what the loop of another piece has computed
      env->lo = cpu_jit_op2(env, LLVMSub, lo, cpu_jit_i64(env, begin), 0);
      LLVMValueRef before = cpu_jit_compare(env, LLVMIntSLT, env->lo, none, 0);
      env->lo = cpu_jit_choose(env, before, none, env->lo, 0);
      env->hi = cpu_jit_op2(env, LLVMSub, hi, cpu_jit_i64(env, begin), 0);
      env->hi = cpu_jit_least(env, env->hi, cpu_jit_i64(env, extent), 0);
      nested_vectors(env, &w, &s, extent);
    }
    begin += extent;
    first += t->dims[d];
  }
  env->lo = lo;
  env->hi = hi;
  return begin;
}

static calx_status *emit_pieces(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const int64_t extent = pieces(env, k, false);
  const double each = (double)cpu_jit_elements(k->outputs[0]) / (double)extent;
  cpu_jit_function_begin(env, k, 0, extent, cpu_jit_grain(env, each),
                         env->target->lanes);
  pieces(env, k, true);
  cpu_jit_function_end(env);
  return env->status;
}

calx_status *cpu_jit_kernel_loop(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  if (k->n_outputs == 1 && op != NULL && cpu_jit_has_pieces(op)) {
    return emit_pieces(env, k);
  }
  if (cpu_jit_kernel_turned(env, k)) return env->status;
  const cpu_jit_work w = { .values = k->outputs,
                           .n = k->n_outputs,
                           .buffer = k->n_inputs };
  return emit_phase(env, k, 0, &w);
}

void cpu_jit_phase_copy(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                        const cx_hlo_value *value, size_t output, bool in_place)
{
  const cpu_jit_slot *slot = cpu_jit_slot_of(env, value);
  const cpu_jit_work w = { .values = &value,
                           .n = 1,
                           .buffer = k->n_inputs + output,
                           .in_place = in_place && slot->input != SIZE_MAX };
  emit_phase(env, k, phase, &w);
}

calx_status *cpu_jit_kernel_update(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  const cx_hlo_value *const *update =
      (const cx_hlo_value *const *)&op->operands[1];
  const cpu_jit_work w = {
    .values = update, .n = 1, .buffer = k->n_inputs, .update = op
  };
  const bool input =
      cpu_jit_slot_of(env, op->operands[0])->kind == CPU_JIT_SLOT_BUFFER;
  cpu_jit_phase_copy(env, k, 0, op->operands[0], 0, input);
  return emit_phase(env, k, 1, &w);
}
