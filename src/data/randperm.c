// data/randperm: PyTorch's permutations, so that a run there and a run here
// visit the samples in the same order.
//
// PyTorch's CPU generator is MT19937, and a shuffle takes its numbers modulo
// what is left: with a bias, which is kept since equal lists are the point.
//
// Sources: M. Matsumoto, T. Nishimura, "Mersenne Twister", TOMACS 8 (1998);
// PyTorch 2.9, randperm of its CPU backend (what is drawn, in which order).
#include "data/randperm.h"

#include <stddef.h>

enum { WORDS = 624, FAR = 397 };

typedef struct twister {
  uint32_t word[WORDS];
  size_t at;  // words that were handed out; WORDS: the next ones are due
} twister;

static void seed_twister(twister *t, uint32_t seed)
{
  t->word[0] = seed;
  for (uint32_t i = 1; i < WORDS; i++) {
    uint32_t before = t->word[i - 1];
    t->word[i] = UINT32_C(1812433253) * (before ^ (before >> 30)) + i;
  }
  t->at = WORDS;
}

static void next_words(twister *t)
{
  for (size_t i = 0; i < WORDS; i++) {
    uint32_t y = (t->word[i] & UINT32_C(0x80000000)) |
                 (t->word[(i + 1) % WORDS] & UINT32_C(0x7fffffff));
    uint32_t odd = (y & 1) != 0 ? UINT32_C(0x9908b0df) : 0;
    t->word[i] = t->word[(i + FAR) % WORDS] ^ (y >> 1) ^ odd;
  }
  t->at = 0;
}

static uint32_t draw(twister *t)
{
  if (t->at == WORDS) next_words(t);
  uint32_t y = t->word[t->at++];
  y ^= y >> 11;
  y ^= (y << 7) & UINT32_C(0x9d2c5680);
  y ^= (y << 15) & UINT32_C(0xefc60000);
  return y ^ (y >> 18);
}

void cx_data_randperm(uint64_t seed, int64_t n, int64_t *out_order)
{
  if (n >= CX_DATA_RANDPERM_WIDE) {
    cx_data_randperm_wide(seed, n, out_order);
    return;
  }
  twister t;
  seed_twister(&t, (uint32_t)seed);
  for (int64_t i = 0; i < n; i++) out_order[i] = i;
  for (int64_t i = 0; i < n - 1; i++) {
    int64_t j = i + (int64_t)draw(&t) % (n - i);
    int64_t here = out_order[i];
    out_order[i] = out_order[j];
    out_order[j] = here;
  }
}

void cx_data_randperm_wide(uint64_t seed, int64_t n, int64_t *out_order)
{
  twister t;
  seed_twister(&t, (uint32_t)seed);
  for (int64_t i = 0; i < n; i++) {
    uint64_t high = draw(&t);
    uint64_t low = draw(&t);
    int64_t j = (int64_t)((high << 32 | low) % (uint64_t)(i + 1));
    out_order[i] = i;
    out_order[i] = out_order[j];
    out_order[j] = i;
  }
}
