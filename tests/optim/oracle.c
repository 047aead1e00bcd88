// oracle: six steps of each optimiser in every setting of the oracle
// (CALX_SHARED, oracle/train.*), in f64 and in f32, against PyTorch's f64.
#include "calx/autograd.h"
#include "calx/optimizers.h"
#include "support/long.h"
#include "support/safetensors.h"
#include "support/support.h"

static safetensors *tensors;
static json_t *settings;

typedef struct problem {
  calx_module *root;
  calx_tensor *w, *b;  // (4, 3), (4)
} problem;

static problem make(calx_dtype d)
{
  problem p = { .root = calx_module_new("Problem", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  p.w = calx_module_param(p.root, "W",
                          safetensors_tensor(tensors, "optim/W0", d));
  p.b = calx_module_param(p.root, "b",
                          safetensors_tensor(tensors, "optim/b0", d));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(p.root));
  return p;
}

// mse(tanh(x W^T + b), y)
static calx_tensor *loss_of(const problem *p, calx_dtype d)
{
  calx_tensor *x = safetensors_tensor(tensors, "optim/x", d);
  calx_tensor *y = safetensors_tensor(tensors, "optim/y", d);
  calx_tensor *off = calx_sub(calx_tanh(calx_linear(x, p->w, p->b)), y);
  return calx_mean(calx_mul(off, off));
}

// ---- settings ---------------------------------------------------------------

// A number of the setting, which is the oracle's own even where it is 0.
static double number(const json_t *args, const char *name)
{
  const json_t *v = json_object_get(args, name);
  if (v == NULL) return 0;
  double number = json_number_value(v);
  return number != 0 ? number : CALX_ZERO;
}

static double given(const json_t *args, const char *name)
{
  const json_t *v = json_object_get(args, name);
  return v != NULL ? json_number_value(v) : CALX_DEFAULT;
}

static bool flag(const json_t *args, const char *name)
{
  return json_is_true(json_object_get(args, name));
}

static calx_optimizer *another(calx_module *model, const char *name,
                               const json_t *args)
{
  double lr = given(args, "lr");
  if (strcmp(name, "RMSprop") == 0) {
    return calx_rmsprop(model, .lr = lr, .alpha = given(args, "alpha"),
                        .momentum = number(args, "momentum"),
                        .centered = flag(args, "centered"),
                        .weight_decay = number(args, "weight_decay"));
  }
  if (strcmp(name, "Adadelta") == 0) return calx_adadelta(model, .lr = lr);
  if (strcmp(name, "Adamax") == 0) return calx_adamax(model, .lr = lr);
  if (strcmp(name, "NAdam") == 0) return calx_nadam(model, .lr = lr);
  assert_string_equal(name, "RAdam");
  return calx_radam(model, .lr = lr);
}

static calx_optimizer *optimizer(calx_module *model, const json_t *setting)
{
  const char *name = json_string_value(json_object_get(setting, "name"));
  const json_t *args = json_object_get(setting, "args");
  if (strcmp(name, "SGD") == 0) {
    return calx_sgd(
        model, .lr = given(args, "lr"), .momentum = number(args, "momentum"),
        .dampening = number(args, "dampening"),
        .weight_decay = number(args, "weight_decay"),
        .nesterov = flag(args, "nesterov"), .maximize = flag(args, "maximize"));
  }
  if (strcmp(name, "Adagrad") == 0) {
    return calx_adagrad(
        model, .lr = given(args, "lr"), .lr_decay = number(args, "lr_decay"),
        .initial_accumulator_value = number(args, "initial_accumulator_value"));
  }
  calx_adam_options o = { .size = sizeof o,
                          .lr = number(args, "lr"),
                          .eps = number(args, "eps"),
                          .weight_decay = number(args, "weight_decay"),
                          .amsgrad = flag(args, "amsgrad"),
                          .maximize = flag(args, "maximize") };
  const json_t *betas = json_object_get(args, "betas");
  for (size_t i = 0; i < json_array_size(betas); i++) {
    o.betas[i] = json_number_value(json_array_get(betas, i));
  }
  if (strcmp(name, "Adam") == 0) return calx_adam_with(model, &o);
  if (strcmp(name, "AdamW") == 0) return calx_adamw_with(model, &o);
  return another(model, name, args);
}

static void check_state(const calx_optimizer *opt, const json_t *setting)
{
  json_t *keys = json_object_get(setting, "state_keys");
  size_t stateful = 0;
  for (size_t i = 0; i < json_array_size(keys); i++) {
    const char *key = json_string_value(json_array_get(keys, i));
    // Numbers of the host's here.
    if (strcmp(key, "step") == 0 || strcmp(key, "mu_product") == 0) continue;
    stateful++;
    calx_tensor *w = calx_optimizer_state(opt, 0, key);
    calx_tensor *b = calx_optimizer_state(opt, 1, key);
    assert_non_null(w);
    assert_int_equal(calx_tensor_rank(w), 2);
    assert_non_null(b);
    assert_int_equal(calx_tensor_rank(b), 1);
    assert_null(calx_optimizer_state(opt, 2, key));
  }
  size_t found = 0;
  static const char *const names[] = {
    "momentum_buffer", "exp_avg",  "exp_avg_sq", "max_exp_avg_sq", "sum",
    "square_avg",      "grad_avg", "acc_delta",  "exp_inf"
  };
  for (int i = 0; i < 9; i++) {
    found += calx_optimizer_state(opt, 0, names[i]) != NULL;
  }
  assert_int_equal(found, stateful);
}

// ---- the runs ---------------------------------------------------------------

static void check_values(const json_t *setting, const problem *p, calx_dtype d,
                         double worst, double tolerance)
{
  json_int_t id = json_integer_value(json_object_get(setting, "id"));
  char name[2][32];
  snprintf(name[0], sizeof name[0], "optim/%d/W", (int)id);
  snprintf(name[1], sizeof name[1], "optim/%d/b", (int)id);
  calx_scope *s = calx_scope_begin();
  double w = safetensors_distance(tensors, name[0], p->w);
  double b = safetensors_distance(tensors, name[1], p->b);
  CHECK_STATUS_OK(calx_scope_end(s));
  print_message("  %2d %-6s %s: loss %.1e, W %.1e, b %.1e\n", (int)id,
                json_string_value(json_object_get(setting, "name")),
                calx_dtype_name(d), worst, w, b);
  // The stored values are rounded to f32.
  assert_true(w <= tolerance + 2e-7 && b <= tolerance + 2e-7);
}

// Steps are counted as PyTorch counts them; programs are two, then none.
static void run(const json_t *setting, calx_dtype d, double tolerance)
{
  problem p = make(d);
  calx_optimizer *opt = optimizer(p.root, setting);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  const json_t *losses = json_object_get(setting, "losses_f64");
  double worst = 0;
  long programs = 0;
  for (size_t i = 0; i < json_array_size(losses); i++) {
    calx_scope *s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = loss_of(&p, d);
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    double value = calx_item(loss);
    CHECK_STATUS_OK(calx_scope_end(s));
    double wanted = json_number_value(json_array_get(losses, i));
    CHECK_CLOSE(value, wanted, tolerance);
    worst = fmax(worst, fabs(value - wanted));
    assert_int_equal(calx_optimizer_steps(opt), i + 1);
    if (i == 1) programs = cx_lazy_program_count();
  }
  assert_int_equal(cx_lazy_program_count(), programs);
  assert_true(programs <= 2);
  check_state(opt, setting);
  check_values(setting, &p, d, worst, tolerance);
  calx_optimizer_free(opt);
  calx_module_free(p.root);
}

// One setting of so many.
static void run_all(calx_dtype d, double tolerance, size_t stride)
{
  for (size_t i = 0; i < json_array_size(settings); i += stride) {
    run(json_array_get(settings, i), d, tolerance);
    calx_shutdown();  // so that programs are counted from none
  }
}

static void test_f64(void **state)
{
  (void)state;
  run_all(CALX_F64, 1e-12, 1);
}

static void test_f32(void **state)
{
  (void)state;
  run_all(CALX_F32, 2e-6, (size_t)all_or_sample(1, 3));
}

static int open_oracle(void **state)
{
  tensors = safetensors_open("oracle/train.safetensors");
  json_t *all = safetensors_json("oracle/train.json");
  settings = json_incref(json_object_get(all, "optim"));
  json_decref(all);
  assert_int_equal(json_array_size(settings), 18);
  return support_setup(state);
}

static int close_oracle(void **state)
{
  (void)state;
  json_decref(settings);
  safetensors_close(tensors);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_f64),
                                      SUPPORT_TEST(test_f32) };
  return cmocka_run_group_tests(tests, open_oracle, close_oracle);
}
