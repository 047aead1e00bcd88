// Values on real plugins: eager and lazy agree, nobody loses a value to an
// update in place, numbers arrive exactly, starts are where they should be.
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "calx/optim.h"
#include "engine.h"
#include "lazy/lazy.h"

static void mode(const char *name, const char *value)
{
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
  cx_lazy_mode_reload();
}

// ---- aliasing ---------------------------------------------------------------

static void test_old_values(void **state)
{
  (void)state;
  calx_tensor *t0 = DURABLE(1, 1), *t1 = DURABLE(2, 2);
  calx_assign(t1, calx_add(t1, t0));
  calx_sync(NULL);
  calx_tensor *sum = calx_add(t1, t0);
  calx_sync(sum);
  CHECK_VALUES(t1, 0, 3, 3);
  CHECK_VALUES(sum, 0, 4, 4);
  calx_tensor *t2 = calx_add(t0, t1);
  calx_assign(t1, calx_add(t1, 1));
  calx_sync(t2);
  CHECK_VALUES(t2, 0, 4, 4);
  CHECK_VALUES(t1, 0, 4, 4);
  calx_tensor *clone = calx_take(calx_detach(t1));
  calx_assign(t1, calx_mul(t1, 10));
  calx_sync(NULL);
  CHECK_VALUES(clone, 0, 4, 4);
  CHECK_VALUES(t1, 0, 40, 40);
  assert_null(calx_scope_error());
  calx_release(clone);
  calx_release(t0);
  calx_release(t1);
}

static void test_fresh_constant(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    calx_tensor *t = calx_take(calx_full(CALX_SHAPE(2), 42));
    calx_sync(NULL);
    calx_assign(t, calx_add(t, 1));
    calx_sync(NULL);
    CHECK_VALUES(t, 0, 43, 43);
    calx_release(t);
  }
}

static void test_exchange(void **state)
{
  (void)state;
  calx_tensor *a = DURABLE(1, 2), *b = DURABLE(3, 4);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *x = calx_mul(b, 2), *y = calx_mul(a, 3);
    calx_assign(a, x);
    calx_assign(b, y);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_VALUES(a, 0, 36, 48);
  CHECK_VALUES(b, 0, 18, 36);
  calx_release(a);
  calx_release(b);
}

static void test_read_then_shared(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(VECTOR(1, 2));
  calx_tensor *a = calx_take(calx_detach(n)), *b = calx_take(calx_detach(n));
  CHECK_VALUES(n, 0, -1, -2);
  calx_sync(NULL);
  calx_assign(a, calx_mul(a, 5));
  calx_sync(NULL);
  CHECK_VALUES(a, 0, -5, -10);
  CHECK_VALUES(b, 0, -1, -2);
  CHECK_VALUES(n, 0, -1, -2);
  calx_release(a);
  calx_release(b);
}

// An update that was read before its sync, beside one that was not.
static void test_read_updates(void **state)
{
  (void)state;
  calx_tensor *a = DURABLE(1, 2), *b = DURABLE(3, 4), *c = DURABLE(5, 6);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_assign(a, calx_add(a, b));
    calx_assign(b, calx_add(b, 1));
    calx_assign(c, calx_add(c, a));
    calx_item(calx_sum(a));
    size_t n;
    test_free(support_read(a, &n));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_VALUES(a, 0, 13, 17);
  CHECK_VALUES(b, 0, 6, 7);
  CHECK_VALUES(c, 0, 5 + 4 + 8 + 13, 6 + 6 + 11 + 17);
  calx_release(a);
  calx_release(b);
  calx_release(c);
}

// ---- numbers ----------------------------------------------------------------

static void test_numbers(void **state)
{
  (void)state;
  calx_tensor *x = VECTOR(1, 2);
  const double values[] = { 0, 1, -1, 0.1, 1e38, 2e-38, 0.5, -0.0, 7 };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    double v = (double)(float)values[i];
    CHECK_VALUES(calx_mul(x, values[i]), 0, v, (double)(float)(2 * v));
    CHECK_VALUES(calx_full(CALX_SHAPE(2), values[i]), 0, v, v);
  }
  CHECK_VALUES(calx_add(x, (double)NAN), 0, (double)NAN, (double)NAN);
  CHECK_VALUES(calx_add(x, (double)-INFINITY), 0, (double)-INFINITY,
               (double)-INFINITY);
  // As long as they are, and in the middle of shorter ones.
  calx_tensor *d = support_tensor(CALX_F64, CALX_SHAPE(1), (double[]){ 1 });
  CHECK_VALUES(calx_mul(d, 0.1), 0, 0.1);
  CHECK_VALUES(calx_add(calx_to_dtype(calx_mul(x, 0.5), CALX_F64), 0.1), 0, 0.6,
               1.1);
  const int64_t big = ((int64_t)1 << 62) + 3;
  calx_tensor *i = calx_tensor_from(&(int64_t){ 0 }, CALX_I64, CALX_SHAPE(1));
  assert_true(calx_item_int(calx_add(i, big)) == big);
  assert_true(calx_item_int(calx_add(i, -big)) == -big);
  assert_true(calx_item_int(calx_sub(calx_add(i, INT64_MIN), -1)) ==
              INT64_MIN + 1);
  calx_tensor *mixed = calx_add(calx_mul(d, 0.25), calx_mul(i, big));
  CHECK_VALUES(calx_add(calx_add(mixed, 0.5), calx_sum(calx_mul(x, 3))), 0,
               9.75);
  const double halves[] = { 1.5, -2 };
  calx_tensor *h = support_tensor(CALX_F16, CALX_SHAPE(2), halves);
  CHECK_VALUES(calx_mul(h, 0.5), 0, 0.75, -1);
  h = support_tensor(CALX_BF16, CALX_SHAPE(2), halves);
  CHECK_VALUES(calx_mul(h, 0.5), 0, 0.75, -1);
  assert_null(calx_scope_error());
}

// Numbers that change from step to step, and come back.
static void test_changing_numbers(void **state)
{
  (void)state;
  calx_tensor *w = DURABLE(0, 0);
  const double rates[] = { 0.1, 0.1, 0, 1, 0.25, 0.1, 0.1 };
  double sum = 0;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    calx_scope *step = calx_scope_begin();
    calx_assign(w, calx_add(w, rates[i]));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
    sum += rates[i];
    CHECK_VALUES(w, 1e-6, sum, sum);
  }
  assert_int_equal(engine_compiles(), 1);
  calx_release(w);
}

static void test_starts(void **state)
{
  (void)state;
  double ten[10];
  for (int i = 0; i < 10; i++) ten[i] = i;
  calx_tensor *x = engine_tensor(CALX_SHAPE(10), ten);
  calx_tensor *m = calx_take(calx_reshape(x, CALX_SHAPE(2, 5)));
  calx_sync(NULL);
  for (int64_t k = 0; k < 7; k++) {
    CHECK_VALUES(calx_slice(x, 0, k, k + 4, 2), 0, (double)k, (double)k + 2);
    CHECK_VALUES(calx_slice(x, 0, k - 10, k - 8, 1), 0, (double)k,
                 (double)k + 1);
  }
  for (int64_t k = 0; k < 5; k++) {
    CHECK_VALUES(calx_select(m, 1, k), 0, (double)k, (double)k + 5);
  }
  // m itself, and two for each kind of slice.
  assert_int_equal(engine_compiles(), 1 + 3 * 2);
  calx_release(m);
}

static void test_slice_gradients(void **state)
{
  (void)state;
  calx_tensor *w = DURABLE(1, 2, 3, 4, 5);
  calx_requires_grad(w, true);
  for (int64_t k = 0; k < 3; k++) {
    calx_scope *step = calx_scope_begin();
    calx_backward(calx_sum(calx_mul(calx_slice(w, 0, k, k + 3, 2), 10)));
    double wanted[5] = { 0 };
    wanted[k] = wanted[k + 2] = 10;
    CHECK_VALUES(calx_grad(w), 0, wanted[0], wanted[1], wanted[2], wanted[3],
                 wanted[4]);
    calx_zero_grad(w);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  calx_release(w);
}

// ---- eager ------------------------------------------------------------------

typedef struct result {
  double w[6], b[3], loss[5];
} result;

// A small model, trained in lazy or eager mode.
static result train(bool eager)
{
  mode("CALX_EAGER", eager ? "1" : NULL);
  result r;
  calx_manual_seed(7);
  calx_tensor *w = calx_take(calx_randn(CALX_SHAPE(3, 2)));
  calx_tensor *b = calx_take(calx_zeros(CALX_SHAPE(3)));
  calx_requires_grad(w, true);
  calx_requires_grad(b, true);
  for (int i = 0; i < 5; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *x = calx_rand(CALX_SHAPE(4, 2));
    calx_tensor *y = calx_tanh(calx_linear(x, w, b));
    calx_tensor *loss = calx_mean(calx_square(calx_sub(y, 0.5)));
    calx_backward(loss);
    calx_no_grad_begin();
    calx_assign(w, calx_sub(w, calx_grad(w), .alpha = 0.1));
    calx_assign(b, calx_sub(b, calx_grad(b), .alpha = 0.1));
    calx_no_grad_end();
    calx_zero_grad(w);
    calx_zero_grad(b);
    calx_sync(loss);
    r.loss[i] = calx_item(loss);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  size_t n;
  double *values = support_read(w, &n);
  memcpy(r.w, values, sizeof r.w);
  test_free(values);
  values = support_read(b, &n);
  memcpy(r.b, values, sizeof r.b);
  test_free(values);
  calx_release(w);
  calx_release(b);
  mode("CALX_EAGER", NULL);
  return r;
}

// The same to the rounding that fusion changes.
static void test_eager(void **state)
{
  (void)state;
  result lazy = train(false), eager = train(true);
  for (int i = 0; i < 6; i++) CHECK_CLOSE(eager.w[i], lazy.w[i], 1e-6);
  for (int i = 0; i < 3; i++) CHECK_CLOSE(eager.b[i], lazy.b[i], 1e-6);
  for (int i = 0; i < 5; i++) CHECK_CLOSE(eager.loss[i], lazy.loss[i], 1e-6);
  assert_true(lazy.loss[4] != lazy.loss[0]);
  // Donated or not, checked or not.
  mode("CALX_DEBUG", "donation,nan,indices");
  result checked = train(false);
  mode("CALX_DEBUG", NULL);
  assert_memory_equal(&checked, &lazy, sizeof lazy);
}

// ---- random numbers ---------------------------------------------------------

static void draw(double out[6])
{
  size_t n;
  double *v = support_read(calx_randn(CALX_SHAPE(6)), &n);
  memcpy(out, v, 6 * sizeof *out);
  test_free(v);
}

static void test_random(void **state)
{
  (void)state;
  double a[6], b[6], again[6], eager[6], shaped[6];
  calx_manual_seed(12345);
  draw(a);
  long compiles = engine_compiles();
  draw(b);
  calx_manual_seed(12345);
  draw(again);
  assert_int_equal(engine_compiles(), compiles);
  assert_memory_equal(a, again, sizeof a);
  assert_memory_not_equal(a, b, sizeof a);
  mode("CALX_EAGER", "1");
  calx_manual_seed(12345);
  draw(eager);
  mode("CALX_EAGER", NULL);
  assert_memory_equal(a, eager, sizeof a);
  // The numbers do not depend on the shape, nor on when they are asked for.
  calx_manual_seed(12345);
  calx_tensor *first = calx_randn(CALX_SHAPE(2, 3));
  calx_tensor *second = calx_randn(CALX_SHAPE(6));
  CHECK_VALUES(second, 0, b[0], b[1], b[2], b[3], b[4], b[5]);
  size_t n;
  double *v = support_read(first, &n);
  memcpy(shaped, v, sizeof shaped);
  test_free(v);
  assert_memory_equal(a, shaped, sizeof a);
  calx_manual_seed(12346);
  draw(again);
  assert_memory_not_equal(a, again, sizeof a);
}

// A process starts with the same numbers: those of seed 0.
static void test_first_numbers(void **state)
{
  (void)state;
  double a[6], b[6];
  draw(a);
  calx_manual_seed(0);
  draw(b);
  assert_memory_equal(a, b, sizeof a);
}

// A draw that is read twice, in two programs, is one draw.
static void test_draw_again(void **state)
{
  (void)state;
  calx_tensor *r = calx_rand(CALX_SHAPE(4));
  calx_tensor *twice = calx_take(calx_mul(r, 2));
  size_t n;
  double *v = support_read(r, &n);
  for (size_t i = 0; i < n; i++) assert_true(v[i] >= 0 && v[i] < 1);
  calx_sync(NULL);
  CHECK_VALUES(twice, 0, 2 * v[0], 2 * v[1], 2 * v[2], 2 * v[3]);
  test_free(v);
  calx_release(twice);
}

// ---- two devices ------------------------------------------------------------

static void *on_second(void *user)
{
  double *out = user;
  calx_device *d;
  calx_status *status = calx_device_open("xla:1", &d);
  out[0] = status == NULL;
  calx_status_free(status);
  calx_device_set_current(d);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *w = calx_take(calx_full(CALX_SHAPE(2), 3));
  for (int i = 0; i < 4; i++) {
    calx_assign(w, calx_mul(w, 2));
    calx_sync(NULL);
  }
  out[1] = calx_item(calx_sum(w));
  out[2] = calx_item(calx_rand(CALX_SHAPE(1)));
  calx_release(w);
  status = calx_scope_end(scope);
  out[3] = status == NULL;
  calx_status_free(status);
  return NULL;
}

static void test_two_devices(void **state)
{
  (void)state;
  calx_shutdown();
  setenv("CPU_NUM_DEVICES", "2", 1);
  assert_int_equal(calx_device_count(), 2);
  double second[4];
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, on_second, second), 0);
  calx_tensor *w = calx_take(calx_full(CALX_SHAPE(2), 3));
  for (int i = 0; i < 4; i++) {
    calx_assign(w, calx_mul(w, 2));
    calx_sync(NULL);
  }
  pthread_join(thread, NULL);
  assert_true(second[0] == 1 && second[3] == 1);
  assert_true(second[1] == 96);
  CHECK_VALUES(w, 0, 48, 48);
  // Ranks draw different numbers.
  assert_true(calx_item(calx_rand(CALX_SHAPE(1))) != second[2]);
  // From one to the other, and back.
  calx_device *d;
  CHECK_STATUS_OK(calx_device_open("xla:1", &d));
  calx_tensor *there = calx_to(calx_mul(w, 0.5), d);
  CHECK_VALUES(calx_add(there, 1), 0, 25, 25);
  CHECK_VALUES(calx_add(calx_to(there, NULL), w), 0, 72, 72);
  assert_null(calx_scope_error());
  calx_release(w);
  unsetenv("CPU_NUM_DEVICES");
}

// ---- the disk cache ---------------------------------------------------------

static void test_cache(void **state)
{
  (void)state;
  char folder[256];
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx_values_%d",
           tmp != NULL ? tmp : "/tmp", (int)getpid());
  setenv("CALX_CACHE_DIR", folder, 1);
  for (int i = 0; i < 3; i++) {
    calx_shutdown();
    calx_tensor *w = DURABLE(1, 2);
    calx_assign(w, calx_add(calx_mul(w, 3), 0.5));
    calx_sync(NULL);
    calx_assign(w, calx_exp(calx_neg(w)));
    calx_sync(NULL);
    CHECK_VALUES(w, 1e-6, exp(-3.5), exp(-6.5));
    calx_release(w);
    assert_int_equal(calx_counter_value("PersistentCacheMiss"), 2);
    assert_int_equal(calx_counter_value("PersistentCacheHit"), 2 * i);
  }
  assert_int_equal(calx_counter_value("PersistentCacheDeserializeFailure"), 0);
  setenv("CALX_CACHE_DIR", "off", 1);
}

// ---- NaN --------------------------------------------------------------------

static void test_nan_loss(void **state)
{
  (void)state;
  mode("CALX_DEBUG", "nan");
  calx_scope *step = calx_scope_begin();
  calx_tensor *loss = calx_sum(calx_log(VECTOR(1, -1)));
  calx_sync(loss);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(step),
               "values.c:", "sync: ", "named tensor 0", "NaN");
  mode("CALX_DEBUG", NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    ENGINE_TEST(test_old_values),
    ENGINE_TEST(test_fresh_constant),
    ENGINE_TEST(test_exchange),
    ENGINE_TEST(test_read_then_shared),
    ENGINE_TEST(test_read_updates),
    ENGINE_TEST(test_numbers),
    ENGINE_TEST(test_changing_numbers),
    ENGINE_TEST(test_starts),
    ENGINE_TEST(test_slice_gradients),
    ENGINE_TEST(test_eager),
    ENGINE_TEST(test_random),
    ENGINE_TEST(test_first_numbers),
    ENGINE_TEST(test_draw_again),
    ENGINE_TEST(test_two_devices),
    ENGINE_TEST(test_cache),
    ENGINE_TEST(test_nan_loss),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
