// scheduler: learning-rate schedules: the oracle's (CALX_SHARED,
// oracle/train.json), what they refuse, and their state.
#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/io.h"
#include "io/files.h"
#include "schedules.h"
#include "support/safetensors.h"

static double relative(double got, double want)
{
  return fabs(got - want) / (fabs(want) + 1e-12);
}

static void check_rates(const char *name, const json_t *want, size_t i,
                        double got)
{
  double wanted = json_number_value(json_array_get(want, i));
  if (fabs(got) < 1e-15 && fabs(wanted) < 1e-15) return;
  if (relative(got, wanted) > 1e-9) {
    fail_msg("%s: value %zu is %.17g, %.17g is wanted", name, i, got, wanted);
  }
}

static void test_oracle(void **state)
{
  (void)state;
  json_t *all = safetensors_json("oracle/train.json");
  const json_t *list = json_object_get(all, "lr");
  calx_module *m = schedules_model();
  for (size_t k = 0; k < SCHEDULES_ORACLE; k++) {
    const json_t *k_th = json_array_get(list, k);
    const char *name = json_string_value(json_object_get(k_th, "name"));
    const json_t *rates = json_object_get(k_th, "lr");
    const json_t *momenta = json_object_get(k_th, "momentum");
    assert_int_equal(strncmp(schedules[k].python, name, strlen(name)), 0);
    assert_int_equal(json_array_size(rates), schedules[k].steps);
    calx_optimizer *opt = schedules_optimizer(m);
    calx_lr_scheduler *s = schedules_make(k, opt);
    CHECK_STATUS_OK(calx_lr_scheduler_error(s));
    for (size_t i = 0; i < json_array_size(rates); i++) {
      check_rates(name, rates, i, calx_optimizer_lr(opt));
      check_rates(name, rates, i, calx_lr_scheduler_last_lr(s, 0));
      if (momenta != NULL) {
        check_rates(name, momenta, i,
                    calx_optimizer_option(opt, 0, "momentum"));
      }
      if (i + 1 < json_array_size(rates)) schedules_step(opt, s);
    }
    CHECK_STATUS_OK(calx_scope_take_error());
    calx_lr_scheduler_free(s);
    calx_optimizer_free(opt);
  }
  calx_module_free(m);
  json_decref(all);
}

static void test_oracle_plateau(void **state)
{
  (void)state;
  json_t *all = safetensors_json("oracle/train.json");
  const json_t *it =
      json_array_get(json_object_get(all, "lr"), SCHEDULES_ORACLE);
  const json_t *rates = json_object_get(it, "lr_after");
  const json_t *metrics = json_object_get(it, "metrics");
  calx_module *m = schedules_model();
  calx_optimizer *opt = schedules_optimizer(m);
  calx_lr_scheduler *s = calx_reduce_lr_on_plateau(
      opt, .factor = 0.5, .patience = 1, .threshold = 0.01);
  assert_int_equal(json_array_size(metrics), 10);
  for (size_t i = 0; i < json_array_size(metrics); i++) {
    double metric = json_number_value(json_array_get(metrics, i));
    calx_lr_scheduler_step_metric(s, metric);
    check_rates("ReduceLROnPlateau", rates, i, calx_optimizer_lr(opt));
    assert_true(calx_lr_scheduler_last_lr(s, 1) ==
                calx_optimizer_option(opt, 1, "lr"));
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_lr_scheduler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m);
  json_decref(all);
}

// ---- what is refused --------------------------------------------------------

static void refused(calx_lr_scheduler *s, const char *what)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_lr_scheduler_error(s), what);
  calx_lr_scheduler_step(s);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), what);
  calx_lr_scheduler_free(s);
}

static void test_refused(void **state)
{
  (void)state;
  calx_module *m = schedules_model();
  calx_optimizer *opt = schedules_optimizer(m);
  refused(calx_step_lr(NULL, 3), "StepLR: no optimiser");
  refused(calx_step_lr(opt, 0), "StepLR: step_size 0, 1 or more is wanted");
  refused(calx_constant_lr(opt, .factor = 1.5), "factor 1.5");
  refused(calx_linear_lr(opt, .start_factor = -1), "start_factor -1");
  refused(calx_linear_lr(opt, .end_factor = 2), "end_factor 2");
  refused(calx_linear_lr(opt, .total_iters = -2), "total_iters -2");
  refused(calx_polynomial_lr(opt, .total_iters = -2), "total_iters -2");
  refused(calx_exponential_lr(opt, (double)NAN), "gamma nan");
  refused(calx_cosine_annealing_lr(opt, 0), "T_max 0");
  refused(calx_cosine_annealing_warm_restarts(opt, 0), "T_0 0");
  refused(calx_cosine_annealing_warm_restarts(opt, 3, .t_mult = -1),
          "T_mult -1");
  refused(calx_cyclic_lr(opt, -1, 1), "base_lr -1");
  refused(calx_one_cycle_lr(opt, 1, 0), "total_steps 0");
  refused(calx_one_cycle_lr(opt, 1, 10, .pct_start = 2), "pct_start 2");
  refused(calx_reduce_lr_on_plateau(opt, .factor = 1), "factor 1");
  refused(calx_lambda_lr(opt, NULL, NULL), "LambdaLR: no function");
  refused(calx_swa_lr(opt, -1), "swa_lr -1");
  calx_optimizer *plain = calx_adagrad(m);
  refused(calx_cyclic_lr(plain, 0.1, 1), "neither momentum nor betas");
  refused(calx_sequential_lr(opt, NULL, 0, CALX_DIMS(1)), "no schedules");
  calx_lr_scheduler *two[2] = { calx_step_lr(opt, 3), calx_step_lr(opt, 3) };
  refused(calx_sequential_lr(opt, two, 2, CALX_DIMS(1, 2)),
          "2 schedules want 1 milestones, got 2");
  two[0] = calx_step_lr(opt, 3);
  two[1] = calx_reduce_lr_on_plateau(opt);
  refused(calx_chained_scheduler(two, 2),
          "schedule 1 is ReduceLROnPlateau, whose steps take a metric");
  two[0] = calx_step_lr(opt, 3);
  two[1] = calx_step_lr(plain, 3);
  refused(calx_chained_scheduler(two, 2), "schedule 1 is of another optimiser");
  calx_optimizer_free(plain);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

static void test_wrong_steps(void **state)
{
  (void)state;
  calx_module *m = schedules_model();
  calx_optimizer *opt = schedules_optimizer(m);
  calx_lr_scheduler *step = calx_step_lr(opt, 3);
  calx_lr_scheduler *plateau = calx_reduce_lr_on_plateau(opt);
#define REFUSED(call, what) \
  call;                     \
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), what)
  REFUSED(calx_lr_scheduler_step(NULL), "it is NULL");
  REFUSED(calx_lr_scheduler_step(plateau), "calx_lr_scheduler_step_metric");
  REFUSED(calx_lr_scheduler_step_metric(step, 1), "without a metric");
  REFUSED(calx_lr_scheduler_step_at(step, 1), "CosineAnnealingWarmRestarts");
  calx_lr_scheduler *warm = calx_cosine_annealing_warm_restarts(opt, 4);
  REFUSED(calx_lr_scheduler_step_at(warm, -1), "epoch -1");
  calx_lr_scheduler_step_at(warm, 6.5);
  CHECK_CLOSE(calx_optimizer_lr(opt), 0.1 * (1 + cos(M_PI * 2.5 / 4)) / 2,
              1e-12);
  assert_int_equal(calx_lr_scheduler_last_epoch(warm), 6);
  calx_lr_scheduler *cycle = calx_one_cycle_lr(opt, 1, 2);
  for (int i = 0; i < 2; i++) calx_lr_scheduler_step(cycle);
  CHECK_STATUS_OK(calx_scope_take_error());
  REFUSED(calx_lr_scheduler_step(cycle), "step 3, it was made for 2 in all");
  assert_true(isnan(calx_lr_scheduler_last_lr(step, 2)));
  assert_true(isnan(calx_lr_scheduler_last_lr(NULL, 0)));
  calx_lr_scheduler_free(step);
  calx_lr_scheduler_free(plateau);
  calx_lr_scheduler_free(warm);
  calx_lr_scheduler_free(cycle);
  calx_lr_scheduler_free(NULL);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// ---- state ------------------------------------------------------------------

// From the middle of a run, through files, the rates go on as they would have.
static void test_resume(void **state)
{
  (void)state;
  calx_module *m = schedules_model();
  const char *path = file_in_folder("run.pt");
  for (size_t k = 0; k < SCHEDULES_COUNT; k++) {
    const int half = schedules[k].steps / 2, rest = schedules[k].steps - half;
    calx_optimizer *a = schedules_optimizer(m), *b = schedules_optimizer(m);
    calx_lr_scheduler *s = schedules_make(k, a), *t = schedules_make(k, b);
    for (int i = 0; i < half; i++) schedules_step(a, s);
    calx_checkpoint c = {
      .size = sizeof c, .model = m, .optimizer = a, .lr_scheduler = s
    };
    CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
    c.optimizer = b;
    c.lr_scheduler = t;
    CHECK_STATUS_OK(calx_checkpoint_load(path, &c));
    for (int i = 1; i < rest; i++) {
      schedules_step(a, s);
      schedules_step(b, t);
      for (size_t g = 0; g < 2; g++) {
        assert_true(calx_optimizer_option(a, g, "lr") ==
                    calx_optimizer_option(b, g, "lr"));
        assert_true(calx_lr_scheduler_last_lr(s, g) ==
                    calx_lr_scheduler_last_lr(t, g));
      }
    }
    CHECK_STATUS_OK(calx_scope_take_error());
    calx_lr_scheduler_free(s);
    calx_lr_scheduler_free(t);
    calx_optimizer_free(a);
    calx_optimizer_free(b);
  }
  calx_module_free(m);
}

static void load(calx_lr_scheduler *s, calx_value *dict, const char *key,
                 calx_value *value, const char *what)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, value));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_lr_scheduler_load_state_dict(s, dict), what);
}

static void test_bad_state(void **state)
{
  (void)state;
  calx_module *m = schedules_model();
  calx_optimizer *opt = schedules_optimizer(m);
  calx_lr_scheduler *s = calx_step_lr(opt, 3);
  calx_value *dict;
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_lr_scheduler_load_state_dict(s, NULL), "'last_epoch'");
  CHECK_STATUS_OK(calx_lr_scheduler_state_dict(s, &dict));
  assert_int_equal(calx_value_as_int(calx_value_get(dict, "step_size")), 3);
  assert_int_equal(calx_value_kind(calx_value_get(dict, "step_size")),
                   CALX_KIND_INT);
  load(s, dict, "gamma", calx_value_string("x"), "'gamma' of the state is");
  CHECK_STATUS_OK(calx_value_set(dict, "gamma", calx_value_float(0.25)));
  load(s, dict, "_last_lr", calx_value_container(CALX_KIND_LIST),
       "_last_lr of the state is no list of 2 numbers");
  calx_value_free(dict);
  calx_lr_scheduler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// Another rate compiles nothing.
static void test_programs(void **state)
{
  (void)state;
  calx_module *m = schedules_model();
  calx_optimizer *opt = schedules_optimizer(m);
  calx_lr_scheduler *s = calx_one_cycle_lr(opt, 1, 20);
  int64_t programs = 0;
  for (int i = 0; i < 12; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *loss = calx_add(calx_square(calx_module_find(m, "a")),
                                 calx_square(calx_module_find(m, "b")));
    calx_optimizer_zero_grad(opt);
    calx_backward(loss);
    schedules_step(opt, s);
    calx_sync(loss);
    CHECK_STATUS_OK(calx_scope_end(scope));
    if (i == 2) programs = calx_counter_value("UncachedCompile");
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), programs);
  calx_lr_scheduler_free(s);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_oracle),   SUPPORT_TEST(test_oracle_plateau),
    SUPPORT_TEST(test_refused),  SUPPORT_TEST(test_wrong_steps),
    SUPPORT_TEST(test_resume),   SUPPORT_TEST(test_bad_state),
    SUPPORT_TEST(test_programs),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
