// complex: 50 steps of each optimiser of complex parameters in c128 beside
// PyTorch's, which see their parts as elements; clipping; who refuses them.
#include "calx/complex.h"

#include "calx/dist.h"

// ---- the cases --------------------------------------------------------------

#define SCRIPT "torch_steps.py"
#define SECOND "b"
#define CASES(X)                                                            \
  X("SGD", "lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1", sgd,    \
    .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1)      \
  X("Adam", "lr=0.02, amsgrad=True, weight_decay=0.1", adam, .lr = 0.02,    \
    .amsgrad = true, .weight_decay = 0.1)                                   \
  X("AdamW", "lr=0.02, maximize=True", adamw, .lr = 0.02, .maximize = true) \
  X("Adagrad", "lr=0.1", adagrad, .lr = 0.1)                                \
  X("Adadelta", "lr=0.5", adadelta, .lr = 0.5)                              \
  X("RMSprop", "lr=0.01, momentum=0.5, centered=True", rmsprop, .lr = 0.01, \
    .momentum = 0.5, .centered = true)                                      \
  X("Adamax", "lr=0.02", adamax, .lr = 0.02)                                \
  X("NAdam", "lr=0.02", nadam, .lr = 0.02)                                  \
  X("RAdam", "lr=0.02", radam, .lr = 0.02)                                  \
  X("ASGD", "lr=0.05, t0=10", asgd, .lr = 0.05, .t0 = 10)                   \
  X("Rprop", "lr=0.01", rprop, .lr = 0.01)

#include "torch_net.h"

// ---- W (4, 3), b (4), x (4, 3), y (4, 4) ------------------------------------

static calx_tensor *c128(int which, calx_dims dims)
{
  return calx_tensor_from(data[which], CALX_C128, dims);
}

static void put_data(calx_value *dict)
{
  static const char *const names[] = { "W", "b", "x", "y" };
  int64_t dims[4][2] = { { 4, 3 }, { 4, 0 }, { 4, 3 }, { 4, 4 } };
  for (int k = 0; k < 4; k++) {
    calx_tensor *t = calx_host_tensor(data[k], CALX_C128,
                                      calx_dims_of(dims[k], k == 1 ? 1 : 2));
    put(dict, names[k], calx_value_tensor(t));
  }
}

static net make_net(void)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.w = calx_module_param(m.root, "W", c128(0, CALX_SHAPE(4, 3)));
  m.b = calx_module_param(m.root, "b", c128(1, CALX_SHAPE(4)));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m.root));
  return m;
}

static calx_tensor *loss_at(const net *m, int step)
{
  bool none = step == 5 || step == 6;
  calx_tensor *b = none ? calx_detach(m->b) : m->b;
  calx_tensor *y = calx_matmul(c128(2, CALX_SHAPE(4, 3)), calx_t(m->w));
  calx_tensor *off =
      calx_sub(calx_tanh(calx_add(y, b)), c128(3, CALX_SHAPE(4, 4)));
  return calx_mean(calx_square(calx_abs(off)));
}

// ---- clipping ---------------------------------------------------------------

// The norm is that of the magnitudes: of 3 + 4i and 12 it is 13.
static void test_clip(void **state)
{
  (void)state;
  static const double values[] = { 3, 4, 12, 0 };
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = calx_module_param(
      m, "W", calx_tensor_from(values, CALX_C128, CALX_SHAPE(2)));
  calx_optimizer *opt = calx_sgd(m, .lr = 1);
  calx_backward(calx_mul(0.5, calx_sum(calx_square(calx_abs(w)))));
  CHECK_VALUES(calx_grad(w), 1e-12, 3, 4, 12, 0);
  CHECK_VALUES(calx_clip_grad_norm(opt, 1000, .norm_type = HUGE_VAL), 1e-12,
               12);
  CHECK_VALUES(calx_clip_grad_norm(opt, 6.5), 1e-5, 13);
  CHECK_VALUES(calx_grad(w), 1e-5, 1.5, 2, 6, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// ---- what is refused --------------------------------------------------------

static void check_refused(calx_optimizer *opt, const char *name)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), name,
               "takes real ones: train its calx_view_as_real");
  calx_optimizer_free(opt);
}

static calx_optimizer *make_sgd(void *user, calx_module *model)
{
  (void)user;
  return calx_sgd(model);
}

static void test_refused(void **state)
{
  (void)state;
  net m = make_net();
  check_refused(calx_adafactor(m.root),
                "adafactor: parameter 'W' is c128[4,3]");
  check_refused(
      calx_muon(NULL, .params = (calx_tensor *[]){ m.w }, .n_params = 1),
      "muon");
  check_refused(calx_lbfgs(m.root), "lbfgs");
  check_refused(calx_zero_redundancy_optimizer(m.root, .make = make_sgd),
                "zero_redundancy_optimizer");
  calx_optimizer *opt = calx_adam(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_at(&m, 0));
  calx_clip_grad_value(opt, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "clip_grad_value");
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_steps),
                                      SUPPORT_TEST(test_clip),
                                      SUPPORT_TEST(test_refused) };
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
