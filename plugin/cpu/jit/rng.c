// jit/rng: rng_bit_generator, as a root.
//
// How words become a tensor follows XLA. Philox's are its elements in order,
// wide ones of two words. Of Threefry's, wide elements take a counter each; of
// narrow ones two stand beside each other along one dimension, the first even
// one or else the longest, which may cut the last word off.
#include "jit/root.h"

#define BLOCK 2048  // counters of an iteration

typedef struct rng {
  cpu_jit_env *env;
  const cpu_jit_kernel *k;
  const cx_hlo_type *t;
  cx_hlo_elem elem;
  bool philox, wide_elem;
  int64_t n, each;          // elements, and those of a counter
  int64_t counters;         // that are used
  int64_t size, inner;      // of the halved dimension, and behind it
  LLVMValueRef key[2];      // i32
  LLVMValueRef counter[2];  // i64, low and high
  LLVMValueRef memory;      // of the bits
} rng;

// ---- words ----

// The counters `which` and those of the lanes after it; *high: with the carry.
static LLVMValueRef counters_at(rng *r, cpu_jit_ix which, LLVMValueRef *high)
{
  cpu_jit_env *env = r->env;
  const int level = env->n_levels - 1;
  LLVMTypeRef t = cpu_jit_wide_type(env, env->i64);
  LLVMBuilderRef b = cpu_jit_at(env, level);
  LLVMValueRef by = LLVMBuildAdd(b, cpu_jit_splat(env, which.base, level),
                                 cpu_jit_iota(env, t, 1), "");
  LLVMValueRef low =
      LLVMBuildAdd(b, cpu_jit_splat(env, r->counter[0], 0), by, "");
  if (high != NULL) {
    LLVMValueRef carry = LLVMBuildICmp(b, LLVMIntULT, low, by, "");
    carry = LLVMBuildZExt(b, carry, t, "");
    *high = LLVMBuildAdd(b, cpu_jit_splat(env, r->counter[1], 0), carry, "");
  }
  return low;
}

// The element that these words make: the first one, or two.
static LLVMValueRef element_of(rng *r, LLVMBuilderRef b,
                               const LLVMValueRef *words)
{
  LLVMTypeRef t = cpu_jit_register_type(r->env, r->elem, true);
  const unsigned bits = (unsigned)cx_hlo_elem_bits(r->elem);
  if (bits < 32) return LLVMBuildTrunc(b, words[0], t, "");
  if (bits == 32) return words[0];
  LLVMValueRef high = LLVMBuildShl(b, LLVMBuildZExt(b, words[1], t, ""),
                                   cpu_jit_const_int(t, 32), "");
  return LLVMBuildOr(b, LLVMBuildZExt(b, words[0], t, ""), high, "");
}

// Threefry's elements of these counters: one, or two of a word each.
static cpu_jit_val elements_at(rng *r, cpu_jit_ix which, cpu_jit_val *second)
{
  cpu_jit_env *env = r->env;
  const int level = env->n_levels - 1;
  cpu_jit_val v = { .elem = r->elem, .level = level, .wide = true };
  LLVMValueRef words[2];
  cpu_jit_threefry(env, r->key, counters_at(r, which, NULL), words);
  LLVMBuilderRef b = cpu_jit_at(env, level);
  if (!r->wide_elem) {
    *second = v;
    second->re = element_of(r, b, &words[1]);
  }
  v.re = element_of(r, b, words);
  return v;
}

// ---- where the words go ----

static void store_at(rng *r, cpu_jit_val v, cpu_jit_ix ix, LLVMValueRef mask)
{
  cpu_jit_env *env = r->env;
  cpu_jit_loc p = { .mask = mask, .mask_level = env->n_levels - 1 };
  cpu_jit_loc_push(&p, 1, INT64_MAX, ix);
  cpu_jit_store(env, r->memory, v, &p, env->n_levels - 1);
}

// Two vectors as one, element by element.
static LLVMValueRef paired(rng *r, LLVMBuilderRef at, LLVMValueRef a,
                           LLVMValueRef b)
{
  int order[128];
  const int n = (int)LLVMGetVectorSize(LLVMTypeOf(a));
  CX_ASSERT(2 * n <= (int)(sizeof order / sizeof order[0]));
  for (int i = 0; i < 2 * n; i++) order[i] = i / 2 + (i % 2 != 0 ? n : 0);
  return cpu_jit_shuffle(r->env, at, a, b, order, 2 * n);
}

// All of a vector, of any length.
static void store_run(rng *r, LLVMBuilderRef b, LLVMValueRef v, cpu_jit_ix ix)
{
  LLVMTypeRef t = cpu_jit_memory_type(r->env, r->elem);
  LLVMValueRef p = LLVMBuildGEP2(b, t, r->memory, &ix.base, 1, "");
  LLVMSetAlignment(LLVMBuildStore(b, v, p),
                   (unsigned)cx_hlo_elem_bytes(r->elem));
}

// Stores those elements of a vector of `each` times the lanes that are within
// the tensor.
static void store_end(rng *r, LLVMBuilderRef b, LLVMValueRef v, cpu_jit_ix ix)
{
  cpu_jit_env *env = r->env;
  const int lanes = env->lanes;
  const int level = env->n_levels - 1;
  LLVMValueRef n = cpu_jit_i64(env, r->n);
  int order[64];
  for (int part = 0; part < (int)r->each; part++) {
    for (int i = 0; i < lanes; i++) order[i] = part * lanes + i;
    cpu_jit_val x = { .elem = r->elem, .level = level, .wide = true };
    x.re = cpu_jit_shuffle(env, b, v, NULL, order, lanes);
    cpu_jit_ix at = cpu_jit_ix_offset(env, ix, (int64_t)part * lanes);
    LLVMValueRef mask = cpu_jit_lanes_below(env, n, at.base, level);
    at.lane = 1;
    store_at(r, x, at, mask);
  }
}

// The elements of counter `which` and of the lanes after it; `masked`: only
// those within the tensor.
static void put_philox(rng *r, cpu_jit_ix which, bool masked)
{
  cpu_jit_env *env = r->env;
  LLVMValueRef high;
  LLVMValueRef low = counters_at(r, which, &high);
  LLVMValueRef x[4];
  cpu_jit_philox(env, r->key, low, high, x);
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  LLVMValueRef all;
  if (r->wide_elem) {
    all = paired(r, b, element_of(r, b, x), element_of(r, b, x + 2));
  } else {
    for (int i = 0; i < 4; i++) x[i] = element_of(r, b, &x[i]);
    all = paired(r, b, paired(r, b, x[0], x[2]), paired(r, b, x[1], x[3]));
  }
  cpu_jit_ix ix = cpu_jit_ix_scale(env, which, r->each);
  if (masked) {
    store_end(r, b, all, ix);
  } else {
    store_run(r, b, all, ix);
  }
}

// Counter `which` and the lanes after it: element `which`, or elements twice
// that and the next.
static void put_linear(rng *r, cpu_jit_ix which, LLVMValueRef mask)
{
  cpu_jit_env *env = r->env;
  if (r->philox) {
    put_philox(r, which, mask != NULL);
    return;
  }
  cpu_jit_val second;
  cpu_jit_val first = elements_at(r, which, &second);
  which.lane = 1;
  if (r->wide_elem) {
    store_at(r, first, which, mask);
    return;
  }
  cpu_jit_ix twice = cpu_jit_ix_scale(env, which, 2);
  if (mask == NULL) {
    LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
    store_run(r, b, paired(r, b, first.re, second.re), twice);
    return;
  }
  store_at(r, first, twice, mask);
  store_at(r, second, cpu_jit_ix_offset(env, twice, 1), mask);
}

// One row of `inner` counters: of the pair of rows 2j and 2j + 1.
static void put_rows(rng *r, cpu_jit_ix t, int64_t extent)
{
  cpu_jit_env *env = r->env;
  const int64_t half = (r->size + 1) / 2;
  const int level = env->n_levels - 1;
  cpu_jit_ix outer = t;
  const cpu_jit_ix j = cpu_jit_ix_take(env, &outer, &extent, half);
  cpu_jit_ix row = cpu_jit_ix_add(env, cpu_jit_ix_scale(env, outer, r->size),
                                  cpu_jit_ix_scale(env, j, 2));
  cpu_jit_ix start = cpu_jit_ix_scale(env, t, r->inner);
  cpu_jit_ix to = cpu_jit_ix_scale(env, row, r->inner);
  LLVMValueRef both = NULL;
  if (r->size % 2 != 0) {
    both = cpu_jit_compare(env, LLVMIntSLT, j.base, cpu_jit_i64(env, half - 1),
                           level);
  }
  cpu_jit_loop loop;
  LLVMValueRef hi = cpu_jit_i64(env, r->inner);
  LLVMValueRef mask;
  const cpu_jit_ix iv =
      cpu_jit_vectors_begin(env, &loop, cpu_jit_i64(env, 0), hi, &mask);
  cpu_jit_val second;
  cpu_jit_val first = elements_at(r, cpu_jit_ix_add(env, start, iv), &second);
  cpu_jit_ix at = cpu_jit_ix_add(env, to, iv);
  store_at(r, first, at, mask);
  if (both != NULL) {
    mask = cpu_jit_op2(env, LLVMAnd, mask, cpu_jit_splat(env, both, level),
                       loop.level);
  }
  store_at(r, second, cpu_jit_ix_offset(env, at, r->inner), mask);
  cpu_jit_loop_end(env, &loop, NULL);
}

static void put_block(rng *r, cpu_jit_ix t)
{
  cpu_jit_env *env = r->env;
  LLVMValueRef end, full;
  const cpu_jit_ix lo = cpu_jit_ix_block(env, t, BLOCK, r->counters, &end);
  // Vectors of counters all of whose elements there are.
  cpu_jit_ix_block(env, t, BLOCK, r->n / r->each, &full);
  full =
      cpu_jit_op2(env, LLVMAnd, full, cpu_jit_i64(env, -env->lanes), lo.level);
  cpu_jit_loop loop;
  LLVMValueRef mask;
  put_linear(r, cpu_jit_vectors_begin(env, &loop, lo.base, full, NULL), NULL);
  cpu_jit_loop_end(env, &loop, NULL);
  if (r->n % (r->each * env->lanes) == 0) return;
  const cpu_jit_ix rest = cpu_jit_vectors_begin(env, &loop, full, end, &mask);
  put_linear(r, rest, mask);
  cpu_jit_loop_end(env, &loop, NULL);
}

// ---- the kernel ----

static int64_t state_words(const rng *r)
{
  return cpu_jit_type(r->k->outputs[0]->op->operands[0])->dims[0];
}

static const cpu_jit_loc *state_loc(rng *r, int64_t i)
{
  cpu_jit_loc p = { 0 };
  cpu_jit_loc_push(&p, 1, state_words(r), cpu_jit_ix_const(r->env, i));
  return cpu_jit_loc_of(r->env, &p);
}

static LLVMValueRef state_word(rng *r, int64_t i)
{
  const cx_hlo_value *state = r->k->outputs[0]->op->operands[0];
  return cpu_jit_emit(r->env, state, state_loc(r, i)).re;
}

static void read_state(rng *r)
{
  cpu_jit_env *env = r->env;
  LLVMValueRef key = state_word(r, 0);
  r->counter[0] = state_word(r, 1);
  // XLA's: without a third word the counter's high word begins as the key.
  r->counter[1] = state_words(r) > 2 ? state_word(r, 2) : key;
  LLVMBuilderRef b = cpu_jit_at(env, 0);
  r->key[0] = LLVMBuildTrunc(b, key, env->i32, "");
  r->key[1] = LLVMBuildTrunc(b, LLVMBuildLShr(b, key, cpu_jit_i64(env, 32), ""),
                             env->i32, "");
}

// By the iteration 0 alone.
static void put_state(rng *r, LLVMValueRef memory)
{
  cpu_jit_env *env = r->env;
  cpu_jit_loop loop;
  cpu_jit_loop_begin(env, &loop, env->lo, cpu_jit_i64(env, 1), 1, NULL, 0);
  LLVMBuilderRef b = cpu_jit_at(env, loop.level);
  LLVMValueRef used = cpu_jit_i64(env, r->counters);
  LLVMValueRef low = LLVMBuildAdd(b, r->counter[0], used, "");
  LLVMValueRef carry = LLVMBuildICmp(b, LLVMIntULT, low, used, "");
  LLVMValueRef high =
      LLVMBuildAdd(b, r->counter[1], LLVMBuildZExt(b, carry, env->i64, ""), "");
  LLVMValueRef words[3] = { state_word(r, 0), low, high };
  for (int64_t i = 0; i < state_words(r); i++) {
    const cpu_jit_val v = { .re = words[i],
                            .elem = CX_HLO_UI64,
                            .level = loop.level };
    cpu_jit_store(env, memory, v, state_loc(r, i), loop.level);
  }
  cpu_jit_loop_end(env, &loop, NULL);
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

static void set_counters(rng *r)
{
  r->n = cx_hlo_type_elements(r->t);
  r->each = (r->philox ? 4 : 2) / (r->wide_elem ? 2 : 1);
  if (r->philox) {
    r->counters = (r->n + r->each - 1) / r->each;
  } else if (r->wide_elem) {
    r->counters = r->n;
  } else if (r->n > 0) {
    set_dimension(r);
    r->counters = r->n / r->size * ((r->size + 1) / 2);
  }
}

calx_status *cpu_jit_kernel_rng(cpu_jit_env *env, cpu_jit_kernel *k)
{
  const cx_hlo_op *op = k->outputs[0]->op;
  rng r = { .env = env, .k = k, .t = cpu_jit_type(&op->results[1]) };
  r.elem = r.t->elem;
  r.wide_elem = cx_hlo_elem_bits(r.elem) > 32;
  r.philox = cx_hlo_op_int(op, CX_HLO_A_RNG_ALGORITHM) != CX_HLO_RNG_THREE_FRY;
  set_counters(&r);
  const bool rows =
      !r.philox && !r.wide_elem && (r.inner > 1 || r.size % 2 != 0);
  const int64_t each = rows ? r.inner : BLOCK;
  const int64_t extent = (r.counters + each - 1) / each;
  cpu_jit_function_begin(env, k, 0, extent > 0 ? extent : 1, 16384 / each + 1,
                         env->target->lanes);
  read_state(&r);
  for (size_t i = 0; i < k->n_outputs; i++) {
    LLVMValueRef memory = cpu_jit_buffer(env, k->n_inputs + i);
    if (k->outputs[i]->index == 0) {
      put_state(&r, memory);
      continue;
    }
    r.memory = memory;
    if (r.counters == 0) continue;
    cpu_jit_loop loop;
    const cpu_jit_ix t =
        cpu_jit_loop_begin(env, &loop, env->lo, env->hi, 1, NULL, 0);
    if (rows) {
      put_rows(&r, t, extent);
    } else {
      put_block(&r, t);
    }
    cpu_jit_loop_end(env, &loop, NULL);
  }
  cpu_jit_function_end(env);
  return env->status;
}
