// complex_ranks: collectives of complex tensors, and a step of a complex
// parameter whose gradients are reduced, on 2, 3, 4 and 8 ranks.
#include "calx/complex.h"

#include "calx/autograd.h"
#include "calx/dist.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/optim.h"
#include "support/ranks.h"

// z[i] = rank + i (1 - 2 i) of n elements.
static calx_tensor *numbers(double rank, int n)
{
  double parts[4 * RANKS_MOST];
  for (int i = 0; i < n; i++) {
    parts[2 * i] = rank + i;
    parts[2 * i + 1] = -2 * i;
  }
  return calx_tensor_from(parts, CALX_C128, CALX_SHAPE(n));
}

static calx_status *collectives(ranks_one *r)
{
  int n = r->n;
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = numbers(r->rank, 2), *y = numbers(r->rank, 2);
  calx_tensor *sum = calx_all_reduce(x, CALX_REDUCE_SUM, .scale = 0.5);
  calx_tensor *all = calx_all_gather(x, -1);
  calx_tensor *part =
      calx_reduce_scatter(numbers(r->rank, 2 * n), CALX_REDUCE_SUM, 0);
  calx_collective_broadcast((&y), 1, 1);
  calx_tensor *parts[] = { calx_view_as_real(sum), calx_view_as_real(all),
                           calx_view_as_real(part), calx_view_as_real(y) };
  calx_sync_n(parts, 4);
  double ranks = n * (n - 1) / 2.0, wanted[4 * RANKS_MOST];
  RANK_VALUES(r, parts[0], 1e-12, ranks / 2, 0, (ranks + n) / 2, -n);
  for (int i = 0; i < n; i++) {
    memcpy(&wanted[4 * i], (double[]){ i, 0, i + 1, -2 }, 4 * sizeof *wanted);
  }
  RANK_VALUES_OF(r, parts[1], 0, wanted, 4 * (size_t)n);
  double at = 2 * r->rank;
  RANK_VALUES(r, parts[2], 1e-12, ranks + n * at, -2 * n * at,
              ranks + n * (at + 1), -2 * n * (at + 1));
  RANK_VALUES(r, parts[3], 0, 1, 0, 2, -2);
  calx_all_reduce(x, CALX_REDUCE_MAX);
  calx_status *status = calx_scope_end(step);
  RANK_CHECK(r, strstr(calx_status_message(status),
                       "MAX of c128: complex numbers have only SUM") != NULL);
  calx_status_free(status);
  return NULL;
}

static void test_collectives(void **state)
{
  (void)state;
  ranks_run_worlds(collectives, NULL);
}

// The gradient of sum |w - z|^2 / 2 is w - z, z of the rank; their mean is
// taken.
static calx_status *training(ranks_one *r)
{
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_scope *step = calx_scope_begin();
  calx_tensor *w = calx_module_param(m, "w", numbers(5, 2));
  calx_optimizer *opt = calx_sgd(m, .lr = 1);
  calx_tensor *off = calx_sub(w, numbers(r->rank, 2));
  calx_tensor *loss = calx_sum(calx_mul(0.5, calx_square(calx_abs(off))));
  calx_backward(loss);
  calx_dist_step(opt, loss);
  calx_tensor *parts = calx_view_as_real(w);
  double mean = (r->n - 1) / 2.0;
  RANK_VALUES(r, parts, 1e-12, mean, 0, mean + 1, -2);
  calx_status *status = calx_scope_end(step);
  calx_optimizer_free(opt);
  calx_module_free(m);
  return status;
}

static void test_training(void **state)
{
  (void)state;
  ranks_run_worlds(training, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = { RANKS_TEST(test_collectives),
                                      RANKS_TEST(test_training) };
  return cmocka_run_group_tests(tests, ranks_setup, NULL);
}
