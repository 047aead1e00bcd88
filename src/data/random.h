// data/random: the module's counter-based generator.
//
// SplitMix64 read as a function of a counter instead of a state: value k of key
// s is out(s, k) = mix(s + (k + 1) G), so that any value can be had without
// those before it, and the same on every machine. A purpose with a seed and a
// number n (epoch, sample) has the key out(out(seed, 0), n).
//
// Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014; D. Lemire, "Fast random integer generation in an
// interval", TOMACS 29 (2019), for unbiased bounded numbers.
#ifndef CX_DATA_RANDOM_H
#define CX_DATA_RANDOM_H

#include <stdint.h>

typedef struct cx_data_random {
  uint64_t key;
  uint64_t at;  // the counter: numbers drawn so far
} cx_data_random;

static inline uint64_t cx_data_random_out(uint64_t key, uint64_t k)
{
  uint64_t z = key + (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static inline cx_data_random cx_data_random_new(uint64_t seed, uint64_t n)
{
  return (cx_data_random){ cx_data_random_out(cx_data_random_out(seed, 0), n),
                           0 };
}

static inline uint64_t cx_data_random_next(cx_data_random *r)
{
  return cx_data_random_out(r->key, r->at++);
}

// High and low half of a 128-bit product.
static inline uint64_t cx_data_random_mul(uint64_t a, uint64_t b, uint64_t *low)
{
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  uint64_t other = a0 * b1 + (uint32_t)middle;
  *low = a * b;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// Uniform in [0, n), without bias; n > 0.
static inline uint64_t cx_data_random_below(cx_data_random *r, uint64_t n)
{
  uint64_t low;
  uint64_t high = cx_data_random_mul(cx_data_random_next(r), n, &low);
  if (low < n) {
    uint64_t least = (0 - n) % n;  // 2^64 mod n: so many values are too many
    while (low < least) {
      high = cx_data_random_mul(cx_data_random_next(r), n, &low);
    }
  }
  return high;
}

#endif
