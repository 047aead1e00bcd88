// papers: the optimisers that PyTorch lacks, 50 steps in f64 beside the
// formulas of their papers, element by element. Each has two parameters, since
// LAMB and LARS take the norms of each alone.
#include "calx/autograd.h"
#include "calx/optimizers.h"
#include "support/support.h"

enum { N = 6, STEPS = 50, SPLIT = 4 };  // a has 4 elements, b 2

// The loss is the sum of c (p - t)^2 / 2: the gradient c (p - t).
static const double start[N] = { 1, -2, 0.5, 3, -0.25, 0.75 };
static const double target[N] = { 0.5, 0.25, -1, 2, 1, -0.5 };
static const double factor[N] = { 1, 0.5, 2, 0.125, 3, 0.75 };

typedef struct problem {
  calx_module *root;
  calx_tensor *p[2];
} problem;

static calx_tensor *part(const double *values, int i)
{
  return support_tensor(CALX_F64, i ? CALX_SHAPE(2) : CALX_SHAPE(2, 2),
                        values + (i ? SPLIT : 0));
}

static problem make(void)
{
  problem m = { .root = calx_module_new("Problem", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.p[0] = calx_module_param(m.root, "a", part(start, 0));
  m.p[1] = calx_module_param(m.root, "b", part(start, 1));
  CHECK_STATUS_OK(calx_scope_end(s));
  return m;
}

static void take_step(const problem *m, calx_optimizer *opt)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  for (int i = 0; i < 2; i++) {
    calx_tensor *off = calx_sub(m->p[i], part(target, i));
    off = calx_mul(calx_square(off), calx_mul(part(factor, i), 0.5));
    calx_backward(calx_sum(off));
  }
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// One step t of a paper's rule for elements from … to of a parameter.
typedef struct reference {
  double lr, beta1, beta2, eps, decay, momentum, trust;
  bool maximize;
  double p[N], m[N], v[N];
} reference;

typedef void step_fn(reference *r, int t, const double *g, int from, int to);

static void check(calx_optimizer *opt, const problem *m, reference *r,
                  step_fn *step)
{
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  memcpy(r->p, start, sizeof start);
  for (int t = 1; t <= STEPS; t++) {
    double g[N];
    for (int i = 0; i < N; i++) g[i] = factor[i] * (r->p[i] - target[i]);
    for (int i = 0; i < N && r->maximize; i++) g[i] = -g[i];
    step(r, t, g, 0, SPLIT);
    step(r, t, g, SPLIT, N);
    take_step(m, opt);
    for (int i = 0; i < 2; i++) {
      size_t n;
      double *got = support_read(m->p[i], &n);
      const double *wanted = r->p + (i ? SPLIT : 0);
      for (size_t k = 0; k < n; k++) {
        CHECK_CLOSE(got[k], wanted[k], 1e-10 * fmax(1, fabs(wanted[k])));
      }
      test_free(got);
    }
  }
  calx_optimizer_free(opt);
  calx_module_free(m->root);
}

static double norm(const double *x, int from, int to)
{
  double sum = 0;
  for (int i = from; i < to; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

// ---- LAMB, algorithm 2 ------------------------------------------------------

static void lamb(reference *r, int t, const double *g, int from, int to)
{
  double u[N];
  for (int i = from; i < to; i++) {
    r->m[i] = r->beta1 * r->m[i] + (1 - r->beta1) * g[i];
    r->v[i] = r->beta2 * r->v[i] + (1 - r->beta2) * g[i] * g[i];
    double m = r->m[i] / (1 - pow(r->beta1, t));
    double v = r->v[i] / (1 - pow(r->beta2, t));
    u[i] = m / (sqrt(v) + r->eps) + r->decay * r->p[i];
  }
  double of_p = norm(r->p, from, to), of_u = norm(u, from, to);
  double ratio = of_p > 0 && of_u > 0 ? of_p / of_u : 1;
  for (int i = from; i < to; i++) r->p[i] -= r->lr * ratio * u[i];
}

static void test_lamb(void **state)
{
  (void)state;
  problem m = make();
  reference r = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6 };
  check(calx_lamb(m.root), &m, &r, lamb);
  m = make();
  r = (reference){ .lr = 0.01,
                   .beta1 = 0.4,
                   .beta2 = 0.75,
                   .eps = 0.25,
                   .decay = 0.1,
                   .maximize = true };
  check(calx_lamb(m.root, .lr = 0.01, .betas = { 0.4, 0.75 }, .eps = 0.25,
                  .weight_decay = 0.1, .maximize = true),
        &m, &r, lamb);
}

// ---- LARS, algorithm 1 ------------------------------------------------------

static void lars(reference *r, int t, const double *g, int from, int to)
{
  (void)t;
  double of_p = norm(r->p, from, to), of_g = norm(g, from, to), rate = 1;
  if (of_p > 0 && of_g > 0) {
    rate = r->trust * of_p / (of_g + r->decay * of_p + r->eps);
  }
  for (int i = from; i < to; i++) {
    r->m[i] =
        r->momentum * r->m[i] + r->lr * rate * (g[i] + r->decay * r->p[i]);
    r->p[i] -= r->m[i];
  }
}

static void test_lars(void **state)
{
  (void)state;
  problem m = make();
  reference r = { .lr = 1e-3, .momentum = 0.9, .trust = 1e-3, .eps = 1e-8 };
  check(calx_lars(m.root), &m, &r, lars);
  m = make();
  r = (reference){ .lr = 0.5,
                   .momentum = 0.5,
                   .trust = 0.02,
                   .eps = 0.125,
                   .decay = 0.1,
                   .maximize = true };
  check(calx_lars(m.root, .lr = 0.5, .momentum = 0.5, .trust_coefficient = 0.02,
                  .eps = 0.125, .weight_decay = 0.1, .maximize = true),
        &m, &r, lars);
}

// Where a norm is 0 the rate is lr: LARS' first step of a parameter of zeros,
// and LAMB's too.
static void test_zero_norm(void **state)
{
  (void)state;
  for (int way = 0; way < 2; way++) {
    calx_module *root = calx_module_new("Net", NULL, NULL);
    calx_scope *s = calx_scope_begin();
    calx_tensor *zero = calx_zeros(CALX_SHAPE(2), .dtype = CALX_F64);
    calx_tensor *w = calx_module_param(root, "w", zero);
    calx_tensor *idle = calx_module_param(root, "idle", zero);
    CHECK_STATUS_OK(calx_scope_end(s));
    calx_optimizer *opt = way ? calx_lamb(root, .lr = 0.25, .eps = 1)
                              : calx_lars(root, .lr = 0.25);
    s = calx_scope_begin();
    calx_backward(calx_sum(calx_add(calx_mul(w, 3), calx_mul(idle, 0))));
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
    double moved = way ? -0.25 * 3 / (3 + 1) : -0.25 * 3;
    CHECK_VALUES(w, 1e-14, moved, moved);
    CHECK_VALUES(idle, 0, 0, 0);
    calx_optimizer_free(opt);
    calx_module_free(root);
  }
}

// ---- Lion, algorithm 2 ------------------------------------------------------

static void lion(reference *r, int t, const double *g, int from, int to)
{
  (void)t;
  for (int i = from; i < to; i++) {
    double c = r->beta1 * r->m[i] + (1 - r->beta1) * g[i];
    r->p[i] -= r->lr * ((c > 0) - (c < 0) + r->decay * r->p[i]);
    r->m[i] = r->beta2 * r->m[i] + (1 - r->beta2) * g[i];
  }
}

static void test_lion(void **state)
{
  (void)state;
  problem m = make();
  reference r = { .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99 };
  check(calx_lion(m.root), &m, &r, lion);
  m = make();
  r = (reference){ .lr = 0.05, .beta1 = 0.4, .beta2 = 0.75, .decay = 0.1 };
  check(calx_lion(m.root, .lr = 0.05, .betas = { 0.4, 0.75 },
                  .weight_decay = 0.1),
        &m, &r, lion);
  m = make();
  r = (reference){ .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .maximize = true };
  check(calx_lion(m.root, .lr = 0.01, .maximize = true), &m, &r, lion);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_lamb),
    SUPPORT_TEST(test_lars),
    SUPPORT_TEST(test_zero_norm),
    SUPPORT_TEST(test_lion),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
