// zero_rules: each optimiser on shards steps as it does on the whole, on three
// ranks with other gradients; so do groups, and a whole state goes from one to
// the other.
#include "calx/autograd.h"
#include "calx/io.h"
#include "calx/optimizers.h"
#include "ranks.h"
#include "state.h"
#include "support/long.h"

typedef struct model {
  calx_module *root;
  calx_tensor *a, *b;  // f64 (5), f64 (2, 3)
  calx_optimizer *opt;
} model;

typedef calx_optimizer *make_fn(void *user, calx_module *m);

#define RULE(name, call)                                  \
  static calx_optimizer *name(void *user, calx_module *m) \
  {                                                       \
    (void)user;                                           \
    return call;                                          \
  }
RULE(adagrad, calx_adagrad(m, .lr = 0.1))
RULE(adamw, calx_adamw(m, .lr = 0.1, .amsgrad = true))
RULE(adadelta, calx_adadelta(m, .lr = 1, .weight_decay = 0.1))
RULE(rmsprop, calx_rmsprop(m, .momentum = 0.5, .centered = true))
RULE(adamax, calx_adamax(m, .lr = 0.1))
RULE(nadam, calx_nadam(m, .lr = 0.1))
RULE(radam, calx_radam(m, .lr = 0.1, .betas = { 0.5, 0.9 }))
RULE(rprop, calx_rprop(m, .lr = 0.1))
RULE(asgd, calx_asgd(m, .lr = 0.1, .t0 = 1))
RULE(lamb, calx_lamb(m, .lr = 0.1, .weight_decay = 0.1))
// The padding of the shards has no gradient: 0 / 0 without eps.
RULE(lamb_without_eps, calx_lamb(m, .lr = 0.1, .eps = CALX_ZERO))
RULE(lars, calx_lars(m, .lr = 1, .trust_coefficient = 0.1))
RULE(lion, calx_lion(m, .lr = 0.1, .weight_decay = 0.1))
RULE(adafactor, calx_adafactor(m))
static make_fn *const rules[] = {
  adagrad, adamw, adadelta, rmsprop, adamax, nadam,           radam,
  rprop,   asgd,  lamb,     lars,    lion,   lamb_without_eps
};
enum { RULES = sizeof rules / sizeof rules[0] };

// The optimiser has both parameters, or a first and then b as a group.
static calx_status *make(model *m, make_fn *rule, bool sharded, bool groups)
{
  m->root = calx_module_new("Net", NULL, NULL);
  calx_module *first = m->root, *second = m->root;
  if (groups) {
    first = calx_module_child(m->root, "first", "First", NULL, NULL);
    second = calx_module_child(m->root, "second", "Second", NULL, NULL);
  }
  calx_scope *scope = calx_scope_begin();
  calx_tensor *a = calx_arange(1, 6, 1, .dtype = CALX_F64);
  calx_tensor *b = calx_full(CALX_SHAPE(2, 3), -0.5, .dtype = CALX_F64);
  m->a = calx_module_param(first, "a", a);
  m->b = calx_module_param(second, "b", b);
  CALX_TRY(calx_scope_end(scope));
  m->opt = sharded ? calx_zero_redundancy_optimizer(first, .make = rule)
                   : rule(NULL, first);
  CALX_TRY(calx_optimizer_error(m->opt));
  if (!groups) return NULL;
  size_t group = calx_optimizer_add_param_group(m->opt, second, .lr = 0.025);
  RANK_CHECK(group == 1 && calx_optimizer_param_groups(m->opt) == 2);
  return calx_scope_take_error();
}

static void model_free(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

static calx_status *steps(const model *m, int n)
{
  for (int i = 0; i < n; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(m->opt);
    calx_tensor *x = calx_mul(calx_square(calx_sub(m->a, 2)), 0.5);
    calx_tensor *y = calx_square(calx_add(m->b, 1));
    calx_tensor *loss = calx_add(calx_sum(x), calx_sum(y));
    loss = calx_mul(loss, calx_global_ordinal() + 1);
    calx_backward(loss);
    calx_dist_step(m->opt, loss);
    CALX_TRY(calx_scope_end(scope));
  }
  return NULL;
}

static calx_status *check_same(const model *x, const model *y)
{
  state_numbers p = state_of(x->root), z = state_of(y->root);
  double d = state_distance(&p, &z);
  free(p.values);
  free(z.values);
  CALX_TRY(p.status);
  CALX_TRY(z.status);
  RANK_CHECK(d < 1e-12);
  return NULL;
}

// The same steps; then the whole state in a plain optimiser, which goes on.
static calx_status *check_rule(make_fn *rule, bool groups)
{
  model plain, sharded;
  CALX_TRY(make(&plain, rule, false, groups));
  CALX_TRY(make(&sharded, rule, true, groups));
  CALX_TRY(steps(&plain, 3));
  CALX_TRY(steps(&sharded, 3));
  CALX_TRY(check_same(&plain, &sharded));
  calx_value *dict;
  CALX_TRY(calx_optimizer_consolidate_state_dict(sharded.opt, &dict));
  CALX_TRY(calx_optimizer_load_state_dict(plain.opt, dict));
  calx_value_free(dict);
  CALX_TRY(steps(&plain, 2));
  CALX_TRY(calx_optimizer_state_dict(sharded.opt, &dict));
  CALX_TRY(calx_optimizer_load_state_dict(sharded.opt, dict));
  calx_value_free(dict);
  CALX_TRY(steps(&sharded, 2));
  CALX_TRY(check_same(&plain, &sharded));
  model_free(&plain);
  model_free(&sharded);
  return NULL;
}

static calx_status *check_rules(int index, void *user)
{
  (void)index;
  (void)user;
  const int stride = (int)all_or_sample(1, 2);
  for (int i = 0; i < RULES; i += stride) {
    calx_status *status = check_rule(rules[i], false);
    if (status != NULL) printf("rule %d\n", i);
    CALX_TRY(status);
  }
  CALX_TRY(check_rule(adamw, true));
  CALX_TRY(check_rule(lamb, true));
  model m;
  CALX_TRY(rank_wants(make(&m, adafactor, true, false), CALX_INVALID_ARGUMENT,
                      "adafactor needs rows and columns"));
  model_free(&m);
  return NULL;
}

static void test_rules(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(check_rules, NULL));
  calx_shutdown();
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_rules) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
