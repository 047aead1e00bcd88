// valgrind_step: a step with generated loops and a product, small enough for
// valgrind. Prints its loss and the sum of a gradient.
#include <stdio.h>

#include "calx/calx.h"

int main(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_full(CALX_SHAPE(64, 33), 0.5);
  calx_tensor *w = calx_full(CALX_SHAPE(33, 50), 0.25);
  calx_requires_grad(w, true);
  calx_tensor *loss = calx_mean(calx_tanh(calx_mm(x, w)));
  calx_backward(loss);
  double sum = calx_item(calx_sum(calx_grad(w)));
  printf("%.4f %.4f\n", calx_item(loss), sum);
  calx_status *status = calx_scope_end(scope);
  calx_status_print(stderr, status);
  const bool failed = status != NULL;
  calx_status_free(status);
  return failed ? 1 : 0;
}
