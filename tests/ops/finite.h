// First and second derivatives of every differentiable op against central
// differences, in f64. For f(x) = sum(w * op(x)) with random w:
//   first    df/dx_i           against (f(x + h e_i) - f(x - h e_i)) / 2h
//   second   d(v . df/dx)/dx_i against the same difference of v . df/dx
// Compiling takes nearly all of the time. Without CALX_TEST_LONG=1 XLA gets one
// op of four, and of the composed ops one of three its second derivatives. All
// points of one x are computed by one program: each difference only uploads.
#ifndef CX_TESTS_OPS_FINITE_H
#define CX_TESTS_OPS_FINITE_H

#include "calx/calx.h"
#include "support/support.h"

typedef struct subject {
  const char *name;
  calx_tensor *(*fn)(calx_tensor *const *in);
  size_t n_in;
  size_t ranks[3];
  int64_t dims[3][4];
  double low, high;  // of the random inputs
  bool flat;         // its second derivative is 0 everywhere: none is recorded
} subject;

// Fails unless all of them agree. CALX_TEST_CASE=NAME: one of them. Second
// derivatives are checked of one op of so many.
void finite_check(const subject *all, size_t n, size_t second_every);

#endif
