// Random numbers for samples that an example draws itself: sample i of a seed
// is always the same.
#ifndef EXAMPLES_DRAWN_H
#define EXAMPLES_DRAWN_H

#include <math.h>
#include <stdint.h>

// The state for a sample.
static inline uint64_t drawn_begin(uint64_t seed, int64_t index)
{
  return seed * 0x9e3779b97f4a7c15u + (uint64_t)index * 0xd1342543de82ef95u;
}

// In [0, 1) (G. Steele et al., Fast splittable pseudorandom numbers, 2014).
static inline double drawn(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Normal, with mean 0 and variance 1 (Box and Muller, 1958).
static inline double drawn_normal(uint64_t *state)
{
  double radius = sqrt(-2 * log(1 - drawn(state)));
  return radius * cos(6.283185307179586 * drawn(state));
}

#endif
