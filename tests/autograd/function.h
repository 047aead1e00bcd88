// function: a custom function that the tests share: y = a x^2 + b for the
// scalar state a, and z = x + b without a gradient where it is asked for.
#ifndef CX_TESTS_AUTOGRAD_FUNCTION_H
#define CX_TESTS_AUTOGRAD_FUNCTION_H

#include "calx/function.h"
#include "calx/ops.h"
#include "support/support.h"

static inline calx_tensor *f64_leaf(size_t n, const double *values)
{
  calx_tensor *t = support_tensor(CALX_F64, CALX_SHAPE((int64_t)n), values);
  calx_requires_grad(t, true);
  return t;
}
#define LEAF(...)                                              \
  f64_leaf(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), \
           (double[]){ __VA_ARGS__ })
#define CHECK_SCOPE(scope, code, ...) \
  CHECK_STATUS(code, calx_scope_end(scope), __VA_ARGS__)

#endif
