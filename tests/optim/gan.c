// gan: two models and two optimisers whose backward passes reach each other's
// parameters, in the orders that PyTorch accepts. G(z) = g z, D(x) = tanh(d x),
// four iterations of SGD with momentum in f64; the numbers are PyTorch's.
#include "calx/autograd.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/optim.h"
#include "calx/scope.h"
#include "support/support.h"

typedef struct gan {
  calx_module *g_model, *d_model;
  calx_tensor *g, *d;
  calx_optimizer *g_opt, *d_opt;
  calx_tensor *z, *real, *fake;  // of an iteration
  bool sync_each;                // after each optimiser's part too
} gan;

static calx_tensor *pair(double a, double b)
{
  return support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ a, b });
}

static gan make(bool sync_each)
{
  gan n = { .g_model = calx_module_new("Generator", NULL, NULL),
            .d_model = calx_module_new("Discriminator", NULL, NULL),
            .sync_each = sync_each };
  calx_scope *s = calx_scope_begin();
  n.g = calx_module_param(n.g_model, "weight", pair(0.5, -0.3));
  n.d = calx_module_param(n.d_model, "weight", pair(0.8, 0.4));
  CHECK_STATUS_OK(calx_scope_end(s));
  n.g_opt = calx_sgd(n.g_model, .lr = 0.1, .momentum = 0.9);
  n.d_opt = calx_sgd(n.d_model, .lr = 0.1, .momentum = 0.9);
  return n;
}

static void drop(gan *n)
{
  calx_optimizer_free(n->g_opt);
  calx_optimizer_free(n->d_opt);
  calx_module_free(n->g_model);
  calx_module_free(n->d_model);
}

// sum((D(x) - wanted)^2)
static calx_tensor *loss(const gan *n, calx_tensor *x, double wanted)
{
  calx_tensor *y = calx_tanh(calx_mul(n->d, x));
  return calx_sum(calx_square(calx_sub(y, wanted)));
}

static calx_tensor *fake(gan *n)
{
  if (n->fake == NULL || n->sync_each) n->fake = calx_mul(n->g, n->z);
  return n->fake;
}

static void d_backward(gan *n)
{
  calx_tensor *seen = calx_detach(fake(n));
  calx_backward(calx_add(loss(n, n->real, 1), loss(n, seen, 0)));
}

static void g_backward(gan *n)
{
  calx_backward(loss(n, fake(n), 1));
}

static void step(const gan *n, calx_optimizer *opt)
{
  calx_optimizer_step(opt);
  if (n->sync_each) calx_sync(n->z, n->real);
}

static void usual(gan *n)
{
  calx_optimizer_zero_grad(n->d_opt);
  d_backward(n);
  step(n, n->d_opt);
  calx_optimizer_zero_grad(n->g_opt);
  g_backward(n);
  step(n, n->g_opt);
}

static void generator_first(gan *n)
{
  calx_optimizer_zero_grad(n->g_opt);
  g_backward(n);
  step(n, n->g_opt);
  n->fake = NULL;
  calx_optimizer_zero_grad(n->d_opt);
  d_backward(n);
  step(n, n->d_opt);
}

static void frozen(gan *n)
{
  calx_optimizer_zero_grad(n->d_opt);
  d_backward(n);
  step(n, n->d_opt);
  calx_requires_grad(n->d, false);
  calx_optimizer_zero_grad(n->g_opt);
  g_backward(n);
  step(n, n->g_opt);
  calx_requires_grad(n->d, true);
}

static void both_backward(gan *n)
{
  calx_optimizer_zero_grad(n->d_opt);
  calx_optimizer_zero_grad(n->g_opt);
  d_backward(n);
  g_backward(n);
  step(n, n->d_opt);
  step(n, n->g_opt);
}

static void step_twice(gan *n)
{
  calx_optimizer_zero_grad(n->d_opt);
  calx_optimizer_zero_grad(n->g_opt);
  d_backward(n);
  step(n, n->d_opt);
  g_backward(n);
  step(n, n->g_opt);
  step(n, n->d_opt);
}

static void check(void (*iteration)(gan *n), bool sync_each,
                  const double *wanted)
{
  gan n = make(sync_each);
  for (int t = 0; t < 4; t++) {
    calx_scope *s = calx_scope_begin();
    n.z = pair(1.0 + t, 2.0 - t);
    n.real = pair(0.7, 0.2 * t);
    n.fake = NULL;
    iteration(&n);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  support_values(n.g, wanted, 2, 1e-12, __FILE__, __LINE__);
  support_values(n.d, wanted + 2, 2, 1e-12, __FILE__, __LINE__);
  drop(&n);
}

static void test_orders(void **state)
{
  (void)state;
  const double of_usual[] = { 0.9058996090179597, 0.3761836862205369,
                              0.8256541346726147, 0.6023732305724279 };
  const double of_first[] = { 0.9048712904702254, 0.44671332839342354,
                              0.8282915573009524, 0.6605756313938018 };
  const double of_both[] = { 0.8840803543812669, 0.46125447290438115,
                             1.0782923660860892, 0.06594494895350411 };
  const double of_twice[] = { 0.8642432777484755, 0.2868085002012908,
                              1.2319747591437624, 0.42299276692950954 };
  for (int sync_each = 0; sync_each < 2; sync_each++) {
    check(usual, sync_each, of_usual);
    check(generator_first, sync_each, of_first);
    check(frozen, sync_each, of_usual);
  }
  check(both_backward, false, of_both);
  check(step_twice, false, of_twice);
}

// A sum with a gradient that a sync dropped is unknown; who uses it is told
// whose it is.
static void test_unknown_sum(void **state)
{
  (void)state;
  gan n = make(true);
  calx_scope *s = calx_scope_begin();
  n.z = pair(1, 2);
  n.real = pair(0.7, 0.2);
  usual(&n);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_optimizer_step(n.d_opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s), "was consumed",
               "calx_optimizer_zero_grad",
               "gradient of 'weight' of the model Discriminator");
  drop(&n);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_orders),
    SUPPORT_TEST(test_unknown_sum),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
