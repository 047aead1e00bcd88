// jit/window: reduce_window, by element: each element of the result goes
// through its window, which is unrolled where it is small. What lies in the
// padding is the initial value. The sums of blocks of a large window are added
// up as those of a reduction are: see jit/reduce.h.
#include "hlo/infer.h"
#include "jit/inside.h"

#define UNROLLED 32  // elements of a window that is unrolled
#define CHAINS 4     // sums side by side of a longer one

typedef struct windows {
  const cx_hlo_op *op;
  const cx_hlo_type *from, *to;
  const cx_hlo_op *simple;
  cx_hlo_elem sum;    // that is summed in
  cx_hlo_elem total;  // that the sums of blocks are added up in
  cpu_jit_val init;
  bool wide;
  cpu_jit_loc at;                   // of the result
  cpu_jit_ix offset[CPU_JIT_RANK];  // in the window, of each dimension
} windows;

static int64_t size_of(const cx_hlo_op *op, size_t d)
{
  return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
}

// Whether the result's index is the operand's in this dimension.
static bool is_plain(const cx_hlo_op *op, size_t d)
{
  return size_of(op, d) == 1 &&
         cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) == 1 &&
         cx_hlo_op_int_at(op, CX_HLO_A_BASE_DILATIONS, d) == 1 &&
         cx_hlo_padding_at(op, d, 0) == 0 && cx_hlo_padding_at(op, d, 1) == 0;
}

uint32_t cpu_jit_window_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(&op->results[0]);
  uint32_t cuts = cpu_jit_slot_of(env, op->operands[0])->need;
  for (size_t d = 0; d < t->rank; d++) {
    if (!is_plain(op, d)) cuts |= (uint32_t)3 << d;
  }
  return cuts & (((uint32_t)1 << t->rank) - 1);
}

// The operand's element, or the initial value, at the offsets.
static cpu_jit_val element(cpu_jit_env *env, const windows *w)
{
  const cx_hlo_op *op = w->op;
  cpu_jit_loc from = w->at;
  cpu_jit_inside in = { 0 };
  size_t d = 0;
  for (int i = 0; i < from.n; i++) {
    cpu_jit_part *part = &from.part[i];
    if (!is_plain(op, d)) {
      const int64_t stride = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d);
      const int64_t spread = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DILATIONS, d);
      const int64_t base = cx_hlo_op_int_at(op, CX_HLO_A_BASE_DILATIONS, d);
      const int64_t low = cx_hlo_padding_at(op, d, 0);
      const int64_t n = w->from->dims[d];
      const int64_t reach = n == 0 ? 0 : (n - 1) * base + 1;
      const int64_t last =
          (w->to->dims[d] - 1) * stride + (size_of(op, d) - 1) * spread - low;
      part->ix = cpu_jit_ix_scale(env, part->ix, stride);
      part->ix = cpu_jit_ix_add(env, part->ix,
                                cpu_jit_ix_scale(env, w->offset[d], spread));
      part->ix = cpu_jit_ix_offset(env, part->ix, -low);
      if (low > 0 || last >= reach) {
        cpu_jit_within(env, &part->ix, reach, &in);
      }
      cpu_jit_spaced(env, &part->ix, base, &in);
      part->size = n;
    }
    d += (size_t)part->dims;
  }
  return cpu_jit_inside_or(env, op->operands[0], &from, &in, w->init);
}

static cpu_jit_val step(cpu_jit_env *env, const windows *w, cpu_jit_val sum)
{
  const cpu_jit_val x = element(env, w);
  cpu_jit_val out;
  if (w->simple != NULL) {
    out = cpu_jit_combine(env, w->simple, sum, x);
  } else {
    out = cpu_jit_region_of_two(env, &w->op->regions[0], sum, x);
  }
  return w->wide ? cpu_jit_widen(env, out) : out;
}

static cpu_jit_val loops(cpu_jit_env *env, windows *w, size_t d,
                         cpu_jit_val sum);

// The offsets [lo, hi) of dimension d.
static cpu_jit_val loop_over(cpu_jit_env *env, windows *w, size_t d,
                             LLVMValueRef lo, LLVMValueRef hi, cpu_jit_val sum)
{
  cpu_jit_loop loop;
  w->offset[d] = cpu_jit_loop_begin(env, &loop, lo, hi, 1, &sum, 1);
  sum = loops(env, w, d + 1, sum);
  cpu_jit_loop_end(env, &loop, &sum);
  return sum;
}

// All offsets of dimension d, the last that is more than one, of n: sums that
// do not wait for each other.
static cpu_jit_val in_chains(cpu_jit_env *env, windows *w, size_t d, int64_t n,
                             cpu_jit_val sum)
{
  const int64_t end = n / CHAINS * CHAINS;
  cpu_jit_val part[CHAINS];
  for (int i = 0; i < CHAINS; i++) {
    w->offset[d] = cpu_jit_ix_const(env, i);
    part[i] = element(env, w);
    if (w->wide) part[i] = cpu_jit_widen(env, part[i]);
    part[i].elem = w->sum;
  }
  cpu_jit_loop loop;
  const cpu_jit_ix iv =
      cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, CHAINS),
                         cpu_jit_i64(env, end), CHAINS, part, CHAINS);
  for (int i = 0; i < CHAINS; i++) {
    w->offset[d] = cpu_jit_ix_offset(env, iv, i);
    part[i] = step(env, w, part[i]);
  }
  cpu_jit_loop_end(env, &loop, part);
  for (int64_t i = end; i < n; i++) {
    w->offset[d] = cpu_jit_ix_const(env, i);
    part[i - end] = step(env, w, part[i - end]);
  }
  for (int i = 0; i < CHAINS; i++) {
    sum = cpu_jit_combine(env, w->simple, sum, part[i]);
  }
  return w->wide ? cpu_jit_widen(env, sum) : sum;
}

// Whether a window has one element in the dimensions behind d.
static bool is_last(const windows *w, size_t d)
{
  while (++d < w->to->rank) {
    if (size_of(w->op, d) > 1) return false;
  }
  return true;
}

// Whether the loop over dimension d is the one that adds up blocks; how long
// they are then.
static int64_t block_of(const windows *w, size_t d)
{
  int64_t inside = 1;
  if (w->total == w->sum) return 0;
  for (size_t i = d + 1; i < w->to->rank; i++) inside *= size_of(w->op, i);
  if (inside > CPU_JIT_BLOCK || inside * size_of(w->op, d) <= CPU_JIT_BLOCK) {
    return 0;
  }
  return cpu_jit_block(inside);
}

// Loops over the window from dimension d on; at most the rank of them, and one
// over blocks.
static cpu_jit_val loops(cpu_jit_env *env, windows *w, size_t d,
                         cpu_jit_val sum)
{
  while (d < w->to->rank && size_of(w->op, d) == 1) d++;
  if (d == w->to->rank) return step(env, w, sum);
  LLVMValueRef end = cpu_jit_i64(env, size_of(w->op, d));
  const int64_t block = block_of(w, d);
  if (block == 0 && w->simple != NULL && w->total == w->sum && is_last(w, d) &&
      size_of(w->op, d) >= 2 * CHAINS) {
    return in_chains(env, w, d, size_of(w->op, d), sum);
  }
  if (block == 0) return loop_over(env, w, d, cpu_jit_i64(env, 0), end, sum);
  cpu_jit_loop loop;
  cpu_jit_loop_begin(env, &loop, cpu_jit_i64(env, 0), end, block, &sum, 1);
  LLVMValueRef next =
      cpu_jit_op2(env, LLVMAdd, loop.iv, cpu_jit_i64(env, block), loop.level);
  LLVMTypeRef t = cpu_jit_register_type(env, cx_hlo_elem_part(w->sum), false);
  cpu_jit_val part = { .elem = w->sum, .re = LLVMConstReal(t, -0.0) };
  if (cx_hlo_elem_is_complex(w->sum)) part.im = part.re;
  if (w->wide) part = cpu_jit_widen(env, part);
  part = loop_over(env, w, d, loop.iv,
                   cpu_jit_least(env, next, end, loop.level), part);
  sum = cpu_jit_combine(env, w->simple, sum,
                        cpu_jit_convert(env, part, w->total));
  if (w->wide) sum = cpu_jit_widen(env, sum);
  cpu_jit_loop_end(env, &loop, &sum);
  return sum;
}

static cpu_jit_val unrolled(cpu_jit_env *env, windows *w, int64_t total,
                            cpu_jit_val sum)
{
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i;
    for (size_t d = w->to->rank; d-- > 0;) {
      const int64_t n = size_of(w->op, d);
      w->offset[d] = cpu_jit_ix_const(env, rest % n);
      rest /= n;
    }
    sum = step(env, w, sum);
  }
  return sum;
}

cpu_jit_val cpu_jit_window_emit(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p)
{
  windows w = { .op = op,
                .from = cpu_jit_type(op->operands[0]),
                .to = cpu_jit_type(&op->results[0]) };
  const cx_hlo_elem e = w.to->elem;
  w.simple = cpu_jit_simple_body(op, 0);
  w.sum = w.total = cpu_jit_sum_elem(w.simple, e);
  w.init = cpu_jit_emit(env, op->operands[1], &env->scalar);
  if (cx_hlo_type_elements(w.from) == 0 && w.from->rank > 0) {
    cpu_jit_fail(env, "windows over nothing");
    return w.init;
  }
  cpu_jit_loc_cut(env, w.to, p, cpu_jit_window_cuts(env, op), &w.at);
  int64_t total = 1;
  for (size_t d = 0; d < w.to->rank; d++) {
    total *= size_of(op, d);
    w.offset[d] = cpu_jit_ix_const(env, 0);
  }
  for (int i = 0; i < w.at.n; i++) w.wide |= !cpu_jit_ix_same(&w.at.part[i].ix);
  cpu_jit_val sum = w.init;
  if (w.wide) sum = cpu_jit_widen(env, sum);
  sum.elem = w.sum;
  if (total > CPU_JIT_BLOCK) {
    w.total = cpu_jit_total_elem(w.simple, w.sum);
    if (w.total != w.sum) sum = cpu_jit_convert(env, sum, w.total);
  }
  sum = total <= UNROLLED ? unrolled(env, &w, total, sum)
                          : loops(env, &w, 0, sum);
  return cpu_jit_summed(env, sum, e);
}
