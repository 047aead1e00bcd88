// ref/random: rng_bit_generator and rng.
//
// Sources: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011): Threefry-2x32 with 20 rounds, Philox-4x32 with 10. How their words
// become tensors follows XLA, bit by bit.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

static uint32_t rotate(uint32_t x, unsigned by)
{
  return x << by | x >> (32 - by);
}

static void threefry(uint64_t key, uint64_t counter, uint32_t out[2])
{
  static const unsigned by[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
  const uint32_t low = (uint32_t)key;
  const uint32_t high = (uint32_t)(key >> 32);
  const uint32_t k[3] = { low, high, low ^ high ^ 0x1BD11BDAu };
  uint32_t a = (uint32_t)counter + k[0];
  uint32_t b = (uint32_t)(counter >> 32) + k[1];
  for (uint32_t r = 0; r < 5; r++) {
    for (size_t i = 0; i < 4; i++) {
      a += b;
      b = rotate(b, by[r % 2][i]) ^ a;
    }
    a += k[(r + 1) % 3];
    b += k[(r + 2) % 3] + r + 1;
  }
  out[0] = a;
  out[1] = b;
}

static void philox(uint64_t key, const uint64_t counter[2], uint32_t out[4])
{
  uint32_t x[4] = { (uint32_t)counter[0], (uint32_t)(counter[0] >> 32),
                    (uint32_t)counter[1], (uint32_t)(counter[1] >> 32) };
  uint32_t k0 = (uint32_t)key;
  uint32_t k1 = (uint32_t)(key >> 32);
  for (int r = 0; r < 10; r++) {
    const uint64_t p = (uint64_t)x[0] * 0xD2511F53u;
    const uint64_t q = (uint64_t)x[2] * 0xCD9E8D57u;
    const uint32_t y[4] = { (uint32_t)(q >> 32) ^ x[1] ^ k0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ x[3] ^ k1, (uint32_t)p };
    memcpy(x, y, sizeof x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  memcpy(out, x, sizeof x);
}

// ---- rng_bit_generator ----

static void put(const cpu_ref_tensor *t, size_t i, uint64_t bits)
{
  const cx_hlo_elem e = t->type.elem;
  void *p = cpu_ref_at(t, i);
  if (cpu_ref_class_of(e) == CPU_REF_INT) {
    cx_hlo_store_int(e, p, (int64_t)bits);
  } else {
    const unsigned n = cx_hlo_elem_bits(e);
    cx_hlo_store_bits(e, p, n < 64 ? bits & ((UINT64_C(1) << n) - 1) : bits);
  }
}

// 32 bits and less: half of the result's elements have a counter each; its two
// words stand beside each other along the dimension that was halved, the first
// even one, or else the longest. Returns how many counters were used.
static uint64_t threefry_narrow(uint64_t key, uint64_t counter,
                                const cpu_ref_tensor *out)
{
  const size_t rank = out->type.rank;
  const int64_t one = 1;
  const int64_t *dims = rank == 0 ? &one : out->type.dims;
  const size_t n_dims = rank == 0 ? 1 : rank;
  size_t d = n_dims;
  size_t longest = 0;
  for (size_t i = 0; i < n_dims; i++) {
    if (d == n_dims && dims[i] % 2 == 0) d = i;
    if (dims[i] > dims[longest]) longest = i;
  }
  if (d == n_dims) d = longest;
  size_t inner = 1;
  for (size_t i = d + 1; i < n_dims; i++) inner *= (size_t)dims[i];
  const size_t n = cpu_ref_count(out);
  const size_t size = (size_t)dims[d];
  const size_t half = (size + 1) / 2;
  for (size_t i = 0; i < n; i++) {
    const size_t along = i / inner % size;
    const size_t which =
        (i / inner / size * half + along / 2) * inner + i % inner;
    uint32_t words[2];
    threefry(key, counter + which, words);
    put(out, i, words[along % 2]);
  }
  return size == 0 ? 0 : n / size * half;
}

static uint64_t threefry_wide(uint64_t key, uint64_t counter,
                              const cpu_ref_tensor *out)
{
  const size_t n = cpu_ref_count(out);
  for (size_t i = 0; i < n; i++) {
    uint32_t words[2];
    threefry(key, counter + i, words);
    put(out, i, words[0] | (uint64_t)words[1] << 32);
  }
  return n;
}

static void count_on(uint64_t counter[2], uint64_t by)
{
  counter[0] += by;
  counter[1] += counter[0] < by;
}

static void philox_all(uint64_t key, uint64_t counter[2],
                       const cpu_ref_tensor *out)
{
  const size_t n = cpu_ref_count(out);
  const size_t words = cx_hlo_elem_bits(out->type.elem) > 32 ? 2 : 1;
  const size_t each = 4 / words;
  uint32_t x[4] = { 0 };
  for (size_t i = 0; i < n; i++) {
    const size_t k = i % each * words;
    if (k == 0) {
      philox(key, counter, x);
      count_on(counter, 1);
    }
    put(out, i, words == 2 ? x[k] | (uint64_t)x[k + 1] << 32 : x[k]);
  }
}

calx_status *cpu_ref_bit_generator(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const int64_t how = cx_hlo_op_int(c->op, CX_HLO_A_RNG_ALGORITHM);
  const size_t n = cpu_ref_count(in);
  uint64_t state[3] = { 0 };
  if (n < 1 || in->type.elem != CX_HLO_UI64 ||
      !cx_hlo_type_equal(&in->type, &out->type)) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "no state of type %s",
                       CPU_REF_SHAPE(in));
  }
  const size_t used = n < 3 ? n : 3;
  memcpy(out->data, in->data, n * sizeof *state);
  memcpy(state, in->data, used * sizeof *state);
  if (how == CX_HLO_RNG_THREE_FRY) {
    const bool wide = cx_hlo_elem_bits(out[1].type.elem) > 32;
    state[1] += wide ? threefry_wide(state[0], state[1], &out[1])
                     : threefry_narrow(state[0], state[1], &out[1]);
  } else if (how == CX_HLO_RNG_DEFAULT && n == 1) {
    // The one word counts; a fixed key.
    uint64_t counter[2] = { state[0], 0 };
    philox_all(0, counter, &out[1]);
    state[0] = counter[0];
  } else {
    // XLA's: without a third word the counter's high word begins as the key.
    if (n == 2) state[2] = state[0];
    philox_all(state[0], state + 1, &out[1]);
  }
  memcpy(out->data, state, used * sizeof *state);
  return NULL;
}

// ---- rng ----

// The stream of `rng`: Philox, key and counter in the device's two words.
static uint64_t draw(uint64_t *state)
{
  const uint64_t counter[2] = { state[1]++, 0 };
  uint32_t x[4];
  philox(state[0], counter, x);
  return x[0] | (uint64_t)x[1] << 32;
}

static double unit(uint64_t *state)  // in [0, 1)
{
  return (double)(draw(state) >> 11) * 0x1p-53;
}

// G. Box and M. Muller (1958); 1 - u is never 0.
static double normal(uint64_t *state)
{
  const double r = sqrt(-2 * log(1 - unit(state)));
  return r * cos(2 * acos(-1.0) * unit(state));
}

// In [a, b) after rounding, too: rounding up to b is drawn again, a few times.
static void draw_real(uint64_t *state, bool gauss, double a, double b,
                      cx_hlo_elem e, void *p)
{
  if (gauss) {
    const double v = a + b * normal(state);
    cpu_ref_store_reals(e, p, 1, &v);
    return;
  }
  for (int tries = 0; tries < 64; tries++) {
    const double v = a + (b - a) * unit(state);
    double rounded = 0;
    cpu_ref_store_reals(e, p, 1, &v);
    cpu_ref_load_reals(e, p, 1, &rounded);
    if (rounded < b) return;
  }
  cpu_ref_store_reals(e, p, 1, &a);
}

calx_status *cpu_ref_rng(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  enum { NORMAL = 2 };
  uint64_t *state = c->machine->context->rng_state;
  if (state == NULL) state = c->machine->rng;
  const bool gauss = cx_hlo_op_int(c->op, CX_HLO_A_RNG_DISTRIBUTION) == NORMAL;
  const cx_hlo_elem e = out->type.elem;
  const size_t n = cpu_ref_count(out);
  const bool real = cpu_ref_class_of(e) == CPU_REF_REAL;
  if (gauss && !real) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "no normal numbers in %s",
                       CPU_REF_SHAPE(out));
  }
  for (size_t i = 0; i < n; i++) {
    void *p = cpu_ref_at(out, i);
    if (real) {
      double a;
      double b;
      cpu_ref_load_reals(e, in[0].data, 1, &a);
      cpu_ref_load_reals(e, in[1].data, 1, &b);
      draw_real(state, gauss, a, b, e, p);
    } else {
      const uint64_t a = (uint64_t)cpu_ref_int_at(&in[0], 0);
      const uint64_t range = (uint64_t)cpu_ref_int_at(&in[1], 0) - a;
      const uint64_t v = draw(state);
      cx_hlo_store_int(e, p, (int64_t)(a + (range == 0 ? 0 : v % range)));
    }
  }
  return NULL;
}
