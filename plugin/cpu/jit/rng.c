// jit/rng: rng_bit_generator THREE_FRY, as a root.
//
// Threefry-2x32 with 20 rounds (J. Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). How its words become a tensor follows XLA: wide
// elements take a counter each; of narrow ones two stand beside each other
// along one dimension, the first even one or else the longest, which may cut
// the last word off.
#include "jit/root.h"

#define BLOCK 2048  // counters of an iteration

typedef struct rng {
  cx_jit_env *env;
  const cx_jit_kernel *k;
  const cx_hlo_type *t;
  cx_hlo_elem elem;
  bool wide_elem;
  int64_t size, inner;   // of the halved dimension, and behind it
  LLVMValueRef key[3];   // i32
  LLVMValueRef counter;  // i64
  LLVMValueRef memory;   // of the bits
} rng;

// ---- the generator ----

static LLVMValueRef rotated(rng *r, LLVMBuilderRef b, LLVMValueRef x, int by)
{
  LLVMTypeRef t = LLVMTypeOf(x);
  LLVMValueRef args[] = { x, x, cx_jit_const_int(t, (unsigned)by) };
  return cx_jit_intrinsic(r->env, b, "llvm.fshl", &t, 1, args, 3);
}

static LLVMValueRef of_lanes(rng *r, LLVMValueRef scalar)
{
  return r->env->lanes == 1 ? scalar : cx_jit_splat(r->env, scalar, 0);
}

static void threefry(rng *r, LLVMBuilderRef b, LLVMValueRef count,
                     LLVMValueRef out[2])
{
  static const int by[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
  cx_jit_env *env = r->env;
  LLVMTypeRef t = env->lanes == 1 ? env->i32 : cx_jit_wide_type(env, env->i32);
  LLVMValueRef key[3];
  for (int i = 0; i < 3; i++) key[i] = of_lanes(r, r->key[i]);
  LLVMValueRef high =
      LLVMBuildLShr(b, count, cx_jit_const_int(LLVMTypeOf(count), 32), "");
  LLVMValueRef x = LLVMBuildTrunc(b, count, t, "");
  LLVMValueRef y = LLVMBuildTrunc(b, high, t, "");
  x = LLVMBuildAdd(b, x, key[0], "");
  y = LLVMBuildAdd(b, y, key[1], "");
  for (unsigned round = 0; round < 5; round++) {
    for (int i = 0; i < 4; i++) {
      x = LLVMBuildAdd(b, x, y, "");
      y = LLVMBuildXor(b, rotated(r, b, y, by[round % 2][i]), x, "");
    }
    x = LLVMBuildAdd(b, x, key[(round + 1) % 3], "");
    y = LLVMBuildAdd(b, y, key[(round + 2) % 3], "");
    y = LLVMBuildAdd(b, y, cx_jit_const_int(t, round + 1), "");
  }
  out[0] = x;
  out[1] = y;
}

static cx_jit_val words_at(rng *r, cx_jit_ix which, cx_jit_val *second)
{
  cx_jit_env *env = r->env;
  const int level = env->n_levels - 1;
  LLVMValueRef count = cx_jit_op2(env, LLVMAdd, r->counter, which.base, level);
  if (env->lanes > 1) {
    LLVMTypeRef t = cx_jit_wide_type(env, env->i64);
    count = cx_jit_op2(env, LLVMAdd, cx_jit_splat(env, count, level),
                       cx_jit_iota(env, t, 1), level);
  }
  LLVMBuilderRef b = cx_jit_at(env, level);
  LLVMValueRef w[2];
  threefry(r, b, count, w);
  cx_jit_val v = { .elem = r->elem, .level = level, .wide = env->lanes > 1 };
  LLVMTypeRef t = cx_jit_register_type(env, r->elem, v.wide);
  if (r->wide_elem) {
    LLVMValueRef high = LLVMBuildShl(b, LLVMBuildZExt(b, w[1], t, ""),
                                     cx_jit_const_int(t, 32), "");
    v.re = LLVMBuildOr(b, LLVMBuildZExt(b, w[0], t, ""), high, "");
    return v;
  }
  *second = v;
  const bool cut = cx_hlo_elem_bits(r->elem) < 32;
  v.re = cut ? LLVMBuildTrunc(b, w[0], t, "") : w[0];
  second->re = cut ? LLVMBuildTrunc(b, w[1], t, "") : w[1];
  return v;
}

// ---- where the words go ----

static void store_at(rng *r, cx_jit_val v, cx_jit_ix ix, LLVMValueRef mask)
{
  cx_jit_env *env = r->env;
  cx_jit_place p = { .mask = mask, .mask_level = env->n_levels - 1 };
  cx_jit_place_push(&p, 1, INT64_MAX, ix);
  cx_jit_store(env, r->memory, v, &p, env->n_levels - 1);
}

// Two vectors as one, element by element.
static void store_pairs(rng *r, cx_jit_val a, cx_jit_val b, cx_jit_ix ix)
{
  cx_jit_env *env = r->env;
  LLVMValueRef order[128];
  const unsigned n = (unsigned)env->lanes;
  for (unsigned i = 0; i < 2 * n; i++) {
    order[i] = LLVMConstInt(env->i32, i / 2 + (i % 2 != 0 ? n : 0), 0);
  }
  LLVMBuilderRef at = cx_jit_at(env, env->n_levels - 1);
  LLVMValueRef both =
      LLVMBuildShuffleVector(at, a.re, b.re, LLVMConstVector(order, 2 * n), "");
  LLVMTypeRef t = cx_jit_memory_type(env, r->elem);
  LLVMValueRef p = LLVMBuildGEP2(at, t, r->memory, &ix.base, 1, "");
  LLVMSetAlignment(LLVMBuildStore(at, both, p),
                   (unsigned)cx_hlo_elem_bytes(r->elem));
}

// Counter `which` and the lanes after it: element `which`, or elements twice
// that and the next.
static void put_linear(rng *r, cx_jit_ix which, LLVMValueRef mask)
{
  cx_jit_env *env = r->env;
  cx_jit_val second;
  cx_jit_val first = words_at(r, which, &second);
  which.lane = env->lanes > 1 ? 1 : 0;
  if (r->wide_elem) {
    store_at(r, first, which, mask);
    return;
  }
  cx_jit_ix twice = cx_jit_ix_scale(env, which, 2);
  if (mask == NULL && env->lanes > 1) {
    store_pairs(r, first, second, twice);
    return;
  }
  store_at(r, first, twice, mask);
  store_at(r, second, cx_jit_ix_offset(env, twice, 1), mask);
}

// One row of `inner` counters: of the pair of rows 2j and 2j + 1.
static void put_rows(rng *r, cx_jit_ix t, int64_t extent)
{
  cx_jit_env *env = r->env;
  const int64_t half = (r->size + 1) / 2;
  const int level = env->n_levels - 1;
  cx_jit_ix outer;
  cx_jit_ix j;
  cx_jit_ix_split(env, t, half, extent, false, &outer, &j);
  cx_jit_ix row = cx_jit_ix_add(env, cx_jit_ix_scale(env, outer, r->size),
                                cx_jit_ix_scale(env, j, 2));
  cx_jit_ix start = cx_jit_ix_scale(env, t, r->inner);
  cx_jit_ix to = cx_jit_ix_scale(env, row, r->inner);
  LLVMValueRef both = NULL;
  if (r->size % 2 != 0) {
    both = cx_jit_compare(env, LLVMIntSLT, j.base, cx_jit_i64(env, half - 1),
                          level);
  }
  cx_jit_loop loop;
  LLVMValueRef hi = cx_jit_i64(env, r->inner);
  cx_jit_loop_begin(env, &loop, cx_jit_i64(env, 0), hi, env->lanes, NULL, 0);
  cx_jit_ix iv = cx_jit_ix_scalar(loop.iv, loop.level, env->lanes);
  LLVMValueRef mask = cx_jit_lanes_below(env, hi, loop.iv, loop.level);
  cx_jit_val second;
  cx_jit_val first = words_at(r, cx_jit_ix_add(env, start, iv), &second);
  iv.lane = 1;
  cx_jit_ix at = cx_jit_ix_add(env, to, iv);
  store_at(r, first, at, mask);
  if (both != NULL) {
    mask = cx_jit_op2(env, LLVMAnd, mask, cx_jit_splat(env, both, level),
                      loop.level);
  }
  store_at(r, second, cx_jit_ix_offset(env, at, r->inner), mask);
  cx_jit_loop_end(env, &loop, NULL);
}

static void put_block(rng *r, cx_jit_ix t, int64_t counters)
{
  cx_jit_env *env = r->env;
  cx_jit_ix lo = cx_jit_ix_scale(env, t, BLOCK);
  cx_jit_ix hi = cx_jit_ix_offset(env, lo, BLOCK);
  LLVMValueRef most = cx_jit_i64(env, counters);
  LLVMValueRef past = cx_jit_compare(env, LLVMIntSGT, hi.base, most, hi.level);
  LLVMValueRef end = cx_jit_choose(env, past, most, hi.base, hi.level);
  LLVMValueRef full =
      cx_jit_op2(env, LLVMAnd, end, cx_jit_i64(env, -env->lanes), hi.level);
  cx_jit_loop loop;
  cx_jit_loop_begin(env, &loop, lo.base, full, env->lanes, NULL, 0);
  put_linear(r, cx_jit_ix_scalar(loop.iv, loop.level, env->lanes), NULL);
  cx_jit_loop_end(env, &loop, NULL);
  if (counters % env->lanes == 0) return;
  cx_jit_loop_begin(env, &loop, full, end, env->lanes, NULL, 0);
  put_linear(r, cx_jit_ix_scalar(loop.iv, loop.level, env->lanes),
             cx_jit_lanes_below(env, end, loop.iv, loop.level));
  cx_jit_loop_end(env, &loop, NULL);
}

// ---- the kernel ----

static cx_jit_val state_word(cx_jit_env *env, const cx_hlo_op *op, int i)
{
  cx_jit_place p = { 0 };
  cx_jit_place_push(&p, 1, 2, cx_jit_ix_const(env, i));
  return cx_jit_emit(env, op->operands[0], cx_jit_place_of(env, &p));
}

// By the iteration 0 alone.
static void put_state(rng *r, LLVMValueRef memory, cx_jit_val key,
                      int64_t counters)
{
  cx_jit_env *env = r->env;
  cx_jit_loop loop;
  cx_jit_loop_begin(env, &loop, LLVMGetParam(env->function, 1),
                    cx_jit_i64(env, 1), 1, NULL, 0);
  const int level = loop.level;
  for (int i = 0; i < 2; i++) {
    cx_jit_val v = key;
    v.level = level;
    if (i == 1) {
      v.re = cx_jit_op2(env, LLVMAdd, r->counter, cx_jit_i64(env, counters),
                        level);
    }
    cx_jit_place p = { 0 };
    cx_jit_place_push(&p, 1, 2, cx_jit_ix_const(env, i));
    cx_jit_store(env, memory, v, &p, level);
  }
  cx_jit_loop_end(env, &loop, NULL);
}

static void set_dimension(rng *r)
{
  r->size = 1;
  r->inner = 1;
  int longest = -1;
  int d = -1;
  for (int i = 0; i < (int)r->t->rank; i++) {
    if (d < 0 && r->t->dims[i] % 2 == 0) d = i;
    if (longest < 0 || r->t->dims[i] > r->t->dims[longest]) longest = i;
  }
  if (d < 0) d = longest;
  if (d >= 0) r->size = r->t->dims[d];
  for (int i = d + 1; i < (int)r->t->rank; i++) r->inner *= r->t->dims[i];
}

calx_status *cx_jit_kernel_rng(cx_jit_env *env, cx_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  rng r = { .env = env, .k = k, .t = cx_jit_type(&op->results[1]) };
  r.elem = r.t->elem;
  r.wide_elem = cx_hlo_elem_bits(r.elem) > 32;
  const int64_t n = cx_hlo_type_elements(r.t);
  set_dimension(&r);
  int64_t counters = n;
  if (!r.wide_elem && n > 0) counters = n / r.size * ((r.size + 1) / 2);
  const bool rows = !r.wide_elem && (r.inner > 1 || r.size % 2 != 0);
  const int64_t each = rows ? r.inner : BLOCK;
  int64_t extent = (counters + each - 1) / each;
  k->n_phases = 1;
  k->phases[0] = (cx_jit_phase){ extent > 0 ? extent : 1, 16384 / each + 1 };
  cx_jit_function_begin(env, 0, env->target->lanes);
  const cx_jit_val key = state_word(env, op, 0);
  r.counter = state_word(env, op, 1).re;
  LLVMBuilderRef b = cx_jit_at(env, 0);
  r.key[0] = LLVMBuildTrunc(b, key.re, env->i32, "");
  r.key[1] = LLVMBuildTrunc(
      b, LLVMBuildLShr(b, key.re, cx_jit_i64(env, 32), ""), env->i32, "");
  r.key[2] = LLVMBuildXor(b, LLVMBuildXor(b, r.key[0], r.key[1], ""),
                          LLVMConstInt(env->i32, 0x1BD11BDA, 0), "");
  for (size_t i = 0; i < k->n_outputs; i++) {
    LLVMValueRef memory = cx_jit_buffer(env, k->n_inputs + i);
    if (k->outputs[i]->index == 0) {
      put_state(&r, memory, key, counters);
      continue;
    }
    r.memory = memory;
    if (extent == 0) continue;
    cx_jit_loop loop;
    cx_jit_loop_begin(env, &loop, LLVMGetParam(env->function, 1),
                      LLVMGetParam(env->function, 2), 1, NULL, 0);
    cx_jit_ix t = cx_jit_ix_scalar(loop.iv, loop.level, 1);
    if (rows) {
      put_rows(&r, t, extent);
    } else {
      put_block(&r, t, counters);
    }
    cx_jit_loop_end(env, &loop, NULL);
  }
  cx_jit_function_end(env);
  return env->status;
}
