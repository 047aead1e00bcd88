// lapack/numbers: what the routines ask of numbers in their memory.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "lapack/inner.h"

#define NOT_FINITE (-4)  // as jaxlib has it

int cpu_lapack_asked(const cpu_lapack_call *c, const void *work)
{
  double n;
  if (cpu_lapack_is_wide(c)) {
    memcpy(&n, work, sizeof n);
  } else {
    float x;
    memcpy(&x, work, sizeof x);
    n = (double)nextafterf(x, INFINITY);
  }
  return n < INT_MAX - 1 ? (int)ceil(n) : -1;
}

static bool are_finite(const cpu_lapack_call *c, const void *x, size_t n)
{
  const size_t parts = cpu_lapack_is_complex(c) ? 2 * n : n;
  const float *narrow = x;
  const double *wide = x;
  for (size_t i = 0; i < parts; i++) {
    if (!isfinite(cpu_lapack_is_wide(c) ? wide[i] : (double)narrow[i])) {
      return false;
    }
  }
  return true;
}

bool cpu_lapack_stops(const cpu_lapack_call *c, const void *a, int rows,
                      int columns, void *info)
{
  const int found = NOT_FINITE;
  if (c->query || are_finite(c, a, (size_t)rows * (size_t)columns)) {
    return false;
  }
  memcpy(info, &found, sizeof found);
  return true;
}
