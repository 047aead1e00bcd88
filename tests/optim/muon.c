// muon: 50 steps of Muon in f64 beside PyTorch's, from each other's state dicts
// too; its iteration computes in bf16 in both. What is refused.
// CALX_TEST_PLUGIN_TORCH is a Python that has torch.
#include "calx/autograd.h"
#include "calx/io.h"
#include "calx/optimizers.h"
#include "io/files.h"
#include "support/support.h"

enum { HALF = 25, WHOLE = 50, RATES_AT = 12 };

typedef struct net {
  calx_module *root;
  calx_tensor *w, *v;  // (5, 3), (2, 5)
} net;

// ---- the cases --------------------------------------------------------------

#define CASES(X)                                                            \
  X("", muon, .lr = 0)                                                      \
  X("lr=0.02, momentum=0.8, nesterov=False, weight_decay=0.0", muon,        \
    .lr = 0.02, .momentum = 0.8, .no_nesterov = true,                       \
    .weight_decay = CALX_ZERO)                                              \
  X("lr=0.01, adjust_lr_fn='match_rms_adamw', weight_decay=0.3", muon,      \
    .lr = 0.01, .adjust_lr_fn = "match_rms_adamw", .weight_decay = 0.3)     \
  X("lr=0.01, momentum=0.3, adjust_lr_fn='original', ns_steps=2, eps=0.5, " \
    "ns_coefficients=(2.0, -1.5, 0.5)",                                     \
    muon, .lr = 0.01, .momentum = 0.3, .adjust_lr_fn = "original",          \
    .ns_steps = 2, .eps = 0.5, .ns_coefficients = { 2, -1.5, 0.5 })

typedef struct run {
  const char *options;
} run;
static const run runs[] = {
#define X(options, ...) { options },
  CASES(X)
#undef X
};
enum { RUNS = sizeof runs / sizeof runs[0] };

// Even cases have one group; odd ones have v in another, with half the rate.
static calx_optimizer *make_optimizer(const net *m, size_t i)
{
  size_t n = 0;
  calx_optimizer *opt = NULL;
  bool two = i % 2 != 0;
#define X(options, call, ...)                                           \
  if (n++ == i) {                                                       \
    opt = calx_##call(two ? NULL : m->root, __VA_ARGS__,                \
                      .params = two ? (calx_tensor *[]){ m->w } : NULL, \
                      .n_params = two);                                 \
  }
  CASES(X)
#undef X
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  if (two) {
    calx_optimizer_add_param_group(opt, NULL, .params = &m->v, .n_params = 1,
                                   .lr = calx_optimizer_lr(opt) / 2);
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  return opt;
}

// ---- training ---------------------------------------------------------------

static double data[4][32];  // W, V and what gradients are made of

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
  m.w = calx_module_param(m.root, "W", f64(0, CALX_SHAPE(5, 3)));
  m.v = calx_module_param(m.root, "V", f64(1, CALX_SHAPE(2, 5)));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m.root));
  return m;
}

// The gradients do not depend on the parameters: a value that is on the border
// of two bf16s, and rounds to the other one, changes no later step.
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
    calx_tensor *x = f64(2, CALX_SHAPE(5, 3)), *y = f64(3, CALX_SHAPE(2, 5));
    x = calx_add(x, calx_mul(f64(1, CALX_SHAPE(5, 3)), i % 7 - 3));
    y = calx_add(y, calx_mul(f64(0, CALX_SHAPE(2, 5)), i % 5 - 2));
    calx_tensor *loss = calx_sum(calx_mul(m->w, x));
    calx_backward(calx_add(loss, calx_sum(calx_mul(m->v, y))));
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
  static const char *const names[] = { "W", "V", "x", "y" };
  calx_scope *s = calx_scope_begin();
  for (int k = 0; k < 4; k++) {
    calx_tensor *t = calx_host_tensor(data[k], CALX_F64, CALX_SHAPE(32));
    put(all, names[k], calx_value_tensor(t));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  for (size_t i = 0; i < RUNS; i++) {
    calx_value *one = calx_value_container(CALX_KIND_DICT), *dict;
    CHECK_STATUS_OK(calx_value_append(cases, one));
    net m = make_net();
    calx_optimizer *opt = make_optimizer(&m, i);
    train(&m, opt, 0, HALF);
    put(one, "options", calx_value_string(runs[i].options));
    put(one, "W", calx_value_tensor(m.w));
    put(one, "V", calx_value_tensor(m.v));
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
    fail_msg("Muon(%s), %s, element %zu: %.17g, PyTorch has %.17g",
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
  compare("all of calx's steps, V", i, m.v, calx_value_get(one, "V"));
  // PyTorch went on from calx's first half.
  compare("PyTorch's second half, W", i, m.w, calx_value_get(one, "went W"));
  compare("PyTorch's second half, V", i, m.v, calx_value_get(one, "went V"));
  // And calx from PyTorch's.
  CHECK_STATUS_OK(
      calx_module_load_state_dict(m.root, calx_value_get(one, "half model")));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(
      opt, calx_value_get(one, "half optimizer")));
  train(&m, opt, HALF, WHOLE);
  compare("calx's second half, W", i, m.w, calx_value_get(one, "W"));
  compare("calx's second half, V", i, m.v, calx_value_get(one, "V"));
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
  snprintf(command, sizeof command, "'%s' -B '%s/muon_torch.py' '%s' '%s'",
           python, CX_TEST_DIR, from, to);
  assert_int_equal(system(command), 0);
  CHECK_STATUS_OK(calx_load(to, &back));
  assert_int_equal(calx_value_count(back), RUNS);
  for (size_t i = 0; i < RUNS; i++) check_case(i, calx_value_item(back, i));
  calx_value_free(back);
  print_message("  %d cases, at most %.1e off\n", (int)RUNS, worst);
  files_in_folder(true);
}

static void check_error(calx_optimizer *opt, const char *piece)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), piece);
  calx_optimizer_free(opt);
}

static void test_refused(void **state)
{
  (void)state;
  net m = make_net();
  calx_scope *s = calx_scope_begin();
  calx_tensor *b = calx_module_param(m.root, "b", f64(1, CALX_SHAPE(4)));
  CHECK_STATUS_OK(calx_scope_end(s));
  check_error(calx_muon(m.root),
              "Muon only supports 2D parameters whereas we found a parameter "
              "of rank 1, f64[4]");
  calx_tensor *two[2] = { m.w, m.v };
  check_error(
      calx_muon(NULL, .params = two, .n_params = 2, .adjust_lr_fn = "half"),
      "Adjust learning rate function 'half' is not supported");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .ns_steps = 100),
              "ns_steps 100, a whole number of 1 to 99 is wanted");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .ns_steps = -1),
              "ns_steps -1");
  check_error(calx_muon(NULL, .params = two, .n_params = 2,
                        .ns_coefficients = { 1, (double)NAN, 2 }),
              "three numbers");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .lr = -1), "lr -1");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .momentum = -1),
              "momentum -1");
  calx_optimizer *opt = calx_muon(NULL, .params = two, .n_params = 2);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  assert_true(calx_optimizer_option(opt, 0, "ns_coefficients[2]") == 2.0315);
  assert_true(isnan(calx_optimizer_option(opt, 0, "ns_coefficients")));
  assert_true(isnan(calx_optimizer_option(opt, 0, "adjust_lr_fn")));
  calx_optimizer_set_option(opt, 0, "ns_steps", 2.5);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "ns_steps 2.5");
  calx_optimizer_add_param_group(opt, NULL, .params = &b, .n_params = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "2D parameters");
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  calx_value *group = calx_value_item(calx_value_get(dict, "param_groups"), 0);
  put(group, "adjust_lr_fn", calx_value_string("third"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'adjust_lr_fn' is", "original");
  put(group, "adjust_lr_fn", calx_value_none());
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(opt, dict));
  calx_value_free(dict);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_steps),
                                      SUPPORT_TEST(test_refused) };
  if (getenv("CALX_TEST_PLUGIN_TORCH") == NULL) {
    printf("not set: CALX_TEST_PLUGIN_TORCH, a Python that has torch\n");
    return 1;
  }
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
