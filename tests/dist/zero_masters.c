// zero_masters: f32 masters that are spread over the ranks are those of an
// optimiser that has them whole, bit for bit; saved whole and as shards, and
// gone on from.
#include "calx/autograd.h"
#include "calx/io.h"
#include "ranks.h"
#include "state.h"
#include "support/long.h"

enum { BEFORE = 5, AFTER = 4 };

typedef struct model {
  calx_module *root;
  calx_tensor *a, *b, *c;  // bf16 (5), f32 (7), bf16 (2, 3)
  calx_optimizer *opt;
} model;

// user: whether it is AdamW.
static calx_optimizer *plain(void *user, calx_module *m)
{
  if (*(const bool *)user) {
    return calx_adamw(m, .lr = 1e-3, .amsgrad = true, .master_weights = true);
  }
  return calx_sgd(m, .lr = 1e-3, .momentum = 0.5, .master_weights = true);
}

static calx_tensor *numbers(double from, calx_dtype d, calx_dims dims)
{
  double x[8];
  for (int i = 0; i < 8; i++) x[i] = sin(from + 1.7 * i * i);
  int64_t n = 1;
  for (size_t i = 0; i < dims.count; i++) n *= dims.values[i];
  calx_tensor *t = support_tensor(CALX_F32, calx_dims_of(&n, 1), x);
  return calx_to_dtype(calx_reshape(t, dims), d);
}

static calx_status *make(model *m, bool adamw, bool spread)
{
  m->root = calx_module_new("Net", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  m->a = calx_module_param(m->root, "a", numbers(1, CALX_BF16, CALX_SHAPE(5)));
  m->b = calx_module_param(m->root, "b", numbers(2, CALX_F32, CALX_SHAPE(7)));
  m->c =
      calx_module_param(m->root, "c", numbers(3, CALX_BF16, CALX_SHAPE(2, 3)));
  CALX_TRY(calx_scope_end(scope));
  m->opt = spread ? calx_zero_redundancy_optimizer(m->root, .make = plain,
                                                   .user = &adamw)
                  : plain(&adamw, m->root);
  return calx_optimizer_error(m->opt);
}

static void model_free(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

// All ranks have the same gradients, so that their mean has the same bits on 1,
// 2 and 4 ranks.
static calx_status *steps(model *m, int n)
{
  for (int s = 0; s < n; s++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(m->opt);
    calx_tensor *loss = calx_sum(calx_mul(m->b, m->b));
    calx_tensor *t = calx_sum(calx_mul(m->a, m->a));
    loss = calx_add(loss, calx_to_dtype(t, CALX_F32));
    t = calx_sum(calx_mul(m->c, m->c));
    loss = calx_add(loss, calx_to_dtype(t, CALX_F32));
    calx_backward(loss);
    calx_dist_step(m->opt, loss);
    CALX_TRY(calx_scope_end(scope));
  }
  return NULL;
}

// Every tensor of the whole state, and the weights; free() the values.
static calx_status *all_of(model *m, state_numbers *out)
{
  calx_value *whole;
  CALX_TRY(calx_optimizer_consolidate_state_dict(m->opt, &whole));
  const calx_value *state = calx_value_get(whole, "state");
  RANK_CHECK(calx_value_count(state) == 3);
  *out = state_of(m->root);
  for (size_t i = 0; i < calx_value_count(state); i++) {
    const calx_value *own = calx_value_item(state, i);
    calx_tensor *t = calx_value_as_tensor(calx_value_get(own, "master_param"));
    RANK_CHECK((t != NULL) == (i != 1));
    RANK_CHECK(t == NULL || calx_tensor_dtype(t) == CALX_F32);
    for (size_t k = 0; k < calx_value_count(own); k++) {
      state_add(out, calx_value_as_tensor(calx_value_item(own, k)));
    }
  }
  calx_value_free(whole);
  return out->status;
}

static calx_status *alike(model *x, model *y)
{
  state_numbers a, b;
  CALX_TRY(all_of(x, &a));
  CALX_TRY(all_of(y, &b));
  bool same = state_same_bits(&a, &b);
  free(a.values);
  free(b.values);
  RANK_CHECK(same);
  return NULL;
}

// A model that takes the state of another goes on with the same bits.
static calx_status *go_on(model *from, bool adamw, bool spread, bool shards)
{
  model to;
  calx_value *weights, *state;
  CALX_TRY(make(&to, adamw, spread));
  CALX_TRY(steps(&to, 1));
  CALX_TRY(calx_module_state_dict(from->root, &weights));
  CALX_TRY(shards ? calx_optimizer_state_dict(from->opt, &state)
                  : calx_optimizer_consolidate_state_dict(from->opt, &state));
  CALX_TRY(calx_module_load_state_dict(to.root, weights));
  CALX_TRY(calx_optimizer_load_state_dict(to.opt, state));
  calx_value_free(weights);
  calx_value_free(state);
  CALX_TRY(alike(from, &to));
  CALX_TRY(steps(&to, AFTER));
  model other;
  CALX_TRY(make(&other, adamw, false));
  CALX_TRY(steps(&other, BEFORE + AFTER));
  CALX_TRY(alike(&to, &other));
  model_free(&to);
  model_free(&other);
  return NULL;
}

static calx_status *both(int index, void *user)
{
  (void)index;
  (void)user;
  for (int adamw = 0; adamw < 2; adamw++) {
    model whole, spread;
    CALX_TRY(make(&whole, adamw, false));
    CALX_TRY(make(&spread, adamw, true));
    CALX_TRY(steps(&whole, BEFORE));
    CALX_TRY(steps(&spread, BEFORE));
    CALX_TRY(alike(&whole, &spread));
    CALX_TRY(go_on(&spread, adamw, false, false));
    CALX_TRY(go_on(&spread, adamw, true, false));
    CALX_TRY(go_on(&spread, adamw, true, true));
    CALX_TRY(go_on(&whole, adamw, true, false));
    model_free(&whole);
    model_free(&spread);
  }
  return NULL;
}

static void test_worlds(void **state)
{
  (void)state;
  const int last = (int)all_or_sample(4, 2);
  for (int n = (int)all_or_sample(1, 2); n <= last; n *= 2) {
    set_devices(n);
    CHECK_STATUS_OK(calx_launch(both, NULL));
    calx_shutdown();
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_worlds) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
