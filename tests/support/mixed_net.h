// mixed_net: a model whose modules make children before parameters of their
// own, all parameters of one shape, so that only their order tells them apart.
// In the order of their making:
//
//   a.weight, k (a buffer), w, b.c.weight, b.v, z
#ifndef CX_TESTS_SUPPORT_MIXED_NET_H
#define CX_TESTS_SUPPORT_MIXED_NET_H

#include "calx/autograd.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/optim.h"
#include "calx/scope.h"
#include "support/support.h"

enum { MIXED_PARAMS = 5 };

static const char *const mixed_made[MIXED_PARAMS] = { "a.weight", "w",
                                                      "b.c.weight", "b.v",
                                                      "z" };

// Parameter i of the order of their making begins as (i + 1) (.1 .2 .3 .4).
static calx_tensor *mixed_value(int i, calx_dtype dtype)
{
  double v[4];
  for (int k = 0; k < 4; k++) v[k] = (i + 1) * (k + 1) / 10.0;
  return support_tensor(dtype, CALX_SHAPE(2, 2), v);
}

static calx_module *mixed_net(calx_dtype dtype)
{
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_module_new("Mixed", NULL, NULL);
  calx_module *a = calx_module_child(m, "a", "Linear", NULL, NULL);
  calx_module_param(a, "weight", mixed_value(0, dtype));
  calx_module_buffer(m, "k", mixed_value(6, dtype));
  calx_module_param(m, "w", mixed_value(1, dtype));
  calx_module *b = calx_module_child(m, "b", "B", NULL, NULL);
  calx_module *c = calx_module_child(b, "c", "Linear", NULL, NULL);
  calx_module_param(c, "weight", mixed_value(2, dtype));
  calx_module_param(b, "v", mixed_value(3, dtype));
  calx_module_param(m, "z", mixed_value(4, dtype));
  CHECK_STATUS_OK(calx_module_error(m));
  CHECK_STATUS_OK(calx_scope_end(s));
  return m;
}

// A step down the sum of ((i + 1) p_i)^2 / 2.
static void mixed_step(calx_module *m, calx_optimizer *opt)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = NULL;
  for (int i = 0; i < MIXED_PARAMS; i++) {
    calx_tensor *p = calx_module_find(m, mixed_made[i]);
    calx_tensor *one = calx_sum(calx_square(calx_mul(p, i + 1)));
    loss = loss == NULL ? one : calx_add(loss, one);
  }
  calx_backward(calx_mul(loss, 0.5));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

#endif
