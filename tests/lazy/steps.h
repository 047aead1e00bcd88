// steps: a small model and its training step, for tests that count what a step
// takes on a real plugin.
#ifndef CX_TESTS_LAZY_STEPS_H
#define CX_TESTS_LAZY_STEPS_H

#include <time.h>

#include "calx/optim.h"
#include "engine.h"

// Waits until the plugin has reported what it has done.
static inline long executions(void)
{
  CHECK_STATUS_OK(calx_device_wait(NULL));
  long n = engine_samples("ExecuteTime"), before = -1;
  for (int i = 0; i < 50 && n != before; i++) {
    struct timespec moment = { .tv_nsec = 2000000 };
    before = n;
    nanosleep(&moment, NULL);
    n = engine_samples("ExecuteTime");
  }
  return n;
}

typedef struct net {
  calx_module *root, *fc1, *fc2;
} net;

static inline calx_tensor *net_forward(void *self, calx_tensor *x)
{
  net *m = self;
  return calx_forward(m->fc2, calx_relu(calx_forward(m->fc1, x)));
}

static inline void net_make(net *m)
{
  m->root = calx_module_new("net", net_forward, m);
  m->fc1 = calx_nn_linear(m->root, "fc1", 4, 8);
  m->fc2 = calx_nn_linear(m->root, "fc2", 8, 2);
  CHECK_STATUS_OK(calx_module_error(m->root));
  calx_sync(NULL);
}

// One training step on a batch of this size; how many programs it took.
static inline long train_step(net *m, calx_optimizer *opt, int64_t size)
{
  long before = engine_compiles();
  calx_scope *step = calx_scope_begin();
  double x[64 * 4];
  for (int i = 0; i < 64 * 4; i++) x[i] = (i * 7 % 13) * 0.1;
  int64_t y[64];
  for (int i = 0; i < 64; i++) y[i] = i % 2;
  calx_tensor *input = engine_tensor(CALX_SHAPE(size, 4), x);
  calx_tensor *target = calx_tensor_from(y, CALX_I64, CALX_SHAPE(size));
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss =
      calx_nll_loss(calx_log_softmax(calx_forward(m->root, input), 1), target);
  calx_backward(loss);
  calx_optimizer_step(opt);
  calx_sync(loss);
  assert_true(isfinite(calx_item(loss)));
  CHECK_STATUS_OK(calx_scope_end(step));
  return engine_compiles() - before;
}

#endif
