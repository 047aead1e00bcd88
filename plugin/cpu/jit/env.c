// jit/env: a function in progress: its levels, types and small instructions.
#include <stdio.h>
#include <string.h>

#include "jit/emit.h"

#define BUCKETS 1024

struct cpu_jit_cse {
  cpu_jit_cse *next;
  LLVMValueRef a, b, c, out;
  int op;
};

// ---- failure ----

void cpu_jit_fail(cpu_jit_env *env, const char *why)
{
  if (env->status == NULL) {
    env->status =
        cx_error(CALX_UNIMPLEMENTED, "kernel %zu: %s", env->number, why);
  }
}

bool cpu_jit_failed(const cpu_jit_env *env)
{
  return env->status != NULL;
}

void cpu_jit_out_of_memory(cpu_jit_env *env)
{
  if (env->status == NULL) env->status = cx_out_of_memory();
}

// ---- types ----

LLVMTypeRef cpu_jit_memory_type(cpu_jit_env *env, cx_hlo_elem e)
{
  switch (e) {
    case CX_HLO_I1:
    case CX_HLO_I8:
    case CX_HLO_UI8: return env->i8;
    case CX_HLO_I16:
    case CX_HLO_UI16:
    case CX_HLO_BF16:
    case CX_HLO_F16: return env->i16;
    case CX_HLO_I32:
    case CX_HLO_UI32: return env->i32;
    case CX_HLO_I64:
    case CX_HLO_UI64: return env->i64;
    case CX_HLO_C64:
    case CX_HLO_F32: return env->f32;
    case CX_HLO_C128:
    case CX_HLO_F64: return env->f64;
    default:
      if (cpu_jit_is_f8(e)) return env->i8;
      cpu_jit_fail(env, "an element type that is not compiled");
      return env->i8;
  }
}

unsigned cpu_jit_bytes_of(LLVMTypeRef t)
{
  switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) / 8;
    case LLVMFloatTypeKind: return 4;
    default: return 8;
  }
}

LLVMTypeRef cpu_jit_wide_type(cpu_jit_env *env, LLVMTypeRef scalar)
{
  return LLVMVectorType(scalar, (unsigned)env->lanes);
}

LLVMTypeRef cpu_jit_register_type(cpu_jit_env *env, cx_hlo_elem e, bool wide)
{
  LLVMTypeRef t;
  if (e == CX_HLO_I1) {
    t = env->i1;
  } else if (e == CX_HLO_BF16 || e == CX_HLO_F16) {
    t = env->f32;
  } else {
    t = cpu_jit_memory_type(env, e);
  }
  return wide ? cpu_jit_wide_type(env, t) : t;
}

const cx_hlo_type *cpu_jit_type(const cx_hlo_value *v)
{
  return &v->type.tensor;
}

int64_t cpu_jit_elements(const cx_hlo_value *v)
{
  return cx_hlo_type_elements(&v->type.tensor);
}

// ---- constants ----

LLVMValueRef cpu_jit_i64(cpu_jit_env *env, int64_t v)
{
  return LLVMConstInt(env->i64, (uint64_t)v, 1);
}

LLVMValueRef cpu_jit_iota(cpu_jit_env *env, LLVMTypeRef vector, int64_t step)
{
  LLVMValueRef lanes[64];
  for (int i = 0; i < env->lanes; i++) {
    lanes[i] =
        LLVMConstInt(LLVMGetElementType(vector), (uint64_t)(i * step), 1);
  }
  return LLVMConstVector(lanes, (unsigned)env->lanes);
}

// ---- instructions ----

LLVMBuilderRef cpu_jit_at(cpu_jit_env *env, int level)
{
  CX_ASSERT(level >= 0 && level < env->n_levels);
  if (env->budget == 0) {
    cpu_jit_fail(env, "more instructions than a kernel may have");
  } else {
    env->budget--;
  }
  return env->level[level];
}

static LLVMValueRef *cse_find(cpu_jit_env *env, int op, LLVMValueRef a,
                              LLVMValueRef b, LLVMValueRef c)
{
  const uintptr_t h = ((uintptr_t)a >> 4) * 31 + ((uintptr_t)b >> 4) * 7 +
                      ((uintptr_t)c >> 4) * 3 + (unsigned)op;
  cpu_jit_cse **bucket = &env->cse[(h ^ (h >> 10)) % BUCKETS];
  for (cpu_jit_cse *e = *bucket; e != NULL; e = e->next) {
    if (e->op == op && e->a == a && e->b == b && e->c == c) return &e->out;
  }
  cpu_jit_cse *e = CX_ARENA_NEW(&env->fn_arena, cpu_jit_cse);
  static _Thread_local LLVMValueRef lost;
  if (e == NULL) {
    cpu_jit_out_of_memory(env);
    lost = NULL;
    return &lost;
  }
  *e = (cpu_jit_cse){ *bucket, a, b, c, NULL, op };
  *bucket = e;
  return &e->out;
}

static bool is_const(LLVMValueRef v, int64_t k)
{
  return LLVMIsAConstantInt(v) != NULL && LLVMConstIntGetSExtValue(v) == k;
}

LLVMValueRef cpu_jit_op2(cpu_jit_env *env, LLVMOpcode op, LLVMValueRef a,
                         LLVMValueRef b, int level)
{
  if ((op == LLVMAdd || op == LLVMSub) && is_const(b, 0)) return a;
  if (op == LLVMAdd && is_const(a, 0)) return b;
  if ((op == LLVMMul || op == LLVMUDiv) && is_const(b, 1)) return a;
  LLVMValueRef *out = cse_find(env, (int)op, a, b, NULL);
  if (*out == NULL) {
    *out = LLVMBuildBinOp(cpu_jit_at(env, level), op, a, b, "");
  }
  return *out;
}

LLVMValueRef cpu_jit_compare(cpu_jit_env *env, LLVMIntPredicate p,
                             LLVMValueRef a, LLVMValueRef b, int level)
{
  LLVMValueRef *out = cse_find(env, 1000 + (int)p, a, b, NULL);
  if (*out == NULL) {
    *out = LLVMBuildICmp(cpu_jit_at(env, level), p, a, b, "");
  }
  return *out;
}

LLVMValueRef cpu_jit_choose(cpu_jit_env *env, LLVMValueRef c, LLVMValueRef a,
                            LLVMValueRef b, int level)
{
  LLVMValueRef *out = cse_find(env, 2000, c, a, b);
  if (*out == NULL) {
    *out = LLVMBuildSelect(cpu_jit_at(env, level), c, a, b, "");
  }
  return *out;
}

LLVMValueRef cpu_jit_least(cpu_jit_env *env, LLVMValueRef a, LLVMValueRef b,
                           int level)
{
  LLVMValueRef past = cpu_jit_compare(env, LLVMIntSGT, a, b, level);
  return cpu_jit_choose(env, past, b, a, level);
}

LLVMValueRef cpu_jit_whole_end(cpu_jit_env *env, LLVMValueRef lo,
                               LLVMValueRef hi, int level)
{
  LLVMValueRef n = cpu_jit_op2(env, LLVMSub, hi, lo, level);
  n = cpu_jit_op2(env, LLVMAnd, n, cpu_jit_i64(env, -env->lanes), level);
  return cpu_jit_op2(env, LLVMAdd, lo, n, level);
}

LLVMValueRef cpu_jit_splat(cpu_jit_env *env, LLVMValueRef scalar, int level)
{
  LLVMTypeRef vector = cpu_jit_wide_type(env, LLVMTypeOf(scalar));
  if (LLVMIsConstant(scalar)) return cpu_jit_in_all_lanes(vector, scalar);
  LLVMValueRef *out = cse_find(env, 2001, scalar, NULL, NULL);
  if (*out == NULL) {
    LLVMBuilderRef b = cpu_jit_at(env, level);
    LLVMValueRef none = LLVMGetPoison(vector);
    LLVMValueRef one = LLVMBuildInsertElement(b, none, scalar,
                                              LLVMConstInt(env->i32, 0, 0), "");
    *out = LLVMBuildShuffleVector(
        b, one, none, LLVMConstNull(cpu_jit_wide_type(env, env->i32)), "");
  }
  return *out;
}

cpu_jit_val cpu_jit_widen(cpu_jit_env *env, cpu_jit_val v)
{
  if (v.wide || env->lanes == 1) return v;
  v.re = cpu_jit_splat(env, v.re, v.level);
  if (v.im != NULL) v.im = cpu_jit_splat(env, v.im, v.level);
  v.wide = true;
  return v;
}

cpu_jit_val cpu_jit_pick(cpu_jit_env *env, LLVMValueRef condition, int level,
                         cpu_jit_val yes, cpu_jit_val no)
{
  LLVMTypeRef t = LLVMTypeOf(condition);
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind || yes.wide || no.wide) {
    yes = cpu_jit_widen(env, yes);
    no = cpu_jit_widen(env, no);
  }
  yes.level = cpu_jit_deeper(level, cpu_jit_deeper(yes.level, no.level));
  // LLVM 19 crashes on a phi of bf16 that only such selects change.
  if (yes.re == no.re && yes.im == no.im) return yes;
  LLVMBuilderRef b = cpu_jit_at(env, yes.level);
  yes.re = LLVMBuildSelect(b, condition, yes.re, no.re, "");
  if (yes.im != NULL) yes.im = LLVMBuildSelect(b, condition, yes.im, no.im, "");
  return yes;
}

LLVMValueRef cpu_jit_shuffle(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                             LLVMValueRef y, const int *order, int n)
{
  LLVMValueRef mask[128];
  CX_ASSERT(n <= (int)(sizeof mask / sizeof mask[0]));
  for (int i = 0; i < n; i++) {
    mask[i] = order[i] < 0 ? LLVMGetPoison(env->i32)
                           : LLVMConstInt(env->i32, (unsigned)order[i], 0);
  }
  if (y == NULL) y = LLVMGetPoison(LLVMTypeOf(x));
  return LLVMBuildShuffleVector(b, x, y, LLVMConstVector(mask, (unsigned)n),
                                "");
}

LLVMValueRef cpu_jit_resize(cpu_jit_env *env, LLVMValueRef v, LLVMTypeRef to,
                            bool is_signed, int level)
{
  LLVMTypeRef from = LLVMTypeOf(v);
  if (from == to) return v;
  LLVMValueRef *out =
      cse_find(env, is_signed ? 2002 : 2003, v, (LLVMValueRef)(void *)to, NULL);
  if (*out != NULL) return *out;
  LLVMTypeRef a = from;
  LLVMTypeRef b = to;
  if (LLVMGetTypeKind(from) == LLVMVectorTypeKind) {
    a = LLVMGetElementType(from);
    b = LLVMGetElementType(to);
  }
  LLVMOpcode op = LLVMTrunc;
  if (LLVMGetIntTypeWidth(a) < LLVMGetIntTypeWidth(b)) {
    op = is_signed ? LLVMSExt : LLVMZExt;
  }
  *out = LLVMBuildCast(cpu_jit_at(env, level), op, v, to, "");
  return *out;
}

LLVMValueRef cpu_jit_lanes_below(cpu_jit_env *env, LLVMValueRef hi,
                                 LLVMValueRef lo, int level)
{
  LLVMTypeRef t = cpu_jit_wide_type(env, env->i32);
  LLVMValueRef n = cpu_jit_op2(env, LLVMSub, hi, lo, level);
  n = cpu_jit_resize(env, n, env->i32, true, level);
  n = cpu_jit_splat(env, n, level);
  return cpu_jit_compare(env, LLVMIntSLT, cpu_jit_iota(env, t, 1), n, level);
}

// ---- functions ----

static void attribute(cpu_jit_env *env, const char *name, const char *value)
{
  LLVMAddAttributeAtIndex(
      env->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
      LLVMCreateStringAttribute(env->context, name, (unsigned)strlen(name),
                                value, (unsigned)strlen(value)));
}

static void set_attributes(cpu_jit_env *env)
{
  attribute(env, "target-cpu", env->target->cpu);
  attribute(env, "target-features", env->target->features);
  const int bits = env->target->lanes * 32;
  attribute(env, "prefer-vector-width",
            bits == 512 ? "512" : (bits == 256 ? "256" : "128"));
  cpu_jit_add_attribute(env->function, "nounwind");
}

void cpu_jit_function_begin(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                            int64_t extent, int64_t grain, int lanes)
{
  k->n_phases = (size_t)phase + 1;
  k->phases[phase] = (cpu_jit_phase){ .extent = extent, .grain = grain };
  char name[64];
  snprintf(name, sizeof name, "k%zu_%d", env->number, phase);
  LLVMTypeRef params[] = { env->ptr, env->i64, env->i64 };
  LLVMTypeRef type = LLVMFunctionType(env->void_type, params, 3, 0);
  env->function = LLVMAddFunction(env->module, name, type);
  set_attributes(env);
  env->lo = LLVMGetParam(env->function, 1);
  env->hi = LLVMGetParam(env->function, 2);
  env->lanes = lanes;
  env->memory_level = 0;
  env->stream = NULL;
  env->budget = CPU_JIT_SIZE;
  cx_arena_reset(&env->fn_arena);
  env->cse = CX_ARENA_ARRAY(&env->fn_arena, cpu_jit_cse *, BUCKETS);
  env->memo = CX_ARENA_ARRAY(&env->fn_arena, cpu_jit_memo *, BUCKETS);
  env->locs = CX_ARENA_ARRAY(&env->fn_arena, cpu_jit_loc *, BUCKETS);
  for (size_t i = 0; i < env->n_slots; i++) env->slots[i].pointer = NULL;
  LLVMBasicBlockRef entry =
      LLVMAppendBasicBlockInContext(env->context, env->function, "");
  env->n_levels = 1;
  if (env->level[0] == NULL) {
    env->level[0] = LLVMCreateBuilderInContext(env->context);
  }
  LLVMPositionBuilderAtEnd(env->level[0], entry);
}

int cpu_jit_level_begin(cpu_jit_env *env, LLVMBasicBlockRef block)
{
  CX_ASSERT(env->n_levels < CPU_JIT_LEVELS);
  const int level = env->n_levels++;
  if (env->level[level] == NULL) {
    env->level[level] = LLVMCreateBuilderInContext(env->context);
  }
  LLVMPositionBuilderAtEnd(env->level[level], block);
  return level;
}

void cpu_jit_forget(cpu_jit_env *env)
{
  memset(env->cse, 0, BUCKETS * sizeof *env->cse);
  memset(env->memo, 0, BUCKETS * sizeof *env->memo);
}

void cpu_jit_function_end(cpu_jit_env *env)
{
  CX_ASSERT(env->n_levels == 1);
  LLVMBuildRetVoid(env->level[0]);
  env->n_levels = 0;
}

LLVMValueRef cpu_jit_buffer(cpu_jit_env *env, size_t i)
{
  LLVMValueRef at = LLVMGetParam(env->function, 0);
  LLVMValueRef *out =
      cse_find(env, 2004, at, cpu_jit_i64(env, (int64_t)i), NULL);
  if (*out == NULL) {
    LLVMBuilderRef b = cpu_jit_at(env, 0);
    LLVMValueRef index = cpu_jit_i64(env, (int64_t)i);
    LLVMValueRef p = LLVMBuildInBoundsGEP2(b, env->ptr, at, &index, 1, "");
    *out = LLVMBuildLoad2(b, env->ptr, p, "");
  }
  return *out;
}

LLVMValueRef cpu_jit_scratch(cpu_jit_env *env, size_t offset)
{
  const cpu_jit_kernel *k = env->kernel;
  LLVMValueRef base = cpu_jit_buffer(env, k->n_inputs + k->n_outputs);
  LLVMValueRef at = cpu_jit_i64(env, (int64_t)offset);
  return LLVMBuildGEP2(cpu_jit_at(env, 0), env->i8, base, &at, 1, "");
}

cpu_jit_slot *cpu_jit_slot_of(cpu_jit_env *env, const cx_hlo_value *v)
{
  size_t i = ((uintptr_t)v >> 4) * 0x9E3779B97F4A7C15u % env->n_slots;
  while (env->slots[i].value != NULL && env->slots[i].value != v) {
    i = (i + 1) % env->n_slots;
  }
  return &env->slots[i];
}

uint32_t cpu_jit_need_of(cpu_jit_env *env, const cx_hlo_value *v)
{
  return cpu_jit_slot_of(env, v)->need;
}

// ---- slots ----

static void add_slot(cpu_jit_env *env, const cx_hlo_value *v,
                     cpu_jit_slot_kind kind, size_t input)
{
  cpu_jit_slot *slot = cpu_jit_slot_of(env, v);
  if (slot->value != NULL) return;
  *slot = (cpu_jit_slot){ .value = v, .kind = kind, .input = input };
  const int64_t n = cpu_jit_elements(v);
  if (n < 0 || n >= INT32_MAX) env->small = false;
}

// A constant that is not one number.
static bool is_literal(const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CONSTANT) return false;
  const cx_hlo_elements *e = &cx_hlo_op_attr(op, CX_HLO_A_VALUE)->as.elements;
  return !e->splat && cpu_jit_elements(&op->results[0]) != 1;
}

calx_status *cpu_jit_set_slots(cpu_jit_env *env, const cpu_jit_kernel *k)
{
  size_t n = k->n_inputs;
  for (size_t i = 0; i < k->n_ops; i++) n += k->ops[i]->n_results;
  env->n_slots = 2 * n + 3;
  env->slots = CX_ARENA_ARRAY(&env->arena, cpu_jit_slot, env->n_slots);
  if (env->slots == NULL) return cx_out_of_memory();
  env->small = true;
  for (size_t i = 0; i < k->n_inputs; i++) {
    add_slot(env, k->inputs[i], CPU_JIT_SLOT_BUFFER, i);
  }
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    const bool literal = is_literal(op);
    for (size_t j = 0; j < op->n_results; j++) {
      add_slot(env, &op->results[j],
               literal ? CPU_JIT_SLOT_BUFFER : CPU_JIT_SLOT_OP, SIZE_MAX);
    }
  }
  return NULL;
}
