// torch: 50 steps of each optimiser in f64 beside PyTorch's. On the way a
// parameter has no gradient twice.
enum { NONE_AT = 5 };

// ---- the cases --------------------------------------------------------------

#define SCRIPT "torch_steps.py"
#define SECOND "b"
#define CASES(X)                                                               \
  X("SGD", "lr=0.1", sgd, .lr = 0.1)                                           \
  X("SGD", "lr=0.1, momentum=0.9, nesterov=True", sgd, .lr = 0.1,              \
    .momentum = 0.9, .nesterov = true)                                         \
  X("SGD", "lr=0.05, momentum=0.8, dampening=0.25, weight_decay=0.1", sgd,     \
    .lr = 0.05, .momentum = 0.8, .dampening = 0.25, .weight_decay = 0.1)       \
  X("SGD", "lr=0.01, maximize=True", sgd, .lr = 0.01, .maximize = true)        \
  X("Adam", "lr=0.01", adam, .lr = 0.01)                                       \
  X("Adam", "lr=0.01, betas=(0.4, 0.9), eps=1e-3, weight_decay=0.1", adam,     \
    .lr = 0.01, .betas = { 0.4, 0.9 }, .eps = 1e-3, .weight_decay = 0.1)       \
  X("Adam", "lr=0.1, amsgrad=True, betas=(0.5, 0.5)", adam, .lr = 0.1,         \
    .amsgrad = true, .betas = { 0.5, 0.5 })                                    \
  X("Adam", "lr=0.01, maximize=True", adam, .lr = 0.01, .maximize = true)      \
  X("AdamW", "lr=0.01", adamw, .lr = 0.01)                                     \
  X("AdamW", "lr=0.01, weight_decay=0.3, amsgrad=True, maximize=True", adamw,  \
    .lr = 0.01, .weight_decay = 0.3, .amsgrad = true, .maximize = true)        \
  X("Adagrad", "lr=0.1", adagrad, .lr = 0.1)                                   \
  X("Adagrad",                                                                 \
    "lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, "  \
    "eps=1e-4",                                                                \
    adagrad, .lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.1,                  \
    .initial_accumulator_value = 0.2, .eps = 1e-4)                             \
  X("Adagrad", "lr=0.1, maximize=True", adagrad, .lr = 0.1, .maximize = true)  \
  X("Adadelta", "", adadelta, .lr = CALX_DEFAULT)                              \
  X("Adadelta", "lr=0.5, rho=0.7, eps=1e-4, weight_decay=0.1", adadelta,       \
    .lr = 0.5, .rho = 0.7, .eps = 1e-4, .weight_decay = 0.1)                   \
  X("Adadelta", "maximize=True", adadelta, .maximize = true)                   \
  X("RMSprop", "", rmsprop, .lr = CALX_DEFAULT)                                \
  X("RMSprop", "alpha=0.6, eps=1e-4, momentum=0.5, weight_decay=0.1", rmsprop, \
    .alpha = 0.6, .eps = 1e-4, .momentum = 0.5, .weight_decay = 0.1)           \
  X("RMSprop", "lr=1e-3, centered=True, momentum=0.9", rmsprop, .lr = 1e-3,    \
    .centered = true, .momentum = 0.9)                                         \
  X("RMSprop", "lr=1e-3, centered=True, alpha=0.3, maximize=True", rmsprop,    \
    .lr = 1e-3, .centered = true, .alpha = 0.3, .maximize = true)              \
  X("Adamax", "", adamax, .lr = CALX_DEFAULT)                                  \
  X("Adamax", "lr=0.02, betas=(0.3, 0.7), eps=1e-3, weight_decay=0.1", adamax, \
    .lr = 0.02, .betas = { 0.3, 0.7 }, .eps = 1e-3, .weight_decay = 0.1)       \
  X("Adamax", "maximize=True", adamax, .maximize = true)                       \
  X("NAdam", "", nadam, .lr = CALX_DEFAULT)                                    \
  X("NAdam",                                                                   \
    "lr=0.02, betas=(0.6, 0.9), eps=1e-3, weight_decay=0.1, "                  \
    "momentum_decay=0.1",                                                      \
    nadam, .lr = 0.02, .betas = { 0.6, 0.9 }, .eps = 1e-3,                     \
    .weight_decay = 0.1, .momentum_decay = 0.1)                                \
  X("NAdam", "weight_decay=0.1, decoupled_weight_decay=True, maximize=True",   \
    nadam, .weight_decay = 0.1, .decoupled_weight_decay = true,                \
    .maximize = true)                                                          \
  X("RAdam", "", radam, .lr = CALX_DEFAULT)                                    \
  X("RAdam", "lr=0.02, betas=(0.6, 0.9), eps=1e-3, weight_decay=0.1", radam,   \
    .lr = 0.02, .betas = { 0.6, 0.9 }, .eps = 1e-3, .weight_decay = 0.1)       \
  X("RAdam", "weight_decay=0.1, decoupled_weight_decay=True, maximize=True",   \
    radam, .weight_decay = 0.1, .decoupled_weight_decay = true,                \
    .maximize = true)                                                          \
  X("Rprop", "", rprop, .lr = 0)                                               \
  X("Rprop", "lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2)", rprop,         \
    .lr = 0.1, .etas = { 0.3, 1.5 }, .step_sizes = { 1e-3, 0.2 })              \
  X("Rprop", "maximize=True", rprop, .maximize = true)                         \
  X("ASGD", "", asgd, .lr = CALX_DEFAULT)                                      \
  X("ASGD", "lr=0.1, lambd=0.01, alpha=0.5, t0=3, weight_decay=0.1", asgd,     \
    .lr = 0.1, .lambd = 0.01, .alpha = 0.5, .t0 = 3, .weight_decay = 0.1)      \
  X("ASGD", "maximize=True, t0=20", asgd, .maximize = true, .t0 = 20)          \
  X("Adafactor", "", adafactor, .lr = CALX_DEFAULT)                            \
  X("Adafactor",                                                               \
    "lr=0.2, beta2_decay=-0.5, eps=(1e-3, 0.1), d=2.0, weight_decay=0.1",      \
    adafactor, .lr = 0.2, .beta2_decay = -0.5, .eps = { 1e-3, 0.1 }, .d = 2,   \
    .weight_decay = 0.1)                                                       \
  X("Adafactor", "maximize=True", adafactor, .maximize = true)

#include "torch_net.h"

// ---- W (4, 3), b (4), x (8, 3), y (8, 4) ------------------------------------

static void put_data(calx_value *dict)
{
  static const char *const names[] = { "W", "b", "x", "y" };
  int64_t dims[4][2] = { { 4, 3 }, { 4, 0 }, { 8, 3 }, { 8, 4 } };
  for (int k = 0; k < 4; k++) {
    calx_tensor *t = calx_host_tensor(data[k], CALX_F64,
                                      calx_dims_of(dims[k], k == 1 ? 1 : 2));
    put(dict, names[k], calx_value_tensor(t));
  }
}

static net make_net(void)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.w = calx_module_param(m.root, "W", f64(0, CALX_SHAPE(4, 3)));
  m.b = calx_module_param(m.root, "b", f64(1, CALX_SHAPE(4)));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m.root));
  return m;
}

static calx_tensor *loss_at(const net *m, int step)
{
  bool none = step == NONE_AT || step == NONE_AT + 1;
  calx_tensor *b = none ? calx_detach(m->b) : m->b;
  calx_tensor *y = calx_tanh(calx_linear(f64(2, CALX_SHAPE(8, 3)), m->w, b));
  calx_tensor *off = calx_sub(y, f64(3, CALX_SHAPE(8, 4)));
  return calx_mean(calx_mul(off, off));
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_steps) };
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
