// opt/integers: what is known of a tensor of integers before it is computed.
#ifndef CPU_OPT_INTEGERS_H
#define CPU_OPT_INTEGERS_H

#include "hlo/module.h"

typedef struct cpu_opt_integers {
  bool bounded;
  int64_t low, high;  // bounded: all elements are from low to high
  int64_t step;       // from each element to the next one along `dim`
} cpu_opt_integers;

// Whether neighbours along `dim` differ by the same everywhere; -1: asks for
// the bounds only, and the step is 0. False also where that takes too long to
// find out. i1 is no integer.
bool cpu_opt_know_integers(const cx_hlo_value *v, int64_t dim,
                           cpu_opt_integers *out);

#endif
