// resume: a checkpoint of each optimiser goes on with the same bits, in f32,
// and a failed step leaves what the host counts as it was.
#include "calx/io.h"
#include "calx/optimizers.h"
#include "io/files.h"
#include "net.h"

typedef calx_optimizer *make_fn(calx_module *m);

#define RULE(name, call)                      \
  static calx_optimizer *name(calx_module *m) \
  {                                           \
    return call;                              \
  }
RULE(sgd, calx_sgd(m, .lr = 0.01, .momentum = 0.5, .dampening = 0.25))
RULE(adam, calx_adam(m, .lr = 0.1, .amsgrad = true, .weight_decay = 0.1))
RULE(adamw, calx_adamw(m, .lr = 0.1))
RULE(adagrad, calx_adagrad(m, .lr_decay = 0.1))
RULE(adadelta, calx_adadelta(m))
RULE(rmsprop, calx_rmsprop(m, .momentum = 0.5, .centered = true))
RULE(adamax, calx_adamax(m))
RULE(nadam, calx_nadam(m, .decoupled_weight_decay = true, .weight_decay = 0.1))
RULE(radam, calx_radam(m, .betas = { 0.5, 0.75 }))
RULE(rprop, calx_rprop(m))
RULE(asgd, calx_asgd(m, .t0 = 1, .lambd = 0.1))
RULE(lamb, calx_lamb(m, .weight_decay = 0.1))
RULE(lars, calx_lars(m, .lr = 0.5))
RULE(lion, calx_lion(m, .lr = 0.01))
RULE(adafactor, calx_adafactor(m))
static make_fn *const rules[] = { sgd,     adam,   adamw, adagrad, adadelta,
                                  rmsprop, adamax, nadam, radam,   rprop,
                                  asgd,    lamb,   lars,  lion,    adafactor };
enum { RULES = sizeof rules / sizeof rules[0] };

static net make_same(void)
{
  net m = make();
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  calx_assign(m.w, support_tensor(CALX_F32, CALX_SHAPE(2, 3),
                                  (double[]){ 1, -2, 3, 0.25, 0.5, 2 }));
  calx_assign(
      m.b, support_tensor(CALX_F32, CALX_SHAPE(2), (double[]){ 0.75, -0.125 }));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  return m;
}

// Steps whose every second one is tried before and fails, where that is asked.
static void steps(const net *m, calx_optimizer *opt, int n, bool fails)
{
  for (int i = 0; i < n; i++) {
    if (fails && i % 2 == 0) {
      calx_scope *s = calx_scope_begin();
      calx_optimizer_zero_grad(opt);
      calx_tensor *loss = loss_of(m);
      calx_backward(loss);
      calx_optimizer_step(opt);
      calx_reshape(loss, CALX_SHAPE(7));
      calx_sync(loss);
      CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "reshape");
    }
    train_step(m, opt);
  }
}

static void check_equal(const net *x, const net *y)
{
  for (int i = 0; i < 2; i++) {
    size_t n;
    double *a = support_read(i ? x->b : x->w, &n);
    double *b = support_read(i ? y->b : y->w, &n);
    assert_memory_equal(a, b, n * sizeof *a);
    for (size_t k = 0; k < n; k++) assert_true(isfinite(a[k]));
    test_free(a);
    test_free(b);
  }
}

static void test_checkpoints(void **state)
{
  (void)state;
  const char *path = file_in_folder("run.pt");
  for (int i = 0; i < RULES; i++) {
    net a = make_same(), b = make_same();
    calx_optimizer *of_a = rules[i](a.root), *of_b = rules[i](b.root);
    steps(&a, of_a, 3, false);
    calx_checkpoint c = { .size = sizeof c,
                          .model = a.root,
                          .optimizer = of_a };
    CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
    steps(&a, of_a, 4, false);
    c.model = b.root;
    c.optimizer = of_b;
    CHECK_STATUS_OK(calx_checkpoint_load(path, &c));
    steps(&b, of_b, 4, true);
    assert_int_equal(calx_optimizer_steps(of_b), 7);
    check_equal(&a, &b);
    calx_optimizer_free(of_a);
    calx_optimizer_free(of_b);
    calx_module_free(a.root);
    calx_module_free(b.root);
  }
  files_in_folder(true);
}

// The state of another kind of optimiser is refused, and of another shape.
static void test_others_are_refused(void **state)
{
  (void)state;
  net m = make_same();
  for (int i = 1; i < RULES; i++) {
    calx_value *dict;
    calx_optimizer *from = sgd(m.root), *to = rules[i](m.root);
    train_step(&m, from);
    CHECK_STATUS_OK(calx_optimizer_state_dict(from, &dict));
    CHECK_STATUS(CALX_INVALID_ARGUMENT,
                 calx_optimizer_load_state_dict(to, dict), "load_state_dict");
    calx_value_free(dict);
    calx_optimizer_free(from);
    calx_optimizer_free(to);
  }
  calx_module_free(m.root);
}

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

// Numbers of the host and factored states come from files too.
static void test_bad_states(void **state)
{
  (void)state;
  net m = make_same();
  calx_value *dict, *own;
  calx_optimizer *opt = nadam(m.root);
  train_step(&m, opt);
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  own = calx_value_get_at(calx_value_get(dict, "state"), 0);
  put(own, "mu_product", calx_value_float((double)NAN));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'mu_product' is float", "while loading 'fc.weight'");
  put(own, "mu_product", calx_value_none());
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'mu_product'");
  calx_value_free(dict);
  calx_optimizer_free(opt);
  opt = adafactor(m.root);
  train_step(&m, opt);
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  own = calx_value_get_at(calx_value_get(dict, "state"), 0);
  calx_scope *s = calx_scope_begin();
  put(own, "row_var",
      calx_value_tensor(
          calx_host_tensor((float[6]){ 0 }, CALX_F32, CALX_SHAPE(2, 3))));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'row_var' of 'fc.weight' is");
  calx_value *group = calx_value_item(calx_value_get(dict, "param_groups"), 0);
  put(group, "beta2_decay", calx_value_float(1));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'beta2_decay' is float 1, wanted is a number of 0 or less");
  calx_value_free(dict);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_checkpoints),
    SUPPORT_TEST(test_others_are_refused),
    SUPPORT_TEST(test_bad_states),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
