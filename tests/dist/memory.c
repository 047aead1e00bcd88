// memory: every allocation of a step in step fails once, and of making the
// whole of the optimiser's state and loading it. What comes back is a status,
// on every rank, and nothing is left of the launch. On the fake plugin; under
// the thread sanitizer too.
#include "calx/autograd.h"
#include "calx/io.h"
#include "ranks.h"

typedef calx_optimizer *make_optimizer(calx_module *m);

static calx_optimizer *plain(calx_module *m)
{
  return calx_sgd(m, .lr = 0.1, .momentum = 0.5);
}

static calx_optimizer *of_shards(void *user, calx_module *shards)
{
  (void)user;
  return plain(shards);
}

static calx_optimizer *sharded(calx_module *m)
{
  return calx_zero_redundancy_optimizer(m, .make = of_shards);
}

static calx_status *take_steps(calx_module *m, calx_optimizer *opt)
{
  CALX_TRY(calx_module_error(m));
  CALX_TRY(calx_optimizer_error(opt));
  calx_scope *first = calx_scope_begin();
  calx_broadcast_master_param(m);
  CALX_TRY(calx_scope_end(first));
  for (int s = 0; s < 2; s++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *x = calx_ones(CALX_SHAPE(2, 3, 1, 1));
    calx_tensor *y = calx_flatten(calx_forward(m, x), .start_dim = 1);
    calx_tensor *loss = calx_sum(calx_square(y));
    calx_backward(loss);
    calx_dist_step(opt, loss);
    CALX_TRY(calx_scope_end(scope));
  }
  calx_value *state;
  CALX_TRY(calx_optimizer_consolidate_state_dict(opt, &state));
  calx_status *loaded = calx_optimizer_load_state_dict(opt, state);
  calx_value_free(state);
  CALX_TRY(loaded);
  return calx_rendezvous("end", NULL, 0, NULL, NULL);
}

static calx_status *train(int index, void *user)
{
  (void)index;
  make_optimizer *const *make = user;
  calx_module *m = calx_nn_batch_norm2d(NULL, NULL, 3);
  calx_convert_sync_batchnorm(m);
  calx_optimizer *opt = (*make)(m);
  calx_status *status = take_steps(m, opt);
  calx_optimizer_free(opt);
  calx_module_free(m);
  return status;
}

static void fail_each(make_optimizer *make)
{
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(train, &make));
  long n = 0, failed = 0;
  for (bool all = false; !all; n++) {
    long before = cx_alloc_count();
    cx_alloc_fail_at(n);
    calx_status *status = calx_launch(train, &make);
    cx_alloc_fail_at(-1);
    calx_code code = calx_status_code(status);
    all = code == CALX_OK && cx_alloc_count() - before <= n;
    if (code != CALX_OK) failed++;
    if (code != CALX_OK && code != CALX_RESOURCE_EXHAUSTED) {
      print_error("allocation %ld: %s\n", n, calx_status_message(status));
    }
    assert_true(code == CALX_OK || code == CALX_RESOURCE_EXHAUSTED);
    calx_status_free(status);
  }
  print_message("  %ld allocations, %ld of them fail a launch\n", n, failed);
  CHECK_STATUS_OK(calx_launch(train, &make));
}

static void test_plain(void **state)
{
  (void)state;
  fail_each(plain);
}

static void test_sharded(void **state)
{
  (void)state;
  fail_each(sharded);
}

static void take_line(void *user, const char *line)
{
  (void)user;
  (void)line;
}

int main(void)
{
  calx_log_set(take_line, NULL);  // of recompiles: programs are lost
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_plain),
                                      SUPPORT_TEST(test_sharded) };
  return cmocka_run_group_tests(tests, ranks_setup_fake, NULL);
}
