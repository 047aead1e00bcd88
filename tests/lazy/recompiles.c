// When programs are compiled anew on a real plugin, and when not: the list of
// docs/behaviours.md.
#include "steps.h"

typedef enum rule { SGD, ADAM, ADAMW } rule;

static calx_optimizer *make(rule which, net *m)
{
  if (which == SGD) return calx_sgd(m->root, .lr = 0.01, .momentum = 0.5);
  if (which == ADAM) return calx_adam(m->root);
  return calx_adamw(m->root);
}

// Steps one and two, since the state exists from then on; then none.
static void test_recompile_optimizers(void **state)
{
  (void)state;
  for (rule which = SGD; which <= ADAMW; which++) {
    net m;
    net_make(&m);
    calx_optimizer *opt = make(which, &m);
    long total = 0;
    for (int i = 0; i < 6; i++) {
      long programs = train_step(&m, opt, 8);
      assert_true(i < 2 ? programs <= 1 : programs == 0);
      total += programs;
    }
    assert_true(total >= 1);
    print_message("%s: %ld programs\n",
                  which == SGD    ? "SGD with momentum"
                  : which == ADAM ? "Adam"
                                  : "AdamW",
                  total);
    calx_optimizer_free(opt);
    calx_module_free(m.root);
  }
}

// Another optimiser with other numbers: only what an option switches on is
// another program.
static void test_recompile_options(void **state)
{
  (void)state;
  net m;
  net_make(&m);
  const calx_sgd_options options[] = {
    { .lr = 0.1, .momentum = 0.5 },
    { .lr = 0.2, .momentum = 0.9 },
    { .lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4 },
    { .lr = 0.1, .momentum = 0.1, .weight_decay = 0.1 },
  };
  const long wanted[] = { 2, 0, 2, 0 };
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    calx_sgd_options o = options[i];
    o.size = sizeof o;
    calx_optimizer *opt = calx_sgd_with(m.root, &o);
    long programs = 0;
    for (int k = 0; k < 3; k++) programs += train_step(&m, opt, 8);
    assert_int_equal(programs, wanted[i]);
    calx_optimizer_free(opt);
  }
  calx_module_free(m.root);
}

// A cosine schedule that ends at 0 and starts again.
static void test_recompile_schedule(void **state)
{
  (void)state;
  net m;
  net_make(&m);
  calx_optimizer *opt = calx_sgd(m.root, .lr = 1, .momentum = 0.9);
  for (int i = 0; i < 12; i++) {
    double lr = 0.5 * (1 + cos(3.14159265358979 * (i % 6) / 5));
    calx_optimizer_set_lr(opt, lr < 1e-9 ? 0 : lr);
    long programs = train_step(&m, opt, 8);
    assert_true(i < 2 || programs == 0);
  }
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// One program for each new size, the short last batch's too.
static void test_recompile_batch_sizes(void **state)
{
  (void)state;
  net m;
  net_make(&m);
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.01);
  const int64_t sizes[] = { 32, 31, 16, 32, 16, 25, 31, 32 };
  const long wanted[] = { 1, 1, 1, 0, 0, 1, 0, 0 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(train_step(&m, opt, sizes[i]), wanted[i]);
  }
  assert_int_equal(lines_with("recompile at tests/lazy/steps.h:"), 2);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static long programs_of(calx_tensor *t)
{
  long before = engine_compiles();
  calx_scope *own = calx_scope_begin();
  calx_tensor *kept = calx_retain(t);
  calx_sync(kept);
  calx_release(kept);
  CHECK_STATUS_OK(calx_scope_end(own));
  return engine_compiles() - before;
}

#define CHECK_PROGRAMS(expression, wanted)               \
  do {                                                   \
    calx_scope *around = calx_scope_begin();             \
    assert_int_equal(programs_of(expression), (wanted)); \
    CHECK_STATUS_OK(calx_scope_end(around));             \
  } while (0)

static void test_recompile_numbers(void **state)
{
  (void)state;
  calx_tensor *x = VECTOR(1, 2, 3, 4);
  const double factors[] = { 0.7, 0, 1, -1, 0.3, 2 };
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    CHECK_PROGRAMS(calx_mul(x, factors[i]), i == 0);
    CHECK_PROGRAMS(calx_minimum(x, factors[i]), i == 0);  // clamp's bound
    CHECK_PROGRAMS(calx_full(CALX_SHAPE(4), factors[i]), i == 0);
  }
  CHECK_PROGRAMS(calx_add(calx_mul(x, 0.1), 0.2), 1);
  CHECK_PROGRAMS(calx_add(calx_mul(x, 0.3), 0.3), 0);
  const double own[] = { 2, 3, 0.5 }, other[] = { 2.2, 0.7, -3.3 };
  for (size_t i = 0; i < 3; i++) {
    CHECK_PROGRAMS(calx_pow(x, own[i]), 1);
    CHECK_PROGRAMS(calx_pow(x, other[i]), i == 0);
  }
  for (int i = 0; i < 3; i++) CHECK_PROGRAMS(calx_randn(CALX_SHAPE(4)), i == 0);
}

static void test_recompile_indices(void **state)
{
  (void)state;
  calx_tensor *x = VECTOR(1, 2, 3, 4, 5, 6);
  for (int64_t k = 0; k < 5; k++) {
    CHECK_PROGRAMS(calx_select(x, 0, k), k < 2);
    CHECK_PROGRAMS(calx_slice(x, 0, k, k + 2, 1), k < 2);
  }
  // x[:k] has another size each time.
  for (int64_t k = 3; k < 6; k++) {
    CHECK_PROGRAMS(calx_slice(x, 0, 0, k, 1), 1);
    CHECK_PROGRAMS(calx_slice(x, 0, 0, k, 1), 0);
  }
}

// Reading the loss before the sync that names it.
static void test_recompile_read_before(void **state)
{
  (void)state;
  calx_tensor *w = DURABLE(1, 2);
  long runs = executions(), compiles = engine_compiles();
  for (int i = 0; i < 6; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *loss = calx_sum(calx_square(w));
    assert_true(calx_item(loss) >= 0);
    calx_assign(w, calx_sub(w, loss, .alpha = 1e-3));
    calx_sync(loss);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  assert_int_equal(executions() - runs, 12);
  assert_int_equal(engine_compiles() - compiles, 2);
  calx_release(w);
}

// Reading it after: one execution a step.
static void test_recompile_read_after(void **state)
{
  (void)state;
  calx_tensor *w = DURABLE(1, 2), *total = DURABLE(0);
  long runs = executions();
  for (int i = 0; i < 6; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *loss = calx_sum(calx_square(w));
    calx_assign(w, calx_sub(w, loss, .alpha = 1e-3));
    calx_assign(total, calx_add(total, loss));
    calx_sync(loss);
    assert_true(calx_item(loss) >= 0);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  assert_int_equal(executions() - runs, 6);
  assert_int_equal(engine_compiles(), 1);
  assert_int_equal(lines_with("before the sync"), 0);
  calx_release(w);
  calx_release(total);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    ENGINE_TEST(test_recompile_optimizers),
    ENGINE_TEST(test_recompile_options),
    ENGINE_TEST(test_recompile_schedule),
    ENGINE_TEST(test_recompile_batch_sizes),
    ENGINE_TEST(test_recompile_numbers),
    ENGINE_TEST(test_recompile_indices),
    ENGINE_TEST(test_recompile_read_before),
    ENGINE_TEST(test_recompile_read_after),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
