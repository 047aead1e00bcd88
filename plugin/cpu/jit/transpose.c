// jit/transpose: loops over elements that a transpose takes from far apart.
//
// Where neighbours along the inner run of the outputs are not neighbours in
// memory, but those along another run are, a square of both runs is one step:
// as many vectors are read along the other run as a vector has lanes, shuffles
// turn the square, and the loop's body follows for each of its rows, with what
// the transpose gives known.
#include "jit/emit.h"

#define MOST_OPS 12    // of a kernel: the body is there once for each row
#define MOST_TURNED 2  // transposes
#define LEAST 8        // squares that are worth the code

typedef struct turning {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  int n, across;  // runs; the one whose neighbours are in memory
  int dims[CPU_JIT_RANK];
  int64_t sizes[CPU_JIT_RANK];
  const cx_hlo_value *turned[MOST_TURNED];
  size_t n_turned;
  cpu_jit_ix index[CPU_JIT_RANK];     // of the outer runs
  LLVMValueRef mask_across, mask_in;  // NULL: all lanes
  int mask_level;
} turning;

// ---- what is turned ----

// Whether an output is made of the value by operations on elements alone.
static bool is_in_place(const cpu_jit_kernel *k, const cx_hlo_value *v)
{
  const cx_hlo_value *todo[MOST_OPS + 1] = { v };
  size_t n = 1;
  for (size_t at = 0; at < n; at++) {
    for (size_t i = 0; i < k->n_outputs; i++) {
      if (k->outputs[i] == todo[at]) return true;
    }
    for (size_t i = 0; i < k->n_ops; i++) {
      const cx_hlo_op *op = k->ops[i];
      if (cpu_jit_class_of(op) != CPU_JIT_ELEMENT) continue;
      bool used = false;
      for (size_t j = 0; j < op->n_operands; j++) {
        used |= op->operands[j] == todo[at];
      }
      for (size_t j = 0; j < n; j++) used &= todo[j] != &op->results[0];
      if (used && n <= MOST_OPS) todo[n++] = &op->results[0];
    }
  }
  return false;
}

// The run of the outputs along which the operand of a transpose is neighbours
// in memory; -1: none.
static int run_of(const turning *s, const cx_hlo_op *op)
{
  const cx_hlo_type *from = cpu_jit_type(op->operands[0]);
  const cx_hlo_ints order = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  int64_t last = (int64_t)from->rank - 1;
  while (last >= 0 && from->dims[last] == 1) last--;
  int d = 0;
  for (int run = 0; run < s->n; run++) {
    for (int end = d + s->dims[run]; d < end; d++) {
      if (order.v[d] == last) return run;
    }
  }
  return -1;
}

static bool find(turning *s)
{
  const cpu_jit_kernel *k = s->k;
  const int lanes = s->env->target->lanes;
  if (k->n_ops > MOST_OPS || s->n < 2 || s->sizes[s->n - 1] < lanes) {
    return false;
  }
  s->across = -1;
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    if (op->kind != CX_HLO_OP_TRANSPOSE ||
        cpu_jit_type(&op->results[0])->elem == CX_HLO_I1 ||
        !is_in_place(k, &op->results[0])) {
      continue;
    }
    const int run = run_of(s, op);
    if (run < 0 || run == s->n - 1 || s->sizes[run] < lanes ||
        (s->across >= 0 && s->across != run) || s->n_turned == MOST_TURNED) {
      continue;
    }
    s->across = run;
    s->turned[s->n_turned++] = &op->results[0];
  }
  const int64_t total = cx_hlo_type_elements(cpu_jit_type(k->outputs[0]));
  return s->n_turned > 0 && total >= (int64_t)LEAST * lanes * lanes;
}

// ---- a square ----

// From lane j of v[i] to lane i of v[j]: at each distance, blocks of that size
// are exchanged.
static void turn(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef *v)
{
  const int lanes = env->lanes;
  for (int d = 1; d < lanes; d *= 2) {
    int low[64];
    int high[64];
    for (int k = 0; k < lanes; k++) {
      const bool set = (k & d) != 0;
      low[k] = set ? lanes + k - d : k;
      high[k] = set ? lanes + k : k + d;
    }
    for (int i = 0; i < lanes; i++) {
      if ((i & d) != 0) continue;
      LLVMValueRef x = v[i];
      LLVMValueRef y = v[i + d];
      v[i] = cpu_jit_shuffle(env, b, x, y, low, lanes);
      v[i + d] = cpu_jit_shuffle(env, b, x, y, high, lanes);
    }
  }
}

static const cpu_jit_loc *loc_at(turning *s, cpu_jit_ix across, cpu_jit_ix in,
                                 LLVMValueRef mask)
{
  cpu_jit_loc p = { .mask = mask, .mask_level = s->mask_level };
  for (int i = 0; i < s->n; i++) {
    cpu_jit_ix ix = s->index[i];
    if (i == s->across) ix = across;
    if (i == s->n - 1) ix = in;
    cpu_jit_loc_push(&p, s->dims[i], s->sizes[i], ix);
  }
  return cpu_jit_loc_of(s->env, &p);
}

// The index `at` of a run, held within it where it can be past its end.
static cpu_jit_ix within(turning *s, cpu_jit_ix first, int at, int run,
                         LLVMValueRef *is_within)
{
  cpu_jit_env *env = s->env;
  cpu_jit_ix ix = cpu_jit_ix_offset(env, first, at);
  *is_within = NULL;
  if (s->sizes[run] % env->lanes == 0) return ix;
  LLVMValueRef most = cpu_jit_i64(env, s->sizes[run] - 1);
  *is_within = cpu_jit_compare(env, LLVMIntSLE, ix.base, most, ix.level);
  ix.base = cpu_jit_choose(env, *is_within, ix.base, most, ix.level);
  ix.multiple = 1;
  return ix;
}

static void read_square(turning *s, const cx_hlo_value *v, cpu_jit_ix across,
                        cpu_jit_ix in, cpu_jit_val *out)
{
  cpu_jit_env *env = s->env;
  LLVMValueRef re[64];
  LLVMValueRef im[64];
  across.lane = 1;
  for (int j = 0; j < env->lanes; j++) {
    LLVMValueRef unused;
    const cpu_jit_ix at = within(s, in, j, s->n - 1, &unused);
    out[j] = cpu_jit_emit_wide(env, v, loc_at(s, across, at, s->mask_across));
    re[j] = out[j].re;
    im[j] = out[j].im;
  }
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  turn(env, b, re);
  if (im[0] != NULL) turn(env, b, im);
  for (int j = 0; j < env->lanes; j++) {
    out[j].re = re[j];
    out[j].im = im[j];
    out[j].level = env->n_levels - 1;
  }
}

static void square(turning *s, cpu_jit_ix across, cpu_jit_ix in)
{
  cpu_jit_env *env = s->env;
  const cpu_jit_kernel *k = s->k;
  const int level = env->n_levels - 1;
  cpu_jit_val v[MOST_TURNED][64];
  for (size_t i = 0; i < s->n_turned; i++) {
    read_square(s, s->turned[i], across, in, v[i]);
  }
  cpu_jit_ix lanes = in;
  lanes.lane = 1;
  for (int u = 0; u < env->lanes && !cpu_jit_failed(env); u++) {
    LLVMValueRef is;
    const cpu_jit_ix at = within(s, across, u, s->across, &is);
    LLVMValueRef mask = s->mask_in;
    if (is != NULL) {
      LLVMValueRef all = cpu_jit_splat(env, is, at.level);
      mask = mask == NULL ? all : cpu_jit_op2(env, LLVMAnd, mask, all, level);
    }
    const cpu_jit_loc *p = loc_at(s, at, lanes, mask);
    for (size_t i = 0; i < s->n_turned; i++) {
      cpu_jit_known(env, s->turned[i], p, v[i][u]);
    }
    cpu_jit_store_values(env, k->outputs, k->n_outputs, k->n_inputs, p);
  }
}

// ---- the loops ----

// A stripe: all squares along the inner run.
static void stripe(turning *s, cpu_jit_ix t, int64_t blocks, int64_t extent)
{
  cpu_jit_env *env = s->env;
  cpu_jit_ix block = cpu_jit_ix_const(env, 0);
  int64_t size = extent;
  for (int i = s->n - 2; i >= 0; i--) {
    const bool turned = i == s->across;
    cpu_jit_ix *at = turned ? &block : &s->index[i];
    *at = cpu_jit_ix_take(env, &t, &size, turned ? blocks : s->sizes[i]);
  }
  const cpu_jit_ix across = cpu_jit_ix_scale(env, block, env->lanes);
  LLVMValueRef hi = cpu_jit_i64(env, s->sizes[s->n - 1]);
  cpu_jit_loop loop;
  const cpu_jit_ix in = cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0), hi,
                                           env->lanes, NULL, 0);
  s->mask_level = loop.level;
  if (s->sizes[s->across] % env->lanes != 0) {
    LLVMValueRef end = cpu_jit_i64(env, s->sizes[s->across]);
    s->mask_across = cpu_jit_lanes_below(env, end, across.base, across.level);
  }
  if (s->sizes[s->n - 1] % env->lanes != 0) {
    s->mask_in = cpu_jit_lanes_below(env, hi, loop.iv, loop.level);
  }
  square(s, across, in);
  cpu_jit_loop_end(env, &loop, NULL);
}

bool cpu_jit_kernel_turned(cpu_jit_env *env, cpu_jit_kernel *k)
{
  turning s = { .env = env, .k = k };
  const cx_hlo_type *t = cpu_jit_type(k->outputs[0]);
  uint32_t cuts = 0;
  for (size_t i = 0; i < k->n_outputs; i++) {
    cuts |= cpu_jit_slot_of(env, k->outputs[i])->need;
  }
  s.n = cpu_jit_runs(t, cuts, s.dims, s.sizes);
  if (!find(&s)) return false;
  const int lanes = env->target->lanes;
  const int64_t total = cx_hlo_type_elements(t);
  const int64_t blocks = (s.sizes[s.across] + lanes - 1) / lanes;
  const int64_t extent = total / s.sizes[s.n - 1] / s.sizes[s.across] * blocks;
  cpu_jit_function_begin(env, k, 0, extent,
                         cpu_jit_grain(env, (double)total / (double)extent),
                         lanes);
  cpu_jit_loop loop;
  const cpu_jit_ix iv = cpu_jit_iterations_begin(env, &loop, extent);
  stripe(&s, iv, blocks, extent);
  cpu_jit_loop_end(env, &loop, NULL);
  cpu_jit_function_end(env);
  return true;
}
