// The n-th allocation fails, for every n of a step: a status each time, nothing
// left over, and durable tensors keep what they had or have what they should.
#include "fixture.h"
#include "lazy/lazy.h"

// A step like a training step's: forward, backward, update, sync, item, print.
typedef struct model {
  calx_tensor *w, *b, *v;
} model;

// The new values, or the old ones: the fake's results are copies of arguments,
// so the expected ones are found by running it.
typedef struct values {
  float w[4], b[4], v[4];
} values;

static model make(void)
{
  model m = { lazy_durable(4, 1), lazy_durable(4, 11), lazy_durable(4, 21) };
  calx_requires_grad(m.w, true);
  return m;
}

static void drop(model *m)
{
  calx_release(m->w);
  calx_release(m->b);
  calx_release(m->v);
}

static values look(const model *m)
{
  values v;
  CHECK_STATUS_OK(calx_tensor_read(m->w, v.w, sizeof v.w));
  CHECK_STATUS_OK(calx_tensor_read(m->b, v.b, sizeof v.b));
  CHECK_STATUS_OK(calx_tensor_read(m->v, v.v, sizeof v.v));
  return v;
}

// Whether all three changed, or none did; anything else fails the test.
static bool changed(const model *m, const values *old, const values *fresh,
                    long n)
{
  values now = look(m);
  if (memcmp(&now, old, sizeof now) == 0) return false;
  if (memcmp(&now, fresh, sizeof now) != 0) {
    fail_msg("allocation %ld: half a step", n);
  }
  return true;
}

static calx_tensor *forward(const model *m, calx_tensor *x)
{
  calx_tensor *h = calx_relu(calx_add(calx_mul(m->w, x), m->b));
  return calx_sum(calx_mul(h, 0.5));
}

// The place of the updates: each takes another tensor's elements.
static void update(const model *m, calx_tensor *x)
{
  calx_no_grad_begin();
  calx_tensor *g = calx_grad(m->w);
  calx_assign(m->v, g != NULL ? calx_add(x, g) : x);
  calx_assign(m->b, calx_add(x, m->v));
  calx_assign(m->w, calx_sub(x, m->b, .alpha = 0.1));
  calx_no_grad_end();
}

static calx_status *step(const model *m, bool *out_synced)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = lazy_vector(4, 40);
  calx_tensor *loss = forward(m, x);
  calx_backward(loss);
  update(m, x);
  calx_zero_grad(m->w);
  calx_tensor *kept = calx_retain(calx_exp(loss));
  calx_sync(loss);
  *out_synced = calx_scope_error() == NULL;
  calx_item(loss);
  calx_release(kept);
  return calx_scope_end(scope);
}

static calx_status *read_and_print(const model *m, bool *out_synced)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *y = calx_add(m->w, calx_slice(m->b, 0, 0, 4, 1));
  calx_string_free(calx_tensor_str(y));
  calx_cpu(calx_mul(y, 2));
  calx_item(calx_sum(y));
  *out_synced = false;
  return calx_scope_end(scope);
}

typedef calx_status *part(const model *m, bool *out_synced);

// How many allocations a run takes; and what it makes of the model.
static long measure(part *run, values *out_fresh)
{
  model m = make();
  long before = cx_alloc_count();
  bool synced;
  CHECK_STATUS_OK(run(&m, &synced));
  long n = cx_alloc_count() - before;
  *out_fresh = look(&m);
  drop(&m);
  return n;
}

// Failing at n. `warm`: the programs are compiled and the lists have grown.
static void fail_at(part *run, long n, bool warm, const values *fresh)
{
  if (warm) {
    values v;
    measure(run, &v);
  }
  model m = make();
  values old = look(&m);
  bool synced;
  cx_alloc_fail_at(n);
  calx_status *status = run(&m, &synced);
  cx_alloc_fail_at(-1);
  bool new_values = changed(&m, &old, fresh, n);
  if (status == NULL) {
    assert_true(synced == new_values);
  } else {
    if (calx_status_code(status) != CALX_RESOURCE_EXHAUSTED) {
      fail_msg("allocation %ld: %s", n, calx_status_message(status));
    }
    // After the launch the step has been: only the reading can fail.
    assert_true(!new_values || synced);
  }
  calx_status_free(status);
  // The model is as good as new.
  CHECK_STATUS_OK(run(&m, &synced));
  drop(&m);
  assert_null(calx_scope_error());
  calx_shutdown();
  if (cx_alloc_live() != support_kept || cx_lazy_tensor_live() != 0 ||
      cx_graph_node_live() != 0 || cx_pjrt_live() != 0 ||
      cx_status_live() != 0 || lazy_fake.live() != 0) {
    fail_msg(
        "allocation %ld: left over: %ld blocks, %ld tensors, %ld nodes, "
        "%ld handles, %ld statuses, %ld in the plugin",
        n, cx_alloc_live() - support_kept, cx_lazy_tensor_live(),
        cx_graph_node_live(), cx_pjrt_live(), cx_status_live(),
        lazy_fake.live());
  }
}

static void sweep(part *run, bool warm)
{
  values fresh;
  if (warm) measure(run, &fresh);
  long n = measure(run, &fresh);
  calx_shutdown();
  assert_true(n > 20);
  for (long k = 0; k < n; k++) fail_at(run, k, warm, &fresh);
  print_message("%ld allocations, each failed once\n", n);
}

static void test_step(void **state)
{
  (void)state;
  sweep(step, true);
}

static void test_first_step(void **state)
{
  (void)state;
  sweep(step, false);
}

static void test_reading(void **state)
{
  (void)state;
  sweep(read_and_print, true);
}

static void test_eager_step(void **state)
{
  (void)state;
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  sweep(step, true);
  unsetenv("CALX_EAGER");
}

// The same for each call of the plugin that comes before the launch.
static void test_plugin_calls(void **state)
{
  (void)state;
  static const char *const functions[] = {
    "PJRT_Client_Compile",
    "PJRT_LoadedExecutable_GetExecutable",
    "PJRT_Executable_NumOutputs",
    "PJRT_Client_BufferFromHostBuffer",
    "PJRT_Buffer_ReadyEvent",
    "PJRT_LoadedExecutable_Execute",
    "PJRT_Executable_OutputElementTypes"
  };
  values fresh;
  measure(step, &fresh);
  calx_shutdown();
  int failed = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    for (int k = 1; k <= 3; k++) {
      model m = make();
      values old = look(&m);
      char settings[100];
      bool synced;
      snprintf(settings, sizeof settings, "fail=%s@%d:13:no luck", functions[i],
               k);
      lazy_set(settings);
      calx_status *status = step(&m, &synced);
      lazy_set("reset");
      bool new_values = changed(&m, &old, &fresh, k);
      if (status == NULL) assert_true(synced == new_values);
      if (status != NULL) {
        assert_non_null(strstr(calx_status_message(status), "no luck"));
        failed++;
      }
      calx_status_free(status);
      CHECK_STATUS_OK(step(&m, &synced));
      drop(&m);
      calx_shutdown();
      assert_int_equal(lazy_fake.live(), 0);
      assert_int_equal(cx_alloc_live(), support_kept);
    }
  }
  assert_true(failed >= 5);
}

// Opening the device.
static void test_opening(void **state)
{
  (void)state;
  bool done = false;
  for (long n = 0; !done; n++) {
    calx_shutdown();
    cx_alloc_fail_at(n);
    calx_device *d = NULL;
    calx_status *status = calx_device_open("xla", &d);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    assert_true(done == (d != NULL));
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
    calx_shutdown();
    assert_int_equal(cx_alloc_live(), support_kept);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_step),    LAZY_TEST(test_first_step),
    LAZY_TEST(test_reading), LAZY_TEST(test_eager_step),
    LAZY_TEST(test_opening), LAZY_TEST(test_plugin_calls),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
