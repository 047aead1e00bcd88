// opt/integers: what is known of a tensor of integers before it is computed.
#ifndef CPU_OPT_INTEGERS_H
#define CPU_OPT_INTEGERS_H

#include "hlo/module.h"

typedef struct cpu_opt_integers {
  bool bounded;
  int64_t low, high;  // bounded: all elements are from low to high
  int64_t step;       // from each element to the next one along `dim`
} cpu_opt_integers;

// False: neighbours along `dim` may differ by another number at one place than
// at another. dim = -1 asks for the bounds alone: the step is 0, and the result
// is true. The search ends after a fixed number of operations, and then nothing
// is known. Of other types than integers, i1 among them, nothing is known.
bool cpu_opt_know_integers(const cx_hlo_value *v, int64_t dim,
                           cpu_opt_integers *out);

#endif
