// torch_net: 50 steps of optimisers in f64 beside PyTorch's, from each other's
// state dicts too. The rates of the groups change on the way.
//
// The file that includes it defines, before:
//   SCRIPT         the program of this folder that PyTorch runs
//   SECOND         the name of the parameter beside W
//   CASES(X)       a row for each: PyTorch's class and its options, calx's
//                  function and its options
// and afterwards the functions that are declared here.
#ifndef CX_TESTS_OPTIM_TORCH_NET_H
#define CX_TESTS_OPTIM_TORCH_NET_H

#include "calx/autograd.h"
#include "calx/io.h"
#include "calx/optimizers.h"
#include "support/torch.h"

enum { HALF = 25, WHOLE = 50, RATES_AT = 12 };

typedef struct net {
  calx_module *root;
  calx_tensor *w, *b;  // the parameter "W" and that of second_name
} net;

typedef struct run {
  const char *name, *options;  // PyTorch's class and its options
} run;

static const run runs[] = {
#define X(name, options, ...) { name, options },
  CASES(X)
#undef X
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static net make_net(void);
// The loss of a step, which a program of PyTorch's has too.
static calx_tensor *loss_at(const net *m, int step);
// The four rows of `data` as PyTorch is to have them, by name.
static void put_data(calx_value *dict);

// Even cases have one group. Odd cases have the second parameter in another
// group, with half the rate.
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

static double data[4][32];

static inline calx_tensor *f64(int which, calx_dims dims)
{
  return support_tensor(CALX_F64, dims, data[which]);
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
    calx_backward(loss_at(m, i));
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

// What PyTorch begins with: the data by name and 'cases': [{'name', 'options',
// 'W', the other parameter, 'optimizer'}], after HALF steps of calx's.
static calx_value *first_halves(void)
{
  calx_value *all = calx_value_container(CALX_KIND_DICT);
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  put(all, "cases", list);
  calx_scope *s = calx_scope_begin();
  put_data(all);
  CHECK_STATUS_OK(calx_scope_end(s));
  for (size_t i = 0; i < RUNS; i++) {
    calx_value *one = calx_value_container(CALX_KIND_DICT), *dict;
    CHECK_STATUS_OK(calx_value_append(list, one));
    net m = make_net();
    calx_optimizer *opt = make_optimizer(&m, i);
    train(&m, opt, 0, HALF);
    put(one, "name", calx_value_string(runs[i].name));
    put(one, "options", calx_value_string(runs[i].options));
    put(one, "W", calx_value_tensor(m.w));
    put(one, SECOND, calx_value_tensor(m.b));
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

static void compare_both(const char *what, size_t i, const net *m,
                         const calx_value *one, const char *prefix)
{
  const char *const names[2] = { "W", SECOND };
  calx_tensor *const params[2] = { m->w, m->b };
  for (int k = 0; k < 2; k++) {
    char key[32];
    snprintf(key, sizeof key, "%s%s", prefix, names[k]);
    compare(what, i, params[k], calx_value_get(one, key));
  }
}

static void check_case(size_t i, const calx_value *one)
{
  net m = make_net();
  calx_optimizer *opt = make_optimizer(&m, i);
  train(&m, opt, 0, WHOLE);
  compare_both("all of calx's steps", i, &m, one, "");
  // PyTorch went on from calx's first half.
  compare_both("PyTorch's second half", i, &m, one, "went ");
  // And calx from PyTorch's.
  CHECK_STATUS_OK(
      calx_module_load_state_dict(m.root, calx_value_get(one, "half model")));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(
      opt, calx_value_get(one, "half optimizer")));
  train(&m, opt, HALF, WHOLE);
  compare_both("calx's second half", i, &m, one, "");
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_steps(void **state)
{
  (void)state;
  calx_value *back = torch_ask(first_halves(), SCRIPT);
  assert_int_equal(calx_value_count(back), RUNS);
  for (size_t i = 0; i < RUNS; i++) check_case(i, calx_value_item(back, i));
  calx_value_free(back);
  print_message("  %d cases, at most %.1e off\n", (int)RUNS, worst);
}

static void make_data(void)
{
  torch_python();
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < 32; i++) data[k][i] = sin(1.0 + 3 * k + 1.7 * i * i);
  }
}

#endif
