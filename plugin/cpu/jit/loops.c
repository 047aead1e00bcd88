// jit/loops: loops, with what they carry from one iteration to the next.
#include "jit/emit.h"

static void carry_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                        cpu_jit_val *carried, size_t n)
{
  loop->n = 0;
  loop->phis = CX_ARENA_ARRAY(&env->fn_arena, LLVMValueRef, 6 * n + 1);
  if (loop->phis == NULL) {
    cpu_jit_out_of_memory(env);
    return;
  }
  loop->first = loop->phis + 2 * n;
  loop->next = loop->phis + 4 * n;
  for (size_t i = 0; i < n; i++) {
    cpu_jit_val *v = &carried[i];
    for (int part = 0; part < (v->im != NULL ? 2 : 1); part++) {
      LLVMValueRef *reg = part == 0 ? &v->re : &v->im;
      LLVMValueRef phi =
          LLVMBuildPhi(env->level[loop->level], LLVMTypeOf(*reg), "");
      loop->first[loop->n] = *reg;
      loop->phis[loop->n++] = phi;
      *reg = phi;
    }
    v->level = loop->level;
  }
}

static bool runs_once(LLVMValueRef lo, LLVMValueRef hi, int64_t step)
{
  if (LLVMIsAConstantInt(lo) == NULL || LLVMIsAConstantInt(hi) == NULL) {
    return false;
  }
  const int64_t n = LLVMConstIntGetSExtValue(hi) - LLVMConstIntGetSExtValue(lo);
  return n > 0 && n <= step;
}

cpu_jit_ix cpu_jit_loop_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                              LLVMValueRef lo, LLVMValueRef hi, int64_t step,
                              cpu_jit_val *carried, size_t n)
{
  const int outer = env->n_levels - 1;
  *loop = (cpu_jit_loop){ .once = runs_once(lo, hi, step) };
  if (loop->once) {
    loop->iv = lo;
    loop->level = outer;
    return cpu_jit_ix_scalar(lo, outer, step);
  }
  loop->before = LLVMGetInsertBlock(env->level[outer]);
  loop->body = LLVMAppendBasicBlockInContext(env->context, env->function, "");
  loop->after = LLVMAppendBasicBlockInContext(env->context, env->function, "");
  loop->lo = lo;
  loop->hi = hi;
  loop->step = step;
  loop->level = cpu_jit_level_begin(env, loop->body);
  LLVMBuilderRef b = env->level[loop->level];
  loop->iv = LLVMBuildPhi(b, env->i64, "");
  carry_begin(env, loop, carried, n);
  return cpu_jit_ix_scalar(loop->iv, loop->level, step);
}

cpu_jit_ix cpu_jit_count_begin(cpu_jit_env *env, cpu_jit_loop *loop, int64_t n)
{
  return cpu_jit_loop_begin(env, loop, cpu_jit_i64(env, 0), cpu_jit_i64(env, n),
                            1, NULL, 0);
}

cpu_jit_ix cpu_jit_vectors_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                                 LLVMValueRef lo, LLVMValueRef hi,
                                 LLVMValueRef *mask)
{
  cpu_jit_ix ix = cpu_jit_loop_begin(env, loop, lo, hi, env->lanes, NULL, 0);
  ix.lane = env->lanes == 1 ? 0 : 1;
  if (mask != NULL) {
    *mask = cpu_jit_lanes_below(env, hi, loop->iv, loop->level);
  }
  return ix;
}

cpu_jit_ix cpu_jit_iterations_begin(cpu_jit_env *env, cpu_jit_loop *loop,
                                    int64_t extent)
{
  const cpu_jit_ix ix =
      cpu_jit_loop_begin(env, loop, env->lo, env->hi, 1, NULL, 0);
  CX_ASSERT(!loop->once);
  if (extent > 1) return ix;
  // The blocks are those of a loop; its induction variable is not needed.
  loop->when = true;
  LLVMInstructionEraseFromParent(loop->iv);
  loop->iv = loop->lo;
  return cpu_jit_ix_const(env, 0);
}

static void carry_end(cpu_jit_env *env, cpu_jit_loop *loop,
                      cpu_jit_val *carried, LLVMBasicBlockRef last,
                      bool may_skip)
{
  size_t k = 0;
  for (size_t i = 0; k < loop->n; i++) {
    cpu_jit_val *v = &carried[i];
    for (int part = 0; part < (v->im != NULL ? 2 : 1); part++, k++) {
      LLVMValueRef *reg = part == 0 ? &v->re : &v->im;
      LLVMAddIncoming(loop->phis[k], (LLVMValueRef[]){ loop->first[k], *reg },
                      (LLVMBasicBlockRef[]){ loop->before, last }, 2);
      LLVMBuilderRef b = env->level[loop->level - 1];
      LLVMValueRef out = LLVMBuildPhi(b, LLVMTypeOf(*reg), "");
      LLVMAddIncoming(out, reg, &last, 1);
      if (may_skip) {
        LLVMAddIncoming(out, &loop->first[k], &loop->before, 1);
      }
      *reg = out;
    }
    v->level = loop->level - 1;
  }
}

void cpu_jit_loop_end(cpu_jit_env *env, cpu_jit_loop *loop,
                      cpu_jit_val *carried)
{
  CX_ASSERT(loop->level == env->n_levels - 1);
  if (loop->once) return;
  LLVMBuilderRef inner = env->level[loop->level];
  LLVMBuilderRef outer = env->level[loop->level - 1];
  LLVMBasicBlockRef last = LLVMGetInsertBlock(inner);
  if (loop->when) {
    LLVMBuildBr(inner, loop->after);
  } else {
    LLVMValueRef next =
        LLVMBuildNSWAdd(inner, loop->iv, cpu_jit_i64(env, loop->step), "");
    LLVMValueRef more = LLVMBuildICmp(inner, LLVMIntSLT, next, loop->hi, "");
    LLVMBuildCondBr(inner, more, loop->body, loop->after);
    LLVMAddIncoming(loop->iv, (LLVMValueRef[]){ loop->lo, next },
                    (LLVMBasicBlockRef[]){ loop->before, last }, 2);
  }
  LLVMValueRef any = LLVMBuildICmp(outer, LLVMIntSLT, loop->lo, loop->hi, "");
  bool may_skip = true;
  if (LLVMIsAConstantInt(any) != NULL && LLVMConstIntGetZExtValue(any) != 0) {
    may_skip = false;
    LLVMBuildBr(outer, loop->body);
  } else {
    LLVMBuildCondBr(outer, any, loop->body, loop->after);
  }
  LLVMPositionBuilderAtEnd(outer, loop->after);
  env->n_levels--;
  carry_end(env, loop, carried, last, may_skip);
}
