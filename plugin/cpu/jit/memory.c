// jit/memory: loads, stores and literals.
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "jit/emit.h"

// ---- between memory and registers ----

static LLVMValueRef to_register(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMValueRef x, cx_hlo_elem e)
{
  if (e == CX_HLO_I1) {
    return LLVMBuildICmp(b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
  }
  if (e == CX_HLO_BF16 || e == CX_HLO_F16) {
    return cpu_jit_from_bits16(env, b, x, e);
  }
  return x;
}

static LLVMValueRef to_memory(cpu_jit_env *env, LLVMBuilderRef b,
                              LLVMValueRef x, cx_hlo_elem e)
{
  if (e == CX_HLO_I1) {
    const bool wide = LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
    return LLVMBuildZExt(b, x, wide ? cpu_jit_wide_type(env, env->i8) : env->i8,
                         "");
  }
  if (e == CX_HLO_BF16 || e == CX_HLO_F16) {
    return cpu_jit_to_bits16(env, b, x, e);
  }
  return x;
}

static LLVMValueRef address(LLVMBuilderRef b, LLVMTypeRef t,
                            LLVMValueRef pointer, LLVMValueRef index)
{
  return LLVMBuildGEP2(b, t, pointer, &index, 1, "");
}

// The lanes' addresses.
static LLVMValueRef addresses(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                              LLVMValueRef pointer, cpu_jit_ix ix)
{
  if (ix.wide) return address(b, t, pointer, ix.base);
  LLVMValueRef base = address(b, t, pointer, ix.base);
  LLVMTypeRef lanes = cpu_jit_wide_type(env, env->i64);
  return address(b, t, base, cpu_jit_iota(env, lanes, ix.lane));
}

static LLVMValueRef all_lanes(cpu_jit_env *env)
{
  return LLVMConstAllOnes(cpu_jit_wide_type(env, env->i1));
}

static LLVMValueRef load_masked(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMTypeRef t, LLVMValueRef at,
                                LLVMValueRef mask, bool gather)
{
  LLVMTypeRef wide = cpu_jit_wide_type(env, t);
  LLVMValueRef args[] = { at, LLVMConstInt(env->i32, cpu_jit_bytes_of(t), 0),
                          mask == NULL ? all_lanes(env) : mask,
                          LLVMConstNull(wide) };
  LLVMTypeRef types[] = { wide, LLVMTypeOf(at) };
  return cpu_jit_intrinsic(env->module, b,
                           gather ? "llvm.masked.gather" : "llvm.masked.load",
                           types, 2, args, 4);
}

static LLVMValueRef backwards(cpu_jit_env *env, LLVMBuilderRef b,
                              LLVMValueRef v)
{
  int order[64];
  for (int i = 0; i < env->lanes; i++) order[i] = env->lanes - 1 - i;
  return cpu_jit_shuffle(env, b, v, NULL, order, env->lanes);
}

// A whole vector from `ix` on, backwards where its stride is -1.
static LLVMValueRef load_run(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                             LLVMValueRef pointer, cpu_jit_ix ix)
{
  LLVMTypeRef wide = cpu_jit_wide_type(env, t);
  LLVMValueRef at = address(b, t, pointer, ix.base);
  if (ix.lane < 0) {
    at = address(b, t, at, cpu_jit_i64(env, 1 - env->lanes));
  }
  LLVMValueRef v = LLVMBuildLoad2(b, wide, at, "");
  LLVMSetAlignment(v, cpu_jit_bytes_of(t));
  return ix.lane > 0 ? v : backwards(env, b, v);
}

// The lanes of `mask` at the elements, `first` and on, that a stride of 2
// takes.
static LLVMValueRef spread_mask(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMValueRef mask, int first)
{
  int order[64];
  for (int i = 0; i < env->lanes; i++) {
    const int at = i + first;
    order[i] = at % 2 == 0 ? at / 2 : env->lanes;
  }
  return cpu_jit_shuffle(env, b, mask, LLVMConstNull(LLVMTypeOf(mask)), order,
                         env->lanes);
}

// Every second element from `ix` on: two vectors, of which the second ends with
// the last element that is wanted, so that nothing behind it is read.
static LLVMValueRef load_second(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMTypeRef t, LLVMValueRef pointer,
                                cpu_jit_ix ix, LLVMValueRef mask)
{
  const int n = env->lanes;
  LLVMValueRef half[2];
  for (int i = 0; i < 2; i++) {
    const int first = i == 0 ? 0 : n - 1;
    LLVMValueRef at = address(b, t, pointer, ix.base);
    at = address(b, t, at, cpu_jit_i64(env, first));
    if (mask != NULL) {
      half[i] =
          load_masked(env, b, t, at, spread_mask(env, b, mask, first), false);
      continue;
    }
    half[i] = LLVMBuildLoad2(b, cpu_jit_wide_type(env, t), at, "");
    LLVMSetAlignment(half[i], cpu_jit_bytes_of(t));
  }
  int order[64];
  for (int i = 0; i < n; i++) order[i] = 2 * i < n ? 2 * i : 2 * i + 1;
  return cpu_jit_shuffle(env, b, half[0], half[1], order, n);
}

// ---- columns ----

#define FEW_COLUMNS 4  // of which even one alone is loaded with all others

// Of lanes that are neighbouring rows, at one column, how many columns there
// are; 0: they are something else, or so many columns that gathers are better.
static int columns_of(const cpu_jit_env *env, const cpu_jit_loc *p)
{
  if (p->n < 2 || p->mask != NULL || env->lanes == 1) return 0;
  const cpu_jit_part *row = &p->part[p->n - 2], *column = &p->part[p->n - 1];
  for (int i = 0; i < p->n - 2; i++) {
    if (!cpu_jit_ix_same(&p->part[i].ix)) return 0;
  }
  // A scatter's constant index may be out of range. Its loop then runs over
  // nothing, but it is compiled.
  const bool known =
      cpu_jit_ix_same(&column->ix) &&
      LLVMIsAConstantInt(column->ix.base) != NULL &&
      LLVMConstIntGetZExtValue(column->ix.base) < (uint64_t)column->size;
  const int64_t most =
      column->size == env->columns ? CPU_JIT_COLUMNS : FEW_COLUMNS;
  return known && !row->ix.wide && row->ix.lane == 1 && column->size > 1 &&
                 column->size <= most
             ? (int)column->size
             : 0;
}

// The address of vector i of the rows' memory.
static LLVMValueRef address_of_vector(cpu_jit_env *env, LLVMBuilderRef b,
                                      LLVMTypeRef t, LLVMValueRef pointer,
                                      cpu_jit_ix rows, int i)
{
  LLVMValueRef at = address(b, t, pointer, rows.base);
  return address(b, t, at, cpu_jit_i64(env, (int64_t)i * env->lanes));
}

static cpu_jit_val load_column(cpu_jit_env *env, LLVMValueRef pointer,
                               cx_hlo_elem e, const cpu_jit_loc *p, int n,
                               int level)
{
  cpu_jit_loc first = *p;
  cpu_jit_part *column = &first.part[first.n - 1];
  const int64_t c = LLVMConstIntGetSExtValue(column->ix.base);
  column->ix = cpu_jit_ix_const(env, 0);
  const cpu_jit_ix rows = cpu_jit_loc_linear(env, &first);
  cpu_jit_val v = { .elem = e,
                    .level = cpu_jit_deeper(level, rows.level),
                    .wide = true };
  LLVMTypeRef t = cpu_jit_memory_type(env, e);
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  LLVMValueRef memory[CPU_JIT_COLUMNS];
  for (int i = 0; i < n; i++) {
    memory[i] =
        LLVMBuildLoad2(b, cpu_jit_wide_type(env, t),
                       address_of_vector(env, b, t, pointer, rows, i), "");
    LLVMSetAlignment(memory[i], cpu_jit_bytes_of(t));
  }
  v.re = to_register(env, b, cpu_jit_column(env, b, memory, n, (int)c), e);
  return v;
}

// Element k * step from `ix` on for each lane k, of step 3 or 4, without
// gathering: as many vectors. The last ends with the last wanted element, so
// that nothing behind it is read.
static LLVMValueRef load_spaced(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMTypeRef t, LLVMValueRef pointer,
                                cpu_jit_ix ix)
{
  const int n = env->lanes, step = (int)ix.lane;
  const int last = (n - 1) * (step - 1);
  LLVMValueRef v[4];
  int order[64] = { 0 };
  for (int i = 0; i < step; i++) {
    const int first = i * n < last ? i * n : last;
    LLVMValueRef at = address(b, t, pointer, ix.base);
    at = address(b, t, at, cpu_jit_i64(env, first));
    v[i] = LLVMBuildLoad2(b, cpu_jit_wide_type(env, t), at, "");
    LLVMSetAlignment(v[i], cpu_jit_bytes_of(t));
    for (int k = 0; k < n; k++) {
      const int from = k * step - first;
      if (k * step >= i * n && from < n) order[k] = i * n + from;
    }
  }
  return cpu_jit_pick_lanes(env, b, v, step, order);
}

static LLVMValueRef load_part(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                              LLVMValueRef pointer, cpu_jit_ix ix,
                              LLVMValueRef mask)
{
  if (cpu_jit_ix_same(&ix)) {
    LLVMValueRef v = LLVMBuildLoad2(b, t, address(b, t, pointer, ix.base), "");
    LLVMSetAlignment(v, cpu_jit_bytes_of(t));
    return v;
  }
  if (!ix.wide && ix.lane == 1 && mask != NULL) {
    LLVMValueRef at = address(b, t, pointer, ix.base);
    const int first =
        env->target->has_masks ? 0 : cpu_jit_first_lanes(env, mask);
    return first > 0 ? cpu_jit_load_first(env, b, t, at, first)
                     : load_masked(env, b, t, at, mask, false);
  }
  if (!ix.wide && (ix.lane == 1 || ix.lane == -1) && mask == NULL) {
    return load_run(env, b, t, pointer, ix);
  }
  if (!ix.wide && ix.lane == 2) {
    return load_second(env, b, t, pointer, ix, mask);
  }
  if (!ix.wide && (ix.lane == 3 || ix.lane == 4) && mask == NULL) {
    return load_spaced(env, b, t, pointer, ix);
  }
  return load_masked(env, b, t, addresses(env, b, t, pointer, ix), mask, true);
}

cpu_jit_val cpu_jit_load(cpu_jit_env *env, LLVMValueRef pointer, cx_hlo_elem e,
                         const cpu_jit_loc *p)
{
  return cpu_jit_load_at(env, pointer, e, p, env->memory_level);
}

cpu_jit_val cpu_jit_load_at(cpu_jit_env *env, LLVMValueRef pointer,
                            cx_hlo_elem e, const cpu_jit_loc *p, int level)
{
  const bool complex = cx_hlo_elem_is_complex(e);
  const int columns = complex ? 0 : columns_of(env, p);
  if (columns > 0) return load_column(env, pointer, e, p, columns, level);
  cpu_jit_ix ix = cpu_jit_loc_linear(env, p);
  cpu_jit_val v = { .elem = e, .level = cpu_jit_deeper(level, ix.level) };
  v.wide = !cpu_jit_ix_same(&ix);
  if (v.wide && p->mask != NULL)
    v.level = cpu_jit_deeper(v.level, p->mask_level);
  LLVMTypeRef t = cpu_jit_memory_type(env, e);
  if (complex) ix = cpu_jit_ix_scale(env, ix, 2);
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  cpu_jit_read_ahead(env, b, t, pointer, p, ix);
  v.re = to_register(env, b, load_part(env, b, t, pointer, ix, p->mask), e);
  if (complex) {
    const cpu_jit_ix second = cpu_jit_ix_offset(env, ix, 1);
    v.im = load_part(env, b, t, pointer, second, p->mask);
  }
  return v;
}

static void store_part(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef pointer,
                       LLVMValueRef v, cpu_jit_ix ix, LLVMValueRef mask)
{
  LLVMTypeRef t = LLVMTypeOf(v);
  if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) {
    LLVMValueRef s = LLVMBuildStore(b, v, address(b, t, pointer, ix.base));
    LLVMSetAlignment(s, cpu_jit_bytes_of(t));
    return;
  }
  LLVMTypeRef scalar = LLVMGetElementType(t);
  if (!ix.wide && ix.lane == -1 && mask == NULL) {
    v = backwards(env, b, v);
    ix = cpu_jit_ix_offset(env, ix, 1 - env->lanes);
    ix.lane = 1;
  }
  const bool run = !ix.wide && ix.lane == 1;
  LLVMValueRef at = run ? address(b, scalar, pointer, ix.base)
                        : addresses(env, b, scalar, pointer, ix);
  if (run && mask == NULL) {
    LLVMSetAlignment(LLVMBuildStore(b, v, at), cpu_jit_bytes_of(scalar));
    return;
  }
  const int first = run ? cpu_jit_first_lanes(env, mask) : 0;
  if (first > 0) {
    cpu_jit_store_first(env, b, scalar, v, at, first);
    return;
  }
  LLVMValueRef args[] = { v, at,
                          LLVMConstInt(env->i32, cpu_jit_bytes_of(scalar), 0),
                          mask == NULL ? all_lanes(env) : mask };
  LLVMTypeRef types[] = { t, LLVMTypeOf(at) };
  cpu_jit_intrinsic(env->module, b,
                    run ? "llvm.masked.store" : "llvm.masked.scatter", types, 2,
                    args, 4);
}

void cpu_jit_store(cpu_jit_env *env, LLVMValueRef pointer, cpu_jit_val v,
                   const cpu_jit_loc *p, int level)
{
  cpu_jit_ix ix = cpu_jit_loc_linear(env, p);
  if (!cpu_jit_ix_same(&ix)) v = cpu_jit_widen(env, v);
  if (v.im != NULL) ix = cpu_jit_ix_scale(env, ix, 2);
  LLVMBuilderRef b = cpu_jit_at(env, level);
  cpu_jit_write_ahead(env, b, cpu_jit_memory_type(env, v.elem), pointer, p, ix);
  store_part(env, b, pointer, to_memory(env, b, v.re, v.elem), ix, p->mask);
  if (v.im != NULL) {
    store_part(env, b, pointer, v.im, cpu_jit_ix_offset(env, ix, 1), p->mask);
  }
}

void cpu_jit_store_columns(cpu_jit_env *env, LLVMValueRef pointer,
                           const cpu_jit_val *v, int n, const cpu_jit_loc *p,
                           int level)
{
  const cpu_jit_ix rows = cpu_jit_loc_linear(env, p);
  LLVMValueRef memory[CPU_JIT_COLUMNS];
  for (int i = 0; i < n; i++) {
    const cpu_jit_val x = env->lanes == 1 ? v[i] : cpu_jit_widen(env, v[i]);
    memory[i] = to_memory(env, cpu_jit_at(env, level), x.re, x.elem);
  }
  LLVMBuilderRef b = cpu_jit_at(env, level);
  LLVMTypeRef t = cpu_jit_memory_type(env, v[0].elem);
  if (env->lanes > 1) cpu_jit_interleave(env, b, memory, n);
  for (int i = 0; i < n; i++) {
    LLVMValueRef at = address_of_vector(env, b, t, pointer, rows, i);
    LLVMSetAlignment(LLVMBuildStore(b, memory[i], at), cpu_jit_bytes_of(t));
  }
}

// ---- literals ----

static LLVMValueRef literal_element(LLVMTypeRef t, const unsigned char *p)
{
  if (LLVMGetTypeKind(t) == LLVMFloatTypeKind ||
      LLVMGetTypeKind(t) == LLVMDoubleTypeKind) {
    // By bits, so that a NaN stays what it is.
    uint64_t bits = 0;
    const unsigned n = cpu_jit_bytes_of(t);
    memcpy(&bits, p, n);
    LLVMTypeRef i = LLVMIntTypeInContext(LLVMGetTypeContext(t), n * 8);
    return LLVMConstBitCast(LLVMConstInt(i, bits, 0), t);
  }
  uint64_t v = 0;
  memcpy(&v, p, cpu_jit_bytes_of(t));
  return LLVMConstInt(t, v, 0);
}

cpu_jit_val cpu_jit_splat_of(cpu_jit_env *env, const cx_hlo_elements *e)
{
  const cx_hlo_elem elem = e->type.tensor.elem;
  LLVMTypeRef t = cpu_jit_memory_type(env, elem);
  cpu_jit_val v = { .elem = elem };
  v.re = literal_element(t, e->data);
  if (cx_hlo_elem_is_complex(elem)) {
    v.im = literal_element(t, e->data + cpu_jit_bytes_of(t));
  } else if (elem == CX_HLO_I1) {
    v.re = LLVMConstInt(env->i1, *e->data != 0, 0);
  } else if (elem == CX_HLO_BF16 || elem == CX_HLO_F16) {
    const calx_dtype d = elem == CX_HLO_F16 ? CALX_F16 : CALX_BF16;
    v.re = LLVMConstReal(env->f32, cx_load_double(d, e->data));
  }
  return v;
}

LLVMValueRef cpu_jit_literal(cpu_jit_env *env, const cx_hlo_elements *e)
{
  // Its name says what it holds: equal ones are one, in all functions.
  char name[40] = "literal";
  cx_hash_hex(cx_hash_bytes(e->data, e->size, 0), name + 7);
  LLVMValueRef g = LLVMGetNamedGlobal(env->module, name);
  if (g != NULL) return g;
  LLVMValueRef data = LLVMConstStringInContext2(
      env->context, (const char *)e->data, e->size, 1);
  g = LLVMAddGlobal(env->module, LLVMTypeOf(data), name);
  LLVMSetInitializer(g, data);
  LLVMSetLinkage(g, LLVMPrivateLinkage);
  LLVMSetGlobalConstant(g, 1);
  LLVMSetAlignment(g, 64);
  return g;
}
