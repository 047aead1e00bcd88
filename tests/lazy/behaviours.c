// The acceptance behaviours of docs/behaviours.md, by their numbers: what runs,
// what compiles, what travels, in counts.
#include "lazy/lazy.h"
#include "steps.h"

// ---- 9, 10: what a step counts ----------------------------------------------

static void test_b09_mark_step(void **state)
{
  (void)state;
  calx_sync(calx_neg(VECTOR(1, 2)));
  assert_int_equal(calx_counter_value("MarkStep"), 1);
  calx_scope *step = calx_scope_begin();
  calx_sync(calx_neg(VECTOR(1, 2)));
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(calx_counter_value("MarkStep"), 2);
  step = calx_scope_begin();
  calx_tensor *two = VECTOR(1, 2), *three = VECTOR(1, 2, 3);
  calx_sync(calx_add(two, three));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(step), "add: ");
  assert_int_equal(calx_counter_value("MarkStep"), 2);  // it was no step
}

static void print_three_times(calx_tensor *t)
{
  for (int i = 0; i < 3; i++) {
    char *text = calx_tensor_str(t);
    assert_string_equal(text, "tensor([-1., -2.], device='xla:0')");
    calx_string_free(text);
    calx_cpu(t);
  }
}

static void test_b10_execute_time(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(VECTOR(1, 2));
  calx_sync(n);
  assert_int_equal(executions(), 1);
  print_three_times(n);
  assert_int_equal(executions(), 1);
  calx_tensor *pending = calx_neg(VECTOR(1, 2));
  print_three_times(pending);
  assert_int_equal(executions(), 2);
  // Once synced, its graph is a leaf.
  calx_tensor *kept = calx_take(pending);
  calx_sync(kept);
  assert_int_equal(executions(), 2);
  char *text = calx_graph_str(kept);
  assert_non_null(strstr(text, "device_data"));
  assert_null(strstr(text, "neg"));
  calx_string_free(text);
  calx_release(kept);
}

// ---- 11: a number is uploaded once ------------------------------------------

static void test_b11_transfers(void **state)
{
  (void)state;
  calx_tensor *t1 = DURABLE(1, 1), *t2 = DURABLE(2, 2), *t3 = DURABLE(4, 4);
  assert_int_equal(engine_samples("TransferToDeviceTime"), 3);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_assign(t1, calx_add(t1, calx_mul(calx_div(t2, t3), 0.1)));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
    assert_int_equal(engine_samples("TransferToDeviceTime"), 4);
  }
  CHECK_VALUES(t1, 1e-6, 1.15, 1.15);
  calx_release(t1);
  calx_release(t2);
  calx_release(t3);
}

// ---- 12: long graphs --------------------------------------------------------

static void test_b12_long_graphs(void **state)
{
  (void)state;
  calx_tensor *t = VECTOR(0);
  double wanted = 0;
  for (int i = 0; i < 4000; i++) {
    t = calx_add(t, 0.25 * (i % 8));
    wanted += 0.25 * (i % 8);
  }
  calx_sync(t);
  CHECK_VALUES(t, 0, wanted);
  assert_int_equal(engine_compiles(), 1);
  t = VECTOR(1);
  for (int i = 0; i < 2000; i++) t = calx_neg(t);
  calx_sync(t);
  CHECK_VALUES(t, 0, 1);
}

// ---- 17: random numbers -----------------------------------------------------

static void test_b17_random(void **state)
{
  (void)state;
  calx_manual_seed(12345);
  double a = calx_item(calx_randn(CALX_SHAPE(1)));
  long compiles = engine_compiles();
  calx_manual_seed(12345);
  double b = calx_item(calx_randn(CALX_SHAPE(1)));
  double c = calx_item(calx_randn(CALX_SHAPE(1)));
  assert_int_equal(engine_compiles(), compiles);
  assert_true(a == b && b != c);
  // The seed is an input of the program.
  char *text = calx_stablehlo_str(calx_randn(CALX_SHAPE(1)));
  assert_non_null(strstr(text, "rng_bit_generator"));
  assert_non_null(strstr(text, "xui32>"));
  calx_string_free(text);
}

// ---- 18: numbers in programs ------------------------------------------------

static void test_b18_pow(void **state)
{
  (void)state;
  calx_tensor *x = VECTOR(2, 3);
  calx_tensor *p = calx_pow(x, 5);
  char *text = calx_stablehlo_str(p);
  assert_null(strstr(text, "xui32>"));  // no number travels
  calx_string_free(text);
  CHECK_VALUES(p, 1e-3, 32, 243);
  text = calx_stablehlo_str(calx_pow(x, 2.2));
  assert_non_null(strstr(text, "xui32>"));
  calx_string_free(text);
}

static void test_b18_learning_rates(void **state)
{
  (void)state;
  net m;
  net_make(&m);
  calx_optimizer *opt = calx_adam(m.root, .lr = 0.1, .eps = 1e-4);
  const double rates[] = { 0.1, 0.1, 0.05, 0.0, 1.0, 1e-4, 0.9, 0.999, 0.1 };
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    calx_optimizer_set_lr(opt, rates[i]);
    long programs = train_step(&m, opt, 8);
    assert_true(programs == (i < 2) || (i == 1 && programs == 0));
  }
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// ---- 22, 23: donation -------------------------------------------------------

static double donated(void)
{
  return engine_sum("InputOutputAliasCount");
}

static void test_b22_donation_counts(void **state)
{
  (void)state;
  calx_tensor *t1 = DURABLE(1, 1), *t2 = DURABLE(2, 2);
  calx_tensor *t3 = calx_take(calx_add(t1, t2));
  calx_assign(t1, calx_mul(t1, 2));
  calx_assign(t2, calx_add(t2, 2));
  calx_sync(NULL);
  assert_true(donated() == 2);
  CHECK_VALUES(t1, 0, 2, 2);
  CHECK_VALUES(t2, 0, 4, 4);
  CHECK_VALUES(t3, 0, 3, 3);
  calx_assign(t1, calx_add(t1, 1));
  calx_sync(NULL);
  assert_true(donated() == 3);
  calx_assign(t1, calx_mul(t1, 100));
  calx_sync(NULL);
  assert_true(donated() == 4);
  CHECK_VALUES(t1, 0, 300, 300);
  // Ten updates of one tensor in one step.
  for (int i = 0; i < 10; i++) calx_assign(t2, calx_add(t2, 0.5 * i));
  calx_sync(NULL);
  assert_true(donated() == 5);
  CHECK_VALUES(t2, 0, 26.5, 26.5);
  calx_release(t1);
  calx_release(t2);
  calx_release(t3);
}

static void test_b22_accumulation(void **state)
{
  (void)state;
  calx_tensor *w = DURABLE(1, 2);
  calx_requires_grad(w, true);
  for (int i = 0; i < 4; i++) {
    calx_scope *step = calx_scope_begin();
    calx_backward(calx_sum(calx_mul(calx_mul(w, w), 1.0 + i)));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  assert_int_equal(engine_compiles(), 2);
  assert_true(donated() == 3);  // the gradient, in each step but the first
  CHECK_VALUES(calx_grad(w), 1e-5, 20, 40);
  calx_release(w);
}

static void test_b23_donation_is_safe(void **state)
{
  (void)state;
  calx_tensor *t0 = DURABLE(1), *t1 = DURABLE(2);
  calx_assign(t1, calx_add(t1, t0));
  calx_sync(NULL);
  calx_sync(calx_add(t1, t0));
  CHECK_VALUES(t1, 0, 3);
  calx_assign(t1, VECTOR(2));
  calx_sync(NULL);
  calx_tensor *t2 = calx_add(t0, t1);
  calx_assign(t1, calx_add(t1, 1));
  CHECK_VALUES(t1, 0, 3);  // read: nothing is given away by that
  CHECK_VALUES(t2, 0, 3);
  calx_sync(t2);
  CHECK_VALUES(t2, 0, 3);
  for (int i = 0; i < 2; i++) {
    calx_tensor *t = calx_take(calx_full(CALX_SHAPE(1), 42));
    calx_sync(NULL);
    calx_assign(t, calx_add(t, 1));
    calx_sync(NULL);
    CHECK_VALUES(t, 0, 43);
    calx_release(t);
  }
  calx_tensor *clone = calx_take(calx_detach(t1));
  calx_assign(t1, calx_mul(t1, 2));
  calx_sync(NULL);
  CHECK_VALUES(clone, 0, 3);
  CHECK_VALUES(t1, 0, 6);
  assert_null(calx_scope_error());
  calx_release(clone);
  calx_release(t0);
  calx_release(t1);
}

// ---- 26: cached programs ----------------------------------------------------

static long infer(net *m, const double *x, int64_t size)
{
  long before = engine_compiles();
  calx_scope *step = calx_scope_begin();
  calx_tensor *y = calx_forward(m->root, engine_tensor(CALX_SHAPE(size, 4), x));
  calx_sync(y);
  CHECK_STATUS_OK(calx_scope_end(step));
  return engine_compiles() - before;
}

static void test_b26_cached(void **state)
{
  (void)state;
  net m;
  net_make(&m);
  double a[32], b[32];
  for (int i = 0; i < 32; i++) a[i] = i, b[i] = -i;
  assert_int_equal(infer(&m, a, 4), 1);
  assert_int_equal(infer(&m, b, 4), 0);
  // Two batches put together: one program for that, one for the model.
  calx_scope *step = calx_scope_begin();
  calx_tensor *parts[2] = { engine_tensor(CALX_SHAPE(4, 4), a),
                            engine_tensor(CALX_SHAPE(4, 4), b) };
  calx_tensor *both = calx_cat(parts, 2, 0);
  long before = engine_compiles();
  calx_sync(both);
  calx_sync(calx_forward(m.root, both));
  assert_int_equal(engine_compiles() - before, 2);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(infer(&m, a, 8), 0);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    ENGINE_TEST(test_b09_mark_step),
    ENGINE_TEST(test_b10_execute_time),
    ENGINE_TEST(test_b11_transfers),
    ENGINE_TEST(test_b12_long_graphs),
    ENGINE_TEST(test_b17_random),
    ENGINE_TEST(test_b18_pow),
    ENGINE_TEST(test_b18_learning_rates),
    ENGINE_TEST(test_b22_donation_counts),
    ENGINE_TEST(test_b22_accumulation),
    ENGINE_TEST(test_b23_donation_is_safe),
    ENGINE_TEST(test_b26_cached),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
