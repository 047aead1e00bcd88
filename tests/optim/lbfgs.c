// lbfgs: 20 steps of LBFGS on two problems in f64 beside PyTorch's: losses,
// counts and parameters of each step, from each other's state dicts too; its
// checkpoints; closures that fail; steps of other optimisers with a closure;
// what is refused.
#include "calx/calx.h"
#include "support/torch.h"

enum { HALF = 10, WHOLE = 20, SAMPLES = 8 };

// ---- the cases --------------------------------------------------------------

// Problem 0: Rosenbrock's function in four dimensions; 1: a network's squares.
#define CASES(X)                                                             \
  X(0, "max_iter=4, line_search_fn='strong_wolfe'", .max_iter = 4,           \
    .line_search_fn = "strong_wolfe")                                        \
  X(0, "lr=1e-3, max_iter=6, history_size=3", .lr = 1e-3, .max_iter = 6,     \
    .history_size = 3)                                                       \
  X(0,                                                                       \
    "max_iter=5, max_eval=4, line_search_fn='strong_wolfe', history_size=2", \
    .max_iter = 5, .max_eval = 4, .line_search_fn = "strong_wolfe",          \
    .history_size = 2)                                                       \
  X(1, "lr=0.5, max_iter=3", .lr = 0.5, .max_iter = 3)                       \
  X(1, "max_iter=3, line_search_fn='strong_wolfe'", .max_iter = 3,           \
    .line_search_fn = "strong_wolfe")                                        \
  X(1,                                                                       \
    "line_search_fn='strong_wolfe', tolerance_grad=1e-3, "                   \
    "tolerance_change=1e-4",                                                 \
    .line_search_fn = "strong_wolfe", .tolerance_grad = 1e-3,                \
    .tolerance_change = 1e-4)                                                \
  X(1, "lr=0.1", .lr = 0.1)

typedef struct run {
  int problem;
  const char *options;
} run;
static const run runs[] = {
#define X(problem, options, ...) { problem, options },
  CASES(X)
#undef X
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static calx_optimizer *make_optimizer(calx_module *m, size_t i)
{
  size_t n = 0;
  calx_optimizer *opt = NULL;
#define X(problem, options, ...) \
  if (n++ == i) opt = calx_lbfgs(m, __VA_ARGS__);
  CASES(X)
#undef X
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  return opt;
}

// ---- the problems -----------------------------------------------------------

typedef struct net {
  int problem, calls, fails_at;
  calx_module *root;
  calx_optimizer *opt;
  calx_tensor *w, *b;  // (4) and none, or (2, 3) and (2)
} net;

static double data[4][SAMPLES * 3];  // W, b, x (8, 3), y (8, 2)

static void make_data(void)
{
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < SAMPLES * 3; i++) {
      data[k][i] = sin(1.0 + 3 * k + 1.7 * i * i);
    }
  }
}

static calx_tensor *numbers(int which, calx_dtype d, calx_dims dims)
{
  return support_tensor(d, dims, data[which]);
}

static net make_net(int problem, calx_dtype d)
{
  net m = { .problem = problem, .fails_at = -1 };
  m.root = calx_module_new("Net", NULL, NULL);
  calx_scope *s = calx_scope_begin();
  if (problem == 0) {
    m.w = calx_module_param(m.root, "W", numbers(0, d, CALX_SHAPE(4)));
  } else {
    m.w = calx_module_param(m.root, "W", numbers(0, d, CALX_SHAPE(2, 3)));
    m.b = calx_module_param(m.root, "b", numbers(1, d, CALX_SHAPE(2)));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  return m;
}

static void net_free(net *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

static calx_tensor *loss_of(const net *m)
{
  calx_dtype d = calx_tensor_dtype(m->w);
  if (m->problem == 0) {
    calx_tensor *x = calx_slice(m->w, 0, 0, 3, 1);
    calx_tensor *y = calx_slice(m->w, 0, 1, 4, 1);
    calx_tensor *off = calx_sub(y, calx_mul(x, x));
    calx_tensor *way = calx_sub(1, x);
    return calx_sum(
        calx_add(calx_mul(calx_mul(off, off), 100), calx_mul(way, way)));
  }
  calx_tensor *x = numbers(2, d, CALX_SHAPE(SAMPLES, 3));
  calx_tensor *y = calx_tanh(calx_linear(x, m->w, m->b));
  calx_tensor *off = calx_sub(y, numbers(3, d, CALX_SHAPE(SAMPLES, 2)));
  return calx_mean(calx_mul(off, off));
}

static calx_tensor *closure(void *user)
{
  net *m = user;
  calx_optimizer_zero_grad(m->opt);
  calx_tensor *loss = loss_of(m);
  if (m->calls++ == m->fails_at) loss = calx_reshape(loss, CALX_SHAPE(7));
  calx_backward(loss);
  return loss;
}

static double step(net *m)
{
  calx_scope *s = calx_scope_begin();
  double loss = calx_item(calx_optimizer_step_closure(m->opt, closure, m));
  CHECK_STATUS_OK(calx_scope_end(s));
  return loss;
}

// ---- beside PyTorch ---------------------------------------------------------

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

// What PyTorch begins with: the data, and of each case the model and the
// optimiser after HALF steps of calx's.
static calx_value *first_halves(void)
{
  calx_value *all = calx_value_container(CALX_KIND_DICT), *dict;
  calx_value *cases = calx_value_container(CALX_KIND_LIST);
  static const char *const names[] = { "W", "b", "x", "y" };
  put(all, "cases", cases);
  calx_scope *s = calx_scope_begin();
  for (int k = 0; k < 4; k++) {
    calx_tensor *t =
        calx_host_tensor(data[k], CALX_F64, CALX_SHAPE(SAMPLES * 3));
    put(all, names[k], calx_value_tensor(t));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  for (size_t i = 0; i < RUNS; i++) {
    net m = make_net(runs[i].problem, CALX_F64);
    m.opt = make_optimizer(m.root, i);
    for (int k = 0; k < HALF; k++) step(&m);
    calx_value *one = calx_value_container(CALX_KIND_DICT);
    CHECK_STATUS_OK(calx_value_append(cases, one));
    put(one, "problem", calx_value_int(runs[i].problem));
    put(one, "options", calx_value_string(runs[i].options));
    put(one, "W", calx_value_tensor(m.w));
    if (m.b != NULL) put(one, "b", calx_value_tensor(m.b));
    CHECK_STATUS_OK(calx_optimizer_state_dict(m.opt, &dict));
    put(one, "optimizer", dict);
    net_free(&m);
  }
  return all;
}

static double worst;

static void check_number(size_t i, const char *what, int at, double got,
                         double want)
{
  double off = fabs(got - want) / fmax(fabs(want), 1e-3);
  worst = fmax(worst, off);
  if (off <= 1e-6) return;
  fail_msg("LBFGS(%s), %s %d: %.17g, PyTorch has %.17g", runs[i].options, what,
           at, got, want);
}

static void compare(size_t i, const char *what, calx_tensor *t,
                    const calx_value *wanted)
{
  size_t n, n_wanted;
  if (t == NULL) return;
  double *got = support_read(t, &n);
  double *want = support_read(calx_value_as_tensor(wanted), &n_wanted);
  assert_int_equal(n, n_wanted);
  for (size_t k = 0; k < n; k++) {
    check_number(i, what, (int)k, got[k], want[k]);
  }
  test_free(got);
  test_free(want);
}

static int64_t count_of(const net *m, const char *name)
{
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(m->opt, &dict));
  const calx_value *own = calx_value_get_at(calx_value_get(dict, "state"), 0);
  int64_t n = calx_value_as_int(calx_value_get(own, name));
  calx_value_free(dict);
  return n;
}

static void check_steps(net *m, size_t i, const calx_value *rows, int from)
{
  for (int k = from; k < WHOLE; k++) {
    const calx_value *row = calx_value_item(rows, (size_t)k);
    double loss = calx_value_as_float(calx_value_item(row, 0));
    check_number(i, "loss of step", k, step(m), loss);
    assert_int_equal(count_of(m, "func_evals"),
                     calx_value_as_int(calx_value_item(row, 1)));
    assert_int_equal(count_of(m, "n_iter"),
                     calx_value_as_int(calx_value_item(row, 2)));
  }
}

static void check_case(size_t i, const calx_value *one)
{
  net m = make_net(runs[i].problem, CALX_F64);
  m.opt = make_optimizer(m.root, i);
  const calx_value *rows = calx_value_get(one, "rows");
  check_steps(&m, i, rows, 0);
  assert_int_equal(calx_optimizer_steps(m.opt), WHOLE);
  compare(i, "W", m.w, calx_value_get(one, "W"));
  compare(i, "b", m.b, calx_value_get(one, "b"));
  // PyTorch went on from calx's first half.
  compare(i, "PyTorch's second half, W", m.w, calx_value_get(one, "went W"));
  compare(i, "PyTorch's second half, b", m.b, calx_value_get(one, "went b"));
  // And calx from PyTorch's.
  CHECK_STATUS_OK(
      calx_module_load_state_dict(m.root, calx_value_get(one, "half model")));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(
      m.opt, calx_value_get(one, "half optimizer")));
  check_steps(&m, i, rows, HALF);
  compare(i, "calx's second half, W", m.w, calx_value_get(one, "W"));
  net_free(&m);
}

static void test_torch(void **state)
{
  (void)state;
  calx_value *back = torch_ask(first_halves(), "lbfgs_torch.py");
  assert_int_equal(calx_value_count(back), RUNS);
  for (size_t i = 0; i < RUNS; i++) check_case(i, calx_value_item(back, i));
  calx_value_free(back);
  print_message("  %d cases, at most %.1e off\n", (int)RUNS, worst);
}

// ---- checkpoints ------------------------------------------------------------

static void check_same(const net *x, const net *y)
{
  for (int k = 0; k < 2; k++) {
    size_t n;
    double *a = support_read(k ? x->b : x->w, &n);
    double *b = support_read(k ? y->b : y->w, &n);
    assert_memory_equal(a, b, n * sizeof *a);
    test_free(a);
    test_free(b);
  }
}

static void test_checkpoint(void **state)
{
  (void)state;
  static const calx_dtype types[] = { CALX_F64, CALX_F32, CALX_BF16 };
  const char *path = file_in_folder("run.pt");
  for (int k = 0; k < 3; k++) {
    net a = make_net(1, types[k]), b = make_net(1, types[k]);
    a.opt = make_optimizer(a.root, 4);
    b.opt = make_optimizer(b.root, 4);
    double first = step(&a);
    step(&a);
    calx_checkpoint c = { .size = sizeof c, .model = a.root };
    c.optimizer = a.opt;
    CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
    c.model = b.root;
    c.optimizer = b.opt;
    step(&b);
    CHECK_STATUS_OK(calx_checkpoint_load(path, &c));
    assert_int_equal(calx_optimizer_steps(b.opt), 2);
    for (int i = 0; i < 3; i++) {
      double x = step(&a), y = step(&b);
      assert_true(x == y && x < first);
    }
    check_same(&a, &b);
    net_free(&a);
    net_free(&b);
  }
  files_in_folder(true);
}

// ---- failures ---------------------------------------------------------------

// A closure that fails at any call, and the step that is tried again.
static void test_failing_closure(void **state)
{
  (void)state;
  for (int at = 0; at < 4; at++) {
    net a = make_net(1, CALX_F64), b = make_net(1, CALX_F64);
    a.opt = make_optimizer(a.root, 3);
    b.opt = make_optimizer(b.root, 3);
    a.fails_at = at;
    calx_scope *s = calx_scope_begin();
    calx_optimizer_step_closure(a.opt, closure, &a);
    calx_status *status = calx_scope_end(s);
    if (at == 3) {  // there is no fourth call
      CHECK_STATUS_OK(status);
    } else {
      CHECK_STATUS(CALX_INVALID_ARGUMENT, status, "reshape");
      assert_int_equal(calx_optimizer_steps(a.opt), 0);
    }
    step(&b);
    a.fails_at = -1;
    double before = calx_item(loss_of(&a));
    step(&a);
    assert_true(calx_item(loss_of(&a)) < before);
    net_free(&a);
    net_free(&b);
  }
}

static calx_tensor *no_loss(void *user)
{
  (void)user;
  return NULL;
}

static calx_tensor *two_losses(void *user)
{
  return ((net *)user)->b;
}

static void refuse(net *m, calx_loss_closure_fn *fn, const char *piece)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_step_closure(m->opt, fn, m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), piece);
}

static void check_error(calx_optimizer *opt, const char *piece)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), piece);
  calx_optimizer_free(opt);
}

static size_t history_of(const net *m)
{
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(m->opt, &dict));
  const calx_value *own = calx_value_get_at(calx_value_get(dict, "state"), 0);
  size_t n = calx_value_count(calx_value_get(own, "old_dirs"));
  calx_value_free(dict);
  return n;
}

static void test_refused(void **state)
{
  (void)state;
  net m = make_net(1, CALX_F64);
  m.opt = calx_lbfgs(m.root);
  refuse(&m, NULL, "the closure is NULL");
  refuse(&m, no_loss, "returned NULL");
  refuse(&m, two_losses, "returned f64[2], a loss of one element is wanted");
  calx_optimizer_step(m.opt);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "calx_optimizer_step_closure");
  check_error(calx_lbfgs(m.root, .line_search_fn = "armijo"),
              "only 'strong_wolfe' is supported");
  check_error(calx_lbfgs(m.root, .lr = -1), "lr -1");
  check_error(calx_lbfgs(m.root, .max_iter = -1), "max_iter -1");
  check_error(calx_lbfgs(m.root, .history_size = -2), "history_size -2");
  check_error(calx_lbfgs(m.root, .tolerance_grad = (double)NAN),
              "tolerance_grad nan");
  net_free(&m);
  m = make_net(1, CALX_F64);
  m.opt = calx_lbfgs(NULL, .params = &m.w, .n_params = 1, .max_iter = 3);
  calx_optimizer_add_param_group(m.opt, NULL, .params = &m.b, .n_params = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "doesn't support per-parameter options");
  step(&m);
  calx_optimizer_set_option(m.opt, 0, "history_size", 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "history_size 0");
  calx_optimizer_set_option(m.opt, 0, "history_size", 1);  // it has more
  CHECK_STATUS_OK(calx_scope_take_error());
  step(&m);
  assert_true(history_of(&m) <= 1);
  net_free(&m);
}

static void refuse_state(net *m, const char *key, calx_value *v,
                         const char *piece)
{
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(m->opt, &dict));
  put(calx_value_get_at(calx_value_get(dict, "state"), 0), key, v);
  int64_t evals = count_of(m, "func_evals");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(m->opt, dict), piece);
  assert_int_equal(count_of(m, "func_evals"), evals);
  calx_value_free(dict);
}

static void test_bad_states(void **state)
{
  (void)state;
  net m = make_net(1, CALX_F64);
  m.opt = calx_lbfgs(m.root, .max_iter = 3);
  step(&m);
  refuse_state(&m, "func_evals", calx_value_int(-1), "'func_evals' is int -1");
  refuse_state(&m, "n_iter", calx_value_none(), "'n_iter' is");
  refuse_state(&m, "d", calx_value_float(1), "a floating tensor of 8 elements");
  refuse_state(&m, "prev_flat_grad", calx_value_none(), "'prev_flat_grad'");
  refuse_state(&m, "ro", calx_value_container(CALX_KIND_LIST),
               "a list as long as");
  refuse_state(&m, "H_diag", calx_value_string("x"), "'H_diag' is str");
  refuse_state(&m, "t", calx_value_float((double)NAN), "'t' is float");
  calx_value *adam;
  calx_optimizer *other = calx_adam(m.root);
  calx_scope *s = calx_scope_begin();
  calx_optimizer_step(other);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_optimizer_state_dict(other, &adam));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(m.opt, adam), "lbfgs");
  calx_value_free(adam);
  calx_optimizer_free(other);
  net_free(&m);
}

// ---- other optimisers -------------------------------------------------------

static void test_others(void **state)
{
  (void)state;
  net a = make_net(1, CALX_F64), b = make_net(1, CALX_F64);
  a.opt = calx_adam(a.root, .lr = 0.1);
  b.opt = calx_adam(b.root, .lr = 0.1);
  for (int i = 0; i < 3; i++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *loss = calx_optimizer_step_closure(a.opt, closure, &a);
    calx_sync(loss);
    double x = calx_item(loss);
    loss = closure(&b);
    calx_optimizer_step(b.opt);
    calx_sync(loss);
    assert_true(x == calx_item(loss));
    CHECK_STATUS_OK(calx_scope_end(s));
    check_same(&a, &b);
  }
  refuse(&a, no_loss, "returned NULL");
  net_free(&a);
  net_free(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_torch),           SUPPORT_TEST(test_checkpoint),
    SUPPORT_TEST(test_failing_closure), SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_bad_states),      SUPPORT_TEST(test_others),
  };
  torch_python();
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
