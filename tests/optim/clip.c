// clip: gradients whose norm is at most a given one, with PyTorch's numbers.
#include "base/metrics.h"
#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/optim.h"
#include "support/support.h"

typedef struct model {
  calx_module *root;
  calx_tensor *a, *b;  // (2), ()
  calx_optimizer *opt;
} model;

static model make(calx_dtype a, calx_dtype b)
{
  model m = { .root = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.a = calx_module_param(m.root, "a", calx_zeros(CALX_SHAPE(2), .dtype = a));
  m.b = calx_module_param(m.root, "b", calx_zeros(CALX_SCALAR, .dtype = b));
  CHECK_STATUS_OK(calx_scope_end(s));
  m.opt = calx_sgd(m.root, .lr = 1, .keep_gradients = true);
  CHECK_STATUS_OK(calx_optimizer_error(m.opt));
  return m;
}

static void end(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

// Gives a the gradient (x, y), b the gradient z.
static void backward(model *m, double x, double y, double z)
{
  double both[2] = { x, y };
  calx_optimizer_zero_grad(m->opt);
  calx_tensor *by = calx_tensor_from(both, CALX_F64, CALX_SHAPE(2));
  by = calx_to_dtype(by, calx_tensor_dtype(m->a));
  calx_tensor *loss = calx_to_dtype(calx_sum(calx_mul(m->a, by)), CALX_F64);
  calx_tensor *rest = calx_full(CALX_SCALAR, z, .dtype = CALX_F64);
  rest = calx_mul(calx_to_dtype(m->b, CALX_F64), rest);
  calx_backward(calx_add(loss, rest));
}

// The norm, and the gradients in out[3].
static double clip(model *m, double most, double type, double out[3])
{
  calx_scope *s = calx_scope_begin();
  backward(m, 3, -4, 12);
  calx_tensor *norm = calx_clip_grad_norm(m->opt, most, .norm_type = type);
  calx_sync(norm, calx_grad(m->a), calx_grad(m->b));
  size_t n;
  double *a = support_read(calx_grad(m->a), &n), value = calx_item(norm);
  out[0] = a[0];
  out[1] = a[1];
  out[2] = calx_item(calx_grad(m->b));
  test_free(a);
  CHECK_STATUS_OK(calx_scope_end(s));
  return value;
}

static void test_norms(void **state)
{
  (void)state;
  double g[3], by = 6.5 / (13 + 1e-6);
  model m = make(CALX_F32, CALX_F32);
  CHECK_CLOSE(clip(&m, 6.5, 0, g), 13, 1e-6);
  CHECK_CLOSE(g[0], 3 * by, 1e-6);
  CHECK_CLOSE(g[1], -4 * by, 1e-6);
  CHECK_CLOSE(g[2], 12 * by, 1e-6);
  CHECK_CLOSE(clip(&m, 100, 2, g), 13, 1e-6);  // nothing to do
  assert_true(g[0] == 3 && g[1] == -4 && g[2] == 12);
  CHECK_CLOSE(clip(&m, 6, INFINITY, g), 12, 0);
  CHECK_CLOSE(g[1], -4 * 6 / (12 + 1e-6), 1e-6);
  CHECK_CLOSE(clip(&m, 0, 2, g), 13, 1e-6);
  assert_true(g[0] == 0 && g[1] == 0 && g[2] == 0);
  end(&m);
}

// Narrow ones by a norm in f32; with an f64 among them in f64.
static void test_types(void **state)
{
  (void)state;
  double g[3];
  model m = make(CALX_BF16, CALX_F32);
  CHECK_CLOSE(clip(&m, 1, 2, g), 13, 1e-6);
  CHECK_CLOSE(g[0], 3. / 13, 2e-3);
  CHECK_CLOSE(g[2], 12. / 13, 1e-6);
  assert_int_equal(calx_tensor_dtype(calx_grad(m.a)), CALX_BF16);
  end(&m);
  m = make(CALX_F32, CALX_F64);
  CHECK_CLOSE(clip(&m, 1, 2, g), 13, 1e-14);
  CHECK_CLOSE(g[2], 12 / (13 + 1e-6), 1e-14);
  end(&m);
}

// Another max_norm is no other program.
static void test_no_recompile(void **state)
{
  (void)state;
  double g[3];
  model m = make(CALX_F32, CALX_F32);
  for (int i = 0; i < 3; i++) clip(&m, 1 + i, 2, g);
  int64_t before = calx_counter_value("UncachedCompile");
  for (int i = 0; i < 3; i++) {
    CHECK_CLOSE(clip(&m, 0.25 * i, 2, g), 13, 1e-6);
    CHECK_CLOSE(g[2], 12 * 0.25 * i / 13, 1e-5);
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), before);
  end(&m);
}

static void test_not_finite(void **state)
{
  (void)state;
  model m = make(CALX_F32, CALX_F32);
  calx_scope *s = calx_scope_begin();
  backward(&m, 3, INFINITY, 12);
  calx_clip_grad_norm(m.opt, 1, .error_if_nonfinite = true);
  CHECK_STATUS(CALX_OUT_OF_RANGE, calx_scope_end(s),
               "The total norm of order 2 for gradients from `parameters` is "
               "non-finite, so it cannot be clipped");
  s = calx_scope_begin();
  backward(&m, 3, INFINITY, 12);
  calx_tensor *norm = calx_clip_grad_norm(m.opt, 1);
  calx_sync(norm, calx_grad(m.a), calx_grad(m.b));
  CHECK_CLOSE(calx_item(norm), INFINITY, 0);
  CHECK_VALUES(calx_grad(m.a), 0, 0, NAN);  // as PyTorch's
  CHECK_CLOSE(calx_item(calx_grad(m.b)), 0, 0);
  backward(&m, 3, 4, 12);
  norm = calx_clip_grad_norm(m.opt, 1, .error_if_nonfinite = true);
  CHECK_CLOSE(calx_item(norm), 13, 1e-6);
  CHECK_STATUS_OK(calx_scope_end(s));
  end(&m);
}

static void test_refused(void **state)
{
  (void)state;
  model m = make(CALX_F32, CALX_F32);
  calx_scope *s = calx_scope_begin();
  CHECK_CLOSE(calx_item(calx_clip_grad_norm(m.opt, 1)), 0, 0);  // none
  CHECK_STATUS_OK(calx_scope_end(s));
  static const struct {
    double most, type;
    const char *why;
  } cases[] = { { -1, 2, "max_norm -1" },
                { NAN, 2, "max_norm" },
                { 1, 3, "the norm of order 3" },
                { 1, -INFINITY, "the norm of order -inf" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    s = calx_scope_begin();
    calx_clip_grad_norm(m.opt, cases[i].most, .norm_type = cases[i].type);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
                 "clip_grad_norm: ", cases[i].why);
  }
  s = calx_scope_begin();
  calx_clip_grad_norm(NULL, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "is NULL");
  end(&m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_norms),        SUPPORT_TEST(test_types),
    SUPPORT_TEST(test_no_recompile), SUPPORT_TEST(test_not_finite),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
