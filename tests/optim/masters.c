// masters: 50 steps of bf16 and f16 models whose optimisers keep f32 masters,
// beside a PyTorch program that keeps them by hand; their checkpoints; changes
// of the parameters; f16 gradients that a scale has made large; what is
// refused.
#include "calx/calx.h"
#include "support/torch.h"

enum { HALF = 25, WHOLE = 50, ELEMENTS = 12 };

// ---- the cases --------------------------------------------------------------

#define CASES(X)                                                            \
  X("SGD", "lr=1e-3", sgd, .lr = 1e-3)                                      \
  X("SGD", "lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.01", sgd,  \
    .lr = 0.01, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01)    \
  X("Adam", "lr=1e-3, amsgrad=True", adam, .lr = 1e-3, .amsgrad = true)     \
  X("AdamW", "lr=1e-3", adamw, .lr = 1e-3)                                  \
  X("Adagrad", "lr=1e-3", adagrad, .lr = 1e-3)                              \
  X("Adadelta", "lr=0.1", adadelta, .lr = 0.1)                              \
  X("RMSprop", "lr=1e-3, centered=True, momentum=0.5", rmsprop, .lr = 1e-3, \
    .centered = true, .momentum = 0.5)                                      \
  X("Adamax", "lr=1e-3", adamax, .lr = 1e-3)                                \
  X("NAdam", "lr=1e-3", nadam, .lr = 1e-3)                                  \
  X("RAdam", "lr=1e-3", radam, .lr = 1e-3)                                  \
  X("Rprop", "lr=1e-3", rprop, .lr = 1e-3)                                  \
  X("ASGD", "lr=1e-3, t0=10", asgd, .lr = 1e-3, .t0 = 10)                   \
  X("Adafactor", "lr=1e-3", adafactor, .lr = 1e-3)

typedef struct run {
  const char *name, *options;
} run;
static const run runs[] = {
#define X(name, options, ...) { name, options },
  CASES(X)
#undef X
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static calx_optimizer *make_optimizer(calx_module *m, size_t i)
{
  size_t n = 0;
  calx_optimizer *opt = NULL;
#define X(name, options, call, ...) \
  if (n++ == i) opt = calx_##call(m, __VA_ARGS__, .master_weights = true);
  CASES(X)
#undef X
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  return opt;
}

// ---- training ---------------------------------------------------------------

typedef struct net {
  calx_module *root;
  calx_tensor *w;  // (4, 3)
} net;

static calx_tensor *wave(double from, calx_dtype d)
{
  double x[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) x[i] = sin(from + 1.7 * i * i);
  return calx_to_dtype(support_tensor(CALX_F32, CALX_SHAPE(4, 3), x), d);
}

static net make_net(calx_dtype d)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.w = calx_module_param(m.root, "W", wave(1, d));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  return m;
}

// Half the squares of w - target, whose gradient is one rounded difference: it
// has the same bits in every program.
static void backward(const net *m, int i, double scale)
{
  calx_dtype d = calx_tensor_dtype(m->w);
  calx_tensor *off = calx_sub(m->w, wave(2 + i, d));
  calx_tensor *loss = calx_mul(calx_sum(calx_mul(off, off)), 0.5 * scale);
  calx_backward(loss);
}

static void train(const net *m, calx_optimizer *opt, int from, int to)
{
  for (int i = from; i < to; i++) {
    calx_scope *s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    backward(m, i, 1);
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
}

// ---- beside PyTorch ---------------------------------------------------------

static double worst;

static void compare(size_t i, const char *what, calx_tensor *t,
                    const calx_value *wanted, double tolerance)
{
  size_t n, n_wanted;
  double *got = support_read(t, &n);
  double *want = support_read(calx_value_as_tensor(wanted), &n_wanted);
  assert_int_equal(n, n_wanted);
  for (size_t k = 0; k < n; k++) {
    double off = fabs(got[k] - want[k]) / fmax(fabs(want[k]), 1e-2);
    if (tolerance < 1e-4) worst = fmax(worst, off);
    if (off <= tolerance) continue;
    fail_msg("%s(%s), %s, element %zu: %.9g, PyTorch has %.9g", runs[i].name,
             runs[i].options, what, k, got[k], want[k]);
  }
  test_free(got);
  test_free(want);
}

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

static calx_value *cases(void)
{
  calx_value *all = calx_value_container(CALX_KIND_LIST);
  for (size_t i = 0; i < RUNS; i++) {
    calx_value *one = calx_value_container(CALX_KIND_DICT);
    CHECK_STATUS_OK(calx_value_append(all, one));
    put(one, "name", calx_value_string(runs[i].name));
    put(one, "options", calx_value_string(runs[i].options));
  }
  return all;
}

static void check_case(size_t i, calx_dtype d, const calx_value *one)
{
  net m = make_net(d);
  calx_optimizer *opt = make_optimizer(m.root, i);
  train(&m, opt, 0, WHOLE);
  calx_tensor *master = calx_optimizer_state(opt, 0, "master_param");
  assert_non_null(master);
  assert_int_equal(calx_tensor_dtype(master), CALX_F32);
  assert_int_equal(calx_tensor_dtype(m.w), d);
  compare(i, "master", master, calx_value_get(one, "master"), 1e-5);
  // A master on the border of two values of the type may round to either.
  compare(i, "weight", m.w, calx_value_get(one, "weight"),
          d == CALX_F16 ? 0x1p-10 : 0x1p-7);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_torch(void **state)
{
  (void)state;
  static const calx_dtype types[] = { CALX_BF16, CALX_F16 };
  calx_value *back = torch_ask(cases(), "masters_torch.py");
  assert_int_equal(calx_value_count(back), 2 * RUNS);
  for (size_t i = 0; i < 2 * RUNS; i++) {
    check_case(i % RUNS, types[i / RUNS], calx_value_item(back, i));
  }
  calx_value_free(back);
  print_message("  %d cases, masters at most %.1e off\n", 2 * (int)RUNS, worst);
}

// ---- files ------------------------------------------------------------------

static void check_same(calx_tensor *x, calx_tensor *y)
{
  size_t n, m;
  double *a = support_read(x, &n), *b = support_read(y, &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n * sizeof *a);
  test_free(a);
  test_free(b);
}

static void test_checkpoints(void **state)
{
  (void)state;
  const char *path = file_in_folder("run.pt");
  for (size_t i = 0; i < RUNS; i++) {
    net a = make_net(CALX_BF16), b = make_net(CALX_BF16);
    calx_optimizer *of_a = make_optimizer(a.root, i);
    calx_optimizer *of_b = make_optimizer(b.root, i);
    train(&a, of_a, 0, 5);
    calx_checkpoint c = { .size = sizeof c, .model = a.root };
    c.optimizer = of_a;
    CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
    train(&a, of_a, 5, 12);
    c.model = b.root;
    c.optimizer = of_b;
    CHECK_STATUS_OK(calx_checkpoint_load(path, &c));
    train(&b, of_b, 5, 12);
    check_same(a.w, b.w);
    check_same(calx_optimizer_state(of_a, 0, "master_param"),
               calx_optimizer_state(of_b, 0, "master_param"));
    calx_optimizer_free(of_a);
    calx_optimizer_free(of_b);
    calx_module_free(a.root);
    calx_module_free(b.root);
  }
  files_in_folder(true);
}

static void test_refused(void **state)
{
  (void)state;
  net m = make_net(CALX_BF16), wide = make_net(CALX_F32);
  calx_optimizer *opt = calx_adam(m.root, .master_weights = true);
  calx_optimizer *plain = calx_adam(m.root);
  calx_optimizer *of_wide = calx_adam(wide.root, .master_weights = true);
  calx_value *dict;
  train(&m, opt, 0, 2);
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(plain, dict), "master_param",
               "of bf16", ".master_weights");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(of_wide, dict), "master_param",
               "of f32", "the model was of bf16 or f16");
  // Of a state without masters they begin at the parameters.
  calx_value *narrow;
  train(&m, plain, 0, 2);
  CHECK_STATUS_OK(calx_optimizer_state_dict(plain, &narrow));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(opt, narrow));
  assert_null(calx_optimizer_state(opt, 0, "master_param"));
  train(&m, opt, 2, 3);
  assert_non_null(calx_optimizer_state(opt, 0, "master_param"));
  // Parameters of f32 have none.
  train(&wide, of_wide, 0, 2);
  assert_null(calx_optimizer_state(of_wide, 0, "master_param"));
  assert_null(calx_optimizer_state(plain, 0, "master_param"));
  calx_value_free(dict);
  calx_value_free(narrow);
  calx_optimizer_free(opt);
  calx_optimizer_free(plain);
  calx_optimizer_free(of_wide);
  calx_module_free(m.root);
  calx_module_free(wide.root);
}

// ---- small updates, and changes ---------------------------------------------

static void step_by(const net *m, calx_optimizer *opt, double gradient)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_backward(calx_mul(calx_sum(m->w), gradient));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void fill(const net *m, double value)
{
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  calx_assign(m->w, calx_full(CALX_SHAPE(4, 3), value,
                              .dtype = calx_tensor_dtype(m->w)));
  calx_no_grad_end();
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void check_all(calx_tensor *t, double wanted)
{
  size_t n;
  double *x = support_read(t, &n);
  for (size_t i = 0; i < n; i++) CHECK_CLOSE(x[i], wanted, 1e-6);
  test_free(x);
}

static void test_changes(void **state)
{
  (void)state;
  static const calx_dtype types[] = { CALX_BF16, CALX_F16 };
  for (int k = 0; k < 2; k++) {
    net m = make_net(types[k]);
    fill(&m, 1);
    // Of 1 a bf16 has neighbours 0.0039 below and 0.0078 above.
    calx_optimizer *opt =
        calx_sgd(m.root, .lr = 0x1p-14, .master_weights = true);
    calx_optimizer *plain = calx_sgd(m.root, .lr = 0x1p-14);
    for (int i = 0; i < 8; i++) step_by(&m, plain, 1);
    check_all(m.w, 1);  // every update is lost
    for (int i = 0; i < 128; i++) step_by(&m, opt, 1);
    check_all(m.w, 1 - 0x1p-7);
    check_all(calx_optimizer_state(opt, 0, "master_param"), 1 - 0x1p-7);
    step_by(&m, opt, 1);
    check_all(calx_optimizer_state(opt, 0, "master_param"),
              1 - 0x1p-7 - 0x1p-14);
    // What the program writes counts, though the master was elsewhere.
    fill(&m, -2);
    step_by(&m, opt, 1);
    check_all(calx_optimizer_state(opt, 0, "master_param"), -2 - 0x1p-14);
    check_all(m.w, -2);
    calx_optimizer_free(opt);
    calx_optimizer_free(plain);
    calx_module_free(m.root);
  }
}

// A gradient of 2^-30 is no f16, but 2^16 times it is.
static void test_scaled(void **state)
{
  (void)state;
  net m = make_net(CALX_F16);
  fill(&m, 0);
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0x1p20, .master_weights = true);
  calx_grad_scaler *s = calx_grad_scaler_new();
  for (int i = 0; i < 3; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *y = calx_to_dtype(calx_sum(m.w), CALX_F32);
    if (i == 1) y = calx_mul(y, (double)INFINITY);
    calx_backward(calx_grad_scaler_scale(s, calx_mul(y, 0x1p-30)));
    calx_grad_scaler_unscale(s, opt);
    calx_tensor *grad = calx_grad(m.w);
    assert_int_equal(calx_tensor_dtype(grad), CALX_F32);
    calx_clip_grad_value(opt, 1);
    calx_grad_scaler_step(s, opt);
    calx_grad_scaler_update(s);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_int_equal(calx_optimizer_steps(opt), 2);
  check_all(m.w, -2 * 0x1p-10);
  check_all(calx_optimizer_state(opt, 0, "master_param"), -2 * 0x1p-10);
  CHECK_CLOSE(calx_grad_scaler_get_scale(s), 32768, 0);
  calx_grad_scaler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_torch),   SUPPORT_TEST(test_checkpoints),
    SUPPORT_TEST(test_refused), SUPPORT_TEST(test_changes),
    SUPPORT_TEST(test_scaled),
  };
  torch_python();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
