// leaf: what the tests of the tape share.
#ifndef CX_TESTS_AUTOGRAD_LEAF_H
#define CX_TESTS_AUTOGRAD_LEAF_H

#include "calx/autograd.h"
#include "calx/ops.h"
#include "support/support.h"

static inline calx_tensor *leaf(void)
{
  calx_tensor *t = support_tensor(CALX_F32, CALX_SHAPE(2), (double[]){ 1, 2 });
  calx_requires_grad(t, true);
  return t;
}

#define CHECK_SCOPE(scope, code, ...) \
  CHECK_STATUS(code, calx_scope_end(scope), __VA_ARGS__)

#endif
