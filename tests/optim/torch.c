// torch: 50 steps of each optimiser in f64 beside PyTorch's, from each other's
// state dicts too. On the way a parameter has no gradient twice, and the rates
// of the groups change. CALX_TEST_PLUGIN_TORCH is a Python that has torch.
#include "calx/autograd.h"
#include "calx/io.h"
#include "calx/optimizers.h"
#include "io/files.h"
#include "support/support.h"

enum { HALF = 25, WHOLE = 50, NONE_AT = 5, RATES_AT = 12 };

typedef struct net {
  calx_module *root;
  calx_tensor *w, *b;  // (4, 3), (4)
} net;

// ---- the cases --------------------------------------------------------------

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
  X("Adadelta", "", adadelta, .lr = 0)                                         \
  X("Adadelta", "lr=0.5, rho=0.7, eps=1e-4, weight_decay=0.1", adadelta,       \
    .lr = 0.5, .rho = 0.7, .eps = 1e-4, .weight_decay = 0.1)                   \
  X("Adadelta", "maximize=True", adadelta, .maximize = true)                   \
  X("RMSprop", "", rmsprop, .lr = 0)                                           \
  X("RMSprop", "alpha=0.6, eps=1e-4, momentum=0.5, weight_decay=0.1", rmsprop, \
    .alpha = 0.6, .eps = 1e-4, .momentum = 0.5, .weight_decay = 0.1)           \
  X("RMSprop", "lr=1e-3, centered=True, momentum=0.9", rmsprop, .lr = 1e-3,    \
    .centered = true, .momentum = 0.9)                                         \
  X("RMSprop", "lr=1e-3, centered=True, alpha=0.3, maximize=True", rmsprop,    \
    .lr = 1e-3, .centered = true, .alpha = 0.3, .maximize = true)              \
  X("Adamax", "", adamax, .lr = 0)                                             \
  X("Adamax", "lr=0.02, betas=(0.3, 0.7), eps=1e-3, weight_decay=0.1", adamax, \
    .lr = 0.02, .betas = { 0.3, 0.7 }, .eps = 1e-3, .weight_decay = 0.1)       \
  X("Adamax", "maximize=True", adamax, .maximize = true)                       \
  X("NAdam", "", nadam, .lr = 0)                                               \
  X("NAdam",                                                                   \
    "lr=0.02, betas=(0.6, 0.9), eps=1e-3, weight_decay=0.1, "                  \
    "momentum_decay=0.1",                                                      \
    nadam, .lr = 0.02, .betas = { 0.6, 0.9 }, .eps = 1e-3,                     \
    .weight_decay = 0.1, .momentum_decay = 0.1)                                \
  X("NAdam", "weight_decay=0.1, decoupled_weight_decay=True, maximize=True",   \
    nadam, .weight_decay = 0.1, .decoupled_weight_decay = true,                \
    .maximize = true)                                                          \
  X("RAdam", "", radam, .lr = 0)                                               \
  X("RAdam", "lr=0.02, betas=(0.6, 0.9), eps=1e-3, weight_decay=0.1", radam,   \
    .lr = 0.02, .betas = { 0.6, 0.9 }, .eps = 1e-3, .weight_decay = 0.1)       \
  X("RAdam", "weight_decay=0.1, decoupled_weight_decay=True, maximize=True",   \
    radam, .weight_decay = 0.1, .decoupled_weight_decay = true,                \
    .maximize = true)                                                          \
  X("Rprop", "", rprop, .lr = 0)                                               \
  X("Rprop", "lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2)", rprop,         \
    .lr = 0.1, .etas = { 0.3, 1.5 }, .step_sizes = { 1e-3, 0.2 })              \
  X("Rprop", "maximize=True", rprop, .maximize = true)                         \
  X("ASGD", "", asgd, .lr = 0)                                                 \
  X("ASGD", "lr=0.1, lambd=0.01, alpha=0.5, t0=3, weight_decay=0.1", asgd,     \
    .lr = 0.1, .lambd = 0.01, .alpha = 0.5, .t0 = 3, .weight_decay = 0.1)      \
  X("ASGD", "maximize=True, t0=20", asgd, .maximize = true, .t0 = 20)          \
  X("Adafactor", "", adafactor, .lr = 0)                                       \
  X("Adafactor",                                                               \
    "lr=0.2, beta2_decay=-0.5, eps=(1e-3, 0.1), d=2.0, weight_decay=0.1",      \
    adafactor, .lr = 0.2, .beta2_decay = -0.5, .eps = { 1e-3, 0.1 }, .d = 2,   \
    .weight_decay = 0.1)                                                       \
  X("Adafactor", "maximize=True", adafactor, .maximize = true)

enum { MOST_CASES = 64 };
typedef struct run {
  const char *name, *options;
} run;
static const run runs[] = {
#define X(name, options, ...) { name, options },
  CASES(X)
#undef X
};
enum { RUNS = sizeof runs / sizeof runs[0] };

// Even cases have one group; odd ones have b in another, with half the rate.
static calx_optimizer *make_optimizer(const net *m, size_t i)
{
  size_t n = 0;
  calx_optimizer *opt = NULL;
  bool two = i % 2 != 0;
#define X(name, options, call, ...)                                     \
  if (n++ == i) {                                                       \
    opt = calx_##call(two ? NULL : m->root, __VA_ARGS__,                \
                      .params = two ? (calx_tensor *[]){ m->w } : NULL, \
                      .n_params = two);                                 \
  }
  CASES(X)
#undef X
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  if (two) {
    calx_optimizer_add_param_group(opt, NULL, .params = &m->b, .n_params = 1,
                                   .lr = calx_optimizer_lr(opt) / 2);
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  return opt;
}

// ---- training ---------------------------------------------------------------

static double data[4][32];  // W, b, x (8, 3), y (8, 4)

static void make_data(void)
{
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < 32; i++) data[k][i] = sin(1.0 + 3 * k + 1.7 * i * i);
  }
}

static calx_tensor *f64(int which, calx_dims dims)
{
  return support_tensor(CALX_F64, dims, data[which]);
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

static void train(const net *m, calx_optimizer *opt, int from, int to)
{
  for (int i = from; i < to; i++) {
    calx_scope *s = calx_scope_begin();
    if (i == RATES_AT) {
      for (size_t g = 0; g < calx_optimizer_param_groups(opt); g++) {
        double lr = calx_optimizer_option(opt, g, "lr");
        calx_optimizer_set_option(opt, g, "lr", 0.75 * lr);
      }
    }
    calx_optimizer_zero_grad(opt);
    bool none = i == NONE_AT || i == NONE_AT + 1;
    calx_tensor *b = none ? calx_detach(m->b) : m->b;
    calx_tensor *y = calx_tanh(calx_linear(f64(2, CALX_SHAPE(8, 3)), m->w, b));
    calx_tensor *off = calx_sub(y, f64(3, CALX_SHAPE(8, 4)));
    calx_backward(calx_mean(calx_mul(off, off)));
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
}

// ---- files ------------------------------------------------------------------

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

// What PyTorch begins with: {'data': …, 'cases': [{'name', 'options', 'W', 'b',
// 'optimizer'}]}, after HALF steps of calx's.
static calx_value *first_halves(void)
{
  calx_value *all = calx_value_container(CALX_KIND_DICT);
  calx_value *cases = calx_value_container(CALX_KIND_LIST);
  put(all, "cases", cases);
  static const char *const names[] = { "W", "b", "x", "y" };
  int64_t dims[4][2] = { { 4, 3 }, { 4, 0 }, { 8, 3 }, { 8, 4 } };
  calx_scope *s = calx_scope_begin();
  for (int k = 0; k < 4; k++) {
    calx_tensor *t = calx_host_tensor(data[k], CALX_F64,
                                      calx_dims_of(dims[k], k == 1 ? 1 : 2));
    put(all, names[k], calx_value_tensor(t));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  for (size_t i = 0; i < RUNS; i++) {
    calx_value *one = calx_value_container(CALX_KIND_DICT), *dict;
    CHECK_STATUS_OK(calx_value_append(cases, one));
    net m = make_net();
    calx_optimizer *opt = make_optimizer(&m, i);
    train(&m, opt, 0, HALF);
    put(one, "name", calx_value_string(runs[i].name));
    put(one, "options", calx_value_string(runs[i].options));
    put(one, "W", calx_value_tensor(m.w));
    put(one, "b", calx_value_tensor(m.b));
    CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
    put(one, "optimizer", dict);
    calx_optimizer_free(opt);
    calx_module_free(m.root);
  }
  return all;
}

static double worst;

static void compare(const char *what, size_t i, calx_tensor *t,
                    const calx_value *wanted)
{
  size_t n, n_wanted;
  double *got = support_read(t, &n);
  double *want = support_read(calx_value_as_tensor(wanted), &n_wanted);
  assert_int_equal(n, n_wanted);
  for (size_t k = 0; k < n; k++) {
    double off = fabs(got[k] - want[k]) / fmax(fabs(want[k]), 1e-2);
    worst = fmax(worst, off);
    if (off <= 1e-6) continue;
    fail_msg("%s(%s), %s, element %zu: %.17g, PyTorch has %.17g", runs[i].name,
             runs[i].options, what, k, got[k], want[k]);
  }
  test_free(got);
  test_free(want);
}

static void check_case(size_t i, const calx_value *one)
{
  net m = make_net();
  calx_optimizer *opt = make_optimizer(&m, i);
  train(&m, opt, 0, WHOLE);
  compare("all of calx's steps, W", i, m.w, calx_value_get(one, "W"));
  compare("all of calx's steps, b", i, m.b, calx_value_get(one, "b"));
  // PyTorch went on from calx's first half.
  compare("PyTorch's second half, W", i, m.w, calx_value_get(one, "went W"));
  compare("PyTorch's second half, b", i, m.b, calx_value_get(one, "went b"));
  // And calx from PyTorch's.
  CHECK_STATUS_OK(
      calx_module_load_state_dict(m.root, calx_value_get(one, "half model")));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(
      opt, calx_value_get(one, "half optimizer")));
  train(&m, opt, HALF, WHOLE);
  compare("calx's second half, W", i, m.w, calx_value_get(one, "W"));
  compare("calx's second half, b", i, m.b, calx_value_get(one, "b"));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_steps(void **state)
{
  (void)state;
  const char *python = getenv("CALX_TEST_PLUGIN_TORCH");
  const char *from = file_in_folder("calx.pt"),
             *to = file_in_folder("torch.pt");
  calx_value *all = first_halves(), *back;
  CHECK_STATUS_OK(calx_save(all, from));
  calx_value_free(all);
  char command[1024];
  snprintf(command, sizeof command, "'%s' '%s/torch_steps.py' '%s' '%s'",
           python, CX_TEST_DIR, from, to);
  assert_int_equal(system(command), 0);
  CHECK_STATUS_OK(calx_load(to, &back));
  assert_int_equal(calx_value_count(back), RUNS);
  for (size_t i = 0; i < RUNS; i++) check_case(i, calx_value_item(back, i));
  calx_value_free(back);
  print_message("  %d cases, at most %.1e off\n", (int)RUNS, worst);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_steps) };
  if (getenv("CALX_TEST_PLUGIN_TORCH") == NULL) {
    printf("not set: CALX_TEST_PLUGIN_TORCH, a Python that has torch\n");
    return 1;
  }
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
