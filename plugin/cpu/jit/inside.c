// jit/inside: indices of an operand that are computed, and may lie outside.
#include "jit/inside.h"

int cpu_jit_position(cx_hlo_ints list, int64_t v)
{
  for (size_t i = 0; i < list.n; i++) {
    if (list.v[i] == v) return (int)i;
  }
  return -1;
}

cpu_jit_ix cpu_jit_start_index(cpu_jit_env *env, const cx_hlo_value *v,
                               const cpu_jit_loc *p, int64_t limit)
{
  const cpu_jit_val s = cpu_jit_emit(env, v, p);
  const bool u = cx_hlo_elem_is_unsigned(s.elem) || s.elem == CX_HLO_I1;
  LLVMTypeRef scalar = env->i64;
  LLVMTypeRef t = s.wide ? cpu_jit_wide_type(env, scalar) : scalar;
  LLVMValueRef x = cpu_jit_resize(env, s.re, t, !u, s.level);
  LLVMValueRef zero = cpu_jit_const_int(t, 0);
  LLVMValueRef most = cpu_jit_const_int(t, (uint64_t)limit);
  if (!u) {
    LLVMValueRef under = cpu_jit_compare(env, LLVMIntSLT, x, zero, s.level);
    x = cpu_jit_choose(env, under, zero, x, s.level);
  }
  LLVMValueRef over = cpu_jit_compare(env, LLVMIntUGT, x, most, s.level);
  x = cpu_jit_choose(env, over, most, x, s.level);
  if (!s.wide) return cpu_jit_ix_scalar(x, s.level, 1);
  LLVMTypeRef lanes = cpu_jit_wide_type(env, cpu_jit_lane_type(env));
  return cpu_jit_ix_wide(cpu_jit_resize(env, x, lanes, true, s.level), s.level);
}

static void also(cpu_jit_env *env, LLVMValueRef *sum, int *sum_level,
                 LLVMValueRef c, int level)
{
  if (*sum == NULL) {
    *sum = c;
    *sum_level = level;
    return;
  }
  *sum_level = cpu_jit_deeper(*sum_level, level);
  *sum = cpu_jit_op2(env, LLVMAnd, *sum, c, *sum_level);
}

static void also_all(cpu_jit_env *env, cpu_jit_inside *in, LLVMValueRef c,
                     int level)
{
  if (LLVMIsAConstantInt(c) == NULL) {
    also(env, &in->all, &in->all_level, c, level);
  } else if (LLVMConstIntGetZExtValue(c) == 0) {
    in->never = true;
  }
}

void cpu_jit_within(cpu_jit_env *env, cpu_jit_ix *ix, int64_t n,
                    cpu_jit_inside *in)
{
  if (cpu_jit_ix_same(ix)) {
    LLVMValueRef most = cpu_jit_i64(env, n);
    LLVMValueRef c =
        cpu_jit_compare(env, LLVMIntULT, ix->base, most, ix->level);
    ix->base = cpu_jit_choose(env, c, ix->base, cpu_jit_i64(env, 0), ix->level);
    ix->multiple = 1;
    also_all(env, in, c, ix->level);
    return;
  }
  LLVMValueRef v = cpu_jit_ix_widen(env, *ix);
  LLVMValueRef most = cpu_jit_const_int(LLVMTypeOf(v), (uint64_t)n);
  LLVMValueRef c = cpu_jit_compare(env, LLVMIntULT, v, most, ix->level);
  also(env, &in->lanes, &in->lanes_level, c, ix->level);
}

void cpu_jit_spaced(cpu_jit_env *env, cpu_jit_ix *ix, int64_t d,
                    cpu_jit_inside *in)
{
  if (d == 1) return;
  const bool same = cpu_jit_ix_same(ix);
  if (!same) *ix = cpu_jit_ix_wide(cpu_jit_ix_widen(env, *ix), ix->level);
  LLVMValueRef by = cpu_jit_const_int(LLVMTypeOf(ix->base), (uint64_t)d);
  LLVMValueRef rest = cpu_jit_op2(env, LLVMURem, ix->base, by, ix->level);
  LLVMValueRef c = cpu_jit_compare(env, LLVMIntEQ, rest,
                                   LLVMConstNull(LLVMTypeOf(rest)), ix->level);
  if (same) {
    also_all(env, in, c, ix->level);
  } else {
    also(env, &in->lanes, &in->lanes_level, c, ix->level);
  }
  ix->base = cpu_jit_op2(env, LLVMUDiv, ix->base, by, ix->level);
  ix->multiple = 1;
}

cpu_jit_val cpu_jit_inside_or(cpu_jit_env *env, const cx_hlo_value *v,
                              cpu_jit_loc *at, const cpu_jit_inside *in,
                              cpu_jit_val other)
{
  if (in->never) return other;
  const cpu_jit_loc *p = cpu_jit_loc_of(env, at);
  if (in->lanes != NULL) {
    p = cpu_jit_loc_masked(env, p, in->lanes, in->lanes_level);
  }
  cpu_jit_val x = cpu_jit_emit(env, v, p);
  if (in->lanes != NULL)
    x = cpu_jit_pick(env, in->lanes, in->lanes_level, x, other);
  if (in->all != NULL) x = cpu_jit_pick(env, in->all, in->all_level, x, other);
  return x;
}
