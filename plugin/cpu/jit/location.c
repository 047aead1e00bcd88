// jit/location: where an element is.
//
// An index is a scalar and a stride between lanes as long as these give it
// exactly: then neighbours are read as one vector. An index that no stride
// gives (the quotient of a lane's index) is a vector of indices, and its reads
// are gathers.
#include <string.h>

#include "jit/emit.h"

#define BUCKETS 1024

static int64_t gcd(int64_t a, int64_t b)
{
  while (b != 0) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

// ---- one index ----

cpu_jit_ix cpu_jit_ix_const(cpu_jit_env *env, int64_t v)
{
  return (cpu_jit_ix){ .base = cpu_jit_i64(env, v),
                       .multiple = v < 0 ? -v : v };
}

cpu_jit_ix cpu_jit_ix_scalar(LLVMValueRef base, int level, int64_t multiple)
{
  return (cpu_jit_ix){ .base = base, .level = level, .multiple = multiple };
}

bool cpu_jit_ix_same(const cpu_jit_ix *ix)
{
  return !ix->wide && ix->lane == 0;
}

LLVMTypeRef cpu_jit_lane_type(cpu_jit_env *env)
{
  return env->small ? env->i32 : env->i64;
}

LLVMValueRef cpu_jit_ix_widen(cpu_jit_env *env, cpu_jit_ix a)
{
  if (a.wide) return a.base;
  LLVMTypeRef lane = cpu_jit_lane_type(env);
  LLVMValueRef base = cpu_jit_resize(env, a.base, lane, true, a.level);
  base = cpu_jit_splat(env, base, a.level);
  if (a.lane == 0) return base;
  LLVMValueRef step = cpu_jit_iota(env, cpu_jit_wide_type(env, lane), a.lane);
  return cpu_jit_op2(env, LLVMAdd, base, step, a.level);
}

cpu_jit_ix cpu_jit_ix_wide(LLVMValueRef base, int level)
{
  return (cpu_jit_ix){ .base = base, .level = level, .wide = true };
}

cpu_jit_ix cpu_jit_ix_add(cpu_jit_env *env, cpu_jit_ix a, cpu_jit_ix b)
{
  if (!a.wide && a.lane == 0 && a.multiple == 0) return b;
  if (!b.wide && b.lane == 0 && b.multiple == 0) return a;
  const int level = cpu_jit_deeper(a.level, b.level);
  if (!a.wide && !b.wide) {
    return (cpu_jit_ix){ .base =
                             cpu_jit_op2(env, LLVMAdd, a.base, b.base, level),
                         .lane = a.lane + b.lane,
                         .multiple = gcd(a.multiple, b.multiple),
                         .level = level };
  }
  LLVMValueRef x = cpu_jit_ix_widen(env, a);
  LLVMValueRef y = cpu_jit_ix_widen(env, b);
  return cpu_jit_ix_wide(cpu_jit_op2(env, LLVMAdd, x, y, level), level);
}

cpu_jit_ix cpu_jit_ix_scale(cpu_jit_env *env, cpu_jit_ix a, int64_t k)
{
  if (k == 1) return a;
  if (k == 0) return cpu_jit_ix_const(env, 0);
  LLVMValueRef by = cpu_jit_const_int(LLVMTypeOf(a.base), (uint64_t)k);
  a.base = cpu_jit_op2(env, LLVMMul, a.base, by, a.level);
  a.lane *= k;
  a.period = 0;
  a.multiple *= k < 0 ? -k : k;
  return a;
}

cpu_jit_ix cpu_jit_ix_offset(cpu_jit_env *env, cpu_jit_ix a, int64_t k)
{
  if (k == 0) return a;
  LLVMValueRef by = cpu_jit_const_int(LLVMTypeOf(a.base), (uint64_t)k);
  a.base = cpu_jit_op2(env, LLVMAdd, a.base, by, a.level);
  a.multiple = gcd(a.multiple, k);
  a.period = 0;
  return a;
}

static cpu_jit_ix divided(cpu_jit_env *env, LLVMOpcode op, cpu_jit_ix a,
                          int64_t d)
{
  LLVMValueRef by = cpu_jit_const_int(LLVMTypeOf(a.base), (uint64_t)d);
  a.base = cpu_jit_op2(env, op, a.base, by, a.level);
  a.multiple = 1;
  a.period = 0;
  return a;
}

// Lane i: (residue + i) / d, less residue / d, or the remainder.
static LLVMValueRef known(cpu_jit_env *env, int64_t residue, int64_t d,
                          bool remainder)
{
  LLVMValueRef lane[64];
  for (int i = 0; i < env->lanes; i++) {
    const int64_t at = residue + i;
    lane[i] = cpu_jit_const_int(
        cpu_jit_lane_type(env),
        (uint64_t)(remainder ? at % d : at / d - residue / d));
  }
  return LLVMConstVector(lane, (unsigned)env->lanes);
}

// Of neighbours from an index on whose remainder is known.
static void split_known(cpu_jit_env *env, cpu_jit_ix a, int64_t d,
                        cpu_jit_ix *quotient, cpu_jit_ix *rest)
{
  *rest = cpu_jit_ix_wide(known(env, a.residue, d, true), 0);
  cpu_jit_ix first = divided(env, LLVMUDiv, a, d);
  first.lane = 0;
  *quotient = cpu_jit_ix_add(
      env, first, cpu_jit_ix_wide(known(env, a.residue, d, false), 0));
}

void cpu_jit_ix_split(cpu_jit_env *env, cpu_jit_ix a, int64_t d, int64_t size,
                      bool masked, cpu_jit_ix *quotient, cpu_jit_ix *rest)
{
  if (d == 1) {
    *quotient = a;
    *rest = cpu_jit_ix_const(env, 0);
    return;
  }
  if (d >= size) {
    *quotient = cpu_jit_ix_const(env, 0);
    *rest = a;
    return;
  }
  if (!masked && !a.wide && a.lane == 1 && a.period > 0 && a.period % d == 0) {
    split_known(env, a, d, quotient, rest);
    return;
  }
  // All lanes have one quotient when a run of d holds them from its start.
  const int64_t room = a.wide ? 0 : gcd(a.multiple, d);
  const bool one = !a.wide && a.lane >= 0 &&
                   a.lane <= room / (env->lanes > 1 ? env->lanes : 1);
  if (!a.wide && (a.lane == 0 || one)) {
    *quotient = divided(env, LLVMUDiv, a, d);
    quotient->lane = 0;
    *rest = divided(env, LLVMURem, a, d);
    rest->multiple = room;
    if (!masked || a.lane == 0) return;
    LLVMValueRef most = cpu_jit_i64(env, (size - 1) / d);
    LLVMValueRef in =
        cpu_jit_compare(env, LLVMIntULE, quotient->base, most, quotient->level);
    quotient->base =
        cpu_jit_choose(env, in, quotient->base, most, quotient->level);
    return;
  }
  a = cpu_jit_ix_wide(cpu_jit_ix_widen(env, a), a.level);
  *quotient = divided(env, LLVMUDiv, a, d);
  *rest = divided(env, LLVMURem, a, d);
}

cpu_jit_ix cpu_jit_ix_take(cpu_jit_env *env, cpu_jit_ix *rest, int64_t *size,
                           int64_t n)
{
  cpu_jit_ix at;
  cpu_jit_ix_split(env, *rest, n, *size, false, rest, &at);
  *size /= n;
  return at;
}

cpu_jit_ix cpu_jit_ix_block(cpu_jit_env *env, cpu_jit_ix ix, int64_t n,
                            int64_t most, LLVMValueRef *hi)
{
  const cpu_jit_ix lo = cpu_jit_ix_scale(env, ix, n);
  const cpu_jit_ix end = cpu_jit_ix_offset(env, lo, n);
  *hi = cpu_jit_least(env, end.base, cpu_jit_i64(env, most), end.level);
  return lo;
}

// ---- locations ----

static uintptr_t hash_loc(const cpu_jit_loc *p)
{
  uintptr_t h = (uintptr_t)p->mask >> 4;
  for (int i = 0; i < p->n; i++) {
    const cpu_jit_part *part = &p->part[i];
    h = h * 31 + ((uintptr_t)part->ix.base >> 4);
    h = h * 31 + (uintptr_t)part->ix.lane + (uintptr_t)part->dims;
  }
  return h ^ (h >> 10);
}

static bool same_loc(const cpu_jit_loc *a, const cpu_jit_loc *b)
{
  if (a->mask != b->mask || a->n != b->n) return false;
  for (int i = 0; i < a->n; i++) {
    const cpu_jit_part *x = &a->part[i];
    const cpu_jit_part *y = &b->part[i];
    if (x->ix.base != y->ix.base || x->ix.lane != y->ix.lane ||
        x->dims != y->dims || x->size != y->size) {
      return false;
    }
  }
  return true;
}

const cpu_jit_loc *cpu_jit_loc_of(cpu_jit_env *env, const cpu_jit_loc *p)
{
  if (p->n == 0) return &env->scalar;
  cpu_jit_loc **bucket = &env->locs[hash_loc(p) % BUCKETS];
  for (cpu_jit_loc *q = *bucket; q != NULL; q = q->next) {
    if (same_loc(p, q)) return q;
  }
  cpu_jit_loc *q = CX_ARENA_NEW(&env->fn_arena, cpu_jit_loc);
  if (q == NULL) {
    cpu_jit_out_of_memory(env);
    return &env->scalar;
  }
  *q = *p;
  q->next = *bucket;
  *bucket = q;
  return q;
}

void cpu_jit_loc_push(cpu_jit_loc *p, int dims, int64_t size, cpu_jit_ix ix)
{
  CX_ASSERT(p->n < CPU_JIT_RANK);
  p->part[p->n++] = (cpu_jit_part){ ix, size, dims };
}

const cpu_jit_loc *cpu_jit_loc_masked(cpu_jit_env *env, const cpu_jit_loc *p,
                                      LLVMValueRef mask, int level)
{
  cpu_jit_loc q = *p;
  if (p->mask == NULL) {
    q.mask = mask;
    q.mask_level = level;
  } else {
    q.mask_level = cpu_jit_deeper(p->mask_level, level);
    q.mask = cpu_jit_op2(env, LLVMAnd, p->mask, mask, q.mask_level);
  }
  return cpu_jit_loc_of(env, &q);
}

void cpu_jit_loc_cut(cpu_jit_env *env, const cx_hlo_type *t,
                     const cpu_jit_loc *p, uint32_t cuts, cpu_jit_loc *out)
{
  *out = (cpu_jit_loc){ .mask = p->mask, .mask_level = p->mask_level };
  int d = 0;
  for (int i = 0; i < p->n; i++) {
    cpu_jit_part rest = p->part[i];
    const int end = d + rest.dims;
    while (d < end) {
      int next = d + 1;
      int64_t size = t->dims[d];
      while (next < end && (cuts >> next & 1) == 0) size *= t->dims[next++];
      cpu_jit_ix ix = rest.ix;
      if (next < end) {
        const int64_t inner = size == 0 ? 0 : rest.size / size;
        cpu_jit_ix_split(env, ix, inner, rest.size, p->mask != NULL, &ix,
                         &rest.ix);
        rest.size = inner;
      }
      cpu_jit_loc_push(out, next - d, size, ix);
      d = next;
    }
  }
}

cpu_jit_ix cpu_jit_loc_linear(cpu_jit_env *env, const cpu_jit_loc *p)
{
  cpu_jit_ix sum = cpu_jit_ix_const(env, 0);
  for (int i = 0; i < p->n; i++) {
    sum = cpu_jit_ix_scale(env, sum, p->part[i].size);
    sum = cpu_jit_ix_add(env, sum, p->part[i].ix);
  }
  return sum;
}
