// scaler: calx_grad_scaler beside torch.amp.GradScaler: scale, tracker and
// parameters of each step, with gradients that overflow among them; its state;
// what is refused.
#include "calx/calx.h"
#include "net.h"
#include "support/torch.h"

enum { STEPS = 14 };

// The factor of the loss of each step; an infinite one makes the gradients so.
static const double factors[STEPS] = {
  (double)INFINITY, 1, 1, 2, 1, (double)INFINITY, 1, -1, 1,
  (double)NAN,      2, 1, 1, 3
};

static calx_tensor *scaled_loss(const net *m, int i)
{
  calx_tensor *y = calx_forward(m->fc, calx_ones(CALX_SHAPE(2, 3)));
  return calx_mul(calx_sum(calx_square(y)), factors[i]);
}

static void put(calx_value *to, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(to, key, v));
}

static calx_value *copy_of(calx_tensor *t)
{
  calx_scope *s = calx_scope_begin();
  calx_value *v = calx_value_tensor(calx_cpu(t));
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

static void put_row(calx_value *rows, const net *m, calx_grad_scaler *s,
                    bool counted)
{
  calx_value *row = calx_value_container(CALX_KIND_DICT);
  put(row, "w", copy_of(m->w));
  put(row, "b", copy_of(m->b));
  put(row, "scale", calx_value_float(calx_grad_scaler_get_scale(s)));
  put(row, "tracker", calx_value_int(calx_grad_scaler_get_growth_tracker(s)));
  put(row, "counted", calx_value_bool(counted));
  CHECK_STATUS_OK(calx_value_append(rows, row));
}

// Odd steps clip between unscale and step.
static void one_step(const net *m, calx_optimizer *opt, calx_grad_scaler *s,
                     int i)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_backward(calx_grad_scaler_scale(s, scaled_loss(m, i)));
  if (i % 2 == 1) {
    calx_grad_scaler_unscale(s, opt);
    calx_clip_grad_norm(opt, 0.5);
  }
  calx_grad_scaler_step(s, opt);
  calx_grad_scaler_update(s);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static calx_grad_scaler *small_scaler(void)
{
  return calx_grad_scaler_new(.init_scale = 1024, .growth_factor = 1.5,
                              .backoff_factor = 0.25, .growth_interval = 3);
}

static void test_torch(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root, .lr = 0.1);
  calx_grad_scaler *s = small_scaler();
  CHECK_STATUS_OK(calx_grad_scaler_error(s));
  calx_value *all = calx_value_container(CALX_KIND_DICT);
  calx_value *rows = calx_value_container(CALX_KIND_LIST), *dict;
  put(all, "w", copy_of(m.w));
  put(all, "b", copy_of(m.b));
  int64_t steps = 0;
  for (int i = 0; i < STEPS; i++) {
    one_step(&m, opt, s, i);
    steps += isfinite(factors[i]) != 0;
    put_row(rows, &m, s, calx_optimizer_steps(opt) == steps);
  }
  assert_int_equal(calx_optimizer_steps(opt), steps);
  put(all, "rows", rows);
  CHECK_STATUS_OK(calx_grad_scaler_state_dict(s, &dict));
  put(all, "state", dict);
  torch_check(all, "scaler_torch.py");
  calx_grad_scaler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// A checkpoint has the scaler: a run that goes on from it has the scale and the
// tracker, and the weights, of one that was not interrupted.
static void test_checkpoint(void **state)
{
  (void)state;
  const char *path = file_in_folder("run.pt");
  net a = make(), b = make();
  calx_optimizer *of_a = calx_adam(a.root), *of_b = calx_adam(b.root);
  calx_grad_scaler *sa = small_scaler(), *sb = calx_grad_scaler_new();
  for (int i = 0; i < 5; i++) one_step(&a, of_a, sa, i);
  calx_checkpoint c = { .size = sizeof c, .model = a.root };
  c.optimizer = of_a;
  c.scaler = sa;
  CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
  c.model = b.root;
  c.optimizer = of_b;
  c.scaler = sb;
  CHECK_STATUS_OK(calx_checkpoint_load(path, &c));
  for (int i = 5; i <= STEPS; i++) {
    assert_true(calx_grad_scaler_get_scale(sa) ==
                calx_grad_scaler_get_scale(sb));
    assert_int_equal(calx_grad_scaler_get_growth_tracker(sa),
                     calx_grad_scaler_get_growth_tracker(sb));
    assert_int_equal(calx_optimizer_steps(of_a), calx_optimizer_steps(of_b));
    for (int k = 0; k < 2; k++) {
      size_t n;
      double *x = support_read(k ? a.b : a.w, &n);
      double *y = support_read(k ? b.b : b.w, &n);
      assert_memory_equal(x, y, n * sizeof *x);
      test_free(x);
      test_free(y);
    }
    if (i == STEPS) break;
    one_step(&a, of_a, sa, i);
    one_step(&b, of_b, sb, i);
  }
  // Without a scaler in the file nothing is given.
  c.scaler = NULL;
  CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
  c.scaler = sb;
  one_step(&b, of_b, sb, 1);
  int64_t steps = calx_optimizer_steps(of_b);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_checkpoint_load(path, &c),
               "it has no dict 'scaler'");
  assert_int_equal(calx_optimizer_steps(of_b), steps);
  calx_grad_scaler_free(sa);
  calx_grad_scaler_free(sb);
  calx_optimizer_free(of_a);
  calx_optimizer_free(of_b);
  calx_module_free(a.root);
  calx_module_free(b.root);
  files_in_folder(true);
}

// A scaler that is made of a state goes on as the first.
static void test_state(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.01);
  calx_grad_scaler *a = small_scaler(), *b = calx_grad_scaler_new();
  one_step(&m, opt, a, 0);
  one_step(&m, opt, a, 1);
  calx_value *dict;
  CHECK_STATUS_OK(calx_grad_scaler_state_dict(a, &dict));
  CHECK_CLOSE(calx_grad_scaler_get_scale(b), 65536, 0);
  CHECK_STATUS_OK(calx_grad_scaler_load_state_dict(b, dict));
  CHECK_CLOSE(calx_grad_scaler_get_scale(b), 256, 0);
  CHECK_CLOSE(calx_grad_scaler_get_growth_factor(b), 1.5, 0);
  CHECK_CLOSE(calx_grad_scaler_get_backoff_factor(b), 0.25, 0);
  assert_int_equal(calx_grad_scaler_get_growth_interval(b), 3);
  assert_int_equal(calx_grad_scaler_get_growth_tracker(b), 1);
  put(dict, "backoff_factor", calx_value_float(2));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_grad_scaler_load_state_dict(b, dict),
               "backoff_factor 2");
  put(dict, "scale", calx_value_string("x"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_grad_scaler_load_state_dict(b, dict),
               "'scale'", "a number is wanted");
  calx_value_free(dict);
  dict = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_grad_scaler_load_state_dict(b, dict),
               "The source state dict is empty");
  CHECK_CLOSE(calx_grad_scaler_get_scale(b), 256, 0);
  calx_value_free(dict);
  calx_grad_scaler_free(a);
  calx_grad_scaler_free(b);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_disabled(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.01);
  calx_grad_scaler *s = calx_grad_scaler_new(.disabled = true);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_ones(CALX_SCALAR);
  assert_ptr_equal(calx_grad_scaler_scale(s, x), x);
  CHECK_STATUS_OK(calx_scope_end(scope));
  one_step(&m, opt, s, 1);
  assert_false(calx_grad_scaler_is_enabled(s));
  CHECK_CLOSE(calx_grad_scaler_get_scale(s), 1, 0);
  assert_int_equal(calx_optimizer_steps(opt), 1);
  calx_grad_scaler_free(s);
  calx_grad_scaler_free(NULL);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_refused(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.01);
  calx_grad_scaler *s = calx_grad_scaler_new(.growth_factor = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_grad_scaler_error(s),
               "growth_factor 1");
  calx_grad_scaler_free(s);
  s = calx_grad_scaler_new(.init_scale = 1e39);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_grad_scaler_error(s),
               "the scale 1e+39");
  calx_grad_scaler_free(s);
  s = calx_grad_scaler_new();
  calx_scope *scope = calx_scope_begin();
  calx_grad_scaler_step(s, opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(scope),
               "No inf checks were recorded for this optimizer");
  scope = calx_scope_begin();
  calx_grad_scaler_update(s);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(scope),
               "No inf checks were recorded prior to update");
  scope = calx_scope_begin();
  calx_backward(calx_grad_scaler_scale(s, scaled_loss(&m, 1)));
  calx_grad_scaler_unscale(s, opt);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_grad_scaler_unscale(s, opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(scope),
               "has already been called");
  calx_grad_scaler_update_to(s, 4);
  scope = calx_scope_begin();
  calx_backward(calx_grad_scaler_scale(s, scaled_loss(&m, 1)));
  calx_grad_scaler_step(s, opt);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_grad_scaler_step(s, opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(scope),
               "step() has already been called");
  scope = calx_scope_begin();
  calx_grad_scaler_update_to(s, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "the scale 0");
  calx_grad_scaler_update_to(s, 8);
  CHECK_CLOSE(calx_grad_scaler_get_scale(s), 8, 0);
  calx_module_to(m.root, CALX_F16);
  calx_optimizer_zero_grad(opt);
  scope = calx_scope_begin();
  calx_tensor *x = calx_ones(CALX_SHAPE(2, 3), .dtype = CALX_F16);
  calx_backward(calx_grad_scaler_scale(s, calx_sum(calx_forward(m.fc, x))));
  calx_grad_scaler_unscale(s, opt);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope),
               "attempting to unscale FP16 gradients", "fc.weight");
  calx_grad_scaler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_torch),   SUPPORT_TEST(test_checkpoint),
    SUPPORT_TEST(test_state),   SUPPORT_TEST(test_disabled),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
