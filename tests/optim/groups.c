// groups: parameters with options of their own, and options that change between
// steps.
#include "calx/io.h"
#include "net.h"

static void add_numbers(calx_optimizer *opt, calx_tensor *w, calx_tensor *b)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_backward(calx_add(calx_sum(calx_mul(w, 2)), calx_sum(b)));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

typedef struct pair {
  calx_module *m;
  calx_tensor *w, *b;  // (1) f64, of 1
} pair;

static pair make_pair(void)
{
  pair p = { .m = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  calx_tensor *one = calx_ones(CALX_SHAPE(1), .dtype = CALX_F64);
  p.w = calx_module_param(p.m, "w", one);
  p.b = calx_module_param(p.m, "b", one);
  CHECK_STATUS_OK(calx_scope_end(s));
  return p;
}

// w: momentum 0.9 and weight decay 0.5; b: neither, and another rate.
static void test_each_has_its_own(void **state)
{
  (void)state;
  pair p = make_pair();
  calx_optimizer *opt =
      calx_sgd(NULL, .lr = 0.25, .momentum = 0.9, .weight_decay = 0.5,
               .params = &p.w, .n_params = 1);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  size_t group = calx_optimizer_add_param_group(
      opt, NULL, .params = &p.b, .n_params = 1, .lr = 0.125,
      .weight_decay = CALX_ZERO, .momentum = CALX_ZERO);
  assert_int_equal(group, 1);
  assert_int_equal(calx_optimizer_param_groups(opt), 2);
  double w = 1, buffer = 0, b = 1;
  for (int i = 0; i < 4; i++) {
    add_numbers(opt, p.w, p.b);
    double g = 2 + 0.5 * w;
    buffer = i == 0 ? g : 0.9 * buffer + g;
    w -= 0.25 * buffer;
    b -= 0.125;
    CHECK_VALUES(p.w, 1e-14, w);
    CHECK_VALUES(p.b, 1e-14, b);
  }
  assert_non_null(calx_optimizer_state(opt, 0, "momentum_buffer"));
  assert_null(calx_optimizer_state(opt, 1, "momentum_buffer"));
  calx_optimizer_free(opt);
  calx_module_free(p.m);
}

// Other numbers are no other program.
static void test_options_change(void **state)
{
  (void)state;
  pair p = make_pair();
  calx_optimizer *opt = calx_adamw(p.m, .lr = 0.5, .betas = { 0.9, 0.99 },
                                   .params = &p.w, .n_params = 1);
  calx_optimizer_add_param_group(opt, NULL, .params = &p.b, .n_params = 1);
  assert_true(calx_optimizer_option(opt, 1, "lr") == 0.5);
  for (int i = 0; i < 2; i++) add_numbers(opt, p.w, p.b);
  long programs = cx_lazy_program_count();
  calx_optimizer_set_option(opt, 0, "lr", 0.25);
  calx_optimizer_set_option(opt, 0, "weight_decay", 0.125);
  calx_optimizer_set_option(opt, 1, "betas[0]", 0.8);
  calx_optimizer_set_option(opt, 1, "betas[1]", 0.75);
  calx_optimizer_set_option(opt, 1, "eps", 0.5);
  CHECK_STATUS_OK(calx_scope_take_error());
  assert_true(calx_optimizer_option(opt, 0, "betas[0]") == 0.9);
  assert_true(calx_optimizer_option(opt, 1, "betas[0]") == 0.8);
  assert_true(calx_optimizer_option(opt, 1, "betas[1]") == 0.75);
  double w[2];
  for (int i = 0; i < 2; i++) {
    size_t n;
    add_numbers(opt, p.w, p.b);
    double *read = support_read(p.b, &n);
    w[i] = read[0];
    test_free(read);
  }
  assert_true(w[0] != w[1]);
  assert_int_equal(cx_lazy_program_count(), programs);
  calx_optimizer_set_lr(opt, 0);
  assert_true(calx_optimizer_option(opt, 0, "lr") == 0);
  assert_true(calx_optimizer_option(opt, 1, "lr") == 0);
  calx_optimizer_free(opt);
  calx_module_free(p.m);
}

#define REFUSED(call, told)                                             \
  do {                                                                  \
    call;                                                               \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), told); \
  } while (0)

static void test_refused(void **state)
{
  (void)state;
  pair p = make_pair();
  calx_optimizer *opt = calx_sgd(p.m, .params = &p.w, .n_params = 1);
  REFUSED(assert_true(calx_optimizer_add_param_group(opt, p.m) == SIZE_MAX),
          "some parameters appear in more than one parameter group: 'w'");
  REFUSED(calx_optimizer_add_param_group(opt, NULL), "the module is NULL");
  REFUSED(calx_optimizer_add_param_group(opt, NULL, .params = &p.b,
                                         .n_params = 1, .lr = -1),
          "sgd: lr -1");
  REFUSED(calx_optimizer_add_param_group(opt, NULL, .params = &p.b,
                                         .n_params = 1, .eps = 1),
          "it has no option 'eps'");
  calx_tensor *none = NULL;
  REFUSED(
      calx_optimizer_add_param_group(opt, NULL, .params = &none, .n_params = 1),
      ".params[0] is NULL");
  REFUSED(calx_optimizer_add_param_group(opt, NULL, .n_params = 3),
          ".n_params 3 without .params");
  REFUSED(calx_optimizer_add_param_group(NULL, p.m), "the optimiser is NULL");
  assert_int_equal(calx_optimizer_param_groups(opt), 1);
  REFUSED(calx_optimizer_set_option(opt, 1, "lr", 1), "group 1, it has 1");
  REFUSED(calx_optimizer_set_option(opt, 0, "l", 1), "no option 'l'");
  REFUSED(calx_optimizer_set_option(opt, 0, NULL, 1), "no option 'NULL'");
  REFUSED(calx_optimizer_set_option(opt, 0, "lr", (double)NAN), "lr nan");
  REFUSED(calx_optimizer_set_option(opt, 0, "nesterov", 1), "needs momentum");
  REFUSED(calx_optimizer_set_option(opt, 0, "maximize", 2), "0 or 1 is wanted");
  REFUSED(calx_optimizer_set_option(NULL, 0, "lr", 1), "NULL");
  assert_true(calx_optimizer_option(opt, 0, "lr") == 1e-3);
  assert_true(calx_optimizer_option(opt, 0, "nesterov") == 0);
  assert_true(isnan(calx_optimizer_option(opt, 7, "lr")));
  assert_true(isnan(calx_optimizer_option(opt, 0, "beta")));
  assert_true(isnan(calx_optimizer_option(NULL, 0, "lr")));
  calx_optimizer_free(opt);
  opt = calx_sgd(NULL, .params = (calx_tensor *[]){ p.w, p.w }, .n_params = 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt),
               "more than one parameter group");
  calx_optimizer_free(opt);
  calx_module_free(p.m);
}

static calx_optimizer *two_groups(const pair *p, double lr)
{
  calx_optimizer *opt =
      calx_adam(NULL, .lr = 0.5, .params = &p->b, .n_params = 1);
  calx_optimizer_add_param_group(opt, NULL, .params = &p->w, .n_params = 1,
                                 .lr = lr);
  add_numbers(opt, p->w, p->b);
  return opt;
}

// A state dict has the groups: another optimiser with the same groups goes on
// with the same bits, one with other groups refuses it.
static void test_state_dict(void **state)
{
  (void)state;
  pair p[2] = { make_pair(), make_pair() };
  calx_optimizer *opt[2] = { two_groups(&p[0], 0.25), two_groups(&p[1], 7) };
  for (int i = 0; i < 3; i++) add_numbers(opt[0], p[0].w, p[0].b);
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt[0], &dict));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(opt[1], dict));
  assert_true(calx_optimizer_option(opt[1], 1, "lr") == 0.25);
  assert_int_equal(calx_optimizer_steps(opt[1]), 4);
  double *moment[2];
  for (int i = 0; i < 2; i++) {
    size_t n;
    add_numbers(opt[i], p[i].w, p[i].b);
    moment[i] = support_read(calx_optimizer_state(opt[i], 1, "exp_avg"), &n);
  }
  assert_memory_equal(moment[0], moment[1], sizeof(double));
  const calx_value *groups = calx_value_get(dict, "param_groups");
  assert_int_equal(calx_value_count(groups), 2);
  const calx_value *ids = calx_value_get(calx_value_item(groups, 1), "params");
  assert_int_equal(calx_value_as_int(calx_value_item(ids, 0)), 1);
  calx_optimizer *one = calx_adam(p[0].m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(one, dict),
               "a different number of parameter groups: 2, 1 wanted");
  calx_optimizer_free(one);
  calx_value_free(dict);
  for (int i = 0; i < 2; i++) {
    test_free(moment[i]);
    calx_optimizer_free(opt[i]);
    calx_module_free(p[i].m);
  }
}

static void test_clip_value(void **state)
{
  (void)state;
  pair p = make_pair();
  calx_optimizer *opt = calx_sgd(p.m, .lr = 1);
  calx_scope *s = calx_scope_begin();
  calx_backward(
      calx_sub(calx_sum(calx_mul(p.w, 3)), calx_sum(calx_mul(p.b, 4))));
  assert_true(calx_item(calx_get_total_norm(opt)) == 5);
  assert_true(calx_item(calx_get_total_norm(opt, .norm_type = HUGE_VAL)) == 4);
  CHECK_VALUES(calx_grad(p.w), 0, 3);
  calx_clip_grad_value(opt, 3.5);
  CHECK_VALUES(calx_grad(p.w), 0, 3);
  CHECK_VALUES(calx_grad(p.b), 0, -3.5);
  CHECK_STATUS_OK(calx_scope_end(s));
  REFUSED(calx_clip_grad_value(opt, -1), "clip_value -1");
  REFUSED(calx_clip_grad_value(opt, (double)NAN), "clip_value nan");
  REFUSED(calx_clip_grad_value(NULL, 1), "NULL");
  calx_optimizer_free(opt);
  calx_module_free(p.m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_each_has_its_own), SUPPORT_TEST(test_options_change),
    SUPPORT_TEST(test_refused),          SUPPORT_TEST(test_state_dict),
    SUPPORT_TEST(test_clip_value),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
